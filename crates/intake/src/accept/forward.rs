//! Mail that is sent on: made by somebody inside, not asked for by a client.
//!
//! It comes through the same door as all other mail: an account of its tenant sends it, its envelope sender is the
//! tenant's, it is stored in the same way. Its key stands for it alone, whatever its bytes are: where the same mail was
//! sent on before, that message is the answer, also if a rule says something else by now.
//!
//! It is signed only where the tenant is its author. A mail that is resent keeps the author that a stranger wrote into it, and a
//! signature of the tenant's domain would make that true; the stranger's own signature, where there is one, goes along.

use std::fmt;

use bytes::Bytes;
use postway_domain::{AccountId, Mailbox, Time, id::BatchCode};
use postway_mime::Composed;
use postway_store::record::{DedupKind, NewMessage};

use super::{
    check::{self, Recipients, Terms, allowed::SenderBounds},
    compose::{Mail, Origin, assemble, fingerprint, sign},
    context::{Receipt, RequestContext},
    door::Door,
};
use crate::{
    budget::catch_panic,
    cache::settings_cache::{House, Route, Signers},
    refusal::{Findings, Refusal},
};

/// Makes the bytes of a mail, once its names are known; or says why it cannot.
pub type Make<'m> = Box<dyn FnOnce(&Given<'_>) -> Result<MadeForward, String> + Send + 'm>;

/// A mail to send on, as it was made.
#[derive(Debug)]
pub struct MadeForward {
    /// Its bytes.
    pub composed: Composed,
    /// Whether its author is the forwarder. Only then may the tenant's keys sign it.
    pub is_our_own: bool,
}

/// What a mail is made with.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its Message-ID, without brackets.
    pub message_id: &'a str,
    /// Its uid as text.
    pub uid: &'a str,
    /// Now, in seconds since 1970.
    pub date_unix: i64,
}

/// A mail to send on.
pub struct ForwardRequest<'m> {
    /// Who sends it on: whose domain signs it where it is the author, and where failures go if the tenant says nothing else.
    pub from: Mailbox,
    /// To whom.
    pub to: Vec<Mailbox>,
    /// The account to send by; the tenant's default when absent.
    pub account: Option<AccountId>,
    /// The subject, for lists.
    pub subject: String,
    /// The batch it is part of: those of one that is in order leave one after the other.
    pub batch: Option<BatchCode>,
    /// Labels.
    pub tags: Vec<String>,
    /// The client's reference, for lists.
    pub external_id: Option<String>,
    /// About how many bytes it will have.
    pub size: usize,
    /// Makes it.
    pub make: Make<'m>,
}

impl fmt::Debug for ForwardRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardRequest")
            .field("account", &self.account)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// Takes a mail that is sent on. It is durable when this returns. The key in `ctx` must be there: it makes one message
    /// of all tries.
    pub async fn accept_forward(
        &self,
        ctx: &RequestContext,
        request: ForwardRequest<'_>,
    ) -> Result<Receipt, Refusal> {
        let taken = self.take_forward(ctx, request).await;
        taken.inspect_err(Refusal::count)
    }

    async fn take_forward(
        &self,
        ctx: &RequestContext,
        request: ForwardRequest<'_>,
    ) -> Result<Receipt, Refusal> {
        self.check_request(ctx, 0)?;
        let account = request.account.as_ref().map(AccountId::as_str);
        let mut findings = Findings::default();
        let route = findings.take("account", self.lookup.route_for(ctx, account).await?);
        let house = self.lookup.settings.house(&ctx.tenant).await?;
        let signers = self.lookup.settings.signers(&ctx.tenant, request.from.address().domain()).await?;
        check::fits(request.to.len(), &self.limits, &mut findings);
        // Who sends it on is bound; whoever wrote it is not ours to bind.
        let bounds = SenderBounds { tenant: &house.settings, key: None };
        bounds.check_sender("from", request.from.address().as_str(), &mut findings);
        let (Some(route), true) = (route, findings.is_empty()) else { return Err(findings.into_refusal()) };
        let now = self.clock.now();
        let size = request.size;
        let message = self.heavy.run(&ctx.tenant, size, || {
            catch_panic(&ctx.tenant, &ctx.request_id, || {
                self.prepare_forward(
                    ctx,
                    request,
                    Around { route: &route, house: &house, signers: &signers },
                    now,
                )
            })
        });
        let message = message.await??;
        self.writer.store_one(ctx, message).await
    }

    fn prepare_forward(
        &self,
        ctx: &RequestContext,
        request: ForwardRequest<'_>,
        around: Around<'_>,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        let limits = self.limits.of(&around.house.settings.content);
        let names = self.builder.new_forward_names(now, request.from.address());
        let given =
            Given { message_id: &names.message_id, uid: &names.uid_text, date_unix: now.as_seconds() };
        let MadeForward { mut composed, is_our_own } =
            (request.make)(&given).map_err(|why| Refusal::field("", why))?;
        if is_our_own {
            sign(&mut composed.bytes, around.signers, around.route, now)?;
        }
        let key = ctx.idempotency_key.clone();
        let fingerprint = fingerprint(&key, b"forward")?;
        let recipients = Recipients { to: request.to, ..Recipients::default() };
        let envelope = recipients.envelope();
        let parties = (around.route, around.house);
        let sender = self.builder.envelope_sender(None, parties, names.uid, request.from.address());
        let mut subject = request.subject;
        // Kept for lists only, and the mail has all of it.
        subject.truncate(subject.floor_char_boundary(limits.subject_bytes_max));
        let mail = Mail {
            names,
            subject,
            sender: sender.to(&envelope),
            recipients: envelope,
            validated: format!(
                "{{\"checks\":[{{\"check\":\"INTEGRITY\",\"bytes\":{}}},{{\"check\":\"RECIPIENT\",\"recipients\":{}}}]}}",
                composed.bytes.len(),
                recipients.len(),
            ),
            composed: Some(composed),
            known_recipient: None,
            sensitive: false,
            settled: None,
        };
        let ForwardRequest { batch, tags, external_id, .. } = request;
        let terms = Terms { batch, tags, external_id, ..Terms::default() };
        let origin = Origin {
            tenant: &ctx.tenant,
            request_id: &ctx.request_id,
            idempotency: key.map(|key| (DedupKind::Request, key)),
            fingerprint,
            payload: Bytes::new(),
            on_doubt: ctx.on_doubt_for(around.route, around.house),
            now,
        };
        let mut message = assemble(origin, terms, around.route, mail, limits.message_bytes_max)?;
        // Nobody submitted a request: what it was made of is kept with the mail that came in.
        message.content.payload = None;
        Ok(message)
    }
}

/// What was looked up for it.
struct Around<'a> {
    route: &'a Route,
    house: &'a House,
    signers: &'a Signers,
}
