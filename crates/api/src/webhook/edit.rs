//! Webhooks from request bodies. Every faulty field is reported, including unknown ones.

use postway_domain::{
    WebhookForm,
    subscriber::{EventFilter, event_names},
};
use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

const URL_CHARS_MAX: usize = 2_048;
const DESCRIPTION_CHARS_MAX: usize = 500;
/// Matches every event.
const ALL: &str = "*";

/// A webhook to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookRequest {
    /// The URL to call, `http://` or `https://`; required on creation. Private hosts are refused unless the
    /// operator allows them (`POSTWAY_ALLOW_PRIVATE_TARGETS`).
    #[schema(example = "https://app.example.com/hooks/mail")]
    url: Option<String>,
    /// The events: a list of names, or `["*"]` (default) for all.
    #[schema(example = json!(["email.sent", "email.failed", "email.bounced"]))]
    events: Option<Vec<String>>,
    /// The format of its calls: `postway` (default), or `resend` or `postmark` for receivers that were
    /// written for them.
    #[schema(example = "postway")]
    form: Option<String>,
    /// The purpose, at most 500 characters.
    description: Option<String>,
    /// Whether it is called at all. Activating it clears `disabled_reason`.
    #[schema(default = true)]
    active: Option<bool>,
    /// With `PATCH`: change only if the webhook still has this version.
    version: Option<i64>,
}

/// The fields that a body sets; absent fields are `None`.
#[derive(Debug, Default)]
pub(super) struct WebhookEdit {
    pub(super) url: Option<String>,
    pub(super) events: Option<EventFilter>,
    pub(super) form: Option<WebhookForm>,
    pub(super) description: Option<Option<String>>,
    pub(super) active: Option<bool>,
    pub(super) version: Option<i64>,
    /// The names of the given fields, for the audit log.
    pub(super) fields: Vec<String>,
}

/// Reads a body.
pub(super) fn read(body: Map<String, Value>) -> Result<WebhookEdit, Vec<FieldError>> {
    let names = body.keys().take(12).cloned().collect();
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    // Read-only fields: a client may send back what GET showed.
    for shown in ["id", "kind", "disabled_reason", "quiet_until", "created_at", "updated_at"] {
        fields.take(shown);
    }
    let given = WebhookEdit {
        url: target(&mut fields),
        events: events(&mut fields),
        form: form(&mut fields),
        description: fields.has("description").then(|| {
            fields.text("description", DESCRIPTION_CHARS_MAX).filter(|description| !description.is_empty())
        }),
        active: fields.read("active", "must be true or false"),
        version: fields.read("version", "must be a whole number"),
        fields: names,
    };
    fields.finish("is not a field of a webhook");
    if wrong.is_empty() { Ok(given) } else { Err(wrong) }
}

fn target(fields: &mut JsonFieldReader<'_>) -> Option<String> {
    let url = fields.text("url", URL_CHARS_MAX)?;
    let is_called = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let Some(read) = Url::parse(&url).ok().filter(is_called) else {
        fields.refuse("url", "must be an address like https://app.example.com/hooks/mail");
        return None;
    };
    if !read.username().is_empty() || read.password().is_some() {
        fields.refuse(
            "url",
            "must not hold a name or password: calls are signed, which tells that they are ours",
        );
    }
    if read.fragment().is_some() {
        fields.refuse("url", "must not have a fragment (#…)");
    }
    Some(url)
}

fn form(fields: &mut JsonFieldReader<'_>) -> Option<WebhookForm> {
    let word: String = fields.read("form", "must be a text")?;
    let form = WebhookForm::from_word(&word);
    if form.is_none() {
        let known = WebhookForm::ALL.map(WebhookForm::as_str).join(" or ");
        fields.refuse("form", format!("must be {known}"));
    }
    form
}

fn events(fields: &mut JsonFieldReader<'_>) -> Option<EventFilter> {
    let form = "must be a list of names of events, or [\"*\"] for all";
    let mut names: Vec<String> = fields.read("events", form)?;
    if names.is_empty() {
        fields.refuse("events", form);
    }
    if names.iter().any(|name| name == ALL) {
        return Some(EventFilter::default());
    }
    for (place, name) in names.iter().enumerate() {
        if !event_names().any(|known| known == name) {
            let known = event_names().collect::<Vec<_>>().join(", ");
            fields.refuse(&format!("events[{place}]"), format!("is not an event; there are {known}"));
        }
    }
    names.sort_unstable();
    names.dedup();
    Some(EventFilter(names))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(body: Value) -> Vec<String> {
        let wrong = read(body.as_object().unwrap().clone()).unwrap_err();
        wrong.into_iter().map(|wrong| wrong.field).collect()
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({"url": "ftp://x.example/"}), &["url"][..]),
            (json!({"url": "https://user:pw@x.example/#a"}), &["url", "url"]),
            (json!({"url": format!("https://x.example/{}", "a".repeat(2_048))}), &["url"]),
            (json!({"events": []}), &["events"]),
            (json!({"events": "email.sent"}), &["events"]),
            (json!({"events": ["email.sent", "email.nonsense"]}), &["events[1]"]),
            (json!({"form": "sendgrid"}), &["form"]),
            (json!({"active": 1, "description": 2, "secret": "x"}), &["description", "active", "secret"]),
        ] {
            assert_eq!(wrong(body.clone()), fields, "{body}");
        }
    }

    #[test]
    fn a_star_means_all_whatever_stands_beside_it() {
        let read =
            |events: Value| read(json!({"events": events}).as_object().unwrap().clone()).unwrap().events;
        assert_eq!(read(json!(["email.sent", "*"])), Some(EventFilter::default()));
        let twice = read(json!(["email.sent", "email.failed", "email.sent"])).unwrap();
        assert_eq!(twice.0, ["email.failed", "email.sent"]);
    }
}
