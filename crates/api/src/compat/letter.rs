//! What a message says, for doors that show it: as it is sent, or, while it is not composed, as it was asked for.

use axum::http::StatusCode;
use bytes::Bytes;
use postway_domain::{RecipientKind, TenantId};
use postway_mime::reading::{self, Reading};
use postway_store::record::{MessageRecord, MessageSummary};
use serde::Deserialize;
use serde_json::Value;

use super::translate::split_addresses;
use crate::{error::ApiError, mail_view::look, state::App};

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
            Some(body) => Ok(Self::asked_for(&app.load(tenant, body).await?)),
            None => Ok(Self::default()),
        }
    }

    async fn sent(app: &App, tenant: &TenantId, source: Bytes) -> Result<Self, ApiError> {
        let reading = match look(app, tenant, source.clone(), reading::read).await {
            // Too large to be taken apart for a look: the rest of the message is shown all the same.
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Reading::default(),
            // What it holds of the room is the answer's to take.
            read => read?.0,
        };
        let field = |name: &str| {
            let found = reading.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        Ok(Self {
            from: field("from").map(unbracketed),
            reply_to: field("reply-to")
                .map_or_else(Vec::new, |list| split_addresses(list).into_iter().map(unbracketed).collect()),
            text: reading.text,
            html: reading.html,
            files: reading.attachments.into_iter().filter_map(|file| file.filename).collect(),
            source: Some(source),
        })
    }

    fn asked_for(payload: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        struct Asked {
            from: Option<String>,
            #[serde(default)]
            reply_to: Value,
            text: Option<String>,
            html: Option<String>,
        }

        // What is no message of ours is a mail that came ready-made, and that would have been composed.
        let asked: Asked = serde_json::from_slice(payload).unwrap_or_default();
        let reply_to = match asked.reply_to {
            Value::String(one) => vec![one],
            Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        Self { from: asked.from, reply_to, text: asked.text, html: asked.html, ..Self::default() }
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
