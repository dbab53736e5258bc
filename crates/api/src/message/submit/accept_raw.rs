//! `POST /v1/messages/raw`: accepts a ready-made RFC 5322 mail.

use axum::{
    extract::{Request, State},
    http::header,
    response::Response,
};
use postway_intake::RawOptions;

use crate::{
    auth::Sender,
    http::{
        body,
        error::ApiError,
        query::{QueryParameters, flag},
        request_id::RequestId,
    },
    message::{
        AcceptedView,
        submit::accept::{AcceptTimer, context},
    },
    state::{AppState, SharedState},
};

/// Send a ready-made mail
///
/// The body is an RFC 5322 mail. It is sent unchanged except for the headers that every mail of Postway
/// carries. Sender and recipients are those in its headers, unless the query names others.
#[utoipa::path(
    post,
    path = "/v1/messages/raw",
    operation_id = "sendRawMessage",
    tag = "messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies this request, so that a repeat is recognised"),
        ("X-Postway-On-Doubt" = Option<String>, Header, description = "`resend` or `hold` for messages that do not set it themselves"),
        ("id" = Option<String>, Query, description = "Your own id of the message, unique in your tenant"),
        ("account" = Option<String>, Query, description = "The account that sends it"),
        ("from" = Option<String>, Query, description = "The envelope sender, instead of the mail's"),
        ("to" = Option<Vec<String>>, Query, description = "An envelope recipient, instead of the mail's; may be repeated"),
        ("batch" = Option<String>, Query, description = "The batch it belongs to"),
        ("priority" = Option<String>, Query, description = "0 to 3, or immediate, high, normal, low"),
        ("send_at" = Option<String>, Query, description = "Not before this time"),
        ("expires_at" = Option<String>, Query, description = "Not after this time"),
        ("dsn" = Option<String>, Query, description = "The reports to ask relays for, as parameters of SMTP (RFC 3461): `NOTIFY=SUCCESS,FAILURE RET=HDRS`"),
        ("on_doubt" = Option<String>, Query, description = "`resend` or `hold` if the relay's final answer is lost"),
        ("tag" = Option<Vec<String>>, Query, description = "A label; may be repeated"),
        ("sensitive" = Option<bool>, Query, description = "Hide the content from every reader, and remove it once the mail is sent"),
        ("dry_run" = Option<bool>, Query, description = "Only check; store nothing"),
    ),
    request_body(content = String, content_type = "message/rfc822", description = "The mail"),
    responses(
        (status = 202, description = "Durable", body = AcceptedView),
        (status = 200, description = "A dry run passed; nothing is stored", body = AcceptedView),
    )
)]
pub(crate) async fn accept(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    take(&app, caller, &id, request).await
}

/// Accepts a ready-made mail, from any call.
pub(crate) async fn take(
    app: &AppState,
    caller: Sender,
    id: &RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let dry_run = query.parse("dry_run", flag).unwrap_or(false);
    let options = RawOptions {
        id: query.take("id"),
        account: query.take("account"),
        batch: query.take("batch"),
        priority: query.take("priority"),
        send_at: query.take("send_at"),
        expires_at: query.take("expires_at"),
        on_doubt: query.take("on_doubt"),
        dsn_request: query.take("dsn"),
        from: query.take("from"),
        to: query.take_all("to"),
        tags: query.take_all("tag"),
        sensitive: query.parse("sensitive", flag).unwrap_or(false),
        ..RawOptions::default()
    };
    query.finish()?;
    let context = context(caller, id, &parts.headers, dry_run)?;
    let kind =
        parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| body::essence(value.as_bytes()));
    // Clients that post a file without naming its type say octet-stream or text; JSON here is surely a
    // mistake.
    if kind.eq_ignore_ascii_case(b"application/json") {
        return Err(ApiError::media_type(
            "this call takes a mail as message/rfc822; JSON goes to /v1/messages",
        ));
    }
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_raw(&context, options, bytes).await?;
    timed.stop();
    Ok(crate::message::receipt(receipt, dry_run))
}
