//! Checks the chain of the audit log, line by line, from what the server or a file says.
//!
//! Every digest is computed here from what the line says, so neither the server nor the database is believed.
//! What is found: a changed line, a gap, a line in between, an end that is not the server's head, and a chain
//! that does not go through a head noted earlier. Erased addresses are counted, not faults.

use std::str::FromStr;

use postway_domain::{Time, id::AuditId};
use postway_store::record::{AuditDigest, AuditEntry, AuditLine};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// The most faults that are listed; the others are counted.
const LISTED_MAX: usize = 20;

/// A line as the server writes it.
#[derive(Deserialize)]
struct ReadAuditLine {
    position: i64,
    id: String,
    at: Time,
    actor: String,
    tenant: Option<String>,
    action: String,
    target: String,
    request_id: Option<String>,
    detail: Option<Box<RawValue>>,
    salt: Option<String>,
    target_digest: String,
    previous: String,
    digest: String,
}

impl ReadAuditLine {
    fn into_line(self) -> Option<AuditLine> {
        let entry = AuditEntry {
            id: self.id.parse::<AuditId>().ok()?,
            at: self.at,
            actor: self.actor,
            tenant: self.tenant.map(|tenant| tenant.parse()).transpose().ok()?,
            action: self.action,
            target: self.target,
            request_id: self.request_id,
            detail: self.detail.map(|detail| detail.get().to_owned()),
            salt: self.salt.map(|salt| bytes::<16>(&salt).ok_or(())).transpose().ok()?,
        };
        Some(AuditLine {
            entry,
            position: self.position,
            previous: bytes(&self.previous)?,
            digest: bytes(&self.digest)?,
            target_digest: bytes(&self.target_digest)?,
        })
    }
}

/// A position with its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedHead {
    position: i64,
    digest: AuditDigest,
}

impl FromStr for NotedHead {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a head is a position, a colon, and 64 hexadecimal digits".to_owned();
        let (position, digest) = text.split_once(':').ok_or_else(wrong)?;
        let position = position.parse().map_err(|_| wrong())?;
        Ok(Self { position, digest: bytes(digest).ok_or_else(wrong)? })
    }
}

/// A check in progress.
pub struct AuditChainCheck {
    noted: Option<NotedHead>,
    has_met_noted: bool,
    first: Option<i64>,
    last: Option<NotedHead>,
    lines: u64,
    erased: u64,
    faults: Vec<String>,
}

impl AuditChainCheck {
    /// Begins a check; the chain must go through `noted`, if that is given.
    pub fn new(noted: Option<NotedHead>) -> Self {
        let faults = Vec::new();
        Self { noted, has_met_noted: false, first: None, last: None, lines: 0, erased: 0, faults }
    }

    /// The position of the last line.
    pub fn position(&self) -> i64 {
        self.last.map_or(0, |last| last.position)
    }

    /// Checks the next line, which is JSON.
    pub fn add(&mut self, text: &str) {
        self.lines += 1;
        let read = serde_json::from_str::<ReadAuditLine>(text).ok().and_then(ReadAuditLine::into_line);
        let Some(line) = read else {
            self.faults.push(format!("line {} of the input cannot be read", self.lines));
            return;
        };
        let position = line.position;
        if !line.is_intact() {
            self.faults.push(format!("the line at position {position} was changed"));
        }
        match self.last {
            Some(last) if last.position + 1 != position => self.faults.push(format!(
                "after position {} comes {position}: lines are missing, or out of order",
                last.position
            )),
            Some(last) if last.digest != line.previous => self.faults.push(format!(
                "the line at position {position} does not follow the one before: one of them was replaced"
            )),
            Some(_) => {}
            None => {
                self.first = Some(position);
                if position == 1 && line.previous != [0; 32] {
                    self.faults.push("the first line follows another one".to_owned());
                }
                // What retention left begins after a line that may have been noted.
                self.meet(NotedHead { position: position - 1, digest: line.previous });
            }
        }
        self.erased += u64::from(line.entry.salt.is_none());
        let head = NotedHead { position, digest: line.digest };
        self.meet(head);
        self.last = Some(head);
    }

    /// Compares a place of the chain with the head that was noted.
    fn meet(&mut self, head: NotedHead) {
        if let Some(noted) = self.noted.filter(|noted| noted.position == head.position) {
            self.has_met_noted = true;
            if noted.digest != head.digest {
                self.faults
                    .push(format!("the chain was rewritten: position {} has another digest", noted.position));
            }
        }
    }

    /// Compares the end of the chain with the head that the server names.
    pub fn end_at(&mut self, head: &Value) {
        let number = |name: &str| head[name].as_i64().unwrap_or_default();
        let (position, trimmed) = (number("position"), number("trimmed"));
        let digest = head["digest"].as_str().and_then(bytes::<32>);
        let last = self.last.map_or(trimmed, |last| last.position);
        if last != position {
            self.faults.push(format!("the last line is at position {last}, and the head says {position}"));
        } else if self.last.is_some() && self.last.map(|last| last.digest) != digest {
            self.faults.push("the last line is not the one that the head names".to_owned());
        }
        if let Some(first) = self.first.filter(|first| *first != trimmed + 1) {
            self.faults.push(format!(
                "the first line is at position {first}, but retention has removed lines up to {trimmed} only"
            ));
        }
    }

    /// The result.
    pub fn finish(mut self) -> AuditChainResult {
        if let (Some(noted), false) = (self.noted, self.has_met_noted) {
            self.faults
                .push(format!("the chain does not reach position {}, which was noted", noted.position));
        }
        AuditChainResult { check: self }
    }
}

/// What a check has found.
pub struct AuditChainResult {
    check: AuditChainCheck,
}

impl AuditChainResult {
    /// Whether there is no fault.
    pub fn is_whole(&self) -> bool {
        self.check.faults.is_empty()
    }

    fn head(&self) -> Option<String> {
        self.check.last.map(|last| format!("{}:{}", last.position, hex(&last.digest)))
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "whole": self.is_whole(), "lines": self.check.lines, "erased": self.check.erased,
            "first": self.check.first, "head": self.head(), "faults": self.check.faults,
        })
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let check = &self.check;
        let mut text = format!("{} lines, {} of them with an erased address\n", check.lines, check.erased);
        for fault in check.faults.iter().take(LISTED_MAX) {
            text.push_str(&format!("fault: {fault}\n"));
        }
        if check.faults.len() > LISTED_MAX {
            text.push_str(&format!("and {} faults more\n", check.faults.len() - LISTED_MAX));
        }
        if let Some(head) = self.head() {
            text.push_str(&format!("head: {head}\n"));
        }
        text.push_str(if self.is_whole() {
            "the chain is whole; keep the head elsewhere, and give it with --head the next time"
        } else {
            "the chain is not whole"
        });
        text
    }
}

/// Bytes from their hexadecimal form.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut read = [0; N];
    for (index, byte) in read.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(read)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of `count` lines, as the server writes them.
    fn chain(count: i64) -> Vec<Value> {
        let (mut previous, mut lines) = ([0; 32], Vec::new());
        for position in 1..=count {
            let entry = AuditEntry {
                id: AuditId::from_bytes([position as u8; 16]),
                at: Time::from_millis(1_700_000_000_000 + position),
                actor: "user:ada".to_owned(),
                tenant: Some("default".parse().unwrap()),
                action: "suppression.create".to_owned(),
                target: "bob@example.net".to_owned(),
                request_id: None,
                detail: Some(r#"{"b":1,"a":[1.0,"ü"]}"#.to_owned()),
                salt: Some([7; 16]),
            };
            let target_digest = AuditEntry::target_digest(&[7; 16], &entry.target);
            let digest = entry.line_digest(position, &previous, &target_digest);
            lines.push(json!({
                "position": position, "id": entry.id.to_string(), "at": entry.at, "actor": entry.actor,
                "tenant": "default", "action": entry.action, "target": entry.target, "request_id": null,
                "detail": serde_json::from_str::<Box<RawValue>>(entry.detail.as_deref().unwrap()).unwrap(),
                "salt": hex(&[7; 16]), "target_digest": hex(&target_digest), "previous": hex(&previous),
                "digest": hex(&digest),
            }));
            previous = digest;
        }
        lines
    }

    fn checked(lines: &[Value], noted: Option<&str>) -> AuditChainResult {
        let mut check = AuditChainCheck::new(noted.map(|noted| noted.parse().unwrap()));
        lines.iter().for_each(|line| check.add(&line.to_string()));
        check.finish()
    }

    type ChainChange = fn(&mut Vec<Value>);

    #[test]
    fn a_removed_a_changed_and_an_inserted_line_show() {
        let lines = chain(6);
        assert!(checked(&lines, None).is_whole(), "{}", checked(&lines, None).to_text());
        assert!(checked(&lines[2..], None).is_whole(), "it is verified from its first kept line");
        let changes: [(&str, ChainChange); 6] = [
            ("removed", |lines| drop(lines.remove(3))),
            ("changed", |lines| lines[3]["actor"] = json!("admin")),
            ("swapped", |lines| lines.swap(2, 3)),
            ("repeated", |lines| lines.insert(3, lines[3].clone())),
            ("unreadable", |lines| lines[3] = json!({})),
            ("retold", |lines| lines[3]["detail"] = json!({"b": 2})),
        ];
        for (what, change) in changes {
            let mut changed = lines.clone();
            change(&mut changed);
            let result = checked(&changed, None);
            assert!(!result.is_whole(), "{what}");
            assert!(result.to_text().contains("not whole"), "{what}");
        }
    }

    #[test]
    fn a_chain_that_was_rewritten_or_cut_at_its_end_shows_by_the_head_that_was_noted() {
        let lines = chain(6);
        let noted = format!("4:{}", lines[3]["digest"].as_str().unwrap());
        assert!(checked(&lines, Some(&noted)).is_whole());
        assert!(checked(&lines[4..], Some(&noted)).is_whole(), "retention removed the line that was noted");
        assert!(!checked(&lines[..3], Some(&noted)).is_whole(), "the end was cut off");
        let other = format!("4:{}", "ab".repeat(32));
        assert!(!checked(&lines, Some(&other)).is_whole());
        for wrong in ["4", "x:ab", "4:zz", ":"] {
            assert!(wrong.parse::<NotedHead>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_end_must_be_the_head_and_the_beginning_where_retention_has_cut() {
        let lines = chain(4);
        let head = |position: i64, trimmed: i64| json!({"position": position, "digest": lines[3]["digest"], "trimmed": trimmed});
        for (from, position, trimmed, whole) in [
            (0, 4, 0, true),
            (0, 5, 0, false),
            (1, 4, 1, true),
            (1, 4, 0, false),
            (4, 4, 4, true),
            (4, 4, 2, false),
        ] {
            let mut check = AuditChainCheck::new(None);
            lines[from..].iter().for_each(|line| check.add(&line.to_string()));
            check.end_at(&head(position, trimmed));
            assert_eq!(check.finish().is_whole(), whole, "{from} {position} {trimmed}");
        }
    }
}
