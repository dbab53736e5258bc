//! The reports that a mail asks its relay for (RFC 3461).
//!
//! The sender's own wishes, as the SMTP listener took them, are passed on as they are. A message that asks
//! Postway for reports comes next, then the setting of the account that sends. In the last two cases the mail
//! carries our uid as ENVID, by which a report finds its message.

use std::borrow::Cow;

use postway_domain::dsn::{DsnRequest, DsnWishes};
use postway_store::record::ClaimedMessage;

/// The wishes that go with the mail; `None` if nobody has any.
pub(super) fn report_wishes<'j>(
    job: &'j ClaimedMessage,
    account: Option<DsnRequest>,
) -> Option<Cow<'j, DsnWishes>> {
    let request = match &job.dsn {
        Some(DsnWishes { request: Some(request), .. }) => *request,
        Some(wishes) => return Some(Cow::Borrowed(wishes)),
        None => account?,
    };
    let recipients = job.recipients.iter().map(|recipient| recipient.address.as_str());
    Some(Cow::Owned(request.wishes(job.uid, recipients)))
}
