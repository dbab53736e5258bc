//! The door itself: what one message goes through.

use std::sync::Arc;

use postway_domain::{ClientId, Clock, MessageUid, TenantId, Time};
use postway_store::{
    Store, StoreError,
    record::{Acceptance, DedupKind, NewMessage},
};

use crate::{
    assemble::{Origin, assemble, compose_checked, fingerprint},
    check::check,
    directory::{Directory, Lookup},
    limits::Limits,
    parse::parse,
    refusal::Refusal,
    request::{MessageRequest, Object},
    work::{guarded, weighed},
};

/// The longest idempotency key, in characters.
const IDEMPOTENCY_KEY_MAX: usize = 256;

/// The one way in. One for the whole process, shared.
pub struct Door {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) mail_domain: String,
    pub(crate) directory: Directory,
}

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
}

impl Receipt {
    pub(crate) fn new(client_id: Option<ClientId>, uid: MessageUid, status: &'static str) -> Self {
        Self { id: client_id.map_or_else(|| uid.to_string(), |id| id.to_string()), uid, status }
    }
}

impl Door {
    /// A door to this store. `mail_domain` is what Message-IDs end with where the author's domain cannot be used.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, limits: Limits, mail_domain: String) -> Self {
        let directory = Directory::new(Arc::clone(&store));
        Self { store, clock, limits, mail_domain, directory }
    }

    /// What this door takes at most.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes one message, given as a JSON object. It is durable when this returns.
    pub async fn accept_json(&self, ctx: &RequestContext, body: &[u8]) -> Result<Receipt, Refusal> {
        let taken = self.take_json(ctx, body).await;
        taken.inspect_err(Refusal::count)
    }

    async fn take_json(&self, ctx: &RequestContext, body: &[u8]) -> Result<Receipt, Refusal> {
        self.check_request(ctx, body.len())?;
        let now = self.clock.now();
        let Object(request) = weighed(body.len(), || parse::<Object<MessageRequest<'_>>>(body))?;
        let route = self.directory.route(&ctx.tenant, request.account.as_deref()).await?;
        let key = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
        let message = weighed(body.len(), || self.prepare(ctx, &request, route, key, now))?;
        self.store_one(ctx, message).await
    }

    /// Checks what comes with every kind of request.
    pub(crate) fn check_request(&self, ctx: &RequestContext, bytes: usize) -> Result<(), Refusal> {
        let bytes_max = self.limits.request_bytes_max;
        if bytes > bytes_max {
            let message = format!("the request is larger than {bytes_max} bytes (request_bytes_max)");
            return Err(Refusal::TooLarge { message });
        }
        match &ctx.idempotency_key {
            Some(key) if !is_idempotency_key(key) => Err(Refusal::field(
                "Idempotency-Key",
                format!("must be 1 to {IDEMPOTENCY_KEY_MAX} printable ASCII characters"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Everything between parsing and storing: pure work on one message.
    pub(crate) fn prepare(
        &self,
        ctx: &RequestContext,
        request: &MessageRequest<'_>,
        route: Lookup,
        idempotency: Option<(DedupKind, String)>,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        guarded(&ctx.tenant, &ctx.request_id, || {
            let checked = check(request, route, &self.limits, now)?;
            let keyed = idempotency.is_some() || checked.terms.client_id.is_some();
            let fingerprint = if keyed { fingerprint(request, &[])? } else { [0; 32] };
            let mail = compose_checked(&checked, now, &self.mail_domain)?;
            let origin =
                Origin { tenant: &ctx.tenant, request_id: &ctx.request_id, idempotency, fingerprint, now };
            assemble(origin, checked.terms, &checked.route, mail, self.limits.message_bytes_max)
        })
    }

    /// Stores one message, unless this is a dry run.
    pub(crate) async fn store_one(
        &self,
        ctx: &RequestContext,
        message: NewMessage,
    ) -> Result<Receipt, Refusal> {
        let mut receipts = self.store_all(ctx, vec![message]).await?;
        receipts.pop().unwrap_or_else(|| Err(StoreError::Unexpected("it gave no answer".to_owned()).into()))
    }

    /// Stores messages together, unless this is a dry run; one answer each, in order.
    pub(crate) async fn store_all(
        &self,
        ctx: &RequestContext,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Receipt, Refusal>>, StoreError> {
        let names: Vec<_> = messages.iter().map(|message| (message.client_id.clone(), message.uid)).collect();
        if ctx.dry_run {
            return Ok(names.into_iter().map(|(id, uid)| Ok(Receipt::new(id, uid, "valid"))).collect());
        }
        let starts: Vec<_> = messages.iter().map(|message| message.state.status().as_str()).collect();
        let answers = self.store.accept(messages).await?;
        if answers.len() != names.len() {
            return Err(StoreError::Unexpected("it did not answer for every message".to_owned()));
        }
        let accepted = |answer: &Acceptance| matches!(answer, Acceptance::Accepted { .. });
        count_states(
            answers.iter().zip(starts).filter(|(answer, _)| accepted(answer)).map(|(_, state)| state),
        );
        Ok(names.into_iter().zip(answers).map(|((id, uid), answer)| receipt(id, uid, answer)).collect())
    }
}

/// What the store's answer means for the sender.
fn receipt(client_id: Option<ClientId>, uid: MessageUid, answer: Acceptance) -> Result<Receipt, Refusal> {
    let uid = match answer {
        Acceptance::Accepted { .. } => uid,
        Acceptance::Repeat { uid } => uid,
        Acceptance::Conflict { kind } => {
            let name = match kind {
                DedupKind::ClientId => "id",
                DedupKind::Request | DedupKind::BatchItem => "Idempotency-Key",
            };
            let message = format!("this {name} was used for another message: use a new one");
            return Err(Refusal::Conflict { message });
        }
    };
    Ok(Receipt::new(client_id, uid, "accepted"))
}

fn count_states(starts: impl Iterator<Item = &'static str>) {
    let [mut ready, mut scheduled] = [0, 0];
    for state in starts {
        match state {
            "scheduled" => scheduled += 1,
            _ => ready += 1,
        }
    }
    for (state, count) in [("accepted", ready + scheduled), ("ready", ready), ("scheduled", scheduled)] {
        if count > 0 {
            metrics::counter!("postway_state_transitions_total", "state" => state).increment(count);
        }
    }
}

fn is_idempotency_key(key: &str) -> bool {
    (1..=IDEMPOTENCY_KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}
