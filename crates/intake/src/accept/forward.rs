//! Forwarded mail: inbound mail that a rule sends on.
//!
//! It passes the same door as all other mail: an account of the tenant sends it, the envelope sender is the
//! tenant's, and it is stored in the same way. Its key identifies it alone, whatever its bytes are: if the
//! same mail was forwarded before, that message is the answer, even if the rule has changed since.
//!
//! It is signed only if the tenant is its author. A mail that is resent keeps the author that a stranger
//! wrote into it, and a signature of the tenant's domain would vouch for that author; the stranger's own
//! signature, if there is one, stays in the mail.

use std::fmt;

use bytes::Bytes;
use postway_domain::{AccountId, MessageUid, NamedAddress, Time, id::BatchCode, route::RouteFacts};
use postway_mime::ComposedMail;
use postway_store::record::{DedupKind, NewMessage};

use super::{
    check::{self, CheckedRecipients, MessageTerms, allowed::SenderBounds},
    choose::{ChosenAccount, choose_account},
    compose::{AssembledMail, MessageOrigin, assemble, fingerprint, sign},
    context::{AcceptReceipt, RequestContext},
    door::Door,
};
use crate::{
    budget::catch_panic,
    cache::settings_cache::{DomainSigners, TenantProfile},
    refusal::{FieldFaults, Refusal},
};

/// Composes a mail once its names are known, or says why it cannot.
pub type ForwardComposer<'m> =
    Box<dyn FnOnce(&ForwardNames<'_>) -> Result<ComposedForward, String> + Send + 'm>;

/// A composed mail to forward.
#[derive(Debug)]
pub struct ComposedForward {
    /// The composed mail.
    pub composed: ComposedMail,
    /// Whether its author is the forwarder. Only then may the tenant's keys sign it.
    pub is_our_own: bool,
}

/// The names and the time that a forwarded mail is composed with.
#[derive(Clone, Copy, Debug)]
pub struct ForwardNames<'a> {
    /// The Message-ID, without brackets.
    pub message_id: &'a str,
    /// The uid as text.
    pub uid: &'a str,
    /// The current time, in seconds since 1970.
    pub date_unix: i64,
}

/// A request to forward a mail.
pub struct ForwardRequest<'m> {
    /// The forwarder: its domain signs the mail if it is the author, and failures go to it if the tenant says
    /// nothing else.
    pub from: NamedAddress,
    /// The recipients.
    pub to: Vec<NamedAddress>,
    /// The account to send by; the tenant's default when absent.
    pub account: Option<AccountId>,
    /// The subject, for lists.
    pub subject: String,
    /// The batch of the message: the messages of an ordered batch leave one after the other.
    pub batch: Option<BatchCode>,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// The external id, for lists.
    pub external_id: Option<String>,
    /// The approximate size of the mail, in bytes.
    pub size: usize,
    /// Composes the mail.
    pub make: ForwardComposer<'m>,
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
    /// Accepts a mail to forward. It is durable when this returns. `ctx` must have an idempotency key, so
    /// that all tries make one message.
    pub async fn accept_forward(
        &self,
        ctx: &RequestContext,
        request: ForwardRequest<'_>,
    ) -> Result<AcceptReceipt, Refusal> {
        let (mut span, ctx) = ctx.begin_accept();
        let taken = self.take_forward(&ctx, request).await;
        taken.inspect_err(|refusal| refusal.count_in(&mut span))
    }

    async fn take_forward(
        &self,
        ctx: &RequestContext,
        request: ForwardRequest<'_>,
    ) -> Result<AcceptReceipt, Refusal> {
        self.check_request(ctx, 0)?;
        let account = request.account.as_ref().map(AccountId::as_str);
        let mut errors = FieldFaults::default();
        let named = self.lookup.account_for(ctx, account).await?;
        let profile = self.lookup.settings.profile(&ctx.tenant).await?;
        let now = self.clock.now();
        let uid = self.builder.new_forward_uid(now);
        let facts = RouteFacts {
            sender_domain: Some(request.from.address().domain()),
            recipient_domains: request.to.iter().map(|to| to.address().domain()).collect(),
            tags: &request.tags,
            batch: request.batch.as_ref(),
            ..RouteFacts::default()
        };
        let account = choose_account(named, &profile, account.is_none(), || facts, uid);
        let account = errors.take("account", account);
        let signers = self.lookup.settings.signers(&ctx.tenant, request.from.address().domain()).await?;
        check::check_recipient_count(request.to.len(), &self.limits, &mut errors);
        // The restrictions apply to the forwarder, not to the author of the original mail.
        let bounds = SenderBounds { tenant: &profile.settings, key: None };
        bounds.check_sender("from", request.from.address().as_str(), &mut errors);
        let (Some(account), true) = (account, errors.is_empty()) else { return Err(errors.into_refusal()) };
        let size = request.size;
        let message = self.heavy.run(&ctx.tenant, size, || {
            catch_panic(&ctx.tenant, &ctx.request_id, || {
                self.build_forward(
                    ctx,
                    request,
                    ForwardLookup { account: &account, uid, profile: &profile, signers: &signers },
                    now,
                )
            })
        });
        let message = message.await??;
        self.writer.store_one(ctx, message).await
    }

    fn build_forward(
        &self,
        ctx: &RequestContext,
        request: ForwardRequest<'_>,
        looked_up: ForwardLookup<'_>,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        let limits = self.limits.for_tenant(&looked_up.profile.settings.content);
        let names = self.builder.names(looked_up.uid, request.from.address());
        let given =
            ForwardNames { message_id: &names.message_id, uid: &names.uid_text, date_unix: now.as_seconds() };
        let ComposedForward { mut composed, is_our_own } =
            (request.make)(&given).map_err(|why| Refusal::field("", why))?;
        if is_our_own {
            sign(&mut composed.bytes, looked_up.signers, looked_up.account, now)?;
        }
        let key = ctx.idempotency_key.clone();
        let fingerprint = fingerprint(&key, b"forward")?;
        let recipients = CheckedRecipients { to: request.to, ..CheckedRecipients::default() };
        let envelope = recipients.envelope();
        let parties = (&**looked_up.account, looked_up.profile);
        let sender = self.builder.envelope_sender(None, parties, names.uid, request.from.address());
        let mut subject = request.subject;
        // This copy is for lists only; the mail has the full subject.
        subject.truncate(subject.floor_char_boundary(limits.subject_bytes_max));
        let mail = AssembledMail {
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
        let terms = MessageTerms { batch, tags, external_id, ..MessageTerms::default() };
        let origin = MessageOrigin {
            tenant: &ctx.tenant,
            request_id: &ctx.request_id,
            idempotency: key.map(|key| (DedupKind::Request, key)),
            fingerprint,
            payload: Bytes::new(),
            on_doubt: ctx.on_doubt_for(looked_up.account, looked_up.profile),
            now,
        };
        let mut message = assemble(origin, terms, looked_up.account, mail, limits.message_bytes_max)?;
        // There was no request: the original is stored with the inbound mail.
        message.content.payload = None;
        Ok(message)
    }
}

/// The settings that were looked up for a forwarded mail.
struct ForwardLookup<'a> {
    account: &'a ChosenAccount,
    uid: MessageUid,
    profile: &'a TenantProfile,
    signers: &'a DomainSigners,
}
