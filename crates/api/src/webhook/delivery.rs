//! A webhook's notifications: `GET /v1/webhooks/{id}/deliveries`, and repeating one.

use std::{collections::HashMap, fmt, str::FromStr};

use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, Uri, request::Parts},
};
use postway_domain::{MessageUid, TenantId, Time, id::SubscriberId};
use postway_store::record::{
    DeliveryPage, MessageBrief, NotificationCall, NotificationKey, NotificationState, NotificationView,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{NamedWebhook, find, no_webhook, refuse_inactive};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    message::view::notified_event,
    state::{AppState, SharedState},
};

/// A notification of a webhook, delivered or not.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryView {
    /// The message.
    #[schema(value_type = String, format = "uuid")]
    message: MessageUid,
    /// The message's own id, or its uid if it has none; null if it was removed.
    #[schema(example = "order-17")]
    id: Option<String>,
    /// The message's subject; null if it was removed or must not be shown.
    #[schema(example = "Your order")]
    subject: Option<String>,
    /// The event's position in the message's history.
    sequence: i64,
    /// The event.
    #[schema(example = "email.sent")]
    event: &'static str,
    /// `pending`, `calling`, `waiting`, `acknowledged` or `dead`.
    #[schema(example = "acknowledged")]
    status: &'static str,
    /// The number of calls so far.
    tries: i64,
    /// When the notification was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When the next call is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
    /// When it was acknowledged or given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Time>,
    /// The latest call.
    last_call: Option<WebhookCallView>,
}

/// A call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Call)]
pub(crate) struct WebhookCallView {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// How long it took.
    latency_ms: i64,
    /// The HTTP status, if an answer came.
    status: Option<u16>,
    /// The request, shortened.
    request: String,
    /// The answer, shortened, or what went wrong.
    answer: String,
}

/// A page of a webhook's deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    /// The notifications, those of the newest messages first.
    data: Vec<DeliveryView>,
    /// Pass this as `cursor` to read the next page; null on the last page. It may follow a page with fewer
    /// items than requested, or none.
    next_cursor: Option<String>,
}

impl From<NotificationView> for DeliveryView {
    fn from(notification: NotificationView) -> Self {
        let call = |NotificationCall { at, latency_ms, status, request, answer }| WebhookCallView {
            at,
            latency_ms,
            status,
            request,
            answer,
        };
        Self {
            message: notification.key.uid,
            id: None,
            subject: None,
            sequence: notification.key.seq,
            event: notified_event(&notification),
            status: notification.state.as_str(),
            tries: notification.tries,
            created_at: notification.created_at,
            next_at: notification.due_at,
            settled_at: notification.settled_at,
            last_call: notification.last_call.map(call),
        }
    }
}

impl DeliveryView {
    /// With what its message is called.
    fn named(mut self, briefs: &HashMap<MessageUid, MessageBrief>) -> Self {
        if let Some(MessageBrief { summary, .. }) = briefs.get(&self.message) {
            self.id =
                Some(summary.client_id.as_ref().map_or_else(|| summary.uid.to_string(), ToString::to_string));
            self.subject = Some(summary.subject.clone()).filter(|_| !summary.sensitive);
        }
        self
    }
}

/// These deliveries, with what their messages are called.
async fn named(
    app: &AppState,
    tenant: &TenantId,
    notifications: Vec<NotificationView>,
) -> Result<Vec<DeliveryView>, ApiError> {
    let mut uids: Vec<MessageUid> = notifications.iter().map(|one| one.key.uid).collect();
    uids.sort_unstable();
    uids.dedup();
    let briefs = app.store.briefs(tenant, &uids).await?;
    let briefs = briefs.into_iter().map(|brief| (brief.summary.uid, brief)).collect();
    Ok(notifications.into_iter().map(|one| DeliveryView::from(one).named(&briefs)).collect())
}

/// The position at which a page of deliveries ends.
pub(super) struct DeliveryPlace(pub(super) MessageUid, pub(super) i64);

impl fmt::Display for DeliveryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

impl FromStr for DeliveryPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (uid, seq) = text.split_once('/').ok_or(())?;
        Ok(Self(uid.parse().map_err(drop)?, seq.parse().map_err(drop)?))
    }
}

/// List a webhook's deliveries
///
/// Delivered and pending notifications, those of the newest messages first, each with its latest call.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/deliveries",
    operation_id = "listDeliveries",
    tag = "webhooks",
    params(
        ("id" = String, Path, description = "The webhook, or `client_sync`"),
        ("status" = Option<String>, Query, description = "Only those that are `pending`, `calling`, `waiting`, `acknowledged` or `dead`"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = DeliveryList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    NamedWebhook(id): NamedWebhook,
    uri: Uri,
) -> Result<Json<DeliveryList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let status = query.parse("status", |text| {
        let found = NotificationState::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or("must be pending, calling, waiting, acknowledged or dead")
    });
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let before = cursor.as_deref().map(pagination::read_cursor::<DeliveryPlace>).transpose()?;
    let tenant = &caller.tenant;
    find(&app, tenant, &id).await?;
    let before = before.map(|DeliveryPlace(uid, seq)| (uid, seq));
    let DeliveryPage { told: notifications, next } =
        app.store.deliveries(tenant, &id, status, before, limit).await?;
    let next_cursor = next.map(|(uid, seq)| pagination::write_cursor(&DeliveryPlace(uid, seq)));
    Ok(Json(DeliveryList { data: named(&app, tenant, notifications).await?, next_cursor }))
}

/// The delivery that `{id}/deliveries/{uid}/{sequence}` in the path names. A text that cannot be one is 404.
pub(crate) struct NamedDelivery {
    webhook: SubscriberId,
    uid: MessageUid,
    seq: i64,
}

impl<S: Send + Sync> FromRequestParts<S> for NamedDelivery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path((webhook, uid, seq)) =
            Path::<(String, String, String)>::from_request_parts(parts, state).await.map_err(|_| {
                ApiError::malformed("the names in the path cannot be read: use percent-encoded UTF-8")
            })?;
        let webhook = webhook.parse().map_err(|_| no_webhook(&webhook))?;
        match (uid.parse(), seq.parse()) {
            (Ok(uid), Ok(seq)) => Ok(Self { webhook, uid, seq }),
            _ => Err(no_delivery()),
        }
    }
}

fn no_delivery() -> ApiError {
    ApiError::not_found("there is no such delivery: give the message's uid and the event's sequence")
}

/// Repeat a delivery
///
/// For a notification that was acknowledged or given up. It is delivered as soon as possible, under the same
/// `webhook-id`. 409 while it is still pending, and while the webhook is inactive.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/deliveries/{uid}/{sequence}/resend",
    operation_id = "resendDelivery",
    tag = "webhooks",
    params(
        ("id" = String, Path, description = "The webhook, or `client_sync`"),
        ("uid" = String, Path, description = "The message's uid"),
        ("sequence" = i64, Path, description = "The event's position in the message's history"),
    ),
    responses((status = 202, description = "The delivery is repeated", body = DeliveryView))
)]
pub(crate) async fn resend(
    State(app): State<SharedState>,
    caller: Manager,
    NamedDelivery { webhook: id, uid, seq }: NamedDelivery,
) -> Result<(StatusCode, Json<DeliveryView>), ApiError> {
    let tenant = &caller.tenant;
    let webhook = find(&app, tenant, &id).await?;
    let key = NotificationKey { tenant: tenant.clone(), subscriber: id.clone(), uid, seq };
    let read_delivery = async || {
        let all = app.store.notifications(tenant, uid).await?;
        all.into_iter().find(|notification| notification.key == key).ok_or_else(no_delivery)
    };
    let state = read_delivery().await?.state;
    refuse_inactive(&webhook)?;
    if !app.store.notify_again(&key, app.clock.now()).await? {
        let state = state.as_str();
        return Err(ApiError::conflict(format!("this delivery is {state}: only what is over is sent again")));
    }
    tracing::info!(%tenant, webhook = %id, %uid, seq, "a notification is sent again");
    let shown = named(&app, tenant, vec![read_delivery().await?]).await?.pop().ok_or_else(no_delivery)?;
    Ok((StatusCode::ACCEPTED, Json(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_nothing_else_does() {
        let uid = MessageUid::from_bytes([7; 16]);
        let DeliveryPlace(read, seq) = DeliveryPlace(uid, 3).to_string().parse().unwrap();
        assert_eq!((read, seq), (uid, 3));
        for bad in ["", "x/1", "/1", &uid.to_string()] {
            assert!(bad.parse::<DeliveryPlace>().is_err(), "{bad}");
        }
    }
}
