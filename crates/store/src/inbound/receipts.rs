//! PEC receipts, stored with their messages, and messages whose first receipt is overdue.

use std::collections::{BTreeSet, HashMap, HashSet};

use postway_domain::{EventKind, MessageUid, TenantId, Time};

use super::{
    append_events::MessageHistories,
    claim::{ids, read_body},
    register::{parts, stored},
};
use crate::{
    error::StoreError,
    journal::EventJournal,
    record::{MessageChange, NewReceipt, ReceiptPlace, StoredBody, StoredReceipt},
    sql::{
        Row, SqlSession, SqlText,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

static KNOWN: MultiRow =
    MultiRow::new("SELECT uid, digest, signature FROM pec_receipt WHERE uid IN (", 1, ")");
macro_rules! insert {
    ($end:literal) => {
        MultiRow::new(
            "INSERT INTO pec_receipt (uid, digest, inbound, kind, address, at, signature, detail, size, raw, raw_blob) VALUES ",
            11,
            $end,
        )
    };
}
macro_rules! insert_on_conflict {
    () => {
        insert!(
            " ON CONFLICT (uid, digest) DO UPDATE SET signature = excluded.signature, detail = excluded.detail"
        )
    };
}
/// An existing row is the same receipt, stored before.
static INSERT: MultiRowSql = MultiRowSql {
    sqlite: insert_on_conflict!(),
    postgres: insert_on_conflict!(),
    mysql: insert!(" ON DUPLICATE KEY UPDATE signature = VALUES(signature), detail = VALUES(detail)"),
};
const PAGE: SqlText = SqlText::same(
    "SELECT p.digest, p.inbound, p.kind, p.address, p.at, p.signature, p.detail, p.size \
     FROM pec_receipt p JOIN message m ON m.uid = p.uid WHERE p.uid = ? AND m.tenant = ? \
     AND (p.inbound > ? OR (p.inbound = ? AND p.digest > ?)) ORDER BY p.inbound, p.digest LIMIT ?",
);
const RAW: SqlText = SqlText::same(
    "SELECT p.size, p.raw, p.raw_blob FROM pec_receipt p JOIN message m ON m.uid = p.uid \
     WHERE p.uid = ? AND p.digest = ? AND m.tenant = ?",
);
static WAIT: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::new("INSERT INTO pec_wait (uid, due_at) VALUES ", 2, " ON CONFLICT DO NOTHING"),
    postgres: MultiRow::new("INSERT INTO pec_wait (uid, due_at) VALUES ", 2, " ON CONFLICT DO NOTHING"),
    mysql: MultiRow::new(
        "INSERT INTO pec_wait (uid, due_at) VALUES ",
        2,
        " ON DUPLICATE KEY UPDATE due_at = pec_wait.due_at",
    ),
};
static END: MultiRow = MultiRow::new("DELETE FROM pec_wait WHERE uid IN (", 1, ")");
/// Skips rows that another transaction has locked.
pub(crate) const DUE: SqlText = SqlText::of_each(
    "SELECT uid FROM pec_wait WHERE due_at <= ? ORDER BY due_at LIMIT ?",
    "SELECT uid FROM pec_wait WHERE due_at <= ? ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED",
    "SELECT uid FROM pec_wait WHERE due_at <= ? ORDER BY due_at LIMIT ? FOR UPDATE SKIP LOCKED",
);
/// A receipt may arrive before the message is recorded as sent.
static ANSWERED: MultiRow =
    MultiRow::new("SELECT DISTINCT uid FROM event WHERE kind IN (22, 24, 25) AND uid IN (", 1, ")");
/// Replaces a stored receipt that proves less.
static SHOW: MultiRow = MultiRow::new(
    "UPDATE recipient SET outcome = 26 WHERE (outcome IS NULL OR outcome IN (18, 21, 22, 23)) AND uid IN (",
    1,
    ")",
);

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    let multi = [&KNOWN, &END, &ANSWERED, &SHOW].map(|multi| multi.sample().into());
    [PAGE, RAW, DUE, WAIT.sample(), INSERT.sample()].into_iter().chain(multi).collect()
}

/// The stored receipts of these messages, by message and digest, with the state of their signatures.
pub(crate) async fn known(
    session: &mut dyn SqlSession,
    uids: impl Iterator<Item = MessageUid>,
) -> Result<HashMap<(MessageUid, [u8; 32]), String>, StoreError> {
    let uids: Vec<MessageUid> = uids.collect::<BTreeSet<_>>().into_iter().collect();
    let mut known = HashMap::new();
    for (sql, run) in KNOWN.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let place = (MessageUid::from_bytes(row.id16(0)?), row.id32(1)?);
            known.insert(place, row.text(2)?.to_owned());
        }
    }
    Ok(known)
}

/// Stores receipts with their message and the mail that brought them, each once.
pub(crate) async fn insert(
    session: &mut dyn SqlSession,
    receipts: &[(MessageUid, MessageUid, &NewReceipt)],
) -> Result<(), StoreError> {
    for (sql, run) in parts(receipts, |(.., receipt)| &receipt.body).flat_map(|part| INSERT.runs(part)) {
        let row = |(uid, inbound, receipt): &(MessageUid, MessageUid, &NewReceipt)| {
            let receipt_values = values![
                uid.as_bytes(),
                &receipt.digest,
                inbound.as_bytes(),
                receipt.kind.as_str(),
                receipt.address.as_deref(),
                receipt.at,
                receipt.signature,
                receipt.detail.as_str(),
            ];
            [receipt_values, stored(&receipt.body)].concat()
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

/// A page of a message's receipts in the order of arrival.
pub(crate) async fn page(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
    after: Option<ReceiptPlace>,
    limit: u32,
) -> Result<Vec<StoredReceipt>, StoreError> {
    let (inbound, digest) = after.unwrap_or((MessageUid::from_bytes([0; 16]), [0; 32]));
    let place = values![inbound.as_bytes(), inbound.as_bytes(), &digest, limit];
    let values = [values![uid.as_bytes(), tenant.as_str()], place].concat();
    session.rows(PAGE, values).await?.iter().map(read).collect()
}

/// The bytes of a message's receipt.
pub(crate) async fn raw(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
    digest: [u8; 32],
) -> Result<Option<StoredBody>, StoreError> {
    let rows = session.rows(RAW, values![uid.as_bytes(), &digest, tenant.as_str()]).await?;
    rows.first().map_or(Ok(None), |row| read_body(row, 0))
}

fn read(row: &Row) -> Result<StoredReceipt, StoreError> {
    let size = row.int(7)?;
    Ok(StoredReceipt {
        digest: row.id32(0)?,
        inbound: MessageUid::from_bytes(row.id16(1)?),
        kind: row.text(2)?.to_owned(),
        address: row.opt_string(3)?,
        at: row.time(4)?,
        signature: row.text(5)?.to_owned(),
        detail: row.text(6)?.to_owned(),
        size: u64::try_from(size)
            .map_err(|_| StoreError::Unexpected(format!("a receipt of {size} bytes")))?,
    })
}

/// Begins to wait for the receipts of certified mail that was sent.
pub(crate) async fn begin_waiting(
    session: &mut dyn SqlSession,
    sent: &[&MessageChange],
) -> Result<(), StoreError> {
    let waiting: Vec<(MessageUid, Time)> =
        sent.iter().filter_map(|change| Some((change.uid, change.awaits_receipt?))).collect();
    for (sql, run) in WAIT.runs(&waiting) {
        let values = run.iter().flat_map(|(uid, until)| values![uid.as_bytes(), *until]).collect();
        session.execute(sql, values).await?;
    }
    Ok(())
}

/// Ends the wait for these messages.
pub(crate) async fn end_waiting(
    session: &mut dyn SqlSession,
    uids: Vec<MessageUid>,
) -> Result<(), StoreError> {
    for (sql, run) in END.runs(&uids) {
        session.execute(sql.into(), ids(run)).await?;
    }
    Ok(())
}

/// Records that receipts are overdue and ends the wait for them. Returns the number of messages.
pub(crate) async fn time_out(
    session: &mut dyn SqlSession,
    journal: &mut EventJournal,
    now: Time,
    limit: u32,
) -> Result<u32, StoreError> {
    let rows = session.rows(DUE, values![now, limit]).await?;
    let due = rows.iter().map(|row| row.id16(0).map(MessageUid::from_bytes));
    let due: Vec<MessageUid> = due.collect::<Result<_, _>>()?;
    let mut histories = MessageHistories::lock(session, due.iter().copied()).await?;
    let mut answered = HashSet::new();
    for (sql, run) in ANSWERED.runs(&due) {
        for row in session.rows(sql.into(), ids(run)).await? {
            answered.insert(MessageUid::from_bytes(row.id16(0)?));
        }
    }
    let is_late = |uid: &MessageUid| histories.has(*uid) && !answered.contains(uid);
    let late: Vec<MessageUid> = due.iter().copied().filter(is_late).collect();
    for uid in &late {
        histories.add(journal, *uid, now, EventKind::PecTimeout, None);
    }
    histories.write(session).await?;
    for (sql, run) in SHOW.runs(&late) {
        session.execute(sql.into(), ids(run)).await?;
    }
    end_waiting(session, due).await?;
    Ok(u32::try_from(late.len()).unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use postway_domain::inbound::{outcome_rank, replaces_outcome};

    use super::{super::findings::ends_waiting, *};

    /// The statements write the codes of events as literals.
    #[test]
    fn the_codes_are_those_of_the_domain() {
        let codes = |takes: &dyn Fn(EventKind) -> bool| {
            let taken = EventKind::ALL.iter().filter(|kind| takes(**kind));
            format!("({})", taken.map(|kind| kind.code().to_string()).collect::<Vec<_>>().join(", "))
        };
        let lesser = |kind: EventKind| {
            outcome_rank(kind).is_some()
                && kind != EventKind::PecTimeout
                && replaces_outcome(Some(kind), EventKind::PecTimeout)
        };
        assert!(SHOW.sample().contains(&codes(&lesser)));
        assert!(SHOW.sample().contains(&format!("outcome = {} ", EventKind::PecTimeout.code())));
        assert!(ANSWERED.sample().contains(&codes(&ends_waiting)));
    }
}
