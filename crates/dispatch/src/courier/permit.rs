//! The permit of an attempt. It must be valid when the first command of the mail is written, however long
//! reading the body and connecting took.
//!
//! A permit is valid for seconds. If it expires before it is used, it is renewed: the store moves the debit
//! to the current time, which changes no window's sum. Without renewal, a mail with a slow body would be
//! claimed, read and returned for ever. While a body is being read, the permit is renewed regularly, because
//! only a debit that still counts can be moved.

use std::{future::Future, time::Duration};

use postway_domain::Time;
use postway_store::record::{ChangeResult, DirectoryChange, SendingPermit};

use crate::context::DispatchContext;

/// How often a permit is renewed while a body is read: half of the shortest window.
const RENEW_AFTER: Duration = Duration::from_secs(30);

/// Whether the time by which the permit must be used has passed.
pub(crate) fn has_expired(permit: Option<&SendingPermit>, now: Time) -> bool {
    permit.is_some_and(|permit| now >= permit.use_by)
}

/// Renews the permit if it has expired. Returns whether it is valid now; if not, its debit may be refunded.
pub(crate) async fn refresh(context: &DispatchContext, permit: &mut Option<SendingPermit>) -> bool {
    if has_expired(permit.as_ref(), context.clock.now()) {
        renew(context, permit).await;
    }
    !has_expired(permit.as_ref(), context.clock.now())
}

/// Awaits `work`, which may take long, and renews the permit meanwhile.
pub(super) async fn renew_during<T>(
    context: &DispatchContext,
    permit: &mut Option<SendingPermit>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(RENEW_AFTER), if permit.is_some() => renew(context, permit).await,
        }
    }
}

/// Moves the debit to the current time, if it still counts.
async fn renew(context: &DispatchContext, permit: &mut Option<SendingPermit>) {
    let now = context.clock.now();
    let Some((old, renewed)) = permit.as_ref().and_then(|old| Some((old.clone(), old.renewed(now)?))) else {
        return;
    };
    match context.store.change(DirectoryChange::RenewPermit(old, now), None).await {
        Ok(ChangeResult::Done) => *permit = Some(renewed),
        Ok(_) => {}
        // The write may or may not have happened, so the permit is treated as expired and is not refunded:
        // that can waste one message of the limit, but never exceed it.
        Err(error) => {
            tracing::warn!(%error, "a permit could not be renewed");
            if let Some(permit) = permit {
                permit.spans.clear();
                permit.use_by = permit.use_by.min(now);
            }
        }
    }
}
