//! Writing the results of processing reported events. The rows are locked and their tokens compared, then
//! everything is written set-wise: findings about messages first, the events after them. A late worker writes
//! nothing.

use std::collections::{HashMap, HashSet};

use postway_domain::{MessageUid, ProviderEventState};

use crate::{
    error::StoreError,
    inbound::{
        claim::ids,
        findings::{self, FindingSource},
    },
    journal::EventJournal,
    record::ProviderEventResult,
    sql::{
        SqlSession,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

const LEASED: &str = "SELECT uid, lease_token FROM provider_event WHERE state = 1 AND uid IN (";
static LOCK: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(LEASED, 1, ")"),
    postgres: MultiRow::new(LEASED, 1, ") ORDER BY uid FOR UPDATE"),
    mysql: MultiRow::new(LEASED, 1, ") ORDER BY uid FOR UPDATE"),
};
/// The rows exist and are locked, so nothing is ever inserted. This form is the one in which all databases
/// can give each row its own values; the digest, which must be unique, is the id.
macro_rules! settle {
    ($end:literal) => {
        MultiRow::of_pieces(
            "INSERT INTO provider_event (uid, digest, state, due_at, tries, kind, message, error, settled_at, tenant, account, \
             provider, raw, lost_leases, created_at) VALUES ",
            "(?,?,?,?,?,?,?,?,?,'','','','',0,0)",
            ",",
            $end,
        )
    };
}
static SETTLE: MultiRowSql = MultiRowSql {
    sqlite: settle!(
        " ON CONFLICT (uid) DO UPDATE SET state = excluded.state, due_at = excluded.due_at, tries = excluded.tries, \
         kind = excluded.kind, message = excluded.message, error = excluded.error, settled_at = excluded.settled_at, \
         lost_leases = 0, lease_node = NULL, lease_token = NULL, lease_until = NULL"
    ),
    postgres: settle!(
        " ON CONFLICT (uid) DO UPDATE SET state = excluded.state, due_at = excluded.due_at, tries = excluded.tries, \
         kind = excluded.kind, message = excluded.message, error = excluded.error, settled_at = excluded.settled_at, \
         lost_leases = 0, lease_node = NULL, lease_token = NULL, lease_until = NULL"
    ),
    mysql: settle!(
        " ON DUPLICATE KEY UPDATE state = VALUES(state), due_at = VALUES(due_at), tries = VALUES(tries), kind = VALUES(kind), \
         message = VALUES(message), error = VALUES(error), settled_at = VALUES(settled_at), lost_leases = 0, \
         lease_node = NULL, lease_token = NULL, lease_until = NULL"
    ),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![LOCK.sample(), SETTLE.sample()]
}

/// Writes the results; `true` for each that was applied.
pub(crate) async fn settle(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    done: &[ProviderEventResult],
) -> Result<Vec<bool>, StoreError> {
    let mut uids: Vec<MessageUid> = done.iter().map(|one| one.uid).collect();
    uids.sort();
    uids.dedup();
    let mut leased: HashMap<MessageUid, Option<i64>> = HashMap::with_capacity(uids.len());
    for (sql, run) in LOCK.runs(&uids) {
        for row in session.rows(sql, ids(run)).await? {
            leased.insert(MessageUid::from_bytes(row.id16(0)?), row.opt_int(1)?);
        }
    }
    let held: Vec<bool> = done
        .iter()
        // An event is settled once, even if it is named twice.
        .map(|one| leased.remove(&one.uid).flatten() == Some(one.token.as_i64()))
        .collect();
    let mut ours: Vec<&ProviderEventResult> =
        done.iter().zip(&held).filter_map(|(one, held)| held.then_some(one)).collect();
    let sources: Vec<FindingSource<'_>> =
        ours.iter().map(|one| FindingSource::of_provider(one.uid, one.at, &one.findings)).collect();
    // An event is settled with its findings, or not at all: none of them can be there already.
    findings::write(session, journal, &sources, &HashSet::new()).await?;
    ours.sort_by_key(|one| one.uid);
    for (sql, run) in SETTLE.runs(&ours) {
        let mut values = Vec::with_capacity(9 * run.len());
        for one in run {
            let next = next_state(one.to);
            values.extend(values![
                one.uid.as_bytes(),
                one.uid.as_bytes(),
                next.code(),
                (!next.is_settled()).then_some(one.due_at.unwrap_or(one.at)),
                one.tries,
                one.kind,
                one.message.map(|uid| uid.as_bytes().to_vec()),
                one.error.as_deref(),
                next.is_settled().then_some(one.at),
            ]);
        }
        session.execute(sql, values).await?;
    }
    Ok(held)
}

/// No event stays in processing without a lease.
pub(crate) fn next_state(to: ProviderEventState) -> ProviderEventState {
    if to.is_settled() { to } else { ProviderEventState::Waiting }
}

// The statements of this folder write these codes as literals.
const _: () = assert!(ProviderEventState::Waiting as i64 == 0 && ProviderEventState::Leased as i64 == 1);
