//! Resend's webhooks. Our id comes back in the tags.

use postway_domain::EventKind;
use postway_mime::received::{BounceType, ReportKind, ReportedAction};
use serde_json::Value;

use super::{
    EventContent, RECIPIENTS_MAX, ReportedEvent, ServerStatement, UID_FIELD, act, complaint, need, report,
    short, text, time, uid_in, uid_in_headers,
};

const REPORTER: &str = "resend";

pub(super) fn read(event: &Value) -> Result<ReportedEvent, String> {
    let name = need(event, "/type")?;
    let list = event.pointer("/data/to").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let to: Vec<&str> = list.iter().filter_map(Value::as_str).take(RECIPIENTS_MAX).collect();
    let only = if let [one] = to.as_slice() { Some(*one) } else { None };
    let said = ["/data/bounce/message", "/data/failed/reason", "/data/suppressed/message"];
    let words = said.iter().find_map(|at| text(event, at)).unwrap_or_default();
    let statements = |action, verdict| {
        let one =
            |address: &&str| ServerStatement { address, action, status: None, words, verdict }.finding();
        to.iter().map(one).collect::<Vec<_>>()
    };
    let content = match name {
        "email.delivered" => {
            report(ReportKind::Success, statements(ReportedAction::Delivered, None), REPORTER)
        }
        "email.delivery_delayed" => {
            report(ReportKind::Delay, statements(ReportedAction::Delayed, None), REPORTER)
        }
        "email.bounced" => {
            let is_permanent = text(event, "/data/bounce/type") == Some("Permanent");
            let verdict = match (is_permanent, text(event, "/data/bounce/subType")) {
                // A mail to several recipients bounced for one of them, and Resend does not say for which.
                _ if only.is_none() => Some(BounceType::Soft),
                (true, Some("General" | "NoEmail" | "Suppressed" | "OnAccountSuppressionList")) => {
                    Some(BounceType::Hard)
                }
                (true, None) => None,
                (true, Some(_)) | (false, _) => Some(BounceType::Soft),
            };
            report(ReportKind::Bounce, statements(ReportedAction::Failed, verdict), REPORTER)
        }
        "email.failed" | "email.suppressed" => {
            report(ReportKind::Bounce, statements(ReportedAction::Failed, Some(BounceType::Soft)), REPORTER)
        }
        "email.complained" => complaint(only, Some("abuse"), REPORTER),
        "email.opened" => act(EventKind::Opened, only, None, short(event, "/data/open/userAgent")),
        "email.clicked" => {
            let agent = short(event, "/data/click/userAgent");
            act(EventKind::Clicked, only, short(event, "/data/click/link"), agent)
        }
        "email.sent" | "email.scheduled" => {
            EventContent::Nothing("Resend says that it took the mail, which its answer said")
        }
        _ => EventContent::Nothing("this event of Resend has no meaning here"),
    };
    Ok(ReportedEvent {
        provider_ids: text(event, "/data/email_id").map(str::to_owned).into_iter().collect(),
        uid: tag(event).or_else(|| uid_in_headers(event.pointer("/data/headers"))),
        at: time(event, "/created_at"),
        content,
    })
}

/// Tags are an object, or a list of names and values.
fn tag(event: &Value) -> Option<postway_domain::MessageUid> {
    let tags = event.pointer("/data/tags")?;
    let listed = || {
        let mut all = tags.as_array()?.iter();
        all.find(|tag| text(tag, "/name") == Some(UID_FIELD))?.get("value")?.as_str()
    };
    uid_in(tags.get(UID_FIELD).and_then(Value::as_str).or_else(listed)?)
}
