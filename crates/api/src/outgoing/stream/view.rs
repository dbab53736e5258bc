//! Streams as JSON, and what callers send.

use postway_domain::{MailStream, Time};
use serde::Serialize;
use utoipa::ToSchema;

/// A named kind of mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stream)]
pub(crate) struct StreamView {
    /// Its id, which messages name as `stream`, or begin their `batch` with.
    #[schema(example = "newsletter")]
    id: String,
    /// The name that readers see. When it is empty, they see the id.
    #[schema(example = "Weekly letter")]
    name: String,
    /// What it is for.
    description: Option<String>,
    /// Whether readers can leave it by links that the gateway adds and serves.
    unsubscribe: bool,
    /// An address of a watched mailbox to which readers can write to leave it.
    unsubscribe_mailto: Option<String>,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A page of streams.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamList {
    /// By id.
    pub(super) data: Vec<StreamView>,
    /// Give this as `cursor` for the next; null at the end.
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

/// A stream to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamRequest {
    /// Its id, unique in your tenant; needed when it is made, and not changed later.
    #[schema(example = "newsletter")]
    id: Option<String>,
    /// The name that readers see, at most 200 characters.
    #[schema(example = "Weekly letter")]
    name: Option<String>,
    /// What it is for, at most 1,000 characters; `null` takes it away.
    description: Option<String>,
    /// Whether readers can leave it: its mail gets `List-Unsubscribe` and `List-Unsubscribe-Post`. Needs `public_url` with
    /// https, or `unsubscribe_mailto`.
    unsubscribe: Option<bool>,
    /// An address of a watched mailbox to which readers can write to leave it; `null` takes it away.
    #[schema(example = "leave@example.com")]
    unsubscribe_mailto: Option<String>,
    /// With `PATCH`: only if the stream still has this version.
    version: Option<i64>,
}
