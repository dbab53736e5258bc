//! Whether a server's database is in use: whether registered nodes move their heartbeat counters.

use postway_domain::liveness::{BEAT_EVERY, DEAD_AFTER};
use tokio::time::{Instant, sleep};

use super::{ColumnKind, CopyConnection, CopyDialect, TransferError, Value};

const NODES: &str = "SELECT incarnation, name, beat FROM node";

/// Refuses a database in use. A node that stopped is not registered any more; one that died is, and is
/// watched until that is certain.
pub(super) async fn check(database: &mut dyn CopyConnection) -> Result<(), TransferError> {
    match database.dialect() {
        // A file is locked by the one process that uses it.
        CopyDialect::Sqlite => return Ok(()),
        CopyDialect::Postgres | CopyDialect::Mysql => {}
    }
    let kinds = [ColumnKind::Bytes, ColumnKind::Text, ColumnKind::Int];
    let (started, first) = (Instant::now(), database.rows(NODES.to_owned(), Vec::new(), &kinds).await?);
    let mut seen = first.clone();
    while !seen.is_empty() && started.elapsed() <= DEAD_AFTER {
        sleep(BEAT_EVERY).await;
        seen = database.rows(NODES.to_owned(), Vec::new(), &kinds).await?;
        if let Some(alive) = seen.iter().find(|row| !first.contains(row)) {
            let name = alive.get(1).and_then(Value::as_text).unwrap_or_default().to_owned();
            return Err(TransferError::InUse { role: database.role(), node: name });
        }
    }
    Ok(())
}
