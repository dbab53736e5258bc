//! `POST /v1/webhooks/{id}/resend`: tells a webhook again what it could not be told, in one call.
//!
//! Page by page, each in a transaction of its own: a call that is cut off, or a process that dies meanwhile, has made some
//! of it due and left the rest as it was. What is due is not made due twice, so the same call may be repeated.

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
        json_fields::Fields,
        pagination,
        request_id::RequestId,
    },
    state::Shared,
};

/// Notifications made due in one transaction.
const PAGE_NOTIFICATIONS: u32 = 500;

/// What to tell again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResendDeliveriesRequest {
    /// What was to be told since this time, RFC 3339 or Unix seconds.
    #[schema(value_type = String, format = DateTime, example = "2030-01-25T18:00:00Z")]
    since: Time,
    /// And before this; until now when absent.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
    /// `dead` (the default): what was given up. `all`: what was acknowledged as well.
    #[schema(example = "dead")]
    which: Option<String>,
    /// Where to go on: the `next_cursor` of the answer before.
    cursor: Option<String>,
}

/// What is told again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResentDeliveries {
    /// How many are due again. Those that were due already are not among them.
    resent: u64,
    /// Where there may be more: call again with this as `cursor`.
    next_cursor: Option<String>,
}

/// Tell a webhook again what was given up
///
/// All that was to be told in that time and is `dead`, or with `"which":"all"` all that is over. It is told as soon as the
/// webhook takes calls, in order for each message, each under its own `webhook-id`. What is still to be told stays as it is,
/// so a call may be repeated. A call goes on for at most 20 seconds and then has a `next_cursor`. 409 while the webhook
/// is switched off.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/resend",
    operation_id = "resendDeliveries",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook, or `client_sync`")),
    request_body = ResendDeliveriesRequest,
    responses((status = 202, description = "It is told again", body = ResentDeliveries))
)]
pub(crate) async fn resend(
    State(app): State<Shared>,
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
    let AskedResend { since, until, only_dead, .. } = asked;
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

/// What was asked for.
#[derive(Debug)]
struct AskedResend {
    since: Time,
    until: Time,
    only_dead: bool,
    cursor: Option<String>,
}

fn read(object: Map<String, Value>, now: Time) -> Result<AskedResend, Vec<FieldError>> {
    const TIME: &str = "must be a time: RFC 3339 or Unix seconds";
    /// Longer than any cursor of ours.
    const CURSOR_CHARS_MAX: usize = 200;
    let mut wrong = Vec::new();
    let mut fields = Fields::of(object, &mut wrong);
    let is_given = fields.has("since");
    let since: Option<Time> = fields.read("since", TIME);
    if !is_given {
        fields.refuse("since", "is needed: tell again what was to be told since this time");
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
            Ok(AskedResend { since, until: until.unwrap_or(now), only_dead, cursor })
        }
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_at_a_minute(body: Value) -> Result<AskedResend, Vec<String>> {
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
