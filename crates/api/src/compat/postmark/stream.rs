//! `/message-streams`: a stream is a stream here, and its mail belongs to the batch of its name; `outbound`
//! is mail without a batch.
//!
//! A batch exists as soon as it is named, so mail may name a stream that was never created: it is listed with
//! its name only. `Broadcasts` are streams that readers can unsubscribe from, `Transactional` the others. An
//! archived stream is suspended: its mail waits until it is unarchived.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Request, State},
    http::Uri,
};
use postway_domain::{
    MailStream, TenantId, Time,
    id::{BatchCode, StreamId},
};
use serde_json::{Map, Value, json};

use super::{error::PostmarkFault, message::STREAM, query::PostmarkQuery, server::number_of};
use crate::{
    auth::{Manager, Reader},
    http::{body, error::ApiError, request_id::RequestId},
    message::MessagePathId,
    outgoing::{
        batch,
        stream::{NewStream, change_stream, make_stream},
    },
    state::SharedState,
};

/// The most streams that are listed.
const STREAMS_MAX: u32 = 500;

/// The view of a stream: only its name, unless it was created.
fn stream(tenant: &TenantId, id: &str, archived_at: Option<Time>, made: Option<&MailStream>) -> Value {
    let leaves = made.is_some_and(|made| made.unsubscribe);
    json!({
        "ID": id,
        "ServerID": number_of(tenant),
        "Name": made.map_or(id, MailStream::shown_name),
        "Description": made.and_then(|made| made.description.as_deref()),
        "MessageStreamType": if leaves { "Broadcasts" } else { "Transactional" },
        "CreatedAt": made.map(|made| made.created_at),
        "UpdatedAt": made.map(|made| made.updated_at),
        "ArchivedAt": archived_at,
        "ExpectedPurgeDate": null,
        "SubscriptionManagementConfiguration": {
            "UnsubscribeHandlingType": if leaves { "Postmark" } else { "None" },
        },
    })
}

/// The batch of a stream; `None` for `outbound`.
pub(super) fn batch_of(id: &str) -> Result<Option<BatchCode>, ApiError> {
    match id {
        STREAM => Ok(None),
        id => id.parse().map(Some).map_err(|error| PostmarkFault::Stream.error("ID", format!("{error}"))),
    }
}

/// The batch of a stream that must have one.
fn own_batch(id: &str) -> Result<BatchCode, ApiError> {
    batch_of(id)?.ok_or_else(|| {
        PostmarkFault::Stream
            .error("", format!("`{STREAM}` is the mail of no stream: it cannot be archived or changed"))
    })
}

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let asked = PostmarkQuery::from_uri(&uri)?;
    let with_archived =
        asked.text("includearchivedstreams")?.is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let kind = asked.text("messagestreamtype")?.map(str::to_ascii_lowercase);
    let tenant = &caller.tenant;
    let mut streams = vec![stream(tenant, STREAM, None, None)];
    let made = app.store.streams(tenant, None, MailStream::PER_TENANT_MAX).await?;
    // By name: streams that were created, and streams that mail has named.
    let mut known: BTreeMap<String, (Option<Time>, Option<&MailStream>)> =
        made.iter().map(|made| (made.id.to_string(), (None, Some(made)))).collect();
    for batch in app.store.batches(tenant, None, STREAMS_MAX).await? {
        // A sub-batch of a stream is not a stream.
        let is_part = MailStream::of_batch(&batch.code).is_some_and(|of| of.as_str() != batch.code.as_str());
        if !is_part {
            known.entry(batch.code.to_string()).or_default().0 = batch.suspended_since;
        }
    }
    let wanted = known.iter().filter(|(_, (archived, _))| with_archived || archived.is_none());
    streams.extend(wanted.map(|(id, (archived, made))| stream(tenant, id, *archived, *made)));
    if let Some(kind) = kind.filter(|kind| kind != "all") {
        streams
            .retain(|one| one["MessageStreamType"].as_str().is_some_and(|of| of.eq_ignore_ascii_case(&kind)));
    }
    streams.truncate(STREAMS_MAX as usize + 1);
    Ok(Json(json!({"MessageStreams": streams, "TotalCount": streams.len()})))
}

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let tenant = &caller.tenant;
    let Some(code) = batch_of(&id)? else { return Ok(Json(stream(tenant, STREAM, None, None))) };
    let batch = batch::find(&app, tenant, &code).await?;
    let made = match code.as_str().parse::<StreamId>() {
        Ok(id) => app.store.stream(tenant, &id).await?,
        Err(_) => None,
    };
    if batch.is_none() && made.is_none() {
        return Err(PostmarkFault::Stream
            .error("", format!("The stream was not found: there is no mail of `{code}`")));
    }
    let archived_at = batch.and_then(|batch| batch.suspended_since);
    Ok(Json(stream(tenant, code.as_str(), archived_at, made.as_ref())))
}

/// Creates a stream. Readers can unsubscribe from `Broadcasts`, unless the body says otherwise or readers
/// cannot reach this gateway.
pub(super) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object(request).await?;
    let id = body.get("ID").and_then(Value::as_str).unwrap_or_default();
    let code = own_batch(id)?;
    let is_broadcast = body.get("MessageStreamType").and_then(Value::as_str) == Some("Broadcasts");
    let mut given = read(&body);
    given.id =
        Some(code.as_str().parse().map_err(|error| PostmarkFault::Stream.error("ID", format!("{error}")))?);
    given.unsubscribe = given.unsubscribe.or(Some(is_broadcast && app.door.serves_readers()));
    let made = make_stream(&app, &caller, &request_id, given).await.map_err(refused)?;
    Ok(Json(stream(&caller.tenant, code.as_str(), None, Some(&made))))
}

/// A fault of a stream under the number that users know; a failure of ours stays as it is.
fn refused(error: ApiError) -> ApiError {
    match error.status().is_client_error() {
        true => {
            let text =
                error.details().first().map_or_else(|| error.message().to_owned(), ToString::to_string);
            PostmarkFault::Stream.error("", text)
        }
        false => error,
    }
}

/// Reads the fields of a stream.
fn read(body: &Map<String, Value>) -> NewStream {
    let text = |name: &str, max: usize| {
        let text = body.get(name).and_then(Value::as_str);
        text.filter(|text| text.chars().count() <= max).map(|text| text.replace(char::is_control, " "))
    };
    let handling = body
        .get("SubscriptionManagementConfiguration")
        .and_then(|settings| settings.get("UnsubscribeHandlingType"))
        .and_then(Value::as_str);
    NewStream {
        name: text("Name", MailStream::NAME_CHARS_MAX),
        description: text("Description", MailStream::DESCRIPTION_CHARS_MAX).map(Some),
        unsubscribe: handling.map(|handling| handling == "Postmark"),
        fields: body.keys().take(8).cloned().collect(),
        ..NewStream::default()
    }
}

/// Changes the name, the description, or whether readers can unsubscribe.
pub(super) async fn edit(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let code = own_batch(&id)?;
    let given = read(&body::json_object(request).await?);
    let id: StreamId =
        code.as_str().parse().map_err(|error| PostmarkFault::Stream.error("ID", format!("{error}")))?;
    let made = change_stream(&app, &caller, &request_id, &id, given).await.map_err(refused)?;
    let batch = batch::find(&app, &caller.tenant, &code).await?;
    let archived_at = batch.and_then(|batch| batch.suspended_since);
    Ok(Json(stream(&caller.tenant, code.as_str(), archived_at, Some(&made))))
}

pub(super) async fn archive(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let code = own_batch(&id)?;
    batch::suspend_batch(&app, &caller, &request_id, &code).await?;
    Ok(Json(json!({"ID": code.as_str(), "ServerID": number_of(&caller.tenant), "ExpectedPurgeDate": null})))
}

pub(super) async fn unarchive(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let code = own_batch(&id)?;
    batch::activate_batch(&app, &caller, &request_id, &code).await?;
    let made = match code.as_str().parse::<StreamId>() {
        Ok(id) => app.store.stream(&caller.tenant, &id).await?,
        Err(_) => None,
    };
    Ok(Json(stream(&caller.tenant, code.as_str(), None, made.as_ref())))
}
