//! The outbox: mail that applications insert into a table of their own database, in their own transaction.
//!
//! A [`OutboxSource`] is such a database. One node at a time serves it, by a duty: it accepts pending rows
//! through the [`Door`](crate::Door), each under its own id, and marks them in the transaction that read
//! them. A crash in between leaves them pending; the next node accepts them again, and the door finds the
//! existing message. So a row makes one message, however often it is taken. The outcome is written back from
//! the tenant's feed, together with the feed position, in one transaction.
//!
//! A row that cannot be sent is marked `invalid` with the reason, and delays no other row. Notifications are
//! hints, polling is the guarantee; no cursor decides which rows are taken, so the order in which ids commit
//! does not matter. While the source or the store does not answer, nothing is taken, and the runner tries
//! again.
//!
//! The SQL here is for the application's database. The gateway's own database belongs to the store.

mod accept;
mod address;
mod database;
mod error;
mod import_batch;
pub mod install;
mod maintenance;
mod mysql;
mod postgres;
pub mod rehearsal;
mod row;
mod runner;
mod sqlite;
mod status;
mod status_api;
mod token;
mod verify;
mod withdraw;
mod write_back;

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::TenantId;
use postway_store::StoreError;

pub use address::SourceUrl;
pub use error::OutboxError;
pub use runner::OutboxRunner;
pub use status::{SourceState, SourceStatus};
pub use status_api::OutboxStatusApi;
pub use token::TokenLinkKey;
pub use verify::{PresentedToken, TokenCheck};

/// The longest name of a source: it is part of its messages' ids.
pub const NAME_BYTES_MAX: usize = 32;

/// A database that is served, and its settings.
#[derive(Clone, Debug)]
pub struct OutboxSource {
    /// The name: up to [`NAME_BYTES_MAX`] letters, digits, `-` and `_`.
    pub name: String,
    /// The address of the database.
    pub url: SourceUrl,
    /// The schema of the outbox, on PostgreSQL.
    pub schema: String,
    /// The tenant of its mail.
    pub tenant: TenantId,
    /// The author of mail that names none.
    pub from: Option<String>,
    /// The account of mail that names none.
    pub account: Option<String>,
    /// A batch begins at once when this many rows are pending.
    pub batch_limit: u32,
    /// A batch begins at the latest this long after the first notification.
    pub batch_timeout: Duration,
    /// How often to poll when no notification arrives.
    pub poll: Duration,
    /// Accounts and tokens in the database, if it has them.
    pub accounts: Option<OutboxAccounts>,
}

/// Settings of accounts and their tokens.
#[derive(Clone, Debug)]
pub struct OutboxAccounts {
    /// The schema of the tables.
    pub schema: String,
    /// The URL before the path of a link.
    pub link_base_url: String,
    /// The path of activation links.
    pub activation_path: String,
    /// The path of password recovery links.
    pub recovery_path: String,
    /// The key that signs links; the gateway's own if the application shares no key.
    pub link_key: Option<TokenLinkKey>,
}

impl OutboxSource {
    /// The name of the duty to serve this source.
    pub fn duty(&self) -> String {
        format!("outbox:{}", self.name)
    }
}

/// Whether a text can be the name of a source.
pub fn is_source_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// The node that serves sources.
#[async_trait]
pub trait OutboxNode: Send + Sync {
    /// Whether this node has the duty now.
    async fn is_on_duty(&self, duty: &str) -> Result<bool, StoreError>;
}
