//! Distinguishing repeats from new messages, by idempotency key and client id, set-wise.
//!
//! The same for every database; each provides a [`KeyTable`].

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId, Time};

use crate::{
    error::StoreError,
    queue::{lease_conditions::LeaseConditions, packing::PackedMessage},
    record::{Acceptance, BatchKey, DedupKind},
    sql::{SqlSession, SqlText, values},
};

/// A message with the key it came with.
#[derive(Clone, Copy)]
pub(crate) struct Keyed<'m> {
    index: usize,
    pub message: &'m PackedMessage,
    pub kind: DedupKind,
    pub key: &'m str,
    /// The digest of the request.
    pub fingerprint: &'m [u8; 32],
}

/// The owner of a key: the digest of the request, and the message.
pub(crate) type Winners = HashMap<(TenantId, i64, String), (Vec<u8>, MessageUid)>;

/// The table of keys, inside the accept transaction.
#[async_trait]
pub(crate) trait KeyTable {
    /// Inserts the keys that are free, or taken by an expired tombstone, and reads the owner of each. Of two
    /// messages with the same key the first wins.
    async fn claim_keys(&mut self, keyed: &[Keyed<'_>]) -> Result<Winners, StoreError>;
    /// Frees the keys of messages that are not stored after all.
    async fn drop_keys(&mut self, messages: &[&PackedMessage]) -> Result<(), StoreError>;
}

/// Finds out which messages repeat or contradict an earlier one, by index, and which have lost their account.
/// A message that lost its key to one that was refused itself is tried again: the key is free.
pub(crate) async fn refuse_repeats(
    table: &mut impl KeyTable,
    messages: &[&PackedMessage],
    terms: &LeaseConditions,
) -> Result<HashMap<usize, Acceptance>, StoreError> {
    let mut refused = HashMap::new();
    let mut round: Vec<usize> = (0..messages.len()).collect();
    while !round.is_empty() {
        let lost = settle_keys(table, messages, &round, terms).await?;
        let losers: HashSet<MessageUid> = lost.iter().map(|loss| messages[loss.index].uid).collect();
        round.clear();
        for loss in lost {
            if losers.contains(&loss.winner) && loss.refusal != Acceptance::AccountGone {
                round.push(loss.index);
            } else {
                refused.insert(loss.index, loss.refusal);
            }
        }
    }
    Ok(refused)
}

/// A message that came second.
struct Loss {
    index: usize,
    winner: MessageUid,
    refusal: Acceptance,
}

/// Settles the keys of batch calls first, then those of messages, then client ids.
async fn settle_keys(
    table: &mut impl KeyTable,
    messages: &[&PackedMessage],
    round: &[usize],
    terms: &LeaseConditions,
) -> Result<Vec<Loss>, StoreError> {
    let mut lost: Vec<Loss> = Vec::new();
    for pass in [Pass::Batch, Pass::Idempotency, Pass::ClientId] {
        let keyed = pass.keyed(messages, round, &lost);
        if keyed.is_empty() {
            continue;
        }
        let winners = match pass {
            Pass::Batch => table.claim_keys(&one_each(&keyed)).await?,
            Pass::Idempotency | Pass::ClientId => table.claim_keys(&keyed).await?,
        };
        let mut losers = Vec::new();
        for Keyed { index, message, kind, key, fingerprint } in keyed {
            let held = (message.lane.tenant.clone(), kind as i64, key.to_owned());
            let Some((digest, winner)) = winners.get(&held) else {
                return Err(StoreError::Unexpected("a deduplication key vanished".into()));
            };
            let is_same = digest[..] == *fingerprint;
            let refusal = match pass {
                Pass::Batch if is_same => continue,
                _ if *winner == message.uid => continue,
                _ if is_same => Acceptance::Repeat { uid: *winner },
                _ => Acceptance::Conflict { kind },
            };
            losers.push(message);
            lost.push(Loss { index, winner: *winner, refusal });
        }
        if !losers.is_empty() {
            table.drop_keys(&losers).await?;
        }
    }
    // Last, because a repeat is answered with what was stored while the account existed.
    let open: HashSet<usize> = lost.iter().map(|loss| loss.index).collect();
    let is_homeless = |index: &usize| !open.contains(index) && !terms.has_account(messages[*index]);
    let homeless: Vec<usize> = round.iter().copied().filter(is_homeless).collect();
    if !homeless.is_empty() {
        table.drop_keys(&homeless.iter().map(|index| messages[*index]).collect::<Vec<_>>()).await?;
        let refused = |index| Loss { index, winner: messages[index].uid, refusal: Acceptance::AccountGone };
        lost.extend(homeless.into_iter().map(refused));
    }
    // The key of a call whose first message is not stored goes to one that is.
    if lost.iter().any(|loss| messages[loss.index].batch_key.is_some()) {
        let kept = Pass::Batch.keyed(messages, round, &lost);
        if !kept.is_empty() {
            table.claim_keys(&one_each(&kept)).await?;
        }
    }
    Ok(lost)
}

/// The first of those with the same key.
fn one_each<'m>(keyed: &[Keyed<'m>]) -> Vec<Keyed<'m>> {
    let mut seen = HashSet::new();
    keyed.iter().filter(|one| seen.insert((&one.message.lane.tenant, one.key))).copied().collect()
}

#[derive(Clone, Copy)]
enum Pass {
    Batch,
    Idempotency,
    ClientId,
}

impl Pass {
    /// The messages of a round that have such a key and are not lost.
    fn keyed<'m>(self, messages: &[&'m PackedMessage], round: &[usize], lost: &[Loss]) -> Vec<Keyed<'m>> {
        let lost: HashSet<usize> = lost.iter().map(|loss| loss.index).collect();
        let open = round.iter().copied().filter(|index| !lost.contains(index));
        open.filter_map(|index| self.key(index, messages[index])).collect()
    }

    fn key(self, index: usize, message: &PackedMessage) -> Option<Keyed<'_>> {
        let (kind, key, fingerprint) = match self {
            Pass::Batch => {
                let BatchKey { key, fingerprint } = message.batch_key.as_deref()?;
                (DedupKind::Batch, key.as_str(), fingerprint)
            }
            Pass::Idempotency => {
                let (kind, key) = message.idempotency.as_ref()?;
                (*kind, key.as_str(), &message.fingerprint)
            }
            Pass::ClientId => {
                (DedupKind::ClientId, message.client_id.as_ref()?.as_str(), &message.fingerprint)
            }
        };
        Some(Keyed { index, message, kind, key, fingerprint })
    }
}

const HOLDER: SqlText = SqlText::or_mysql(
    "SELECT fingerprint, uid FROM dedup WHERE tenant = ? AND kind = ? AND key = ? \
     AND (expires_at IS NULL OR expires_at > ?)",
    "SELECT fingerprint, uid FROM dedup WHERE tenant = ? AND kind = ? AND `key` = ? \
     AND (expires_at IS NULL OR expires_at > ?)",
);

/// What accepting a message with these keys would find: the first key that is taken decides.
pub(crate) async fn seen_before(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    keys: &[(DedupKind, String)],
    fingerprint: &[u8; 32],
    now: Time,
) -> Result<Option<Acceptance>, StoreError> {
    for (kind, key) in keys {
        let held = values![tenant.as_str(), *kind as i64, key.as_str(), now];
        let Some(row) = session.rows(HOLDER, held).await?.into_iter().next() else { continue };
        let uid = MessageUid::from_bytes(row.id16(1)?);
        let is_same = row.id32(0)? == *fingerprint;
        return Ok(Some(if is_same {
            Acceptance::Repeat { uid }
        } else {
            Acceptance::Conflict { kind: *kind }
        }));
    }
    Ok(None)
}
