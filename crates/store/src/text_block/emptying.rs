//! Emptying the blocks of messages whose texts change or go, in the transaction that does it.

use postway_domain::{MessageUid, TenantId, Time};

use super::SETTLES_IN;
use crate::{
    error::StoreError,
    sql::{SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

const COVERING: SqlText = SqlText::same(
    "SELECT first_uid, last_uid FROM text_block WHERE tenant = ? AND first_uid <= ? ORDER BY first_uid DESC LIMIT 1",
);
const EMPTY: SqlText = SqlText::same(
    "UPDATE text_block SET words = ?, messages = 0, generation = generation + 1, marked_at = ? \
     WHERE tenant = ? AND first_uid = ?",
);

static TENANTS: MultiRow = MultiRow::new("SELECT uid, tenant FROM message WHERE uid IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![COVERING, EMPTY, TENANTS.sample().into()]
}

/// Whether blocks may be planned over this message: over mail that is younger than this, none is.
fn may_have_block(uid: MessageUid, now: Time) -> bool {
    uid.time() < now.minus(SETTLES_IN / 2)
}

/// The same as [`empty_blocks_of`], for messages whose tenants are still to be read.
pub(crate) async fn empty_blocks_with(
    session: &mut dyn SqlSession,
    uids: &[MessageUid],
    now: Time,
) -> Result<(), StoreError> {
    let uids: Vec<MessageUid> = uids.iter().copied().filter(|uid| may_have_block(*uid, now)).collect();
    let mut messages: Vec<(TenantId, MessageUid)> = Vec::with_capacity(uids.len());
    for (sql, run) in TENANTS.runs(&uids) {
        let ids = run.iter().map(|uid| Value::from(uid.as_bytes())).collect();
        for row in session.rows(sql.into(), ids).await? {
            messages.push((row.parsed(1)?, MessageUid::from_bytes(row.id16(0)?)));
        }
    }
    empty_blocks_of(session, messages.iter().map(|(tenant, uid)| (tenant, *uid)), now).await
}

/// Empties the blocks that have these messages. They are filled again later.
pub(crate) async fn empty_blocks_of(
    session: &mut dyn SqlSession,
    messages: impl Iterator<Item = (&TenantId, MessageUid)>,
    now: Time,
) -> Result<(), StoreError> {
    let mut messages: Vec<_> = messages.filter(|(_, uid)| may_have_block(*uid, now)).collect();
    // In one order, so that two transactions do not wait for each other.
    messages.sort_unstable();
    // The tenant and the last message of the block that was emptied, and the end of what no block covers.
    let mut done: Option<(&TenantId, MessageUid)> = None;
    for (tenant, uid) in messages {
        if done.is_some_and(|(of, last)| of == tenant && uid <= last) {
            continue;
        }
        let rows = session.rows(COVERING, values![tenant.as_str(), uid.as_bytes()]).await?;
        let Some(row) = rows.first() else { continue };
        let (first, last) = (row.id16(0)?, MessageUid::from_bytes(row.id16(1)?));
        if uid <= last {
            let place = values![Vec::new(), now, tenant.as_str(), &first];
            session.execute(EMPTY, place).await?;
            done = Some((tenant, last));
        }
    }
    Ok(())
}
