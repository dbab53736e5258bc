//! How much mail is blocked, and what blocks it besides suspensions: open circuits and used-up limits.
//!
//! All questions are about accounts and lanes, never about single messages, so the cost does not depend on
//! how many wait. Only counting reads messages, and it ends at [`Suspension::HELD_MAX`].

use std::collections::{BTreeMap, HashSet};

use postway_domain::{AccountId, AccountSettings, Span, TenantId, Time, limit::LimitBehavior};

use super::suspensions::{count, is_suspended};
use crate::{
    error::StoreError,
    record::{AccountGate, Suspension},
    sql::{
        Session, Sql, Value, decode,
        multi_row::{Multi, MultiSql},
        values,
    },
};

/// The waiting messages of a tenant's lanes, in the order of the index of waiting messages, which MySQL has
/// on a generated column.
macro_rules! waiting {
    () => {
        "SELECT COUNT(*) FROM (SELECT m.due_at FROM lane l JOIN message m ON m.lane = l.id WHERE m.due_at IS NOT NULL \
         AND l.tenant = ? AND "
    };
}
macro_rules! waiting_in_mysql {
    () => {
        "SELECT COUNT(*) FROM (SELECT m.due_at FROM lane l JOIN message m ON m.due_lane = l.id WHERE l.tenant = ? AND "
    };
}

const SUSPENDED: Sql = Sql::or_mysql(
    concat!(waiting!(), is_suspended!("l"), " LIMIT ?) AS found"),
    concat!(waiting_in_mysql!(), is_suspended!("l"), " LIMIT ?) AS found"),
);
/// Waiting messages of these accounts that no suspension blocks, so that none is counted twice.
pub(crate) static BEHIND: MultiSql = MultiSql {
    sqlite: Multi::new(
        concat!(waiting!(), "NOT ", is_suspended!("l"), " AND l.account IN ("),
        1,
        ") LIMIT ?) AS found",
    ),
    postgres: Multi::new(
        concat!(waiting!(), "NOT ", is_suspended!("l"), " AND l.account IN ("),
        1,
        ") LIMIT ?) AS found",
    ),
    mysql: Multi::new(
        concat!(waiting_in_mysql!(), "NOT ", is_suspended!("l"), " AND l.account IN ("),
        1,
        ") LIMIT ?) AS found",
    ),
};
/// The accounts that have waiting messages: looks up the first of every lane.
pub(crate) const WAITED_FOR: Sql = Sql::or_mysql(
    "SELECT DISTINCT l.account FROM lane l WHERE l.tenant = ? AND (SELECT m.due_at FROM message m WHERE m.lane = l.id \
     AND m.due_at IS NOT NULL ORDER BY m.due_at LIMIT 1) IS NOT NULL",
    "SELECT DISTINCT l.account FROM lane l WHERE l.tenant = ? AND (SELECT m.due_at FROM message m \
     FORCE INDEX (message_due) WHERE m.due_lane = l.id ORDER BY m.due_lane, m.due_at LIMIT 1) IS NOT NULL",
);
static CIRCUITS: Multi = Multi::new("SELECT account FROM circuit WHERE tenant = ? AND account IN (", 1, ")");
macro_rules! used {
    ($integer:literal) => {
        Multi::new(
            concat!(
                "SELECT account, span, CAST(SUM(used) AS ",
                $integer,
                ") FROM spent WHERE tenant = ? AND used > 0 AND ((span = 1 AND bucket >= ?) OR (span = 2 AND bucket >= ?) \
                 OR (span = 3 AND bucket >= ?)) AND account IN ("
            ),
            1,
            ") GROUP BY account, span",
        )
    };
}
static USED: MultiSql =
    MultiSql { sqlite: used!("BIGINT"), postgres: used!("BIGINT"), mysql: used!("SIGNED") };
static SETTINGS: Multi = Multi::new("SELECT id, settings FROM account WHERE tenant = ? AND id IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<Sql> {
    vec![
        SUSPENDED,
        BEHIND.sample(),
        WAITED_FOR,
        CIRCUITS.sample().into(),
        USED.sample(),
        SETTINGS.sample().into(),
    ]
}

/// Whether mail of an account with these limits must wait now, given the use in each span.
pub(crate) fn is_used_up(settings: &AccountSettings, now: Time, used: impl Fn(Span) -> i64) -> bool {
    let limits = settings.effective_limits(now);
    // Mail beyond a rejecting limit does not wait: it fails.
    limits.behavior == LimitBehavior::Defer && limits.left(used) == 0
}

/// What blocks these accounts now.
pub(crate) async fn gates(
    session: &mut dyn Session,
    tenant: &TenantId,
    accounts: &[AccountId],
    now: Time,
) -> Result<Vec<(AccountId, AccountGate)>, StoreError> {
    let mut gates = Vec::new();
    for id in used_up(session, tenant, accounts, now).await? {
        gates.push((id, AccountGate::Limit));
    }
    for (sql, run) in CIRCUITS.runs(accounts) {
        for row in session.rows(sql.into(), named(values![tenant.as_str()], run)).await? {
            gates.push((row.parsed(0)?, AccountGate::Circuit));
        }
    }
    gates.sort();
    Ok(gates)
}

async fn used_up(
    session: &mut dyn Session,
    tenant: &TenantId,
    accounts: &[AccountId],
    now: Time,
) -> Result<Vec<AccountId>, StoreError> {
    let oldest = Span::ALL.map(|span| span.oldest_counted(now));
    let mut used: BTreeMap<AccountId, Vec<(Span, i64)>> = BTreeMap::new();
    for (sql, run) in USED.runs(accounts) {
        let place = values![tenant.as_str(), oldest[0], oldest[1], oldest[2]];
        for row in session.rows(sql, named(place, run)).await? {
            let span = decode::coded(row.int(1)?, Span::from_code)?;
            used.entry(row.parsed(0)?).or_default().push((span, row.int(2)?));
        }
    }
    // Limit use is counted only for accounts that have limits, so mostly there is nothing to read.
    let limited: Vec<AccountId> = used.keys().cloned().collect();
    let mut used_up = Vec::new();
    for (sql, run) in SETTINGS.runs(&limited) {
        for row in session.rows(sql.into(), named(values![tenant.as_str()], run)).await? {
            let (id, settings) = (row.parsed(0)?, row.json(1)?);
            let spans = used.get(&id).map_or(&[][..], Vec::as_slice);
            let of = |wanted| spans.iter().find(|(span, _)| *span == wanted).map_or(0, |(_, used)| *used);
            if is_used_up(&settings, now, of) {
                used_up.push(id);
            }
        }
    }
    Ok(used_up)
}

/// The number of a tenant's blocked messages, each counted once.
pub(crate) async fn count_blocked(
    session: &mut dyn Session,
    tenant: &TenantId,
    now: Time,
) -> Result<i64, StoreError> {
    let suspended = values![tenant.as_str(), Suspension::HELD_MAX];
    let mut held = count(session, SUSPENDED, suspended).await?;
    if held >= Suspension::HELD_MAX {
        return Ok(held);
    }
    let rows = session.rows(WAITED_FOR, values![tenant.as_str()]).await?;
    let accounts = rows.iter().map(|row| row.parsed(0)).collect::<Result<Vec<AccountId>, _>>()?;
    let shut: HashSet<AccountId> =
        gates(session, tenant, &accounts, now).await?.into_iter().map(|(id, _)| id).collect();
    let shut: Vec<AccountId> = shut.into_iter().collect();
    for (sql, run) in BEHIND.runs(&shut) {
        let mut values = named(values![tenant.as_str()], run);
        values.push((Suspension::HELD_MAX - held).into());
        held += count(session, sql, values).await?;
    }
    Ok(held)
}

fn named(mut place: Vec<Value>, accounts: &[AccountId]) -> Vec<Value> {
    place.extend(accounts.iter().map(|id| Value::from(id.as_str())));
    place
}
