//! `POST /templates/validate`: what a template that is not stored renders from a model.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Template, TemplateName, TenantId};
use postway_intake::{PreviewTarget, VARIABLES};
use serde_json::{Map, Value, json};

use super::{
    error::PostmarkFault,
    template::{BODY_BYTES_MAX, TemplateFields},
    template_store::{TemplateDraft, find, head_of},
};
use crate::{
    auth::Reader,
    http::{body, error::ApiError},
    state::{AppState, SharedState},
};

pub(super) async fn validate(
    State(app): State<SharedState>,
    caller: Reader,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object_within(request, BODY_BYTES_MAX + VARIABLES.text_bytes_max).await?;
    let mut fields = TemplateFields { body, faults: Vec::new() };
    let model = match fields.body.remove("TestRenderModel") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(model)) => model,
        Some(_) => return Err(PostmarkFault::Shape.error("TestRenderModel", "must be an object")),
    };
    let is_layout = fields.is_layout().unwrap_or(false);
    let draft = TemplateDraft {
        alias: None,
        name: String::new(),
        subject: fields.text("Subject").unwrap_or_default(),
        html: fields.source("HtmlBody"),
        text: fields.source("TextBody"),
        layout: fields.text("LayoutTemplate").filter(|layout| !layout.is_empty()),
        is_layout,
    };
    if !fields.faults.is_empty() {
        return Err(ApiError::invalid(fields.faults));
    }
    if let Some(layout) = &draft.layout {
        let found = find(&app, &caller.tenant, layout).await?;
        if !head_of(&found).is_some_and(|head| head.is_layout) {
            return Err(
                PostmarkFault::TemplateInvalid.error("LayoutTemplate", format!("`{layout}` is no layout"))
            );
        }
    }
    let variables = Value::Object(model).to_string();
    // Each part by itself: a fault of one says nothing about the others.
    let tried =
        |part: &'static str, draft: TemplateDraft| tried(&app, &caller.tenant, part, draft, &variables);
    let nothing = || TemplateDraft { subject: String::new(), html: None, text: None, ..draft.clone() };
    let html = match draft.html.clone() {
        Some(html) => Some(tried("HtmlBody", TemplateDraft { html: Some(html), ..nothing() }).await?),
        None => None,
    };
    let text = match draft.text.clone() {
        Some(text) => Some(tried("TextBody", TemplateDraft { text: Some(text), ..nothing() }).await?),
        None => None,
    };
    let subject = match draft.subject.is_empty() {
        true => None,
        false => {
            let alone =
                TemplateDraft { layout: None, is_layout: false, text: Some("-".to_owned()), ..nothing() };
            Some(tried("Subject", TemplateDraft { subject: draft.subject.clone(), ..alone }).await?)
        }
    };
    let is_valid = |part: &Option<Value>| part.as_ref().is_none_or(|part| part["ContentIsValid"] == true);
    let all_valid = [&html, &text, &subject].into_iter().all(is_valid);
    Ok(Json(json!({
        "AllContentIsValid": all_valid,
        "HtmlBody": html,
        "TextBody": text,
        "Subject": subject,
        "SuggestedTemplateModel": serde_json::from_str::<Value>(&variables).unwrap_or_default(),
    })))
}

/// The result of one part.
async fn tried(
    app: &AppState,
    tenant: &TenantId,
    part: &'static str,
    draft: TemplateDraft,
    variables: &str,
) -> Result<Value, ApiError> {
    let name: TemplateName = "preview".parse().map_err(ApiError::internal)?;
    let template: Template = draft.template(app, tenant, name, None);
    let answer = |rendered: Option<String>, faults: Vec<String>| {
        let errors: Vec<Value> = faults
            .into_iter()
            .map(|message| json!({"Message": message, "Line": null, "CharacterPosition": null}))
            .collect();
        json!({"ContentIsValid": errors.is_empty(), "ValidationErrors": errors, "RenderedContent": rendered})
    };
    match app.door.preview(tenant, PreviewTarget::Source(Box::new(template)), variables).await {
        Ok(preview) => {
            let rendered = match part {
                "HtmlBody" => preview.html,
                "TextBody" => preview.text,
                _ => Some(preview.subject),
            };
            Ok(answer(rendered, Vec::new()))
        }
        Err(refusal) => {
            let error = ApiError::from(refusal);
            match error.details() {
                [] => Err(error),
                details => Ok(answer(None, details.iter().map(|fault| fault.message.clone()).collect())),
            }
        }
    }
}
