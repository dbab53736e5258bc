//! Converts a mail for a relay that lacks an extension that the mail needs.
//!
//! How a mail is converted is up to `mime` ([`downgrade`]); this file decides when. Mail that needs no
//! extension, and mail for a relay that offers them, is not touched.

use postway_mime::downgrade::{RelayLacks, downgrade};

use super::MailEnvelope;

/// A mail that was converted for its relay.
#[derive(Debug)]
pub(super) struct FittedMail {
    pub(super) bytes: Vec<u8>,
    eight_bit: bool,
    smtputf8: bool,
    /// The parts that are encoded now.
    pub(super) converted: &'static [&'static str],
}

impl FittedMail {
    /// The mail converted for a relay that lacks these extensions; `None` if it is to be sent unchanged.
    pub(super) fn new(envelope: &MailEnvelope<'_>, body: &[u8], lacks: RelayLacks) -> Option<Self> {
        // An address in the envelope cannot be encoded, so converting the header would not help.
        let is_header_alone =
            envelope.sender.is_ascii() && envelope.recipients.iter().all(|path| path.is_ascii());
        let lacks = RelayLacks {
            eight_bit_mime: lacks.eight_bit_mime && envelope.eight_bit,
            smtputf8: lacks.smtputf8 && envelope.smtputf8 && is_header_alone,
        };
        if !lacks.eight_bit_mime && !lacks.smtputf8 {
            return None;
        }
        let fitted = downgrade(body, lacks)?;
        let converted: &[&str] = match (fitted.header_encoded, fitted.body_encoded) {
            (true, true) => &["header", "body"],
            (true, false) => &["header"],
            (false, _) => &["body"],
        };
        let smtputf8 = if lacks.smtputf8 { fitted.smtputf8 } else { envelope.smtputf8 };
        Some(Self { bytes: fitted.bytes, eight_bit: fitted.eight_bit, smtputf8, converted })
    }

    /// The envelope of the converted mail.
    pub(super) fn envelope<'a>(&self, envelope: &MailEnvelope<'a>) -> MailEnvelope<'a> {
        let Self { bytes, eight_bit, smtputf8, .. } = self;
        MailEnvelope { size: bytes.len(), eight_bit: *eight_bit, smtputf8: *smtputf8, ..*envelope }
    }
}
