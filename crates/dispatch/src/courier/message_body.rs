//! The body of a message: it comes with the claim or is read for the attempt.
//!
//! A body that cannot be read is not the message's fault: the storage may be unavailable, or another node may
//! keep the body in a local folder. The message is returned and uses no retry. A damaged body fails like any
//! other attempt: the message ends as a dead letter, which can be replayed once the body is restored.

use bytes::Bytes;
use postway_domain::{
    SendFailure,
    failure::{FailureCategory, FailurePhase, FailureSeverity},
};
use postway_store::{blob::BlobError, record::ClaimedMessage};
use tokio::sync::SemaphorePermit;

use crate::context::{DispatchContext, LARGE_BODIES_MIB};

/// Why there is no body to send.
pub(super) enum BodyError {
    /// It cannot be read here and now.
    Unreadable(SendFailure),
    /// It is missing or damaged.
    Damaged(SendFailure),
}

/// The body to send, with its share of the memory budget if it is large.
pub(super) async fn read_body<'s>(
    context: &'s DispatchContext,
    job: &ClaimedMessage,
) -> Result<(Bytes, Option<SemaphorePermit<'s>>), BodyError> {
    if let Some(raw) = &job.raw {
        return Ok((raw.clone(), None));
    }
    let unreadable = |message: String| {
        SendFailure::new(
            "body_unavailable",
            FailureCategory::Unknown,
            FailurePhase::Compose,
            FailureSeverity::Transient,
            message,
        )
    };
    let mib = job.size.div_ceil(1024 * 1024).clamp(1, LARGE_BODIES_MIB as u32);
    let memory = context
        .large_bodies
        .acquire_many(mib)
        .await
        .map_err(|error| BodyError::Unreadable(unreadable(error.to_string())))?;
    let missing = |message: &str| {
        SendFailure::new(
            "body_missing",
            FailureCategory::Unknown,
            FailurePhase::Compose,
            FailureSeverity::Permanent,
            message,
        )
    };
    let body = match context.store.body(job.uid).await {
        Ok(Some(body)) => body,
        Ok(None) => return Err(BodyError::Damaged(missing("the stored message has no body"))),
        Err(error) => return Err(BodyError::Unreadable(unreadable(error.to_string()))),
    };
    match context.depot.resolve(&job.lane.tenant, body).await {
        Ok(bytes) => Ok((bytes, Some(memory))),
        Err(error @ BlobError::Damaged(_)) => Err(BodyError::Damaged(unreadable(error.to_string()))),
        Err(error) => Err(BodyError::Unreadable(unreadable(error.to_string()))),
    }
}

/// Panics on a marked message, so that tests can break a courier.
pub(super) fn panic_if_poisoned(body: &[u8]) {
    #[cfg(feature = "failpoints")]
    if body.windows(23).take(4_096).any(|window| window == b"X-Poison: break courier") {
        panic!("a poisoned message");
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = body;
}
