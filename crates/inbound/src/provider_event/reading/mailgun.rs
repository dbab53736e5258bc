//! Mailgun's webhooks: the `event-data` of a call.

use postway_domain::EventKind;
use postway_mime::received::{BounceType, ReportKind, ReportedAction};
use serde_json::Value;

use super::{
    EventContent, ReportedEvent, ServerStatement, UID_FIELD, act, complaint, need, report, short, text, time,
    uid_in,
};

const REPORTER: &str = "mailgun";

pub(super) fn read(event: &Value) -> Result<ReportedEvent, String> {
    let name = need(event, "/event")?;
    let address = text(event, "/recipient");
    let said = ["/delivery-status/message", "/delivery-status/description"];
    let words = said.iter().find_map(|at| text(event, at)).unwrap_or_default();
    let code = event.pointer("/delivery-status/code").and_then(Value::as_i64);
    let words = match code {
        Some(code @ 400..=599) if !words.starts_with(&code.to_string()) => format!("{code} {words}"),
        _ => words.to_owned(),
    };
    let statement = |action, verdict| {
        let status = text(event, "/delivery-status/enhanced-code");
        let found = |address| ServerStatement { address, action, status, words: &words, verdict }.finding();
        address.map(found).into_iter().collect::<Vec<_>>()
    };
    let agent = || short(event, "/client-info/user-agent");
    let content = match name {
        "delivered" => report(ReportKind::Success, statement(ReportedAction::Delivered, None), REPORTER),
        "failed" if text(event, "/severity") == Some("temporary") => {
            report(ReportKind::Delay, statement(ReportedAction::Delayed, None), REPORTER)
        }
        "failed" => {
            // Mailgun's own lists say that the address is bad or its owner complained.
            let verdict = match text(event, "/reason") {
                Some("suppress-bounce") => Some(BounceType::Hard),
                Some("suppress-complaint" | "suppress-unsubscribe" | "espblock") => Some(BounceType::Soft),
                _ => None,
            };
            report(ReportKind::Bounce, statement(ReportedAction::Failed, verdict), REPORTER)
        }
        "complained" => complaint(address, Some("abuse"), REPORTER),
        "opened" => act(EventKind::Opened, address, None, agent()),
        "clicked" => act(EventKind::Clicked, address, short(event, "/url"), agent()),
        "unsubscribed" => act(EventKind::Unsubscribed, address, None, agent()),
        "accepted" => EventContent::Nothing("Mailgun says that it took the mail, which its answer said"),
        _ => EventContent::Nothing("this event of Mailgun has no meaning here"),
    };
    let id = text(event, "/message/headers/message-id").map(|id| id.trim_matches(['<', '>']).to_owned());
    let ours =
        event.pointer("/user-variables").and_then(|list| list.get(UID_FIELD)?.as_str()).and_then(uid_in);
    Ok(ReportedEvent {
        uid: ours.or_else(|| uid_in(id.as_deref()?)),
        provider_ids: id.into_iter().collect(),
        at: time(event, "/timestamp"),
        content,
    })
}
