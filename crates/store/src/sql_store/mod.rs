//! The port of every store that speaks SQL, made of the statements that are the same for all of them: each file implements one
//! trait of the port for whatever implements [`Portable`]. Changes go to the writers, reads to a connection to read from.

mod blobs;
mod catalogue;
mod directory;
mod inbound;
mod preparation;
mod reports;
mod retention;
#[cfg(test)]
mod statements;
mod streams;

use async_trait::async_trait;

#[cfg(test)]
pub(crate) use statements::statements;

use crate::{
    engine::Writers, error::StoreError, queue::hand_over::HandOver, retention::Walks, sql::Session,
    view_definitions,
};

/// A database that speaks SQL through [`Session`].
#[async_trait]
pub(crate) trait Portable: Send + Sync {
    /// Where changes go.
    fn writers(&self) -> &Writers;
    /// Where hints come from.
    fn handover(&self) -> &HandOver;
    /// How far retention has walked.
    fn walks(&self) -> &Walks;
    /// Whether other processes, and older programs among them, may use the database at the same time.
    fn has_other_processes(&self) -> bool {
        true
    }
    /// A connection to read from.
    async fn reader(&self) -> Result<Box<dyn Session + '_>, StoreError>;
}

/// Whether the database has views of ours, wherever they are in it.
pub(crate) async fn are_installed(store: &impl Portable) -> Result<bool, StoreError> {
    view_definitions::find_installed(&mut *store.reader().await?).await
}
