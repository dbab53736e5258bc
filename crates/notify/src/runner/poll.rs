//! Polling for work in steps: which subscribers have something due, how to reach them, which notifications to
//! lease.
//!
//! Each step is a task that talks to the store while the loop goes on with its calls. One step runs at a
//! time, and the loop takes its result. A step that fails returns nothing and is repeated at the next poll.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use postway_domain::{Incarnation, LeaseToken, Subscriber, Time};
use postway_store::{
    Store,
    record::{DueSubscriber, LeaseGrant, ReportRequest, ReportState},
};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    deliver::DeliveryContext,
    notification::{
        message_state,
        outcome::LeasedNotification,
        target::{SubscriberTarget, subscriber_of},
    },
};

/// The duration of a lease: longer than any call, and the limit if a process hangs.
const LEASE: Duration = Duration::from_secs(120);

/// The result of a step.
pub(crate) enum PollStepResult {
    /// The subscribers that have something due, and how long the store took; `None` if the store failed.
    Due(Option<ReportState>, Duration),
    /// How to reach these subscribers; `None` if one is gone or could not be read.
    Targets(Vec<(DueSubscriber, Option<Arc<SubscriberTarget>>)>),
    /// The notifications leased for each subscriber, whether these are all it has, and how long the store
    /// took.
    Leased(Vec<(DueSubscriber, Vec<LeasedNotification>, bool)>, Duration),
}

/// The step under way, if there is one.
#[derive(Default)]
pub(crate) struct DueSubscriberPoll(JoinSet<PollStepResult>);

impl DueSubscriberPoll {
    /// Whether a step is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.is_empty()
    }

    /// The result of the step under way; `None` if no step is under way.
    pub(crate) async fn next_step(&mut self) -> Option<PollStepResult> {
        match self.0.join_next().await? {
            Ok(step) => Some(step),
            Err(error) => {
                tracing::error!(%error, "polling for notifications broke off; its leases are reclaimed later");
                Some(PollStepResult::Leased(Vec::new(), Duration::ZERO))
            }
        }
    }

    /// Reads which subscribers have something due.
    pub(crate) fn read_due(&mut self, context: Arc<DeliveryContext>, now: Time) {
        self.0.spawn(async move {
            let began = Instant::now();
            let state = match context.store.report_state(now).await {
                Ok(mut state) => {
                    // Copies are made by the archive, from the same queue.
                    state.due.retain(|who| who.subscriber.as_str() != Subscriber::ARCHIVE);
                    Some(state)
                }
                Err(error) => {
                    tracing::warn!(%error, "notifications that are due could not be read");
                    None
                }
            };
            PollStepResult::Due(state, began.elapsed())
        });
    }

    /// Reads how to reach these subscribers.
    pub(crate) fn read_targets(
        &mut self,
        context: Arc<DeliveryContext>,
        chosen: Vec<DueSubscriber>,
        now: Time,
    ) {
        self.0.spawn(async move {
            let context = &*context;
            let read = |key: DueSubscriber| async move {
                let target = SubscriberTarget::read(&*context.store, &context.secret_key, &key, now).await;
                let target = target.unwrap_or_else(|error| {
                    tracing::warn!(%error, tenant = %key.tenant, subscriber = %key.subscriber, "a subscriber could not be read");
                    None
                });
                (key, target)
            };
            PollStepResult::Targets(join_all(chosen.into_iter().map(read)).await)
        });
    }

    /// Leases up to the given number of notifications for each subscriber, and reads their messages.
    pub(crate) fn lease(
        &mut self,
        context: Arc<DeliveryContext>,
        incarnation: Incarnation,
        wants: Vec<(DueSubscriber, u32)>,
        now: Time,
    ) {
        self.0.spawn(async move {
            let began = Instant::now();
            let queues = lease(&*context.store, incarnation, wants, now).await;
            PollStepResult::Leased(queues, began.elapsed())
        });
    }
}

async fn lease(
    store: &dyn Store,
    incarnation: Incarnation,
    wants: Vec<(DueSubscriber, u32)>,
    now: Time,
) -> Vec<(DueSubscriber, Vec<LeasedNotification>, bool)> {
    let token = LeaseToken::new(&mut rand::rng());
    let lease = LeaseGrant { incarnation, token, until: now.plus(LEASE) };
    let mut queues: BTreeMap<DueSubscriber, (u32, Vec<LeasedNotification>)> =
        wants.iter().map(|(key, count)| (key.clone(), (*count, Vec::new()))).collect();
    match store.claim_notifications(ReportRequest { lease, now, wants }).await {
        Ok(claimed) => {
            let snapshot = message_state::read(store, &claimed, now).await;
            for job in claimed {
                let snapshot = snapshot.get(&job.key.uid).map(|snapshot| (snapshot.clone(), now));
                let (_, leased) = queues.entry(subscriber_of(&job.key)).or_default();
                leased.push(LeasedNotification {
                    job,
                    token,
                    until: lease.until,
                    snapshot,
                    takes_others: false,
                });
            }
        }
        Err(error) => tracing::warn!(%error, "notifications could not be claimed"),
    }
    let queue = |(key, (asked, leased)): (DueSubscriber, (u32, Vec<LeasedNotification>))| {
        let is_all = leased.len() < asked as usize;
        (key, leased, is_all)
    };
    queues.into_iter().map(queue).collect()
}
