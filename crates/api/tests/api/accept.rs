//! Accepting mail.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

fn mail() -> Value {
    json!({"from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": "Hi", "text": "Hello."})
}

async fn with_key(api: &Api, key: &str, body: Value) -> Answer {
    let request = Request::post("/v1/messages").header("x-api-key", KEY).header("idempotency-key", key);
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn an_accepted_mail_is_found_at_once_with_its_request() {
    let api = Api::start().await;
    let answer = api.post("/v1/messages", mail()).await;
    let receipt = answer.ok(202);
    assert_eq!(receipt["id"], receipt["uid"], "the uid stands in for an absent id");
    let found = api.get(&format!("/v1/messages/{}", receipt["uid"].as_str().unwrap())).await.ok(200);
    assert_eq!(found["request_id"], answer.headers["x-request-id"].to_str().unwrap());
    assert_eq!(found["recipients"][0]["address"], "ada@example.net");
    let raw = api.get(&format!("/v1/messages/{}/raw", receipt["uid"].as_str().unwrap())).await;
    assert!(String::from_utf8_lossy(&raw.body).contains("Hello."));
}

#[tokio::test]
async fn the_same_key_gives_the_same_answer_and_another_body_a_conflict() {
    let api = Api::start().await;
    let first = with_key(&api, "k-1", mail()).await.ok(202);
    assert_eq!(with_key(&api, "k-1", mail()).await.ok(202)["uid"], first["uid"]);
    let mut other = mail();
    other["subject"] = json!("Other");
    with_key(&api, "k-1", other).await.refused(409, "conflict");
    assert_eq!(with_key(&api, &"k".repeat(257), mail()).await.wrong_fields(), ["Idempotency-Key"]);
    assert_eq!(api.get("/v1/messages").await.ok(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_dry_run_checks_and_stores_nothing() {
    let api = Api::start().await;
    api.post("/v1/messages?dry_run=true", mail()).await.ok(200);
    api.post("/v1/messages/batch?dry_run=true", json!({"messages": [mail()]})).await.ok(200);
    assert_eq!(api.get("/v1/messages").await.ok(200)["data"], json!([]));
    assert_eq!(api.post("/v1/messages?dry_run=maybe", mail()).await.wrong_fields(), ["dry_run"]);
    assert_eq!(api.post("/v1/messages?dryrun=true", mail()).await.wrong_fields(), ["dryrun"]);
}

#[tokio::test]
async fn a_refused_mail_names_its_fields_and_leaves_nothing() {
    let api = Api::start().await;
    let mut wrong = mail();
    wrong["to"] = json!(["nobody"]);
    assert_eq!(api.post("/v1/messages", wrong).await.wrong_fields(), ["to[0]"]);
    api.call("POST", "/v1/messages", "{\"from\":").await.refused(400, "malformed_request");
    assert_eq!(api.get("/v1/messages").await.ok(200)["data"], json!([]));
}

#[tokio::test]
async fn a_batch_answers_for_each_in_order() {
    let api = Api::start().await;
    let mut wrong = mail();
    wrong["id"] = json!("bad");
    wrong["to"] = json!(["nobody"]);
    let batch = json!({"defaults": {"batch": "b-9"}, "messages": [mail(), wrong, mail()]});
    let answer = api.post("/v1/messages/batch", batch).await.ok(202);
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(2), &json!(1)));
    let results = answer["results"].as_array().unwrap();
    assert!(results[0]["status"].is_string() && results[2]["status"].is_string());
    assert_eq!(results[1]["id"], "bad");
    assert_eq!(results[1]["error"]["code"], "validation_error");
    assert!(results[1]["error"]["details"][0]["field"].as_str().unwrap().contains("to[0]"), "{answer}");
    assert!(results[0].get("error").is_none());
}

#[tokio::test]
async fn a_ready_made_mail_is_taken_with_what_the_query_says() {
    let api = Api::start().await;
    let eml = "From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Raw\r\n\r\nHello.\r\n";
    let request = Request::post("/v1/messages/raw?id=raw-1&to=bob@example.net&tag=a&tag=b")
        .header("x-api-key", KEY)
        .header("content-type", "message/rfc822");
    api.ask(request.body(Body::from(eml)).unwrap()).await.ok(202);
    let found = api.get("/v1/messages/raw-1").await.ok(200);
    assert_eq!(found["recipients"][0]["address"], "bob@example.net");
    assert_eq!(found["tags"], json!(["a", "b"]));
    let request =
        Request::post("/v1/messages/raw").header("x-api-key", KEY).header("content-type", "application/json");
    api.ask(request.body(Body::from("{}")).unwrap()).await.refused(415, "unsupported_media_type");
}

#[tokio::test]
async fn the_documented_examples_are_accepted() {
    let api = Api::start().await;
    let document = serde_json::to_value(postway_api::document()).unwrap();
    let properties = document["components"]["schemas"]["MessageRequest"]["properties"].as_object().unwrap();
    let example: serde_json::Map<String, Value> = properties
        .iter()
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("example")?.clone())))
        .collect();
    assert!(example.contains_key("from") && example.contains_key("to"), "{example:?}");
    api.post("/v1/messages", Value::Object(example)).await.ok(202);
    // Every documented field is known to the intake: the others are refused by name.
    for name in properties.keys() {
        let mut body = mail();
        body[name.as_str()] = json!({"no": "such thing"});
        assert_known(&api, body, name).await;
    }
    for (field, schema) in [
        ("template", "TemplateUse"),
        ("recipient", "RecipientUse"),
        ("unsubscribe", "Unsubscribe"),
        ("attachments", "Attachment"),
    ] {
        let inner = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        for name in inner.keys() {
            let mut body = mail();
            let object = json!({name: null});
            let is_list = field == "attachments";
            body[field] = if is_list { json!([object]) } else { object };
            let path = if is_list { format!("attachments[0].{name}") } else { format!("{field}.{name}") };
            assert_known(&api, body, &path).await;
        }
    }
}

/// Whatever is wrong with the body, it is not that this field is unknown.
async fn assert_known(api: &Api, body: Value, path: &str) {
    let answer = api.post("/v1/messages", body).await.json();
    for detail in answer["error"]["details"].as_array().into_iter().flatten() {
        let is_unknown = detail["message"].as_str().unwrap().contains("unknown");
        assert!(!is_unknown || detail["field"] != path, "{path}: {detail}");
    }
}
