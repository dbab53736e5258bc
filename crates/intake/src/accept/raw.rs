//! Finished mail: the header names sender and recipients, and the caller adds options.
//!
//! The mail is carried, not judged. If the envelope names the recipients, those in the header are ignored. An
//! author without a usable address is completed ([`author`]). What no server would accept is encoded, and the
//! event `validated` lists each change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use postway_domain::{
    EmailAddress, MessagePriority, MessageUid, NamedAddress, Time, dsn::DsnWishes, id::BatchCode,
    route::RouteFacts,
};
use postway_mime::{
    ComposedMail, FinishedRaw, RawChange, RawError, RawFinish, RawInfo, SmtpTrace, finish_raw, gist,
    inspect_raw,
};
use postway_store::record::{DedupKind, NewMessage};
use serde::Serialize;

use super::{
    check::{self, CheckedRecipients, ReturnPath, allowed::SenderBounds, priority_of, terms},
    choose::{ChosenAccount, choose_account},
    compose::{AssembledMail, MessageOrigin, assemble, fingerprint, sign},
    context::{AcceptReceipt, RequestContext},
    door::Door,
    parse::request::{AddressList, JsonList, JsonScalar, JsonText, MessageInput},
    store::DedupKeys,
};
use crate::{
    budget::catch_panic,
    cache::settings_cache::{DomainSigners, SendingAccount, TenantProfile},
    limits::IntakeLimits,
    refusal::{FieldFaults, Refusal},
};

/// The options of a finished mail; each has the same meaning as in a JSON message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RawOptions {
    /// The client's id.
    pub id: Option<String>,
    /// The account to send by.
    pub account: Option<String>,
    /// The batch it belongs to.
    pub batch: Option<String>,
    /// The priority: 0 to 3, or its name.
    pub priority: Option<String>,
    /// The mail is not sent before this time.
    pub send_at: Option<String>,
    /// The mail is not sent after this time.
    pub expires_at: Option<String>,
    /// What to do in doubt: `resend` or `hold`. It is left out of the fingerprint if it is absent, because
    /// earlier versions did not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<String>,
    /// The reports to ask relays for, if the client has not asked for any in SMTP's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsn_request: Option<String>,
    /// The envelope sender, instead of the mail's From; empty for the null sender. The mail itself is not
    /// changed.
    pub from: Option<String>,
    /// The envelope recipients, instead of the mail's To, Cc and Bcc. The mail itself is not changed.
    pub to: Vec<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// Whether the mail is sensitive: its content cannot be read here, and is erased once it is sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Metadata that the client searches by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Which delivery reports to request (RFC 3461); a repeat may differ here.
    #[serde(skip)]
    pub dsn: Option<DsnWishes>,
}

impl RawOptions {
    /// The options in the shape that the checks know.
    fn as_request(&self) -> MessageInput<'_> {
        fn text(given: &Option<String>) -> Option<JsonText<'_>> {
            given.as_deref().map(JsonText::from)
        }
        fn scalar(given: &Option<String>) -> Option<JsonScalar<'_>> {
            text(given).map(JsonScalar::Text)
        }
        MessageInput {
            id: text(&self.id),
            account: text(&self.account),
            batch: text(&self.batch),
            priority: scalar(&self.priority),
            send_at: scalar(&self.send_at),
            expires_at: scalar(&self.expires_at),
            on_doubt: text(&self.on_doubt),
            dsn: text(&self.dsn_request),
            to: (!self.to.is_empty()).then(|| AddressList {
                list: self.to.iter().map(|to| to.as_str().into()).collect(),
                single: false,
            }),
            tags: Some(JsonList(self.tags.iter().map(|tag| tag.as_str().into()).collect())),
            ..MessageInput::default()
        }
    }
}

/// What routes compare of a finished mail, as far as it can be read. What cannot be read is refused later.
#[derive(Default)]
struct RawFacts {
    sender_domain: Option<String>,
    recipient_domains: Vec<String>,
    batch: Option<BatchCode>,
    priority: MessagePriority,
}

impl RawFacts {
    fn read(options: &RawOptions, info: &RawInfo) -> Self {
        let parse = |text: &String| text.parse::<NamedAddress>().ok();
        let domain = |mailbox: &NamedAddress| mailbox.address().domain().to_owned();
        let sender = info.from.as_ref().map(domain);
        let given: Vec<String> = options.to.iter().filter_map(parse).map(|to| domain(&to)).collect();
        let named = || [&info.to, &info.cc, &info.bcc].into_iter().flatten().map(domain).collect();
        Self {
            sender_domain: sender.or_else(|| options.from.as_ref().and_then(parse).map(|from| domain(&from))),
            recipient_domains: if options.to.is_empty() { named() } else { given },
            batch: options.batch.as_ref().and_then(|code| code.parse().ok()),
            priority: options.priority.as_ref().and_then(|text| priority_of(text).ok()).unwrap_or_default(),
        }
    }

    fn facts<'m>(&'m self, options: &'m RawOptions) -> RouteFacts<'m> {
        RouteFacts {
            sender_domain: self.sender_domain.as_deref(),
            recipient_domains: self.recipient_domains.iter().map(String::as_str).collect(),
            tags: &options.tags,
            batch: self.batch.as_ref(),
            priority: self.priority,
        }
    }
}

impl Door {
    /// Accepts a finished RFC 5322 mail. It is durable when this returns.
    pub async fn accept_raw(
        &self,
        ctx: &RequestContext,
        options: RawOptions,
        body: Bytes,
    ) -> Result<AcceptReceipt, Refusal> {
        let (mut span, ctx) = ctx.begin_accept();
        let taken = self.take_raw(&ctx, &options, &body, None).await;
        taken.inspect_err(|refusal| refusal.count_in(&mut span))
    }

    /// Accepts a mail that was submitted over SMTP. It gets a trace field. An envelope sender that equals the
    /// author's address is not a deliberate choice, so failures go where the account or the tenant wants
    /// them. A repeat is recognised by a fingerprint of its content: a client that tries again over SMTP
    /// usually composes the mail anew.
    pub(crate) async fn accept_submitted(
        &self,
        ctx: &RequestContext,
        options: RawOptions,
        body: Bytes,
        trace: SmtpTrace<'_>,
    ) -> Result<AcceptReceipt, Refusal> {
        let (mut span, ctx) = ctx.begin_accept();
        let taken = self.take_raw(&ctx, &options, &body, Some(trace)).await;
        taken.inspect_err(|refusal| refusal.count_in(&mut span))
    }

    async fn take_raw(
        &self,
        ctx: &RequestContext,
        options: &RawOptions,
        body: &Bytes,
        trace: Option<SmtpTrace<'_>>,
    ) -> Result<AcceptReceipt, Refusal> {
        self.check_request(ctx, body.len())?;
        if body.len() > self.limits.message_bytes_max {
            return Err(Refusal::message_too_large(self.limits.message_bytes_max));
        }
        match self.look_up_and_build_raw(ctx, options, body, trace).await {
            Ok(message) => self.store_one(ctx, message).await,
            Err(refusal) => {
                let key = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
                let keys = DedupKeys::new(key, options.id.as_deref());
                let submitted = trace.is_some();
                self.writer
                    .repeat_or_refusal(ctx, keys, || repeat_fingerprint(options, body, submitted), refusal)
                    .await
            }
        }
    }

    /// Looks up what the mail needs, and builds the message.
    async fn look_up_and_build_raw(
        &self,
        ctx: &RequestContext,
        options: &RawOptions,
        body: &Bytes,
        trace: Option<SmtpTrace<'_>>,
    ) -> Result<NewMessage, Refusal> {
        let now = self.clock.now();
        let inspected = self.heavy.run(&ctx.tenant, body.len(), || inspect_raw(body)).await?;
        let mut info = inspected.map_err(|error| refused(&error))?;
        // A mail without a proper header still has a body. Over SMTP it is accepted; elsewhere it is most
        // likely the wrong file.
        if let Some(fault) = info.bad_header.take().filter(|_| trace.is_none()) {
            return Err(refused(&fault));
        }
        let named = self.lookup.account_for(ctx, options.account.as_deref()).await?;
        let profile = self.lookup.settings.profile(&ctx.tenant).await?;
        let uid = self.builder.new_uid(now);
        let by_routes = options.account.is_none();
        let known = match by_routes && !profile.routes.is_empty() {
            true => RawFacts::read(options, &info),
            false => RawFacts::default(),
        };
        let account = choose_account(named, &profile, by_routes, || known.facts(options), uid);
        let completed = match &info.from {
            Some(_) => None,
            None => author(&info, options, account.as_deref().ok(), &profile),
        };
        let signers = match info.from.as_ref().or(completed.as_ref()) {
            Some(from) => self.lookup.settings.signers(&ctx.tenant, from.address().domain()).await?,
            None => DomainSigners::default(),
        };
        let looked_up = RawLookup { account, uid, profile, signers, info, completed, trace };
        let prepare = || {
            catch_panic(&ctx.tenant, &ctx.request_id, || self.build_raw(ctx, options, body, looked_up, now))
        };
        self.heavy.run(&ctx.tenant, body.len(), prepare).await?
    }

    fn build_raw(
        &self,
        ctx: &RequestContext,
        options: &RawOptions,
        body: &Bytes,
        looked_up: RawLookup<'_>,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        let RawLookup { account, uid, profile, signers, info, completed, trace } = looked_up;
        let limits = self.limits.for_tenant(&profile.settings.content);
        let mut errors = FieldFaults::default();
        let request = options.as_request();
        let recipients = recipients(&request, &info, &limits, &mut errors);
        let return_path = options.from.as_deref().and_then(|from| match from {
            "" | "<>" => Some(ReturnPath::Null),
            from => {
                let mailbox = errors.take("from", from.parse::<NamedAddress>())?;
                Some(ReturnPath::Address(mailbox.into_address()))
            }
        });
        let bounds = SenderBounds { tenant: &profile.settings, key: ctx.restrictions.as_deref() };
        if let Some(ReturnPath::Address(path)) = &return_path {
            bounds.check_sender("from", path.as_str(), &mut errors);
        }
        bounds.check_recipients(recipients.named(), &mut errors);
        let from = info.from.as_ref().or(completed.as_ref());
        if from.is_none() {
            errors.add(
                "from",
                "the mail's From names nobody with an address, and neither does its envelope sender: add one, or give the \
                 account or the tenant a return_path",
            );
        }
        let account = errors.take("account", account);
        let mut terms = terms(&request, &limits, (now, false), &mut errors);
        if !options.metadata.is_empty() {
            let metadata = serde_json::json!(options.metadata).to_string();
            match metadata.len() <= limits.metadata_bytes_max {
                true => terms.metadata = Some(metadata),
                false => errors
                    .add("metadata", format!("must be at most {} bytes of JSON", limits.metadata_bytes_max)),
            }
        }
        let (Some(account), Some(from), true) = (account, from, errors.is_empty()) else {
            return Err(errors.into_refusal());
        };
        let idempotency = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
        let keyed = idempotency.is_some() || terms.client_id.is_some();
        let fingerprint = if keyed { repeat_fingerprint(options, body, trace.is_some())? } else { [0; 32] };
        let mut names = self.builder.names(uid, from.address());
        let envelope = recipients.envelope();
        let unsubscribe = match envelope.as_slice() {
            [reader] => self.builder.unsubscribe_fields(
                &profile,
                terms.batch.as_ref(),
                names.uid,
                reader.address.as_str(),
            ),
            _ => None,
        };
        let finish = RawFinish {
            unsubscribe: unsubscribe.as_ref().map_or(&[], |unsubscribe| &unsubscribe.fields),
            message_id: &names.message_id,
            uid: &names.uid_text,
            date_unix: now.as_seconds(),
            author: completed.as_ref(),
            trace,
            is_to_be_signed: signers.iter().next().is_some(),
        };
        let finished = finish_raw(body, &finish).map_err(|error| refused(&error))?;
        let FinishedRaw { mut bytes, message_id, eight_bit, smtputf8, changes } = finished;
        bounds.check_sender("from", from.address().as_str(), &mut errors);
        bounds.check_mail(&bytes, &mut errors);
        if !errors.is_empty() {
            return Err(errors.into_refusal());
        }
        names.message_id = message_id;
        let wished = return_path.filter(
            |path| !matches!(path, ReturnPath::Address(to) if trace.is_some() && to == from.address()),
        );
        sign(&mut bytes, &signers, &account, now)?;
        let mut subject = info.subject.unwrap_or_default();
        // This copy is for lists only; the mail has the full subject.
        subject.truncate(subject.floor_char_boundary(limits.subject_bytes_max));
        let parties = (&*account, &*profile);
        let sender = self.builder.envelope_sender(wished.as_ref(), parties, names.uid, from.address());
        let mail = AssembledMail {
            sender: sender.to(&envelope),
            names,
            subject,
            composed: Some(ComposedMail { bytes, eight_bit, smtputf8 }),
            recipients: envelope,
            known_recipient: None,
            sensitive: options.sensitive,
            validated: validated(body.len(), recipients.len(), &changes),
            settled: None,
        };
        let (tenant, request_id) = (&ctx.tenant, ctx.request_id.as_str());
        let payload = body.clone();
        let on_doubt = ctx.on_doubt_for(&account, &profile);
        let origin = MessageOrigin { tenant, request_id, idempotency, fingerprint, payload, on_doubt, now };
        let mut message = assemble(origin, terms, &account, mail, limits.message_bytes_max)?;
        // What the client said in SMTP's own words comes before a header.
        if options.dsn.is_some() {
            message.content.dsn = options.dsn.clone();
        }
        Ok(message)
    }
}

/// The settings that were looked up for a finished mail, and what its header says.
struct RawLookup<'a> {
    account: Result<ChosenAccount, String>,
    uid: MessageUid,
    profile: Arc<TenantProfile>,
    signers: DomainSigners,
    info: RawInfo,
    /// The author that is filled in if the mail names none with an address.
    completed: Option<NamedAddress>,
    /// The SMTP session that brought the mail, if there was one.
    trace: Option<SmtpTrace<'a>>,
}

/// The author for a mail that names none with an address (RFC 6409, 8.1): its envelope sender, else the
/// return path of the account or the tenant. The display name is preserved.
fn author(
    info: &RawInfo,
    options: &RawOptions,
    account: Option<&SendingAccount>,
    profile: &TenantProfile,
) -> Option<NamedAddress> {
    let envelope = options.from.as_deref().and_then(|from| from.parse::<NamedAddress>().ok());
    let stored =
        [account.and_then(|account| account.return_path.as_deref()), profile.settings.return_path.as_deref()];
    let address: EmailAddress = match envelope {
        Some(sender) => sender.into_address(),
        None => stored.into_iter().flatten().find_map(|path| path.parse().ok())?,
    };
    let named = NamedAddress::new(info.from_name.as_deref(), address.clone());
    named.or_else(|_| NamedAddress::new(None, address)).ok()
}

/// The data of the event `validated`: what was checked and what was changed.
pub(crate) fn validated(bytes: usize, recipients: usize, changes: &BTreeSet<RawChange>) -> String {
    let mut data = format!(
        "{{\"checks\":[{{\"check\":\"INTEGRITY\",\"bytes\":{bytes}}},\
         {{\"check\":\"RECIPIENT\",\"recipients\":{recipients}}}]"
    );
    if !changes.is_empty() {
        let words: Vec<_> = changes.iter().map(|change| change.as_str()).collect();
        data += &format!(",\"changes\":{}", serde_json::json!(words));
    }
    data.push('}');
    data
}

/// The envelope recipients: those given, each with the kind that the mail's header gives it, or else those of
/// the header.
fn recipients(
    request: &MessageInput<'_>,
    info: &RawInfo,
    limits: &IntakeLimits,
    errors: &mut FieldFaults,
) -> CheckedRecipients {
    if request.to.is_none() {
        if let Some(fault) = &info.bad_recipient {
            errors.add(field_of(fault), fault.to_string());
            return CheckedRecipients::default();
        }
        let named = CheckedRecipients { to: info.to.clone(), cc: info.cc.clone(), bcc: info.bcc.clone() };
        check::check_recipient_count(named.len(), limits, errors);
        return named;
    }
    let given = check::recipients(request, limits, errors).to;
    let names = |list: &[NamedAddress], mailbox: &NamedAddress| {
        list.iter().any(|other| other.address() == mailbox.address())
    };
    let (to, rest): (Vec<_>, Vec<_>) = given.into_iter().partition(|mailbox| names(&info.to, mailbox));
    let (cc, bcc) = rest.into_iter().partition(|mailbox| names(&info.cc, mailbox));
    CheckedRecipients { to, cc, bcc }
}

/// The fingerprint that a repeat shares with the original.
fn repeat_fingerprint(options: &RawOptions, body: &[u8], submitted: bool) -> Result<[u8; 32], Refusal> {
    match submitted {
        true => fingerprint(options, &gist(body)),
        false => fingerprint(options, body),
    }
}

/// The refusal of a mail, for the field of the request that its fault belongs to.
fn refused(error: &RawError) -> Refusal {
    Refusal::field(field_of(error), error.to_string())
}

fn field_of(error: &RawError) -> String {
    match error {
        RawError::Address { field, .. } => field.to_ascii_lowercase().replace('-', "_"),
        RawError::NoHeader
        | RawError::Malformed { .. }
        | RawError::HeaderTooLong
        | RawError::Signed
        | RawError::Nul { .. } => "body".to_owned(),
        RawError::Id(_) => String::new(),
    }
}
