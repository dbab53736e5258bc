//! Retention, the same for every SQL database: removes final messages whose notifications are settled,
//! expired keys and tombstones, pages of the journal, old audit entries, and addresses that must be erased.
//!
//! Promises:
//! - nothing is removed that is not final or has an open notification;
//! - a message is removed with all its parts, in one transaction, and leaves a tombstone and its keys for a
//!   time;
//! - a call is bounded: it examines a limited number of rows on a reading connection, and the writer, which
//!   sending waits for, gets a slice of at most [`SLICE_MAX`] ids.
//!
//! Messages that changed between the read and the slice, or that another writer has locked, stay for the next
//! call.

pub(crate) mod delivery_state;
pub(crate) mod erase;
pub(crate) mod expunge;
pub(crate) mod inbound_mail;
pub(crate) mod message_parts;
pub(crate) mod redact;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod statistics;
pub(crate) mod tenant_purge;
pub(crate) mod traces;

#[cfg(test)]
mod tests;

use postway_domain::{Lane, MessageUid, TenantId, Time};

pub(crate) use delivery_state::{backlog, of_messages};
pub(crate) use message_parts::remove_parts;
pub(crate) use redact::{ERASED_ADDRESS, is_addressed, without};
pub(crate) use rules::{
    FanOutBacklog, KEY_LASTS, MessageDeliveryState, SLICE_MAX, TRACE_LASTS, share_of_slice,
};
pub(crate) use scan::{RetentionScans, SeenMessage, newest_before};

use crate::{
    admin,
    error::StoreError,
    queue::{
        lane_upkeep::{self, IdleLanes, MisplacedLane},
        transaction::WriteTransaction,
    },
    record::{AccountKey, ErasureCounts, ExpungeRequest},
    text_block::{FilledTextBlock, PlannedTextBlock, upkeep},
};

/// A lane is a small row: a transaction may carry this many for one message.
const LANES_PER_MESSAGE: usize = 8;

/// A write job of retention.
pub(crate) enum RetainJob {
    /// Removes journal pages older than this time, up to the given number.
    TrimJournal(Time, u32),
    /// Removes audit entries older than this time, up to the given number.
    TrimAudit(Time, u32),
    /// Removes expired keys and tombstones, up to the given number of each.
    ForgetTraces(Time, u32),
    /// Removes these messages if they have not changed since they were seen.
    Expunge(Vec<ExpungeRequest>, Vec<SeenMessage>),
    /// Removes these inbound mails of a tenant if they are still settled.
    ExpungeInbound(TenantId, Vec<MessageUid>),
    /// Moves the waiting mail of these lanes to the ids that the lanes should have.
    MoveWaiting(Vec<MisplacedLane>),
    /// Moves these messages to other lanes if they still wait.
    MoveMessages(Vec<(MessageUid, Lane)>),
    /// Plans and fills these text blocks.
    WriteTextBlocks(Vec<PlannedTextBlock>, Vec<FilledTextBlock>, Time),
    /// Removes these lanes if they still have no messages at this time.
    RetireLanes(IdleLanes, Time),
    /// Erases an address from these messages of a tenant if they have not changed since they were seen, and
    /// removes these inbound mails.
    Erase(TenantId, String, Time, Vec<SeenMessage>, Vec<MessageUid>),
}

impl RetainJob {
    /// Roughly how many messages this job touches.
    pub fn messages(&self) -> usize {
        match self {
            RetainJob::TrimJournal(..) | RetainJob::TrimAudit(..) => 1,
            RetainJob::ForgetTraces(_, limit) => *limit as usize,
            RetainJob::Expunge(_, seen) => seen.len(),
            RetainJob::ExpungeInbound(_, uids) => uids.len(),
            RetainJob::MoveWaiting(misplaced) => misplaced.len(),
            RetainJob::MoveMessages(moves) => moves.len(),
            // A block is as many bytes as some messages.
            RetainJob::WriteTextBlocks(planned, filled, _) => planned.len() + 8 * filled.len(),
            RetainJob::RetireLanes(idle, _) => {
                (idle.to_mark.len() + idle.to_remove.len()) / LANES_PER_MESSAGE
            }
            RetainJob::Erase(.., seen, mails) => seen.len() + mails.len(),
        }
    }
}

/// Does a job inside the transaction under way. Jobs other than an erasure report only how much they removed.
pub(crate) async fn write(
    engine: &mut impl WriteTransaction,
    job: &RetainJob,
) -> Result<ErasureCounts, StoreError> {
    let removed = match job {
        RetainJob::TrimJournal(before, limit) => {
            traces::trim_journal(&mut *engine.session()?, *before, *limit).await?
        }
        RetainJob::TrimAudit(before, limit) => {
            admin::trim_audit(&mut *engine.session()?, *before, *limit).await?
        }
        RetainJob::ForgetTraces(now, limit) => traces::forget(&mut *engine.session()?, *now, *limit).await?,
        RetainJob::Expunge(requests, seen) => expunge::expunge(engine, requests, seen).await?,
        RetainJob::ExpungeInbound(tenant, uids) => {
            inbound_mail::expunge(&mut *engine.session()?, tenant, uids).await?
        }
        RetainJob::MoveWaiting(misplaced) => {
            let moved = lane_upkeep::move_waiting(&mut *engine.session()?, misplaced).await?;
            let after = engine.after();
            after.wrote = true;
            after.woken.extend(misplaced.iter().map(|one| account_of(&one.lane)));
            moved
        }
        RetainJob::MoveMessages(moves) => {
            let moved = lane_upkeep::move_messages(&mut *engine.session()?, moves).await?;
            engine.after().wrote = true;
            moved
        }
        RetainJob::WriteTextBlocks(planned, filled, now) => {
            engine.after().wrote = true;
            upkeep::write(&mut *engine.session()?, planned, filled, *now).await?
        }
        RetainJob::RetireLanes(idle, now) => {
            let removed = lane_upkeep::retire_lanes(&mut *engine.session()?, idle, *now).await?;
            engine.after().wrote = true;
            removed
        }
        RetainJob::Erase(tenant, address, now, seen, mails) => {
            let mut erased = erase::erase(engine, tenant, address, *now, seen).await?;
            let removed = inbound_mail::expunge(&mut *engine.session()?, tenant, mails).await?;
            erased.removed += i64::try_from(removed).unwrap_or(i64::MAX);
            return Ok(erased);
        }
    };
    Ok(ErasureCounts { removed: i64::try_from(removed).unwrap_or(i64::MAX), ..ErasureCounts::default() })
}

fn account_of(lane: &Lane) -> AccountKey {
    AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() }
}

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    let listed = [
        erase::STATEMENTS,
        statistics::STATEMENTS,
        delivery_state::STATEMENTS,
        traces::STATEMENTS,
        crate::journal::suppression_changes::STATEMENTS,
    ]
    .concat();
    let multi = [erase::multi(), message_parts::multi(), delivery_state::multi(), traces::multi()].concat();
    let multi = multi.into_iter().map(|multi| multi.sample().into()).collect();
    [scan::statements(), inbound_mail::statements(), listed, expunge::statements(), multi].concat()
}
