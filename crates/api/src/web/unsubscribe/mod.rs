//! `/unsubscribe/{token}`: where a reader unsubscribes from a stream, and resubscribes.
//!
//! Readers of mail and their mail programs have no key: the link itself is the permission. `GET` shows a page
//! and changes nothing, because scanners follow every link of a mail. `POST` is the button of that page, and
//! what mail programs send by themselves (RFC 8058). Repeating it changes nothing.

mod pace;
mod page;
mod words;

pub(crate) use self::pace::ReaderRateLimit;

use std::time::Instant;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, request::Parts},
    response::Response,
};
use postway_domain::MailStream;
use postway_intake::UnsubscribeLink;
use postway_store::record::{ReaderDecision, SuppressionReason, SuppressionScope};

use self::page::{ReaderPage, ReaderState};
use crate::{
    http::{body, error::ApiError, origin::RequestOrigin, path::PathText},
    state::{AppState, SharedState},
};

/// The largest body of a form.
const FORM_BYTES_MAX: usize = 4 * 1024;
/// What mail programs post, in each of the two encodings that RFC 8058 allows.
const ONE_CLICK: [&str; 2] = ["List-Unsubscribe=One-Click", "name=\"List-Unsubscribe\""];

/// The request of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderRequest {
    /// Unsubscribe, as a mail program posts it.
    OneClick,
    /// Unsubscribe, by the button of the page.
    Leave,
    /// Resubscribe, by the button of the page.
    Return,
}

/// Show the unsubscribe page
///
/// For the reader of a mail, in the language of the browser. It changes nothing. It needs no key.
#[utoipa::path(
    get,
    path = "/unsubscribe/{token}",
    operation_id = "showUnsubscribe",
    tag = "streams",
    security(()),
    params(("token" = String, Path, description = "The token from the link")),
    responses(
        (status = 200, description = "A page with a button", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such link", body = String, content_type = "text/html"),
    )
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    PathText(token): PathText<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    admit(&app, &parts)?;
    let Some(link) = app.door.read_unsubscribe(&token) else { return Ok(unknown(&parts.headers)) };
    let scope = SuppressionScope {
        tenant: Some(link.tenant.clone()),
        pattern: link.address.clone(),
        stream: Some(link.stream.clone()),
    };
    let found = app.store.scoped_suppression(&scope).await?;
    let has_left = found.is_some_and(|one| one.reason == SuppressionReason::Unsubscribe);
    let state = if has_left { ReaderState::Left } else { ReaderState::Asked };
    render_page(&app, &link, state, &parts.headers).await
}

/// Unsubscribe or resubscribe
///
/// The form says what to do: what a mail program posts by itself (RFC 8058: `List-Unsubscribe=One-Click`), or
/// what the buttons of the page post, `unsubscribe=1` or `undo=1`. Repeating it changes nothing. It needs no
/// key.
#[utoipa::path(
    post,
    path = "/unsubscribe/{token}",
    operation_id = "unsubscribe",
    tag = "streams",
    security(()),
    params(("token" = String, Path, description = "The token from the link")),
    responses(
        (status = 200, description = "The mail is resolved", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such link", body = String, content_type = "text/html"),
    )
)]
pub(crate) async fn decide(
    State(app): State<SharedState>,
    PathText(token): PathText<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    admit(&app, &parts)?;
    let Some(link) = app.door.read_unsubscribe(&token) else { return Ok(unknown(&parts.headers)) };
    let form = body::read(&parts, body, FORM_BYTES_MAX).await?;
    let wish = wish(&String::from_utf8_lossy(&form)).ok_or_else(|| {
        ApiError::malformed("say what to do: List-Unsubscribe=One-Click, unsubscribe=1 or undo=1, as a form")
    })?;
    let leaves = wish != ReaderRequest::Return;
    let decision = ReaderDecision {
        tenant: link.tenant.clone(),
        message: link.uid,
        stream: link.stream.clone(),
        address: link.address.clone(),
        leaves,
        via: if wish == ReaderRequest::OneClick { "one_click" } else { "page" },
        at: app.clock.now(),
    };
    // Nothing is written for a deleted tenant: it has no subscribers to notify, and no mail to stop.
    if app.knows_tenant(&link.tenant).await? {
        app.store.decide(decision).await?;
    }
    let state = if leaves { ReaderState::Left } else { ReaderState::Returned };
    render_page(&app, &link, state, &parts.headers).await
}

/// 429 for an address that asks too often. Shared addresses are not counted.
fn admit(app: &AppState, parts: &Parts) -> Result<(), ApiError> {
    let client = RequestOrigin::from_parts(parts).and_then(|origin| origin.client());
    match client.is_none_or(|client| app.reader_rate_limit.admits(client, Instant::now())) {
        true => Ok(()),
        false => Err(ApiError::too_many("this address asks too often; try again in a second")),
    }
}

fn wish(form: &str) -> Option<ReaderRequest> {
    let has = |name: &str| form.split('&').any(|pair| pair.trim() == name);
    if has("undo=1") {
        return Some(ReaderRequest::Return);
    }
    if has("unsubscribe=1") {
        return Some(ReaderRequest::Leave);
    }
    let is_one_click = has(ONE_CLICK[0]) || (form.contains(ONE_CLICK[1]) && form.contains("One-Click"));
    is_one_click.then_some(ReaderRequest::OneClick)
}

async fn render_page(
    app: &AppState,
    link: &UnsubscribeLink,
    state: ReaderState,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // The stream may be deleted, but its readers' choices stay.
    let stream = app.store.stream(&link.tenant, &link.stream).await?;
    let name = stream.as_ref().map_or(link.stream.as_str(), MailStream::shown_name);
    let page = ReaderPage { state, stream: name, reader: &link.address };
    Ok(page.respond(StatusCode::OK, words::for_request(headers)))
}

/// The page for a link that is forged or truncated.
fn unknown(headers: &HeaderMap) -> Response {
    let page = ReaderPage { state: ReaderState::Unknown, stream: "", reader: "" };
    page.respond(StatusCode::NOT_FOUND, words::for_request(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_to_do_in_either_encoding() {
        let multipart =
            "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n";
        for (form, expected) in [
            ("List-Unsubscribe=One-Click", Some(ReaderRequest::OneClick)),
            (multipart, Some(ReaderRequest::OneClick)),
            ("unsubscribe=1", Some(ReaderRequest::Leave)),
            ("undo=1", Some(ReaderRequest::Return)),
            ("", None),
            ("List-Unsubscribe=Two-Clicks", None),
            ("x=List-Unsubscribe=One-Click", None),
        ] {
            assert_eq!(wish(form), expected, "{form}");
        }
    }
}
