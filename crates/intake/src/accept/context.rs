//! Who asks for a message to be accepted, and the answer.

use std::{borrow::Cow, sync::Arc};

use postway_domain::{ClientId, MessageUid, TenantId, key::KeyRestrictions, message::OnDoubt};
use postway_trace::{Span, SpanKind, TraceContext};

use crate::cache::settings_cache::{SendingAccount, TenantProfile};

/// The caller, and how its request is to be treated.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The tenant of the mail; the caller has made sure that it exists.
    pub tenant: TenantId,
    /// The id of the request, stored with the message.
    pub request_id: String,
    /// The key by which a repeat of the request is recognised.
    pub idempotency_key: Option<String>,
    /// Whether to stop before storing.
    pub dry_run: bool,
    /// Whether mail that names no account is refused if the sandbox would capture it: a client that only
    /// changed a URL and a key believes that its mail is sent.
    pub refuses_capture: bool,
    /// Whether a subject may be as long as a header may be, if the tenant sets no limit: the caller imitates
    /// a system without one.
    pub any_subject: bool,
    /// Whether `send_at` may be given in words, such as `tomorrow at 9am`. A repeat has the same words, so it
    /// counts as the same message whenever it arrives.
    pub spoken_times: bool,
    /// What to do in doubt with messages that do not say it themselves: the call may decide for all its
    /// messages.
    pub on_doubt: Option<OnDoubt>,
    /// The restrictions of the caller's key, if it has any.
    pub restrictions: Option<Arc<KeyRestrictions>>,
    /// Where the request belongs in a trace.
    pub trace: RequestTrace,
}

/// Where a request belongs in a trace. A message that names a place of its own goes there instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestTrace {
    /// Nothing was said: each message begins a trace, of which a share is recorded.
    #[default]
    Undecided,
    /// Under this span, or in no trace.
    Decided(Option<TraceContext>),
}

impl RequestTrace {
    /// The span that the request is under.
    pub(crate) fn parent(self) -> Option<TraceContext> {
        match self {
            Self::Undecided => None,
            Self::Decided(parent) => parent,
        }
    }
}

/// The answer for an accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptReceipt {
    /// The client's id, or the uid if the client gave none.
    pub id: String,
    /// The uid of the message.
    pub uid: MessageUid,
    /// `accepted`, or `valid` after a dry run.
    pub status: &'static str,
    /// Whether the message was accepted before, by its id or its key.
    pub is_repeat: bool,
}

impl RequestContext {
    /// What to do in doubt with a message that does not say it itself: the call decides, else the account,
    /// else the tenant.
    pub(crate) fn on_doubt_for(&self, account: &SendingAccount, profile: &TenantProfile) -> OnDoubt {
        self.on_doubt.or(account.on_doubt).or(profile.settings.on_doubt).unwrap_or_default()
    }

    /// Begins the span of an accept. What follows is under it.
    pub(crate) fn begin_accept(&self) -> (Span, Cow<'_, Self>) {
        let mut span = Span::child(self.trace.parent(), SpanKind::Producer, "accept");
        if !span.is_recorded() {
            return (span, Cow::Borrowed(self));
        }
        span.set("postway.tenant", || self.tenant.to_string());
        span.set("postway.request_id", || self.request_id.clone());
        let trace = RequestTrace::Decided(span.context());
        (span, Cow::Owned(Self { trace, ..self.clone() }))
    }

    /// The status in the receipt of a message that passes.
    pub(crate) fn passed_status(&self) -> &'static str {
        if self.dry_run { "valid" } else { "accepted" }
    }
}

impl AcceptReceipt {
    pub(crate) fn new(client_id: Option<ClientId>, uid: MessageUid, status: &'static str) -> Self {
        let id = client_id.map_or_else(|| uid.to_string(), |id| id.to_string());
        Self { id, uid, status, is_repeat: false }
    }

    /// The receipt of a message that was accepted before.
    pub(crate) fn again(client_id: Option<ClientId>, uid: MessageUid, status: &'static str) -> Self {
        Self { is_repeat: true, ..Self::new(client_id, uid, status) }
    }
}
