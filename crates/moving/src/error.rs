//! Why an old system cannot be read at all.

/// The old system cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MovingError {
    /// The address is none.
    #[error("{0}")]
    Address(String),
    /// There is no such file.
    #[error("there is no SQLite file {0}: name the one that the old system uses")]
    NoFile(String),
    /// It cannot be connected to.
    #[error("cannot connect to {database}: {reason}")]
    Connect {
        /// Which, without its password.
        database: String,
        /// What the driver says.
        reason: String,
    },
    /// It stopped answering, or refuses to be read.
    #[error("cannot read {table}: {reason}")]
    Read {
        /// What was read.
        table: String,
        /// What the database says.
        reason: String,
    },
    /// The options do not fit.
    #[error("{0}")]
    Option(String),
}
