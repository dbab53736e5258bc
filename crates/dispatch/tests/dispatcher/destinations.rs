//! Limits of receiving domains: mail beyond them waits in its lane, without a turn, and nothing waits behind
//! it.

use std::time::Duration;

use postway_domain::{
    EventKind, MessageStatus, MessageUid, destination::DestinationLimit, destination_room::destination_group,
};
use postway_store::{
    Read as _,
    blob::BlobStorage,
    conformance::sample::{self, Sample},
    record::{MessageKey, NewMessage, NewRecipient},
};
use tokio::time::Instant;

use super::{
    DispatcherStage,
    relay::{PipeRelay, RelayManners},
};

const SLOW: &str = "slow.example";

/// A stage whose account may send this much to the slow domain.
async fn stage(limit: DestinationLimit) -> DispatcherStage {
    let manners = RelayManners { rcpt_after: Duration::from_millis(5), ..RelayManners::default() };
    let stage = DispatcherStage::set(PipeRelay::with(manners), BlobStorage::memory(), |settings| {
        settings.max_connections = 10;
        settings.destinations.insert(SLOW.to_owned(), limit);
    })
    .await;
    stage.keep_beating();
    stage
}

/// The message for this recipient, in the lane that the door gives it if `knows` the limit.
fn addressed(message: NewMessage, address: &str, limit: DestinationLimit, knows: bool) -> NewMessage {
    let recipients = Sample::new(0).to(address).build().recipients;
    let domains = recipients.iter().map(|one: &NewRecipient| one.address.domain());
    let own = [(SLOW.to_owned(), limit)].into();
    let group = destination_group(&own, domains).filter(|_| knows);
    NewMessage { lane: message.lane.to_destination(group), recipients, ..message }
}

async fn events(stage: &DispatcherStage, uid: MessageUid, kind: EventKind) -> usize {
    let found = stage.store.message(&sample::tenant(), &MessageKey::Uid(uid)).await;
    let found = found.expect("the store in memory answers").expect("it was accepted");
    found.events.iter().filter(|event| event.kind == kind).count()
}

/// The most that begin within any second.
fn most_in_a_second(begun: &[Instant]) -> usize {
    let within = |first: usize| {
        begun[first..].iter().take_while(|one| **one < begun[first] + Duration::from_secs(1)).count()
    };
    (0..begun.len()).map(within).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn mail_beyond_a_destinations_limit_waits_without_a_turn_and_holds_up_nothing() {
    const MAILS: u32 = 600;
    const PER_SECOND: u32 = 20;
    let limit = DestinationLimit { connections: 0, per_second: PER_SECOND };
    let stage = stage(limit).await;
    let mut slow = Vec::new();
    for number in 0..MAILS {
        let edit = |message| addressed(message, "ada@slow.example", limit, true);
        slow.push(stage.accept_as(number, edit).await);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let accepted_at = Instant::now();
    let other = |message| addressed(message, "bob@example.net", limit, true);
    let other = stage.accept_as(MAILS, other).await;
    stage.wait_for(other, MessageStatus::Sent).await;
    assert!(accepted_at.elapsed() < Duration::from_millis(500), "it waited for {:?}", accepted_at.elapsed());
    for uid in &slow {
        stage.wait_for(*uid, MessageStatus::Sent).await;
        assert_eq!(events(&stage, *uid, EventKind::Sending).await, 1, "it was leased more than once");
    }
    let begun = stage.relay.begun();
    // The one to the other domain is among them.
    assert!(most_in_a_second(&begun) <= PER_SECOND as usize + 1, "{}", most_in_a_second(&begun));
    let took = *begun.last().unwrap() - begun[0];
    let least = Duration::from_secs(u64::from(MAILS / PER_SECOND) - 1);
    assert!((least..least * 6 / 5).contains(&took), "{MAILS} took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_connection_to_a_destination_is_used_one_after_the_other() {
    const MAILS: u32 = 30;
    let limit = DestinationLimit { connections: 1, per_second: 0 };
    let stage = stage(limit).await;
    let mut slow = Vec::new();
    for number in 0..MAILS {
        let edit = |message| addressed(message, "ada@slow.example", limit, true);
        slow.push(stage.accept_as(number, edit).await);
    }
    for uid in slow {
        stage.wait_for(uid, MessageStatus::Sent).await;
        assert_eq!(events(&stage, uid, EventKind::Sending).await, 1, "it was leased more than once");
    }
    let begun = stage.relay.begun();
    assert!(begun.windows(2).all(|two| two[1] - two[0] >= Duration::from_millis(5)), "{begun:?}");
}

/// As an older program accepts it, or before the account had its limit.
#[tokio::test(start_paused = true)]
async fn mail_whose_lane_does_not_name_its_limit_takes_one_turn_and_is_moved() {
    const MAILS: u32 = 200;
    const PER_SECOND: u32 = 10;
    let limit = DestinationLimit { connections: 0, per_second: PER_SECOND };
    let stage = stage(limit).await;
    let mut slow = Vec::new();
    for number in 0..MAILS {
        let edit = |message| addressed(message, "ada@slow.example", limit, false);
        slow.push(stage.accept_as(number, edit).await);
    }
    let mut turns = 0;
    for uid in slow {
        stage.wait_for(uid, MessageStatus::Sent).await;
        turns += events(&stage, uid, EventKind::Sending).await;
    }
    assert!(turns > MAILS as usize && turns <= 2 * MAILS as usize, "{turns} turns for {MAILS} mails");
    assert!(most_in_a_second(&stage.relay.begun()) <= PER_SECOND as usize);
}
