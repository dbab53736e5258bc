//! Tenants and their keys: administration, and what a key may do.

use axum::{body::Body, http::Request};
use postway_api::RequestOrigin;
use postway_domain::{
    MessageState,
    RecipientStatus::{InDoubt, Pending},
    Tenant, TenantId,
    message::ScheduleReason,
    secret::SecretKey,
};
use postway_store::{DirectoryStore, record::DirectoryChange};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

fn acme() -> TenantId {
    "acme".parse().unwrap()
}

async fn with_acme() -> Api {
    let api = Api::start().await;
    api.post("/v1/tenants", json!({"id": "acme", "name": "Acme Ltd"})).await.ok(201);
    api
}

async fn from(api: &Api, address: &str, key: &str) -> Answer {
    let origin = RequestOrigin::direct(address.parse().unwrap());
    let request = Request::get("/v1/stats").header("x-api-key", key).extension(origin);
    api.ask(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_new_tenant_can_send_at_once_and_to_nobody() {
    let api = Api::start().await;
    let answer = api.post("/v1/tenants", json!({"id": "acme", "name": "Acme Ltd", "weight": 50})).await;
    assert_eq!(answer.headers["location"], "/v1/tenants/acme");
    let made = answer.ok(201);
    assert_eq!((&made["name"], &made["weight"]), (&json!("Acme Ltd"), &json!(50)));
    assert_eq!((&made["default_account"], &made["suspended"]), (&json!("sandbox"), &json!(false)));
    let key = api.key("acme", json!({})).await;
    let mail = json!({"from": "a@example.com", "to": "b@example.net", "text": "Hi"});
    api.as_key(&key, "POST", "/v1/messages", mail.to_string()).await.ok(202);
    let sent = api.as_key(&key, "GET", "/v1/messages", "").await.ok(200);
    assert_eq!(
        (&sent["data"][0]["tenant"], &sent["data"][0]["account"]),
        (&json!("acme"), &json!("sandbox"))
    );
    api.post("/v1/tenants", json!({"id": "acme"})).await.refused(409, "conflict");
    assert_eq!(
        api.post("/v1/tenants", json!({"id": "a b", "weight": 0})).await.wrong_fields(),
        ["id", "weight"]
    );
    let other = json!({"id": "b", "default_account": "relay", "version": 3});
    assert_eq!(api.post("/v1/tenants", other).await.wrong_fields(), ["version", "default_account"]);
}

#[tokio::test]
async fn a_tenants_own_key_reads_its_settings_and_changes_none() {
    let api = with_acme().await;
    let reader = api.key("acme", json!({"scopes": ["read"]})).await;
    let own = api.as_key(&reader, "GET", "/v1/tenant", "").await.ok(200);
    assert_eq!((&own["id"], &own["name"]), (&json!("acme"), &json!("Acme Ltd")));
    assert_eq!(own, api.get("/v1/tenants/acme").await.ok(200));
    api.as_key(&reader, "GET", "/v1/tenants/acme", "").await.refused(403, "forbidden");
    let sender = api.key("acme", json!({"scopes": ["send"]})).await;
    api.as_key(&sender, "GET", "/v1/tenant", "").await.refused(403, "forbidden");
    assert_eq!(api.get("/v1/tenant").await.ok(200)["id"], "default");
}

#[tokio::test]
async fn a_change_is_merged_and_can_be_bound_to_a_version() {
    let api = with_acme().await;
    let patch = |body: Value| api.call("PATCH", "/v1/tenants/acme", body.to_string());
    let changed = patch(json!({"content": {"subject_chars": 100}, "retention_days": 30})).await.ok(200);
    assert_eq!((&changed["name"], &changed["version"]), (&json!("Acme Ltd"), &json!(2)));
    let changed = patch(json!({"content": {"html_bytes": 9}, "retention_days": null})).await.ok(200);
    let content = json!({"subject_chars": 100, "html_bytes": 9, "message_bytes": null, "html_required": false, "auto_text": false});
    assert_eq!(changed["content"], content);
    assert_eq!(changed["retention_days"], json!(null));
    let shown = api.get("/v1/tenants/acme").await.ok(200);
    assert_eq!(patch(shown.clone()).await.ok(200)["version"], 4, "what is shown may be sent back");
    patch(shown).await.refused(409, "conflict");
    assert_eq!(patch(json!({"default_account": "none"})).await.wrong_fields(), ["default_account"]);
    assert_eq!(patch(json!({"suspended": true, "colour": 1})).await.wrong_fields(), ["suspended", "colour"]);
    let changes =
        [json!({"weight": 7}), json!({"bounce_domain": "b.example"}), json!({"large_files": "link"})];
    futures::future::join_all(changes.map(patch)).await;
    let now = api.get("/v1/tenants/acme").await.ok(200);
    assert_eq!(
        (&now["weight"], &now["bounce_domain"], &now["large_files"]["policy"]),
        (&json!(7), &json!("b.example"), &json!("rewrite"))
    );
    api.call("PATCH", "/v1/tenants/none", "{}").await.refused(404, "not_found");
    let misspelt = json!({"colour": null, "content": {"html_byte": null, "html_bytes": null}});
    assert_eq!(patch(misspelt).await.wrong_fields(), ["colour", "content.html_byte"]);
    let reset = patch(json!({"version": null, "weight": null, "content": null})).await.ok(200);
    assert_eq!((&reset["weight"], &reset["content"]["html_bytes"]), (&json!(100), &json!(null)));
}

#[tokio::test]
async fn what_is_done_with_large_files_can_be_set_by_a_word_or_in_full() {
    let api = with_acme().await;
    let patch = |body: Value| api.patch("/v1/tenants/acme", body);
    let full = json!({"policy": "warn", "above_bytes": 5_000_000, "link_days": 7});
    assert_eq!(patch(json!({"large_files": full})).await.ok(200)["large_files"], full);
    let changed = patch(json!({"large_files": "rewrite"})).await.ok(200);
    assert_eq!(
        changed["large_files"],
        json!({"policy": "rewrite", "above_bytes": 5_000_000, "link_days": 7})
    );
    assert_eq!(patch(json!({"large_files": {"link_days": 4_000}})).await.wrong_fields(), ["large_files"]);
    assert_eq!(patch(json!({"large_files": null})).await.ok(200)["large_files"]["policy"], "reject");
}

#[tokio::test]
async fn headers_and_envelope_of_a_tenant_can_be_set() {
    let api = with_acme().await;
    let set = json!({
        "return_path": "bounces@example.com", "feedback_id": "acme-mail", "auto_submitted": true,
        "content": {"html_required": true, "auto_text": true},
    });
    let tenant = api.patch("/v1/tenants/acme", set.clone()).await.ok(200);
    for field in ["return_path", "feedback_id", "auto_submitted"] {
        assert_eq!(tenant[field], set[field], "{field}");
    }
    assert_eq!(tenant["content"]["html_required"], true);
    assert_eq!(tenant["content"]["auto_text"], true);
    let wrong = json!({"return_path": "nobody", "feedback_id": "a b", "auto_submitted": "yes"});
    let fields = api.patch("/v1/tenants/acme", wrong).await.wrong_fields();
    assert_eq!(fields, ["auto_submitted", "return_path", "feedback_id"]);
}

#[tokio::test]
async fn secrets_are_sealed_kept_and_never_shown() {
    let api = with_acme().await;
    let auth = json!({"type": "basic", "username": "u", "password": "hunter2"});
    let patch = json!({
        "client_sync": {"url": "https://app.example", "path": "/in", "auth": {"type": "bearer", "token": "t0ken"}},
        "attachment_endpoint": {"url": "https://files.example", "auth": auth},
    });
    let answer = api.call("PATCH", "/v1/tenants/acme", patch.to_string()).await;
    let changed = answer.ok(200);
    assert_eq!(
        changed["client_sync"]["auth"],
        json!({"type": "bearer", "username": null, "has_secret": true})
    );
    let opened = || async {
        let stored = api.store.tenant(&acme()).await.unwrap().unwrap();
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let text = stored.secret.map(|sealed| key.open(&Tenant::sealing_context(&acme()), &sealed).unwrap());
        text.map(|text| serde_json::from_str::<Value>(&text).unwrap())
    };
    assert_eq!(opened().await, Some(json!({"client_sync": "t0ken", "attachment_endpoint": "hunter2"})));
    api.call(
        "PATCH",
        "/v1/tenants/acme",
        r#"{"client_sync": {"path": "/out"}, "attachment_endpoint": null}"#,
    )
    .await
    .ok(200);
    assert_eq!(opened().await, Some(json!({"client_sync": "t0ken"})));
    let audit = api.get("/v1/audit").await;
    for body in [&answer.body, &audit.body, &api.get("/v1/tenants").await.body] {
        let text = String::from_utf8_lossy(body);
        assert!(!text.contains("t0ken") && !text.contains("hunter2"), "{text}");
    }
    api.call("PATCH", "/v1/tenants/acme", r#"{"client_sync": null}"#).await.ok(200);
    assert_eq!(opened().await, None);
}

#[tokio::test]
async fn what_would_not_be_called_is_refused_at_once() {
    let api = with_acme().await;
    let private = json!({"client_sync": {"url": "http://127.0.0.1:9/"}, "attachment_endpoint": {"url": "http://localhost/"}});
    let both = ["client_sync.url", "attachment_endpoint.url"];
    assert_eq!(api.patch("/v1/tenants/acme", private.clone()).await.wrong_fields(), both);
    let mut made = private;
    made["id"] = json!("globex");
    assert_eq!(api.post("/v1/tenants", made).await.wrong_fields(), both);
    let none = json!({"client_sync": {"url": "https://"}});
    assert_eq!(api.patch("/v1/tenants/acme", none).await.wrong_fields(), ["client_sync.url"]);
    // Named while its network was allowed: what is about something else goes through.
    let mut tenant = api.store.tenant(&acme()).await.unwrap().unwrap();
    tenant.settings.client_sync = serde_json::from_value(json!({"url": "http://127.0.0.1:9/"})).unwrap();
    tenant.version += 1;
    let before = tenant.version - 1;
    api.store.change(DirectoryChange::UpdateTenant(tenant, before), None).await.unwrap();
    api.patch("/v1/tenants/acme", json!({"name": "Acme", "client_sync": {"path": "/in"}})).await.ok(200);
}

#[tokio::test]
async fn a_tenant_is_deleted_after_confirmation_and_gone_at_once() {
    let api = with_acme().await;
    let key = api.key("acme", json!({})).await;
    api.as_key(&key, "GET", "/v1/stats", "").await.ok(200);
    let wrong = api.call("DELETE", "/v1/tenants/acme", "").await.refused(422, "validation_error");
    assert!(wrong["message"].as_str().unwrap().contains("?confirm=acme"), "{wrong}");
    api.call("DELETE", "/v1/tenants/default?confirm=default", "").await.refused(409, "conflict");
    assert_eq!(api.call("DELETE", "/v1/tenants/acme?confirm=acme", "").await.status.as_u16(), 204);
    for path in ["/v1/tenants/acme", "/v1/tenants/acme/keys"] {
        api.get(path).await.refused(404, "not_found");
    }
    api.call("DELETE", "/v1/tenants/acme?confirm=acme", "").await.refused(404, "not_found");
    api.as_key(&key, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    api.in_tenant("acme", "GET", "/v1/stats", "").await.refused(404, "not_found");
    let again = async |id: &str| {
        let refused = api.post("/v1/tenants", json!({"id": id})).await.refused(409, "conflict");
        refused["message"].as_str().unwrap().to_owned()
    };
    let (gone, there) = (again("acme").await, again("other").await);
    assert!(gone.contains("there was") && !gone.contains("change that one"), "{gone}");
    assert!(there.contains("there is") && there.contains("change that one"), "{there}");
    let list = api.get("/v1/tenants").await.ok(200);
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["default", "other"]);
}

#[tokio::test]
async fn tenants_come_in_pages() {
    let api = with_acme().await;
    let first = api.get("/v1/tenants?limit=2").await.ok(200);
    assert_eq!((&first["data"][0]["id"], &first["data"][1]["id"]), (&json!("acme"), &json!("default")));
    let rest =
        api.get(&format!("/v1/tenants?cursor={}", first["next_cursor"].as_str().unwrap())).await.ok(200);
    assert_eq!((&rest["data"][0]["id"], &rest["next_cursor"]), (&json!("other"), &json!(null)));
    api.get("/v1/tenants?cursor=7").await.refused(400, "malformed_request");
}

#[tokio::test]
async fn a_suspended_tenant_holds_its_mail_and_still_takes_some() {
    let api = Api::start().await;
    api.stored("m", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    let answer = api.post("/v1/tenants/default/suspend", json!({})).await.ok(200);
    assert_eq!(
        (&answer["suspended"], &answer["suspended_since"]),
        (&json!(true), &json!("2023-11-14T22:13:20.000Z"))
    );
    api.post("/v1/tenants/default/suspend", json!({})).await.ok(200);
    assert_eq!(api.get("/v1/messages/m").await.ok(200)["held_by"], json!(["tenant"]));
    assert_eq!(api.get("/v1/stats").await.ok(200)["held"], 1);
    assert_eq!(api.post("/v1/tenants/default/activate", json!({})).await.ok(200)["suspended"], false);
    assert_eq!(api.get("/v1/messages/m").await.ok(200)["held_by"], json!([]));
    api.post("/v1/tenants/none/suspend", json!({})).await.refused(404, "not_found");
    let audit = api.get("/v1/audit").await.ok(200);
    assert_eq!(audit["data"].as_array().unwrap().len(), 2, "what changed nothing is not recorded: {audit}");
}

#[tokio::test]
async fn a_key_is_shown_once_and_opens_its_own_tenant() {
    let api = with_acme().await;
    let body = json!({"name": "shop", "scopes": ["read", "send"], "allow_ips": ["10.0.0.0/8", "::1"]});
    let made = api.post("/v1/tenants/acme/keys", body).await.ok(201);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with(&format!("pw_{id}_")), "{key}");
    let list = api.get("/v1/tenants/acme/keys").await;
    assert!(!String::from_utf8_lossy(&list.body).contains(key));
    let shown = &list.ok(200)["data"][0];
    assert_eq!(
        (&shown["prefix"], &shown["scopes"]),
        (&json!(format!("pw_{id}_…")), &json!(["send", "read"]))
    );
    assert_eq!(shown["allow_ips"], json!(["10.0.0.0/8", "::1/128"]));
    for (body, fields) in [
        (json!({"scopes": []}), &["scopes"][..]),
        (json!({"scopes": ["all"], "x": 1}), &["scopes", "x"]),
        (json!({"expires_at": 1_600_000_000}), &["expires_at"]),
        (json!({"allow_ips": ["10.0.0.0/99"]}), &["allow_ips"]),
        (json!({"allowed_senders": ["*"]}), &["allowed_senders"]),
        (json!({"allowed_recipients": vec!["a.example"; 201]}), &["allowed_recipients"]),
    ] {
        assert_eq!(api.post("/v1/tenants/acme/keys", body.clone()).await.wrong_fields(), fields, "{body}");
    }
    api.post("/v1/tenants/none/keys", json!({})).await.refused(404, "not_found");
    from(&api, "10.1.2.3", key).await.ok(200);
    from(&api, "192.0.2.1", key).await.refused(403, "forbidden");
    api.as_key(key, "GET", "/v1/stats", "").await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_tenant_and_a_key_send_from_and_to_whom_they_are_bound_to() {
    let api = with_acme().await;
    let bound = json!({"allowed_senders": ["Example.com", "*.example.com"], "bind_reply_to": true});
    let shown = api.patch("/v1/tenants/acme", bound).await.ok(200);
    assert_eq!(shown["allowed_senders"], json!(["example.com", "*.example.com"]));
    assert_eq!(
        api.patch("/v1/tenants/acme", json!({"allowed_senders": ["a b"]})).await.wrong_fields(),
        ["allowed_senders"]
    );
    let key = json!({"scopes": ["send"], "allowed_senders": ["shop@example.com"], "allowed_recipients": ["test.example"]});
    let key = api.key("acme", key).await;
    let send = async |from: &str, to: &str| {
        let mail = json!({"from": from, "to": to, "subject": "s", "text": "t"}).to_string();
        api.as_key(&key, "POST", "/v1/messages", mail).await
    };
    send("shop@example.com", "a@test.example").await.ok(202);
    let refused = send("ceo@example.com", "a@test.example").await;
    assert_eq!(refused.json()["error"]["details"][0]["code"], "SENDER_NOT_ALLOWED");
    refused.refused(403, "forbidden");
    send("shop@bank.example", "a@test.example").await.refused(403, "forbidden");
    let refused = send("shop@example.com", "customer@example.net").await;
    assert_eq!(refused.json()["error"]["details"][0]["check"], "ALLOWANCE");
    refused.refused(403, "forbidden");
    let listed = api.get("/v1/tenants/acme/keys").await.ok(200);
    assert_eq!(listed["data"][0]["allowed_recipients"], json!(["test.example"]), "{listed}");
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say_and_no_more() {
    let api = with_acme().await;
    for scope in ["send", "read", "manage"] {
        let key = api.key("acme", json!({"scopes": [scope]})).await;
        for (method, path, needs) in [
            ("POST", "/v1/messages", "send"),
            ("POST", "/v1/messages/batch", "send"),
            ("POST", "/v1/templates/x/test", "send"),
            ("POST", "/v1/messages/x/cancel", "send"),
            ("POST", "/v1/messages/x/retry", "send"),
            ("POST", "/v1/messages/x/reschedule", "send"),
            ("POST", "/v1/messages/x/resolve", "send"),
            ("POST", "/v1/dead-letters/replay", "send"),
            ("GET", "/v1/messages", "read"),
            ("GET", "/v1/messages/x/raw", "read"),
            ("GET", "/v1/dead-letters", "read"),
            ("GET", "/v1/stats", "read"),
            ("GET", "/v1/batches", "read"),
            ("GET", "/v1/suppressions", "read"),
            ("GET", "/v1/suppressions/export", "read"),
            ("GET", "/v1/messages/x/payload", "read"),
            ("GET", "/v1/templates", "read"),
            ("POST", "/v1/templates/x/preview", "read"),
            ("POST", "/v1/templates/preview", "read"),
            ("GET", "/v1/recipients", "read"),
            ("GET", "/v1/dkim", "read"),
            ("POST", "/v1/templates", "manage"),
            ("PUT", "/v1/templates/x", "manage"),
            ("DELETE", "/v1/templates/x", "manage"),
            ("POST", "/v1/recipients", "manage"),
            ("PATCH", "/v1/recipients/external:x", "manage"),
            ("DELETE", "/v1/recipients/external:x", "manage"),
            ("POST", "/v1/dkim", "manage"),
            ("POST", "/v1/dkim/example.com/s/suspend", "manage"),
            ("DELETE", "/v1/dkim/example.com/s", "manage"),
            ("POST", "/v1/batches/b/suspend", "manage"),
            ("POST", "/v1/suppressions", "manage"),
            ("DELETE", "/v1/suppressions/a@example.net", "manage"),
            ("POST", "/v1/accounts", "manage"),
        ] {
            let answer = api.as_key(&key, method, path, "{}").await;
            let refused = answer.status.as_u16() == 403;
            assert_eq!(refused, scope != needs, "{scope}: {method} {path}: {}", answer.status);
            if refused {
                let error = answer.refused(403, "forbidden");
                assert!(error["message"].as_str().unwrap().contains(&format!("`{needs}`")), "{error}");
            }
        }
    }
    let key = api.key("acme", json!({})).await;
    for path in ["/v1/tenants", "/v1/tenants/acme", "/v1/tenants/none/keys", "/v1/audit", "/v1/nodes"] {
        api.as_key(&key, "GET", path, "").await.refused(403, "forbidden");
    }
    let request = Request::get("/v1/messages").header("x-api-key", &key).header("x-tenant", "default");
    api.ask(request.body(Body::empty()).unwrap()).await.ok(200);
}

#[tokio::test]
async fn a_key_that_is_over_opens_nothing() {
    let api = with_acme().await;
    let expiring = api.key("acme", json!({"expires_at": 1_700_000_060})).await;
    let made = api.post("/v1/tenants/acme/keys", json!({})).await.ok(201);
    let (id, revoked) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    for key in [expiring.as_str(), revoked] {
        api.as_key(key, "GET", "/v1/stats", "").await.ok(200);
    }
    api.clock.forward_ms(60_000);
    api.as_key(&expiring, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    let path = format!("/v1/tenants/acme/keys/{id}");
    api.call("DELETE", &format!("/v1/tenants/other/keys/{id}"), "").await.refused(404, "not_found");
    assert_eq!(api.call("DELETE", &path, "").await.status.as_u16(), 204);
    api.as_key(revoked, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    api.as_key(revoked, "GET", "/v1/tenants", "").await.refused(401, "unauthorized");
    api.call("DELETE", &path, "").await.refused(404, "not_found");
    for wrong in [&revoked[..revoked.len() - 1], "pw_", "pw_x_y", KEY.trim_start_matches('t')] {
        api.as_key(wrong, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn when_a_key_was_used_is_written_apart_from_the_request() {
    let api = with_acme().await;
    let key = api.key("acme", json!({})).await;
    for _ in 0..3 {
        api.as_key(&key, "GET", "/v1/stats", "").await.ok(200);
    }
    let used = || async { api.store.keys(&acme()).await.unwrap()[0].last_used_at };
    let wait = async {
        while used().await.is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), wait).await.unwrap();
    assert_eq!(used().await, Some(postway_domain::Clock::now(&*api.clock)));
}

#[tokio::test]
async fn every_management_call_is_recorded_with_who_and_by_which_request() {
    let api = with_acme().await;
    let key = api.key("acme", json!({"name": "ops"})).await;
    let request =
        Request::post("/v1/batches/b-1/suspend").header("x-api-key", &key).header("x-request-id", "req-9");
    api.ask(request.body(Body::empty()).unwrap()).await.ok(200);
    api.clock.forward_ms(1_000);
    let body = json!({"addresses": ["a@example.net", "b@example.net"]});
    api.as_key(&key, "POST", "/v1/suppressions", body.to_string()).await.ok(201);
    let page = api.get("/v1/audit?tenant=acme&limit=2").await.ok(200);
    let told: Vec<(&str, &str)> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["target"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("suppression.create", "2 addresses"), ("batch.suspend", "b-1")]);
    let entry = &page["data"][1];
    assert!(entry["actor"].as_str().unwrap().starts_with("key:"), "{entry}");
    assert_eq!((&entry["request_id"], &entry["tenant"]), (&json!("req-9"), &json!("acme")));
    let rest = api.get(&format!("/v1/audit?cursor={}", page["next_cursor"].as_str().unwrap())).await.ok(200);
    let actions: Vec<&str> =
        rest["data"].as_array().unwrap().iter().map(|e| e["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["key.create", "tenant.create"]);
    assert_eq!(rest["data"][1]["actor"], "admin");

    let lines = api.get("/v1/audit?format=jsonl").await;
    assert_eq!(lines.headers["content-type"], "application/x-ndjson");
    let text = String::from_utf8(lines.body.to_vec()).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 4);
    assert!(!text.contains(&key));
    let request = Request::get("/v1/audit?tenant=other")
        .header("x-api-key", KEY)
        .header("accept", "application/x-ndjson");
    assert!(api.ask(request.body(Body::empty()).unwrap()).await.body.is_empty());
    assert_eq!(api.get("/v1/audit?format=xml").await.wrong_fields(), ["format"]);
}

#[tokio::test]
async fn a_key_that_sends_and_does_not_read_learns_nothing_of_what_it_steers() {
    let api = Api::start().await;
    let (sends, both) = (
        api.key("default", json!({"scopes": ["send"]})).await,
        api.key("default", json!({"scopes": ["send", "read"]})).await,
    );
    let one = [("secret-recipient@example.net", Pending)];
    for (verb, state, body, then) in [
        ("cancel", MessageState::Ready, json!({}), "cancelled"),
        ("retry", MessageState::Scheduled(ScheduleReason::Retry), json!({}), "ready"),
        (
            "reschedule",
            MessageState::Scheduled(ScheduleReason::SendAt),
            json!({"send_at": 1_700_092_800}),
            "scheduled",
        ),
        ("resolve", MessageState::InDoubt, json!({"outcome": "sent"}), "sent"),
    ] {
        for (key, reads) in [(&sends, false), (&both, true)] {
            let id = format!("{verb}-{reads}");
            let recipients = if verb == "resolve" { [(one[0].0, InDoubt)] } else { one };
            let uid = api.stored(&id, state, &recipients).await.to_string();
            let path = format!("/v1/messages/{id}/{verb}");
            let answer = api.as_key(key, "POST", &path, body.to_string()).await.ok(200);
            assert_eq!((&answer["uid"], &answer["status"]), (&json!(uid), &json!(then)), "{verb}");
            let fields = answer.as_object().unwrap().len();
            assert_eq!(fields > 2, reads, "{verb} shows {answer}");
            assert_eq!(answer.to_string().contains("secret-recipient"), reads, "{verb} shows {answer}");
        }
    }
    // Compatibility APIs answer with ids and states only.
    for (method, path, body) in [
        ("POST", "/compat/000/emails/{id}/requeue", json!({})),
        ("POST", "/compat/000/emails/requeue", json!({"stale": true, "older_than_seconds": 0})),
        ("POST", "/compat/resend/emails/{id}/cancel", json!({})),
        ("POST", "/compat/001/commands/delete-messages", json!({"ids": ["{id}"]})),
        ("POST", "/v1/dead-letters/replay", json!({"ids": ["{id}"]})),
    ] {
        let id = path.replace(['/', '{', '}'], "-");
        api.stored(&id, MessageState::Ready, &one).await;
        let (path, body) = (path.replace("{id}", &id), body.to_string().replace("{id}", &id));
        let answer = api.as_key(&sends, method, &path, body).await;
        assert!(answer.status.is_success(), "{path}: {:?}", answer.body);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("secret-recipient") && !text.contains("Hello"), "{path}: {text}");
    }
}
