//! As much of JSON Schema as the document uses, to hold bodies against the schemas as served.

use axum::{body::Body, http::Request};
use regex::Regex;
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

    /// The document as the code makes it.
    pub fn made() -> Self {
        Self(serde_json::to_value(postway_api::document()).unwrap())
    }

    /// What may be answered to a call, by status. Of two routes that fit, the one that names more of the path
    /// is meant.
    pub fn answers(&self, method: &str, path: &str) -> Option<&Value> {
        let fits = |route: &str| {
            let (names, given) = (route.split('/'), path.split('/'));
            names.clone().count() == given.clone().count()
                && names.zip(given).all(|(name, given)| name.starts_with('{') || name == given)
        };
        let routes = self.0["paths"].as_object().unwrap().iter();
        let called = routes.filter(|(route, item)| fits(route) && item.get(method.to_lowercase()).is_some());
        let (_, item) = called.min_by_key(|(route, _)| route.matches('{').count())?;
        Some(&item[method.to_lowercase()]["responses"])
    }

    /// What an answer has that the schema does not tell of, if anything. Other than of what is sent, nothing
    /// says that an object has no more fields than these: clients must take more, and yet none may come
    /// unannounced.
    pub fn untold(&self, schema: &Value, value: &Value) -> Option<String> {
        self.untold_of(&[schema], value)
    }

    fn untold_of(&self, schemas: &[&Value], value: &Value) -> Option<String> {
        // Nothing is said of what is inside of what is free.
        if schemas.is_empty() {
            return None;
        }
        let mut shapes = Vec::new();
        schemas.iter().for_each(|schema| self.unfold(schema, value, &mut shapes));
        match value {
            Value::Array(items) => {
                let of_items: Vec<&Value> = shapes.iter().filter_map(|shape| shape.get("items")).collect();
                items.iter().find_map(|item| self.untold_of(&of_items, item))
            }
            Value::Object(fields) => fields.iter().find_map(|(name, inner)| {
                let told = shapes.iter().filter_map(|shape| {
                    shape
                        .get("properties")
                        .and_then(|told| told.get(name))
                        .or(shape.get("additionalProperties"))
                });
                let told: Vec<&Value> = told.filter(|told| **told != json!(false)).collect();
                let is_free = shapes.iter().any(|shape| shape.get("properties").is_none());
                if told.is_empty() && !is_free {
                    return Some(format!("{name}: is not told of"));
                }
                self.untold_of(&told, inner).map(|fault| format!("{name}: {fault}"))
            }),
            _ => None,
        }
    }

    /// The schemas without choices and references that a value goes by.
    fn unfold<'a>(&'a self, schema: &'a Value, value: &Value, shapes: &mut Vec<&'a Value>) {
        if let Some(target) = schema.get("$ref") {
            let target = self.0.pointer(target.as_str().unwrap().trim_start_matches('#')).unwrap();
            return self.unfold(target, value, shapes);
        }
        let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        parts.for_each(|part| self.unfold(part, value, shapes));
        let choices = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        choices
            .filter(|choice| self.fault(choice, value).is_none())
            .for_each(|choice| self.unfold(choice, value, shapes));
        if schema.get("allOf").is_none() && schema.get("oneOf").is_none() {
            shapes.push(schema);
        }
    }

    /// The schema of a call's body.
    #[track_caller]
    pub fn asked(&self, method: &str, path: &str) -> &Value {
        let operation = &self.0["paths"][path][method.to_lowercase()];
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path} has no body in the document");
        schema
    }

    /// Every operation with a JSON body: its method, its path, its id and the body's example.
    pub fn examples(&self) -> Vec<(String, String, String, Value)> {
        let mut examples = Vec::new();
        for (path, item) in self.0["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let content = &operation["requestBody"]["content"]["application/json"];
                if content.is_object() {
                    let id = operation["operationId"].as_str().unwrap().to_owned();
                    examples.push((method.to_uppercase(), path.clone(), id, content["example"].clone()));
                }
            }
        }
        examples
    }

    /// The document itself.
    pub fn document(&self) -> &Value {
        &self.0
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
            "allOf" => return rule.as_array().unwrap().iter().find_map(|part| self.fault(part, value)),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minLength" => {
                value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap())
            }
            "maxLength" => {
                value.as_str().is_none_or(|text| text.chars().count() as u64 <= rule.as_u64().unwrap())
            }
            "pattern" => {
                value.as_str().is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text))
            }
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
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
