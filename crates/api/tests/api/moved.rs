//! A stored secret cannot be obtained by changing its destination: a password is sent only where it was meant
//! for, whichever key asks.

use serde_json::{Value, json};

use crate::support::{Api, KEY};

const PEM: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

/// Both keys that may change a tenant's things.
async fn keys(api: &Api) -> [String; 2] {
    [api.key("default", json!({"scopes": ["manage", "read"]})).await, KEY.to_owned()]
}

/// Makes changes that must be refused for this field, by every key, and are taken with the secret; all from
/// the same start.
async fn refuses(api: &Api, path: &str, secret: (&str, &str), changes: &[Value]) {
    for key in keys(api).await {
        for change in changes {
            let before = api.get(path).await.ok(200);
            let refused = api.as_key(&key, "PATCH", path, change.to_string()).await;
            assert_eq!(refused.wrong_fields(), [secret.0], "{change}");
            let after = api.get(path).await.ok(200);
            assert_eq!(after["version"], before["version"], "{change}");
        }
    }
    for change in changes {
        let mut with_it = change.clone();
        with_it[secret.0] = json!(secret.1);
        api.patch(path, with_it).await.ok(200);
    }
}

#[tokio::test]
async fn a_password_is_not_sent_to_another_relay_nor_less_protected() {
    let api = Api::start().await;
    let relay =
        json!({"id": "corp", "host": "smtp.example.com", "port": 587, "username": "u", "password": "hush"});
    api.post("/v1/accounts", relay).await.ok(201);
    let changes = [
        json!({"host": "smtp.evil.example", "port": 2525, "tls": "none", "allow_plaintext_auth": true}),
        json!({"host": "mail.example.com"}),
        json!({"port": 25}),
        json!({"port": null}),
        json!({"ca_pem": PEM}),
        json!({"allow_plaintext_auth": true}),
        json!({"tls": "opportunistic"}),
        json!({"tls": "none"}),
    ];
    // The first leaves little to weaken: it is tried last.
    refuses(&api, "/v1/accounts/corp", ("password", "hush"), &changes[1..]).await;
    api.post(
        "/v1/accounts",
        json!({"id": "other", "host": "a.example", "username": "u", "password": "hush"}),
    )
    .await
    .ok(201);
    refuses(&api, "/v1/accounts/other", ("password", "hush"), &changes[..1]).await;
}

#[tokio::test]
async fn put_moves_no_password_either_and_what_is_stricter_needs_none() {
    let api = Api::start().await;
    let relay = json!({"id": "corp", "host": "smtp.example.com", "tls": "none", "username": "u", "password": "hush",
        "allow_plaintext_auth": true, "ca_pem": PEM});
    api.post("/v1/accounts", relay).await.ok(201);
    let moved = api.put("/v1/accounts/corp", json!({"host": "smtp.evil.example", "username": "u"})).await;
    assert_eq!(moved.wrong_fields(), ["password"]);
    assert!(moved.json()["error"]["details"].to_string().contains("`host` changes"), "{}", moved.json());
    let strict = json!({"host": "SMTP.example.com", "username": "v"});
    let strict = api.put("/v1/accounts/corp", strict).await.ok(200);
    assert_eq!((&strict["password_set"], &strict["tls"]), (&json!(true), &json!("starttls")));
    // Without a password there is nothing to have.
    api.patch("/v1/accounts/corp", json!({"username": null})).await.ok(200);
    api.patch("/v1/accounts/corp", json!({"host": "other.example.com", "tls": "none"})).await.ok(200);
}

#[tokio::test]
async fn a_secret_key_signs_for_no_other_region_or_endpoint() {
    let api = Api::start().await;
    let ses = json!({"id": "ses", "kind": "ses", "region": "eu-west-1", "access_key_id": "AKID",
        "secret_access_key": "hush"});
    api.post("/v1/accounts", ses).await.ok(201);
    let changes = [json!({"region": "us-east-1"}), json!({"endpoint": "http://ses.evil.example"})];
    refuses(&api, "/v1/accounts/ses", ("secret_access_key", "hush"), &changes).await;
    api.patch("/v1/accounts/ses", json!({"configuration_set": "c"})).await.ok(200);
}

#[tokio::test]
async fn a_mailbox_is_not_signed_in_to_elsewhere_with_what_is_stored() {
    let api = Api::start().await;
    api.mailbox("box", json!({"proxy": "socks5://me@proxy.example.com:1080", "proxy_password": "hush-too"}))
        .await;
    let changes = [
        json!({"host": "imap.evil.example"}),
        json!({"port": 143}),
        json!({"ca_pem": PEM}),
        json!({"tls": "none"}),
        json!({"proxy": null}),
    ];
    refuses(&api, "/v1/mailboxes/box", ("password", "hush"), &changes).await;
    api.patch("/v1/mailboxes/box", json!({"folder": "Bounces", "tls": "implicit"})).await.ok(200);
}

#[tokio::test]
async fn a_proxys_password_stays_with_its_proxy() {
    let api = Api::start().await;
    api.mailbox("box", json!({"proxy": "socks5://me@proxy.example.com:1080", "proxy_password": "hush-too"}))
        .await;
    let elsewhere = json!({"proxy": "socks5://me@evil.example:1080"});
    let refused = api.patch("/v1/mailboxes/box", elsewhere.clone()).await;
    assert_eq!(refused.wrong_fields(), ["password", "proxy_password"]);
    let mut half = elsewhere;
    half["password"] = json!("hush");
    assert_eq!(api.patch("/v1/mailboxes/box", half.clone()).await.wrong_fields(), ["proxy_password"]);
    half["proxy_password"] = json!(null);
    api.patch("/v1/mailboxes/box", half).await.ok(200);
}

#[tokio::test]
async fn a_tenants_token_goes_to_no_other_server() {
    let api = Api::start().await;
    let auth = json!({"type": "basic", "username": "u", "password": "hush"});
    let places = json!({
        "client_sync": {"url": "https://app.example.com", "path": "/in", "auth": {"type": "bearer", "token": "hush"}},
        "attachment_endpoint": {"url": "https://files.example.com", "auth": auth},
    });
    let patch = async |body: Value| api.patch("/v1/tenants/default", body).await;
    patch(places).await.ok(200);
    for (change, field) in [
        (json!({"client_sync": {"url": "https://evil.example"}}), "client_sync.auth.token"),
        (json!({"client_sync": {"url": "http://app.example.com"}}), "client_sync.auth.token"),
        (
            json!({"attachment_endpoint": {"url": "https://evil.example"}}),
            "attachment_endpoint.auth.password",
        ),
    ] {
        assert_eq!(patch(change.clone()).await.wrong_fields(), [field], "{change}");
    }
    patch(json!({"client_sync": {"url": "https://app.example.com/mail", "path": "/out"}})).await.ok(200);
    let moved = json!({"client_sync": {"url": "https://new.example.com", "auth": {"token": "other"}}});
    patch(moved).await.ok(200);
}
