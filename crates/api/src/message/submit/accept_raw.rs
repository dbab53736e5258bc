//! `POST /v1/messages/raw`: a ready-made RFC 5322 mail through the door.

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
        query::{Parameters, flag},
        request_id::RequestId,
    },
    message::{
        ReceiptView,
        submit::accept::{AcceptTimer, context},
    },
    state::{App, Shared},
};

/// Send a ready-made mail
///
/// The body is an RFC 5322 mail, sent as it is but for the headers that every mail of Postway carries. Sender and
/// recipients are those in its headers, unless the query names them.
#[utoipa::path(
    post,
    path = "/v1/messages/raw",
    operation_id = "sendRawMessage",
    tag = "messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Names this request, for repeats"),
        ("X-Postway-On-Doubt" = Option<String>, Header, description = "`resend` or `hold` for mail that does not say it itself"),
        ("id" = Option<String>, Query, description = "Your own id of it, unique in your tenant"),
        ("account" = Option<String>, Query, description = "The account to send by"),
        ("from" = Option<String>, Query, description = "The envelope sender, instead of the mail's"),
        ("to" = Option<Vec<String>>, Query, description = "An envelope recipient, instead of the mail's; may be repeated"),
        ("batch" = Option<String>, Query, description = "The batch it belongs to"),
        ("priority" = Option<String>, Query, description = "0 to 3, or immediate, high, normal, low"),
        ("send_at" = Option<String>, Query, description = "Not before this time"),
        ("expires_at" = Option<String>, Query, description = "Not after this time"),
        ("on_doubt" = Option<String>, Query, description = "`resend` or `hold` when the relay's last answer is lost"),
        ("tag" = Option<Vec<String>>, Query, description = "A label; may be repeated"),
        ("sensitive" = Option<bool>, Query, description = "Hide it from every reader; removed once it is sent"),
        ("dry_run" = Option<bool>, Query, description = "Only check; store nothing"),
    ),
    request_body(content = String, content_type = "message/rfc822", description = "The mail"),
    responses(
        (status = 202, description = "Durable", body = ReceiptView),
        (status = 200, description = "A dry run passed; nothing is stored", body = ReceiptView),
    )
)]
pub(crate) async fn accept(
    State(app): State<Shared>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    take(&app, caller, &id, request).await
}

/// Takes a mail, by whichever call it came.
pub(crate) async fn take(
    app: &App,
    caller: Sender,
    id: &RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = Parameters::of(&parts.uri)?;
    let dry_run = query.parse("dry_run", flag).unwrap_or(false);
    let options = RawOptions {
        id: query.take("id"),
        account: query.take("account"),
        batch: query.take("batch"),
        priority: query.take("priority"),
        send_at: query.take("send_at"),
        expires_at: query.take("expires_at"),
        on_doubt: query.take("on_doubt"),
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
    // Clients that post a file without naming its type say octet-stream or text; JSON here is surely a mistake.
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
