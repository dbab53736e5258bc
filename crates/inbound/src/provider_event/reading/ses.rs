//! Amazon SES: notifications of an identity (`notificationType`) and events of a configuration set
//! (`eventType`), which have the same form.

use postway_domain::EventKind;
use postway_mime::received::{BounceType, ReportKind, ReportedAction};
use serde_json::Value;

use super::{
    EventContent, RECIPIENTS_MAX, ReportedEvent, ServerStatement, act, complaint, need, report, short, text,
    time, uid_in_headers,
};

const REPORTER: &str = "ses";

pub(super) fn read(event: &Value) -> Result<ReportedEvent, String> {
    let name = text(event, "/eventType")
        .or_else(|| text(event, "/notificationType"))
        .ok_or("the event has neither eventType nor notificationType")?;
    let id = need(event, "/mail/messageId")?;
    let only = event.pointer("/mail/destination").and_then(Value::as_array);
    let only = only.and_then(|list| if let [one] = list.as_slice() { one.as_str() } else { None });
    let (content, at) = match name {
        "Bounce" => (bounce(event), "/bounce/timestamp"),
        "Complaint" => {
            let address = text(event, "/complaint/complainedRecipients/0/emailAddress");
            let kind = text(event, "/complaint/complaintFeedbackType");
            (complaint(address, kind, REPORTER), "/complaint/timestamp")
        }
        "Delivery" => {
            let words = text(event, "/delivery/smtpResponse").unwrap_or_default();
            let list = event.pointer("/delivery/recipients");
            (addressed(list, ReportKind::Success, ReportedAction::Delivered, words), "/delivery/timestamp")
        }
        "DeliveryDelay" => {
            let list = event.pointer("/deliveryDelay/delayedRecipients");
            let words = text(event, "/deliveryDelay/delayType").unwrap_or_default();
            (addressed(list, ReportKind::Delay, ReportedAction::Delayed, words), "/deliveryDelay/timestamp")
        }
        "Open" => (act(EventKind::Opened, only, None, short(event, "/open/userAgent")), "/open/timestamp"),
        "Click" => {
            let (url, agent) = (short(event, "/click/link"), short(event, "/click/userAgent"));
            (act(EventKind::Clicked, only, url, agent), "/click/timestamp")
        }
        "Subscription" => (act(EventKind::Unsubscribed, only, None, None), "/subscription/timestamp"),
        "Reject" | "Rendering Failure" => {
            let words = text(event, "/reject/reason").or_else(|| text(event, "/failure/errorMessage"));
            let list = event.pointer("/mail/destination");
            let words = words.unwrap_or("rejected by the provider");
            (addressed(list, ReportKind::Bounce, ReportedAction::Failed, words), "/mail/timestamp")
        }
        "Send" => (
            EventContent::Nothing("SES says that it took the mail, which its answer said"),
            "/mail/timestamp",
        ),
        _ => (EventContent::Nothing("this event of SES has no meaning here"), "/mail/timestamp"),
    };
    Ok(ReportedEvent {
        provider_ids: vec![id.to_owned()],
        uid: uid_in_headers(event.pointer("/mail/headers")),
        at: time(event, at),
        content,
    })
}

/// SES calls a bounce permanent where the server refused, and says by its sub-type why.
fn bounce(event: &Value) -> EventContent {
    let is_permanent = text(event, "/bounce/bounceType") == Some("Permanent");
    let verdict = match (is_permanent, text(event, "/bounce/bounceSubType")) {
        (true, Some("NoEmail" | "Suppressed" | "OnAccountSuppressionList")) => Some(BounceType::Hard),
        // By the server's codes and text.
        (true, _) => None,
        (false, _) => Some(BounceType::Soft),
    };
    let list = event.pointer("/bounce/bouncedRecipients").and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let findings = list.iter().take(RECIPIENTS_MAX).filter_map(|one| {
        let words = text(one, "/diagnosticCode").unwrap_or_default();
        let statement = ServerStatement {
            address: text(one, "/emailAddress")?,
            action: ReportedAction::Failed,
            status: text(one, "/status"),
            words: words.strip_prefix("smtp; ").unwrap_or(words),
            verdict,
        };
        Some(statement.finding())
    });
    report(ReportKind::Bounce, findings.collect(), REPORTER)
}

/// The same words about a list of recipients: addresses, or objects with one and a text of its own.
fn addressed(list: Option<&Value>, kind: ReportKind, action: ReportedAction, words: &str) -> EventContent {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let findings = list.iter().take(RECIPIENTS_MAX).filter_map(|one| {
        let address = one.as_str().or_else(|| text(one, "/emailAddress"))?;
        let own = text(one, "/diagnosticCode").unwrap_or(words);
        let status = text(one, "/status");
        let verdict = Some(BounceType::Soft);
        Some(ServerStatement { address, action, status, words: own, verdict }.finding())
    });
    report(kind, findings.collect(), REPORTER)
}
