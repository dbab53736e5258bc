//! `/message-streams`: a stream is a stream here, and mail of it is mail of the batch of its name; `outbound` is mail of none.
//!
//! A batch is there as soon as it is named, so mail may name a stream that nobody made: it is listed with nothing but its name.
//! `Broadcasts` are streams that readers can leave, `Transactional` the others. One that is archived is suspended: its mail waits
//! until it is not.

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

use super::{error::Fault, message::STREAM, query::PostmarkQuery, server::number_of};
use crate::{
    auth::{Manager, Reader},
    http::{body, error::ApiError, request_id::RequestId},
    message::GivenId,
    outgoing::{
        batch,
        stream::{NewStream, change_stream, make_stream},
    },
    state::Shared,
};

/// The most streams that are listed.
const STREAMS_MAX: u32 = 500;

/// A stream as it is known: by its name alone, unless somebody made it.
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
    let mut streams = vec![stream(tenant, STREAM, None, None)];
    let made = app.store.streams(tenant, None, MailStream::PER_TENANT_MAX).await?;
    // By name: those that were made, and those that mail has named.
    let mut known: BTreeMap<String, (Option<Time>, Option<&MailStream>)> =
        made.iter().map(|made| (made.id.to_string(), (None, Some(made)))).collect();
    for batch in app.store.batches(tenant, None, STREAMS_MAX).await? {
        // A part of a stream's mail is none itself.
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
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let tenant = &caller.tenant;
    let Some(code) = batch_of(&id)? else { return Ok(Json(stream(tenant, STREAM, None, None))) };
    let batch = batch::find(&app, tenant, &code).await?;
    let made = match code.as_str().parse::<StreamId>() {
        Ok(id) => app.store.stream(tenant, &id).await?,
        Err(_) => None,
    };
    if batch.is_none() && made.is_none() {
        return Err(
            Fault::Stream.error("", format!("The stream was not found: there is no mail of `{code}`"))
        );
    }
    let archived_at = batch.and_then(|batch| batch.suspended_since);
    Ok(Json(stream(tenant, code.as_str(), archived_at, made.as_ref())))
}

/// Makes a stream. Readers can leave what is `Broadcasts`, unless it says otherwise or readers cannot reach this gateway.
pub(super) async fn create(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object(request).await?;
    let id = body.get("ID").and_then(Value::as_str).unwrap_or_default();
    let code = own_batch(id)?;
    let is_broadcast = body.get("MessageStreamType").and_then(Value::as_str) == Some("Broadcasts");
    let mut given = read(&body);
    given.id = Some(code.as_str().parse().map_err(|error| Fault::Stream.error("ID", format!("{error}")))?);
    given.unsubscribe = given.unsubscribe.or(Some(is_broadcast && app.door.serves_readers()));
    let made = make_stream(&app, &caller, &request_id, given).await.map_err(refused)?;
    Ok(Json(stream(&caller.tenant, code.as_str(), None, Some(&made))))
}

/// What is wrong with a stream, under the number that users know; what is no fault of theirs stays as it is.
fn refused(error: ApiError) -> ApiError {
    match error.status().is_client_error() {
        true => {
            let told =
                error.details().first().map_or_else(|| error.message().to_owned(), ToString::to_string);
            Fault::Stream.error("", told)
        }
        false => error,
    }
}

/// What a body says of a stream.
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

/// Changes the name, the description, or whether readers can leave it.
pub(super) async fn edit(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let code = own_batch(&id)?;
    let given = read(&body::json_object(request).await?);
    let id: StreamId =
        code.as_str().parse().map_err(|error| Fault::Stream.error("ID", format!("{error}")))?;
    let made = change_stream(&app, &caller, &request_id, &id, given).await.map_err(refused)?;
    let batch = batch::find(&app, &caller.tenant, &code).await?;
    let archived_at = batch.and_then(|batch| batch.suspended_since);
    Ok(Json(stream(&caller.tenant, code.as_str(), archived_at, Some(&made))))
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
    let made = match code.as_str().parse::<StreamId>() {
        Ok(id) => app.store.stream(&caller.tenant, &id).await?,
        Err(_) => None,
    };
    Ok(Json(stream(&caller.tenant, code.as_str(), None, made.as_ref())))
}
