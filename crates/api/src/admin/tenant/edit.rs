//! A tenant's settings from JSON. Every faulty field is reported, including unknown ones.
//!
//! A change is merged into what `GET` shows and the result is read again, so that creating and changing have
//! the same rules and a client may send back what `GET` showed. Tokens and passwords are not shown: one that
//! is not given stays, as long as the authentication method and the server do.

use postway_domain::{
    AccountId, TenantSettings,
    message::OnDoubt,
    quota::DailyQuota,
    tenant::{ContentLimits, RemoteAuth, RemoteService, archive::ArchiveSettings},
};
use serde_json::{Map, Value, json};

use super::key::patterns;
use crate::{
    http::{error::FieldError, json_fields::JsonFieldReader},
    setting::secret_destination::SecretDestination,
};

const NAME_CHARS_MAX: usize = 200;
const SECRET_CHARS_MAX: usize = 4_096;
const URL_CHARS_MAX: usize = 2_048;
const ADDRESS_CHARS_MAX: usize = 320;
const FLAG: &str = "must be true or false";
const LARGE_FILES: &str = "must be reject, warn or rewrite, or an object: \
    {\"policy\":\"rewrite\",\"above_bytes\":10000000,\"link_days\":30}";

/// Read-only fields.
const SHOWN_ONLY: [&str; 6] = ["id", "version", "suspended", "suspended_since", "created_at", "updated_at"];

/// The result of an edit.
#[derive(Debug)]
pub(super) struct TenantEdit {
    pub(super) name: Option<String>,
    pub(super) default_account: Option<AccountId>,
    pub(super) settings: TenantSettings,
    pub(super) client_sync: RemoteSecretEdit,
    pub(super) attachment_endpoint: RemoteSecretEdit,
}

/// The change to a stored token or password.
#[derive(PartialEq)]
pub(super) enum RemoteSecretEdit {
    Keep,
    Remove,
    Set(String),
}

impl std::fmt::Debug for RemoteSecretEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RemoteSecretEdit::Keep => "Keep",
            RemoteSecretEdit::Remove => "Remove",
            RemoteSecretEdit::Set(_) => "Set(***)",
        })
    }
}

/// Removes the read-only fields from a body. They may come back as they were shown, and `null` means nothing;
/// anything else is refused.
pub(super) fn take_shown_only(body: &mut Map<String, Value>, shown: Option<&Value>) -> Vec<FieldError> {
    let given = SHOWN_ONLY.into_iter().filter_map(|name| Some((name, body.remove(name)?)));
    given
        .filter(|(name, value)| !value.is_null() && shown.and_then(|shown| shown.get(*name)) != Some(value))
        .map(|(name, _)| FieldError::new(name, "cannot be set; leave it out"))
        .collect()
}

/// Removes `null` fields that do not exist, such as misspelt ones: merging would drop them silently. `shown`
/// has every field but the secrets.
pub(super) fn take_unknown_nulls(patch: &mut Map<String, Value>, shown: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    patch.retain(|name, value| match (&mut *value, shown.get(name)) {
        (Value::Null, None) if !matches!(name.as_str(), "token" | "password") => {
            let name: String = name.chars().take(100).collect();
            wrong.push(FieldError::new(name, "is not a field of a tenant"));
            false
        }
        (Value::Object(inner), Some(shown @ Value::Object(_))) => {
            let inner = take_unknown_nulls(inner, shown);
            wrong.extend(inner.into_iter().map(|fault| FieldError {
                field: format!("{name}.{}", fault.field),
                message: "is not a field here".to_owned(),
                ..fault
            }));
            true
        }
        _ => true,
    });
    wrong
}

/// A policy given as a text changes only the policy: as an object, it is merged with the rest.
pub(super) fn spell_out(patch: &mut Map<String, Value>) {
    if let Some(policy @ Value::String(_)) = patch.get_mut("large_files") {
        let word = policy.take();
        *policy = json!({"policy": word});
    }
}

/// Reads a complete tenant whose settings were `before`.
pub(super) fn read(
    whole: Map<String, Value>,
    before: &TenantSettings,
) -> Result<TenantEdit, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(whole, &mut wrong);
    let name = fields.text("name", NAME_CHARS_MAX).filter(|name| !name.is_empty());
    let default_account = fields.parsed("default_account");
    let (client_sync, client_secret) = remote(&mut fields, "client_sync", before.client_sync.as_ref());
    let (endpoint, endpoint_secret) =
        remote(&mut fields, "attachment_endpoint", before.attachment_endpoint.as_ref());
    let settings = TenantSettings {
        weight: fields.number("weight").unwrap_or(TenantSettings::WEIGHT_DEFAULT),
        content: fields.object("content", content).unwrap_or_default(),
        retention_days: fields.number("retention_days"),
        report_retention_seconds: fields
            .read("report_retention_seconds", "must be a whole number of seconds"),
        unreported_retention_days: fields.number("unreported_retention_days"),
        client_sync,
        attachment_endpoint: endpoint,
        callback_form: fields.read("callback_form", "must be event, outbox or batch").unwrap_or_default(),
        large_files: fields.read("large_files", LARGE_FILES).unwrap_or_default(),
        bounce_domain: fields.text("bounce_domain", 253),
        return_path: fields.text("return_path", ADDRESS_CHARS_MAX).filter(|path| !path.is_empty()),
        default_from: fields.text("default_from", ADDRESS_CHARS_MAX).filter(|from| !from.is_empty()),
        feedback_id: fields.text("feedback_id", 100).filter(|id| !id.is_empty()),
        auto_submitted: fields.read("auto_submitted", FLAG).unwrap_or_default(),
        test: fields.read("test", FLAG).unwrap_or_default(),
        id_header: fields.text("id_header", 100).filter(|name| !name.is_empty()),
        on_doubt: fields.read("on_doubt", OnDoubt::WORDS),
        allowed_senders: patterns(&mut fields, "allowed_senders"),
        bind_reply_to: fields.read("bind_reply_to", FLAG).unwrap_or_default(),
        virus_policy: fields.read("virus_policy", "must be open, closed or off").unwrap_or_default(),
        daily_quota: fields.object("daily_quota", daily_quota).unwrap_or_default(),
        guard_content: fields.read("guard_content", FLAG).unwrap_or_default(),
        archive: fields.object("archive", archive),
        locale: fields.parsed("locale"),
    };
    fields.finish("is not a field of a tenant");
    for (field, message) in settings.check() {
        let is_named = |known: &FieldError| known.field.starts_with(field);
        if !wrong.iter().any(is_named) {
            wrong.push(FieldError::new(field, message));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(TenantEdit {
        name,
        default_account,
        settings,
        client_sync: client_secret,
        attachment_endpoint: endpoint_secret,
    })
}

fn content(fields: &mut JsonFieldReader<'_>) -> ContentLimits {
    ContentLimits {
        subject_chars: fields.number("subject_chars"),
        html_bytes: fields.number("html_bytes"),
        message_bytes: fields.number("message_bytes"),
        html_required: fields.read("html_required", FLAG).unwrap_or_default(),
        auto_text: fields.read("auto_text", FLAG).unwrap_or_default(),
    }
}

fn archive(fields: &mut JsonFieldReader<'_>) -> ArchiveSettings {
    ArchiveSettings {
        to: fields.text("to", ADDRESS_CHARS_MAX).filter(|to| !to.is_empty()),
        from: fields.text("from", ADDRESS_CHARS_MAX).filter(|from| !from.is_empty()),
        storage: fields.read("storage", FLAG).unwrap_or_default(),
        encrypt: fields.read("encrypt", FLAG).unwrap_or_default(),
        days: fields.number("days"),
    }
}

fn daily_quota(fields: &mut JsonFieldReader<'_>) -> DailyQuota {
    const NUMBER: &str = "must be a whole number";
    DailyQuota {
        messages: fields.read("messages", NUMBER),
        bytes: fields.read("bytes", NUMBER),
        recipients: fields.read("recipients", NUMBER),
    }
}

fn remote(
    fields: &mut JsonFieldReader<'_>,
    name: &str,
    before: Option<&RemoteService>,
) -> (Option<RemoteService>, RemoteSecretEdit) {
    let read = fields.object(name, |fields| {
        if !fields.has("url") {
            fields.refuse("url", "is needed: an http(s) address");
        }
        let url = fields.text("url", URL_CHARS_MAX).unwrap_or_default();
        let path = fields.text("path", URL_CHARS_MAX);
        let signed_in = fields.object("auth", |fields| auth(fields, before));
        let (auth, username, secret) =
            signed_in.unwrap_or((RemoteAuth::None, None, RemoteSecretEdit::Remove));
        let remote = RemoteService { url, path, auth, username };
        if let (RemoteSecretEdit::Keep, Some(before)) = (&secret, before) {
            let name = if auth == RemoteAuth::Basic { "auth.password" } else { "auth.token" };
            let checked = SecretDestination::check(
                &SecretDestination::of_remote(before),
                &SecretDestination::of_remote(&remote),
                name,
            );
            checked.err().into_iter().for_each(|wrong| fields.refuse(&wrong.field, wrong.message));
        }
        (remote, secret)
    });
    match read {
        Some((remote, secret)) => (Some(remote), secret),
        None => (None, RemoteSecretEdit::Remove),
    }
}

fn auth(
    fields: &mut JsonFieldReader<'_>,
    before: Option<&RemoteService>,
) -> (RemoteAuth, Option<String>, RemoteSecretEdit) {
    // A read-only field.
    fields.take("has_secret");
    let kind: RemoteAuth = fields.read("type", "must be none, bearer or basic").unwrap_or_default();
    let username = fields.text("username", 320).filter(|_| kind == RemoteAuth::Basic);
    let (own, other) = match kind {
        RemoteAuth::None => (None, ["token", "password"].as_slice()),
        RemoteAuth::Bearer => (Some("token"), ["password"].as_slice()),
        RemoteAuth::Basic => (Some("password"), ["token"].as_slice()),
    };
    for name in other.iter().filter(|name| fields.has(name)).copied().collect::<Vec<_>>() {
        fields.take(name);
        fields.refuse(name, "does not belong to this `type`; leave it out, or change `type`");
    }
    let Some(own) = own else { return (kind, username, RemoteSecretEdit::Remove) };
    let secret = match fields.text(own, SECRET_CHARS_MAX).filter(|secret| !secret.is_empty()) {
        Some(secret) => RemoteSecretEdit::Set(secret),
        None if before.is_some_and(|before| before.auth == kind) => RemoteSecretEdit::Keep,
        None => {
            fields.refuse(own, "is needed to sign in that way");
            RemoteSecretEdit::Remove
        }
    };
    (kind, username, secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_new(body: Value) -> Result<TenantEdit, Vec<FieldError>> {
        read(body.as_object().unwrap().clone(), &TenantSettings::default())
    }

    fn wrong_fields(body: Value) -> Vec<String> {
        read_new(body).unwrap_err().into_iter().map(|wrong| wrong.field).collect()
    }

    #[test]
    fn a_tenant_needs_nothing_and_gets_the_defaults() {
        let made = read_new(json!({})).unwrap();
        assert_eq!((made.name, made.settings), (None, TenantSettings::default()));
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (
                json!({"weight": 0, "retention_days": -1, "colour": "red"}),
                &["retention_days", "colour", "weight"][..],
            ),
            (
                json!({"report_retention_seconds": "7d", "unreported_retention_days": 9999}),
                &["report_retention_seconds", "unreported_retention_days"],
            ),
            (json!({"report_retention_seconds": 0, "retention_days": 1}), &["retention_days"]),
            (json!({"content": {"html_bytes": 0, "x": 1}}), &["content.x", "content.html_bytes"]),
            (json!({"client_sync": {"path": "/x"}}), &["client_sync.url"]),
            (json!({"client_sync": {"url": "ftp://x"}}), &["client_sync"]),
            (
                json!({"client_sync": {"url": "https://x", "auth": {"type": "bearer"}}}),
                &["client_sync.auth.token"],
            ),
            (
                json!({"client_sync": {"url": "https://x", "auth": {"type": "bearer", "token": "t", "password": "p"}}}),
                &["client_sync.auth.password"],
            ),
            (
                json!({"attachment_endpoint": {"url": "https://x", "auth": {"type": "digest"}}}),
                &["attachment_endpoint.auth.type"],
            ),
            (json!({"callback_form": "xml", "large_files": "drop"}), &["callback_form", "large_files"]),
            (json!({"large_files": {"policy": "rewrite", "days": 1}}), &["large_files"]),
            (json!({"large_files": {"link_days": 0}}), &["large_files"]),
            (
                json!({"content": {"html_required": 1}, "auto_submitted": "yes"}),
                &["content.html_required", "auto_submitted"],
            ),
            (
                json!({"return_path": "nobody", "default_from": "nobody", "feedback_id": "a"}),
                &["return_path", "default_from", "feedback_id"],
            ),
            (
                json!({"default_account": "a b", "bounce_domain": "a b"}),
                &["default_account", "bounce_domain"],
            ),
        ] {
            assert_eq!(wrong_fields(body.clone()), fields, "{body}");
        }
    }

    #[test]
    fn a_secret_is_kept_as_long_as_the_way_of_signing_in() {
        let body = json!({"client_sync": {"url": "https://x", "auth": {"type": "bearer", "token": "t"}}});
        let made = read_new(body).unwrap();
        assert_eq!(made.client_sync, RemoteSecretEdit::Set("t".to_owned()));
        let again = |body: Value| read(body.as_object().unwrap().clone(), &made.settings);
        let kept =
            |url: &str| json!({"client_sync": {"url": url, "auth": {"type": "bearer", "has_secret": true}}});
        assert_eq!(again(kept("https://x/sync")).unwrap().client_sync, RemoteSecretEdit::Keep);
        assert_eq!(again(kept("https://y")).unwrap_err()[0].field, "client_sync.auth.token");
        assert_eq!(again(json!({})).unwrap().client_sync, RemoteSecretEdit::Remove);
        let other = json!({"client_sync": {"url": "https://y", "auth": {"type": "basic", "username": "u"}}});
        assert_eq!(again(other).unwrap_err()[0].field, "client_sync.auth.password");
    }
}
