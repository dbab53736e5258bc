//! `/v1/inbound`: mail that arrived in watched mailboxes, and what was done with it.

pub(crate) mod content;
pub(crate) mod operate;
pub(crate) mod raw;
pub(crate) mod replay_all;
pub(crate) mod view;

use axum::{Json, extract::State, http::Uri};
use bytes::Bytes;
use postway_domain::{InboundState, MessageUid, TenantId, id::MailboxId};
use postway_store::record::{InboundFilter, InboundRecord};

pub(crate) use self::view::{InboundList, InboundMailView, InboundSummary};
use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The kinds of inbound mail.
const KINDS: [&str; 8] =
    ["bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"];

/// The inbound mail that `{id}` in the path names. A text that is not a uid is 404.
pub(crate) struct NamedInbound(MessageUid);

path_parameter!(NamedInbound, "id", NamedInbound::parse);

impl NamedInbound {
    fn parse(given: &str) -> Result<Self, ApiError> {
        given.parse().map(Self).map_err(|_| no_mail(given))
    }
}

fn no_mail(given: &str) -> ApiError {
    let shown: String = given.chars().take(100).collect();
    ApiError::not_found(format!("there is no inbound mail `{shown}`"))
}

async fn find(app: &AppState, tenant: &TenantId, uid: MessageUid) -> Result<InboundRecord, ApiError> {
    app.store.inbound_one(tenant, uid).await?.ok_or_else(|| no_mail(&uid.to_string()))
}

/// The bytes of an inbound mail.
pub(crate) async fn bytes_of(app: &AppState, tenant: &TenantId, uid: MessageUid) -> Result<Bytes, ApiError> {
    let Some(body) = app.store.inbound_raw(tenant, uid).await? else {
        find(app, tenant, uid).await?;
        return Err(ApiError::not_found(format!(
            "inbound mail `{uid}` has no bytes here: it could not be read, or they are no longer kept"
        )));
    };
    app.load(tenant, body).await
}

/// List inbound mail
///
/// Newest first. A mail must match every filter. Unknown parameters are refused.
#[utoipa::path(
    get,
    path = "/v1/inbound",
    operation_id = "listInbound",
    tag = "inbound",
    params(
        ("mailbox" = Option<String>, Query, description = "Only those of this mailbox"),
        ("status" = Option<String>, Query, description = "Only those with this status: `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`"),
        ("kind" = Option<String>, Query, description = "Only those of this kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary`"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = InboundList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<InboundList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let filter = InboundFilter {
        mailbox: query.parse("mailbox", str::parse::<MailboxId>),
        state: query.parse("status", |word| {
            InboundState::from_word(word)
                .ok_or("must be received, routing, routed, no_match, gone, waiting or dead")
        }),
        kind: query.parse("kind", |kind| match KINDS.contains(&kind) {
            true => Ok(kind.to_owned()),
            false => Err(format!("must be one of {}", KINDS.join(", "))),
        }),
    };
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let before: Option<MessageUid> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    // One item more than requested shows whether there is a next page.
    let mut found = app.store.inbound(&caller.tenant, &filter, before, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.uid));
    Ok(Json(InboundList { data: found.into_iter().map(InboundSummary::from).collect(), next_cursor }))
}

/// Show an inbound mail
///
/// The mail with what it contained, what was done, and the status of the messages that were sent because of
/// it.
#[utoipa::path(
    get,
    path = "/v1/inbound/{id}",
    operation_id = "getInbound",
    tag = "inbound",
    params(("id" = String, Path, description = "The mail")),
    responses((status = 200, description = "The mail", body = InboundMailView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedInbound(uid): NamedInbound,
) -> Result<Json<InboundMailView>, ApiError> {
    find(&app, &caller.tenant, uid).await.map(|record| Json(record.into()))
}
