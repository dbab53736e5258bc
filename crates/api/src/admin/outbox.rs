//! `GET /v1/outbox`: how the databases stand that mail is taken from.

use axum::{Json, extract::State};
use postway_domain::Time;
use postway_intake::outbox::SourceStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::{error::ApiError, pagination::Part},
    state::Shared,
};

/// A source.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OutboxSource)]
pub(crate) struct SourceView {
    /// Its name.
    #[schema(example = "shop")]
    name: String,
    /// Whose mail it is.
    tenant: String,
    /// `generic`, or `accounts`.
    kind: &'static str,
    /// Where it is, without its password; for the admin key.
    database: Option<String>,
    /// How it stands on the node that answers: `starting`, `serving`, `elsewhere` (another node serves it), `away` or
    /// `stopped`.
    status: &'static str,
    /// The node that serves it.
    holder: Option<String>,
    /// Rows that wait, counted up to ten thousand; unknown while the source is away.
    waiting: Option<u32>,
    /// How long the oldest of them waits, by the source's clock.
    lag_seconds: Option<f64>,
    /// Rows that the node that answers has accepted since it started.
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
pub(crate) struct SourceList {
    /// By tenant and name.
    data: Vec<SourceView>,
    /// Give this as `cursor` for the next; null at the end.
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
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "The sources", body = SourceList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    part: Part,
) -> Result<Json<SourceList>, ApiError> {
    let is_admin = caller.actor.is_admin();
    let whose = (!is_admin).then_some(&caller.tenant);
    let found = app.outbox.status(&*app.store, whose).await;
    let data: Vec<SourceView> = found.into_iter().map(|one| view(one, is_admin)).collect();
    let (data, next_cursor) = part.of(data, |source| (source.tenant.clone(), source.name.clone()))?;
    Ok(Json(SourceList { data, next_cursor }))
}

fn view(source: SourceStatus, is_admin: bool) -> SourceView {
    SourceView {
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
        // It may name hosts.
        error: source.error.filter(|_| is_admin),
    }
}
