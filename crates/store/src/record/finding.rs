//! What inbound mail, or an event that a provider reported, says about a sent message.

use postway_domain::{EventKind, MessageUid};
use serde_json::{Map, Value};

use super::{directory::SuppressionRecord, inbound::NewReceipt};

/// What an inbound mail, or an event that a provider reported, says about a sent message. If the message has
/// been removed, only the suppression is written. If the same mail has said so before, because it is
/// processed again, nothing is written.
#[derive(Clone, Debug)]
pub struct MessageFinding {
    /// The message.
    pub message: MessageUid,
    /// The position of the recipient that it is about, if any.
    pub position: Option<u32>,
    /// The kind of event.
    pub kind: EventKind,
    /// The event data as a JSON object; the id of its source is added as `inbound` or `provider_event`.
    pub data: Option<String>,
    /// The bounce to show, as a JSON object `{type, code, reason, at}`.
    pub bounce: Option<String>,
    /// The suppression that follows from it.
    pub suppress: Option<SuppressionRecord>,
    /// The PEC receipt that it comes from. If the message has the receipt already, nothing is written, unless
    /// its signature is verified only now.
    pub receipt: Option<NewReceipt>,
}

impl MessageFinding {
    /// The event data, with the id of its source.
    pub(crate) fn said_by(&self, origin: FindingOrigin, source: MessageUid) -> String {
        let mut data = object(self.data.as_deref());
        data.insert(origin.field().to_owned(), source.to_string().into());
        Value::Object(data).to_string()
    }

    /// Whether an event of the message records this finding: from the same source, about the same recipient.
    pub(crate) fn is_recorded(
        &self,
        origin: FindingOrigin,
        source: MessageUid,
        kind: EventKind,
        data: Option<&str>,
    ) -> bool {
        let (data, new) = (object(data), object(self.data.as_deref()));
        kind == self.kind
            && data.get(origin.field()).and_then(Value::as_str) == Some(&source.to_string())
            && data.get("recipient") == new.get("recipient")
    }
}

/// What a finding comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingOrigin {
    /// An inbound mail.
    Mail,
    /// An event that a provider reported.
    ProviderEvent,
}

impl FindingOrigin {
    /// The field of the event data that has the id of the source.
    fn field(self) -> &'static str {
        match self {
            Self::Mail => "inbound",
            Self::ProviderEvent => "provider_event",
        }
    }
}

fn object(data: Option<&str>) -> Map<String, Value> {
    data.and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default()
}
