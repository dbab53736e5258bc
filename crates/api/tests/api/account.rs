//! Accounts, from creation to deletion.

use postway_domain::{Account, RecipientStatus::Pending, State, secret::SecretKey};
use postway_store::Directory;
use serde_json::{Value, json};

use crate::support::Api;

fn relay() -> Value {
    json!({"id": "relay-1", "kind": "smtp", "host": "smtp.example.com", "port": 587, "tls": "starttls",
        "username": "shop", "password": "hunter2"})
}

async fn stored(api: &Api) -> Account {
    api.store.account(&"default".parse().unwrap(), &"relay-1".parse().unwrap()).await.unwrap().unwrap()
}

#[tokio::test]
async fn an_account_is_made_shown_and_its_password_never() {
    let api = Api::start().await;
    let answer = api.post("/v1/accounts", relay()).await;
    assert_eq!(answer.headers["location"], "/v1/accounts/relay-1");
    let made = answer.ok(201);
    assert_eq!((&made["password_set"], &made["max_connections"]), (&json!(true), &json!(10)));
    assert_eq!(made["retry"]["delays_s"].as_array().unwrap().len(), 10);
    assert_eq!(made["limits"]["per_minute"], 0);
    let list = api.get("/v1/accounts").await;
    assert_eq!(list.ok(200)["data"].as_array().unwrap().len(), 2);
    for body in [&answer.body, &list.body, &api.get("/v1/accounts/relay-1").await.body] {
        assert!(!String::from_utf8_lossy(body).contains("hunter2"));
    }
    let account = stored(&api).await;
    let place = Account::secret_place(&account.tenant, &account.id);
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    assert_eq!(key.open(&place, &account.secret.unwrap()).unwrap(), "hunter2");
    api.post("/v1/accounts", relay()).await.refused(409, "conflict");
}

#[tokio::test]
async fn patch_changes_what_is_given_and_put_replaces_all_but_the_password() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let patched =
        api.call("PATCH", "/v1/accounts/relay-1", r#"{"port": 2525, "max_connections": 3}"#).await.ok(200);
    assert_eq!((&patched["port"], &patched["host"]), (&json!(2525), &json!("smtp.example.com")));
    assert_eq!((&patched["version"], &patched["password_set"]), (&json!(2), &json!(true)));

    let shown = api.get("/v1/accounts/relay-1").await.ok(200);
    let put_back = api.call("PUT", "/v1/accounts/relay-1", shown.to_string()).await.ok(200);
    assert_eq!((&put_back["port"], &put_back["password_set"]), (&json!(2525), &json!(true)));

    let put = api
        .call("PUT", "/v1/accounts/relay-1", r#"{"host": "b.example.com", "username": "shop"}"#)
        .await
        .ok(200);
    assert_eq!((&put["port"], &put["max_connections"]), (&json!(null), &json!(10)));
    assert_eq!(put["password_set"], true);
    let without = api.call("PATCH", "/v1/accounts/relay-1", r#"{"username": null}"#).await.ok(200);
    assert_eq!(without["password_set"], false);
    api.call("PATCH", "/v1/accounts/none", "{}").await.refused(404, "not_found");
}

#[tokio::test]
async fn racing_changes_are_all_kept() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let changes = [r#"{"port": 1}"#, r#"{"max_connections": 2}"#, r#"{"tls": "none"}"#];
    futures::future::join_all(changes.map(|change| api.call("PATCH", "/v1/accounts/relay-1", change))).await;
    let now = api.get("/v1/accounts/relay-1").await.ok(200);
    assert_eq!((&now["port"], &now["max_connections"], &now["tls"]), (&json!(1), &json!(2), &json!("none")));
    assert_eq!(now["version"], 4);
}

#[tokio::test]
async fn wrong_settings_are_named_all_at_once_and_nothing_is_stored() {
    let api = Api::start().await;
    let body = json!({"id": "a b", "kind": "ses", "port": "x", "colour": "red"});
    let mut wrong = api.post("/v1/accounts", body).await.wrong_fields();
    wrong.sort();
    assert_eq!(wrong, ["colour", "host", "id", "kind", "port"]);
    assert_eq!(api.post("/v1/accounts", json!({"host": "h"})).await.wrong_fields(), ["id"]);
    api.call("POST", "/v1/accounts", "[1]").await.refused(400, "malformed_request");
    api.call("POST", "/v1/accounts", "{").await.refused(400, "malformed_request");
    assert_eq!(api.get("/v1/accounts").await.ok(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_account_is_deleted_unless_it_is_in_use() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let deleted = api.call("DELETE", "/v1/accounts/relay-1", "").await;
    assert_eq!((deleted.status.as_u16(), deleted.body.len()), (204, 0));
    api.call("DELETE", "/v1/accounts/relay-1", "").await.refused(404, "not_found");
    api.get("/v1/accounts/a%20b").await.refused(404, "not_found");
    api.stored("m", State::Ready, &[("ada@example.net", Pending)]).await;
    api.call("DELETE", "/v1/accounts/sandbox", "").await.refused(409, "conflict");
}
