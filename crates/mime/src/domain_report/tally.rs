//! Sums up the counts of a report by source and result, within a maximum of both.

use std::collections::BTreeMap;

use postway_domain::domain_report::DomainReportLine;

use super::{COUNT_MAX, LINES_MAX};

/// The counts so far.
#[derive(Default)]
pub(super) struct ReportTally {
    counts: BTreeMap<(String, i64), i64>,
}

impl ReportTally {
    /// Adds a count. A source that finds no room is counted with the others that have none.
    pub(super) fn add(&mut self, source: String, result: i64, count: i64) {
        if count <= 0 {
            return;
        }
        let place = (source, result);
        let is_known = self.counts.contains_key(&place);
        let place = if is_known || self.counts.len() < LINES_MAX { place } else { (String::new(), result) };
        let sum = self.counts.entry(place).or_default();
        *sum = sum.saturating_add(count).min(COUNT_MAX);
    }

    /// The lines, in their order.
    pub(super) fn into_lines(self) -> Vec<DomainReportLine> {
        let line = |((source, result), count)| DomainReportLine { source, result, count };
        self.counts.into_iter().map(line).collect()
    }
}
