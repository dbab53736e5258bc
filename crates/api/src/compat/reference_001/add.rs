//! `POST /commands/add-messages`: many mails, each taken or named with the reason why not.
//!
//! A message goes to the tenant that it names, else to the one of the call. Each tenant's go through our door together; a
//! tenant that does not exist, or that the token is not for, rejects its own messages and no other's.

use std::{borrow::Cow, collections::HashMap, vec};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use postway_domain::{Scope, TenantId};
use postway_intake::{Receipt, RejectedItem, weighed};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{NAMES, caller, message::translate, reason};
use crate::{
    admin::tenant::no_tenant,
    auth::{Caller, Sender},
    compat::{
        message_list::Bundle,
        translate::{expect_text, is_blank, renamed, shown_id, text},
    },
    http::{body, error::ApiError, query::Parameters, request_id::RequestId},
    message::submit::{accept::door_context, batch},
    state::{App, Shared},
};

/// What became of the messages.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    queued: usize,
    rejected: Vec<Rejected>,
}

/// A message that was not taken.
#[derive(Serialize)]
struct Rejected {
    id: Option<String>,
    reason: String,
}

/// The command, as far as it was understood.
struct Command<'a> {
    /// The tenant of messages that name none, where the call names one.
    tenant: Option<String>,
    groups: Vec<Group<'a>>,
    /// One for each message, in order.
    places: Vec<Place<'a>>,
}

/// The messages of one tenant, ours already.
struct Group<'a> {
    tenant: Cow<'a, str>,
    messages: Vec<Bytes>,
}

/// Where the answer for a message is found.
enum Place<'a> {
    /// It could not be translated.
    Refused(Rejected),
    /// It is the next one of this group.
    Next { group: usize, id: Option<&'a RawValue> },
}

/// What became of a group: of each message in order, or why of none.
type Outcome = Result<vec::IntoIter<Result<Receipt, RejectedItem>>, String>;

pub(super) async fn add(
    State(app): State<Shared>,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = Parameters::of(&parts.uri)?;
    let named = query.take("tenant_id");
    query.finish()?;
    // The body of somebody who may not send is not read; it may name the tenant, so they are asked again.
    let home = caller(&app, &parts, Scope::Send, named.as_deref()).await?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let Command { tenant, groups, places } = weighed(bytes.len(), || read(&bytes, named, &home.tenant))?;
    if tenant.as_deref().is_some_and(|tenant| tenant != home.tenant.as_str()) {
        caller(&app, &parts, Scope::Send, tenant.as_deref()).await?;
    }
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(groups.len());
    for group in groups {
        outcomes.push(match take(&app, &parts, &request_id, &home, group).await {
            Ok(outcome) => outcome,
            // What was taken before must be said; the rest can be brought again.
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
        false => Json(Answer { ok: true, queued, rejected }).into_response(),
    })
}

/// Hands a tenant's messages over.
async fn take(
    app: &App,
    parts: &Parts,
    request_id: &RequestId,
    home: &Caller,
    Group { tenant, messages }: Group<'_>,
) -> Result<Outcome, ApiError> {
    let asked = match tenant == home.tenant.as_str() {
        true => Ok(home.clone()),
        false => caller(app, parts, Scope::Send, Some(&tenant)).await,
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
    let context = door_context(Sender(caller), request_id, &parts.headers)?;
    let receipt = batch::take_each(app, &context, messages).await?;
    Ok(Ok(receipt.results.into_iter()))
}

/// How many were taken, and the others, in the order in which they came.
fn in_order(places: Vec<Place<'_>>, mut outcomes: Vec<Outcome>) -> Result<(usize, Vec<Rejected>), ApiError> {
    let (mut queued, mut rejected) = (0, Vec::new());
    for place in places {
        let (group, id) = match place {
            Place::Next { group, id } => (group, id),
            Place::Refused(refused) => {
                rejected.push(refused);
                continue;
            }
        };
        match &mut outcomes[group] {
            Err(reason) => rejected.push(Rejected { id: id.and_then(shown_id), reason: reason.clone() }),
            Ok(results) => match results.next() {
                Some(Ok(_)) => queued += 1,
                Some(Err(item)) => {
                    let error = ApiError::from(item.refusal).renamed(|field| renamed(field, NAMES));
                    rejected.push(Rejected { id: item.id, reason: reason(&error) });
                }
                None => return Err(ApiError::internal("the door did not answer for every message")),
            },
        }
    }
    Ok((queued, rejected))
}

/// Reads the call: `named` is the tenant in its query, and `home` is whose messages are that name none anywhere.
fn read<'a>(bytes: &'a [u8], named: Option<String>, home: &'a TenantId) -> Result<Command<'a>, ApiError> {
    let Bundle { messages, mut beside } = Bundle::read(bytes, "messages")?;
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
    let (mut groups, mut known): (Vec<Group<'_>>, HashMap<Cow<'_, str>, usize>) = Default::default();
    let mut places = Vec::with_capacity(messages.len());
    for message in messages {
        let Some(message) = message else {
            places.push(Place::Refused(Rejected { id: None, reason: "must be an object".to_owned() }));
            continue;
        };
        let id = message.get("id");
        let own = message.get("tenant_id").filter(|named| !is_blank(named)).and_then(text);
        let ours = match translate(message, default_priority) {
            Ok(ours) => ours,
            Err(error) => {
                let rejected = Rejected { id: id.and_then(shown_id), reason: reason(&error) };
                places.push(Place::Refused(rejected));
                continue;
            }
        };
        let of = own.unwrap_or_else(|| match &tenant {
            Some(tenant) => Cow::Owned(tenant.clone()),
            None => Cow::Borrowed(home.as_str()),
        });
        let group = *known.entry(of).or_insert_with_key(|of| {
            groups.push(Group { tenant: of.clone(), messages: Vec::new() });
            groups.len() - 1
        });
        groups[group].messages.push(ours.into());
        places.push(Place::Next { group, id });
    }
    Ok(Command { tenant, groups, places })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn command(body: &Value, check: impl FnOnce(Vec<(String, Value)>, Vec<Result<usize, Option<String>>>)) {
        let (json, home) = (body.to_string(), "home".parse().unwrap());
        let Command { groups, places, .. } = read(json.as_bytes(), None, &home).ok().unwrap();
        let batch = |group: Group<'_>| {
            let messages = group.messages.iter().map(|json| serde_json::from_slice::<Value>(json).unwrap());
            (group.tenant.into_owned(), messages.collect())
        };
        let place = |place| match place {
            Place::Refused(refused) => Err(refused.id),
            Place::Next { group, .. } => Ok(group),
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
