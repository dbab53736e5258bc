//! Running the work of a message where it harms nobody else.
//!
//! Such work cannot be broken off, so what is given to it is bounded before: a request, and its message, by their limits; html by 4 MiB,
//! its depth and its elements; templates by fuel and memory; mail that somebody else wrote by the reader's own limits. All of it is linear
//! in these sizes, which `tests/door/bounded_work.rs` holds.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use postway_domain::TenantId;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{
    accept::door::Door,
    budget::{FairBudget, FairShare},
    refusal::Refusal,
};

/// From here on, parsing and composing take longer than a runtime's thread may be kept: about a millisecond.
const HEAVY_BYTES: usize = 256 * 1024;
/// Heavy work at once: one for each processor, within these bounds. Each may take some forty MiB while it lasts, and the ceiling of
/// memory that the guide states counts with the most of them.
const HEAVY_AT_ONCE: (usize, usize) = (4, 6);
/// The longest wait for such a place.
const HEAVY_WAIT_S_MAX: Duration = Duration::from_secs(60);

/// Places for heavy work, some of them for each tenant.
pub(crate) fn heavy_places() -> Arc<FairBudget> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let places = processors.clamp(HEAVY_AT_ONCE.0, HEAVY_AT_ONCE.1);
    FairBudget::new(places, places / 2)
}

impl Door {
    /// Does work on this many bytes for a tenant; see [`weighed`]. Heavy work waits for its place: what is built of a request
    /// while it is worked on can be many times its size, so only some of it is done at once.
    pub(crate) async fn weighed<R>(
        &self,
        tenant: &TenantId,
        bytes: usize,
        work: impl FnOnce() -> R + Send,
    ) -> Result<R, Refusal> {
        let _place = self.place_for(tenant, bytes).await?;
        Ok(weighed(bytes, work))
    }

    async fn place_for(&self, tenant: &TenantId, bytes: usize) -> Result<Option<FairShare>, Refusal> {
        if bytes <= HEAVY_BYTES {
            return Ok(None);
        }
        let place = self.heavy.wait(tenant, 1, HEAVY_WAIT_S_MAX).await;
        place.map(Some).ok_or_else(|| Refusal::busy("too many large requests are being read at once"))
    }
}

/// Does work on this many bytes. Heavy work tells the runtime to move its other tasks to another thread first, where
/// the runtime has one.
pub fn weighed<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    let multi_thread =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > HEAVY_BYTES && multi_thread() { tokio::task::block_in_place(work) } else { work() }
}

/// Composes one message; a panic is a refusal of that message and nobody else's concern. What the panic said may
/// quote the message, so it is not logged.
pub(crate) fn guarded<T>(
    tenant: &TenantId,
    request_id: &str,
    compose: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    // Nothing outlives the closure but its result, so no broken state can be seen.
    catch_unwind(AssertUnwindSafe(compose)).unwrap_or_else(|_| {
        tracing::error!(%tenant, request_id, "composing a message panicked; the message is refused");
        Err(Refusal::field("", "could not be composed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poison_message_is_refused_and_stops_nobody() {
        let tenant = "default".parse().unwrap();
        let poisoned: Result<(), _> = guarded(&tenant, "r", || panic!("poison"));
        assert!(
            matches!(poisoned, Err(Refusal::Invalid { details }) if details[0].message == "could not be composed")
        );
        assert_eq!(guarded(&tenant, "r", || Ok(1)).ok(), Some(1));
    }

    #[test]
    fn heavy_work_is_done_on_any_runtime_and_on_none() {
        let runtime = |mut builder: tokio::runtime::Builder| builder.build().unwrap();
        assert_eq!(weighed(usize::MAX, || 1), 1);
        for runtime in [
            runtime(tokio::runtime::Builder::new_current_thread()),
            runtime(tokio::runtime::Builder::new_multi_thread()),
        ] {
            assert_eq!(runtime.block_on(async { weighed(usize::MAX, || 2) }), 2);
        }
    }
}
