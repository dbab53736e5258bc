//! Certified mail (PEC, RFC 6109 and the Italian technical rules): receipts, notices and envelopes, read.
//!
//! [`inspect`] tells what a mail is by its top-level header alone: with `X-Trasporto` it is an envelope around
//! somebody's mail (`errore`: an anomaly envelope around mail that is not certified), else with `X-Ricevuta` a
//! receipt. A receipt that was forwarded inside another mail is not one.
//!
//! What a receipt certifies stands in its outermost `daticert.xml` (or `certdata.xml`), within what is signed where the mail is
//! signed; never in one inside a `message/rfc822`, which belongs to the mail it is about. The recipient is `consegna`, not `To`. Where that file is
//! missing or refused, the receipt is read from its header and [`Receipt::daticert`] says so. Values that the rules
//! do not have are kept. `preavviso-errore-consegna` is a warning after 12 hours and a failure after 24: see
//! [`Notice`].
//!
//! [`verify`] judges the S/MIME signature. It is evidence and no reason to drop a receipt. A signature proves what
//! the header says only where [`Receipt::unconfirmed`] has nothing against it: the header itself is not signed.
//!
//! Nothing here fails: hostile input gives less, in time linear in its size.

mod daticert;
mod encoding;
mod notice;
mod part;
mod receipt;
mod signature;

pub use daticert::DaticertError;
pub use notice::Notice;
pub use receipt::{Contradiction, Daticert, PecEvent, Receipt, ReceiptForm, ReceiptKind, ReceiptRecipient};
pub use signature::{Signature, TrustError, TrustStore, verify};

use daticert::Certified;
use part::{PecPart, leaves};
use receipt::bare;

use crate::reader::ReadMail;

/// How much of a notice's text is searched for what it says.
const NOTICE_BYTES_MAX: usize = 16 * 1024;
/// How much of a part is taken for a daticert.xml: its largest size in base64, with room for line endings.
const DATICERT_ENCODED_MAX: usize = 3 * 1024 * 1024 / 2;

/// A mail of the certified mail system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PecMail {
    /// A receipt or notice about a message that was sent.
    Receipt(Box<Receipt>),
    /// A transport envelope: a certified mail that somebody sent us.
    Transport(Envelope),
    /// An anomaly envelope: a mail from outside the system, passed on to a certified mailbox.
    Anomaly(Envelope),
}

/// The outside of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// `X-Trasporto` as given.
    pub kind_text: String,
    /// The Message-ID of the mail inside, without angle brackets.
    pub reference: Option<String>,
    /// The envelope's own Message-ID, without angle brackets.
    pub message_id: Option<String>,
    /// `X-VerificaSicurezza` as given.
    pub security_check: Option<String>,
}

/// What this mail is to the certified mail system, if anything.
pub fn inspect(raw: &[u8]) -> Option<PecMail> {
    let read = ReadMail::read(raw);
    let mail = PecPart::whole(&read);
    if let Some(kind_text) = mail.text("X-Trasporto") {
        let anomaly = kind_text.eq_ignore_ascii_case("errore");
        let envelope = Envelope {
            kind_text,
            reference: mail.text("X-Riferimento-Message-ID").map(bare),
            message_id: mail.text("Message-ID").map(bare),
            security_check: mail.text("X-VerificaSicurezza"),
        };
        return Some(if anomaly { PecMail::Anomaly(envelope) } else { PecMail::Transport(envelope) });
    }
    let kind_text = mail.text("X-Ricevuta")?;
    // Of signed mail only what is signed certifies anything: a part beside it could have been added by anybody.
    let signed = signature::signed_content(&read);
    let content = signed.as_deref().map(ReadMail::read);
    let leaves = leaves(content.as_ref().unwrap_or(&read));
    let mut receipt = Receipt::new(&mail, kind_text, certified(&leaves));
    if receipt.kind == ReceiptKind::DeliveryWarning {
        let text = notice_text(&leaves);
        let (error_text, subject) = (receipt.error_text.as_deref(), receipt.subject.as_deref());
        receipt.notice = Some(notice::decide(error_text, &text, subject));
    }
    Some(PecMail::Receipt(Box::new(receipt)))
}

/// The receipt that this mail is: a top-level `X-Ricevuta` and no `X-Trasporto`.
pub fn read(raw: &[u8]) -> Option<Receipt> {
    match inspect(raw)? {
        PecMail::Receipt(receipt) => Some(*receipt),
        PecMail::Transport(_) | PecMail::Anomaly(_) => None,
    }
}

/// What the outermost daticert.xml says.
fn certified(leaves: &[PecPart<'_, '_>]) -> Result<Certified, Daticert> {
    let named = |part: &&PecPart<'_, '_>| {
        part.file_name().is_some_and(|name| {
            name.eq_ignore_ascii_case("daticert.xml") || name.eq_ignore_ascii_case("certdata.xml")
        })
    };
    let part = leaves.iter().find(named).ok_or(Daticert::Absent)?;
    if part.body().len() > DATICERT_ENCODED_MAX {
        return Err(Daticert::Refused(DaticertError::TooLarge));
    }
    let bytes = part.decoded().ok_or(Daticert::Refused(DaticertError::Encoding))?;
    daticert::read(&bytes).map_err(Daticert::Refused)
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
