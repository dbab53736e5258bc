//! What went wrong, from the driver's words into the port's.

use sqlx::mysql::MySqlDatabaseError;

use crate::error::StoreError;

/// A driver's error in the port's words.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => {
            let number = database.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
            match number {
                // Lock wait timeout, deadlock (and a failed certification on Galera).
                Some(1205 | 1213) => StoreError::Conflict(error.to_string()),
                Some(number) if is_away(number) => StoreError::Unavailable(error.to_string()),
                _ => StoreError::Unexpected(error.to_string()),
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreError::Unavailable(error.to_string()),
        _ => StoreError::Unexpected(error.to_string()),
    }
}

/// Whether somebody must correct the address or the server's grants: waiting does not help.
pub(super) fn is_refused(error: &sqlx::Error) -> bool {
    let number = match error {
        sqlx::Error::Configuration(_) => return true,
        sqlx::Error::Database(database) => database.try_downcast_ref::<MySqlDatabaseError>(),
        _ => None,
    };
    // No access to the database, wrong user or password, no such database, host not allowed, unknown plugin.
    matches!(number.map(MySqlDatabaseError::number), Some(1044 | 1045 | 1049 | 1130 | 1524 | 1698))
}

/// Whether the server says by this number that it cannot serve now.
fn is_away(number: u16) -> bool {
    match number {
        // Disk full, out of memory, table full.
        1021 | 1037 | 1038 | 1041 | 1114
        // Too many connections, of all or of this user.
        | 1040 | 1203 | 1226
        // A commit that a Galera node could not replicate; a node that is not in the cluster; shutting down; connection aborted or killed; cannot create a thread.
        | 1047 | 1180 | 1053 | 1077 | 1079 | 1135 | 1152 | 1158..=1161 | 1184 | 1927
        // Statement interrupted, or over its time.
        | 1317 | 1969 | 3024
        // Read-only.
        | 1290 | 1792 | 1836 => true,
        _ => false,
    }
}
