//! Binary content in requests and answers: mails, files and archives.
//!
//! JSON Schema names their media type; `format: binary` beside it is what client generators use. They
//! reliably know `application/octet-stream` and few other types, so binary content can always be sent and
//! received as that as well.

use utoipa::openapi::{
    Content, KnownFormat, OpenApi as Document, RefOr, Schema, SchemaFormat, Type, schema::ObjectBuilder,
};

use super::named;
use crate::http::body::OCTETS;

/// The call whose body is a mail and nothing else.
const RAW: &str = "sendRawMessage";

/// Marks every binary body as such.
pub(super) fn describe(document: &mut Document) {
    for operation in named::operations(document) {
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            if operation.operation_id.as_deref() == Some(RAW) {
                body.content.entry(OCTETS.to_owned()).or_insert_with(octets);
            }
            body.content.iter_mut().for_each(as_bytes);
        }
        for answer in operation.responses.responses.values_mut() {
            if let RefOr::T(answer) = answer {
                if answer.content.keys().any(|kind| is_bytes(kind)) {
                    answer.content.entry(OCTETS.to_owned()).or_insert_with(octets);
                }
                answer.content.iter_mut().for_each(as_bytes);
            }
        }
    }
}

fn is_bytes(kind: &str) -> bool {
    matches!(kind, "message/rfc822" | "application/zip" | OCTETS)
}

fn octets() -> RefOr<Content> {
    RefOr::T(Content::new(None::<Schema>))
}

fn as_bytes((kind, content): (&String, &mut RefOr<Content>)) {
    if let RefOr::T(content) = content
        && is_bytes(kind)
    {
        let bytes = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .content_media_type(kind.clone());
        content.schema = Some(bytes.into());
    }
}
