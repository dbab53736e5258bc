//! `POST /commands/add-messages`: many mails, each accepted or listed with the reason of its refusal.
//!
//! A message goes to the tenant that it names, otherwise to the tenant of the call. Each tenant's messages go
//! through the intake together; a tenant that does not exist, or that the token does not allow, rejects only
//! its own messages.

use std::{borrow::Cow, collections::HashMap, vec};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use postway_domain::{KeyScope, TenantId};
use postway_intake::{AcceptReceipt, RejectedItem, run_heavy};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{NAMES, caller, message::translate, reason};
use crate::{
    admin::tenant::no_tenant,
    auth::{Caller, Sender},
    compat::{
        message_list::MessageListBody,
        translate::{expect_text, is_blank, renamed, shown_id, text},
    },
    http::{body, error::ApiError, query::QueryParameters, request_id::RequestId},
    message::submit::{accept::compat_context, batch},
    state::{AppState, SharedState},
};

/// The results.
#[derive(Serialize)]
struct AddMessagesAnswer {
    ok: bool,
    queued: usize,
    rejected: Vec<RejectedMessage>,
}

/// A message that was refused.
#[derive(Serialize)]
struct RejectedMessage {
    id: Option<String>,
    reason: String,
}

/// The parsed command.
struct AddMessagesCommand<'a> {
    /// The tenant of messages that name none, if the call names one.
    tenant: Option<String>,
    groups: Vec<TenantGroup<'a>>,
    /// One for each message, in order.
    places: Vec<MessagePosition<'a>>,
}

/// The translated messages of one tenant.
struct TenantGroup<'a> {
    tenant: Cow<'a, str>,
    messages: Vec<Bytes>,
}

/// Where the result of a message is found.
enum MessagePosition<'a> {
    /// The message could not be translated.
    Refused(RejectedMessage),
    /// The message is the next one of this group.
    Next { group: usize, id: Option<&'a RawValue> },
}

/// The results of a group: of each message in order, or why it was refused altogether.
type GroupOutcome = Result<vec::IntoIter<Result<AcceptReceipt, RejectedItem>>, String>;

pub(super) async fn add(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let named = query.take("tenant_id");
    query.finish()?;
    // The body of a caller who may not send is not read; the body may name the tenant, so the caller is
    // checked again.
    let home = caller(&app, &parts, KeyScope::Send, named.as_deref()).await?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let AddMessagesCommand { tenant, groups, places } =
        run_heavy(bytes.len(), || read(&bytes, named, &home.tenant))?;
    if tenant.as_deref().is_some_and(|tenant| tenant != home.tenant.as_str()) {
        caller(&app, &parts, KeyScope::Send, tenant.as_deref()).await?;
    }
    let mut outcomes: Vec<GroupOutcome> = Vec::with_capacity(groups.len());
    for group in groups {
        outcomes.push(match take(&app, &parts, &request_id, &home, group).await {
            Ok(outcome) => outcome,
            // What was accepted before must be reported; the rest can be submitted again.
            Err(error) if outcomes.iter().any(Result::is_ok) => Err(reason(&error)),
            Err(error) => return Err(error),
        });
    }
    let (queued, rejected) = in_order(places, outcomes)?;
    Ok(match queued == 0 && !rejected.is_empty() {
        true => {
            let error = "every message was rejected";
            let answer = json!({"ok": false, "error": error, "detail": {"error": error, "rejected": &rejected},
                "queued": 0, "rejected": &rejected, "request_id": request_id.as_str()});
            (StatusCode::BAD_REQUEST, Json(answer)).into_response()
        }
        false => Json(AddMessagesAnswer { ok: true, queued, rejected }).into_response(),
    })
}

/// Hands a tenant's messages to the intake.
async fn take(
    app: &AppState,
    parts: &Parts,
    request_id: &RequestId,
    home: &Caller,
    TenantGroup { tenant, messages }: TenantGroup<'_>,
) -> Result<GroupOutcome, ApiError> {
    let asked = match tenant == home.tenant.as_str() {
        true => Ok(home.clone()),
        false => caller(app, parts, KeyScope::Send, Some(&tenant)).await,
    };
    let caller = match asked {
        Ok(caller) => caller,
        Err(error) if error.status() == StatusCode::FORBIDDEN => {
            return Ok(Err("tenant_id: names another tenant than the token's".to_owned()));
        }
        Err(error) if error.status() == StatusCode::NOT_FOUND => {
            return Ok(Err(format!("tenant_id: {}", no_tenant(&tenant).message())));
        }
        Err(error) => return Err(error),
    };
    let context = compat_context(Sender(caller), request_id, &parts.headers)?;
    let receipt = batch::take_each(app, &context, messages).await?;
    Ok(Ok(receipt.results.into_iter()))
}

/// How many were accepted, and the refused ones, in the order in which they came.
fn in_order(
    places: Vec<MessagePosition<'_>>,
    mut outcomes: Vec<GroupOutcome>,
) -> Result<(usize, Vec<RejectedMessage>), ApiError> {
    let (mut queued, mut rejected) = (0, Vec::new());
    for place in places {
        let (group, id) = match place {
            MessagePosition::Next { group, id } => (group, id),
            MessagePosition::Refused(refused) => {
                rejected.push(refused);
                continue;
            }
        };
        match &mut outcomes[group] {
            Err(reason) => {
                rejected.push(RejectedMessage { id: id.and_then(shown_id), reason: reason.clone() })
            }
            Ok(results) => match results.next() {
                Some(Ok(_)) => queued += 1,
                Some(Err(item)) => {
                    let error = ApiError::from(item.refusal).renamed(|field| renamed(field, NAMES));
                    rejected.push(RejectedMessage { id: item.id, reason: reason(&error) });
                }
                None => return Err(ApiError::internal("the intake did not answer for every message")),
            },
        }
    }
    Ok((queued, rejected))
}

/// Parses the call: `named` is the tenant in its query, and `home` is the tenant of messages that name none.
fn read<'a>(
    bytes: &'a [u8],
    named: Option<String>,
    home: &'a TenantId,
) -> Result<AddMessagesCommand<'a>, ApiError> {
    let MessageListBody { messages, mut beside } = MessageListBody::read(bytes, "messages")?;
    let default_priority = beside.take("default_priority").filter(|priority| !is_blank(priority));
    let in_body = beside.take("tenant_id").filter(|named| !is_blank(named));
    let in_body = in_body.map(|value| expect_text("tenant_id", value)).transpose();
    let in_body = in_body.map_err(|wrong| ApiError::invalid(vec![wrong]))?;
    beside.finish()?;
    let tenant = match (named, in_body) {
        (Some(named), Some(in_body)) if named != in_body => {
            return Err(ApiError::field("tenant_id", "names another tenant than the query: give one"));
        }
        (named, in_body) => named.or(in_body.map(Cow::into_owned)),
    };
    let (mut groups, mut known): (Vec<TenantGroup<'_>>, HashMap<Cow<'_, str>, usize>) = Default::default();
    let mut places = Vec::with_capacity(messages.len());
    for message in messages {
        let Some(message) = message else {
            places.push(MessagePosition::Refused(RejectedMessage {
                id: None,
                reason: "must be an object".to_owned(),
            }));
            continue;
        };
        let id = message.get("id");
        let own = message.get("tenant_id").filter(|named| !is_blank(named)).and_then(text);
        let ours = match translate(message, default_priority) {
            Ok(ours) => ours,
            Err(error) => {
                let rejected = RejectedMessage { id: id.and_then(shown_id), reason: reason(&error) };
                places.push(MessagePosition::Refused(rejected));
                continue;
            }
        };
        let of = own.unwrap_or_else(|| match &tenant {
            Some(tenant) => Cow::Owned(tenant.clone()),
            None => Cow::Borrowed(home.as_str()),
        });
        let group = *known.entry(of).or_insert_with_key(|of| {
            groups.push(TenantGroup { tenant: of.clone(), messages: Vec::new() });
            groups.len() - 1
        });
        groups[group].messages.push(ours.into());
        places.push(MessagePosition::Next { group, id });
    }
    Ok(AddMessagesCommand { tenant, groups, places })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn command(body: &Value, check: impl FnOnce(Vec<(String, Value)>, Vec<Result<usize, Option<String>>>)) {
        let (json, home) = (body.to_string(), "home".parse().unwrap());
        let AddMessagesCommand { groups, places, .. } = read(json.as_bytes(), None, &home).ok().unwrap();
        let batch = |group: TenantGroup<'_>| {
            let messages = group.messages.iter().map(|json| serde_json::from_slice::<Value>(json).unwrap());
            (group.tenant.into_owned(), messages.collect())
        };
        let place = |place| match place {
            MessagePosition::Refused(refused) => Err(refused.id),
            MessagePosition::Next { group, .. } => Ok(group),
        };
        check(groups.into_iter().map(batch).collect(), places.into_iter().map(place).collect());
    }

    #[test]
    fn messages_that_cannot_be_translated_leave_the_others_in_order() {
        let body = json!({"default_priority": 3, "messages": [1, {"id": "a"}, {"id": "b", "x": 1},
            {"id": "c", "priority": 0}]});
        command(&body, |groups, places| {
            let batch = json!([{"id": "a", "priority": 3}, {"id": "c", "priority": 0}]);
            assert_eq!(groups, [("home".to_owned(), batch)]);
            assert_eq!(places, [Err(None), Ok(0), Err(Some("b".to_owned())), Ok(0)]);
        });
    }

    #[test]
    fn each_tenant_has_its_messages_in_one_batch() {
        let mut body = json!({"messages": [{"id": "a"}, {"id": "b", "tenant_id": "x"}, {"id": "c", "tenant_id": "home"},
            {"id": "d", "tenant_id": null}, {"id": "e", "tenant_id": "x"}]});
        let batch = |ids: &[&str]| ids.iter().map(|id| json!({"id": id})).collect::<Value>();
        command(&body, |groups, places| {
            let expected =
                [("home".to_owned(), batch(&["a", "c", "d"])), ("x".to_owned(), batch(&["b", "e"]))];
            assert_eq!(groups, expected);
            assert_eq!(places, [Ok(0), Ok(1), Ok(0), Ok(0), Ok(1)]);
        });
        body["tenant_id"] = json!("x");
        command(&body, |groups, _| {
            let expected =
                [("x".to_owned(), batch(&["a", "b", "d", "e"])), ("home".to_owned(), batch(&["c"]))];
            assert_eq!(groups, expected);
        });
    }
}
