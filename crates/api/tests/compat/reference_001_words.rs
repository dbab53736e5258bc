//! Reference 001: bounces and suspended mail, in the terms that its users look for.

use postway_domain::{EventKind, MessageState, RecipientStatus::*};
use postway_store::record::{NewEvent, NotificationState};
use serde_json::{Value, json};

use crate::{
    reference_001::{ADD, get, mail, post},
    support::Api,
};

/// A message that is sent, with this history.
async fn sent_with(api: &Api, id: &str, events: &[(EventKind, Option<&str>)]) {
    let events: Vec<NewEvent> =
        events.iter().map(|(kind, data)| NewEvent { kind: *kind, data: data.map(str::to_owned) }).collect();
    api.stored_with(id, MessageState::Sent, &[("ada@example.net", Sent)], |message| {
        (message.state, message.due_at, message.events) = (MessageState::Sent, None, events);
    })
    .await;
}

async fn of(api: &Api, id: &str) -> Value {
    let list = get(api, "/messages").await;
    list["messages"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone()
}

/// Has the default tenant's reports go to a client.
async fn with_client(api: &Api) {
    let sync = json!({"url": "https://app.example.com", "path": "/sync"});
    api.patch("/v1/tenants/default", json!({"client_sync": sync, "callback_form": "batch"})).await.ok(200);
}

#[tokio::test]
async fn a_bounce_has_the_servers_code_and_words_and_ours_beside() {
    let api = Api::start().await;
    let bounce = r#"{"type":"hard","status":"5.1.1","smtp_code":550,"reason":"user_unknown","diagnostic":"550 5.1.1 no such user"}"#;
    sent_with(&api, "m", &[(EventKind::Bounced, Some(bounce))]).await;
    let shown = of(&api, "m").await;
    assert_eq!((&shown["status"], &shown["bounce_type"]), (&json!("BOUNCED"), &json!("hard")));
    assert_eq!(
        (&shown["bounce_code"], &shown["bounce_reason"]),
        (&json!("550"), &json!("550 5.1.1 no such user"))
    );
    assert_eq!((&shown["bounce_status"], &shown["bounce_kind"]), (&json!("5.1.1"), &json!("user_unknown")));
    assert_eq!(shown["bounce_ts"], 1_700_000_000);
}

#[tokio::test]
async fn certified_mail_that_failed_says_so_in_its_providers_words() {
    let api = Api::start().await;
    let failed =
        r#"{"receipt":"errore-consegna","error":"no-dest","error_text":"5.1.1 - indirizzo non valido"}"#;
    sent_with(&api, "failed", &[(EventKind::PecAccepted, None), (EventKind::PecFailed, Some(failed))]).await;
    sent_with(&api, "late", &[(EventKind::PecTimeout, None)]).await;
    let shown = of(&api, "failed").await;
    assert_eq!(
        (&shown["pec_error"], &shown["pec_error_code"]),
        (&json!("5.1.1 - indirizzo non valido"), &json!("no-dest"))
    );
    let late = of(&api, "late").await;
    assert_eq!((&late["pec_error"], &late["pec_error_code"]), (&json!("no receipt in time"), &Value::Null));
    assert_eq!(late["pec_error_ts"], 1_700_000_000);
}

#[tokio::test]
async fn a_notice_of_delay_that_no_client_is_told_of_leaves_a_message_reported() {
    let api = Api::start().await;
    with_client(&api).await;
    sent_with(&api, "m", &[(EventKind::Sent, None), (EventKind::Delayed, None)]).await;
    assert_eq!(
        of(&api, "m").await["reported_ts"],
        Value::Null,
        "the client is still to be told that it was sent"
    );
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 1);
    let shown = of(&api, "m").await;
    assert_eq!((&shown["status"], &shown["reported_ts"]), (&json!("REPORTED"), &json!(1_700_000_000)));
    let ours = api.get("/v1/messages/m").await.ok(200);
    assert_eq!(ours["reported_at"], "2023-11-14T22:13:20.000Z");
    assert_eq!(api.get("/v1/messages").await.ok(200)["data"][0]["reported_at"], ours["reported_at"]);
    // Webhooks get events of delays, so the message waits for them.
    api.post("/v1/webhooks", json!({"url": "https://app.example.com/hook"})).await.ok(201);
    sent_with(&api, "n", &[(EventKind::Sent, None), (EventKind::Delayed, None)]).await;
    assert_eq!(of(&api, "n").await["reported_ts"], Value::Null);
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 3);
    assert_eq!(of(&api, "n").await["status"], "REPORTED");
}

#[tokio::test]
async fn what_is_held_is_suspended_once_the_time_it_waited_for_has_passed() {
    let api = Api::start().await;
    let mut late = mail("late");
    (late["batch_code"], late["deferred_ts"]) = (json!("spring"), json!(1_700_000_060));
    let mut later = mail("later");
    (later["batch_code"], later["deferred_ts"]) = (json!("spring"), json!(1_700_003_600));
    let mut free = mail("free");
    free["deferred_ts"] = json!(1_700_000_060);
    post(&api, "/commands/add-messages", json!({"messages": [late, later, free]})).await.ok(200);
    post(&api, "/commands/suspend?tenant_id=default&batch_code=spring", json!({})).await.ok(200);
    let word = async |id: &str| {
        let shown = of(&api, id).await;
        (shown["status"].as_str().unwrap().to_owned(), shown["deferred_ts"].clone())
    };
    let counts = async || {
        let status = get(&api, "/status").await;
        (status["pending"].as_i64().unwrap(), status["deferred"].as_i64().unwrap())
    };
    assert_eq!(word("late").await, ("DEFERRED".to_owned(), json!(1_700_000_060)));
    assert_eq!(counts().await, (0, 3));
    api.clock.forward_ms(61_000);
    assert_eq!(word("late").await, ("SUSPENDED".to_owned(), Value::Null));
    assert_eq!(word("later").await.0, "DEFERRED");
    assert_eq!(word("free").await, ("PENDING".to_owned(), Value::Null), "it is about to be sent");
    assert_eq!(counts().await, (1, 2));
    post(&api, "/commands/suspend?tenant_id=default", json!({})).await.ok(200);
    assert_eq!(counts().await, (2, 1), "all that is due is held now");
    post(&api, "/commands/activate?tenant_id=default", json!({})).await.ok(200);
    post(&api, "/commands/activate?tenant_id=default&batch_code=spring", json!({})).await.ok(200);
    assert_eq!(word("late").await.0, "PENDING");
}

#[tokio::test]
async fn run_now_makes_the_reports_that_wait_due() {
    let api = Api::start().await;
    with_client(&api).await;
    sent_with(&api, "m", &[(EventKind::Sent, None)]).await;
    api.fan_out().await;
    // A call that failed: the next is due in a while.
    let run_now = async || post(&api, "/commands/run-now?tenant_id=default", json!({})).await.ok(200);
    assert_eq!(run_now().await, json!({"ok": true, "reports": 0}), "nothing waits for another try");
    assert_eq!(api.notify(NotificationState::Waiting, 500).await, 1);
    api.clock.forward_ms(1);
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 0, "not due yet");
    assert_eq!(run_now().await, json!({"ok": true, "reports": 1}));
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 1);
    assert_eq!(of(&api, "m").await["status"], "REPORTED");
}

#[tokio::test]
async fn what_has_no_effect_is_named_and_not_shown() {
    let api = Api::start().await;
    let account = json!({"id": "relay", "host": "smtp.example.com", "ttl": 300, "batch_size": 10});
    let made = post(&api, "/account", account).await.ok(200);
    assert_eq!(made["ignored"], json!(["ttl", "batch_size"]));
    let shown = get(&api, "/account/relay").await;
    assert!(
        shown.get("ttl").is_none() && shown.get("batch_size").is_none() && shown.get("ignored").is_none()
    );
    let changed = post(&api, "/account", json!({"id": "relay", "limit_per_hour": 9})).await.ok(200);
    assert!(changed.get("ignored").is_none());
}

#[tokio::test]
async fn a_file_must_have_the_digest_that_is_said_of_it() {
    let api = Api::start().await;
    let with = |id: &str, md5: &str| {
        let mut mail = mail(id);
        mail["attachments"] =
            json!([{"filename": "a.txt", "storage_path": "base64:aGVsbG8=", "content_md5": md5}]);
        mail
    };
    let messages = json!([
        with("right", "5D41402ABC4B2A76B9719D911017C592"),
        with("wrong", "5d41402abc4b2a76b9719d911017c593"),
        with("none", "hello")
    ]);
    let answer = api.post(ADD, json!({"messages": messages})).await.ok(200);
    assert_eq!(answer["queued"], 1, "{answer}");
    let reasons: Vec<&str> =
        answer["rejected"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    assert!(reasons[0].starts_with("attachments[0].content_md5: should be 5d41"), "{reasons:?}");
    assert_eq!(reasons[1], "attachments[0].content_md5: must be 32 hexadecimal digits");
}

#[tokio::test]
async fn messages_are_added_also_where_its_drawings_have_it() {
    let api = Api::start().await;
    let added = post(&api, "/add-messages", json!({"messages": [mail("m")]})).await.ok(200);
    assert_eq!((&added["ok"], &added["queued"]), (&json!(true), &json!(1)));
}
