//! Hourly counters of each stream: its mail, the complaints and the readers who left. They stay
//! when the messages are removed.
//!
//! Only streams that exist are counted, so a tenant has at most as many rows in an hour as it may have
//! streams. Mail without a batch costs nothing here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{EventKind, LaneId, MailStream, TenantId, Time, id::StreamId};

use super::hourly_counts::{CountedLane, hour_of};
use crate::{
    error::StoreError,
    journal::{EventDetail, JournalEntry, JournalPage},
    record::StreamCounts,
    sql::{
        SqlSession,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

static EXISTING: MultiRow =
    MultiRow::of_pieces("", "SELECT tenant, id FROM stream WHERE tenant = ? AND id = ?", " UNION ALL ", "");

macro_rules! statistic {
    ($end:literal) => {
        MultiRow::new(
            "INSERT INTO stream_statistic (tenant, stream, hour, accepted, sent, failed, suppressed, delivered, bounced, \
             complained, unsubscribed, resubscribed) VALUES ",
            12,
            $end,
        )
    };
}
macro_rules! added {
    () => {
        statistic!(
            " ON CONFLICT (tenant, stream, hour) DO UPDATE SET accepted = stream_statistic.accepted + excluded.accepted, \
             sent = stream_statistic.sent + excluded.sent, failed = stream_statistic.failed + excluded.failed, \
             suppressed = stream_statistic.suppressed + excluded.suppressed, \
             delivered = stream_statistic.delivered + excluded.delivered, \
             bounced = stream_statistic.bounced + excluded.bounced, \
             complained = stream_statistic.complained + excluded.complained, \
             unsubscribed = stream_statistic.unsubscribed + excluded.unsubscribed, \
             resubscribed = stream_statistic.resubscribed + excluded.resubscribed"
        )
    };
}
static COUNT: MultiRowSql = MultiRowSql {
    sqlite: added!(),
    postgres: added!(),
    mysql: statistic!(
        " ON DUPLICATE KEY UPDATE accepted = accepted + VALUES(accepted), sent = sent + VALUES(sent), \
         failed = failed + VALUES(failed), suppressed = suppressed + VALUES(suppressed), \
         delivered = delivered + VALUES(delivered), bounced = bounced + VALUES(bounced), \
         complained = complained + VALUES(complained), unsubscribed = unsubscribed + VALUES(unsubscribed), \
         resubscribed = resubscribed + VALUES(resubscribed)"
    ),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![EXISTING.sample().into(), COUNT.sample()]
}

/// Adds an event to the counters of its hour.
pub(crate) fn count(counts: &mut StreamCounts, entry: &JournalEntry) {
    let counter = match (entry.kind, entry.detail) {
        (EventKind::Accepted, _) => &mut counts.accepted,
        (EventKind::Sent, _) | (EventKind::Resolved, EventDetail::ResolvedSent) => &mut counts.sent,
        (EventKind::Failed, _) | (EventKind::Resolved, EventDetail::ResolvedFailed) => &mut counts.failed,
        (EventKind::Suppressed, _) => &mut counts.suppressed,
        (EventKind::Delivered, _) => &mut counts.delivered,
        (EventKind::Bounced, _) => &mut counts.bounced,
        (EventKind::Complained, _) => &mut counts.complained,
        (EventKind::Unsubscribed, _) => &mut counts.unsubscribed,
        (EventKind::Resubscribed, _) => &mut counts.resubscribed,
        _ => return,
    };
    *counter += 1;
}

/// Adds the events of these pages to the hours of their streams.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    pages: &[(i64, TenantId, JournalPage)],
    lanes: &HashMap<LaneId, CountedLane>,
) -> Result<(), StoreError> {
    let mut hours: BTreeMap<(&TenantId, StreamId, Time), StreamCounts> = BTreeMap::new();
    for (_, tenant, page) in pages {
        let batch_of = |lane: &LaneId| lanes.get(lane).and_then(|lane| lane.batch.as_ref());
        let streams: Vec<Option<StreamId>> =
            page.lanes.iter().map(|lane| batch_of(lane).and_then(MailStream::of_batch)).collect();
        for entry in &page.entries {
            if let Some(stream) = &streams[usize::from(entry.lane)] {
                count(hours.entry((tenant, stream.clone(), hour_of(page.at))).or_default(), entry);
            }
        }
    }
    hours.retain(|_, counts| *counts != StreamCounts::default());
    if hours.is_empty() {
        return Ok(());
    }
    let named: BTreeSet<(&TenantId, &StreamId)> =
        hours.keys().map(|(tenant, stream, _)| (*tenant, stream)).collect();
    let named: Vec<(&TenantId, &StreamId)> = named.into_iter().collect();
    let mut existing: BTreeSet<(TenantId, StreamId)> = BTreeSet::new();
    for (sql, run) in EXISTING.runs(&named) {
        let values = run.iter().flat_map(|(tenant, id)| values![tenant.as_str(), id.as_str()]).collect();
        for row in session.rows(sql.into(), values).await? {
            existing.insert((row.parsed(0)?, row.parsed(1)?));
        }
    }
    let is_there = |((tenant, stream, _), _): &((&TenantId, StreamId, Time), StreamCounts)| {
        existing.contains(&((*tenant).clone(), stream.clone()))
    };
    let hours: Vec<_> = hours.into_iter().filter(is_there).collect();
    for (sql, run) in COUNT.runs(&hours) {
        let row = |((tenant, stream, hour), counts): &((&TenantId, StreamId, Time), StreamCounts)| {
            values![
                tenant.as_str(),
                stream.as_str(),
                *hour,
                counts.accepted,
                counts.sent,
                counts.failed,
                counts.suppressed,
                counts.delivered,
                counts.bounced,
                counts.complained,
                counts.unsubscribed,
                counts.resubscribed,
            ]
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}
