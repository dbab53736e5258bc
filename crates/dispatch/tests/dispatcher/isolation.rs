//! A process that cannot store its heartbeat begins nothing, because other nodes may be sending its mail by
//! then.

use std::time::Duration;

use postway_domain::{
    MessageStatus,
    liveness::{DEAD_AFTER, ISOLATED_AFTER},
};
use postway_store::blob::BlobStorage;
use tokio::time::Instant;

use super::{
    DispatcherStage,
    relay::{PipeRelay, RelayManners},
};

#[tokio::test(start_paused = true)]
async fn an_isolated_process_claims_nothing_until_it_is_seen_again() {
    let stage = DispatcherStage::set(PipeRelay::default(), BlobStorage::memory(), |_| {}).await;
    let first = stage.accept(1).await;
    stage.wait_for(first, MessageStatus::Sent).await;
    tokio::time::sleep(ISOLATED_AFTER).await;
    // Mail is accepted by another node, or by this one if only its heartbeats fail.
    let (second, asked) = (stage.accept(2).await, Instant::now());
    tokio::time::sleep(DEAD_AFTER).await;
    assert_eq!(stage.status(second).await, MessageStatus::Ready, "it is not leased");
    assert_eq!(stage.relay.begun().len(), 1);
    stage.roster.note_beat(Instant::now());
    stage.wait_for(second, MessageStatus::Sent).await;
    assert!(stage.relay.begun()[1] - asked >= DEAD_AFTER);
}

#[tokio::test(start_paused = true)]
async fn a_mail_whose_relay_was_slow_is_not_ended_by_a_process_that_is_isolated_by_then() {
    let manners =
        RelayManners { rcpt_after: ISOLATED_AFTER + Duration::from_secs(1), ..RelayManners::default() };
    let stage = DispatcherStage::set(PipeRelay::with(manners), BlobStorage::memory(), |_| {}).await;
    let uid = stage.accept(1).await;
    stage.wait_for(uid, MessageStatus::Sending).await;
    stage.wait_for(uid, MessageStatus::Ready).await;
    assert_eq!((stage.relay.begun().len(), stage.relay.taken().len()), (1, 0), "it has not had its dot");
    stage.keep_beating();
    stage.wait_for(uid, MessageStatus::Sent).await;
    assert_eq!((stage.relay.begun().len(), stage.relay.taken().len()), (2, 1));
}

/// The relay offers no pipelining, so the reply to RSET is awaited before MAIL.
#[tokio::test(start_paused = true)]
async fn a_mail_is_not_begun_after_a_slow_answer_to_rset_by_a_process_that_is_isolated_by_then() {
    let rset_after = ISOLATED_AFTER + Duration::from_secs(1);
    let manners = RelayManners { refused: 1, rset_after, ..RelayManners::default() };
    let stage = DispatcherStage::set(PipeRelay::with(manners), BlobStorage::memory(), |_| {}).await;
    let refused = stage.accept(1).await;
    stage.wait_for(refused, MessageStatus::Failed).await;
    let uid = stage.accept(2).await;
    stage.wait_for(uid, MessageStatus::Sending).await;
    stage.wait_for(uid, MessageStatus::Ready).await;
    assert_eq!(stage.relay.begun().len(), 1, "it was not begun");
    stage.keep_beating();
    stage.wait_for(uid, MessageStatus::Sent).await;
    assert_eq!(stage.relay.begun().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_seen_waits_for_slow_relays_as_long_as_they_take() {
    let manners = RelayManners { rcpt_after: DEAD_AFTER * 2, ..RelayManners::default() };
    let stage = DispatcherStage::set(PipeRelay::with(manners), BlobStorage::memory(), |_| {}).await;
    stage.keep_beating();
    let uid = stage.accept(1).await;
    stage.wait_for(uid, MessageStatus::Sent).await;
    assert_eq!(stage.relay.begun().len(), 1);
}
