//! `GET /v1/outbox`: the state of the databases that mail is taken from.

use axum::{Json, extract::State};
use postway_domain::Time;
use postway_intake::outbox::SourceStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::{error::ApiError, pagination::ListPart},
    state::SharedState,
};

/// An outbox source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutboxSource)]
pub(crate) struct OutboxSourceView {
    /// Its name.
    #[schema(example = "shop")]
    name: String,
    /// The tenant whose mail it contains.
    tenant: String,
    /// `generic`, or `accounts`.
    kind: &'static str,
    /// The database's URL, without its password; for the admin key.
    database: Option<String>,
    /// Its state on the answering node: `starting`, `serving`, `elsewhere` (another node serves it), `away`
    /// or `stopped`.
    status: &'static str,
    /// The node that serves it.
    holder: Option<String>,
    /// Waiting rows, counted up to 10,000; unknown while the source is away.
    waiting: Option<u32>,
    /// The age of the oldest waiting row, by the source's clock.
    lag_seconds: Option<f64>,
    /// Rows that the answering node has accepted since it started.
    accepted: u64,
    /// Rows that it has refused.
    invalid: u64,
    /// When it last took rows.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_taken_at: Option<Time>,
    /// What is wrong; for the admin key.
    error: Option<String>,
}

/// A list of sources.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutboxSourceList)]
pub(crate) struct OutboxSourceList {
    /// The sources, by tenant and name.
    data: Vec<OutboxSourceView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// List outbox sources
///
/// All of them for the admin key, a tenant's own for its keys.
#[utoipa::path(
    get,
    path = "/v1/outbox",
    operation_id = "listOutboxSources",
    tag = "outbox",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The sources", body = OutboxSourceList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    part: ListPart,
) -> Result<Json<OutboxSourceList>, ApiError> {
    let is_admin = caller.actor.is_admin();
    let whose = (!is_admin).then_some(&caller.tenant);
    let found = app.outbox.status(&*app.store, whose).await;
    let data: Vec<OutboxSourceView> = found.into_iter().map(|one| view(one, is_admin)).collect();
    let (data, next_cursor) = part.select(data, |source| (source.tenant.clone(), source.name.clone()))?;
    Ok(Json(OutboxSourceList { data, next_cursor }))
}

fn view(source: SourceStatus, is_admin: bool) -> OutboxSourceView {
    OutboxSourceView {
        name: source.name,
        tenant: source.tenant.to_string(),
        kind: source.kind,
        database: is_admin.then_some(source.database),
        status: source.standing.as_str(),
        holder: source.holder.map(|holder| holder.to_string()),
        waiting: source.waiting,
        lag_seconds: source.lag_seconds.map(|seconds| (seconds * 1e3).round() / 1e3),
        accepted: source.accepted,
        invalid: source.invalid,
        last_taken_at: source.last_taken_at,
        // The error may name hosts.
        error: source.error.filter(|_| is_admin),
    }
}
