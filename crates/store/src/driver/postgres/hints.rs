//! Wake-ups between nodes: LISTEN and NOTIFY.
//!
//! Hints only. They are sent after the commit, on a connection of their own and a few at a time, because a
//! NOTIFY inside a transaction makes its commit wait for every other such commit of the server. What is lost
//! is found by polling.

use std::{sync::Arc, time::Duration};

use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::task::JoinHandle;

use super::{connect::CONNECT_TIMEOUT, failed};
use crate::{error::StoreError, queue::hand_over::HandOver, record::AccountKey};

pub(super) const CHANNEL: &str = "postway";
pub(super) const NOTIFY: &str = "SELECT pg_notify($1, hint) FROM UNNEST($2::text[]) AS v(hint)";
/// Hints of this long go out together.
const COLLECT: Duration = Duration::from_millis(20);
/// How long to leave a server alone that could not be reached.
const RETRY: Duration = Duration::from_secs(1);

/// Two tasks: one notifies, one listens.
pub(super) struct Hints(Vec<JoinHandle<()>>);

impl Hints {
    pub fn start(options: PgConnectOptions, handover: &Arc<HandOver>) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .acquire_timeout(CONNECT_TIMEOUT)
            .connect_lazy_with(options);
        // A node's own notifications are nothing new to it.
        let me = format!("{:016x}", rand::random::<u64>());
        let hearing = tokio::spawn(hear(pool.clone(), handover.clone(), me.clone()));
        let telling = tokio::spawn(tell(pool, handover.clone(), me));
        Self(vec![hearing, telling])
    }

    pub fn stop(&self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn tell(pool: PgPool, handover: Arc<HandOver>, me: String) {
    loop {
        let keys = handover.to_tell().await;
        let hints: Vec<String> =
            keys.iter().map(|key| format!("{me} {} {}", key.tenant, key.account)).collect();
        let notified = sqlx::query(NOTIFY).bind(CHANNEL).bind(hints).execute(&pool).await;
        if let Err(error) = notified {
            tracing::debug!(%error, "other nodes were not woken; they will look by themselves");
            tokio::time::sleep(RETRY).await;
        }
        tokio::time::sleep(COLLECT).await;
    }
}

async fn hear(pool: PgPool, handover: Arc<HandOver>, me: String) {
    loop {
        if let Err(error) = listen(&pool, &handover, &me).await {
            tracing::debug!(%error, "other nodes are not heard; the queue is polled");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn listen(pool: &PgPool, handover: &HandOver, me: &str) -> Result<(), StoreError> {
    let mut listener = PgListener::connect_with(pool).await.map_err(failed)?;
    listener.listen(CHANNEL).await.map_err(failed)?;
    loop {
        let hint = listener.recv().await.map_err(failed)?;
        handover.hear(heard(hint.payload(), me));
    }
}

/// Who else's hint it is, and about which account.
fn heard(payload: &str, me: &str) -> Option<AccountKey> {
    let mut words = payload.split(' ');
    let from = words.next()?;
    let (tenant, account) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (from != me).then_some(AccountKey { tenant, account })
}

#[cfg(test)]
mod tests {
    use super::heard;

    #[test]
    fn a_hint_of_another_is_heard_and_nonsense_is_not() {
        let key = heard("b shop relay-1", "a").unwrap();
        assert_eq!((key.tenant.as_str(), key.account.as_str()), ("shop", "relay-1"));
        for deaf in ["a shop relay-1", "", "b", "b shop", "b shop /etc/passwd"] {
            assert_eq!(heard(deaf, "a"), None, "{deaf}");
        }
    }
}
