//! Messages with files to fetch: composed, or refused with the reason.

use std::{sync::Arc, time::Duration};

use postway_domain::{
    EventKind, Incarnation, MessageState, MessageStatus, MessageUid, RecipientStatus, Time,
    message::ScheduleReason,
    tenant::{TenantSecrets, TenantSettings},
};
use postway_intake::{AcceptReceipt, FetchConfig, MessagePreparer, MessagesInPreparation, Refusal};
use postway_store::{
    DirectoryStore, WorkStore,
    record::{BodyLocation, DirectoryChange, MessageChange, MessageRecord, WriteFence},
};
use postway_testkit::{HttpSource, SourceReply};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{GatewayPlan, NOW_MS, TestGateway, complaint, fields, message, template, tenant};

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A running preparer; it stops when it is dropped.
pub(crate) struct Room {
    pub stop: CancellationToken,
    pub task: JoinHandle<()>,
    pub preparing: MessagesInPreparation,
}

impl Room {
    pub(crate) fn open(gateway: &TestGateway) -> Self {
        let incarnation = Incarnation::new(Time::from_millis(NOW_MS), &mut rand::rng());
        let preparer = MessagePreparer::new(Arc::clone(&gateway.door), incarnation);
        let (stop, preparing) = (CancellationToken::new(), preparer.preparing());
        let task = tokio::spawn(preparer.run(stop.clone()));
        Self { stop, task, preparing }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Waits until a condition holds, by polling.
pub(crate) async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "it did not come to that");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the message has this status.
pub(crate) async fn reaches(gateway: &TestGateway, uid: MessageUid, state: MessageState) -> MessageRecord {
    until(async || Some(gateway.stored(uid).await).filter(|record| record.summary.state == state)).await
}

/// A message with one file from this URL.
pub(crate) fn with_url(url: &str) -> Value {
    message(json!({"attachments": [{"filename": "a.txt", "url": url}]}))
}

/// Wakes the preparer, as any new message does.
async fn ring(gateway: &TestGateway) {
    let bell = message(json!({"attachments": [{"filename": "a.txt", "path": "/nowhere"}]}));
    let bell = gateway.send(&bell).await.unwrap();
    reaches(gateway, bell.uid, MessageState::Invalid).await;
}

pub(crate) fn attachment(raw: &str) -> Vec<u8> {
    let mail = mail_parser::MessageParser::new().parse(raw.as_bytes()).unwrap();
    mail.attachment(0).expect("there is an attachment").contents().to_vec()
}

#[tokio::test]
async fn a_file_behind_a_url_ends_up_in_the_mail() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("from the web"));
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let record = gateway.stored(receipt.uid).await;
    assert_eq!((receipt.status, record.summary.state), ("accepted", MessageState::Accepted));
    assert_eq!((record.events.len(), record.raw), (1, BodyLocation::Nowhere));
    let room = Room::open(&gateway);
    let record = reaches(&gateway, receipt.uid, MessageState::Ready).await;
    assert_eq!(record.summary.due_at, Some(Time::from_millis(NOW_MS)));
    let raw = gateway.raw(receipt.uid).await;
    assert_eq!(attachment(&raw), b"from the web");
    assert!(raw.contains(&format!("Message-ID: <{}>", record.summary.message_id)));
    let kinds: Vec<_> = record.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Validating, EventKind::Validated, EventKind::Ready]);
    until(async || (!room.preparing.holds(receipt.uid)).then_some(())).await;
}

#[tokio::test]
async fn the_tenants_endpoint_is_asked_as_the_tenant_says() {
    let source = HttpSource::start().await;
    source.serve("/v1/docs", SourceReply::ok("from the endpoint"));
    for (auth, username, header) in
        [("bearer", json!(null), "Bearer s3cret"), ("basic", json!("ada"), "Basic YWRhOnMzY3JldA==")]
    {
        let remote = json!({"url": source.url(""), "path": "/v1/docs", "auth": auth, "username": username});
        let gateway = GatewayPlan {
            settings: serde_json::from_value(json!({"attachment_endpoint": remote})).unwrap(),
            secrets: TenantSecrets {
                attachment_endpoint: Some("s3cret".to_owned()),
                ..TenantSecrets::default()
            },
            ..GatewayPlan::default()
        }
        .build()
        .await;
        let files = json!([{"filename": "a.txt", "endpoint": "doc_id=7"}]);
        let receipt = gateway.send(&message(json!({"attachments": files}))).await.unwrap();
        let _room = Room::open(&gateway);
        reaches(&gateway, receipt.uid, MessageState::Ready).await;
        assert_eq!(attachment(&gateway.raw(receipt.uid).await), b"from the endpoint");
        let request = source.requests().pop().unwrap();
        assert_eq!((request.method.as_str(), request.body.as_slice()), ("POST", &b"doc_id=7"[..]));
        assert_eq!(request.header("authorization"), Some(header));
    }
}

#[tokio::test]
async fn files_of_this_machine_come_from_open_folders_only() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().canonicalize().unwrap().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::write(open.join("a.txt"), "inside").unwrap();
    std::fs::write(open.with_file_name("b.txt"), "outside").unwrap();
    let fetch =
        FetchConfig { folders: vec![open.to_str().unwrap().parse().unwrap()], ..FetchConfig::default() };
    let gateway = GatewayPlan { fetch, ..GatewayPlan::default() }.build().await;
    let _room = Room::open(&gateway);
    let send = async |path: String| {
        let files = json!([{"filename": "a.txt", "storage_path": path}]);
        gateway.send(&message(json!({"attachments": files}))).await.unwrap().uid
    };
    let inside = send(open.join("a.txt").display().to_string()).await;
    reaches(&gateway, inside, MessageState::Ready).await;
    assert_eq!(attachment(&gateway.raw(inside).await), b"inside");
    for outside in ["../b.txt", "../../../../../../etc/hostname"] {
        let outside = send(open.join(outside).display().to_string()).await;
        let record = reaches(&gateway, outside, MessageState::Invalid).await;
        assert!(record.summary.error.unwrap().contains("attachments[0].path"));
    }
}

#[tokio::test]
async fn a_source_that_fails_for_now_is_asked_again_later() {
    let source = HttpSource::start().await;
    source.serve_in_turn("/a", vec![SourceReply::status(503), SourceReply::ok("at last")]);
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let _room = Room::open(&gateway);
    let record = reaches(&gateway, receipt.uid, MessageState::Scheduled(ScheduleReason::Fetch)).await;
    let due_at = record.summary.due_at.unwrap();
    let wait = due_at.since(Time::from_millis(NOW_MS));
    assert!((Duration::from_secs(5)..Duration::from_secs(7)).contains(&wait), "{wait:?}");
    let (kind, data) = gateway.events(receipt.uid).await.pop().unwrap();
    assert_eq!(kind, EventKind::Scheduled);
    assert_eq!((&data["why"], &data["try"]), (&json!("fetch"), &json!(1)));
    assert_eq!((&data["field"], &data["due_at"]), (&json!("attachments[0].url"), &json!(due_at.to_string())));
    let error: Value = serde_json::from_str(&record.summary.error.unwrap()).unwrap();
    assert_eq!(error["code"], "FETCH_FAILED");
    ring(&gateway).await;
    assert_eq!(source.requests().len(), 1, "not before its time");
    gateway.advance(Duration::from_secs(7));
    ring(&gateway).await;
    let record = reaches(&gateway, receipt.uid, MessageState::Ready).await;
    assert_eq!(record.summary.error, None);
    assert_eq!(attachment(&gateway.raw(receipt.uid).await), b"at last");
}

#[tokio::test]
async fn a_source_that_fails_for_good_makes_the_message_invalid() {
    let source = HttpSource::start().await;
    let inside = HttpSource::start_on(std::net::Ipv4Addr::new(127, 0, 0, 2)).await;
    inside.serve("/", SourceReply::ok("secret"));
    let gateway = TestGateway::new().await;
    let _room = Room::open(&gateway);
    for (url, said) in [
        (source.url("/gone?token=secret"), "status 404"),
        (inside.url("/"), "POSTWAY_ALLOW_PRIVATE_TARGETS"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "POSTWAY_ALLOW_PRIVATE_TARGETS"),
        ("http://[::ffff:127.0.0.2]/".to_owned(), "POSTWAY_ALLOW_PRIVATE_TARGETS"),
    ] {
        let receipt = gateway.send(&with_url(&url)).await.unwrap();
        let record = reaches(&gateway, receipt.uid, MessageState::Invalid).await;
        let (kind, data) = gateway.events(receipt.uid).await.pop().unwrap();
        assert_eq!(kind, EventKind::Invalid);
        assert_eq!((&data["check"], &data["code"]), (&json!("INTEGRITY"), &json!("INVALID_PAYLOAD")));
        assert_eq!(data["field"], "attachments[0].url");
        let message = data["message"].as_str().unwrap();
        assert!(
            message.contains(said) && !message.contains("token") && !message.contains("tried"),
            "{message}"
        );
        let error: Value = serde_json::from_str(&record.summary.error.unwrap()).unwrap();
        assert_eq!((&error["code"], &error["category"]), (&json!("INVALID_PAYLOAD"), &json!("validation")));
        assert_ne!(record.recipients[0].status, RecipientStatus::Pending);
        let dry = gateway.try_out(&with_url(&url)).await;
        assert_eq!(fields(dry.clone()), ["attachments[0].url"]);
        assert!(complaint(dry).contains(said));
    }
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn tries_run_out() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::status(503));
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let _room = Room::open(&gateway);
    for tries in 1..10 {
        let later = async || {
            let record = gateway.stored(receipt.uid).await;
            (record.events.len() == 1 + 2 * tries).then_some(record)
        };
        let record = until(later).await;
        assert_eq!(record.summary.state, MessageState::Scheduled(ScheduleReason::Fetch));
        gateway.advance(Duration::from_secs(12 * 60 * 60));
        ring(&gateway).await;
    }
    let record = reaches(&gateway, receipt.uid, MessageState::Invalid).await;
    assert!(record.summary.error.unwrap().contains("tried 10 times"));
    assert_eq!(source.requests().len(), 10);
}

#[tokio::test]
async fn a_later_time_is_kept() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("x"));
    let gateway = TestGateway::new().await;
    let mut body = with_url(&source.url("/a"));
    body["send_at"] = json!(1_704_067_260);
    let receipt = gateway.send(&body).await.unwrap();
    let _room = Room::open(&gateway);
    let record = reaches(&gateway, receipt.uid, MessageState::Scheduled(ScheduleReason::SendAt)).await;
    assert_eq!(record.summary.due_at, Some(Time::from_millis(NOW_MS + 60_000)));
    assert_eq!(attachment(&gateway.raw(receipt.uid).await), b"x");
}

fn cancelled(record: &MessageRecord, at: Time) -> MessageChange {
    MessageChange {
        uid: record.summary.uid,
        fence: WriteFence {
            status: MessageStatus::Validating,
            token: None,
            version: Some(record.summary.version),
        },
        to: MessageState::Cancelled,
        at,
        due_at: None,
        keep_token: false,
        retries: None,
        doubts: None,
        lost_leases: None,
        exhausted: false,
        error: None,
        events: Vec::new(),
        recipients: Vec::new(),
        ends_open_recipients: Some(RecipientStatus::Cancelled),
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: false,
        awaits_receipt: None,
    }
}

#[tokio::test]
async fn a_message_cancelled_while_its_file_is_fetched_stays_cancelled() {
    let source = HttpSource::start().await;
    let (gate, held) = SourceReply::ok("x").held();
    source.serve("/a", held);
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let room = Room::open(&gateway);
    source.wait_for(1, LONG).await;
    let record = gateway.stored(receipt.uid).await;
    assert_eq!(record.summary.state, MessageState::Validating);
    let change = cancelled(&record, Time::from_millis(NOW_MS));
    assert_eq!(gateway.store.apply(vec![change]).await.unwrap(), [true]);
    gate.send(true).unwrap();
    until(async || (!room.preparing.holds(receipt.uid)).then_some(())).await;
    let record = gateway.stored(receipt.uid).await;
    assert_eq!((record.summary.state, record.raw), (MessageState::Cancelled, BodyLocation::Nowhere));
}

#[tokio::test]
async fn a_message_whose_request_is_gone_is_invalid_and_says_so() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("x"));
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&with_url(&source.url("/a"))).await.unwrap();
    let record = gateway.stored(receipt.uid).await;
    // As after restoring the store without the body.
    let lost = MessageChange {
        fence: WriteFence {
            status: record.summary.state.status(),
            token: None,
            version: Some(record.summary.version),
        },
        to: record.summary.state,
        due_at: record.summary.due_at,
        events: Vec::new(),
        ends_open_recipients: None,
        erases_bodies: true,
        ..cancelled(&record, Time::from_millis(NOW_MS))
    };
    assert_eq!(gateway.store.apply(vec![lost]).await.unwrap(), [true]);
    let _room = Room::open(&gateway);
    reaches(&gateway, receipt.uid, MessageState::Invalid).await;
    let (kind, data) = gateway.events(receipt.uid).await.pop().unwrap();
    assert_eq!(kind, EventKind::Invalid);
    assert_eq!((&data["check"], &data["code"]), (&json!("OUTBOX"), &json!("OUTBOX_NOT_FOUND")));
    assert!(source.requests().is_empty());
}

#[tokio::test]
async fn what_has_expired_is_not_fetched_for_any_more() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::status(503));
    let gateway = TestGateway::new().await;
    let mut body = with_url(&source.url("/a"));
    body["expires_at"] = json!(1_704_067_202);
    let receipt = gateway.send(&body).await.unwrap();
    let _room = Room::open(&gateway);
    reaches(&gateway, receipt.uid, MessageState::Scheduled(ScheduleReason::Fetch)).await;
    gateway.advance(Duration::from_secs(60));
    ring(&gateway).await;
    assert_eq!(source.requests().len(), 1);
    let overdue = gateway.store.overdue(Time::from_millis(NOW_MS + 60_000), 10).await.unwrap();
    assert_eq!(overdue[0].uid, receipt.uid, "it is for housekeeping to end");
}

#[tokio::test]
async fn what_was_settled_at_the_door_holds() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("x"));
    let settings: TenantSettings = serde_json::from_value(json!({"feedback_id": "shop-mail"})).unwrap();
    let gateway = GatewayPlan::with(settings).await;
    template::put(&gateway, template::source("t", 1, "first", "<p>first</p>")).await;
    let mut body = template::of(json!({"name": "t"}));
    body["attachments"] = with_url(&source.url("/a"))["attachments"].clone();
    let receipt = gateway.send(&body).await.unwrap();
    assert_eq!(gateway.stored(receipt.uid).await.summary.subject, "first");
    template::put(&gateway, template::source("t", 2, "second", "<p>second</p>")).await;
    gateway.store.set_default_account(&tenant(), &"second".parse().unwrap()).await.unwrap();
    // A new door, without cached files.
    let again = crate::TestGateway { door: gateway.door_anew(), ..gateway };
    let _room = Room::open(&again);
    reaches(&again, receipt.uid, MessageState::Ready).await;
    let raw = again.raw(receipt.uid).await;
    assert!(raw.contains("first") && !raw.contains("second"), "{raw}");
    assert!(raw.contains("Feedback-ID: :relay:default:shop-mail"), "the account is the one of then: {raw}");
}

#[tokio::test]
async fn a_template_that_is_deleted_meanwhile_makes_the_message_invalid() {
    let source = HttpSource::start().await;
    source.serve("/a", SourceReply::ok("x"));
    let gateway = TestGateway::new().await;
    template::put(&gateway, template::source("t", 1, "first", "<p>first</p>")).await;
    let mut body = template::of(json!({"name": "t"}));
    body["attachments"] = with_url(&source.url("/a"))["attachments"].clone();
    let receipt = gateway.send(&body).await.unwrap();
    gateway.change(DirectoryChange::DeleteTemplate(tenant(), "t".parse().unwrap())).await;
    let again = crate::TestGateway { door: gateway.door_anew(), ..gateway };
    let _room = Room::open(&again);
    let record = reaches(&again, receipt.uid, MessageState::Invalid).await;
    assert!(record.summary.error.unwrap().contains("INVALID_TEMPLATE"));
}

#[tokio::test]
async fn the_files_of_a_sensitive_message_are_kept_nowhere_else() {
    let source = HttpSource::start().await;
    for path in ["/secret", "/plain"] {
        source.serve(path, SourceReply::ok(path));
    }
    let folder = tempfile::tempdir().unwrap();
    let fetch = FetchConfig { cache_folder: Some(folder.path().to_owned()), ..FetchConfig::default() };
    let gateway = GatewayPlan { fetch, ..GatewayPlan::default() }.build().await;
    let _room = Room::open(&gateway);
    for (path, kept) in [("/secret", 0), ("/plain", 1)] {
        let mut body = with_url(&source.url(path));
        body["sensitive"] = json!(path == "/secret");
        let receipt = gateway.send(&body).await.unwrap();
        reaches(&gateway, receipt.uid, MessageState::Ready).await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), kept, "{path}");
    }
}

/// An installation whose dry runs hang at a source that stops after a MiB, and that source.
async fn hanging() -> (Arc<TestGateway>, HttpSource) {
    let source = HttpSource::start().await;
    for number in 0..30 {
        let reply = SourceReply::Stalled { declared: 20 << 20, body: vec![b'x'; 1 << 20] };
        source.serve(&format!("/{number}"), reply);
    }
    source.serve("/whole", SourceReply::ok("whole"));
    (Arc::new(TestGateway::new().await), source)
}

fn try_out(gateway: &Arc<TestGateway>, message: Value) -> JoinHandle<Result<AcceptReceipt, Refusal>> {
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move { gateway.try_out(&message).await })
}

#[tokio::test]
async fn dry_runs_fetch_within_the_places_of_their_tenant() {
    let (gateway, source) = hanging().await;
    let mut tries: Vec<_> =
        (0..30).map(|number| try_out(&gateway, with_url(&source.url(&format!("/{number}"))))).collect();
    // All dry runs without a slot are asked to come again.
    let busy = until(async || tries.iter().filter(|one| one.is_finished()).count().eq(&26).then_some(()));
    busy.await;
    assert_eq!(source.requests().len(), 4, "the source sees those that have a place");
    let (finished, hanging): (Vec<_>, Vec<_>) = tries.drain(..).partition(|one| one.is_finished());
    for one in finished {
        let refused = one.await.unwrap();
        assert!(
            matches!(&refused, Err(Refusal::Busy { message }) if message.contains("dry runs")),
            "{refused:?}"
        );
    }
    // Messages to send are prepared meanwhile.
    let receipt = gateway.send(&with_url(&source.url("/whole"))).await.unwrap();
    let _room = Room::open(&gateway);
    reaches(&gateway, receipt.uid, MessageState::Ready).await;
    // A dry run that is dropped frees its slot.
    hanging.iter().for_each(JoinHandle::abort);
    for one in hanging {
        assert!(one.await.unwrap_err().is_cancelled());
    }
    assert_eq!(gateway.try_out(&with_url(&source.url("/whole"))).await.unwrap().status, "valid");
}
