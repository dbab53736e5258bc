//! What both sides said in an attempt that failed, for the people who look into it.
//!
//! Nothing is written down while a mail goes well. The commands follow from the envelope and the replies are
//! there anyway, so the text is made of them only once something was refused or lost. Only the opening of a
//! connection, which serves many mails, is noted as it happens.
//!
//! The text is bounded. It never has a credential, a token or a part of a mail; the addresses of a sensitive
//! mail are taken out of it ([`hide_addresses`]).

use std::sync::{Arc, Mutex, PoisonError};

use postway_domain::failure::SendFailure;

use crate::transport::{DeliveryEnd, MailEnvelope, RecipientReply, RelayReply};

use super::{
    capability::RelayExtensions,
    deliver::{EnvelopeCommand, write_step},
};

/// The most bytes of a dialogue, and how many of them are for its beginning.
const DIALOGUE_BYTES_MAX: usize = 8 * 1024;
const BEGINNING_BYTES_MAX: usize = 3 * 1024;
/// The most bytes that are kept of the opening of a connection.
const OPENING_BYTES_MAX: usize = 2 * 1024;
/// The most characters of a line.
const LINE_CHARS_MAX: usize = 500;
/// What stands in the place of a secret or an address.
const HIDDEN: &str = "***";
/// A shorter secret is not searched for in what the relay says: it would be found everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// The lines of a connection's opening. The wire adds to them, and whoever opened the connection reads them.
#[derive(Debug, Default, Clone)]
pub struct OpeningLog(Arc<Mutex<String>>);

impl OpeningLog {
    /// Adds a command without its line end.
    pub(super) fn command(&self, line: &str) {
        self.add("C: ", line);
    }

    /// Adds a reply. The challenges of a sign-in are hidden.
    pub(super) fn reply(&self, reply: &RelayReply) {
        match reply.code {
            334 => self.add("S: ", "334 ***"),
            _ => reply_lines(reply.code, reply.enhanced.map(|code| code.to_string()), &reply.text)
                .iter()
                .for_each(|line| self.add("S: ", line)),
        }
    }

    /// Adds a remark of our own.
    pub(super) fn remark(&self, text: &str) {
        self.add("-- ", text);
    }

    /// Takes a secret out of what the relay may have repeated.
    pub(super) fn hide(&self, secret: &str) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if secret.len() >= SECRET_BYTES_MIN && text.contains(secret) {
            *text = text.replace(secret, HIDDEN);
        }
    }

    /// The dialogue of a connection that could not be opened.
    pub fn ended_by(&self, failure: &SendFailure) -> String {
        let mut lines = self.lines();
        if failure.smtp_code.is_none() {
            lines.push(printable("-- ", &failure.message));
        }
        bounded(lines)
    }

    fn lines(&self) -> Vec<String> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.lines().map(str::to_owned).collect()
    }

    fn add(&self, side: &str, line: &str) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if text.len() < OPENING_BYTES_MAX {
            text.push_str(&printable(side, line));
            text.push('\n');
        }
    }
}

/// What is known of a mail's transaction besides the replies about recipients.
#[derive(Debug, Default)]
pub(super) struct MailTrail {
    /// The commands of the envelope, and how many of them were written.
    pub steps: Vec<EnvelopeCommand>,
    pub sent: usize,
    pub rset: Option<RelayReply>,
    pub mail: Option<RelayReply>,
    pub data: Option<RelayReply>,
    /// Whether all of the body was written.
    pub body: bool,
    /// Whether the final dot was written, or a part of it.
    pub dot: bool,
    /// LMTP: the replies to RCPT, which those after the dot replace in the result, and the latter.
    pub rcpt: Vec<RecipientReply>,
    pub answers: Vec<RelayReply>,
}

impl MailTrail {
    /// Keeps a positive reply to RSET or MAIL.
    pub(super) fn keep(&mut self, step: EnvelopeCommand, reply: Option<RelayReply>) {
        match step {
            EnvelopeCommand::Rset => self.rset = reply,
            EnvelopeCommand::Mail => self.mail = reply,
            EnvelopeCommand::Rcpt(_) | EnvelopeCommand::Data => {}
        }
    }
}

/// Whether there is something to explain.
pub(super) fn is_failed(end: &DeliveryEnd, recipients: &[RecipientReply]) -> bool {
    match end {
        DeliveryEnd::Accepted { .. } | DeliveryEnd::Captured { .. } => {
            recipients.iter().any(|reply| !reply.is_accepted())
        }
        DeliveryEnd::NotSent(_) | DeliveryEnd::InDoubt(_) | DeliveryEnd::NoRecipients => true,
        // Nobody refused anything: the mail was not ours to send any more.
        DeliveryEnd::GateRefused => false,
    }
}

/// The dialogue of a transaction that failed for some or all recipients.
pub(super) fn describe(
    opening: &OpeningLog,
    (envelope, offered): (&MailEnvelope<'_>, RelayExtensions),
    trail: &MailTrail,
    recipients: &[RecipientReply],
    end: &DeliveryEnd,
) -> String {
    let mut lines = opening.lines();
    let mut final_failure = match end {
        DeliveryEnd::NotSent(failure) | DeliveryEnd::InDoubt(failure) => Some(failure),
        DeliveryEnd::Accepted { .. }
        | DeliveryEnd::Captured { .. }
        | DeliveryEnd::GateRefused
        | DeliveryEnd::NoRecipients => None,
    };
    for &step in &trail.steps[..trail.sent.min(trail.steps.len())] {
        let mut command = Vec::new();
        write_step(&mut command, offered, envelope, step);
        lines.push(printable("C: ", String::from_utf8_lossy(&command).trim_end()));
        let told = match step {
            EnvelopeCommand::Rset => trail.rset.as_ref().map(ReplyText::of),
            EnvelopeCommand::Mail => trail.mail.as_ref().map(ReplyText::of),
            EnvelopeCommand::Data => trail.data.as_ref().map(ReplyText::of),
            EnvelopeCommand::Rcpt(at) => match trail.rcpt.get(at).or(recipients.get(at)) {
                Some(RecipientReply::Accepted(reply) | RecipientReply::Taken(reply)) => {
                    Some(ReplyText::of(reply))
                }
                Some(
                    RecipientReply::Refused(failure)
                    | RecipientReply::Deferred(failure)
                    | RecipientReply::Doubtful(failure),
                ) => ReplyText::of_failure(failure),
                Some(RecipientReply::NotTried) | None => None,
            },
        };
        // The reply that ended the transaction is known as its failure.
        let told = told.or_else(|| {
            let failure = final_failure.filter(|failure| failure.phase == step.phase())?;
            let told = ReplyText::of_failure(failure)?;
            final_failure = None;
            Some(told)
        });
        lines.extend(told.into_iter().flat_map(ReplyText::lines));
    }
    if trail.body {
        lines.push(format!("C: ({} bytes of mail, not shown)", envelope.size));
    }
    if trail.dot {
        lines.push("C: .".to_owned());
    }
    lines.extend(trail.answers.iter().flat_map(|reply| ReplyText::of(reply).lines()));
    let lost = recipients.iter().find_map(|reply| match reply {
        RecipientReply::Doubtful(failure) => Some(failure),
        RecipientReply::Accepted(_)
        | RecipientReply::Taken(_)
        | RecipientReply::Refused(_)
        | RecipientReply::Deferred(_)
        | RecipientReply::NotTried => None,
    });
    match (final_failure.or(lost), end) {
        (Some(failure), _) => match ReplyText::of_failure(failure) {
            Some(told) => lines.extend(told.lines()),
            None => lines.push(printable("-- ", &failure.message)),
        },
        (None, DeliveryEnd::Accepted { reply, .. }) if trail.answers.is_empty() => {
            lines.extend(ReplyText::of(reply).lines())
        }
        (None, _) => {}
    }
    bounded(lines)
}

/// Takes everything that looks like an address out of a dialogue.
pub(crate) fn hide_addresses(text: &str) -> String {
    let is_border = |c: char| c.is_whitespace() || "<>()[]\",;:".contains(c);
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_border).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        hidden.push_str(if word.contains('@') { HIDDEN } else { word });
        let border = after.chars().next().map_or(0, char::len_utf8);
        hidden.push_str(&after[..border]);
        rest = &after[border..];
    }
    hidden
}

/// A reply, as codes and text.
struct ReplyText {
    code: u16,
    enhanced: Option<String>,
    text: String,
}

impl ReplyText {
    fn of(reply: &RelayReply) -> Self {
        let enhanced = reply.enhanced.map(|code| code.to_string());
        Self { code: reply.code, enhanced, text: reply.text.clone() }
    }

    /// The reply that a failure was made of, if it was.
    fn of_failure(failure: &SendFailure) -> Option<Self> {
        let enhanced = failure.enhanced.map(|code| code.to_string());
        Some(Self { code: failure.smtp_code?, enhanced, text: failure.message.clone() })
    }

    fn lines(self) -> Vec<String> {
        let lines = reply_lines(self.code, self.enhanced, &self.text);
        lines.iter().map(|line| printable("S: ", line)).collect()
    }
}

/// The lines of a reply, with its codes.
fn reply_lines(code: u16, enhanced: Option<String>, text: &str) -> Vec<String> {
    let enhanced = enhanced.map(|enhanced| format!("{enhanced} ")).unwrap_or_default();
    let last = text.lines().count().saturating_sub(1);
    let line = |(at, line): (usize, &str)| {
        let border = if at < last { '-' } else { ' ' };
        format!("{code}{border}{enhanced}{line}")
    };
    match text.is_empty() {
        true => vec![format!("{code} {enhanced}").trim_end().to_owned()],
        false => text.lines().enumerate().map(line).collect(),
    }
}

/// A line that can be shown: bounded, and without control characters.
fn printable(side: &str, line: &str) -> String {
    let shown = line.chars().take(LINE_CHARS_MAX).map(|c| if c.is_control() { '.' } else { c });
    let cut = if line.chars().nth(LINE_CHARS_MAX).is_some() { "…" } else { "" };
    format!("{side}{}{cut}", shown.collect::<String>())
}

/// The lines as one text. If they are too many, the middle is left out: the end says what went wrong.
fn bounded(lines: Vec<String>) -> String {
    let size = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if size(&lines) <= DIALOGUE_BYTES_MAX {
        return lines.join("\n");
    }
    let mut room = BEGINNING_BYTES_MAX;
    let fits = |room: &mut usize, line: &String| {
        let left = room.checked_sub(line.len() + 1);
        *room = left.unwrap_or(0);
        left.is_some()
    };
    let first = lines.iter().take_while(|line| fits(&mut room, line)).count();
    // What a line about the gap takes.
    let mut room = DIALOGUE_BYTES_MAX - BEGINNING_BYTES_MAX - 64;
    let last = lines[first..].iter().rev().take_while(|line| fits(&mut room, line)).count();
    let gap = format!("-- {} lines are left out", lines.len() - first - last);
    let shown = lines[..first].iter().chain([&gap]).chain(&lines[lines.len() - last..]);
    shown.map(String::as_str).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_out_wherever_they_stand() {
        let text =
            "C: RCPT TO:<ann@example.org> ORCPT=rfc822;ann@example.org\nS: 550 ann@example.org: \"who?\"";
        assert_eq!(hide_addresses(text), "C: RCPT TO:<***> ORCPT=rfc822;***\nS: 550 ***: \"who?\"");
        assert_eq!(hide_addresses("S: 250 2.0.0 größe"), "S: 250 2.0.0 größe");
    }

    #[test]
    fn a_long_dialogue_keeps_its_beginning_and_its_end() {
        let lines: Vec<String> = (0..2_000).map(|number| format!("S: 250 line {number}")).collect();
        let text = bounded(lines);
        assert!(text.len() <= DIALOGUE_BYTES_MAX, "{}", text.len());
        assert!(text.starts_with("S: 250 line 0\n") && text.ends_with("S: 250 line 1999"), "{text}");
        assert!(text.contains("lines are left out"));
    }

    #[test]
    fn a_relay_cannot_break_lines_or_bounds() {
        assert_eq!(printable("S: ", "250 a\rb\u{1b}[31m"), "S: 250 a.b.[31m");
        assert!(printable("S: ", &"x".repeat(9_999)).chars().count() < LINE_CHARS_MAX + 10);
        let log = OpeningLog::default();
        (0..1_000).for_each(|_| log.command("NOOP"));
        assert!(log.lines().join("\n").len() < OPENING_BYTES_MAX + 100);
    }

    #[test]
    fn a_secret_that_the_relay_repeats_is_hidden() {
        let log = OpeningLog::default();
        log.reply(&RelayReply { code: 334, enhanced: None, text: "VXNlcm5hbWU6".to_owned() });
        log.reply(&RelayReply { code: 535, enhanced: None, text: "wrong: hunter22\nsorry".to_owned() });
        log.hide("hunter22");
        assert_eq!(log.lines(), ["S: 334 ***", "S: 535-wrong: ***", "S: 535 sorry"]);
    }
}
