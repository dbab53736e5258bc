//! What makes a router a compatibility API: its own header for keys, and its own error format.
//!
//! A handler returns an [`ApiError`] like any other. On the way out the compatibility API attaches its
//! [`ErrorStyle`] to the answer, and the middleware, which knows the request's id, lets it write the body. So
//! every refusal, of an extractor, a handler or a panic, has the API's own format and is logged like any
//! other.

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Uri, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{MethodRouter, any},
};
use tower::ServiceExt;

use crate::{
    http::{error::ApiError, error_style::ErrorStyle, fallback},
    state::SharedState,
};

/// Routes of a compatibility API for requests that the exact routes missed: empty path segments are ignored,
/// as the original systems did, and an unknown path is refused in the API's own format.
#[derive(Clone)]
pub(super) struct LenientRouter<S> {
    strict: Router<S>,
}

impl<S: Clone + Send + Sync + 'static> LenientRouter<S> {
    /// A router with these routes.
    pub(super) fn new(bare: Router<S>, style: &'static ErrorStyle) -> Self {
        let strict = bare
            .fallback(no_such_call)
            .method_not_allowed_fallback(fallback::no_such_method)
            .layer(from_fn_with_state(style, apply_style));
        Self { strict }
    }

    /// Answers a request for a path of the API, without the prefix.
    pub(super) async fn answer(&self, state: S, path: &str, mut request: Request) -> Response {
        match without_empty_segments(path, request.uri().query()) {
            Some(uri) => *request.uri_mut() = uri,
            None => return no_such_call().await.into_response(),
        }
        let strict: Router = self.strict.clone().with_state(state);
        match strict.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// The routes under a prefix: every path below it belongs to the API.
pub(super) fn under_prefix<S: Clone + Send + Sync + 'static>(
    bare: Router<S>,
    style: &'static ErrorStyle,
) -> Router<S> {
    let loose = LenientRouter::new(bare.clone(), style);
    let look_again = |State(state): State<S>, request: Request| async move {
        let path = request.uri().path().to_owned();
        loose.answer(state, &path, request).await
    };
    bare.fallback(look_again)
        .method_not_allowed_fallback(fallback::no_such_method)
        .layer(from_fn_with_state(style, apply_style))
}

/// The handler for the bare prefix.
pub(super) fn bare_prefix(style: &'static ErrorStyle) -> MethodRouter<SharedState> {
    any(no_such_call).layer(from_fn_with_state(style, apply_style))
}

/// 404 for a call that the API does not have.
async fn no_such_call() -> ApiError {
    ApiError::not_found(
        "this compatibility API has no such call; the guide's pages on moving list the calls of each",
    )
}

/// The URI without empty path segments; `None` if the path is empty.
fn without_empty_segments(path: &str, query: Option<&str>) -> Option<Uri> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let path: String = parts.flat_map(|part| ["/", part]).collect();
    let path = if path.is_empty() { "/" } else { &path };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{path}{query}").parse().ok()
}

/// The routes among our own: only the paths that the API has belong to it. [`LenientRouter`] answers requests
/// that miss them.
pub(super) fn at_root(bare: Router<SharedState>, style: &'static ErrorStyle) -> Router<SharedState> {
    bare.method_not_allowed_fallback(fallback::no_such_method)
        .route_layer(from_fn_with_state(style, apply_style))
}

async fn apply_style(State(style): State<&'static ErrorStyle>, mut request: Request, next: Next) -> Response {
    show_key(&mut request, style.key_header);
    let mut response = fallback::catch_panics(next.run(request)).await;
    response.extensions_mut().insert(style);
    response
}

/// Copies a key from the API's own header to where authentication looks for it. That header takes precedence
/// over any other; an empty one is ignored.
fn show_key(request: &mut Request, name: &'static str) {
    let Some(key) = request.headers_mut().remove(name).filter(|key| !key.as_bytes().trim_ascii().is_empty())
    else {
        return;
    };
    let bearer = [b"Bearer ", key.as_bytes()].concat();
    if let Ok(value) = HeaderValue::from_bytes(&bearer) {
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{
        body::{Body, to_bytes},
        http::StatusCode,
        routing::get,
    };
    use postway_domain::{Clock, Time};
    use postway_store::StoreError;
    use serde_json::{Value, json};

    use super::*;

    struct StyleTestClock;

    impl Clock for StyleTestClock {
        fn now(&self) -> Time {
            Time::from_millis(1_700_000_000_000)
        }
    }

    const TEAPOT: ErrorStyle = ErrorStyle {
        key_header: "x-teapot-key",
        refuse: |error, request_id| {
            (StatusCode::IM_A_TEAPOT, json!({"was": error.status().as_u16(), "of": request_id}))
        },
    };

    async fn panics() {
        panic!("index out of bounds in /srv/secret");
    }

    async fn store_is_away() -> ApiError {
        StoreError::Unavailable("unable to open /srv/secret".to_owned()).into()
    }

    async fn is_busy() -> ApiError {
        ApiError::too_many("slow down")
    }

    async fn shows_key(request: Request) -> String {
        let shown = request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or("?"));
        shown.unwrap_or("none").to_owned()
    }

    async fn answer(path: &str) -> (StatusCode, String) {
        let door = Router::new()
            .route("/panics", get(panics))
            .route("/away", get(store_is_away))
            .route("/busy", get(is_busy))
            .route("/key", get(shows_key));
        let router =
            Router::new().nest("/door", under_prefix(door, &TEAPOT)).fallback(fallback::no_such_path).layer(
                from_fn_with_state(Arc::new(StyleTestClock) as Arc<dyn Clock>, crate::middleware::observe),
            );
        let request =
            Request::get(path).header("x-request-id", "r-1").header("x-teapot-key", "k").body(Body::empty());
        let response = router.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.headers()["x-request-id"], "r-1");
        let (status, counted) = (response.status(), response.headers().get(header::CONTENT_LENGTH).cloned());
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        assert!(counted.is_none_or(|counted| counted == body.len().to_string()), "{path} has another length");
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn whatever_goes_wrong_behind_a_door_leaves_in_its_dress() {
        for (path, was) in [("panics", 500), ("away", 503), ("busy", 429), ("nowhere", 404)] {
            let (status, body) = answer(&format!("/door/{path}")).await;
            assert_eq!(status, StatusCode::IM_A_TEAPOT, "{path}");
            let expected = json!({"was": was, "of": "r-1"});
            assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected, "{path}");
        }
        assert_eq!(answer("/nowhere").await.0, StatusCode::NOT_FOUND, "not behind the door");
    }

    #[tokio::test]
    async fn a_key_in_the_doors_own_header_is_shown_as_any_other() {
        assert_eq!(answer("/door/key").await, (StatusCode::OK, "Bearer k".to_owned()));
    }
}
