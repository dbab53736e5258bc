//! Accounts, from creation to deletion.

use postway_domain::{Account, MessageState, RecipientStatus::Pending, Time, secret::SecretKey};
use postway_store::{
    DirectoryStore,
    record::{AccountKey, DirectoryChange, OpenCircuit},
};
use serde_json::{Value, json};

use crate::support::{Api, KEY};

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
    let place = Account::sealing_context(&account.tenant, &account.id);
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    assert_eq!(key.open(&place, &account.secret.unwrap()).unwrap(), "hunter2");
    api.post("/v1/accounts", relay()).await.refused(409, "conflict");
}

#[tokio::test]
async fn patch_changes_what_is_given_and_put_replaces_all_but_the_password() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let patch = json!({"return_path": "a@example.com", "max_connections": 3});
    let patched = api.patch("/v1/accounts/relay-1", patch).await.ok(200);
    assert_eq!(
        (&patched["return_path"], &patched["host"]),
        (&json!("a@example.com"), &json!("smtp.example.com"))
    );
    assert_eq!((&patched["version"], &patched["password_set"]), (&json!(2), &json!(true)));

    let shown = api.get("/v1/accounts/relay-1").await.ok(200);
    let put_back = api.call("PUT", "/v1/accounts/relay-1", shown.to_string()).await.ok(200);
    assert_eq!((&put_back["max_connections"], &put_back["password_set"]), (&json!(3), &json!(true)));

    let less = json!({"host": "smtp.example.com", "port": 587, "username": "shop"});
    let put = api.put("/v1/accounts/relay-1", less).await.ok(200);
    assert_eq!((&put["return_path"], &put["max_connections"]), (&json!(null), &json!(10)));
    assert_eq!(put["password_set"], true);
    let without = api.call("PATCH", "/v1/accounts/relay-1", r#"{"username": null}"#).await.ok(200);
    assert_eq!(without["password_set"], false);
    api.call("PATCH", "/v1/accounts/none", "{}").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_username_without_a_password_is_refused() {
    let api = Api::start().await;
    let named = json!({"id": "relay-1", "host": "smtp.example.com", "username": "shop"});
    let refused = api.post("/v1/accounts", named).await;
    assert_eq!(refused.wrong_fields(), ["password"]);
    assert!(String::from_utf8_lossy(&refused.body).contains("leave the username out"));
    api.post("/v1/accounts", json!({"id": "relay-1", "host": "smtp.example.com"})).await.ok(201);
    let named = api.call("PATCH", "/v1/accounts/relay-1", r#"{"username": "shop"}"#).await;
    assert_eq!(named.wrong_fields(), ["password"]);
    let whole = r#"{"username": "shop", "password": "hunter2"}"#;
    assert_eq!(api.call("PATCH", "/v1/accounts/relay-1", whole).await.ok(200)["password_set"], true);
    let other = api.call("PATCH", "/v1/accounts/relay-1", r#"{"username": "store"}"#).await.ok(200);
    assert_eq!((&other["username"], &other["password_set"]), (&json!("store"), &json!(true)));
    let bare = api.call("PATCH", "/v1/accounts/relay-1", r#"{"password": null}"#).await;
    assert_eq!(bare.wrong_fields(), ["password"]);
}

#[tokio::test]
async fn a_change_can_be_bound_to_a_version() {
    let api = Api::start().await;
    let first = api.post("/v1/accounts", relay()).await.ok(201);
    api.patch("/v1/accounts/relay-1", json!({"version": 1, "max_connections": 2})).await.ok(200);
    for method in ["PATCH", "PUT"] {
        // As it was shown before another caller changed it.
        let stale = api.call(method, "/v1/accounts/relay-1", first.to_string()).await;
        let error = stale.refused(409, "conflict");
        assert!(error["message"].as_str().unwrap().contains("version 2"), "{error}");
    }
    assert_eq!(api.get("/v1/accounts/relay-1").await.ok(200)["max_connections"], 2);
}

#[tokio::test]
async fn racing_changes_are_all_kept() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let changes =
        [r#"{"return_path": "a@b.example"}"#, r#"{"max_connections": 2}"#, r#"{"tls": "implicit"}"#];
    futures::future::join_all(changes.map(|change| api.call("PATCH", "/v1/accounts/relay-1", change))).await;
    let now = api.get("/v1/accounts/relay-1").await.ok(200);
    assert_eq!(
        (&now["return_path"], &now["max_connections"], &now["tls"]),
        (&json!("a@b.example"), &json!(2), &json!("implicit"))
    );
    assert_eq!(now["version"], 4);
}

#[tokio::test]
async fn wrong_settings_are_named_all_at_once_and_nothing_is_stored() {
    let api = Api::start().await;
    let body = json!({"id": "a b", "kind": "pigeon", "port": "x", "colour": "red"});
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
    api.stored("m", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    api.call("DELETE", "/v1/accounts/sandbox", "").await.refused(409, "conflict");
}

async fn audited(api: &Api) -> Vec<String> {
    let log = api.get("/v1/audit").await.ok(200);
    let actions =
        log["data"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap().to_owned());
    actions.collect()
}

#[tokio::test]
async fn every_setting_comes_back_and_each_change_is_audited_without_secrets() {
    let api = Api::start().await;
    let body = json!({"id": "ses", "kind": "ses", "region": "eu-west-1", "access_key_id": "AKID",
        "secret_access_key": "hunter2", "configuration_set": "set", "endpoint": "http://ses.example:5000",
        "limits": {"per_minute": 5, "per_day": 50, "behavior": "reject"}, "fallback": "sandbox", "pec": true,
        "warm_up": {"per_day": [10, 20]}, "destinations": {"example.com": {"connections": 3}}});
    let made = api.post("/v1/accounts", body.clone()).await.ok(201);
    for field in ["kind", "region", "access_key_id", "configuration_set", "endpoint", "fallback", "pec"] {
        assert_eq!(made[field], body[field], "{field}");
    }
    assert_eq!(made["limits"], json!({"per_minute": 5, "per_hour": 0, "per_day": 50, "behavior": "reject"}));
    assert_eq!(made["warm_up"]["per_day"], json!([10, 20]));
    assert_eq!(made["destinations"]["example.com"], json!({"connections": 3, "per_second": 0}));
    assert_eq!((&made["secret_access_key_set"], &made["password_set"]), (&json!(true), &json!(false)));
    let shown = api.get("/v1/accounts/ses").await;
    assert_eq!(shown.ok(200)["used"], json!({"minute": 0, "hour": null, "day": 0}));
    let put_back = api.call("PUT", "/v1/accounts/ses", shown.body.clone()).await.ok(200);
    assert_eq!((&put_back["limits"], &put_back["warm_up"]), (&made["limits"], &made["warm_up"]));
    assert_eq!(put_back["secret_access_key_set"], true);
    let log = api.get("/v1/audit").await;
    assert!(!String::from_utf8_lossy(&log.body).contains("hunter2"));
    assert_eq!(audited(&api).await, ["account.change", "account.create"]);
}

#[tokio::test]
async fn a_fallback_must_exist_and_never_lead_back() {
    let api = Api::start().await;
    let account = |id: &str, fallback: Value| json!({"id": id, "kind": "sandbox", "fallback": fallback});
    for missing in [json!("nobody"), json!("a")] {
        assert_eq!(api.post("/v1/accounts", account("a", missing)).await.wrong_fields(), ["fallback"]);
    }
    api.post("/v1/accounts", account("a", json!(null))).await.ok(201);
    api.post("/v1/accounts", account("b", json!("a"))).await.ok(201);
    api.post("/v1/accounts", account("c", json!("b"))).await.ok(201);
    let loops = api.call("PATCH", "/v1/accounts/a", r#"{"fallback": "c"}"#).await;
    assert_eq!(loops.wrong_fields(), ["fallback"]);
    api.call("DELETE", "/v1/accounts/a", "").await.refused(409, "conflict");
    api.call("PATCH", "/v1/accounts/b", r#"{"fallback": null}"#).await.ok(200);
    assert_eq!(api.call("DELETE", "/v1/accounts/a", "").await.status.as_u16(), 204);
}

#[tokio::test]
async fn an_account_is_suspended_activated_and_says_why_its_circuit_is_open() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    assert_eq!(api.post("/v1/accounts/relay-1/suspend", json!({})).await.ok(200)["suspended"], true);
    assert_eq!(api.get("/v1/accounts").await.ok(200)["data"][0]["suspended"], true);
    assert_eq!(api.post("/v1/accounts/relay-1/suspend", json!({})).await.ok(200)["suspended"], true);
    assert_eq!(api.post("/v1/accounts/relay-1/activate", json!({})).await.ok(200)["suspended"], false);
    api.post("/v1/accounts/none/suspend", json!({})).await.refused(404, "not_found");
    assert_eq!(audited(&api).await, ["account.activate", "account.suspend", "account.create"], "news alone");
    for (query, expected) in [
        ("action=account.create", 1),
        ("action=account.", 3),
        ("action=account", 0),
        ("actor=admin&action=account.", 3),
        ("actor=user:nobody", 0),
        ("target=nothing", 0),
    ] {
        let found = api.get(&format!("/v1/audit?{query}")).await.ok(200);
        assert_eq!(found["data"].as_array().unwrap().len(), expected, "{query}");
    }
    let first = api.get("/v1/audit?action=account.&limit=2").await.ok(200);
    let path = format!("/v1/audit?action=account.&cursor={}", first["next_cursor"].as_str().unwrap());
    let rest = api.get(&path).await.ok(200);
    assert_eq!(rest["data"][0]["action"], "account.create");

    let key = AccountKey { tenant: "default".parse().unwrap(), account: "relay-1".parse().unwrap() };
    let circuit = OpenCircuit {
        key,
        code: "smtp_535".to_owned(),
        reason: "wrong password".to_owned(),
        opened_at: Time::from_millis(1_700_000_000_000),
        open_until: Time::from_millis(1_700_000_005_000),
        faults: 1,
    };
    api.store.change(DirectoryChange::OpenCircuit(circuit), None).await.unwrap();
    let shown = api.get("/v1/accounts/relay-1").await.ok(200)["circuit"].clone();
    assert_eq!((&shown["state"], &shown["code"]), (&json!("open"), &json!("smtp_535")));
    assert_eq!(shown["until"], "2023-11-14T22:13:25.000Z");
    let list = api.get("/v1/accounts").await.ok(200);
    let states: Vec<&Value> =
        list["data"].as_array().unwrap().iter().map(|one| &one["circuit"]["state"]).collect();
    assert_eq!(states, ["open", "closed"], "a list says which account is at fault");
    assert_eq!(api.get("/v1/overview").await.ok(200)["circuits"][0]["account"], "relay-1");
    let changed = api.call("PATCH", "/v1/accounts/relay-1", r#"{"password": "right"}"#).await.ok(200);
    assert_eq!(changed["circuit"]["state"], "closed", "new settings deserve a new chance");
}

#[tokio::test]
async fn a_test_tells_each_step_and_sends_a_mail_only_if_all_went_well() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let bad =
        api.call("POST", "/v1/accounts/relay-1/test", r#"{"to": "ada@example.net", "from": "a@b.c"}"#).await;
    let bad = bad.ok(200);
    assert_eq!((&bad["ok"], bad["steps"].as_array().unwrap().len()), (&json!(false), 2));
    assert_eq!((&bad["steps"][1]["step"], &bad["message"]), (&json!("auth"), &json!(null)));
    let good = api.call("POST", "/v1/accounts/sandbox/test", "").await.ok(200);
    assert_eq!((&good["ok"], &good["steps"][0]["step"]), (&json!(true), &json!("connect")));
    let wrong = api.post("/v1/accounts/sandbox/test", json!({"to": "x", "colour": 1})).await;
    assert_eq!(wrong.wrong_fields(), ["to", "colour"]);
    let nobody = api.post("/v1/accounts/sandbox/test", json!({"to": "ada@example.net"})).await;
    assert_eq!(nobody.wrong_fields(), ["from"], "the sandbox names no sender");
    api.post("/v1/accounts/none/test", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn no_key_names_a_private_host_and_who_made_an_account_is_remembered() {
    let api = Api::start().await;
    let own = api.key("default", json!({"name": "k", "scopes": ["manage", "read"]})).await;
    let account = |host: &str| json!({"id": "relay-1", "host": host}).to_string();
    let endpoint = json!({"id": "s", "kind": "ses", "region": "eu-west-1", "endpoint": "http://[::1]:5000"});
    for key in [own.as_str(), KEY] {
        for host in ["127.0.0.1", "::1", "localhost"] {
            let refused = api.as_key(key, "POST", "/v1/accounts", account(host)).await;
            assert_eq!(refused.wrong_fields(), ["host"], "{host}");
            assert!(String::from_utf8_lossy(&refused.body).contains("POSTWAY_ALLOW_PRIVATE_TARGETS"));
        }
        let refused = api.as_key(key, "POST", "/v1/accounts", endpoint.to_string()).await;
        assert_eq!(refused.wrong_fields(), ["endpoint"]);
    }
    api.as_key(&own, "POST", "/v1/accounts", account("relay.example")).await.ok(201);
    assert!(stored(&api).await.settings.by_tenant);
    api.call("PATCH", "/v1/accounts/relay-1", r#"{"host": "other.example"}"#).await.ok(200);
    assert!(!stored(&api).await.settings.by_tenant, "the admin has named it");
    api.as_key(&own, "PATCH", "/v1/accounts/relay-1", r#"{"max_connections": 3}"#).await.ok(200);
    assert!(!stored(&api).await.settings.by_tenant, "the target is the same");
    api.as_key(&own, "PATCH", "/v1/accounts/relay-1", r#"{"port": 26}"#).await.ok(200);
    assert!(stored(&api).await.settings.by_tenant, "another port is another target");
}

/// An account from before the guard held for every key, or from before its network was taken off the list.
#[tokio::test]
async fn an_account_that_is_private_already_can_be_changed_but_not_moved() {
    let api = Api::start().await;
    api.post("/v1/accounts", json!({"id": "relay-1", "host": "relay.example"})).await.ok(201);
    let mut account = stored(&api).await;
    account.settings.host = Some("127.0.0.1".to_owned());
    account.version = 2;
    assert!(api.store.update_account(account, 1).await.unwrap());
    api.patch("/v1/accounts/relay-1", json!({"max_connections": 3})).await.ok(200);
    assert_eq!(api.patch("/v1/accounts/relay-1", json!({"port": 26})).await.wrong_fields(), ["host"]);
    api.patch("/v1/accounts/relay-1", json!({"host": "relay.example"})).await.ok(200);
}

#[tokio::test]
async fn secrets_are_sealed_anew_once() {
    let api = Api::start().await;
    api.post("/v1/accounts", relay()).await.ok(201);
    let nothing = api.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!((&nothing["accounts"], &nothing["unreadable"]), (&json!(0), &json!([])));
    let account = stored(&api).await;
    let place = Account::sealing_context(&account.tenant, &account.id);
    let strange = SecretKey::from_bytes(&[9; 32]).unwrap().seal(&place, "lost").unwrap();
    let (version, account) = (account.version, Account { secret: Some(strange), version: 2, ..account });
    assert!(api.store.update_account(account, version).await.unwrap());
    let lost = api.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!(lost["unreadable"], json!([place]));
    let key = api.key("default", json!({"name": "k", "scopes": ["manage"]})).await;
    api.as_key(&key, "POST", "/v1/secrets/rotate", "").await.refused(403, "forbidden");
}
