//! What a database says about itself, for operators. Nothing here is needed to run.

use postway_domain::Time;

use crate::sql::durability::DurabilityRisk;

/// Facts about a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its version text.
    pub version: String,
    /// Its clock; `None` if it uses the clock of this machine.
    pub at: Option<Time>,
    /// Its size.
    pub bytes: u64,
    /// Its settings that can lose acknowledged writes.
    pub risks: Vec<DurabilityRisk>,
}

impl ServerInfo {
    pub(crate) fn new(version: String, at_ms: Option<i64>, bytes: i64) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        Self { version, at: at_ms.map(Time::from_millis), bytes, risks: Vec::new() }
    }
}
