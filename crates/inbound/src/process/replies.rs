//! What readers of our mail write back: answers, and that they leave a stream.

use bytes::Bytes;
use postway_domain::EventKind;
use postway_store::record::ReaderDecision;
use serde_json::json;

use super::{
    conclusion::{Progress, Trouble},
    mail::{Desk, Means, realm},
};
use crate::{correlate, mail::Mail};

/// Tells the message that a mail answers of it; whether there is one.
pub(super) async fn take_reply(
    means: &Means,
    desk: &Desk,
    raw: &Bytes,
    progress: &mut Progress,
) -> Result<bool, Trouble> {
    let mail = Mail::new(raw);
    let Some((traced, proof)) = correlate::answered(&*means.store, &realm(desk), &mail).await? else {
        return Ok(false);
    };
    progress.result.insert("message".to_owned(), json!(traced.uid));
    progress.result.insert("event".to_owned(), json!(EventKind::Replied.as_str()));
    progress.findings.push(correlate::reply(&mail, &traced, proof));
    progress.has_effect = true;
    Ok(true)
}

/// Takes a reader out of a stream who wrote to leave it: the sealed word in the subject, which the link in the message's header had
/// put there, says who it is. Whether that is what the mail is. A mail that is dealt with once more changes nothing.
pub(super) async fn leave_stream(
    means: &Means,
    desk: &Desk,
    raw: &Bytes,
    progress: &mut Progress,
) -> Result<bool, Trouble> {
    let mail = Mail::new(raw);
    let Some(link) = mail.subject().and_then(|subject| means.door.read_unsubscribe_subject(&subject)) else {
        return Ok(false);
    };
    if link.tenant != desk.mailbox.tenant && !desk.mailbox.settings.all_tenants {
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
        at: means.clock.now(),
    };
    means.store.decide(decision).await?;
    progress.has_effect = true;
    Ok(true)
}
