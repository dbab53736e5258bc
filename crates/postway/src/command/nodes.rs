//! `postway nodes`: the processes that share the database. Needs the admin key.

use super::Session;
use crate::cli::failure::Failure;
use crate::cli::output::list;
use crate::cli::pages::row;

pub async fn run(session: &Session) -> Result<(), Failure> {
    let nodes = session.client()?.get(&["v1", "nodes"], &[]).await?;
    session.output.show(&nodes, |output, nodes| {
        let columns = ["name", "address", "version", "status", "is_self", "started_at", "last_beat_at", "id"];
        output.table(&columns, list(nodes, "data").iter().map(|node| row(node, &columns)))
    })
}
