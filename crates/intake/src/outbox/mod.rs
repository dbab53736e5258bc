//! The outbox: mail that applications insert into a table of their own database, in their own transaction.
//!
//! A [`Source`] is such a database. One node at a time serves it (a duty): it takes pending rows over through the
//! [`Door`](crate::Door), each under its own id, and marks them in the transaction that has read them. A crash in between
//! leaves them pending; the next one to come accepts them again, and the door finds the message that is there. So a row
//! gives one mail, whoever takes it and however often. What became of it is written back along the tenant's feed, with
//! the place in the feed, in one transaction.
//!
//! A row that cannot be sent is marked `invalid` and says why; it holds up no other. A notification is a hint, polling is
//! the guarantee; no cursor decides what is taken, so it does not matter in which order ids commit. While the source or
//! the store is away nothing is taken, and it is tried again.
//!
//! The SQL here is for the application's database, never for our own, which is the store's.

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
pub use runner::Outbox;
pub use status::{SourceStatus, Standing};
pub use status_api::Desk;
pub use token::LinkKey;
pub use verify::{Finding, Presented};

/// The longest name of a source: it is part of its messages' ids.
pub const NAME_BYTES_MAX: usize = 32;

/// A database that is served, and how.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is called, in [`NAME_BYTES_MAX`] letters, digits, `-` and `_`.
    pub name: String,
    /// Where it is.
    pub url: SourceUrl,
    /// The schema of the outbox, on PostgreSQL.
    pub schema: String,
    /// Whose mail it is.
    pub tenant: TenantId,
    /// The author of mail that names none.
    pub from: Option<String>,
    /// The account of mail that names none.
    pub account: Option<String>,
    /// So many rows begin a round at once.
    pub batch_limit: u32,
    /// A round begins so long after the first notification at the latest.
    pub batch_timeout: Duration,
    /// How often is looked without a notification.
    pub poll: Duration,
    /// The accounts in it, if it has any.
    pub accounts: Option<Accounts>,
}

/// Accounts and their tokens.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// The schema of the tables.
    pub schema: String,
    /// What links begin with, up to their path.
    pub link_base_url: String,
    /// The path of links that activate.
    pub activation_path: String,
    /// The path of links that recover a password.
    pub recovery_path: String,
    /// The key that links are signed with; the gateway's own where none is given.
    pub link_key: Option<LinkKey>,
}

impl Source {
    /// The duty of serving it.
    pub fn duty(&self) -> String {
        format!("outbox:{}", self.name)
    }
}

/// Whether a text can be the name of a source.
pub fn is_source_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// What a source asks about this process.
#[async_trait]
pub trait OutboxNode: Send + Sync {
    /// Whether this process has the duty now.
    async fn is_on_duty(&self, duty: &str) -> Result<bool, StoreError>;
}
