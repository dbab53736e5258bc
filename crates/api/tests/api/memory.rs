//! The memory budget of requests and answers: counted, shared, and given back.

use axum::{
    body::{Body, to_bytes},
    http::Request,
    response::Response,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{MessageState, MessageUid};
use postway_mime::reader::{ReaderLimit, limit::SHOWN_TEXT_BYTES_MAX};
use postway_store::record::StoredBody;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Api, KEY};

const MIB: usize = 1024 * 1024;
/// As many mails of twelve MiB as one tenant's share of the budget allows.
const ROOM_OF_TENANT: usize = 8;

/// A message whose mail has twelve MiB.
async fn large(api: &Api) -> MessageUid {
    let head = b"Subject: large\r\nContent-Type: text/plain\r\n\r\n";
    let mail = [&head[..], &vec![b'x'; 12 * MIB]].concat();
    api.stored_with("large", MessageState::Ready, &[], |message| {
        message.content.raw = StoredBody::Inline(mail.into())
    })
    .await
}

/// Asks as a tenant, and leaves the answer unread.
async fn unread(api: &Api, tenant: &str, path: &str) -> Response {
    let request = Request::get(path).header("x-api-key", KEY).header("x-tenant", tenant);
    api.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// As many unread answers as the tenant's share of the budget allows.
async fn fill(api: &Api, path: &str) -> Vec<Response> {
    let mut answers = Vec::new();
    for _ in 0..ROOM_OF_TENANT {
        let answer = unread(api, "default", path).await;
        assert_eq!(answer.status().as_u16(), 200);
        answers.push(answer);
    }
    answers
}

#[tokio::test]
async fn answers_count_until_they_are_taken() {
    let api = Api::start().await;
    let uid = large(&api).await;
    for path in
        ["raw", "attachments/0", "content", "preview"].map(|part| format!("/v1/messages/{uid}/{part}"))
    {
        let raw = format!("/v1/messages/{uid}/raw");
        let mut answers = fill(&api, &raw).await;
        let refused = unread(&api, "default", &path).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let error = to_bytes(refused.into_body(), MIB).await.unwrap();
        let error: Value = serde_json::from_slice(&error).unwrap();
        assert_eq!(error["error"]["code"], "unavailable", "{error}");
        // What is small is answered all the same, and so is another tenant.
        assert_eq!(unread(&api, "default", "/v1/messages").await.status().as_u16(), 200);
        assert_eq!(unread(&api, "other", &path).await.status().as_u16(), 404);
        // Bytes that were read free the budget; that the answer's parts exist is not enough.
        let (parts, body) = answers.pop().unwrap().into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        assert!(bytes.len() > 12 * MIB && parts.status.is_success());
        assert_eq!(unread(&api, "default", &raw).await.status().as_u16(), 503);
        drop(bytes);
        assert_eq!(unread(&api, "default", &raw).await.status().as_u16(), 200);
    }
}

#[tokio::test]
async fn what_is_shown_is_there_again_once_others_are_done() {
    let api = Api::start().await;
    let uid = large(&api).await;
    for _ in 0..10 {
        let content = api.get(&format!("/v1/messages/{uid}/content")).await.ok(200);
        assert_eq!(content["text"].as_str().map(str::len), Some(SHOWN_TEXT_BYTES_MAX));
        assert_eq!(content["omitted"], json!([ReaderLimit::ShownText.to_string()]));
    }
    let together = (0..6).map(|_| unread_content(&api, uid));
    for status in futures::future::join_all(together).await {
        assert!([200, 503].contains(&status), "{status}");
    }
    assert_eq!(unread_content(&api, uid).await, 200);
}

async fn unread_content(api: &Api, uid: MessageUid) -> u16 {
    unread(api, "default", &format!("/v1/messages/{uid}/content")).await.status().as_u16()
}

#[tokio::test]
async fn bodies_find_no_room_where_answers_have_taken_it() {
    let api = Api::start().await;
    let uid = large(&api).await;
    let answers = fill(&api, &format!("/v1/messages/{uid}/raw")).await;
    let body = || {
        let pieces = [vec![b' '; 400 * 1024], b"{\"ids\": [\"none\"]}".to_vec()];
        let pieces = pieces.map(|piece| Ok::<_, std::io::Error>(axum::body::Bytes::from(piece)));
        Body::from_stream(futures::stream::iter(pieces))
    };
    let paths = ["/v1/dead-letters/replay", "/compat/001/commands/delete-messages", "/compat/001/account"];
    for path in paths {
        assert_eq!(api.call("POST", path, body()).await.status.as_u16(), 503, "{path}");
    }
    drop(answers);
    for path in paths {
        assert_ne!(api.call("POST", path, body()).await.status.as_u16(), 503, "{path}");
    }
}

#[tokio::test]
async fn what_a_hook_takes_of_the_memory_is_its_tenants() {
    let api = Api::start().await;
    let uid = large(&api).await;
    api.post("/v1/accounts", json!({"id": "relay", "host": "h.example"})).await.ok(201);
    let made = api.put("/v1/accounts/relay/hook", json!({"provider": "postmark"})).await.ok(201);
    let pair = format!("postway:{}", made["secret"].as_str().unwrap());
    let report = async || {
        let event = format!("{{\"RecordType\":\"Open\",\"x\":\"{}\"}}", "x".repeat(400_000));
        let request = Request::post(made["url"].as_str().unwrap())
            .header("authorization", format!("Basic {}", BASE64_STANDARD.encode(&pair)));
        api.ask(request.body(event.into()).unwrap()).await.status.as_u16()
    };
    assert_eq!(report().await, 200);
    let answers = fill(&api, &format!("/v1/messages/{uid}/raw")).await;
    assert_eq!(report().await, 503, "its tenant has taken its part");
    drop(answers);
    assert_eq!(report().await, 200);
}

fn zeros(count: usize) -> String {
    format!("[{}0]", "0,".repeat(count - 1))
}

#[tokio::test]
async fn values_are_bounded_before_they_are_built() {
    let api = Api::start().await;
    let many = format!("{{\"x\":{}}}", zeros(400_000));
    for path in [
        "/v1/webhooks",
        "/v1/accounts",
        "/v1/rules",
        "/v1/suppressions",
        "/v1/templates",
        "/v1/tokens/verify",
    ] {
        let error = api.call("POST", path, many.clone()).await.refused(422, "validation_error");
        assert!(error["message"].as_str().unwrap().contains("20000 values"), "{path}: {error}");
    }
    // Of many unknown fields not all are reported.
    let unknown: String = (0..9_000).map(|number| format!("\"f{number}\":0,")).collect();
    let error = api.call("POST", "/v1/webhooks", format!("{{{unknown}\"z\":0}}")).await;
    assert!(error.refused(422, "validation_error")["details"].as_array().unwrap().len() < 200);
}

#[tokio::test]
async fn a_line_of_an_import_is_bounded_before_it_is_built() {
    let api = Api::start().await;
    let many = format!("{{\"address\":{}", zeros(400_000));
    let long = format!("{{\"address\":\"{}\"}}", "x".repeat(100_000));
    let quoted = format!("\"{}\"", "x\n".repeat(100_000));
    for (format, line, limit) in [
        ("jsonl", &many[..60_000], "100 values"),
        ("jsonl", &many, "65536 bytes"),
        ("jsonl", &long, "65536 bytes"),
        ("csv", &"x,".repeat(20_000), "32 columns"),
        ("csv", &quoted, "65536 bytes"),
    ] {
        let next = if format == "csv" { "a@example.net" } else { "\"a@example.net\"" };
        let path = format!("/v1/suppressions/import?format={format}");
        let result = api.call("POST", &path, format!("{line}\n{next}\n")).await.ok(200);
        let message = result["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(limit), "{format}: {message}");
        assert_eq!((&result["imported"], &result["rejected"]), (&json!(1), &json!(1)), "{result}");
    }
}

#[tokio::test]
async fn a_page_of_stored_requests_is_bounded_before_it_is_built() {
    let api = Api::start().await;
    let stored = async |id: &str, payload: String| {
        api.stored_with(id, MessageState::Ready, &[], |message| {
            message.content.payload = Some(StoredBody::Inline(payload.into()));
        })
        .await
    };
    let template = format!(r#""template":{{"name":"t","variables":{{"list":{}}}}}"#, zeros(30_000));
    stored("template", format!(r#"{{"from":"shown@example.com",{template}}}"#)).await;
    stored("hostile", format!(r#"{{"from":"left-out@example.com","to":{}}}"#, zeros(30_000))).await;
    let page = api.get("/compat/001/messages?tenant_id=default").await.ok(200);
    let from = |id: &str| {
        let found = page["messages"].as_array().unwrap().iter().find(|message| message["id"] == id);
        found.unwrap()["message"]["from"].clone()
    };
    assert_eq!(from("template"), "shown@example.com", "what is not shown does not count");
    assert_eq!(from("hostile"), Value::Null, "the rest of the page is shown without it");
    // And the budget is reserved before anything is built from them.
    let uid = large(&api).await;
    let answers = fill(&api, &format!("/v1/messages/{uid}/raw")).await;
    let path = "/compat/001/messages?tenant_id=default";
    assert_eq!(unread(&api, "default", path).await.status().as_u16(), 503);
    drop(answers);
    assert_eq!(unread(&api, "default", path).await.status().as_u16(), 200);
}

#[tokio::test]
async fn a_rule_is_tried_within_bounds() {
    let api = Api::start().await;
    let try_rule = async |rule: &str, raw: &str| {
        let body = format!("{{\"rule\":{rule},\"raw\":\"{raw}\"}}");
        api.call("POST", "/v1/rules/dry-run", body).await
    };
    let rule =
        json!({"match": [{"field": "subject", "regex": "x"}], "actions": [{"do": "stop"}]}).to_string();
    let mail = BASE64_STANDARD.encode([&b"Subject: x\r\n\r\n"[..], &vec![b'x'; 20 * MIB]].concat());
    let reference = try_rule(&rule, &BASE64_STANDARD.encode(b"Subject: x\r\n\r\nx")).await.status;
    assert_eq!(try_rule(&rule, &mail).await.status, reference, "the mail does not count");
    let escaped = mail.replace('/', "\\/");
    assert_eq!(try_rule(&rule, &escaped).await.status, reference);
    for hostile in [
        zeros(15_000_000),
        format!("{{\"a\":\"{}\"}}", "x".repeat(2 * MIB)),
        format!("[{}{{}}]", "{},".repeat(30_000)),
    ] {
        let error = try_rule(&hostile, "eA==").await.refused(422, "validation_error");
        assert!(error["message"].as_str().unwrap().contains("20000 values"), "{error}");
    }
    assert_eq!(try_rule(&rule, "*").await.wrong_fields(), ["raw"]);
    assert_eq!(try_rule(&rule, "eA==\",\"raw\":\"eA==").await.status.as_u16(), 400, "it is given twice");
}

#[tokio::test]
async fn previews_are_made_within_bounds() {
    let api = Api::start().await;
    api.post("/v1/templates", json!({"name": "welcome", "subject": "Hi {{ name }}", "text": "x"}))
        .await
        .ok(201);
    let stored = async |variables: &str| {
        api.call("POST", "/v1/templates/welcome/preview", format!("{{\"variables\":{variables}}}")).await
    };
    let source = async |variables: &str| {
        let body = format!("{{\"subject\":\"s\",\"text\":\"x\",\"variables\":{variables}}}");
        api.call("POST", "/v1/templates/preview", body).await
    };
    for (variables, limit) in [
        (format!("{{\"a\":{}}}", zeros(100_000)), "50000 values"),
        (format!("{{\"a\":\"{}\"}}", "x".repeat(MIB)), "1048576 bytes"),
        ("[1]".to_owned(), "object"),
    ] {
        for answer in [stored(&variables).await, source(&variables).await] {
            let error = answer.refused(422, "validation_error");
            assert!(error["message"].as_str().unwrap().contains(limit), "{error}");
            assert_eq!(answer.wrong_fields(), ["variables"]);
        }
    }
    assert_eq!(stored("{\"name\":\"Ada\"}").await.ok(200)["subject"], "Hi Ada");
    assert_eq!(source("null").await.ok(200)["subject"], "s");
}
