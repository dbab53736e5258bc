//! `GET /v1/nodes`: the processes that share the database.

use axum::{Json, extract::State};
use postway_domain::Time;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Admin,
    http::{error::ApiError, pagination::Part},
    state::{App, Shared},
};

/// A node.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeView {
    /// This life of it.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// Its host and process.
    name: String,
    /// Where it listens.
    address: String,
    /// The version of the program.
    version: String,
    /// `alive`, or `dead` when its heartbeat has not moved for ten seconds. Its work is then taken over and it is struck
    /// from the list.
    status: &'static str,
    /// Whether it is the one that answers.
    is_self: bool,
    /// Whether it keeps bodies over 128 KiB where the node that answers cannot read them: `storage.url` is a folder that
    /// they do not share, and such mail waits for the node that took it.
    storage_apart: bool,
    /// When it started, by its own clock.
    #[schema(value_type = String, format = DateTime)]
    started_at: Time,
    /// When it last said that it is alive, by its own clock.
    #[schema(value_type = String, format = DateTime)]
    last_beat_at: Time,
}

/// A list of nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// The oldest first.
    data: Vec<NodeView>,
    /// Give this as `cursor` for the next; null at the end.
    next_cursor: Option<String>,
}

/// List nodes
///
/// For the admin key. The oldest first.
#[utoipa::path(
    get,
    path = "/v1/nodes",
    operation_id = "listNodes",
    tag = "operations",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "The nodes", body = NodeList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    _: Admin,
    part: Part,
) -> Result<Json<NodeList>, ApiError> {
    let (data, next_cursor) =
        part.of(all(&app).await?, |node| (node.started_at.as_millis(), node.id.clone()))?;
    Ok(Json(NodeList { data, next_cursor }))
}

/// Every node, the oldest first.
pub(crate) async fn all(app: &App) -> Result<Vec<NodeView>, ApiError> {
    let nodes = app.store.nodes().await?.into_iter();
    let apart = app.roster.apart();
    let views = nodes.map(|node| NodeView {
        id: node.incarnation.to_string(),
        status: if app.roster.is_dead(node.incarnation) { "dead" } else { "alive" },
        is_self: node.incarnation == app.roster.me(),
        storage_apart: apart.contains(&node.incarnation),
        name: node.name,
        address: node.address,
        version: node.version,
        started_at: node.started_at,
        last_beat_at: node.beat_at,
    });
    Ok(views.collect())
}
