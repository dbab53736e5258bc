//! The way out of an account: its proxy, whose password is never shown and goes to no other, the address that
//! connections leave from, and the reports that it asks for.

use postway_domain::{Account, egress::ProxySetting, secret::SecretKey};
use postway_store::DirectoryStore;
use serde_json::{Value, json};

use crate::support::{Api, KEY};

fn proxied() -> Value {
    json!({"id": "relay-1", "host": "smtp.example.com", "proxy": "socks5://shop@proxy.example.com:1080",
        "proxy_password": "hunter2", "source_address": "192.0.2.9", "dsn": "notify=success ret=hdrs"})
}

async fn stored(api: &Api) -> Account {
    api.store.account(&"default".parse().unwrap(), &"relay-1".parse().unwrap()).await.unwrap().unwrap()
}

/// The password of the stored proxy, opened with this key.
async fn password(api: &Api, key: &SecretKey) -> Option<String> {
    let account = stored(api).await;
    let context = ProxySetting::account_context(&account.tenant, &account.id);
    account.settings.proxy.unwrap().open_password(key, &context).unwrap()
}

#[tokio::test]
async fn a_proxy_is_shown_and_its_password_never() {
    let api = Api::start().await;
    let answer = api.post("/v1/accounts", proxied()).await;
    let made = answer.ok(201);
    assert_eq!(made["proxy"], "socks5://shop@proxy.example.com:1080");
    assert_eq!((&made["proxy_password_set"], &made["source_address"]), (&json!(true), &json!("192.0.2.9")));
    assert_eq!(made["dsn"], "NOTIFY=SUCCESS RET=HDRS");
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    assert_eq!(password(&api, &key).await.as_deref(), Some("hunter2"));
    let shown = api.get("/v1/accounts/relay-1").await;
    for body in
        [&answer.body, &shown.body, &api.get("/v1/accounts").await.body, &api.get("/v1/audit").await.body]
    {
        assert!(!String::from_utf8_lossy(body).contains("hunter2"));
    }
    // What was shown can be sent back, and nothing changes.
    let put = api.call("PUT", "/v1/accounts/relay-1", shown.body.clone()).await.ok(200);
    assert_eq!((&put["proxy"], &put["proxy_password_set"]), (&made["proxy"], &json!(true)));
    assert_eq!(password(&api, &key).await.as_deref(), Some("hunter2"));
    let gone = api.patch("/v1/accounts/relay-1", json!({"proxy": null, "source_address": null, "dsn": null}));
    let gone = gone.await.ok(200);
    assert_eq!(
        (&gone["proxy"], &gone["proxy_password_set"], &gone["dsn"]),
        (&Value::Null, &json!(false), &Value::Null)
    );
}

#[tokio::test]
async fn passwords_stay_with_the_proxy_and_the_path_that_they_were_given_for() {
    let api = Api::start().await;
    let mut body = proxied();
    body["username"] = json!("shop");
    body["password"] = json!("relay-word");
    api.post("/v1/accounts", body).await.ok(201);
    let elsewhere = json!({"proxy": "socks5://shop@evil.example:1080"});
    let refused = api.patch("/v1/accounts/relay-1", elsewhere.clone()).await.wrong_fields();
    assert_eq!(refused, ["password"], "the relay's own password would pass it, too");
    let mut with_password = elsewhere;
    with_password["password"] = json!("relay-word");
    assert_eq!(
        api.patch("/v1/accounts/relay-1", with_password.clone()).await.wrong_fields(),
        ["proxy_password"]
    );
    with_password["proxy_password"] = json!("other");
    api.patch("/v1/accounts/relay-1", with_password).await.ok(200);
}

#[tokio::test]
async fn what_is_wrong_with_a_way_out_is_named() {
    let api = Api::start().await;
    for (fields, wrong) in [
        (json!({"proxy": "ftp://proxy.example"}), "proxy"),
        (json!({"proxy": "socks5://shop:hunter2@proxy.example"}), "proxy"),
        (json!({"proxy": "socks5://127.0.0.1:1080"}), "proxy"),
        (json!({"proxy": "http://0x7f000001:3128"}), "proxy"),
        (json!({"proxy_password": "hunter2"}), "proxy_password"),
        (json!({"source_address": "everywhere"}), "source_address"),
        (json!({"dsn": "always"}), "dsn"),
        (json!({"kind": "lmtp", "port": 25}), "port"),
    ] {
        let mut body = json!({"id": "relay-1", "host": "smtp.example.com"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answer = api.post("/v1/accounts", body).await;
        assert_eq!(answer.wrong_fields(), [wrong], "{fields}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("hunter2"), "{fields}");
    }
}

#[tokio::test]
async fn only_the_admin_key_chooses_the_source_address() {
    let api = Api::start().await;
    let own = api.key("default", json!({"name": "k", "scopes": ["manage", "read"]})).await;
    let body = json!({"id": "relay-1", "host": "relay.example", "source_address": "192.0.2.9"}).to_string();
    let refused = api.as_key(&own, "POST", "/v1/accounts", body.clone()).await;
    assert_eq!(refused.wrong_fields(), ["source_address"]);
    api.as_key(KEY, "POST", "/v1/accounts", body).await.ok(201);
    for change in [r#"{"source_address": null}"#, r#"{"source_address": "192.0.2.10"}"#] {
        let refused = api.as_key(&own, "PATCH", "/v1/accounts/relay-1", change).await;
        assert_eq!(refused.wrong_fields(), ["source_address"], "{change}");
    }
    // What the tenant changes otherwise leaves it, also if it replaces everything.
    api.as_key(&own, "PATCH", "/v1/accounts/relay-1", r#"{"max_connections": 3}"#).await.ok(200);
    let replaced =
        api.as_key(&own, "PUT", "/v1/accounts/relay-1", r#"{"host": "relay.example"}"#).await.ok(200);
    assert_eq!(replaced["source_address"], "192.0.2.9");
    let named = r#"{"host": "relay.example", "source_address": "192.0.2.9"}"#;
    api.as_key(&own, "PUT", "/v1/accounts/relay-1", named).await.ok(200);
}

#[tokio::test]
async fn a_proxys_password_is_sealed_anew_with_the_account() {
    let old = Api::start().await;
    old.post("/v1/accounts", proxied()).await.ok(201);
    let new_key = || SecretKey::from_bytes(&[8; 32]).unwrap();
    let new = Api::with_secret_key(new_key().with_previous(SecretKey::from_bytes(&[7; 32]).unwrap())).await;
    let account = stored(&old).await;
    let change = postway_store::record::DirectoryChange::CreateAccount(account);
    new.store.change(change, None).await.unwrap();
    let done = new.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!((&done["accounts"], &done["unreadable"]), (&json!(1), &json!([])));
    assert_eq!(password(&new, &new_key()).await.as_deref(), Some("hunter2"));
    let again = new.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!(again["accounts"], 0);
}
