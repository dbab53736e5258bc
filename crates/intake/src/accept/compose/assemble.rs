//! Composes and signs a checked mail, and assembles the message to store: bytes, envelope and first events.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::{
    EmailAddress, EventKind, Lane, MessageState, MessageUid, RecipientId, TenantId, Time,
    destination_room::destination_group,
    dsn::DsnWishes,
    message::{OnDoubt, TransitionInput, transition},
    verp::{self, VerpKey},
};
use postway_mime::{ComposeError, ComposedMail, HeaderError, MailAttachment, MailDraft, compose};
use postway_store::record::{DedupKind, MessageContent, NewEvent, NewMessage, NewRecipient, StoredBody};

use crate::{
    accept::{
        check::{self, CheckedMessage, MessageTerms, ReturnPath, UsedTemplate},
        choose::ChosenAccount,
    },
    cache::settings_cache::{DomainSigners, SendingAccount, TenantProfile},
    refusal::Refusal,
};

/// What a message takes from its request rather than from its content.
pub(crate) struct MessageOrigin<'a> {
    pub tenant: &'a TenantId,
    pub request_id: &'a str,
    pub idempotency: Option<(DedupKind, String)>,
    pub fingerprint: [u8; 32],
    pub payload: Bytes,
    /// What to do in doubt, unless the message says so itself.
    pub on_doubt: OnDoubt,
    pub now: Time,
}

/// The public names of a message: its uid, and its Message-ID.
pub(crate) struct MailNames {
    pub uid: MessageUid,
    pub uid_text: String,
    pub message_id: String,
}

impl MailNames {
    /// New names for a mail from this address. The Message-ID ends in the author's domain, or in ours if that
    /// is not ASCII, because it would need SMTPUTF8.
    pub(crate) fn for_new(uid: MessageUid, from: &EmailAddress, mail_domain: &str) -> Self {
        let domain = Some(from.domain()).filter(|domain| domain.is_ascii()).unwrap_or(mail_domain);
        Self::existing(uid, format!("{uid}@{domain}"))
    }

    /// The names of a message that has them already.
    pub(crate) fn existing(uid: MessageUid, message_id: String) -> Self {
        Self { uid, uid_text: uid.to_string(), message_id }
    }
}

/// A mail ready to be stored: names, envelope, and bytes unless it is composed later.
pub(crate) struct AssembledMail {
    pub names: MailNames,
    pub subject: String,
    pub sender: String,
    pub recipients: Vec<NewRecipient>,
    pub composed: Option<ComposedMail>,
    pub known_recipient: Option<RecipientId>,
    pub sensitive: bool,
    /// The data of the event `validated`.
    pub validated: String,
    /// What was settled at acceptance, if the mail is composed later.
    pub settled: Option<String>,
}

/// Composes and signs the mail of a checked request.
pub(crate) fn compose_checked(
    checked: &CheckedMessage<'_>,
    attachments: &[MailAttachment],
    names: &MailNames,
    now: Time,
    signers: &DomainSigners,
) -> Result<ComposedMail, Refusal> {
    let content = &checked.content;
    let mut composed = compose(&MailDraft {
        from: &checked.from,
        sender: None,
        to: &checked.recipients.to,
        cc: &checked.recipients.cc,
        reply_to: &checked.reply_to,
        subject: &content.subject,
        text: content.text.as_deref(),
        html: content.html.as_deref(),
        alternatives: &content.alternatives,
        headers: &content.headers,
        attachments,
        message_id: &names.message_id,
        uid: &names.uid_text,
        date_unix: now.as_seconds(),
    })
    .map_err(|error| Refusal::field(field_of(&error), error.to_string()))?;
    sign(&mut composed.bytes, signers, &checked.account, now)?;
    Ok(composed)
}

/// Header fields that SES overwrites.
const REWRITTEN_BY_SES: [&str; 2] = ["Date", "Message-ID"];

/// Prepends a signature of each signer to the mail.
pub(crate) fn sign(
    mail: &mut Vec<u8>,
    signers: &DomainSigners,
    account: &SendingAccount,
    now: Time,
) -> Result<(), Refusal> {
    let rewritten = if account.by_ses { REWRITTEN_BY_SES.as_slice() } else { &[] };
    let mut fields = String::new();
    for signer in signers.iter() {
        let field = signer.sign_except(mail, now.as_seconds(), rewritten);
        fields += &field.map_err(|error| Refusal::field("", format!("cannot be signed: {error}")))?;
    }
    if !fields.is_empty() {
        mail.splice(0..0, fields.into_bytes());
    }
    Ok(())
}

/// The attachments whose bytes came with the request.
pub(crate) fn attachments_here(checked: &mut CheckedMessage<'_>) -> Vec<MailAttachment> {
    let plans = std::mem::take(&mut checked.files);
    plans.into_iter().filter_map(check::attachment_here).collect()
}

/// The field of the request behind a composer's error. The checks run first, so this covers only what they do
/// not know yet.
fn field_of(error: &ComposeError) -> &'static str {
    match error {
        ComposeError::NoBody => "text",
        ComposeError::Nul { part } => part,
        ComposeError::Header(HeaderError::Control { name, .. } | HeaderError::TooLong { name })
            if name == "Subject" =>
        {
            "subject"
        }
        ComposeError::Header(_) => "headers",
        ComposeError::Filename { .. } | ComposeError::ContentType { .. } | ComposeError::ContentId { .. } => {
            "attachments"
        }
        ComposeError::Id(_) => "",
    }
}

/// Everything that the choice of the envelope sender depends on.
pub(crate) struct EnvelopeSender<'a> {
    /// The envelope sender that the request asks for.
    pub given: Option<&'a ReturnPath>,
    pub account: &'a SendingAccount,
    pub profile: &'a TenantProfile,
    pub uid: MessageUid,
    pub verp_key: &'a VerpKey,
    /// The author of the mail.
    pub from: &'a EmailAddress,
}

impl EnvelopeSender<'_> {
    /// The envelope sender for these recipients: the request's, else the account's, else a VERP address at
    /// the tenant's bounce domain, else the tenant's, else the author.
    pub fn to(&self, recipients: &[NewRecipient]) -> String {
        let path = self.chosen(recipients);
        match path.is_ascii() {
            true => path,
            // Settings may have been written with U-labels.
            false => path.parse::<EmailAddress>().map_or(path, |address| address.to_string()),
        }
    }

    fn chosen(&self, recipients: &[NewRecipient]) -> String {
        match self.given {
            Some(ReturnPath::Null) => return String::new(),
            Some(ReturnPath::Address(address)) => return address.as_str().to_owned(),
            None => {}
        }
        if let Some(path) = &self.account.return_path {
            return path.clone();
        }
        let settings = &self.profile.settings;
        match (&settings.bounce_domain, &settings.return_path) {
            (Some(domain), _) => {
                let only_recipient = match recipients {
                    [only] => Some(only.address.as_str()),
                    _ => None,
                };
                verp::encode(self.uid, only_recipient, self.verp_key, domain)
            }
            (None, Some(path)) => path.clone(),
            (None, None) => self.from.as_str().to_owned(),
        }
    }
}

/// Which request was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckedAs {
    /// The request that just arrived.
    Request,
    /// The stored request: that it still exists is a check of its own.
    Stored,
}

/// The data of the event `validated` for a composed message.
pub(crate) fn validated(checked: &CheckedMessage<'_>, checked_as: CheckedAs, payload_bytes: usize) -> String {
    let (content, warnings) = (&checked.content, &checked.warnings);
    let outbox = match checked_as {
        CheckedAs::Request => "",
        CheckedAs::Stored => "{\"check\":\"OUTBOX\"},",
    };
    let mut data = format!(
        "{{\"checks\":[{{\"check\":\"INTEGRITY\",\"bytes\":{payload_bytes}}},{outbox}\
         {{\"check\":\"RECIPIENT\",\"recipients\":{},\"known\":{}}},\
         {{\"check\":\"TEMPLATE\",\"subject_chars\":{},\"html_bytes\":{}",
        checked.recipients.len(),
        checked.known_recipient.is_some(),
        content.subject.chars().count(),
        content.html.as_ref().map_or(0, |html| html.len()),
    );
    // Writing to a String does not fail.
    if let Some(UsedTemplate { name, version, locale }) = &content.template {
        let _ = write!(data, ",\"template\":\"{name}\",\"version\":{version}");
        if let Some(locale) = locale {
            let _ = write!(data, ",\"locale\":\"{locale}\"");
        }
    }
    data.push_str("}]");
    if !warnings.is_empty() {
        let _ = write!(data, ",\"warnings\":{}", serde_json::json!(warnings));
    }
    data.push('}');
    data
}

/// Assembles the message, unless it is too large.
pub(crate) fn assemble(
    origin: MessageOrigin<'_>,
    terms: MessageTerms,
    account: &ChosenAccount,
    mail: AssembledMail,
    message_bytes_max: usize,
) -> Result<NewMessage, Refusal> {
    if mail.composed.as_ref().is_some_and(|composed| composed.bytes.len() > message_bytes_max) {
        return Err(Refusal::message_too_large(message_bytes_max));
    }
    let mut accepted = format!("{{\"request_id\":{}", serde_json::Value::from(origin.request_id));
    if let Some(route) = &account.route {
        // Writing to a String does not fail.
        let _ = write!(accepted, ",\"route\":{route}");
    }
    accepted.push('}');
    let mut events = vec![NewEvent { kind: EventKind::Accepted, data: Some(accepted) }];
    let (state, due_at) = match &mail.composed {
        Some(_) => {
            let passed = passed_state(MessageState::Accepted, terms.send_at);
            events.push(NewEvent { kind: EventKind::Validated, data: Some(mail.validated) });
            events.push(passed.1);
            (passed.0, Some(terms.send_at.unwrap_or(origin.now)))
        }
        None => (MessageState::Accepted, None),
    };
    let smtputf8 = needs_smtputf8(&mail.sender, &mail.recipients);
    let composed =
        mail.composed.unwrap_or(ComposedMail { bytes: Vec::new(), eight_bit: false, smtputf8: false });
    Ok(NewMessage {
        uid: mail.names.uid,
        lane: Lane {
            tenant: origin.tenant.clone(),
            account: account.id.clone(),
            priority: terms.priority,
            batch: terms.batch,
            destination: None,
        }
        .to_destination(destination_group(
            &account.destinations,
            mail.recipients.iter().map(|recipient| recipient.address.domain()),
        )),
        client_id: terms.client_id,
        idempotency: origin.idempotency,
        fingerprint: origin.fingerprint,
        state,
        due_at,
        created_at: origin.now,
        expires_at: terms.expires_at,
        on_doubt: terms.on_doubt.unwrap_or(origin.on_doubt),
        recipients: mail.recipients,
        content: MessageContent {
            sender: mail.sender,
            message_id: mail.names.message_id,
            subject: mail.subject,
            request_id: Some(origin.request_id.to_owned()),
            external_id: terms.external_id,
            tags: terms.tags,
            metadata: terms.metadata,
            eight_bit: composed.eight_bit,
            smtputf8: composed.smtputf8 || smtputf8,
            raw: StoredBody::Inline(Bytes::from(composed.bytes)),
            payload: Some(StoredBody::Inline(origin.payload)),
            sensitive: mail.sensitive,
            dsn: terms.dsn.map(DsnWishes::of_request),
        },
        events,
        batch_key: None,
        error: None,
        collapse_key: terms.collapse_key,
        recipient: mail.known_recipient,
        settled: mail.settled,
        trace: terms.trace,
    })
}

/// Whether the envelope needs a server with SMTPUTF8.
pub(crate) fn needs_smtputf8(sender: &str, recipients: &[NewRecipient]) -> bool {
    !sender.is_ascii() || recipients.iter().any(|recipient| recipient.address.needs_smtputf8())
}

/// The state of a message that passed its checks, and the event for it.
pub(crate) fn passed_state(from: MessageState, send_at: Option<Time>) -> (MessageState, NewEvent) {
    let input = if send_at.is_some() { TransitionInput::PassForLater } else { TransitionInput::Pass };
    let (state, effects) = transition(from, input).expect("the table lets a checked message pass");
    let data = send_at.map(|at| format!("{{\"why\":\"send_at\",\"due_at\":\"{at}\"}}"));
    (state, NewEvent { kind: effects.event.unwrap_or(EventKind::Ready), data })
}

/// The digest that tells a repeat from a different message under the same key: over the canonical form of the
/// request, and the bytes of a finished mail.
pub(crate) fn fingerprint(request: &impl serde::Serialize, mail: &[u8]) -> Result<[u8; 32], Refusal> {
    let canonical = serde_json::to_vec(request)
        .map_err(|error| Refusal::Malformed { message: format!("the request cannot be read: {error}") })?;
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(&canonical);
    hash.update(mail);
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(hash.finish().as_ref());
    Ok(fingerprint)
}
