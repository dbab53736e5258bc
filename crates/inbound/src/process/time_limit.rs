//! Limits the time of processing a mail, even while it computes without waiting.
//!
//! Long work runs on a thread of its own. There are few such threads, tenants share them, and a thread is
//! free again only when its work has ended. Work whose time is over is asked to stop, and stops at its next
//! step; each step is bounded by the size of its input. So a lease, which lasts longer than all of this
//! together, never expires during work.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use postway_domain::mailbox::MailboxRole;
use postway_store::record::{MailToProcess, StoredBody};
use postway_trace::TraceContext;
use tokio::{runtime::Handle, task::JoinError, time::timeout};

use super::{
    conclusion::{MailProgress, MailVerdict, ProcessFailure},
    content::process_content,
    context::{MailboxContext, ProcessContext},
};
use crate::{
    rules::{MailboxRuleSet, WorkStopSignal},
    tenant_slots::TenantSlot,
};

/// How long processing one mail may take.
pub(super) const PROCESS_MAX: Duration = Duration::from_secs(120);
/// How long a mail that needs a thread may wait for one.
pub(super) const THREAD_WAIT_MAX: Duration = Duration::from_secs(120);
/// How long work may take to stop once it was asked to: its longest single step.
pub(super) const WORK_STOP_MAX: Duration = Duration::from_secs(30);
/// How long a mail waits that did not get a thread.
const CROWDED_WAIT: Duration = Duration::from_secs(5);
/// Mails of more bytes take longer to read than a thread of the runtime may be blocked.
const HEAVY_BYTES: u64 = 256 * 1024;
/// The most bytes of a mail that conditions read: its header.
const CONDITION_BYTES_MAX: u64 = 256 * 1024;
/// A condition reads this many bytes in the time that parsing takes for one.
const CONDITION_BYTES_PER_BYTE: u64 = 4;
/// The number of threads for long work.
pub(super) const THREADS_MAX: usize = 8;
/// The most threads of one tenant.
pub(super) const THREADS_PER_TENANT_MAX: usize = THREADS_MAX / 2;

/// What was done, and how it ended.
pub(super) type MailWork = (MailProgress, Result<MailVerdict, ProcessFailure>);

/// A mail's position in the queue for a thread.
pub(super) type ThreadWait = BoxFuture<'static, TenantSlot>;

/// Joins the queue for a thread, if processing the mail may take long. Called in the order of arrival: a mail
/// that has a thread may wait there for its [turn](super::order), so earlier mails must not get their threads
/// later.
pub(super) fn queue_for_thread(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
) -> Option<ThreadWait> {
    // A small mail may bring a report that is large when it is unpacked.
    let brings_reports = mailbox_context.mailbox.settings.has(MailboxRole::DomainReports);
    let is_heavy = brings_reports || is_heavy(&mailbox_context.rules, job);
    is_heavy.then(|| context.threads.queue(&job.key.tenant).boxed())
}

/// Processes a mail within its time, on a thread of its own if it queued for one; returns what was done and
/// how it ended.
pub(super) async fn process_in_time(
    context: &Arc<ProcessContext>,
    mailbox_context: &Arc<MailboxContext>,
    job: &Arc<MailToProcess>,
    thread_wait: Option<ThreadWait>,
    trace: Option<TraceContext>,
) -> MailWork {
    let stop = WorkStopSignal::default();
    let work = {
        let (context, mailbox_context, job, stop) =
            (context.clone(), mailbox_context.clone(), job.clone(), stop.clone());
        async move {
            let mut progress = MailProgress { trace, ..MailProgress::for_job(&job) };
            let processing =
                AssertUnwindSafe(process_content(&context, &mailbox_context, &job, &stop, &mut progress));
            let ended = match timeout(PROCESS_MAX, processing.catch_unwind()).await {
                Ok(Ok(ended)) => ended,
                Ok(Err(_)) => Err(broke_inside()),
                Err(_) => Err(took_too_long()),
            };
            (progress, ended)
        }
    };
    let Some(thread_wait) = thread_wait else { return work.await };
    let Ok(slot) = timeout(THREAD_WAIT_MAX, thread_wait).await else {
        let why = "it waits for work on other large mail".to_owned();
        return (MailProgress::for_job(job), Err(ProcessFailure::Postponed { wait: CROWDED_WAIT, why }));
    };
    let runtime = Handle::current();
    let thread = tokio::task::spawn_blocking(move || {
        // Taken until the work has ended, even if its caller is gone.
        let _slot = slot;
        runtime.block_on(work)
    });
    ended_within(thread, &stop).await.unwrap_or_else(|failure| (MailProgress::for_job(job), Err(failure)))
}

/// Waits for work on a thread; asks it to stop when its time is over, or when this future is dropped.
async fn ended_within(
    mut thread: impl Future<Output = Result<MailWork, JoinError>> + Unpin,
    stop: &WorkStopSignal,
) -> Result<MailWork, ProcessFailure> {
    let _stopped = stop.stop_on_drop();
    if let Ok(ended) = timeout(PROCESS_MAX, &mut thread).await {
        return ended.map_err(|_| broke_inside());
    }
    stop.stop();
    match timeout(WORK_STOP_MAX, thread).await {
        Ok(Ok((progress, _))) => Ok((progress, Err(took_too_long()))),
        Ok(Err(_)) => Err(broke_inside()),
        Err(_) => Err(took_too_long()),
    }
}

fn broke_inside() -> ProcessFailure {
    ProcessFailure::Failed("processing it failed inside Postway: see the log for the time".to_owned())
}

fn took_too_long() -> ProcessFailure {
    ProcessFailure::Failed(format!("processing it took longer than {} s", PROCESS_MAX.as_secs()))
}

/// Whether processing a mail may take longer than a thread of the runtime may be blocked.
fn is_heavy(rules: &MailboxRuleSet, job: &MailToProcess) -> bool {
    let bytes = match &job.body {
        StoredBody::Inline(bytes) => bytes.len() as u64,
        StoredBody::Blob(blob) => blob.size,
    };
    let asked = bytes.min(CONDITION_BYTES_MAX).saturating_mul(rules.conditions() as u64);
    rules.has_patterns() || bytes.saturating_add(asked / CONDITION_BYTES_PER_BYTE) > HEAVY_BYTES
}

#[cfg(test)]
mod tests {
    use postway_domain::{
        InboundState, MessageUid, Time,
        rule::{InboundRule, RuleCondition, RuleContent, TextMatch},
    };
    use postway_store::record::MailboxKey;

    use super::*;

    fn job(bytes: usize) -> MailToProcess {
        let now = Time::from_millis(0);
        MailToProcess {
            uid: MessageUid::new(now, &mut rand::rng()),
            key: MailboxKey { tenant: "t".parse().unwrap(), mailbox: "m".parse().unwrap() },
            folder: "INBOX".to_owned(),
            uid_validity: 1,
            imap_uid: 1,
            digest: [0; 32],
            body: StoredBody::Inline(vec![b'x'; bytes].into()),
            before: InboundState::Received,
            tries: 0,
            lost_leases: 0,
            arrived_at: None,
            created_at: now,
            messages: Vec::new(),
            follow_up: None,
            reminders: 0,
        }
    }

    fn rules(rules: usize, conditions: usize) -> MailboxRuleSet {
        rules_with(&RuleCondition::Subject(TextMatch::Contains("x".to_owned())), rules, conditions)
    }

    fn rules_with(condition: &RuleCondition, rules: usize, conditions: usize) -> MailboxRuleSet {
        let now = Time::from_millis(0);
        let rule = |n| InboundRule {
            tenant: "t".parse().unwrap(),
            id: format!("r{n}").parse().unwrap(),
            mailbox: "m".parse().unwrap(),
            position: 1,
            active: true,
            content: RuleContent {
                conditions: vec![condition.clone(); conditions],
                actions: Vec::new(),
                follow_up: None,
            },
            version: 1,
            created_at: now,
            updated_at: now,
        };
        MailboxRuleSet::new((0..rules).map(rule).collect())
    }

    #[test]
    fn what_may_take_long_is_told_by_bytes_and_by_conditions() {
        for (bytes, of, heavy) in [
            (100_000, rules(0, 0), false),
            (300_000, rules(0, 0), true),
            (5_000, rules(10, 5), false),
            (5_000, rules(200, 50), true),
            (50_000, rules(5, 50), true),
            (100, rules_with(&RuleCondition::Subject(TextMatch::Regex("(a+)+$".to_owned())), 1, 1), true),
        ] {
            assert_eq!(is_heavy(&of, &job(bytes)), heavy, "{bytes} bytes, {} conditions", of.conditions());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_end_is_told_to_stop_and_then_left() {
        let stop = WorkStopSignal::default();
        // It stops when it is asked to.
        let event_data = stop.clone();
        let obedient = async {
            while !event_data.is_stopped() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok((MailProgress::default(), Ok(MailVerdict::Routed)))
        };
        let ended = ended_within(std::pin::pin!(obedient), &stop).await;
        assert!(matches!(ended, Ok((_, Err(ProcessFailure::Failed(why)))) if why.contains("took longer")));
        let began = tokio::time::Instant::now();
        let deaf = ended_within(std::future::pending(), &WorkStopSignal::default()).await;
        assert!(matches!(deaf, Err(ProcessFailure::Failed(why)) if why.contains("took longer")));
        assert!(began.elapsed() <= PROCESS_MAX + WORK_STOP_MAX + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_told_to_stop() {
        let stop = WorkStopSignal::default();
        let waiting = ended_within(std::future::pending(), &stop);
        assert!(waiting.now_or_never().is_none());
        assert!(stop.is_stopped());
    }
}
