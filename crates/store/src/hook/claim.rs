//! Leasing reported events: hooks share the capacity, and an event whose process died is leased alone, so
//! that another death is certainly its own.
//!
//! The capacity is a number of events and of bytes. Only the sizes are read while events are chosen, and the
//! JSON of the chosen ones afterwards, so that a claim takes no more memory than it may.

use std::collections::{HashMap, HashSet};

use postway_domain::{Incarnation, MessageUid, Time, inbound::SUSPECT_WAIT};

use crate::{
    admin::provider_hooks::provider,
    error::StoreError,
    inbound::claim::ids,
    record::{AccountKey, ProcessingState, ProviderEventClaim, ProviderEventToProcess},
    sql::{Row, SqlSession, SqlText, multi_row::MultiRow, values},
};

/// The first waiting event of every hook. The order names all columns of the index, or MySQL would sort.
macro_rules! heads {
    ($from:literal) => {
        concat!(
            "SELECT h.tenant, h.account, (SELECT e.due_at FROM ",
            $from,
            " WHERE e.tenant = h.tenant AND e.account = h.account AND e.due_at IS NOT NULL \
             ORDER BY e.tenant, e.account, e.due_at LIMIT 1) \
             FROM provider_hook h JOIN tenant t ON t.id = h.tenant WHERE t.deleted_at IS NULL"
        )
    };
}
const HEADS: SqlText = SqlText::or_mysql(
    heads!("provider_event e"),
    heads!("provider_event e FORCE INDEX (provider_event_due)"),
);
macro_rules! due {
    ($from:literal, $end:literal) => {
        concat!(
            "SELECT uid, provider, 0 * created_at + LENGTH(raw), tries, lost_leases, created_at FROM ",
            $from,
            " WHERE tenant = ? AND account = ? AND due_at <= ? ORDER BY due_at, uid LIMIT ?",
            $end
        )
    };
}
/// Skips rows that another transaction has locked.
const DUE: SqlText = SqlText::of_each(
    due!("provider_event", ""),
    due!("provider_event", " FOR UPDATE SKIP LOCKED"),
    due!("provider_event FORCE INDEX (provider_event_due)", " FOR UPDATE SKIP LOCKED"),
);
static RAW: MultiRow = MultiRow::new("SELECT uid, raw FROM provider_event WHERE uid IN (", 1, ")");
static LEASE: MultiRow = MultiRow::new(
    "UPDATE provider_event SET state = 1, due_at = NULL, lease_node = ?, lease_token = ?, lease_until = ? WHERE uid IN (",
    1,
    ")",
);
const HOLDERS: SqlText =
    SqlText::same("SELECT DISTINCT lease_node FROM provider_event WHERE lease_node IS NOT NULL");
const LOST: SqlText = SqlText::of_each(
    "SELECT uid FROM provider_event WHERE lease_node = ? AND lease_until <= ? LIMIT ?",
    "SELECT uid FROM provider_event WHERE lease_node = ? AND lease_until <= ? LIMIT ? FOR UPDATE SKIP LOCKED",
    "SELECT uid FROM provider_event WHERE lease_node = ? AND lease_until <= ? LIMIT ? FOR UPDATE SKIP LOCKED",
);
static GIVE_BACK: MultiRow = MultiRow::new(
    "UPDATE provider_event SET state = 0, due_at = ?, lost_leases = lost_leases + ?, lease_node = NULL, lease_token = NULL, \
     lease_until = NULL WHERE uid IN (",
    1,
    ")",
);

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![HEADS, DUE, RAW.sample().into(), LEASE.sample().into(), HOLDERS, LOST, GIVE_BACK.sample().into()]
}

/// Each hook that has waiting events, and when its first is due.
async fn heads(session: &mut dyn SqlSession) -> Result<Vec<(Time, AccountKey)>, StoreError> {
    let mut heads = Vec::new();
    for row in session.rows(HEADS, Vec::new()).await? {
        if let Some(due_at) = row.opt_time(2)? {
            heads.push((due_at, AccountKey { tenant: row.parsed(0)?, account: row.parsed(1)? }));
        }
    }
    heads.sort();
    Ok(heads)
}

/// Which events wait to be processed.
pub(crate) async fn state(session: &mut dyn SqlSession, now: Time) -> Result<ProcessingState, StoreError> {
    let heads = heads(session).await?;
    let next_due_at = heads.iter().map(|(at, _)| *at).find(|at| *at > now);
    Ok(ProcessingState { due: u32::from(heads.iter().any(|(at, _)| *at <= now)), next_due_at })
}

/// Leases due events: an equal part for each tenant and each of its hooks, and what is left over in a second
/// round.
pub(crate) async fn claim(
    session: &mut dyn SqlSession,
    claim: &ProviderEventClaim,
) -> Result<Vec<ProviderEventToProcess>, StoreError> {
    let mut heads = heads(session).await?;
    heads.retain(|(due_at, _)| *due_at <= claim.now);
    let keys: Vec<AccountKey> = heads.into_iter().map(|(_, key)| key).collect();
    let mut left = claim.limit;
    let mut bytes_left = ClaimBytes::new(claim.bytes_max);
    let mut claimed: Vec<ProviderEventToProcess> = Vec::new();
    let mut known: HashMap<&AccountKey, HashSet<MessageUid>> = HashMap::new();
    for round in rounds(&keys, claim) {
        for (key, (part, mut part_bytes)) in keys.iter().zip(round) {
            let known = known.entry(key).or_default();
            let part = part.min(left);
            if part == 0 {
                continue;
            }
            // Events found in the first round are not leased yet, and are found again.
            let wanted = i64::try_from(known.len()).unwrap_or(i64::MAX).saturating_add(part.into());
            let values = values![key.tenant.as_str(), key.account.as_str(), claim.now, wanted];
            let mut found = 0;
            for row in session.rows(DUE, values).await? {
                let one = read(&row, key)?;
                if found == part || known.contains(&one.uid) {
                    continue;
                }
                // What comes later must not overtake an event that does not fit.
                if !bytes_left.take(row.int(2)?, &mut part_bytes) {
                    break;
                }
                known.insert(one.uid);
                claimed.push(one);
                found += 1;
            }
            left -= found;
        }
    }
    keep_suspects_apart(&mut claimed);
    read_json(session, &mut claimed).await?;
    let lease = &claim.lease;
    let uids: Vec<MessageUid> = claimed.iter().map(|one| one.uid).collect();
    for (sql, run) in LEASE.runs(&uids) {
        let values = values![lease.incarnation.as_bytes(), lease.token.as_i64(), lease.until];
        session.execute(sql.into(), [values, ids(run)].concat()).await?;
    }
    Ok(claimed)
}

/// Reads the JSON of these events.
async fn read_json(
    session: &mut dyn SqlSession,
    claimed: &mut [ProviderEventToProcess],
) -> Result<(), StoreError> {
    let uids: Vec<MessageUid> = claimed.iter().map(|one| one.uid).collect();
    let mut found: HashMap<MessageUid, Vec<u8>> = HashMap::new();
    for (sql, run) in RAW.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            let raw = row.opt_bytes(1)?.unwrap_or_default().to_vec();
            found.insert(MessageUid::from_bytes(row.id16(0)?), raw);
        }
    }
    for one in claimed {
        one.raw = found.remove(&one.uid).unwrap_or_default();
    }
    Ok(())
}

/// How many bytes a claim may still take.
pub(crate) struct ClaimBytes {
    left: i64,
    is_untouched: bool,
}

impl ClaimBytes {
    pub fn new(bytes_max: u32) -> Self {
        Self { left: bytes_max.into(), is_untouched: true }
    }

    /// Takes the bytes of one more event, if they are left both in all and in the part of its hook. The first
    /// event is taken whatever its size, so that none waits for ever.
    pub fn take(&mut self, bytes: i64, part: &mut i64) -> bool {
        if bytes > self.left.min(*part) && !self.is_untouched {
            return false;
        }
        (self.left, *part, self.is_untouched) = (self.left - bytes, *part - bytes, false);
        true
    }
}

/// How many events and bytes each of these hooks may have in the first round, and in the second, which
/// distributes what is left over.
pub(crate) fn rounds(keys: &[AccountKey], claim: &ProviderEventClaim) -> [Vec<(u32, i64)>; 2] {
    let bytes = equal_parts(keys, claim.bytes_max).into_iter().map(i64::from);
    let first = equal_parts(keys, claim.limit).into_iter().zip(bytes).collect();
    [first, vec![(claim.limit, i64::MAX); keys.len()]]
}

/// How many events each of these hooks may have at first: tenants share equally, and so do the hooks of one.
pub(crate) fn equal_parts(keys: &[AccountKey], limit: u32) -> Vec<u32> {
    let count = |of: usize| u32::try_from(of).unwrap_or(u32::MAX).max(1);
    let tenants = count(keys.iter().map(|key| &key.tenant).collect::<HashSet<_>>().len());
    let of_tenant = |key: &AccountKey| count(keys.iter().filter(|other| other.tenant == key.tenant).count());
    keys.iter().map(|key| limit.div_ceil(tenants).div_ceil(of_tenant(key))).collect()
}

/// Leaves either only events whose process never died, or one whose process did, if that is the first.
pub(crate) fn keep_suspects_apart(claimed: &mut Vec<ProviderEventToProcess>) {
    match claimed.first() {
        Some(first) if first.lost_leases > 0 => claimed.truncate(1),
        Some(_) => claimed.retain(|one| one.lost_leases == 0),
        None => {}
    }
}

fn read(row: &Row, key: &AccountKey) -> Result<ProviderEventToProcess, StoreError> {
    Ok(ProviderEventToProcess {
        uid: MessageUid::from_bytes(row.id16(0)?),
        key: key.clone(),
        provider: provider(row.text(1)?)?,
        raw: Vec::new(),
        tries: row.int(3)?,
        lost_leases: row.int(4)?,
        created_at: row.time(5)?,
    })
}

/// Reclaims events that are leased to an incarnation not in `alive`, or past their backstop.
pub(crate) async fn reclaim(
    session: &mut dyn SqlSession,
    alive: &[Incarnation],
    now: Time,
    limit: u32,
) -> Result<u32, StoreError> {
    let (mut of_dead, mut of_late): (Vec<MessageUid>, Vec<MessageUid>) = (Vec::new(), Vec::new());
    for holder in session.rows(HOLDERS, Vec::new()).await? {
        let left = i64::from(limit) - (of_dead.len() + of_late.len()) as i64;
        let holder = holder.id16(0)?;
        let is_alive = alive.iter().any(|one| *one.as_bytes() == holder);
        let until = if is_alive { now.as_millis() } else { i64::MAX };
        let lost = if is_alive { &mut of_late } else { &mut of_dead };
        for row in session.rows(LOST, values![&holder, until, left]).await? {
            lost.push(MessageUid::from_bytes(row.id16(0)?));
        }
    }
    for (lost, due_at, blame) in [(&mut of_dead, now.plus(SUSPECT_WAIT), 1_i64), (&mut of_late, now, 0)] {
        lost.sort();
        for (sql, run) in GIVE_BACK.runs(lost) {
            session.execute(sql.into(), [values![due_at, blame], ids(run)].concat()).await?;
        }
    }
    Ok(u32::try_from(of_dead.len() + of_late.len()).unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tenant: &str, account: &str) -> AccountKey {
        AccountKey { tenant: tenant.parse().unwrap(), account: account.parse().unwrap() }
    }

    #[test]
    fn tenants_share_equally_and_so_do_the_hooks_of_one() {
        let keys = [key("a", "one"), key("a", "two"), key("b", "one")];
        assert_eq!(equal_parts(&keys, 512), [128, 128, 256]);
        assert_eq!(equal_parts(&keys[2..], 512), [512]);
        assert!(equal_parts(&[], 512).is_empty());
    }

    #[test]
    fn bytes_are_taken_within_the_whole_and_the_part_except_by_the_first() {
        let (mut bytes, mut first, mut second) = (ClaimBytes::new(10), 5, 5);
        assert!(bytes.take(7, &mut first), "the first is taken whatever its size");
        assert!(!bytes.take(1, &mut first), "its hook has used up its part");
        assert!(bytes.take(3, &mut second) && !bytes.take(1, &mut second), "nothing is left");
        let mut large = ClaimBytes::new(10);
        let mut plenty = i64::MAX;
        assert!(large.take(100, &mut plenty) && !large.take(1, &mut plenty));
    }

    #[test]
    fn an_event_whose_process_died_is_alone() {
        let event = |lost_leases| ProviderEventToProcess {
            uid: MessageUid::from_bytes([7; 16]),
            key: key("a", "one"),
            provider: postway_domain::HookProvider::Ses,
            raw: Vec::new(),
            tries: 0,
            lost_leases,
            created_at: Time::from_millis(0),
        };
        for (mut claimed, kept) in [
            (vec![event(0), event(1), event(0)], vec![0, 0]),
            (vec![event(1), event(0), event(1)], vec![1]),
            (vec![], vec![]),
        ] {
            keep_suspects_apart(&mut claimed);
            assert_eq!(claimed.iter().map(|one| one.lost_leases).collect::<Vec<_>>(), kept);
        }
    }
}
