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
    error::{Fault, body as error_body, theirs},
    inactive::EmptyLists,
    message::{Translated, message},
};
use crate::{
    auth::Sender,
    body,
    compat::translate::{Fields, Items, misshapen},
    error::ApiError,
    message::{accept, batch as many},
    request_id::RequestId,
    state::{App, Shared},
};

/// The most messages of a batch.
const BATCH_MAX: usize = 500;
/// How many messages of a batch are looked up at once.
const TOGETHER: usize = 16;

pub(super) async fn send(
    State(app): State<Shared>,
    Extension(lists): Extension<Arc<EmptyLists>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    one(&app, &lists, &context, &bytes, false).await
}

pub(super) async fn send_template(
    State(app): State<Shared>,
    Extension(lists): Extension<Arc<EmptyLists>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    one(&app, &lists, &context, &bytes, true).await
}

pub(super) async fn batch(
    State(app): State<Shared>,
    Extension(lists): Extension<Arc<EmptyLists>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    let items = serde_json::from_slice(&bytes).map_err(|error| {
        misshapen(&bytes, &error, |_| Fault::Shape.error("", "the body must be a list of messages"))
    })?;
    all(&app, &lists, &context, items, false).await
}

pub(super) async fn batch_templates(
    State(app): State<Shared>,
    Extension(lists): Extension<Arc<EmptyLists>>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (context, bytes) = read(&app, caller, &id, request).await?;
    let messages = Fields::read(&bytes)?.take("Messages");
    let messages = messages.ok_or_else(|| Fault::Shape.error("Messages", "is missing"))?;
    let items = Items::read("Messages", messages)
        .map_err(|_| Fault::Shape.error("Messages", "must be a list of messages"))?;
    all(&app, &lists, &context, items, true).await
}

async fn read(
    app: &App,
    caller: Sender,
    id: &RequestId,
    request: Request,
) -> Result<(RequestContext, Bytes), ApiError> {
    let (parts, body) = request.into_parts();
    let context = accept::door_context(caller, id, &parts.headers)?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    Ok((context, bytes))
}

async fn one(
    app: &App,
    lists: &EmptyLists,
    context: &RequestContext,
    bytes: &[u8],
    from_template: bool,
) -> Result<Json<Value>, ApiError> {
    let translated = message(bytes, from_template)?;
    let inactive = lists.inactive(app, &context.tenant, &translated).await??;
    let Translated { json, named } = translated;
    let receipt = accept::take(app, context, json.into()).await.map_err(theirs)?;
    Ok(Json(taken(app, named, receipt.uid, &inactive)))
}

async fn all(
    app: &App,
    lists: &EmptyLists,
    context: &RequestContext,
    items: Items<'_>,
    from_template: bool,
) -> Result<Json<Value>, ApiError> {
    if items.0.len() > BATCH_MAX {
        let message = format!("there are {} messages: send at most {BATCH_MAX}", items.0.len());
        return Err(Fault::BatchLong.error("", message));
    }
    let translated: Vec<_> =
        items.0.iter().map(|item| message(item.get().as_bytes(), from_template)).collect();
    let mut found: Vec<Result<(Translated, Vec<String>), ApiError>> = futures::stream::iter(translated)
        .map(|translated| async move {
            let translated = match translated {
                Ok(translated) => translated,
                Err(error) => return Ok(Err(error)),
            };
            let inactive = lists.inactive(app, &context.tenant, &translated).await?;
            Ok::<_, StoreError>(inactive.map(|inactive| (translated, inactive)))
        })
        .buffered(TOGETHER)
        .try_collect()
        .await?;
    let mut results = Vec::new();
    if found.iter().any(Result::is_ok) {
        let ours = found.iter_mut().flatten();
        let messages = ours.map(|(translated, _)| std::mem::take(&mut translated.json).into()).collect();
        results = many::take_each(app, context, messages).await.map_err(theirs)?.results;
    }
    let mut results = results.into_iter();
    let answers = found.into_iter().map(|found| {
        let (translated, inactive) = match found {
            Ok(found) => found,
            Err(error) => return error_body(&error),
        };
        match results.next() {
            Some(Ok(receipt)) => taken(app, translated.named, receipt.uid, &inactive),
            Some(Err(rejected)) => error_body(&theirs(rejected.refusal.into())),
            None => error_body(&ApiError::internal("the door did not answer for every message")),
        }
    });
    Ok(Json(answers.collect()))
}

/// The answer for a message that is durable.
fn taken(app: &App, named: Vec<(&'static str, String)>, uid: MessageUid, inactive: &[String]) -> Value {
    let mut answer: Map<String, Value> =
        named.into_iter().map(|(name, list)| (name.to_owned(), list.into())).collect();
    let message = match inactive {
        [] => "OK".to_owned(),
        some => format!("OK, but nothing is sent to these inactive addresses: {}", some.join(", ")),
    };
    answer.insert("SubmittedAt".to_owned(), json!(app.clock.now()));
    answer.insert("MessageID".to_owned(), json!(uid));
    answer.insert("ErrorCode".to_owned(), json!(0));
    answer.insert("Message".to_owned(), message.into());
    Value::Object(answer)
}
