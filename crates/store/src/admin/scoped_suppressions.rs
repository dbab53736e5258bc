//! Suppressions with a scope other than a tenant's list: one stream, a pattern, the whole installation.
//!
//! All patterns that an address can match are looked up by name, so the cost for a message does not depend on
//! the length of the lists.

use std::collections::HashSet;

use postway_domain::{EmailAddress, Lane, MailStream, TenantId, Time, suppression::SuppressionPattern};

use crate::{
    error::StoreError,
    record::{
        ChangeResult, ScopeFilter, ScopedSuppression, SuppressionListChange, SuppressionOrigin,
        SuppressionReason, SuppressionScope,
    },
    sql::{Row, SqlSession, SqlText, Value, decode, multi_row::MultiRow, values, was_there},
};

macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, pattern, stream, reason, note, created_at, expires_at FROM scoped_suppression ",
            $end
        )
    };
}
macro_rules! insert {
    ($end:literal) => {
        concat!(
            "INSERT INTO scoped_suppression (tenant, pattern, stream, reason, note, created_at, expires_at) ",
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            $end
        )
    };
}
const ADD: SqlText = SqlText::or_mysql(
    insert!(
        " ON CONFLICT (tenant, pattern, stream) DO UPDATE SET reason = excluded.reason, note = excluded.note, \
         created_at = excluded.created_at, expires_at = excluded.expires_at"
    ),
    insert!(
        " ON DUPLICATE KEY UPDATE reason = VALUES(reason), note = VALUES(note), created_at = VALUES(created_at), \
         expires_at = VALUES(expires_at)"
    ),
);
const ADD_NEW: SqlText = SqlText::or_mysql(insert!(" ON CONFLICT DO NOTHING"), insert!(""));
const REMOVE: SqlText =
    SqlText::same("DELETE FROM scoped_suppression WHERE tenant = ? AND pattern = ? AND stream = ?");
/// A reader's decision, which does not expire, replaces a suppression that does.
const REMOVE_ENDING: SqlText = SqlText::same(
    "DELETE FROM scoped_suppression WHERE tenant = ? AND pattern = ? AND stream = ? AND expires_at IS NOT NULL",
);
const REMOVE_FOR: SqlText = SqlText::same(
    "DELETE FROM scoped_suppression WHERE tenant = ? AND pattern = ? AND stream = ? AND reason = ?",
);
const FIND: SqlText = SqlText::same(select!("WHERE tenant = ? AND pattern = ? AND stream = ?"));
const LIST: SqlText = SqlText::same(select!(
    "WHERE tenant = ? AND (pattern > ? OR (pattern = ? AND stream > ?)) ORDER BY pattern, stream LIMIT ?"
));
const LIST_OF_STREAM: SqlText =
    SqlText::same(select!("WHERE tenant = ? AND stream = ? AND pattern > ? ORDER BY pattern LIMIT ?"));
const FORGOTTEN_MAX: u32 = 1_000;
const ENDED: SqlText = SqlText::of_each(
    select!("WHERE expires_at <= ? ORDER BY expires_at LIMIT ?"),
    select!("WHERE expires_at <= ? ORDER BY expires_at LIMIT ? FOR UPDATE"),
    select!("WHERE expires_at <= ? ORDER BY expires_at LIMIT ? FOR UPDATE"),
);
const HAS_SOME: SqlText =
    SqlText::same("SELECT reason FROM scoped_suppression WHERE tenant IN (?, '') LIMIT 1");
static AMONG: MultiRow = MultiRow::new(
    "SELECT tenant, pattern, stream FROM scoped_suppression WHERE tenant IN (?, '') \
     AND (expires_at IS NULL OR expires_at > ?) AND pattern IN (",
    1,
    ")",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[ADD, ADD_NEW, REMOVE, REMOVE_ENDING, REMOVE_FOR, FIND, LIST, LIST_OF_STREAM, ENDED, HAS_SOME];

#[cfg(test)]
pub(crate) fn multi() -> SqlText {
    AMONG.sample().into()
}

/// The scoped suppressions that apply in a transaction: tenant, pattern and stream; an empty text means all.
#[derive(Debug, Default)]
pub(crate) struct ScopedMatches(HashSet<(String, String, String)>);

impl ScopedMatches {
    pub fn add(&mut self, scope: &SuppressionScope) {
        let (tenant, pattern, stream) = parts(scope);
        self.0.insert((tenant.to_owned(), pattern.to_owned(), stream.to_owned()));
    }

    /// Whether an address, in lower case, gets no mail of this lane.
    pub fn contains(&self, lane: &Lane, address: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let stream = lane.batch.as_ref().and_then(MailStream::of_batch);
        let streams = [Some(String::new()), stream.map(|stream| stream.as_str().to_owned())];
        EmailAddress::spellings_of(address).flat_map(|address| SuppressionPattern::matching(&address)).any(
            |pattern| {
                let is_listed = |tenant: &str, stream: &String| {
                    self.0.contains(&(tenant.to_owned(), pattern.clone(), stream.clone()))
                };
                streams
                    .iter()
                    .flatten()
                    .any(|stream| is_listed(lane.tenant.as_str(), stream) || is_listed("", stream))
            },
        )
    }
}

/// The stored form: an empty text means all.
fn parts(scope: &SuppressionScope) -> (&str, &str, &str) {
    let tenant = scope.tenant.as_ref().map_or("", |tenant| tenant.as_str());
    (tenant, scope.pattern.as_str(), scope.stream.as_ref().map_or("", |stream| stream.as_str()))
}

fn place(scope: &SuppressionScope) -> Vec<Value> {
    let (tenant, pattern, stream) = parts(scope);
    values![tenant, pattern, stream]
}

fn row_of(one: &ScopedSuppression) -> Vec<Value> {
    let rest = values![one.reason.code(), one.note.as_deref(), one.created_at, one.expires_at];
    [place(&one.scope), rest].concat()
}

/// Adds the suppressions that apply to these addresses of a tenant.
pub(crate) async fn among(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    addresses: &[String],
    now: Time,
    matches: &mut ScopedMatches,
) -> Result<(), StoreError> {
    if session.rows(HAS_SOME, values![tenant.as_str()]).await?.is_empty() {
        return Ok(());
    }
    let patterns = addresses.iter().flat_map(|address| SuppressionPattern::matching(address));
    let patterns: HashSet<String> = patterns.collect();
    let patterns: Vec<String> = patterns.into_iter().collect();
    for (sql, run) in AMONG.runs(&patterns) {
        let mut values = values![tenant.as_str(), now];
        values.extend(run.iter().map(|pattern| Value::from(pattern.as_str())));
        for row in session.rows(sql.into(), values).await? {
            let texts = (row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.text(2)?.to_owned());
            matches.0.insert(texts);
        }
    }
    Ok(())
}

/// Adds suppressions; each replaces an existing one of the same scope.
pub(crate) async fn add(
    session: &mut dyn SqlSession,
    list: &[ScopedSuppression],
) -> Result<Vec<SuppressionListChange>, StoreError> {
    let mut begun = Vec::new();
    for one in list {
        let earlier = find(session, &one.scope).await?;
        session.execute(ADD, row_of(one)).await?;
        if !earlier.is_some_and(|earlier| earlier.holds_at(one.created_at)) {
            begun.extend(SuppressionListChange::begin_scoped(one, SuppressionOrigin::Operator));
        }
    }
    Ok(begun)
}

/// Adds a suppression unless one that does not expire exists. Returns whether it is new.
pub(crate) async fn add_new(
    session: &mut dyn SqlSession,
    one: &ScopedSuppression,
) -> Result<bool, StoreError> {
    session.execute(REMOVE_ENDING, place(&one.scope)).await?;
    session.insert(ADD_NEW, row_of(one)).await
}

/// Removes a suppression with this reason. Returns whether there was one.
pub(crate) async fn remove_for(
    session: &mut dyn SqlSession,
    scope: &SuppressionScope,
    reason: SuppressionReason,
) -> Result<bool, StoreError> {
    let values = [place(scope), values![reason.code()]].concat();
    Ok(session.execute(REMOVE_FOR, values).await? > 0)
}

pub(crate) async fn remove(
    session: &mut dyn SqlSession,
    scopes: &[SuppressionScope],
    at: Time,
) -> Result<(ChangeResult, Vec<SuppressionListChange>), StoreError> {
    let (mut removed, mut ended) = (0, Vec::new());
    for scope in scopes {
        let found = find(session, scope).await?;
        let is_gone = session.execute(REMOVE, place(scope)).await?;
        removed += is_gone;
        if let Some(one) = found.filter(|one| is_gone > 0 && one.holds_at(at)) {
            ended.extend(SuppressionListChange::end_scoped(&one, SuppressionOrigin::Operator, at));
        }
    }
    Ok((was_there(removed), ended))
}

/// Removes suppressions whose time is over. Returns those of tenants.
pub(crate) async fn forget(
    session: &mut dyn SqlSession,
    now: Time,
) -> Result<Vec<SuppressionListChange>, StoreError> {
    let rows = session.rows(ENDED, values![now, FORGOTTEN_MAX]).await?;
    let mut ended = Vec::with_capacity(rows.len());
    for row in &rows {
        let one = read(row)?;
        session.execute(REMOVE_ENDING, place(&one.scope)).await?;
        let at = one.expires_at.unwrap_or(now);
        ended.extend(SuppressionListChange::end_scoped(&one, SuppressionOrigin::Expiry, at));
    }
    Ok(ended)
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    scope: &SuppressionScope,
) -> Result<Option<ScopedSuppression>, StoreError> {
    session.rows(FIND, place(scope)).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    session: &mut dyn SqlSession,
    filter: &ScopeFilter,
    after: Option<&SuppressionScope>,
    limit: u32,
) -> Result<Vec<ScopedSuppression>, StoreError> {
    let tenant = filter.tenant.as_ref().map_or("", |tenant| tenant.as_str());
    let (_, pattern, stream) = after.map_or(("", "", ""), parts);
    let rows = match &filter.stream {
        Some(of) => session.rows(LIST_OF_STREAM, values![tenant, of.as_str(), pattern, limit]).await?,
        None => session.rows(LIST, values![tenant, pattern, pattern, stream, limit]).await?,
    };
    rows.iter().map(read).collect()
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<ScopedSuppression, StoreError> {
    let tenant = Some(row.text(0)?).filter(|tenant| !tenant.is_empty()).map(decode::parsed).transpose()?;
    let stream = Some(row.text(2)?).filter(|stream| !stream.is_empty()).map(decode::parsed).transpose()?;
    Ok(ScopedSuppression {
        scope: SuppressionScope { tenant, pattern: row.text(1)?.to_owned(), stream },
        reason: decode::coded(row.int(3)?, SuppressionReason::from_code)?,
        note: row.opt_string(4)?,
        created_at: row.time(5)?,
        expires_at: row.opt_time(6)?,
    })
}
