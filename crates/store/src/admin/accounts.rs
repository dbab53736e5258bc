//! Accounts.

use std::collections::BTreeSet;

use postway_domain::{
    Account, AccountId, LaneRange, MessageStatus, TenantId, oauth::OAuthOwner, secret::SealedSecret,
};

use super::{oauth, provider_hooks, suspensions};
use crate::{
    error::StoreError,
    record::{AccountKey, ChangeResult, SuspensionScope},
    sql::{
        Row, SqlSession, SqlText, Value, is_new,
        multi_row::{MultiRow, MultiRowSql},
        values,
        waiting_lanes::has_waiting,
        was_there,
    },
};

const CREATE: SqlText = SqlText::or_mysql(
    "INSERT INTO account (tenant, id, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO account (tenant, id, settings, secret, version, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?)",
);
const UPDATE: SqlText = SqlText::same(
    "UPDATE account SET settings = ?, secret = ?, version = ?, updated_at = ? \
     WHERE tenant = ? AND id = ? AND version = ?",
);
const FIND: SqlText = SqlText::same(
    "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account WHERE tenant = ? AND id = ?",
);
const OF_TENANT: SqlText = SqlText::same(
    "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account WHERE tenant = ? ORDER BY id",
);
const ALL: SqlText = SqlText::same(
    "SELECT tenant, id, settings, secret, version, created_at, updated_at FROM account ORDER BY tenant, id",
);
const IS_DEFAULT: SqlText = SqlText::same("SELECT id FROM tenant WHERE id = ? AND default_account = ?");
/// Locks the account, so that no mail is stored for it between the check for its mail and its deletion:
/// transactions that store mail share this lock.
const HOLD: SqlText = SqlText::of_each(
    "SELECT id FROM account WHERE tenant = ? AND id = ?",
    "SELECT id FROM account WHERE tenant = ? AND id = ? FOR UPDATE",
    "SELECT id FROM account WHERE tenant = ? AND id = ? FOR UPDATE",
);
macro_rules! there {
    ($end:literal) => {
        MultiRow::of_pieces("SELECT tenant, id FROM account WHERE ", "(tenant = ? AND id = ?)", " OR ", $end)
    };
}
/// Which of these accounts exist. A shared lock keeps them until the transaction ends.
static THERE: MultiRowSql = MultiRowSql {
    sqlite: there!(""),
    postgres: there!(" ORDER BY tenant, id FOR KEY SHARE"),
    mysql: there!(" ORDER BY tenant, id LOCK IN SHARE MODE"),
};
/// A walk does not find lanes with earlier ids: this looks up the first waiting message of each of them.
pub(crate) const HAS_MISPLACED: SqlText = SqlText::or_mysql(
    "SELECT l.id FROM lane l WHERE l.tenant = ? AND l.account = ? AND (l.id < ? OR l.id > ?) AND (SELECT m.due_at FROM message m WHERE m.lane = l.id \
     AND m.due_at IS NOT NULL ORDER BY m.due_at LIMIT 1) IS NOT NULL LIMIT 1",
    "SELECT l.id FROM lane l WHERE l.tenant = ? AND l.account = ? AND (l.id < ? OR l.id > ?) AND (SELECT m.due_at FROM message m \
     FORCE INDEX (message_due) WHERE m.due_lane = l.id ORDER BY m.due_lane, m.due_at LIMIT 1) IS NOT NULL LIMIT 1",
);
/// Unfinished messages that are not due are found by their state, of which a tenant has few: how many there
/// are, and how many of them belong to the account.
pub(crate) const AMONG_UNFINISHED: SqlText = SqlText::or_mysql(
    "SELECT COUNT(*), COUNT(CASE WHEN l.account = ? THEN 1 END) FROM (SELECT lane FROM message WHERE status = ? \
     AND tenant = ? ORDER BY uid LIMIT ?) AS found JOIN lane l ON l.id = found.lane",
    "SELECT COUNT(*), COUNT(CASE WHEN l.account = ? THEN 1 END) FROM (SELECT lane FROM message FORCE INDEX (message_status) \
     WHERE status = ? AND tenant = ? ORDER BY status, tenant, uid LIMIT ?) AS found \
     STRAIGHT_JOIN lane l ON l.id = found.lane",
);
/// Messages that wait to be prepared share their state with others, so they are found by their preparation. A
/// refused one is never due.
const AMONG_UNPREPARED: SqlText = SqlText::or_mysql(
    "SELECT COUNT(*), COUNT(CASE WHEN l.account = ? AND m.status = 3 THEN 1 END) FROM (SELECT uid FROM preparation \
     WHERE tenant = ? AND due_at < 253402300799999 ORDER BY due_at, uid LIMIT ?) AS found JOIN message m ON m.uid = found.uid \
     JOIN lane l ON l.id = m.lane",
    "SELECT COUNT(*), COUNT(CASE WHEN l.account = ? AND m.status = 3 THEN 1 END) FROM (SELECT uid FROM preparation \
     WHERE tenant = ? AND due_at < 253402300799999 ORDER BY due_at, uid LIMIT ?) AS found STRAIGHT_JOIN message m ON m.uid = found.uid \
     STRAIGHT_JOIN lane l ON l.id = m.lane",
);
/// The most messages examined. If the tenant has more unfinished ones, the account counts as one that has
/// mail.
pub(crate) const LOOKED_AT_MAX: i64 = 5_000;
const DELETE: SqlText = SqlText::same("DELETE FROM account WHERE tenant = ? AND id = ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[
    CREATE,
    UPDATE,
    FIND,
    OF_TENANT,
    ALL,
    IS_DEFAULT,
    HOLD,
    HAS_MISPLACED,
    AMONG_UNFINISHED,
    AMONG_UNPREPARED,
    DELETE,
];

/// A sample text, for the test that prepares every statement.
#[cfg(test)]
pub(crate) fn multi() -> SqlText {
    THERE.sample()
}

fn settings_json(account: &Account) -> Result<String, StoreError> {
    serde_json::to_string(&account.settings).map_err(|error| StoreError::Unexpected(error.to_string()))
}

pub(crate) async fn create(
    session: &mut dyn SqlSession,
    account: &Account,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        account.tenant.as_str(),
        account.id.as_str(),
        settings_json(account)?,
        account.secret.as_ref().map(|sealed| sealed.0.clone()),
        account.version,
        account.created_at,
        account.updated_at,
    ];
    session.insert(CREATE, values).await.map(is_new)
}

pub(crate) async fn update(
    session: &mut dyn SqlSession,
    account: &Account,
    expected: i64,
) -> Result<ChangeResult, StoreError> {
    let values = values![
        settings_json(account)?,
        account.secret.as_ref().map(|sealed| sealed.0.clone()),
        account.version,
        account.updated_at,
        account.tenant.as_str(),
        account.id.as_str(),
        expected,
    ];
    Ok(if session.execute(UPDATE, values).await? == 1 { ChangeResult::Done } else { ChangeResult::Stale })
}

pub(crate) async fn delete(
    session: &mut dyn SqlSession,
    key: &AccountKey,
) -> Result<ChangeResult, StoreError> {
    let place = || values![key.tenant.as_str(), key.account.as_str()];
    if session.rows(HOLD, place()).await?.is_empty() {
        return Ok(ChangeResult::Missing);
    }
    if !session.rows(IS_DEFAULT, place()).await?.is_empty() || has_mail(session, key).await? {
        return Ok(ChangeResult::InUse);
    }
    let deleted = session.execute(DELETE, place()).await.map(was_there)?;
    if deleted == ChangeResult::Done {
        // An account that is created later under the same name starts afresh. Its limit use stays: the relay
        // remembers, too.
        oauth::delete(session, &OAuthOwner::account(&key.tenant, &key.account)).await?;
        provider_hooks::delete(session, key).await?;
        suspensions::close_circuit(session, key).await?;
        let scope = SuspensionScope::Account(key.account.clone());
        suspensions::activate(session, &key.tenant, &scope).await?;
    }
    Ok(deleted)
}

/// Whether an account has mail that is not final. Final mail, of which there may be any amount, is not
/// examined.
async fn has_mail(session: &mut dyn SqlSession, key: &AccountKey) -> Result<bool, StoreError> {
    let (tenant, account) = (key.tenant.as_str(), key.account.as_str());
    let range = LaneRange::of_account(&key.tenant, &key.account);
    if has_waiting(session, key, range).await? {
        return Ok(true);
    }
    let outside = values![tenant, account, range.first.as_bytes(), range.last.as_bytes()];
    if !session.rows(HAS_MISPLACED, outside).await?.is_empty() {
        return Ok(true);
    }
    let unprepared = (AMONG_UNPREPARED, values![account, tenant, LOOKED_AT_MAX]);
    let by_state =
        [MessageStatus::Accepted, MessageStatus::Validating, MessageStatus::Sending, MessageStatus::InDoubt]
            .map(|status| (AMONG_UNFINISHED, values![account, status.code(), tenant, LOOKED_AT_MAX]));
    for (sql, values) in by_state.into_iter().chain([unprepared]) {
        let rows = session.rows(sql, values).await?;
        let Some(row) = rows.first() else { continue };
        let (looked_at, of_account) = (row.int(0)?, row.int(1)?);
        if of_account > 0 || looked_at >= LOOKED_AT_MAX {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which of these accounts exist. None of them can be deleted until the transaction ends.
pub(crate) async fn there(
    session: &mut dyn SqlSession,
    accounts: BTreeSet<AccountKey>,
) -> Result<BTreeSet<AccountKey>, StoreError> {
    let accounts: Vec<AccountKey> = accounts.into_iter().collect();
    let mut there = BTreeSet::new();
    for (sql, run) in THERE.runs(&accounts) {
        let names = run.iter().flat_map(|key| [key.tenant.as_str(), key.account.as_str()]);
        for row in session.rows(sql, names.map(Value::from).collect()).await? {
            there.insert(AccountKey { tenant: row.parsed(0)?, account: row.parsed(1)? });
        }
    }
    Ok(there)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    id: &AccountId,
) -> Result<Option<Account>, StoreError> {
    session.rows(FIND, values![tenant.as_str(), id.as_str()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: Option<&TenantId>,
) -> Result<Vec<Account>, StoreError> {
    let rows = match tenant {
        Some(tenant) => session.rows(OF_TENANT, values![tenant.as_str()]).await?,
        None => session.rows(ALL, Vec::new()).await?,
    };
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        tenant: row.parsed(0)?,
        id: row.parsed(1)?,
        settings: row.json(2)?,
        secret: row.opt_bytes(3)?.map(|bytes| SealedSecret(bytes.to_vec())),
        version: row.int(4)?,
        created_at: row.time(5)?,
        updated_at: row.time(6)?,
    })
}
