//! What a path names, for calls that read it as text.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::http::error::ApiError;

/// The named parts of a path, as given. One that cannot be read is refused in the shape of all errors.
pub(crate) struct InPath<T>(pub(crate) T);

impl<S, T> FromRequestParts<S> for InPath<T>
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
