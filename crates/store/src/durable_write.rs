//! Writing until the store has it: the retry loop of every outcome that must not be lost.
//!
//! An outcome that could not be written when the process stops is not lost either: its lease ends, and
//! another node does the work again.

use std::{pin::pin, time::Duration};

use futures::{FutureExt, future::poll_immediate};

use crate::StoreError;

/// The wait after the first failed try; it doubles up to [`WAIT_MAX`].
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Calls `write` until it succeeds, for as long as the store is away. `what` names what is written, for the
/// log.
///
/// Fails with an error that waiting cannot cure. Once `stop` has ended, `write` is tried once more, and its
/// error is returned whatever it is.
pub async fn until_durable<T, W>(
    what: &'static str,
    stop: impl Future<Output = ()>,
    mut write: impl FnMut() -> W,
) -> Result<T, StoreError>
where
    W: Future<Output = Result<T, StoreError>>,
{
    let mut stop = pin!(stop.fuse());
    let mut is_stopped = false;
    let mut wait = WAIT_FIRST;
    loop {
        is_stopped |= poll_immediate(stop.as_mut()).await.is_some();
        match write().await {
            Ok(written) => return Ok(written),
            Err(error) if !error.is_transient() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "{what} could not be stored yet");
                if is_stopped {
                    return Err(error);
                }
            }
        }
        tokio::select! {
            () = stop.as_mut() => is_stopped = true,
            () = tokio::time::sleep(wait) => {}
        }
        wait = (wait * 2).min(WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn away() -> StoreError {
        StoreError::Unavailable("away".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn it_tries_until_the_store_is_back() {
        let tries = Cell::new(0);
        let written = until_durable("a test", std::future::pending(), || {
            tries.set(tries.get() + 1);
            let tries = tries.get();
            async move { if tries < 10 { Err(away()) } else { Ok(tries) } }
        });
        assert_eq!(written.await.ok(), Some(10));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_waiting_cannot_cure_ends_it() {
        let write = || async { Err::<(), _>(StoreError::Unexpected("no".to_owned())) };
        let written = until_durable("a test", std::future::pending(), write).await;
        assert!(written.is_err_and(|error| !error.is_transient()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_allows_one_more_try() {
        let tries = Cell::new(0);
        let write = || {
            tries.set(tries.get() + 1);
            async { Err::<(), _>(away()) }
        };
        assert!(until_durable("a test", std::future::ready(()), write).await.is_err());
        assert_eq!(tries.get(), 1, "it had stopped before");
        tries.set(0);
        let stop = tokio::time::sleep(Duration::from_millis(60));
        assert!(until_durable("a test", stop, write).await.is_err());
        assert_eq!(tries.get(), 3, "two before the stop and one after it");
    }
}
