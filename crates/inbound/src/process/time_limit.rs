//! Work on one mail has an end in time, also where it is computing and not waiting.
//!
//! What may take long runs on a thread of its own: there are few of them, tenants share them, and a thread is free again only when its
//! work has ended. Work whose time is over is told to stop, and does so at its next step; each step is bounded by the size of what it
//! looks at. So a lease, which lasts longer than all of it together, never lapses under work that goes on.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use postway_store::record::{Body, ToRoute};
use tokio::{runtime::Handle, task::JoinError, time::timeout};

use super::{
    conclusion::{Progress, Trouble, Verdict},
    mail::{Desk, Means, deal_with},
};
use crate::{
    rules::{RuleSet, WorkStop},
    tenant_slots::TenantSeat,
};

/// How long dealing with one mail may take.
pub(super) const DEAL_MAX: Duration = Duration::from_secs(120);
/// How long a mail that needs a thread may wait for one.
pub(super) const THREAD_WAIT_MAX: Duration = Duration::from_secs(120);
/// How long work that was told to stop may take to do so: the longest single step of it.
pub(super) const WORK_STOP_MAX: Duration = Duration::from_secs(30);
/// How long a mail waits that found no thread.
const CROWDED_WAIT: Duration = Duration::from_secs(5);
/// From here on, looking at a mail takes longer than a runtime's thread may be kept.
const HEAVY_BYTES: u64 = 256 * 1024;
/// How much of a mail conditions look at: its header.
const CONDITION_BYTES_MAX: u64 = 256 * 1024;
/// So many bytes are looked at by a condition in the time of one byte of a mail that is taken apart.
const CONDITION_BYTES_PER_BYTE: u64 = 4;
/// Threads for work that takes long.
pub(super) const THREADS_MAX: usize = 8;
/// Of one tenant.
pub(super) const THREADS_PER_TENANT_MAX: usize = THREADS_MAX / 2;

/// What was done, and how it ended.
pub(super) type MailWork = (Progress, Result<Verdict, Trouble>);

/// A mail's place in the line for a thread of its own.
pub(super) type ThreadPlace = BoxFuture<'static, TenantSeat>;

/// Joins the line for a thread, where work on a mail may be long. Called in the order of arrival: one that has a thread may wait there
/// for its [turn](super::order), so those before it must not come later to theirs.
pub(super) fn queue_for_thread(means: &Means, desk: &Desk, job: &ToRoute) -> Option<ThreadPlace> {
    is_heavy(&desk.rules, job).then(|| means.threads.queue(&job.key.tenant).boxed())
}

/// Works on a mail within its time, on a thread of its own where it has a place in the line for one; what was done, and how it ended.
pub(super) async fn work_on(
    means: &Arc<Means>,
    desk: &Arc<Desk>,
    job: &Arc<ToRoute>,
    place: Option<ThreadPlace>,
) -> MailWork {
    let stop = WorkStop::default();
    let work = {
        let (means, desk, job, stop) = (means.clone(), desk.clone(), job.clone(), stop.clone());
        async move {
            let mut progress = Progress::of(&job);
            let dealing = AssertUnwindSafe(deal_with(&means, &desk, &job, &stop, &mut progress));
            let ended = match timeout(DEAL_MAX, dealing.catch_unwind()).await {
                Ok(Ok(ended)) => ended,
                Ok(Err(_)) => Err(broke_inside()),
                Err(_) => Err(took_too_long()),
            };
            (progress, ended)
        }
    };
    let Some(place) = place else { return work.await };
    let Ok(seat) = timeout(THREAD_WAIT_MAX, place).await else {
        let why = "it waits for work on other large mail".to_owned();
        return (Progress::of(job), Err(Trouble::Postponed { wait: CROWDED_WAIT, why }));
    };
    let runtime = Handle::current();
    let thread = tokio::task::spawn_blocking(move || {
        // Held until the work has ended, whoever still waits for it.
        let _seat = seat;
        runtime.block_on(work)
    });
    ended_within(thread, &stop).await.unwrap_or_else(|trouble| (Progress::of(job), Err(trouble)))
}

/// Waits for work on a thread; tells it to stop when its time is over, or when nobody waits for it any more.
async fn ended_within(
    mut thread: impl Future<Output = Result<MailWork, JoinError>> + Unpin,
    stop: &WorkStop,
) -> Result<MailWork, Trouble> {
    let _stopped = stop.at_drop();
    if let Ok(ended) = timeout(DEAL_MAX, &mut thread).await {
        return ended.map_err(|_| broke_inside());
    }
    stop.stop();
    match timeout(WORK_STOP_MAX, thread).await {
        Ok(Ok((progress, _))) => Ok((progress, Err(took_too_long()))),
        Ok(Err(_)) => Err(broke_inside()),
        Err(_) => Err(took_too_long()),
    }
}

fn broke_inside() -> Trouble {
    Trouble::Failed("dealing with it failed inside Postway: see the log for the time".to_owned())
}

fn took_too_long() -> Trouble {
    Trouble::Failed(format!("dealing with it took longer than {} s", DEAL_MAX.as_secs()))
}

/// Whether work on a mail may take longer than a runtime's thread may be kept.
fn is_heavy(rules: &RuleSet, job: &ToRoute) -> bool {
    let bytes = match &job.body {
        Body::Inline(bytes) => bytes.len() as u64,
        Body::Blob(blob) => blob.size,
    };
    let asked = bytes.min(CONDITION_BYTES_MAX).saturating_mul(rules.conditions() as u64);
    rules.has_patterns() || bytes.saturating_add(asked / CONDITION_BYTES_PER_BYTE) > HEAVY_BYTES
}

#[cfg(test)]
mod tests {
    use postway_domain::{
        InboundState, MessageUid, Time,
        rule::{Condition, Rule, RuleContent, TextMatch},
    };
    use postway_store::record::MailboxKey;

    use super::*;

    fn job(bytes: usize) -> ToRoute {
        let now = Time::from_millis(0);
        ToRoute {
            uid: MessageUid::new(now, &mut rand::rng()),
            key: MailboxKey { tenant: "t".parse().unwrap(), mailbox: "m".parse().unwrap() },
            folder: "INBOX".to_owned(),
            uid_validity: 1,
            imap_uid: 1,
            digest: [0; 32],
            body: Body::Inline(vec![b'x'; bytes].into()),
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

    fn rules(rules: usize, conditions: usize) -> RuleSet {
        rules_with(&Condition::Subject(TextMatch::Contains("x".to_owned())), rules, conditions)
    }

    fn rules_with(condition: &Condition, rules: usize, conditions: usize) -> RuleSet {
        let now = Time::from_millis(0);
        let rule = |n| Rule {
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
        RuleSet::new((0..rules).map(rule).collect())
    }

    #[test]
    fn what_may_take_long_is_told_by_bytes_and_by_conditions() {
        for (bytes, of, heavy) in [
            (100_000, rules(0, 0), false),
            (300_000, rules(0, 0), true),
            (5_000, rules(10, 5), false),
            (5_000, rules(200, 50), true),
            (50_000, rules(5, 50), true),
            (100, rules_with(&Condition::Subject(TextMatch::Regex("(a+)+$".to_owned())), 1, 1), true),
        ] {
            assert_eq!(is_heavy(&of, &job(bytes)), heavy, "{bytes} bytes, {} conditions", of.conditions());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_end_is_told_to_stop_and_then_left() {
        let stop = WorkStop::default();
        // It stops when it is told to.
        let told = stop.clone();
        let obedient = async {
            while !told.is_stopped() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok((Progress::default(), Ok(Verdict::Routed)))
        };
        let ended = ended_within(std::pin::pin!(obedient), &stop).await;
        assert!(matches!(ended, Ok((_, Err(Trouble::Failed(why)))) if why.contains("took longer")));
        let began = tokio::time::Instant::now();
        let deaf = ended_within(std::future::pending(), &WorkStop::default()).await;
        assert!(matches!(deaf, Err(Trouble::Failed(why)) if why.contains("took longer")));
        assert!(began.elapsed() <= DEAL_MAX + WORK_STOP_MAX + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_told_to_stop() {
        let stop = WorkStop::default();
        let waiting = ended_within(std::future::pending(), &stop);
        assert!(waiting.now_or_never().is_none());
        assert!(stop.is_stopped());
    }
}
