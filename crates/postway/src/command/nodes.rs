//! `postway nodes`: the processes that share the database. Needs the admin key.

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::output::list;
use crate::cli::pages::row;

pub async fn run(context: &CommandContext) -> Result<(), CommandFailure> {
    let nodes = context.client()?.get(&["v1", "nodes"], &[]).await?;
    context.output.show(&nodes, |output, nodes| {
        let columns = ["name", "address", "version", "status", "is_self", "started_at", "last_beat_at", "id"];
        output.table(&columns, list(nodes, "data").iter().map(|node| row(node, &columns)))
    })
}
