//! Outcomes and notification progress of many messages, for lists: read together, and each message by its id
//! alone.
//!
//! The cost does not depend on the number of messages in the store, and little on the recipients and events
//! of one: databases return one row for each outcome and for each subscriber. The statements leave no other
//! plan than to look up every id.

use std::collections::HashMap;

use postway_domain::{EventKind, MessageEvent, MessageUid, RecipientStatus, TenantId};

use crate::{
    error::StoreError,
    record::{MessageOutcomes, NotificationProgress, NotificationState, OutcomeView, SubscriberProgress},
    sql::{
        Row, SqlSession, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

macro_rules! outcomes {
    ($table:literal) => {
        MultiRow::new(
            concat!(
                "SELECT r.uid, r.outcome, MAX(CASE WHEN r.bounce IS NOT NULL THEN r.position END) FROM ",
                $table,
                " WHERE r.outcome + 0 IS NOT NULL AND (SELECT m.tenant FROM message m WHERE m.uid = r.uid) = ? AND r.uid IN ("
            ),
            1,
            ") GROUP BY r.uid, r.outcome",
        )
    };
}
/// The outcomes of each message, and for each the last position with a bounce. The condition is hidden from
/// planners, because an index of all outcomes begins with it.
pub(crate) static OUTCOMES: MultiRowSql = MultiRowSql {
    sqlite: outcomes!("recipient r"),
    postgres: outcomes!("recipient r"),
    mysql: outcomes!("recipient r FORCE INDEX (PRIMARY)"),
};
macro_rules! refused {
    ($integer:literal, $table:literal) => {
        MultiRow::new(
            concat!(
                "SELECT r.uid, CAST(COUNT(*) AS ",
                $integer,
                ") FROM ",
                $table,
                " WHERE r.status = 2 AND (SELECT m.tenant FROM message m WHERE m.uid = r.uid) = ? AND r.uid IN ("
            ),
            1,
            ") GROUP BY r.uid",
        )
    };
}
/// The number of recipients of each message that were permanently refused (`RecipientStatus::Failed`).
pub(crate) static REFUSED: MultiRowSql = MultiRowSql {
    sqlite: refused!("BIGINT", "recipient r"),
    postgres: refused!("BIGINT", "recipient r"),
    mysql: refused!("SIGNED", "recipient r FORCE INDEX (PRIMARY)"),
};
const _: () = assert!(RecipientStatus::Failed as i64 == 2);
pub(crate) static BOUNCES: MultiRow = MultiRow::of_pieces(
    "",
    "SELECT uid, position, bounce FROM recipient WHERE uid = ? AND position = ?",
    " UNION ALL ",
    "",
);

macro_rules! progress {
    ($table:literal, $tenant:literal) => {
        MultiRow::new(
            concat!(
                "SELECT n.uid, n.subscriber, MAX(n.seq), MIN(n.state), MAX(COALESCE(n.settled_at, n.created_at)), \
                 MIN(CASE WHEN n.kind = 19 THEN n.state END), \
                 MAX(CASE WHEN n.kind = 19 THEN COALESCE(n.settled_at, n.created_at) END) FROM ",
                $table,
                " WHERE ",
                $tenant,
                " = ? AND n.uid IN ("
            ),
            1,
            ") GROUP BY n.uid, n.subscriber",
        )
    };
}
/// The tenant is hidden from planners, because another index, of all notifications, begins with it.
pub(crate) static TOLD: MultiRowSql = MultiRowSql {
    sqlite: progress!("notification n", "n.tenant || ''"),
    postgres: progress!("notification n", "n.tenant || ''"),
    mysql: progress!("notification n FORCE INDEX (notification_message)", "n.tenant"),
};

/// The latest event that has a name for subscribers.
macro_rules! latest {
    ($column:literal) => {
        concat!(
            "(SELECT e.",
            $column,
            " FROM event e WHERE e.uid = m.uid AND e.kind NOT IN (2, 4, 5, 6, 27, 28, 32) ORDER BY e.seq DESC LIMIT 1)"
        )
    };
}
macro_rules! news {
    ($table:literal, $tenant:literal) => {
        MultiRow::new(
            concat!(
                "SELECT m.uid, ",
                latest!("seq"),
                ", ",
                latest!("at"),
                ", ",
                latest!("kind"),
                " FROM ",
                $table,
                " WHERE ",
                $tenant,
                " = ? AND m.uid IN ("
            ),
            1,
            ")",
        )
    };
}
pub(crate) static NEWS: MultiRowSql = MultiRowSql {
    sqlite: news!("message m", "m.tenant || ''"),
    postgres: news!("message m", "m.tenant || ''"),
    mysql: news!("message m FORCE INDEX (PRIMARY)", "m.tenant"),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![OUTCOMES.sample(), REFUSED.sample(), BOUNCES.sample().into(), TOLD.sample(), NEWS.sample()]
}

/// The outcomes and progress of these messages; those without any are left out.
pub(crate) async fn fates(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageOutcomes>, StoreError> {
    let outcomes = outcomes(session, tenant, uids).await?;
    let mut progress = Vec::new();
    for (sql, run) in TOLD.runs(uids) {
        for row in session.rows(sql, asked(tenant, run)).await? {
            let one = SubscriberProgress {
                subscriber: row.parsed(1)?,
                seq: row.int(2)?,
                all: telling(&row, 3)?,
                bounces: telling(&row, 5)?,
            };
            progress.push((read_uid(&row)?, one));
        }
    }
    Ok(MessageOutcomes::gather(outcomes, progress))
}

/// The number of permanently refused recipients of these messages; those without any are left out.
pub(crate) async fn refused(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<(MessageUid, i64)>, StoreError> {
    let mut refused = Vec::new();
    for (sql, run) in REFUSED.runs(uids) {
        for row in session.rows(sql, asked(tenant, run)).await? {
            refused.push((read_uid(&row)?, row.int(1)?));
        }
    }
    Ok(refused)
}

async fn outcomes(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<(MessageUid, OutcomeView)>, StoreError> {
    let (mut found, mut places) = (Vec::new(), Vec::new());
    for (sql, run) in OUTCOMES.runs(uids) {
        for row in session.rows(sql, asked(tenant, run)).await? {
            let (uid, place) = (read_uid(&row)?, row.opt_int(2)?);
            places.extend(place.map(|place| (uid, place)));
            found.push((uid, decode::coded(row.int(1)?, EventKind::from_code)?, place));
        }
    }
    let mut bounces: HashMap<(MessageUid, i64), String> = HashMap::with_capacity(places.len());
    for (sql, run) in BOUNCES.runs(&places) {
        let values = run.iter().flat_map(|(uid, place)| values![uid.as_bytes(), *place]).collect();
        for row in session.rows(sql.into(), values).await? {
            if let Some(bounce) = row.opt_string(2)? {
                bounces.insert((read_uid(&row)?, row.int(1)?), bounce);
            }
        }
    }
    let read = |(uid, outcome, place): (MessageUid, EventKind, Option<i64>)| {
        let bounce = place.and_then(|place| bounces.remove(&(uid, place)));
        (uid, OutcomeView { outcome, bounce })
    };
    Ok(found.into_iter().map(read).collect())
}

/// The latest event of each of these messages that subscribers may be notified of, without its data.
pub(crate) async fn news(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<(MessageUid, MessageEvent)>, StoreError> {
    let mut news = Vec::new();
    for (sql, run) in NEWS.runs(uids) {
        for row in session.rows(sql, asked(tenant, run)).await? {
            let Some(seq) = row.opt_int(1)? else { continue };
            let kind = decode::coded(row.int(3)?, EventKind::from_code)?;
            news.push((read_uid(&row)?, MessageEvent { seq, at: row.time(2)?, kind, data: None }));
        }
    }
    Ok(news)
}

fn asked(tenant: &TenantId, uids: &[MessageUid]) -> Vec<Value> {
    let ids = uids.iter().map(|uid| Value::from(uid.as_bytes()));
    [Value::from(tenant.as_str())].into_iter().chain(ids).collect()
}

fn read_uid(row: &Row) -> Result<MessageUid, StoreError> {
    row.id16(0).map(MessageUid::from_bytes)
}

/// The progress from the lowest state and the latest time.
fn telling(row: &Row, first: usize) -> Result<NotificationProgress, StoreError> {
    Ok(match (row.opt_int(first)?, row.opt_time(first + 1)?) {
        (Some(lowest), Some(at)) if is_settled(lowest) => NotificationProgress::Settled(at),
        (Some(_), _) => NotificationProgress::Open,
        (None, _) => NotificationProgress::Nothing,
    })
}

/// The settled states are the highest.
fn is_settled(state: i64) -> bool {
    state >= NotificationState::Acknowledged.code()
}

// The statements above write these codes as literals.
const _: () = assert!(EventKind::Bounced as i64 == 19);
const _: () = assert!(NotificationState::Waiting as i64 == 2 && NotificationState::Dead as i64 == 4);

#[cfg(test)]
mod tests {
    use postway_domain::subscriber::event_name;

    use super::*;

    #[test]
    fn only_what_has_a_name_is_news() {
        let nameless = EventKind::ALL.iter().filter(|kind| event_name(**kind, false).is_none());
        let codes: Vec<String> = nameless.map(|kind| kind.code().to_string()).collect();
        assert!(latest!("seq").contains(&format!("NOT IN ({})", codes.join(", "))), "{codes:?}");
    }
}
