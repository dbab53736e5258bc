//! No call reaches across tenants: every call of the OpenAPI document is made with another tenant's key,
//! which may do all that a tenant's key may, on the first tenant's ids. The calls come from the document, so
//! that a new one cannot be forgotten: where this test does not know what to say to it, it fails.

use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::record::NotificationState;
use serde_json::{Value, json};

use crate::support::Api;

/// What only the first tenant has; nothing of it may come back to another.
const MARK: &str = "first-";
/// A message that the first tenant has archived.
const ARCHIVED: &str = "0192d3a4-5b6c-7d8e-9f01-23456789abcd";
pub const MESSAGES: [&str; 4] = ["first-ready", "first-later", "first-doubt", "first-dead"];

/// What a call must answer.
#[derive(Debug, PartialEq)]
enum Expected {
    /// There is no such thing for this key.
    NotFound,
    /// Not for a tenant's key.
    Forbidden,
    /// Something of the caller's own, or nothing.
    OwnOnly,
}

struct Call {
    method: String,
    path: String,
    body: String,
    expected: Expected,
}

/// All that is the first tenant's, as its operator sees it.
pub async fn state_of_first(api: &Api) -> Vec<Value> {
    let mut seen = Vec::new();
    let mut paths = vec![
        "/v1/messages".to_owned(),
        "/v1/bulk-actions".to_owned(),
        "/v1/accounts".to_owned(),
        "/v1/batches".to_owned(),
        "/v1/suppressions".to_owned(),
        "/v1/scoped-suppressions".to_owned(),
        "/v1/streams".to_owned(),
        "/v1/streams/first-stream/statistics".to_owned(),
        "/v1/routes".to_owned(),
        "/v1/templates".to_owned(),
        "/v1/templates/first-welcome".to_owned(),
        "/v1/recipients".to_owned(),
        "/v1/dkim".to_owned(),
        "/v1/domains".to_owned(),
        "/v1/webhooks".to_owned(),
        "/v1/mailboxes".to_owned(),
        "/v1/rules".to_owned(),
        "/v1/contacts".to_owned(),
        "/v1/inbound".to_owned(),
        "/v1/archive".to_owned(),
        "/v1/domains/first-shop.example/reports".to_owned(),
        "/v1/events".to_owned(),
        "/v1/statistics".to_owned(),
        "/v1/dead-letters".to_owned(),
        "/v1/tenants/default".to_owned(),
        "/v1/accounts/first-relay/hook".to_owned(),
    ];
    paths.extend(MESSAGES.map(|id| format!("/v1/messages/{id}")));
    for path in paths {
        seen.push(api.get(&path).await.ok(200));
    }
    let mut keys = api.get("/v1/tenants/default/keys").await.ok(200);
    // The time of last use is not a change.
    keys["data"].as_array_mut().unwrap().iter_mut().for_each(|key| key["last_used_at"] = Value::Null);
    seen.push(keys);
    seen
}

/// Does what bulk actions were asked for, to their end.
pub async fn do_bulk_actions(api: &Api) {
    let mut worker = postway_api::BulkWorker::new(api.store.clone(), api.clock.clone());
    while worker.round().await.unwrap() {}
}

/// Ids of the first tenant that callers cannot choose.
pub struct Made {
    key: String,
    pub webhook: String,
    bulk: String,
    uid: String,
    inbound: String,
    /// Of all its messages.
    pub uids: Vec<String>,
}

impl Made {
    /// One with messages and nothing else.
    pub fn of_uids(uids: Vec<String>) -> Self {
        let none = String::new;
        Self { key: none(), webhook: none(), bulk: none(), uid: none(), inbound: none(), uids }
    }
}

pub async fn with_two_tenants() -> (Api, Made, String) {
    let api = Api::start().await;
    let hook =
        json!({"url": "https://first-app.example.com/", "description": "first-hook", "form": "resend"});
    let webhook = api.post("/v1/webhooks", hook).await.ok(201)["id"].as_str().unwrap().to_owned();
    let one = [("first-ada@example.net", Pending)];
    let uids = [
        api.stored("first-ready", MessageState::Ready, &one).await,
        api.stored("first-later", MessageState::Scheduled(ScheduleReason::SendAt), &one).await,
        api.stored("first-doubt", MessageState::InDoubt, &[("first-ada@example.net", InDoubt)]).await,
        api.stored("first-dead", MessageState::Failed, &[("first-ada@example.net", Failed)]).await,
    ];
    let uids: Vec<String> = uids.iter().map(ToString::to_string).collect();
    let uid = uids[3].clone();
    api.notify(NotificationState::Acknowledged, 200).await;
    let relay = json!({"id": "first-relay", "host": "first-smtp.example.com", "username": "u", "password": "first-secret"});
    api.post("/v1/accounts", relay).await.ok(201);
    api.put("/v1/accounts/first-relay/hook", json!({"provider": "postmark", "username": "first-user"}))
        .await
        .ok(201);
    api.post("/v1/batches/first-batch/suspend", json!({})).await.ok(200);
    api.post("/v1/suppressions", json!({"address": "first-bob@example.net"})).await.ok(201);
    let scoped = json!({"pattern": "first-bob@example.net", "stream": "first-stream"});
    api.post("/v1/scoped-suppressions", scoped).await.ok(201);
    api.post("/v1/streams", json!({"id": "first-stream", "name": "first-letter"})).await.ok(201);
    let route = json!({"id": "first-route", "match": {"tags": ["first-tag"]}, "accounts": [{"account": "first-relay"}]});
    api.post("/v1/routes", route).await.ok(201);
    let welcome = json!({"name": "first-welcome", "subject": "first-subject", "text": "first-text"});
    api.post("/v1/templates", welcome).await.ok(201);
    let known = json!({"external_id": "first-C1", "address": "first-ada@example.net", "personal_number": "first-0042"});
    api.post("/v1/recipients", known).await.ok(201);
    let key = json!({"domain": "first-shop.example", "selector": "first-s1", "algorithm": "ed25519"});
    api.post("/v1/dkim", key).await.ok(201);
    api.archived(ARCHIVED, b"first-copy", false).await;
    api.mailbox("first-box", json!({"description": "first-box"})).await;
    let rule =
        json!({"id": "first-rule", "mailbox": "first-box", "actions": [{"do": "tag", "tag": "first-tag"}]});
    api.post("/v1/rules", rule).await.ok(201);
    let contact =
        json!({"id": "first-contact", "name": "first-name", "addresses": ["first-ada@example.net"]});
    api.post("/v1/contacts", contact).await.ok(201);
    let inbound = api.arrived("first-box", "Subject: first-question\r\n\r\n").await.to_string();
    let made = api.post("/v1/tenants/default/keys", json!({"name": "first-key"})).await.ok(201);
    let user = json!({"name": "first-ada", "role": "manager", "tenants": ["default"]});
    api.post("/v1/users", user).await.ok(201);
    let theirs = api.key("other", json!({"scopes": ["send", "read", "manage"]})).await;
    let key = made["id"].as_str().unwrap().to_owned();
    let nothing = json!({"action": "cancel", "filter": {"tag": "first-none"}});
    let bulk = api.post("/v1/bulk-actions", nothing).await.ok(202)["id"].as_str().unwrap().to_owned();
    do_bulk_actions(&api).await;
    (api, Made { key, webhook, bulk, uid, inbound, uids }, theirs)
}

/// The calls of the document, each on every id of the first tenant that it could be made on.
fn calls(document: &Value, made: &Made) -> Vec<Call> {
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_open = operation["security"].as_array().is_some_and(|ways| ways.contains(&json!({})));
            if is_open {
                continue;
            }
            let name = operation["operationId"].as_str().unwrap();
            let body = if operation.get("requestBody").is_some() { body_of(name) } else { String::new() };
            for filled in filled(path, made) {
                let expected = expected(path, name);
                calls.push(Call {
                    method: method.to_uppercase(),
                    path: filled,
                    body: body.clone(),
                    expected,
                });
            }
        }
    }
    calls
}

/// The path with the first tenant's ids in it.
fn filled(path: &str, made: &Made) -> Vec<String> {
    let ids: &[&str] = match path.split('/').nth(2).unwrap_or_default() {
        _ if !path.contains('{') => return vec![path.to_owned()],
        "messages" => &MESSAGES,
        "bulk-actions" => &[&made.bulk],
        "accounts" => &["first-relay"],
        "batches" => &["first-batch"],
        "suppressions" => &["first-bob@example.net"],
        "scoped-suppressions" => &["first-bob@example.net"],
        "streams" => &["first-stream"],
        "routes" => &["first-route"],
        "templates" => &["first-welcome"],
        "recipients" => &["external:first-C1"],
        "dkim" | "domains" => &["first-shop.example"],
        "webhooks" => &[&made.webhook],
        "mailboxes" => &["first-box"],
        "rules" => &["first-rule"],
        "contacts" => &["first-contact"],
        "inbound" => &[&made.inbound],
        "archive" => &[ARCHIVED],
        "tenants" => &["default", "nobody"],
        "users" => &["first-ada", "nobody"],
        "sessions" => &["0192d3a4-5b6c-7d8e-9f01-23456789abcd"],
        "passkeys" => &["first-passkey"],
        _ => panic!("teach this test which ids {path} takes"),
    };
    let fill = |id: &str| {
        let named = ["{id}", "{code}", "{address}", "{pattern}", "{name}", "{domain}"];
        let path = path.replace("{key_id}", &made.key).replace("{selector}", "first-s1");
        // The first event of a message is that it was accepted.
        let path = path.replace("{uid}", &made.uid).replace("{sequence}", "1").replace("{index}", "0");
        named.iter().fold(path, |path, name| path.replace(name, id))
    };
    let filled: Vec<String> = ids.iter().map(|id| fill(id)).collect();
    assert!(!filled.iter().any(|path| path.contains('{')), "teach this test the parameters of {path}");
    filled
}

/// A body that would do something to the first tenant, if the call reached it.
fn body_of(operation: &str) -> String {
    let mail = json!({"id": "first-ready", "from": "a@example.com", "to": "b@example.net", "text": "Hi"});
    match operation {
        "sendMessage" => mail,
        "sendBatch" => json!({"messages": [mail]}),
        "sendRawMessage" => return "From: a@example.com\r\nTo: b@example.net\r\n\r\nHi\r\n".to_owned(),
        "rescheduleMessage" => json!({"send_at": 1_700_092_800}),
        "resolveMessage" => json!({"outcome": "sent"}),
        "createBulkAction" => json!({"action": "retry", "filter": {}, "at_most": 1_000}),
        "replayDeadLetters" => json!({"ids": MESSAGES}),
        "replayInboundAll" => json!({"status": "routed"}),
        "createAccount" => json!({"id": "first-relay", "host": "h.example"}),
        "changeAccount" | "replaceAccount" => json!({"host": "h.example"}),
        "testAccount" => json!({}),
        "putAccountHook" => json!({"provider": "http"}),
        "createSuppression" => json!({"address": "first-bob@example.net", "note": "theirs"}),
        "changeSuppression" => json!({"note": "theirs"}),
        "importSuppressions" => return "first-bob@example.net,manual,theirs".to_owned(),
        "createScopedSuppression" => {
            json!({"pattern": "first-bob@example.net", "stream": "first-stream", "note": "theirs"})
        }
        "createRoute" => {
            json!({"id": "first-route", "accounts": [{"account": "first-relay"}], "description": "theirs"})
        }
        "changeRoute" => json!({"description": "theirs"}),
        "orderRoutes" => json!({"ids": ["first-route"]}),
        "tryRoutes" => json!({"tags": ["first-tag"]}),
        "createStream" => json!({"id": "first-stream", "name": "theirs"}),
        "changeStream" => json!({"name": "theirs"}),
        "createTemplate" => json!({"name": "first-welcome", "text": "theirs"}),
        "putTemplate" => json!({"text": "theirs"}),
        "previewTemplate" => json!({"variables": {}}),
        "sendTemplateTest" => json!({"to": ["theirs@example.net"], "from": "theirs@example.net"}),
        "previewSource" => json!({"text": "theirs"}),
        "createRecipient" => json!({"external_id": "first-C1", "address": "theirs@example.net"}),
        "changeRecipient" => json!({"name": "theirs"}),
        "createSigningKey" => {
            json!({"domain": "first-shop.example", "selector": "first-s1", "algorithm": "ed25519"})
        }
        "createWebhook" => json!({"url": "https://theirs.example.com/"}),
        "changeWebhook" => json!({"active": false}),
        "resendDeliveries" => json!({"since": 0, "which": "all"}),
        "createMailbox" => json!({"id": "first-box", "host": "h.example", "username": "u", "password": "p"}),
        "changeMailbox" => json!({"description": "theirs"}),
        // A rule needs a mailbox of the caller's own, which it has by now.
        "createRule" => json!({"id": "first-rule", "mailbox": "first-box", "actions": [{"do": "stop"}]}),
        "changeRule" => json!({"active": false}),
        "tryRule" => json!({"rule": {"actions": [{"do": "stop"}]}, "raw": "eA=="}),
        "createContact" => json!({"id": "first-contact", "name": "first-name"}),
        "changeContact" => json!({"name": "theirs"}),
        "verifyToken" => json!({"token": "first-token", "path": "/activate"}),
        "eraseAddress" => json!({"address": "first-ada@example.net"}),
        "createTenant" => json!({"id": "theirs"}),
        "changeTenant" => json!({"name": "theirs"}),
        "createKey" => json!({"name": "theirs"}),
        "createUser" => json!({"name": "theirs", "role": "viewer", "tenants": ["default"]}),
        "changeUser" => json!({"role": "admin"}),
        "addPasskey" => json!({}),
        _ => panic!("teach this test a body for {operation}"),
    }
    .to_string()
}

fn expected(path: &str, operation: &str) -> Expected {
    match operation {
        _ if ["/v1/tenants", "/v1/audit", "/v1/nodes", "/v1/secrets", "/v1/users"]
            .iter()
            .any(|admin| path.starts_with(admin)) =>
        {
            Expected::Forbidden
        }
        // A code means another batch in each tenant, and need not have been seen.
        "suspendBatch" | "activateBatch" => Expected::OwnOnly,
        // A name means another template in each tenant, and PUT makes it.
        "putTemplate" => Expected::OwnOnly,
        // A domain may be used by several tenants, and each checks it for itself.
        "checkDomain" => Expected::OwnOnly,
        // Only an admin deletes what is archived.
        "deleteArchived" => Expected::Forbidden,
        // A key has neither sessions nor passkeys.
        "listSessions" | "endSessions" => Expected::Forbidden,
        "listPasskeys" | "challengeNewPasskey" | "addPasskey" | "deletePasskey" => Expected::Forbidden,
        // Neither tenant has a source of tokens.
        "verifyToken" => Expected::NotFound,
        _ if path.contains('{') => Expected::NotFound,
        _ => Expected::OwnOnly,
    }
}

/// Calls that need no key, so that they are not walked here. Each reads nothing of a tenant, or is opened by a
/// secret of its own: a token of a hook, of a file, of a reader or of a provider, or an invitation, each with tests of its own.
const OPEN: [&str; 19] = [
    "acceptInvitation",
    "challengePasskey",
    "finishSignInAtProvider",
    "getDocs",
    "getFile",
    "getLiveness",
    "getMetrics",
    "getOpenApi",
    "getReadiness",
    "getSignInWays",
    "reportProviderEvents",
    "showUnsubscribe",
    "signIn",
    "signInAtProvider",
    "signInWithPasskey",
    "signOut",
    "signOutAtProvider",
    "signOutPerson",
    "unsubscribe",
];

#[test]
fn a_call_without_a_key_is_one_that_is_known() {
    let document = serde_json::to_value(postway_api::document()).unwrap();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let is_open =
        |operation: &&Value| operation["security"].as_array().is_some_and(|ways| ways.contains(&json!({})));
    let names = operations.filter(is_open).map(|operation| operation["operationId"].as_str().unwrap());
    let unknown: Vec<&str> = names.filter(|name| !OPEN.contains(name)).collect();
    assert!(
        unknown.is_empty(),
        "say here how these calls without a key are kept to their tenant: {unknown:?}"
    );
}

#[tokio::test]
async fn no_call_reaches_across_tenants() {
    let (api, made, theirs) = with_two_tenants().await;
    let before = state_of_first(&api).await;
    let document = serde_json::to_value(postway_api::document()).unwrap();
    let mut calls = calls(&document, &made);
    // First what must not be found, then readers, then what makes something of the caller's own under the
    // same names.
    calls.sort_by_key(|call| (call.expected == Expected::OwnOnly, call.method != "GET"));
    assert!(calls.len() > 60, "the document has {} calls", calls.len());
    for Call { method, path, body, expected } in calls {
        let kind = if path.ends_with("/import") {
            "text/csv"
        } else if path.ends_with("/raw") {
            "message/rfc822"
        } else {
            "application/json"
        };
        // As much as there is.
        let query = if path == "/v1/cleanup" { "?older_than_seconds=0" } else { "" };
        let request = axum::http::Request::builder()
            .method(method.as_str())
            .uri(format!("{path}{query}"))
            .header("x-api-key", &theirs)
            // A tenant's key is bound to its tenant, whatever this says.
            .header("x-tenant", "default")
            .header("content-type", kind);
        let answer = api.ask(request.body(body.into()).unwrap()).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        match expected {
            Expected::NotFound => drop(answer.refused(404, "not_found")),
            Expected::Forbidden => drop(answer.refused(403, "forbidden")),
            Expected::OwnOnly => {
                assert!(answer.status.is_success(), "{method} {path}: {} {text}", answer.status);
                assert!(method != "GET" || !text.contains(MARK), "{method} {path} leaks: {text}");
                assert!(
                    !text.contains("first-secret") && !text.contains("first-smtp"),
                    "{method} {path}: {text}"
                );
            }
        }
    }
    // What was asked for is done, too.
    do_bulk_actions(&api).await;
    assert_eq!(state_of_first(&api).await, before, "something of the first tenant was changed");
}
