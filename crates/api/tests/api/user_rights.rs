//! What each role may do: every call of the document, as each role; and that nobody raises himself.

use std::collections::BTreeMap;

use axum::body::Body;
use postway_domain::{MessageState, RecipientStatus};
use serde_json::{Value, json};

use crate::{support::Api, users::Person};

/// Calls that need no right, or are for people alone.
const OPEN: [&str; 8] = [
    "getSession",
    "signOut",
    "listSessions",
    "endSession",
    "listPasskeys",
    "challengeNewPasskey",
    "addPasskey",
    "deletePasskey",
];
/// Signs the walker out.
const ENDS: [&str; 1] = ["endSessions"];
/// What a viewer may call though it is no GET: it changes nothing.
const HARMLESS: [&str; 4] = ["previewSource", "previewTemplate", "tryRoutes", "tryRule"];

/// Every call of the document that needs a key: operation, method, path with names that nothing has.
fn calls(document: &Value, name_of_all: &str) -> Vec<(String, String, String)> {
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_open = operation["security"].as_array().is_some_and(|ways| ways.contains(&json!({})));
            let name = operation["operationId"].as_str().unwrap().to_owned();
            if !is_open && !ENDS.contains(&name.as_str()) {
                let mut filled = path.clone();
                while let (Some(from), Some(to)) = (filled.find('{'), filled.find('}')) {
                    filled.replace_range(from..=to, name_of_all);
                }
                calls.push((name, method.to_uppercase(), filled));
            }
        }
    }
    calls
}

/// Whether each call is refused for lack of a right.
async fn refused(
    api: &Api,
    calls: &[(String, String, String)],
    ask: impl AsyncFn(&str, &str) -> crate::support::Answer,
) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    for (name, method, path) in calls {
        let answer = ask(method, path).await;
        assert_ne!(answer.status, 401, "{name}");
        let is_refused = answer.status == 403;
        if is_refused {
            answer.refused(403, "forbidden");
        }
        found.insert(name.clone(), is_refused);
    }
    let _ = api;
    found
}

async fn as_person(api: &Api, person: &Person, calls: &[(String, String, String)]) -> BTreeMap<String, bool> {
    refused(api, calls, async |method: &str, path: &str| person.ask(api, method, path, "{}").await).await
}

#[tokio::test]
async fn every_call_asks_for_the_right_of_the_role() {
    let api = Api::start().await;
    let document = serde_json::to_value(postway_api::document()).unwrap();
    let calls_of = calls;
    let calls = calls_of(&document, "default");
    assert!(calls.len() > 100, "{}", calls.len());
    let mut weaker: Option<BTreeMap<String, bool>> = None;
    for (role, scopes) in [
        ("viewer", json!(["read"])),
        ("operator", json!(["send", "read"])),
        ("manager", json!(["send", "read", "manage", "read:content"])),
    ] {
        let person = Person::made(&api, role, role, json!(["default"])).await;
        let as_user = as_person(&api, &person, &calls).await;
        // A key with the scopes of the role is the measure: the same guards stand before both.
        let key = api.key("default", json!({"scopes": scopes})).await;
        let as_key = refused(&api, &calls, async |method: &str, path: &str| {
            api.as_key(&key, method, path, Body::from("{}")).await
        });
        for (name, is_refused) in as_key.await {
            if !OPEN.contains(&name.as_str()) {
                assert_eq!(as_user[&name], is_refused, "{role} calls {name}");
            }
        }
        for (name, method, path) in &calls {
            let of_admins = ["/v1/tenants", "/v1/users", "/v1/audit", "/v1/nodes", "/v1/secrets"];
            let is_admins = of_admins.iter().any(|prefix| path.starts_with(prefix));
            assert!(!is_admins || as_user[name], "{role} must not call {name}");
            if role == "viewer" && method != "GET" && !OPEN.contains(&name.as_str()) {
                assert_eq!(as_user[name], !HARMLESS.contains(&name.as_str()), "a viewer calls {name}");
            }
        }
        if let Some(weaker) = weaker.replace(as_user.clone()) {
            let lost = weaker.iter().find(|(name, is_refused)| !**is_refused && as_user[*name]);
            assert_eq!(lost, None, "{role} may not do what a weaker role may");
            assert!(
                weaker.values().filter(|refused| !**refused).count()
                    < as_user.values().filter(|refused| !**refused).count()
            );
        }
    }
    // An admin of all tenants may do everything; one of a tenant, that tenant's keys and users.
    let root = Person::made(&api, "root", "admin", json!(null)).await;
    let refused_to_root: Vec<String> = as_person(&api, &root, &calls_of(&document, "nobody"))
        .await
        .into_iter()
        .filter(|(_, refused)| *refused)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(refused_to_root, Vec::<String>::new());
    let chief = Person::made(&api, "chief", "admin", json!(["default"])).await;
    let of_chief = as_person(&api, &chief, &calls).await;
    for (name, method, path) in &calls {
        if path.starts_with("/v1/tenants") || path.starts_with("/v1/users") {
            let is_own = path.starts_with("/v1/tenants/default/keys") || path.starts_with("/v1/users");
            assert_eq!(of_chief[name], !is_own, "{method} {path}");
        }
    }
    for path in [
        "/v1/audit",
        "/v1/audit/lines",
        "/v1/nodes",
        "/v1/tenants",
        "/v1/tenants/other/keys",
        "/v1/tenants/nobody/keys",
    ] {
        chief.ask(&api, "GET", path, "").await.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn nobody_raises_himself_or_gives_more_than_he_has() {
    let api = Api::start().await;
    let chief = Person::made(&api, "chief", "admin", json!(["default"])).await;
    let root = Person::made(&api, "root", "admin", json!(null)).await;
    api.post("/v1/users", json!({"name": "foreign", "role": "viewer", "tenants": ["other"]})).await.ok(201);
    // More tenants than one's own, for oneself or for another.
    for (name, tenants) in
        [("x1", json!(null)), ("x2", json!(["default", "other"])), ("x3", json!(["other"]))]
    {
        let body = json!({"name": name, "role": "viewer", "tenants": tenants}).to_string();
        chief.ask(&api, "POST", "/v1/users", &body).await.refused(403, "forbidden");
    }
    let own = json!({"name": "mate", "role": "admin", "tenants": ["default"]}).to_string();
    assert_eq!(chief.ask(&api, "POST", "/v1/users", &own).await.status, 201);
    for body in [json!({"tenants": null}), json!({"tenants": ["default", "other"]})] {
        chief.ask(&api, "PATCH", "/v1/users/mate", &body.to_string()).await.refused(403, "forbidden");
    }
    for (who, name) in [(&chief, "chief"), (&root, "root")] {
        let path = format!("/v1/users/{name}");
        for body in [
            json!({"role": "admin"}),
            json!({"tenants": null}),
            json!({"read_content": true}),
            json!({"disabled": false}),
        ] {
            who.ask(&api, "PATCH", &path, &body.to_string()).await.refused(403, "forbidden");
        }
        who.ask(&api, "DELETE", &path, "").await.refused(403, "forbidden");
        who.ask(&api, "PATCH", &path, r#"{"display_name":"Me"}"#).await.ok(200);
    }
    // Users of other tenants, and of more tenants, do not exist for the admin of one.
    for path in ["/v1/users/foreign", "/v1/users/root", "/v1/users/foreign/sessions"] {
        chief.ask(&api, "GET", path, "").await.refused(404, "not_found");
    }
    chief.ask(&api, "DELETE", "/v1/users/root", "").await.refused(404, "not_found");
    chief.ask(&api, "POST", "/v1/users/root/invitation", "").await.refused(404, "not_found");
    let listed = chief.ask(&api, "GET", "/v1/users", "").await.ok(200);
    let names: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chief", "mate"]);
    // The last who may do everything stays, whoever asks.
    for body in [json!({"role": "viewer"}), json!({"tenants": ["default"]}), json!({"disabled": true})] {
        api.patch("/v1/users/root", body).await.refused(409, "conflict");
    }
    api.call("DELETE", "/v1/users/root", "").await.refused(409, "conflict");
    api.post("/v1/users", json!({"name": "second", "role": "admin", "tenants": null})).await.ok(201);
    assert_eq!(api.delete("/v1/users/root").await, 204);
    root.ask(&api, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    api.post("/v1/users", json!({"name": "second", "role": "viewer", "tenants": null}))
        .await
        .refused(409, "conflict");
    let nowhere = json!({"name": "lost", "role": "viewer", "tenants": ["nowhere"]});
    assert_eq!(api.post("/v1/users", nowhere).await.wrong_fields(), ["tenants"]);
}

#[tokio::test]
async fn another_tenant_does_not_exist_for_a_person() {
    let api = Api::start().await;
    api.stored("m-1", MessageState::Ready, &[("ada@example.net", RecipientStatus::Pending)]).await;
    let foreign = Person::made(&api, "foreign", "manager", json!(["other"])).await;
    let both = Person::made(&api, "both", "viewer", json!(["default", "other"])).await;
    foreign.ask(&api, "GET", "/v1/messages/m-1", "").await.refused(404, "not_found");
    for (name, status) in [("other", 200), ("default", 404), ("nobody", 404)] {
        let answer = foreign.ask_with(&api, "GET", "/v1/messages", "", &[("x-tenant", name)]).await;
        assert_eq!(answer.status.as_u16(), status, "{name}");
    }
    // A page that still shows a tenant which was taken away falls back to one's own.
    let stale = Person {
        cookie: format!("{}; __Host-postway_tenant=default", foreign.cookie),
        ..Person {
            cookie: String::new(),
            csrf: foreign.csrf.clone(),
            secret: String::new(),
            recovery_codes: Vec::new(),
        }
    };
    let listed = stale.ask(&api, "GET", "/v1/messages", "").await.ok(200);
    assert_eq!(listed["data"], json!([]));
    both.ask(&api, "GET", "/v1/messages/m-1", "").await.ok(200);
    both.ask_with(&api, "GET", "/v1/messages/m-1", "", &[("x-tenant", "other")])
        .await
        .refused(404, "not_found");
    let shown = both.ask(&api, "GET", "/v1/session", "").await.ok(200);
    assert_eq!((&shown["tenant"], &shown["tenants"]), (&json!(null), &json!(["default", "other"])));
}

#[tokio::test]
async fn bodies_are_a_right_of_their_own_where_the_tenant_says_so() {
    let api = Api::start().await;
    let mail = json!({"id": "m-1", "from": "a@example.com", "to": "b@example.net", "subject": "Hi", "html": "<p>secret-words</p>"});
    api.post("/v1/messages", mail).await.ok(202);
    let hidden = json!({"id": "m-2", "from": "a@example.com", "to": "b@example.net", "subject": "Hi", "text": "x", "sensitive": true});
    api.post("/v1/messages", hidden).await.ok(202);
    api.mailbox("box", json!({})).await;
    let arrived =
        api.arrived("box", "Subject: question\r\nContent-Type: text/html\r\n\r\nsecret-words").await;
    let operator = Person::made(&api, "operator", "operator", json!(["default"])).await;
    let manager = Person::made(&api, "manager", "manager", json!(["default"])).await;
    let key = api.key("default", json!({"scopes": ["send", "read", "manage"]})).await;
    let reader = api.key("default", json!({"scopes": ["read", "read:content"]})).await;
    let bodies = [
        "/v1/messages/m-1/raw".to_owned(),
        "/v1/messages/m-1/content".to_owned(),
        "/v1/messages/m-1/preview".to_owned(),
        "/v1/messages/m-1/payload".to_owned(),
        "/v1/messages/m-1/pec/export".to_owned(),
        format!("/v1/inbound/{arrived}/raw"),
        format!("/v1/inbound/{arrived}/content"),
        format!("/v1/inbound/{arrived}/preview"),
    ];
    for path in &bodies {
        assert_eq!(operator.ask(&api, "GET", path, "").await.status, 200, "{path}: not guarded yet");
    }
    api.patch("/v1/tenants/default", json!({"guard_content": true})).await.ok(200);
    for path in &bodies {
        operator.ask(&api, "GET", path, "").await.refused(403, "forbidden");
        api.as_key(&key, "GET", path, Body::empty()).await.refused(403, "forbidden");
        assert_eq!(manager.ask(&api, "GET", path, "").await.status, 200, "{path}");
        assert_eq!(api.as_key(&reader, "GET", path, Body::empty()).await.status, 200, "{path}");
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
    for path in ["/v1/messages/m-1/attachments/0".to_owned(), format!("/v1/inbound/{arrived}/attachments/0")]
    {
        operator.ask(&api, "GET", &path, "").await.refused(403, "forbidden");
    }
    // What an operator needs to act is there, and the act works.
    for path in ["/v1/messages", "/v1/messages/m-1", "/v1/messages/m-1/events", "/v1/inbound"] {
        let shown = operator.ask(&api, "GET", path, "").await.ok(200).to_string();
        assert!(!shown.contains("secret-words"), "{path}: {shown}");
    }
    operator.ask(&api, "POST", "/v1/messages/m-1/cancel", "").await.ok(200);
    // The right can be given to one person.
    api.patch("/v1/users/operator", json!({"read_content": true})).await.ok(200);
    assert_eq!(operator.ask(&api, "GET", &bodies[0], "").await.status, 200);
    // Sensitive mail is hidden from everybody.
    manager.ask(&api, "GET", "/v1/messages/m-2/raw", "").await.refused(403, "sensitive");
    api.get("/v1/messages/m-2/payload").await.refused(403, "sensitive");
}
