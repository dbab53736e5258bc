//! What a message says, for doors that show it: as it is sent, or, while it is not composed, as it was asked for.

use axum::http::StatusCode;
use bytes::Bytes;
use postway_domain::{RecipientKind, TenantId};
use postway_mime::reading::{self, Reading};
use postway_store::record::{MessageRecord, MessageSummary};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::translate::split_addresses;
use crate::{
    http::{body_budget::HeldBytes, error::ApiError},
    message::content::mail_view::look,
    state::App,
};

/// The longest `reply_to` of a request that is read, in bytes of JSON.
const REPLY_TO_BYTES_MAX: usize = 64 * 1024;

/// The words of a message. Of a sensitive one, and of one whose bytes are gone, there are none.
#[derive(Default)]
pub(super) struct Letter {
    pub(super) from: Option<String>,
    pub(super) reply_to: Vec<String>,
    pub(super) text: Option<String>,
    pub(super) html: Option<String>,
    /// The names of its files.
    pub(super) files: Vec<String>,
    /// The mail itself, if it is composed.
    pub(super) source: Option<Bytes>,
    /// What its words take of the room: an answer is made of them beside them.
    _held: Option<HeldBytes>,
}

impl Letter {
    /// That of a message.
    pub(super) async fn read(app: &App, tenant: &TenantId, record: &MessageRecord) -> Result<Self, ApiError> {
        Self::of(app, tenant, &record.summary).await
    }

    /// The same, where the rest of the message is not at hand.
    pub(super) async fn of(app: &App, tenant: &TenantId, message: &MessageSummary) -> Result<Self, ApiError> {
        if message.sensitive {
            return Ok(Self::default());
        }
        if let Some(body) = app.store.raw(tenant, message.uid).await? {
            return Self::sent(app, tenant, app.load(tenant, body).await?).await;
        }
        match app.store.payload(tenant, message.uid).await? {
            Some(body) => {
                let held = app.room.hold(tenant, usize::try_from(body.len()).map_err(ApiError::internal)?)?;
                Ok(Self::asked_for(&app.load(tenant, body).await?, held))
            }
            None => Ok(Self::default()),
        }
    }

    async fn sent(app: &App, tenant: &TenantId, source: Bytes) -> Result<Self, ApiError> {
        let (reading, held) = match look(app, tenant, source.clone(), reading::read).await {
            // Too large to be taken apart for a look: the rest of the message is shown all the same.
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => (Reading::default(), None),
            read => read.map(|(reading, held)| (reading, Some(held)))?,
        };
        Ok(Self::as_read(reading, source, held))
    }

    fn as_read(reading: Reading, source: Bytes, held: Option<HeldBytes>) -> Self {
        let field = |name: &str| {
            let found = reading.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        Self {
            from: field("from").map(unbracketed),
            reply_to: field("reply-to")
                .map_or_else(Vec::new, |list| split_addresses(list).into_iter().map(unbracketed).collect()),
            text: reading.text.filter(|_| reading.has_text),
            html: reading.html,
            files: reading.attachments.into_iter().filter_map(|file| file.filename).collect(),
            source: Some(source),
            _held: held,
        }
    }

    fn asked_for(payload: &[u8], held: HeldBytes) -> Self {
        #[derive(Default, Deserialize)]
        struct StoredRequest<'a> {
            from: Option<String>,
            #[serde(default, borrow)]
            reply_to: Option<&'a RawValue>,
            text: Option<String>,
            html: Option<String>,
        }

        // What is no message of ours is a mail that came ready-made, and that would have been composed.
        let asked: StoredRequest = serde_json::from_slice(payload).unwrap_or_default();
        let reply_to = asked.reply_to.map(RawValue::get).filter(|json| json.len() <= REPLY_TO_BYTES_MAX);
        let reply_to = match reply_to.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default() {
            Value::String(one) => vec![one],
            Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let StoredRequest { from, text, html, .. } = asked;
        Self { from, reply_to, text, html, _held: Some(held), ..Self::default() }
    }
}

/// An address without the brackets that a mail has around it where it has no name.
fn unbracketed(address: &str) -> String {
    let address = address.trim();
    let bare = address.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    bare.unwrap_or(address).to_owned()
}

/// The addresses of a message's recipients of one kind.
pub(super) fn addresses(record: &MessageRecord, kind: RecipientKind) -> Vec<&str> {
    let of_kind = record.recipients.iter().filter(|recipient| recipient.kind == kind);
    of_kind.map(|recipient| recipient.address.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body_budget::Room;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn the_words_of_a_letter_count_for_as_long_as_it_is_there() {
        let (room, tenant) = (Room::of(4 * MIB), "a".parse().unwrap());
        let has_room = || room.hold(&tenant, MIB).is_ok();
        let sent = Letter::as_read(Reading::default(), Bytes::new(), room.hold(&tenant, 2 * MIB).ok());
        assert!(!has_room());
        drop(sent);
        let payload = br#"{"from":"a@example.com","reply_to":["b@example.com"],"text":"t"}"#;
        let asked = Letter::asked_for(payload, room.hold(&tenant, 2 * MIB).unwrap());
        assert_eq!(
            (asked.from.as_deref(), &*asked.reply_to),
            (Some("a@example.com"), &["b@example.com".to_owned()][..])
        );
        assert!(!has_room());
        drop(asked);
        assert!(has_room());
        let many = format!(r#"{{"from":"a","reply_to":[{}0]}}"#, "0,".repeat(MIB));
        assert!(Letter::asked_for(many.as_bytes(), room.hold(&tenant, MIB).unwrap()).reply_to.is_empty());
    }
}
