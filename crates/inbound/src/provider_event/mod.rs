//! The processor of reported events, on every node.
//!
//! A loop on the store, like that for inbound mail: lease events, find the messages they are about, and write
//! what they say under the fence of the lease. Reading an event needs no network, so all events of a claim
//! are processed together. An event may come before the answer to the call that sent its message: what finds
//! no message waits again, for [`SEARCHED_FOR`] in all. An event whose process died is leased alone, and set
//! aside when that happens again.

mod applied;
mod matching;
mod reading;

use std::{sync::Arc, time::Duration};

use postway_domain::{Clock, Incarnation, LeaseToken, ProviderEventState, Time, inbound::LOST_LEASES_MAX};
use postway_store::{
    Store, StoreError,
    record::{ChangeResult, LeaseGrant, ProviderEventClaim, ProviderEventResult, ProviderEventToProcess},
    until_durable,
};
use tokio_util::sync::CancellationToken;

use self::{
    applied::{AppliedEvent, apply},
    matching::{EventMatches, MatchedEvent},
    reading::{EventContent, ReportedEvent, read},
};
use crate::crash::crash_point;

/// The most events that are leased at once.
const AT_ONCE_MAX: u32 = 512;
/// The most bytes of JSON that they have together. What they say takes several times as much.
const AT_ONCE_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// The duration of a lease.
const LEASE: Duration = Duration::from_secs(5 * 60);
/// How long a message is searched for.
const SEARCHED_FOR: Duration = Duration::from_secs(60 * 60);
/// How long an event waits that found no message, at first and at most; each time twice as long.
const WAIT_MIN: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_secs(10 * 60);
/// The longest error that is stored.
const ERROR_CHARS_MAX: usize = 500;

/// The dependencies of the processor.
pub struct ProviderEventProcessorParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// This incarnation of the process.
    pub incarnation: Incarnation,
    /// How often to poll for waiting events: [`ProviderEventProcessorParts::POLL`].
    pub poll: Duration,
}

impl ProviderEventProcessorParts {
    /// How often to poll: a wake-up is a hint, polling is the guarantee.
    pub const POLL: Duration = Duration::from_secs(1);
}

/// The processor. There is one for each process.
pub struct ProviderEventProcessor {
    parts: ProviderEventProcessorParts,
}

impl ProviderEventProcessor {
    /// Creates a processor that is not running yet.
    pub fn new(parts: ProviderEventProcessorParts) -> Self {
        Self { parts }
    }

    /// Works until it is stopped. What is leased then is written, or reclaimed later.
    pub async fn run(self, stop: CancellationToken) {
        let mut is_well = true;
        while !stop.is_cancelled() {
            let wait = match self.work(&stop).await {
                Ok(wait) => {
                    is_well = true;
                    wait
                }
                Err(error) => {
                    // Logged once, not at each try.
                    if is_well {
                        tracing::warn!(%error, "reported events could not be processed");
                    }
                    is_well = false;
                    self.parts.poll
                }
            };
            if wait.is_zero() {
                continue;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.parts.store.provider_event_woken() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Leases events and processes them. Returns how long to wait before the next time.
    async fn work(&self, stop: &CancellationToken) -> Result<Duration, StoreError> {
        let ProviderEventProcessorParts { store, clock, incarnation, poll } = &self.parts;
        let now = clock.now();
        let state = store.provider_event_state(now).await?;
        if state.due == 0 {
            let next = state.next_due_at.map_or(*poll, |due| due.since(now));
            return Ok(next.clamp(Duration::from_millis(10), *poll));
        }
        let token = LeaseToken::new(&mut rand::rng());
        let lease = LeaseGrant { incarnation: *incarnation, token, until: now.plus(LEASE) };
        let claim = ProviderEventClaim { lease, now, limit: AT_ONCE_MAX, bytes_max: AT_ONCE_BYTES_MAX };
        let events = store.claim_provider_events(claim).await?;
        if events.is_empty() {
            return Ok(*poll);
        }
        crash_point("hook_before_settle");
        let done = process(&**store, &events, token, now).await?;
        for one in &done {
            metrics::counter!("postway_provider_events_settled_total", "state" => one.to.as_str())
                .increment(1);
        }
        // In parts: a part that the store does not understand must not hold up the others for ever.
        let write = || store.settle_provider_events(done.clone());
        match until_durable("outcomes of reported events", stop.cancelled(), write).await {
            Ok(_) => Ok(Duration::ZERO),
            // The lease ends by itself, and the events are processed again.
            Err(error) if error.is_transient() => Err(error),
            Err(_) => {
                for one in done {
                    let set_aside = aside(&one, now);
                    let written = store.settle_provider_events(vec![one]).await;
                    if let Err(error) = written {
                        tracing::error!(%error, uid = %set_aside.uid, "what an event says cannot be stored");
                        store.settle_provider_events(vec![set_aside]).await?;
                    }
                }
                Ok(Duration::ZERO)
            }
        }
    }
}

/// The record of an event whose outcome the store refuses.
fn aside(one: &ProviderEventResult, now: Time) -> ProviderEventResult {
    ProviderEventResult {
        at: now,
        to: ProviderEventState::Dead,
        error: Some("what it says could not be stored; see the log".to_owned()),
        findings: Vec::new(),
        ..one.clone()
    }
}

/// Processes these events.
async fn process(
    store: &dyn Store,
    events: &[ProviderEventToProcess],
    token: LeaseToken,
    now: Time,
) -> Result<Vec<ProviderEventResult>, StoreError> {
    let read: Vec<Result<ReportedEvent, String>> = events
        .iter()
        .map(|event| match event.lost_leases > LOST_LEASES_MAX {
            true => Err("the process died each time it was processed".to_owned()),
            false => read(event.provider, &event.raw),
        })
        .collect();
    let pairs = || events.iter().zip(&read).filter_map(|(event, read)| Some((event, read.as_ref().ok()?)));
    let matches = EventMatches::find(store, pairs()).await?;
    let mut done = Vec::with_capacity(events.len());
    for (event, read) in events.iter().zip(&read) {
        let blank = ProviderEventResult {
            uid: event.uid,
            token,
            at: now,
            to: ProviderEventState::Dead,
            due_at: None,
            tries: event.tries,
            kind: None,
            message: None,
            error: None,
            findings: Vec::new(),
        };
        done.push(match read {
            Err(error) => ProviderEventResult { error: Some(bounded(error)), ..blank },
            Ok(reported) => conclude(store, event, reported, &matches, blank, now).await?,
        });
    }
    Ok(done)
}

/// What becomes of an event that could be read.
async fn conclude(
    store: &dyn Store,
    event: &ProviderEventToProcess,
    reported: &ReportedEvent,
    matches: &EventMatches,
    blank: ProviderEventResult,
    now: Time,
) -> Result<ProviderEventResult, StoreError> {
    if let EventContent::Nothing(why) = reported.content {
        let error = Some(why.to_owned());
        return Ok(ProviderEventResult { to: ProviderEventState::Ignored, error, ..blank });
    }
    let traced = match matches.of(event, reported) {
        MatchedEvent::Message(traced) => traced,
        MatchedEvent::Removed(uid) => {
            let error = Some("the message was removed".to_owned());
            let message = Some(uid);
            return Ok(ProviderEventResult { to: ProviderEventState::Ignored, error, message, ..blank });
        }
        MatchedEvent::Nothing(why) => return Ok(search_again(event, blank, why, now)),
    };
    let AppliedEvent { kind, findings, decision } = apply(store, reported, traced, now).await?;
    if let Some(decision) = decision {
        // Repeated after a crash, this changes nothing.
        if store.decide(decision).await? == ChangeResult::Already {
            tracing::debug!(uid = %event.uid, "the reader had left the stream before");
        }
    }
    Ok(ProviderEventResult {
        to: ProviderEventState::Applied,
        kind: Some(kind.as_str()),
        message: Some(traced.uid),
        findings,
        ..blank
    })
}

/// An event without a message waits again, or has waited long enough.
fn search_again(
    event: &ProviderEventToProcess,
    blank: ProviderEventResult,
    why: &str,
    now: Time,
) -> ProviderEventResult {
    let error = Some(bounded(why));
    if now.since(event.created_at) >= SEARCHED_FOR {
        return ProviderEventResult { to: ProviderEventState::Unmatched, error, ..blank };
    }
    let doublings = u32::try_from(event.tries.clamp(0, 16)).unwrap_or(16);
    let wait = WAIT_MIN.saturating_mul(1 << doublings).min(WAIT_MAX);
    ProviderEventResult {
        to: ProviderEventState::Waiting,
        due_at: Some(now.plus(wait)),
        tries: event.tries + 1,
        error,
        ..blank
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
