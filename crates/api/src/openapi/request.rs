//! Rules for every request body, applied once.
//!
//! Unknown fields are refused, so no request schema allows any. A client may send back what `GET` showed with
//! a change, so read-only fields are part of the schemas of changes, as `readOnly`. A value that may be
//! written in several forms, or left out, is one choice and not a choice within a choice; one that is either
//! `null` or of one type has both types, which client generators handle better than a choice. A body that may
//! be left out may still not be `null`.

use std::collections::BTreeSet;

use utoipa::openapi::{
    Components, Content, OpenApi as Document, RefOr, Schema, Type,
    path::{Operation, PathItem},
    schema::{AdditionalProperties, ArrayItems, OneOf, SchemaType},
};

const JSON: &str = "application/json";
const SHOWN_ONLY: &str = "Shown only; it may be sent back as it was.";
const PLACE: &str = "#/components/schemas/";

/// Applies these rules to the document's request schemas.
pub(super) fn finish(document: &mut Document) {
    document.paths.paths.values_mut().filter_map(|item| item.post.as_mut()).for_each(refuse_null);
    let items: Vec<PathItem> = document.paths.paths.values().cloned().collect();
    let components = document.components.get_or_insert_with(Components::new);
    let mut names = BTreeSet::new();
    let operations = items
        .iter()
        .flat_map(|item| [&item.get, &item.put, &item.post, &item.delete, &item.patch].into_iter().flatten());
    operations.filter_map(asked).for_each(|schema| reach(components, schema, &mut names));
    for name in &names {
        if let Some(RefOr::T(schema)) = components.schemas.get_mut(name) {
            close(schema);
        }
    }
    let changes = items.iter().flat_map(|item| [&item.put, &item.patch].into_iter().flatten());
    for operation in changes {
        if let (Some(asked), Some(answered)) =
            (asked(operation).and_then(name_of), answered(operation).and_then(name_of))
        {
            let (asked, answered) = (asked.to_owned(), answered.to_owned());
            take_back(components, &asked, &answered);
        }
    }
}

fn json_of<'a>(
    content: impl IntoIterator<Item = (&'a String, &'a RefOr<Content>)>,
) -> Option<&'a RefOr<Schema>> {
    let (_, content) = content.into_iter().find(|(kind, _)| *kind == JSON)?;
    match content {
        RefOr::T(content) => content.schema.as_ref(),
        RefOr::Ref(_) => None,
    }
}

/// The schema of an operation's body.
fn asked(operation: &Operation) -> Option<&RefOr<Schema>> {
    match operation.request_body.as_ref()? {
        RefOr::T(body) => json_of(&body.content),
        RefOr::Ref(_) => None,
    }
}

/// The schema of an operation's successful answer.
fn answered(operation: &Operation) -> Option<&RefOr<Schema>> {
    match operation.responses.responses.get("200")? {
        RefOr::T(answer) => json_of(&answer.content),
        RefOr::Ref(_) => None,
    }
}

fn name_of(schema: &RefOr<Schema>) -> Option<&str> {
    match schema {
        RefOr::Ref(named) => named.ref_location.strip_prefix(PLACE),
        RefOr::T(_) => None,
    }
}

/// Collects the named schemas that a schema refers to.
fn reach(components: &Components, schema: &RefOr<Schema>, names: &mut BTreeSet<String>) {
    if let Some(name) = name_of(schema) {
        if names.insert(name.to_owned())
            && let Some(schema) = components.schemas.get(name)
        {
            reach(components, schema, names);
        }
        return;
    }
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            object.properties.values().for_each(|inner| reach(components, inner, names));
            if let Some(AdditionalProperties::RefOr(inner)) = object.additional_properties.as_deref() {
                reach(components, inner, names);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(inner) = &array.items {
                reach(components, inner, names);
            }
        }
        Schema::OneOf(choice) => choice.items.iter().for_each(|inner| reach(components, inner, names)),
        _ => {}
    }
}

/// Closes an object, and all objects within, to unknown fields. An object without declared fields holds
/// whatever the caller likes, and stays open.
fn close(schema: &mut Schema) {
    match schema {
        Schema::Object(object) => {
            if !object.properties.is_empty() && object.additional_properties.is_none() {
                object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            }
            object.properties.values_mut().for_each(close_inner);
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(inner) = &mut array.items {
                close_inner(inner);
            }
        }
        Schema::OneOf(choice) => {
            flatten(choice);
            choice.items.iter_mut().for_each(close_inner);
        }
        _ => {}
    }
}

fn close_inner(schema: &mut RefOr<Schema>) {
    if let RefOr::T(schema) = schema {
        close(schema);
        fold(schema);
    }
}

/// Turns a choice between one plain value and `null` into a nullable value.
fn fold(schema: &mut Schema) {
    let Schema::OneOf(choice) = schema else { return };
    let is_null = |one: &RefOr<Schema>| matches!(one, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null));
    let value = match choice.items.as_slice() {
        [null, value] | [value, null] if is_null(null) => value,
        _ => return,
    };
    if let RefOr::T(Schema::Object(value)) = value
        && let SchemaType::Type(kind) = &value.schema_type
        && *kind != Type::Object
    {
        let mut value = value.clone();
        value.schema_type = SchemaType::Array(vec![kind.clone(), Type::Null]);
        value.description = choice.description.take().or(value.description);
        value.default = choice.default.take().or(value.default);
        value.example = choice.example.take().or(value.example);
        *schema = Schema::Object(value);
    }
}

/// Flattens a choice within a choice, and moves the description of one of its parts up.
fn flatten(choice: &mut OneOf) {
    for item in std::mem::take(&mut choice.items) {
        match item {
            RefOr::T(Schema::OneOf(inner)) => {
                choice.example = choice.example.take().or(inner.example);
                choice.items.extend(inner.items);
            }
            RefOr::Ref(mut named) => {
                if choice.description.is_none() && !named.description.is_empty() {
                    choice.description = Some(std::mem::take(&mut named.description));
                }
                choice.items.push(RefOr::Ref(named));
            }
            item => choice.items.push(item),
        }
    }
}

/// Adds the read-only fields of an answer to the schema of the change.
fn take_back(components: &mut Components, asked: &str, answered: &str) {
    let Some(RefOr::T(Schema::Object(shown))) = components.schemas.get(answered).cloned() else { return };
    let Some(RefOr::T(Schema::Object(asked))) = components.schemas.get_mut(asked) else { return };
    for (name, mut schema) in shown.properties {
        if !asked.properties.contains_key(&name) {
            show_only(&mut schema);
            asked.properties.insert(name, schema);
        }
    }
}

/// Marks a field as read-only, and removes its example.
fn show_only(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::Ref(named) => {
            named.description = SHOWN_ONLY.to_owned();
            named.read_only = Some(true);
        }
        RefOr::T(Schema::Object(object)) => {
            (object.description, object.example) = (Some(SHOWN_ONLY.to_owned()), None);
            object.read_only = Some(true);
        }
        RefOr::T(Schema::OneOf(choice)) => {
            (choice.description, choice.example) = (Some(SHOWN_ONLY.to_owned()), None);
            choice.read_only = Some(true);
        }
        RefOr::T(_) => {}
    }
}

/// Removes `null` from the forms of a body.
fn refuse_null(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    let Some(RefOr::T(content)) = body.content.get_mut(JSON) else { return };
    if let Some(RefOr::T(Schema::OneOf(choice))) = &content.schema
        && let [named @ RefOr::Ref(_), _] = choice.items.as_slice()
    {
        content.schema = Some(named.clone());
    }
}
