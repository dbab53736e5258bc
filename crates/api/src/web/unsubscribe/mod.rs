//! `/unsubscribe/{token}`: where a reader leaves a stream, and comes back.
//!
//! For readers of mail and their mail programs, who have no key: the link itself is what they may do. `GET` shows a page and
//! changes nothing, because scanners follow every link of a mail. `POST` is the button of that page, and what mail programs send by
//! themselves (RFC 8058). Asking twice is asking once.

mod pace;
mod page;
mod words;

pub(crate) use self::pace::ReaderPace;

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
    http::{body, error::ApiError, origin::RequestOrigin, path::InPath},
    state::{App, Shared},
};

/// The largest body of a form.
const FORM_BYTES_MAX: usize = 4 * 1024;
/// What mail programs post, in each of the two forms that RFC 8058 lets them choose from.
const ONE_CLICK: [&str; 2] = ["List-Unsubscribe=One-Click", "name=\"List-Unsubscribe\""];

/// What a form asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormWish {
    /// To leave, as a mail program asks.
    OneClick,
    /// To leave, by the button of the page.
    Leave,
    /// To come back, by the button of the page.
    Return,
}

/// Show the page of an unsubscribe link
///
/// For the reader of a mail, in the language of the browser. It changes nothing. It needs no key.
#[utoipa::path(
    get,
    path = "/unsubscribe/{token}",
    operation_id = "showUnsubscribe",
    tag = "streams",
    security(()),
    params(("token" = String, Path, description = "From the link")),
    responses(
        (status = 200, description = "A page with a button", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such link", body = String, content_type = "text/html"),
    )
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    InPath(token): InPath<String>,
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
    shown(&app, &link, state, &parts.headers).await
}

/// Leave a stream, or come back
///
/// A form says what to do: what a mail program posts by itself (RFC 8058: `List-Unsubscribe=One-Click`), or what the buttons of the
/// page post, `unsubscribe=1` or `undo=1`. Asking twice is asking once. It needs no key.
#[utoipa::path(
    post,
    path = "/unsubscribe/{token}",
    operation_id = "unsubscribe",
    tag = "streams",
    security(()),
    params(("token" = String, Path, description = "From the link")),
    responses(
        (status = 200, description = "It is done", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such link", body = String, content_type = "text/html"),
    )
)]
pub(crate) async fn decide(
    State(app): State<Shared>,
    InPath(token): InPath<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    admit(&app, &parts)?;
    let Some(link) = app.door.read_unsubscribe(&token) else { return Ok(unknown(&parts.headers)) };
    let form = body::read(&parts, body, FORM_BYTES_MAX).await?;
    let wish = wish(&String::from_utf8_lossy(&form)).ok_or_else(|| {
        ApiError::malformed("say what to do: List-Unsubscribe=One-Click, unsubscribe=1 or undo=1, as a form")
    })?;
    let leaves = wish != FormWish::Return;
    let decision = ReaderDecision {
        tenant: link.tenant.clone(),
        message: link.uid,
        stream: link.stream.clone(),
        address: link.address.clone(),
        leaves,
        via: if wish == FormWish::OneClick { "one_click" } else { "page" },
        at: app.clock.now(),
    };
    // Of a tenant that is deleted nothing is written: there is nobody whom to tell, and no mail to stop.
    if app.knows_tenant(&link.tenant).await? {
        app.store.decide(decision).await?;
    }
    let state = if leaves { ReaderState::Left } else { ReaderState::Returned };
    shown(&app, &link, state, &parts.headers).await
}

/// 429 for an address that asks too often. What many share is not counted.
fn admit(app: &App, parts: &Parts) -> Result<(), ApiError> {
    let client = RequestOrigin::of(parts).and_then(|origin| origin.client());
    match client.is_none_or(|client| app.reader_pace.admits(client, Instant::now())) {
        true => Ok(()),
        false => Err(ApiError::too_many("this address asks too often; try again in a second")),
    }
}

fn wish(form: &str) -> Option<FormWish> {
    let has = |name: &str| form.split('&').any(|pair| pair.trim() == name);
    if has("undo=1") {
        return Some(FormWish::Return);
    }
    if has("unsubscribe=1") {
        return Some(FormWish::Leave);
    }
    let is_one_click = has(ONE_CLICK[0]) || (form.contains(ONE_CLICK[1]) && form.contains("One-Click"));
    is_one_click.then_some(FormWish::OneClick)
}

async fn shown(
    app: &App,
    link: &UnsubscribeLink,
    state: ReaderState,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // A stream may be gone, and its readers' wishes stay.
    let stream = app.store.stream(&link.tenant, &link.stream).await?;
    let name = stream.as_ref().map_or(link.stream.as_str(), MailStream::shown_name);
    let page = ReaderPage { state, stream: name, reader: &link.address };
    Ok(page.respond(StatusCode::OK, words::of(headers)))
}

/// What whoever has no link of ours is shown, whether it was forged or cut short.
fn unknown(headers: &HeaderMap) -> Response {
    let page = ReaderPage { state: ReaderState::Unknown, stream: "", reader: "" };
    page.respond(StatusCode::NOT_FOUND, words::of(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_to_do_in_either_encoding() {
        let multipart =
            "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n";
        for (form, expected) in [
            ("List-Unsubscribe=One-Click", Some(FormWish::OneClick)),
            (multipart, Some(FormWish::OneClick)),
            ("unsubscribe=1", Some(FormWish::Leave)),
            ("undo=1", Some(FormWish::Return)),
            ("", None),
            ("List-Unsubscribe=Two-Clicks", None),
            ("x=List-Unsubscribe=One-Click", None),
        ] {
            assert_eq!(wish(form), expected, "{form}");
        }
    }
}
