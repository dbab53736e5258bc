//! Erasing an address. A message to it alone is removed, and leaves a tombstone that names nobody. In a
//! message to others as well, the address and everything that the sender wrote is redacted. Inbound mail from
//! or to the address is removed.
//!
//! A message that is not final, or has open notifications, is counted and left: the caller asks again later.
//! Counts stay. So do the tenant's own lists: its directory of recipients, and the suppression list, without
//! which the address would get mail again. Tombstones of messages removed earlier have a digest that ends
//! with them.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{EmailAddress, MessageUid, TenantId, Time};

use super::{
    delivery_state,
    expunge::{RemovedMessage, lock_unchanged, remove, write_tombstones},
    message_parts::remove_suppression_changes,
    redact::{ERASED_ADDRESS, without},
    rules::{FanOutBacklog, TRACE_LASTS},
    scan::SeenMessage,
};
use crate::{
    error::StoreError,
    journal::suppression_changes,
    queue::transaction::WriteTransaction,
    record::{ErasureCounts, MessageTombstone},
    sql::{SqlSession, SqlText, Value, multi_row::MultiRow, values},
    text_block::empty_blocks_of,
};

/// The most events about the address's suppression that are removed at once.
const CHANGES_MAX: u32 = 1_000;

/// The messages to an address, and whether they are final.
macro_rules! with_address {
    ($columns:literal, $from:literal, $is_it:literal, $and:literal, $end:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM ",
            $from,
            " WHERE ",
            $is_it,
            " AND m.tenant = ? AND ",
            $and,
            "(m.status IN (5, 6, 7, 9, 10, 11, 12) \
             AND NOT EXISTS (SELECT 1 FROM notification n WHERE n.uid = m.uid AND n.state < 3))",
            $end
        )
    };
}

/// Addresses are compared ignoring case. MySQL's index ignores accents, too, so the result is checked again.
macro_rules! of_each {
    ($columns:literal, $and:literal, $end:literal) => {
        SqlText::of_each(
            with_address!(
                $columns,
                "recipient r CROSS JOIN message m ON m.uid = r.uid",
                "r.address = ? AND lower(r.address) = lower(?)",
                $and,
                $end
            ),
            with_address!(
                $columns,
                "recipient r JOIN message m ON m.uid = r.uid",
                "lower(r.address) = lower(?) AND lower(r.address) = lower(?)",
                $and,
                $end
            ),
            with_address!(
                $columns,
                "recipient r FORCE INDEX (recipient_address) STRAIGHT_JOIN message m ON m.uid = r.uid",
                "r.address = ? AND CAST(LOWER(r.address) AS BINARY) = CAST(LOWER(?) AS BINARY)",
                $and,
                $end
            ),
        )
    };
}

pub(crate) const ENDED: SqlText = of_each!("r.uid, m.version", "", " LIMIT ?");
pub(crate) const WAITING: SqlText = of_each!("COUNT(DISTINCT r.uid)", "NOT ", "");
static RECIPIENTS: MultiRow =
    MultiRow::new("SELECT uid, position, address FROM recipient WHERE uid IN (", 1, ")");
const RENAME: SqlText = SqlText::same(
    "UPDATE recipient SET address = ?, reply = NULL, bounce = NULL WHERE uid = ? AND position = ?",
);
static CLEAR_CONTENT: MultiRow = MultiRow::new(
    "UPDATE content SET subject = '', metadata = NULL, dsn = NULL, trace = NULL, recipient_id = NULL, raw_blob = NULL, payload = NULL, \
     payload_blob = NULL, raw = ? WHERE uid IN (",
    1,
    ")",
);
static CLEAR: [MultiRow; 5] = [
    MultiRow::new("DELETE FROM link WHERE uid IN (", 1, ")"),
    MultiRow::new("DELETE FROM preparation WHERE uid IN (", 1, ")"),
    // Each receipt names all recipients.
    MultiRow::new("DELETE FROM pec_receipt WHERE uid IN (", 1, ")"),
    MultiRow::new(
        "UPDATE notification SET request = '', answer = '' WHERE called_at IS NOT NULL AND uid IN (",
        1,
        ")",
    ),
    MultiRow::new("UPDATE message SET version = version + 1 WHERE uid IN (", 1, ")"),
];
/// Texts that others wrote: the statement that reads them by message and number, and the one that writes one
/// back.
static TEXTS: [(MultiRow, SqlText); 7] = [
    (
        MultiRow::new("SELECT uid, seq, data FROM event WHERE data IS NOT NULL AND uid IN (", 1, ")"),
        SqlText::same("UPDATE event SET data = ? WHERE uid = ? AND seq = ?"),
    ),
    (
        MultiRow::new("SELECT uid, seq, more FROM event WHERE more IS NOT NULL AND uid IN (", 1, ")"),
        SqlText::same("UPDATE event SET more = ? WHERE uid = ? AND seq = ?"),
    ),
    (
        MultiRow::new("SELECT uid, number, reply FROM attempt WHERE reply IS NOT NULL AND uid IN (", 1, ")"),
        SqlText::same("UPDATE attempt SET reply = ? WHERE uid = ? AND number = ?"),
    ),
    (
        MultiRow::new("SELECT uid, attempt, content FROM dialogue WHERE uid IN (", 1, ")"),
        SqlText::same("UPDATE dialogue SET content = ? WHERE uid = ? AND attempt = ?"),
    ),
    (
        MultiRow::new(
            "SELECT uid, position, reply FROM recipient WHERE reply IS NOT NULL AND uid IN (",
            1,
            ")",
        ),
        SqlText::same("UPDATE recipient SET reply = ? WHERE uid = ? AND position = ?"),
    ),
    (
        MultiRow::new(
            "SELECT uid, position, bounce FROM recipient WHERE bounce IS NOT NULL AND uid IN (",
            1,
            ")",
        ),
        SqlText::same("UPDATE recipient SET bounce = ? WHERE uid = ? AND position = ?"),
    ),
    (
        MultiRow::new("SELECT uid, version, error FROM message WHERE error IS NOT NULL AND uid IN (", 1, ")"),
        SqlText::same("UPDATE message SET error = ? WHERE uid = ? AND version = ?"),
    ),
];
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[ENDED, WAITING, RENAME];

#[cfg(test)]
pub(crate) fn multi() -> Vec<&'static MultiRow> {
    let texts = TEXTS.iter().map(|(texts, _)| texts);
    [&RECIPIENTS, &CLEAR_CONTENT].into_iter().chain(&CLEAR).chain(texts).collect()
}

/// Finds at most `limit` final messages to an address, and the number of others that may still have open
/// notifications.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
    backlog: &FanOutBacklog,
    limit: u32,
) -> Result<(Vec<SeenMessage>, i64), StoreError> {
    // Reads as many more as may have to be left, so that those do not hide the others.
    let most = i64::from(limit).saturating_add(i64::try_from(backlog.len()).unwrap_or(i64::MAX));
    let (mut found, mut behind) = (BTreeMap::new(), BTreeSet::new());
    for row in session.rows(ENDED, values![address, address, tenant.as_str(), most]).await? {
        let uid = MessageUid::from_bytes(row.id16(0)?);
        if backlog.holds(uid) {
            behind.insert(uid);
        } else {
            found.insert(uid, row.int(1)?);
        }
    }
    let seen = found.into_iter().take(limit as usize).map(|(uid, version)| SeenMessage { uid, version });
    Ok((seen.collect(), i64::try_from(behind.len()).unwrap_or(i64::MAX)))
}

/// The number of messages to an address that are not final.
pub(crate) async fn count_waiting(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
) -> Result<i64, StoreError> {
    let rows = session.rows(WAITING, values![address, address, tenant.as_str()]).await?;
    rows.first().map_or(Ok(0), |row| row.int(0))
}

/// Whether there are events about the suppression of this address.
pub(crate) async fn is_in_suppression_changes(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
) -> Result<bool, StoreError> {
    Ok(!suppression_changes::of_address(session, tenant, address, 1).await?.is_empty())
}

/// Erases an address from the messages that have not changed since they were seen.
pub(crate) async fn erase(
    engine: &mut impl WriteTransaction,
    tenant: &TenantId,
    address: &str,
    now: Time,
    seen: &[SeenMessage],
) -> Result<ErasureCounts, StoreError> {
    let mut session = engine.session()?;
    let mut held = lock_unchanged(&mut *session, seen).await?;
    held.retain(|(gone, _)| gone.tenant == *tenant);
    let backlog = delivery_state::backlog(&mut *session, tenant).await?;
    let uids: Vec<MessageUid> = held.iter().map(|(gone, _)| gone.uid).collect();
    let deliveries = delivery_state::of_messages(&mut *session, &uids).await?;
    let is_over = |(gone, _): &(RemovedMessage, Time)| {
        deliveries.get(&gone.uid).copied().unwrap_or_default().is_over(gone.status)
            && !backlog.holds(gone.uid)
    };
    let ended: Vec<RemovedMessage> = held.into_iter().filter(is_over).map(|(gone, _)| gone).collect();
    let (alone, among) = apart(&mut *session, ended, address).await?;
    let redacted = among.keys().map(|uid| (tenant, MessageUid::from_bytes(*uid)));
    empty_blocks_of(&mut *session, redacted, now).await?;
    redact(&mut *session, &among, address).await?;
    let traces = alone.iter().map(|gone| MessageTombstone {
        tenant: tenant.clone(),
        uid: gone.uid,
        status: gone.status,
        recipients: Vec::new(),
        expires_at: now.plus(TRACE_LASTS),
    });
    write_tombstones(&mut *session, &traces.collect::<Vec<_>>()).await?;
    let changes = suppression_changes::of_address(&mut *session, tenant, address, CHANGES_MAX).await?;
    remove_suppression_changes(&mut *session, &changes).await?;
    drop(session);
    remove(engine, &alone, now).await?;
    Ok(ErasureCounts { removed: alone.len() as i64, redacted: among.len() as i64, waiting: 0 })
}

/// The positions of the address among the recipients of a message.
type Places = BTreeMap<[u8; 16], Vec<i64>>;

/// Messages to the address alone, and those to others as well.
async fn apart(
    session: &mut dyn SqlSession,
    mut ended: Vec<RemovedMessage>,
    address: &str,
) -> Result<(Vec<RemovedMessage>, Places), StoreError> {
    let uids: Vec<[u8; 16]> = ended.iter().map(|gone| *gone.uid.as_bytes()).collect();
    let (mut places, mut others) = (Places::new(), BTreeSet::new());
    for (sql, run) in RECIPIENTS.runs(&uids) {
        for row in session.rows(sql.into(), run.iter().map(Value::from).collect()).await? {
            if EmailAddress::is_same(row.text(2)?, address) {
                places.entry(row.id16(0)?).or_default().push(row.int(1)?);
            } else {
                others.insert(row.id16(0)?);
            }
        }
    }
    ended.retain(|gone| {
        let uid = gone.uid.as_bytes();
        places.contains_key(uid) && !others.contains(uid)
    });
    places.retain(|uid, _| others.contains(uid));
    Ok((ended, places))
}

/// Removes the address and the bodies from messages that went to others as well.
async fn redact(session: &mut dyn SqlSession, among: &Places, address: &str) -> Result<(), StoreError> {
    let uids: Vec<[u8; 16]> = among.keys().copied().collect();
    for (uid, positions) in among {
        for position in positions {
            session.execute(RENAME, values![ERASED_ADDRESS, uid, *position]).await?;
        }
    }
    for (texts, write) in &TEXTS {
        for (sql, run) in texts.runs(&uids) {
            for row in session.rows(sql.into(), run.iter().map(Value::from).collect()).await? {
                if let Some(text) = without(row.text(2)?, address) {
                    session.execute(*write, values![text, &row.id16(0)?, row.int(1)?]).await?;
                }
            }
        }
    }
    for (sql, run) in CLEAR_CONTENT.runs(&uids) {
        let empty = [Value::from(Vec::new())];
        let place = empty.into_iter().chain(run.iter().map(Value::from)).collect();
        session.execute(sql.into(), place).await?;
    }
    for table in &CLEAR {
        for (sql, run) in table.runs(&uids) {
            session.execute(sql.into(), run.iter().map(Value::from).collect()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use postway_domain::MessageStatus;

    use super::*;

    /// The statements write the codes of final states as literals.
    #[test]
    fn the_final_states_are_those_of_the_domain() {
        let finals = MessageStatus::ALL.iter().filter(|status| status.is_final());
        let codes: Vec<String> = finals.map(|status| status.code().to_string()).collect();
        assert!(ENDED.sqlite.contains(&format!("m.status IN ({})", codes.join(", "))));
    }
}
