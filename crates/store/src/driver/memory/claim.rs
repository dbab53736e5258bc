//! Handing out work, taking its outcome back, and finding what got stuck.

use postway_domain::{
    DestinationRoom, Incarnation, Lane, MessageState, MessageStatus, MessageUid, Time,
    fairness::{self, DueLane},
    message::ScheduleReason,
};

use super::{
    stored_message::StoredMessage,
    tables::{MemoryTables, Queue},
};
use crate::{
    queue::lease_conditions::{LeaseConditions, remainder},
    record::{
        AccountKey, AccountWant, ChangeResult, ClaimRequest, ClaimedMessage, DueAccount, MessageChange,
        QueueState, StalledMessage, StoredBody, WireCommit,
    },
};

impl MemoryTables {
    /// Leases what an account has room for, lane by lane in the order of fairness. Gives what is left to
    /// stand, too.
    pub fn claim(
        &mut self,
        want: &AccountWant,
        request: &ClaimRequest,
    ) -> (Vec<ClaimedMessage>, AccountWant) {
        let mut terms = LeaseConditions {
            gates: self.directory.gates(),
            suppressed: self.directory.suppressed(request.now),
            ..LeaseConditions::default()
        };
        self.directory.open(&mut terms.allowances, &want.sender(), want.limits, request.now);
        let room = terms.room(want);
        let mut destinations = want.destinations.clone();
        let chosen = self.choose(&want.key, room as usize, request.now, &mut destinations, &terms);
        let lease =
            |stored: &mut StoredMessage| stored.take(&request.lease, request.now, request.inline_bytes_max);
        let mut claimed: Vec<ClaimedMessage> =
            chosen.into_iter().filter_map(|uid| self.edit(uid, lease).flatten()).collect();
        terms.permit(want, &mut claimed);
        terms.suppress(&mut claimed);
        self.mark_departed(&mut claimed);
        self.directory.debit(&terms.allowances);
        let rest = AccountWant { destinations, ..remainder(want, room, claimed.len()) };
        (claimed, rest)
    }

    fn choose(
        &self,
        key: &AccountKey,
        room: usize,
        now: Time,
        destinations: &mut DestinationRoom,
        terms: &LeaseConditions,
    ) -> Vec<MessageUid> {
        let Some(queues) = self.waiting.get(key) else {
            return Vec::new();
        };
        let mut lanes: Vec<DueLane> = queues
            .iter()
            .filter_map(|(lane, queue)| {
                let (oldest_due_at, oldest) = self.due(queue, now).next()?;
                let open = terms.pass(&oldest.record.summary.lane);
                let priority = oldest.record.summary.lane.priority;
                open.then_some(DueLane { lane: *lane, priority, oldest_due_at })
            })
            .collect();
        fairness::order(&mut lanes, now);
        let mut chosen = Vec::new();
        for queue in lanes.iter().filter_map(|due| queues.get(&due.lane)) {
            let mut due = self.due(queue, now).map(|(_, stored)| stored).peekable();
            let Some(lane) = due.peek().map(|first| &first.record.summary.lane) else { continue };
            let limit = if lane.is_ordered() { usize::from(!self.is_sending(lane)) } else { room };
            let left_there = destinations.of(lane.destination.as_ref());
            let before = chosen.len();
            let limit = limit.min(room - before).min(left_there as usize);
            chosen.extend(due.take(limit).map(StoredMessage::uid));
            match (chosen.len() - before) as u32 {
                taken if taken >= left_there => destinations.close(lane.destination.as_ref()),
                taken => destinations.take(lane.destination.as_ref(), taken),
            }
        }
        chosen
    }

    /// Whether something of a lane is being sent.
    fn is_sending(&self, lane: &Lane) -> bool {
        self.messages.values().any(|stored| {
            let summary = &stored.record.summary;
            summary.state.status() == MessageStatus::Sending && summary.lane == *lane
        })
    }

    /// What of a queue can go now, oldest first. A doubt past its time is taken too, to be held.
    fn due<'a>(&'a self, queue: &'a Queue, now: Time) -> impl Iterator<Item = (Time, &'a StoredMessage)> {
        let due = queue.iter().take_while(move |(due_at, _)| *due_at <= now);
        let stored = due.filter_map(|(due_at, uid)| Some((*due_at, self.messages.get(uid)?)));
        let is_doubtful = |stored: &StoredMessage| stored.record.summary.state == MessageState::InDoubt;
        stored.filter(move |(_, stored)| is_doubtful(stored) || !stored.expired(now))
    }

    /// Marks what is for a known recipient that was deleted.
    fn mark_departed(&self, claimed: &mut [ClaimedMessage]) {
        let recipients = &self.catalogue.recipients;
        for one in claimed {
            let known = self.messages.get(&one.uid).and_then(|stored| stored.record.recipient);
            let entry = known.map(|id| recipients.get(&(one.lane.tenant.clone(), id)));
            one.recipient_deleted =
                entry.is_some_and(|entry| entry.is_none_or(|entry| entry.deleted_at.is_some()));
        }
    }

    /// See [`crate::WorkStore::wire_commit`].
    pub fn wire_commit(&mut self, commit: WireCommit) -> bool {
        if !self.directory.gates().may_leave(&commit) {
            return false;
        }
        self.edit(commit.uid, |stored| stored.wire_commit(commit)).unwrap_or(false)
    }

    /// See [`crate::WorkStore::apply`]. Adds the account to `woken` if the message waits to be claimed now.
    pub fn apply(&mut self, change: MessageChange, woken: &mut Vec<AccountKey>) -> bool {
        let (uid, refunded) = (change.uid, change.clone());
        let mut links = Vec::new();
        let applied = self.edit(uid, |stored| {
            let held = stored.apply(change, &mut links);
            if held && stored.claimable_at().is_some() {
                woken.push(stored.account_key());
            }
            held
        });
        let held = applied.unwrap_or(false);
        if held {
            self.directory.refund([&refunded].into_iter());
            self.link(uid, links);
        }
        held
    }

    /// See [`crate::WorkStore::body`].
    pub fn body(&self, uid: MessageUid) -> Option<StoredBody> {
        self.messages.get(&uid)?.raw.clone()
    }

    /// See [`crate::WorkStore::stalled`]. The longest untouched first.
    pub fn stalled(&self, alive: &[Incarnation], now: Time, limit: u32) -> Vec<StalledMessage> {
        let found = self.messages.values().filter(|stored| {
            let status = stored.record.summary.state.status();
            matches!(status, MessageStatus::Sending | MessageStatus::Validating)
                && stored.abandoned(alive, now)
        });
        first_by(found, limit, |stored| stored.record.summary.updated_at)
    }

    /// See [`crate::WorkStore::overdue`]. The longest expired first.
    pub fn overdue(&self, now: Time, limit: u32) -> Vec<StalledMessage> {
        let found = self.messages.values().filter(|stored| {
            let status = stored.record.summary.state.status();
            let waits = matches!(
                status,
                MessageStatus::Accepted
                    | MessageStatus::Validating
                    | MessageStatus::Ready
                    | MessageStatus::Scheduled
            );
            waits && stored.expired(now)
        });
        first_by(found, limit, |stored| stored.record.summary.expires_at)
    }

    /// See [`crate::record::DirectoryChange::PullReady`].
    pub fn pull_ready(&mut self, now: Time, limit: usize) -> ChangeResult {
        let is_ahead = |stored: &&StoredMessage| {
            let summary = &stored.record.summary;
            summary.state == MessageState::Ready && summary.due_at.is_some_and(|due_at| due_at > now)
        };
        let ahead: Vec<MessageUid> =
            self.messages.values().filter(is_ahead).map(StoredMessage::uid).take(limit).collect();
        for uid in &ahead {
            self.edit(*uid, |stored| stored.record.summary.due_at = Some(now));
        }
        if ahead.is_empty() { ChangeResult::Already } else { ChangeResult::Done }
    }

    /// See [`crate::record::DirectoryChange::PullBeyond`].
    pub fn pull_beyond(&mut self, latest: &[(AccountKey, Time)], now: Time, limit: usize) -> ChangeResult {
        let mut pulled = 0;
        for (key, latest) in latest {
            let is_beyond = |stored: &&StoredMessage| {
                let summary = &stored.record.summary;
                let waits = matches!(
                    summary.state,
                    MessageState::Ready
                        | MessageState::Scheduled(ScheduleReason::Retry)
                        | MessageState::InDoubt
                );
                let is_theirs = summary.lane.tenant == key.tenant && summary.lane.account == key.account;
                waits && is_theirs && summary.due_at.is_some_and(|due_at| due_at > *latest)
            };
            let beyond: Vec<MessageUid> =
                self.messages.values().filter(is_beyond).map(StoredMessage::uid).take(limit).collect();
            for uid in &beyond {
                self.edit(*uid, |stored| stored.record.summary.due_at = Some(now));
            }
            pulled += beyond.len();
        }
        if pulled == 0 { ChangeResult::Already } else { ChangeResult::Done }
    }

    /// See [`crate::WorkStore::queue_state`].
    pub fn queue_state(&self, now: Time) -> QueueState {
        let gates = self.directory.gates();
        let is_open = |queue: &Queue| {
            let first = queue.first().and_then(|(_, uid)| self.messages.get(uid));
            first.is_some_and(|stored| gates.pass(&stored.record.summary.lane))
        };
        let has_due = |queue: &Queue| is_open(queue) && self.due(queue, now).next().is_some();
        let due = self.waiting.iter().filter(|(_, queues)| queues.values().any(has_due));
        let due = due.filter_map(|(key, _)| {
            let version = self.directory.accounts.get(key)?.version;
            let weight = self.directory.tenants.get(&key.tenant)?.settings.weight;
            Some(DueAccount { key: key.clone(), version, weight })
        });
        let later = self
            .waiting
            .values()
            .flat_map(|queues| queues.values())
            .filter(|queue| is_open(queue))
            .filter_map(|queue| queue.iter().map(|(due_at, _)| *due_at).find(|due_at| *due_at > now));
        QueueState { due: due.collect(), next_due_at: later.min() }
    }
}

fn first_by<'a, K: Ord>(
    found: impl Iterator<Item = &'a StoredMessage>,
    limit: u32,
    key: impl Fn(&StoredMessage) -> K,
) -> Vec<StalledMessage> {
    let mut found: Vec<&StoredMessage> = found.collect();
    found.sort_by_key(|stored| (key(stored), stored.uid()));
    found.into_iter().take(limit as usize).map(StoredMessage::stalled).collect()
}
