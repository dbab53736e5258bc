//! A search for texts along text blocks.
//!
//! Blocks are opened from the newest on, and messages that may match are met. Where there is no block, or an empty
//! one, the search meets every message of the tenant.

use postway_domain::{MessageUid, TenantId};

use super::{
    IdRange,
    index_choice::{LeadMessages, OF_TENANT, read},
};
use crate::{
    error::StoreError,
    sql::{Row, SqlSession, SqlText, values},
    text_block::{BLOCK_MESSAGES, SearchNeedles},
};

/// Blocks that are read at once.
const BLOCKS_AT_ONCE: u32 = 8;
/// What a block costs, in messages examined, for each of these bytes that it has opened.
const BLOCK_COST: usize = 3;
const COST_BYTES: usize = 128 * 1_024;
/// The most messages of a block whose ids are read: late ones may have come after it was filled.
const IN_BLOCK_MAX: usize = 4 * BLOCK_MESSAGES;

const BLOCKS: SqlText = SqlText::same(
    "SELECT first_uid, last_uid, messages, marked_at, words FROM text_block WHERE tenant = ? AND first_uid < ? \
     ORDER BY first_uid DESC LIMIT ?",
);

#[cfg(test)]
pub(super) const STATEMENTS: &[SqlText] = &[BLOCKS];

/// The newest messages in this range that may match, or about `limit` of them.
pub(super) async fn newest_with(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    needles: &SearchNeedles,
    range: IdRange,
    limit: usize,
) -> Result<LeadMessages, StoreError> {
    let tenant = tenant.as_str();
    let blocks = session.rows(BLOCKS, values![tenant, range.before.as_bytes(), BLOCKS_AT_ONCE]).await?;
    let newest = match blocks.first() {
        Some(block) => MessageUid::from_bytes(block.id16(1)?).successor(),
        None => range.from,
    };
    // What is newer than the newest block.
    let beyond = IdRange { from: newest.max(range.from), before: range.before };
    let mut uids = in_range(session, tenant, beyond, limit).await?;
    let mut cost = uids.len();
    if uids.len() >= limit || blocks.is_empty() {
        let next = uids.last().copied().filter(|_| uids.len() >= limit);
        return Ok(LeadMessages { uids, next, cost });
    }
    let mut reached = beyond.from.min(range.before);
    for block in &blocks {
        if reached <= range.from || uids.len() >= limit {
            break;
        }
        let (first, last) = (MessageUid::from_bytes(block.id16(0)?), MessageUid::from_bytes(block.id16(1)?));
        let part = IdRange { from: first.max(range.from), before: reached.min(last.successor()) };
        let (met, bytes) =
            match chosen(session, tenant, needles, block, IdRange { before: last.successor(), from: first })
                .await?
            {
                Some((chosen, bytes)) => {
                    (chosen.into_iter().filter(|uid| (part.from..part.before).contains(uid)).collect(), bytes)
                }
                None => (in_range(session, tenant, part, IN_BLOCK_MAX).await?, 0),
            };
        cost += BLOCK_COST * (1 + bytes / COST_BYTES) + met.len();
        let is_cut = met.len() == IN_BLOCK_MAX;
        uids.extend(met);
        if is_cut {
            let next = uids.last().copied();
            return Ok(LeadMessages { uids, next, cost });
        }
        reached = part.from;
    }
    Ok(LeadMessages { uids, next: (reached > range.from).then_some(reached), cost })
}

/// The messages of a block that may match, the newest first, and the bytes that were opened. `None` if the block
/// is empty, or the messages in its range are not those that it was filled with.
async fn chosen(
    session: &mut dyn SqlSession,
    tenant: &str,
    needles: &SearchNeedles,
    block: &Row,
    whole: IdRange,
) -> Result<Option<(Vec<MessageUid>, usize)>, StoreError> {
    if block.opt_int(3)?.is_some() {
        return Ok(None);
    }
    let (positions, bytes) = needles.candidates(block.opt_bytes(4)?.unwrap_or_default())?;
    if positions.is_empty() {
        return Ok(Some((Vec::new(), bytes)));
    }
    let all = in_range(session, tenant, whole, IN_BLOCK_MAX).await?;
    if usize::try_from(block.int(2)?).ok() != Some(all.len()) {
        return Ok(None);
    }
    // Ids are read from the newest on, positions count from the oldest.
    let at = |position: &usize| all.get(all.len().checked_sub(position + 1)?).copied();
    Ok(Some((positions.iter().rev().filter_map(at).collect(), bytes)))
}

/// The messages of a tenant in a range, the newest first.
async fn in_range(
    session: &mut dyn SqlSession,
    tenant: &str,
    range: IdRange,
    limit: usize,
) -> Result<Vec<MessageUid>, StoreError> {
    if range.from >= range.before {
        return Ok(Vec::new());
    }
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let place = values![tenant, range.from.as_bytes(), tenant, range.before.as_bytes(), most];
    session.rows(OF_TENANT, place).await?.iter().map(read).collect()
}
