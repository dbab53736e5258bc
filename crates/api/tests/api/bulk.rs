//! Bulk actions: a plan, the work in slices, what is left as it is, and the end.

use postway_api::BulkWorker;
use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::{
    BulkActionStore, DirectoryStore,
    record::{BulkAction, DirectoryChange, SuspensionRecord, SuspensionScope},
};
use serde_json::{Value, json};

use crate::{isolation::do_bulk_actions, support::Api};

const BULK: &str = "/v1/bulk-actions";
const DRY: &str = "/v1/bulk-actions?dry_run=true";

async fn status(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/messages/{id}")).await.ok(200)["status"].clone()
}

async fn begin(api: &Api, body: Value) -> String {
    let begun = api.post(BULK, body).await.ok(202);
    assert_eq!((&begun["state"], &begun["changed"]), (&json!("running"), &json!(0)));
    begun["id"].as_str().unwrap().to_owned()
}

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("{BULK}/{id}")).await.ok(200)
}

/// The n-th of some messages.
fn named(n: usize) -> String {
    format!("m-{n}")
}

async fn with_ready(messages: usize) -> Api {
    let api = Api::start().await;
    for n in 0..messages {
        api.stored(&named(n), MessageState::Ready, &[("ada@example.net", Pending)]).await;
    }
    api
}

#[tokio::test]
async fn a_plan_changes_nothing_and_the_work_does_what_it_said() {
    let api = with_ready(3).await;
    api.stored("late", MessageState::Scheduled(ScheduleReason::SendAt), &[("ada@example.net", Pending)])
        .await;
    api.stored("gone", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let all = json!({"action": "cancel", "filter": {}, "at_most": 5});
    let plan = api.post(DRY, all.clone()).await.ok(200);
    let count = |status: &str, changed: bool, messages: u64| json!({"status": status, "changed": changed, "messages": messages});
    assert_eq!(
        plan,
        json!({"matching": 5, "changed": 4, "skipped": 1, "or_more": false, "by_status": [
            count("ready", true, 3), count("scheduled", true, 1), count("sent", false, 1),
        ]})
    );
    assert_eq!(status(&api, "m-0").await, "ready");
    let id = begin(&api, all).await;
    // Accepted after the request: it was not meant.
    api.clock.forward_ms(10);
    api.stored("new", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    do_bulk_actions(&api).await;
    let ended = shown(&api, &id).await;
    assert_eq!((&ended["state"], &ended["expected"]), (&json!("finished"), &json!(5)));
    assert_eq!((&ended["changed"], &ended["skipped"]), (&json!(4), &json!(1)));
    for (id, expected) in [("m-0", "cancelled"), ("late", "cancelled"), ("gone", "sent"), ("new", "ready")] {
        assert_eq!(status(&api, id).await, expected, "{id}");
    }
    let events = api.get("/v1/messages/m-0/events").await.ok(200);
    let last = events["data"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["type"], &last["data"]["bulk_action"]), (&json!("cancelled"), &json!(id)));
    let log = api.get("/v1/audit").await.ok(200);
    let actions: Vec<&str> =
        log["data"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions[..2], ["bulk_action.finish", "bulk_action.create"]);
    assert_eq!(log["data"][0]["detail"], json!({"changed": 4, "skipped": 1}));
}

/// As after a `kill -9` between any two slices: a new process goes on where the last one was.
#[tokio::test]
async fn a_restart_goes_on_and_changes_nothing_twice() {
    let api = with_ready(250).await;
    let id = begin(&api, json!({"action": "cancel", "filter": {"status": "ready"}})).await;
    let mut rounds = 0;
    while shown(&api, &id).await["state"] == "running" {
        // Each round is the first of another process.
        BulkWorker::new(api.store.clone(), api.clock.clone()).round().await.unwrap();
        rounds += 1;
        let changed = shown(&api, &id).await["changed"].as_u64().unwrap();
        assert_eq!(changed, (rounds * 100).min(250), "after {rounds} slices");
    }
    for n in [0, 99, 100, 249] {
        let events = api.get(&format!("/v1/messages/{}/events", named(n))).await.ok(200);
        let cancelled = events["data"].as_array().unwrap().iter().filter(|one| one["type"] == "cancelled");
        assert_eq!(cancelled.count(), 1, "{n}");
    }
}

/// Two nodes that both believe to have the duty.
#[tokio::test]
async fn two_workers_at_once_do_each_message_once() {
    let api = with_ready(250).await;
    let id = begin(&api, json!({"action": "cancel", "filter": {"status": "ready"}})).await;
    let work = || async {
        let mut worker = BulkWorker::new(api.store.clone(), api.clock.clone());
        while worker.round().await.unwrap() {}
    };
    tokio::join!(work(), work());
    let ended = shown(&api, &id).await;
    assert_eq!(
        (&ended["state"], &ended["changed"], &ended["skipped"]),
        (&json!("finished"), &json!(250), &json!(0))
    );
}

#[tokio::test]
async fn a_stopped_one_stays_where_it_is() {
    let api = with_ready(150).await;
    let id = begin(&api, json!({"action": "cancel", "filter": {"status": "ready"}})).await;
    let mut worker = BulkWorker::new(api.store.clone(), api.clock.clone());
    assert!(worker.round().await.unwrap());
    let stopped = api.post(&format!("{BULK}/{id}/stop"), json!({})).await.ok(200);
    assert_eq!((&stopped["state"], &stopped["changed"]), (&json!("stopped"), &json!(100)));
    api.post(&format!("{BULK}/{id}/stop"), json!({})).await.refused(409, "conflict");
    do_bulk_actions(&api).await;
    assert_eq!(shown(&api, &id).await["changed"], 100);
    let ready = api.get("/v1/messages?status=ready&limit=500").await.ok(200);
    assert_eq!(ready["data"].as_array().unwrap().len(), 50);
    api.get(&format!("{BULK}/none")).await.refused(404, "not_found");
}

#[tokio::test]
async fn selected_messages_are_named_by_either_id() {
    let api = with_ready(3).await;
    let uid = api.get("/v1/messages/m-1").await.ok(200)["uid"].clone();
    let body = json!({"action": "cancel", "ids": ["m-0", uid, "m-0"]});
    assert_eq!(api.post(DRY, body.clone()).await.ok(200)["changed"], 2);
    let id = begin(&api, body).await;
    do_bulk_actions(&api).await;
    let ended = shown(&api, &id).await;
    assert_eq!(
        (&ended["selected"], &ended["changed"], &ended["filter"]),
        (&json!(2), &json!(2), &Value::Null)
    );
    assert_eq!(status(&api, "m-2").await, "ready");
    let unknown = json!({"action": "cancel", "ids": ["m-2", "nobody"]});
    assert_eq!(api.post(BULK, unknown).await.wrong_fields(), ["ids[1]"]);
    // A search that names one message.
    let id = begin(&api, json!({"action": "cancel", "filter": {"q": "m-2"}})).await;
    do_bulk_actions(&api).await;
    assert_eq!(
        (shown(&api, &id).await["changed"].clone(), status(&api, "m-2").await),
        (json!(1), json!("cancelled"))
    );
}

#[tokio::test]
async fn each_action_does_what_it_does_to_one_message() {
    let api = Api::start().await;
    api.stored("failed", MessageState::Failed, &[("ada@example.net", Failed)]).await;
    api.stored("doubt", MessageState::InDoubt, &[("bob@example.net", InDoubt)]).await;
    api.stored("late", MessageState::Scheduled(ScheduleReason::SendAt), &[("cy@example.net", Pending)]).await;
    for (body, id, expected) in [
        (json!({"action": "retry", "filter": {"status": "failed"}}), "failed", "ready"),
        (json!({"action": "resolve", "outcome": "sent", "filter": {"held_by": "doubt"}}), "doubt", "sent"),
        (json!({"action": "reschedule", "send_at": 1_700_092_800, "ids": ["late"]}), "late", "scheduled"),
    ] {
        let bulk = begin(&api, body).await;
        do_bulk_actions(&api).await;
        assert_eq!(shown(&api, &bulk).await["changed"], 1, "{id}");
        assert_eq!(status(&api, id).await, expected);
    }
    assert_eq!(api.get("/v1/messages/late").await.ok(200)["due_at"], "2023-11-16T00:00:00.000Z");
    let far = json!({"action": "reschedule", "send_at": "2030-01-01T00:00:00Z", "filter": {}, "at_most": 9});
    assert_eq!(api.post(BULK, far).await.wrong_fields(), ["send_at"]);
    let suppress = json!({"action": "suppress", "note": "in bulk", "ids": ["failed", "late"]});
    begin(&api, suppress).await;
    do_bulk_actions(&api).await;
    let listed = api.get("/v1/suppressions").await.ok(200);
    let addresses: Vec<&Value> =
        listed["data"].as_array().unwrap().iter().map(|one| &one["address"]).collect();
    assert_eq!(addresses, ["ada@example.net", "cy@example.net"]);
    assert_eq!(listed["data"][0]["note"], "in bulk");
}

/// Everything of a tenant is named on purpose, and what has changed since is refused.
#[tokio::test]
async fn more_than_was_meant_is_refused() {
    let api = with_ready(3).await;
    let all = json!({"action": "cancel", "filter": {}});
    assert_eq!(api.post(BULK, all).await.wrong_fields(), ["at_most"]);
    let two = json!({"action": "cancel", "filter": {"status": "ready"}, "at_most": 2});
    let refused = api.post(BULK, two).await.refused(409, "conflict");
    assert!(refused["message"].as_str().unwrap().starts_with("3 messages match by now"), "{refused}");
    assert_eq!(status(&api, "m-0").await, "ready");
    assert_eq!(api.get(BULK).await.ok(200)["data"], json!([]));
}

/// What blocks mail is asked anew for each slice.
#[tokio::test]
async fn a_filter_by_what_blocks_follows_it() {
    let api = with_ready(2).await;
    let suspend = DirectoryChange::Suspend(SuspensionRecord {
        tenant: "default".parse().unwrap(),
        scope: SuspensionScope::Tenant,
        since: postway_domain::Time::from_millis(1),
    });
    let blocked = json!({"action": "cancel", "filter": {"held_by": "tenant"}});
    assert_eq!(api.post(DRY, blocked.clone()).await.ok(200)["matching"], 0);
    api.store.change(suspend, None).await.unwrap();
    assert_eq!(api.post(DRY, blocked.clone()).await.ok(200)["matching"], 2);
    let id = begin(&api, blocked).await;
    let activate = DirectoryChange::Activate("default".parse().unwrap(), SuspensionScope::Tenant);
    api.store.change(activate, None).await.unwrap();
    do_bulk_actions(&api).await;
    assert_eq!(
        (shown(&api, &id).await["changed"].clone(), status(&api, "m-0").await),
        (json!(0), json!("ready"))
    );
}

#[tokio::test]
async fn a_key_needs_what_the_action_needs() {
    let api = with_ready(1).await;
    let cancel = json!({"action": "cancel", "filter": {"status": "ready"}}).to_string();
    let suppress = json!({"action": "suppress", "filter": {"status": "ready"}}).to_string();
    for (scopes, body, expected) in [
        (json!(["send"]), &cancel, 403),
        (json!(["read"]), &cancel, 403),
        (json!(["send", "read"]), &cancel, 202),
        (json!(["send", "read"]), &suppress, 403),
        (json!(["send", "read", "manage"]), &suppress, 202),
    ] {
        let key = api.key("default", json!({"scopes": scopes})).await;
        let request = axum::http::Request::builder()
            .method("POST")
            .uri(BULK)
            .header("x-api-key", &key)
            .header("content-type", "application/json");
        let answer = api.ask(request.body(body.clone().into()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), expected, "{scopes} {body}");
    }
}

#[tokio::test]
async fn one_tenant_cannot_begin_without_end_and_others_get_their_turn() {
    let api = with_ready(1).await;
    let body = || json!({"action": "retry", "filter": {"status": "failed"}});
    for _ in 0..BulkAction::RUNNING_MAX {
        begin(&api, body()).await;
    }
    api.post(BULK, body()).await.refused(409, "conflict");
    let running = api.store.running_bulk_actions(None, 9).await.unwrap();
    assert_eq!(running.len(), 1, "the oldest of each tenant");
    do_bulk_actions(&api).await;
    let page = api.get(&format!("{BULK}?limit=5")).await.ok(200);
    assert_eq!(page["data"].as_array().unwrap().len(), 5);
    let next = page["next_cursor"].as_str().unwrap();
    let rest = api.get(&format!("{BULK}?limit=500&cursor={next}")).await.ok(200);
    assert_eq!(rest["data"].as_array().unwrap().len() as u32, BulkAction::RUNNING_MAX - 5);
    assert!(rest["data"].as_array().unwrap().iter().all(|one| one["state"] == "finished"));
}
