//! `POST /emails/{id}/requeue` and `/emails/requeue`: retries one mail, some, or all stale ones.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use futures::StreamExt;
use postway_domain::{MessageState as Stands, TenantId, message::DoubtResolution};
use serde_json::{Map, Value, json};

use super::list::{STALE_S, find_stale, status_word};
use crate::{
    auth::{Caller, Sender},
    compat::lookup::MessageWithStatus,
    http::{
        body,
        error::{ApiError, FieldError},
        pagination::PageRequest,
        request_id::RequestId,
    },
    message::{
        MessagePathId,
        operate::transition::{OperatorAction, operate},
    },
    state::{AppState, SharedState},
};

/// The most mails of one call.
const IDS_MAX: usize = 500;
/// How many are moved at once; together they share a commit.
const TOGETHER: usize = 64;

pub(super) async fn one(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<StatusCode, ApiError> {
    requeue(&app, &caller, &id, &request_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `{"ids":[…]}`, or `{"stale":true,"older_than_seconds":900}` for a page of stale ones.
pub(super) async fn many(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let ids = match read(body::json_object(request).await?)? {
        RequeueSelection::These(ids) => ids,
        RequeueSelection::Stale(older_than_s) => stale(&app, &caller.tenant, older_than_s).await?,
    };
    let (app, caller, request_id): (_, &Caller, _) = (&app, &caller, &request_id);
    let each = futures::stream::iter(ids).map(|id| async move {
        let outcome = requeue(app, caller, &id, request_id).await;
        (id, outcome)
    });
    let outcomes: Vec<_> = each.buffered(TOGETHER).collect().await;
    let requeued = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).count();
    let data: Vec<Value> = outcomes
        .into_iter()
        .map(|(id, outcome)| match outcome {
            Ok(status) => json!({"id": id, "status": status}),
            Err(error) => json!({"id": id, "error": error.message(), "code": error.code()}),
        })
        .collect();
    Ok(Json(json!({"requeued": requeued, "refused": data.len() - requeued, "data": data})))
}

/// The newest stale mails, at most as many as one call moves. Scheduled ones are skipped, some thousands of
/// them.
async fn stale(app: &AppState, tenant: &TenantId, older_than_s: u64) -> Result<Vec<String>, ApiError> {
    let page =
        find_stale(app, tenant, older_than_s, PageRequest { limit: IDS_MAX as u32, cursor: None }).await?;
    Ok(page.messages.iter().map(MessageWithStatus::id).collect())
}

/// Retries a mail, and returns its status after it. One that is in the queue already stays there.
async fn requeue(
    app: &AppState,
    caller: &Caller,
    id: &str,
    request_id: &RequestId,
) -> Result<&'static str, ApiError> {
    let entry = MessageWithStatus::find(app, &caller.tenant, id).await?;
    let input = match entry.record.summary.state {
        Stands::Accepted | Stands::Validating | Stands::Ready => return Ok(status_word(&entry)),
        // The operator has decided: it is sent again, under the same Message-ID.
        Stands::InDoubt => OperatorAction::Resolve(DoubtResolution::Resend),
        Stands::Scheduled(_)
        | Stands::Sending { .. }
        | Stands::Sent
        | Stands::Failed
        | Stands::Invalid
        | Stands::Suppressed
        | Stands::Cancelled
        | Stands::Expired
        | Stands::Captured => OperatorAction::Replay,
    };
    operate(app, caller, id, input, request_id).await?;
    Ok(status_word(&MessageWithStatus::find(app, &caller.tenant, id).await?))
}

/// The selected mails.
#[derive(Debug, PartialEq)]
enum RequeueSelection {
    These(Vec<String>),
    Stale(u64),
}

fn read(mut body: Map<String, Value>) -> Result<RequeueSelection, ApiError> {
    let (ids, stale) = (body.remove("ids"), body.remove("stale"));
    let older_than = body.remove("older_than_seconds");
    if let Some(name) = body.keys().next() {
        return Err(ApiError::field(name, "is no field of this call"));
    }
    match (ids, stale, older_than) {
        (Some(Value::Array(ids)), None | Some(Value::Bool(false)), None) => {
            if !(1..=IDS_MAX).contains(&ids.len()) {
                return Err(ApiError::field("ids", format!("must be a list of 1 to {IDS_MAX} ids")));
            }
            let text = |(index, id): (usize, Value)| match id {
                Value::String(id) => Ok(id),
                _ => Err(FieldError::new(format!("ids[{index}]"), "must be a text")),
            };
            let ids: Result<Vec<String>, FieldError> = ids.into_iter().enumerate().map(text).collect();
            ids.map(RequeueSelection::These).map_err(|wrong| ApiError::invalid(vec![wrong]))
        }
        (None, Some(Value::Bool(true)), older_than) => match older_than {
            None => Ok(RequeueSelection::Stale(STALE_S)),
            Some(seconds) => match seconds.as_u64() {
                Some(seconds) => Ok(RequeueSelection::Stale(seconds)),
                None => Err(ApiError::field("older_than_seconds", "must be a entry number of seconds")),
            },
        },
        _ => {
            Err(ApiError::field("ids", "give the ids of mails, or \"stale\": true for those that are stuck"))
        }
    }
}
