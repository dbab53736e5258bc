//! What a database says of itself, for whoever looks after it. Nothing here is needed to run.

use postway_domain::Time;

use crate::sql::durability::DurabilityRisk;

/// A database, as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its version, in its own words.
    pub version: String,
    /// What its clock says; none where it has the clock of this machine.
    pub at: Option<Time>,
    /// How large it is.
    pub bytes: u64,
    /// Settings with which what it acknowledged can be lost.
    pub risks: Vec<DurabilityRisk>,
}

impl Facts {
    pub(crate) fn new(version: String, at_ms: Option<i64>, bytes: i64) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        Self { version, at: at_ms.map(Time::from_millis), bytes, risks: Vec::new() }
    }
}
