//! Ready-made mail that was submitted over SMTP, by `postway send --eml` or by raw submission. It is
//! delivered as it was written, if possible.
//!
//! [`inspect_raw`] reads the author and the recipients that its header names. [`finish_raw`] makes the mail
//! ours: it has CRLF line endings only, no `Bcc` and no `Return-Path`, and in front of it `X-Postway-ID` and
//! the missing fields (`Message-ID`, `Date`, `MIME-Version`, an author). Everything else is passed on byte
//! for byte, above all signed content, unless no server may accept it: lines over 998 octets are folded or
//! encoded, and so is a header that is not ASCII. Each change is reported ([`RawChange`]). Only NUL and a
//! header over 256 KiB are refused.
//!
//! A valid Message-ID is kept. Of the `X-Postway-…` fields only loop marks stay ([`crate::LOOP_MARK_FIELD`]),
//! because another gateway may have written them. Fields that control other services are removed as well,
//! because they mean nothing to readers.

use std::{collections::BTreeSet, net::IpAddr};

use mail_builder::headers::date::Date;
use postway_domain::address::{AddressError, EmailAddress, NamedAddress};

use super::{
    header::{HEADER_BLOCK_OCTETS_MAX, RawError, RawField, RawHeader},
    writer::{RawChange, RawWriter, WrittenRaw},
};
use crate::{
    compose::check_ids,
    header::write::{write_extra, write_mailboxes},
    reader::{HeaderAddress, addresses, unstructured},
    wire::lines::TextLines,
};

/// How many loop marks a mail keeps: far more than a mail may have and still be forwarded.
const MARKS_MAX: usize = 32;
/// Fields that control Postmark and Resend over SMTP. [`control_fields`] reads their values first.
const OF_OTHER_SERVICES: [&str; 2] = ["X-PM-", "Resend-Idempotency-Key"];

/// What the header of a ready-made mail says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawInfo {
    /// The first author with a valid address.
    pub from: Option<NamedAddress>,
    /// The name of an author without such an address.
    pub from_name: Option<String>,
    /// The recipients in `To`, with groups expanded.
    pub to: Vec<NamedAddress>,
    /// The recipients in `Cc`.
    pub cc: Vec<NamedAddress>,
    /// The recipients in `Bcc`, which will not be in the finished mail.
    pub bcc: Vec<NamedAddress>,
    /// The first invalid recipient. It matters only if the caller has no envelope recipients.
    pub bad_recipient: Option<RawError>,
    /// Why the header ends early, if it is incomplete.
    pub bad_header: Option<RawError>,
    /// The subject, decoded.
    pub subject: Option<String>,
}

/// What [`finish_raw`] adds to a ready-made mail.
#[derive(Debug, Clone, Copy)]
pub struct RawFinish<'a> {
    /// The Message-ID for a mail without one, `uid@domain`, without angle brackets.
    pub message_id: &'a str,
    /// The message's uid, for `X-Postway-ID`.
    pub uid: &'a str,
    /// The time for a mail without a Date, in seconds since 1970.
    pub date_unix: i64,
    /// The author of a mail whose header has no valid author.
    pub author: Option<&'a NamedAddress>,
    /// The SMTP session it came from, if it came over SMTP.
    pub trace: Option<SmtpTrace<'a>>,
    /// Unsubscribe fields for a mail that has none.
    pub unsubscribe: &'a [(&'a str, String)],
    /// Whether we sign it. Octets beyond ASCII are then encoded first, so that no relay has to (RFC 6376,
    /// 5.3).
    pub is_to_be_signed: bool,
}

/// A ready-made mail that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRaw {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its Message-ID, without angle brackets: its own, or the one that was added.
    pub message_id: String,
    /// Whether it contains an octet over 127, so that it needs 8BITMIME.
    pub eight_bit: bool,
    /// Whether its header contains one, so that it needs SMTPUTF8.
    pub smtputf8: bool,
    /// The changes that were made.
    pub changes: BTreeSet<RawChange>,
}

/// Reads the header of a ready-made mail.
pub fn inspect_raw(bytes: &[u8]) -> Result<RawInfo, RawError> {
    let header = RawHeader::read(bytes)?;
    let mut info = RawInfo { bad_header: header.fault.clone(), ..RawInfo::default() };
    let authors = header.fields.iter().filter(|field| field.is("From"));
    for named in authors.flat_map(|field| addresses(field.value, HEADER_BLOCK_OCTETS_MAX)) {
        match to_mailbox(&named) {
            Ok(author) => {
                info.from = Some(author);
                break;
            }
            Err(_) => info.from_name = info.from_name.or(named.name),
        }
    }
    info.to = read_recipients("To", &header, &mut info.bad_recipient);
    info.cc = read_recipients("Cc", &header, &mut info.bad_recipient);
    info.bcc = read_recipients("Bcc", &header, &mut info.bad_recipient);
    // An encoded word may contain any character, but a subject that is shown or stored must have no line
    // break.
    let subject = header.first("Subject").map(|field| unstructured(field.value));
    info.subject = subject.filter(|text| !text.is_empty()).map(|text| text.replace(char::is_control, " "));
    Ok(info)
}

/// Makes the mail ours and ready to be sent.
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
    // Encoding makes text longer, and the next server has a limit as well.
    if writer.out.len() > HEADER_BLOCK_OCTETS_MAX {
        return Err(RawError::HeaderTooLong);
    }
    let WrittenRaw { bytes, eight_bit, smtputf8, changes } =
        writer.finish(header.body, finish.is_to_be_signed);
    let message_id = message_id.unwrap_or(finish.message_id).to_owned();
    Ok(FinishedRaw { bytes, message_id, eight_bit, smtputf8, changes })
}

/// Whether the text behind a broken header looks like the rest of the header and has a `Bcc`, which every
/// recipient would then see.
fn hides_bcc(rest: &[u8]) -> bool {
    let header = TextLines::new(rest).map(|(line, _)| line).take_while(|line| !line.is_empty());
    let is_bcc = |line: &[u8]| {
        let line = line.trim_ascii_start();
        let name =
            line.get(..7).filter(|name| name.eq_ignore_ascii_case(b"resent-")).map_or(line, |_| &line[7..]);
        name.get(..3).is_some_and(|name| name.eq_ignore_ascii_case(b"bcc"))
    };
    header.take(10_000).any(is_bcc)
}

/// Writes our own fields before those of the mail, because a signature counts fields of one name from the
/// end. A field whose absence is signed is not added.
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

/// Writes the fields of the mail, in their order.
fn write_fields(writer: &mut RawWriter, header: &RawHeader<'_>, keeps_id: bool, has_other_author: bool) {
    let is_usable = |field: &RawField<'_>| {
        addresses(field.value, HEADER_BLOCK_OCTETS_MAX).iter().any(|one| to_mailbox(one).is_ok())
    };
    let mut authors = header.fields.iter().enumerate().filter(|(_, field)| field.is("From"));
    let author = match header.count("From") {
        1 => authors.next(),
        _ => authors.find(|(_, field)| is_usable(field)),
    };
    let author = author.map(|(at, _)| at);
    let sender = header.fields.iter().position(|field| field.is("Sender"));
    let is_of_a_service = |field: &RawField<'_>| OF_OTHER_SERVICES.iter().any(|prefix| field.begins(prefix));
    let (mut marks, mut ids) = (0, 0);
    for (at, field) in header.fields.iter().enumerate() {
        if field.is("Bcc") || field.is("Resent-Bcc") {
            writer.changes.insert(RawChange::BccRemoved);
        } else if field.is("Message-ID") && !keeps_id {
            ids += 1;
            if ids == 1 {
                writer.write(&RawField { name: b"X-Original-Message-ID", value: field.value });
            }
        } else if field.is("Return-Path") || (field.is("X-Original-Message-ID") && !keeps_id) {
            continue;
        } else if field.is_ours() {
            marks += usize::from(field.is_mark());
            if field.is_mark() && marks <= MARKS_MAX {
                field.write(&mut writer.out);
            }
        } else if field.is("From") && (has_other_author || author != Some(at)) {
            writer.write(&RawField { name: b"X-Original-From", value: field.value });
            writer.changes.extend((!has_other_author).then_some(RawChange::AuthorRepeated));
        } else if field.is("Sender") && sender != Some(at) {
            writer.write(&RawField { name: b"X-Original-Sender", value: field.value });
            writer.changes.insert(RawChange::AuthorRepeated);
        } else if is_of_a_service(field) && !writer.signed.cover(field.name) {
            writer.changes.insert(RawChange::ServiceFieldsRemoved);
        } else {
            writer.write(field);
        }
    }
}

/// The fields of a mail that control Postway (`X-Postway-…`) or a service that it replaces (`X-PM-…`,
/// `Resend-Idempotency-Key`), and `traceparent`, which stays in the mail, in order: names, and values unfolded
/// and decoded, since mail programs write long or non-ASCII values as encoded words. Of the others only loop
/// marks are in the finished mail. Reads the header only.
pub fn control_fields(bytes: &[u8]) -> Result<Vec<(String, String)>, RawError> {
    let header = RawHeader::read(bytes)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let is_control_field = |field: &&RawField<'_>| {
        field.is_ours()
            || field.is("traceparent")
            || OF_OTHER_SERVICES.iter().any(|prefix| field.begins(prefix))
    };
    let control_fields = header.fields.iter().filter(is_control_field);
    Ok(control_fields.map(|field| (text(field.name), unstructured(field.value).trim().to_owned())).collect())
}

/// The SMTP session that a mail was received in, for its trace field (RFC 5321, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmtpTrace<'a> {
    /// The name that the client gave in EHLO.
    pub greeted_as: &'a str,
    /// The client's address.
    pub peer: IpAddr,
    /// Our own host name.
    pub by: &'a str,
    /// The protocol's name, such as `ESMTPSA`.
    pub with: &'static str,
    /// Our id of the transaction.
    pub id: &'a str,
}

impl SmtpTrace<'_> {
    /// The `Received` field. A client can give any name: one that is not a host name is not repeated.
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

fn to_mailbox(named: &HeaderAddress) -> Result<NamedAddress, AddressError> {
    let address: EmailAddress = named.address.as_deref().unwrap_or_default().parse()?;
    NamedAddress::new(named.name.as_deref(), address)
}

/// The mailboxes in the fields named `name`, with groups expanded. The first invalid address is stored in
/// `bad`.
fn read_recipients(
    name: &'static str,
    header: &RawHeader<'_>,
    bad: &mut Option<RawError>,
) -> Vec<NamedAddress> {
    let fields = header.fields.iter().filter(|field| field.is(name));
    // The header is bounded, so the number of addresses is, too.
    let named = fields.flat_map(|field| addresses(field.value, HEADER_BLOCK_OCTETS_MAX));
    let good = named.filter_map(|one| match to_mailbox(&one) {
        Ok(mailbox) => Some(mailbox),
        Err(error) => {
            bad.get_or_insert(RawError::Address { field: name, error });
            None
        }
    });
    good.collect()
}
