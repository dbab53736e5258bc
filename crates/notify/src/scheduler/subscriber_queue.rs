//! One subscriber's line, and what is known of its conduct.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use postway_domain::{SubscriberKind, Time};

use super::{Finished, LAGGING, PLACES_PER_SUBSCRIBER, PROVEN, UNKNOWN};
use crate::{
    deliver::{callback, client_sync},
    notification::{
        outcome::{Conduct, Leased},
        target::Target,
    },
};

/// Failures in a row after which a subscriber is only probed.
const FAILURES_MAX: u32 = 3;
/// The first pause between probes; it doubles up to the longest.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause between probes.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// From this long on a subscriber's calls are slow: it shares its places with those that are not proven.
const SLOW_MIN: Duration = Duration::from_secs(3);
/// One that did not take anything for this long was away. What failed meanwhile may wait for hours, so it is made due
/// when the subscriber is back. What failed for a shorter time comes again soon by itself, and alone may be to blame.
const AWAY_MIN: Duration = Duration::from_secs(60);
/// How often in a row a client is called again because it asked for that.
const AGAIN_MAX: u32 = 10;

/// What a form of telling allows.
struct Bounds {
    /// Calls at once.
    places: usize,
    /// Notifications of one call.
    batch: usize,
    /// Calls that are leased for, those under way among them.
    window: usize,
}

fn bounds(kind: SubscriberKind) -> Bounds {
    let places = PLACES_PER_SUBSCRIBER;
    match kind {
        SubscriberKind::Webhook | SubscriberKind::ResendWebhook => Bounds { places, batch: 1, window: 256 },
        SubscriberKind::Callback => Bounds { places, batch: callback::MESSAGES_MAX, window: places },
        // One at a time, since each answer may ask for quiet; the next is leased meanwhile.
        SubscriberKind::Sync => Bounds { places: 1, batch: client_sync::ENTRIES_MAX, window: 2 },
    }
}

/// Whether a client asked to be called again.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Again {
    #[default]
    No,
    /// It did; what is due for it must be claimed first.
    Asked,
    /// It is called, whether there is anything to tell or not.
    Now,
}

#[derive(Default)]
pub(super) struct Line {
    target: Option<Arc<Target>>,
    waiting: VecDeque<Leased>,
    /// Waiting, being told, or being written.
    leased: usize,
    calls: usize,
    /// Calls to lease for, as a power of two.
    doublings: u32,
    has_answered: bool,
    /// How long its calls take, the latest counting most.
    usual: Option<Duration>,
    failures: u32,
    /// Since when it takes nothing.
    failing_since: Option<Time>,
    /// Whether what was made to wait for it is due, as far as this process knows.
    is_caught_up: bool,
    /// Whether its latest call says that it is back.
    has_returned: bool,
    pauses: u32,
    /// Until when it is left alone because it failed.
    paused_until: Option<Time>,
    /// Until when it is left alone because it asked for that.
    quiet_until: Option<Time>,
    has_more: bool,
    in_turns: bool,
    /// The latest claim for it.
    claimed_in: u64,
    again: Again,
    times_again: u32,
}

impl Line {
    fn bounds(&self) -> Bounds {
        bounds(self.target.as_ref().map_or(SubscriberKind::Webhook, |target| target.kind()))
    }

    /// One that is slow needs no more than its places: what is leased beyond them only waits.
    fn window(&self) -> usize {
        let Bounds { places, window, .. } = self.bounds();
        let most = if self.is_slow() { places.min(window) } else { window };
        (1 << self.doublings).min(most)
    }

    fn is_slow(&self) -> bool {
        self.usual.is_some_and(|usual| usual >= SLOW_MIN)
    }

    /// Its standing.
    pub(super) fn rank(&self) -> usize {
        match (self.failures >= FAILURES_MAX || self.is_slow(), self.has_answered) {
            (true, _) => LAGGING,
            (false, true) => PROVEN,
            (false, false) => UNKNOWN,
        }
    }

    fn is_left_alone(&self, now: Time) -> bool {
        self.paused_until.max(self.quiet_until).is_some_and(|until| until > now)
    }

    /// How much more may be leased for it. Nothing while half of its window is full: claims are worth their price.
    pub(super) fn room(&self, now: Time) -> usize {
        let most = self.window() * self.bounds().batch;
        match self.is_left_alone(now) || self.leased * 2 > most {
            true => 0,
            false => most - self.leased,
        }
    }

    /// The latest claim for it; 0 before the first.
    pub(super) fn claimed_in(&self) -> u64 {
        self.claimed_in
    }

    pub(super) fn claim_in(&mut self, claim: u64) {
        self.claimed_in = claim;
    }

    /// Whether its latest call says that it is back; asked once.
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
        self.again == Again::Asked
    }

    /// What was due is claimed: now it is called even with nothing to tell.
    pub(super) fn call_again(&mut self) {
        if self.again == Again::Asked {
            self.again = Again::Now;
        }
    }

    pub(super) fn is_worth_keeping(&self) -> bool {
        self.leased > 0 || self.calls > 0 || self.failures > 0 || self.quiet_until.is_some()
    }

    pub(super) fn meet(&mut self, target: Arc<Target>) {
        self.target = Some(target);
    }

    pub(super) fn take(&mut self, leased: Vec<Leased>, is_all: bool) {
        self.leased += leased.len();
        self.waiting.extend(leased);
        self.has_more = !is_all;
    }

    /// Whether it has something to call and was not among the turns yet; now it is.
    pub(super) fn enters_turns(&mut self) -> bool {
        let has_work = !self.waiting.is_empty() || self.again == Again::Now;
        let enters = has_work && !self.in_turns;
        self.in_turns |= enters;
        enters
    }

    pub(super) fn leaves_turns(&mut self) {
        self.in_turns = false;
    }

    /// Takes out what is leased for no longer than until `end`.
    pub(super) fn drop_lapsing(&mut self, end: Time, back: &mut Vec<Leased>) {
        while self.waiting.front().is_some_and(|first| first.until < end) {
            back.extend(self.waiting.pop_front());
        }
    }

    /// What to tell next, if it has a place free.
    pub(super) fn next_batch(&mut self) -> Option<(Arc<Target>, Vec<Leased>)> {
        let Bounds { places, batch, .. } = self.bounds();
        let is_idle = self.waiting.is_empty() && self.again != Again::Now;
        if is_idle || self.calls >= places.min(self.window()) {
            return None;
        }
        let target = self.target.clone()?;
        self.again = Again::No;
        self.calls += 1;
        // Where the latest call was taken, one that fails now fails alone.
        let takes_others = self.has_answered && self.failures == 0;
        let taken = self.waiting.drain(..batch.min(self.waiting.len()));
        Some((target, taken.map(|leased| Leased { takes_others, ..leased }).collect()))
    }

    /// Notes how a call went. What waits goes to `back` where the subscriber is to be left alone.
    pub(super) fn finish(&mut self, finished: &Finished, now: Time, back: &mut Vec<Leased>) {
        self.calls -= 1;
        match finished.conduct {
            Conduct::Answered => {
                if self.window() < self.bounds().window {
                    self.doublings += 1;
                }
                let away = self.failing_since.take();
                self.has_returned =
                    !self.is_caught_up || away.is_some_and(|since| now.since(since) >= AWAY_MIN);
                self.is_caught_up = true;
                (self.has_answered, self.failures, self.pauses) = (true, 0, 0);
                self.paused_until = None;
                // No single call takes longer, but the clock may have been set.
                let took = now.since(finished.begun_at).min(client_sync::TIMEOUT);
                self.usual = Some(self.usual.map_or(took, |usual| (usual * 3 + took) / 4));
            }
            Conduct::Failed => self.fail(now),
            Conduct::Uncalled => {}
        }
        self.quiet_until = self.quiet_until.filter(|until| *until > now).max(finished.quiet_until);
        let is_left_alone = self.is_left_alone(now);
        if is_left_alone {
            back.extend(self.waiting.drain(..));
        }
        let is_asked = finished.comes_again && self.times_again < AGAIN_MAX && !is_left_alone;
        self.times_again = if is_asked { self.times_again + 1 } else { 0 };
        self.again = if is_asked { Again::Asked } else { Again::No };
    }

    fn fail(&mut self, now: Time) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(now);
        self.doublings = self.doublings.saturating_sub(1);
        if self.failures < FAILURES_MAX {
            return;
        }
        self.doublings = 0;
        // Calls that were under way together say the same thing once.
        if !self.is_left_alone(now) {
            let pause = PAUSE_FIRST.saturating_mul(1 << self.pauses.min(16)).min(PAUSE_MAX);
            self.pauses = self.pauses.saturating_add(1);
            self.paused_until = Some(now.plus(pause));
        }
    }

    pub(super) fn settled(&mut self, count: usize) {
        self.leased -= count;
    }

    pub(super) fn clear(&mut self) -> Vec<Leased> {
        self.in_turns = false;
        self.again = Again::No;
        self.waiting.drain(..).collect()
    }
}
