//! Ready-made mail: its header says from whom and to whom, its sender says the rest.
//!
//! Carried, not judged. Where the envelope names the recipients, the header's are not looked at; an author without a usable
//! address is completed ([`author`]); what no server would take is encoded, and each change is told in the event `validated`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use postway_domain::{EmailAddress, Mailbox, Time, dsn::DsnWishes};
use postway_mime::{
    Composed, FinishedRaw, RawChange, RawError, RawFinish, RawInfo, Trace, finish_raw, gist, inspect_raw,
};
use postway_store::record::{DedupKind, NewMessage};
use serde::Serialize;

use super::{
    check::{self, Recipients, ReturnPath, allowed::SenderBounds, terms},
    compose::{Mail, Origin, assemble, fingerprint, sign},
    context::{Receipt, RequestContext},
    door::Door,
    parse::request::{Addresses, List, MessageRequest, Scalar, Text},
    store::Keys,
};
use crate::{
    budget::catch_panic,
    cache::settings_cache::{House, Lookup, Route, Signers},
    limits::Limits,
    refusal::{Findings, Refusal},
};

/// What goes with a ready-made mail; each as in a message given as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RawOptions {
    /// The client's id of it.
    pub id: Option<String>,
    /// The account to send by.
    pub account: Option<String>,
    /// The batch it belongs to.
    pub batch: Option<String>,
    /// 0 to 3, or a word.
    pub priority: Option<String>,
    /// Not before this time.
    pub send_at: Option<String>,
    /// Not after this time.
    pub expires_at: Option<String>,
    /// `resend` or `hold`. Left out of the identity where it is absent: earlier versions did not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<String>,
    /// The envelope sender, instead of the mail's From; empty for none. The mail itself is not changed.
    pub from: Option<String>,
    /// The envelope recipients, instead of the mail's To, Cc and Bcc; the mail itself is not changed.
    pub to: Vec<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether nobody may read it, and it goes away once it is sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// What the client wants to find with it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// What is to be reported about its delivery (RFC 3461); a repeat may wish otherwise.
    #[serde(skip)]
    pub dsn: Option<DsnWishes>,
}

impl RawOptions {
    /// The same words in the shape that the checks know.
    fn as_request(&self) -> MessageRequest<'_> {
        fn text(given: &Option<String>) -> Option<Text<'_>> {
            given.as_deref().map(Text::from)
        }
        fn scalar(given: &Option<String>) -> Option<Scalar<'_>> {
            text(given).map(Scalar::Text)
        }
        MessageRequest {
            id: text(&self.id),
            account: text(&self.account),
            batch: text(&self.batch),
            priority: scalar(&self.priority),
            send_at: scalar(&self.send_at),
            expires_at: scalar(&self.expires_at),
            on_doubt: text(&self.on_doubt),
            to: (!self.to.is_empty()).then(|| Addresses {
                list: self.to.iter().map(|to| to.as_str().into()).collect(),
                single: false,
            }),
            tags: Some(List(self.tags.iter().map(|tag| tag.as_str().into()).collect())),
            ..MessageRequest::default()
        }
    }
}

impl Door {
    /// Takes a ready-made RFC 5322 mail. It is durable when this returns.
    pub async fn accept_raw(
        &self,
        ctx: &RequestContext,
        options: RawOptions,
        body: Bytes,
    ) -> Result<Receipt, Refusal> {
        let taken = self.take_raw(ctx, &options, &body, None).await;
        taken.inspect_err(Refusal::count)
    }

    /// The same for a mail that was handed over by SMTP: it gets the trace field that such mail has, and an envelope
    /// sender that is its author's address is nobody's wish, so it goes where the account or the tenant has failures go. A
    /// repeat is known by its gist: whoever tries again over SMTP mostly makes the mail anew.
    pub(crate) async fn accept_submitted(
        &self,
        ctx: &RequestContext,
        options: RawOptions,
        body: Bytes,
        trace: Trace<'_>,
    ) -> Result<Receipt, Refusal> {
        let taken = self.take_raw(ctx, &options, &body, Some(trace)).await;
        taken.inspect_err(Refusal::count)
    }

    async fn take_raw(
        &self,
        ctx: &RequestContext,
        options: &RawOptions,
        body: &Bytes,
        trace: Option<Trace<'_>>,
    ) -> Result<Receipt, Refusal> {
        self.check_request(ctx, body.len())?;
        if body.len() > self.limits.message_bytes_max {
            return Err(Refusal::message_too_large(self.limits.message_bytes_max));
        }
        match self.make_raw(ctx, options, body, trace).await {
            Ok(message) => self.writer.store_one(ctx, message).await,
            Err(refusal) => {
                let key = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
                let keys = Keys::new(key, options.id.as_deref());
                let submitted = trace.is_some();
                self.writer.repeat_or_refusal(ctx, keys, || identity(options, body, submitted), refusal).await
            }
        }
    }

    /// What is to be stored of a ready-made mail.
    async fn make_raw(
        &self,
        ctx: &RequestContext,
        options: &RawOptions,
        body: &Bytes,
        trace: Option<Trace<'_>>,
    ) -> Result<NewMessage, Refusal> {
        let now = self.clock.now();
        let inspected = self.heavy.run(&ctx.tenant, body.len(), || inspect_raw(body)).await?;
        let mut info = inspected.map_err(|error| refused(&error))?;
        // Over SMTP such mail has a body all the same; elsewhere it is most likely the wrong file.
        if let Some(fault) = info.bad_header.take().filter(|_| trace.is_none()) {
            return Err(refused(&fault));
        }
        let route = self.lookup.route_for(ctx, options.account.as_deref()).await?;
        let house = self.lookup.settings.house(&ctx.tenant).await?;
        let completed = match &info.from {
            Some(_) => None,
            None => author(&info, options, route.as_deref().ok(), &house),
        };
        let signers = match info.from.as_ref().or(completed.as_ref()) {
            Some(from) => self.lookup.settings.signers(&ctx.tenant, from.address().domain()).await?,
            None => Signers::default(),
        };
        let around = RawSurroundings { route, house, signers, info, completed, trace };
        let prepare = || {
            catch_panic(&ctx.tenant, &ctx.request_id, || self.prepare_raw(ctx, options, body, around, now))
        };
        self.heavy.run(&ctx.tenant, body.len(), prepare).await?
    }

    fn prepare_raw(
        &self,
        ctx: &RequestContext,
        options: &RawOptions,
        body: &Bytes,
        around: RawSurroundings<'_>,
        now: Time,
    ) -> Result<NewMessage, Refusal> {
        let RawSurroundings { route, house, signers, info, completed, trace } = around;
        let limits = self.limits.of(&house.settings.content);
        let mut findings = Findings::default();
        let request = options.as_request();
        let recipients = recipients(&request, &info, &limits, &mut findings);
        let return_path = options.from.as_deref().and_then(|from| match from {
            "" | "<>" => Some(ReturnPath::Null),
            from => {
                let mailbox = findings.take("from", from.parse::<Mailbox>())?;
                Some(ReturnPath::Address(mailbox.into_address()))
            }
        });
        let bounds = SenderBounds { tenant: &house.settings, key: ctx.restrictions.as_deref() };
        if let Some(ReturnPath::Address(path)) = &return_path {
            bounds.check_sender("from", path.as_str(), &mut findings);
        }
        bounds.check_recipients(recipients.named(), &mut findings);
        let from = info.from.as_ref().or(completed.as_ref());
        if from.is_none() {
            findings.add(
                "from",
                "the mail's From names nobody with an address, and neither does its envelope sender: add one, or give the \
                 account or the tenant a return_path",
            );
        }
        let route = findings.take("account", route);
        let mut terms = terms(&request, &limits, (now, false), &mut findings);
        if !options.metadata.is_empty() {
            let metadata = serde_json::json!(options.metadata).to_string();
            match metadata.len() <= limits.metadata_bytes_max {
                true => terms.metadata = Some(metadata),
                false => findings
                    .add("metadata", format!("must be at most {} bytes of JSON", limits.metadata_bytes_max)),
            }
        }
        let (Some(route), Some(from), true) = (route, from, findings.is_empty()) else {
            return Err(findings.into_refusal());
        };
        let idempotency = ctx.idempotency_key.clone().map(|key| (DedupKind::Request, key));
        let keyed = idempotency.is_some() || terms.client_id.is_some();
        let fingerprint = if keyed { identity(options, body, trace.is_some())? } else { [0; 32] };
        let mut names = self.builder.new_names(now, from.address());
        let envelope = recipients.envelope();
        let ways = match envelope.as_slice() {
            [reader] => self.builder.unsubscribe_ways(
                &house,
                terms.batch.as_ref(),
                names.uid,
                reader.address.as_str(),
            ),
            _ => None,
        };
        let finish = RawFinish {
            unsubscribe: ways.as_ref().map_or(&[], |ways| &ways.fields),
            message_id: &names.message_id,
            uid: &names.uid_text,
            date_unix: now.as_seconds(),
            author: completed.as_ref(),
            trace,
            is_to_be_signed: signers.iter().next().is_some(),
        };
        let finished = finish_raw(body, &finish).map_err(|error| refused(&error))?;
        let FinishedRaw { mut bytes, message_id, eight_bit, smtputf8, changes } = finished;
        bounds.check_sender("from", from.address().as_str(), &mut findings);
        bounds.check_mail(&bytes, &mut findings);
        if !findings.is_empty() {
            return Err(findings.into_refusal());
        }
        names.message_id = message_id;
        let wished = return_path.filter(
            |path| !matches!(path, ReturnPath::Address(to) if trace.is_some() && to == from.address()),
        );
        sign(&mut bytes, &signers, &route, now)?;
        let mut subject = info.subject.unwrap_or_default();
        // Kept for lists only, and the mail has all of it.
        subject.truncate(subject.floor_char_boundary(limits.subject_bytes_max));
        let parties = (&*route, &*house);
        let sender = self.builder.envelope_sender(wished.as_ref(), parties, names.uid, from.address());
        let mail = Mail {
            sender: sender.to(&envelope),
            names,
            subject,
            composed: Some(Composed { bytes, eight_bit, smtputf8 }),
            recipients: envelope,
            known_recipient: None,
            sensitive: options.sensitive,
            validated: validated(body.len(), recipients.len(), &changes),
            settled: None,
        };
        let (tenant, request_id) = (&ctx.tenant, ctx.request_id.as_str());
        let payload = body.clone();
        let on_doubt = ctx.on_doubt_for(&route, &house);
        let origin = Origin { tenant, request_id, idempotency, fingerprint, payload, on_doubt, now };
        let mut message = assemble(origin, terms, &route, mail, limits.message_bytes_max)?;
        message.content.dsn = options.dsn.clone();
        Ok(message)
    }
}

/// What was looked up for a ready-made mail, and what it says of itself.
struct RawSurroundings<'a> {
    route: Lookup,
    house: Arc<House>,
    signers: Signers,
    info: RawInfo,
    /// The author it is given, where it names none with an address.
    completed: Option<Mailbox>,
    /// How it came by SMTP, if it did.
    trace: Option<Trace<'a>>,
}

/// The author of a mail that names none with an address (RFC 6409, 8.1): its envelope sender, else where the account or the tenant
/// has failures go. It keeps the name it has.
fn author(info: &RawInfo, options: &RawOptions, route: Option<&Route>, house: &House) -> Option<Mailbox> {
    let envelope = options.from.as_deref().and_then(|from| from.parse::<Mailbox>().ok());
    let stored =
        [route.and_then(|route| route.return_path.as_deref()), house.settings.return_path.as_deref()];
    let address: EmailAddress = match envelope {
        Some(sender) => sender.into_address(),
        None => stored.into_iter().flatten().find_map(|path| path.parse().ok())?,
    };
    let named = Mailbox::new(info.from_name.as_deref(), address.clone());
    named.or_else(|_| Mailbox::new(None, address)).ok()
}

/// What was checked, and what was changed, as the particulars of the event `validated`.
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

/// The envelope's recipients: those given, each as what the mail names it, or else those of the mail.
fn recipients(
    request: &MessageRequest<'_>,
    info: &RawInfo,
    limits: &Limits,
    findings: &mut Findings,
) -> Recipients {
    if request.to.is_none() {
        if let Some(fault) = &info.bad_recipient {
            findings.add(field_of(fault), fault.to_string());
            return Recipients::default();
        }
        let named = Recipients { to: info.to.clone(), cc: info.cc.clone(), bcc: info.bcc.clone() };
        check::fits(named.len(), limits, findings);
        return named;
    }
    let given = check::recipients(request, limits, findings).to;
    let names =
        |list: &[Mailbox], mailbox: &Mailbox| list.iter().any(|other| other.address() == mailbox.address());
    let (to, rest): (Vec<_>, Vec<_>) = given.into_iter().partition(|mailbox| names(&info.to, mailbox));
    let (cc, bcc) = rest.into_iter().partition(|mailbox| names(&info.cc, mailbox));
    Recipients { to, cc, bcc }
}

/// What a repeat has in common with the mail it repeats.
fn identity(options: &RawOptions, body: &[u8], submitted: bool) -> Result<[u8; 32], Refusal> {
    match submitted {
        true => fingerprint(options, &gist(body)),
        false => fingerprint(options, body),
    }
}

/// The refusal of a mail, with the field of the request that its fault belongs to.
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
