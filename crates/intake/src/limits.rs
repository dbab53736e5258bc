//! Limits on what the door accepts.

use std::time::Duration;

use postway_domain::tenant::ContentLimits;

use crate::json::JsonBounds;

/// The longest idempotency key, in characters.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 256;
/// Limits on the variables of a template: bytes of JSON text, and number of values. The values are built for
/// each message, and may occupy thirty times the memory of their text.
pub const VARIABLES: JsonBounds = JsonBounds { values_max: 50_000, text_bytes_max: 1024 * 1024 };

/// Limits on requests and messages. The defaults are those of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeLimits {
    /// The largest finished message, in bytes: 10 MiB.
    pub message_bytes_max: usize,
    /// The largest request, in bytes: 40 MiB.
    pub request_bytes_max: usize,
    /// The most recipients of one message, to, cc and bcc together: 1,000.
    pub recipients_max: usize,
    /// The most messages of one batch request: 1,000.
    pub batch_messages_max: usize,
    /// The most attachments of one message: 100.
    pub attachments_max: usize,
    /// The most addresses in Reply-To: 25.
    pub reply_to_max: usize,
    /// The most tags of one message: 20.
    pub tags_max: usize,
    /// The longest tag, in characters: 1,000.
    pub tag_chars_max: usize,
    /// The largest metadata, in bytes of JSON: 16 KiB.
    pub metadata_bytes_max: usize,
    /// The longest `external_id` of the client, in characters: 256.
    pub external_id_chars_max: usize,
    /// The longest collapse key.
    pub collapse_key_chars_max: usize,
    /// The longest subject, in bytes: 8 KiB.
    pub subject_bytes_max: usize,
    /// How far ahead a message may be scheduled: 366 days.
    pub send_at_ahead_max: Duration,
    /// The largest mail or request that is stored in the database, in bytes: 128 KiB. Anything larger becomes
    /// a blob.
    pub inline_bytes_max: usize,
}

impl IntakeLimits {
    /// The limits for a tenant's mail: the tenant's own limits apply if they are lower.
    pub(crate) fn for_tenant(&self, tenant: &ContentLimits) -> Self {
        let message_bytes = tenant.message_bytes.map_or(self.message_bytes_max, |bytes| bytes as usize);
        Self { message_bytes_max: self.message_bytes_max.min(message_bytes), ..self.clone() }
    }
}

impl Default for IntakeLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 10 * 1024 * 1024,
            request_bytes_max: 40 * 1024 * 1024,
            recipients_max: 1_000,
            batch_messages_max: 1_000,
            attachments_max: 100,
            reply_to_max: 25,
            tags_max: 20,
            tag_chars_max: 1_000,
            metadata_bytes_max: 16 * 1024,
            external_id_chars_max: 256,
            collapse_key_chars_max: 128,
            subject_bytes_max: postway_mime::header::HEADER_VALUE_OCTETS_MAX,
            send_at_ahead_max: Duration::from_secs(366 * 24 * 60 * 60),
            inline_bytes_max: postway_store::blob::INLINE_BYTES_MAX,
        }
    }
}
