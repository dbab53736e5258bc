//! Which mail is processed next: tenants take turns, and so do the mailboxes of a tenant.
//!
//! A claim asks for a turn, takes mail of the mailbox, reports how much that was, and asks again until its
//! capacity or the mail is used up. The tenant that has least leased comes first; among equals, the one whose
//! mail has waited longest. Pure, and the same for every store.

use std::collections::{BTreeMap, VecDeque};

use postway_domain::{TenantId, Time};

use crate::record::{MailboxKey, ProcessRequest};

/// The most turns of one claim for each mail it may lease. Rows that others have locked yield nothing, so
/// turns must be bounded.
const TURNS_PER_MAIL: u32 = 4;

/// The turns of one claim, see the module.
pub(crate) struct RouteTurns {
    tenants: BTreeMap<TenantId, TenantTurn>,
    /// The capacity left in the claim.
    left: u32,
    /// The turns left.
    turns: u32,
}

struct TenantTurn {
    in_hand: u32,
    max: u32,
    oldest: Time,
    /// The mailboxes that may have mail, with the capacity of each, in the order of their turns.
    mailboxes: VecDeque<(MailboxKey, u32)>,
}

impl TenantTurn {
    fn room(&self) -> u32 {
        if self.mailboxes.is_empty() { 0 } else { self.max.saturating_sub(self.in_hand) }
    }
}

impl RouteTurns {
    /// The turns of mailboxes with due mail, each given with the time of its oldest mail.
    pub(crate) fn new(mut heads: Vec<(Time, MailboxKey)>, request: &ProcessRequest) -> Self {
        heads.sort();
        let mut tenants: BTreeMap<TenantId, TenantTurn> = BTreeMap::new();
        for (due_at, key) in heads {
            let turn = tenants.entry(key.tenant.clone()).or_insert_with(|| TenantTurn {
                in_hand: request.tenants_in_hand.get(&key.tenant).copied().unwrap_or(0),
                max: request.per_tenant,
                oldest: due_at,
                mailboxes: VecDeque::new(),
            });
            let in_hand = request.mailboxes_in_hand.get(&key).copied().unwrap_or(0);
            let room = request.per_mailbox.saturating_sub(in_hand);
            if room > 0 {
                turn.mailboxes.push_back((key, room));
            }
        }
        if let (1, Some(alone)) = (tenants.len(), tenants.values_mut().next()) {
            alone.max = request.per_tenant_alone;
            if alone.room() < request.alone_room_min {
                alone.max = 0;
            }
        }
        Self { tenants, left: request.limit, turns: request.limit.saturating_mul(TURNS_PER_MAIL) }
    }

    /// The next mailbox, and the number of its mails to take. Must be followed by [`RouteTurns::took`].
    pub(crate) fn next(&mut self) -> Option<(MailboxKey, u32)> {
        self.turns = self.turns.checked_sub(1)?;
        let waiting = self.tenants.values().filter(|turn| turn.room() > 0).count();
        let share = self.left.div_ceil(u32::try_from(waiting).ok().filter(|count| *count > 0)?);
        let with_room = self.tenants.iter_mut().filter(|(_, turn)| turn.room() > 0);
        let (_, turn) = with_room.min_by_key(|(_, turn)| (turn.in_hand, turn.oldest))?;
        let share = share.min(turn.room());
        let per_mailbox = share.div_ceil(u32::try_from(turn.mailboxes.len()).unwrap_or(u32::MAX));
        let (key, room) = turn.mailboxes.pop_front()?;
        let taken = per_mailbox.min(room).min(self.left);
        if taken == 0 {
            return None;
        }
        turn.mailboxes.push_front((key.clone(), room));
        Some((key, taken))
    }

    /// Records that the mailbox had `found` of the `asked` mails. A mailbox that had fewer has no more.
    pub(crate) fn took(&mut self, key: MailboxKey, asked: u32, found: u32) {
        self.left = self.left.saturating_sub(found);
        let Some(turn) = self.tenants.get_mut(&key.tenant) else { return };
        turn.in_hand = turn.in_hand.saturating_add(found);
        // It stayed at the front while it had its turn.
        let Some((_, room)) = turn.mailboxes.pop_front() else { return };
        let room = room.saturating_sub(found);
        if found == asked && room > 0 {
            turn.mailboxes.push_back((key, room));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use postway_domain::{Incarnation, LeaseToken};
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;
    use crate::record::LeaseGrant;

    fn key(tenant: &str, mailbox: &str) -> MailboxKey {
        MailboxKey { tenant: tenant.parse().unwrap(), mailbox: mailbox.parse().unwrap() }
    }

    fn request(limit: u32) -> ProcessRequest {
        let (now, mut random) = (Time::from_millis(1_000), StdRng::seed_from_u64(1));
        let lease = LeaseGrant {
            incarnation: Incarnation::new(now, &mut random),
            token: LeaseToken::new(&mut random),
            until: now,
        };
        ProcessRequest::new(lease, now, limit)
    }

    /// What a claim takes of mailboxes with these amounts, the oldest first.
    fn taken(request: &ProcessRequest, due: &[(MailboxKey, u32)]) -> HashMap<MailboxKey, u32> {
        let heads = due.iter().zip(0..).map(|((key, _), at)| (Time::from_millis(at), key.clone()));
        let mut turns = RouteTurns::new(heads.collect(), request);
        let mut left: HashMap<MailboxKey, u32> = due.iter().cloned().collect();
        let mut taken = HashMap::new();
        while let Some((key, room)) = turns.next() {
            let there = left.get_mut(&key).unwrap();
            let found = room.min(*there);
            *there -= found;
            *taken.entry(key.clone()).or_default() += found;
            turns.took(key, room, found);
        }
        taken
    }

    #[test]
    fn one_who_is_alone_has_more_room_than_one_who_is_not() {
        let (a, b) = (key("a", "one"), key("b", "one"));
        let request = ProcessRequest { per_tenant: 32, per_tenant_alone: 48, ..request(64) };
        assert_eq!(taken(&request, &[(a.clone(), 500)])[&a], 48);
        for (in_hand, expected) in [(32, Some(16)), (33, None)] {
            let mut crumbs = ProcessRequest { alone_room_min: 16, ..request.clone() };
            crumbs.tenants_in_hand = [(a.tenant.clone(), in_hand)].into();
            assert_eq!(taken(&crumbs, &[(a.clone(), 500)]).get(&a).copied(), expected);
        }
        let both = taken(&request, &[(a.clone(), 500), (b.clone(), 5)]);
        assert_eq!((both[&a], both[&b]), (32, 5));
    }

    #[test]
    fn who_has_least_in_hand_comes_first_and_nobody_passes_the_bound() {
        let (a, b, c) = (key("a", "one"), key("b", "one"), key("c", "one"));
        let mut request = ProcessRequest { per_tenant: 32, ..request(16) };
        request.tenants_in_hand = [(a.tenant.clone(), 30), (b.tenant.clone(), 32)].into();
        let all = taken(&request, &[(a.clone(), 99), (b.clone(), 99), (c.clone(), 99)]);
        assert_eq!((all.get(&a), all.get(&b), all[&c]), (None, None, 16));
        let some = taken(&request, &[(a.clone(), 99), (b.clone(), 99), (c.clone(), 9)]);
        assert_eq!((some[&a], some.get(&b), some[&c]), (2, None, 9));
        request.limit = 1;
        assert_eq!(taken(&request, &[(a.clone(), 99), (c.clone(), 99)]), [(c, 1)].into());
    }

    #[test]
    fn a_flooded_mailbox_leaves_room_for_the_others_of_its_tenant_and_none_is_wasted() {
        let (flooded, quiet) = (key("a", "flooded"), key("a", "quiet"));
        let half = taken(&request(10), &[(flooded.clone(), 99), (quiet.clone(), 99)]);
        assert!(half[&flooded] >= 4 && half[&quiet] >= 4 && half[&flooded] + half[&quiet] == 10, "{half:?}");
        let rest = taken(&request(10), &[(flooded.clone(), 99), (quiet.clone(), 1)]);
        assert_eq!((rest[&flooded], rest[&quiet]), (9, 1));
        let mut bounded = ProcessRequest { per_mailbox: 4, ..request(10) };
        bounded.mailboxes_in_hand = [(flooded.clone(), 3)].into();
        let held = taken(&bounded, &[(flooded.clone(), 99), (quiet.clone(), 99)]);
        assert_eq!((held[&flooded], held[&quiet]), (1, 4));
    }

    #[test]
    fn mailboxes_that_yield_nothing_are_not_asked_for_ever() {
        let many: Vec<_> = (0..10_000).map(|n| (key("a", &format!("m{n}")), 0)).collect();
        assert!(taken(&request(16), &many).len() <= 64);
        assert!(taken(&request(0), &many).is_empty());
    }
}
