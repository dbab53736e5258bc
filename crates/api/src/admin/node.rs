//! `GET /v1/nodes`: the processes that share the database.

use axum::{Json, extract::State};
use postway_domain::Time;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Admin,
    http::{error::ApiError, pagination::ListPart},
    state::{AppState, SharedState},
};

/// A node.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeView {
    /// The id of this incarnation.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// The host and process.
    name: String,
    /// The address it listens on.
    address: String,
    /// The version of the program.
    version: String,
    /// `alive`, or `dead` when its heartbeat has not moved for ten seconds. Its work is then taken over, and
    /// it is removed from the list.
    status: &'static str,
    /// Whether this node is answering.
    is_self: bool,
    /// Whether it stores bodies over 128 KiB in a place that the answering node cannot read: `storage.url` is
    /// a folder that they do not share, and such mail waits for the node that accepted it.
    storage_apart: bool,
    /// When it started, by its own clock.
    #[schema(value_type = String, format = DateTime)]
    started_at: Time,
    /// Its last heartbeat, by its own clock.
    #[schema(value_type = String, format = DateTime)]
    last_beat_at: Time,
}

/// A list of nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// The nodes, the oldest first.
    data: Vec<NodeView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
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
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The nodes", body = NodeList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    _: Admin,
    part: ListPart,
) -> Result<Json<NodeList>, ApiError> {
    let (data, next_cursor) =
        part.select(all(&app).await?, |node| (node.started_at.as_millis(), node.id.clone()))?;
    Ok(Json(NodeList { data, next_cursor }))
}

/// All nodes, the oldest first.
pub(crate) async fn all(app: &AppState) -> Result<Vec<NodeView>, ApiError> {
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
