//! Ready-made mail, as handed in over SMTP, by `postway send --eml` or raw submission: carried, not judged.
//!
//! [`inspect_raw`] reads from whom and to whom it says it is. [`finish_raw`] makes the mail ours: CRLF everywhere, `Bcc` and
//! `Return-Path` gone, `X-Postway-ID` and what was missing (`Message-ID`, `Date`, `MIME-Version`, an author) in front of it.
//! All else is passed on byte for byte, above all what somebody signed, unless no server may take it so: lines over 998
//! octets are folded or encoded, and so is a header that is not ASCII. What was changed is told ([`RawChange`]). Refused are
//! only NUL and a header over 256 KiB.
//!
//! A Message-ID that is one is kept. Of all other `X-Postway-…` fields only marks against loops stay ([`crate::MARK_FIELD`]): another
//! gateway may have made them. Fields by which other services are spoken to go as well, for they mean nothing to readers.

use std::{collections::BTreeSet, net::IpAddr};

use mail_builder::headers::date::Date;
use postway_domain::address::{AddressError, EmailAddress, Mailbox};

use super::{
    header::{Field, HEADER_BLOCK_OCTETS_MAX, RawError, RawHeader},
    writer::{RawChange, RawWriter, WrittenRaw},
};
use crate::{
    compose::check_ids,
    header::write::{write_extra, write_mailboxes},
    reader::{HeaderAddress, addresses, unstructured},
    wire::lines::Lines,
};

/// How many marks a mail keeps. Far more than a mail may have and still be forwarded.
const MARKS_MAX: usize = 32;
/// Fields by which Postmark and Resend are spoken to over SMTP. What they choose is read before ([`own_fields`]).
const OF_OTHER_SERVICES: [&str; 2] = ["X-PM-", "Resend-Idempotency-Key"];

/// What a ready-made mail says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawInfo {
    /// The first author with an address that can be used.
    pub from: Option<Mailbox>,
    /// What an author without such an address is called.
    pub from_name: Option<String>,
    /// The recipients in `To`, groups dissolved.
    pub to: Vec<Mailbox>,
    /// The recipients in `Cc`.
    pub cc: Vec<Mailbox>,
    /// The recipients in `Bcc`, which will not be in the finished mail.
    pub bcc: Vec<Mailbox>,
    /// The first recipient that is none. It matters only to who has no other list of recipients.
    pub bad_recipient: Option<RawError>,
    /// Why the header ends where it does, if it is not whole.
    pub bad_header: Option<RawError>,
    /// The subject, decoded.
    pub subject: Option<String>,
}

/// What a ready-made mail is finished with.
#[derive(Debug, Clone, Copy)]
pub struct RawFinish<'a> {
    /// The Message-ID for a mail without one, `uid@domain`, without angle brackets.
    pub message_id: &'a str,
    /// The message's uid, for `X-Postway-ID`.
    pub uid: &'a str,
    /// The time for a mail without a Date, in seconds since 1970.
    pub date_unix: i64,
    /// The author of a mail that names none that can be used.
    pub author: Option<&'a Mailbox>,
    /// How it came, if it came over SMTP.
    pub trace: Option<Trace<'a>>,
    /// Fields by which the reader leaves a list, for a mail that has none of its own.
    pub unsubscribe: &'a [(&'a str, String)],
    /// Whether we sign it: then octets beyond ASCII are encoded first, so that no relay has to (RFC 6376, 5.3).
    pub is_to_be_signed: bool,
}

/// A ready-made mail, ready for the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRaw {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its Message-ID, without angle brackets: its own, or the one it was given.
    pub message_id: String,
    /// Whether there is an octet over 127 in it, so that it needs 8BITMIME.
    pub eight_bit: bool,
    /// Whether there is one in its header, so that it needs SMTPUTF8.
    pub smtputf8: bool,
    /// What was changed.
    pub changes: BTreeSet<RawChange>,
}

/// Reads the header.
pub fn inspect_raw(bytes: &[u8]) -> Result<RawInfo, RawError> {
    let header = RawHeader::read(bytes)?;
    let mut info = RawInfo { bad_header: header.fault.clone(), ..RawInfo::default() };
    let authors = header.fields.iter().filter(|field| field.is("From"));
    for found in authors.flat_map(|field| addresses(field.value, HEADER_BLOCK_OCTETS_MAX)) {
        match mailbox(&found) {
            Ok(author) => {
                info.from = Some(author);
                break;
            }
            Err(_) => info.from_name = info.from_name.or(found.name),
        }
    }
    info.to = recipients("To", &header, &mut info.bad_recipient);
    info.cc = recipients("Cc", &header, &mut info.bad_recipient);
    info.bcc = recipients("Bcc", &header, &mut info.bad_recipient);
    // An encoded word may hold any character; nobody who shows or stores a subject wants a line break.
    let subject = header.first("Subject").map(|field| unstructured(field.value));
    info.subject = subject.filter(|text| !text.is_empty()).map(|text| text.replace(char::is_control, " "));
    Ok(info)
}

/// Makes the mail ours and ready for the wire.
pub fn finish_raw(bytes: &[u8], finish: &RawFinish<'_>) -> Result<FinishedRaw, RawError> {
    check_ids(finish.message_id, finish.uid)?;
    let header = RawHeader::read(bytes)?;
    if header.fault.is_some() && hides_bcc(header.body) {
        return Err(header.fault.unwrap_or(RawError::NoHeader));
    }
    let mut writer = RawWriter::new(bytes, &header);
    let message_id = header.message_id();
    write_in_front(&mut writer, &header, message_id, finish);
    write_fields(&mut writer, &header, message_id.is_some(), finish.author.is_some());
    if header.fault.is_some() {
        writer.changes.insert(RawChange::HeaderEnded);
    }
    // Encoding makes text longer, and the next server has a bound as well.
    if writer.out.len() > HEADER_BLOCK_OCTETS_MAX {
        return Err(RawError::HeaderTooLong);
    }
    let WrittenRaw { bytes, eight_bit, smtputf8, changes } =
        writer.finish(header.body, finish.is_to_be_signed);
    let message_id = message_id.unwrap_or(finish.message_id).to_owned();
    Ok(FinishedRaw { bytes, message_id, eight_bit, smtputf8, changes })
}

/// Whether what stands behind a broken header looks like its rest and has a `Bcc`, which everybody would then read.
fn hides_bcc(rest: &[u8]) -> bool {
    let header = Lines::new(rest).map(|(line, _)| line).take_while(|line| !line.is_empty());
    let is_bcc = |line: &[u8]| {
        let line = line.trim_ascii_start();
        let name =
            line.get(..7).filter(|name| name.eq_ignore_ascii_case(b"resent-")).map_or(line, |_| &line[7..]);
        name.get(..3).is_some_and(|name| name.eq_ignore_ascii_case(b"bcc"))
    };
    header.take(10_000).any(is_bcc)
}

/// Our own fields, before those of the mail: a signature counts fields of one name from the end. A field that somebody signed as
/// missing stays so.
fn write_in_front(
    writer: &mut RawWriter,
    header: &RawHeader<'_>,
    message_id: Option<&str>,
    finish: &RawFinish<'_>,
) {
    let mut fields = String::with_capacity(512);
    if let Some(trace) = &finish.trace {
        fields += &trace.field(finish.date_unix);
    }
    fields += &format!("X-Postway-ID: {}\r\n", finish.uid);
    let ids = header.count("Message-ID");
    if message_id.is_none() && (ids > 0 || writer.lacks(header, "Message-ID")) {
        fields += &format!("Message-ID: <{}>\r\n", finish.message_id);
        let change = if ids > 0 { RawChange::MessageIdReplaced } else { RawChange::MessageIdAdded };
        writer.changes.insert(change);
    }
    if writer.lacks(header, "Date") {
        fields += &format!("Date: {}\r\n", Date::new(finish.date_unix).to_rfc822());
        writer.changes.insert(RawChange::DateAdded);
    }
    if writer.lacks(header, "MIME-Version") {
        fields += "MIME-Version: 1.0\r\n";
        writer.changes.insert(RawChange::MimeVersionAdded);
    }
    writer.out.extend_from_slice(fields.as_bytes());
    if finish.unsubscribe.iter().all(|(name, _)| writer.lacks(header, name))
        && header.count("List-Unsubscribe") == 0
    {
        for (name, value) in finish.unsubscribe {
            write_extra(name, value, &mut writer.out);
            writer.changes.insert(RawChange::UnsubscribeAdded);
        }
    }
    if let Some(author) = finish.author {
        write_mailboxes("From", std::slice::from_ref(author), &mut writer.out);
        writer.changes.insert(RawChange::FromCompleted);
    }
}

/// The fields of the mail, in their order.
fn write_fields(writer: &mut RawWriter, header: &RawHeader<'_>, keeps_id: bool, has_other_author: bool) {
    let is_usable = |field: &Field<'_>| {
        addresses(field.value, HEADER_BLOCK_OCTETS_MAX).iter().any(|one| mailbox(one).is_ok())
    };
    let mut authors = header.fields.iter().enumerate().filter(|(_, field)| field.is("From"));
    let author = match header.count("From") {
        1 => authors.next(),
        _ => authors.find(|(_, field)| is_usable(field)),
    };
    let author = author.map(|(at, _)| at);
    let sender = header.fields.iter().position(|field| field.is("Sender"));
    let is_of_a_service = |field: &Field<'_>| OF_OTHER_SERVICES.iter().any(|prefix| field.begins(prefix));
    let (mut marks, mut ids) = (0, 0);
    for (at, field) in header.fields.iter().enumerate() {
        if field.is("Bcc") || field.is("Resent-Bcc") {
            writer.changes.insert(RawChange::BccRemoved);
        } else if field.is("Message-ID") && !keeps_id {
            ids += 1;
            if ids == 1 {
                writer.write(&Field { name: b"X-Original-Message-ID", value: field.value });
            }
        } else if field.is("Return-Path") || (field.is("X-Original-Message-ID") && !keeps_id) {
            continue;
        } else if field.is_ours() {
            marks += usize::from(field.is_mark());
            if field.is_mark() && marks <= MARKS_MAX {
                field.write(&mut writer.out);
            }
        } else if field.is("From") && (has_other_author || author != Some(at)) {
            writer.write(&Field { name: b"X-Original-From", value: field.value });
            writer.changes.extend((!has_other_author).then_some(RawChange::AuthorRepeated));
        } else if field.is("Sender") && sender != Some(at) {
            writer.write(&Field { name: b"X-Original-Sender", value: field.value });
            writer.changes.insert(RawChange::AuthorRepeated);
        } else if is_of_a_service(field) && !writer.signed.cover(field.name) {
            writer.changes.insert(RawChange::ServiceFieldsRemoved);
        } else {
            writer.write(field);
        }
    }
}

/// The fields of a mail that speak to Postway, `X-Postway-…`, or to a service that it stands in for, `X-PM-…` and
/// `Resend-Idempotency-Key`: their names and what they say, unfolded and decoded, in order: what is not ASCII, or is long, mail
/// programs write as encoded words. Only marks against loops are in the finished mail. Looks at the header only.
pub fn own_fields(bytes: &[u8]) -> Result<Vec<(String, String)>, RawError> {
    let header = RawHeader::read(bytes)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let speaks =
        |field: &&Field<'_>| field.is_ours() || OF_OTHER_SERVICES.iter().any(|prefix| field.begins(prefix));
    let spoken = header.fields.iter().filter(speaks);
    Ok(spoken.map(|field| (text(field.name), unstructured(field.value).trim().to_owned())).collect())
}

/// From whom a mail was taken over SMTP, as its trace field tells (RFC 5321, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace<'a> {
    /// What the client called itself.
    pub greeted_as: &'a str,
    /// From where it came.
    pub peer: IpAddr,
    /// What we call ourselves.
    pub by: &'a str,
    /// The protocol's name, such as `ESMTPSA`.
    pub with: &'static str,
    /// Our name for the transaction.
    pub id: &'a str,
}

impl Trace<'_> {
    /// The field. What a client calls itself is its own invention: where it is no host's name, it is not repeated.
    pub fn field(&self, date_unix: i64) -> String {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let named = (1..=255).contains(&self.greeted_as.len()) && self.greeted_as.bytes().all(is_name);
        let greeted_as = if named { self.greeted_as } else { "unknown" };
        let tag = if self.peer.is_ipv6() { "IPv6:" } else { "" };
        let Self { peer, by, with, id, .. } = self;
        let date = Date::new(date_unix).to_rfc822();
        format!(
            "Received: from {greeted_as} ([{tag}{peer}])\r\n\tby {by} with {with} id {id};\r\n\t{date}\r\n"
        )
    }
}

fn mailbox(found: &HeaderAddress) -> Result<Mailbox, AddressError> {
    let address: EmailAddress = found.address.as_deref().unwrap_or_default().parse()?;
    Mailbox::new(found.name.as_deref(), address)
}

/// The mailboxes in the fields of that name, groups dissolved; the first that is none is noted.
fn recipients(name: &'static str, header: &RawHeader<'_>, bad: &mut Option<RawError>) -> Vec<Mailbox> {
    let fields = header.fields.iter().filter(|field| field.is(name));
    // The header is bounded, and so is what it can name.
    let found = fields.flat_map(|field| addresses(field.value, HEADER_BLOCK_OCTETS_MAX));
    let good = found.filter_map(|found| match mailbox(&found) {
        Ok(mailbox) => Some(mailbox),
        Err(error) => {
            bad.get_or_insert(RawError::Address { field: name, error });
            None
        }
    });
    good.collect()
}
