//! The bytes of a message, which come with its claim or are fetched for it.
//!
//! Where they cannot be read that is not the mail's fault: the storage is away, or another node keeps them in a folder of
//! its own. Such mail is given back and uses no retry. What is damaged is tried like any other fault, and ends as a dead
//! letter that can be replayed once it was restored.

use bytes::Bytes;
use postway_domain::{
    Failure,
    failure::{Category, Phase, Severity},
};
use postway_store::{blob::BlobError, record::Claimed};
use tokio::sync::SemaphorePermit;

use crate::context::{LARGE_BODIES_MIB, Shared};

/// Why there are no bytes to send.
pub(super) enum Lack {
    /// They cannot be read here and now.
    Away(Failure),
    /// There is something wrong with them.
    Broken(Failure),
}

/// The bytes to send, and for large ones the memory they count against.
pub(super) async fn body<'s>(
    shared: &'s Shared,
    job: &Claimed,
) -> Result<(Bytes, Option<SemaphorePermit<'s>>), Lack> {
    if let Some(raw) = &job.raw {
        return Ok((raw.clone(), None));
    }
    let unreadable = |message: String| {
        Failure::new("body_unavailable", Category::Unknown, Phase::Compose, Severity::Transient, message)
    };
    let mib = job.size.div_ceil(1024 * 1024).clamp(1, LARGE_BODIES_MIB as u32);
    let memory = shared
        .large_bodies
        .acquire_many(mib)
        .await
        .map_err(|error| Lack::Away(unreadable(error.to_string())))?;
    let missing = |message: &str| {
        Failure::new("body_missing", Category::Unknown, Phase::Compose, Severity::Permanent, message)
    };
    let body = match shared.store.body(job.uid).await {
        Ok(Some(body)) => body,
        Ok(None) => return Err(Lack::Broken(missing("the stored message has no body"))),
        Err(error) => return Err(Lack::Away(unreadable(error.to_string()))),
    };
    match shared.depot.resolve(&job.lane.tenant, body).await {
        Ok(bytes) => Ok((bytes, Some(memory))),
        Err(error @ BlobError::Damaged(_)) => Err(Lack::Broken(unreadable(error.to_string()))),
        Err(error) => Err(Lack::Away(unreadable(error.to_string()))),
    }
}

/// Lets a test send a message that breaks its courier.
pub(super) fn panic_if_poisoned(body: &[u8]) {
    #[cfg(feature = "failpoints")]
    if body.windows(23).take(4_096).any(|window| window == b"X-Poison: break courier") {
        panic!("a poisoned message");
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = body;
}
