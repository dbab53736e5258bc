//! `/templates`: templates and layouts, stored and shown in Mustachio.

use axum::{
    Json,
    extract::{Request, State},
    http::Uri,
};
use postway_domain::{Template, TemplateName, TenantId};
use postway_mime::template::MustachioHead;
use serde_json::{Map, Value, json};

use super::{
    error::PostmarkFault,
    query::{LIST_MAX, PostmarkQuery},
    template_store::{TemplateAuthor, TemplateDraft, find, head_of, listed, shown},
};
use crate::{
    auth::{Manager, Reader},
    http::{body, error::ApiError, request_id::RequestId},
    message::MessagePathId,
    state::{AppState, SharedState},
};

/// The largest body: sources of the largest template as JSON, which escapes some characters.
pub(super) const BODY_BYTES_MAX: usize = 4 * Template::BYTES_MAX;
const NAME_CHARS_MAX: usize = 500;
const SUBJECT_CHARS_MAX: usize = 2_000;
/// Templates that are read at once: they come with their sources.
const LOOK: u32 = 50;

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let asked = PostmarkQuery::from_uri(&uri)?;
    let window = asked.window()?;
    let kind = asked.text("templatetype")?.map(str::to_ascii_lowercase).filter(|kind| kind != "all");
    let layout = asked.text("layouttemplate")?;
    let mut found = all(&app, &caller.tenant).await?;
    found.retain(|template| {
        let is = |name: &str, wanted: &str| {
            template[name].as_str().is_some_and(|word| word.eq_ignore_ascii_case(wanted))
        };
        kind.as_deref().is_none_or(|kind| is("TemplateType", kind))
            && layout.is_none_or(|layout| is("LayoutTemplate", layout))
    });
    Ok(Json(json!({"TotalCount": found.len(), "Templates": window.slice(found)})))
}

/// All templates by name, without their sources.
async fn all(app: &AppState, tenant: &TenantId) -> Result<Vec<Value>, ApiError> {
    let (mut found, mut after) = (Vec::new(), None::<TemplateName>);
    while found.len() < LIST_MAX {
        let some = app.store.templates(tenant, after.as_ref(), LOOK).await?;
        found.extend(some.iter().filter_map(listed));
        match some.into_iter().next_back() {
            Some(last) => after = Some(last.name),
            None => break,
        }
    }
    Ok(found)
}

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(shown(&find(&app, &caller.tenant, &id).await?)))
}

pub(super) async fn create(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object_within(request, BODY_BYTES_MAX).await?;
    let mut fields = TemplateFields { body, faults: Vec::new() };
    let name = fields.text("Name").unwrap_or_default();
    if name.is_empty() {
        fields.faults.push(PostmarkFault::TemplateMissing.at("Name", "is missing"));
    }
    let is_layout = fields.is_layout().unwrap_or(false);
    let draft = TemplateDraft {
        alias: fields.alias(),
        name,
        subject: fields.text("Subject").unwrap_or_default(),
        html: fields.source("HtmlBody"),
        text: fields.source("TextBody"),
        layout: fields.text("LayoutTemplate").filter(|layout| !layout.is_empty()),
        is_layout,
    };
    let draft = fields.finish(draft)?;
    let asker = TemplateAuthor { app: &app, caller: &caller, request_id: &request_id };
    Ok(Json(listed(&asker.create(draft).await?).unwrap_or_default()))
}

pub(super) async fn edit(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object_within(request, BODY_BYTES_MAX).await?;
    let current = find(&app, &caller.tenant, &id).await?;
    let Some((head, subject)) = MustachioHead::split(&current.subject) else {
        let message =
            format!("`{}` was not written in Mustachio: PUT /v1/templates changes it", current.name);
        return Err(PostmarkFault::TemplateInvalid.error("", message));
    };
    let mut fields = TemplateFields { body, faults: Vec::new() };
    if fields.is_layout().is_some_and(|is_layout| is_layout != head.is_layout) {
        fields.faults.push(PostmarkFault::TemplateInvalid.at("TemplateType", "cannot be changed"));
    }
    // An empty body removes a part.
    let body_of = |fields: &mut TemplateFields, name: &str, current: &Option<String>| match fields.has(name) {
        true => fields.source(name),
        false => current.clone(),
    };
    let draft = TemplateDraft {
        alias: fields.alias(),
        name: fields
            .text("Name")
            .filter(|name| !name.is_empty())
            .or_else(|| current.description.clone())
            .unwrap_or_default(),
        subject: fields.text("Subject").unwrap_or_else(|| subject.to_owned()),
        html: body_of(&mut fields, "HtmlBody", &current.html),
        text: body_of(&mut fields, "TextBody", &current.text),
        layout: match fields.body.contains_key("LayoutTemplate") {
            true => fields.text("LayoutTemplate").filter(|layout| !layout.is_empty()),
            false => head.layout.clone(),
        },
        is_layout: head.is_layout,
    };
    let draft = fields.finish(draft)?;
    let asker = TemplateAuthor { app: &app, caller: &caller, request_id: &request_id };
    Ok(Json(listed(&asker.edit(&current, draft).await?).unwrap_or_default()))
}

pub(super) async fn delete(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let template = find(&app, &caller.tenant, &id).await?;
    let asker = TemplateAuthor { app: &app, caller: &caller, request_id: &request_id };
    asker.delete(&template).await?;
    let named = head_of(&template)
        .and_then(|head| head.id)
        .map_or_else(|| template.name.to_string(), |id| id.to_string());
    Ok(Json(json!({"ErrorCode": 0, "Message": format!("Template {named} removed.")})))
}

/// The given fields of a template. `null` counts as absent.
pub(super) struct TemplateFields {
    pub(super) body: Map<String, Value>,
    pub(super) faults: Vec<crate::http::error::FieldError>,
}

impl TemplateFields {
    fn has(&self, name: &str) -> bool {
        self.body.get(name).is_some_and(|value| !value.is_null())
    }

    /// A line of text.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let chars_max = if name == "Subject" { SUBJECT_CHARS_MAX } else { NAME_CHARS_MAX };
        match self.body.remove(name)? {
            Value::Null => None,
            Value::String(text) if text.chars().count() <= chars_max && !text.contains(char::is_control) => {
                Some(text)
            }
            _ => {
                let message =
                    format!("must be a text of at most {chars_max} characters, without control characters");
                self.faults.push(PostmarkFault::TemplateInvalid.at(name, message));
                None
            }
        }
    }

    /// A body; an empty one counts as absent.
    pub(super) fn source(&mut self, name: &str) -> Option<String> {
        match self.body.remove(name)? {
            Value::Null => None,
            Value::String(text) if !text.contains('\0') => Some(text).filter(|text| !text.trim().is_empty()),
            _ => {
                self.faults
                    .push(PostmarkFault::TemplateInvalid.at(name, "must be a text without NUL characters"));
                None
            }
        }
    }

    /// `TemplateType`, if it is given.
    pub(super) fn is_layout(&mut self) -> Option<bool> {
        match self.text("TemplateType")?.to_ascii_lowercase().as_str() {
            "" => None,
            "standard" => Some(false),
            "layout" => Some(true),
            _ => {
                self.faults
                    .push(PostmarkFault::TemplateInvalid.at("TemplateType", "must be Standard or Layout"));
                None
            }
        }
    }

    /// The alias. It begins with a letter, so that it cannot be a number.
    fn alias(&mut self) -> Option<TemplateName> {
        let text = self.text("Alias").filter(|text| !text.is_empty())?;
        let alias =
            text.parse::<TemplateName>().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_alphabetic()));
        match alias {
            Some(alias) if alias.as_str() != "preview" => Some(alias),
            _ => {
                let message = "must begin with a letter and have letters, digits, `.`, `-` and `_` only; `preview` is reserved";
                self.faults.push(PostmarkFault::TemplateInvalid.at("Alias", message));
                None
            }
        }
    }

    /// The draft, unless it has faults.
    fn finish(mut self, draft: TemplateDraft) -> Result<TemplateDraft, ApiError> {
        if draft.html.is_none() && draft.text.is_none() {
            self.faults
                .push(PostmarkFault::TemplateMissing.at("HtmlBody", "is missing: give it, or TextBody"));
        }
        if draft.subject.is_empty() && !draft.is_layout {
            self.faults.push(PostmarkFault::TemplateMissing.at("Subject", "is missing"));
        }
        if !draft.subject.is_empty() && draft.is_layout {
            self.faults.push(PostmarkFault::TemplateInvalid.at("Subject", "is not for layouts"));
        }
        match self.faults.is_empty() {
            true => Ok(draft),
            false => Err(ApiError::invalid(self.faults)),
        }
    }
}
