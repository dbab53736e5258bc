//! How far the notifications of messages have come.

use std::collections::HashMap;

use postway_domain::{MessageUid, TenantId};

use super::rules::{FanOutBacklog, MessageDeliveryState};
use crate::{
    error::StoreError,
    journal::JournalPage,
    record::NotificationState,
    sql::{SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

static OF_MESSAGES: MultiRow = MultiRow::new(
    "SELECT uid, MIN(state), MAX(state), MAX(settled_at) FROM notification WHERE uid IN (",
    1,
    ") GROUP BY uid",
)
.wide();
/// The most pages read of a tenant's [`FanOutBacklog`]: enough for a fan-out that keeps up. If more wait,
/// fan-out is far behind, and nothing is removed before it has caught up.
const BACKLOG_PAGES_MAX: usize = 256;
/// The same for all tenants at once.
const BACKLOG_OF_ALL_PAGES_MAX: usize = 2_048;

macro_rules! pages {
    ($from:literal, $which:expr) => {
        concat!("SELECT at, entries FROM ", $from, " WHERE ", $which, " LIMIT ?")
    };
}
macro_rules! fanned_out {
    () => {
        "COALESCE((SELECT p.position FROM progress p WHERE p.name = 'fan_out'), -1)"
    };
}
macro_rules! behind {
    () => {
        concat!(
            "tenant = ? AND position <= ? AND tenant = ? AND position > ",
            fanned_out!(),
            " ORDER BY position"
        )
    };
}
/// A tenant's pages that have positions and are not fanned out. PostgreSQL would follow the positions of all
/// tenants, because none is a constant in its plan, unless row values are compared.
pub(crate) const NOT_FANNED_OUT: SqlText = SqlText::of_each(
    pages!("journal", behind!()),
    pages!(
        "journal",
        concat!(
            "(tenant, position) <= (?, ?) AND (tenant, position) > (?, ",
            fanned_out!(),
            ") ORDER BY tenant, position"
        )
    ),
    pages!("journal FORCE INDEX (journal_tenant)", behind!()),
);
/// A tenant's pages without positions.
pub(crate) const NOT_SEQUENCED: SqlText = SqlText::or_mysql(
    pages!("journal", "tenant = ? AND position IS NULL"),
    pages!("journal FORCE INDEX (journal_tenant)", "tenant = ? AND position IS NULL"),
);
/// The pages of all tenants without positions, and those that are not fanned out.
pub(crate) const NONE_SEQUENCED: SqlText = SqlText::or_mysql(
    pages!("journal", "position IS NULL ORDER BY id"),
    pages!("journal FORCE INDEX (journal_position)", "position IS NULL ORDER BY id"),
);
pub(crate) const NONE_FANNED_OUT: SqlText = SqlText::or_mysql(
    pages!("journal", concat!("position > ", fanned_out!(), " ORDER BY position")),
    pages!(
        "journal FORCE INDEX (journal_position)",
        concat!("position > ", fanned_out!(), " ORDER BY position")
    ),
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[NOT_FANNED_OUT, NOT_SEQUENCED, NONE_FANNED_OUT, NONE_SEQUENCED];

/// A text that uses its own index, for the test of query plans.
#[cfg(test)]
pub(crate) fn of_messages_sample() -> SqlText {
    OF_MESSAGES.sample().into()
}

#[cfg(test)]
pub(crate) fn multi() -> Vec<&'static MultiRow> {
    vec![&OF_MESSAGES]
}

/// The events of a tenant's messages that have not been fanned out yet.
pub(crate) async fn backlog(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
) -> Result<FanOutBacklog, StoreError> {
    let of = tenant.as_str();
    let reads = [(NOT_SEQUENCED, values![of]), (NOT_FANNED_OUT, values![of, i64::MAX, of])];
    read_backlog(session, reads, BACKLOG_PAGES_MAX).await
}

/// The same for messages of these tenants, and maybe of others.
pub(crate) async fn backlog_of_some(
    session: &mut dyn SqlSession,
    tenants: &[&TenantId],
) -> Result<FanOutBacklog, StoreError> {
    match tenants {
        [] => Ok(FanOutBacklog::default()),
        [tenant] => backlog(session, tenant).await,
        _ => {
            let reads = [(NONE_SEQUENCED, values![]), (NONE_FANNED_OUT, values![])];
            read_backlog(session, reads, BACKLOG_OF_ALL_PAGES_MAX).await
        }
    }
}

/// The reads are in the order in which a page passes through these states, so that none is missed between
/// them.
async fn read_backlog(
    session: &mut dyn SqlSession,
    reads: [(SqlText, Vec<Value>); 2],
    pages_max: usize,
) -> Result<FanOutBacklog, StoreError> {
    let mut backlog = FanOutBacklog::default();
    let mut pages = 0;
    for (sql, place) in reads {
        let room = pages_max - pages;
        let most = i64::try_from(room + 1).unwrap_or(i64::MAX);
        let rows = session.rows(sql, [place, values![most]].concat()).await?;
        for row in rows.iter().take(room) {
            backlog.add(&JournalPage::decode(row.time(0)?, row.opt_bytes(1)?.unwrap_or_default())?);
            pages += 1;
        }
        if rows.len() > room {
            backlog.cut();
        }
    }
    Ok(backlog)
}

/// The state of the notifications of each of these messages that has some.
pub(crate) async fn of_messages(
    session: &mut dyn SqlSession,
    uids: &[MessageUid],
) -> Result<HashMap<MessageUid, MessageDeliveryState>, StoreError> {
    let mut deliveries = HashMap::new();
    for (sql, run) in OF_MESSAGES.runs(uids) {
        let values = run.iter().map(|uid| Value::from(uid.as_bytes())).collect();
        for row in session.rows(sql.into(), values).await? {
            let (least, most) = (row.int(1)?, row.int(2)?);
            let of_message = MessageDeliveryState {
                is_open: least < NotificationState::Acknowledged.code(),
                is_dead: most == NotificationState::Dead.code(),
                settled_at: row.opt_time(3)?,
            };
            deliveries.insert(MessageUid::from_bytes(row.id16(0)?), of_message);
        }
    }
    Ok(deliveries)
}

// Open states are those below the first settled one.
const _: () = assert!((NotificationState::Waiting as i64) < NotificationState::Acknowledged as i64);
const _: () = assert!(NotificationState::Acknowledged as i64 == 3 && NotificationState::Dead as i64 == 4);
