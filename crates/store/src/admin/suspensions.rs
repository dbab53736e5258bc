//! Suspensions, circuits, and the batches that suspensions apply to.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use postway_domain::{Lane, MessageStatus, TenantId, id::BatchCode};

use crate::{
    error::StoreError,
    record::{
        AccountKey, BatchRecord, ChangeResult, OpenCircuit, SuspensionRecord, SuspensionScope, WireCommit,
    },
    sql::{Row, SqlSession, SqlText, Value, decode, multi_row::MultiRow, values, was_there},
};

/// Whether a lane is suspended, written as three separate lookups: as one condition, every suspension of the
/// tenant would be read for each lane.
macro_rules! is_suspended {
    ($lane:literal) => {
        concat!(
            "(EXISTS (SELECT 1 FROM suspension s WHERE s.tenant = ",
            $lane,
            ".tenant AND s.kind = 0) OR EXISTS (SELECT 1 FROM suspension s WHERE s.tenant = ",
            $lane,
            ".tenant AND s.kind = 1 AND s.code = ",
            $lane,
            ".batch) OR EXISTS (SELECT 1 FROM suspension s WHERE s.tenant = ",
            $lane,
            ".tenant AND s.kind = 2 AND s.code = ",
            $lane,
            ".account))"
        )
    };
}
pub(crate) use is_suspended;

const SUSPEND: SqlText = SqlText::or_mysql(
    "INSERT INTO suspension (tenant, kind, code, since) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO suspension (tenant, kind, code, since) VALUES (?, ?, ?, ?)",
);
const ACTIVATE: SqlText = SqlText::same("DELETE FROM suspension WHERE tenant = ? AND kind = ? AND code = ?");
const LIST: SqlText =
    SqlText::same("SELECT tenant, kind, code, since FROM suspension WHERE tenant = ? ORDER BY kind, code");
/// Whether a tenant is suspended, and which of its accounts are. Rows of kind 9 and 8 say that the tenant has
/// suppressions, and a directory of recipients: most have neither, and then no recipient need be looked up.
/// Kind 7 says that the installation has suppressions.
static OF_TENANTS: MultiRow = MultiRow::of_pieces(
    "",
    "SELECT tenant, kind, code, since FROM suspension WHERE tenant = ? AND kind IN (0, 2) UNION ALL \
     SELECT tenant, 9, '', 0 FROM (SELECT tenant FROM suppression WHERE tenant = ? LIMIT 1) AS listed UNION ALL \
     SELECT tenant, 9, '', 0 FROM (SELECT tenant FROM scoped_suppression WHERE tenant = ? LIMIT 1) AS scoped UNION ALL \
     SELECT tenant, 8, '', 0 FROM (SELECT tenant FROM known_recipient WHERE tenant = ? LIMIT 1) AS known",
    " UNION ALL ",
    " UNION ALL SELECT tenant, 7, '', 0 FROM (SELECT tenant FROM scoped_suppression WHERE tenant = '' LIMIT 1) AS everywhere",
);
/// Batches are looked up by name, because a tenant may have any number of suspended ones.
static OF_BATCHES: MultiRow = MultiRow::of_pieces(
    "",
    "SELECT tenant, kind, code, since FROM suspension WHERE tenant = ? AND kind = 1 AND code = ?",
    " UNION ALL ",
    "",
);
const ALL_HAVE_LIST: i64 = 7;
const HAS_LIST: i64 = 9;
const KNOWS_RECIPIENTS: i64 = 8;
/// A batch exists if it has a lane, or was suspended before its first message.
const BATCHES: SqlText = SqlText::same(
    "SELECT b.code, s.since FROM (SELECT code FROM (SELECT DISTINCT batch AS code FROM lane WHERE tenant = ? AND batch > ? \
     ORDER BY batch LIMIT ?) AS used UNION SELECT code FROM (SELECT code FROM suspension WHERE tenant = ? AND kind = 1 \
     AND code > ? ORDER BY code LIMIT ?) AS paused) AS b \
     LEFT JOIN suspension s ON s.tenant = ? AND s.kind = 1 AND s.code = b.code ORDER BY b.code LIMIT ?",
);
macro_rules! states {
    ($messages:literal) => {
        concat!(
            "SELECT status, COUNT(*) FROM (SELECT m.status AS status FROM lane l ",
            $messages,
            " WHERE l.tenant = ? AND l.batch = ? LIMIT ?) AS found GROUP BY status"
        )
    };
}
/// Counted in the order of the index of waiting messages, which MySQL has on a generated column.
const WAITING: SqlText = SqlText::or_mysql(
    "SELECT COUNT(*) FROM (SELECT m.due_at FROM lane l JOIN message m ON m.lane = l.id WHERE l.tenant = ? AND l.batch = ? \
     AND m.due_at IS NOT NULL LIMIT ?) AS found",
    "SELECT COUNT(*) FROM (SELECT m.due_at FROM lane l JOIN message m ON m.due_lane = l.id WHERE l.tenant = ? \
     AND l.batch = ? LIMIT ?) AS found",
);
/// PostgreSQL would read all of a lane in its index before the first message. It follows the index instead if
/// row values are compared and the limit is not known to its plan.
pub(crate) const STATES: SqlText = SqlText::of_each(
    states!("JOIN message m ON m.lane = l.id"),
    states!(
        "CROSS JOIN LATERAL (SELECT o.status FROM message o WHERE (o.lane, o.uid) >= (l.id, '\\x') \
         AND (o.lane, o.uid) <= (l.id, '\\xffffffffffffffffffffffffffffffff') ORDER BY o.lane, o.uid \
         LIMIT (SELECT 10000)) AS m"
    ),
    states!("JOIN message m ON m.lane = l.id"),
);
const _: () = assert!(BatchRecord::COUNTED_MAX == 10_000);
/// The accounts of a tenant, which may have any number of lanes; or those that ever had mail of one of its
/// batches.
const ACCOUNTS: SqlText = SqlText::same("SELECT id FROM account WHERE tenant = ?");
const ACCOUNTS_OF_BATCH: SqlText =
    SqlText::same("SELECT DISTINCT account FROM lane WHERE tenant = ? AND batch = ?");
const OPEN_CIRCUIT: SqlText = SqlText::or_mysql(
    "INSERT INTO circuit (tenant, account, code, reason, opened_at, open_until, faults) VALUES (?, ?, ?, ?, ?, ?, ?) \
     ON CONFLICT (tenant, account) DO UPDATE SET code = excluded.code, reason = excluded.reason, \
     open_until = excluded.open_until, faults = excluded.faults",
    "INSERT INTO circuit (tenant, account, code, reason, opened_at, open_until, faults) VALUES (?, ?, ?, ?, ?, ?, ?) \
     ON DUPLICATE KEY UPDATE code = VALUES(code), reason = VALUES(reason), open_until = VALUES(open_until), \
     faults = VALUES(faults)",
);
const CLOSE_CIRCUIT: SqlText = SqlText::same("DELETE FROM circuit WHERE tenant = ? AND account = ?");
const CIRCUIT: SqlText = SqlText::same(
    "SELECT tenant, account, code, reason, opened_at, open_until, faults FROM circuit \
     WHERE tenant = ? AND account = ?",
);
const CIRCUITS_OF: SqlText = SqlText::same(
    "SELECT tenant, account, code, reason, opened_at, open_until, faults FROM circuit WHERE tenant = ? \
     ORDER BY account",
);
const CIRCUITS: SqlText = SqlText::same(
    "SELECT tenant, account, code, reason, opened_at, open_until, faults FROM circuit ORDER BY tenant, account",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[
    SUSPEND,
    ACTIVATE,
    LIST,
    BATCHES,
    WAITING,
    STATES,
    ACCOUNTS,
    ACCOUNTS_OF_BATCH,
    OPEN_CIRCUIT,
    CLOSE_CIRCUIT,
    CIRCUIT,
    CIRCUITS_OF,
    CIRCUITS,
];

/// Sample texts, for the test that prepares every statement.
#[cfg(test)]
pub(crate) fn multi() -> [&'static MultiRow; 2] {
    [&OF_TENANTS, &OF_BATCHES]
}

/// The tenants and batches whose suspensions a transaction must know.
#[derive(Debug, Default)]
pub(crate) struct GateQuestion {
    pub tenants: BTreeSet<TenantId>,
    batches: BTreeSet<(TenantId, BatchCode)>,
}

impl GateQuestion {
    pub fn lane(&mut self, lane: &Lane) {
        self.tenant(&lane.tenant);
        if let Some(batch) = &lane.batch {
            self.batches.insert((lane.tenant.clone(), batch.clone()));
        }
    }

    /// Asks for a tenant whose lanes may come up later: see [`suspended_batches`].
    pub fn tenant(&mut self, tenant: &TenantId) {
        if !self.tenants.contains(tenant) {
            self.tenants.insert(tenant.clone());
        }
    }
}

/// What is suspended, for the tenants of one transaction, and which of them have suppressions or a directory
/// of recipients.
#[derive(Debug, Default)]
pub(crate) struct SuspensionGates {
    paused: HashMap<TenantId, HashSet<SuspensionScope>>,
    with_list: HashSet<TenantId>,
    all_have_list: bool,
    with_recipients: HashSet<TenantId>,
}

impl SuspensionGates {
    pub fn add(&mut self, suspension: SuspensionRecord) {
        self.paused.entry(suspension.tenant).or_default().insert(suspension.scope);
    }

    /// Whether there are suppressions that a tenant's mail must be compared with.
    pub fn has_list(&self, tenant: &TenantId) -> bool {
        self.all_have_list || self.with_list.contains(tenant)
    }

    /// Whether a tenant has a directory of recipients.
    pub fn knows_recipients(&self, tenant: &TenantId) -> bool {
        self.with_recipients.contains(tenant)
    }

    /// Whether an account may send, for itself or for another.
    pub fn may_send(&self, key: &AccountKey) -> bool {
        let paused = self.paused.get(&key.tenant);
        paused.is_none_or(|paused| !paused.contains(&SuspensionScope::Account(key.account.clone())))
    }

    /// Whether a message may leave now: neither its lane nor the account that sends it is suspended.
    pub fn may_leave(&self, commit: &WireCommit) -> bool {
        let sender = commit.via.as_ref().map(|account| {
            let tenant = commit.lane.tenant.clone();
            AccountKey { tenant, account: account.clone() }
        });
        self.pass(&commit.lane) && sender.is_none_or(|sender| self.may_send(&sender))
    }

    /// Whether a lane is open.
    pub fn pass(&self, lane: &Lane) -> bool {
        let Some(paused) = self.paused.get(&lane.tenant) else { return true };
        // Looked up one by one: a transaction may have thousands of suspended batches.
        let batch = lane.batch.clone().map(SuspensionScope::Batch);
        let mut scopes = [SuspensionScope::Tenant, SuspensionScope::Account(lane.account.clone())]
            .into_iter()
            .chain(batch);
        !scopes.any(|scope| paused.contains(&scope))
    }
}

/// Reads which of the tenants, accounts and batches in `asked` are suspended.
pub(crate) async fn suspensions_of(
    session: &mut dyn SqlSession,
    asked: GateQuestion,
) -> Result<SuspensionGates, StoreError> {
    let mut gates = SuspensionGates::default();
    let batches: Vec<(TenantId, BatchCode)> = asked.batches.into_iter().collect();
    add_batches(session, &batches, &mut gates).await?;
    let tenants: Vec<TenantId> = asked.tenants.into_iter().collect();
    for (sql, run) in OF_TENANTS.runs(&tenants) {
        let values = run.iter().flat_map(|tenant| vec![Value::from(tenant.as_str()); 4]).collect();
        for row in session.rows(sql.into(), values).await? {
            match row.int(1)? {
                ALL_HAVE_LIST => gates.all_have_list = true,
                HAS_LIST => drop(gates.with_list.insert(row.parsed(0)?)),
                KNOWS_RECIPIENTS => drop(gates.with_recipients.insert(row.parsed(0)?)),
                _ => gates.add(read(&row)?),
            }
        }
    }
    Ok(gates)
}

/// Adds the suspended ones of these batches of a tenant.
pub(crate) async fn suspended_batches(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    codes: impl Iterator<Item = &BatchCode>,
    gates: &mut SuspensionGates,
) -> Result<(), StoreError> {
    let batches: Vec<(TenantId, BatchCode)> = codes.map(|code| (tenant.clone(), code.clone())).collect();
    add_batches(session, &batches, gates).await
}

async fn add_batches(
    session: &mut dyn SqlSession,
    batches: &[(TenantId, BatchCode)],
    gates: &mut SuspensionGates,
) -> Result<(), StoreError> {
    for (sql, run) in OF_BATCHES.runs(batches) {
        let names = run.iter().flat_map(|(tenant, code)| [tenant.as_str(), code.as_str()]);
        for row in session.rows(sql.into(), names.map(Value::from).collect()).await? {
            gates.add(read(&row)?);
        }
    }
    Ok(())
}

pub(crate) async fn suspend(
    session: &mut dyn SqlSession,
    suspension: &SuspensionRecord,
) -> Result<ChangeResult, StoreError> {
    let (kind, code) = suspension.scope.parts();
    let values = values![suspension.tenant.as_str(), kind, code, suspension.since];
    Ok(if session.insert(SUSPEND, values).await? { ChangeResult::Done } else { ChangeResult::Already })
}

pub(crate) async fn activate(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    scope: &SuspensionScope,
) -> Result<ChangeResult, StoreError> {
    let (kind, code) = scope.parts();
    let rows = session.execute(ACTIVATE, values![tenant.as_str(), kind, code]).await?;
    Ok(if rows == 1 { ChangeResult::Done } else { ChangeResult::Already })
}

/// The accounts whose mail a suspension may block.
pub(crate) async fn accounts_in(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    scope: &SuspensionScope,
) -> Result<Vec<AccountKey>, StoreError> {
    let rows = match scope {
        SuspensionScope::Tenant => session.rows(ACCOUNTS, values![tenant.as_str()]).await?,
        SuspensionScope::Batch(code) => {
            session.rows(ACCOUNTS_OF_BATCH, values![tenant.as_str(), code.as_str()]).await?
        }
        SuspensionScope::Account(id) => {
            return Ok(vec![AccountKey { tenant: tenant.clone(), account: id.clone() }]);
        }
    };
    rows.iter().map(|row| Ok(AccountKey { tenant: tenant.clone(), account: row.parsed(0)? })).collect()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
) -> Result<Vec<SuspensionRecord>, StoreError> {
    session.rows(LIST, values![tenant.as_str()]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<SuspensionRecord, StoreError> {
    let scope = match row.int(1)? {
        0 => SuspensionScope::Tenant,
        1 => SuspensionScope::Batch(row.parsed(2)?),
        2 => SuspensionScope::Account(row.parsed(2)?),
        kind => return Err(StoreError::Unexpected(format!("a suspension of the unknown kind {kind}"))),
    };
    Ok(SuspensionRecord { tenant: row.parsed(0)?, scope, since: row.time(3)? })
}

pub(crate) async fn batches(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: Option<&BatchCode>,
    limit: u32,
) -> Result<Vec<BatchRecord>, StoreError> {
    let id = tenant.as_str();
    let after = after.map_or("", |code| code.as_str());
    let values = values![id, after, limit, id, after, limit, id, limit];
    let mut batches = Vec::new();
    for row in session.rows(BATCHES, values).await? {
        let code: BatchCode = row.parsed(0)?;
        let waiting = count(session, WAITING, values![id, code.as_str(), BatchRecord::WAITING_MAX]).await?;
        batches.push(BatchRecord { code, suspended_since: row.opt_time(1)?, waiting });
    }
    Ok(batches)
}

/// The number of a batch's messages in each status.
pub(crate) async fn batch_states(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    code: &BatchCode,
) -> Result<BTreeMap<MessageStatus, i64>, StoreError> {
    let values = values![tenant.as_str(), code.as_str(), BatchRecord::COUNTED_MAX];
    let read = |row: &Row| Ok((decode::coded(row.int(0)?, MessageStatus::from_code)?, row.int(1)?));
    session.rows(STATES, values).await?.iter().map(read).collect()
}

pub(crate) async fn count(
    session: &mut dyn SqlSession,
    sql: SqlText,
    values: Vec<Value>,
) -> Result<i64, StoreError> {
    session.rows(sql, values).await?.first().map_or(Ok(0), |row| row.int(0))
}

pub(crate) async fn open_circuit(
    session: &mut dyn SqlSession,
    circuit: &OpenCircuit,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        circuit.key.tenant.as_str(),
        circuit.key.account.as_str(),
        circuit.code.as_str(),
        circuit.reason.as_str(),
        circuit.opened_at,
        circuit.open_until,
        circuit.faults,
    ];
    session.execute(OPEN_CIRCUIT, values).await.map(|_| ChangeResult::Done)
}

pub(crate) async fn close_circuit(
    session: &mut dyn SqlSession,
    key: &AccountKey,
) -> Result<ChangeResult, StoreError> {
    session.execute(CLOSE_CIRCUIT, values![key.tenant.as_str(), key.account.as_str()]).await.map(was_there)
}

pub(crate) async fn circuit(
    session: &mut dyn SqlSession,
    key: &AccountKey,
) -> Result<Option<OpenCircuit>, StoreError> {
    let rows = session.rows(CIRCUIT, values![key.tenant.as_str(), key.account.as_str()]).await?;
    rows.first().map(read_circuit).transpose()
}

pub(crate) async fn circuits(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<OpenCircuit>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(CIRCUITS_OF, values![tenant.as_str()]).await?,
        None => session.rows(CIRCUITS, values![]).await?,
    };
    rows.iter().map(read_circuit).collect()
}

fn read_circuit(row: &Row) -> Result<OpenCircuit, StoreError> {
    Ok(OpenCircuit {
        key: AccountKey { tenant: row.parsed(0)?, account: row.parsed(1)? },
        code: row.text(2)?.to_owned(),
        reason: row.text(3)?.to_owned(),
        opened_at: row.time(4)?,
        open_until: row.time(5)?,
        faults: u32::try_from(row.int(6)?).unwrap_or(u32::MAX),
    })
}
