//! The memory that bodies of requests and answers may take, of all requests together.
//!
//! Each body has its bound, and so has their sum: whoever hands over many large mails at once, or asks for many and does not
//! take them, does not take the memory of the others. One tenant may have half of it, and of what others leave as much as it leaves
//! in turn. Beyond that a request is 503, and may come again in a moment. Small bodies are not counted; the number of connections bounds them.
//!
//! An answer counts until its last byte is written or its connection is gone: what counts it travels with the bytes.

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
use postway_store::record::Body as StoredBody;

use crate::{http::error::ApiError, state::App};

/// What there is at least.
const BYTES_MIN: usize = 192 * 1024 * 1024;
/// How many of the largest bodies have room at once, at least.
const LARGEST_MIN: usize = 4;
/// How much a body takes at a time, and how much of it is not counted.
const STEP_BYTES: usize = 16 * 1024;
/// Mails that are taken apart at once, to be shown or tried, and those of one tenant.
const LOOKS_MAX: usize = 4;
const LOOKS_PER_TENANT_MAX: usize = 2;
/// The longest wait to take one apart.
const LOOK_WAIT_S_MAX: Duration = Duration::from_secs(10);

/// What there is, and what is taken of it.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: Arc<FairBudget>,
    looks: Arc<FairBudget>,
}

impl Room {
    /// Enough for bodies of at most `bytes_max` bytes each.
    pub(crate) fn for_bodies_of(bytes_max: usize) -> Self {
        Self::of(BYTES_MIN.max(bytes_max.saturating_mul(LARGEST_MIN)))
    }

    /// Of this size.
    pub(crate) fn of(bytes_max: usize) -> Self {
        Self {
            bytes: FairBudget::new(bytes_max, bytes_max / 2),
            looks: FairBudget::new(LOOKS_MAX, LOOKS_PER_TENANT_MAX),
        }
    }

    /// Nothing of it yet, for a request.
    pub(crate) fn share(&self) -> RequestShare {
        RequestShare(Arc::new(Mutex::new(self.bytes.share(None))))
    }

    /// Takes as much as an answer of `bytes` bytes needs.
    pub(crate) fn hold(&self, tenant: &TenantId, bytes: usize) -> Result<HeldBytes, ApiError> {
        let mut held = HeldBytes(self.bytes.share(Some(tenant.clone())));
        held.cover(bytes).map(|()| held)
    }

    /// A place to take a mail apart.
    pub(crate) async fn look(&self, tenant: &TenantId) -> Result<FairShare, ApiError> {
        let place = self.looks.wait(tenant, 1, LOOK_WAIT_S_MAX).await;
        place.ok_or_else(|| ApiError::busy("too many mails are being looked at at once; try again"))
    }
}

impl App {
    /// The bytes of a stored body, which are counted until the last handle on them is dropped.
    pub(crate) async fn load(&self, tenant: &TenantId, body: StoredBody) -> Result<Bytes, ApiError> {
        let bytes = usize::try_from(body.len()).map_err(ApiError::internal)?;
        let held = self.room.hold(tenant, bytes)?;
        Ok(held.around(self.door.resolve(tenant, body).await?))
    }
}

/// How much of `bytes` is counted: the first step of every body is free.
fn counted(bytes: usize) -> usize {
    bytes.saturating_sub(STEP_BYTES).next_multiple_of(STEP_BYTES)
}

/// One request's part, given back when the last handle on it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct RequestShare(Arc<Mutex<FairShare>>);

impl RequestShare {
    /// Makes it large enough for `bytes`; false where there is no room.
    pub(crate) fn cover(&self, bytes: usize) -> bool {
        self.lock().grow_to(counted(bytes))
    }

    /// Gives all of it back.
    pub(crate) fn release(&self) {
        self.lock().shrink_to(0);
    }

    /// Counts it as this tenant's from now on.
    pub(crate) fn belong_to(&self, tenant: &TenantId) {
        self.lock().belong_to(tenant);
    }

    fn lock(&self) -> MutexGuard<'_, FairShare> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to the request, counted in place of its body, unless something counts it already. Where there is no room,
    /// only an answer that may be asked for again is refused: the one to a request that changed something must reach its
    /// caller, who would otherwise do it twice.
    pub(crate) async fn count_answer(self, response: Response, changes_nothing: bool) -> Response {
        let bytes = response.body().size_hint().exact().unwrap_or(0) as usize;
        if bytes <= STEP_BYTES || response.extensions().get::<Counted>().is_some() {
            self.release();
            return response;
        }
        self.lock().shrink_to(counted(bytes));
        if !self.cover(bytes) && changes_nothing {
            return too_many_answers().into_response();
        }
        let (parts, body) = response.into_parts();
        // It has a length, so it is there: nothing is waited for, and one piece is not copied.
        match to_bytes(body, bytes).await {
            Ok(bytes) => Response::from_parts(parts, Body::from(travelling(bytes, self))),
            Err(error) => ApiError::internal(error).into_response(),
        }
    }
}

/// What an answer takes of the room.
#[derive(Debug)]
pub(crate) struct HeldBytes(FairShare);

impl HeldBytes {
    /// Makes it enough for an answer of `bytes` bytes.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), ApiError> {
        if self.0.grow_to(counted(bytes)) { Ok(()) } else { Err(too_many_answers()) }
    }

    /// The bytes of the answer, with just as much of the room as they need for as long as somebody has them.
    pub(crate) fn around(mut self, bytes: Bytes) -> Bytes {
        self.0.shrink_to(counted(bytes.len()));
        match self.0.amount() {
            0 => bytes,
            _ => travelling(bytes, self),
        }
    }
}

/// The bytes of a mail with the place that it is taken apart in: whoever asked may be gone, and the place is free only when nobody
/// has the bytes any more.
pub(crate) fn in_its_place(bytes: Bytes, place: FairShare) -> Bytes {
    travelling(bytes, place)
}

fn too_many_answers() -> ApiError {
    ApiError::busy("too many large answers are being read at once; take those, and try again")
}

/// Bytes that carry what counts them.
fn travelling<H: Send + 'static>(bytes: Bytes, held: H) -> Bytes {
    struct Travelling<H>(Bytes, #[allow(dead_code, reason = "it is dropped with the bytes")] H);

    impl<H> AsRef<[u8]> for Travelling<H> {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    Bytes::from_owner(Travelling(bytes, held))
}

/// Says of an answer that its bytes are counted already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted;

impl IntoResponseParts for Counted {
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

    fn free(room: &Room) -> usize {
        room.bytes.left(&tenant("nobody")).0
    }

    #[test]
    fn what_is_taken_comes_back_and_no_more_is_given_than_there_is() {
        let room = Room::of(4 * STEP_BYTES);
        let (first, second) = (room.share(), room.share());
        assert!(first.cover(STEP_BYTES), "what is small is not counted");
        assert_eq!(free(&room), 4 * STEP_BYTES);
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
        assert_eq!(free(&room), 4 * STEP_BYTES);
    }

    #[test]
    fn one_tenant_has_half_of_it() {
        let room = Room::of(8 * STEP_BYTES);
        let (greedy, modest) = (tenant("greedy"), tenant("modest"));
        let body = room.share();
        body.belong_to(&greedy);
        assert!(body.cover(3 * STEP_BYTES));
        let answer = room.hold(&greedy, 3 * STEP_BYTES).unwrap();
        assert!(room.hold(&greedy, 2 * STEP_BYTES).is_err());
        assert!(room.hold(&modest, 4 * STEP_BYTES).is_err(), "some is left for a third");
        assert!(room.hold(&modest, 3 * STEP_BYTES).is_ok());
        drop((body, answer));
        assert!(room.hold(&greedy, 5 * STEP_BYTES).is_ok());
    }

    #[test]
    fn an_answer_counts_for_as_long_as_its_bytes_are_there() {
        let room = Room::of(8 * STEP_BYTES);
        let held = room.hold(&tenant("a"), 5 * STEP_BYTES).unwrap();
        let bytes = held.around(Bytes::from(vec![b'x'; 3 * STEP_BYTES]));
        assert_eq!(free(&room), 6 * STEP_BYTES, "what is not needed is given back");
        let last = bytes.slice(3 * STEP_BYTES - 1..);
        drop(bytes);
        assert_eq!((free(&room), &last[..]), (6 * STEP_BYTES, &b"x"[..]));
        drop(last);
        assert_eq!(free(&room), 8 * STEP_BYTES);
    }

    #[tokio::test]
    async fn every_large_answer_is_counted_once() {
        let room = Room::of(8 * STEP_BYTES);
        let large = || vec![b'x'; 3 * STEP_BYTES].into_response();
        let first = room.share().count_answer(large(), true).await;
        assert_eq!(free(&room), 6 * STEP_BYTES);
        let counted = (Counted, large()).into_response();
        let second = room.share().count_answer(counted, true).await;
        assert_eq!(free(&room), 6 * STEP_BYTES);
        let third = room.share().count_answer(vec![b'x'; 8 * STEP_BYTES].into_response(), true).await;
        assert_eq!((second.status().as_u16(), third.status().as_u16()), (200, 503));
        // What a request has done is always told.
        let fourth = room.share().count_answer(vec![b'x'; 8 * STEP_BYTES].into_response(), false).await;
        assert_eq!(fourth.status().as_u16(), 200);
        let bytes = to_bytes(first.into_body(), usize::MAX).await.unwrap();
        assert_eq!((bytes.len(), free(&room)), (3 * STEP_BYTES, 6 * STEP_BYTES), "its bytes are still there");
        drop(bytes);
        assert_eq!(free(&room), 8 * STEP_BYTES);
    }
}
