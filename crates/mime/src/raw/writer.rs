//! Writes ready-made mail unchanged, unless no server may accept it.
//!
//! A header line over 998 octets is folded, header text beyond ASCII is encoded unless it is signed, and a
//! part with long lines is encoded. Each change is recorded.

use std::collections::BTreeSet;

use super::{
    ascii_header::write_in_ascii,
    downgrade::charset,
    header::{RawField, RawHeader, SignedFields},
    recode::{UnwantedOctets, recode},
};
use crate::wire::lines::{TextLines, are_short};

/// A change to a ready-made mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RawChange {
    /// It named no author with a valid address, so one was added; the original is in
    /// `X-Original-From`.
    FromCompleted,
    /// It had several `From` or `Sender` fields: the first valid one is used, the others are in
    /// `X-Original-…`.
    AuthorRepeated,
    /// It had no Message-ID.
    MessageIdAdded,
    /// It had an invalid Message-ID, or several; the first is in `X-Original-Message-ID`.
    MessageIdReplaced,
    /// It had no Date.
    DateAdded,
    /// It had no MIME-Version.
    MimeVersionAdded,
    /// Unsubscribe fields of its stream were added.
    UnsubscribeAdded,
    /// `Bcc` was removed.
    BccRemoved,
    /// Fields that control other services were removed.
    ServiceFieldsRemoved,
    /// A header that did not end with a blank line was ended.
    HeaderEnded,
    /// Header text beyond ASCII was encoded.
    HeaderEncoded,
    /// Header lines that were too long were folded.
    HeaderFolded,
    /// Octets beyond ASCII in the body were encoded, so that no relay breaks our signature.
    BodyEncoded,
    /// Parts with lines that were too long were encoded.
    LongLinesEncoded,
    /// Long lines were broken because they could not be encoded.
    LongLinesBroken,
    /// Signed content was changed.
    SignedContentChanged,
}

impl RawChange {
    /// The name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FromCompleted => "from_completed",
            Self::AuthorRepeated => "author_repeated",
            Self::MessageIdAdded => "message_id_added",
            Self::MessageIdReplaced => "message_id_replaced",
            Self::DateAdded => "date_added",
            Self::MimeVersionAdded => "mime_version_added",
            Self::UnsubscribeAdded => "unsubscribe_added",
            Self::BccRemoved => "bcc_removed",
            Self::ServiceFieldsRemoved => "service_fields_removed",
            Self::HeaderEnded => "header_ended",
            Self::HeaderEncoded => "header_8bit_encoded",
            Self::HeaderFolded => "header_lines_folded",
            Self::BodyEncoded => "body_8bit_encoded",
            Self::LongLinesEncoded => "long_lines_reencoded",
            Self::LongLinesBroken => "long_lines_broken",
            Self::SignedContentChanged => "signed_content_changed",
        }
    }
}

/// Writes a ready-made mail and records the changes.
pub(crate) struct RawWriter {
    pub(crate) signed: SignedFields,
    /// The charset assumed for header text that is not UTF-8.
    charset: Option<Vec<u8>>,
    pub(crate) out: Vec<u8>,
    pub(crate) changes: BTreeSet<RawChange>,
}

/// A mail that was written, with its changes.
pub(crate) struct WrittenRaw {
    pub(crate) bytes: Vec<u8>,
    pub(crate) eight_bit: bool,
    pub(crate) smtputf8: bool,
    pub(crate) changes: BTreeSet<RawChange>,
}

impl RawWriter {
    /// A writer for the mail with this header.
    pub(crate) fn new(bytes: &[u8], header: &RawHeader<'_>) -> Self {
        let is_ascii = header.fields.iter().all(|field| field.value.is_ascii());
        Self {
            signed: header.signed(),
            charset: if is_ascii { None } else { charset(bytes) },
            out: Vec::with_capacity(bytes.len() + bytes.len() / 32 + 1024),
            changes: BTreeSet::new(),
        }
    }

    /// Whether a field of that name may be added: it is absent, and its absence is not signed.
    pub(crate) fn lacks(&self, header: &RawHeader<'_>, name: &str) -> bool {
        header.first(name).is_none() && !self.signed.cover(name.as_bytes())
    }

    /// Writes a field unchanged, unless no server may accept it.
    pub(crate) fn write(&mut self, field: &RawField<'_>) {
        let is_signed = self.signed.cover(field.name);
        let is_kept = field.value.is_ascii() || (is_signed && std::str::from_utf8(field.value).is_ok());
        if is_kept && field.is_short() {
            return field.write(&mut self.out);
        }
        if is_kept {
            field.write_folded(&mut self.out);
            self.changes.insert(RawChange::HeaderFolded);
        } else {
            let start = self.out.len();
            write_in_ascii(field, self.charset.as_deref(), &mut self.out);
            if self.out[start..].is_ascii() || std::str::from_utf8(field.value).is_err() {
                self.changes.insert(RawChange::HeaderEncoded);
            }
        }
        self.changes.extend(is_signed.then_some(RawChange::SignedContentChanged));
    }

    /// Ends the header and writes the body. If we are going to sign the mail, octets beyond ASCII are encoded
    /// first, so that no relay has to do it afterwards (RFC 6376, 5.3), but never content that is already
    /// signed.
    pub(crate) fn finish(self, body: &[u8], is_to_be_signed: bool) -> WrittenRaw {
        let Self { mut out, mut changes, signed, .. } = self;
        let smtputf8 = !out.is_ascii();
        out.extend_from_slice(b"\r\n");
        for (line, _) in TextLines::new(body) {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
        let is_ascii = body.is_ascii();
        let unwanted = UnwantedOctets {
            eight_bit: is_to_be_signed && !signed.is_signed && !is_ascii,
            long_lines: !are_short(body),
        };
        if !unwanted.eight_bit && !unwanted.long_lines {
            return WrittenRaw { bytes: out, eight_bit: smtputf8 || !is_ascii, smtputf8, changes };
        }
        let recoded = recode(&out, unwanted);
        let is_signed = recoded.is_signed_part_changed || (signed.is_signed && unwanted.long_lines);
        let made = [
            (recoded.is_encoded && unwanted.eight_bit, RawChange::BodyEncoded),
            (recoded.is_encoded && unwanted.long_lines, RawChange::LongLinesEncoded),
            (recoded.is_broken, RawChange::LongLinesBroken),
            (is_signed, RawChange::SignedContentChanged),
        ];
        changes.extend(made.into_iter().filter_map(|(is_made, change)| is_made.then_some(change)));
        WrittenRaw { eight_bit: !recoded.bytes.is_ascii(), bytes: recoded.bytes, smtputf8, changes }
    }
}
