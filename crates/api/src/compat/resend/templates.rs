//! `/templates`: templates in Resend's format.
//!
//! A template's id is its name among ours, derived from its alias or its name there; all of a tenant's
//! templates are visible. A change takes effect at once, so there are no drafts, and publishing changes
//! nothing. The sender is given with each email: `from` and `reply_to` are refused here rather than ignored.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use postway_domain::{Template, TemplateName};
use serde_json::{Map, Value, json};

use super::{
    error::{as_request_fault, missing},
    list::{ResendPageQuery, answer},
    template_source::{is_name, ours, theirs},
};
use crate::{
    auth::{Manager, Reader},
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::MessagePathId,
    outgoing::template::{self, NamedTemplate, read::BODY_BYTES_MAX, write},
    state::SharedState,
};

/// The most variables of a template.
const VARIABLES_MAX: usize = 50;
/// The most templates that a list examines.
const TEMPLATES_MAX: u32 = 1_000;
/// How many names are tried if the first ones are taken.
const NAMES_MAX: u32 = 20;

pub(super) async fn create(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let said = ResendTemplate::read(body::json_object_within(request, BODY_BYTES_MAX).await?)?;
    let absent: Vec<FieldError> = [("name", said.name.is_none()), ("html", said.html.is_none())]
        .into_iter()
        .filter(|(_, is_absent)| *is_absent)
        .map(|(name, _)| missing(name))
        .collect();
    if !absent.is_empty() {
        return Err(ApiError::invalid(absent));
    }
    let (alias, first) = (said.alias.clone(), slug(said.name.as_deref().unwrap_or_default()));
    for number in 1..=NAMES_MAX {
        let id = match (&alias, number) {
            (Some(alias), _) => alias.clone(),
            (None, 1) => first.clone(),
            (None, number) => format!("{first}-{number}"),
        };
        let mut body = said.translate_row();
        body.insert("name".to_owned(), id.as_str().into());
        match write::make(&app, &caller, &request_id, body).await {
            Ok(_) => return Ok(Json(json!({"object": "template", "id": id}))),
            Err(error) if error.status() == StatusCode::CONFLICT && alias.is_none() => {}
            Err(error) => return Err(named(error)),
        }
    }
    Err(ApiError::field("name", "many templates have this name: give an alias"))
}

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let asked = ResendPageQuery::read(request.uri())?;
    let found = app.store.templates(&caller.tenant, None, TEMPLATES_MAX).await?;
    let (page, has_more) = asked.page_of(found, |template| template.name.as_str())?;
    Ok(answer(page.iter().map(|template| Value::Object(listed(template))).collect(), has_more))
}

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let NamedTemplate(name) = NamedTemplate::parse(&id)?;
    let template = template::find(&app, &caller.tenant, &name, None).await?;
    let mut view = listed(&template);
    let variables = sample(&template).into_iter().map(|(key, fallback)| {
        let kind = if fallback.is_number() { "number" } else { "string" };
        json!({"key": key, "type": kind, "fallback_value": fallback})
    });
    for (name, value) in [
        ("object", json!("template")),
        ("current_version_id", json!(template.version.to_string())),
        ("from", Value::Null),
        ("reply_to", Value::Null),
        ("subject", json!(theirs(&template.subject))),
        ("html", json!(template.html.as_deref().map(theirs))),
        ("text", json!(template.text.as_deref().map(theirs))),
        ("variables", variables.collect()),
        ("has_unpublished_versions", json!(false)),
    ] {
        view.insert(name.to_owned(), value);
    }
    Ok(Json(Value::Object(view)))
}

pub(super) async fn update(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object_within(request, BODY_BYTES_MAX).await?;
    let NamedTemplate(name) = NamedTemplate::parse(&id)?;
    let current = template::find(&app, &caller.tenant, &name, None).await?;
    let said = ResendTemplate::read(body)?;
    if said.alias.as_ref().is_some_and(|alias| alias != name.as_str()) {
        return Err(ApiError::field("alias", "is the template's id here, which does not change"));
    }
    let mut body = said.over(&current);
    // A change that another request made meanwhile is not undone.
    body.insert("version".to_owned(), current.version.into());
    write::make_next(&app, &caller, &request_id, name.clone(), body).await.map_err(named)?;
    Ok(Json(json!({"object": "template", "id": name})))
}

pub(super) async fn publish(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let NamedTemplate(name) = NamedTemplate::parse(&id)?;
    template::find(&app, &caller.tenant, &name, None).await?;
    Ok(Json(json!({"object": "template", "id": name})))
}

pub(super) async fn remove(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let NamedTemplate(name) = NamedTemplate::parse(&id)?;
    template::delete(State(app), caller, request_id, NamedTemplate(name.clone())).await?;
    Ok(Json(json!({"object": "template", "id": name, "deleted": true})))
}

/// A template as in lists. It is published since its latest version was created.
fn listed(template: &Template) -> Map<String, Value> {
    let fields = [
        ("id", json!(template.name)),
        ("alias", json!(template.name)),
        ("name", json!(template.description.as_deref().unwrap_or(template.name.as_str()))),
        ("status", json!("published")),
        ("published_at", json!(template.created_at)),
        ("created_at", json!(template.created_at)),
        ("updated_at", json!(template.created_at)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A template's sample: its variables and their fallbacks.
fn sample(template: &Template) -> Map<String, Value> {
    template.sample.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// A template in this API's format.
#[derive(Default)]
struct ResendTemplate {
    alias: Option<String>,
    name: Option<String>,
    subject: Option<String>,
    html: Option<String>,
    text: Option<String>,
    variables: Option<Map<String, Value>>,
}

impl ResendTemplate {
    /// Reads a body. Unknown fields are ignored.
    fn read(body: Map<String, Value>) -> Result<Self, ApiError> {
        let (mut said, mut wrong) = (Self::default(), Vec::new());
        for (name, value) in body {
            let field = match name.as_str() {
                "alias" => &mut said.alias,
                "name" => &mut said.name,
                "subject" => &mut said.subject,
                "html" => &mut said.html,
                "text" => &mut said.text,
                "variables" => {
                    match variables(&value) {
                        Ok(read) => said.variables = Some(read),
                        Err(fault) => wrong.push(fault),
                    }
                    continue;
                }
                "from" | "reply_to" | "replyTo" if !is_blank(&value) => {
                    wrong.push(FieldError::new(
                        name,
                        "is not kept with a template here: give it with each email",
                    ));
                    continue;
                }
                _ => continue,
            };
            match value {
                Value::Null => {}
                Value::String(text) => *field = Some(text),
                _ => wrong.push(FieldError::new(name, "must be a text")),
            }
        }
        said.alias = said.alias.filter(|alias| !alias.is_empty());
        if let Some(error) = said.alias.as_ref().and_then(|alias| alias.parse::<TemplateName>().err()) {
            wrong.push(FieldError::new("alias", error.to_string()));
        }
        if wrong.is_empty() { Ok(said) } else { Err(ApiError::invalid(wrong)) }
    }

    /// The body for our API, without the name.
    fn translate_row(&self) -> Map<String, Value> {
        let variables = self.variables.clone().unwrap_or_default();
        let source = |text: &Option<String>| text.as_deref().map(|text| Value::from(ours(text, &variables)));
        let fields = [
            ("description", self.name.clone().map(Value::from)),
            ("subject", source(&self.subject)),
            ("html", source(&self.html)),
            ("text", source(&self.text)),
            ("sample", Some(Value::Object(variables.clone())).filter(|_| !variables.is_empty())),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// The body for our API, with absent fields as they are now. A source that was not written here stays
    /// unchanged.
    fn over(mut self, current: &Template) -> Map<String, Value> {
        let before = sample(current);
        let variables = self.variables.get_or_insert_with(|| before.clone()).clone();
        let kept = |source: &str| match ours(&theirs(source), &before) == source {
            true => ours(&theirs(source), &variables),
            false => source.to_owned(),
        };
        let mut body = self.translate_row();
        let sources = [
            ("description", current.description.clone()),
            ("subject", Some(kept(&current.subject))),
            ("html", current.html.as_deref().filter(|_| self.html.is_none()).map(kept)),
            ("text", current.text.as_deref().map(kept)),
            ("mjml", current.mjml.clone().filter(|_| self.html.is_none())),
        ];
        for (name, source) in sources.into_iter().filter_map(|(name, source)| Some((name, source?))) {
            body.entry(name).or_insert_with(|| source.into());
        }
        body
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_null()
        || value.as_str().is_some_and(str::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

/// `[{key, type, fallback_value}]` as names and fallbacks.
fn variables(value: &Value) -> Result<Map<String, Value>, FieldError> {
    let list = match value {
        Value::Null => return Ok(Map::new()),
        Value::Array(list) if list.len() <= VARIABLES_MAX => list,
        _ => return Err(FieldError::new("variables", format!("must be a list of at most {VARIABLES_MAX}"))),
    };
    let mut read = Map::new();
    for (place, variable) in list.iter().enumerate() {
        let key = variable["key"].as_str().filter(|key| is_name(key)).ok_or_else(|| {
            FieldError::new(format!("variables[{place}].key"), "must be a name of A-Z a-z 0-9 _")
        })?;
        let fallbacks = ["fallback_value", "fallbackValue"].map(|name| &variable[name]);
        let fallback = fallbacks.into_iter().find(|value| !value.is_null()).unwrap_or(&Value::Null);
        if !(fallback.is_null() || fallback.is_string() || fallback.is_number()) {
            let field = format!("variables[{place}].fallback_value");
            return Err(FieldError::new(field, "must be a text or a number"));
        }
        read.insert(key.to_owned(), fallback.clone());
    }
    Ok(read)
}

/// A template name derived from a display name.
fn slug(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let words: String =
        name.to_lowercase().chars().map(|c| if fits(c) { c } else { '-' }).take(100).collect();
    let parts: Vec<&str> = words.split('-').filter(|part| !part.is_empty()).collect();
    match parts.is_empty() {
        true => "template".to_owned(),
        false => parts.join("-"),
    }
}

/// The same error, with our fields under their names.
fn named(error: ApiError) -> ApiError {
    as_request_fault(error.renamed(|path| match path {
        "description" => "name".to_owned(),
        "name" => "alias".to_owned(),
        "sample" => "variables".to_owned(),
        path => path.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_people_becomes_one_of_ours() {
        for (name, made) in [
            ("Order Confirmation", "order-confirmation"),
            ("Größe!", "gr-e"),
            ("…", "template"),
            ("a.b_c", "a.b_c"),
        ] {
            assert_eq!(slug(name), made);
            assert!(made.parse::<TemplateName>().is_ok());
        }
    }

    #[test]
    fn what_a_template_cannot_keep_is_refused() {
        for (body, field) in [
            (json!({"from": "a@example.com"}), "from"),
            (json!({"replyTo": ["a@example.com"]}), "replyTo"),
            (json!({"html": 1}), "html"),
            (json!({"alias": "a b"}), "alias"),
            (json!({"variables": [{"key": "a b"}]}), "variables[0].key"),
            (json!({"variables": [{"key": "A", "fallback_value": []}]}), "variables[0].fallback_value"),
            (json!({"variables": vec![json!({"key": "A"}); 51]}), "variables"),
        ] {
            let error = ResendTemplate::read(body.as_object().unwrap().clone()).err().unwrap();
            assert_eq!(error.details()[0].field, field, "{body}");
        }
        let blank = json!({"from": "", "reply_to": [], "unknown": 1, "text": null});
        assert!(ResendTemplate::read(blank.as_object().unwrap().clone()).is_ok());
    }
}
