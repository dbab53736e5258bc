//! Decides whether a mail comes from a mail system rather than from a person.
//!
//! A report in plain text looks like a mail in which a person discusses one. So a text is read as a report
//! only if the header shows that a machine wrote it; a mail in which a person forwards, quotes or discusses a
//! report is ordinary.

use super::bytes::{contains, starts_with, trim};
use super::header_field::{decoded_lowercase, field_contains};
use super::notice_words::notice_words;
use super::{address, auto_reply};
use crate::reader::{HeaderFields, unfold};

/// Prefixes that programs put before the subject of a reply or a forward, in many languages.
const CONVERSATION: &[&str] = &[
    "re:",
    "re :",
    "fw:",
    "fwd:",
    "aw:",
    "wg:",
    "antw:",
    "tr:",
    "rv:",
    "r:",
    "rif:",
    "i:",
    "res:",
    "enc:",
    "sv:",
    "vs:",
    "vb:",
    "odp:",
    "ynt:",
    "回复:",
    "回复：",
    "转发:",
    "转发：",
    "回覆:",
    "回覆：",
];

/// What the header shows about the sender of the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SenderTraits {
    /// The sender has a name that only mail systems use, or no name.
    pub(super) mailer: bool,
    /// The sender has a name that mail systems use, but their administrators too.
    pub(super) postmaster: bool,
    /// The envelope has no sender.
    pub(super) null_path: bool,
    /// It was sent to a return address, which people do not write to.
    pub(super) to_return_address: bool,
    /// The sender has a name such as `no-reply`: most likely a machine, but of any kind.
    pub(super) unattended: bool,
    /// The phrase in the subject that is typical of reports.
    pub(super) subject: Option<&'static str>,
    /// The header has a field that only reports have.
    pub(super) marked: bool,
    /// The header has a field of a service whose mails are reports in its own format.
    pub(super) service: bool,
    /// The subject is that of a reply or a forward.
    pub(super) conversation: bool,
    /// The subject is that of an automatic answer.
    pub(super) answer: bool,
}

impl SenderTraits {
    /// Reads a header.
    pub(super) fn read(head: HeaderFields<'_, '_>) -> Self {
        let from = head.get(b"from").unwrap_or_default();
        let subject = decoded_lowercase(head.get(b"subject").unwrap_or_default());
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
            to_return_address: head.get(b"to").is_some_and(is_return_address),
            unattended: is_unattended(from),
            subject: notice_words(&subject).subject,
            marked: marks.iter().any(|name| head.has(name))
                || field_contains(head, b"x-mailer", b"surfcontrol e-mail filter")
                || begins("there was an error sending your mail"),
            service: head.has(b"x-amz-sns-message-id") || head.has(b"x-mlserver"),
            conversation: CONVERSATION.iter().any(|word| begins(word)),
            answer: auto_reply::is_subject_of_answer(&subject),
        }
    }

    /// Whether a machine most likely wrote it: enough to read it as a report of a known format.
    pub(super) fn is_machine(self) -> bool {
        self.is_surely_machine() || self.postmaster || (self.null_path && !self.conversation)
    }

    /// Whether the subject is that of a report: then the mail is one if it returns a mail to its sender.
    pub(super) fn may_return(self) -> bool {
        self.subject.is_some() && !self.conversation && !self.answer
    }

    /// Whether a machine certainly wrote it: enough to accept text of no known format.
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

/// Words in names that mail systems use, but not only those.
const SYSTEM_NAMES: &[&[u8]] = &[
    b"mail administrator",
    b"system administrator",
    b"microsoft exchange",
    b"mail delivery",
    b"mail system",
    b"mail server",
    b"mail router",
    b"mail gateway",
    b"mail transport",
    b"mail transfer",
    b"internet mail",
    b"e-mail system",
    b"email system",
    b"delivery system",
    b"delivery service",
    b"delivery status",
    b"delivery notification",
    b"smtp gateway",
    b"smtp server",
    b"undeliver",
    b"returned mail",
    b"postmast",
];

/// Words in local parts that mail systems use, between dots, dashes and the like.
const SYSTEM_LOCALS: &[&str] = &[
    "bounce",
    "bounces",
    "mmdf",
    "pmdf",
    "uucp",
    "daemon",
    "maildelivery",
    "mailsystem",
    "mailserver",
    "mailrouter",
    "mailgate",
    "mailgateway",
    "smtp",
    "smtpd",
    "smtpgate",
    "mta",
    "mailer",
    "mailerdaemon",
    "postoffice",
];

/// Whether a `From` is one that mail systems use, but not only those.
fn is_postmaster(from: &[u8]) -> bool {
    let from = unfold(from);
    if SYSTEM_NAMES.iter().any(|name| contains(&from, name)) {
        return true;
    }
    let Some(address) = address::first(&from) else { return false };
    let local = address.split('@').next().unwrap_or_default().to_ascii_lowercase();
    matches!(local.as_str(), "post_master" | "mail-delivery" | "mail-system")
        || local.split(['.', '-', '_', '+']).any(|word| SYSTEM_LOCALS.contains(&word))
}

/// Whether a `To` is the return address of a list or a shop: `users-bounces@list.example`,
/// `bounce+17@shop.example`, `news-ada=example.org@list.example`.
fn is_return_address(to: &[u8]) -> bool {
    let Some(address) = address::first(&unfold(to)) else { return false };
    let Some((local, _)) = address.rsplit_once('@') else { return false };
    let local = local.to_ascii_lowercase();
    let is_word = |word: &str| matches!(word, "bounce" | "bounces" | "verp" | "returns");
    local.contains('=') || local.split(['.', '-', '_', '+']).any(is_word)
}

/// Whether a `From` is an unattended address.
fn is_unattended(from: &[u8]) -> bool {
    let names: [&[u8]; 13] = [
        b"administrator",
        b"admin@",
        b"root@",
        b"mailadmin",
        b"gateway",
        b"no-reply",
        b"noreply",
        b"no_reply",
        b"donotreply",
        b"do-not-reply",
        b"do_not_reply",
        b"nobody@",
        b"automated response",
    ];
    names.iter().any(|name| contains(from, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::HeaderBlock;

    fn read(head: &[u8]) -> SenderTraits {
        SenderTraits::read(HeaderBlock::read(head).fields())
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
    fn return_addresses_are_known_by_their_local_parts() {
        for to in ["users-bounces@list.example", "<bounce+17@shop.example>", "n-ada=example.org@list.example"]
        {
            assert!(is_return_address(to.as_bytes()), "{to}");
        }
        for to in ["ada@bounces.example", "users-admin@list.example", "trebounce@example.org", "nobody"] {
            assert!(!is_return_address(to.as_bytes()), "{to}");
        }
    }

    #[test]
    fn people_who_write_about_reports_are_people() {
        let sender =
            read(b"From: Ada <ada@example.org>\nSubject: Fwd: Undelivered Mail Returned to Sender\n\n");
        assert!(!sender.is_machine());
        assert!(sender.conversation);
    }
}
