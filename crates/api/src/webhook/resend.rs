//! `POST /v1/webhooks/{id}/resend`: repeats the deliveries that a webhook missed.
//!
//! Page by page, each in its own transaction: a call that is interrupted, or a process that dies, has made
//! some of them due and left the rest. A notification that is due is not made due twice, so the same call may
//! be repeated.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use postway_domain::Time;
use postway_store::record::{DueSubscriber, ResendPage, ResendRequest};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{NamedWebhook, delivery::DeliveryPlace, find, refuse_inactive};
use crate::{
    admin::cleanup::TIME_MAX,
    auth::Manager,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
        pagination,
        request_id::RequestId,
    },
    state::SharedState,
};

/// Notifications made due in one transaction.
const PAGE_NOTIFICATIONS: u32 = 500;

/// The deliveries to repeat.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResendDeliveriesRequest {
    /// Notifications created since this time, RFC 3339 or Unix seconds.
    #[schema(value_type = String, format = DateTime, example = "2030-01-25T18:00:00Z")]
    since: Time,
    /// And before this time; until now when absent.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
    /// `dead` (default): those that were given up. `all`: also those that were acknowledged.
    #[schema(example = "dead")]
    which: Option<String>,
    /// Where to continue: the `next_cursor` of the previous answer.
    cursor: Option<String>,
}

/// The result of repeating deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResentDeliveries {
    /// How many notifications are due again, without those that were due already.
    resent: u64,
    /// Present if there may be more: repeat the call with this as `cursor`.
    next_cursor: Option<String>,
}

/// Repeat missed deliveries
///
/// All notifications created in that time that are `dead`, or with `"which":"all"` all that are settled. They
/// are delivered as soon as the webhook accepts calls, in order for each message, each under its own
/// `webhook-id`. Pending ones are not changed, so a call may be repeated. A call runs for at most 20 seconds
/// and then returns a `next_cursor`. 409 while the webhook is inactive.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/resend",
    operation_id = "resendDeliveries",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook, or `client_sync`")),
    request_body = ResendDeliveriesRequest,
    responses((status = 202, description = "The delivery is repeated", body = ResentDeliveries))
)]
pub(crate) async fn resend(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedWebhook(id): NamedWebhook,
    request: Request,
) -> Result<(StatusCode, Json<ResentDeliveries>), ApiError> {
    let now = app.clock.now();
    let asked = read(body::json_object(request).await?, now).map_err(ApiError::invalid)?;
    let after = asked.cursor.as_deref().map(pagination::read_cursor::<DeliveryPlace>).transpose()?;
    let tenant = &caller.tenant;
    refuse_inactive(&find(&app, tenant, &id).await?)?;
    let ResendSelection { since, until, only_dead, .. } = asked;
    let detail = json!({"since": since, "until": until, "which": if only_dead { DEAD } else { ALL }});
    let entry =
        app.audit(&caller.actor, Some(tenant), "webhook.resend", id.as_str(), &request_id, Some(detail));
    app.record(entry).await?;

    let deadline = Instant::now() + TIME_MAX;
    let who = DueSubscriber { tenant: tenant.clone(), subscriber: id.clone() };
    let after = after.map(|DeliveryPlace(uid, seq)| (uid, seq));
    let limit = PAGE_NOTIFICATIONS;
    let mut request = ResendRequest { who, since, until, only_dead, after, now, limit };
    let mut resent = 0;
    loop {
        let ResendPage { resent: count, next } = app.store.resend_notifications(request.clone()).await?;
        resent += u64::from(count);
        if next.is_none() || Instant::now() >= deadline {
            tracing::info!(%tenant, webhook = %id, resent, "notifications are sent again");
            let next_cursor = next.map(|(uid, seq)| pagination::write_cursor(&DeliveryPlace(uid, seq)));
            return Ok((StatusCode::ACCEPTED, Json(ResentDeliveries { resent, next_cursor })));
        }
        request.after = next;
    }
}

const DEAD: &str = "dead";
const ALL: &str = "all";

/// The requested selection.
#[derive(Debug)]
struct ResendSelection {
    since: Time,
    until: Time,
    only_dead: bool,
    cursor: Option<String>,
}

fn read(object: Map<String, Value>, now: Time) -> Result<ResendSelection, Vec<FieldError>> {
    const TIME: &str = "must be a time: RFC 3339 or Unix seconds";
    /// Longer than any cursor of ours.
    const CURSOR_CHARS_MAX: usize = 200;
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(object, &mut wrong);
    let is_given = fields.has("since");
    let since: Option<Time> = fields.read("since", TIME);
    if !is_given {
        fields.refuse("since", "is needed: repeats deliveries since this time");
    }
    let until: Option<Time> = fields.read("until", TIME);
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        fields.refuse("until", "must be later than since");
    }
    let which: Option<String> = fields.read("which", "must be dead or all");
    if which.as_deref().is_some_and(|which| ![DEAD, ALL].contains(&which)) {
        fields.refuse("which", "must be dead or all");
    }
    let cursor = fields.text("cursor", CURSOR_CHARS_MAX);
    fields.finish("is not a field of this call");
    match since {
        Some(since) if wrong.is_empty() => {
            let only_dead = which.as_deref() != Some(ALL);
            Ok(ResendSelection { since, until: until.unwrap_or(now), only_dead, cursor })
        }
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_at_a_minute(body: Value) -> Result<ResendSelection, Vec<String>> {
        let read = read(body.as_object().unwrap().clone(), Time::from_millis(60_000));
        read.map_err(|wrong| wrong.into_iter().map(|wrong| wrong.field).collect())
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (body, fields) in [
            (json!({}), &["since"][..]),
            (json!({"since": "yesterday"}), &["since"]),
            (json!({"since": 9, "until": 9}), &["until"]),
            (json!({"since": 9, "which": "some"}), &["which"]),
            (json!({"since": 9, "which": 1, "cursor": 2, "dead": true}), &["which", "cursor", "dead"]),
        ] {
            assert_eq!(read_at_a_minute(body.clone()).unwrap_err(), fields, "{body}");
        }
    }

    #[test]
    fn only_what_died_is_told_again_unless_all_is_asked_for() {
        let asked = read_at_a_minute(json!({"since": 9})).unwrap();
        assert_eq!((asked.since.as_millis(), asked.until.as_millis()), (9_000, 60_000));
        assert!(asked.only_dead && asked.cursor.is_none());
        let all = json!({"since": "1970-01-01T00:00:09Z", "until": 20, "which": "all", "cursor": "x"});
        let asked = read_at_a_minute(all).unwrap();
        assert_eq!((asked.until.as_millis(), asked.only_dead), (20_000, false));
        assert_eq!(asked.cursor.as_deref(), Some("x"));
    }
}
