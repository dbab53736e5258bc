//! Checks that a store can write, by writing.
//!
//! Load balancers ask often, and so may strangers: so there is at most one write in [`EVERY`], and callers in
//! between get its answer. What is written is removed in the same transaction, which still goes to the disk.
//! On SQLite it takes about the space of a small mail, in pages and in the log, so that a full disk shows
//! here as soon as it does for mail; on a server a row is enough.

use std::{future::Future, time::Duration};

use tokio::{sync::Mutex, time::Instant};

use crate::{
    error::StoreError,
    sql::{SqlSession, SqlText, values},
};

/// How long an answer is good for.
const EVERY: Duration = Duration::from_secs(1);

/// In a table of few rows, under a name that nothing else uses.
const WRITE: SqlText = SqlText::of_each(
    "INSERT INTO progress (name, position) VALUES (? || hex(zeroblob(16384)), 0)",
    "INSERT INTO progress (name, position) VALUES (?, 0)",
    "INSERT INTO progress (name, position) VALUES (?, 0)",
);
const REMOVE: SqlText = SqlText::of_each(
    "DELETE FROM progress WHERE name = ? || hex(zeroblob(16384))",
    "DELETE FROM progress WHERE name = ?",
    "DELETE FROM progress WHERE name = ?",
);

#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[WRITE, REMOVE];

/// Writes something, and removes it again.
pub(crate) async fn write(session: &mut dyn SqlSession) -> Result<(), StoreError> {
    // Nodes that are asked at the same moment must not wait for each other.
    let name = format!("pulse-{:016x}", rand::random::<u64>());
    session.execute(WRITE, values![name.as_str()]).await?;
    session.execute(REMOVE, values![name]).await.map(drop)
}

/// The last answer, and when it was given.
#[derive(Default)]
pub(crate) struct WriteProbe(Mutex<Option<(Instant, Result<(), StoreError>)>>);

impl WriteProbe {
    /// The last answer while it is valid, else the result of `write`. Callers in the meantime wait for it.
    pub async fn feel(&self, write: impl Future<Output = Result<(), StoreError>>) -> Result<(), StoreError> {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < EVERY
        {
            return answer.clone();
        }
        let answer = write.await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn who_asks_within_a_second_shares_one_answer() {
        let (pulse, written) = (WriteProbe::default(), AtomicU32::new(0));
        let feel = |answer: Result<(), StoreError>| {
            pulse.feel(async {
                tokio::task::yield_now().await;
                written.fetch_add(1, Ordering::Relaxed);
                answer
            })
        };
        let full = || StoreError::Unavailable("the disk is full".into());
        let answers = futures::future::join_all((0..50).map(|_| feel(Err(full())))).await;
        assert!(answers.iter().all(Result::is_err));
        assert!(feel(Ok(())).await.is_err(), "the answer is still good");
        assert_eq!(written.load(Ordering::Relaxed), 1);
        let old = Instant::now().checked_sub(EVERY).unwrap();
        *pulse.0.lock().await = Some((old, Err(full())));
        assert!(feel(Ok(())).await.is_ok());
        assert_eq!(written.load(Ordering::Relaxed), 2);
    }
}
