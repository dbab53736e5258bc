//! How much mail is blocked, and what blocks it besides suspensions: open circuits and used-up limits.
//!
//! All questions are about accounts and about lanes in which mail waits, never about single messages, so the
//! cost does not depend on how many wait. Only counting reads messages, and it ends at
//! [`SuspensionRecord::HELD_MAX`].

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{
    AccountId, AccountSettings, LaneId, LaneRange, LimitSpan, TenantId, Time, limit::LimitBehavior,
};

use super::suspensions::{count, is_suspended};
use crate::{
    error::StoreError,
    record::{AccountGate, SuspensionRecord},
    sql::{
        SqlSession, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        values,
        waiting_lanes::waiting_lanes,
    },
};

/// The account of each lane, and whether a suspension blocks the lane.
static LANES: MultiRow = MultiRow::new(
    concat!(
        "SELECT l.id, l.account, CASE WHEN ",
        is_suspended!("l"),
        " THEN 'suspended' ELSE '' END FROM lane l WHERE l.tenant = ? AND l.id IN ("
    ),
    1,
    ")",
);
/// Counts the waiting messages of some lanes, along the index of waiting messages, which MySQL has on a
/// generated column.
pub(crate) static WAITING: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(
        "SELECT COUNT(*) FROM (SELECT m.due_at FROM message m WHERE m.due_at IS NOT NULL AND m.lane IN (",
        1,
        ") LIMIT ?) AS found",
    ),
    postgres: MultiRow::new(
        "SELECT COUNT(*) FROM (SELECT m.due_at FROM lane l CROSS JOIN LATERAL (SELECT o.due_at FROM message o \
         WHERE o.lane = l.id AND o.due_at IS NOT NULL ORDER BY o.due_at) AS m WHERE l.id IN (",
        1,
        ") LIMIT ?) AS found",
    ),
    mysql: MultiRow::new(
        "SELECT COUNT(*) FROM (SELECT m.due_at FROM message m FORCE INDEX (message_due) WHERE m.due_lane IN (",
        1,
        ") LIMIT ?) AS found",
    ),
};
static CIRCUITS: MultiRow =
    MultiRow::new("SELECT account FROM circuit WHERE tenant = ? AND account IN (", 1, ")");
macro_rules! used {
    ($integer:literal) => {
        MultiRow::new(
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
static USED: MultiRowSql =
    MultiRowSql { sqlite: used!("BIGINT"), postgres: used!("BIGINT"), mysql: used!("SIGNED") };
static SETTINGS: MultiRow =
    MultiRow::new("SELECT id, settings FROM account WHERE tenant = ? AND id IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![
        LANES.sample().into(),
        WAITING.sample(),
        CIRCUITS.sample().into(),
        USED.sample(),
        SETTINGS.sample().into(),
    ]
}

/// Whether mail of an account with these limits must wait now, given the use in each span.
pub(crate) fn is_used_up(settings: &AccountSettings, now: Time, used: impl Fn(LimitSpan) -> i64) -> bool {
    let limits = settings.effective_limits(now);
    // Mail beyond a rejecting limit does not wait: it fails.
    limits.behavior == LimitBehavior::Defer && limits.left(used) == 0
}

/// What blocks these accounts now.
pub(crate) async fn gates(
    session: &mut dyn SqlSession,
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
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    accounts: &[AccountId],
    now: Time,
) -> Result<Vec<AccountId>, StoreError> {
    let oldest = LimitSpan::ALL.map(|span| span.oldest_counted(now));
    let mut used: BTreeMap<AccountId, Vec<(LimitSpan, i64)>> = BTreeMap::new();
    for (sql, run) in USED.runs(accounts) {
        let place = values![tenant.as_str(), oldest[0], oldest[1], oldest[2]];
        for row in session.rows(sql, named(place, run)).await? {
            let span = decode::coded(row.int(1)?, LimitSpan::from_code)?;
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
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    now: Time,
) -> Result<i64, StoreError> {
    let waiting = waiting_lanes(session, LaneRange::of_tenant(tenant)).await?;
    let (mut blocked, mut by_account): (Vec<LaneId>, BTreeMap<AccountId, Vec<LaneId>>) = Default::default();
    for (sql, run) in LANES.runs(&waiting) {
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes()));
        for row in session.rows(sql.into(), values![tenant.as_str()].into_iter().chain(ids).collect()).await?
        {
            let lane = LaneId::from_bytes(row.id16(0)?);
            match row.text(2)? == "suspended" {
                true => blocked.push(lane),
                false => by_account.entry(row.parsed(1)?).or_default().push(lane),
            }
        }
    }
    let accounts: Vec<AccountId> = by_account.keys().cloned().collect();
    let shut: BTreeSet<AccountId> =
        gates(session, tenant, &accounts, now).await?.into_iter().map(|(id, _)| id).collect();
    blocked.extend(shut.iter().filter_map(|id| by_account.get(id)).flatten());
    let mut held = 0;
    for (sql, run) in WAITING.runs(&blocked) {
        if held >= SuspensionRecord::HELD_MAX {
            break;
        }
        let left = Value::from(SuspensionRecord::HELD_MAX - held);
        let ids = run.iter().map(|lane| Value::from(lane.as_bytes()));
        held += count(session, sql, ids.chain([left]).collect()).await?;
    }
    Ok(held)
}

fn named(mut place: Vec<Value>, accounts: &[AccountId]) -> Vec<Value> {
    place.extend(accounts.iter().map(|id| Value::from(id.as_str())));
    place
}
