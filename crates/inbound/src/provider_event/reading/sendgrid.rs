//! SendGrid's event webhook. Custom arguments stand beside the other fields of an event. A bounce that comes
//! late has no id of SendGrid, so our own is sent along with each mail.

use postway_domain::EventKind;
use postway_mime::received::{BounceType, ReportKind, ReportedAction};
use serde_json::Value;

use super::{
    EventContent, ReportedEvent, ServerStatement, UID_FIELD, act, complaint, need, report, short, text, time,
    uid_in,
};

const REPORTER: &str = "sendgrid";

pub(super) fn read(event: &Value) -> Result<ReportedEvent, String> {
    let (name, address) = (need(event, "/event")?, need(event, "/email")?);
    let statement = |action, words: Option<&str>, verdict| {
        let words = words.unwrap_or_default();
        let status = text(event, "/status");
        vec![ServerStatement { address, action, status, words, verdict }.finding()]
    };
    let reason = text(event, "/reason").or_else(|| text(event, "/response"));
    let agent = || short(event, "/useragent");
    let content = match name {
        "delivered" => {
            let found = statement(ReportedAction::Delivered, reason, None);
            report(ReportKind::Success, found, REPORTER)
        }
        "deferred" => report(ReportKind::Delay, statement(ReportedAction::Delayed, reason, None), REPORTER),
        "bounce" | "blocked" => {
            let found = statement(ReportedAction::Failed, reason, verdict(event, name));
            report(ReportKind::Bounce, found, REPORTER)
        }
        // SendGrid did not send at all, mostly because of its own list.
        "dropped" => {
            let is_listed = reason.is_some_and(|reason| {
                ["Bounced Address", "Invalid"].iter().any(|words| reason.contains(words))
            });
            let verdict = if is_listed { BounceType::Hard } else { BounceType::Soft };
            report(ReportKind::Bounce, statement(ReportedAction::Failed, reason, Some(verdict)), REPORTER)
        }
        "spamreport" => complaint(Some(address), Some("abuse"), REPORTER),
        "open" => act(EventKind::Opened, Some(address), None, agent()),
        "click" => act(EventKind::Clicked, Some(address), short(event, "/url"), agent()),
        "unsubscribe" | "group_unsubscribe" => act(EventKind::Unsubscribed, Some(address), None, agent()),
        "processed" => EventContent::Nothing("SendGrid says that it took the mail, which its answer said"),
        _ => EventContent::Nothing("this event of SendGrid has no meaning here"),
    };
    // The id of a recipient's mail begins with that of the call.
    let id = text(event, "/sg_message_id").map(|id| id.split_once('.').map_or(id, |(call, _)| call));
    let whole = text(event, "/sg_message_id");
    let ids = [id, whole].into_iter().flatten().map(str::to_owned);
    let ours = event.get(UID_FIELD).and_then(Value::as_str).and_then(uid_in);
    Ok(ReportedEvent {
        provider_ids: ids.collect(),
        uid: ours.or_else(|| uid_in(text(event, "/smtp-id")?)),
        at: time(event, "/timestamp"),
        content,
    })
}

/// Whether the address is bad: by SendGrid's classification, or else by the server's codes and text. What
/// SendGrid calls blocked may pass another time.
fn verdict(event: &Value, name: &str) -> Option<BounceType> {
    if name == "blocked" || text(event, "/type") == Some("blocked") {
        return Some(BounceType::Soft);
    }
    match text(event, "/bounce_classification") {
        Some("Invalid Address") => Some(BounceType::Hard),
        Some("Unclassified") | None => None,
        Some(_) => Some(BounceType::Soft),
    }
}
