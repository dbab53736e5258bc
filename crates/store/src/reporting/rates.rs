//! Counts of the last hour in ten-second intervals, for rates and charts. They are counted with the hours,
//! and cost a row for each tenant of a transaction, however many messages it has.
//!
//! A little more than an hour is kept, in slots that are reused in turn. A reused slot drops its old counts;
//! counts that come so late that their slot was reused are dropped.

use std::collections::BTreeMap;

use postway_domain::{TenantId, Time};

use super::hourly_counts::count;
use crate::{
    error::StoreError,
    journal::JournalPage,
    record::{HourlyCounts, SendingRate},
    sql::{
        Row, SqlSession, SqlText,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The slots of a tenant: an hour has 360, and the first minute of a chart must be complete.
const SLOTS: i64 = 400;
const _: () = assert!(SLOTS * SendingRate::LASTS_MS > 61 * 60 * 1_000);

macro_rules! insert {
    ($end:literal) => {
        MultiRow::new("INSERT INTO pace (tenant, slot, at, accepted, sent, failed) VALUES ", 6, $end)
    };
}
macro_rules! added {
    () => {
        insert!(
            " ON CONFLICT (tenant, slot) DO UPDATE SET \
             accepted = CASE WHEN pace.at = excluded.at THEN pace.accepted + excluded.accepted \
             WHEN pace.at < excluded.at THEN excluded.accepted ELSE pace.accepted END, \
             sent = CASE WHEN pace.at = excluded.at THEN pace.sent + excluded.sent \
             WHEN pace.at < excluded.at THEN excluded.sent ELSE pace.sent END, \
             failed = CASE WHEN pace.at = excluded.at THEN pace.failed + excluded.failed \
             WHEN pace.at < excluded.at THEN excluded.failed ELSE pace.failed END, \
             at = CASE WHEN pace.at < excluded.at THEN excluded.at ELSE pace.at END"
        )
    };
}
/// MySQL assigns from left to right, so the time comes last.
static ADD: MultiRowSql = MultiRowSql {
    sqlite: added!(),
    postgres: added!(),
    mysql: insert!(
        " ON DUPLICATE KEY UPDATE accepted = CASE WHEN at = VALUES(at) THEN accepted + VALUES(accepted) \
         WHEN at < VALUES(at) THEN VALUES(accepted) ELSE accepted END, \
         sent = CASE WHEN at = VALUES(at) THEN sent + VALUES(sent) WHEN at < VALUES(at) THEN VALUES(sent) ELSE sent END, \
         failed = CASE WHEN at = VALUES(at) THEN failed + VALUES(failed) \
         WHEN at < VALUES(at) THEN VALUES(failed) ELSE failed END, at = GREATEST(at, VALUES(at))"
    ),
};
const LIST: SqlText =
    SqlText::same("SELECT at, accepted, sent, failed FROM pace WHERE tenant = ? AND at >= ? ORDER BY at");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![ADD.sample(), LIST]
}

fn slot_of(at: Time) -> i64 {
    at.as_millis().div_euclid(SendingRate::LASTS_MS).rem_euclid(SLOTS)
}

/// The counts of pages by tenant and slot; of two times in one slot the later.
fn slots(pages: &[(i64, TenantId, JournalPage)]) -> BTreeMap<(&TenantId, i64), SendingRate> {
    let mut slots: BTreeMap<(&TenantId, i64), SendingRate> = BTreeMap::new();
    for (_, tenant, page) in pages {
        let mut counts = HourlyCounts::default();
        for entry in &page.entries {
            count(&mut counts, entry, page.at);
        }
        let HourlyCounts { accepted, sent, failed, .. } = counts;
        if accepted + sent + failed == 0 {
            continue;
        }
        let page = SendingRate { at: SendingRate::begin_of(page.at), accepted, sent, failed };
        slots.entry((tenant, slot_of(page.at))).or_insert(SendingRate::empty(page.at)).add(page);
    }
    slots
}

/// Adds the counts of these pages.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    pages: &[(i64, TenantId, JournalPage)],
) -> Result<(), StoreError> {
    let slots: Vec<((&TenantId, i64), SendingRate)> = slots(pages).into_iter().collect();
    for (sql, run) in ADD.runs(&slots) {
        let row = |((tenant, slot), pace): &((&TenantId, i64), SendingRate)| {
            values![tenant.as_str(), *slot, pace.at, pace.accepted, pace.sent, pace.failed]
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

/// A tenant's intervals from this time on, in order.
pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    since: Time,
) -> Result<Vec<SendingRate>, StoreError> {
    let read = |row: &Row| {
        Ok(SendingRate { at: row.time(0)?, accepted: row.int(1)?, sent: row.int(2)?, failed: row.int(3)? })
    };
    session.rows(LIST, values![tenant.as_str(), since]).await?.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_round_after_more_than_an_hour() {
        let at = |seconds: i64| Time::from_millis(1_700_000_000_000 + seconds * 1_000);
        assert_eq!(slot_of(at(0)), slot_of(at(9)));
        assert_ne!(slot_of(at(0)), slot_of(at(10)));
        assert_eq!(slot_of(at(0)), slot_of(at(SLOTS * 10)));
    }
}
