//! Removing messages with everything that belongs to them, inside the writer's transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use postway_domain::{MessageStatus, MessageUid, TenantId, Time};

use super::{
    delivery_state,
    message_parts::remove_parts,
    rules::{KEY_LASTS, TRACE_LASTS},
    scan::SeenMessage,
};
use crate::{
    error::StoreError,
    queue::transaction::WriteTransaction,
    record::{ExpungeRequest, MessageTombstone, external_label, foreign_id_label},
    sql::{
        SqlSession, Value,
        decode::{coded, tags},
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
    text_block::empty_blocks_of,
};

const HELD: &str = "SELECT uid, tenant, status, updated_at, version FROM message WHERE uid IN (";
/// Skips rows that another writer has locked.
static HOLD: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new(HELD, 1, ")").wide(),
    postgres: MultiRow::new(HELD, 1, ") FOR UPDATE SKIP LOCKED").wide(),
    mysql: MultiRow::new(HELD, 1, ") FOR UPDATE SKIP LOCKED").wide(),
};
static RECIPIENTS: MultiRow =
    MultiRow::new("SELECT uid, address FROM recipient WHERE uid IN (", 1, ") ORDER BY uid, position").wide();
static TAGS: MultiRow =
    MultiRow::new("SELECT uid, tags, external_id, message_id FROM content WHERE uid IN (", 1, ")").wide();
static UNTAG: MultiRow =
    MultiRow::new("DELETE FROM tag WHERE tenant = ? AND tag = ? AND uid IN (", 1, ")").wide();
static END_KEYS: MultiRow = MultiRow::new("UPDATE dedup SET expires_at = ? WHERE uid IN (", 1, ")").wide();
static END_COLLAPSE: MultiRow = MultiRow::new("DELETE FROM collapse WHERE uid IN (", 1, ")").wide();
static BURY: MultiRow =
    MultiRow::new("INSERT INTO tombstone (uid, tenant, status, recipients, expires_at) VALUES ", 5, "")
        .wide();

/// A text that uses its own index, for the test of query plans.
#[cfg(test)]
pub(crate) fn end_collapse_sample() -> crate::sql::SqlText {
    END_COLLAPSE.sample().into()
}

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    let multi = [&RECIPIENTS, &TAGS, &UNTAG, &END_KEYS, &END_COLLAPSE, &BURY];
    [HOLD.sample()].into_iter().chain(multi.map(|multi| multi.sample().into())).collect()
}

/// A message to be removed.
pub(crate) struct RemovedMessage {
    pub uid: MessageUid,
    pub tenant: TenantId,
    pub status: MessageStatus,
}

/// Removes the messages that have not changed since they were seen and have no open notifications. Returns
/// the number of messages.
pub(crate) async fn expunge(
    engine: &mut impl WriteTransaction,
    requests: &[ExpungeRequest],
    seen: &[SeenMessage],
) -> Result<usize, StoreError> {
    let by_tenant: HashMap<&TenantId, &ExpungeRequest> =
        requests.iter().map(|request| (&request.tenant, request)).collect();
    let Some(now) = requests.first().map(|request| request.now) else { return Ok(0) };
    let mut session = engine.session()?;
    let held = lock_unchanged(&mut *session, seen).await?;
    let tenants: BTreeSet<&TenantId> = held.iter().map(|(gone, _)| &gone.tenant).collect();
    // Read only now: everything written to these messages before they were locked is in the journal.
    let backlog =
        delivery_state::backlog_of_some(&mut *session, &tenants.into_iter().collect::<Vec<_>>()).await?;
    let uids: Vec<MessageUid> = held.iter().map(|(gone, _)| gone.uid).collect();
    let delivery = delivery_state::of_messages(&mut *session, &uids).await?;
    let may_go = |(gone, updated_at): &(RemovedMessage, Time)| {
        let delivery = delivery.get(&gone.uid).copied().unwrap_or_default();
        let takes = |request: &&ExpungeRequest| request.takes(gone.status, *updated_at, delivery);
        by_tenant.get(&gone.tenant).is_some_and(takes) && !backlog.holds(gone.uid)
    };
    let going: Vec<RemovedMessage> = held.into_iter().filter(may_go).map(|(gone, _)| gone).collect();
    let mut digests = digests_of(&mut *session, &by_tenant, &going).await?;
    let traces = going.iter().map(|gone| MessageTombstone {
        tenant: gone.tenant.clone(),
        uid: gone.uid,
        status: gone.status,
        recipients: digests.remove(&gone.uid).unwrap_or_default(),
        expires_at: now.plus(TRACE_LASTS),
    });
    write_tombstones(&mut *session, &traces.collect::<Vec<_>>()).await?;
    drop(session);
    remove(engine, &going, now).await?;
    Ok(going.len())
}

/// Locks the messages that have not changed since they were seen.
pub(crate) async fn lock_unchanged(
    session: &mut dyn SqlSession,
    seen: &[SeenMessage],
) -> Result<Vec<(RemovedMessage, Time)>, StoreError> {
    let versions: HashMap<MessageUid, i64> = seen.iter().map(|seen| (seen.uid, seen.version)).collect();
    let mut held = Vec::with_capacity(seen.len());
    for (sql, run) in HOLD.runs(seen) {
        let values = run.iter().map(|seen| Value::from(seen.uid.as_bytes())).collect();
        for row in session.rows(sql, values).await? {
            let uid = MessageUid::from_bytes(row.id16(0)?);
            if versions.get(&uid) == Some(&row.int(4)?) {
                let (tenant, status) = (row.parsed(1)?, coded(row.int(2)?, MessageStatus::from_code)?);
                held.push((RemovedMessage { uid, tenant, status }, row.time(3)?));
            }
        }
    }
    Ok(held)
}

/// The digests of their recipients.
async fn digests_of(
    session: &mut dyn SqlSession,
    by_tenant: &HashMap<&TenantId, &ExpungeRequest>,
    going: &[RemovedMessage],
) -> Result<HashMap<MessageUid, Vec<[u8; 32]>>, StoreError> {
    let of_whom: HashMap<MessageUid, &TenantId> = going.iter().map(|gone| (gone.uid, &gone.tenant)).collect();
    let mut digests: HashMap<MessageUid, Vec<[u8; 32]>> = HashMap::new();
    for (sql, run) in RECIPIENTS.runs(going) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let uid = MessageUid::from_bytes(row.id16(0)?);
            let Some(request) = of_whom.get(&uid).and_then(|tenant| by_tenant.get(tenant)) else { continue };
            let digest = MessageTombstone::digest(&request.recipient_key, &request.tenant, row.text(1)?);
            digests.entry(uid).or_default().push(digest);
        }
    }
    Ok(digests)
}

/// Writes tombstones.
pub(crate) async fn write_tombstones(
    session: &mut dyn SqlSession,
    traces: &[MessageTombstone],
) -> Result<(), StoreError> {
    for (sql, run) in BURY.runs(traces) {
        let row = |trace: &MessageTombstone| {
            let recipients = trace.recipients.concat();
            values![
                trace.uid.as_bytes(),
                trace.tenant.as_str(),
                trace.status.code(),
                recipients,
                trace.expires_at
            ]
        };
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

/// Removes messages with all that belongs to them, updates the counts, and sets when their deduplication keys
/// end.
pub(crate) async fn remove(
    engine: &mut impl WriteTransaction,
    going: &[RemovedMessage],
    now: Time,
) -> Result<(), StoreError> {
    let mut session = engine.session()?;
    empty_blocks_of(&mut *session, going.iter().map(|gone| (&gone.tenant, gone.uid)), now).await?;
    untag(&mut *session, going).await?;
    for (sql, run) in END_KEYS.runs(going) {
        session.execute(sql.into(), [values![now.plus(KEY_LASTS)], ids(run)].concat()).await?;
    }
    for (sql, run) in END_COLLAPSE.runs(going) {
        session.execute(sql.into(), ids(run)).await?;
    }
    let uids: Vec<[u8; 16]> = going.iter().map(|gone| *gone.uid.as_bytes()).collect();
    remove_parts(&mut *session, &uids).await?;
    drop(session);
    going.iter().for_each(|gone| engine.count_out(&gone.tenant, gone.status));
    Ok(())
}

/// Tags are found by tenant and name, so the names are read first.
async fn untag(session: &mut dyn SqlSession, going: &[RemovedMessage]) -> Result<(), StoreError> {
    let of_whom: HashMap<MessageUid, &TenantId> = going.iter().map(|gone| (gone.uid, &gone.tenant)).collect();
    let mut tagged: BTreeMap<(&TenantId, String), Vec<[u8; 16]>> = BTreeMap::new();
    for (sql, run) in TAGS.runs(going) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let uid = MessageUid::from_bytes(row.id16(0)?);
            let Some(tenant) = of_whom.get(&uid) else { continue };
            let external = row.opt_text(2)?.map(external_label);
            let foreign = foreign_id_label(uid, row.text(3)?);
            for tag in tags(row.opt_text(1)?)?.into_iter().chain(external).chain(foreign) {
                tagged.entry((*tenant, tag)).or_default().push(*uid.as_bytes());
            }
        }
    }
    for ((tenant, tag), uids) in tagged {
        for (sql, run) in UNTAG.runs(&uids) {
            let place = [values![tenant.as_str(), tag.as_str()], run.iter().map(Value::from).collect()];
            session.execute(sql.into(), place.concat()).await?;
        }
    }
    Ok(())
}

fn ids(going: &[RemovedMessage]) -> Vec<Value> {
    going.iter().map(|gone| Value::from(gone.uid.as_bytes())).collect()
}
