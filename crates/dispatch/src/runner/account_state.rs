//! What the runner knows about an account: its sender, its standing claim, and how much more it could take.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use postway_domain::{LimitSpan, Time};
use postway_store::record::{AccountKey, ClaimedMessage, LimitUse};
use tokio::time::Instant;

use super::scheduler::AccountCapacity;
use crate::account::AccountSender;

/// A standing claim that has brought no message for this long may be withdrawn.
const IDLE_AFTER: Duration = Duration::from_secs(60);

/// The runner's view of an account that has had work.
pub(crate) struct AccountState {
    pub sender: Arc<AccountSender>,
    /// The capacity registered as a standing claim, less the messages handed over since.
    pub standing: usize,
    /// Whether there may be due work.
    pub may_have_work: bool,
    /// When a message last came, or the account was first read.
    pub used_at: Instant,
    /// When the settings were last read, and in which generation of the directory.
    pub read_at: Instant,
    pub generation: u64,
    /// Until this time the daily limit is used up, and the fallback may send.
    pub spent_until: Option<Time>,
}

impl AccountState {
    /// The state of an account that was just read.
    pub fn new(sender: Arc<AccountSender>, generation: u64) -> Self {
        let now = Instant::now();
        Self {
            sender,
            standing: 0,
            may_have_work: true,
            used_at: now,
            read_at: now,
            generation,
            spent_until: None,
        }
    }

    /// The account that sends now: this one, or its fallback while its circuit is open or its daily limit is
    /// used up.
    pub fn active<'s>(&'s self, accounts: &'s BTreeMap<AccountKey, AccountState>, now: Time) -> &'s Self {
        let config = self.sender.config();
        let spent = self.spent_until.is_some_and(|until| now < until);
        let Some(fallback) = config.fallback.as_ref().filter(|_| spent || self.is_open()) else {
            return self;
        };
        let key = AccountKey { tenant: self.sender.key.tenant.clone(), account: fallback.clone() };
        accounts.get(&key).filter(|fallback| !fallback.is_open()).unwrap_or(self)
    }

    /// Whether the circuit of the account is open.
    fn is_open(&self) -> bool {
        self.sender.circuit().is_open(Instant::now())
    }

    /// How much more it could take when `active` sends it.
    pub fn capacity(&self, active: &AccountState, crowded: bool) -> AccountCapacity {
        let config = active.sender.config();
        // Twice the connections, so that each courier finds its next message waiting.
        let slots = active.sender.circuit().capacity(config.connections_max * 2, Instant::now());
        let in_flight = active.sender.queue.in_flight();
        let free = slots.saturating_sub(in_flight);
        let low = self.standing + in_flight <= slots / 2;
        let fills = if self.may_have_work { free > 0 } else { low && free > self.standing };
        // A standing claim is withdrawn when the circuit is open, and when the account is idle while capacity
        // is scarce.
        let idle = crowded && !self.may_have_work && self.used_at.elapsed() > IDLE_AFTER;
        let withdraws = self.standing > 0 && (slots == 0 || idle);
        AccountCapacity { free: if fills && !idle { free } else { 0 }, in_flight, withdraws }
    }

    /// Whether it has a standing claim that has brought nothing for long.
    pub fn has_idle_claim(&self) -> bool {
        self.standing > 0 && self.used_at.elapsed() > IDLE_AFTER
    }
}

/// Until when the daily limit is used up, if it is.
pub(crate) fn day_used_up(used: &[(LimitSpan, LimitUse)], per_day: u32) -> Option<Time> {
    let (_, day) = used.iter().find(|(span, _)| *span == LimitSpan::Day)?;
    day.frees_at.filter(|_| day.count >= i64::from(per_day))
}

/// The account that sends the message, which may be a fallback.
pub(crate) fn sending_account(job: &ClaimedMessage) -> AccountKey {
    let account = job.via.as_ref().unwrap_or(&job.lane.account);
    AccountKey { tenant: job.lane.tenant.clone(), account: account.clone() }
}

/// The account that the message was accepted for.
pub(crate) fn accepting_account(job: &ClaimedMessage) -> AccountKey {
    AccountKey { tenant: job.lane.tenant.clone(), account: job.lane.account.clone() }
}
