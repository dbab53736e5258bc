//! From a checked request to what the store keeps: the bytes of the mail, its envelope and the start of its history.

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_domain::{
    EmailAddress, EventKind, Lane, MessageUid, State, TenantId, Time,
    message::{Input, transition},
};
use postway_mime::{ComposeError, Composed, Draft, HeaderError, compose};
use postway_store::record::{Content, DedupKind, NewEvent, NewMessage, NewRecipient};

use crate::{
    check::{Checked, ReturnPath, Terms},
    directory::Route,
    refusal::Refusal,
};

/// What a message gets from its request and not from its body.
pub(crate) struct Origin<'a> {
    pub tenant: &'a TenantId,
    pub request_id: &'a str,
    pub idempotency: Option<(DedupKind, String)>,
    pub fingerprint: [u8; 32],
    pub now: Time,
}

/// The names that a message bears outside: its uid, and the Message-ID made of it.
pub(crate) struct Names {
    pub uid: MessageUid,
    pub uid_text: String,
    pub message_id: String,
}

impl Names {
    /// New names for mail from this address. A domain outside ASCII would make the Message-ID need SMTPUTF8, so our
    /// own stands in.
    pub(crate) fn new(now: Time, from: &EmailAddress, mail_domain: &str) -> Self {
        let uid = MessageUid::new(now, &mut rand::rng());
        let uid_text = uid.to_string();
        let domain = Some(from.domain()).filter(|domain| domain.is_ascii()).unwrap_or(mail_domain);
        let message_id = format!("{uid_text}@{domain}");
        Self { uid, uid_text, message_id }
    }
}

/// The mail as bytes, with what the store keeps beside them.
pub(crate) struct Mail {
    pub names: Names,
    pub subject: String,
    pub composed: Composed,
    pub sender: String,
    pub recipients: Vec<NewRecipient>,
}

/// Composes the mail of a checked request.
pub(crate) fn compose_checked(checked: &Checked<'_>, now: Time, mail_domain: &str) -> Result<Mail, Refusal> {
    let names = Names::new(now, checked.from.address(), mail_domain);
    let content = &checked.content;
    let composed = compose(&Draft {
        from: &checked.from,
        sender: None,
        to: &checked.recipients.to,
        cc: &checked.recipients.cc,
        reply_to: &checked.reply_to,
        subject: content.subject,
        text: content.text,
        html: content.html,
        headers: &content.headers,
        attachments: &content.attachments,
        message_id: &names.message_id,
        uid: &names.uid_text,
        date_unix: now.as_seconds(),
    })
    .map_err(|error| Refusal::field(field_of(&error), error.to_string()))?;
    Ok(Mail {
        names,
        subject: content.subject.to_owned(),
        composed,
        sender: sender(checked.return_path.as_ref(), &checked.route, checked.from.address()),
        recipients: checked.recipients.envelope(),
    })
}

/// The checks come first, so this is for what they do not know of yet.
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

/// The envelope sender: the request's, else the account's, else the author.
pub(crate) fn sender(given: Option<&ReturnPath>, route: &Route, from: &EmailAddress) -> String {
    match given {
        Some(ReturnPath::Null) => String::new(),
        Some(ReturnPath::Address(address)) => address.as_str().to_owned(),
        None => route.return_path.as_deref().unwrap_or(from.as_str()).to_owned(),
    }
}

/// Puts the message together, unless it is too large.
pub(crate) fn assemble(
    origin: Origin<'_>,
    terms: Terms,
    route: &Route,
    mail: Mail,
    message_bytes_max: usize,
) -> Result<NewMessage, Refusal> {
    let Mail { names, subject, composed, sender, recipients } = mail;
    if composed.bytes.len() > message_bytes_max {
        return Err(Refusal::message_too_large(message_bytes_max));
    }
    let envelope_utf8 =
        !sender.is_ascii() || recipients.iter().any(|recipient| recipient.address.needs_smtputf8());
    let (state, event) = first_state(terms.send_at);
    let accepted = format!("{{\"request_id\":{}}}", serde_json::Value::from(origin.request_id));
    Ok(NewMessage {
        uid: names.uid,
        lane: Lane {
            tenant: origin.tenant.clone(),
            account: route.account.clone(),
            priority: terms.priority,
            batch: terms.batch,
        },
        client_id: terms.client_id,
        idempotency: origin.idempotency,
        fingerprint: origin.fingerprint,
        state,
        due_at: Some(terms.send_at.unwrap_or(origin.now)),
        created_at: origin.now,
        expires_at: terms.expires_at,
        on_doubt: terms.on_doubt,
        recipients,
        content: Content {
            sender,
            message_id: names.message_id,
            subject,
            request_id: Some(origin.request_id.to_owned()),
            external_id: terms.external_id,
            tags: terms.tags,
            metadata: terms.metadata,
            eight_bit: composed.eight_bit,
            smtputf8: composed.smtputf8 || envelope_utf8,
            raw: Bytes::from(composed.bytes),
        },
        events: vec![NewEvent { kind: EventKind::Accepted, data: Some(accepted) }, event],
        collapse_key: terms.collapse_key,
    })
}

/// Where a checked message starts, and the event that says so.
fn first_state(send_at: Option<Time>) -> (State, NewEvent) {
    let input = if send_at.is_some() { Input::PassForLater } else { Input::Pass };
    let (state, effects) =
        transition(State::Accepted, input).expect("the table lets an accepted message pass its checks");
    let data = send_at.map(|at| format!("{{\"why\":\"send_at\",\"due_at\":\"{at}\"}}"));
    (state, NewEvent { kind: effects.event.unwrap_or(EventKind::Ready), data })
}

/// The digest by which a repeat is told from another message under the same key: over the canonical form of the
/// request, and the bytes of the mail where it came ready-made.
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
