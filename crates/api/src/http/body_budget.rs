//! The memory that the bodies of all requests and answers together may use.
//!
//! Each body has its own bound, and so has their sum: a client that hands over many large mails at once, or
//! requests many and does not read them, cannot take the memory of the others. One tenant may use half of the
//! budget, and of the rest as much as it leaves free. Beyond that a request is answered 503 and may be
//! repeated in a moment. Small bodies are not counted; the number of connections bounds them.
//!
//! An answer counts until its last byte is written or its connection is closed: the share travels with the
//! bytes.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Extension,
    body::{Body, HttpBody, to_bytes},
    response::{IntoResponse, IntoResponseParts, Response, ResponseParts},
};
use bytes::Bytes;
use postway_domain::TenantId;
use postway_intake::{FairBudget, FairShare};
use postway_store::record::StoredBody;

use crate::{http::error::ApiError, state::AppState};

/// The smallest total budget.
const BYTES_MIN: usize = 192 * 1024 * 1024;
/// The budget fits at least this many bodies of the largest size.
const LARGEST_MIN: usize = 4;
/// How much a share grows at a time; the first step of every body is free.
const STEP_BYTES: usize = 16 * 1024;
/// How many mails are parsed at once for reading or a rule test, in all and for one tenant.
const LOOKS_MAX: usize = 4;
const LOOKS_PER_TENANT_MAX: usize = 2;
/// The longest wait for a free reading slot.
const LOOK_WAIT_S_MAX: Duration = Duration::from_secs(10);

/// The budget, and how much of it is in use.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes: Arc<FairBudget>,
    looks: Arc<FairBudget>,
}

impl BodyBudget {
    /// A budget for bodies of at most `bytes_max` bytes each.
    pub(crate) fn for_bodies_of(bytes_max: usize) -> Self {
        Self::with_bytes(BYTES_MIN.max(bytes_max.saturating_mul(LARGEST_MIN)))
    }

    /// A budget of `bytes_max` bytes in all.
    pub(crate) fn with_bytes(bytes_max: usize) -> Self {
        Self {
            bytes: FairBudget::new(bytes_max, bytes_max / 2),
            looks: FairBudget::new(LOOKS_MAX, LOOKS_PER_TENANT_MAX),
        }
    }

    /// A new, empty share for a request.
    pub(crate) fn share(&self) -> RequestShare {
        RequestShare(Arc::new(Mutex::new(self.bytes.share(None))))
    }

    /// Reserves memory for an answer of `bytes` bytes.
    pub(crate) fn reserve_answer(&self, tenant: &TenantId, bytes: usize) -> Result<AnswerShare, ApiError> {
        let mut held = AnswerShare(self.bytes.share(Some(tenant.clone())));
        held.cover(bytes).map(|()| held)
    }

    /// Waits for a slot to parse a mail.
    pub(crate) async fn reserve_reading(&self, tenant: &TenantId) -> Result<FairShare, ApiError> {
        let place = self.looks.wait(tenant, 1, LOOK_WAIT_S_MAX).await;
        place.ok_or_else(|| ApiError::busy("too many mails are being looked at at once; try again"))
    }
}

impl AppState {
    /// The bytes of a stored body. They count until the last handle on them is dropped.
    pub(crate) async fn load(&self, tenant: &TenantId, body: StoredBody) -> Result<Bytes, ApiError> {
        let bytes = usize::try_from(body.len()).map_err(ApiError::internal)?;
        let held = self.body_budget.reserve_answer(tenant, bytes)?;
        Ok(held.attach_to(self.door.resolve(tenant, body).await?))
    }
}

/// How much of `bytes` is counted: the first step of every body is free.
fn counted_bytes(bytes: usize) -> usize {
    bytes.saturating_sub(STEP_BYTES).next_multiple_of(STEP_BYTES)
}

/// One request's share of the budget, given back when its last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct RequestShare(Arc<Mutex<FairShare>>);

impl RequestShare {
    /// Grows the share to cover `bytes`; false if the budget is used up.
    pub(crate) fn cover(&self, bytes: usize) -> bool {
        self.lock().grow_to(counted_bytes(bytes))
    }

    /// Gives the complete share back.
    pub(crate) fn release(&self) {
        self.lock().shrink_to(0);
    }

    /// Counts the share as this tenant's from now on.
    pub(crate) fn assign_to(&self, tenant: &TenantId) {
        self.lock().belong_to(tenant);
    }

    fn lock(&self) -> MutexGuard<'_, FairShare> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the answer in place of the request's body, unless it is counted already. If the budget is used
    /// up, only an answer that may be requested again is refused: the answer to a request that changed
    /// something must reach its caller, who would otherwise repeat it.
    pub(crate) async fn count_answer(self, response: Response, changes_nothing: bool) -> Response {
        let bytes = response.body().size_hint().exact().unwrap_or(0) as usize;
        if bytes <= STEP_BYTES || response.extensions().get::<AlreadyCounted>().is_some() {
            self.release();
            return response;
        }
        self.lock().shrink_to(counted_bytes(bytes));
        if !self.cover(bytes) && changes_nothing {
            return too_many_answers().into_response();
        }
        let (parts, body) = response.into_parts();
        // The body has a known length, so it is complete: this waits for nothing, and a single piece is not
        // copied.
        match to_bytes(body, bytes).await {
            Ok(bytes) => Response::from_parts(parts, Body::from(bytes_with_owner(bytes, self))),
            Err(error) => ApiError::internal(error).into_response(),
        }
    }
}

/// An answer's share of the budget.
#[derive(Debug)]
pub(crate) struct AnswerShare(FairShare);

impl AnswerShare {
    /// Grows the share to cover an answer of `bytes` bytes.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), ApiError> {
        if self.0.grow_to(counted_bytes(bytes)) { Ok(()) } else { Err(too_many_answers()) }
    }

    /// The bytes of the answer, bound to exactly the share they need for as long as a handle on them exists.
    pub(crate) fn attach_to(mut self, bytes: Bytes) -> Bytes {
        self.0.shrink_to(counted_bytes(bytes.len()));
        match self.0.amount() {
            0 => bytes,
            _ => bytes_with_owner(bytes, self),
        }
    }
}

/// The bytes of a mail bound to the slot in which it is parsed. The client may have gone; the slot is free
/// only when the last handle on the bytes is dropped.
pub(crate) fn with_reading_slot(bytes: Bytes, place: FairShare) -> Bytes {
    bytes_with_owner(bytes, place)
}

fn too_many_answers() -> ApiError {
    ApiError::busy("too many large answers are being read at once; take those, and try again")
}

/// Bytes that own what counts them.
fn bytes_with_owner<H: Send + 'static>(bytes: Bytes, held: H) -> Bytes {
    struct BudgetedBytes<H>(Bytes, #[allow(dead_code, reason = "it is dropped with the bytes")] H);

    impl<H> AsRef<[u8]> for BudgetedBytes<H> {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    Bytes::from_owner(BudgetedBytes(bytes, held))
}

/// Marks an answer whose bytes are counted already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlreadyCounted;

impl IntoResponseParts for AlreadyCounted {
    type Error = <Extension<Self> as IntoResponseParts>::Error;

    fn into_response_parts(self, parts: ResponseParts) -> Result<ResponseParts, Self::Error> {
        Extension(self).into_response_parts(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    fn free(budget: &BodyBudget) -> usize {
        budget.bytes.left(&tenant("nobody")).0
    }

    #[test]
    fn what_is_taken_comes_back_and_no_more_is_given_than_there_is() {
        let budget = BodyBudget::with_bytes(4 * STEP_BYTES);
        let (first, second) = (budget.share(), budget.share());
        assert!(first.cover(STEP_BYTES), "what is small is not counted");
        assert_eq!(free(&budget), 4 * STEP_BYTES);
        assert!(first.cover(4 * STEP_BYTES) && second.cover(STEP_BYTES + 1));
        assert!(!first.cover(4 * STEP_BYTES + 1));
        second.release();
        assert!(first.cover(5 * STEP_BYTES) && !second.cover(2 * STEP_BYTES));
        let handle = first.clone();
        drop(first);
        assert!(!second.cover(2 * STEP_BYTES), "it is still held");
        drop(handle);
        assert!(second.cover(2 * STEP_BYTES));
        drop(second);
        assert_eq!(free(&budget), 4 * STEP_BYTES);
    }

    #[test]
    fn one_tenant_has_half_of_it() {
        let budget = BodyBudget::with_bytes(8 * STEP_BYTES);
        let (greedy, modest) = (tenant("greedy"), tenant("modest"));
        let body = budget.share();
        body.assign_to(&greedy);
        assert!(body.cover(3 * STEP_BYTES));
        let answer = budget.reserve_answer(&greedy, 3 * STEP_BYTES).unwrap();
        assert!(budget.reserve_answer(&greedy, 2 * STEP_BYTES).is_err());
        assert!(budget.reserve_answer(&modest, 4 * STEP_BYTES).is_err(), "some is left for a third");
        assert!(budget.reserve_answer(&modest, 3 * STEP_BYTES).is_ok());
        drop((body, answer));
        assert!(budget.reserve_answer(&greedy, 5 * STEP_BYTES).is_ok());
    }

    #[test]
    fn an_answer_counts_for_as_long_as_its_bytes_are_there() {
        let budget = BodyBudget::with_bytes(8 * STEP_BYTES);
        let held = budget.reserve_answer(&tenant("a"), 5 * STEP_BYTES).unwrap();
        let bytes = held.attach_to(Bytes::from(vec![b'x'; 3 * STEP_BYTES]));
        assert_eq!(free(&budget), 6 * STEP_BYTES, "what is not needed is given back");
        let last = bytes.slice(3 * STEP_BYTES - 1..);
        drop(bytes);
        assert_eq!((free(&budget), &last[..]), (6 * STEP_BYTES, &b"x"[..]));
        drop(last);
        assert_eq!(free(&budget), 8 * STEP_BYTES);
    }

    #[tokio::test]
    async fn every_large_answer_is_counted_once() {
        let budget = BodyBudget::with_bytes(8 * STEP_BYTES);
        let large = || vec![b'x'; 3 * STEP_BYTES].into_response();
        let first = budget.share().count_answer(large(), true).await;
        assert_eq!(free(&budget), 6 * STEP_BYTES);
        let counted = (AlreadyCounted, large()).into_response();
        let second = budget.share().count_answer(counted, true).await;
        assert_eq!(free(&budget), 6 * STEP_BYTES);
        let third = budget.share().count_answer(vec![b'x'; 8 * STEP_BYTES].into_response(), true).await;
        assert_eq!((second.status().as_u16(), third.status().as_u16()), (200, 503));
        // The answer to a request that changed something is never refused.
        let fourth = budget.share().count_answer(vec![b'x'; 8 * STEP_BYTES].into_response(), false).await;
        assert_eq!(fourth.status().as_u16(), 200);
        let bytes = to_bytes(first.into_body(), usize::MAX).await.unwrap();
        assert_eq!(
            (bytes.len(), free(&budget)),
            (3 * STEP_BYTES, 6 * STEP_BYTES),
            "its bytes are still there"
        );
        drop(bytes);
        assert_eq!(free(&budget), 8 * STEP_BYTES);
    }
}
