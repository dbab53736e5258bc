//! Mail from the readers of sent messages: replies, and requests to leave a stream.

use bytes::Bytes;
use postway_domain::EventKind;
use postway_store::record::ReaderDecision;
use serde_json::json;

use super::{
    conclusion::{MailProgress, ProcessFailure},
    context::{MailboxContext, ProcessContext},
};
use crate::{correlate, mail::ParsedMail};

/// Records that a mail replies to a message; returns whether there is such a message.
pub(super) async fn record_reply(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    raw: &Bytes,
    progress: &mut MailProgress,
) -> Result<bool, ProcessFailure> {
    let mail = ParsedMail::new(raw);
    let Some((traced, proof)) = correlate::answered(&*context.store, &mailbox_context.scope(), &mail).await?
    else {
        return Ok(false);
    };
    progress.result.insert("message".to_owned(), json!(traced.uid));
    progress.result.insert("event".to_owned(), json!(EventKind::Replied.as_str()));
    progress.findings.push(correlate::reply(&mail, &traced, proof));
    progress.has_effect = true;
    Ok(true)
}

/// Unsubscribes a reader who wrote to leave a stream: the sealed token in the subject, which comes from the
/// link in the message's header, identifies the reader. Returns whether the mail is such a request.
/// Processing the mail again changes nothing.
pub(super) async fn record_unsubscribe(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    raw: &Bytes,
    progress: &mut MailProgress,
) -> Result<bool, ProcessFailure> {
    let mail = ParsedMail::new(raw);
    let Some(link) = mail.subject().and_then(|subject| context.door.read_unsubscribe_subject(&subject))
    else {
        return Ok(false);
    };
    if link.tenant != mailbox_context.mailbox.tenant && !mailbox_context.mailbox.settings.all_tenants {
        return Ok(false);
    }
    progress.result.insert("message".to_owned(), json!(link.uid));
    progress.result.insert("stream".to_owned(), json!(link.stream.as_str()));
    progress.result.insert("event".to_owned(), json!(EventKind::Unsubscribed.as_str()));
    let decision = ReaderDecision {
        tenant: link.tenant,
        message: link.uid,
        stream: link.stream,
        address: link.address,
        leaves: true,
        via: "mail",
        at: context.clock.now(),
    };
    context.store.decide(decision).await?;
    progress.has_effect = true;
    Ok(true)
}
