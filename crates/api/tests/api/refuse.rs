//! Refusals: missing keys, wrong keys, missing scopes.

use axum::{body::Body, http::Request};
use postway_domain::{MessageState, RecipientStatus::Sent};
use serde_json::json;

use crate::support::{Api, KEY};

#[tokio::test]
async fn without_a_valid_key_nothing_of_v1_opens() {
    let api = Api::start().await;
    for (name, value) in [
        ("authorization", "Bearer wrong"),
        ("authorization", "Basic abc"),
        ("authorization", KEY),
        ("x-api-key", ""),
        ("x-nothing", "x"),
    ] {
        for (method, path) in [("GET", "/v1/messages"), ("POST", "/v1/messages"), ("GET", "/v1/accounts/x")] {
            let request = Request::builder().method(method).uri(path).header(name, value);
            let answer = api.ask(request.body(Body::empty()).unwrap()).await;
            answer.refused(401, "unauthorized");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
}

#[tokio::test]
async fn an_unknown_tenant_is_not_found_by_name() {
    let api = Api::start().await;
    for tenant in ["nobody", "a b", ""] {
        let request = Request::get("/v1/messages").header("x-api-key", KEY).header("x-tenant", tenant);
        let error = api.ask(request.body(Body::empty()).unwrap()).await.refused(404, "not_found");
        assert!(error["message"].as_str().unwrap().contains(&format!("`{tenant}`")), "{error}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_have_the_same_shape() {
    let api = Api::start().await;
    api.get("/v2/messages").await.refused(404, "not_found");
    api.get("/v1/messages/").await.refused(404, "not_found");
    let answer = api.call("DELETE", "/v1/messages/order-1", "").await;
    answer.refused(405, "method_not_allowed");
    assert!(answer.headers["allow"].to_str().unwrap().contains("GET"));
}

#[tokio::test]
async fn a_path_that_cannot_be_read_is_refused_in_the_same_shape() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.ok(200);
    // A path of hooks that cannot be read is no hook, whatever is wrong with it.
    let is_checked = |route: &str| route.contains('{') && !route.starts_with("/hooks/");
    for (route, item) in document["paths"].as_object().unwrap().iter().filter(|(route, _)| is_checked(route))
    {
        let path: Vec<&str> =
            route.split('/').map(|part| if part.starts_with('{') { "%FF" } else { part }).collect();
        for method in item.as_object().unwrap().keys().filter(|key| key.chars().all(char::is_lowercase)) {
            let answer = api.call(&method.to_uppercase(), &path.join("/"), "{}").await;
            answer.refused(400, "malformed_request");
        }
    }
    api.get("/assets/%FF").await.refused(400, "malformed_request");
    api.stored("m", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    for place in ["x", "-1", "99999999999999999999999"] {
        api.get(&format!("/v1/messages/m/attachments/{place}")).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn below_tenants_nobody_but_the_admin_learns_what_there_is() {
    let api = Api::start().await;
    let theirs = api.key("default", json!({})).await;
    for (method, path, for_admin) in [
        ("GET", "/v1/tenants", 200),
        ("GET", "/v1/tenants/default", 200),
        ("GET", "/v1/tenants/nope", 404),
        ("GET", "/v1/tenants/default?foo=1", 422),
        ("PUT", "/v1/tenants/nope", 405),
        ("DELETE", "/v1/tenants", 405),
        ("POST", "/v1/tenants/x/y/z", 404),
        ("GET", "/v1/tenants/", 404),
        ("OPTIONS", "/v1/tenants/default/keys", 405),
        ("GET", "/v1/tenants/%ff", 400),
    ] {
        assert_eq!(api.call(method, path, "").await.status.as_u16(), for_admin, "{method} {path}");
        api.as_key(&theirs, method, path, "").await.refused(403, "forbidden");
        let request = Request::builder().method(method).uri(path);
        api.ask(request.body(Body::empty()).unwrap()).await.refused(401, "unauthorized");
    }
    // What only begins alike is no part of it.
    api.as_key(&theirs, "GET", "/v1/tenantsandmore", "").await.refused(404, "not_found");
    api.as_key(&theirs, "GET", "/v1/tenant", "").await.ok(200);
}

#[tokio::test]
async fn a_body_of_another_kind_is_refused_by_its_name() {
    let api = Api::start().await;
    for path in [
        "/v1/messages",
        "/v1/messages/batch",
        "/v1/accounts",
        "/v1/messages/m/resolve",
        "/v1/dead-letters/replay",
    ] {
        let request =
            Request::post(path).header("x-api-key", KEY).header("content-type", "text/xml; charset=utf-8");
        let error =
            api.ask(request.body(Body::from("<a/>")).unwrap()).await.refused(415, "unsupported_media_type");
        assert!(error["message"].as_str().unwrap().contains("text/xml"), "{error}");
    }
}
