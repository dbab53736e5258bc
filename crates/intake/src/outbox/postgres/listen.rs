//! Listens for notifications, on a connection of its own.
//!
//! Notifications that are lost with the connection are made up for by polling: the runner reconnects, and
//! drains the tables.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Executor as _,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::super::error::OutboxError;

/// The channel of the outbox.
const OUTBOX: &str = "postway_outbox";
/// The channel of tokens.
const TOKENS: &str = "token_insert";
/// A connection that is silent for this long is checked: firewalls drop idle ones after five minutes.
const CHECK_EVERY: Duration = Duration::from_secs(270);
/// How long the check may take.
const CHECK_LASTS_MAX: Duration = Duration::from_secs(10);

/// Listens as long as it lives.
pub(super) struct NotificationListener {
    hints: Arc<Notify>,
    lost: CancellationToken,
    task: JoinHandle<()>,
}

impl NotificationListener {
    pub(super) async fn open(options: PgConnectOptions, with_tokens: bool) -> Result<Self, OutboxError> {
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(OUTBOX).await?;
        if with_tokens {
            listener.listen(TOKENS).await?;
        }
        let (hints, lost) = (Arc::new(Notify::new()), CancellationToken::new());
        let task = tokio::spawn({
            let (hints, lost) = (Arc::clone(&hints), lost.clone());
            async move {
                listen(&mut listener, &hints).await;
                lost.cancel();
            }
        });
        Ok(Self { hints, lost, task })
    }

    /// Waits for a notification since the last call; fails once the connection is lost.
    pub(super) async fn wait_for_hint(&self) -> Result<(), OutboxError> {
        tokio::select! {
            () = self.hints.notified() => Ok(()),
            () = self.lost.cancelled() => Err(OutboxError::Unexpected("the connection that listens is lost".to_owned())),
        }
    }
}

impl Drop for NotificationListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens until the connection is lost.
async fn listen(listener: &mut PgListener, hints: &Notify) {
    loop {
        match timeout(CHECK_EVERY, listener.try_recv()).await {
            Ok(Ok(Some(_))) => hints.notify_one(),
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => match timeout(CHECK_LASTS_MAX, listener.execute("SELECT 1")).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return,
            },
        }
    }
}
