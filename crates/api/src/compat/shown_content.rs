//! The content of a message, for APIs that show it: as it is sent, or, before it is composed, as it was
//! requested.

use axum::http::StatusCode;
use bytes::Bytes;
use postway_domain::{RecipientKind, TenantId};
use postway_mime::reading::{self, MailView};
use postway_store::record::{MessageRecord, MessageSummary};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::translate::split_addresses;
use crate::{
    http::{body_budget::AnswerShare, error::ApiError},
    message::content::mail_view::read_mail,
    state::AppState,
};

/// The longest `reply_to` of a request that is read, in bytes of JSON.
const REPLY_TO_BYTES_MAX: usize = 64 * 1024;

/// The content of a message. It is empty if the message is sensitive or its bytes are removed.
#[derive(Default)]
pub(super) struct ShownContent {
    pub(super) from: Option<String>,
    pub(super) reply_to: Vec<String>,
    pub(super) text: Option<String>,
    pub(super) html: Option<String>,
    /// The names of its files.
    pub(super) files: Vec<String>,
    /// The mail itself, if it is composed.
    pub(super) source: Option<Bytes>,
    /// The content's share of the body budget: the answer is built from it.
    _held: Option<AnswerShare>,
}

impl ShownContent {
    /// The content of a message record; empty for a caller who may not see bodies.
    pub(super) async fn read(
        app: &AppState,
        tenant: &TenantId,
        record: &MessageRecord,
        may_see: bool,
    ) -> Result<Self, ApiError> {
        Self::read_summary(app, tenant, &record.summary, may_see).await
    }

    /// The content of a message of which only the summary is at hand.
    pub(super) async fn read_summary(
        app: &AppState,
        tenant: &TenantId,
        message: &MessageSummary,
        may_see: bool,
    ) -> Result<Self, ApiError> {
        if message.sensitive || !may_see {
            return Ok(Self::default());
        }
        if let Some(body) = app.store.raw(tenant, message.uid).await? {
            return Self::sent(app, tenant, app.load(tenant, body).await?).await;
        }
        match app.store.payload(tenant, message.uid).await? {
            Some(body) => {
                let held = app
                    .body_budget
                    .reserve_answer(tenant, usize::try_from(body.len()).map_err(ApiError::internal)?)?;
                Ok(Self::asked_for(&app.load(tenant, body).await?, held))
            }
            None => Ok(Self::default()),
        }
    }

    async fn sent(app: &AppState, tenant: &TenantId, source: Bytes) -> Result<Self, ApiError> {
        let (reading, held) = match read_mail(app, tenant, source.clone(), reading::read).await {
            // The mail is too large to be parsed for display: the rest of the message is shown all the same.
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => (MailView::default(), None),
            read => read.map(|(reading, held)| (reading, Some(held)))?,
        };
        Ok(Self::as_read(reading, source, held))
    }

    fn as_read(reading: MailView, source: Bytes, held: Option<AnswerShare>) -> Self {
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

    fn asked_for(payload: &[u8], held: AnswerShare) -> Self {
        #[derive(Default, Deserialize)]
        struct StoredRequest<'a> {
            from: Option<String>,
            #[serde(default, borrow)]
            reply_to: Option<&'a RawValue>,
            text: Option<String>,
            html: Option<String>,
        }

        // A request that is not JSON of ours was a ready-made mail, and that would have been composed.
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

/// An address without the brackets that a mail puts around an address without a name.
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
    use crate::http::body_budget::BodyBudget;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn the_words_of_a_letter_count_for_as_long_as_it_is_there() {
        let (budget, tenant) = (BodyBudget::with_bytes(4 * MIB), "a".parse().unwrap());
        let has_budget = || budget.reserve_answer(&tenant, MIB).is_ok();
        let sent = ShownContent::as_read(
            MailView::default(),
            Bytes::new(),
            budget.reserve_answer(&tenant, 2 * MIB).ok(),
        );
        assert!(!has_budget());
        drop(sent);
        let payload = br#"{"from":"a@example.com","reply_to":["b@example.com"],"text":"t"}"#;
        let asked = ShownContent::asked_for(payload, budget.reserve_answer(&tenant, 2 * MIB).unwrap());
        assert_eq!(
            (asked.from.as_deref(), &*asked.reply_to),
            (Some("a@example.com"), &["b@example.com".to_owned()][..])
        );
        assert!(!has_budget());
        drop(asked);
        assert!(has_budget());
        let many = format!(r#"{{"from":"a","reply_to":[{}0]}}"#, "0,".repeat(MIB));
        assert!(
            ShownContent::asked_for(many.as_bytes(), budget.reserve_answer(&tenant, MIB).unwrap())
                .reply_to
                .is_empty()
        );
    }
}
