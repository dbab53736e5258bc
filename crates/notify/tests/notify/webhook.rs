//! Webhooks: what a call looks like, and what its answer means.

use std::time::Duration;

use postway_domain::{
    EventKind::{
        Accepted, AutoReplied, Bounced, Captured, Clicked, Delivered, Ready, Scheduled, Sent, Unsubscribed,
    },
    MessageState, MessageUid, SubscriberKind, Time,
    message::{AttemptOutcome, ScheduleReason},
};
use postway_notify::{WebhookSecret, call_test, signatures};
use postway_store::{
    DirectoryStore, ReportStore, WorkStore,
    conformance::{sample, stage},
    record::{
        DirectoryChange, MessageChange, NewEvent, NotificationState, OpenCircuit, StoredBody,
        SuspensionRecord, SuspensionScope,
    },
};
use postway_testkit::SourceReply;
use serde_json::json;

use super::{SECRET, SOON, TestGateway, http, json, secret_key, taken, tenant};

#[tokio::test]
async fn a_call_is_signed_and_tells_the_message() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", taken());
    let events = vec![NewEvent { kind: Sent, data: Some(r#"{"attempt":1}"#.to_owned()) }];
    let uid = gateway
        .message_of(1, events, |sample| {
            sample.batch("spring").content(|content| {
                content.metadata = Some(r#"{"order":7}"#.to_owned());
                content.tags = vec!["receipt".to_owned()];
            })
        })
        .await;
    let room = gateway.open(1);
    gateway.all_told(&[uid]).await;

    let [call] = &gateway.received("/hook")[..] else { panic!("one call") };
    assert_eq!(call.method, "POST");
    let id = format!("evt_{}_1", uid.to_string().replace('-', ""));
    assert_eq!(call.header("webhook-id"), Some(&*id));
    let now_s = gateway.now().as_seconds();
    assert_eq!(call.header("webhook-timestamp"), Some(&*now_s.to_string()));
    let signed = signatures(&[WebhookSecret::parse(SECRET).unwrap()], &id, now_s, &call.body);
    assert_eq!(call.header("webhook-signature"), Some(&*signed));
    for name in ["id", "timestamp", "signature"] {
        assert_eq!(call.header(&format!("svix-{name}")), call.header(&format!("webhook-{name}")), "{name}");
    }
    assert_eq!(call.header("content-length"), Some(&*call.body.len().to_string()));
    assert_eq!(call.header("content-type"), Some("application/json"));
    assert!(call.header("user-agent").unwrap().starts_with("Postway/"));

    let body = json(call);
    assert_eq!((&body["type"], &body["sequence"]), (&json!("email.sent"), &json!(1)));
    assert_eq!(body["timestamp"], json!("2024-01-01T00:00:00.000Z"));
    let data = &body["data"];
    assert_eq!(data["id"], json!("order-1"));
    assert_eq!(data["uid"], json!(uid.to_string()));
    assert_eq!((&data["tenant"], &data["account"]), (&json!("acme"), &json!("relay")));
    assert_eq!((&data["status"], &data["batch"]), (&json!("sent"), &json!("spring")));
    assert_eq!((&data["subject"], &data["metadata"]), (&json!("Message 1"), &json!({"order": 7})));
    assert_eq!(data["recipients"][0]["address"], json!("person-1@example.org"));
    assert_eq!(data["event"]["data"], json!({"attempt": 1}));
    gateway.close(room).await;
}

/// In the format of Resend: its names, its fields, and only the events that it has.
#[tokio::test]
async fn a_webhook_in_the_form_of_resend_speaks_its_words() {
    let gateway = TestGateway::new().await;
    let url = gateway.receiver.url("/hook");
    gateway.webhook_of_kind(&tenant(), "hook", url, SubscriberKind::ResendWebhook).await;
    gateway.receiver.serve("/hook", taken());
    let bounce =
        r#"{"recipient":"person-1@example.org","type":"hard","status":"5.1.1","diagnostic":"no such user"}"#;
    let events = vec![
        // The message does not wait for its time, so it is not reported as scheduled.
        NewEvent { kind: Accepted, data: None },
        NewEvent { kind: Sent, data: None },
        NewEvent { kind: AutoReplied, data: None },
        NewEvent { kind: Bounced, data: Some(bounce.to_owned()) },
    ];
    let edit = |sample: sample::Sample| {
        sample.content(|content| {
            content.tags = vec!["kind:receipt".to_owned()];
            let payload = br#"{"from":"B\u00e4r <shop@example.com>","to":"person-1@example.org"}"#;
            content.payload = Some(StoredBody::Inline(payload.to_vec().into()));
        })
    };
    let uid = gateway.message_of(1, events, edit).await;
    let waiting = vec![NewEvent { kind: Accepted, data: None }];
    let later = gateway.now().plus(Duration::from_secs(600));
    let scheduled =
        |sample: sample::Sample| sample.state(MessageState::Scheduled(ScheduleReason::SendAt), Some(later));
    let waits = gateway.message_of(2, waiting, scheduled).await;
    // What the sandbox took was never sent.
    let captured = gateway.message(3, &[Captured]).await;
    let room = gateway.open(1);
    gateway.all_told(&[uid, waits, captured]).await;

    let calls = gateway.received("/hook");
    let bodies: Vec<_> = calls.iter().map(json).collect();
    let of = |uid: MessageUid| {
        let of_it = bodies.iter().filter(|body| body["data"]["email_id"] == json!(uid));
        of_it.map(|body| body["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of(uid), of(waits)),
        (vec!["email.sent".to_owned(), "email.bounced".to_owned()], vec!["email.scheduled".to_owned()])
    );
    assert_eq!(of(captured), ["email.failed"]);
    let failed = bodies.iter().find(|body| body["type"] == "email.failed").unwrap();
    let why = failed["data"]["failed"]["reason"].as_str().unwrap();
    assert!(why.contains("captured") && why.contains("not sent"), "{why}");
    let bounced = bodies.iter().find(|body| body["type"] == "email.bounced").unwrap();
    assert_eq!(bounced["created_at"], json!("2024-01-01T00:00:00.000Z"));
    let data = &bounced["data"];
    for (name, value) in [
        ("from", json!("Bär <shop@example.com>")),
        ("to", json!(["person-1@example.org"])),
        ("subject", json!("Message 1")),
        ("created_at", json!("2024-01-01T00:00:00.000Z")),
        ("tags", json!({"kind": "receipt"})),
        ("bounce", json!({"message": "no such user", "type": "Permanent", "subType": "General"})),
    ] {
        assert_eq!(data[name], value, "{name} of {data}");
    }
    let (id, stamp) = (calls[0].header("svix-id").unwrap(), gateway.now().as_seconds());
    let signed = signatures(&[WebhookSecret::parse(SECRET).unwrap()], id, stamp, &calls[0].body);
    assert_eq!(calls[0].header("svix-signature"), Some(&*signed));
    gateway.close(room).await;
}

/// In the format of Postmark: one record for each event that it has.
#[tokio::test]
async fn a_webhook_in_the_form_of_postmark_speaks_its_words() {
    let gateway = TestGateway::new().await;
    let url = gateway.receiver.url("/hook");
    gateway.webhook_of_kind(&tenant(), "hook", url, SubscriberKind::PostmarkWebhook).await;
    gateway.receiver.serve("/hook", taken());
    let said = |data: serde_json::Value| Some(data.to_string());
    let to = "person-1@example.org";
    let events = vec![
        NewEvent { kind: Accepted, data: None },
        NewEvent { kind: Sent, data: None },
        NewEvent { kind: Delivered, data: said(json!({"recipient": to, "diagnostic": "250 OK"})) },
        NewEvent { kind: Clicked, data: said(json!({"recipient": to, "url": "https://example.com/x"})) },
        NewEvent {
            kind: Bounced,
            data: said(json!({"recipient": to, "type": "hard", "diagnostic": "no such user"})),
        },
        NewEvent { kind: Unsubscribed, data: said(json!({"recipient": to, "stream": "news"})) },
    ];
    let edit = |sample: sample::Sample| {
        sample.content(|content| {
            content.tags = vec!["receipt".to_owned()];
            content.metadata = Some(r#"{"order":"1"}"#.to_owned());
        })
    };
    let uid = gateway.message_of(1, events, edit).await;
    let room = gateway.open(1);
    gateway.all_told(&[uid]).await;

    let bodies: Vec<_> = gateway.received("/hook").iter().map(json).collect();
    let types: Vec<_> = bodies.iter().map(|body| body["RecordType"].as_str().unwrap()).collect();
    assert_eq!(types, ["Delivery", "Click", "Bounce", "SubscriptionChange"]);
    for body in &bodies {
        assert_eq!((&body["MessageID"], &body["Tag"]), (&json!(uid), &json!("receipt")), "{body}");
        assert_eq!((&body["Metadata"], &body["MessageStream"]), (&json!({"order": "1"}), &json!("outbound")));
    }
    assert_eq!((&bodies[0]["Recipient"], &bodies[0]["Details"]), (&json!(to), &json!("250 OK")));
    assert_eq!(bodies[1]["OriginalLink"], "https://example.com/x");
    let bounce = &bodies[2];
    assert_eq!(
        [&bounce["Type"], &bounce["TypeCode"], &bounce["Email"], &bounce["Details"], &bounce["Inactive"]],
        [&json!("HardBounce"), &json!(1), &json!(to), &json!("no such user"), &json!(true)]
    );
    assert!(bounce["ID"].is_i64());
    assert_eq!(bodies[3]["SuppressSending"], true);
    gateway.close(room).await;
}

/// Everything that the API shows of a message but its lists, with the same fields.
#[tokio::test]
async fn a_failure_is_told_with_when_and_why_and_whether_it_was_the_last() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", taken());
    let now = gateway.now();
    let waiting = |sample: sample::Sample| {
        sample
            .state(MessageState::Ready, Some(now))
            .content(|content| content.request_id = Some("req-1".to_owned()))
    };
    let uid = gateway.message_of(1, Vec::new(), waiting).await;
    let claimed = gateway.store.claim(stage::request(&sample::relay(), 1, now, 1, false)).await.unwrap();
    let failed = MessageChange {
        exhausted: true,
        error: Some(r#"{"code":"smtp_451","category":"greylisted","message":"451 come back"}"#.to_owned()),
        ..stage::outcome(&claimed[0], false, AttemptOutcome::Exhausted, now.plus(Duration::from_secs(1)))
    };
    assert_eq!(gateway.store.apply(vec![failed]).await.unwrap(), [true]);
    let room = gateway.open(1);
    gateway.all_told(&[uid]).await;

    let calls = gateway.received("/hook");
    let body = json(calls.last().unwrap());
    assert_eq!(body["type"], json!("email.failed"));
    let data = body["data"].as_object().unwrap();
    let delivered = |key: &str| data.get(key).unwrap_or_else(|| panic!("{key} is missing: {data:?}")).clone();
    for (key, expected) in [
        ("status", json!("failed")),
        ("held_by", json!([])),
        ("priority", json!(2)),
        ("updated_at", json!("2024-01-01T00:00:01.000Z")),
        ("due_at", json!(null)),
        ("sent_at", json!(null)),
        ("failed_at", json!("2024-01-01T00:00:01.000Z")),
        ("reported_at", json!(null)),
        ("attempt", json!(1)),
        ("exhausted", json!(true)),
        ("request_id", json!("req-1")),
        ("reason", json!("451 come back")),
        ("outcome", json!(null)),
        ("bounce", json!(null)),
    ] {
        assert_eq!(delivered(key), expected, "{key}");
    }
    assert_eq!(delivered("error")["code"], json!("smtp_451"));
    assert!(delivered("version").is_i64());
    for left_out in ["attempts", "events", "notifications"] {
        assert!(!data.contains_key(left_out), "{left_out} makes calls large");
    }
    gateway.close(room).await;
}

#[tokio::test]
async fn what_holds_a_message_is_told_as_long_as_it_waits() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", taken());
    let (now, later) = (gateway.now(), gateway.now().plus(Duration::from_secs(600)));
    let scopes = [SuspensionScope::Batch("spring".parse().unwrap()), SuspensionScope::Tenant];
    for scope in scopes {
        let suspension = SuspensionRecord { tenant: tenant(), scope, since: now };
        gateway.store.change(DirectoryChange::Suspend(suspension), None).await.unwrap();
    }
    let circuit = OpenCircuit {
        key: sample::relay(),
        code: "auth_failed".to_owned(),
        reason: "wrong password".to_owned(),
        opened_at: now,
        open_until: later,
        faults: 1,
    };
    gateway.store.change(DirectoryChange::OpenCircuit(circuit), None).await.unwrap();
    let deferred = || vec![NewEvent { kind: Scheduled, data: Some(r#"{"will_retry":true}"#.to_owned()) }];
    let retrying =
        |sample: sample::Sample| sample.state(MessageState::Scheduled(ScheduleReason::Retry), Some(later));
    let plain = gateway.message_of(1, deferred(), retrying).await;
    let batched = gateway.message_of(2, deferred(), |sample| retrying(sample).batch("spring")).await;
    let sent = gateway.message(3, &[Sent]).await;
    // A message with more recipients than are read together.
    let crowd = |sample: sample::Sample| {
        (0..40).fold(retrying(sample), |sample, n| sample.to(&format!("r{n}@example.org")))
    };
    let crowded = gateway.message_of(4, deferred(), crowd).await;
    let room = gateway.open(1);
    gateway.all_told(&[plain, batched, sent, crowded]).await;

    let calls = gateway.received("/hook");
    let held_by = |uid: MessageUid| {
        let of = |call: &&_| json(call)["data"]["uid"] == json!(uid.to_string());
        let delivered = json(calls.iter().find(of).unwrap())["data"]["held_by"].clone();
        let mut names: Vec<String> = serde_json::from_value(delivered).unwrap();
        names.sort();
        names
    };
    assert_eq!(held_by(plain), ["circuit:relay", "tenant"]);
    assert_eq!(held_by(batched), ["batch:spring", "circuit:relay", "tenant"]);
    assert_eq!(held_by(crowded), ["circuit:relay", "tenant"]);
    assert!(held_by(sent).is_empty(), "it waits for nothing any more");
    gateway.close(room).await;
}

#[tokio::test]
async fn a_sensitive_message_hides_its_subject_and_metadata() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", taken());
    let events = vec![NewEvent { kind: Sent, data: None }];
    let uid = gateway
        .message_of(1, events, |sample| {
            sample.content(|content| {
                content.sensitive = true;
                content.metadata = Some(r#"{"pin":"1234"}"#.to_owned());
            })
        })
        .await;
    let room = gateway.open(1);
    gateway.all_told(&[uid]).await;
    let body = json(&gateway.received("/hook")[0]);
    assert_eq!(body["data"]["subject"], json!("[hidden]"));
    assert_eq!(body["data"]["metadata"], json!(null));
    let logged = gateway.notifications(uid).await.remove(0).last_call.unwrap();
    assert!(!logged.request.contains("1234") && !logged.request.contains("Message 1"));
    gateway.close(room).await;
}

#[tokio::test]
async fn events_of_a_message_come_in_order_also_after_a_failure() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve_in_turn("/hook", vec![SourceReply::status(500), taken()]);
    let deferred =
        NewEvent { kind: Scheduled, data: Some(r#"{"will_retry":true,"code":"smtp_451"}"#.to_owned()) };
    let bare = |kind| NewEvent { kind, data: None };
    let history = vec![bare(Accepted), bare(Ready), deferred, bare(Sent)];
    let retrying = MessageState::Scheduled(ScheduleReason::Retry);
    let uid = gateway.message_of(1, history, |sample| sample.state(retrying, None)).await;
    let room = gateway.open(1);
    gateway.once(uid, |first| first.state == NotificationState::Waiting).await;
    gateway.pass(Duration::from_secs(6));
    gateway.all_told(&[uid]).await;
    let delivered: Vec<_> = gateway.received("/hook").iter().map(|call| json(call)["type"].clone()).collect();
    assert_eq!(delivered, ["email.accepted", "email.accepted", "email.deferred", "email.sent"]);
    gateway.close(room).await;
}

#[tokio::test]
async fn a_failed_call_is_repeated_on_schedule_under_the_same_id_and_then_dead() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::status(500));
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    // A week of failed calls.
    const CALLS: i64 = 62;
    let waits_s = [5, 60, 300, 1_800, 7_200].into_iter().chain(std::iter::repeat(10_800));
    for (tries, wait_s) in (1..CALLS).zip(waits_s) {
        let failed =
            gateway.once(uid, |one| one.tries == tries && one.state == NotificationState::Waiting).await;
        let wait = failed.due_at.unwrap().since(gateway.now()).as_secs_f64();
        assert!((f64::from(wait_s)..=f64::from(wait_s) * 1.1).contains(&wait), "{tries}: {wait} s");
        let call = failed.last_call.unwrap();
        assert_eq!((call.status, call.answer.as_str()), (Some(500), "status 500"));
        // The subscriber is also left alone for a while, because it failed repeatedly.
        gateway.pass(Duration::from_secs(wait_s as u64 * 11 / 10 + 301));
    }
    let dead = gateway.once(uid, |one| one.state == NotificationState::Dead).await;
    assert_eq!((dead.tries, dead.due_at), (CALLS, None));
    let calls = gateway.received("/hook");
    assert_eq!(calls.len() as i64, CALLS);
    assert!(calls.iter().all(|call| call.header("webhook-id") == calls[0].header("webhook-id")));
    assert_ne!(calls[0].header("webhook-signature"), calls[8].header("webhook-signature"));
    gateway.close(room).await;
}

#[tokio::test]
async fn retry_after_lengthens_the_wait_and_quiets_the_subscriber() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    let busy = SourceReply::status(429).header("retry-after", "3600");
    gateway.receiver.serve_in_turn("/hook", vec![busy, taken()]);
    let first = gateway.message(1, &[Sent]).await;
    let second = gateway.message(2, &[Sent]).await;
    let room = gateway.open(1);
    let waiting = until_waiting(&gateway, &[first, second]).await;
    assert_eq!(waiting, gateway.now().plus(Duration::from_secs(3_600)));
    gateway.pass(Duration::from_secs(3_599));
    let third = gateway.message(3, &[Sent]).await;
    gateway.once(third, |_| true).await;
    assert_eq!(gateway.received("/hook").len(), 1, "it asked to be left alone");
    gateway.pass(Duration::from_secs(2));
    gateway.all_told(&[first, second, third]).await;
    gateway.close(room).await;
}

async fn until_waiting(gateway: &TestGateway, uids: &[MessageUid]) -> Time {
    super::until(async || {
        for uid in uids {
            let all = gateway.notifications(*uid).await;
            if let Some(one) = all.into_iter().find(|one| one.state == NotificationState::Waiting) {
                return one.due_at;
            }
        }
        None
    })
    .await
}

#[tokio::test]
async fn gone_disables_the_webhook_and_what_it_was_to_hear_waits() {
    let gateway = TestGateway::new().await;
    let webhook = gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::status(410));
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    let waiting = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert_eq!(waiting.tries, 1);
    let disabled = super::until(async || {
        gateway.store.subscriber(&tenant(), &webhook.id).await.unwrap().filter(|one| !one.active)
    })
    .await;
    assert!(disabled.disabled_reason.unwrap().contains("410"));
    gateway.close(room).await;
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::redirect(307, gateway.receiver.url("/elsewhere")));
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    let waiting = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert_eq!(waiting.last_call.unwrap().status, Some(307));
    assert!(gateway.received("/elsewhere").is_empty());
    gateway.close(room).await;
}

#[tokio::test]
async fn an_endless_answer_acknowledges_and_is_cut() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::Endless);
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    let delivered = gateway.once(uid, |one| one.state == NotificationState::Acknowledged).await;
    assert!(delivered.last_call.unwrap().answer.len() <= 3 * 4_096 + 3);
    gateway.close(room).await;
}

#[tokio::test]
async fn a_private_address_is_not_called() {
    let gateway = TestGateway::new().await;
    gateway.webhook_to("hook", "http://10.0.0.1/hook".to_owned()).await;
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    let waiting = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
    let call = waiting.last_call.unwrap();
    assert_eq!(call.status, None);
    assert!(call.answer.contains("private"), "{}", call.answer);
    gateway.close(room).await;
}

#[tokio::test]
async fn a_test_event_is_signed_and_its_answer_told() {
    let gateway = TestGateway::new().await;
    let webhook = gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::ok("hello"));
    let tested = call_test(&http(), &*gateway.clock, &secret_key(), &webhook).await;
    assert!(tested.is_taken() && tested.answer == "hello");
    gateway.receiver.wait_for(1, SOON).await;
    let call = &gateway.received("/hook")[0];
    assert_eq!(json(call)["type"], json!("webhook.test"));
    assert!(call.header("webhook-signature").unwrap().starts_with("v1,"));
}
