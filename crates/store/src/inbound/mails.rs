//! Inbound mail as readers see it, and what operators do with it.

use postway_domain::{EventKind, InboundState, MessageEvent, MessageStatus, MessageUid, TenantId, Time};

use super::claim::{ids, read_body};
use crate::{
    error::StoreError,
    record::{
        ChangeResult, InboundFilter, InboundRecord, InboundReplay, InboundView, MailboxKey, StoredBody,
    },
    sql::{
        Row, SqlSession, SqlText,
        decode::{coded, tags},
        multi_row::MultiRow,
        values,
    },
};

/// The most pages that one replay examines.
const REPLAY_PAGES_MAX: u32 = 20;

/// Selects the columns of a mail, with the given tables and condition.
macro_rules! select {
    ($($end:literal),*) => {
        concat!(
            "SELECT uid, tenant, mailbox, folder, uid_validity, imap_uid, digest, size, arrived_at, sender, recipients, \
             subject, message_id, state, due_at, tries, error, kind, result, tags, follow_up, reminders, resolved_at, \
             created_at, settled_at, dated_at, attempts FROM inbound WHERE ",
            $($end),*
        )
    };
}
/// The newest first, in the order of an index of these columns and the id; an empty kind matches all.
/// PostgreSQL would follow the ids of all tenants, because none is a constant in its plan, unless row values
/// are compared.
macro_rules! list {
    ($of:literal, $columns:literal, $places:literal, $order:literal, $and:literal) => {
        SqlText::of_each(
            select!(
                $of,
                "uid < ? AND ",
                $of,
                "uid >= ? AND ",
                $and,
                "(? = '' OR kind = ?) ORDER BY uid DESC LIMIT ?"
            ),
            select!(
                "(",
                $columns,
                ", uid) < (",
                $places,
                ", ?) AND (",
                $columns,
                ", uid) >= (",
                $places,
                ", ?) AND ",
                $and,
                "(? = '' OR kind = ?) ORDER BY ",
                $order,
                ", uid DESC LIMIT ?"
            ),
            select!(
                $of,
                "uid < ? AND ",
                $of,
                "uid >= ? AND ",
                $and,
                "(? = '' OR kind = ?) ORDER BY uid DESC LIMIT ?"
            ),
        )
    };
}
macro_rules! list_of_mailbox {
    ($and:literal) => {
        list!("tenant = ? AND mailbox = ? AND ", "tenant, mailbox", "?, ?", "tenant DESC, mailbox DESC", $and)
    };
}

pub(crate) const LIST: SqlText = list!("tenant = ? AND ", "tenant", "?", "tenant DESC", "");
pub(crate) const LIST_OF_MAILBOX: SqlText = list_of_mailbox!("");
const LIST_OF_BOTH: SqlText = list_of_mailbox!("state = ? AND ");
pub(crate) const LIST_OF_STATE: SqlText =
    list!("tenant = ? AND state = ? AND ", "tenant, state", "?, ?", "tenant DESC, state DESC", "");
const FIND: SqlText = SqlText::same(select!("tenant = ? AND uid = ?"));
const EVENTS: SqlText = SqlText::same("SELECT seq, at, kind, data FROM event WHERE uid = ? ORDER BY seq");
const MESSAGES: SqlText = SqlText::same(
    "SELECT i.rule, i.message, m.status FROM inbound_message i LEFT JOIN message m ON m.uid = i.message \
     WHERE i.uid = ? ORDER BY i.message, i.rule",
);
const RAW: SqlText = SqlText::same(
    "SELECT b.size, b.raw, b.raw_blob FROM inbound i JOIN inbound_body b ON b.uid = i.uid \
     WHERE i.uid = ? AND i.tenant = ?",
);
/// Settled mail that has bytes.
macro_rules! replay {
    ($of:literal) => {
        concat!(
            "UPDATE inbound SET state = 0, due_at = ?, updated_at = ?, tries = 0, lost_leases = 0, error = NULL, \
             follow_up = NULL, reminders = 0, resolved_at = NULL, settled_at = NULL \
             WHERE state IN (2, 3, 6) AND EXISTS (SELECT 1 FROM inbound_body b WHERE b.uid = inbound.uid) AND ",
            $of
        )
    };
}
const REPLAY: SqlText = SqlText::same(replay!("uid = ? AND tenant = ?"));
static REPLAY_ALL: MultiRow = MultiRow::new(replay!("uid IN ("), 1, ")");
/// Mail that waits for its first try is left.
const RESOLVE: SqlText = SqlText::same(
    "UPDATE inbound SET resolved_at = ?, updated_at = ?, follow_up = NULL, \
     due_at = CASE WHEN state = 2 THEN NULL ELSE due_at END WHERE uid = ? AND tenant = ? AND resolved_at IS NULL",
);
const IS_THERE: SqlText = SqlText::same("SELECT uid FROM inbound WHERE uid = ? AND tenant = ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[
    LIST,
    LIST_OF_MAILBOX,
    LIST_OF_STATE,
    LIST_OF_BOTH,
    FIND,
    EVENTS,
    MESSAGES,
    RAW,
    REPLAY,
    RESOLVE,
    IS_THERE,
];

/// A tenant's mail with ids from the first of `range` and below the second, the newest first.
pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    filter: &InboundFilter,
    (first, before): (MessageUid, Option<MessageUid>),
    limit: u32,
) -> Result<Vec<InboundView>, StoreError> {
    let before = before.unwrap_or(MessageUid::from_bytes([0xff; 16]));
    let (sql, of, and) = match (&filter.mailbox, filter.state) {
        (None, None) => (LIST, Vec::new(), Vec::new()),
        (Some(mailbox), None) => (LIST_OF_MAILBOX, values![mailbox.as_str()], Vec::new()),
        (None, Some(state)) => (LIST_OF_STATE, values![state.code()], Vec::new()),
        (Some(mailbox), Some(state)) => (LIST_OF_BOTH, values![mailbox.as_str()], values![state.code()]),
    };
    let of = [values![tenant.as_str()], of].concat();
    let kind = filter.kind.as_deref().unwrap_or_default();
    let (from, to) = (values![before.as_bytes()], values![first.as_bytes()]);
    let place = [of.clone(), from, of, to, and, values![kind, kind, limit]].concat();
    session.rows(sql, place).await?.iter().map(read).collect()
}

/// One mail with all that belongs to it.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<InboundRecord>, StoreError> {
    let rows = session.rows(FIND, values![tenant.as_str(), uid.as_bytes()]).await?;
    let Some(mail) = rows.first().map(read).transpose()? else { return Ok(None) };
    let mut record = InboundRecord { mail, messages: Vec::new(), events: Vec::new() };
    for row in session.rows(MESSAGES, values![uid.as_bytes()]).await? {
        let status = row.opt_int(2)?.map(|code| coded(code, MessageStatus::from_code)).transpose()?;
        record.messages.push((row.parsed(0)?, MessageUid::from_bytes(row.id16(1)?), status));
    }
    for row in session.rows(EVENTS, values![uid.as_bytes()]).await? {
        record.events.push(MessageEvent {
            seq: row.int(0)?,
            at: row.time(1)?,
            kind: coded(row.int(2)?, EventKind::from_code)?,
            data: row.opt_string(3)?,
        });
    }
    Ok(Some(record))
}

/// The bytes of a mail.
pub(crate) async fn raw(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    let rows = session.rows(RAW, values![uid.as_bytes(), tenant.as_str()]).await?;
    rows.first().map_or(Ok(None), |row| read_body(row, 0))
}

/// Makes a settled mail due again.
pub(crate) async fn replay(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
    now: Time,
) -> Result<ChangeResult, StoreError> {
    changed(session, REPLAY, ChangeResult::InUse, tenant, uid, now).await
}

/// Makes settled mails due again. Returns the number of mails.
pub(crate) async fn replay_all(
    session: &mut dyn SqlSession,
    replay: &InboundReplay,
) -> Result<u32, StoreError> {
    let (mut end, mut replayed) = (replay.end(), 0);
    // Mail that cannot be replayed is skipped, so that it does not keep the mail behind it from its turn.
    for _ in 0..REPLAY_PAGES_MAX {
        let left = replay.limit.saturating_sub(replayed);
        let place = (replay.first(), end);
        let page = list(session, &replay.tenant, &replay.filter, place, left).await?;
        let uids: Vec<MessageUid> =
            page.iter().filter(|mail| replay.takes(mail)).map(|mail| mail.uid).collect();
        for (sql, run) in REPLAY_ALL.runs(&uids) {
            let place = [values![replay.at, replay.at], ids(run)].concat();
            let count = session.execute(sql.into(), place).await?;
            replayed += u32::try_from(count).unwrap_or(u32::MAX);
        }
        end = page.last().map(|mail| mail.uid);
        if page.len() < left as usize || replayed >= replay.limit {
            break;
        }
    }
    Ok(replayed)
}

/// Marks a mail as resolved: no more reminders.
pub(crate) async fn resolve(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
    now: Time,
) -> Result<ChangeResult, StoreError> {
    changed(session, RESOLVE, ChangeResult::Already, tenant, uid, now).await
}

async fn changed(
    session: &mut dyn SqlSession,
    sql: SqlText,
    otherwise: ChangeResult,
    tenant: &TenantId,
    uid: MessageUid,
    now: Time,
) -> Result<ChangeResult, StoreError> {
    let place = || values![uid.as_bytes(), tenant.as_str()];
    if session.execute(sql, [values![now, now], place()].concat()).await? == 1 {
        return Ok(ChangeResult::Done);
    }
    let is_there = !session.rows(IS_THERE, place()).await?.is_empty();
    Ok(if is_there { otherwise } else { ChangeResult::Missing })
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<InboundView, StoreError> {
    let below_zero = |_| StoreError::Unexpected("a stored size below zero".to_owned());
    Ok(InboundView {
        uid: MessageUid::from_bytes(row.id16(0)?),
        key: MailboxKey { tenant: row.parsed(1)?, mailbox: row.parsed(2)? },
        folder: row.text(3)?.to_owned(),
        uid_validity: row.u32(4)?,
        imap_uid: row.u32(5)?,
        digest: row.opt_id32(6)?,
        size: u64::try_from(row.int(7)?).map_err(below_zero)?,
        arrived_at: row.opt_time(8)?,
        sender: row.opt_string(9)?,
        recipients: row.opt_string(10)?,
        subject: row.opt_string(11)?,
        message_id: row.opt_string(12)?,
        state: coded(row.int(13)?, InboundState::from_code)?,
        due_at: row.opt_time(14)?,
        tries: row.int(15)?,
        error: row.opt_string(16)?,
        kind: row.opt_string(17)?,
        result: row.opt_string(18)?,
        tags: tags(row.opt_text(19)?)?,
        follow_up: row.opt_parsed(20)?,
        reminders: row.int(21)?,
        resolved_at: row.opt_time(22)?,
        created_at: row.time(23)?,
        settled_at: row.opt_time(24)?,
        dated_at: row.opt_time(25)?,
        attempts: row.int(26)?,
    })
}

// The statements above write these codes as literals.
const _: () = assert!(InboundState::Received as i64 == 0 && InboundState::Routed as i64 == 2);
const _: () = assert!(InboundState::NoMatch as i64 == 3 && InboundState::Dead as i64 == 6);
