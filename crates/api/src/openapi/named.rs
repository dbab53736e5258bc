//! Parts of the document by name: a schema's field as `Schema.field`, a parameter as `operationId?parameter`.

use utoipa::openapi::{
    OpenApi as Document, RefOr, Schema,
    path::{Operation, PathItem},
    schema::AllOf,
};

/// The schema with this name, if the document has it.
pub(super) fn find<'a>(document: &'a mut Document, name: &str) -> Option<&'a mut RefOr<Schema>> {
    match name.split_once('?') {
        Some((operation, parameter)) => {
            let operation =
                operations(document).find(|one| one.operation_id.as_deref() == Some(operation))?;
            operation.parameters.iter_mut().flatten().find_map(|one| match one {
                RefOr::T(one) if one.name == parameter => one.schema.as_mut(),
                _ => None,
            })
        }
        None => {
            let (schema, field) = name.split_once('.')?;
            match document.components.as_mut()?.schemas.get_mut(schema)? {
                RefOr::T(schema) => field_of(schema, field),
                RefOr::Ref(_) => None,
            }
        }
    }
}

/// Every operation.
pub(super) fn operations(document: &mut Document) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item| {
        let PathItem { get, put, post, delete, patch, .. } = item;
        [get, put, post, delete, patch].into_iter().flatten()
    })
}

fn field_of<'a>(schema: &'a mut Schema, field: &str) -> Option<&'a mut RefOr<Schema>> {
    match schema {
        Schema::Object(object) => object.properties.get_mut(field),
        Schema::AllOf(AllOf { items, .. }) => items.iter_mut().find_map(|part| match part {
            RefOr::T(part) => field_of(part, field),
            RefOr::Ref(_) => None,
        }),
        _ => None,
    }
}
