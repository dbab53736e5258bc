//! What the calls of a resource share: reading its name from the path, and changing it while others may
//! change it too.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};

use super::error::ApiError;

/// How often a change is retried when another one came first.
const TRIES_MAX: u32 = 5;

/// The only parameter of the path, as text; `what` names it in the error if it cannot be decoded.
pub(crate) async fn path_text<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    what: &str,
) -> Result<String, ApiError> {
    match Path::<String>::from_request_parts(parts, state).await {
        Ok(Path(given)) => Ok(given),
        Err(_) => Err(ApiError::malformed(format!(
            "the {what} in the path cannot be read: use percent-encoded UTF-8"
        ))),
    }
}

/// Makes a type the extractor of the only parameter of a path: `$parse` turns the text into the type, or into
/// the error to answer with.
macro_rules! path_parameter {
    ($type:ty, $what:literal, $parse:expr) => {
        impl<S: Send + Sync> axum::extract::FromRequestParts<S> for $type {
            type Rejection = $crate::http::error::ApiError;

            async fn from_request_parts(
                parts: &mut axum::http::request::Parts,
                state: &S,
            ) -> Result<Self, Self::Rejection> {
                let parse: fn(&str) -> Result<Self, Self::Rejection> = $parse;
                parse(&$crate::http::resource::path_text(parts, state, $what).await?)
            }
        }
    };
}
pub(crate) use path_parameter;

/// Refuses a change that expects another version of the resource than the current one.
pub(crate) fn check_version(resource: &str, expected: Option<i64>, current: i64) -> Result<(), ApiError> {
    match expected {
        Some(expected) if expected != current => Err(ApiError::conflict(format!(
            "the {resource} is at version {current} by now; read it and try again"
        ))),
        _ => Ok(()),
    }
}

/// Makes a change that reads the resource and writes it only if its version is still the same. `attempt`
/// returns `None` if another change came first, and is then repeated from a fresh read.
pub(crate) async fn change_versioned<T, F>(resource: &str, attempt: impl Fn() -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<Option<T>, ApiError>>,
{
    for _ in 0..TRIES_MAX {
        if let Some(done) = attempt().await? {
            return Ok(done);
        }
    }
    Err(ApiError::conflict(format!("the {resource} is being changed by others; read it and try again")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn a_change_is_repeated_until_it_is_the_first_and_not_for_ever() {
        let tries = AtomicU32::new(0);
        let third = change_versioned("rule", || async {
            let number = tries.fetch_add(1, Ordering::Relaxed) + 1;
            Ok((number == 3).then_some(number))
        });
        assert_eq!(third.await.unwrap(), 3);
        let never = change_versioned("rule", || async { Ok(None::<()>) }).await.unwrap_err();
        assert_eq!(never.status(), StatusCode::CONFLICT);
    }

    #[test]
    fn a_change_of_another_version_is_refused() {
        assert!(check_version("rule", None, 7).is_ok());
        assert!(check_version("rule", Some(7), 7).is_ok());
        let refused = check_version("rule", Some(6), 7).unwrap_err();
        assert_eq!(refused.message(), "the rule is at version 7 by now; read it and try again");
    }
}
