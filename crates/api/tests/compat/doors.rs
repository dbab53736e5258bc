//! What all compatibility APIs have in common: their paths, their keys, and their own error formats.

use axum::{body::Body, http::Request};
use postway_api::{CompatApi, CompatConfig};
use postway_domain::secret::SecretKey;
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY, REQUEST_BYTES_MAX};

pub async fn with_header(api: &Api, header: (&str, &str), method: &str, path: &str, body: Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header(header.0, header.1);
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn with_doors(doors: &[CompatApi], root: Option<CompatApi>) -> Api {
    let config = CompatConfig { doors: doors.iter().copied().collect(), root };
    Api::with(SecretKey::from_bytes(&[7; 32]).unwrap(), config).await
}

/// The error of a compatibility API: its status, and a check of its format.
#[track_caller]
fn is_refused_by(door: &str, answer: &Answer, status: u16) {
    let json = answer.json();
    assert_eq!(answer.status.as_u16(), status, "{door}: {json}");
    assert_eq!(answer.headers["content-type"], "application/json", "{door}");
    match door {
        "001" | "proxy" => {
            assert!(json["ok"] == json!(false) && json["error"].is_string(), "{door}: {json}");
            assert_eq!(json["detail"], json["error"], "{door}");
        }
        "resend" => {
            assert!(json["name"].is_string() && json["message"].is_string(), "{door}: {json}");
            assert_eq!(json["statusCode"], status, "{door}: {json}");
        }
        "postmark" => assert!(json["ErrorCode"].is_number() && json["Message"].is_string(), "{door}: {json}"),
        "sendgrid" => {
            let errors = json["errors"].as_array().filter(|errors| !errors.is_empty());
            assert!(
                errors.is_some_and(|errors| errors.iter().all(|one| one["message"].is_string())),
                "{json}"
            );
        }
        "mailgun" => assert!(json["message"].is_string(), "{door}: {json}"),
        "004" | "pipeline" => {
            assert!(json["error"]["code"].is_string() && json["error"]["message"].is_string(), "{json}");
            assert_eq!(json["error"]["requestId"], answer.headers["x-request-id"].to_str().unwrap());
        }
        _ => assert!(json["error"].is_string() && json["code"].is_string(), "{door}: {json}"),
    }
}

#[tokio::test]
async fn every_refusal_is_in_the_shape_of_its_door() {
    let api = Api::start().await;
    for (door, path) in [
        ("outbox", "/emails"),
        ("000", "/emails"),
        ("proxy", "/commands/add-messages"),
        ("001", "/commands/add-messages"),
        ("pipeline", "/v1/email/send"),
        ("004", "/v1/email/send"),
    ] {
        let path = format!("/compat/{door}{path}");
        let nobody = api.ask(Request::post(&path).body(Body::from("{}")).unwrap()).await;
        is_refused_by(door, &nobody, 401);
        assert!(nobody.headers.contains_key("www-authenticate"));
        let stranger = with_header(&api, ("authorization", "Bearer nobody"), "POST", &path, json!({})).await;
        is_refused_by(door, &stranger, 401);
        is_refused_by(door, &api.call("DELETE", &path, "").await, 405);
        is_refused_by(door, &api.get(&format!("/compat/{door}/nothing/here")).await, 404);
        is_refused_by(door, &api.call("POST", &path, "{").await, 400);
        is_refused_by(door, &api.call("POST", &path, "[1").await, 400);
        is_refused_by(door, &api.call("POST", &path, "[]").await, 422);
        let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(REQUEST_BYTES_MAX));
        is_refused_by(door, &api.call("POST", &path, large).await, 413);
        let key = api.key("default", json!({"name": "reader", "scopes": ["read"]})).await;
        is_refused_by(
            door,
            &api.as_key(&key, "POST", &path, json!({"messages": [], "data": []}).to_string()).await,
            403,
        );
    }
}

#[tokio::test]
async fn a_door_takes_its_own_header_and_ours_and_its_own_goes_first() {
    let api = Api::start().await;
    for (header, path) in [
        ("x-api-token", "/compat/001/status"),
        ("x-api-key", "/compat/001/status"),
        ("x-api-key", "/compat/004/v1/emails"),
        ("x-api-key", "/compat/000/emails"),
    ] {
        with_header(&api, (header, KEY), "GET", path, json!({})).await.ok(200);
    }
    let both = Request::get("/compat/001/status")
        .header("x-api-token", KEY)
        .header("authorization", "Bearer nobody")
        .body(Body::empty());
    api.ask(both.unwrap()).await.ok(200);
    with_header(&api, ("x-api-token", KEY), "GET", "/v1/messages", json!({}))
        .await
        .refused(401, "unauthorized");
}

#[tokio::test]
async fn an_empty_header_says_nothing_of_a_key() {
    let api = Api::start().await;
    for (header, path) in [("x-api-token", "/compat/001/status"), ("x-api-key", "/compat/004/v1/emails")] {
        let both = Request::get(path)
            .header(header, " ")
            .header("authorization", format!("Bearer {KEY}"))
            .body(Body::empty());
        api.ask(both.unwrap()).await.ok(200);
        is_refused_by(&path[8..11], &with_header(&api, (header, ""), "GET", path, json!({})).await, 401);
    }
}

#[tokio::test]
async fn slashes_that_say_nothing_are_passed_over() {
    let api = Api::start().await;
    for path in [
        "/compat/000/emails/",
        "/compat/000//emails?limit=1",
        "/compat/001//status",
        "/compat/001/status/?tenant_id=default",
        "/compat/001//messages//",
        "/compat/004//v1/emails/",
    ] {
        api.get(path).await.ok(200);
    }
    let sent =
        json!({"messages": [{"id": "m", "from": "shop@example.com", "to": "ada@example.net", "body": "t"}]});
    assert_eq!(api.post("/compat/001//commands/add-messages/", sent).await.ok(200)["queued"], 1);
    assert_eq!(api.get("/compat/004/v1//emails/m/").await.ok(200)["status"], "VALIDATED");
    for (door, path) in [
        ("000", "/compat/000"),
        ("001", "/compat/001/"),
        ("001", "/compat/001//"),
        ("004", "/compat/004//nothing/"),
    ] {
        is_refused_by(door, &api.get(path).await, 404);
    }
    is_refused_by("001", &api.call("DELETE", "/compat/001/status/", "").await, 405);
    let nobody = Request::get("/compat/001//status").body(Body::empty()).unwrap();
    is_refused_by("001", &api.ask(nobody).await, 401);
}

#[tokio::test]
async fn a_door_that_is_switched_off_is_not_there() {
    let api = with_doors(&[CompatApi::Proxy], None).await;
    api.get("/compat/001/status").await.ok(200);
    for path in ["/compat/000/emails", "/compat/004/v1/emails", "/status", "/messages"] {
        api.get(path).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn every_door_may_be_at_the_root_and_ours_stays_where_it_is() {
    for (door, path) in [
        (CompatApi::Outbox, "/emails"),
        (CompatApi::Proxy, "/messages"),
        (CompatApi::Pipeline, "/v1/emails"),
        (CompatApi::Resend, "/emails"),
    ] {
        let api = with_doors(&CompatApi::ALL, Some(door)).await;
        api.get(path).await.ok(200);
        api.get(&format!("/{path}/")).await.ok(200);
        api.get(&format!("/compat/{door}{path}")).await.ok(200);
        is_refused_by(door.as_str(), &api.call("DELETE", path, "").await, 405);
        is_refused_by(door.as_str(), &api.ask(Request::get(path).body(Body::empty()).unwrap()).await, 401);
        api.get("/v1/messages").await.ok(200);
        api.get("/v1/messages/none").await.refused(404, "not_found");
        assert_eq!(api.get("/").await.status.as_u16(), 200);
    }
}

/// Its users read errors in its shape only: a 404 of ours is a success to some of their programs.
#[tokio::test]
async fn what_is_nowhere_is_refused_by_the_door_at_the_root() {
    for door in CompatApi::ALL {
        let api = with_doors(&CompatApi::ALL, Some(door)).await;
        for path in ["/nothing/here", "/nothing/", "//nothing", "/emails/x/y/z"] {
            is_refused_by(door.as_str(), &api.get(path).await, 404);
            is_refused_by(door.as_str(), &api.call("POST", path, "{}").await, 404);
        }
        for ours in [
            "/v1/nothing",
            "/v1/messages/x/y/z",
            "/health/x",
            "/docs/x",
            "/assets/none",
            "/compat/none/emails",
        ] {
            api.get(ours).await.refused(404, "not_found");
        }
        api.call("DELETE", "/health/live", "").await.refused(405, "method_not_allowed");
        api.get("/v1/messages").await.ok(200);
    }
    let api = with_doors(&CompatApi::ALL, None).await;
    api.get("/nothing/here").await.refused(404, "not_found");
}

/// Postmark's clients end some paths with a slash, also if the API is at the root.
#[tokio::test]
async fn a_slash_at_the_end_says_nothing_at_the_root_either() {
    let api = with_doors(&CompatApi::ALL, Some(CompatApi::Postmark)).await;
    let mail = json!({"From": "a@example.com", "To": "b@example.net", "Subject": "Hi", "TextBody": "Hi"});
    for path in ["/email/", "//email", "/compat/postmark/email/"] {
        assert_eq!(api.post(path, mail.clone()).await.ok(200)["ErrorCode"], 0, "{path}");
    }
    is_refused_by("postmark", &api.call("DELETE", "/email/", "").await, 405);
    let nobody = Request::post("/email/").body(Body::from("{}")).unwrap();
    is_refused_by("postmark", &api.ask(nobody).await, 401);
}

/// Resend's gem for Ruby joins the address and the path as they are, and takes every answer without
/// `statusCode` for a success.
#[tokio::test]
async fn an_address_without_its_last_slash_leads_to_the_door() {
    let api = Api::start().await;
    let email = json!({"from": "a@example.com", "to": "b@example.net", "subject": "Hi", "text": "Hi"});
    let id = api.post("/compat/resendemails", email.clone()).await.ok(200)["id"].as_str().unwrap().to_owned();
    api.post("/compat/resendemails/batch", json!([email])).await.ok(200);
    assert_eq!(api.get(&format!("/compat/resendemails/{id}")).await.ok(200)["id"], *id);
    assert_eq!(api.get("/compat/resendemails?limit=1").await.ok(200)["has_more"], true);
    for door in CompatApi::ALL {
        let path = format!("/compat/{door}nothing");
        is_refused_by(door.as_str(), &api.get(&path).await, 404);
        is_refused_by(door.as_str(), &api.call("POST", &path, "{}").await, 404);
    }
    is_refused_by("resend", &api.call("PUT", "/compat/resendemails", "{}").await, 405);
    api.get("/compat/resen").await.refused(404, "not_found");
    let api = with_doors(&[CompatApi::Postmark], None).await;
    api.get("/compat/resendemails").await.refused(404, "not_found");
}
