//! `/v1/dead-letters`: messages whose retries are exhausted, and their replay.

use axum::{
    Json,
    extract::{Request, State},
    http::Uri,
};
use futures::StreamExt;
use postway_domain::MessageStatus;
use postway_store::record::MessageFilter;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    auth::{Caller, Reader, Sender},
    http::{
        body,
        error::{ApiError, ErrorBody, FieldError},
        query::QueryParameters,
        request_id::RequestId,
    },
    message::{operate::transition, read::list, submit::request_schema::ReplayRequest, view::MessageList},
    state::SharedState,
};

/// The most messages of one replay.
const IDS_MAX: usize = 1_000;
/// How many messages are moved at once; together they share a commit.
const TOGETHER: usize = 64;

/// The result of a replay.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplayResult)]
pub(crate) struct DeadLetterReplayView {
    /// How many messages are in the queue again.
    replayed: usize,
    /// How many are not.
    rejected: usize,
    /// One answer per id, in order.
    results: Vec<DeadLetterReplayItem>,
}

/// The result for one message: a `status`, or an `error`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplayItem)]
pub(crate) struct DeadLetterReplayItem {
    /// The id as you sent it.
    id: String,
    /// The message's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// Why the message was not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// List dead letters
///
/// Failed messages whose retries are exhausted, newest first, each with its last `reason`, with the filters
/// of `GET /v1/messages` except `status`.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    operation_id = "listDeadLetters",
    tag = "dead letters",
    params(
        ("account" = Option<String>, Query, description = "Only those of this account"),
        ("batch" = Option<String>, Query, description = "Only those of this batch"),
        ("recipient" = Option<String>, Query, description = "Only those to this address"),
        ("tag" = Option<String>, Query, description = "Only those with this label"),
        ("request_id" = Option<String>, Query, description = "Only those that came with this request"),
        ("provider_message_id" = Option<String>, Query, description = "Only the message with this id of the relay"),
        ("metadata" = Option<String>, Query, description = "Only those with this field in their metadata, as `key=value`"),
        ("subject" = Option<String>, Query, description = "Only those whose subject contains this, in any case"),
        ("error_code" = Option<String>, Query, description = "Only those whose latest failure has this code, such as `smtp_550`"),
        ("since" = Option<String>, Query, description = "Accepted at or after this time"),
        ("until" = Option<String>, Query, description = "Accepted before this time"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = MessageList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<MessageList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let filter =
        MessageFilter { status: Some(MessageStatus::Failed), exhausted: true, ..list::filter(&mut query) };
    list::page(&app, &caller.tenant, filter, query).await
}

/// Replay dead letters
///
/// Puts failed messages back in the queue with all their retries. A message that cannot be replayed does not
/// stop the others.
#[utoipa::path(
    post,
    path = "/v1/dead-letters/replay",
    operation_id = "replayDeadLetters",
    tag = "dead letters",
    request_body = ReplayRequest,
    responses((status = 200, description = "The result for each message", body = DeadLetterReplayView))
)]
pub(crate) async fn replay(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    request: Request,
) -> Result<Json<DeadLetterReplayView>, ApiError> {
    let ids = ids(body::json_object(request).await?)?;
    let (app, caller, request_id): (_, &Caller, _) = (&app, &caller, &request_id);
    let each = futures::stream::iter(ids).map(|id| async move {
        let outcome = transition::replay(app, caller, &id, request_id).await;
        (id, outcome)
    });
    let outcomes: Vec<_> = each.buffered(TOGETHER).collect().await;
    let replayed = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).count();
    let rejected = outcomes.len() - replayed;
    let item = |(id, outcome): (String, Result<_, ApiError>)| match outcome {
        Ok(_) => DeadLetterReplayItem { id, status: Some(MessageStatus::Ready.as_str()), error: None },
        Err(error) => DeadLetterReplayItem { id, status: None, error: Some(error.into_body(None)) },
    };
    Ok(Json(DeadLetterReplayView { replayed, rejected, results: outcomes.into_iter().map(item).collect() }))
}

fn ids(mut body: Map<String, Value>) -> Result<Vec<String>, ApiError> {
    let ids = body.remove("ids");
    let mut wrong: Vec<FieldError> =
        body.keys().map(|name| FieldError::new(name, "is not a field of this call")).collect();
    let mut read = Vec::new();
    match ids {
        Some(Value::Array(values)) if (1..=IDS_MAX).contains(&values.len()) => {
            for (index, value) in values.into_iter().enumerate() {
                match value {
                    Value::String(id) => read.push(id),
                    _ => wrong.push(FieldError::new(format!("ids[{index}]"), "must be a text")),
                }
            }
        }
        _ => wrong.push(FieldError::new("ids", format!("must be a list of 1 to {IDS_MAX} ids"))),
    }
    match wrong.is_empty() {
        true => Ok(read),
        false => Err(ApiError::invalid(wrong)),
    }
}
