//! Path parameters as text.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::http::error::ApiError;

/// The path parameters as the caller sent them. Parameters that cannot be decoded are refused with the usual
/// error.
pub(crate) struct PathText<T>(pub(crate) T);

impl<S, T> FromRequestParts<S> for PathText<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(_) => Err(ApiError::malformed("the path cannot be read: use percent-encoded UTF-8")),
        }
    }
}
