//! The documented form, for services of one's own: `{"id", "type", "message_id", "postway_id", "recipient",
//! "at", …}`.

use postway_domain::EventKind;
use postway_mime::received::{BounceType, ReportKind, ReportedAction};
use serde_json::Value;

use super::{
    ReportedEvent, ServerStatement, UID_FIELD, act, complaint, need, report, short, text, time, uid_in,
};

const REPORTER: &str = "http";

pub(super) fn read(event: &Value) -> Result<ReportedEvent, String> {
    let name = need(event, "/type")?;
    let address = text(event, "/recipient");
    let statement = |action, verdict| {
        let (status, words) = (text(event, "/status"), text(event, "/message").unwrap_or_default());
        let found = |address| ServerStatement { address, action, status, words, verdict }.finding();
        address.map(found).into_iter().collect::<Vec<_>>()
    };
    let agent = || short(event, "/user_agent");
    let content = match name {
        "delivered" => report(ReportKind::Success, statement(ReportedAction::Delivered, None), REPORTER),
        "delayed" => report(ReportKind::Delay, statement(ReportedAction::Delayed, None), REPORTER),
        "bounced" => {
            let verdict = match text(event, "/bounce") {
                Some("hard") => Some(BounceType::Hard),
                Some("soft") => Some(BounceType::Soft),
                _ => None,
            };
            report(ReportKind::Bounce, statement(ReportedAction::Failed, verdict), REPORTER)
        }
        "complained" => complaint(address, text(event, "/feedback_type"), REPORTER),
        "opened" => act(EventKind::Opened, address, None, agent()),
        "clicked" => act(EventKind::Clicked, address, short(event, "/url"), agent()),
        "unsubscribed" => act(EventKind::Unsubscribed, address, None, agent()),
        other => {
            return Err(format!(
                "the type `{}` is unknown: use delivered, delayed, bounced, complained, opened, clicked or unsubscribed",
                other.chars().take(40).collect::<String>()
            ));
        }
    };
    Ok(ReportedEvent {
        provider_ids: text(event, "/message_id").map(str::to_owned).into_iter().collect(),
        uid: text(event, &format!("/{UID_FIELD}")).and_then(uid_in),
        at: time(event, "/at"),
        content,
    })
}
