//! The door itself: what one message goes through.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use postway_domain::{
    ClientId, Clock, EmailAddress, MessageUid, Status, TenantId, Time, id::RisingUids, key::KeyRestrictions,
    message::OnDoubt, secret::SecretKey, tenant::ContentLimits, verp::VerpKey,
};
use postway_net::http::HttpClient;
use postway_store::{
    Store, StoreError,
    blob::Depot,
    record::{Acceptance, Body, DedupKind, NewMessage},
};

use crate::{
    accept::check::{Checked, check},
    accept::compose::links::LinkKey,
    accept::compose::unsubscribe::UnsubscribeKey,
    accept::compose::{
        CheckedAs, EnvelopeSender, Mail, Names, Origin, assemble, attachments_here, compose_checked,
        fingerprint, needs_smtputf8, validated,
    },
    accept::look_up::{Settled, Surroundings},
    accept::parse::parse,
    accept::parse::request::{MessageRequest, Object},
    accept::refused_mail::RefusedShares,
    accept::store::dedup::{Keys, conflict, receipt},
    accept::store::state_metrics::count_entered,
    budget::{FairBudget, FairShare},
    budget::{guarded, heavy_places},
    cache::settings_cache::{Directory, House, Route},
    cache::template_cache::Shelf,
    fetch::FetchPlaces,
    fetch::{FetchConfig, Fetcher},
    limits::Limits,
    refusal::Refusal,
};

/// The longest idempotency key, in characters.
const IDEMPOTENCY_KEY_MAX: usize = 256;
/// What composed messages may take until they are stored, and how much of it one tenant may have. That is also the most
/// that the messages of one call may take together.
const IN_HAND_BYTES_MAX: usize = 128 * 1024 * 1024;
pub(crate) const IN_HAND_TENANT_BYTES_MAX: usize = IN_HAND_BYTES_MAX / 2;
/// A message that takes less is not counted: the number of connections bounds those.
const UNCOUNTED_BYTES_MAX: usize = 16 * 1024;
/// What a recipient takes of memory, about.
const RECIPIENT_BYTES: usize = 256;
/// Variables of a template are built into values of many times their size: they weigh so much more than other text.
pub(crate) const VARIABLES_WEIGHT: usize = 16;
/// How far ids may be ahead of the clock, in milliseconds. Lists and retention go by their stamps.
const UIDS_AHEAD_MS_MAX: u64 = 1_000;
/// Html that is laid out as text weighs so much more than html that is only checked.
const LAYOUT_WEIGHT: usize = 8;

/// The one way in. One for the whole process, shared.
pub struct Door {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) depot: Arc<Depot>,
    pub(crate) limits: Limits,
    pub(crate) mail_domain: String,
    pub(crate) public_url: Option<String>,
    pub(crate) directory: Directory,
    pub(crate) shelf: Shelf,
    pub(crate) fetcher: Fetcher,
    pub(crate) fetch_places: FetchPlaces,
    pub(crate) heavy: Arc<FairBudget>,
    pub(crate) in_hand: Arc<FairBudget>,
    pub(crate) verp_key: VerpKey,
    pub(crate) link_key: LinkKey,
    pub(crate) unsubscribe_key: UnsubscribeKey,
    pub(crate) refused: RefusedShares,
    /// The ids of what is forwarded: of two that are accepted one after the other the second is higher.
    pub(crate) rising: RisingUids,
    /// The ids of all other mail: those of one call rise, so that they leave in its order.
    pub(crate) uids: RisingUids,
}

/// What a door works with.
pub struct DoorParts {
    /// Where messages go.
    pub store: Arc<dyn Store>,
    /// Where large bodies go.
    pub depot: Arc<Depot>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Opens tenants' secrets, and signs links and envelope senders.
    pub secret_key: Arc<SecretKey>,
    /// The guarded way out, to fetch attachments.
    pub http: HttpClient,
    /// What is fetched, and from where.
    pub fetch: FetchConfig,
    /// What is taken at most.
    pub limits: Limits,
    /// What Message-IDs end with where the author's domain cannot be used.
    pub mail_domain: String,
    /// Where readers of mail reach this gateway, for links to large files.
    pub public_url: Option<String>,
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
    /// What is settled before anything is known of a message.
    pub(crate) fn settled(&self) -> Settled {
        let Self { any_subject, spoken_times, .. } = *self;
        Settled { any_subject, spoken_times, ..Settled::default() }
    }

    /// What to do in doubt with a message that does not say it itself: as the call says, else the account, else the tenant.
    pub(crate) fn on_doubt_by(&self, route: &Route, house: &House) -> OnDoubt {
        self.on_doubt.or(route.on_doubt).or(house.settings.on_doubt).unwrap_or_default()
    }

    /// What a receipt says of a message that passes.
    pub(crate) fn passed(&self) -> &'static str {
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

impl Door {
    /// A door with these parts.
    pub fn new(parts: DoorParts) -> Self {
        let DoorParts { store, depot, clock, secret_key, http, fetch, limits, mail_domain, public_url } =
            parts;
        Self {
            directory: Directory::new(Arc::clone(&store), Arc::clone(&secret_key)),
            shelf: Shelf::new(Arc::clone(&store)),
            fetcher: Fetcher::new(http, fetch, Arc::clone(&clock)),
            fetch_places: FetchPlaces::default(),
            heavy: heavy_places(),
            in_hand: FairBudget::new(IN_HAND_BYTES_MAX, IN_HAND_TENANT_BYTES_MAX),
            verp_key: VerpKey::new(&secret_key),
            link_key: LinkKey::new(&secret_key),
            unsubscribe_key: UnsubscribeKey::new(&secret_key),
            refused: RefusedShares::default(),
            rising: RisingUids::default(),
            uids: RisingUids::within(UIDS_AHEAD_MS_MAX),
            store,
            clock,
            depot,
            limits,
            mail_domain,
            public_url,
        }
    }

    /// What this door takes at most.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Why mail of this tenant that names no account would be captured although nobody chose that, if it would be.
    pub async fn captures_unasked(&self, tenant: &TenantId) -> Result<Option<&'static str>, StoreError> {
        self.directory.captures_unasked(tenant).await
    }

    /// Where readers of mail reach this gateway, if the operator says so.
    pub fn public_url(&self) -> Option<&str> {
        self.public_url.as_deref()
    }

    /// Takes one message, given as a JSON object. It is durable when this returns.
    pub async fn accept_json(&self, ctx: &RequestContext, body: Bytes) -> Result<Receipt, Refusal> {
        let taken = self.take_json(ctx, body).await;
        taken.inspect_err(Refusal::count)
    }

    async fn take_json(&self, ctx: &RequestContext, body: Bytes) -> Result<Receipt, Refusal> {
        self.check_request(ctx, body.len())?;
        let message = {
            let read = || parse::<Object<MessageRequest<'_>>>(&body);
            let Object(request) = self.weighed(&ctx.tenant, body.len(), read).await??;
            let key = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
            match self.make(ctx, &request, key.clone(), &body).await {
                Ok(message) => message,
                Err(refusal) => {
                    let keys = Keys::new(key, request.id.as_deref());
                    return self.unless_repeat(ctx, keys, || fingerprint(&request, &[]), refusal).await;
                }
            }
        };
        self.store_one(ctx, message).await
    }

    /// What is to be stored of a request.
    async fn make(
        &self,
        ctx: &RequestContext,
        request: &MessageRequest<'_>,
        key: Option<(DedupKind, String)>,
        body: &Bytes,
    ) -> Result<NewMessage, Refusal> {
        let now = self.clock.now();
        let account = request.account.as_deref();
        let around = self.surroundings(&ctx.tenant, request, account, ctx.settled()).await?.under(ctx);
        if ctx.dry_run {
            self.rehearse(ctx, request, &around, body.len(), now).await?;
        }
        let prepare = || self.prepare(ctx, request, &around, key, body.clone(), now);
        self.weighed(&ctx.tenant, weight(request, &around.house.settings.content, body.len()), prepare)
            .await?
    }

    /// Checks what comes with every kind of request.
    pub(crate) fn check_request(&self, ctx: &RequestContext, bytes: usize) -> Result<(), Refusal> {
        let bytes_max = self.limits.request_bytes_max;
        if bytes > bytes_max {
            let message = format!("the request is larger than {bytes_max} bytes (http.max_request_bytes)");
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

    /// Everything between looking up and storing: pure work on one message.
    pub(crate) fn prepare(
        &self,
        ctx: &RequestContext,
        request: &MessageRequest<'_>,
        around: &Surroundings,
        idempotency: Option<(DedupKind, String)>,
        payload: Bytes,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        guarded(&ctx.tenant, &ctx.request_id, || {
            let limits = self.limits.of(&around.house.settings.content);
            let mut checked = check(request, around, &limits, now)?;
            let keyed = idempotency.is_some() || checked.terms.client_id.is_some();
            let fingerprint = if keyed { fingerprint(request, &[])? } else { [0; 32] };
            let mail = self.mail(&mut checked, around, payload.len(), now)?;
            let (tenant, request_id) = (&ctx.tenant, ctx.request_id.as_str());
            let on_doubt = ctx.on_doubt_by(&checked.route, &around.house);
            let origin = Origin { tenant, request_id, idempotency, fingerprint, payload, on_doubt, now };
            assemble(origin, checked.terms, &checked.route, mail, limits.message_bytes_max)
        })
    }

    /// The mail of a checked request: composed, unless something must be fetched for it first.
    fn mail(
        &self,
        checked: &mut Checked<'_>,
        around: &Surroundings,
        payload_bytes: usize,
        now: Time,
    ) -> Result<Mail, Refusal> {
        let from = checked.from.address();
        let names = self.new_names(now, from);
        let recipients = checked.recipients.envelope();
        let sender = EnvelopeSender {
            given: checked.return_path.as_ref(),
            route: &checked.route,
            house: &around.house,
            uid: names.uid,
            verp_key: &self.verp_key,
            from,
        };
        let sender = sender.to(&recipients);
        let (composed, settled) = if checked.needs_preparation() {
            let template_version = checked.content.template.as_ref().map(|(_, version)| *version);
            let settled = Settled {
                template_version,
                smtputf8: needs_smtputf8(&sender, &recipients),
                any_subject: around.any_subject,
                spoken_times: around.spoken_times,
                is_stored: false,
            };
            (None, Some(serde_json::to_string(&settled).expect("a number and flags are JSON")))
        } else {
            self.add_unsubscribe(checked, &around.house, &names);
            let attachments = attachments_here(checked);
            (Some(compose_checked(checked, &attachments, &names, now, &around.signers)?), None)
        };
        Ok(Mail {
            names,
            subject: checked.content.subject.to_string(),
            sender,
            recipients,
            composed,
            known_recipient: checked.known_recipient,
            sensitive: checked.sensitive,
            validated: validated(checked, CheckedAs::Request, payload_bytes),
            settled,
        })
    }

    /// New names for mail from this address, higher than those given before.
    pub(crate) fn new_names(&self, now: Time, from: &EmailAddress) -> Names {
        Names::stamped(self.uids.next(now, &mut rand::rng()), from, &self.mail_domain)
    }

    /// Stores one message, unless this is a dry run.
    pub(crate) async fn store_one(
        &self,
        ctx: &RequestContext,
        message: NewMessage,
    ) -> Result<Receipt, Refusal> {
        let _in_hand = self.hold(ctx, &message)?;
        let mut receipts = self.store_all(ctx, vec![message]).await?;
        receipts.pop().unwrap_or_else(|| Err(StoreError::Unexpected("it gave no answer".to_owned()).into()))
    }

    /// Counts a composed message until it is stored.
    fn hold(&self, ctx: &RequestContext, message: &NewMessage) -> Result<Option<FairShare>, Refusal> {
        let bytes = in_hand_bytes(message);
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(None);
        }
        let held = self.in_hand.take(&ctx.tenant, bytes.min(self.in_hand.tenant_max()));
        held.map(Some).ok_or_else(|| Refusal::busy("too many messages wait to be stored at once"))
    }

    /// Stores messages together, unless this is a dry run; one answer each, in order.
    pub(crate) async fn store_all(
        &self,
        ctx: &RequestContext,
        mut messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Receipt, Refusal>>, Refusal> {
        if ctx.dry_run {
            return self.rehearse_storing(ctx, &messages).await;
        }
        let names: Vec<_> = messages.iter().map(|message| (message.client_id.clone(), message.uid)).collect();
        for message in &mut messages {
            self.shelve(message).await?;
        }
        let starts: Vec<_> = messages.iter().map(|message| message.state.status()).collect();
        let answers = self.store.accept(messages).await?;
        if answers.len() != names.len() {
            return Err(StoreError::Unexpected("it did not answer for every message".to_owned()).into());
        }
        // It is the call's key, and refuses all that the call brought.
        if answers.contains(&Acceptance::Conflict { kind: DedupKind::Batch }) {
            return Err(conflict(DedupKind::Batch));
        }
        count_states(answers.iter().zip(starts).filter_map(|(answer, start)| match answer {
            Acceptance::Accepted { .. } => Some(start),
            Acceptance::Suppressed => Some(Status::Suppressed),
            Acceptance::Repeat { .. } | Acceptance::Conflict { .. } | Acceptance::AccountGone => None,
        }));
        let receipts = names.into_iter().zip(answers);
        Ok(receipts.map(|((id, uid), answer)| receipt(id, uid, answer, ctx.passed())).collect())
    }

    /// Puts large bodies into blobs. They are there before the message is.
    async fn shelve(&self, message: &mut NewMessage) -> Result<(), StoreError> {
        let content = &mut message.content;
        for body in [Some(&mut content.raw), content.payload.as_mut()].into_iter().flatten() {
            if let Body::Inline(bytes) = body {
                let bytes = std::mem::take(bytes);
                *body = self.keep(&message.lane.tenant, bytes, message.created_at).await?;
            }
        }
        Ok(())
    }

    /// Stores the bytes inline or as a blob, depending on their number.
    pub(crate) async fn keep(&self, tenant: &TenantId, bytes: Bytes, now: Time) -> Result<Body, StoreError> {
        Ok(self.depot.keep(&*self.store, tenant, bytes, self.limits.inline_bytes_max, now).await?)
    }

    /// The bytes of a tenant's body, wherever they are.
    pub async fn resolve(&self, tenant: &TenantId, body: Body) -> Result<Bytes, StoreError> {
        Ok(self.depot.resolve(tenant, body).await?)
    }
}

/// How heavy the work on a request is that has this many bytes, in a house that makes texts of html or does not.
pub(crate) fn weight(request: &MessageRequest<'_>, bounds: &ContentLimits, bytes: usize) -> usize {
    let variables = request.template.as_ref().and_then(|template| template.0.variables);
    let variables = variables.map_or(0, |json| json.get().len().saturating_mul(VARIABLES_WEIGHT));
    let is_laid_out = request.text.is_none() && request.auto_text.unwrap_or(bounds.auto_text);
    let html = request.html.as_deref().filter(|_| is_laid_out).map_or(0, str::len);
    bytes.max(variables).max(html.saturating_mul(LAYOUT_WEIGHT))
}

/// What a composed message takes besides the request that it came with.
pub(crate) fn in_hand_bytes(message: &NewMessage) -> usize {
    let raw = match &message.content.raw {
        Body::Inline(bytes) => bytes.len(),
        Body::Blob(_) => 0,
    };
    raw + message.recipients.len() * RECIPIENT_BYTES
}

/// Counts where new messages stand, besides that they are accepted.
fn count_states(starts: impl Iterator<Item = Status>) {
    let mut entered: BTreeMap<Status, u64> = BTreeMap::new();
    for start in starts {
        *entered.entry(Status::Accepted).or_default() += 1;
        if start != Status::Accepted {
            *entered.entry(start).or_default() += 1;
        }
    }
    for (status, count) in entered {
        count_entered(status, count);
    }
}

fn is_idempotency_key(key: &str) -> bool {
    (1..=IDEMPOTENCY_KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}
