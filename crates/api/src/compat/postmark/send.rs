//! `POST /email`, `/email/batch`, `/email/withTemplate` and `/email/batchWithTemplates`.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Request, State},
};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use postway_domain::MessageUid;
use postway_intake::RequestContext;
use postway_store::StoreError;
use serde_json::{Map, Value, json};

use super::{
    PostmarkCaches,
    error::{PostmarkFault, body as error_body, theirs},
    inactive::some_inactive,
    message::message,
};
use crate::{
    auth::Sender,
    compat::translate::{RawFields, RawItems, misshapen},
    http::{body, error::ApiError, request_id::RequestId},
    message::submit::{accept, batch as many},
    state::{AppState, SharedState},
};

/// The most messages of a batch.
const BATCH_MAX: usize = 500;
/// How many messages of a batch are looked up at once.
const TOGETHER: usize = 16;

pub(super) async fn send(
    State(app): State<SharedState>,
    Extension(memory): Extension<Arc<PostmarkCaches>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    one(&app, &memory, &context, &bytes, false).await
}

pub(super) async fn send_template(
    State(app): State<SharedState>,
    Extension(memory): Extension<Arc<PostmarkCaches>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    one(&app, &memory, &context, &bytes, true).await
}

pub(super) async fn batch(
    State(app): State<SharedState>,
    Extension(memory): Extension<Arc<PostmarkCaches>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    let items = serde_json::from_slice(&bytes).map_err(|error| {
        misshapen(&bytes, &error, |_| PostmarkFault::Shape.error("", "the body must be a list of messages"))
    })?;
    all(&app, &memory, &context, items, false).await
}

pub(super) async fn batch_templates(
    State(app): State<SharedState>,
    Extension(memory): Extension<Arc<PostmarkCaches>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    let messages = RawFields::read(&bytes)?.take("Messages");
    let messages = messages.ok_or_else(|| PostmarkFault::Shape.error("Messages", "is missing"))?;
    let items = RawItems::read("Messages", messages)
        .map_err(|_| PostmarkFault::Shape.error("Messages", "must be a list of messages"))?;
    all(&app, &memory, &context, items, true).await
}

async fn read(
    app: &AppState,
    caller: Sender,
    id: &RequestId,
    request: Request,
) -> Result<(RequestContext, Bytes), ApiError> {
    let (parts, body) = request.into_parts();
    // Subjects and tags may be as long as there; the tenant's own limit applies if it has set one.
    let context = RequestContext { any_subject: true, ..accept::compat_context(caller, id, &parts.headers)? };
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    Ok((context, bytes))
}

async fn one(
    app: &AppState,
    memory: &PostmarkCaches,
    context: &RequestContext,
    bytes: &[u8],
    from_template: bool,
) -> Result<Json<Value>, ApiError> {
    let mut translated = message(bytes, from_template)?;
    memory.templates.resolve(app, &context.tenant, [&mut translated]).await?;
    let inactive = memory.lists.inactive(app, &context.tenant, &translated).await??;
    let (json, named) = translated.into_json();
    let receipt = accept::take(app, context, json.into()).await.map_err(theirs)?;
    Ok(Json(taken(app, named, receipt.uid, &inactive)))
}

async fn all(
    app: &AppState,
    memory: &PostmarkCaches,
    context: &RequestContext,
    items: RawItems<'_>,
    from_template: bool,
) -> Result<Json<Value>, ApiError> {
    if items.0.len() > BATCH_MAX {
        let message = format!("there are {} messages: send at most {BATCH_MAX}", items.0.len());
        return Err(PostmarkFault::BatchLong.error("", message));
    }
    let mut translated: Vec<_> =
        items.0.iter().map(|item| message(item.get().as_bytes(), from_template)).collect();
    memory.templates.resolve(app, &context.tenant, translated.iter_mut().flatten()).await?;
    let found: Vec<Result<_, ApiError>> = futures::stream::iter(translated)
        .map(|translated| async move {
            let translated = match translated {
                Ok(translated) => translated,
                Err(error) => return Ok(Err(error)),
            };
            let inactive = memory.lists.inactive(app, &context.tenant, &translated).await?;
            Ok::<_, StoreError>(inactive.map(|inactive| (translated, inactive)))
        })
        .buffered(TOGETHER)
        .try_collect()
        .await?;
    let (mut messages, mut prepared) = (Vec::new(), Vec::with_capacity(found.len()));
    for one in found {
        prepared.push(one.map(|(translated, inactive)| {
            let (json, named) = translated.into_json();
            messages.push(json.into());
            (named, inactive)
        }));
    }
    let results = match messages.is_empty() {
        true => Vec::new(),
        false => many::take_each(app, context, messages).await.map_err(theirs)?.results,
    };
    let mut results = results.into_iter();
    let answers = prepared.into_iter().map(|one| {
        let (named, inactive) = match one {
            Ok(prepared) => prepared,
            Err(error) => return error_body(&error),
        };
        match results.next() {
            Some(Ok(receipt)) => taken(app, named, receipt.uid, &inactive),
            Some(Err(rejected)) => error_body(&theirs(rejected.refusal.into())),
            None => error_body(&ApiError::internal("the intake did not answer for every message")),
        }
    });
    Ok(Json(answers.collect()))
}

/// The answer for a message that is durable.
fn taken(app: &AppState, named: Vec<(&'static str, String)>, uid: MessageUid, inactive: &[String]) -> Value {
    let mut answer: Map<String, Value> =
        named.into_iter().map(|(name, list)| (name.to_owned(), list.into())).collect();
    let message = match inactive {
        [] => "OK".to_owned(),
        some => some_inactive(some),
    };
    answer.insert("SubmittedAt".to_owned(), json!(app.clock.now()));
    answer.insert("MessageID".to_owned(), json!(uid));
    answer.insert("ErrorCode".to_owned(), json!(0));
    answer.insert("Message".to_owned(), message.into());
    Value::Object(answer)
}
