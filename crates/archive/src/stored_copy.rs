//! A copy as it is stored: where it is, and what stands above the mail.
//!
//! The mail is stored byte for byte as it was handed to the relay, below a few fields that say what its header
//! cannot: the envelope, and when it left. Signatures of the mail stay valid, because they do not cover fields
//! that were added above. How a copy is sealed is said in [`postway_domain::sealed_copy`].

use jiff::Timestamp;
use postway_domain::{MessageUid, TenantId, Time};

/// What is said of a message above its copy.
pub(crate) struct CopyEnvelope<'a> {
    pub uid: MessageUid,
    pub sent_at: Time,
    pub sender: &'a str,
    /// The recipients that a server took.
    pub recipients: Vec<&'a str>,
}

/// The path of a copy: by the day on which it was sent, in UTC.
pub(crate) fn path_of(tenant: &TenantId, uid: MessageUid, sent_at: Time, is_sealed: bool) -> String {
    let day = Timestamp::from_millisecond(sent_at.as_millis()).unwrap_or_default();
    let day = day.strftime("%Y/%m/%d");
    let end = if is_sealed { ".eml.sealed" } else { ".eml" };
    format!("archive/{tenant}/{day}/{uid}{end}")
}

/// The fields above the mail, and the mail.
pub(crate) fn copy_of(envelope: &CopyEnvelope<'_>, mail: &[u8]) -> Vec<u8> {
    let CopyEnvelope { uid, sent_at, sender, recipients } = envelope;
    let mut copy =
        format!("X-Postway-Id: {uid}\r\nX-Postway-Sent-At: {sent_at}\r\nX-Envelope-From: <{sender}>\r\n");
    for recipient in recipients {
        copy += &format!("X-Envelope-To: <{recipient}>\r\n");
    }
    let mut copy = copy.into_bytes();
    copy.extend_from_slice(mail);
    copy
}
