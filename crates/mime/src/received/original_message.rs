//! Reads the ids and addresses of the returned mail, from its own part or from the text below a line that
//! announces it.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;

use super::bytes::{after, indent, lines, squeeze, starts_with, trim};
use super::mail::{ReportMail, ReportPartKind};
use super::report::OriginalMessage;
use crate::reader::{HeaderBlock, HeaderField, unfold};

/// How much of a returned mail is read: its header, and the beginning of its body, which may quote another
/// header.
const RETURNED_OCTETS_MAX: usize = 64 * 1024;

/// The longest value that is kept.
const VALUE_OCTETS_MAX: usize = 998;

/// The longest line that announces a mail.
const ANNOUNCEMENT_LINE_OCTETS_MAX: usize = 160;

/// Phrases that announce a returned mail, in lower case, without the decoration around them.
const ANNOUNCEMENTS: &[&str] = &[
    "this is a copy of the message, including",
    "this is a copy of your message, including",
    "this is a copy of the message's header",
    "this is a copy of the headers of",
    "below this line is a copy of",
    "below the next line is a copy",
    "below is a copy of",
    "enclosed is a copy of the message",
    "included is a copy of the message",
    "the header of the original message is following",
    "header of the original message",
    "--- original message ---",
    "----- original message -----",
    "original message follows",
    "original message headers follow",
    "original message headers:",
    "original message header",
    "original mail header",
    "-original mail info",
    "unsent message follows",
    "unsent message below",
    "returned message",
    "returned mail follows",
    "undelivered message follows",
    "message headers follow",
    "message header follows",
    "message text follows",
    "message follows:",
    "message body follows",
    "the message headers:",
    "start of returned message",
    "copy of the original message",
    "copy of your message",
    "your original message",
    "the original message was:",
    "your message follows",
    "your message reads",
    "text of message",
    "message contents follow",
    "first part of the message",
    "headers of the original message",
    "headers of your message",
];

static AUTOMATON: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(ANNOUNCEMENTS)
        .expect("the announcements are far below the limits of the automaton")
});

/// Separates the text of a report from the returned mail in the same text.
///
/// The returned mail begins after an announcement that is followed by a header, or at a line that begins with
/// a `Received` or `Return-Path` field.
pub(super) fn split_text(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    for found in AUTOMATON.find_iter(text) {
        if let Some(line) = short_line(text, found.range())
            && header_follows(&text[line.end..])
        {
            return (&text[..line.start], Some(&text[line.end..]));
        }
    }
    match bare_header(text) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    }
}

/// The line around a match, including its ending, unless it is too long to be an announcement. Nothing beyond
/// that length is searched, because a text may be one long line of announcements.
fn short_line(text: &[u8], place: Range<usize>) -> Option<Range<usize>> {
    let from = place.start.saturating_sub(ANNOUNCEMENT_LINE_OCTETS_MAX);
    let until = text.len().min(place.end + ANNOUNCEMENT_LINE_OCTETS_MAX);
    let start = match memchr::memrchr(b'\n', &text[from..place.start]) {
        Some(at) => from + at + 1,
        None if from == 0 => 0,
        None => return None,
    };
    let end = match memchr::memchr(b'\n', &text[place.end..until]) {
        Some(at) => place.end + at + 1,
        None if until == text.len() => until,
        None => return None,
    };
    (end - start <= ANNOUNCEMENT_LINE_OCTETS_MAX).then_some(start..end)
}

/// Whether the next line is a header field or the text ends; a line of dashes or of an mbox may precede it.
fn header_follows(text: &[u8]) -> bool {
    let mut lines = lines(text).map(trim).filter(|line| line.iter().any(u8::is_ascii_alphanumeric));
    match lines.next() {
        None => true,
        Some(line) if line.starts_with(b"From ") => lines.next().is_none_or(is_field),
        Some(line) => is_field(line),
    }
}

fn is_field(line: &[u8]) -> bool {
    HeaderField::from_line(line).is_some_and(|field| {
        field.name.len() > 1
            && field.name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    })
}

/// The offset of a header without an announcement.
fn bare_header(text: &[u8]) -> Option<usize> {
    let mut all = lines(text);
    loop {
        let begin = all.position();
        let line = all.next()?;
        let first = line.first().copied();
        if matches!(first, Some(b'R' | b'r' | b'D' | b'X' | b'>' | b' '))
            && begins_header(line.trim_ascii_start().strip_prefix(b">").unwrap_or(line).trim_ascii_start())
        {
            return Some(begin);
        }
    }
}

fn begins_header(line: &[u8]) -> bool {
    let received: [&[u8]; 7] = [
        b"received: from",
        b"received: by",
        b"received: (",
        b"received:from",
        b"return-path: <",
        b"dkim-signature: ",
        b"x-received: ",
    ];
    received.iter().any(|name| starts_with(line, name))
}

/// Reads what is known about the original mail. `below` is the returned mail that [`split_text`] found.
pub(super) fn read_original(mail: &ReportMail<'_>, report: &[u8], below: Option<&[u8]>) -> OriginalMessage {
    let mut original = OriginalMessage::default();
    if let Some(below) = below {
        read(&below[..below.len().min(RETURNED_OCTETS_MAX)], &mut original);
    }
    if let Some(part) = mail.part(ReportPartKind::Returned) {
        let content = part.content();
        read(&content[..content.len().min(RETURNED_OCTETS_MAX)], &mut original);
    }
    if original.message_id.is_none() {
        // Some reports contain the id in their text: "Message-ID: <…>" on a separate line.
        original.message_id = lines(report).map(trim).find_map(|line| {
            let value =
                after_label(line, &[b"message-id:", b"message id:", b"messageid:", b"original message-id:"])?;
            bare_id(value)
        });
    }
    original
}

/// The sender and the recipients of the original mail.
#[derive(Debug, Default)]
pub(super) struct OriginalParties {
    pub(super) sender: Option<String>,
    pub(super) return_path: Option<String>,
    pub(super) recipients: Vec<String>,
}

/// The maximum number of recipients that are read.
const PARTIES_MAX: usize = 100;

/// Reads the sender and the recipients of the original mail. `below` is the returned mail that [`split_text`]
/// found.
pub(super) fn read_parties(mail: &ReportMail<'_>, below: Option<&[u8]>) -> OriginalParties {
    let mut parties = OriginalParties::default();
    if let Some(below) = below {
        let text = skip_to_header(&below[..below.len().min(RETURNED_OCTETS_MAX)]);
        add_parties(&HeaderBlock::read(text), &mut parties);
    }
    if let Some(part) = mail.part(ReportPartKind::Returned) {
        let content = part.content();
        let text = skip_to_header(&content[..content.len().min(RETURNED_OCTETS_MAX)]);
        add_parties(&HeaderBlock::read(text), &mut parties);
    }
    parties
}

/// Whether the report goes to the sender of the returned mail: to the address in its `From` or `Return-Path`.
pub(super) fn is_to_sender(mail: &ReportMail<'_>, below: Option<&[u8]>) -> bool {
    let Some(to) = mail.header().get(b"to").and_then(|value| super::address::first(&unfold(value))) else {
        return false;
    };
    let parties = read_parties(mail, below);
    [parties.sender, parties.return_path].into_iter().flatten().any(|sender| sender.eq_ignore_ascii_case(&to))
}

fn add_parties(block: &HeaderBlock<'_>, parties: &mut OriginalParties) {
    let head = block.fields();
    let sender = head.get(b"from").and_then(|value| super::address::first(&unfold(value)));
    parties.sender = parties.sender.take().or(sender);
    let return_path = head.get(b"return-path").and_then(|value| super::address::first(&unfold(value)));
    parties.return_path = parties.return_path.take().or(return_path);
    let names: [&[u8]; 3] = [b"to", b"cc", b"x-original-to"];
    for value in names.into_iter().flat_map(|name| head.all(name)) {
        let value = unfold(value);
        let mut from = 0;
        while let Some(found) = super::address::next(&value, from)
            && parties.recipients.len() < PARTIES_MAX
        {
            from = found.end;
            parties.recipients.push(found.address);
        }
    }
    // Received: from … by … for <a@example.org>
    for value in head.all(b"received").take(PARTIES_MAX) {
        let addressed = after(value, b"for <").and_then(super::address::first);
        if parties.recipients.len() < PARTIES_MAX {
            parties.recipients.extend(addressed);
        }
    }
}

fn after_label<'a>(line: &'a [u8], labels: &[&[u8]]) -> Option<&'a [u8]> {
    labels.iter().find(|label| starts_with(line, label)).map(|label| &line[label.len()..])
}

/// Reads the header that a text begins with.
fn read(text: &[u8], original: &mut OriginalMessage) {
    let text = skip_to_header(text);
    let shift = indent(text);
    if shift > 0 {
        // The whole mail is indented: the indentation is removed, the folds are kept.
        let mut shifted = Vec::with_capacity(text.len());
        for line in lines(text) {
            shifted.extend_from_slice(&line[indent(line).min(shift)..]);
            shifted.push(b'\n');
        }
        return read_head(&HeaderBlock::read(&shifted), original);
    }
    read_head(&HeaderBlock::read(text), original);
}

/// The text from the first header field on.
fn skip_to_header(text: &[u8]) -> &[u8] {
    let mut all = lines(text);
    loop {
        let begin = all.position();
        match all.next() {
            Some(line) if is_field(trim(line)) => return &text[begin..],
            Some(_) if begin < 4096 => {}
            _ => return b"",
        }
    }
}

fn read_head(block: &HeaderBlock<'_>, original: &mut OriginalMessage) {
    let head = block.fields();
    let value = |name: &[u8]| {
        head.get(name)
            .map(|value| squeeze(&unfold(value), VALUE_OCTETS_MAX))
            .filter(|value| !value.is_empty())
    };
    if original.message_id.is_none() {
        original.message_id = head.all(b"message-id").find_map(|value| bare_id(&unfold(value)));
    }
    if original.message_id.is_none() && !head.has(b"from") {
        // A blank line divides the header.
        let rest = HeaderBlock::read(block.body);
        original.message_id = rest.fields().get(b"message-id").and_then(|value| bare_id(&unfold(value)));
    }
    original.postway_id = original.postway_id.take().or_else(|| value(b"x-postway-id"));
    original.return_path = original
        .return_path
        .take()
        .or_else(|| head.get(b"return-path").and_then(|value| bare_id(&unfold(value))));
    original.to = original
        .to
        .take()
        .or_else(|| head.get(b"to").and_then(|value| super::address::first(&unfold(value))));
    original.subject = original.subject.take().or_else(|| value(b"subject"));
    original.date = original.date.take().or_else(|| value(b"date"));
}

/// An id without its angle brackets.
pub(super) fn bare_id(value: &[u8]) -> Option<String> {
    let value = trim(value);
    let inner = match after(value, b"<") {
        Some(inner) => &inner[..memchr::memchr(b'>', inner).unwrap_or(inner.len())],
        None => &value[..value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len())],
    };
    let inner = trim(inner);
    (!inner.is_empty() && inner.len() <= VALUE_OCTETS_MAX)
        .then(|| squeeze(inner, VALUE_OCTETS_MAX))
        .filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announced_header_ends_the_report() {
        let text =
            b"It failed.\n\n------ This is a copy of the message, including all the headers. ------\n\n\
            Received: x\nMessage-ID: <a@b>\n\nbody";
        let (report, below) = split_text(text);
        assert_eq!(report, b"It failed.\n\n");
        let mail = ReportMail::parse(b"\n");
        assert_eq!(read_original(&mail, report, below).message_id.as_deref(), Some("a@b"));
    }

    #[test]
    fn a_header_that_nothing_announces_ends_the_report_too() {
        let (report, below) = split_text(b"failed\nReceived: from x by y\nMessage-Id: <c@d>\n");
        assert_eq!(report, b"failed\n");
        assert!(below.is_some());
    }

    #[test]
    fn an_indented_header_is_read() {
        let mut original = OriginalMessage::default();
        read(
            b"\n   From x\n   Subject: a\n     b\n   Message-Id:\n    <e@f>\n   X-Postway-ID: 7\n",
            &mut original,
        );
        assert_eq!(original.message_id.as_deref(), Some("e@f"));
        assert_eq!(original.postway_id.as_deref(), Some("7"));
        assert_eq!(original.subject.as_deref(), Some("a b"));
    }

    #[test]
    fn ids_may_come_without_brackets() {
        assert_eq!(bare_id(b" a@b (c)").as_deref(), Some("a@b"));
        assert_eq!(bare_id(b"<>"), None);
    }
}
