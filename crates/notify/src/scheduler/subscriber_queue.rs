//! The queue of one subscriber, and the record of how it answered.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use postway_domain::{SubscriberKind, Time};

use super::CALLS_PER_SUBSCRIBER;
use crate::notification::{
    batch::FinishedBatch,
    call_limits::{CALL_MAX, CALLBACK_MESSAGES_MAX, SYNC_ENTRIES_MAX},
    outcome::{LeasedNotification, SubscriberConduct},
    target::SubscriberTarget,
};

/// The number of failures in a row after which a subscriber is only probed.
const FAILURES_MAX: u32 = 3;
/// The first pause between probes; it doubles up to the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause between probes.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// From this duration on a subscriber's calls count as slow: it shares the slots of those that are not
/// proven.
const SLOW_MIN: Duration = Duration::from_secs(3);
/// A subscriber that took nothing for this long was away. Notifications that failed meanwhile may wait for
/// hours, so they are made due when it is back. Notifications that failed for a shorter time are repeated
/// soon anyway, and may themselves be the cause.
const AWAY_MIN: Duration = Duration::from_secs(60);
/// How often in a row a client is called again because it asked for it.
const AGAIN_MAX: u32 = 10;

/// The bounds of a form of delivery.
struct DeliveryBounds {
    /// The most calls at once.
    slots: usize,
    /// The most notifications of one call.
    batch: usize,
    /// The most calls that are leased for, including those under way.
    window: usize,
}

fn bounds(kind: SubscriberKind) -> DeliveryBounds {
    let slots = CALLS_PER_SUBSCRIBER;
    match kind {
        SubscriberKind::Webhook | SubscriberKind::ResendWebhook | SubscriberKind::PostmarkWebhook => {
            DeliveryBounds { slots, batch: 1, window: 256 }
        }
        SubscriberKind::Callback => DeliveryBounds { slots, batch: CALLBACK_MESSAGES_MAX, window: slots },
        // One at a time, because each answer may ask for quiet; the next one is leased meanwhile.
        SubscriberKind::Sync => DeliveryBounds { slots: 1, batch: SYNC_ENTRIES_MAX, window: 2 },
        // Polling leaves it out.
        SubscriberKind::Archive => DeliveryBounds { slots: 0, batch: 1, window: 0 },
    }
}

/// How a subscriber has answered so far. Claims and calls prefer the first rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscriberRank {
    /// It answers soon.
    Proven,
    /// It has no history yet.
    Unknown,
    /// It failed repeatedly, or answers slowly.
    Lagging,
}

/// Whether a client asked to be called again.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CallAgain {
    #[default]
    No,
    /// It asked; what is due for it must be claimed first.
    Asked,
    /// It is called now, even if there is nothing to deliver.
    Now,
}

#[derive(Default)]
pub(super) struct SubscriberQueue {
    target: Option<Arc<SubscriberTarget>>,
    waiting: VecDeque<LeasedNotification>,
    /// The number of notifications that wait, are being delivered, or are being written.
    leased: usize,
    calls: usize,
    /// The number of calls to lease for, as a power of two.
    doublings: u32,
    has_answered: bool,
    /// How long its calls take; the latest count most.
    usual: Option<Duration>,
    failures: u32,
    /// When the failures in a row began.
    failing_since: Option<Time>,
    /// Whether what waited for it has been made due, as far as this process knows.
    is_caught_up: bool,
    /// Whether its latest answer is a return from a time away.
    has_returned: bool,
    pauses: u32,
    /// The end of the pause after failures.
    paused_until: Option<Time>,
    /// The end of the quiet time that it asked for.
    quiet_until: Option<Time>,
    has_more: bool,
    in_turns: bool,
    /// The number of the latest claim for it.
    claimed_in: u64,
    again: CallAgain,
    times_again: u32,
}

impl SubscriberQueue {
    fn bounds(&self) -> DeliveryBounds {
        bounds(self.target.as_ref().map_or(SubscriberKind::Webhook, |target| target.kind()))
    }

    /// A slow subscriber needs no more than its slots: anything leased beyond them only waits.
    fn window(&self) -> usize {
        let DeliveryBounds { slots, window, .. } = self.bounds();
        let most = if self.is_slow() { slots.min(window) } else { window };
        (1 << self.doublings).min(most)
    }

    fn is_slow(&self) -> bool {
        self.usual.is_some_and(|usual| usual >= SLOW_MIN)
    }

    pub(super) fn rank(&self) -> SubscriberRank {
        match (self.failures >= FAILURES_MAX || self.is_slow(), self.has_answered) {
            (true, _) => SubscriberRank::Lagging,
            (false, true) => SubscriberRank::Proven,
            (false, false) => SubscriberRank::Unknown,
        }
    }

    fn is_left_alone(&self, now: Time) -> bool {
        self.paused_until.max(self.quiet_until).is_some_and(|until| until > now)
    }

    /// How much more may be leased for it. Zero while more than half of its window is full, so that each
    /// claim is worth its cost.
    pub(super) fn capacity(&self, now: Time) -> usize {
        let most = self.window() * self.bounds().batch;
        match self.is_left_alone(now) || self.leased * 2 > most {
            true => 0,
            false => most - self.leased,
        }
    }

    /// The number of the latest claim for it; 0 before the first.
    pub(super) fn claimed_in(&self) -> u64 {
        self.claimed_in
    }

    pub(super) fn note_claim(&mut self, claim: u64) {
        self.claimed_in = claim;
    }

    /// Whether its latest answer is a return from a time away. Resets the flag.
    pub(super) fn has_returned(&mut self) -> bool {
        std::mem::take(&mut self.has_returned)
    }

    pub(super) fn forget_return(&mut self) {
        self.is_caught_up = false;
    }

    pub(super) fn has_more(&self) -> bool {
        self.has_more
    }

    pub(super) fn is_asked_again(&self) -> bool {
        self.again == CallAgain::Asked
    }

    /// Allows the call that the client asked for, now that what was due is claimed.
    pub(super) fn call_again(&mut self) {
        if self.again == CallAgain::Asked {
            self.again = CallAgain::Now;
        }
    }

    pub(super) fn is_worth_keeping(&self) -> bool {
        self.leased > 0 || self.calls > 0 || self.failures > 0 || self.quiet_until.is_some()
    }

    pub(super) fn set_target(&mut self, target: Arc<SubscriberTarget>) {
        self.target = Some(target);
    }

    pub(super) fn take(&mut self, leased: Vec<LeasedNotification>, is_all: bool) {
        self.leased += leased.len();
        self.waiting.extend(leased);
        self.has_more = !is_all;
    }

    /// Enters the turns if it has something to call and is not among them; returns whether it entered.
    pub(super) fn enters_turns(&mut self) -> bool {
        let has_work = !self.waiting.is_empty() || self.again == CallAgain::Now;
        let enters = has_work && !self.in_turns;
        self.in_turns |= enters;
        enters
    }

    pub(super) fn leaves_turns(&mut self) {
        self.in_turns = false;
    }

    /// Removes notifications whose lease ends before `end`.
    pub(super) fn drop_expiring(&mut self, end: Time, back: &mut Vec<LeasedNotification>) {
        while self.waiting.front().is_some_and(|first| first.until < end) {
            back.extend(self.waiting.pop_front());
        }
    }

    /// The next notifications to deliver, if it has a free slot.
    pub(super) fn next_batch(&mut self) -> Option<(Arc<SubscriberTarget>, Vec<LeasedNotification>)> {
        let DeliveryBounds { slots, batch, .. } = self.bounds();
        let is_idle = self.waiting.is_empty() && self.again != CallAgain::Now;
        if is_idle || self.calls >= slots.min(self.window()) {
            return None;
        }
        let target = self.target.clone()?;
        self.again = CallAgain::No;
        self.calls += 1;
        // If the latest call succeeded, a failure now concerns this notification alone.
        let takes_others = self.has_answered && self.failures == 0;
        let taken = self.waiting.drain(..batch.min(self.waiting.len()));
        Some((target, taken.map(|leased| LeasedNotification { takes_others, ..leased }).collect()))
    }

    /// Notes the end of a call. If the subscriber is to be left alone, its queue goes to `back`.
    pub(super) fn finish(&mut self, finished: &FinishedBatch, now: Time, back: &mut Vec<LeasedNotification>) {
        self.calls -= 1;
        match finished.conduct {
            SubscriberConduct::Answered => {
                if self.window() < self.bounds().window {
                    self.doublings += 1;
                }
                let away = self.failing_since.take();
                self.has_returned =
                    !self.is_caught_up || away.is_some_and(|since| now.since(since) >= AWAY_MIN);
                self.is_caught_up = true;
                (self.has_answered, self.failures, self.pauses) = (true, 0, 0);
                self.paused_until = None;
                // No call takes longer, but the clock may have been set.
                let took = now.since(finished.begun_at).min(CALL_MAX);
                self.usual = Some(self.usual.map_or(took, |usual| (usual * 3 + took) / 4));
            }
            SubscriberConduct::Failed => self.fail(now),
            SubscriberConduct::Uncalled => {}
        }
        self.quiet_until = self.quiet_until.filter(|until| *until > now).max(finished.quiet_until);
        let is_left_alone = self.is_left_alone(now);
        if is_left_alone {
            back.extend(self.waiting.drain(..));
        }
        let is_asked = finished.comes_again && self.times_again < AGAIN_MAX && !is_left_alone;
        self.times_again = if is_asked { self.times_again + 1 } else { 0 };
        self.again = if is_asked { CallAgain::Asked } else { CallAgain::No };
    }

    fn fail(&mut self, now: Time) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(now);
        self.doublings = self.doublings.saturating_sub(1);
        if self.failures < FAILURES_MAX {
            return;
        }
        self.doublings = 0;
        // Calls that were under way together count as one failure here.
        if !self.is_left_alone(now) {
            let pause = PAUSE_FIRST.saturating_mul(1 << self.pauses.min(16)).min(PAUSE_MAX);
            self.pauses = self.pauses.saturating_add(1);
            self.paused_until = Some(now.plus(pause));
        }
    }

    pub(super) fn settled(&mut self, count: usize) {
        self.leased -= count;
    }

    pub(super) fn clear(&mut self) -> Vec<LeasedNotification> {
        self.in_turns = false;
        self.again = CallAgain::No;
        self.waiting.drain(..).collect()
    }
}
