//! `GET /files/{token}`: a file that a mail links to because it was too large to attach, or a file of a stored
//! mail that an API answer or an event links to.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::attachment_link::{AttachmentLink, LinkedMail};
use postway_intake::FileLinkTarget;

use crate::{
    http::{body_budget::AlreadyCounted, error::ApiError, path::PathText},
    inbound::mail::bytes_of,
    message::content::{mail_view, parts, raw},
    state::{AppState, SharedState},
};

/// Download a linked file
///
/// The link is in the mail and works for anyone who has it, until the time that the mail states. It needs no
/// key.
#[utoipa::path(
    get,
    path = "/files/{token}",
    operation_id = "getFile",
    tag = "messages",
    security(()),
    params(("token" = String, Path, description = "The token from the link")),
    responses(
        (status = 200, description = "The file", body = String, content_type = "application/octet-stream"),
        (status = 404, description = "There is no such link", body = crate::http::error::ErrorAnswer),
        (status = 410, description = "The link has expired", body = crate::http::error::ErrorAnswer),
    )
)]
pub(crate) async fn get(
    State(app): State<SharedState>,
    PathText(token): PathText<String>,
) -> Result<Response, ApiError> {
    if let Some(link) = AttachmentLink::read(&token, &app.secret_key) {
        return attached(&app, &link).await;
    }
    let link = match app.door.follow(&token).await? {
        FileLinkTarget::File(link) => link,
        FileLinkTarget::Ended => {
            return Err(ApiError::gone("this link has ended: ask the sender of the mail for the file"));
        }
        FileLinkTarget::Unknown => {
            return Err(ApiError::not_found("there is no such link: check that it is complete"));
        }
    };
    let stream = app.door.read_file(&link).await?;
    let headers: [(HeaderName, String); 6] = [
        (header::CONTENT_TYPE, link.file.content_type.clone()),
        (header::CONTENT_LENGTH, link.file.blob.size.to_string()),
        (header::CONTENT_DISPOSITION, disposition(&link.file.filename)),
        // A stranger's file under our name: a browser must save it, and never run it.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
    ];
    Ok((StatusCode::OK, headers, Body::from_stream(stream)).into_response())
}

/// A file of a mail that is still stored.
async fn attached(app: &AppState, link: &AttachmentLink) -> Result<Response, ApiError> {
    if link.until <= app.clock.now() {
        return Err(ApiError::gone("this link has ended: ask for the email's attachments again"));
    }
    let uid = link.uid.to_string();
    let bytes = match link.mail {
        LinkedMail::Message => parts::bytes(app, &link.tenant, &uid).await?,
        LinkedMail::Inbound => bytes_of(app, &link.tenant, link.uid).await?,
    };
    if link.place == AttachmentLink::WHOLE {
        let headers = raw::headers("application/octet-stream", &format!("{uid}.eml"));
        return Ok((AlreadyCounted, headers, bytes).into_response());
    }
    mail_view::attachment(app, &link.tenant, bytes, &link.place.to_string()).await
}

/// A Content-Disposition that no file name can break out of (RFC 6266, 8187).
fn disposition(filename: &str) -> String {
    let mut encoded = String::from("attachment; filename*=UTF-8''");
    for byte in filename.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_breaks_out_of_its_header() {
        let name = disposition("a\"; x=y\r\nSet-Cookie: é/../b.pdf");
        assert_eq!(
            name,
            "attachment; filename*=UTF-8''a%22%3B%20x%3Dy%0D%0ASet-Cookie%3A%20%C3%A9%2F..%2Fb.pdf"
        );
    }
}
