//! Postmark's webhooks, distinguished by `RecordType`. Our id comes back in `Metadata`.

use postway_domain::EventKind;
use postway_mime::received::{BounceType, ReportKind, ReportedAction};
use serde_json::Value;

use super::{
    EventContent, ReportedEvent, ServerStatement, UID_FIELD, act, complaint, need, report, short, text, time,
    uid_in,
};

const REPORTER: &str = "postmark";

pub(super) fn read(event: &Value) -> Result<ReportedEvent, String> {
    let name = need(event, "/RecordType")?;
    let address = text(event, "/Email").or_else(|| text(event, "/Recipient"));
    let agent = || short(event, "/UserAgent");
    let (content, at) = match name {
        "Delivery" => {
            let found = statement(event, address, ReportedAction::Delivered, None);
            (report(ReportKind::Success, found, REPORTER), "/DeliveredAt")
        }
        "Bounce" => (bounce(event, address), "/BouncedAt"),
        "SpamComplaint" => (complaint(address, Some("abuse"), REPORTER), "/BouncedAt"),
        "Open" => (act(EventKind::Opened, address, None, agent()), "/ReceivedAt"),
        "Click" => (act(EventKind::Clicked, address, short(event, "/OriginalLink"), agent()), "/ReceivedAt"),
        "SubscriptionChange" => (subscription(event, address), "/ChangedAt"),
        _ => (EventContent::Nothing("this event of Postmark has no meaning here"), "/ReceivedAt"),
    };
    let ours = event.pointer("/Metadata").and_then(|list| list.get(UID_FIELD)?.as_str()).and_then(uid_in);
    Ok(ReportedEvent {
        provider_ids: text(event, "/MessageID").map(str::to_owned).into_iter().collect(),
        uid: ours,
        at: time(event, at),
        content,
    })
}

fn statement(
    event: &Value,
    address: Option<&str>,
    action: ReportedAction,
    verdict: Option<BounceType>,
) -> Vec<postway_mime::received::ReportFinding> {
    let words = text(event, "/Details").or_else(|| text(event, "/Description")).unwrap_or_default();
    let found = |address| ServerStatement { address, action, status: None, words, verdict }.finding();
    address.map(found).into_iter().collect()
}

/// Postmark's types of a bounce: most are no bounce in our sense.
fn bounce(event: &Value, address: Option<&str>) -> EventContent {
    let (kind, action, verdict) = match text(event, "/Type").unwrap_or_default() {
        "HardBounce" | "BadEmailAddress" => {
            (ReportKind::Bounce, ReportedAction::Failed, Some(BounceType::Hard))
        }
        "Transient" => (ReportKind::Delay, ReportedAction::Delayed, None),
        "SpamComplaint" => return complaint(address, Some("abuse"), REPORTER),
        "Unsubscribe" => return act(EventKind::Unsubscribed, address, None, None),
        "Subscribe"
        | "AutoResponder"
        | "AddressChange"
        | "ChallengeVerification"
        | "OpenRelayTest"
        | "VirusNotification" => {
            return EventContent::Nothing("an automatic mail to the sender is no bounce");
        }
        _ => (ReportKind::Bounce, ReportedAction::Failed, Some(BounceType::Soft)),
    };
    report(kind, statement(event, address, action, verdict), REPORTER)
}

/// A change of Postmark's own list. Those that follow a bounce or a complaint come beside the event of it.
fn subscription(event: &Value, address: Option<&str>) -> EventContent {
    let is_stopped = event.pointer("/SuppressSending").and_then(Value::as_bool) == Some(true);
    match (is_stopped, text(event, "/SuppressionReason")) {
        (true, Some("ManualSuppression")) if text(event, "/Origin") == Some("Recipient") => {
            act(EventKind::Unsubscribed, address, None, None)
        }
        (true, _) => EventContent::Nothing("the bounce or the complaint is an event of its own"),
        (false, _) => EventContent::Nothing("an address that may get mail again is decided here"),
    }
}
