//! Errors that prevent reading an old system at all.

/// The old system cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MovingError {
    /// The address cannot be parsed.
    #[error("{0}")]
    Address(String),
    /// The file does not exist.
    #[error("there is no SQLite file {0}: name the one that the old system uses")]
    NoFile(String),
    /// The connection failed.
    #[error("cannot connect to {database}: {reason}")]
    Connect {
        /// Its address, without the password.
        database: String,
        /// The driver's message.
        reason: String,
    },
    /// A query failed.
    #[error("cannot read {table}: {reason}")]
    Read {
        /// The table that was read.
        table: String,
        /// The database's message.
        reason: String,
    },
    /// An option is missing or wrong.
    #[error("{0}")]
    Option(String),
}
