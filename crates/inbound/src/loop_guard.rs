//! Loop guards: mail that is not forwarded, whatever the rules say.
//!
//! Every forwarded mail carries a mark of each mailbox from which it was forwarded. A mailbox recognises its
//! own mark when the mail comes back, through any number of other mailboxes and gateways: they keep all marks
//! and count them. A mark is a keyed digest, so others cannot see which mailbox it names, and cannot forge
//! one to stop somebody's mail. While a secret key is being replaced, marks of both keys are recognised.
//!
//! A mail that is composed anew has none of the trace fields of its original. Its marks are its hop count:
//! each gateway adds one, and from [`FORWARDS_MAX`] on no gateway forwards it, whether it recognises the
//! marks or not.

use aws_lc_rs::hmac;
use postway_domain::secret::SecretKey;
use postway_mime::{LOOP_MARK_CHARS, LOOP_MARK_FIELD};
use postway_store::record::MailboxKey;

use crate::mail::ParsedMail;

/// The most servers that a mail may have passed.
const HOPS_MAX: usize = 50;
/// The most mailboxes that may have forwarded a mail, on any gateway.
const FORWARDS_MAX: usize = 10;

/// Makes the marks of mailboxes.
pub(crate) struct LoopMarker {
    /// The current key, then the earlier ones.
    keys: Vec<hmac::Key>,
}

/// The marks of one mailbox.
pub(crate) struct MailboxMarks {
    /// The mark that is written, then those made with earlier keys.
    known: Vec<String>,
}

impl LoopMarker {
    /// Derives the marking keys from the gateway's key.
    pub(crate) fn new(secret_key: &SecretKey) -> Self {
        let keys = std::iter::successors(Some(secret_key), |key| key.previous());
        let key = |key: &SecretKey| hmac::Key::new(hmac::HMAC_SHA256, &key.derive("forward-mark"));
        Self { keys: keys.map(key).collect() }
    }

    /// The marks of a mailbox.
    pub(crate) fn marks(&self, key: &MailboxKey) -> MailboxMarks {
        // Neither name can contain a slash.
        let name = format!("{}/{}", key.tenant, key.mailbox);
        let mark = |key: &hmac::Key| {
            let digest = hmac::sign(key, name.as_bytes());
            digest.as_ref().iter().take(LOOP_MARK_CHARS / 2).map(|byte| format!("{byte:02x}")).collect()
        };
        MailboxMarks { known: self.keys.iter().map(mark).collect() }
    }
}

impl MailboxMarks {
    /// The mark that is written.
    pub(crate) fn written(&self) -> &str {
        self.known.first().map_or("", String::as_str)
    }
}

/// Why this mail must not be forwarded, if so. `marks` are those of the mailbox that it is in.
pub(crate) fn loops(mail: &ParsedMail<'_>, marks: Option<&MailboxMarks>) -> Option<String> {
    let is_known = |found: String| {
        marks.is_some_and(|marks| marks.known.iter().any(|mark| mark.eq_ignore_ascii_case(&found)))
    };
    let why = if mail.plain(LOOP_MARK_FIELD).any(is_known) {
        "it was forwarded from this mailbox before".to_owned()
    } else if mail.count(LOOP_MARK_FIELD) >= FORWARDS_MAX {
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

    fn marks(texts: &[&str]) -> MailboxMarks {
        MailboxMarks { known: texts.iter().map(|text| (*text).to_owned()).collect() }
    }

    fn looped(header: &str) -> Option<String> {
        loops(&ParsedMail::new(format!("{header}\r\n\r\n").as_bytes()), Some(&marks(&["abcd", "ef01"])))
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
            &"X-Postway-Forwarded: other\r\n".repeat(FORWARDS_MAX - 1),
        ] {
            assert_eq!(looped(header), None, "{header}");
        }
    }

    #[test]
    fn mail_that_would_loop_is_not() {
        let hops = "Received: x\r\n".repeat(HOPS_MAX + 1);
        for header in [
            "X-Postway-Forwarded: abcd",
            "X-Postway-Forwarded: ABCD",
            "X-Postway-Forwarded: ef01",
            "Auto-Submitted: auto-replied",
            "Auto-Submitted: auto-generated; type=x",
            "Precedence: auto_reply",
            "Return-Path: <>",
            &format!("{hops}From: a@example.org"),
            &"X-Postway-Forwarded: other\r\n".repeat(FORWARDS_MAX),
        ] {
            assert!(looped(header).unwrap().starts_with("loop guard: "), "{header}");
        }
    }

    #[test]
    fn each_mailbox_has_its_own_mark_and_keeps_it() {
        let marker = |byte| LoopMarker::new(&SecretKey::from_bytes(&[byte; 32]).unwrap());
        let written = |marker: LoopMarker, mailbox: &str| {
            let key = MailboxKey { tenant: "t".parse().unwrap(), mailbox: mailbox.parse().unwrap() };
            marker.marks(&key).written().to_owned()
        };
        assert!(postway_mime::is_mark(&written(marker(1), "a")));
        assert_eq!(written(marker(1), "a"), written(marker(1), "a"));
        assert_ne!(written(marker(1), "a"), written(marker(1), "b"));
        assert_ne!(written(marker(1), "a"), written(marker(2), "a"));
    }

    #[test]
    fn a_mark_made_under_the_replaced_key_is_still_known() {
        let secret = |byte| SecretKey::from_bytes(&[byte; 32]).unwrap();
        let key = MailboxKey { tenant: "t".parse().unwrap(), mailbox: "a".parse().unwrap() };
        let old = LoopMarker::new(&secret(1)).marks(&key);
        let new = LoopMarker::new(&secret(2).with_previous(secret(1))).marks(&key);
        assert_ne!(old.written(), new.written());
        let returned = format!("{LOOP_MARK_FIELD}: {}\r\n\r\n", old.written());
        assert!(loops(&ParsedMail::new(returned.as_bytes()), Some(&new)).is_some());
    }
}
