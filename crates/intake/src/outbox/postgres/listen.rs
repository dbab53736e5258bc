//! Listening for notifications, on a connection of its own.
//!
//! What is lost with a connection is made up for by a look at the tables: whoever hears that the connection is lost connects
//! anew, and drains.

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
/// A connection that is silent for so long is asked whether it is there: firewalls forget idle ones after five minutes.
const CHECK_EVERY: Duration = Duration::from_secs(270);
/// How long it may take to say so.
const CHECK_LASTS_MAX: Duration = Duration::from_secs(10);

/// Somebody who listens as long as this lives.
pub(super) struct Ears {
    hints: Arc<Notify>,
    lost: CancellationToken,
    task: JoinHandle<()>,
}

impl Ears {
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

    /// Pends until something was heard since the last time; fails once nothing is heard any more.
    pub(super) async fn heard(&self) -> Result<(), OutboxError> {
        tokio::select! {
            () = self.hints.notified() => Ok(()),
            () = self.lost.cancelled() => Err(OutboxError::Unexpected("the connection that listens is lost".to_owned())),
        }
    }
}

impl Drop for Ears {
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
