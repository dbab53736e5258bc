//! The bodies of requests and answers. Fields that an answer has besides these are in `rest`, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A mail to send. What is empty is left out of the request, and then as the tenant's settings say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OutgoingMail {
    /// Your own id of it, unique in your tenant. With one, a repeat by your program sends nothing twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The account to send by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The sender, with or without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Recipients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Recipients of copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<String>,
    /// Recipients that the others do not see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<String>,
    /// Where answers go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reply_to: Vec<String>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// Not before this time, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_at: Option<String>,
    /// Not after this time, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The batch it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Your own words, to find it again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// All that has no field here, under the names of the API: `attachments`, `template`, `headers`,
    /// `metadata` and so on.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What the gateway answers once a mail is durable.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct MailReceipt {
    /// Your id of it, or its uid.
    pub id: String,
    /// Its own id.
    pub uid: String,
    /// Where it stands. A later gateway may have words that this crate does not know.
    pub status: String,
}

/// The answer to a batch: one result for each mail.
#[derive(Clone, Debug, Deserialize)]
pub struct BatchAnswer {
    /// How many are durable.
    pub accepted: u64,
    /// How many were refused.
    pub rejected: u64,
    /// One for each mail, in their order.
    pub results: Vec<BatchItemAnswer>,
}

/// Whether one mail of a batch was accepted, and if not, why.
#[derive(Clone, Debug, Deserialize)]
pub struct BatchItemAnswer {
    /// Your id of it, or its uid.
    #[serde(default)]
    pub id: Option<String>,
    /// Where it stands, if it was taken.
    #[serde(default)]
    pub status: Option<String>,
    /// Why it was refused, if it was.
    #[serde(default)]
    pub error: Option<Value>,
}

/// A message, whole or as in lists.
#[derive(Clone, Debug, Deserialize)]
pub struct GatewayMessage {
    /// Your id of it, or its uid.
    pub id: String,
    /// Its own id.
    pub uid: String,
    /// Where it stands. A later gateway may have words that this crate does not know.
    pub status: String,
    /// The account that sends it.
    pub account: String,
    /// The subject.
    pub subject: String,
    /// What holds it back besides its own time.
    pub held_by: Vec<String>,
    /// How many attempts there were.
    pub attempt: u64,
    /// When it was accepted.
    pub created_at: String,
    /// When the relay took it.
    #[serde(default)]
    pub sent_at: Option<String>,
    /// Why it ended or waits.
    #[serde(default)]
    pub reason: Option<String>,
    /// All that has no field here, under the names of the API: `recipients`, `events`, `error` and so on.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl GatewayMessage {
    /// Whether nothing more happens to it by itself. A message in doubt may be sent again.
    pub fn has_ended(&self) -> bool {
        let ended = ["sent", "captured", "failed", "invalid", "suppressed", "cancelled", "expired"];
        ended.contains(&&*self.status)
    }
}

/// A page of a list.
#[derive(Clone, Debug, Deserialize)]
pub struct ListPage<T> {
    /// What is on it; maybe nothing, although there is a next one.
    pub data: Vec<T>,
    /// Where the next page begins; none at the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A piece of the feed. It has no end: there is always a next cursor.
#[derive(Clone, Debug, Deserialize)]
pub struct EventPage {
    /// What happened, oldest first; each has its `cursor`.
    pub data: Vec<Value>,
    /// What to ask for next.
    pub next_cursor: String,
}
