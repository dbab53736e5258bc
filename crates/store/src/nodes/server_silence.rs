//! SilenceListener of a database server, and how writers notice them.
//!
//! A connection whose server vanished looks like one whose server is busy. The register's connection, which
//! is used every second and has little to do, notices first ([`crate::nodes::registry`]). Once a new
//! connection is answered, an answer on an older connection will hardly come: a writer that waits for one
//! gives up and tries again.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    error::StoreError,
    sql::{Row, SqlSession, SqlText, Value},
};

/// Announces to writers that a silence is over.
#[derive(Default)]
pub(crate) struct SilenceAnnouncer(watch::Sender<u64>);

impl SilenceAnnouncer {
    /// The server has answered again, on another connection.
    pub fn tell(&self) {
        self.0.send_modify(|silences| *silences += 1);
    }

    /// A listener for one writer.
    pub fn listener(&self) -> SilenceListener {
        SilenceListener { announced: self.0.subscribe(), met: Arc::default() }
    }
}

/// One writer's view of silences. Clones belong to the same writer.
#[derive(Clone)]
pub(crate) struct SilenceListener {
    announced: watch::Receiver<u64>,
    met: Arc<AtomicBool>,
}

impl SilenceListener {
    /// Awaits a step of a transaction; `None` if the server went silent in the meantime and is back. The
    /// connection must not be used any more then.
    pub async fn unless_silent<T>(&self, step: impl Future<Output = T>) -> Option<T> {
        let mut announced = self.announced.clone();
        // Only announcements after the step began concern its connection.
        announced.mark_unchanged();
        let is_over = async {
            if announced.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            done = step => Some(done),
            () = is_over => {
                tracing::warn!("the database went silent; a writer takes a new connection");
                self.met.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Like [`Self::hear`], for a step that returns a result. A silence has changed nothing, so the
    /// transaction is tried again.
    pub async fn hear<T>(&self, step: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let silent = || Err(StoreError::Conflict("the connection went silent".into()));
        self.unless_silent(step).await.unwrap_or_else(silent)
    }

    /// Whether a step was given up since the last time this was asked.
    pub fn take_met(&self) -> bool {
        self.met.swap(false, Ordering::Relaxed)
    }
}

/// A writer's session that gives up waiting when a silence is announced.
pub(crate) struct HeardSession<S> {
    pub session: S,
    pub silences: SilenceListener,
}

#[async_trait]
impl<S: SqlSession> SqlSession for HeardSession<S> {
    async fn execute(&mut self, sql: SqlText, values: Vec<Value>) -> Result<u64, StoreError> {
        self.silences.hear(self.session.execute(sql, values)).await
    }

    async fn insert(&mut self, sql: SqlText, values: Vec<Value>) -> Result<bool, StoreError> {
        self.silences.hear(self.session.insert(sql, values)).await
    }

    async fn rows(&mut self, sql: SqlText, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        self.silences.hear(self.session.rows(sql, values)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_ends_with_a_silence_that_it_waited_through_and_with_no_other() {
        let teller = SilenceAnnouncer::default();
        let silences = teller.listener();
        teller.tell();
        assert_eq!(silences.unless_silent(async { 7 }).await, Some(7));
        let slow = silences.unless_silent(tokio::time::sleep(Duration::from_secs(50)));
        assert!(slow.await.is_some(), "the silence was before it");
        assert!(!silences.take_met());
        let silent = silences.hear(std::future::pending::<Result<(), StoreError>>());
        let (given_up, ()) = tokio::join!(silent, async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            teller.tell();
        });
        assert!(matches!(given_up, Err(StoreError::Conflict(_))));
        assert!(silences.take_met());
        assert!(!silences.take_met(), "once");
    }
}
