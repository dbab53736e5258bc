//! The permit of an attempt: good when the first word of the mail is written, however long body and connection took.
//!
//! A permit lasts for seconds. One that ran out before it was used is moved to now in the store, which changes nothing in any
//! window; so a mail is not given back, fetched and found too late for ever. One that is kept for long while a body is fetched is
//! moved in time, because it can be only while it counts.

use std::{future::Future, time::Duration};

use postway_domain::Time;
use postway_store::record::{Changed, DirectoryChange, Permit};

use crate::context::Shared;

/// How long a permit is kept before it is moved, while there is something to wait for: half of the shortest window.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Whether the time has passed by which it must be used.
pub(crate) fn is_over(permit: Option<&Permit>, now: Time) -> bool {
    permit.is_some_and(|permit| now >= permit.use_by)
}

/// Sees to it that the permit is good now; false where it cannot be made so. What is left of it then may be given back.
pub(crate) async fn refresh(shared: &Shared, permit: &mut Option<Permit>) -> bool {
    if is_over(permit.as_ref(), shared.clock.now()) {
        renew(shared, permit).await;
    }
    !is_over(permit.as_ref(), shared.clock.now())
}

/// Awaits something that may take long, and keeps the permit meanwhile.
pub(super) async fn keep<T>(
    shared: &Shared,
    permit: &mut Option<Permit>,
    something: impl Future<Output = T>,
) -> T {
    let mut something = std::pin::pin!(something);
    loop {
        tokio::select! {
            biased;
            done = &mut something => return done,
            () = tokio::time::sleep(KEPT_FOR), if permit.is_some() => renew(shared, permit).await,
        }
    }
}

/// Moves it to now, where it still counts.
async fn renew(shared: &Shared, permit: &mut Option<Permit>) {
    let now = shared.clock.now();
    let Some((old, renewed)) = permit.as_ref().and_then(|old| Some((old.clone(), old.renewed(now)?))) else {
        return;
    };
    match shared.store.change(DirectoryChange::RenewPermit(old, now), None).await {
        Ok(Changed::Done) => *permit = Some(renewed),
        Ok(_) => {}
        // Nobody knows which of the two is debited now. It stays debited: that is one less, and never one more. Its time is over.
        Err(error) => {
            tracing::warn!(%error, "a permit could not be renewed");
            if let Some(permit) = permit {
                permit.spans.clear();
                permit.use_by = permit.use_by.min(now);
            }
        }
    }
}
