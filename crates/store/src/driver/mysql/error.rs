//! What went wrong, from the driver's words into the port's.

use sqlx::mysql::MySqlDatabaseError;

use crate::error::StoreError;

/// A driver's error in the port's words.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => {
            let number = database.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number);
            match number {
                // Lock wait timeout, deadlock (and a failed certification on Galera), a failed one in a MySQL
                // group.
                Some(1205 | 1213 | 3101) => StoreError::Conflict(error.to_string()),
                // A statement that was over its time.
                Some(1969 | 3024) => StoreError::TooSlow(error.to_string()),
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

/// What an operator must correct in the address or on the server, and why; `None` if waiting may help.
pub(super) fn refusal(error: &sqlx::Error) -> Option<String> {
    let is_refused = match error {
        // A server that has forgotten the password asks for it encrypted, by TLS or by its own key; the
        // driver knows TLS.
        sqlx::Error::Configuration(why) if why.to_string().contains("RSA") => {
            let remedy = "its users' passwords travel encrypted only; switch TLS on there, and take ssl-mode=disabled \
                          out of the database URL";
            return Some(remedy.to_owned());
        }
        sqlx::Error::Configuration(_) => true,
        sqlx::Error::Database(database) => {
            match database.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number) {
                // No access to the database, wrong user or password, no such database, host not allowed,
                // unknown plugin.
                Some(1044 | 1045 | 1049 | 1130 | 1524 | 1698)
                // A password to be changed first, a locked user, a connection that must be encrypted.
                | Some(1820 | 1862 | 3118 | 3159 | 4151) => true,
                _ => false,
            }
        }
        _ => false,
    };
    is_refused.then(|| format!("{error}; check the database URL"))
}

/// Whether the server says by this number that it cannot serve now.
fn is_away(number: u16) -> bool {
    match number {
        // Disk full, out of memory, table full.
        1021 | 1037 | 1038 | 1041 | 1114
        // Too many connections, of all or of this user.
        | 1040 | 1203 | 1226
        // A commit that a Galera node could not replicate; a node that is not in the cluster; shutting down;
        // connection aborted or killed; cannot create a thread.
        | 1047 | 1180 | 1053 | 1077 | 1079 | 1135 | 1152 | 1158..=1161 | 1184 | 1927
        // MySQL's own: offline, not available, killed, a group that does not answer, silent for too long.
        | 3032 | 3100 | 3168 | 3169 | 4031
        // Statement interrupted.
        | 1317
        // Read-only.
        | 1290 | 1792 | 1836 => true,
        _ => false,
    }
}
