//! `POST /v1/inbound/replay`: processes settled mail again, all of it that matches a filter.
//!
//! The call is bounded, and safe to repeat: a rule never forwards the same mail twice. A caller that repeats
//! it with `settled_before` set to the first answer's `at` reaches each mail once, even if replaying it
//! changed nothing.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{InboundState, TenantId, Time, id::MailboxId};
use postway_store::record::{InboundFilter, InboundReplay};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::KINDS;
use crate::{
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
        request_id::RequestId,
        schema_form::When,
    },
    state::SharedState,
};

/// The most mails of one call.
const LIMIT_MAX: u32 = 1_000;

/// The mail to replay. A mail must match every condition. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboundReplayRequest {
    /// The status: `no_match`, `dead` or `routed`. Required.
    #[schema(example = "no_match")]
    status: String,
    /// Only mail of this mailbox.
    #[schema(example = "support")]
    mailbox: Option<String>,
    /// Only mail of this kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or
    /// `ordinary`.
    kind: Option<String>,
    /// Only mail registered at this time or later: RFC 3339 or Unix seconds.
    #[schema(inline)]
    since: Option<When>,
    /// Only mail registered before this time.
    #[schema(inline)]
    until: Option<When>,
    /// Only mail settled before this time: pass the `at` of the first answer to continue while `more` is
    /// true.
    #[schema(inline)]
    settled_before: Option<When>,
    /// The most mails, the newest first: 1 to 1,000.
    #[schema(default = 1_000)]
    limit: Option<u32>,
}

/// The result of a replay.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InboundReplayed {
    /// How many mails are processed again.
    replayed: u32,
    /// Whether there may be more: repeat the call with `settled_before`.
    more: bool,
    /// The time of the call.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
}

/// Replay inbound mail
///
/// Settled mail that matches the filter is processed again, with all its tries and the current rules. What
/// was sent because of it is not sent again. At most 1,000 mails at a time; `more` says whether to call
/// again.
#[utoipa::path(
    post,
    path = "/v1/inbound/replay",
    operation_id = "replayInboundAll",
    tag = "inbound",
    request_body = InboundReplayRequest,
    responses((status = 200, description = "How many", body = InboundReplayed))
)]
pub(crate) async fn replay(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<InboundReplayed>, ApiError> {
    let given = body::json_object(request).await?;
    let detail = Some(Value::Object(given.clone()));
    let (tenant, at) = (caller.tenant.clone(), app.clock.now());
    let replay = read(given, &tenant, at).map_err(ApiError::invalid)?;
    let limit = replay.limit;
    let replayed = app.store.replay_inbound_all(replay).await?;
    let entry = app.audit(&caller.actor, Some(&tenant), "inbound.replay_all", "inbound", &request_id, detail);
    app.record(entry).await?;
    tracing::info!(%tenant, replayed, "inbound mail replayed");
    Ok(Json(InboundReplayed { replayed, more: replayed == limit, at }))
}

fn read(body: Map<String, Value>, tenant: &TenantId, at: Time) -> Result<InboundReplay, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let word: Option<String> = fields.read("status", "must be a text");
    let state = word.as_deref().and_then(InboundState::from_word).filter(|state| state.can_be_replayed());
    if state.is_none() {
        fields.refuse("status", "must be no_match, dead or routed");
    }
    let mailbox: Option<MailboxId> = fields.parsed("mailbox");
    let kind: Option<String> = fields.read("kind", "must be a text");
    if kind.as_deref().is_some_and(|kind| !KINDS.contains(&kind)) {
        fields.refuse("kind", format!("must be one of {}", KINDS.join(", ")));
    }
    let [since, until, settled_before] =
        ["since", "until", "settled_before"].map(|name| time(&mut fields, name));
    let limit = fields.number("limit").unwrap_or(LIMIT_MAX);
    if !(1..=LIMIT_MAX).contains(&limit) {
        fields.refuse("limit", format!("must be between 1 and {LIMIT_MAX}"));
    }
    fields.finish("is not a field of this call");
    match wrong.is_empty() {
        true => {
            let (tenant, filter) = (tenant.clone(), InboundFilter { mailbox, state, kind });
            Ok(InboundReplay { tenant, filter, since, until, settled_before, at, limit })
        }
        false => Err(wrong),
    }
}

fn time(fields: &mut JsonFieldReader<'_>, name: &str) -> Option<Time> {
    let text = match fields.take(name)? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let read = text.parse::<Time>();
    if let Err(error) = &read {
        fields.refuse(name, error.to_string());
    }
    read.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_and_the_status_is_needed() {
        let now = Time::from_millis(1_700_000_000_000);
        let read = |body: Value| read(body.as_object().unwrap().clone(), &"t".parse().unwrap(), now);
        let fields = |body: Value| -> Vec<String> {
            let wrong = read(body).unwrap_err();
            wrong.into_iter().map(|wrong| wrong.field).collect()
        };
        assert_eq!(fields(json!({})), ["status"]);
        assert_eq!(fields(json!({"status": "waiting", "x": 1})), ["status", "x"]);
        let wrong = json!({"status": "dead", "kind": "odd", "since": "noon", "limit": 0, "mailbox": "a b"});
        assert_eq!(fields(wrong), ["mailbox", "kind", "since", "limit"]);
        let good = json!({"status": "no_match", "since": 1_700_000_000, "until": "2030-01-01T00:00:00Z"});
        let good = read(good).unwrap();
        assert_eq!((good.filter.state, good.limit), (Some(InboundState::NoMatch), LIMIT_MAX));
        assert!(good.since < good.until);
    }
}
