//! Database server settings that can lose acknowledged writes. The store does not depend on them: it can only
//! warn.

use std::sync::{PoisonError, RwLock};

/// A setting that risks acknowledged writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurabilityRisk {
    /// Its name.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// The value it should have.
    pub wanted: &'static str,
    /// When mail can be lost.
    pub loses_at: LossMoment,
}

/// The event that can lose acknowledged mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossMoment {
    /// When the database's process or its machine dies.
    Crash,
    /// When a replica takes over from a server that died.
    Failover,
}

impl DurabilityRisk {
    /// What to do, and why.
    pub fn advice(&self) -> String {
        let when = match self.loses_at {
            LossMoment::Crash => "its machine loses power, or the server is killed",
            LossMoment::Failover => "a replica takes over from a server that crashed",
        };
        format!("set {} = {}: mail that was acknowledged can be lost when {when}", self.setting, self.wanted)
    }

    /// The risks in these settings of PostgreSQL. How a commit is waited for is not among them: sessions set
    /// that themselves.
    pub(crate) fn of_postgres(fsync: &str, full_page_writes: &str) -> Vec<Self> {
        let settings = [("fsync", fsync), ("full_page_writes", full_page_writes)];
        let risk = |(setting, value): (&'static str, &str)| Self {
            setting,
            value: value.to_owned(),
            wanted: "on",
            loses_at: LossMoment::Crash,
        };
        settings.into_iter().filter(|(_, value)| *value == "off").map(risk).collect()
    }

    /// The risks in these settings of MySQL and MariaDB. Replicas are fed from the binary log, if there is
    /// one.
    pub(crate) fn of_mysql(flush_log_at_commit: i64, sync_binlog: i64, has_binlog: bool) -> Vec<Self> {
        let risk =
            |setting, value: i64, loses_at| Self { setting, value: value.to_string(), wanted: "1", loses_at };
        let mut risks = Vec::new();
        // 3 is MariaDB's, and syncs more often than 1.
        if !matches!(flush_log_at_commit, 1 | 3) {
            risks.push(risk("innodb_flush_log_at_trx_commit", flush_log_at_commit, LossMoment::Crash));
        }
        if has_binlog && sync_binlog != 1 {
            risks.push(risk("sync_binlog", sync_binlog, LossMoment::Failover));
        }
        risks
    }

    /// Logs the risk at the appropriate level.
    pub(crate) fn tell(&self) {
        let (setting, value, advice) = (self.setting, &self.value, self.advice());
        match self.loses_at {
            LossMoment::Crash => {
                tracing::error!(setting, value, advice, "the database does not make commits durable");
            }
            LossMoment::Failover => {
                tracing::warn!(setting, value, advice, "the database's replicas may miss commits");
            }
        }
    }
}

/// The known risks of a server's settings: at opening, or at the last review, because another server may have
/// taken over.
pub(crate) struct DurabilityWatch(RwLock<Vec<DurabilityRisk>>);

impl DurabilityWatch {
    /// Starts with the risks found at opening, and logs them.
    pub fn new(risks: Vec<DurabilityRisk>) -> Self {
        risks.iter().for_each(DurabilityRisk::tell);
        Self(RwLock::new(risks))
    }

    /// The risks found last.
    pub fn risks(&self) -> Vec<DurabilityRisk> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the risks found now, logs new ones, and returns those.
    pub fn note(&self, found: Vec<DurabilityRisk>) -> Vec<DurabilityRisk> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<DurabilityRisk> = found.iter().filter(|risk| !known.contains(risk)).cloned().collect();
        new.iter().for_each(DurabilityRisk::tell);
        if found.is_empty() && !known.is_empty() {
            tracing::info!("the database makes commits durable now");
        }
        *known = found;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarized(risks: &[DurabilityRisk]) -> Vec<(&str, &str, LossMoment)> {
        risks.iter().map(|risk| (risk.setting, risk.value.as_str(), risk.loses_at)).collect()
    }

    #[test]
    fn a_server_that_took_over_with_worse_settings_is_told_once() {
        let watch = DurabilityWatch::new(DurabilityRisk::of_postgres("on", "on"));
        assert!(watch.risks().is_empty());
        let worse = DurabilityRisk::of_postgres("off", "on");
        assert_eq!(watch.note(worse.clone()), worse);
        assert_eq!(watch.risks(), worse);
        assert!(watch.note(worse).is_empty(), "it was reported before");
        watch.note(Vec::new());
        assert!(watch.risks().is_empty(), "somebody has set it right");
    }

    #[test]
    fn settings_that_lose_commits_are_told() {
        assert!(DurabilityRisk::of_postgres("on", "on").is_empty());
        let both = DurabilityRisk::of_postgres("off", "off");
        let crash = LossMoment::Crash;
        assert_eq!(summarized(&both), [("fsync", "off", crash), ("full_page_writes", "off", crash)]);
        assert!(both[0].advice().starts_with("set fsync = on: "));
        for (flush, sync_binlog, has_binlog) in [(1, 0, false), (1, 1, true), (3, 1, true)] {
            assert!(DurabilityRisk::of_mysql(flush, sync_binlog, has_binlog).is_empty());
        }
        let risks = DurabilityRisk::of_mysql(2, 0, true);
        let flush = ("innodb_flush_log_at_trx_commit", "2", crash);
        assert_eq!(summarized(&risks), [flush, ("sync_binlog", "0", LossMoment::Failover)]);
    }
}
