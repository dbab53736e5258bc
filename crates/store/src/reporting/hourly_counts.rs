//! Hourly counters of each account. They stay when the messages are removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{AccountId, EventKind, LaneId, TenantId, Time, id::BatchCode};

use crate::{
    error::StoreError,
    journal::{EventDetail, JournalEntry, JournalPage},
    record::HourlyCounts,
    sql::{
        SqlSession, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

const HOUR_MS: i64 = 60 * 60 * 1_000;

static LANES: MultiRow = MultiRow::new("SELECT id, account, batch FROM lane WHERE id IN (", 1, ")").wide();

macro_rules! statistic {
    ($end:literal) => {
        MultiRow::new(
            "INSERT INTO statistic (tenant, hour, account, accepted, sent, failed, invalid, deferred, bounced, complained, \
             suppressed, queue_ms) VALUES ",
            12,
            $end,
        )
    };
}
macro_rules! added {
    () => {
        statistic!(
            " ON CONFLICT (tenant, hour, account) DO UPDATE SET accepted = statistic.accepted + excluded.accepted, \
             sent = statistic.sent + excluded.sent, failed = statistic.failed + excluded.failed, \
             invalid = statistic.invalid + excluded.invalid, deferred = statistic.deferred + excluded.deferred, \
             bounced = statistic.bounced + excluded.bounced, complained = statistic.complained + excluded.complained, \
             suppressed = statistic.suppressed + excluded.suppressed, queue_ms = statistic.queue_ms + excluded.queue_ms"
        )
    };
}
static COUNT: MultiRowSql = MultiRowSql {
    sqlite: added!(),
    postgres: added!(),
    mysql: statistic!(
        " ON DUPLICATE KEY UPDATE accepted = accepted + VALUES(accepted), sent = sent + VALUES(sent), \
         failed = failed + VALUES(failed), invalid = invalid + VALUES(invalid), deferred = deferred + VALUES(deferred), \
         bounced = bounced + VALUES(bounced), complained = complained + VALUES(complained), \
         suppressed = suppressed + VALUES(suppressed), queue_ms = queue_ms + VALUES(queue_ms)"
    ),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![LANES.sample().into(), COUNT.sample()]
}

/// The hour in which something happened.
pub(crate) fn hour_of(at: Time) -> Time {
    Time::from_millis(at.as_millis().div_euclid(HOUR_MS) * HOUR_MS)
}

/// Adds an event to the counters of its hour.
pub(crate) fn count(counts: &mut HourlyCounts, entry: &JournalEntry, at: Time) {
    let counter = match (entry.kind, entry.detail) {
        (EventKind::Accepted, _) => &mut counts.accepted,
        (EventKind::Sent, _) | (EventKind::Resolved, EventDetail::ResolvedSent) => {
            // The first 48 bits of an id are the milliseconds of its message's acceptance.
            let [a, b, c, d, e, f, ..] = *entry.uid.as_bytes();
            let accepted_at = Time::from_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]));
            counts.queue_ms += i64::try_from(at.since(accepted_at).as_millis()).unwrap_or(0);
            &mut counts.sent
        }
        (EventKind::Failed, _) | (EventKind::Resolved, EventDetail::ResolvedFailed) => &mut counts.failed,
        (EventKind::Invalid, _) => &mut counts.invalid,
        (EventKind::Scheduled, EventDetail::Deferred) => &mut counts.deferred,
        (EventKind::Bounced, _) => &mut counts.bounced,
        (EventKind::Complained, _) => &mut counts.complained,
        (EventKind::Suppressed, _) => &mut counts.suppressed,
        _ => return,
    };
    *counter += 1;
}

/// The part of a lane by which its events are counted.
pub(crate) struct CountedLane {
    pub account: AccountId,
    pub batch: Option<BatchCode>,
}

/// The lanes of these pages.
pub(crate) async fn lanes_of(
    session: &mut dyn SqlSession,
    pages: &[(i64, TenantId, JournalPage)],
) -> Result<HashMap<LaneId, CountedLane>, StoreError> {
    let lanes: BTreeSet<LaneId> = pages.iter().flat_map(|(.., page)| page.lanes.iter().copied()).collect();
    let lanes: Vec<LaneId> = lanes.into_iter().collect();
    let mut found = HashMap::with_capacity(lanes.len());
    for (sql, run) in LANES.runs(&lanes) {
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes())).collect();
        for row in session.rows(sql.into(), ids).await? {
            let lane = CountedLane { account: row.parsed(1)?, batch: row.opt_parsed(2)? };
            found.insert(LaneId::from_bytes(row.id16(0)?), lane);
        }
    }
    Ok(found)
}

/// Adds the events of these pages to their hours.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    pages: &[(i64, TenantId, JournalPage)],
    lanes: &HashMap<LaneId, CountedLane>,
) -> Result<(), StoreError> {
    let mut hours: BTreeMap<(&TenantId, Time, &AccountId), HourlyCounts> = BTreeMap::new();
    for (_, tenant, page) in pages {
        for entry in &page.entries {
            if let Some(lane) = lanes.get(&page.lanes[usize::from(entry.lane)]) {
                count(hours.entry((tenant, hour_of(page.at), &lane.account)).or_default(), entry, page.at);
            }
        }
    }
    let hours: Vec<_> = hours.into_iter().filter(|(_, counts)| *counts != HourlyCounts::default()).collect();
    for (sql, run) in COUNT.runs(&hours) {
        let row = |((tenant, hour, account), counts): &((&TenantId, Time, &AccountId), HourlyCounts)| {
            values![
                tenant.as_str(),
                *hour,
                account.as_str(),
                counts.accepted,
                counts.sent,
                counts.failed,
                counts.invalid,
                counts.deferred,
                counts.bounced,
                counts.complained,
                counts.suppressed,
                counts.queue_ms,
            ]
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use postway_domain::MessageUid;

    use super::*;

    fn entry(kind: EventKind, detail: EventDetail) -> JournalEntry {
        let mut uid = [0; 16];
        uid[5] = 100;
        JournalEntry { uid: MessageUid::from_bytes(uid), seq: 3, kind, detail, lane: 0 }
    }

    #[test]
    fn the_time_in_the_queue_is_counted_from_the_id() {
        let mut counts = HourlyCounts::default();
        count(&mut counts, &entry(EventKind::Sent, EventDetail::None), Time::from_millis(350));
        count(&mut counts, &entry(EventKind::Resolved, EventDetail::ResolvedSent), Time::from_millis(90));
        count(&mut counts, &entry(EventKind::Scheduled, EventDetail::None), Time::from_millis(90));
        assert_eq!(counts, HourlyCounts { sent: 2, queue_ms: 250, ..HourlyCounts::default() });
        assert_eq!(hour_of(Time::from_millis(HOUR_MS + 5)), Time::from_millis(HOUR_MS));
    }
}
