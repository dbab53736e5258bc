//! As much of JSON Schema as the document uses, to hold bodies against the schemas as served.

use axum::{body::Body, http::Request};
use serde_json::{Map, Value, json};

use crate::support::Api;

/// The document as served. A keyword that is not known here fails, so that nothing is passed over.
pub struct Schemas(Value);

/// Keywords that only tell.
const TOLD_ONLY: [&str; 7] =
    ["description", "example", "default", "format", "readOnly", "writeOnly", "deprecated"];

impl Schemas {
    pub async fn served(api: &Api) -> Self {
        let request = Request::get("/openapi.json").body(Body::empty()).unwrap();
        Self(api.ask(request).await.ok(200))
    }

    /// The schema of a call's body.
    #[track_caller]
    pub fn asked(&self, method: &str, path: &str) -> &Value {
        let operation = &self.0["paths"][path][method.to_lowercase()];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path} has no body in the document");
        schema
    }

    /// What is wrong with a value, if anything.
    pub fn fault(&self, schema: &Value, value: &Value) -> Option<String> {
        let schema = schema.as_object().unwrap();
        schema.iter().find_map(|(keyword, rule)| self.breaks(keyword, rule, schema, value))
    }

    fn breaks(
        &self,
        keyword: &str,
        rule: &Value,
        schema: &Map<String, Value>,
        value: &Value,
    ) -> Option<String> {
        let holds = match keyword {
            "$ref" => {
                let target = self.0.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
                return self.fault(target, value);
            }
            "properties" => return self.wrong_property(rule, value),
            "items" => return value.as_array()?.iter().find_map(|item| self.fault(rule, item)),
            "type" => match rule {
                Value::Array(types) => types.iter().any(|kind| is_of(kind, value)),
                kind => is_of(kind, value),
            },
            "enum" => rule.as_array().unwrap().contains(value),
            "oneOf" => {
                let fits = rule.as_array().unwrap().iter().filter(|one| self.fault(one, value).is_none());
                fits.count() == 1
            }
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|o| o.len() as u64 >= rule.as_u64().unwrap()),
            "maxProperties" => value.as_object().is_none_or(|o| o.len() as u64 <= rule.as_u64().unwrap()),
            "required" => value.as_object().is_none_or(|object| {
                rule.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
                let mut others = value.as_object()?.iter().filter(|(name, _)| !is_known(name));
                return match rule {
                    Value::Bool(open) => {
                        others.next().filter(|_| !open).map(|(name, _)| format!("{name}: unknown"))
                    }
                    rule => others.find_map(|(_, inner)| self.fault(rule, inner)),
                };
            }
            "propertyNames" => true,
            told if TOLD_ONLY.contains(&told) => true,
            unknown => panic!("teach this test the keyword {unknown}"),
        };
        (!holds).then(|| format!("{value} is not {keyword} {rule}"))
    }

    fn wrong_property(&self, properties: &Value, value: &Value) -> Option<String> {
        value.as_object()?.iter().find_map(|(name, inner)| {
            self.fault(properties.get(name)?, inner).map(|fault| format!("{name}: {fault}"))
        })
    }

    /// Every part of the document that is a schema of an object a caller sends.
    pub fn open_objects(&self) -> Vec<String> {
        let mut open = Vec::new();
        for (path, item) in self.0["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                if schema.is_object() {
                    self.find_open(schema, &mut vec![path.clone()], &mut open);
                }
            }
        }
        open
    }

    fn find_open(&self, schema: &Value, trail: &mut Vec<String>, open: &mut Vec<String>) {
        let Some(object) = schema.as_object() else { return };
        // What is only shown is described where it is shown.
        if trail.len() > 8 || object.get("readOnly") == Some(&json!(true)) {
            return;
        }
        if let Some(target) = object.get("$ref") {
            let target = self.0.pointer(target.as_str().unwrap().trim_start_matches('#')).unwrap();
            return self.find_open(target, trail, open);
        }
        if object.contains_key("properties") && object.get("additionalProperties") != Some(&json!(false)) {
            open.push(trail.join(" / "));
        }
        let inner = object.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, schema) in inner {
            trail.push(name.clone());
            self.find_open(schema, trail, open);
            trail.pop();
        }
        let parts = object.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        parts.chain(object.get("items")).for_each(|part| self.find_open(part, trail, open));
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}
