//! The preparer as a loop: fairness, stopping, and failures of its own store.

use std::time::Duration;

use postway_domain::{EventKind, MessageState, Tenant, Time, message::ScheduleReason};
use postway_intake::RequestContext;
use postway_store::{DirectoryStore, PreparationStore, blob::BlobStorage, record::StoredBody};
use postway_testkit::{HttpSource, SourceReply};
use serde_json::json;

use crate::{
    GatewayPlan, NOW_MS, TestGateway, account, body_of, ctx,
    prepare::{LONG, Room, reaches, until, with_url},
};

#[tokio::test]
async fn a_tenant_whose_source_is_silent_delays_no_other() {
    let source = HttpSource::start().await;
    source.serve("/silent", SourceReply::Silent);
    source.serve("/quick", SourceReply::ok("x"));
    let gateway = TestGateway::new().await;
    let other = Tenant::new("other".parse().unwrap(), "Other", Time::from_millis(NOW_MS));
    assert!(gateway.store.create_tenant(other).await.unwrap());
    let theirs = postway_domain::Account { tenant: "other".parse().unwrap(), ..account("relay", None) };
    assert!(gateway.store.create_account(theirs).await.unwrap());
    // Each uses another URL, so that none waits for the same fetch.
    for n in 0..20 {
        let path = format!("/silent?{n}");
        source.serve(&path, SourceReply::Silent);
        gateway.send(&with_url(&source.url(&path))).await.unwrap();
    }
    let _room = Room::open(&gateway);
    source.wait_for(8, LONG).await;
    let theirs = RequestContext { tenant: "other".parse().unwrap(), ..ctx() };
    let mut body = with_url(&source.url("/quick"));
    body["account"] = json!("relay");
    let receipt = gateway.door.accept_json(&theirs, body_of(body.to_string().as_bytes())).await.unwrap();
    let key = postway_store::record::MessageKey::Uid(receipt.uid);
    let state = async || {
        use postway_store::Read;
        gateway.store.message(&theirs.tenant, &key).await.unwrap().unwrap().summary.state
    };
    until(async || (state().await == MessageState::Ready).then_some(())).await;
    let silent = source.requests().iter().filter(|request| request.path.starts_with("/silent")).count();
    assert_eq!(silent, 8, "a tenant has its places and no more");
}

#[tokio::test]
async fn a_stopped_preparer_gives_back_what_it_has_not_finished() {
    let source = HttpSource::start().await;
    source.serve_in_turn("/a", vec![SourceReply::Silent, SourceReply::ok("x")]);
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let mut room = Room::open(&gateway);
    source.wait_for(1, LONG).await;
    assert!(room.preparing.holds(receipt.uid));
    room.stop.cancel();
    (&mut room.task).await.unwrap();
    let record = gateway.stored(receipt.uid).await;
    let kinds: Vec<_> = record.events.iter().map(|event| event.kind).collect();
    assert_eq!(record.summary.state, MessageState::Accepted);
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Validating], "it had begun");
    assert!(!room.preparing.holds(receipt.uid));
    let lease = postway_store::record::LeaseGrant {
        incarnation: postway_domain::Incarnation::new(Time::from_millis(NOW_MS), &mut rand::rng()),
        token: postway_domain::LeaseToken::new(&mut rand::rng()),
        until: Time::from_millis(NOW_MS + 1),
    };
    let wants = vec![(crate::tenant(), 1)];
    let now = Time::from_millis(NOW_MS);
    let request = postway_store::record::PrepareRequest { lease, now, wants };
    let job = gateway.store.claim_preparation(request).await.unwrap().remove(0);
    assert_eq!((job.uid, job.tries, job.lost_leases), (receipt.uid, 0, 0));
    assert!(matches!(job.payload, Some(StoredBody::Inline(_))));
}

#[tokio::test]
async fn a_message_given_back_is_prepared_by_the_next() {
    let source = HttpSource::start().await;
    source.serve_in_turn("/a", vec![SourceReply::Silent, SourceReply::ok("x")]);
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let mut first = Room::open(&gateway);
    source.wait_for(1, LONG).await;
    first.stop.cancel();
    (&mut first.task).await.unwrap();
    let _second = Room::open(&gateway);
    reaches(&gateway, receipt.uid, MessageState::Ready).await;
}

#[tokio::test]
async fn while_the_place_for_blobs_is_away_messages_wait_and_none_is_refused() {
    let source = HttpSource::start().await;
    let large = "x".repeat(200 * 1024);
    source.serve("/large", SourceReply::ok(large.as_str()));
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("blobs");
    let depot = BlobStorage::open(&format!("file://{}", blobs.display())).unwrap();
    let limits = postway_intake::IntakeLimits::default();
    let gateway = GatewayPlan { depot, limits, ..GatewayPlan::default() }.build().await;
    let receipt = gateway.send(&with_url(&source.url("/large"))).await.unwrap();
    let away = folder.path().join("away");
    std::fs::rename(&blobs, &away).unwrap();
    std::fs::write(&blobs, "in the way").unwrap();
    let _room = Room::open(&gateway);
    let record = reaches(&gateway, receipt.uid, MessageState::Scheduled(ScheduleReason::Fetch)).await;
    assert!(record.summary.error.unwrap().contains("UNAVAILABLE"));
    let (kind, data) = gateway.events(receipt.uid).await.pop().unwrap();
    assert_eq!(kind, EventKind::Scheduled);
    assert!(!data.to_string().contains("blobs"), "what is ours is nobody's concern: {data}");
    std::fs::remove_file(&blobs).unwrap();
    std::fs::rename(&away, &blobs).unwrap();
    gateway.advance(Duration::from_secs(10));
    reaches(&gateway, receipt.uid, MessageState::Ready).await;
    assert_eq!(crate::prepare::attachment(&gateway.raw(receipt.uid).await), large.as_bytes());
}
