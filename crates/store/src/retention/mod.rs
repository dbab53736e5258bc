//! Forgetting, the same for every SQL database: messages that ended and were told of, keys and traces that have ended,
//! pages of the journal, old entries of the audit log, and addresses that must not be known any more.
//!
//! Promises:
//! - nothing goes that has not ended, or that somebody is still to be told of;
//! - what goes, goes whole, in one transaction, and leaves a trace and its keys for a time;
//! - a call is bounded: it looks at so many on a connection of its own, and the writer, which sending waits for, gets a
//!   slice of at most [`SLICE_MAX`] by their ids.
//!
//! What was changed between the look and the slice, or is in somebody's hands, stays for the next call.

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
pub(crate) use rules::{FanOutBacklog, KEY_LASTS, SLICE_MAX, TRACE_LASTS, Told};
pub(crate) use scan::{Seen, Walks, newest_before};

use crate::{
    admin,
    error::StoreError,
    queue::{
        lane_upkeep::{self, IdleLanes, MisplacedLane},
        transaction::Engine,
    },
    record::{AccountKey, Erased, Expunge},
};

/// A lane is a small row: a transaction may carry this many for one message.
const LANES_PER_MESSAGE: usize = 8;

/// A write of retention.
pub(crate) enum RetainJob {
    /// Pages of the journal older than this, so many.
    TrimJournal(Time, u32),
    /// Entries of the audit log older than this, so many.
    TrimAudit(Time, u32),
    /// Keys and traces that have ended by now, so many of each.
    ForgetTraces(Time, u32),
    /// These messages, where they are as they were seen.
    Expunge(Box<Expunge>, Vec<Seen>),
    /// These mails that came in of a tenant, where they are still settled.
    ExpungeInbound(TenantId, Vec<MessageUid>),
    /// Waiting mail of these lanes, to the ids that the lanes should have.
    MoveWaiting(Vec<MisplacedLane>),
    /// Lanes without messages at this time.
    RetireLanes(IdleLanes, Time),
    /// An address in these messages of a tenant, where they are as they were seen, and these mails that came in.
    Erase(TenantId, String, Time, Vec<Seen>, Vec<MessageUid>),
}

impl RetainJob {
    /// How many messages it is about, about.
    pub fn messages(&self) -> usize {
        match self {
            RetainJob::TrimJournal(..) | RetainJob::TrimAudit(..) => 1,
            RetainJob::ForgetTraces(_, limit) => *limit as usize,
            RetainJob::Expunge(_, seen) => seen.len(),
            RetainJob::ExpungeInbound(_, uids) => uids.len(),
            RetainJob::MoveWaiting(misplaced) => misplaced.len(),
            RetainJob::RetireLanes(idle, _) => {
                (idle.to_mark.len() + idle.to_remove.len()) / LANES_PER_MESSAGE
            }
            RetainJob::Erase(.., seen, mails) => seen.len() + mails.len(),
        }
    }
}

/// Does one inside the transaction under way. What is no erasure says how much it removed, and no more.
pub(crate) async fn write(engine: &mut impl Engine, job: &RetainJob) -> Result<Erased, StoreError> {
    let removed = match job {
        RetainJob::TrimJournal(before, limit) => {
            traces::trim_journal(&mut *engine.session()?, *before, *limit).await?
        }
        RetainJob::TrimAudit(before, limit) => {
            admin::trim_audit(&mut *engine.session()?, *before, *limit).await?
        }
        RetainJob::ForgetTraces(now, limit) => traces::forget(&mut *engine.session()?, *now, *limit).await?,
        RetainJob::Expunge(expunge, seen) => expunge::expunge(engine, expunge, seen).await?,
        RetainJob::ExpungeInbound(tenant, uids) => {
            inbound_mail::expunge(&mut *engine.session()?, tenant, uids).await?
        }
        RetainJob::MoveWaiting(misplaced) => {
            let moved = lane_upkeep::move_waiting(&mut *engine.session()?, misplaced).await?;
            let key = |lane: &Lane| AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() };
            let after = engine.after();
            after.wrote = true;
            after.woken.extend(misplaced.iter().map(|one| key(&one.lane)));
            moved
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
    Ok(Erased { removed: i64::try_from(removed).unwrap_or(i64::MAX), ..Erased::default() })
}

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::Sql> {
    let listed =
        [erase::STATEMENTS, statistics::STATEMENTS, delivery_state::STATEMENTS, traces::STATEMENTS].concat();
    let multi = [erase::multi(), message_parts::multi(), delivery_state::multi(), traces::multi()].concat();
    let multi = multi.into_iter().map(|multi| multi.sample().into()).collect();
    [vec![scan::PAGE], inbound_mail::statements(), listed, expunge::statements(), multi].concat()
}
