//! What the runner knows of an account: its post, the room it left standing, and how much it could take.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use postway_domain::{Span, Time};
use postway_store::record::{AccountKey, Claimed, Used};
use tokio::time::Instant;

use super::scheduler::Appetite;
use crate::account::Post;

/// A standing claim that nothing has come of for this long may be taken back.
const IDLE_AFTER: Duration = Duration::from_secs(60);

/// An account that has had work, as the runner sees it.
pub(crate) struct Slot {
    pub post: Arc<Post>,
    /// Room left standing with the store at the last claim, less what came of it.
    pub parked: usize,
    /// Whether there may be due work.
    pub dirty: bool,
    /// When work last came, or was looked for.
    pub used_at: Instant,
    /// When its settings were last read, and in which generation of the directory.
    pub read_at: Instant,
    pub generation: u64,
    /// Its limit of the day is used up until then: its fallback may send.
    pub spent_until: Option<Time>,
}

impl Slot {
    /// A slot for an account that was just read.
    pub fn new(post: Arc<Post>, generation: u64) -> Self {
        let now = Instant::now();
        Self { post, parked: 0, dirty: true, used_at: now, read_at: now, generation, spent_until: None }
    }

    /// Who sends its mail now: itself, or its fallback where its circuit is open or its day is used up.
    pub fn carrier<'s>(&'s self, slots: &'s BTreeMap<AccountKey, Slot>, now: Time) -> &'s Self {
        let plan = self.post.plan();
        let spent = self.spent_until.is_some_and(|until| now < until);
        let Some(fallback) = plan.fallback.as_ref().filter(|_| spent || self.is_open()) else { return self };
        let key = AccountKey { tenant: self.post.key.tenant.clone(), account: fallback.clone() };
        slots.get(&key).filter(|fallback| !fallback.is_open()).unwrap_or(self)
    }

    /// Whether its account is at fault and left alone.
    fn is_open(&self) -> bool {
        self.post.circuit().is_open(Instant::now())
    }

    /// What it could take, sent by `carrier`.
    pub fn appetite(&self, carrier: &Slot, crowded: bool) -> Appetite {
        let plan = carrier.post.plan();
        // Twice the connections, so that each finds its next message waiting.
        let capacity = carrier.post.circuit().room(plan.connections_max * 2, Instant::now());
        let in_hand = carrier.post.queue.in_hand();
        let room = capacity.saturating_sub(in_hand);
        let low = self.parked + in_hand <= capacity / 2;
        let fills = if self.dirty { room > 0 } else { low && room > self.parked };
        // An open circuit takes its standing claim back, and so does an account that nobody uses.
        let idle = crowded && !self.dirty && self.used_at.elapsed() > IDLE_AFTER;
        let withdraws = self.parked > 0 && (capacity == 0 || idle);
        Appetite { room: if fills && !idle { room } else { 0 }, held: in_hand, withdraws }
    }

    /// Whether it stands ready and nobody has used it for long.
    pub fn stands_idle(&self) -> bool {
        self.parked > 0 && self.used_at.elapsed() > IDLE_AFTER
    }
}

/// Until when a day's limit is used up, if it is.
pub(crate) fn day_used_up(used: &[(Span, Used)], per_day: u32) -> Option<Time> {
    let (_, day) = used.iter().find(|(span, _)| *span == Span::Day)?;
    day.frees_at.filter(|_| day.count >= i64::from(per_day))
}

/// The account that sends it.
pub(crate) fn sender_of(job: &Claimed) -> AccountKey {
    let account = job.via.as_ref().unwrap_or(&job.lane.account);
    AccountKey { tenant: job.lane.tenant.clone(), account: account.clone() }
}

/// The account it was accepted for.
pub(crate) fn key_of(job: &Claimed) -> AccountKey {
    AccountKey { tenant: job.lane.tenant.clone(), account: job.lane.account.clone() }
}
