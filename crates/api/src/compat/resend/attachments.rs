//! `GET /emails/{id}/attachments` and `GET /emails/{id}/attachments/{attachment_id}`: the files of an email,
//! with links to them.

use axum::{
    Json,
    extract::{Request, State},
    http::{header, request::Parts},
};
use postway_domain::{
    TenantId,
    attachment_link::{AttachmentLink, LINK_LASTS, LinkedMail},
};
use postway_mime::reading::{self, AttachedFile};
use serde_json::{Map, Value, json};

use super::list::{ResendPageQuery, answer};
use crate::{
    auth::Reader,
    http::{error::ApiError, origin::RequestOrigin, path::PathText},
    message::{
        MessagePathId,
        content::{mail_view::read_mail, parts},
        find,
    },
    state::{AppState, SharedState},
};

/// The prefix of attachment ids; the position follows.
const ID_PREFIX: &str = "att_";

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let asked = ResendPageQuery::read(request.uri())?;
    let (parts, _) = request.into_parts();
    let files = files(&app, &caller.tenant, &id, &parts).await?;
    let named =
        files.into_iter().map(|file| (file["id"].as_str().unwrap_or_default().to_owned(), file)).collect();
    let (page, has_more) = asked.page_of(named, |(id, _): &(String, Map<String, Value>)| id)?;
    Ok(answer(page.into_iter().map(|(_, file)| Value::Object(file)).collect(), has_more))
}

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    PathText((id, attachment)): PathText<(String, String)>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, _) = request.into_parts();
    let mut files = files(&app, &caller.tenant, &id, &parts).await?;
    let Some(at) = files.iter().position(|file| file["id"] == *attachment) else {
        return Err(ApiError::not_found("this email has no such attachment"));
    };
    let mut file = files.swap_remove(at);
    file.insert("object".to_owned(), "attachment".into());
    Ok(Json(Value::Object(file)))
}

/// The files of an email, each with its link.
async fn files(
    app: &AppState,
    tenant: &TenantId,
    id: &str,
    parts: &Parts,
) -> Result<Vec<Map<String, Value>>, ApiError> {
    let uid = find(app, tenant, id).await?.summary.uid;
    let raw = parts::bytes(app, tenant, id).await?;
    let (reading, _held) = read_mail(app, tenant, raw, reading::read).await?;
    let until = app.clock.now().plus(LINK_LASTS);
    let base = base(app, parts);
    let shown = |(place, file): (usize, AttachedFile)| {
        let place = u16::try_from(place).ok()?;
        let link = AttachmentLink { mail: LinkedMail::Message, tenant: tenant.clone(), uid, place, until };
        let fields = [
            ("id", json!(format!("{ID_PREFIX}{place}"))),
            ("filename", json!(file.filename)),
            ("size", json!(file.size)),
            ("content_type", json!(file.content_type)),
            ("content_disposition", json!(if file.content_id.is_some() { "inline" } else { "attachment" })),
            ("content_id", json!(file.content_id)),
            ("download_url", json!(format!("{base}/files/{}", link.token(&app.secret_key)))),
            ("expires_at", json!(until)),
        ];
        Some(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    Ok(reading.attachments.into_iter().enumerate().filter_map(shown).collect())
}

/// The URL at which the caller reaches this gateway: the configured one, otherwise that of this request.
fn base(app: &AppState, parts: &Parts) -> String {
    if let Some(url) = app.door.public_url() {
        return url.trim_end_matches('/').to_owned();
    }
    let scheme =
        if RequestOrigin::from_parts(parts).is_some_and(|origin| origin.is_https) { "https" } else { "http" };
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    format!("{scheme}://{host}")
}
