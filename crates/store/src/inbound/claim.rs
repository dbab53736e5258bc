//! The queue of inbound mail that waits to be processed: leased like messages; tenants and their mailboxes
//! take turns.
//!
//! A mail that is due for a reminder is settled already, and stays so: if its lease is lost, it does not
//! become new again. A lease that is lost because its process died is counted apart from one that ended while
//! its process lives: the first may be caused by the mail.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use postway_domain::{InboundState, Incarnation, MessageUid, Time, id::RuleId, inbound::SUSPECT_WAIT};

use super::turns::RouteTurns;
use crate::{
    error::StoreError,
    record::{MailToProcess, MailboxKey, ProcessRequest, ProcessingState, StoredBody},
    sql::{
        Row, SqlSession, SqlText, Value,
        decode::{self, coded},
        multi_row::MultiRow,
        values,
    },
};

/// The most due mails that are counted.
const COUNTED_MAX: u32 = 10_000;

/// Mail of deleted mailboxes and tenants is not claimed.
macro_rules! waiting {
    ($columns:literal, $end:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM inbound i JOIN mailbox_state s ON s.tenant = i.tenant AND s.mailbox = i.mailbox AND s.deleted = 0 \
             JOIN tenant t ON t.id = i.tenant AND t.deleted_at IS NULL WHERE ",
            $end
        )
    };
}
pub(crate) const COUNT: SqlText = SqlText::same(concat!(
    "SELECT COUNT(*) FROM (",
    waiting!("i.due_at", "i.due_at <= ? LIMIT ?"),
    ") AS waiting"
));
pub(crate) const NEXT: SqlText =
    SqlText::same(waiting!("i.due_at", "i.due_at > ? ORDER BY i.due_at LIMIT 1"));
/// The first due mail of every mailbox. The order names all columns of the index, or MySQL would sort.
macro_rules! heads {
    ($from:literal) => {
        concat!(
            "SELECT s.tenant, s.mailbox, (SELECT i.due_at FROM ",
            $from,
            " WHERE i.tenant = s.tenant AND i.mailbox = s.mailbox AND i.due_at <= ? \
             ORDER BY i.tenant, i.mailbox, i.due_at LIMIT 1) \
             FROM mailbox_state s JOIN tenant t ON t.id = s.tenant WHERE s.deleted = 0 AND t.deleted_at IS NULL"
        )
    };
}
pub(crate) const HEADS: SqlText =
    SqlText::or_mysql(heads!("inbound i"), heads!("inbound i FORCE INDEX (inbound_mailbox_due)"));
macro_rules! due {
    ($from:literal, $of:literal, $end:literal) => {
        concat!(
            "SELECT uid, folder, uid_validity, imap_uid, digest, state, tries, arrived_at, created_at, follow_up, reminders, \
             lost_leases FROM ",
            $from,
            " WHERE ",
            $of,
            " LIMIT ?",
            $end
        )
    };
}
/// Skips rows that another transaction has locked. PostgreSQL would follow the index over all mailboxes,
/// because none is a constant in its plan, unless row values are compared.
pub(crate) const DUE: SqlText = SqlText::of_each(
    due!(
        "inbound",
        "tenant = ? AND mailbox = ? AND due_at >= ? AND tenant = ? AND mailbox = ? AND due_at <= ? ORDER BY due_at, uid",
        ""
    ),
    due!(
        "inbound",
        "(tenant, mailbox, due_at) >= (?, ?, ?) AND (tenant, mailbox, due_at) <= (?, ?, ?) AND due_at IS NOT NULL \
         ORDER BY tenant, mailbox, due_at, uid",
        " FOR UPDATE SKIP LOCKED"
    ),
    due!(
        "inbound FORCE INDEX (inbound_mailbox_due)",
        "tenant = ? AND mailbox = ? AND due_at >= ? AND tenant = ? AND mailbox = ? AND due_at <= ? ORDER BY due_at, uid",
        " FOR UPDATE SKIP LOCKED"
    ),
);
static LEASE: MultiRow = MultiRow::new(
    "UPDATE inbound SET state = 1, due_at = NULL, lease_node = ?, lease_token = ?, lease_until = ?, updated_at = ? \
     WHERE uid IN (",
    1,
    ")",
);
static BODIES: MultiRow =
    MultiRow::new("SELECT uid, size, raw, raw_blob FROM inbound_body WHERE uid IN (", 1, ")");
pub(crate) static MESSAGES: MultiRow = MultiRow::new(
    "SELECT uid, rule, message FROM inbound_message WHERE uid IN (",
    1,
    ") ORDER BY uid, message, rule",
);
pub(crate) const HOLDERS: SqlText =
    SqlText::same("SELECT DISTINCT lease_node FROM inbound WHERE lease_node IS NOT NULL");
pub(crate) const LOST: SqlText = SqlText::of_each(
    "SELECT uid FROM inbound WHERE lease_node = ? AND lease_until <= ? LIMIT ?",
    "SELECT uid FROM inbound WHERE lease_node = ? AND lease_until <= ? LIMIT ? FOR UPDATE SKIP LOCKED",
    "SELECT uid FROM inbound WHERE lease_node = ? AND lease_until <= ? LIMIT ? FOR UPDATE SKIP LOCKED",
);
macro_rules! give_back {
    ($counts:literal) => {
        MultiRow::new(
            concat!(
                "UPDATE inbound SET state = CASE WHEN settled_at IS NULL THEN 5 ELSE 2 END, due_at = ?, updated_at = ?, ",
                $counts,
                ", lease_node = NULL, lease_token = NULL, lease_until = NULL WHERE uid IN ("
            ),
            1,
            ")",
        )
    };
}
/// For mail whose process died.
static GIVE_BACK_OF_DEAD: MultiRow = give_back!("lost_leases = lost_leases + 1");
/// For mail whose process lives, but did not finish in time.
static GIVE_BACK_OF_LATE: MultiRow = give_back!("tries = tries + 1, attempts = attempts + 1");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    let multi = [&LEASE, &BODIES, &MESSAGES, &GIVE_BACK_OF_DEAD, &GIVE_BACK_OF_LATE]
        .map(|multi| multi.sample().into());
    [COUNT, NEXT, HEADS, DUE, HOLDERS, LOST].into_iter().chain(multi).collect()
}

/// Which mail waits to be processed.
pub(crate) async fn state(session: &mut dyn SqlSession, now: Time) -> Result<ProcessingState, StoreError> {
    let due = session.rows(COUNT, values![now, COUNTED_MAX]).await?;
    let next = session.rows(NEXT, values![now]).await?;
    Ok(ProcessingState {
        due: due.first().map_or(Ok(0), |row| row.u32(0))?,
        next_due_at: next.first().map(|row| row.time(0)).transpose()?,
    })
}

/// Leases due mail: some of each tenant, beginning with the tenant that has least leased.
pub(crate) async fn claim(
    session: &mut dyn SqlSession,
    request: &ProcessRequest,
) -> Result<Vec<MailToProcess>, StoreError> {
    let mut heads: Vec<(Time, MailboxKey)> = Vec::new();
    for row in session.rows(HEADS, values![request.now]).await? {
        if let Some(due_at) = row.opt_time(2)? {
            heads.push((due_at, MailboxKey { tenant: row.parsed(0)?, mailbox: row.parsed(1)? }));
        }
    }
    let mut claimed: Vec<MailToProcess> = Vec::new();
    let mut turns = RouteTurns::new(heads, request);
    // By mailbox: mail found in an earlier turn is not leased yet, and is found again.
    let mut known: HashMap<MailboxKey, HashSet<MessageUid>> = HashMap::new();
    while let Some((key, room)) = turns.next() {
        let known = known.entry(key.clone()).or_default();
        let (of, mailbox) = (key.tenant.as_str(), key.mailbox.as_str());
        let wanted = i64::try_from(known.len() + room as usize).unwrap_or(i64::MAX);
        let place = values![of, mailbox, i64::MIN, of, mailbox, request.now, wanted];
        let mut found = 0;
        for row in session.rows(DUE, place).await? {
            let one = read(&row, &key)?;
            if found < room && known.insert(one.uid) {
                claimed.push(one);
                found += 1;
            }
        }
        turns.took(key, room, found);
    }
    let uids: Vec<MessageUid> = claimed.iter().map(|one| one.uid).collect();
    let lease = &request.lease;
    for (sql, run) in LEASE.runs(&uids) {
        let (node, token) = (lease.incarnation.as_bytes(), lease.token.as_i64());
        let place = [values![node, token, lease.until, request.now], ids(run)].concat();
        session.execute(sql.into(), place).await?;
    }
    let mut bodies: HashMap<MessageUid, StoredBody> = HashMap::with_capacity(uids.len());
    for (sql, run) in BODIES.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            if let Some(body) = read_body(&row, 1)? {
                bodies.insert(uid_of(&row)?, body);
            }
        }
    }
    let mut messages = messages_of(session, &uids).await?;
    for one in &mut claimed {
        let lost = || StoreError::Unexpected(format!("the mail {} has lost its bytes", one.uid));
        one.body = bodies.remove(&one.uid).ok_or_else(lost)?;
        one.messages = messages.remove(&one.uid).unwrap_or_default();
    }
    Ok(claimed)
}

fn uid_of(row: &Row) -> Result<MessageUid, StoreError> {
    row.id16(0).map(MessageUid::from_bytes)
}

pub(crate) fn ids(uids: &[MessageUid]) -> Vec<Value> {
    uids.iter().map(|uid| Value::from(uid.as_bytes())).collect()
}

fn read(row: &Row, key: &MailboxKey) -> Result<MailToProcess, StoreError> {
    Ok(MailToProcess {
        uid: uid_of(row)?,
        key: key.clone(),
        folder: row.text(1)?.to_owned(),
        uid_validity: row.u32(2)?,
        imap_uid: row.u32(3)?,
        digest: row.id32(4)?,
        body: StoredBody::EMPTY,
        before: coded(row.int(5)?, InboundState::from_code)?,
        tries: row.int(6)?,
        arrived_at: row.opt_time(7)?,
        created_at: row.time(8)?,
        messages: Vec::new(),
        follow_up: row.opt_parsed(9)?,
        reminders: row.int(10)?,
        lost_leases: row.int(11)?,
    })
}

/// The body from the columns `size`, `raw` and `raw_blob`, which begin at `first`.
pub(crate) fn read_body(row: &Row, first: usize) -> Result<Option<StoredBody>, StoreError> {
    let inline = row.opt_bytes(first + 1)?.map(Bytes::copy_from_slice);
    decode::body(inline, row.opt_text(first + 2)?, row.opt_int(first)?)
}

/// The messages sent because of these mails, by rule.
pub(crate) async fn messages_of(
    session: &mut dyn SqlSession,
    uids: &[MessageUid],
) -> Result<HashMap<MessageUid, Vec<(RuleId, MessageUid)>>, StoreError> {
    let mut messages: HashMap<MessageUid, Vec<(RuleId, MessageUid)>> = HashMap::new();
    for (sql, run) in MESSAGES.runs(uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let sent = (row.parsed(1)?, MessageUid::from_bytes(row.id16(2)?));
            messages.entry(uid_of(&row)?).or_default().push(sent);
        }
    }
    Ok(messages)
}

/// Reclaims mail that is leased to an incarnation not in `alive`, or past its backstop.
pub(crate) async fn reclaim(
    session: &mut dyn SqlSession,
    alive: &[Incarnation],
    now: Time,
    limit: u32,
) -> Result<u32, StoreError> {
    let (mut of_dead, mut of_late): (Vec<MessageUid>, Vec<MessageUid>) = (Vec::new(), Vec::new());
    for holder in session.rows(HOLDERS, Vec::new()).await? {
        let left = i64::from(limit) - (of_dead.len() + of_late.len()) as i64;
        let holder = holder.id16(0)?;
        let is_alive = alive.iter().any(|one| *one.as_bytes() == holder);
        let until = if is_alive { now.as_millis() } else { i64::MAX };
        let lost = if is_alive { &mut of_late } else { &mut of_dead };
        for row in session.rows(LOST, values![&holder, until, left]).await? {
            lost.push(uid_of(&row)?);
        }
    }
    for (statement, lost, due_at) in
        [(&GIVE_BACK_OF_DEAD, &mut of_dead, now.plus(SUSPECT_WAIT)), (&GIVE_BACK_OF_LATE, &mut of_late, now)]
    {
        lost.sort();
        for (sql, run) in statement.runs(lost) {
            session.execute(sql.into(), [values![due_at, now], ids(run)].concat()).await?;
        }
    }
    Ok(u32::try_from(of_dead.len() + of_late.len()).unwrap_or(limit))
}

// The statements above write these codes as literals.
const _: () = assert!(InboundState::Routing as i64 == 1 && InboundState::Routed as i64 == 2);
const _: () = assert!(InboundState::Waiting as i64 == 5);
