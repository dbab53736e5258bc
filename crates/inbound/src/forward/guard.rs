//! Guards against loops: mail that must not be sent on, whatever the rules say.
//!
//! Every forwarded mail carries a mark of the mailbox that it was forwarded from. Mail that comes back to the same mailbox is
//! known by it, through however many other mailboxes it went. The mark is a keyed digest: it tells nobody outside whose
//! mailbox it was, and nobody else can make one that stops somebody's mail.

use aws_lc_rs::hmac;
use postway_domain::secret::SecretKey;
use postway_store::record::MailboxKey;

use crate::mail::Mail;

/// The field that the mark stands in.
pub(crate) const MARK_FIELD: &str = "X-Postway-Forwarded";
/// How many servers a mail may have gone through.
const HOPS_MAX: usize = 50;
/// How many mailboxes of this kind it may have been forwarded by.
const FORWARDS_MAX: usize = 10;
/// How much of the digest is written, in bytes.
const MARK_BYTES: usize = 16;

/// Makes the marks.
pub(crate) struct Marker {
    key: hmac::Key,
}

impl Marker {
    /// With the gateway's key.
    pub(crate) fn new(secret_key: &SecretKey) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &secret_key.derive("forward-mark")) }
    }

    /// The mark of a mailbox.
    pub(crate) fn mark(&self, key: &MailboxKey) -> String {
        // Neither name can contain a slash.
        let name = format!("{}/{}", key.tenant, key.mailbox);
        let digest = hmac::sign(&self.key, name.as_bytes());
        digest.as_ref().iter().take(MARK_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether a text may be a mark, of whichever gateway: others may put anything into the field.
pub(crate) fn is_mark(text: &str) -> bool {
    text.len() == 2 * MARK_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Why this mail must not be sent on, where it must not. `mark` is that of the mailbox it is in.
pub(crate) fn loops(mail: &Mail<'_>, mark: Option<&str>) -> Option<String> {
    let why = if mark.is_some_and(|mark| mail.plain(MARK_FIELD).any(|found| found == mark)) {
        "it was forwarded from this mailbox before".to_owned()
    } else if mail.count(MARK_FIELD) >= FORWARDS_MAX {
        format!("it was forwarded {FORWARDS_MAX} times already")
    } else if mail.plain("Auto-Submitted").any(|value| !is_no(&value)) {
        "it was sent by a machine (Auto-Submitted)".to_owned()
    } else if mail.plain("Precedence").any(|value| value.eq_ignore_ascii_case("auto_reply"))
        || mail.count("X-Autoreply") > 0
        || mail.plain("X-Autorespond").next().is_some()
    {
        "it is an automatic reply".to_owned()
    } else if mail.count("Received") > HOPS_MAX {
        format!("it went through more than {HOPS_MAX} servers")
    } else if mail.plain("Return-Path").any(|value| value.trim() == "<>") {
        "its sender is empty, as of a delivery report".to_owned()
    } else {
        return None;
    };
    Some(format!("loop guard: {why}"))
}

/// `no`, with or without parameters and comments (RFC 3834, 5).
fn is_no(value: &str) -> bool {
    let word = value.split([';', '(', ' ', '\t']).next().unwrap_or_default();
    word.eq_ignore_ascii_case("no")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looped(header: &str, mark: Option<&str>) -> Option<String> {
        loops(&Mail::new(format!("{header}\r\n\r\n").as_bytes()), mark)
    }

    #[test]
    fn ordinary_mail_and_list_mail_are_sent_on() {
        let hops = "Received: x\r\n".repeat(HOPS_MAX);
        for header in [
            "From: a@example.org",
            "Auto-Submitted: no",
            "Auto-Submitted: No; x=y",
            "Precedence: list",
            "Precedence: bulk",
            "Return-Path: <a@example.org>",
            &format!("{hops}From: a@example.org"),
            "X-Postway-Forwarded: 1234",
        ] {
            assert_eq!(looped(header, Some("abcd")), None, "{header}");
        }
    }

    #[test]
    fn mail_that_would_loop_is_not() {
        let hops = "Received: x\r\n".repeat(HOPS_MAX + 1);
        for header in [
            "X-Postway-Forwarded: abcd",
            "Auto-Submitted: auto-replied",
            "Auto-Submitted: auto-generated; type=x",
            "Precedence: auto_reply",
            "Return-Path: <>",
            &format!("{hops}From: a@example.org"),
            &"X-Postway-Forwarded: other\r\n".repeat(FORWARDS_MAX),
        ] {
            assert!(looped(header, Some("abcd")).unwrap().starts_with("loop guard: "), "{header}");
        }
    }

    #[test]
    fn each_mailbox_has_its_own_mark_and_keeps_it() {
        let marker = |byte| Marker::new(&SecretKey::from_bytes(&[byte; 32]).unwrap());
        let key =
            |mailbox: &str| MailboxKey { tenant: "t".parse().unwrap(), mailbox: mailbox.parse().unwrap() };
        assert_eq!(marker(1).mark(&key("a")), marker(1).mark(&key("a")));
        assert_ne!(marker(1).mark(&key("a")), marker(1).mark(&key("b")));
        assert_ne!(marker(1).mark(&key("a")), marker(2).mark(&key("a")));
    }
}
