//! The document says what is answered: every answer that any test gets is held against it, by its status, its
//! content type and its fields.

use std::sync::LazyLock;

use axum::http::{Method, header};
use serde_json::Value;

use crate::{json_schema::Schemas, support::Answer};

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::made);

/// Panics if an answer is not as the document says. Paths and methods that are not in it are not checked.
pub fn check(method: &Method, path: &str, answer: &Answer) {
    let Some(answers) = SCHEMAS.answers(method.as_str(), path) else { return };
    let status = answer.status.as_u16();
    let by_default = answers.get("default").filter(|_| status >= 400);
    let told = answers.get(status.to_string()).or(by_default);
    let told = told.unwrap_or_else(|| panic!("{method} {path}: the document has no {status}"));
    let Some(kinds) = told.get("content").and_then(Value::as_object) else {
        assert!(
            answer.body.is_empty(),
            "{method} {path}: {status} has a body that the document does not have"
        );
        return;
    };
    let kind = answer.headers.get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
    let kind = kind.split(';').next().unwrap_or_default();
    let schema = kinds.get(kind).map(|kind| &kind["schema"]);
    let schema = schema.unwrap_or_else(|| panic!("{method} {path}: {status} is {kind:?}, not as documented"));
    if kind == "application/json" {
        let json = answer.json();
        let fault = SCHEMAS.fault(schema, &json).or_else(|| SCHEMAS.untold(schema, &json));
        assert_eq!(fault, None, "{method} {path}: {status} is not as documented: {json}");
    }
}
