//! Showing a mail: its fields and text as JSON, its html as an inert page, its files as downloads.
//!
//! The html comes from strangers. It is served with a policy that runs no script, sends no form, opens no
//! window and fetches nothing, whatever frame it is put in.

use std::io;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use postway_domain::TenantId;
use postway_mime::reading::{self, AttachedFile};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{
        body_budget::{AlreadyCounted, AnswerShare},
        error::ApiError,
    },
    state::AppState,
};

/// The content security policy of a mail's html: it may only be displayed.
const PREVIEW_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox";
/// The largest mail that is parsed for display.
const LOOK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What the fields of a small mail may take beyond its size.
const SMALL_ANSWER_BYTES: usize = 64 * 1024;

/// A mail as a reader sees it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MailContent)]
pub(crate) struct MailContentView {
    /// Its header fields in order, decoded.
    headers: Vec<MailHeaderView>,
    /// Its text, or the text of its html.
    text: Option<String>,
    /// Whether it has html; see `preview`.
    has_html: bool,
    /// The attachments, in order.
    attachments: Vec<MailFileView>,
    /// What is left out because the mail has more of it than is read, such as `parts beyond 1,000`. Empty if
    /// the mail is shown completely; `raw` always has all of it.
    omitted: Vec<String>,
}

/// A header field.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MailHeader)]
struct MailHeaderView {
    name: String,
    value: String,
}

/// A file in a mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MailFile)]
struct MailFileView {
    /// The file's position, from 0.
    index: usize,
    filename: Option<String>,
    content_type: String,
    /// The size in bytes.
    size: usize,
    /// The id by which the html refers to it.
    content_id: Option<String>,
}

impl MailFileView {
    fn new((index, file): (usize, AttachedFile)) -> Self {
        let AttachedFile { filename, content_type, size, content_id } = file;
        Self { index, filename, content_type, size, content_id }
    }
}

/// The mail's fields, text and list of files.
pub(crate) async fn content(app: &AppState, tenant: &TenantId, raw: Bytes) -> Result<Response, ApiError> {
    let bytes_max = raw.len() * 2 + SMALL_ANSWER_BYTES;
    let (written, held) = read_mail(app, tenant, raw, move |raw| {
        let reading = reading::read(raw);
        let headers =
            reading.fields.into_iter().map(|(name, value)| MailHeaderView { name, value }).collect();
        let attachments = reading.attachments.into_iter().enumerate().map(MailFileView::new).collect();
        let (text, has_html) = (reading.text, reading.html.is_some());
        let omitted = reading.omitted.iter().map(|limit| limit.to_string()).collect();
        write_json(&MailContentView { headers, text, has_html, attachments, omitted }, bytes_max)
    })
    .await?;
    let json = written.ok_or_else(too_large)?;
    let headers = [(header::CONTENT_TYPE, "application/json")];
    Ok((AlreadyCounted, headers, held.attach_to(json.into())).into_response())
}

/// The JSON of an answer, or `None` if it has more than `bytes_max` bytes: escaping may make it six times as
/// large.
fn write_json(view: &MailContentView, bytes_max: usize) -> Option<Vec<u8>> {
    struct BoundedJsonWriter(Vec<u8>, usize);

    impl io::Write for BoundedJsonWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 {
                return Err(io::Error::other("the answer is too large"));
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut json = BoundedJsonWriter(Vec::new(), bytes_max);
    serde_json::to_writer(&mut json, view).is_ok().then_some(json.0)
}

fn too_large() -> ApiError {
    ApiError::too_large("this mail is too large to be shown; download it instead")
}

/// The mail's html, made inert.
pub(crate) async fn preview(app: &AppState, tenant: &TenantId, raw: Bytes) -> Result<Response, ApiError> {
    let (html, mut held) = read_mail(app, tenant, raw, |raw| reading::read(raw).html).await?;
    let Some(html) = html else {
        return Err(ApiError::not_found("this mail has no html; its text is in `content`"));
    };
    held.cover(html.len())?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PREVIEW_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((AlreadyCounted, headers, held.attach_to(html.into())).into_response())
}

/// One file of the mail, by its position, as a download.
pub(crate) async fn attachment(
    app: &AppState,
    tenant: &TenantId,
    raw: Bytes,
    index: &str,
) -> Result<Response, ApiError> {
    let absent =
        || ApiError::not_found("this mail has no such attachment; `content` lists those it has, from 0");
    let index = index.parse::<usize>().map_err(|_| absent())?;
    let (found, held) = read_mail(app, tenant, raw, move |raw| reading::attachment(raw, index)).await?;
    let (file, bytes) = found.ok_or_else(absent)?;
    let headers = [
        // Never the file's own type: a browser must save it, not show it as a page of ours.
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, disposition(file.filename.as_deref())),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((AlreadyCounted, headers, held.attach_to(bytes.into())).into_response())
}

/// `attachment`, with the name in ASCII and, if it has other characters, also in full (RFC 6266).
fn disposition(filename: Option<&str>) -> String {
    let Some(name) = filename else { return "attachment".to_owned() };
    let plain: String = name
        .chars()
        .take(100)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ') { c } else { '_' })
        .collect();
    let full: String = name
        .chars()
        .take(100)
        .collect::<String>()
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{full}")
}

/// Parses a mail outside the async runtime: a large one takes time, and a panic affects this request only.
/// The number of mails parsed at once is bounded, and so is the memory for them: about the mail's size for
/// the parsed parts and once more for the answer.
pub(crate) async fn read_mail<T: Send + 'static>(
    app: &AppState,
    tenant: &TenantId,
    raw: Bytes,
    read: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<(T, AnswerShare), ApiError> {
    if raw.len() > LOOK_BYTES_MAX {
        return Err(too_large());
    }
    let held = app.body_budget.reserve_answer(tenant, raw.len() * 2)?;
    let place = app.body_budget.reserve_reading(tenant).await?;
    let looked = tokio::task::spawn_blocking(move || {
        let read = read(&raw);
        // The client may have gone: the slot is free only when the work is done.
        drop(place);
        read
    });
    let looked = looked.await;
    let looked = looked.map_err(|error| ApiError::internal(format!("a mail could not be read: {error}")))?;
    Ok((looked, held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_cannot_leave_their_header() {
        let said = disposition(Some("a\"\r\nX: y;é.pdf"));
        assert_eq!(
            said,
            "attachment; filename=\"a___X_ y__.pdf\"; filename*=UTF-8''a%22%0D%0AX%3A%20y%3B%C3%A9.pdf"
        );
        assert!(axum::http::HeaderValue::from_str(&said).is_ok());
        assert_eq!(disposition(None), "attachment");
    }
}
