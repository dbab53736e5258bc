//! The part that routes had in the choice of a message's account. It is recorded with the event `accepted`,
//! so that it stays true when the routes change.

use postway_domain::{EventKind, MessageEvent};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How routes chose a message's account.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[schema(as = MessageRoute)]
#[serde(default)]
pub(crate) struct MessageRouteView {
    /// The route that decided; null if those that matched were passed over.
    #[schema(example = "newsletters")]
    id: Option<String>,
    /// The account it chose.
    #[schema(example = "bulk-1")]
    account: Option<String>,
    /// How many accounts it chose from.
    accounts: u32,
    /// The conditions that it has, all of which held: `sender_domain`, `tag`, `batch`, `stream`, `priority`,
    /// `recipient_domain`.
    #[schema(example = json!(["sender_domain"]))]
    because: Vec<String>,
    /// The accounts that would have been chosen but could not send, each with the reason: `circuit:bulk-2`.
    left_out: Vec<String>,
    /// Why the chosen account could not send either: `suspended`, `circuit` or `limit`.
    waits_for: Option<String>,
    /// The routes that matched and were passed over because their accounts were gone.
    passed_over: Vec<String>,
}

impl MessageRouteView {
    /// Reads it from a message's history; `None` if routes had no part.
    pub(crate) fn of(events: &[MessageEvent]) -> Option<Self> {
        #[derive(Deserialize)]
        struct AcceptedData {
            route: Option<MessageRouteView>,
        }

        let accepted = events.iter().find(|event| event.kind == EventKind::Accepted)?;
        let data: AcceptedData = serde_json::from_str(accepted.data.as_deref()?).ok()?;
        data.route
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::Time;

    use super::*;

    #[test]
    fn it_is_read_from_the_event_that_the_message_was_accepted() {
        let event = |data: &str| MessageEvent {
            seq: 1,
            at: Time::from_millis(0),
            kind: EventKind::Accepted,
            data: Some(data.to_owned()),
        };
        let of = |data: &str| MessageRouteView::of(&[event(data)]);
        let route =
            of(r#"{"request_id":"r","route":{"id":"news","account":"a","accounts":2,"because":["tag"]}}"#);
        let route = route.unwrap();
        assert_eq!((route.id.as_deref(), route.accounts), (Some("news"), 2));
        assert_eq!(route.because, ["tag"]);
        assert_eq!(of(r#"{"request_id":"r"}"#), None);
        assert_eq!(MessageRouteView::of(&[]), None);
    }
}
