//! Runs the work on a message so that it does not harm other requests.
//!
//! Such work cannot be interrupted, so its input is bounded beforehand: a request and its message by their
//! limits; html by 4 MiB, its depth and its elements; templates by fuel and memory; received mail by the
//! reader's own limits. All of the work is linear in these sizes, which `tests/door/bounded_work.rs`
//! verifies.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use postway_domain::TenantId;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::fair::{FairBudget, FairShare};
use crate::refusal::Refusal;

/// From this size on, parsing and composing occupy a thread of the runtime for longer than about a
/// millisecond.
pub(crate) const HEAVY_BYTES: usize = 256 * 1024;
/// The least and the most slots for heavy work: one for each processor, within these bounds. Each may occupy
/// some 40 MiB, and the memory ceiling in the guide assumes the most.
const HEAVY_AT_ONCE: (usize, usize) = (4, 6);
/// The longest wait for a slot.
const HEAVY_WAIT_S_MAX: Duration = Duration::from_secs(60);

/// Slots for heavy work, some of them for each tenant.
pub(crate) struct HeavyWork(Arc<FairBudget>);

impl Default for HeavyWork {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let slots = processors.clamp(HEAVY_AT_ONCE.0, HEAVY_AT_ONCE.1);
        Self(FairBudget::new(slots, slots / 2))
    }
}

impl HeavyWork {
    /// Does work on this many bytes for a tenant; see [`run_heavy`]. Heavy work waits for a slot: what is
    /// built from a request can be many times its size, so only a few large requests are worked on at once.
    pub(crate) async fn run<R>(
        &self,
        tenant: &TenantId,
        bytes: usize,
        work: impl FnOnce() -> R + Send,
    ) -> Result<R, Refusal> {
        let _slot = self.slot_for(tenant, bytes).await?;
        Ok(run_heavy(bytes, work))
    }

    async fn slot_for(&self, tenant: &TenantId, bytes: usize) -> Result<Option<FairShare>, Refusal> {
        if bytes <= HEAVY_BYTES {
            return Ok(None);
        }
        let slot = self.0.wait(tenant, 1, HEAVY_WAIT_S_MAX).await;
        slot.map(Some).ok_or_else(|| Refusal::busy("too many large requests are being read at once"))
    }
}

/// Does work on this many bytes. Before heavy work, a runtime with several threads moves its other tasks to
/// another thread.
pub fn run_heavy<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    let multi_thread =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > HEAVY_BYTES && multi_thread() { tokio::task::block_in_place(work) } else { work() }
}

/// Composes one message; a panic becomes a refusal of that message alone. The panic's text may quote the
/// message, so it is not logged.
pub(crate) fn catch_panic<T>(
    tenant: &TenantId,
    request_id: &str,
    compose: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    // Only the result outlives the closure, so no broken state can be seen.
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
        let poisoned: Result<(), _> = catch_panic(&tenant, "r", || panic!("poison"));
        assert!(
            matches!(poisoned, Err(Refusal::Invalid { details }) if details[0].message == "could not be composed")
        );
        assert_eq!(catch_panic(&tenant, "r", || Ok(1)).ok(), Some(1));
    }

    #[test]
    fn heavy_work_is_done_on_any_runtime_and_on_none() {
        let runtime = |mut builder: tokio::runtime::Builder| builder.build().unwrap();
        assert_eq!(run_heavy(usize::MAX, || 1), 1);
        for runtime in [
            runtime(tokio::runtime::Builder::new_current_thread()),
            runtime(tokio::runtime::Builder::new_multi_thread()),
        ] {
            assert_eq!(runtime.block_on(async { run_heavy(usize::MAX, || 2) }), 2);
        }
    }
}
