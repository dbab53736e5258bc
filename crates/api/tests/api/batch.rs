//! Batches: suspended and activated together, and what blocks a message.

use postway_domain::{
    AccountSettings, MessageState, RecipientStatus::Pending, Time, message::ScheduleReason,
};
use postway_store::{
    DirectoryStore,
    record::{AccountKey, DirectoryChange, OpenCircuit, SuspensionRecord, SuspensionScope},
};
use serde_json::{Value, json};

use crate::support::Api;

const ONE: [(&str, postway_domain::RecipientStatus); 1] = [("ada@example.net", Pending)];

fn gates(explained: &Value) -> Vec<&str> {
    explained["gates"].as_array().unwrap().iter().map(|gate| gate["gate"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_batch_is_suspended_and_activated_with_its_messages() {
    let api = Api::start().await;
    api.stored("m", MessageState::Ready, &ONE).await;
    let made = json!({"code": "b-1", "suspended": false, "suspended_since": null, "waiting": 1});
    assert_eq!(api.get("/v1/batches").await.ok(200), json!({"data": [made], "next_cursor": null}));
    let held = json!({"code": "b-1", "suspended": true, "suspended_since": "2023-11-14T22:13:20.000Z", "waiting": 1});
    assert_eq!(api.post("/v1/batches/b-1/suspend", json!({})).await.ok(200), held);
    let mut shown = held.clone();
    (shown["by_status"], shown["counted_all"]) = (json!({"ready": 1}), json!(true));
    assert_eq!(api.get("/v1/batches/b-1").await.ok(200), shown);
    api.clock.forward_ms(1_000);
    assert_eq!(api.call("POST", "/v1/batches/b-1/suspend", "").await.ok(200), held, "the first counts");
    assert_eq!(api.get("/v1/messages/m").await.ok(200)["held_by"], json!(["batch:b-1"]));
    assert_eq!(api.get("/v1/messages").await.ok(200)["data"][0]["held_by"], json!(["batch:b-1"]));
    assert_eq!(api.get("/v1/stats").await.ok(200)["held"], 1);
    assert_eq!(api.post("/v1/batches/b-1/activate", json!({})).await.ok(200), made);
    assert_eq!(api.get("/v1/messages/m").await.ok(200)["held_by"], json!([]));
}

#[tokio::test]
async fn a_code_never_seen_can_be_suspended_and_one_that_is_none_cannot() {
    let api = Api::start().await;
    api.get("/v1/batches/later").await.refused(404, "not_found");
    assert_eq!(api.post("/v1/batches/later/suspend", json!({})).await.ok(200)["waiting"], 0);
    assert_eq!(api.get("/v1/batches").await.ok(200)["data"][0]["code"], "later");
    assert_eq!(api.post("/v1/batches/later/activate", json!({})).await.ok(200)["suspended"], false);
    api.get("/v1/batches/later").await.refused(404, "not_found");
    for code in ["x".repeat(129), "x".repeat(60_000), "a%20b".to_owned()] {
        assert_eq!(
            api.post(&format!("/v1/batches/{code}/suspend"), json!({})).await.wrong_fields(),
            ["code"]
        );
    }
}

#[tokio::test]
async fn batches_come_in_pages() {
    let api = Api::start().await;
    for code in ["c", "a", "b"] {
        api.post(&format!("/v1/batches/{code}/suspend"), json!({})).await.ok(200);
    }
    let first = api.get("/v1/batches?limit=2").await.ok(200);
    let rest =
        api.get(&format!("/v1/batches?cursor={}", first["next_cursor"].as_str().unwrap())).await.ok(200);
    assert_eq!((&first["data"][1]["code"], &rest["data"][0]["code"]), (&json!("b"), &json!("c")));
    assert!(rest["next_cursor"].is_null());
}

#[tokio::test]
async fn every_gate_that_holds_a_message_is_named() {
    let api = Api::start().await;
    api.stored("now", MessageState::Ready, &ONE).await;
    api.stored("later", MessageState::Scheduled(ScheduleReason::SendAt), &ONE).await;
    let tenant = "default".parse().unwrap();
    let key = AccountKey { tenant, account: "sandbox".parse().unwrap() };
    let since = Time::from_millis(1_700_000_000_000);
    for scope in [SuspensionScope::Tenant, SuspensionScope::Account(key.account.clone())] {
        let suspension = SuspensionRecord { tenant: key.tenant.clone(), scope, since };
        api.store.change(DirectoryChange::Suspend(suspension), None).await.unwrap();
    }
    api.post("/v1/batches/b-1/suspend", json!({})).await.ok(200);
    let circuit = OpenCircuit {
        key: key.clone(),
        code: "smtp_535".to_owned(),
        reason: "wrong password".to_owned(),
        opened_at: since,
        open_until: Time::from_millis(since.as_millis() + 30_000),
        faults: 1,
    };
    api.store.change(DirectoryChange::OpenCircuit(circuit), None).await.unwrap();
    let now = api.get("/v1/messages/now/explain").await.ok(200);
    assert_eq!(gates(&now), ["tenant", "batch", "account", "circuit"], "{now}");
    assert_eq!(now["next_at"], json!(null), "somebody must act");
    assert!(now["gates"][3]["reason"].as_str().unwrap().contains("wrong password"), "{now}");
    assert_eq!(
        api.get("/v1/messages/now").await.ok(200)["held_by"],
        json!(["tenant", "batch:b-1", "account:sandbox", "circuit:sandbox"])
    );

    for scope in [SuspensionScope::Tenant, SuspensionScope::Account(key.account.clone())] {
        api.store.change(DirectoryChange::Activate(key.tenant.clone(), scope), None).await.unwrap();
    }
    api.post("/v1/batches/b-1/activate", json!({})).await.ok(200);
    let now = api.get("/v1/messages/now/explain").await.ok(200);
    assert_eq!((gates(&now), &now["next_at"]), (vec!["circuit"], &json!("2023-11-14T22:13:50.000Z")));
    let list = api.get("/v1/messages").await.ok(200);
    for one in list["data"].as_array().unwrap() {
        assert_eq!(one["held_by"], json!(["circuit:sandbox"]), "{}", one["id"]);
    }
    assert_eq!(api.get("/v1/stats").await.ok(200)["held"], 2);
    let later = api.get("/v1/messages/later/explain").await.ok(200);
    assert_eq!(
        (gates(&later), &later["next_at"]),
        (vec!["circuit", "schedule"], &json!("2023-11-14T22:14:20.000Z"))
    );
}

#[tokio::test]
async fn a_used_up_limit_is_named_with_when_it_frees() {
    let api = Api::start().await;
    let account =
        api.store.account(&"default".parse().unwrap(), &"sandbox".parse().unwrap()).await.unwrap().unwrap();
    let mut settings = AccountSettings::sandbox();
    settings.limits.per_minute = 1;
    settings.limits.per_day = 100;
    let limits = settings.limits;
    let version = account.version;
    let account = postway_domain::Account { settings, version: version + 1, ..account };
    assert!(api.store.update_account(account, version).await.unwrap());
    api.stored("first", MessageState::Ready, &ONE).await;
    api.clock.forward_ms(1);
    api.stored("second", MessageState::Ready, &ONE).await;
    assert_eq!(gates(&api.get("/v1/messages/second/explain").await.ok(200)), Vec::<&str>::new());
    assert_eq!(api.claim_one(limits).await, 1, "the limit is debited with the claim");
    let told = api.get("/v1/messages/second/explain").await.ok(200);
    assert_eq!(gates(&told), ["limit"], "{told}");
    assert!(told["gates"][0]["reason"].as_str().unwrap().contains("1 per minute"), "{told}");
    assert!(told["next_at"].is_string(), "{told}");
    let list = api.get("/v1/messages").await.ok(200);
    assert_eq!(list["data"][0]["held_by"], json!(["limit:sandbox"]));
    assert_eq!(list["data"][1]["held_by"], json!([]), "it is on its way");
    assert_eq!(api.get("/v1/messages/second").await.ok(200)["held_by"], json!(["limit:sandbox"]));
    assert_eq!(api.get("/v1/stats").await.ok(200)["held"], 1);
    let sending = api.get("/v1/messages/first/explain").await.ok(200);
    assert_eq!((gates(&sending), &sending["status"]), (vec![], &json!("sending")));
}

#[tokio::test]
async fn what_ended_badly_says_why_and_what_was_sent_has_nothing_to_explain() {
    let api = Api::start().await;
    for (id, state, reason) in [
        ("failed", MessageState::Failed, json!("come back")),
        ("expired", MessageState::Expired, json!("its expires_at passed before it was sent")),
        ("cancelled", MessageState::Cancelled, json!("withdrawn before it was sent")),
        ("sent", MessageState::Sent, json!(null)),
    ] {
        api.stored(id, state, &ONE).await;
        let told = api.get(&format!("/v1/messages/{id}/explain")).await.ok(200);
        assert_eq!((&told["reason"], &told["gates"]), (&reason, &json!([])), "{told}");
        assert_eq!(told["reason"], api.get(&format!("/v1/messages/{id}")).await.ok(200)["reason"]);
    }
    api.stored("held", MessageState::InDoubt, &ONE).await;
    let told = api.get("/v1/messages/held/explain").await.ok(200);
    let words = told["gates"][0]["reason"].as_str().unwrap();
    assert!(words.contains("what became of it") && !words.contains("POST"), "{words}");
}

#[tokio::test]
async fn a_scheduled_message_is_sent_now_and_only_by_retry() {
    let api = Api::start().await;
    api.stored("later", MessageState::Scheduled(ScheduleReason::SendAt), &ONE).await;
    let replay = api.post("/v1/dead-letters/replay", json!({"ids": ["later"]})).await.ok(200);
    assert_eq!(replay["results"][0]["error"]["code"], "conflict", "it is no dead letter");
    let now = api.call("POST", "/v1/messages/later/retry", "").await.ok(200);
    assert_eq!((&now["status"], &now["due_at"]), (&json!("ready"), &json!("2023-11-14T22:13:20.000Z")));
    let told = api.get("/v1/messages/later/explain").await.ok(200);
    assert_eq!((gates(&told), &told["next_at"]), (vec![], &now["due_at"]));
    let events = api.get("/v1/messages/later/events").await.ok(200);
    assert_eq!(events["data"].as_array().unwrap().last().unwrap()["type"], "replayed");
}
