//! The write jobs for inbound mail.

use postway_domain::{Incarnation, MessageUid, TenantId, Time};

use super::{claim, cursor, mails, reader_decisions, receipts, register, settle};
use crate::{
    error::StoreError,
    queue::transaction::WriteTransaction,
    record::{
        ChangeResult, InboundMailResult, InboundReplay, MailToProcess, MailboxNote, MailboxPage,
        ProcessRequest, ReaderDecision, RegistrationResult,
    },
};

/// A write job for inbound mail.
pub(crate) enum InboundJob {
    Register(MailboxPage),
    Note(MailboxNote),
    Claim(ProcessRequest),
    Settle(Vec<InboundMailResult>),
    /// Reclaims up to the given number of mails that are leased to other incarnations than these, or past
    /// their backstop.
    Reclaim(Vec<Incarnation>, Time, u32),
    Replay(TenantId, MessageUid, Time),
    ReplayAll(InboundReplay),
    Resolve(TenantId, MessageUid, Time),
    /// Records overdue receipts, up to the given number.
    TimeOut(Time, u32),
    /// Writes a reader's decision about a stream.
    Decide(ReaderDecision),
}

/// The answer to a job.
pub(crate) enum InboundAnswer {
    Registered(RegistrationResult),
    Claimed(Vec<MailToProcess>),
    Held(Vec<bool>),
    Count(u32),
    Changed(ChangeResult),
}

impl InboundJob {
    /// Roughly how many messages this job touches.
    pub fn messages(&self) -> usize {
        match self {
            InboundJob::Register(page) => page.mails.len(),
            InboundJob::Claim(request) => request.limit as usize,
            InboundJob::Settle(routed) => routed.iter().map(|one| 1 + one.findings.len()).sum(),
            InboundJob::Reclaim(_, _, limit) | InboundJob::TimeOut(_, limit) => *limit as usize,
            InboundJob::ReplayAll(replay) => replay.limit as usize,
            InboundJob::Note(_)
            | InboundJob::Replay(..)
            | InboundJob::Resolve(..)
            | InboundJob::Decide(_) => 1,
        }
    }

    /// The number of body bytes that it writes into rows.
    pub fn bytes(&self) -> usize {
        let InboundJob::Register(page) = self else { return 0 };
        page.mails.iter().filter_map(|mail| mail.body.as_ref()?.inline()).map(|bytes| bytes.len()).sum()
    }
}

/// Does a job inside the transaction under way.
pub(crate) async fn write(
    engine: &mut impl WriteTransaction,
    job: &InboundJob,
) -> Result<InboundAnswer, StoreError> {
    let mut journal = std::mem::take(&mut engine.after().journal);
    let mut session = engine.session()?;
    let session_ref = &mut *session;
    // The answer, and whether new work is due because of it.
    let (handled, wakes) = match job {
        InboundJob::Register(page) => {
            let registered = register::register(session_ref, page).await?;
            (
                InboundAnswer::Registered(registered),
                matches!(registered, RegistrationResult::Done { new: 1.., .. }),
            )
        }
        InboundJob::Note(note) => {
            cursor::note(session_ref, note).await?;
            (InboundAnswer::Count(1), false)
        }
        InboundJob::Claim(request) => {
            (InboundAnswer::Claimed(claim::claim(session_ref, request).await?), false)
        }
        InboundJob::Settle(routed) => {
            let (held, is_due_again) = settle::settle(session_ref, &mut journal, routed).await?;
            (InboundAnswer::Held(held), is_due_again)
        }
        InboundJob::Reclaim(alive, now, limit) => {
            let count = claim::reclaim(session_ref, alive, *now, *limit).await?;
            (InboundAnswer::Count(count), count > 0)
        }
        InboundJob::Replay(tenant, uid, now) => {
            let changed = mails::replay(session_ref, tenant, *uid, *now).await?;
            (InboundAnswer::Changed(changed), changed == ChangeResult::Done)
        }
        InboundJob::ReplayAll(replay) => {
            let count = mails::replay_all(session_ref, replay).await?;
            (InboundAnswer::Count(count), count > 0)
        }
        InboundJob::Resolve(tenant, uid, now) => {
            (InboundAnswer::Changed(mails::resolve(session_ref, tenant, *uid, *now).await?), false)
        }
        InboundJob::TimeOut(now, limit) => {
            (InboundAnswer::Count(receipts::time_out(session_ref, &mut journal, *now, *limit).await?), false)
        }
        InboundJob::Decide(decision) => (
            InboundAnswer::Changed(reader_decisions::write(session_ref, &mut journal, decision).await?),
            false,
        ),
    };
    drop(session);
    let after = engine.after();
    after.journal = journal;
    after.wrote |= !matches!(&handled, InboundAnswer::Claimed(claimed) if claimed.is_empty());
    after.inbound |= wakes;
    Ok(handled)
}
