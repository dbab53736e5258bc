//! Removing inbound mail. Settled mail is removed unless it has open notifications or reminders; its mailbox
//! remembers the digest as long as the mailbox exists.

use postway_domain::{InboundState, MessageUid, TenantId, Time};

use crate::{
    error::StoreError,
    inbound::{claim::ids, removal},
    retention::{FanOutBacklog, backlog, is_addressed, newest_before, of_messages},
    sql::{
        SqlSession, SqlText,
        decode::coded,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The most mails that one call checks for an address; the rest waits for the next call.
const NAMED_MAX: u32 = 20_000;

/// Settled, without a reminder, and without an open notification.
macro_rules! is_over {
    () => {
        "i.state IN (2, 3, 4, 6) AND i.due_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM notification n WHERE n.uid = i.uid AND n.state < 3)"
    };
}
macro_rules! old {
    ($from:literal, $of:literal, $order:literal) => {
        concat!(
            "SELECT i.uid FROM ",
            $from,
            " WHERE ",
            $of,
            " AND i.created_at < ? AND ",
            is_over!(),
            " AND NOT EXISTS (SELECT 1 FROM notification d WHERE d.uid = i.uid AND d.state = 4 AND d.settled_at >= ?)",
            " ORDER BY ",
            $order,
            " LIMIT ?"
        )
    };
}
/// PostgreSQL would follow the ids of all tenants, because none is a constant in its plan, unless row values
/// are compared.
pub(crate) const OLD: SqlText = SqlText::of_each(
    old!("inbound i", "i.tenant = ? AND i.uid >= ? AND i.tenant = ? AND i.uid < ?", "i.uid"),
    old!("inbound i", "(i.tenant, i.uid) >= (?, ?) AND (i.tenant, i.uid) < (?, ?)", "i.tenant, i.uid"),
    old!(
        "inbound i FORCE INDEX (inbound_tenant)",
        "i.tenant = ? AND i.uid >= ? AND i.tenant = ? AND i.uid < ?",
        "i.uid"
    ),
);
macro_rules! named {
    ($has:literal) => {
        concat!(
            "SELECT i.uid, i.sender, i.recipients, CASE WHEN ",
            is_over!(),
            " THEN i.created_at END FROM inbound i WHERE i.tenant = ? AND (",
            $has,
            ") ORDER BY i.uid LIMIT ?"
        )
    };
}
/// Mail whose headers may contain an address; the result is checked again.
const NAMED: SqlText = SqlText::of_each(
    named!("instr(lower(i.sender), ?) > 0 OR instr(lower(i.recipients), ?) > 0"),
    named!("strpos(lower(i.sender), ?) > 0 OR strpos(lower(i.recipients), ?) > 0"),
    named!("LOCATE(?, LOWER(i.sender)) > 0 OR LOCATE(?, LOWER(i.recipients)) > 0"),
);
const HELD: &str = "SELECT uid, tenant, state, due_at FROM inbound WHERE uid IN (";
/// Skips rows that another writer has locked.
static HOLD: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(HELD, 1, ")"),
    postgres: MultiRow::new(HELD, 1, ") FOR UPDATE SKIP LOCKED"),
    mysql: MultiRow::new(HELD, 1, ") FOR UPDATE SKIP LOCKED"),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![OLD, NAMED, HOLD.sample()]
}

/// Finds some mail that is old enough: registered before the first of these times, and without a notification
/// that died since the second, because that can still be sent again.
pub(crate) async fn find_old(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    [before, unreported_before]: [Time; 2],
    limit: u32,
) -> Result<Vec<MessageUid>, StoreError> {
    let backlog = backlog(session, tenant).await?;
    // Reads as many more as may have to be left, so that those do not hide the others.
    let most = i64::from(limit).saturating_add(i64::try_from(backlog.len()).unwrap_or(i64::MAX));
    let (first, end) = ([0; 16], newest_before(before));
    let of = tenant.as_str();
    let rows =
        session.rows(OLD, values![of, &first, of, end.as_bytes(), before, unreported_before, most]).await?;
    let uids: Vec<MessageUid> =
        rows.iter().map(|row| row.id16(0).map(MessageUid::from_bytes)).collect::<Result<_, _>>()?;
    Ok(uids.into_iter().filter(|uid| !backlog.holds(*uid)).take(limit as usize).collect())
}

/// Mail from or to an address: some that can be removed, and the number of others.
pub(crate) async fn find_named(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
    backlog: &FanOutBacklog,
    limit: usize,
) -> Result<(Vec<MessageUid>, i64), StoreError> {
    let wanted = address.to_lowercase();
    let place = values![tenant.as_str(), wanted.as_str(), wanted.as_str(), NAMED_MAX];
    let (mut over, mut waiting) = (Vec::new(), 0);
    for row in session.rows(NAMED, place).await? {
        let names = [row.opt_text(1)?, row.opt_text(2)?];
        if !names.into_iter().flatten().any(|names| is_addressed(names, address)) {
            continue;
        }
        let uid = MessageUid::from_bytes(row.id16(0)?);
        if row.opt_int(3)?.is_none() || backlog.holds(uid) {
            waiting += 1;
        } else if over.len() < limit {
            over.push(uid);
        }
    }
    Ok((over, waiting))
}

/// Removes those of a tenant's mails that are still settled and have no open notifications. Returns the
/// number of mails.
pub(crate) async fn expunge(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<usize, StoreError> {
    let mut settled: Vec<MessageUid> = Vec::with_capacity(uids.len());
    for (sql, run) in HOLD.runs(uids) {
        for row in session.rows(sql, ids(run)).await? {
            let state = coded(row.int(2)?, InboundState::from_code)?;
            if row.text(1)? == tenant.as_str() && state.is_settled() && row.opt_time(3)?.is_none() {
                settled.push(MessageUid::from_bytes(row.id16(0)?));
            }
        }
    }
    // Read only now: everything written to these mails before they were locked is in the journal.
    let backlog = backlog(session, tenant).await?;
    let delivery = of_messages(session, &settled).await?;
    settled.retain(|uid| !backlog.holds(*uid) && !delivery.get(uid).is_some_and(|delivery| delivery.is_open));
    let going: Vec<[u8; 16]> = settled.iter().map(|uid| *uid.as_bytes()).collect();
    removal::mails(session, &going).await?;
    Ok(going.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements write the codes of settled states as literals.
    #[test]
    fn the_settled_states_are_those_of_the_domain() {
        let settled = InboundState::ALL.into_iter().filter(|state| state.is_settled());
        let codes: Vec<String> = settled.map(|state| state.code().to_string()).collect();
        assert!(OLD.sqlite.contains(&format!("i.state IN ({})", codes.join(", "))));
    }
}
