//! The middleware around every request: its id, its error body, its panics, its count, its log line, and the
//! checks that do not depend on the handler.
//!
//! The log line has method, route, status, duration and request id; never a path, a query or a header,
//! because these may contain addresses and keys.

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use postway_domain::Clock;

use crate::{
    auth,
    http::{
        error::ApiError,
        error_style::ErrorStyle,
        fallback::catch_panics,
        query::QueryParameters,
        request_id::{self, RequestId},
        request_span::RequestSpan,
    },
    openapi,
    state::SharedState,
};

/// The outermost middleware: assigns the request id, catches panics, writes the error body, counts and logs.
pub(crate) async fn observe(
    State(clock): State<Arc<dyn Clock>>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let span = RequestSpan::begin(request.headers(), &method, route.as_ref());
    let id = RequestId::from_headers(request.headers(), &*clock)
        .with_origin(request.extensions().get())
        .with_trace(span.context());
    request.extensions_mut().insert(id.clone());
    let mut response = catch_panics(next.run(request)).await;
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        write_error(&mut response, error, &id, route);
    }
    let headers = response.headers_mut();
    headers.insert(request_id::HEADER, id.header());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    record(&method, route, response.status(), started, &id);
    span.end(response.status(), &id);
    response
}

/// Checks that run before every handler. `/v1/tenants` and everything below it needs an admin, whether the
/// path exists or not, so that others cannot probe which tenants exist. A call without query
/// parameters refuses any, so that a misspelt one is not silently ignored. What the body takes of the body
/// budget is held until the answer exists, and what the answer takes until it is written. Before all that the
/// limits of the client's address are looked at; those of its key follow when it is known.
pub(crate) async fn authorize(State(app): State<SharedState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let ticket = match app.door_limits.begin(&mut parts) {
        Ok(ticket) => ticket,
        Err(refused) => return *refused,
    };
    match ticket {
        None => authorize_counted(app, parts, body, next).await,
        Some(ticket) => {
            let body = ticket.count_body(body);
            ticket.report(authorize_counted(app, parts, body, next).await)
        }
    }
}

async fn authorize_counted(app: SharedState, mut parts: Parts, body: Body, next: Next) -> Response {
    let share = app.body_budget.share();
    let changes_nothing = parts.method.is_safe();
    parts.extensions.insert(share.clone());
    match check_request(&mut parts, &app).await {
        Ok(()) => {
            let response = next.run(Request::from_parts(parts, body)).await;
            share.count_answer(response, changes_nothing).await
        }
        Err(error) => error.into_response(),
    }
}

async fn check_request(parts: &mut Parts, app: &SharedState) -> Result<(), ApiError> {
    let path = parts.uri.path();
    if path.strip_prefix("/v1/tenants").is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        auth::check_tenants_path(parts, app).await?;
    }
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let route = parts.extensions.get::<MatchedPath>();
    let Some(call) = route.and_then(|route| openapi::bare(&parts.method, route.as_str())) else {
        return Ok(());
    };
    let unknown = QueryParameters::from_uri(&parts.uri).and_then(QueryParameters::finish);
    // A caller without a key learns that first.
    if unknown.is_err() && call.needs_key {
        auth::authenticate(parts, app).await?;
    }
    unknown
}

/// Writes the error body, in the format of the compatibility API that the request came through.
fn write_error(response: &mut Response, error: ApiError, id: &RequestId, route: &str) {
    match (response.status(), error.cause()) {
        (StatusCode::SERVICE_UNAVAILABLE, Some(cause)) => {
            tracing::warn!(
                request_id = id.as_str(),
                trace_id = id.trace().map(|context| tracing::field::display(context.trace)),
                route,
                cause,
                "request refused, the store is not available"
            );
        }
        (_, Some(cause)) => {
            let trace_id = id.trace().map(|context| tracing::field::display(context.trace));
            tracing::error!(request_id = id.as_str(), trace_id, route, cause, "request failed");
        }
        (_, None) => {}
    }
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    // An inner router has set the length of the body that was still empty.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    let body = match response.extensions_mut().remove::<&'static ErrorStyle>() {
        None => error.into_json(id.as_str()),
        Some(style) => {
            let (status, body) = (style.refuse)(&error, id.as_str());
            *response.status_mut() = status;
            body.to_string().into_bytes()
        }
    };
    *response.body_mut() = Body::from(body);
}

fn record(method: &Method, route: &str, status: StatusCode, started: Instant, id: &RequestId) {
    let labels = [("route", route.to_owned()), ("status", status.as_str().to_owned())];
    metrics::counter!("postway_http_requests_total", &labels).increment(1);
    tracing::debug!(
        method = method.as_str(),
        route,
        status = status.as_u16(),
        duration_ms = started.elapsed().as_secs_f64() * 1000.0,
        request_id = id.as_str(),
        trace_id = id.trace().map(|context| tracing::field::display(context.trace)),
        "request"
    );
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::to_bytes, middleware, routing::get};
    use postway_domain::Time;
    use postway_store::StoreError;
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;
    use crate::http::fallback::{no_such_method, no_such_path};

    struct MiddlewareTestClock;

    impl Clock for MiddlewareTestClock {
        fn now(&self) -> Time {
            Time::from_millis(1_700_000_000_000)
        }
    }

    async fn panics() {
        panic!("index out of bounds in /srv/secret");
    }

    async fn store_is_away() -> ApiError {
        StoreError::Unavailable("unable to open /srv/secret/postway.db".to_owned()).into()
    }

    async fn store_is_odd() -> ApiError {
        StoreError::Unexpected("no such column in /srv/secret".to_owned()).into()
    }

    async fn answer(path: &str, request_id: Option<&str>) -> (StatusCode, Response, Value) {
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/away", get(store_is_away))
            .route("/odd", get(store_is_odd))
            .fallback(no_such_path)
            .method_not_allowed_fallback(no_such_method)
            .layer(middleware::from_fn_with_state(Arc::new(MiddlewareTestClock) as Arc<dyn Clock>, observe));
        let mut request = Request::get(path);
        if let Some(id) = request_id {
            request = request.header(request_id::HEADER, id);
        }
        let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        let json = serde_json::from_slice(&body).unwrap();
        (parts.status, Response::from_parts(parts, Body::empty()), json)
    }

    #[tokio::test]
    async fn our_own_faults_are_one_shape_and_tell_nothing_of_the_inside() {
        for (path, status, code) in
            [("/panics", 500, "internal"), ("/odd", 500, "internal"), ("/away", 503, "unavailable")]
        {
            let (got, response, json) = answer(path, Some("req-1")).await;
            assert_eq!(got.as_u16(), status, "{path}");
            assert_eq!(json["error"]["code"], code);
            assert_eq!(json["error"]["request_id"], "req-1");
            assert_eq!(response.headers()["x-request-id"], "req-1");
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
            assert!(!json.to_string().contains("/srv"), "{json}");
        }
        assert_eq!(answer("/away", None).await.1.headers()["retry-after"], "1");
    }

    #[tokio::test]
    async fn an_unfit_request_id_is_replaced_by_one_of_ours() {
        for unfit in ["", &"x".repeat(129)] {
            let (_, response, json) = answer("/nowhere", Some(unfit)).await;
            let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
            assert_eq!(uuid::Uuid::try_parse(&id).unwrap().get_version_num(), 7);
            assert_eq!(json["error"]["request_id"], id);
        }
        let longest = "x".repeat(128);
        assert_eq!(answer("/nowhere", Some(&longest)).await.1.headers()["x-request-id"], longest);
    }
}
