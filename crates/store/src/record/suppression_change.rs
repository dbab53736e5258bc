//! Changes of suppression lists, as events that belong to no message.

use aws_lc_rs::digest;
use postway_domain::{EventKind, MessageUid, TenantId, Time, id::StreamId};
use serde_json::{Value, json};

use super::{
    NewEvent,
    directory::{SuppressionReason, SuppressionRecord},
    stream::ScopedSuppression,
};

/// Who changed a suppression list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressionOrigin {
    /// An operator or a program, through the API.
    Operator,
    /// A report: a bounce, a complaint, or an event of a provider.
    Report,
    /// The reader, who left a stream or came back.
    Reader,
    /// The end of its time.
    Expiry,
}

impl SuppressionOrigin {
    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Report => "report",
            Self::Reader => "reader",
            Self::Expiry => "expiry",
        }
    }
}

/// One suppression that began or ended. One that is renewed while it holds is no change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuppressionListChange {
    pub tenant: TenantId,
    /// The address, or the pattern.
    pub pattern: String,
    /// The stream; all mail if `None`.
    pub stream: Option<StreamId>,
    pub reason: SuppressionReason,
    pub expires_at: Option<Time>,
    /// Whether it began; otherwise it ended.
    pub begins: bool,
    pub origin: SuppressionOrigin,
    pub at: Time,
}

impl SuppressionListChange {
    /// A suppression of a tenant's list that begins.
    pub fn begin(one: &SuppressionRecord, origin: SuppressionOrigin) -> Self {
        Self {
            tenant: one.tenant.clone(),
            pattern: one.address.clone(),
            stream: None,
            reason: one.reason,
            expires_at: one.expires_at,
            begins: true,
            origin,
            at: one.created_at,
        }
    }

    /// A suppression of a tenant's list that ends.
    pub fn end(one: &SuppressionRecord, origin: SuppressionOrigin, at: Time) -> Self {
        Self { begins: false, at, ..Self::begin(one, origin) }
    }

    /// A scoped suppression that begins; `None` for one of the whole installation, which belongs to no
    /// tenant.
    pub fn begin_scoped(one: &ScopedSuppression, origin: SuppressionOrigin) -> Option<Self> {
        Some(Self {
            tenant: one.scope.tenant.clone()?,
            pattern: one.scope.pattern.clone(),
            stream: one.scope.stream.clone(),
            reason: one.reason,
            expires_at: one.expires_at,
            begins: true,
            origin,
            at: one.created_at,
        })
    }

    /// A scoped suppression that ends.
    pub fn end_scoped(one: &ScopedSuppression, origin: SuppressionOrigin, at: Time) -> Option<Self> {
        Some(Self { begins: false, at, ..Self::begin_scoped(one, origin)? })
    }

    pub fn kind(&self) -> EventKind {
        if self.begins { EventKind::SuppressionCreated } else { EventKind::SuppressionDeleted }
    }

    /// The id under which its event stands. It follows from the change, so that a transaction that is run
    /// again writes the same one. Like other ids it begins with the time.
    pub fn uid(&self) -> MessageUid {
        let mut context = digest::Context::new(&digest::SHA256);
        let stream = self.stream.as_ref().map_or("", |stream| stream.as_str());
        for part in [self.tenant.as_str(), &self.pattern, stream, self.kind().as_str()] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&self.at.as_millis().to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&context.finish().as_ref()[..10]);
        // The version and the variant of a UUID v7.
        bytes[6] = 0x70 | bytes[6] & 0x0f;
        bytes[8] = 0x80 | bytes[8] & 0x3f;
        MessageUid::from_bytes(bytes)
    }

    /// Its event.
    pub fn event(&self) -> NewEvent {
        let mut data = json!({
            "pattern": self.pattern, "reason": self.reason.as_str(), "origin": self.origin.as_str(),
        });
        if !self.pattern.contains('*') && self.pattern.contains('@') {
            data["address"] = json!(self.pattern);
        }
        data["stream"] = self.stream.as_ref().map_or(Value::Null, |stream| json!(stream.as_str()));
        if self.begins {
            data["expires_at"] = json!(self.expires_at);
        }
        NewEvent { kind: self.kind(), data: Some(data.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> SuppressionListChange {
        SuppressionListChange {
            tenant: "acme".parse().unwrap(),
            pattern: "ada@example.net".to_owned(),
            stream: None,
            reason: SuppressionReason::Complaint,
            expires_at: None,
            begins: true,
            origin: SuppressionOrigin::Report,
            at: Time::from_millis(1_700_000_000_000),
        }
    }

    #[test]
    fn the_id_follows_from_the_change_and_begins_with_its_time() {
        let one = change();
        assert_eq!(one.uid(), change().uid());
        let others = [
            SuppressionListChange { begins: false, ..change() },
            SuppressionListChange { pattern: "bob@example.net".to_owned(), ..change() },
            SuppressionListChange { stream: Some("news".parse().unwrap()), ..change() },
            SuppressionListChange { tenant: "other".parse().unwrap(), ..change() },
            SuppressionListChange { at: Time::from_millis(1_700_000_000_001), ..change() },
        ];
        assert!(others.iter().all(|other| other.uid() != one.uid()));
        assert!(one.uid() < others[4].uid());
        assert!(one.uid().to_string().starts_with("018bcfe5-6800-7"), "{}", one.uid());
    }

    #[test]
    fn the_event_says_what_changed_why_and_who_changed_it() {
        let data = |change: SuppressionListChange| -> Value {
            serde_json::from_str(&change.event().data.unwrap()).unwrap()
        };
        assert_eq!(
            data(change()),
            json!({
                "pattern": "ada@example.net", "address": "ada@example.net", "reason": "complaint",
                "origin": "report", "stream": null, "expires_at": null,
            })
        );
        let pattern = "*@example.net".to_owned();
        let of_stream = SuppressionListChange {
            pattern,
            stream: Some("news".parse().unwrap()),
            begins: false,
            ..change()
        };
        let data = data(of_stream);
        assert_eq!(
            (&data["stream"], &data["address"], data.get("expires_at")),
            (&json!("news"), &Value::Null, None)
        );
    }
}
