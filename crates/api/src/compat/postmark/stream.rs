//! `/message-streams`: a stream is a batch of that name, and `outbound` is mail of none.
//!
//! A batch is there as soon as it is named, and has nothing but its name: to create a stream is to say that there will be
//! mail of it. One that is archived is suspended: its mail waits until it is not.

use axum::{
    Json,
    extract::{Request, State},
    http::Uri,
};
use postway_domain::{TenantId, Time, id::BatchCode};
use serde_json::{Value, json};

use super::{error::Fault, message::STREAM, query::PostmarkQuery, server::number_of};
use crate::{
    auth::{Manager, Reader},
    batch, body,
    error::ApiError,
    message::GivenId,
    request_id::RequestId,
    state::Shared,
};

/// The most streams that are listed.
const STREAMS_MAX: u32 = 500;

/// A stream as it is known.
fn stream(tenant: &TenantId, id: &str, archived_at: Option<Time>) -> Value {
    json!({
        "ID": id,
        "ServerID": number_of(tenant),
        "Name": id,
        "Description": null,
        "MessageStreamType": "Transactional",
        "CreatedAt": null,
        "UpdatedAt": null,
        "ArchivedAt": archived_at,
        "ExpectedPurgeDate": null,
        "SubscriptionManagementConfiguration": {"UnsubscribeHandlingType": "None"},
    })
}

/// The batch that a stream is; none of `outbound`.
pub(super) fn batch_of(id: &str) -> Result<Option<BatchCode>, ApiError> {
    match id {
        STREAM => Ok(None),
        id => id.parse().map(Some).map_err(|error| Fault::Stream.error("ID", format!("{error}"))),
    }
}

/// The same of one that must have its own batch.
fn own_batch(id: &str) -> Result<BatchCode, ApiError> {
    batch_of(id)?.ok_or_else(|| {
        Fault::Stream
            .error("", format!("`{STREAM}` is the mail of no stream: it cannot be archived or changed"))
    })
}

pub(super) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let asked = PostmarkQuery::of(&uri)?;
    let with_archived =
        asked.text("includearchivedstreams")?.is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let kind = asked.text("messagestreamtype")?.map(str::to_ascii_lowercase);
    let tenant = &caller.tenant;
    let mut streams = Vec::new();
    if matches!(kind.as_deref(), None | Some("all" | "transactional")) {
        streams.push(stream(tenant, STREAM, None));
        let batches = app.store.batches(tenant, None, STREAMS_MAX).await?;
        let wanted = batches.into_iter().filter(|batch| with_archived || batch.suspended_since.is_none());
        streams.extend(wanted.map(|batch| stream(tenant, batch.code.as_str(), batch.suspended_since)));
    }
    Ok(Json(json!({"MessageStreams": streams, "TotalCount": streams.len()})))
}

pub(super) async fn show(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let tenant = &caller.tenant;
    let Some(code) = batch_of(&id)? else { return Ok(Json(stream(tenant, STREAM, None))) };
    let found = batch::find(&app, tenant, &code).await?;
    let none = || Fault::Stream.error("", format!("The stream was not found: there is no mail of `{code}`"));
    let found = found.ok_or_else(none)?;
    Ok(Json(stream(tenant, found.code.as_str(), found.suspended_since)))
}

/// Says that there will be mail of a stream. Nothing is kept of it: the answer alone has its name and description.
pub(super) async fn create(caller: Manager, request: Request) -> Result<Json<Value>, ApiError> {
    let body = body::json_object(request).await?;
    let id = body.get("ID").and_then(Value::as_str).unwrap_or_default();
    let code = own_batch(id)?;
    let mut made = stream(&caller.tenant, code.as_str(), None);
    for name in ["Name", "Description", "MessageStreamType"] {
        if let Some(given @ Value::String(text)) = body.get(name)
            && text.chars().count() <= 1_000
        {
            made[name] = given.clone();
        }
    }
    Ok(Json(made))
}

/// A stream has nothing that could be changed.
pub(super) async fn edit(_caller: Manager, GivenId(_): GivenId) -> ApiError {
    Fault::Stream
        .error("", "a stream here is the batch of that name: it has no other name, and no description")
}

pub(super) async fn archive(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let code = own_batch(&id)?;
    batch::hold(&app, &caller, &request_id, &code).await?;
    Ok(Json(json!({"ID": code.as_str(), "ServerID": number_of(&caller.tenant), "ExpectedPurgeDate": null})))
}

pub(super) async fn unarchive(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let code = own_batch(&id)?;
    batch::let_go(&app, &caller, &request_id, &code).await?;
    Ok(Json(stream(&caller.tenant, code.as_str(), None)))
}
