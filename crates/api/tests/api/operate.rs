//! An operator's actions: cancel, retry, reschedule, resolve, replay.

use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use serde_json::{Value, json};

use crate::support::Api;

async fn recipients(api: &Api, id: &str) -> Vec<Value> {
    let message = api.get(&format!("/v1/messages/{id}")).await.ok(200);
    message["recipients"].as_array().unwrap().iter().map(|recipient| recipient["status"].clone()).collect()
}

async fn last_event(api: &Api, id: &str) -> Value {
    let events = api.get(&format!("/v1/messages/{id}/events")).await.ok(200);
    events["data"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn a_waiting_message_is_cancelled_once() {
    let api = Api::start().await;
    api.stored("m", MessageState::Scheduled(ScheduleReason::SendAt), &[("ada@example.net", Pending)]).await;
    let answer = api.post("/v1/messages/m/cancel", json!({})).await.ok(200);
    assert_eq!((&answer["id"], &answer["status"]), (&json!("m"), &json!("cancelled")));
    assert_eq!(recipients(&api, "m").await, ["cancelled"]);
    let event = last_event(&api, "m").await;
    assert_eq!((&event["type"], &event["data"]["by"]), (&json!("cancelled"), &json!("operator")));
    let again = api.post("/v1/messages/m/cancel", json!({})).await.refused(409, "conflict");
    assert!(again["message"].as_str().unwrap().contains("cancelled"), "the state is named: {again}");
}

#[tokio::test]
async fn a_failed_message_goes_again_to_those_it_did_not_reach() {
    let api = Api::start().await;
    api.stored("m", MessageState::Failed, &[("ada@example.net", Failed), ("bob@example.net", Sent)]).await;
    api.clock.forward_ms(5_000);
    let answer = api.call("POST", "/v1/messages/m/retry", "").await.ok(200);
    assert_eq!(answer["status"], "ready");
    assert_eq!(answer["due_at"], "2023-11-14T22:13:25.000Z");
    assert_eq!((&answer["exhausted"], &answer["error"]), (&json!(false), &json!(null)));
    assert_eq!(recipients(&api, "m").await, ["pending", "sent"]);
    assert_eq!(last_event(&api, "m").await["type"], "replayed");
    api.post("/v1/messages/m/retry", json!({})).await.refused(409, "conflict");
}

#[tokio::test]
async fn a_doubt_is_settled_in_three_ways() {
    let api = Api::start().await;
    for (outcome, status, recipient) in
        [("sent", "sent", "sent"), ("failed", "failed", "failed"), ("resend", "ready", "in_doubt")]
    {
        api.stored(
            outcome,
            MessageState::InDoubt,
            &[("ada@example.net", InDoubt), ("bob@example.net", Failed)],
        )
        .await;
        let answer =
            api.post(&format!("/v1/messages/{outcome}/resolve"), json!({"outcome": outcome})).await.ok(200);
        assert_eq!(answer["status"], status);
        assert_eq!(recipients(&api, outcome).await, [recipient, "failed"]);
        let event = last_event(&api, outcome).await;
        assert_eq!((&event["type"], &event["data"]["outcome"]), (&json!("resolved"), &json!(outcome)));
    }
    assert_eq!(api.get("/v1/messages/failed").await.ok(200)["error"]["code"], "resolved_failed");
    assert!(api.get("/v1/messages/sent").await.ok(200)["error"].is_null());
}

async fn told(api: &Api, id: &str) -> Vec<Value> {
    let events = api.get(&format!("/v1/messages/{id}/events")).await.ok(200);
    events["data"].as_array().unwrap().iter().map(|event| event["type"].clone()).collect()
}

#[tokio::test]
async fn a_word_on_a_doubt_is_about_those_in_doubt() {
    let api = Api::start().await;
    let mixed = [("ada@example.net", InDoubt), ("bob@example.net", Pending), ("cy@example.net", Sent)];
    for (outcome, status, becomes, last) in [
        ("sent", "scheduled", "sent", "scheduled"),
        ("failed", "scheduled", "failed", "scheduled"),
        ("resend", "ready", "pending", "resolved"),
    ] {
        api.stored(outcome, MessageState::InDoubt, &mixed).await;
        let path = format!("/v1/messages/{outcome}/resolve");
        let answer = api.post(&path, json!({"outcome": outcome})).await.ok(200);
        assert_eq!((&answer["status"], answer["due_at"].is_string()), (&json!(status), true), "{answer}");
        assert_eq!(recipients(&api, outcome).await, [becomes, "pending", "sent"], "{outcome}");
        assert_eq!(told(&api, outcome).await.last(), Some(&json!(last)));
    }
    api.stored("reached", MessageState::InDoubt, &[("ada@example.net", InDoubt), ("cy@example.net", Sent)])
        .await;
    let answer = api.post("/v1/messages/reached/resolve", json!({"outcome": "failed"})).await.ok(200);
    assert_eq!((&answer["status"], &answer["error"]), (&json!("sent"), &json!(null)));
    assert_eq!(recipients(&api, "reached").await, ["failed", "sent"]);
}

#[tokio::test]
async fn to_cancel_hides_neither_a_doubt_nor_what_was_sent() {
    let api = Api::start().await;
    for (id, first, status) in [("doubt", InDoubt, "in_doubt"), ("half", Sent, "sent")] {
        let stand = [("ada@example.net", first), ("bob@example.net", Pending)];
        api.stored(id, MessageState::Scheduled(ScheduleReason::Retry), &stand).await;
        let answer = api.post(&format!("/v1/messages/{id}/cancel"), json!({})).await.ok(200);
        assert_eq!((&answer["status"], &answer["due_at"]), (&json!(status), &json!(null)));
        assert_eq!(recipients(&api, id).await, [status, "cancelled"]);
        let told = told(&api, id).await;
        assert_eq!(told[told.len() - 2..], [json!("cancelled"), json!(status)]);
    }
    let doubt = api.post("/v1/messages/doubt/resolve", json!({"outcome": "sent"})).await.ok(200);
    assert_eq!(doubt["status"], "sent", "it can still be settled");
    assert_eq!(recipients(&api, "doubt").await, ["sent", "cancelled"]);
}

#[tokio::test]
async fn a_message_that_waits_for_its_time_gets_another() {
    let api = Api::start().await;
    let (later, latest) = (1_700_092_800, 1_700_092_800 + 7200);
    let mail = json!({"id": "m", "from": "a@example.com", "to": "b@example.net", "text": "Hi", "send_at": later,
        "expires_at": latest});
    api.post("/v1/messages", mail).await.ok(202);
    let path = "/v1/messages/m/reschedule";
    let moved = api.post(path, json!({"send_at": later + 3600})).await.ok(200);
    assert_eq!(
        (&moved["status"], &moved["due_at"]),
        (&json!("scheduled"), &json!("2023-11-16T01:00:00.000Z"))
    );
    for wrong in [json!(null), json!("soon"), json!(true), json!(latest), json!(later + 367 * 24 * 3600)] {
        assert_eq!(api.post(path, json!({"send_at": wrong})).await.wrong_fields(), ["send_at"]);
    }
    assert_eq!(api.post(path, json!({"send_at": later, "why": "x"})).await.wrong_fields(), ["why"]);
    let now = api.post(path, json!({"send_at": 0})).await.ok(200);
    assert_eq!(now["due_at"], now["updated_at"], "a time that has passed is now");
    api.post("/v1/messages/m/cancel", json!({})).await.ok(200);
    let error = api.post(path, json!({"send_at": later})).await.refused(409, "conflict");
    assert!(error["message"].as_str().unwrap().contains("cancelled"), "{error}");
}

#[tokio::test]
async fn only_a_doubt_can_be_resolved_and_only_in_known_words() {
    let api = Api::start().await;
    api.stored("sent", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.stored("doubt", MessageState::InDoubt, &[("ada@example.net", InDoubt)]).await;
    api.post("/v1/messages/sent/resolve", json!({"outcome": "sent"})).await.refused(409, "conflict");
    api.post("/v1/messages/none/resolve", json!({"outcome": "sent"})).await.refused(404, "not_found");
    assert_eq!(
        api.post("/v1/messages/doubt/resolve", json!({"outcome": "lost"})).await.wrong_fields(),
        ["outcome"]
    );
    assert_eq!(api.post("/v1/messages/doubt/resolve", json!({})).await.wrong_fields(), ["outcome"]);
    let extra = json!({"outcome": "sent", "why": "x"});
    assert_eq!(api.post("/v1/messages/doubt/resolve", extra).await.wrong_fields(), ["why"]);
    let hint = api.post("/v1/messages/doubt/retry", json!({})).await.refused(409, "conflict");
    assert!(hint["message"].as_str().unwrap().contains("resolve"), "{hint}");
}

#[tokio::test]
async fn dead_letters_are_replayed_and_each_has_its_answer() {
    let api = Api::start().await;
    api.stored("a", MessageState::Failed, &[("ada@example.net", Failed)]).await;
    api.stored("b", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let answer = api.post("/v1/dead-letters/replay", json!({"ids": ["a", "b", "c"]})).await.ok(200);
    assert_eq!((&answer["replayed"], &answer["rejected"]), (&json!(1), &json!(2)));
    assert_eq!(answer["results"][0], json!({"id": "a", "status": "ready"}));
    assert_eq!(answer["results"][1]["error"]["code"], "conflict");
    assert_eq!(answer["results"][2]["error"]["code"], "not_found");
    assert_eq!(api.get("/v1/dead-letters").await.ok(200)["data"], json!([]));
    for wrong in [json!({}), json!({"ids": []}), json!({"ids": "a"}), json!({"ids": vec!["x"; 1001]})] {
        assert_eq!(api.post("/v1/dead-letters/replay", wrong).await.wrong_fields(), ["ids"]);
    }
    assert_eq!(api.post("/v1/dead-letters/replay", json!({"ids": [1]})).await.wrong_fields(), ["ids[0]"]);
}

#[tokio::test]
async fn racing_operators_move_a_message_once() {
    let api = Api::start().await;
    api.stored("m", MessageState::Scheduled(ScheduleReason::Retry), &[("ada@example.net", Pending)]).await;
    let racers = (0..8).map(|_| api.post("/v1/messages/m/cancel", json!({})));
    let answers = futures::future::join_all(racers).await;
    let won = answers.iter().filter(|answer| answer.status.as_u16() == 200).count();
    assert_eq!(won, 1);
    assert_eq!(answers.iter().filter(|answer| answer.status.as_u16() == 409).count(), 7);
}
