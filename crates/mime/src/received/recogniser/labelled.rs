//! A label and an address on one line: "Recipient: a@example.org", "mailbox is full: a@example.org", "RCPT
//! TO: …".
//!
//! IMail, MailFoundry, Messaging Server, EZweb, InterScan, Verizon and many small servers. A label or phrase
//! that only reports use must be right before the address, so that ordinary mail is not misread.

use super::super::address;
use super::super::bytes::{find, lines, starts_with, trim};
use super::super::dsn::RECIPIENTS_MAX;
use super::super::partial_finding::PartialFinding;
use super::super::reason::ReportReason;
use super::ReportText;

/// Labels and phrases right before the address of a failed recipient, in lower case.
const LABELS: &[&[u8]] = &[
    b"recipient address:",
    b"recipient:",
    b"recipients:",
    b"failed recipient:",
    b"rejected recipient:",
    b"rcpt to:",
    b"could not be delivered to:",
    b"could not be delivered to",
    b"unable to deliver message to:",
    b"unable to deliver message to",
    b"unable to deliver to:",
    b"unable to deliver to",
    b"did not reach the following recipient:",
    b"the following recipients did not receive this message:",
    b"the following recipients did not receive your message:",
    b"intended recipient:",
    b"error-for:",
    b"delivery failed:",
    b"delivery failed for:",
    b"delivery to:",
    b"failed address:",
    b"failed to deliver to",
    b"failed to send to:",
    b"error sending to",
    b"error delivering to",
    b"attempts:",
    b"invalid final delivery userid:",
    b"unknown user:",
    b"unknown local user:",
    b"undeliverable to",
    b"undeliverable address:",
    b"user mailbox exceeds allowed size:",
    b"mailbox is full:",
    b"unknown host:",
    b"unable to deliver mail to",
    b"could not deliver mail to",
    b"could not deliver message to",
    b"could not deliver your message to",
    b"cannot deliver mail to",
    b"can not be delivered to:",
    b"was undeliverable to",
    b"was not delivered to:",
    b"not delivered to:",
    b"has not been delivered to",
    b"your message to",
    b"your mail to",
    b"address failed:",
    b"no such user:",
    b"user unknown:",
    b"user not known:",
    b"addressed to:",
    b"addressed to",
    b"rejected recipient",
    b"permanent errors:",
    b"could not find a gateway for",
];

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    if !text.sender.is_machine() {
        return None;
    }
    let mut findings: Vec<PartialFinding> = Vec::new();
    let mut pending: Vec<u8> = Vec::new();
    let mut waiting = false;
    for line in lines(text.report) {
        let words = trim(line);
        let found = match read_label(words) {
            RecipientLabel::Address(address) => Some(address),
            RecipientLabel::Open => {
                waiting = true;
                None
            }
            RecipientLabel::None if waiting => address::sole(words),
            RecipientLabel::None => None,
        };
        match found {
            Some(address)
                if findings.len() < RECIPIENTS_MAX
                    && !findings.iter().any(|finding| finding.address == address) =>
            {
                let mut finding = PartialFinding::new(address, &pending);
                finding.add(words);
                finding.reason = own_reason(words);
                findings.push(finding);
                pending.clear();
            }
            _ => match findings.last_mut() {
                Some(finding) => finding.add(words),
                None => {
                    pending.extend_from_slice(words);
                    pending.push(b' ');
                }
            },
        }
    }
    (!findings.is_empty() && text.admits_failure()).then_some(findings)
}

enum RecipientLabel {
    /// A label with its address.
    Address(String),
    /// A label whose address must come on a line below.
    Open,
    None,
}

/// Reads a label and the address right after it in a line.
fn read_label(words: &[u8]) -> RecipientLabel {
    for label in LABELS {
        let Some(at) = find(words, label) else { continue };
        if at > 0 && words[at - 1].is_ascii_alphanumeric() {
            continue;
        }
        let rest = trim(&words[at + label.len()..]);
        if rest == b":" || (rest.is_empty() && label.ends_with(b":")) {
            return RecipientLabel::Open;
        }
        let rest = rest.strip_prefix(b"[SMTP:").unwrap_or(rest);
        let bare = rest.strip_prefix(b"<").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
        if let Some(found) = address::next(bare, 0)
            && found.begin == 0
        {
            return RecipientLabel::Address(found.address);
        }
    }
    RecipientLabel::None
}

/// The reason by phrases that only these servers use, which say explicitly that the address is bad.
fn own_reason(words: &[u8]) -> Option<ReportReason> {
    let own: [&[u8]; 3] = [b"invalid final delivery userid", b"unknown user:", b"unknown local user:"];
    own.iter().any(|phrase| starts_with(words, phrase)).then_some(ReportReason::UserUnknown)
}
