//! Mailboxes: created, changed, tested, suspended, and shown with their state.

use postway_domain::{Clock, WatchedMailbox, secret::SecretKey};
use postway_store::{
    InboundStore,
    record::{MailboxKey, MailboxNote},
};
use serde_json::{Value, json};

use crate::support::Api;

fn key_of(id: &str) -> MailboxKey {
    MailboxKey { tenant: "default".parse().unwrap(), mailbox: id.parse().unwrap() }
}

/// The secrets as the store keeps them.
async fn kept(api: &Api, id: &str) -> Value {
    let (mailbox, _) = api.store.mailbox(&key_of(id)).await.unwrap().unwrap();
    let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    serde_json::from_str(&key.open(&place, &mailbox.secret.unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_mailbox_is_made_with_defaults_and_never_shows_its_secrets() {
    let api = Api::start().await;
    let body = json!({"host": "imap.example.com", "username": "u", "password": "hidden-1",
        "proxy": "socks5://p@proxy.example.com:1080", "proxy_password": "hidden-2", "role": "bounces"});
    let answer = api.post("/v1/mailboxes", body).await;
    let made = answer.ok(201);
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("mbx_"), "{id}");
    assert_eq!(answer.headers["location"], format!("/v1/mailboxes/{id}"));
    assert_eq!(
        (&made["port"], &made["tls"], &made["folder"]),
        (&json!(993), &json!("implicit"), &json!("INBOX"))
    );
    assert_eq!(
        (&made["roles"], &made["start"], &made["active"]),
        (&json!(["bounces"]), &json!("now"), &json!(true))
    );
    assert_eq!((&made["password_set"], &made["token_set"]), (&json!(true), &json!(false)));
    assert_eq!(kept(&api, id).await, json!({"password": "hidden-1", "proxy_password": "hidden-2"}));
    for path in ["/v1/mailboxes".to_owned(), format!("/v1/mailboxes/{id}"), "/v1/audit".to_owned()] {
        let shown = api.get(&path).await;
        assert!(!String::from_utf8_lossy(&shown.body).contains("hidden"), "{path}");
    }
    assert_eq!(api.get("/v1/mailboxes").await.ok(200)["data"][0]["id"], *id);
}

#[tokio::test]
async fn what_is_wrong_with_a_mailbox_is_named() {
    let api = Api::start().await;
    for (body, fields) in [
        (json!({}), &["host", "username", "password"][..]),
        (json!({"id": "a b", "host": "h", "username": "u", "password": "p"}), &["id"]),
        (json!({"host": "h", "username": "u", "password": "p", "start": {"newest": 0}}), &["start"]),
        (json!({"host": "h", "username": "u", "password": "p", "role": "spam"}), &["role"]),
    ] {
        assert_eq!(api.post("/v1/mailboxes", body.clone()).await.wrong_fields(), fields, "{body}");
    }
}

#[tokio::test]
async fn two_mailboxes_cannot_watch_one_folder() {
    let api = Api::start().await;
    api.mailbox("a", json!({"username": "u"})).await;
    let same = json!({"id": "b", "host": "IMAP.example.com", "username": "u", "password": "p"});
    api.post("/v1/mailboxes", same).await.refused(409, "conflict");
    let id = json!({"id": "a", "host": "other.example.com", "username": "u", "password": "p"});
    let error = api.post("/v1/mailboxes", id).await.refused(409, "conflict");
    assert!(error["message"].as_str().unwrap().contains("`a`"));
    api.mailbox("c", json!({"username": "u", "folder": "Bounces"})).await;
    api.patch("/v1/mailboxes/c", json!({"folder": "INBOX"})).await.refused(409, "conflict");
}

#[tokio::test]
async fn a_change_leaves_what_is_not_given_and_minds_the_version() {
    let api = Api::start().await;
    api.mailbox("a", json!({"description": "x", "poll_seconds": 30})).await;
    let changed =
        api.patch("/v1/mailboxes/a", json!({"description": null, "token": "hidden-t"})).await.ok(200);
    assert_eq!((&changed["description"], &changed["poll_seconds"]), (&Value::Null, &json!(30)));
    assert_eq!(
        (&changed["auth"], &changed["token_set"], &changed["version"]),
        (&json!("xoauth2"), &json!(true), &json!(2))
    );
    assert_eq!(kept(&api, "a").await, json!({"token": "hidden-t"}));
    api.patch("/v1/mailboxes/a", json!({"active": false, "version": 1})).await.refused(409, "conflict");
    let shown = api.get("/v1/mailboxes/a").await.ok(200);
    assert_eq!(api.patch("/v1/mailboxes/a", shown.clone()).await.ok(200)["host"], shown["host"]);
    assert_eq!(api.patch("/v1/mailboxes/a", json!({"colour": 1})).await.wrong_fields(), ["colour"]);
    api.patch("/v1/mailboxes/none", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn no_key_names_a_private_host_and_a_tenants_speaks_for_no_other_tenant() {
    let api = Api::start().await;
    let key = api.key("default", json!({"scopes": ["manage", "read"]})).await;
    let wrong =
        async |body: Value| api.as_key(&key, "POST", "/v1/mailboxes", body.to_string()).await.wrong_fields();
    let admin_wrong = async |body: Value| api.post("/v1/mailboxes", body).await.wrong_fields();
    let private = json!({"id": "a", "host": "127.0.0.1", "username": "u", "password": "p"});
    assert_eq!(wrong(private.clone()).await, ["host"]);
    assert_eq!(admin_wrong(private.clone()).await, ["host"]);
    let mut proxied = private.clone();
    (proxied["host"], proxied["proxy"]) = (json!("imap.example.com"), json!("socks5://127.0.0.1:1080"));
    assert_eq!(wrong(proxied.clone()).await, ["proxy"]);
    assert_eq!(admin_wrong(proxied).await, ["proxy"]);
    let mut everybody = private.clone();
    (everybody["host"], everybody["all_tenants"]) = (json!("imap.example.com"), json!(true));
    assert_eq!(wrong(everybody.clone()).await, ["all_tenants"]);

    let harmless = json!({"description": "x"}).to_string();
    everybody["id"] = json!("all");
    api.post("/v1/mailboxes", everybody).await.ok(201);
    api.as_key(&key, "PATCH", "/v1/mailboxes/all", harmless).await.refused(403, "forbidden");
}

#[tokio::test]
async fn how_a_mailbox_stands_is_shown() {
    let api = Api::start().await;
    let fresh = api.mailbox("a", json!({})).await;
    for field in ["last_scanned_at", "lag", "error", "uid_validity", "last_seen_uid"] {
        assert_eq!(fresh[field], Value::Null, "{field}");
    }
    api.arrived("a", "Subject: x\r\n\r\n").await;
    let note = |error: Option<&str>| MailboxNote {
        key: key_of("a"),
        at: api.clock.now(),
        uid_next: Some(5),
        error: error.map(str::to_owned),
    };
    api.store.note_mailbox(note(None)).await.unwrap();
    let shown = api.get("/v1/mailboxes/a").await.ok(200);
    assert_eq!(
        (&shown["uid_validity"], &shown["last_seen_uid"], &shown["lag"]),
        (&json!(7), &json!(1), &json!(3))
    );
    assert!(shown["last_scanned_at"].is_string());
    api.store.note_mailbox(note(Some("login refused"))).await.unwrap();
    let listed = &api.get("/v1/mailboxes").await.ok(200)["data"][0];
    assert_eq!(listed["error"], "login refused");
    assert!(listed["error_since"].is_string());
}

#[tokio::test]
async fn a_mailbox_is_tried_suspended_activated_and_deleted() {
    let api = Api::start().await;
    api.mailbox("a", json!({})).await;
    api.mailbox("down", json!({})).await;
    let tested = api.post("/v1/mailboxes/a/test", json!({})).await.ok(200);
    assert_eq!((&tested["ok"], &tested["steps"][0]["step"]), (&json!(true), &json!("connect")));
    assert_eq!(api.post("/v1/mailboxes/down/test", json!({})).await.ok(200)["ok"], false);
    let suspended = api.post("/v1/mailboxes/a/suspend", json!({})).await.ok(200);
    assert_eq!((&suspended["active"], &suspended["version"]), (&json!(false), &json!(2)));
    assert_eq!(api.post("/v1/mailboxes/a/suspend", json!({})).await.ok(200)["version"], 2);
    assert_eq!(api.post("/v1/mailboxes/a/activate", json!({})).await.ok(200)["active"], true);
    api.mailbox("other", json!({})).await;
    assert_eq!(api.delete("/v1/mailboxes/a").await, 204);
    assert_eq!(api.delete("/v1/mailboxes/a").await, 404);
    api.get("/v1/mailboxes/a").await.refused(404, "not_found");
}

#[tokio::test]
async fn reading_needs_read_and_changing_needs_manage() {
    let api = Api::start().await;
    api.mailbox("a", json!({})).await;
    let reader = api.key("default", json!({"scopes": ["read"]})).await;
    assert_eq!(api.as_key(&reader, "GET", "/v1/mailboxes/a", "").await.status, 200);
    for (method, path) in [
        ("POST", "/v1/mailboxes"),
        ("PATCH", "/v1/mailboxes/a"),
        ("DELETE", "/v1/mailboxes/a"),
        ("POST", "/v1/mailboxes/a/test"),
        ("POST", "/v1/mailboxes/a/suspend"),
        ("POST", "/v1/rules"),
        ("POST", "/v1/contacts"),
        ("POST", "/v1/inbound/0192d3a4-5b6c-7d8e-9f01-23456789abcd/replay"),
        ("POST", "/v1/inbound/0192d3a4-5b6c-7d8e-9f01-23456789abcd/resolve"),
    ] {
        api.as_key(&reader, method, path, "{}").await.refused(403, "forbidden");
    }
}
