//! Suppression lists: addresses that get no mail.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use postway_domain::{EmailAddress, Lane, TenantId, Time};

use super::scoped_suppressions::{self, ScopedMatches};
use crate::{
    error::StoreError,
    record::{ChangeResult, SuppressionListChange, SuppressionOrigin, SuppressionReason, SuppressionRecord},
    sql::{
        Row, SqlSession, SqlText, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        values, was_there,
    },
};

const ADD: SqlText = SqlText::or_mysql(
    "INSERT INTO suppression (tenant, address, reason, note, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?) \
     ON CONFLICT (tenant, address) DO UPDATE SET reason = excluded.reason, note = excluded.note, \
     created_at = excluded.created_at, expires_at = excluded.expires_at",
    "INSERT INTO suppression (tenant, address, reason, note, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?) \
     ON DUPLICATE KEY UPDATE reason = VALUES(reason), note = VALUES(note), created_at = VALUES(created_at), \
     expires_at = VALUES(expires_at)",
);
macro_rules! report {
    ($end:literal) => {
        MultiRow::new(
            "INSERT INTO suppression (tenant, address, reason, note, created_at, expires_at) VALUES ",
            6,
            $end,
        )
    };
}
macro_rules! report_on_conflict {
    () => {
        report!(
            " ON CONFLICT (tenant, address) DO UPDATE SET reason = excluded.reason, note = excluded.note, \
             created_at = excluded.created_at, expires_at = excluded.expires_at \
             WHERE excluded.expires_at IS NULL OR excluded.expires_at >= suppression.expires_at"
        )
    };
}
/// An existing suppression that lasts longer stays: see [`SuppressionRecord::yields_to`].
static REPORT: MultiRowSql = MultiRowSql {
    sqlite: report_on_conflict!(),
    postgres: report_on_conflict!(),
    // The expiry is assigned last, because the assignments before it must see the old value.
    mysql: report!(
        " ON DUPLICATE KEY UPDATE \
         reason = IF(VALUES(expires_at) IS NULL OR VALUES(expires_at) >= suppression.expires_at, VALUES(reason), reason), \
         note = IF(VALUES(expires_at) IS NULL OR VALUES(expires_at) >= suppression.expires_at, VALUES(note), note), \
         created_at = IF(VALUES(expires_at) IS NULL OR VALUES(expires_at) >= suppression.expires_at, VALUES(created_at), \
         created_at), \
         expires_at = IF(VALUES(expires_at) IS NULL OR VALUES(expires_at) >= suppression.expires_at, VALUES(expires_at), \
         suppression.expires_at)"
    ),
};
const REMOVE: SqlText = SqlText::same("DELETE FROM suppression WHERE tenant = ? AND address = ?");
const FIND: SqlText = SqlText::same(
    "SELECT tenant, address, reason, note, created_at, expires_at FROM suppression WHERE tenant = ? AND address = ?",
);
const ENDED: SqlText = SqlText::of_each(
    "SELECT tenant, address, reason, note, created_at, expires_at FROM suppression WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ?",
    "SELECT tenant, address, reason, note, created_at, expires_at FROM suppression WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ? FOR UPDATE",
    "SELECT tenant, address, reason, note, created_at, expires_at FROM suppression WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ? FOR UPDATE",
);
const LIST: SqlText = SqlText::same(
    "SELECT tenant, address, reason, note, created_at, expires_at FROM suppression \
     WHERE tenant = ? AND address > ? ORDER BY address LIMIT ?",
);
/// The most rows removed in one transaction; the rest waits for the next run, and has no effect in the
/// meantime.
const FORGOTTEN_MAX: u32 = 5_000;
static FORGET: MultiRow =
    MultiRow::new("DELETE FROM suppression WHERE tenant = ? AND expires_at <= ? AND address IN (", 1, ")");
static AMONG: MultiRow = MultiRow::new(
    "SELECT address FROM suppression WHERE tenant = ? AND (expires_at IS NULL OR expires_at > ?) AND address IN (",
    1,
    ")",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[ADD, REMOVE, FIND, ENDED, LIST];

/// A sample text, for the test that prepares every statement.
#[cfg(test)]
pub(crate) fn multi() -> [SqlText; 2] {
    [REPORT.sample(), FORGET.sample().into()]
}

/// The suppressed addresses of a transaction, with and without scopes.
#[derive(Debug, Default)]
pub(crate) struct SuppressedAddresses {
    listed: HashSet<(TenantId, String)>,
    pub(crate) scoped: ScopedMatches,
}

impl SuppressedAddresses {
    /// Whether an address gets no mail of this lane.
    pub fn contains(&self, lane: &Lane, address: &str) -> bool {
        let address = address.to_ascii_lowercase();
        let is_listed = |address: String| self.listed.contains(&(lane.tenant.clone(), address));
        !self.listed.is_empty() && EmailAddress::spellings_of(&address).any(is_listed)
            || self.scoped.contains(lane, &address)
    }
}

impl FromIterator<(TenantId, String)> for SuppressedAddresses {
    fn from_iter<I: IntoIterator<Item = (TenantId, String)>>(addresses: I) -> Self {
        Self { listed: addresses.into_iter().collect(), scoped: ScopedMatches::default() }
    }
}

/// The addresses to look up, in lower case, by tenant.
pub(crate) type Recipients = BTreeMap<TenantId, BTreeSet<String>>;

/// Reads which of these addresses are suppressed.
pub(crate) async fn suppressed_of(
    session: &mut dyn SqlSession,
    recipients: Recipients,
    now: Time,
) -> Result<SuppressedAddresses, StoreError> {
    let mut suppressed = SuppressedAddresses::default();
    for (tenant, addresses) in recipients {
        // Lists written by earlier versions have domains as U-labels.
        let addresses: Vec<String> =
            addresses.iter().flat_map(|address| EmailAddress::spellings_of(address)).collect();
        for (sql, run) in AMONG.runs(&addresses) {
            let mut values = values![tenant.as_str(), now];
            values.extend(run.iter().map(|address| Value::from(address.as_str())));
            for row in session.rows(sql.into(), values).await? {
                suppressed.listed.insert((tenant.clone(), row.text(0)?.to_owned()));
            }
        }
        scoped_suppressions::among(session, &tenant, &addresses, now, &mut suppressed.scoped).await?;
    }
    Ok(suppressed)
}

/// Adds suppressions that reports ask for, unless an existing one of the same address lasts longer. Returns
/// those that began.
pub(crate) async fn report(
    session: &mut dyn SqlSession,
    asked: Vec<SuppressionRecord>,
    origin: SuppressionOrigin,
) -> Result<Vec<SuppressionListChange>, StoreError> {
    // One row for each address, in order, so that two transactions that add the same addresses lock them in
    // the same order.
    let mut merged: BTreeMap<(TenantId, String), SuppressionRecord> = BTreeMap::new();
    for one in asked {
        let key = (one.tenant.clone(), one.address.clone());
        if merged.get(&key).is_none_or(|earlier| earlier.yields_to(&one)) {
            merged.insert(key, one);
        }
    }
    let merged: Vec<SuppressionRecord> = merged.into_values().collect();
    let begun = begun_by(session, &merged, origin).await?;
    for (sql, run) in REPORT.runs(&merged) {
        session.execute(sql, run.iter().flat_map(row_of).collect()).await?;
    }
    Ok(begun)
}

/// Which of these suppressions begin by being added: the others hold already.
async fn begun_by(
    session: &mut dyn SqlSession,
    list: &[SuppressionRecord],
    origin: SuppressionOrigin,
) -> Result<Vec<SuppressionListChange>, StoreError> {
    let mut by_tenant: BTreeMap<&TenantId, BTreeMap<&str, &SuppressionRecord>> = BTreeMap::new();
    for one in list {
        by_tenant.entry(&one.tenant).or_default().insert(&one.address, one);
    }
    let mut begun = Vec::new();
    for (tenant, mut of_tenant) in by_tenant {
        let Some(at) = of_tenant.values().map(|one| one.created_at).max() else { continue };
        let addresses: Vec<&str> = of_tenant.keys().copied().collect();
        for (sql, run) in AMONG.runs(&addresses) {
            let mut values = values![tenant.as_str(), at];
            values.extend(run.iter().map(|address| Value::from(*address)));
            for row in session.rows(sql.into(), values).await? {
                of_tenant.remove(row.text(0)?);
            }
        }
        begun.extend(of_tenant.values().map(|one| SuppressionListChange::begin(one, origin)));
    }
    Ok(begun)
}

fn row_of(one: &SuppressionRecord) -> Vec<Value> {
    values![
        one.tenant.as_str(),
        one.address.as_str(),
        one.reason.code(),
        one.note.as_deref(),
        one.created_at,
        one.expires_at,
    ]
}

/// Adds suppressions; each replaces an existing one of the same address. Returns those that began.
pub(crate) async fn add(
    session: &mut dyn SqlSession,
    list: &[SuppressionRecord],
) -> Result<Vec<SuppressionListChange>, StoreError> {
    let begun = begun_by(session, list, SuppressionOrigin::Operator).await?;
    for one in list {
        session.execute(ADD, row_of(one)).await?;
    }
    Ok(begun)
}

pub(crate) async fn remove(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    addresses: &[String],
    at: Time,
) -> Result<(ChangeResult, Vec<SuppressionListChange>), StoreError> {
    let (mut removed, mut ended) = (0, Vec::new());
    for address in addresses.iter().flat_map(|address| EmailAddress::spellings_of(address)) {
        let place = || values![tenant.as_str(), address.as_str()];
        let found = session.rows(FIND, place()).await?.first().map(read).transpose()?;
        let is_gone = session.execute(REMOVE, place()).await?;
        removed += is_gone;
        let held = found.filter(|one| is_gone > 0 && one.holds_at(at));
        ended.extend(held.map(|one| SuppressionListChange::end(&one, SuppressionOrigin::Operator, at)));
    }
    Ok((was_there(removed), ended))
}

/// Removes suppressions whose time is over. Returns them.
pub(crate) async fn forget(
    session: &mut dyn SqlSession,
    now: Time,
) -> Result<Vec<SuppressionListChange>, StoreError> {
    let rows = session.rows(ENDED, values![now, FORGOTTEN_MAX]).await?;
    let over: Vec<SuppressionRecord> = rows.iter().map(read).collect::<Result<_, _>>()?;
    let mut by_tenant: BTreeMap<&TenantId, Vec<&str>> = BTreeMap::new();
    for one in &over {
        by_tenant.entry(&one.tenant).or_default().push(&one.address);
    }
    for (tenant, addresses) in by_tenant {
        for (sql, run) in FORGET.runs(&addresses) {
            let mut values = values![tenant.as_str(), now];
            values.extend(run.iter().map(|address| Value::from(*address)));
            session.execute(sql.into(), values).await?;
        }
    }
    let ended = |one: &SuppressionRecord| {
        SuppressionListChange::end(one, SuppressionOrigin::Expiry, one.expires_at.unwrap_or(now))
    };
    Ok(over.iter().map(ended).collect())
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    address: &str,
) -> Result<Option<SuppressionRecord>, StoreError> {
    for address in EmailAddress::spellings_of(address) {
        if let Some(row) = session.rows(FIND, values![tenant.as_str(), address.as_str()]).await?.first() {
            return read(row).map(Some);
        }
    }
    Ok(None)
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<SuppressionRecord>, StoreError> {
    let values = values![tenant.as_str(), after.unwrap_or_default(), limit];
    session.rows(LIST, values).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<SuppressionRecord, StoreError> {
    Ok(SuppressionRecord {
        tenant: row.parsed(0)?,
        address: row.text(1)?.to_owned(),
        reason: decode::coded(row.int(2)?, SuppressionReason::from_code)?,
        note: row.opt_text(3)?.map(ToOwned::to_owned),
        created_at: row.time(4)?,
        expires_at: row.opt_time(5)?,
    })
}
