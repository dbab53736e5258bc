//! Translates a mail of SendGrid's API: what its personalizations have in common, and one message of ours for
//! each of them.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    part::{self, MailForms},
    personalization::{self, CommonParts},
};
use crate::{
    compat::{
        expansion::ExpansionBudget,
        translate::{RawFields, RawItems, expect_text, is_blank, refuse_mail, text},
    },
    http::error::{ApiError, FieldError},
};

/// The most personalizations of a call.
const PERSONALIZATIONS_MAX: usize = 1_000;
/// The most categories.
const CATEGORIES_MAX: usize = 10;
/// Settings whose absence changes nothing that a reader sees: opens and clicks are not tracked here.
const IGNORED_SETTINGS: [&str; 5] =
    ["sandbox_mode", "spam_check", "click_tracking", "open_tracking", "ganalytics"];

/// The messages that a call becomes.
#[derive(Debug)]
pub(super) struct SendGridMail {
    /// One for each personalization, in order.
    pub(super) messages: Vec<Bytes>,
    /// Whether they are only checked (`sandbox_mode`).
    pub(super) is_trial: bool,
}

/// Translates a call. Faults of values are left to the intake, except for what has no place in our message.
pub(super) fn translate(json: &[u8], budget: &mut ExpansionBudget<'_>) -> Result<SendGridMail, ApiError> {
    let mut fields = RawFields::read(json)?;
    let mut faults = Vec::new();
    let personalizations = fields.take("personalizations");
    let is_trial = settings(&mut fields, &mut faults);
    let common = common(&mut fields, &mut faults);
    let items = match personalizations.map(|list| RawItems::read("personalizations", list)) {
        Some(Ok(RawItems(items))) => items,
        Some(Err(fault)) => {
            faults.push(fault);
            Vec::new()
        }
        None => Vec::new(),
    };
    match items.len() {
        0 => faults.push(FieldError::new(
            "personalizations",
            "The personalizations field is required and must have at least one personalization.",
        )),
        count if count > PERSONALIZATIONS_MAX => {
            let message = format!("there are {count} personalizations: send at most {PERSONALIZATIONS_MAX}");
            return Err(refuse_mail(vec![FieldError::new("personalizations", message)]));
        }
        _ => {}
    }
    if !faults.is_empty() {
        return Err(refuse_mail(faults));
    }
    let mut messages = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        messages.push(personalization::message(index, item, &common, budget)?.into());
    }
    Ok(SendGridMail { messages, is_trial })
}

fn common<'a>(fields: &mut RawFields<'a>, faults: &mut Vec<FieldError>) -> CommonParts<'a> {
    let mut keep = |result: Result<String, FieldError>| result.map_err(|fault| faults.push(fault)).ok();
    let from = match fields.take("from") {
        Some(from) => keep(part::address("from", from)),
        None => keep(Err(FieldError::new(
            "from",
            "The from object must be provided for every email send. It is an object that requires the email \
             parameter, but may also contain a name parameter.",
        ))),
    };
    let mut same = Vec::new();
    let written = [
        (
            "reply_to",
            fields.take("reply_to").map(|one| part::address("reply_to", one).map(|one| format!("[{one}]"))),
        ),
        ("reply_to", fields.take("reply_to_list").map(|list| part::addresses("reply_to_list", list))),
        ("attachments", fields.take("attachments").map(part::attachments)),
        ("tags", fields.take("categories").map(categories)),
    ];
    for (name, value) in written.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        match keep(value) {
            Some(_) if same.iter().any(|(other, _)| *other == name) => {
                let message = "is given beside reply_to: give one of them";
                keep(Err(FieldError::new("reply_to_list", message)));
            }
            Some(json) => same.push((name, json)),
            None => {}
        }
    }
    if let Some(group) = fields.take("asm").map(group) {
        same.extend(keep(group).map(|id| ("stream", id)));
    }
    let template = fields.take("template_id").filter(|id| !is_blank(id));
    let template = template.and_then(|id| match expect_text("template_id", id) {
        Ok(id) => Some(id),
        Err(fault) => {
            keep(Err(fault));
            None
        }
    });
    // A batch of a stream begins with its name.
    if let Some(batch) = fields.take("batch_id").filter(|batch| !is_blank(batch)) {
        let stream = same.iter().find(|(name, _)| *name == "stream").map(|(_, json)| json.trim_matches('"'));
        let named = expect_text("batch_id", batch).map(|batch| match stream {
            Some(stream) => part::quoted(&format!("{stream}:{batch}")),
            None => part::quoted(&batch),
        });
        same.extend(keep(named).map(|json| ("batch", json)));
    }
    if fields.take("sections").is_some_and(|sections| sections.get().trim() != "{}") {
        keep(Err(FieldError::new("sections", "sections are not part of this API: use substitutions")));
    }
    let subject = fields.take("subject").and_then(|subject| match expect_text("subject", subject) {
        Ok(subject) => Some(subject),
        Err(fault) => {
            keep(Err(fault));
            None
        }
    });
    let mut forms = MailForms::default();
    // As there, a template replaces the content.
    if let Some(content) = fields.take("content").filter(|_| template.is_none())
        && let Err(fault) = forms.read(content)
    {
        keep(Err(fault));
    }
    CommonParts {
        from,
        subject,
        forms,
        headers: fields.take("headers"),
        custom_args: fields.take("custom_args"),
        send_at: fields.take("send_at"),
        template,
        same,
    }
}

fn categories(value: &RawValue) -> Result<String, FieldError> {
    // Some programs write the only one without a list.
    if text(value).is_some() {
        return Ok(format!("[{}]", value.get()));
    }
    match RawItems::read("categories", value)?.0.len() {
        0..=CATEGORIES_MAX => Ok(value.get().to_owned()),
        count => {
            let message = format!("there are {count} categories: give at most {CATEGORIES_MAX}");
            Err(FieldError::new("categories", message))
        }
    }
}

/// The stream of an unsubscribe group: the one that has the group's number as its name.
fn group(value: &RawValue) -> Result<String, FieldError> {
    let mut fields = part::object("asm", value)?;
    let id = fields.take("group_id").map(|id| id.get().trim_matches('"'));
    match id.filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(id) => Ok(part::quoted(id)),
        None => Err(FieldError::new("asm.group_id", "must be a number")),
    }
}

/// Whether the mail is only checked. A setting that is switched on and cannot be honoured is a fault.
fn settings(fields: &mut RawFields<'_>, faults: &mut Vec<FieldError>) -> bool {
    let mut is_trial = false;
    for kind in ["mail_settings", "tracking_settings"] {
        let Some(value) = fields.take(kind) else { continue };
        let inner = match part::object(kind, value) {
            Ok(inner) => inner,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        for (name, setting) in inner.0 {
            let is_on = part::object(kind, setting)
                .is_ok_and(|setting| setting.get("enable").is_some_and(|on| on.get() == "true"));
            match &*name {
                "sandbox_mode" => is_trial |= is_on,
                name if is_on && !IGNORED_SETTINGS.contains(&name) => {
                    let name: String = name.chars().take(100).collect();
                    let message = "is not part of this API: switch it off";
                    faults.push(FieldError::new(format!("{kind}.{name}"), message));
                }
                _ => {}
            }
        }
    }
    is_trial
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mail() -> Value {
        json!({
            "personalizations": [{"to": [{"email": "ada@example.net", "name": "Lovelace, Ada"}]}],
            "from": {"email": "shop@example.com", "name": "Shop"}, "subject": "Hi",
            "content": [{"type": "text/plain", "value": "Hi"}, {"type": "text/html", "value": "<p>Hi"}],
        })
    }

    fn with(more: Value) -> Value {
        let mut mail = mail();
        mail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mail
    }

    fn made(mail: &Value) -> Vec<Value> {
        let made = translate(mail.to_string().as_bytes(), &mut ExpansionBudget::of(1 << 20)).unwrap();
        made.messages.iter().map(|message| serde_json::from_slice(message).unwrap()).collect()
    }

    #[track_caller]
    fn wrong(mail: Value) -> Vec<String> {
        let error = translate(mail.to_string().as_bytes(), &mut ExpansionBudget::of(1 << 20)).unwrap_err();
        error.details().iter().map(|fault| fault.field.clone()).collect()
    }

    #[test]
    fn a_mail_is_ours() {
        let mail = with(json!({
            "reply_to": {"email": "help@example.com"}, "categories": ["receipt"], "custom_args": {"order": "7"},
            "headers": {"X-A": "1", "Message-ID": "<x@y>"}, "send_at": 1_900_000_000, "batch_id": "b1",
            "attachments": [
                {"content": "aGk=", "type": "image/png", "filename": "a.png", "disposition": "inline", "content_id": "logo"},
                {"content": "aGk=", "filename": "b.txt", "disposition": "attachment", "content_id": "x"},
            ],
            "tracking_settings": {"click_tracking": {"enable": true}, "subscription_tracking": {"enable": false}},
            "ip_pool_name": "pool", "unknown": 1,
        }));
        assert_eq!(
            made(&mail),
            [json!({
                "from": "Shop <shop@example.com>", "to": ["\"Lovelace, Ada\" <ada@example.net>"], "subject": "Hi",
                "text": "Hi", "html": "<p>Hi", "reply_to": ["help@example.com"], "tags": ["receipt"],
                "metadata": {"order": "7"}, "headers": {"X-A": "1"}, "send_at": 1_900_000_000, "batch": "b1",
                "attachments": [
                    {"filename": "a.png", "content": "aGk=", "content_type": "image/png", "content_id": "logo", "inline": true},
                    {"filename": "b.txt", "content": "aGk="},
                ],
            })]
        );
    }

    #[test]
    fn a_personalization_is_a_message_with_values_of_its_own() {
        let to = |address: &str| json!([{"email": address}]);
        let mail = with(json!({
            "subject": "Hi -name-", "custom_args": {"a": "1", "b": "2"}, "headers": {"X-A": "1"},
            "content": [{"type": "text/html; charset=utf-8", "value": "<p>-name-"}],
            "personalizations": [
                {"to": to("a@example.net"), "substitutions": {"-name-": "Ada"}, "custom_args": {"b": "3"}, "headers": {"X-B": "2"}},
                {"to": to("b@example.net"), "cc": to("c@example.net"), "bcc": to("d@example.net"), "subject": "Other",
                 "from": {"email": "other@example.com"}, "send_at": 1_900_000_000},
            ],
        }));
        let [first, second] = &made(&mail)[..] else { panic!("two were meant") };
        assert_eq!((&first["subject"], &first["html"]), (&json!("Hi Ada"), &json!("<p>Ada")));
        assert_eq!(
            (&first["metadata"], &first["headers"]),
            (&json!({"a": "1", "b": "3"}), &json!({"X-A": "1", "X-B": "2"}))
        );
        assert_eq!((&second["subject"], &second["from"]), (&json!("Other"), &json!("other@example.com")));
        assert_eq!((&second["cc"], &second["bcc"]), (&json!(["c@example.net"]), &json!(["d@example.net"])));
        assert_eq!((&second["html"], &second["send_at"]), (&json!("<p>-name-"), &json!(1_900_000_000)));
    }

    #[test]
    fn a_template_replaces_subject_and_content() {
        let mail = with(json!({"template_id": "d-1", "personalizations": [
            {"to": [{"email": "a@example.net"}], "dynamic_template_data": {"n": 1}}]}));
        assert_eq!(
            made(&mail),
            [json!({"from": "Shop <shop@example.com>", "to": ["a@example.net"],
                    "template": {"name": "d-1", "variables": {"n": 1}}})]
        );
    }

    #[test]
    fn an_unsubscribe_group_is_a_stream_and_an_invitation_an_alternative() {
        let mail = with(json!({"asm": {"group_id": 12}, "batch_id": "b", "content": [
            {"type": "text/plain", "value": "Hi"}, {"type": "text/calendar; method=REQUEST", "value": "BEGIN:VCALENDAR"}]}));
        let made = &made(&mail)[0];
        assert_eq!((&made["stream"], &made["batch"]), (&json!("12"), &json!("12:b")));
        let invitation =
            json!([{"content_type": "text/calendar; method=REQUEST", "content": "BEGIN:VCALENDAR"}]);
        assert_eq!(made["alternatives"], invitation);
    }

    #[test]
    fn a_trial_is_known_and_what_cannot_be_honoured_is_named() {
        let trial =
            with(json!({"mail_settings": {"sandbox_mode": {"enable": true}, "footer": {"enable": false}}}));
        assert!(translate(trial.to_string().as_bytes(), &mut ExpansionBudget::of(1 << 20)).unwrap().is_trial);
        for (more, field) in [
            (json!({"personalizations": []}), "personalizations"),
            (json!({"personalizations": [{}]}), "personalizations.0.to"),
            (json!({"personalizations": [{"to": []}]}), "personalizations.0.to"),
            (json!({"personalizations": [{"to": [{"email": "ada"}]}]}), "personalizations.0.to.0.email"),
            (json!({"personalizations": [7]}), "personalizations.0"),
            (json!({"from": null}), "from"),
            (json!({"from": {"name": "x"}}), "from.email"),
            (json!({"content": [{"type": "text/rtf", "value": "x"}]}), "content.0.type"),
            (
                json!({"content": [{"type": "text/html", "value": "x"}, {"type": "text/html", "value": "y"}]}),
                "content.1.type",
            ),
            (json!({"categories": vec!["x"; 11]}), "categories"),
            (json!({"asm": {}}), "asm.group_id"),
            (json!({"sections": {"a": "b"}}), "sections"),
            (
                json!({"mail_settings": {"bypass_list_management": {"enable": true}}}),
                "mail_settings.bypass_list_management",
            ),
            (
                json!({"tracking_settings": {"subscription_tracking": {"enable": true}}}),
                "tracking_settings.subscription_tracking",
            ),
        ] {
            assert_eq!(wrong(with(more)), [field]);
        }
    }

    #[test]
    fn a_small_call_does_not_become_more_than_a_large_one_may_be() {
        let many = vec![json!({"to": [{"email": "a@example.net"}]}); 500];
        let mail = with(
            json!({"personalizations": many, "content": [{"type": "text/plain", "value": "x".repeat(10_000)}]}),
        );
        let error = translate(mail.to_string().as_bytes(), &mut ExpansionBudget::of(1 << 20)).unwrap_err();
        assert_eq!(error.status().as_u16(), 413);
        let grown = with(json!({"content": [{"type": "text/plain", "value": "x".repeat(1_000)}],
            "personalizations": [{"to": [{"email": "a@example.net"}], "substitutions": {"x": "y".repeat(2_000)}}]}));
        let error = translate(grown.to_string().as_bytes(), &mut ExpansionBudget::of(1 << 20)).unwrap_err();
        assert_eq!(error.status().as_u16(), 413);
    }
}
