//! Reference 001: commands, lists, and states derived from their times.

use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::record::NotificationState;
use serde_json::{Value, json};

use crate::{
    doors::with_header,
    support::{Answer, Api, KEY},
};

pub const ADD: &str = "/compat/001/commands/add-messages";

pub fn mail(id: &str) -> Value {
    json!({"id": id, "account_id": "sandbox", "from": "Shop <shop@example.com>", "to": "ada@example.net",
        "subject": "Your order", "body": "Thank you."})
}

pub async fn post(api: &Api, path: &str, body: Value) -> Answer {
    with_header(api, ("x-api-token", KEY), "POST", &format!("/compat/001{path}"), body).await
}

pub async fn get(api: &Api, path: &str) -> Value {
    with_header(api, ("x-api-token", KEY), "GET", &format!("/compat/001{path}"), json!({})).await.ok(200)
}

#[tokio::test]
async fn messages_are_queued_and_what_is_rejected_is_named_in_its_words() {
    let api = Api::start().await;
    let mut whole = mail("m-1");
    let fields = json!({"to": "ada@example.net, \"Lovelace, Bob\" <bob@example.net>", "cc": ["cy@example.net"],
        "reply_to": "help@example.com", "return_path": "bounces@example.com", "content_type": "html",
        "body": "<p>Thank you.</p>", "priority": "high", "deferred_ts": 1_700_003_600, "batch_code": "c-1",
        "headers": {"X-Order": "1"}, "message_id": "abc@example.com",
        "attachments": [{"filename": "a.txt", "storage_path": "base64:aGVsbG8=", "fetch_mode": "base64",
            "mime_type": "text/plain"}, {"filename": "b.txt", "storage_path": "aGVsbG8=", "fetch_mode": "base64"}]});
    whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut late = mail("m-2");
    late["deferred_ts"] = json!("tomorrow");
    let mut odd = mail("m-3");
    odd["colour"] = json!("red");
    let mut nameless = mail("m-4");
    nameless.as_object_mut().unwrap().remove("id");
    let mut nobody = mail("m-5");
    nobody["to"] = json!("nobody");
    let messages = json!([whole, late, odd, nameless, nobody, mail("m-6"), 7]);
    let answer =
        post(&api, "/commands/add-messages", json!({"messages": messages, "default_priority": 3})).await;
    let answer = answer.ok(200);
    assert_eq!((&answer["ok"], &answer["queued"]), (&json!(true), &json!(2)));
    let rejected = answer["rejected"].as_array().unwrap();
    let ids: Vec<&Value> = rejected.iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&json!("m-2"), &json!("m-3"), &json!(null), &json!("m-5"), &json!(null)]);
    let reasons: Vec<&str> = rejected.iter().map(|one| one["reason"].as_str().unwrap()).collect();
    for (reason, field) in reasons.iter().zip(["deferred_ts: ", "colour: ", "id: ", "to: ", ""]) {
        assert!(reason.starts_with(field), "{reason}");
    }

    let ours = api.get("/v1/messages/m-1").await.ok(200);
    assert_eq!(
        (&ours["status"], &ours["batch"], &ours["priority"]),
        (&json!("scheduled"), &json!("c-1"), &json!(1))
    );
    assert_eq!(ours["external_id"], "abc@example.com");
    assert_eq!(ours["recipients"].as_array().unwrap().len(), 3);
    assert_eq!(api.get("/v1/messages/m-6").await.ok(200)["priority"], 3, "the default");
    let content = api.get("/v1/messages/m-1/content").await.ok(200);
    assert_eq!(content["has_html"], true, "{content}");
    assert_eq!(content["attachments"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn where_nothing_is_taken_the_answer_says_so() {
    let api = Api::start().await;
    let answer =
        post(&api, "/commands/add-messages", json!({"messages": [{"id": "a"}, {"id": "b", "x": 1}]})).await;
    let json = answer.json();
    assert_eq!((answer.status.as_u16(), &json["ok"], &json["queued"]), (400, &json!(false), &json!(0)));
    assert_eq!(json["rejected"].as_array().unwrap().len(), 2);
    assert_eq!(json["detail"], json!({"error": &json["error"], "rejected": &json["rejected"]}));
    assert_eq!(post(&api, "/commands/add-messages", json!({"messages": []})).await.ok(200)["queued"], 0);
    for body in [json!({}), json!({"messages": {}}), json!({"messages": [], "colour": 1})] {
        let answer = post(&api, "/commands/add-messages", body.clone()).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["ok"]), (422, &json!(false)), "{body}");
    }
    let mut blank = mail("blank");
    blank["priority"] = json!("");
    let body = json!({"messages": [blank], "default_priority": ""});
    assert_eq!(post(&api, "/commands/add-messages", body).await.ok(200)["queued"], 1, "none was given");
    let many: Vec<Value> = (0..1_001).map(|n| json!({"id": n.to_string()})).collect();
    assert_eq!(post(&api, "/commands/add-messages", json!({"messages": many})).await.status.as_u16(), 422);
}

#[tokio::test]
async fn the_same_message_again_is_no_other_and_another_by_its_id_is_rejected() {
    let api = Api::start().await;
    for _ in 0..2 {
        let answer = post(&api, "/commands/add-messages", json!({"messages": [mail("m")]})).await.ok(200);
        assert_eq!(answer["queued"], 1);
    }
    assert_eq!(get(&api, "/messages").await["messages"].as_array().unwrap().len(), 1);
    let mut other = mail("m");
    other["subject"] = json!("Another");
    let answer = post(&api, "/commands/add-messages", json!({"messages": [other, mail("n")]})).await.ok(200);
    assert_eq!((&answer["queued"], &answer["rejected"][0]["id"]), (&json!(1), &json!("m")));
}

#[tokio::test]
async fn a_tenants_token_is_for_its_tenant_and_the_admins_names_one() {
    let api = Api::start().await;
    let scopes = json!({"name": "all", "scopes": ["send", "read", "manage"]});
    let key = api.key("other", scopes).await;
    let as_other = |method: &'static str, path: &'static str, body: Value| {
        let (api, key) = (&api, key.as_str());
        async move { with_header(api, ("x-api-token", key), method, path, body).await }
    };
    assert_eq!(as_other("POST", ADD, json!({"messages": [mail("theirs")]})).await.ok(200)["queued"], 1);
    let in_body = json!({"tenant_id": "other", "messages": [mail("by-admin")]});
    assert_eq!(post(&api, "/commands/add-messages", in_body).await.ok(200)["queued"], 1);
    post(&api, "/commands/add-messages", json!({"messages": [mail("ours")]})).await.ok(200);

    let named = |list: &Value| -> Vec<String> {
        let messages = list["messages"].as_array().unwrap().iter();
        messages.map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    };
    let theirs = as_other("GET", "/compat/001/messages?tenant_id=other", json!({})).await.ok(200);
    let mut ids = named(&theirs);
    ids.sort();
    assert_eq!(ids, ["by-admin", "theirs"]);
    assert_eq!(named(&get(&api, "/messages").await), ["ours"]);
    assert_eq!(named(&get(&api, "/messages?tenant_id=other").await).len(), 2);

    let removed =
        as_other("POST", "/compat/001/commands/delete-messages", json!({"ids": ["ours"]})).await.ok(200);
    assert_eq!((&removed["removed"], &removed["not_found"]), (&json!(0), &json!(["ours"])));
    for (method, path) in [
        ("GET", "/compat/001/messages?tenant_id=default"),
        ("POST", "/compat/001/commands/add-messages?tenant_id=default"),
        ("POST", "/compat/001/commands/suspend?tenant_id=default&batch_code=b"),
        ("POST", "/compat/001/commands/cleanup-messages?tenant_id=default"),
        ("POST", "/compat/001/commands/run-now?tenant_id=default"),
        ("GET", "/compat/001/accounts?tenant_id=default"),
        ("DELETE", "/compat/001/account/sandbox?tenant_id=default"),
        ("GET", "/compat/001/status?tenant_id=default"),
        ("POST", "/compat/001/commands/suspend"),
        ("GET", "/compat/001/tenants"),
        ("GET", "/compat/001/tenant/default"),
        ("PUT", "/compat/001/tenant/default"),
        ("PUT", "/compat/001/tenant/other"),
        ("DELETE", "/compat/001/tenant/default"),
    ] {
        let answer = as_other(method, path, json!({"messages": []})).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["ok"]), (403, &json!(false)), "{method} {path}");
    }
    let answer = post(&api, "/commands/add-messages", json!({"tenant_id": "none", "messages": []})).await;
    assert_eq!(answer.status.as_u16(), 404);
}

#[tokio::test]
async fn batches_and_tenants_are_held_and_let_go() {
    let api = Api::start().await;
    let mut held = mail("held");
    held["batch_code"] = json!("c-1");
    post(&api, "/commands/add-messages", json!({"messages": [held, mail("free")]})).await.ok(200);
    let status = async |id: &str| {
        let list = get(&api, "/messages").await;
        let found = list["messages"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone();
        found["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        post(&api, "/commands/suspend?batch_code=c-1", json!({})).await.status.as_u16(),
        422,
        "whose?"
    );
    let answer = post(&api, "/commands/suspend?tenant_id=default&batch_code=c-1", json!({})).await.ok(200);
    assert_eq!(
        (&answer["suspended_batches"], &answer["pending_messages"]),
        (&json!(["c-1"]), &json!(1)),
        "{answer}"
    );
    assert_eq!((status("held").await, status("free").await), ("SUSPENDED".to_owned(), "PENDING".to_owned()));
    assert_eq!(get(&api, "/status").await["active"], true);
    post(&api, "/commands/activate?tenant_id=default&batch_code=c-1", json!({})).await.ok(200);
    assert_eq!(status("held").await, "PENDING");
    let answer = post(&api, "/commands/suspend?tenant_id=default", json!({})).await.ok(200);
    assert_eq!((&answer["suspended_batches"], &answer["pending_messages"]), (&json!(["*"]), &json!(2)));
    assert_eq!(get(&api, "/status").await["active"], false);
    assert_eq!(status("free").await, "SUSPENDED");
    let answer = post(&api, "/commands/activate?tenant_id=default", json!({})).await.ok(200);
    assert_eq!((&answer["suspended_batches"], &answer["pending_messages"]), (&json!([]), &json!(2)));
    let now = get(&api, "/status").await;
    assert_eq!((&now["active"], &now["pending"]), (&json!(true), &json!(2)));
    post(&api, "/commands/run-now", json!({})).await.ok(200);
}

#[tokio::test]
async fn what_waits_is_removed_and_what_ended_is_kept_until_cleanup() {
    let api = Api::start().await;
    post(&api, "/commands/add-messages", json!({"messages": [mail("waits")]})).await.ok(200);
    api.stored("ended", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let ids = json!({"ids": ["waits", "ended", "none"]});
    let answer = post(&api, "/commands/delete-messages", ids).await.ok(200);
    assert_eq!((&answer["removed"], &answer["not_found"]), (&json!(1), &json!(["none"])));
    assert_eq!(answer["kept"][0]["id"], "ended");
    for body in [json!({}), json!({"ids": []}), json!({"ids": [1]}), json!({"ids": ["a"], "x": 1})] {
        assert_eq!(post(&api, "/commands/delete-messages", body).await.status.as_u16(), 422);
    }
    api.fan_out().await;
    api.clock.forward_ms(100_000);
    let path = "/commands/cleanup-messages?tenant_id=default&older_than_seconds=";
    let answer = post(&api, &format!("{path}86400"), json!({})).await.ok(200);
    assert_eq!(answer["removed"], 0);
    let answer = post(&api, &format!("{path}10"), json!({})).await.ok(200);
    assert_eq!((&answer["ok"], &answer["removed"]), (&json!(true), &json!(2)));
    assert_eq!(post(&api, &format!("{path}soon"), json!({})).await.status.as_u16(), 422);
}

#[tokio::test]
async fn states_and_times_are_those_its_users_know() {
    let api = Api::start().await;
    api.stored("waits", MessageState::Scheduled(ScheduleReason::Retry), &[("ada@example.net", Pending)])
        .await;
    api.stored("sent", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.stored("failed", MessageState::Failed, &[("ada@example.net", Failed)]).await;
    let list = get(&api, "/messages?batch_code=b-1&account_id=sandbox").await;
    let of = |id: &str| list["messages"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    let waits = of("waits");
    assert_eq!((&waits["status"], &waits["deferred_ts"]), (&json!("DEFERRED"), &json!(1_700_000_060)));
    assert!(waits["sent_ts"].is_null() && waits["error_ts"].is_null());
    let sent = of("sent");
    assert_eq!((&sent["status"], &sent["sent_ts"]), (&json!("SENT"), &json!(1_700_000_000)));
    assert!(sent["reported_ts"].is_null() && sent["error"].is_null(), "nobody was told");
    assert_eq!(sent["message"]["to"], json!(["ada@example.net"]));
    let failed = of("failed");
    assert_eq!((&failed["status"], &failed["error"]), (&json!("ERROR"), &json!("come back")));
    assert_eq!(failed["error_ts"], 1_700_000_000);
    let active = get(&api, "/messages?active_only=true").await;
    assert_eq!(active["messages"].as_array().unwrap().len(), 1);
    for path in ["/compat/001/messages?colour=red", "/compat/001/messages?active_only=maybe"] {
        assert_eq!(api.get(path).await.status.as_u16(), 422, "{path}");
    }
}

#[tokio::test]
async fn a_message_is_reported_once_everybody_has_taken_it() {
    let api = Api::start().await;
    api.post("/v1/webhooks", json!({"url": "https://app.example.com/hook", "events": ["email.sent"]}))
        .await
        .ok(201);
    api.stored("m", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let status = async || get(&api, "/messages").await["messages"][0].clone();
    assert_eq!(status().await["status"], "SENT");
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 1);
    let told = status().await;
    assert_eq!((&told["status"], &told["reported_ts"]), (&json!("REPORTED"), &json!(1_700_000_000)));
}

#[tokio::test]
async fn messages_come_page_by_page() {
    let api = Api::start().await;
    for n in 0..5 {
        api.stored(&format!("m-{n}"), MessageState::Ready, &[("ada@example.net", Pending)]).await;
        api.clock.forward_ms(1);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&api, &format!("/messages?active_only=1&limit=2{cursor}")).await;
        let ids =
            page["messages"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["m-4", "m-3", "m-2", "m-1", "m-0"]);
}

#[tokio::test]
async fn accounts_are_made_changed_shown_and_deleted() {
    let api = Api::start().await;
    let account = json!({"id": "relay", "tenant_id": "other", "host": "smtp.example.com", "port": 465, "user": "shop",
        "password": "secret", "ttl": 300, "limit_per_minute": 10, "limit_behavior": "defer", "use_tls": true});
    let made = post(&api, "/account", account).await.ok(200);
    assert_eq!(
        (&made["ok"], &made["use_tls"], &made["limit_per_minute"]),
        (&json!(true), &json!(true), &json!(10))
    );
    let ours = api.in_tenant("other", "GET", "/v1/accounts/relay", "").await.ok(200);
    assert_eq!((&ours["tls"], &ours["password_set"]), (&json!("implicit"), &json!(true)));
    let changed = json!({"id": "relay", "tenant_id": "other", "limit_per_minute": 20});
    assert_eq!(post(&api, "/account", changed).await.ok(200)["limit_per_minute"], 20);
    let list = get(&api, "/accounts?tenant_id=other").await;
    let ids: Vec<&Value> = list["accounts"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&json!("relay"), &json!("sandbox")]);
    assert!(!list.to_string().contains("secret"));
    assert_eq!(get(&api, "/account/relay?tenant_id=other").await["host"], "smtp.example.com");
    assert_eq!(api.get("/compat/001/account/relay").await.status.as_u16(), 404, "not of the default tenant");
    for (body, field) in [
        (json!({"id": "b", "host": "h", "colour": 1}), "colour"),
        (json!({"id": "b", "host": "h", "use_tls": "yes"}), "use_tls"),
        (json!({"id": "b", "host": "h", "limit_per_hour": -1}), "limit_per_hour"),
        (json!({"host": "h"}), "id"),
        (json!({"id": "b"}), "host"),
    ] {
        let answer = post(&api, "/account", body.clone()).await;
        assert_eq!(answer.status.as_u16(), 422, "{body}");
        assert!(
            answer.json()["error"].as_str().unwrap().starts_with(&format!("{field}: ")),
            "{}",
            answer.json()
        );
    }
    assert_eq!(api.call("DELETE", "/compat/001/account/relay?tenant_id=other", "").await.ok(200)["ok"], true);
    assert_eq!(api.get("/compat/001/account/relay?tenant_id=other").await.status.as_u16(), 404);
}

#[tokio::test]
async fn tenants_are_made_changed_shown_and_deleted() {
    let api = Api::start().await;
    let tenant = json!({"id": "acme", "name": "Acme", "active": false, "client_base_url": "https://app.example.com",
        "client_sync_path": "/sync", "client_attachment_path": "/files",
        "client_auth": {"method": "bearer", "token": "hush"}});
    let made = post(&api, "/tenant", tenant).await.ok(200);
    assert_eq!((&made["ok"], &made["active"]), (&json!(true), &json!(false)));
    assert_eq!(
        (&made["client_sync_path"], &made["client_auth"]["method"]),
        (&json!("/sync"), &json!("bearer"))
    );
    assert!(!made.to_string().contains("hush"));
    let ours = api.get("/v1/tenants/acme").await.ok(200);
    assert_eq!((&ours["callback_form"], &ours["suspended"]), (&json!("batch"), &json!(true)));
    let changed =
        post(&api, "/tenant", json!({"id": "acme", "name": "Acme Ltd", "active": true})).await.ok(200);
    assert_eq!((&changed["name"], &changed["active"]), (&json!("Acme Ltd"), &json!(true)));
    assert_eq!(changed["client_sync_path"], "/sync", "what is not given stays");
    assert_eq!(get(&api, "/tenants").await["tenants"].as_array().unwrap().len(), 3);
    assert_eq!(get(&api, "/tenant/acme").await["name"], "Acme Ltd");
    for (body, field) in [
        (json!({"id": "b", "client_sync_path": "/x"}), "client_sync_path"),
        (
            json!({"id": "b", "client_base_url": "https://x", "client_sync_path": "/x",
            "client_auth": {"method": "bearer"}}),
            "client_auth.token",
        ),
        (json!({"id": "b", "client_auth": {"scheme": 1}}), "client_auth.scheme"),
        (json!({"id": "b", "colour": 1}), "colour"),
        (json!({"name": "b"}), "id"),
    ] {
        let answer = post(&api, "/tenant", body.clone()).await;
        assert_eq!(answer.status.as_u16(), 422, "{body}");
        assert!(
            answer.json()["error"].as_str().unwrap().starts_with(&format!("{field}: ")),
            "{}",
            answer.json()
        );
    }
    assert_eq!(api.call("DELETE", "/compat/001/tenant/acme", "").await.ok(200)["ok"], true);
    assert_eq!(api.get("/compat/001/tenant/acme").await.status.as_u16(), 404);
    assert_eq!(api.call("DELETE", "/compat/001/tenant/default", "").await.status.as_u16(), 409);
}
