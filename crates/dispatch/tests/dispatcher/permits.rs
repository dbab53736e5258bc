//! A permit is valid when MAIL is written, however long the connection or the body took.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{Clock as _, MessageStatus};
use postway_store::{blob::BlobStorage, conformance::sample, record::StoredBody};

use super::{
    DispatcherStage,
    relay::{PipeRelay, RelayManners},
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_mail_that_meets_a_dead_connection_and_a_slow_greeting_counts_when_it_is_begun() {
    let manners =
        RelayManners { greets_after: Duration::from_secs(10), mails_max: 10, ..RelayManners::default() };
    let limit = 15;
    let stage = DispatcherStage::set(PipeRelay::with(manners), BlobStorage::memory(), |settings| {
        settings.limits.per_minute = limit
    });
    let stage = stage.await;
    stage.keep_beating();
    let mut uids = Vec::new();
    for n in 1..=40 {
        uids.push(stage.accept(n).await);
    }
    for uid in uids {
        stage.wait_for(uid, MessageStatus::Sent).await;
    }
    let begun = stage.relay.begun();
    assert_eq!(begun.len(), 40);
    for (first, from) in begun.iter().enumerate() {
        let within = begun[first..].iter().take_while(|at| **at - *from < MINUTE).count();
        assert!(within <= limit as usize, "{within} in the minute from {:?}", *from - begun[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_long_in_coming_does_not_keep_a_limited_mail_from_being_sent() {
    for takes in [Duration::from_secs(5), Duration::from_secs(200)] {
        let depot = BlobStorage::slow_memory(takes);
        let stage =
            DispatcherStage::set(PipeRelay::default(), depot, |settings| settings.limits.per_minute = 5)
                .await;
        stage.keep_beating();
        let bytes = Bytes::from(b"Subject: large\r\n\r\n".repeat(60_000));
        let blob = stage.depot.put(&*stage.store, &sample::tenant(), bytes, stage.clock.now()).await.unwrap();
        let uid = stage
            .accept_as(1, |mut message| {
                message.content.raw = StoredBody::Blob(blob);
                message
            })
            .await;
        stage.wait_for(uid, MessageStatus::Sent).await;
        assert_eq!(stage.relay.begun().len(), 1);
    }
}
