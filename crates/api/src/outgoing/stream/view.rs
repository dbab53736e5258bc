//! Streams as JSON, and their request bodies.

use postway_domain::{MailStream, Time};
use serde::Serialize;
use utoipa::ToSchema;

/// A named kind of mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stream)]
pub(crate) struct StreamView {
    /// The id, which messages name as `stream`, or begin their `batch` with.
    #[schema(example = "newsletter")]
    id: String,
    /// The name that readers see. When it is empty, they see the id.
    #[schema(example = "Weekly letter")]
    name: String,
    /// The purpose.
    description: Option<String>,
    /// Whether readers can unsubscribe by links that the gateway adds and serves.
    unsubscribe: bool,
    /// An address of a watched mailbox that readers can write to in order to unsubscribe.
    unsubscribe_mailto: Option<String>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A page of streams.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamList {
    /// By id.
    pub(super) data: Vec<StreamView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<MailStream> for StreamView {
    fn from(stream: MailStream) -> Self {
        Self {
            id: stream.id.to_string(),
            name: stream.name,
            description: stream.description,
            unsubscribe: stream.unsubscribe,
            unsubscribe_mailto: stream.unsubscribe_mailto,
            version: stream.version,
            created_at: stream.created_at,
            updated_at: stream.updated_at,
        }
    }
}

impl StreamView {
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

/// A stream to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamRequest {
    /// The id, unique in your tenant; required on creation, and fixed then.
    #[schema(example = "newsletter")]
    id: Option<String>,
    /// The name that readers see, at most 200 characters.
    #[schema(example = "Weekly letter")]
    name: Option<String>,
    /// The purpose, at most 1,000 characters; `null` removes it.
    description: Option<String>,
    /// Whether readers can unsubscribe: its mail gets `List-Unsubscribe` and `List-Unsubscribe-Post`.
    /// Requires `public_url` with https, or `unsubscribe_mailto`.
    unsubscribe: Option<bool>,
    /// An address of a watched mailbox that readers can write to in order to unsubscribe; `null` removes it.
    #[schema(example = "leave@example.com")]
    unsubscribe_mailto: Option<String>,
    /// With `PATCH`: change only if the stream still has this version.
    version: Option<i64>,
}
