//! The features of the text and of the parts of a mail, and their weights.

use super::super::bytes::{lines, starts_with, trim};
use super::super::diagnosis;
use super::super::mail::{ReportMail, ReportPartKind};
use super::super::notice_words::NoticeWords;
use super::super::original_message;
use super::super::reason::{self, ReportReason};
use super::{FeatureFamily, ReportJudgement};

/// How many lines are searched for a session or a quotation.
const LINES_MAX: usize = 500;

/// The minimum number of quoted lines of a reply.
const QUOTED_LINES_MIN: usize = 3;

/// Reasons that hardly anything but a mail system names; phrases of the others occur in ordinary mail.
const TELLING: [ReportReason; 9] = [
    ReportReason::UserUnknown,
    ReportReason::HostUnknown,
    ReportReason::MailboxFull,
    ReportReason::AccountDisabled,
    ReportReason::HasMoved,
    ReportReason::MessageTooBig,
    ReportReason::NotAccepting,
    ReportReason::RelayDenied,
    ReportReason::SenderRejected,
];

/// Weighs the parts of a mail, and the returned mail `below` its text.
pub(in crate::received) fn weigh_structure(
    judgement: &mut ReportJudgement,
    mail: &ReportMail<'_>,
    below: Option<&[u8]>,
) {
    let family = FeatureFamily::Structure;
    if mail.part(ReportPartKind::DeliveryStatus).is_some() {
        judgement.add(family, "delivery_status_part", 120);
    }
    if mail.is_report {
        judgement.add(family, "multipart_report", 60);
    }
    if mail.part(ReportPartKind::Returned).is_some() {
        judgement.add(family, "returned_mail", 25);
    }
    if below.is_some() {
        judgement.add(family, "returned_header", 20);
    }
    if judgement.weight(family) > 0 && original_message::is_to_sender(mail, below) {
        // A person who forwards a report sends the report; a report returns the mail.
        judgement.add(FeatureFamily::Envelope, "mail_goes_back_to_its_sender", 40);
    }
}

/// Weighs the text before the returned mail: `report` is the text, `flat` the same on one line, `words` the
/// phrases in it. Questions and quoted lines count against a sender that `is_doubted`.
pub(in crate::received) fn weigh_words(
    judgement: &mut ReportJudgement,
    report: &[u8],
    flat: &str,
    words: NoticeWords,
    is_doubted: bool,
) {
    if let Some(phrase) = words.admission {
        judgement.add_phrase(FeatureFamily::Admission, "admits_failure", phrase, 30);
    }
    if let Some(phrase) = words.delay {
        judgement.add_phrase(FeatureFamily::Admission, "admits_delay", phrase, 30);
    }
    if let Some(phrase) = words.challenge.filter(|_| is_doubted) {
        judgement.add_phrase(FeatureFamily::Conversation, "asks_the_sender", phrase, -80);
    }
    let codes = diagnosis::codes(flat.as_bytes());
    if codes.status.is_some_and(|status| status.class != 2) {
        judgement.add(FeatureFamily::Diagnosis, "enhanced_status", 25);
    }
    if codes.reply.is_some() {
        judgement.add(FeatureFamily::Diagnosis, "reply_code", 20);
    }
    if reason::speaks_for(flat.as_bytes(), &TELLING) {
        judgement.add(FeatureFamily::Diagnosis, "reason_in_words", 20);
    }
    weigh_lines(judgement, report, is_doubted);
}

fn weigh_lines(judgement: &mut ReportJudgement, report: &[u8], is_doubted: bool) {
    let mut quoted = 0;
    let mut is_session = false;
    for line in lines(report).take(LINES_MAX).map(trim) {
        is_session |= is_session_line(line);
        quoted += usize::from(line.starts_with(b">") && !line.starts_with(b">>>"));
    }
    if is_session {
        judgement.add(FeatureFamily::Transcript, "smtp_session", 30);
    }
    if is_doubted && quoted >= QUOTED_LINES_MIN {
        if judgement.weight(FeatureFamily::Conversation) <= -100 {
            // An administrator may paste a session into a reply; a report does not quote a question.
            judgement.add(FeatureFamily::Conversation, "answers_and_quotes", -160);
        } else if !is_session {
            judgement.add(FeatureFamily::Conversation, "quoted_lines", -40);
        }
    }
}

/// Whether a line is part of a quoted SMTP session, by the marks that programs use.
fn is_session_line(line: &[u8]) -> bool {
    if starts_with(line, b"rcpt to:") || starts_with(line, b"mail from:") {
        return true;
    }
    let asked: [&[u8]; 5] = [b">>> ", b"in:", b"--> ", b"sent: ", b"-> "];
    let commands: [&[u8]; 5] = [b"rcpt to:", b"mail from:", b"data", b"ehlo ", b"helo "];
    let replied: [&[u8]; 5] = [b"<<< ", b"out:", b"<-- ", b"received: ", b"<- "];
    let after = |marks: &[&[u8]]| {
        marks.iter().find(|mark| starts_with(line, mark)).map(|mark| trim(&line[mark.len()..]).to_vec())
    };
    if let Some(words) = after(&asked) {
        return commands.iter().any(|command| starts_with(&words, command));
    }
    after(&replied)
        .is_some_and(|words| matches!(words.as_slice(), [b'4' | b'5', b'0'..=b'9', b'0'..=b'9', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_session_are_known_by_their_marks() {
        for line in
            [">>> RCPT To:<a@example.org>", "<<< 550 no", "In:  RCPT TO:<a@example.org>", "Out: 451 4.3.0 x"]
        {
            assert!(is_session_line(line.as_bytes()), "{line}");
        }
        for line in [
            "> I wrote that",
            "mail from Ada",
            "in: 3 days",
            "Out: for lunch",
            "received: 4 letters",
            "-> see below",
        ] {
            assert!(!is_session_line(line.as_bytes()), "{line}");
        }
    }
}
