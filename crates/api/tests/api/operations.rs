//! For operators: health, metrics, statistics, documents.

use axum::{body::Body, http::Request};
use postway_domain::{MessageState, RecipientStatus::*};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

async fn open(api: &Api, path: &str) -> Answer {
    api.ask(Request::get(path).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn health_and_documents_need_no_key() {
    let api = Api::start().await;
    assert_eq!(open(&api, "/health/live").await.ok(200), json!({"status": "ok"}));
    assert_eq!(open(&api, "/health/ready").await.ok(200), json!({"status": "ok"}));
    assert_eq!(open(&api, "/").await.status, 200);
}

#[tokio::test]
async fn stats_count_every_state_and_the_oldest_due() {
    let api = Api::start().await;
    api.stored("a", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    api.stored("b", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.clock.forward_ms(7_500);
    let stats = api.get("/v1/stats").await.ok(200);
    assert_eq!((&stats["by_status"]["ready"], &stats["by_status"]["sent"]), (&json!(1), &json!(1)));
    assert_eq!(stats["by_status"].as_object().unwrap().len(), 13);
    assert_eq!((&stats["oldest_due_seconds"], &stats["held"]), (&json!(7), &json!(0)));
    assert_eq!((&stats["oldest_held_seconds"], &stats["in_doubt_held"]), (&json!(0), &json!(0)));
    assert!(stats["rates"].is_object());
}

#[tokio::test]
async fn what_is_held_and_what_waits_for_a_word_is_told_apart() {
    let api = Api::start().await;
    api.stored("a", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    api.stored("b", MessageState::InDoubt, &[("ada@example.net", InDoubt)]).await;
    api.post("/v1/accounts/sandbox/suspend", json!({})).await.ok(200);
    api.clock.forward_ms(7_500);
    for path in ["/v1/stats", "/v1/overview"] {
        let stats = api.get(path).await.ok(200);
        assert_eq!((&stats["held"], &stats["oldest_held_seconds"]), (&json!(1), &json!(7)), "{path}");
        assert_eq!(stats["oldest_due_seconds"], 0, "{path}");
        assert_eq!(
            (&stats["by_status"]["in_doubt"], &stats["in_doubt_held"]),
            (&json!(1), &json!(1)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_never_by_path() {
    let api = Api::start().await;
    let _recording = metrics::set_default_local_recorder(&api.recorder);
    api.get("/v1/messages/secret-order").await;
    open(&api, "/v1/nowhere/ada@example.net").await;
    let metrics = open(&api, "/metrics").await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(
        text.contains(r#"postway_http_requests_total{route="/v1/messages/{id}",status="404"} 1"#),
        "{text}"
    );
    assert!(text.contains(r#"route="unmatched""#), "{text}");
    assert!(!text.contains("secret-order") && !text.contains("ada@"), "{text}");
    assert!(metrics.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
}

#[tokio::test]
async fn metrics_ask_for_a_key_where_one_is_set() {
    let api = Api::start().await;
    let tenant_key = api.key("other", json!({"scopes": ["send", "read", "manage"]})).await;
    let scrape_key = "a-key-for-scrapers-of-32-characters";
    let guarded = api.beside(Some(scrape_key));
    open(&guarded, "/metrics").await.refused(401, "unauthorized");
    guarded.as_key("pw_wrong", "GET", "/metrics", "").await.refused(401, "unauthorized");
    guarded.as_key(&tenant_key, "GET", "/metrics", "").await.refused(403, "forbidden");
    for key in [scrape_key, KEY] {
        assert_eq!(guarded.as_key(key, "GET", "/metrics", "").await.status, 200);
    }
    // It opens nothing else.
    guarded.as_key(scrape_key, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    // If no key is required, a wrong one does not matter.
    assert_eq!(api.as_key("pw_wrong", "GET", "/metrics", "").await.status, 200);
}

#[tokio::test]
async fn the_openapi_document_lists_every_route() {
    let api = Api::start().await;
    let document = open(&api, "/openapi.json").await.ok(200);
    let mut calls: Vec<String> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys().filter(|key| key.chars().all(char::is_lowercase));
        calls.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    calls.sort();
    let expected = [
        "DELETE /v1/accounts/{id}",
        "DELETE /v1/accounts/{id}/hook",
        "DELETE /v1/archive/{id}",
        "DELETE /v1/contacts/{id}",
        "DELETE /v1/dkim/{domain}/{selector}",
        "DELETE /v1/domains/{domain}",
        "DELETE /v1/mailboxes/{id}",
        "DELETE /v1/passkeys/{id}",
        "DELETE /v1/recipients/{id}",
        "DELETE /v1/routes/{id}",
        "DELETE /v1/rules/{id}",
        "DELETE /v1/scoped-suppressions/{pattern}",
        "DELETE /v1/session",
        "DELETE /v1/sessions",
        "DELETE /v1/sessions/{id}",
        "DELETE /v1/streams/{id}",
        "DELETE /v1/suppressions/{address}",
        "DELETE /v1/templates/{name}",
        "DELETE /v1/tenants/{id}",
        "DELETE /v1/tenants/{id}/keys/{key_id}",
        "DELETE /v1/users/{name}",
        "DELETE /v1/users/{name}/sessions",
        "DELETE /v1/webhooks/{id}",
        "GET /docs",
        "GET /files/{token}",
        "GET /health/live",
        "GET /health/ready",
        "GET /metrics",
        "GET /openapi.json",
        "GET /unsubscribe/{token}",
        "GET /v1/accounts",
        "GET /v1/accounts/{id}",
        "GET /v1/accounts/{id}/hook",
        "GET /v1/accounts/{id}/hook/events",
        "GET /v1/archive",
        "GET /v1/archive/{id}",
        "GET /v1/archive/{id}/raw",
        "GET /v1/audit",
        "GET /v1/audit/lines",
        "GET /v1/batches",
        "GET /v1/batches/{code}",
        "GET /v1/bulk-actions",
        "GET /v1/bulk-actions/{id}",
        "GET /v1/contacts",
        "GET /v1/contacts/{id}",
        "GET /v1/dead-letters",
        "GET /v1/dkim",
        "GET /v1/dkim/{domain}/{selector}",
        "GET /v1/domains",
        "GET /v1/domains/{domain}/reports",
        "GET /v1/domains/{domain}/reports/summary",
        "GET /v1/events",
        "GET /v1/inbound",
        "GET /v1/inbound/{id}",
        "GET /v1/inbound/{id}/attachments/{index}",
        "GET /v1/inbound/{id}/content",
        "GET /v1/inbound/{id}/preview",
        "GET /v1/inbound/{id}/raw",
        "GET /v1/mailboxes",
        "GET /v1/mailboxes/{id}",
        "GET /v1/messages",
        "GET /v1/messages/{id}",
        "GET /v1/messages/{id}/attachments/{index}",
        "GET /v1/messages/{id}/content",
        "GET /v1/messages/{id}/events",
        "GET /v1/messages/{id}/explain",
        "GET /v1/messages/{id}/payload",
        "GET /v1/messages/{id}/pec",
        "GET /v1/messages/{id}/pec/export",
        "GET /v1/messages/{id}/preview",
        "GET /v1/messages/{id}/raw",
        "GET /v1/nodes",
        "GET /v1/outbox",
        "GET /v1/overview",
        "GET /v1/passkeys",
        "GET /v1/recipients",
        "GET /v1/recipients/{id}",
        "GET /v1/routes",
        "GET /v1/routes/{id}",
        "GET /v1/rules",
        "GET /v1/rules/{id}",
        "GET /v1/scoped-suppressions",
        "GET /v1/session",
        "GET /v1/session/oidc",
        "GET /v1/session/oidc/callback",
        "GET /v1/session/oidc/logout",
        "GET /v1/session/ways",
        "GET /v1/sessions",
        "GET /v1/statistics",
        "GET /v1/stats",
        "GET /v1/streams",
        "GET /v1/streams/{id}",
        "GET /v1/streams/{id}/statistics",
        "GET /v1/suppressions",
        "GET /v1/suppressions/export",
        "GET /v1/suppressions/{address}",
        "GET /v1/templates",
        "GET /v1/templates/{name}",
        "GET /v1/templates/{name}/versions",
        "GET /v1/tenant",
        "GET /v1/tenants",
        "GET /v1/tenants/{id}",
        "GET /v1/tenants/{id}/keys",
        "GET /v1/users",
        "GET /v1/users/{name}",
        "GET /v1/users/{name}/sessions",
        "GET /v1/webhooks",
        "GET /v1/webhooks/{id}",
        "GET /v1/webhooks/{id}/deliveries",
        "PATCH /v1/accounts/{id}",
        "PATCH /v1/contacts/{id}",
        "PATCH /v1/mailboxes/{id}",
        "PATCH /v1/recipients/{id}",
        "PATCH /v1/routes/{id}",
        "PATCH /v1/rules/{id}",
        "PATCH /v1/streams/{id}",
        "PATCH /v1/suppressions/{address}",
        "PATCH /v1/tenants/{id}",
        "PATCH /v1/users/{name}",
        "PATCH /v1/webhooks/{id}",
        "POST /hooks/{provider}/{token}",
        "POST /unsubscribe/{token}",
        "POST /v1/accounts",
        "POST /v1/accounts/{id}/activate",
        "POST /v1/accounts/{id}/hook/rotate",
        "POST /v1/accounts/{id}/suspend",
        "POST /v1/accounts/{id}/test",
        "POST /v1/batches/{code}/activate",
        "POST /v1/batches/{code}/suspend",
        "POST /v1/bulk-actions",
        "POST /v1/bulk-actions/{id}/stop",
        "POST /v1/cleanup",
        "POST /v1/contacts",
        "POST /v1/dead-letters/replay",
        "POST /v1/dkim",
        "POST /v1/dkim/{domain}/{selector}/activate",
        "POST /v1/dkim/{domain}/{selector}/suspend",
        "POST /v1/domains/{domain}/check",
        "POST /v1/erase",
        "POST /v1/inbound/replay",
        "POST /v1/inbound/{id}/replay",
        "POST /v1/inbound/{id}/resolve",
        "POST /v1/mailboxes",
        "POST /v1/mailboxes/{id}/activate",
        "POST /v1/mailboxes/{id}/suspend",
        "POST /v1/mailboxes/{id}/test",
        "POST /v1/messages",
        "POST /v1/messages/batch",
        "POST /v1/messages/raw",
        "POST /v1/messages/{id}/cancel",
        "POST /v1/messages/{id}/reschedule",
        "POST /v1/messages/{id}/resolve",
        "POST /v1/messages/{id}/retry",
        "POST /v1/passkeys",
        "POST /v1/passkeys/challenge",
        "POST /v1/recipients",
        "POST /v1/routes",
        "POST /v1/routes/order",
        "POST /v1/routes/try",
        "POST /v1/rules",
        "POST /v1/rules/dry-run",
        "POST /v1/scoped-suppressions",
        "POST /v1/secrets/rotate",
        "POST /v1/session",
        "POST /v1/session/invitation",
        "POST /v1/session/oidc/logout",
        "POST /v1/session/passkey",
        "POST /v1/session/passkey/challenge",
        "POST /v1/streams",
        "POST /v1/suppressions",
        "POST /v1/suppressions/import",
        "POST /v1/templates",
        "POST /v1/templates/preview",
        "POST /v1/templates/{name}/preview",
        "POST /v1/templates/{name}/test",
        "POST /v1/tenants",
        "POST /v1/tenants/{id}/activate",
        "POST /v1/tenants/{id}/keys",
        "POST /v1/tenants/{id}/suspend",
        "POST /v1/tokens/verify",
        "POST /v1/users",
        "POST /v1/users/{name}/invitation",
        "POST /v1/webhooks",
        "POST /v1/webhooks/{id}/deliveries/{uid}/{sequence}/resend",
        "POST /v1/webhooks/{id}/resend",
        "POST /v1/webhooks/{id}/rotate",
        "POST /v1/webhooks/{id}/test",
        "PUT /v1/accounts/{id}",
        "PUT /v1/accounts/{id}/hook",
        "PUT /v1/templates/{name}",
    ];
    assert_eq!(calls, expected);
    let ids: Vec<&Value> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .filter_map(|operation| operation.get("operationId"))
        .collect();
    let distinct: std::collections::BTreeSet<String> = ids.iter().map(|id| id.to_string()).collect();
    assert_eq!(distinct.len(), ids.len(), "operation ids are distinct");
    assert_no_dangling_refs(&document, &document);
}

fn assert_no_dangling_refs(document: &Value, part: &Value) {
    match part {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get("$ref") {
                assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target} leads nowhere");
            }
            object.values().for_each(|value| assert_no_dangling_refs(document, value));
        }
        Value::Array(items) => items.iter().for_each(|value| assert_no_dangling_refs(document, value)),
        _ => {}
    }
}

#[tokio::test]
async fn the_docs_are_a_page_that_needs_nothing_from_elsewhere() {
    let api = Api::start().await;
    let page = open(&api, "/docs").await;
    assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    let html = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(
        html.contains("POST") && html.contains("/v1/messages/{id}/resolve") && html.contains("curl -X POST")
    );
    assert_eq!((html.matches("<script").count(), html.matches(" src=\"/docs/script.js\"").count()), (1, 1));
    for elsewhere in ["src=\"http", "src=\"//", "href=\"http", "url("] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    let style = open(&api, "/docs/style.css").await;
    assert_eq!(style.headers["content-type"], "text/css; charset=utf-8");
    let script = open(&api, "/docs/script.js").await;
    assert_eq!(script.headers["content-type"], "text/javascript; charset=utf-8");
    assert!(String::from_utf8_lossy(&style.body).contains("prefers-color-scheme: dark"));
}
