//! Looking for work, step by step: who has something due, how to reach them, what to tell them.
//!
//! Each step is a task that speaks to the store while the room's loop goes on with its calls; one runs at a time, and what it
//! found is the loop's to keep. A step that fails finds nothing, and is made again at the next look.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use postway_domain::{Incarnation, LeaseToken, Time};
use postway_store::{
    Store,
    record::{DueSubscriber, Lease, ReportRequest, ReportState},
};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    deliver::Means,
    notification::{message_state as standing, outcome::Leased, target::Target},
    runner::subscriber_of,
};

/// How long a lease lasts: longer than any call, and the backstop where a process hangs.
const LEASE: Duration = Duration::from_secs(120);

/// What a step found.
pub(crate) enum Found {
    /// Who has something due, and how long it took to find out; `None` where the store did not say.
    Due(Option<ReportState>, Duration),
    /// How to reach these; those with nothing are gone, or could not be read.
    Reached(Vec<(DueSubscriber, Option<Arc<Target>>)>),
    /// What was leased for each and whether that was all there is, and how long the store took over it.
    Leased(Vec<(DueSubscriber, Vec<Leased>, bool)>, Duration),
}

/// The step under way, if there is one.
#[derive(Default)]
pub(crate) struct Look(JoinSet<Found>);

impl Look {
    /// Whether a step is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.is_empty()
    }

    /// What the step found; `None` where none is under way.
    pub(crate) async fn found(&mut self) -> Option<Found> {
        match self.0.join_next().await? {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::error!(%error, "looking for notifications broke off; leases are taken back later");
                Some(Found::Leased(Vec::new(), Duration::ZERO))
            }
        }
    }

    /// Asks who has something due.
    pub(crate) fn survey(&mut self, means: Arc<Means>, now: Time) {
        self.0.spawn(async move {
            let began = Instant::now();
            let state = match means.store.report_state(now).await {
                Ok(state) => Some(state),
                Err(error) => {
                    tracing::warn!(%error, "notifications that are due could not be read");
                    None
                }
            };
            Found::Due(state, began.elapsed())
        });
    }

    /// Reads how to reach these.
    pub(crate) fn reach(&mut self, means: Arc<Means>, hungry: Vec<DueSubscriber>, now: Time) {
        self.0.spawn(async move {
            let means = &*means;
            let read = |key: DueSubscriber| async move {
                let target = Target::read(&*means.store, &means.secret_key, &key, now).await;
                let target = target.unwrap_or_else(|error| {
                    tracing::warn!(%error, tenant = %key.tenant, subscriber = %key.subscriber, "a subscriber could not be read");
                    None
                });
                (key, target)
            };
            Found::Reached(join_all(hungry.into_iter().map(read)).await)
        });
    }

    /// Leases so much for each, and reads the messages.
    pub(crate) fn lease(
        &mut self,
        means: Arc<Means>,
        incarnation: Incarnation,
        wants: Vec<(DueSubscriber, u32)>,
        now: Time,
    ) {
        self.0.spawn(async move {
            let began = Instant::now();
            let lines = lease(&*means.store, incarnation, wants, now).await;
            Found::Leased(lines, began.elapsed())
        });
    }
}

async fn lease(
    store: &dyn Store,
    incarnation: Incarnation,
    wants: Vec<(DueSubscriber, u32)>,
    now: Time,
) -> Vec<(DueSubscriber, Vec<Leased>, bool)> {
    let token = LeaseToken::new(&mut rand::rng());
    let lease = Lease { incarnation, token, until: now.plus(LEASE) };
    let mut lines: BTreeMap<DueSubscriber, (u32, Vec<Leased>)> =
        wants.iter().map(|(key, count)| (key.clone(), (*count, Vec::new()))).collect();
    match store.claim_notifications(ReportRequest { lease, now, wants }).await {
        Ok(claimed) => {
            let standing = standing::read(store, &claimed, now).await;
            for job in claimed {
                let standing = standing.get(&job.key.uid).map(|standing| (standing.clone(), now));
                let (_, leased) = lines.entry(subscriber_of(&job.key)).or_default();
                leased.push(Leased { job, token, until: lease.until, standing, takes_others: false });
            }
        }
        Err(error) => tracing::warn!(%error, "notifications could not be claimed"),
    }
    let line = |(key, (asked, leased)): (DueSubscriber, (u32, Vec<Leased>))| {
        let is_all = leased.len() < asked as usize;
        (key, leased, is_all)
    };
    lines.into_iter().map(line).collect()
}
