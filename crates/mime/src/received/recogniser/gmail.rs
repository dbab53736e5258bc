//! Gmail before it sent delivery status parts, and its groups.
//!
//! ```text
//! Delivery to the following recipient failed permanently:
//!
//!      ada@example.org
//!
//! Technical details of permanent failure:
//! … The error that the other server returned was: 550 550 5.1.1 no such user (state 14).
//! ```

use super::super::address;
use super::super::bytes::{find, lines, trim};
use super::super::partial_finding::Draft;
use super::super::reason::Reason;
use super::super::report::Action;
use super::Text;
use crate::reader::unfold;

pub(super) fn recognise(text: &Text<'_>) -> Option<Vec<Draft>> {
    let delayed = text.says(b"recipient has been delayed") || text.says(b"recipients has been delayed");
    let headings: [&[u8]; 4] = [
        b"delivery to the following recipient",
        b"delivery to the following recipients",
        // So it is spelled by one that copied the form.
        b"delevery to the following recipients",
        b"message to the following recipient",
    ];
    let Some(begin) = headings.iter().find_map(|heading| find(text.report, heading)) else {
        return group(text);
    };
    if !text.sender.is_machine() {
        return None;
    }
    let mut drafts: Vec<Draft> = Vec::new();
    let mut words = Vec::new();
    for line in lines(&text.report[begin..]).skip(1) {
        match address::alone(line) {
            Some(address) if words.is_empty() => drafts.push(Draft::of(address, b"")),
            _ if drafts.is_empty() || trim(line).is_empty() => {}
            _ => {
                words.extend_from_slice(trim(line));
                words.push(b' ');
            }
        }
    }
    for draft in &mut drafts {
        draft.add(&words);
        draft.action = Some(if delayed { Action::Delayed } else { Action::Failed });
    }
    Some(drafts)
}

/// A group that does not exist or does not take mail from the sender; in any language.
fn group(text: &Text<'_>) -> Option<Vec<Draft>> {
    let failed = unfold(text.mail.head().get(b"x-failed-recipients")?);
    if !text.says(b"google") || !text.sender.is_surely_machine() {
        return None;
    }
    let drafts = failed.split(|&b| b == b',').filter_map(address::first).map(|address| {
        let is_group = address.ends_with("@googlegroups.com") || text.says(b"groups.google.com");
        let mut draft = Draft::of(address, text.report);
        draft.action = Some(Action::Failed);
        draft.reason = is_group.then_some(Reason::Filtered);
        draft
    });
    Some(drafts.collect())
}
