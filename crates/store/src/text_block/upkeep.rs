//! Planning blocks over mail that is old enough, and filling those that are empty.
//!
//! Planning walks along the tenants and goes on where the last call stopped. What it costs does not depend on how
//! much mail there is: for a tenant without new mail it is a look at an index.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use postway_domain::{MessageUid, TenantId, Time};

use super::{
    BLOCK_MESSAGES, SETTLES_IN,
    form::{MessageTexts, TextBlockWriter},
};
use crate::{
    error::StoreError,
    sql::{Row, SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

/// Tenants of one page of the walk.
const TENANTS_MAX: u32 = 64;
/// Blocks that one call plans for a tenant.
const PLANNED_MAX: usize = 8;
/// Blocks that one call fills.
const FILLED_MAX: u32 = 4;
/// The most messages of a block: as many as it was planned over, and those that were late.
const MESSAGES_MAX: usize = 2 * BLOCK_MESSAGES;
/// The number of addresses of a message that are read.
const ADDRESSES_MAX: i64 = 64;

const TENANTS: SqlText =
    SqlText::same("SELECT id FROM tenant WHERE deleted_at IS NULL AND id > ? ORDER BY id LIMIT ?");
const NEWEST: SqlText =
    SqlText::same("SELECT last_uid FROM text_block WHERE tenant = ? ORDER BY first_uid DESC LIMIT 1");
/// The message that ends the next block: the last of a thousand.
pub(crate) const END: SqlText = SqlText::of_each(
    "SELECT uid FROM message WHERE tenant = ? AND uid >= ? AND tenant = ? AND uid < ? ORDER BY uid LIMIT 1 OFFSET 1023",
    "SELECT uid FROM message WHERE (tenant, uid) >= (?, ?) AND (tenant, uid) < (?, ?) \
     ORDER BY tenant, uid LIMIT 1 OFFSET 1023",
    "SELECT uid FROM message FORCE INDEX (message_tenant) WHERE tenant = ? AND uid >= ? AND tenant = ? AND uid < ? \
     ORDER BY uid LIMIT 1 OFFSET 1023",
);
const _: () = assert!(BLOCK_MESSAGES == 1_024);
const PLAN: SqlText = SqlText::or_mysql(
    "INSERT INTO text_block (tenant, first_uid, last_uid, messages, generation, marked_at, words) \
     VALUES (?, ?, ?, 0, 1, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO text_block (tenant, first_uid, last_uid, messages, generation, marked_at, words) \
     VALUES (?, ?, ?, 0, 1, ?, ?)",
);
pub(crate) const EMPTY: SqlText = SqlText::same(
    "SELECT tenant, first_uid, last_uid, generation FROM text_block WHERE marked_at IS NOT NULL AND marked_at <= ? \
     ORDER BY marked_at LIMIT ?",
);
/// The texts of the messages in a range of ids, which each database finds along the index by tenant.
pub(crate) const MESSAGES: SqlText = SqlText::of_each(
    "SELECT m.uid, c.sensitive, c.subject, c.metadata FROM message m CROSS JOIN content c ON c.uid = m.uid \
     WHERE m.tenant = ? AND m.uid >= ? AND m.tenant = ? AND m.uid <= ? ORDER BY m.uid LIMIT ?",
    "SELECT m.uid, c.sensitive, c.subject, c.metadata FROM message m JOIN content c ON c.uid = m.uid \
     WHERE (m.tenant, m.uid) >= (?, ?) AND (m.tenant, m.uid) <= (?, ?) ORDER BY m.tenant, m.uid LIMIT ?",
    "SELECT m.uid, c.sensitive, c.subject, c.metadata FROM message m FORCE INDEX (message_tenant) \
     STRAIGHT_JOIN content c ON c.uid = m.uid \
     WHERE m.tenant = ? AND m.uid >= ? AND m.tenant = ? AND m.uid <= ? ORDER BY m.uid LIMIT ?",
);
static ADDRESSES: MultiRow = MultiRow::new(
    "SELECT uid, position, address FROM recipient WHERE position <= 64 AND uid IN (",
    1,
    ") ORDER BY uid, position",
)
.wide();
const _: () = assert!(ADDRESSES_MAX == 64);
const FILL: SqlText = SqlText::same(
    "UPDATE text_block SET words = ?, messages = ?, marked_at = NULL WHERE tenant = ? AND first_uid = ? AND generation = ?",
);
const DROP: SqlText =
    SqlText::same("DELETE FROM text_block WHERE tenant = ? AND first_uid = ? AND generation = ?");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![TENANTS, NEWEST, END, PLAN, EMPTY, MESSAGES, ADDRESSES.sample().into(), FILL, DROP]
}

/// Where the walk along the tenants stands. A walk that is lost begins again.
#[derive(Default)]
pub(crate) struct TextBlockWalk(Mutex<Option<TenantId>>);

/// A block to be planned.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTextBlock {
    tenant: TenantId,
    first: MessageUid,
    last: MessageUid,
}

/// A block that was read anew.
#[derive(Clone, Debug)]
pub(crate) struct FilledTextBlock {
    tenant: TenantId,
    first: [u8; 16],
    /// The generation that was read: a block that was emptied again since is left.
    generation: i64,
    messages: usize,
    words: Vec<u8>,
}

/// The blocks that the next tenants of the walk lack, and whether the walk has come round.
pub(crate) async fn plan(
    session: &mut dyn SqlSession,
    walk: &TextBlockWalk,
    now: Time,
) -> Result<(Vec<PlannedTextBlock>, bool), StoreError> {
    let after = walk.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let after = after.as_ref().map(TenantId::as_str).unwrap_or_default();
    let rows = session.rows(TENANTS, values![after, TENANTS_MAX]).await?;
    let tenants: Vec<TenantId> = rows.iter().map(|row| row.parsed(0)).collect::<Result<_, _>>()?;
    let is_last = tenants.len() < TENANTS_MAX as usize;
    let before = MessageUid::first_at(now.minus(SETTLES_IN));
    let mut planned = Vec::new();
    for tenant in &tenants {
        let newest = session.rows(NEWEST, values![tenant.as_str()]).await?;
        let mut first = match newest.first() {
            Some(row) => MessageUid::from_bytes(row.id16(0)?).successor(),
            None => MessageUid::from_bytes([0; 16]),
        };
        for _ in 0..PLANNED_MAX {
            let place = values![tenant.as_str(), first.as_bytes(), tenant.as_str(), before.as_bytes()];
            let rows = session.rows(END, place).await?;
            let Some(end) = rows.first() else { break };
            let last = MessageUid::from_bytes(end.id16(0)?);
            planned.push(PlannedTextBlock { tenant: tenant.clone(), first, last });
            first = last.successor();
        }
    }
    *walk.0.lock().unwrap_or_else(PoisonError::into_inner) = tenants.last().filter(|_| !is_last).cloned();
    Ok((planned, is_last))
}

/// The texts of the blocks that have been empty for long enough, some of them.
pub(crate) async fn read_empty(
    session: &mut dyn SqlSession,
    now: Time,
) -> Result<Vec<FilledTextBlock>, StoreError> {
    let mut filled = Vec::new();
    for row in session.rows(EMPTY, values![now.minus(SETTLES_IN), FILLED_MAX]).await? {
        let (tenant, first, last): (TenantId, _, _) = (row.parsed(0)?, row.id16(1)?, row.id16(2)?);
        let most = MESSAGES_MAX as i64;
        let place = values![tenant.as_str(), &first, tenant.as_str(), &last, most];
        let messages = session.rows(MESSAGES, place).await?;
        let addresses = addresses_of(session, &messages).await?;
        let mut writer = TextBlockWriter::default();
        for message in &messages {
            let found = addresses.get(&message.id16(0)?);
            let (addresses, has_more) =
                found.map_or((&[] as &[String], false), |(found, more)| (found, *more));
            let subject = if message.int(1)? == 0 { message.opt_text(2)? } else { None };
            writer.push(&MessageTexts { subject, metadata: message.opt_text(3)?, addresses, has_more });
        }
        let (messages, words) = writer.finish()?;
        filled.push(FilledTextBlock { tenant, first, generation: row.int(3)?, messages, words });
    }
    Ok(filled)
}

/// The first addresses of messages, and whether there are more.
async fn addresses_of(
    session: &mut dyn SqlSession,
    messages: &[Row],
) -> Result<HashMap<[u8; 16], (Vec<String>, bool)>, StoreError> {
    let uids: Vec<[u8; 16]> = messages.iter().map(|row| row.id16(0)).collect::<Result<_, _>>()?;
    let mut addresses: HashMap<[u8; 16], (Vec<String>, bool)> = HashMap::with_capacity(uids.len());
    for (sql, run) in ADDRESSES.runs(&uids) {
        for row in session.rows(sql.into(), run.iter().map(Value::from).collect()).await? {
            let (found, has_more) = addresses.entry(row.id16(0)?).or_default();
            match row.int(1)? < ADDRESSES_MAX {
                true => found.push(row.text(2)?.to_owned()),
                false => *has_more = true,
            }
        }
    }
    Ok(addresses)
}

/// Writes planned and filled blocks. Returns the number of those that were new, or still as they were read.
pub(crate) async fn write(
    session: &mut dyn SqlSession,
    planned: &[PlannedTextBlock],
    filled: &[FilledTextBlock],
    now: Time,
) -> Result<usize, StoreError> {
    let mut written = 0;
    for PlannedTextBlock { tenant, first, last } in planned {
        let row = values![tenant.as_str(), first.as_bytes(), last.as_bytes(), now, Vec::new()];
        written += usize::from(session.insert(PLAN, row).await?);
    }
    for FilledTextBlock { tenant, first, generation, messages, words } in filled {
        let place = values![tenant.as_str(), first, *generation];
        let done = if *messages == 0 {
            session.execute(DROP, place).await?
        } else {
            let texts = values![words.clone(), *messages as i64];
            session.execute(FILL, [texts, place].concat()).await?
        };
        written += usize::from(done > 0);
    }
    Ok(written)
}
