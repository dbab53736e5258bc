//! What outlives a message for a time: its keys, its tombstone, and its entries in the journal.

use aws_lc_rs::hmac;
use postway_domain::{EmailAddress, MessageStatus, MessageUid, TenantId, Time};

use crate::{
    error::StoreError,
    record::MessageTombstone,
    sql::{Row, SqlSession, SqlText, Value, decode::coded, multi_row::MultiRow, values},
};

const TOMBSTONE: SqlText =
    SqlText::same("SELECT tenant, uid, status, recipients, expires_at FROM tombstone WHERE uid = ?");
/// One statement, so that a key that another writer takes over in between is not removed.
pub(crate) const FORGET_KEYS: SqlText = SqlText::of_each(
    "DELETE FROM dedup WHERE (tenant, kind, key) IN (SELECT tenant, kind, key FROM dedup WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ?)",
    "DELETE FROM dedup WHERE ctid = ANY (ARRAY(SELECT ctid FROM dedup WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ? FOR UPDATE SKIP LOCKED))",
    "DELETE FROM dedup WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
);
pub(crate) const FORGET_TOMBSTONES: SqlText = SqlText::of_each(
    "DELETE FROM tombstone WHERE uid IN (SELECT uid FROM tombstone WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ?)",
    "DELETE FROM tombstone WHERE ctid = ANY (ARRAY(SELECT ctid FROM tombstone WHERE expires_at <= ? \
     ORDER BY expires_at LIMIT ? FOR UPDATE SKIP LOCKED))",
    "DELETE FROM tombstone WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
);
/// The first pages, whatever their age: pages are in the order of their time, or nearly so.
pub(crate) const OLDEST_PAGES: SqlText = SqlText::same(
    "SELECT id, at FROM journal WHERE position <= \
     (SELECT p.position FROM progress p WHERE p.name = 'fan_out') ORDER BY position LIMIT ?",
);
static TRIM: MultiRow = MultiRow::new("DELETE FROM journal WHERE id IN (", 1, ")");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[TOMBSTONE, FORGET_KEYS, FORGET_TOMBSTONES, OLDEST_PAGES];

#[cfg(test)]
pub(crate) fn multi() -> Vec<&'static MultiRow> {
    vec![&TRIM]
}

impl MessageTombstone {
    /// The digest that a tombstone keeps of a recipient: of tenant and lower-case address, under the key that
    /// [`crate::record::ExpungeRequest`] gave.
    pub fn digest(key: &[u8; 32], tenant: &TenantId, address: &str) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
        context.update(tenant.as_str().as_bytes());
        // No tenant id contains this byte, so the two parts cannot be confused.
        context.update(b"\0");
        context.update(address.to_lowercase().as_bytes());
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }

    /// Whether the message went to this address.
    pub fn is_of(&self, key: &[u8; 32], address: &str) -> bool {
        // Tombstones written by earlier versions have the domain as U-labels.
        EmailAddress::spellings_of(address)
            .any(|address| self.recipients.contains(&Self::digest(key, &self.tenant, &address)))
    }
}

/// The tombstone of a message, if it has one.
pub(crate) async fn tombstone(
    session: &mut dyn SqlSession,
    uid: MessageUid,
) -> Result<Option<MessageTombstone>, StoreError> {
    let rows = session.rows(TOMBSTONE, values![uid.as_bytes()]).await?;
    rows.first().map(read_tombstone).transpose()
}

fn read_tombstone(row: &Row) -> Result<MessageTombstone, StoreError> {
    let (recipients, rest) = row.opt_bytes(3)?.unwrap_or_default().as_chunks();
    if !rest.is_empty() {
        return Err(StoreError::Unexpected("digests in a trace that are not 32 bytes each".to_owned()));
    }
    Ok(MessageTombstone {
        tenant: row.parsed(0)?,
        uid: MessageUid::from_bytes(row.id16(1)?),
        status: coded(row.int(2)?, MessageStatus::from_code)?,
        recipients: recipients.to_vec(),
        expires_at: row.time(4)?,
    })
}

/// Removes expired keys and tombstones, `limit` of each. Returns the number of both.
pub(crate) async fn forget(session: &mut dyn SqlSession, now: Time, limit: u32) -> Result<usize, StoreError> {
    let mut forgotten = 0;
    for sql in [FORGET_KEYS, FORGET_TOMBSTONES] {
        forgotten += session.execute(sql, values![now, limit]).await?;
    }
    Ok(usize::try_from(forgotten).unwrap_or(usize::MAX))
}

/// Removes the oldest pages that were fanned out, while they are older than `before`. Returns the number of
/// pages.
pub(crate) async fn trim_journal(
    session: &mut dyn SqlSession,
    before: Time,
    limit: u32,
) -> Result<usize, StoreError> {
    let rows = session.rows(OLDEST_PAGES, values![limit]).await?;
    let mut old = Vec::with_capacity(rows.len());
    for row in &rows {
        if row.time(1)? >= before {
            break;
        }
        old.push(row.int(0)?);
    }
    for (sql, run) in TRIM.runs(&old) {
        session.execute(sql.into(), run.iter().copied().map(Value::int).collect()).await?;
    }
    Ok(old.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_known_in_any_case_and_by_its_tenant_and_key_only() {
        let (acme, globex): (TenantId, TenantId) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let digest = MessageTombstone::digest(&[1; 32], &acme, "Ann@Example.org");
        let trace = MessageTombstone {
            tenant: acme.clone(),
            uid: MessageUid::from_bytes([1; 16]),
            status: MessageStatus::Sent,
            recipients: vec![digest],
            expires_at: Time::from_millis(0),
        };
        assert!(trace.is_of(&[1; 32], "ann@example.ORG"));
        assert!(!trace.is_of(&[1; 32], "bob@example.org") && !trace.is_of(&[2; 32], "ann@example.org"));
        assert_ne!(digest, MessageTombstone::digest(&[1; 32], &globex, "ann@example.org"));
    }
}
