//! Whether a mail comes from a mail system rather than from a person.
//!
//! Reports that are written as plain text look like what people write about them. So a text is read as a
//! report only when the header says that a machine wrote it; what a person forwards, quotes or asks about
//! stays ordinary.

use super::address;
use super::bytes::{contains, starts_with, trim};
use super::field::{plain, says};
use crate::reader::{HeaderFields, unfold};

/// Words in the subjects of reports, in lower case.
const SUBJECTS: &[&str] = &[
    "undeliver",
    "delivery fail",
    "delivery has failed",
    "delivery status",
    "delivery notification",
    "delivery report",
    "delivery problem",
    "delivery error",
    "delivery delayed",
    "delivery unsuccessful",
    "delivery incomplete",
    "delivery warning",
    "delayed mail",
    "message delayed",
    "mail delivery",
    "failure notice",
    "failure delivery",
    "failed mail",
    "failed to deliver",
    "mail failure",
    "mail failed",
    "mail system error",
    "mail could not be delivered",
    "message could not be delivered",
    "non delivery",
    "non-delivery",
    "nondeliverable",
    "not delivered",
    "returned mail",
    "returned to sender",
    "returning message to sender",
    "warning: could not send",
    "warning: message",
    "user unknown",
    "unzustellbar",
    "mancato recapito",
    "mancata consegna",
    "remise de message",
    "no se puede entregar",
    "could not send message",
    "error sending your mail",
];

/// What the header says about who wrote the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sender {
    /// A name that only mail systems send under, or none.
    pub(super) mailer: bool,
    /// A name that mail systems send under, but their keepers too.
    pub(super) postmaster: bool,
    /// An envelope without a sender.
    pub(super) null_path: bool,
    /// A subject that reports have.
    pub(super) subject: bool,
    /// A field that only reports have.
    pub(super) marked: bool,
    /// A field of a service whose mail may be a report in a form of its own, and nothing else.
    pub(super) service: bool,
    /// A reply, a forward, or mail of a list or newsletter.
    pub(super) conversation: bool,
}

impl Sender {
    /// Reads a header.
    pub(super) fn read(head: HeaderFields<'_, '_>) -> Self {
        let from = head.get(b"from").unwrap_or_default();
        let subject = plain(head.get(b"subject").unwrap_or_default());
        let path = head.get(b"return-path");
        let null_path = path
            .is_some_and(|path| matches!(path, b"<>" | b"" | b"< >") || starts_with(path, b"<mailer-daemon"));
        let marks: [&[u8]; 4] =
            [b"x-failed-recipients", b"x-bounced-address", b"x-mx-bounce", b"x-ms-exchange-message-is-ndr"];
        let begins = |word: &str| subject.starts_with(word);
        Self {
            mailer: is_mailer(from),
            postmaster: is_postmaster(from),
            null_path,
            subject: SUBJECTS.iter().any(|word| subject.contains(word)),
            marked: marks.iter().any(|name| head.has(name))
                || says(head, b"x-mailer", b"surfcontrol e-mail filter")
                || begins("there was an error sending your mail"),
            service: head.has(b"x-amz-sns-message-id") || head.has(b"x-mlserver"),
            conversation: begins("re:")
                || begins("fw:")
                || begins("fwd:")
                || (head.has(b"list-unsubscribe") && !null_path),
        }
    }

    /// Whether a machine most likely wrote it: enough to read it as a report of a known form.
    pub(super) fn is_machine(self) -> bool {
        self.is_surely_machine() || self.postmaster || (self.null_path && !self.conversation)
    }

    /// Whether it may be a report. An automatic answer has no sender on the envelope either: it needs more
    /// than that.
    pub(super) fn may_report(self, is_auto_reply: bool) -> bool {
        let is_more = self.is_surely_machine() || self.postmaster || self.subject;
        self.service || (self.is_machine() && (is_more || !is_auto_reply))
    }

    /// Whether a machine surely wrote it: enough to believe words that belong to no known form.
    pub(super) fn is_surely_machine(self) -> bool {
        self.mailer || self.marked
    }
}

/// Whether a `From` is one that mail systems use.
fn is_mailer(from: &[u8]) -> bool {
    let from = unfold(from);
    let from = trim(&from);
    if from.is_empty() || from == b"<>" {
        return true;
    }
    let names: [&[u8]; 15] = [
        b"mailer-daemon",
        b"mailer daemon",
        b"mailerdaemon",
        b"mail-daemon",
        b"maildaemon",
        b"mail delivery s",
        b"mail deliver s",
        b"mail.delivery.system",
        b"mail delivery agent",
        b"delivery subsystem",
        b"amazon simple email",
        b"e-mail interconnect",
        b"mdaemon@",
        b"smtp_mail_service",
        b"inter-scan",
    ];
    names.iter().any(|name| contains(from, name))
}

/// Whether a `From` is one that mail systems use, but not only they.
fn is_postmaster(from: &[u8]) -> bool {
    let from = unfold(from);
    let names: [&[u8]; 3] = [b"mail administrator", b"system administrator", b"microsoft exchange"];
    if names.iter().any(|name| contains(&from, name)) {
        return true;
    }
    let Some(address) = address::first(&from) else { return contains(&from, b"postmaster") };
    let local = address.split('@').next().unwrap_or_default().to_ascii_lowercase();
    let locals = [
        "post_master",
        "mail-delivery",
        "maildelivery",
        "bounce",
        "bounces",
        "mmdf",
        "uucp",
        "daemon",
        "mail-system",
        "mailsystem",
        "mailgate",
        "smtp",
        "mta",
        "mailer",
        "postoffice",
    ];
    locals.contains(&local.as_str()) || local.contains("postmaster")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::HeaderBlock;

    fn read(head: &[u8]) -> Sender {
        Sender::read(HeaderBlock::read(head).fields())
    }

    #[test]
    fn mail_systems_are_known_by_their_names() {
        assert!(read(b"From: MAILER-DAEMON <>\n\n").is_machine());
        assert!(read(b"From: \"Mail Delivery System\" <x@example.org>\n\n").is_machine());
        assert!(read(b"From: Postmaster <postmaster@example.org>\n\n").is_machine());
        assert!(read(b"From: a@example.org\nReturn-Path: <>\n\n").is_machine());
        assert!(!read(b"From: Postmaster <postmaster@example.org>\n\n").is_surely_machine());
    }

    #[test]
    fn people_who_write_about_reports_are_people() {
        let sender =
            read(b"From: Ada <ada@example.org>\nSubject: Fwd: Undelivered Mail Returned to Sender\n\n");
        assert!(!sender.is_machine());
        assert!(sender.conversation);
    }
}
