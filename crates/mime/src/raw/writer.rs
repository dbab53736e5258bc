//! Writing ready-made mail on: as it is, unless no server may take it so.
//!
//! A header line over 998 octets is folded, header text beyond ASCII is encoded unless somebody signed it, a part with lines
//! that are too long is encoded. Each such change is noted.

use std::collections::BTreeSet;

use super::{
    ascii_header::write_in_ascii,
    downgrade::charset,
    header::{Field, RawHeader, SignedFields},
    recode::{Unwanted, recode},
};
use crate::wire::lines::{Lines, are_short};

/// Something that was changed in a ready-made mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RawChange {
    /// It named no author with an address, so it got one; what stood there is in `X-Original-From`.
    FromCompleted,
    /// It had several `From` or `Sender` fields: the first that can be used counts, others are in `X-Original-…`.
    AuthorRepeated,
    /// It had no Message-ID.
    MessageIdAdded,
    /// It had something else in place of a Message-ID, or several; the first is in `X-Original-Message-ID`.
    MessageIdReplaced,
    /// It had no Date.
    DateAdded,
    /// It had no MIME-Version.
    MimeVersionAdded,
    /// Fields by which the reader leaves its stream were added.
    UnsubscribeAdded,
    /// `Bcc` is gone.
    BccRemoved,
    /// Fields that speak to other services are gone.
    ServiceFieldsRemoved,
    /// A header without an end got one.
    HeaderEnded,
    /// Header text beyond ASCII was encoded.
    HeaderEncoded,
    /// Header lines that were too long were folded.
    HeaderFolded,
    /// Octets beyond ASCII in the body were encoded, so that our signature lasts.
    BodyEncoded,
    /// Parts with lines that were too long were encoded.
    LongLinesEncoded,
    /// Lines that were too long were broken where no encoding could help.
    LongLinesBroken,
    /// Something was changed that somebody had signed.
    SignedContentChanged,
}

impl RawChange {
    /// The word users see.
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

/// A mail that is being written on.
pub(crate) struct RawWriter {
    pub(crate) signed: SignedFields,
    /// What header text that is not UTF-8 is taken for.
    charset: Option<Vec<u8>>,
    pub(crate) out: Vec<u8>,
    pub(crate) changes: BTreeSet<RawChange>,
}

/// A mail that has been written on.
pub(crate) struct WrittenRaw {
    pub(crate) bytes: Vec<u8>,
    pub(crate) eight_bit: bool,
    pub(crate) smtputf8: bool,
    pub(crate) changes: BTreeSet<RawChange>,
}

impl RawWriter {
    /// For the mail with this header.
    pub(crate) fn new(bytes: &[u8], header: &RawHeader<'_>) -> Self {
        let is_ascii = header.fields.iter().all(|field| field.value.is_ascii());
        Self {
            signed: header.signed(),
            charset: if is_ascii { None } else { charset(bytes) },
            out: Vec::with_capacity(bytes.len() + bytes.len() / 32 + 1024),
            changes: BTreeSet::new(),
        }
    }

    /// Whether a field of that name may be added: there is none, and nobody signed that there is none.
    pub(crate) fn lacks(&self, header: &RawHeader<'_>, name: &str) -> bool {
        header.first(name).is_none() && !self.signed.cover(name.as_bytes())
    }

    /// A field as it is, unless no server may take it so.
    pub(crate) fn write(&mut self, field: &Field<'_>) {
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

    /// Ends the header and writes the body. Where the mail is to be signed by us, octets beyond ASCII are encoded first, so
    /// that no relay has to do it afterwards (RFC 6376, 5.3), but never what somebody else has signed.
    pub(crate) fn finish(self, body: &[u8], is_to_be_signed: bool) -> WrittenRaw {
        let Self { mut out, mut changes, signed, .. } = self;
        let smtputf8 = !out.is_ascii();
        out.extend_from_slice(b"\r\n");
        for (line, _) in Lines::new(body) {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
        let is_ascii = body.is_ascii();
        let unwanted = Unwanted {
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
