//! Streams: a tenant's named kinds of mail, which readers can unsubscribe from one by one.
//!
//! A message belongs to a stream by the code of its batch: `newsletter`, or `newsletter:` and more. So a
//! stream can be suspended like a batch, does not delay other streams, and is known wherever a lane is.

use crate::{
    identity::id::{BatchCode, StreamId, TenantId},
    time::Time,
};

/// Separates a stream's id from the rest of a batch's code.
const SEPARATOR: char = ':';

/// A named kind of mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailStream {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The id, as requests and batches name it.
    pub id: StreamId,
    /// The name that readers see. When it is empty, they see the id.
    pub name: String,
    /// A description for people.
    pub description: Option<String>,
    /// Whether readers can unsubscribe by links that the gateway adds and serves.
    pub unsubscribe: bool,
    /// The address of a watched mailbox that readers can write to, to unsubscribe.
    pub unsubscribe_mailto: Option<String>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl MailStream {
    /// The most streams of a tenant.
    pub const PER_TENANT_MAX: u32 = 500;
    /// The longest name, in characters.
    pub const NAME_CHARS_MAX: usize = 200;
    /// The longest description, in characters.
    pub const DESCRIPTION_CHARS_MAX: usize = 1_000;
    /// Ids that no stream can have: batches of forwarded mail begin with the first, and other systems use the
    /// second for mail without a stream.
    pub const RESERVED: [&'static str; 2] = ["mailbox", "outbound"];

    /// The id of the stream that mail of this batch belongs to, if that stream exists.
    pub fn of_batch(batch: &BatchCode) -> Option<StreamId> {
        Self::name_in(batch.as_str()).parse().ok().filter(|id| !Self::is_reserved(id))
    }

    /// The part of a batch's code that may name a stream.
    pub fn name_in(code: &str) -> &str {
        code.split_once(SEPARATOR).map_or(code, |(name, _)| name)
    }

    /// Whether no stream can have this id.
    pub fn is_reserved(id: &StreamId) -> bool {
        Self::RESERVED.iter().any(|reserved| id.as_str().eq_ignore_ascii_case(reserved))
    }

    /// The batch of mail that names only its stream.
    pub fn batch_of(id: &StreamId) -> BatchCode {
        id.as_str().parse().expect("a stream's name has nothing that a batch's code may not have")
    }

    /// The name that readers see.
    pub fn shown_name(&self) -> &str {
        if self.name.is_empty() { self.id.as_str() } else { &self.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_belongs_to_the_stream_that_its_code_begins_with() {
        let stream = |code: &str| {
            MailStream::of_batch(&code.parse::<BatchCode>().unwrap()).map(|id| id.as_str().to_owned())
        };
        assert_eq!(stream("newsletter").as_deref(), Some("newsletter"));
        assert_eq!(stream("newsletter:2026-11:a").as_deref(), Some("newsletter"));
        assert_eq!(stream("newsletters").as_deref(), Some("newsletters"), "another one");
        for none in ["mailbox:support", "Mailbox:x", "outbound", "a@b", ":x", &"x".repeat(65)] {
            assert_eq!(stream(none), None, "{none}");
        }
        let longest: StreamId = "s".repeat(64).parse().unwrap();
        assert_eq!(MailStream::of_batch(&MailStream::batch_of(&longest)), Some(longest));
    }
}
