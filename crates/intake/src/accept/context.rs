//! Who asks for a message to be accepted, and the answer.

use std::sync::Arc;

use postway_domain::{ClientId, MessageUid, TenantId, key::KeyRestrictions, message::OnDoubt};

use crate::cache::settings_cache::{House, Route};

/// Who asks, and how.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// Whose mail; the caller has made sure that the tenant exists.
    pub tenant: TenantId,
    /// The request's id, kept with the message.
    pub request_id: String,
    /// The key by which a repeat of the request is recognised.
    pub idempotency_key: Option<String>,
    /// Whether to stop before storing.
    pub dry_run: bool,
    /// Whether mail that names no account is refused where the sandbox would capture it: whoever came here by changing an
    /// address and a key believes that it is sent.
    pub must_leave: bool,
    /// Whether a subject may be as long as headers may be, where the tenant has set no bound of its own: the way in is that of
    /// a system that knows none.
    pub any_subject: bool,
    /// Whether `send_at` may be in words, such as `tomorrow at 9am`. A repeat says the same words, so it is the same message
    /// whenever it comes.
    pub spoken_times: bool,
    /// What to do in doubt with messages that do not say it themselves: how the call is made may say it for all it brings.
    pub on_doubt: Option<OnDoubt>,
    /// Whom the key may send from and to that was shown, where it is bound.
    pub restrictions: Option<Arc<KeyRestrictions>>,
}

/// What a sender gets for a message that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The client's id, or the uid where it gave none.
    pub id: String,
    /// The message's own id.
    pub uid: MessageUid,
    /// `accepted`, or `valid` after a dry run.
    pub status: &'static str,
    /// Whether it was here already, by its id or its key.
    pub is_repeat: bool,
}

impl RequestContext {
    /// What to do in doubt with a message that does not say it itself: the call decides, else the account, else the
    /// tenant.
    pub(crate) fn on_doubt_for(&self, route: &Route, house: &House) -> OnDoubt {
        self.on_doubt.or(route.on_doubt).or(house.settings.on_doubt).unwrap_or_default()
    }

    /// The status in the receipt of a message that passes.
    pub(crate) fn passed_status(&self) -> &'static str {
        if self.dry_run { "valid" } else { "accepted" }
    }
}

impl Receipt {
    pub(crate) fn new(client_id: Option<ClientId>, uid: MessageUid, status: &'static str) -> Self {
        let id = client_id.map_or_else(|| uid.to_string(), |id| id.to_string());
        Self { id, uid, status, is_repeat: false }
    }

    /// The receipt of a message that was here already.
    pub(crate) fn again(client_id: Option<ClientId>, uid: MessageUid, status: &'static str) -> Self {
        Self { is_repeat: true, ..Self::new(client_id, uid, status) }
    }
}
