//! Telling repeats from new messages, by idempotency key and client id, set-wise.
//!
//! The same for every database; what each brings is a [`KeyTable`].

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use postway_domain::{MessageUid, TenantId};

use crate::{
    error::StoreError,
    record::{Acceptance, DedupKind, NewMessage},
};

/// A message with the key it came with.
pub(crate) struct Keyed<'m> {
    index: usize,
    pub message: &'m NewMessage,
    pub kind: DedupKind,
    pub key: &'m str,
}

/// Who holds a key: the digest of the request, and the message.
pub(crate) type Winners = HashMap<(TenantId, i64, String), (Vec<u8>, MessageUid)>;

/// The table of keys, inside the accept transaction.
#[async_trait]
pub(crate) trait KeyTable {
    /// Inserts the keys that are free, or held by a tombstone whose time is over, and reads back who holds each. Of
    /// two that want the same key the first wins.
    async fn claim_keys(&mut self, keyed: &[Keyed<'_>]) -> Result<Winners, StoreError>;
    /// Frees the keys of messages that are not stored after all.
    async fn drop_keys(&mut self, messages: &[&NewMessage]) -> Result<(), StoreError>;
}

/// Finds out which messages repeat or contradict an earlier one, by index. A message that lost to one that was refused
/// itself gets another round: the key is free again.
pub(crate) async fn refuse_repeats(
    table: &mut impl KeyTable,
    messages: &[&NewMessage],
) -> Result<HashMap<usize, Acceptance>, StoreError> {
    let mut refused = HashMap::new();
    let mut round: Vec<usize> = (0..messages.len()).collect();
    while !round.is_empty() {
        let lost = settle_keys(table, messages, &round).await?;
        let losers: HashSet<MessageUid> = lost.iter().map(|loss| messages[loss.index].uid).collect();
        round.clear();
        for loss in lost {
            if losers.contains(&loss.winner) {
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

/// Settles idempotency keys first, those of messages that follow another after those of all others, then client ids.
async fn settle_keys(
    table: &mut impl KeyTable,
    messages: &[&NewMessage],
    round: &[usize],
) -> Result<Vec<Loss>, StoreError> {
    let mut lost: Vec<Loss> = Vec::new();
    for pass in [Pass::Idempotency, Pass::Followers, Pass::ClientId] {
        if let Pass::Followers = pass {
            let refused = with_their_leaders(messages, round, &lost);
            lost.extend(refused);
        }
        let keyed: Vec<Keyed<'_>> = round
            .iter()
            .filter(|index| !lost.iter().any(|loss| loss.index == **index))
            .filter_map(|&index| pass.keyed(index, messages[index]))
            .collect();
        if keyed.is_empty() {
            continue;
        }
        let winners = table.claim_keys(&keyed).await?;
        let mut losers = Vec::new();
        for Keyed { index, message, kind, key } in keyed {
            let held = (message.lane.tenant.clone(), kind as i64, key.to_owned());
            let Some((fingerprint, winner)) = winners.get(&held) else {
                return Err(StoreError::Unexpected("a deduplication key vanished".into()));
            };
            if *winner == message.uid {
                continue;
            }
            losers.push(message);
            let refusal = if fingerprint[..] == message.fingerprint {
                Acceptance::Repeat { uid: *winner }
            } else {
                Acceptance::Conflict { kind }
            };
            lost.push(Loss { index, winner: *winner, refusal });
        }
        if !losers.is_empty() {
            table.drop_keys(&losers).await?;
        }
    }
    Ok(lost)
}

/// The messages whose leader contradicts an earlier request: they came with it, and are refused with it.
fn with_their_leaders(messages: &[&NewMessage], round: &[usize], lost: &[Loss]) -> Vec<Loss> {
    let conflicts: HashMap<MessageUid, &Loss> = lost
        .iter()
        .filter(|loss| matches!(loss.refusal, Acceptance::Conflict { .. }))
        .map(|loss| (messages[loss.index].uid, loss))
        .collect();
    if conflicts.is_empty() {
        return Vec::new();
    }
    let refused = |&index: &usize| {
        let Loss { winner, refusal, .. } = conflicts.get(&messages[index].follows?)?;
        Some(Loss { index, winner: *winner, refusal: refusal.clone() })
    };
    round.iter().filter_map(refused).collect()
}

#[derive(Clone, Copy)]
enum Pass {
    Idempotency,
    Followers,
    ClientId,
}

impl Pass {
    fn keyed(self, index: usize, message: &NewMessage) -> Option<Keyed<'_>> {
        let (kind, key) = match self {
            Pass::ClientId => (DedupKind::ClientId, message.client_id.as_ref()?.as_str()),
            Pass::Idempotency if message.follows.is_some() => return None,
            Pass::Followers if message.follows.is_none() => return None,
            Pass::Idempotency | Pass::Followers => {
                message.idempotency.as_ref().map(|(kind, key)| (*kind, key.as_str()))?
            }
        };
        Some(Keyed { index, message, kind, key })
    }
}
