//! No form in particular: a machine says that a mail failed, and somewhere there is the address of who did
//! not get it.
//!
//! Believed only when a machine surely wrote it and the words admit a failure. The address is, in this order:
//! what the header names, an address in the words that is also that of the returned mail, or the first in the
//! words that is not the sender's or the reader's own.

use super::super::address;
use super::super::bytes::{contains, starts_with};
use super::super::draft::Draft;
use super::Text;
use crate::reader::unfold;

/// Words that admit a failure or a delay, in lower case.
const ADMISSIONS: &[&[u8]] = &[
    b"could not be delivered",
    b"couldn't be delivered",
    b"could not deliver",
    b"cannot be delivered",
    b"can not be delivered",
    b"can't be delivered",
    b"was not delivered",
    b"wasn't delivered",
    b"not be delivered",
    b"has not been delivered",
    b"unable to deliver",
    b"unable to send",
    b"unable to be delivered",
    b"able to deliver",
    b"not delivered",
    b"undeliverable",
    b"undelivered",
    b"delivery failed",
    b"delivery failure",
    b"delivery has failed",
    b"delivery has been failed",
    b"delivery error",
    b"delivery to the following",
    b"delivery was not possible",
    b"delivery attempt",
    b"failed to deliver",
    b"could not be sent",
    b"trouble delivering",
    b"delivery problems",
    b"error sending your mail",
    b"not been able to deliver",
    b"failed to reach",
    b"did not reach",
    b"failed permanently",
    b"permanent error",
    b"permanent failure",
    b"permanent fatal",
    b"temporary failure",
    b"transient failure",
    b"returned to sender",
    b"returned mail",
    b"mailbox is full",
    b"mailbox full",
    b"over quota",
    b"quota exceeded",
    b"user unknown",
    b"unknown user",
    b"no such user",
    b"does not exist",
    b"unknown host",
    b"host unknown",
    b"invalid user",
    b"recipient rejected",
    b"rejected the message",
    b"message was rejected",
    b"mail was rejected",
    b"has been rejected",
    b"message has been blocked",
    b"message bounced",
    b"bounced back",
    b"remote host said",
    b"error message below",
    b"smtp error",
    b" 550 ",
    b" 554 ",
    b"nicht zugestellt",
    b"non recapit",
    b"mancata consegna",
    b"pas pu \xc3\xaatre",
    b"no se pudo entregar",
];

/// Whether the words admit that a mail was not delivered.
pub(super) fn admits_failure(text: &Text<'_>) -> bool {
    text.says_any(ADMISSIONS)
}

pub(super) fn recognise(text: &Text<'_>) -> Option<Vec<Draft>> {
    let believed = text.sender.is_surely_machine() || (text.sender.is_machine() && text.sender.subject);
    if !believed || !admits_failure(text) {
        return None;
    }
    let failed =
        text.mail.head().get(b"x-failed-recipients").or_else(|| text.mail.head().get(b"x-bounced-address"));
    if let Some(failed) = failed {
        let failed = unfold(failed);
        let drafts: Vec<_> = failed
            .split(|&b| b == b',')
            .filter_map(address::first)
            .map(|address| Draft::of(address, text.report))
            .collect();
        if !drafts.is_empty() {
            return Some(drafts);
        }
    }
    let own: Vec<String> = [&b"to"[..], b"from", b"reply-to", b"sender", b"delivered-to"]
        .into_iter()
        .flat_map(|name| text.mail.head().all(name))
        .filter_map(|value| address::first(&unfold(value)))
        .collect();
    let mut best: Option<(u8, String)> = None;
    let mut from = 0;
    let mut looked_at = 0;
    while let Some(found) = address::next(text.report, from) {
        from = found.end;
        looked_at += 1;
        if looked_at > 200 {
            break;
        }
        let rank = rank(&found.address, &own, text);
        if rank > 0 && best.as_ref().is_none_or(|(known, _)| rank > *known) {
            best = Some((rank, found.address));
        }
    }
    let address = best.map(|(_, address)| address).or_else(|| text.original.to.clone())?;
    Some(vec![Draft::of(address, text.report)])
}

/// How likely an address is that of the failed recipient; 0 if it cannot be.
fn rank(address: &str, own: &[String], text: &Text<'_>) -> u8 {
    let is_role =
        ["mailer-daemon@", "postmaster@", "abuse@", "support@", "helpdesk@", "noreply@", "no-reply@"]
            .iter()
            .any(|role| starts_with(address.as_bytes(), role.as_bytes()));
    if text.original.to.as_deref().is_some_and(|to| to.eq_ignore_ascii_case(address)) {
        return 4;
    }
    if own.iter().any(|own| own.eq_ignore_ascii_case(address)) {
        return 0;
    }
    if is_role || contains(address.as_bytes(), b".prod.outlook.com") {
        return 0;
    }
    3
}
