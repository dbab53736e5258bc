//! A request that lasts, such as a stream: who it came from is asked again while it does.
//!
//! A session that was ended, a role that was taken away and a key that was revoked must not go on in a stream that
//! was open. So whoever answers for longer than a moment asks before each piece, and the caches of keys and
//! sessions answer that within seconds. If the store cannot say, the answer ends, and the reader comes back.

use axum::{
    extract::FromRequestParts,
    http::{Request, request::Parts},
};
use postway_domain::TenantId;

use super::{Admin, Reader};
use crate::{
    http::{error::ApiError, origin::RequestOrigin},
    state::SharedState,
};

/// What of a request tells who it came from.
pub(crate) struct LongRequest(Parts);

impl LongRequest {
    /// Of a request that is answered now. What else belongs to it, such as its place among the requests in
    /// progress, is not kept.
    pub(crate) fn of(parts: &Parts) -> Self {
        let (mut kept, ()) = Request::new(()).into_parts();
        kept.method = parts.method.clone();
        kept.uri = parts.uri.clone();
        kept.headers = parts.headers.clone();
        if let Some(origin) = RequestOrigin::from_parts(parts) {
            kept.extensions.insert(origin);
        }
        Self(kept)
    }

    /// Refuses who may not read this tenant's messages any more.
    pub(crate) async fn check_reader(&self, tenant: &TenantId, app: &SharedState) -> Result<(), ApiError> {
        let reader = Reader::from_request_parts(&mut self.0.clone(), app).await?;
        match reader.tenant == *tenant {
            true => Ok(()),
            false => Err(ApiError::unauthorized()),
        }
    }

    /// Refuses who is no admin of everything any more.
    pub(crate) async fn check_admin(&self, app: &SharedState) -> Result<(), ApiError> {
        Admin::from_request_parts(&mut self.0.clone(), app).await.map(drop)
    }
}
