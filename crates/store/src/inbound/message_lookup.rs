//! Messages that reports may be about, and tombstones of removed ones.

use std::collections::{BTreeMap, BTreeSet};

use postway_domain::{MessageUid, Time};

use super::claim::ids;
use crate::{
    error::StoreError,
    record::TracedMessage,
    sql::{SqlSession, multi_row::MultiRow},
};

static MESSAGES: MultiRow =
    MultiRow::new("SELECT uid, tenant, created_at FROM message WHERE uid IN (", 1, ")");
static RECIPIENTS: MultiRow =
    MultiRow::new("SELECT uid, address FROM recipient WHERE uid IN (", 1, ") ORDER BY uid, position");
static SENDERS: MultiRow = MultiRow::new("SELECT uid, sender FROM content WHERE uid IN (", 1, ")");
static TRACES: MultiRow = MultiRow::new("SELECT uid, tenant FROM tombstone WHERE uid IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    [&MESSAGES, &RECIPIENTS, &SENDERS, &TRACES].map(|multi| multi.sample().into()).to_vec()
}

/// Those of these messages that exist or have a tombstone, by id.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    uids: &[MessageUid],
) -> Result<Vec<TracedMessage>, StoreError> {
    let uids: Vec<MessageUid> = uids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    // In this order, so that a message that is removed in between is found as itself or by its tombstone.
    let mut recipients: BTreeMap<MessageUid, Vec<String>> = BTreeMap::new();
    for (sql, run) in RECIPIENTS.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let of_message = recipients.entry(MessageUid::from_bytes(row.id16(0)?)).or_default();
            of_message.push(row.text(1)?.to_owned());
        }
    }
    let mut senders: BTreeMap<MessageUid, String> = BTreeMap::new();
    for (sql, run) in SENDERS.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            senders.insert(MessageUid::from_bytes(row.id16(0)?), row.text(1)?.to_owned());
        }
    }
    let mut traced: BTreeMap<MessageUid, TracedMessage> = BTreeMap::new();
    for (sql, run) in MESSAGES.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let uid = MessageUid::from_bytes(row.id16(0)?);
            let (tenant, created_at) = (row.parsed(1)?, row.time(2)?);
            let recipients = recipients.remove(&uid).unwrap_or_default();
            let sender = senders.remove(&uid).unwrap_or_default();
            traced.insert(uid, TracedMessage { uid, tenant, created_at, recipients, sender, gone: false });
        }
    }
    for (sql, run) in TRACES.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let uid = MessageUid::from_bytes(row.id16(0)?);
            let (tenant, created_at) = (row.parsed(1)?, accepted_at(uid));
            let (recipients, sender) = Default::default();
            let trace = TracedMessage { uid, tenant, created_at, recipients, sender, gone: true };
            traced.entry(uid).or_insert(trace);
        }
    }
    Ok(traced.into_values().collect())
}

/// The first 48 bits of an id are the milliseconds of its message's acceptance.
pub(crate) fn accepted_at(uid: MessageUid) -> Time {
    let [a, b, c, d, e, f, ..] = *uid.as_bytes();
    Time::from_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}
