//! Reads certified mail (PEC, RFC 6109 and the Italian technical rules): receipts, notices and envelopes.
//!
//! [`inspect`] classifies a mail by its top-level header alone: with `X-Trasporto` it is an envelope around a
//! mail (`errore`: an anomaly envelope around mail that is not certified), else with `X-Ricevuta` a receipt.
//! A receipt that was forwarded inside another mail does not count.
//!
//! The certified data is in the outermost `daticert.xml` (or `certdata.xml`), inside the signed part if the
//! mail is signed, and never inside a `message/rfc822`, which is the mail that the receipt is about. The
//! recipient is `consegna`, not `To`. If that file is missing or refused, the receipt is read from its header
//! and [`CertifiedReceipt::daticert`] says so. Values that the rules do not define are kept.
//! `preavviso-errore-consegna` is a warning after 12 hours and a failure after 24: see [`DelayNotice`].
//!
//! [`verify`] verifies the S/MIME signature. The result is evidence, not a reason to drop a receipt. A
//! signature proves the header only if [`CertifiedReceipt::unconfirmed`] returns `None`, because the header
//! itself is not signed.
//!
//! No function fails: hostile input gives less information, in time linear in its size.

mod daticert;
mod encoding;
mod notice;
mod part;
mod receipt;
mod signature;

pub use daticert::{DaticertError, ReceiptRecipient};
pub use notice::DelayNotice;
pub use receipt::{
    CertifiedReceipt, DaticertState, PecEvent, ReceiptContradiction, ReceiptForm, ReceiptKind,
};
pub use signature::{SignatureCheck, TrustError, TrustStore, verify};

use daticert::CertifiedData;
use part::{PecPart, leaves};
use receipt::without_brackets;

use crate::reader::ReadMail;

/// How much of a notice's text is searched.
const NOTICE_BYTES_MAX: usize = 16 * 1024;
/// The largest part that is read as daticert.xml: its maximum size in base64, with line endings.
const DATICERT_ENCODED_MAX: usize = 3 * 1024 * 1024 / 2;

/// A mail of the certified mail system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PecMail {
    /// A receipt or notice about a message that was sent.
    Receipt(Box<CertifiedReceipt>),
    /// A transport envelope: a certified mail that was sent to us.
    Transport(PecEnvelope),
    /// An anomaly envelope: a mail from outside the system, passed on to a certified mailbox.
    Anomaly(PecEnvelope),
}

/// The outside of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PecEnvelope {
    /// The value of `X-Trasporto`.
    pub kind_text: String,
    /// The Message-ID of the mail inside, without angle brackets.
    pub reference: Option<String>,
    /// The envelope's own Message-ID, without angle brackets.
    pub message_id: Option<String>,
    /// The value of `X-VerificaSicurezza`.
    pub security_check: Option<String>,
}

/// What this mail is in the certified mail system; `None` if it does not belong to it.
pub fn inspect(raw: &[u8]) -> Option<PecMail> {
    let read = ReadMail::read(raw);
    let mail = PecPart::from_mail(&read);
    if let Some(kind_text) = mail.text("X-Trasporto") {
        let anomaly = kind_text.eq_ignore_ascii_case("errore");
        let envelope = PecEnvelope {
            kind_text,
            reference: mail.text("X-Riferimento-Message-ID").map(without_brackets),
            message_id: mail.text("Message-ID").map(without_brackets),
            security_check: mail.text("X-VerificaSicurezza"),
        };
        return Some(if anomaly { PecMail::Anomaly(envelope) } else { PecMail::Transport(envelope) });
    }
    let kind_text = mail.text("X-Ricevuta")?;
    // In signed mail only the signed part counts: anybody could have added a part beside it.
    let signed = signature::signed_content(&read);
    let content = signed.as_deref().map(ReadMail::read);
    let leaves = leaves(content.as_ref().unwrap_or(&read));
    let mut receipt = CertifiedReceipt::new(&mail, kind_text, certified(&leaves));
    if receipt.kind == ReceiptKind::DeliveryWarning {
        let text = notice_text(&leaves);
        let (error_text, subject) = (receipt.error_text.as_deref(), receipt.subject.as_deref());
        receipt.notice = Some(notice::classify_notice(error_text, &text, subject));
    }
    Some(PecMail::Receipt(Box::new(receipt)))
}

/// Reads a receipt: a mail with a top-level `X-Ricevuta` and no `X-Trasporto`.
pub fn read(raw: &[u8]) -> Option<CertifiedReceipt> {
    match inspect(raw)? {
        PecMail::Receipt(receipt) => Some(*receipt),
        PecMail::Transport(_) | PecMail::Anomaly(_) => None,
    }
}

/// Reads the outermost daticert.xml.
fn certified(leaves: &[PecPart<'_, '_>]) -> Result<CertifiedData, DaticertState> {
    let named = |part: &&PecPart<'_, '_>| {
        part.file_name().is_some_and(|name| {
            name.eq_ignore_ascii_case("daticert.xml") || name.eq_ignore_ascii_case("certdata.xml")
        })
    };
    let part = leaves.iter().find(named).ok_or(DaticertState::Absent)?;
    if part.body().len() > DATICERT_ENCODED_MAX {
        return Err(DaticertState::Refused(DaticertError::TooLarge));
    }
    let bytes = part.decoded().ok_or(DaticertState::Refused(DaticertError::Encoding))?;
    daticert::read(&bytes).map_err(DaticertState::Refused)
}

/// The beginning of the text that a person reads.
fn notice_text(leaves: &[PecPart<'_, '_>]) -> String {
    let find = |subtype: &str| leaves.iter().find(|part| part.media_type().is("text", subtype));
    let Some(part) = find("plain").or_else(|| find("html")) else { return String::new() };
    if part.body().len() > DATICERT_ENCODED_MAX {
        return String::new();
    }
    let bytes = part.decoded().unwrap_or_default();
    String::from_utf8_lossy(&bytes[..bytes.len().min(NOTICE_BYTES_MAX)]).into_owned()
}
