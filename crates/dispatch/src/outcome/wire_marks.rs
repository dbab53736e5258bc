//! What the wire commit writes about recipients, so that a crash after it leaves the right ones in doubt.

use postway_domain::RecipientStatus;
use postway_store::record::{ClaimedMessage, RecipientChange};

use super::{failure_reply, suppressed_changes};
use crate::transport::RecipientReply;

/// The statuses that the wire commit writes. After a crash only recipients that the relay accepted may be in
/// doubt. If it accepted all of them, nothing need be written; otherwise each is marked. The recipients of a
/// resend are already in doubt and stay so.
pub(crate) fn recipient_marks(job: &ClaimedMessage, replies: &[RecipientReply]) -> Vec<RecipientChange> {
    let all_accepted = replies.iter().all(RecipientReply::is_accepted);
    let all_alike = all_accepted && job.doubtful_before == 0 && job.suppressed.is_empty();
    if all_alike || job.resend {
        return Vec::new();
    }
    let of_attempt = job.recipients.iter().zip(replies);
    let mut changes: Vec<RecipientChange> = of_attempt
        .filter_map(|(recipient, reply)| {
            let (status, reply) = match reply {
                RecipientReply::Accepted(_) => (RecipientStatus::InDoubt, None),
                RecipientReply::Refused(failure) if failure.is_permanent() => {
                    (RecipientStatus::Failed, Some(failure_reply(failure)))
                }
                RecipientReply::Refused(failure) | RecipientReply::Deferred(failure) => {
                    (RecipientStatus::Pending, Some(failure_reply(failure)))
                }
                // The last two come after the dot, and so after this.
                RecipientReply::NotTried | RecipientReply::Taken(_) | RecipientReply::Doubtful(_) => {
                    return None;
                }
            };
            Some(RecipientChange { position: recipient.position, status, reply })
        })
        .collect();
    changes.extend(suppressed_changes(job));
    changes
}
