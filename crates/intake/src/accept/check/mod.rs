//! Checking a request: field by field, every fault collected.
//!
//! What comes out is right by its types. The leaves: [`terms`] (when, by which account, under which names), [`people`]
//! (from whom, to whom), [`content`] (what it says) and [`files`] (what goes with it).

pub(crate) mod allowed;
mod content;
mod files;
mod people;
mod terms;

use std::sync::Arc;

use postway_domain::{MailStream, Mailbox, RecipientId, Time, id::StreamId};

pub(crate) use content::{Content, content_faults, read_variables};
pub(crate) use files::{FilePlan, attachment, attachment_here, refuse_large};
pub(crate) use people::{Recipients, ReturnPath, fits, recipients};
use people::{mailbox, return_path};
pub(crate) use terms::{Terms, terms};

use crate::{
    accept::check::allowed::SenderBounds,
    accept::look_up::{Surroundings, author, recipient_faults},
    accept::parse::request::MessageRequest,
    cache::settings_cache::Route,
    limits::Limits,
    refusal::{Findings, Refusal},
};

/// A message without a fault, as far as that can be told without fetching anything.
pub(crate) struct Checked<'a> {
    pub route: Arc<Route>,
    pub terms: Terms,
    pub from: Mailbox,
    pub return_path: Option<ReturnPath>,
    pub recipients: Recipients,
    pub reply_to: Vec<Mailbox>,
    pub content: Content<'a>,
    pub files: Vec<FilePlan>,
    pub known_recipient: Option<RecipientId>,
    pub sensitive: bool,
    /// What its sender should know although it is sent.
    pub warnings: Vec<String>,
}

/// Checks all of a request, or says all that is wrong with it.
pub(crate) fn check<'a>(
    request: &'a MessageRequest<'a>,
    around: &Surroundings,
    limits: &Limits,
    now: Time,
) -> Result<Checked<'a>, Refusal> {
    let mut findings = Findings::default();
    let from = mailbox("from", author(request, &around.house), &mut findings);
    let recipients = recipients(request, limits, &mut findings);
    if let Some(recipient) = &request.recipient {
        let faults = recipient_faults(&recipient.0, around.recipient.as_ref(), &recipients.to);
        faults.into_iter().for_each(|fault| findings.note(fault));
    }
    let reply_to = people::reply_to(request, limits, &mut findings);
    let return_path = return_path(request, &mut findings);
    let bounds = SenderBounds { tenant: &around.house.settings, key: around.restrictions.as_deref() };
    if let Some(from) = &from {
        bounds.check_sender("from", from.address().as_str(), &mut findings);
    }
    if let Some(ReturnPath::Address(path)) = &return_path {
        bounds.check_sender("return_path", path.as_str(), &mut findings);
    }
    for answered in &reply_to {
        bounds.check_reply_to("reply_to", answered.address().as_str(), &mut findings);
    }
    bounds.check_recipients(recipients.named(), &mut findings);
    let route = findings.take("account", around.route.clone());
    let mut terms = terms(request, limits, (now, around.spoken_times), &mut findings);
    join_stream(request, around, &mut terms, &mut findings);
    let mut warnings = Vec::new();
    let mut content = content::content(request, around, limits, &mut warnings, &mut findings)?;
    let room = limits.message_bytes_max.saturating_sub(content.len());
    let files = files::files(request, around, limits, room, &mut warnings, &mut findings)?;
    if let Some(route) = &route {
        content::add_fields(&mut content, request, around, route, &terms, &mut findings);
    }
    match (route, from) {
        (Some(route), Some(from)) if findings.is_empty() => Ok(Checked {
            route,
            terms,
            from,
            return_path,
            recipients,
            reply_to,
            content,
            files,
            known_recipient: around.recipient.as_ref().map(|known| known.id),
            sensitive: request.sensitive.unwrap_or(false),
            warnings,
        }),
        _ => Err(findings.into_refusal()),
    }
}

/// Puts a message into the stream that it names: its batch is that of the stream, or begins with its name.
fn join_stream(
    request: &MessageRequest<'_>,
    around: &Surroundings,
    terms: &mut Terms,
    findings: &mut Findings,
) {
    let Some(given) = &request.stream else { return };
    let Some(id) = findings.take("stream", given.parse::<StreamId>()) else { return };
    if !around.is_stored && !around.house.streams.contains_key(&id) {
        return findings.add("stream", format!("there is no stream {id}; create it with POST /v1/streams"));
    }
    match &terms.batch {
        None => terms.batch = Some(MailStream::batch_of(&id)),
        Some(batch) if MailStream::of_batch(batch).as_ref() == Some(&id) => {}
        Some(_) => {
            findings.add("batch", format!("is of another stream: begin it with `{id}:`, or leave it out"))
        }
    }
}

impl Checked<'_> {
    /// Whether something must be fetched or uploaded before it can be composed.
    pub(crate) fn needs_preparation(&self) -> bool {
        self.files.iter().any(FilePlan::needs_preparation)
    }
}
