//! Extracts codes from text: the reply code, the enhanced status, and the command that a server answered.
//!
//! A code counts only if it is isolated: not inside a longer number, a version, a host address or a word. No
//! code is derived from another; a code that the text does not contain is `None`.

use super::bytes::{contains, find};

/// The command that a server answered, or the step of the session that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmtpPhase {
    Connect,
    Hello,
    Sender,
    Recipient,
    Data,
}

/// An enhanced status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EnhancedStatus {
    pub(super) class: u8,
    pub(super) subject: u16,
    pub(super) detail: u16,
}

impl EnhancedStatus {
    /// Whether it contains no information beyond its class.
    pub(super) fn is_general(self) -> bool {
        self.subject == 0 && self.detail == 0
    }

    /// Whether it only says that the delivery time expired (x.4.7).
    pub(super) fn is_expiry(self) -> bool {
        self.subject == 4 && self.detail == 7
    }

    /// Whether it names only the subject of `other`, without its detail.
    pub(super) fn is_outline_of(self, other: Self) -> bool {
        self.detail == 0 && other.detail != 0 && (self.class, self.subject) == (other.class, other.subject)
    }

    /// Reads the status at the beginning of a field's value, such as `5.1.1 (bad mailbox)`. Non-standard
    /// subjects are accepted here, because the field contains nothing else.
    pub(super) fn leading(value: &[u8]) -> Option<Self> {
        read_numbers(value.trim_ascii_start()).map(|(status, _)| status)
    }
}

impl std::fmt::Display for EnhancedStatus {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

/// The codes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DiagnosticCodes {
    /// The first reply code of a failure.
    pub(super) reply: Option<u16>,
    /// The most specific status.
    pub(super) status: Option<EnhancedStatus>,
}

/// The maximum number of codes that are read in one text.
const CODES_MAX: usize = 64;

/// The codes that a text contains.
///
/// Of several statuses the first of the most specific ones is used (its class alone, or "expired", is least
/// specific), with the reply code of the same class right before it, or else the first of that class; `554
/// 4.4.7 expired <421 4.4.2 timed out>` gives 421 and 4.4.2.
pub(super) fn codes(text: &[u8]) -> DiagnosticCodes {
    let mut replies = [(0_u16, 0_usize); CODES_MAX];
    let mut reply_count = 0;
    // In `554 <a@example.org>... 550 no such user` the second code is the reply; the first only says that
    // there was one.
    let mut quoted = None;
    let mut best: Option<(EnhancedStatus, usize)> = None;
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let begin = at;
        while at < text.len() && (text[at].is_ascii_digit() || text[at] == b'.') {
            at += 1;
        }
        let before = begin.checked_sub(1).map(|at| text[at]);
        let number = &text[begin..at];
        let next = text.get(at).copied();
        if !may_precede(before) || next.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'@') {
            continue;
        }
        if let Some(reply) = read_reply(number).or_else(|| leading_reply(number, &text[..begin], &text[at..]))
            && reply_count < CODES_MAX
            && !(before == Some(b'-') && next == Some(b'-'))
        {
            if quoted.is_none() && text[..begin].ends_with(b"... ") {
                quoted = Some(reply);
            }
            replies[reply_count] = (reply, begin);
            reply_count += 1;
        } else if let Some((status, length)) = read_status(number)
            && number[length..].iter().all(|&b| b == b'.')
            && before != Some(b'/')
            && !text[..begin].ends_with(b"ersion ")
        {
            let better = match best {
                None => true,
                Some((known, _)) => weight(status) > weight(known),
            };
            if better {
                best = Some((status, begin));
            }
        }
    }
    let replies = &replies[..reply_count];
    let reply = match best {
        Some((status, place)) => {
            let same = |(reply, _): &&(u16, usize)| reply / 100 == u16::from(status.class);
            replies
                .iter()
                .rfind(|reply| reply.1 < place && place - reply.1 < 8 && same(reply))
                .or_else(|| replies.iter().find(same))
                .or_else(|| replies.first())
        }
        None => replies.first(),
    };
    let reply = reply.map(|reply| reply.0);
    let reply = if best.is_none() { quoted.or(reply) } else { reply };
    DiagnosticCodes { reply, status: best.map(|(status, _)| status) }
}

/// How specific a status is.
fn weight(status: EnhancedStatus) -> u8 {
    match status {
        // A quoted session also contains replies to accepted commands.
        status if status.class == 2 => 0,
        status if status.is_general() => 1,
        status if status.is_expiry() => 2,
        status if status.detail == 0 => 3,
        _ => 4,
    }
}

/// Whether a code may follow that octet.
fn may_precede(octet: Option<u8>) -> bool {
    match octet {
        None => true,
        Some(octet) => {
            !octet.is_ascii_alphanumeric() && !matches!(octet, b'.' | b'_' | b'@' | b'+' | b'%' | b'$')
        }
    }
}

/// A reply code of a failure that a standard names (RFC 5321, 1985, 4954, 5248, 7504).
fn read_reply(number: &[u8]) -> Option<u16> {
    let number = number.strip_suffix(b".").unwrap_or(number);
    let [class @ (b'4' | b'5'), tens @ b'0'..=b'7', ones @ b'0'..=b'9'] = number else { return None };
    let code = u16::from(class - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
    let transient = matches!(code, 421 | 422 | 430 | 432 | 450..=455 | 458 | 459);
    let permanent = matches!(code, 500..=504 | 521 | 523..=525 | 530 | 533..=535 | 538 | 550..=556);
    (transient || permanent).then_some(code)
}

/// A non-standard reply code, such as 571. It is accepted only where it cannot be anything else: at the
/// beginning of the text, after words that announce a reply, or before an enhanced status of its class.
fn leading_reply(number: &[u8], before: &[u8], after: &[u8]) -> Option<u16> {
    let [class @ (b'4' | b'5'), b'0'..=b'7', b'0'..=b'9'] = number else { return None };
    let announces: [&[u8]; 3] = [b"said: ", b"<<< ", b"reply was: "];
    let is_announced = before.is_empty() || announces.iter().any(|words| before.ends_with(words));
    let [b' ' | b'-', words @ ..] = after else { return None };
    let has_status = words.first() == Some(class) && EnhancedStatus::leading(words).is_some();
    let code = number.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    (is_announced || has_status).then_some(code)
}

/// The status at the beginning of the number, and its length.
fn read_status(number: &[u8]) -> Option<(EnhancedStatus, usize)> {
    // X.0.1 is not a status but a version number.
    read_numbers(number)
        .filter(|(status, _)| status.subject <= 7 && (status.subject > 0 || status.detail == 0))
}

/// Reads the three numbers of a status without checking their meaning.
fn read_numbers(number: &[u8]) -> Option<(EnhancedStatus, usize)> {
    let class = match number {
        [class @ (b'2' | b'4' | b'5'), b'.', ..] => class - b'0',
        _ => return None,
    };
    let (subject, used) = read_number(&number[2..])?;
    let rest = number[2 + used..].strip_prefix(b".")?;
    let (detail, more) = read_number(rest)?;
    Some((EnhancedStatus { class, subject, detail }, 3 + used + more))
}

/// A number of one to three digits without a leading zero.
fn read_number(text: &[u8]) -> Option<(u16, usize)> {
    let length = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if length == 0 || length > 3 || (length > 1 && text[0] == b'0') {
        return None;
    }
    Some((text[..length].iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')), length))
}

/// The command that was answered, by the words that servers and clients use for it. The latest in a session
/// counts.
pub(super) fn phase(text: &[u8]) -> Option<SmtpPhase> {
    let data: [&[u8]; 11] = [
        b"in reply to end of data",
        b"end of data",
        b"reply to data",
        b"final data",
        b">>> data",
        b">>> .",
        b"after i sent the message",
        b"[data]",
        b"[eob]",
        b"data command",
        b"data send",
    ];
    let recipient: [&[u8]; 11] = [
        b"rcpt to",
        b"rcpt_to",
        b"rcpt command",
        b"does not like recipient",
        b"smtp:rcpt",
        b"rejected address",
        b"rcpt to:",
        b"while talking rcpt",
        b"step: rcpt",
        b"[rcpt",
        // MessageLabs begins its reports like this. They are only about recipients.
        b"this is the mail delivery agent at",
    ];
    let sender: [&[u8]; 6] = [
        b"mail from",
        b"mail_from",
        b"sender was rejected",
        b"step: mail",
        b"does not like sender",
        b"[mail]",
    ];
    let hello: [&[u8]; 6] = [
        b"reply to helo",
        b"reply to ehlo",
        b"after ehlo",
        b"after helo",
        b"my name was rejected",
        b"[ehlo]",
    ];
    let connect: [&[u8]; 5] = [
        b"initial connection",
        b"refused to talk to me",
        b"initial server greeting",
        b"while receiving the initial",
        b"[connect]",
    ];
    let any = |words: &[&[u8]]| words.iter().any(|word| contains(text, word));
    if any(&data) {
        Some(SmtpPhase::Data)
    } else if any(&recipient) {
        Some(SmtpPhase::Recipient)
    } else if any(&sender) {
        Some(SmtpPhase::Sender)
    } else if any(&hello) {
        Some(SmtpPhase::Hello)
    } else if any(&connect) {
        Some(SmtpPhase::Connect)
    } else {
        gmail_state(text)
    }
}

/// The step of the session that Gmail used to append to a reply as a number, as in `(state 14)`.
fn gmail_state(text: &[u8]) -> Option<SmtpPhase> {
    let at = find(text, b"(state ")?;
    let (number, _) = read_number(&text[at + 7..])?;
    Some(match number {
        6 => SmtpPhase::Sender,
        8..=9 => SmtpPhase::Hello,
        12 | 15 => SmtpPhase::Sender,
        13 | 14 => SmtpPhase::Recipient,
        17 | 18 => SmtpPhase::Data,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<u16>, Option<String>) {
        let codes = codes(text.as_bytes());
        (codes.reply, codes.status.map(|status| status.to_string()))
    }

    #[test]
    fn codes_are_read_where_they_stand_alone() {
        assert_eq!(read("550 5.1.1 <a@example.org>... unknown"), (Some(550), Some("5.1.1".to_owned())));
        assert_eq!(read("550-5.7.26 a 550 5.7.26 b"), (Some(550), Some("5.7.26".to_owned())));
        assert_eq!(read("sorry (#5.1.1)"), (None, Some("5.1.1".to_owned())));
        assert_eq!(read("host mx.example.org[5.1.1.9] said: 421 busy"), (Some(421), None));
        assert_eq!(read("mail.550.example, id 5501, x550, port 25"), (None, None));
        assert_eq!(read("Exim 4.72, 5.65/1.37, MDaemon 5.0.5, version 4.2.1"), (None, None));
    }

    #[test]
    fn a_code_of_no_standard_is_read_where_a_reply_begins() {
        assert_eq!(read("571 message refused"), (Some(571), None));
        assert_eq!(read("the host said: 541 looks like spam"), (Some(541), None));
        assert_eq!(read("it was 511 5.1.1 unknown"), (Some(511), Some("5.1.1".to_owned())));
        assert_eq!(read("of 571 mails 511 failed"), (None, None));
        assert_eq!(read("571"), (None, None));
    }

    #[test]
    fn what_a_reply_quotes_is_the_reply() {
        assert_eq!(read("554 <a@example.org>... 550 Host unknown"), (Some(550), None));
        assert_eq!(read("550 <a@example.org>... unknown"), (Some(550), None));
        let session = "Out: 250 2.1.5 Ok In: DATA Out: 451 4.3.0 write error";
        assert_eq!(read(session), (Some(451), Some("4.3.0".to_owned())));
    }

    #[test]
    fn the_code_of_the_actual_problem_is_preferred() {
        let text =
            "554 4.4.7 Message expired: unable to deliver in 840 minutes.<421 4.4.2 Connection timed out>";
        assert_eq!(read(text), (Some(421), Some("4.4.2".to_owned())));
        assert_eq!(read("554 5.0.0 failed 550 5.7.1 denied"), (Some(550), Some("5.7.1".to_owned())));
    }

    #[test]
    fn the_step_of_the_session_is_named() {
        assert_eq!(phase(b"(in reply to RCPT TO command)"), Some(SmtpPhase::Recipient));
        assert_eq!(phase(b"(in reply to end of DATA command)"), Some(SmtpPhase::Data));
        assert_eq!(phase(b"no such user (state 14)"), Some(SmtpPhase::Recipient));
        assert_eq!(phase(b"no such user"), None);
    }
}
