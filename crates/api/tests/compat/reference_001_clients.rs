//! Reference 001, as its own clients use it: several tenants in one call, whole records, keys that come with
//! a tenant.

use axum::{body::Body, http::Request};
use postway_domain::{EventKind, MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::record::NewEvent;
use serde_json::{Value, json};

use crate::{
    doors::with_header,
    reference_001::{ADD, get, mail, post},
    support::{Api, KEY},
};

fn mail_of(id: &str, tenant: &str) -> Value {
    let mut mail = mail(id);
    mail["tenant_id"] = json!(tenant);
    mail
}

async fn has(api: &Api, tenant: &str, id: &str) -> bool {
    api.in_tenant(tenant, "GET", &format!("/v1/messages/{id}"), "").await.status.is_success()
}

#[tokio::test]
async fn the_admin_token_brings_messages_of_several_tenants_in_one_call() {
    let api = Api::start().await;
    let mut wrong = mail_of("wrong", "other");
    wrong["to"] = json!("nobody");
    let messages = json!([
        mail("a"),
        mail_of("b", "other"),
        mail_of("c", "none"),
        wrong,
        mail_of("d", "default"),
        mail_of("e", "no tenant!"),
        mail_of("f", "other")
    ]);
    let answer = post(&api, "/commands/add-messages", json!({"messages": messages})).await.ok(200);
    assert_eq!(answer["queued"], 4, "{answer}");
    let rejected = answer["rejected"].as_array().unwrap();
    let ids: Vec<&str> = rejected.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["c", "wrong", "e"], "in the order in which they came");
    assert_eq!(rejected[0]["reason"], "tenant_id: there is no tenant `none`");
    assert!(rejected[1]["reason"].as_str().unwrap().starts_with("to: "));
    for (tenant, id) in [("default", "a"), ("other", "b"), ("default", "d"), ("other", "f")] {
        assert!(has(&api, tenant, id).await, "{id}");
        let another = if tenant == "other" { "default" } else { "other" };
        assert!(!has(&api, another, id).await, "{id}");
    }
    let all_elsewhere = json!({"tenant_id": "other", "messages": [mail("g"), mail_of("h", "default")]});
    assert_eq!(post(&api, "/commands/add-messages", all_elsewhere).await.ok(200)["queued"], 2);
    assert!(has(&api, "other", "g").await && has(&api, "default", "h").await);
    let by_query = json!({"messages": [mail("i"), mail_of("j", "default")]});
    assert_eq!(post(&api, "/commands/add-messages?tenant_id=other", by_query).await.ok(200)["queued"], 2);
    assert!(has(&api, "other", "i").await && has(&api, "default", "j").await);
}

#[tokio::test]
async fn a_tenants_token_brings_nothing_for_another_tenant() {
    let api = Api::start().await;
    let key = api.key("other", json!({"name": "send", "scopes": ["send"]})).await;
    let add = async |messages: Value| {
        with_header(&api, ("x-api-token", &key), "POST", ADD, json!({"messages": messages})).await
    };
    let answer =
        add(json!([mail("a"), mail_of("b", "default"), mail_of("c", "other"), mail_of("d", "none")])).await;
    let answer = answer.ok(200);
    assert_eq!(answer["queued"], 2, "{answer}");
    let reason = "tenant_id: names another tenant than the token's";
    let expected = json!([{"id": "b", "reason": reason}, {"id": "d", "reason": reason}]);
    assert_eq!(answer["rejected"], expected, "whether there is such a tenant is not told");
    assert!(has(&api, "other", "a").await && has(&api, "other", "c").await);
    assert!(!has(&api, "default", "b").await && !has(&api, "other", "b").await);
    let nothing = add(json!([mail_of("b", "default")])).await;
    assert_eq!((nothing.status.as_u16(), &nothing.json()["detail"]["rejected"][0]["id"]), (400, &json!("b")));
}

#[tokio::test]
async fn a_record_has_its_request_and_its_history() {
    let api = Api::start().await;
    let account = json!({"id": "pec", "host": "smtp.example.com", "is_pec_account": true});
    post(&api, "/account", account).await.ok(200);
    let mut certified = mail("certified");
    certified["account_id"] = json!("pec");
    certified["priority"] = json!("medium");
    let body = json!({"messages": [certified, mail("plain")], "default_priority": "medium"});
    assert_eq!(post(&api, "/commands/add-messages", body).await.ok(200)["queued"], 2);
    api.stored_with(
        "waits",
        MessageState::Scheduled(ScheduleReason::Retry),
        &[("ada@example.net", Pending)],
        |message| {
            let data = Some(json!({"attempt": 1, "message": "come back"}).to_string());
            message.events.push(NewEvent { kind: EventKind::Scheduled, data });
        },
    )
    .await;
    api.stored_with("hidden", MessageState::Ready, &[("ada@example.net", Pending)], |message| {
        message.content.sensitive = true;
    })
    .await;
    let list = get(&api, "/messages?include_history=true&active_only=true").await;
    let of = |id: &str| list["messages"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    let certified = of("certified");
    let ours = api.get("/v1/messages/certified").await.ok(200);
    assert_eq!((&certified["pk"], &certified["tenant_id"]), (&ours["uid"], &json!("default")));
    assert_eq!(certified["tenant_name"], api.get("/v1/tenants/default").await.ok(200)["name"]);
    assert_eq!((&certified["is_pec"], &of("plain")["is_pec"]), (&json!(true), &json!(false)));
    assert_eq!((&certified["priority"], &of("plain")["priority"]), (&json!(2), &json!(2)));
    let request = &certified["message"];
    assert_eq!((&request["body"], &request["content_type"]), (&json!("Thank you."), &json!("plain")));
    assert_eq!(
        (&request["account_id"], &request["from"]),
        (&json!("pec"), &json!("Shop <shop@example.com>"))
    );
    assert!(request.get("text").is_none() && request.get("account").is_none(), "{request}");
    let hidden = of("hidden");
    let shown = json!({"to": ["ada@example.net"], "cc": [], "bcc": [], "subject": "[hidden]"});
    assert_eq!(hidden["message"], shown, "nobody may read it");

    let history = of("waits")["history"].as_array().unwrap();
    assert_eq!((&history[0]["event_id"], &history[0]["event_type"]), (&json!(1), &json!("accepted")));
    assert_eq!((&history[0]["description"], &history[0]["metadata"]), (&Value::Null, &json!({})));
    let scheduled = json!({"event_id": 2, "event_type": "scheduled", "event_ts": 1_700_000_000,
        "description": "come back", "metadata": {"attempt": 1, "message": "come back"}});
    assert_eq!(history[1], scheduled);
    assert!(get(&api, "/messages").await["messages"][0].get("history").is_none(), "not asked for");
}

#[tokio::test]
async fn a_new_tenant_comes_with_a_key_that_is_shown_once() {
    let api = Api::start().await;
    let made = post(&api, "/tenant", json!({"id": "acme", "name": "Acme"})).await.ok(200);
    let key = made["api_key"].as_str().unwrap();
    let sent = with_header(&api, ("x-api-token", key), "POST", ADD, json!({"messages": [mail("m")]})).await;
    assert_eq!(sent.ok(200)["queued"], 1);
    assert!(has(&api, "acme", "m").await);
    let keys = api.get("/v1/tenants/acme/keys").await.ok(200);
    assert_eq!(keys["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&keys["data"][0]["name"], &keys["data"][0]["scopes"]),
        (&json!("001"), &json!(["send", "read", "manage"]))
    );
    let again = post(&api, "/tenant", json!({"id": "acme", "name": "Acme Ltd"})).await.ok(200);
    assert!(again.get("api_key").is_none() && get(&api, "/tenant/acme").await.get("api_key").is_none());
    assert_eq!(api.get("/v1/tenants/acme/keys").await.ok(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_tenant_changes_in_what_is_given_and_keeps_the_rest() {
    let api = Api::start().await;
    let put = async |path: &str, body: Value| {
        with_header(&api, ("x-api-token", KEY), "PUT", &format!("/compat/001{path}"), body).await
    };
    let remote = json!({"client_base_url": "https://app.example.com", "client_sync_path": "/sync",
        "client_auth": {"method": "bearer", "token": "hush"}});
    let mut tenant = remote.clone();
    tenant["id"] = json!("acme");
    post(&api, "/tenant", tenant).await.ok(200);
    let changed = put("/tenant/acme", json!({"id": "acme", "name": "Acme", "active": false})).await.ok(200);
    assert_eq!((&changed["name"], &changed["active"]), (&json!("Acme"), &json!(false)));
    assert!(changed.get("api_key").is_none());
    let mut elsewhere = json!({"client_base_url": "https://new.example.com"});
    let refused = put("/tenants/acme", elsewhere.clone()).await;
    assert_eq!(refused.status.as_u16(), 422, "a token goes where it was given for");
    assert!(refused.json()["detail"].as_str().unwrap().contains("client_auth.token: "), "{}", refused.json());
    elsewhere["client_auth"] = remote["client_auth"].clone();
    let moved = put("/tenants/acme", elsewhere).await.ok(200);
    assert_eq!(moved["client_base_url"], "https://new.example.com");
    assert_eq!(
        (&moved["client_sync_path"], &moved["client_auth"]["method"], &moved["active"]),
        (&json!("/sync"), &json!("bearer"), &json!(false)),
        "what is not given stays"
    );
    let path = put("/tenant/acme", json!({"client_sync_path": "/outcomes"})).await.ok(200);
    assert_eq!(
        (&path["client_sync_path"], &path["client_base_url"]),
        (&json!("/outcomes"), &moved["client_base_url"])
    );
    assert_eq!(put("/tenant/none", json!({"name": "x"})).await.status.as_u16(), 404);
    for (body, field) in [
        (json!({"id": "other"}), "id"),
        (json!({"active": 1}), "active"),
        (json!({"client_attachment_path": 7}), "client_attachment_path"),
    ] {
        let answer = put("/tenant/acme", body.clone()).await;
        assert_eq!(answer.status.as_u16(), 422, "{body}");
        assert!(
            answer.json()["detail"].as_str().unwrap().starts_with(&format!("{field}: ")),
            "{}",
            answer.json()
        );
    }
}

#[tokio::test]
async fn a_tenant_needs_no_more_than_its_clients_give() {
    let api = Api::start().await;
    let base = json!({"id": "a", "client_base_url": "https://app.example.com", "client_sync_path": "",
        "client_auth": {"method": "bearer", "token": "hush"}, "rate_limits": {"hourly": 0, "daily": null}});
    let made = post(&api, "/tenant", base).await.ok(200);
    assert_eq!(
        (&made["client_sync_path"], &made["client_attachment_path"]),
        (&json!("/mail-proxy/sync"), &json!("/mail-proxy/attachments")),
        "as there"
    );
    let ours = api.get("/v1/tenants/a").await.ok(200);
    assert_eq!(ours["client_sync"]["auth"]["type"], "bearer");
    assert_eq!(ours["attachment_endpoint"]["auth"]["type"], "bearer");
    assert_eq!(ours["callback_form"], "batch");
    let bare = json!({"id": "b", "client_auth": {"method": "none"}, "client_base_url": null, "rate_limits": null,
        "active": false});
    let made = post(&api, "/tenant", bare).await.ok(200);
    assert_eq!((&made["client_base_url"], &made["active"]), (&json!(null), &json!(false)));
    let sync = json!({"id": "b", "client_base_url": "https://b.example.com", "client_sync_path": "/in"});
    let changed = post(&api, "/tenant", sync).await.ok(200);
    assert_eq!(
        (&changed["client_sync_path"], &changed["client_attachment_path"]),
        (&json!("/in"), &json!("/mail-proxy/attachments"))
    );
    assert_eq!(api.get("/v1/tenants/b").await.ok(200)["callback_form"], "batch");
    for (body, field) in [
        (json!({"id": "c", "client_auth": {"method": "bearer", "token": "t"}}), "client_auth"),
        (json!({"id": "c", "rate_limits": {"hourly": 100}}), "rate_limits"),
        (json!({"id": "c", "rate_limits": 5}), "rate_limits"),
    ] {
        let answer = post(&api, "/tenant", body.clone()).await;
        let said = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(answer.status.as_u16() == 422 && said.starts_with(&format!("{field}: ")), "{body}: {said}");
    }
    let ids = async |query: &str| -> Vec<String> {
        let list = get(&api, &format!("/tenants{query}")).await;
        let tenants = list["tenants"].as_array().unwrap().iter();
        tenants.map(|tenant| tenant["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("?active_only=true").await, ["a", "default", "other"]);
    assert_eq!(ids("?active_only=false").await, ["a", "b", "default", "other"]);
}

#[tokio::test]
async fn a_blank_field_that_may_be_left_out_is_left_out() {
    let api = Api::start().await;
    let mut blank = mail("blank");
    let fields =
        json!({"tenant_id": "", "account_id": "", "batch_code": "", "cc": "", "bcc": "", "reply_to": ""});
    blank.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut nobody = blank.clone();
    nobody["id"] = json!("nobody");
    nobody["to"] = json!("");
    nobody["cc"] = json!("bob@example.net");
    let body = json!({"messages": [blank, nobody], "tenant_id": ""});
    let answer = post(&api, "/commands/add-messages", body).await.ok(200);
    assert_eq!((&answer["queued"], &answer["rejected"][0]["id"]), (&json!(1), &json!("nobody")), "{answer}");
    let ours = api.get("/v1/messages/blank").await.ok(200);
    assert_eq!((&ours["batch"], &ours["account"]), (&json!(null), &json!("sandbox")));
}

#[tokio::test]
async fn use_ssl_is_tls_from_the_first_byte() {
    let api = Api::start().await;
    for (id, account, tls) in [
        ("a", json!({"use_ssl": true}), "implicit"),
        ("b", json!({"use_ssl": true, "use_tls": false}), "implicit"),
        ("c", json!({"use_ssl": false, "use_tls": true}), "starttls"),
        ("d", json!({"use_ssl": null}), "opportunistic"),
    ] {
        let mut body = json!({"id": id, "host": "smtp.example.com", "port": 587});
        body.as_object_mut().unwrap().extend(account.as_object().unwrap().clone());
        post(&api, "/account", body).await.ok(200);
        assert_eq!(api.get(&format!("/v1/accounts/{id}")).await.ok(200)["tls"], tls, "{account}");
    }
    let wrong = json!({"id": "e", "host": "smtp.example.com", "use_ssl": "yes"});
    assert!(post(&api, "/account", wrong).await.json()["error"].as_str().unwrap().starts_with("use_ssl: "));
}

#[tokio::test]
async fn accounts_have_the_names_that_its_clients_know() {
    let api = Api::start().await;
    let account = json!({"id": "relay", "tenant_id": "other", "host": "smtp.example.com", "port": 587, "user": null,
        "password": null, "ttl": 300, "limit_per_minute": null, "limit_per_hour": 100, "limit_per_day": null,
        "limit_behavior": "reject", "use_tls": false, "batch_size": 50, "is_pec_account": true, "imap_host": null});
    let made = post(&api, "/account", account).await.ok(200);
    let list = get(&api, "/accounts?tenant_id=other").await;
    let shown = list["accounts"].as_array().unwrap().iter().find(|one| one["id"] == "relay").unwrap();
    for (name, value) in [
        ("tenant_id", json!("other")),
        ("host", json!("smtp.example.com")),
        ("port", json!(587)),
        ("user", Value::Null),
        ("limit_per_minute", Value::Null),
        ("limit_per_hour", json!(100)),
        ("limit_behavior", json!("reject")),
        ("use_tls", json!(false)),
        ("is_pec_account", json!(true)),
    ] {
        assert_eq!((shown.get(name), made.get(name)), (Some(&value), Some(&value)), "{name}");
    }
    assert!(shown.get("password").is_none());
    let unsaid = post(&api, "/account", json!({"id": "any", "host": "smtp.example.com"})).await.ok(200);
    assert_eq!((&unsaid["use_tls"], &unsaid["is_pec_account"]), (&json!(null), &json!(false)));
    let imap = json!({"id": "b", "host": "h", "imap_host": "imap.example.com", "imap_port": 993});
    let answer = post(&api, "/account", imap).await;
    let error = answer.json()["error"].as_str().unwrap().to_owned();
    assert_eq!(answer.status.as_u16(), 422);
    assert!(error.starts_with("imap_host: ") && error.contains("/v1/mailboxes"), "{error}");
    let wrong = json!({"id": "b", "host": "h", "is_pec_account": "yes"});
    let error = post(&api, "/account", wrong).await.json()["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("is_pec_account: "), "{error}");
}

#[tokio::test]
async fn its_health_needs_no_token() {
    let api = Api::start().await;
    let request = Request::get("/compat/001/health").body(Body::empty()).unwrap();
    assert_eq!(api.ask(request).await.ok(200), json!({"status": "ok"}));
}
