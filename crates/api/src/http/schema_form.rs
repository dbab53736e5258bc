//! Schemas of values that may be written in more than one form, for the OpenAPI document. The types are never
//! filled; fields of request schemas name them with `#[schema(inline)]`.

use serde_json::{Value, json};
use utoipa::{
    PartialSchema,
    openapi::{
        KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type,
        schema::{ArrayBuilder, OneOfBuilder},
    },
};

/// Defines types that stand for such values, each with its schema.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident => $schema:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, serde::Serialize)]
        pub(crate) struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.into()
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}
pub(crate) use forms;

forms! {
    /// One text, or a list of them.
    Texts => text_or_list();
    /// Recipients: one, or a list of them.
    Recipients => shown_as(text_or_list(), json!(["ada@example.net"]));
    /// A time. Unix seconds are accepted as well, but the document names one type, which client generators
    /// need.
    When => text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    /// A priority: a number or a word.
    Urgency => one_of([
        of_type(Type::Integer).minimum(Some(0)).maximum(Some(3)),
        words(&["immediate", "high", "normal", "low"]),
    ]);
}

/// A schema that allows any of these.
pub(crate) fn one_of<S: Into<RefOr<Schema>>>(forms: impl IntoIterator<Item = S>) -> OneOfBuilder {
    forms.into_iter().fold(OneOfBuilder::new(), |one_of, form| one_of.item(form))
}

/// A choice with an example.
pub(crate) fn shown_as(choice: OneOfBuilder, example: Value) -> RefOr<Schema> {
    let mut choice = choice.build();
    choice.example = Some(example);
    RefOr::T(Schema::OneOf(choice))
}

/// The schema of `F` with a description, for a required field: `inline` together with a comment would declare
/// an object besides.
pub(crate) fn described<F: PartialSchema>(about: &str, example: Option<Value>) -> RefOr<Schema> {
    let mut form = F::schema();
    match &mut form {
        RefOr::T(Schema::OneOf(choice)) => {
            choice.description = Some(about.to_owned());
            choice.example = example.or(choice.example.take());
        }
        RefOr::T(Schema::Object(object)) => {
            object.description = Some(about.to_owned());
            object.example = example.or(object.example.take());
        }
        _ => {}
    }
    form
}

/// A schema of this type.
pub(crate) fn of_type(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind)
}

/// A text schema.
pub(crate) fn text() -> ObjectBuilder {
    of_type(Type::String)
}

/// A schema that allows these words only.
pub(crate) fn words(words: &[&str]) -> ObjectBuilder {
    text().enum_values(Some(words.iter().copied()))
}

/// One text, or a list of them.
pub(crate) fn text_or_list() -> OneOfBuilder {
    OneOfBuilder::new().item(text()).item(ArrayBuilder::new().items(text()))
}
