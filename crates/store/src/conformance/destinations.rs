//! Limits of receiving domains: decided before a claim, so that what waits for one is neither leased nor
//! rewritten, and holds up nothing else.

use std::{collections::BTreeMap, sync::Arc};

use postway_domain::{DestinationRoom, MessageUid};

use super::{
    Shared,
    retention::DAY_MS,
    sample::{self, Sample, at},
    stage::{accept, claim, delivered, offer, record, request, uids},
};
use crate::record::{Acceptance, ClaimRequest, ClaimedMessage};

const GMAIL: &str = "gmail.com";

/// A message to a limited domain.
fn limited(number: u32, group: &str) -> Sample {
    Sample::new(number).to_destination(group)
}

/// How much more the samples' account may send to these domains.
fn room(left: &[(&str, u32)]) -> DestinationRoom {
    let left: BTreeMap<Box<str>, u32> = left.iter().map(|(name, left)| ((*name).into(), *left)).collect();
    DestinationRoom::new(Arc::default(), left)
}

fn asking(token: i64, now_ms: i64, left: &[(&str, u32)], park: bool) -> ClaimRequest {
    let mut request = request(&sample::relay(), token, at(now_ms), 9, park);
    request.wants[0].destinations = room(left);
    request
}

async fn claim_with(store: &Shared, token: i64, now_ms: i64, left: &[(&str, u32)]) -> Vec<ClaimedMessage> {
    store.claim(asking(token, now_ms, left, false)).await.unwrap()
}

async fn many(store: &Shared, numbers: std::ops::Range<u32>, group: &str) -> Vec<MessageUid> {
    let mut uids = Vec::new();
    for number in numbers {
        uids.push(accept(store, limited(number, group)).await);
    }
    uids
}

/// What is not claimed keeps its version and its history, and other mail of the account goes.
pub async fn a_claim_takes_no_more_than_a_destination_has_room_for(store: &Shared) {
    let to_gmail = many(store, 0..6, GMAIL).await;
    let free = accept(store, Sample::new(9).created(5)).await;
    let claimed = claim_with(store, 1, 10, &[(GMAIL, 2)]).await;
    assert_eq!(uids(&claimed), [to_gmail[0], to_gmail[1], free]);
    assert_eq!(claimed[0].lane.destination.as_ref().map(|group| group.as_str()), Some(GMAIL));
    for turn in 2..5 {
        assert!(claim_with(store, turn, 20, &[(GMAIL, 0)]).await.is_empty());
    }
    let waiting = record(store, to_gmail[2]).await;
    assert_eq!((waiting.summary.version, waiting.summary.attempt, waiting.events.len()), (1, 0, 2));
    assert_eq!(waiting.summary.due_at, Some(at(0)));
    assert_eq!(waiting.summary.lane, record(store, to_gmail[0]).await.summary.lane);
    let rest = claim_with(store, 6, 30, &[(GMAIL, 50)]).await;
    assert_eq!(uids(&rest), to_gmail[2..]);
}

/// Mail to two limited domains waits for both, and its lanes share what each has.
pub async fn mail_to_several_limited_domains_waits_for_all_of_them(store: &Shared) {
    let both = accept(store, limited(1, "gmail.com yahoo.com")).await;
    let yahoo = accept(store, limited(2, "yahoo.com").created(5)).await;
    assert!(claim_with(store, 1, 10, &[(GMAIL, 9), ("yahoo.com", 0)]).await.is_empty());
    assert!(claim_with(store, 2, 10, &[(GMAIL, 0), ("yahoo.com", 0)]).await.is_empty());
    assert_eq!(uids(&claim_with(store, 3, 10, &[(GMAIL, 9), ("yahoo.com", 1)]).await), [both]);
    assert_eq!(uids(&claim_with(store, 4, 10, &[(GMAIL, 0), ("yahoo.com", 1)]).await), [yahoo]);
}

/// A standing claim has as much room for each domain as the claim left, and none where mail waits.
pub async fn a_standing_claim_takes_no_mail_for_a_busy_destination(store: &Shared) {
    const HANDED_OVER: Acceptance = Acceptance::Accepted { handed_over: true };
    const QUEUED: Acceptance = Acceptance::Accepted { handed_over: false };
    let older = many(store, 0..2, GMAIL).await;
    let claimed = store.claim(asking(1, 0, &[(GMAIL, 1), ("yahoo.com", 1)], true)).await.unwrap();
    assert_eq!(uids(&claimed), older[..1]);
    assert_eq!(offer(store, limited(2, GMAIL)).await, QUEUED, "an older one waits");
    assert_eq!(offer(store, limited(3, "yahoo.com")).await, HANDED_OVER);
    assert_eq!(offer(store, limited(4, "yahoo.com")).await, QUEUED, "its room is used");
    assert_eq!(offer(store, Sample::new(5)).await, HANDED_OVER);
    delivered(store, 2).await;
}

/// Mail in a lane that does not name what limits it is moved while it waits, and not while it is leased.
pub async fn a_waiting_message_is_moved_to_the_lane_of_its_destination(store: &Shared) {
    let leased = accept(store, Sample::new(1)).await;
    assert_eq!(uids(&claim(store, 1, at(0), 9).await), [leased]);
    let waiting = accept(store, Sample::new(2)).await;
    let lane = limited(0, GMAIL).build().lane;
    let moves = vec![(leased, lane.clone()), (waiting, lane.clone())];
    assert_eq!(store.move_messages(moves).await.unwrap(), 1);
    assert_ne!(record(store, leased).await.summary.lane, lane);
    assert_eq!(record(store, waiting).await.summary.lane, lane);
    assert!(claim_with(store, 2, 10, &[(GMAIL, 0)]).await.is_empty());
    assert_eq!(uids(&claim_with(store, 3, 10, &[(GMAIL, 1)]).await), [waiting]);
}

/// The upkeep of lanes finds a lane of destinations where its words say, and leaves its mail there.
pub async fn lanes_of_destinations_stay_where_they_are(store: &Shared) {
    let waiting = many(store, 0..2, GMAIL).await;
    assert_eq!(store.move_misplaced().await.unwrap().done, 0);
    assert!(store.retire_lanes(at(DAY_MS)).await.unwrap().is_last);
    assert!(claim_with(store, 1, 10, &[(GMAIL, 0)]).await.is_empty());
    assert_eq!(uids(&claim(store, 2, at(10), 9).await), waiting, "a claim without limits takes it");
}
