//! The port for every SQL database, made of the statements that are the same for all of them. Each file
//! implements one trait of the port for every type that implements [`SqlStore`]. Changes go to the writers,
//! reads to a reading connection.

mod archive;
mod blobs;
mod bulk_actions;
mod catalogue;
mod directory;
mod domain_reports;
mod hooks;
mod inbound;
mod people;
mod preparation;
mod reports;
mod retention;
mod routes;
#[cfg(test)]
mod statements;
mod streams;

use async_trait::async_trait;

#[cfg(test)]
pub(crate) use statements::statements;

use crate::{
    engine::Writers, error::StoreError, queue::hand_over::HandOver, retention::RetentionScans,
    sql::SqlSession, view_definitions,
};

/// A store whose database speaks SQL through [`SqlSession`].
#[async_trait]
pub(crate) trait SqlStore: Send + Sync {
    /// The writers, for changes.
    fn writers(&self) -> &Writers;
    /// Hand-over and wake-ups.
    fn handover(&self) -> &HandOver;
    /// The positions of retention's scans.
    fn walks(&self) -> &RetentionScans;
    /// Whether other processes, possibly of an older version, may use the database at the same time.
    fn has_other_processes(&self) -> bool {
        true
    }
    /// A reading connection.
    async fn reader(&self) -> Result<Box<dyn SqlSession + '_>, StoreError>;
}

/// Whether the database has compatibility views, in whatever schema.
pub(crate) async fn are_installed(store: &impl SqlStore) -> Result<bool, StoreError> {
    view_definitions::find_installed(&mut *store.reader().await?).await
}
