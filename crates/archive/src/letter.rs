//! A copy as a mail of its own, to the archive's address.
//!
//! It is accepted like any other mail of the tenant, with the original as an attachment, under a key that
//! follows from the message. It carries a mark that only this gateway can make and that is for this mail
//! alone, so that it is not archived itself; a sender who writes such a field archives no less. Marks of
//! forwarded mail are repeated, so that an archive that is forwarded back here ends as any other loop.

use aws_lc_rs::hmac;
use postway_domain::{EmailAddress, MessageUid, NamedAddress, TenantId, secret::SecretKey};
use postway_intake::{ComposedForward, ForwardNames};
use postway_mime::{LOOP_MARK_FIELD, MailDraft, forwarded::compose_around, is_mark, reader::HeaderBlock};

use crate::stored_copy::CopyEnvelope;

/// The field with the mark.
const MARK_FIELD: &str = "X-Postway-Archived";
/// The name of the attachment.
const ORIGINAL_NAME: &str = "original.eml";
/// The longest subject of the original that is repeated, in bytes.
const SUBJECT_BYTES_MAX: usize = 200;
/// The most recipients that the text names; the attachment's header has them too, except blind ones.
const NAMED_MAX: usize = 100;
/// The most marks of forwarded mail that are repeated.
const MARKS_MAX: usize = 20;

fn key_of(key: &SecretKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.derive("archive-mark"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The mark of the mail with this uid.
fn mark_of(key: &SecretKey, uid: &str) -> String {
    hex(hmac::sign(&key_of(key), format!("mark {uid}").as_bytes()).as_ref())
}

/// The idempotency key of the copy of a message. It cannot be guessed, so that no client takes it first.
pub(crate) fn idempotency_key(key: &SecretKey, tenant: &TenantId, uid: MessageUid) -> String {
    let digest = hmac::sign(&key_of(key), format!("key {tenant} {uid}").as_bytes());
    format!("archive:{uid}:{}", hex(&digest.as_ref()[..16]))
}

/// Whether a message is such a copy.
pub(crate) fn is_copy(key: &SecretKey, uid: MessageUid, mail: &[u8]) -> bool {
    let header = HeaderBlock::read(mail);
    let marks: Vec<&[u8]> = header.fields().all(MARK_FIELD.as_bytes()).collect();
    let uid = uid.to_string();
    let is_ours = |key: &SecretKey| {
        let mark = mark_of(key, &uid);
        marks.iter().any(|found| found.trim_ascii() == mark.as_bytes())
    };
    !marks.is_empty() && key.generations().any(is_ours)
}

/// What a copy is made of.
pub(crate) struct ArchiveLetter<'a> {
    pub key: &'a SecretKey,
    pub from: &'a NamedAddress,
    pub to: &'a NamedAddress,
    pub subject: &'a str,
    pub envelope: &'a CopyEnvelope<'a>,
    pub mail: &'a [u8],
}

impl ArchiveLetter<'_> {
    /// The subject of the copy.
    pub(crate) fn subject(&self) -> String {
        let cut = &self.subject[..self.subject.floor_char_boundary(SUBJECT_BYTES_MAX)];
        format!("Archive: {}", cut.replace(char::is_control, " "))
    }

    /// Composes the copy.
    pub(crate) fn make(&self, given: &ForwardNames<'_>) -> Result<ComposedForward, String> {
        let CopyEnvelope { uid, sent_at, sender, recipients } = self.envelope;
        let mut text = format!("Message: {uid}\nSent: {sent_at}\nFrom: <{sender}>\n");
        for recipient in recipients.iter().take(NAMED_MAX) {
            text += &format!("To: <{recipient}>\n");
        }
        if recipients.len() > NAMED_MAX {
            text += &format!("To: {} more\n", recipients.len() - NAMED_MAX);
        }
        let subject = self.subject();
        let to = [self.to.clone()];
        let draft = MailDraft {
            from: self.from,
            sender: None,
            to: &to,
            cc: &[],
            reply_to: &[],
            subject: &subject,
            text: Some(&text),
            html: None,
            alternatives: &[],
            headers: &[],
            attachments: &[],
            message_id: given.message_id,
            uid: given.uid,
            date_unix: given.date_unix,
        };
        let mut composed =
            compose_around(&draft, self.mail, ORIGINAL_NAME).map_err(|error| error.to_string())?;
        let mut fields = format!("{MARK_FIELD}: {}\r\n", mark_of(self.key, given.uid));
        let header = HeaderBlock::read(self.mail);
        for mark in header.fields().all(LOOP_MARK_FIELD.as_bytes()).take(MARKS_MAX) {
            let mark = String::from_utf8_lossy(mark);
            if is_mark(mark.trim()) {
                fields += &format!("{LOOP_MARK_FIELD}: {}\r\n", mark.trim());
            }
        }
        composed.bytes.splice(0..0, fields.into_bytes());
        Ok(ComposedForward { composed, is_our_own: true })
    }
}

/// An address without a name.
pub(crate) fn bare(address: EmailAddress) -> Result<NamedAddress, String> {
    NamedAddress::new(None, address).map_err(|error| error.to_string())
}
