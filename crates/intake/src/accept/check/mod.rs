//! Step 3, check: checks every field of a request and collects every fault. Pure.
//!
//! The result is right by its types. The modules: [`terms`] (time, priority, ids and labels), [`people`]
//! (sender and recipients), [`content`] (subject, texts, headers), [`files`] (attachments) and [`allowed`]
//! (what the tenant and the key permit).
//!
//! May refuse: any field, with all faults at once; content or attachments that cannot fit into a message.

pub(crate) mod allowed;
mod content;
mod files;
mod people;
mod terms;

use postway_domain::{MailStream, MessageUid, NamedAddress, RecipientId, Time, id::StreamId};

pub(crate) use content::{CheckedContent, UsedTemplate, content_faults, read_variables};
pub(crate) use files::{AttachmentPlan, attachment, attachment_here, refuse_large};
pub(crate) use people::{CheckedRecipients, ReturnPath, check_recipient_count, recipients};
use people::{mailbox, return_path};
pub(crate) use terms::{MessageTerms, priority_of, terms};

use crate::{
    accept::check::allowed::SenderBounds,
    accept::choose::ChosenAccount,
    accept::look_up::{LookupResult, author, recipient_faults},
    accept::parse::request::MessageInput,
    limits::IntakeLimits,
    refusal::{FieldFaults, Refusal},
};

/// A message without a fault, as far as that is known before anything is fetched.
pub(crate) struct CheckedMessage<'a> {
    pub account: ChosenAccount,
    pub terms: MessageTerms,
    pub from: NamedAddress,
    pub return_path: Option<ReturnPath>,
    pub recipients: CheckedRecipients,
    pub reply_to: Vec<NamedAddress>,
    pub content: CheckedContent<'a>,
    pub files: Vec<AttachmentPlan>,
    pub known_recipient: Option<RecipientId>,
    pub sensitive: bool,
    /// Warnings for the sender of a message that is accepted.
    pub warnings: Vec<String>,
}

/// Checks a request, or refuses it with all its faults.
pub(crate) fn check<'a>(
    request: &'a MessageInput<'a>,
    looked_up: &LookupResult,
    limits: &IntakeLimits,
    (uid, now): (MessageUid, Time),
) -> Result<CheckedMessage<'a>, Refusal> {
    let mut errors = FieldFaults::default();
    let from = mailbox("from", author(request, &looked_up.profile), &mut errors);
    let recipients = recipients(request, limits, &mut errors);
    if let Some(recipient) = &request.recipient {
        let faults = recipient_faults(&recipient.0, looked_up.recipient.as_ref(), &recipients.to);
        faults.into_iter().for_each(|fault| errors.note(fault));
    }
    let reply_to = people::reply_to(request, limits, &mut errors);
    let return_path = return_path(request, &mut errors);
    let bounds = SenderBounds { tenant: &looked_up.profile.settings, key: looked_up.restrictions.as_deref() };
    if let Some(from) = &from {
        bounds.check_sender("from", from.address().as_str(), &mut errors);
    }
    if let Some(ReturnPath::Address(path)) = &return_path {
        bounds.check_sender("return_path", path.as_str(), &mut errors);
    }
    for answered in &reply_to {
        bounds.check_reply_to("reply_to", answered.address().as_str(), &mut errors);
    }
    bounds.check_recipients(recipients.named(), &mut errors);
    let mut terms = terms(request, limits, (now, looked_up.spoken_times), &mut errors);
    join_stream(request, looked_up, &mut terms, &mut errors);
    let parties = (from.as_ref().map(NamedAddress::address), recipients.named().map(|(_, to)| to));
    let account = errors.take("account", looked_up.choose(parties, &terms, uid));
    let mut warnings = Vec::new();
    let mut content = content::content(request, looked_up, limits, &mut warnings, &mut errors)?;
    let bytes_left = limits.message_bytes_max.saturating_sub(content.len());
    let files = files::files(request, looked_up, limits, bytes_left, &mut warnings, &mut errors)?;
    if let Some(account) = &account {
        content::add_fields(&mut content, request, looked_up, account, &terms, &mut errors);
    }
    match (account, from) {
        (Some(account), Some(from)) if errors.is_empty() => Ok(CheckedMessage {
            account,
            terms,
            from,
            return_path,
            recipients,
            reply_to,
            content,
            files,
            known_recipient: looked_up.recipient.as_ref().map(|known| known.id),
            sensitive: request.sensitive.unwrap_or(false),
            warnings,
        }),
        _ => Err(errors.into_refusal()),
    }
}

/// Puts a message into the stream that it names: the batch becomes the stream's, or must begin with the
/// stream's name.
fn join_stream(
    request: &MessageInput<'_>,
    looked_up: &LookupResult,
    terms: &mut MessageTerms,
    errors: &mut FieldFaults,
) {
    let Some(given) = &request.stream else { return };
    let Some(id) = errors.take("stream", given.parse::<StreamId>()) else { return };
    if !looked_up.is_stored && !looked_up.profile.streams.contains_key(&id) {
        return errors.add("stream", format!("there is no stream {id}; create it with POST /v1/streams"));
    }
    match &terms.batch {
        None => terms.batch = Some(MailStream::batch_of(&id)),
        Some(batch) if MailStream::of_batch(batch).as_ref() == Some(&id) => {}
        Some(_) => {
            errors.add("batch", format!("is of another stream: begin it with `{id}:`, or leave it out"))
        }
    }
}

impl CheckedMessage<'_> {
    /// Whether something must be fetched or uploaded before the message can be composed.
    pub(crate) fn needs_preparation(&self) -> bool {
        self.files.iter().any(AttachmentPlan::needs_preparation)
    }
}
