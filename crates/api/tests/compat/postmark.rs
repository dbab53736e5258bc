//! The Postmark API: good and bad input, batches, and that one tenant's key sees nothing of another's.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY, REQUEST_BYTES_MAX};

const DOOR: &str = "/compat/postmark";

pub fn message(subject: &str) -> Value {
    json!({"From": "Shop <shop@example.com>", "To": "ada@example.net", "Subject": subject, "TextBody": "Hi"})
}

pub fn with(mut message: Value, part: Value) -> Value {
    message.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    message
}

impl Api {
    pub async fn postmark_as(&self, token: &str, method: &str, path: &str, body: Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(format!("{DOOR}{path}"))
            .header("content-type", "application/json")
            .header("x-postmark-server-token", token);
        let body = if body.is_null() { Body::empty() } else { body.to_string().into() };
        self.ask(request.body(body).unwrap()).await
    }

    pub async fn postmark(&self, path: &str, body: Value) -> Answer {
        self.postmark_as(KEY, "POST", path, body).await
    }

    async fn stored_messages(&self) -> usize {
        self.get("/v1/messages").await.ok(200)["data"].as_array().unwrap().len()
    }
}

/// Checks the shape of an error; its message.
#[track_caller]
pub fn refused(answer: &Answer, status: u16, code: u64) -> String {
    let json = answer.json();
    assert_eq!((answer.status.as_u16(), json["ErrorCode"].as_u64()), (status, Some(code)), "{json}");
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(json.as_object().unwrap().len(), 2, "{json}");
    json["Message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_is_taken_and_its_details_are_shown() {
    let api = Api::start().await;
    let sent = with(
        message("Hi"),
        json!({
            "To": "\"Lovelace, Ada\" <ada@example.net>, bob@example.net", "Cc": "cc@example.net", "HtmlBody": "<p>Hi</p>",
            "Tag": "receipt", "Metadata": {"order": "7"}, "MessageStream": "broadcast", "TrackOpens": true,
            "Headers": [{"Name": "X-Order", "Value": "7"}],
            "Attachments": [{"Name": "a.txt", "Content": "aGk=", "ContentType": "text/plain"}],
        }),
    );
    let answer = api.postmark("/email", sent.clone()).await.ok(200);
    assert_eq!((&answer["ErrorCode"], &answer["Message"]), (&json!(0), &json!("OK")));
    assert_eq!((&answer["To"], &answer["Cc"]), (&sent["To"], &sent["Cc"]));
    assert_eq!(answer["SubmittedAt"], "2023-11-14T22:13:20.000Z");
    let id = answer["MessageID"].as_str().unwrap();
    let ours = api.get(&format!("/v1/messages/{id}")).await.ok(200);
    assert_eq!(
        (&ours["uid"], &ours["batch"], &ours["tags"]),
        (&json!(id), &json!("broadcast"), &json!(["receipt"]))
    );

    let path = format!("/messages/outbound/{id}/details");
    let shown = api.postmark_as(KEY, "GET", &path, Value::Null).await.ok(200);
    for (name, value) in [
        ("MessageID", json!(id)),
        ("MessageStream", json!("broadcast")),
        ("From", json!("\"Shop\" <shop@example.com>")),
        ("Recipients", json!(["ada@example.net", "bob@example.net", "cc@example.net"])),
        ("Cc", json!([{"Email": "cc@example.net", "Name": null}])),
        ("Subject", json!("Hi")),
        ("Tag", json!("receipt")),
        ("Status", json!("Queued")),
        ("Metadata", json!({"order": "7"})),
        ("Attachments", json!(["a.txt"])),
        ("MessageEvents", json!([])),
    ] {
        assert_eq!(shown[name], value, "{name} of {shown}");
    }
    let dump =
        api.postmark_as(KEY, "GET", &format!("/messages/outbound/{id}/dump"), Value::Null).await.ok(200);
    assert!(dump["Body"].as_str().unwrap().contains("X-Order: 7"), "{dump}");
}

#[tokio::test]
async fn what_is_wrong_has_a_number_and_their_names() {
    let api = Api::start().await;
    for (part, code, said) in [
        (json!({"From": null}), 300, "From: is missing"),
        (json!({"From": "shop"}), 300, "Invalid 'From' address: 'shop'. "),
        (json!({"To": null}), 300, "To: give at least one recipient"),
        (json!({"To": "ada@example.net, bob"}), 300, "Invalid 'To' address: 'bob'. "),
        (json!({"Cc": "Bob <b o b>"}), 300, "Invalid 'Cc' address: 'b o b'. "),
        (json!({"To": ["ada@example.net"]}), 403, "To: must be a text"),
        (json!({"TextBody": null}), 300, "TextBody: "),
        (json!({"Subject": 5}), 300, "Subject: "),
        (json!({"Tag": "x".repeat(1_001)}), 300, "Tag: "),
        (json!({"Tag": "ä".repeat(513)}), 300, "Tag: "),
        (json!({"Subject": "x".repeat(2_001)}), 300, "Subject: "),
        (json!({"MessageStream": "a b"}), 300, "MessageStream: "),
        (json!({"Headers": [{"Name": "Return-Path", "Value": "x"}]}), 300, "Headers.Return-Path: "),
        (json!({"Headers": [{"Name": "Received", "Value": "x"}]}), 300, "Headers.Received: "),
        (json!({"Attachments": [{"Name": "a.txt", "Content": "%"}]}), 300, "Attachments[0].Content: "),
        (json!({"Attachments": [{"Content": "aGk="}]}), 300, "Attachments[0].Name: "),
        (json!({"To": vec!["ada@example.net"; 51].join(",")}), 300, "To: there are 51 recipients"),
    ] {
        let answer = api.postmark("/email", with(message("Hi"), part.clone())).await;
        let message = refused(&answer, 422, code);
        assert!(message.contains(said), "{part}: {message}");
    }
    let ask =
        async |path: &str, body: &str| api.call("POST", &format!("{DOOR}{path}"), body.to_owned()).await;
    refused(&ask("/email", "{").await, 422, 402);
    refused(&ask("/email", "[]").await, 422, 403);
    refused(&ask("/email/batch", "{}").await, 422, 403);
    refused(&ask("/email/batch", "[").await, 422, 402);
    refused(&ask("/email/batch", "{\"a\":").await, 422, 402);
    refused(&ask("/email/batchWithTemplates", "{}").await, 422, 403);
    let large = with(message("Hi"), json!({"TextBody": "x".repeat(REQUEST_BYTES_MAX)}));
    refused(&api.postmark("/email", large).await, 413, 300);
    refused(&api.postmark_as(KEY, "GET", "/messages/outbound/none/details", Value::Null).await, 422, 701);
    refused(&api.postmark_as(KEY, "GET", "/domains", Value::Null).await, 404, 300);
    refused(&api.postmark_as(KEY, "GET", "/email", Value::Null).await, 405, 300);
    assert_eq!(api.stored_messages().await, 0);
}

#[tokio::test]
async fn subjects_and_tags_are_as_long_as_there_unless_the_tenant_says_otherwise() {
    let api = Api::start().await;
    let long = with(
        message(&"s".repeat(2_000)),
        json!({"Tag": "t".repeat(1_000), "To": "ada@example.net; bob@example.net"}),
    );
    let sent = api.postmark("/email", long.clone()).await.ok(200);
    let ours = api.get(&format!("/v1/messages/{}", sent["MessageID"].as_str().unwrap())).await.ok(200);
    assert_eq!(
        (ours["subject"].as_str().unwrap().len(), ours["tags"][0].as_str().unwrap().len()),
        (2_000, 1_000)
    );
    assert_eq!(ours["recipient_count"], 2);
    api.patch("/v1/tenants/default", json!({"content": {"subject_chars": 100}})).await.ok(200);
    let said = refused(&api.postmark("/email", long).await, 422, 300);
    assert!(said.contains("longer than 100 characters"), "{said}");
}

#[tokio::test]
async fn a_return_path_is_the_envelopes_and_a_sender_is_passed_over() {
    let api = Api::start().await;
    let headers =
        [("Return-Path", "<bounces@example.com>"), ("Sender", "x@example.com"), ("X-PM-KeepID", "true")];
    let headers = headers.map(|(name, value)| json!({"Name": name, "Value": value}));
    let sent = api.postmark("/email", with(message("Hi"), json!({"Headers": headers}))).await.ok(200);
    let path = format!("/messages/outbound/{}/dump", sent["MessageID"].as_str().unwrap());
    let dump = api.postmark_as(KEY, "GET", &path, Value::Null).await.ok(200);
    let source = dump["Body"].as_str().unwrap();
    assert!(
        !source.contains("Sender:") && !source.contains("KeepID") && !source.contains("Return-Path"),
        "{source}"
    );
}

#[tokio::test]
async fn a_mail_that_the_gem_for_rails_hands_over_has_our_own_form() {
    let api = Api::start().await;
    let headers = [("Message-Id", "<theirs@host.mail>"), ("Mime-Version", "1.0"), ("X-Order", "7")];
    let headers = headers.map(|(name, value)| json!({"Name": name, "Value": value}));
    let file = json!({"Name": "a.png", "Content": "aGVs\nbG8=\n", "ContentType": "image/png", "ContentID": "cid:logo"});
    let mail = with(
        message("Hi"),
        json!({"Headers": headers, "HtmlBody": "<img src=\"cid:logo\">", "Attachments": [file]}),
    );
    let id = api.postmark("/email", mail).await.ok(200)["MessageID"].as_str().unwrap().to_owned();
    let dump =
        api.postmark_as(KEY, "GET", &format!("/messages/outbound/{id}/dump"), Value::Null).await.ok(200);
    let source = dump["Body"].as_str().unwrap();
    assert!(source.contains(&format!("Message-ID: <{id}@")) && source.contains("X-Order: 7"), "{source}");
    assert!(!source.contains("theirs@") && source.matches("MIME-Version").count() == 1, "{source}");
}

#[tokio::test]
async fn a_token_that_opens_nothing_is_refused() {
    let api = Api::start().await;
    let said = refused(&api.postmark_as("wrong", "POST", "/email", message("Hi")).await, 401, 10);
    assert!(said.contains("X-Postmark-Server-Token") && !said.contains("Bearer"), "{said}");
    let said = refused(&api.postmark_as("POSTMARK_API_TEST", "POST", "/email", message("Hi")).await, 401, 10);
    assert!(said.contains("POSTMARK_API_TEST is none here"), "{said}");
    let bare = Request::post(format!("{DOOR}/email")).body(Body::from(message("Hi").to_string())).unwrap();
    refused(&api.ask(bare).await, 401, 10);
    let only_reads = api.key("other", json!({"name": "k", "scopes": ["read"]})).await;
    refused(&api.postmark_as(&only_reads, "POST", "/email", message("Hi")).await, 401, 10);
}

#[tokio::test]
async fn a_tenants_token_sees_its_own_messages_only() {
    let api = Api::start().await;
    let sent = api.postmark("/email", message("Hi")).await.ok(200);
    let id = sent["MessageID"].as_str().unwrap();
    let token = api.key("other", json!({"name": "k", "scopes": ["send", "read", "manage"]})).await;
    for what in ["details", "dump"] {
        let path = format!("/messages/outbound/{id}/{what}");
        refused(&api.postmark_as(&token, "GET", &path, Value::Null).await, 422, 701);
        api.postmark_as(KEY, "GET", &path, Value::Null).await.ok(200);
    }
    let own = api.postmark_as(&token, "POST", "/email", message("Mine")).await.ok(200);
    let path = format!("/messages/outbound/{}/details", own["MessageID"].as_str().unwrap());
    assert_eq!(api.postmark_as(&token, "GET", &path, Value::Null).await.ok(200)["Subject"], "Mine");
    refused(&api.postmark_as(KEY, "GET", &path, Value::Null).await, 422, 701);
}

#[tokio::test]
async fn every_message_of_a_batch_has_its_own_answer() {
    let api = Api::start().await;
    let batch = json!([
        message("One"),
        with(message("Two"), json!({"To": "bob"})),
        with(message("Three"), json!({"Headers": {}})),
        message("Four"),
    ]);
    let answers = api.postmark("/email/batch", batch).await.ok(200);
    let codes: Vec<_> =
        answers.as_array().unwrap().iter().map(|one| one["ErrorCode"].as_u64().unwrap()).collect();
    assert_eq!(codes, [0, 300, 403, 0]);
    let path = format!("/v1/messages/{}", answers[3]["MessageID"].as_str().unwrap());
    assert_eq!(api.get(&path).await.ok(200)["subject"], "Four");
    assert_eq!(answers[1]["MessageID"], json!(null));
    assert_eq!(api.postmark("/email/batch", json!([])).await.ok(200), json!([]));
    let long = Value::Array(vec![json!({}); 501]);
    refused(&api.postmark("/email/batch", long).await, 422, 410);
    assert_eq!(api.stored_messages().await, 2);
}

#[tokio::test]
async fn a_template_makes_the_words() {
    let api = Api::start().await;
    let welcome =
        json!({"name": "welcome", "subject": "Hello {{ name }}", "html": "<p>Hello {{ name }}</p>"});
    api.post("/v1/templates", welcome).await.ok(201);
    let by = |alias: &str, model: Value| json!({"From": "shop@example.com", "To": "ada@example.net", "TemplateAlias": alias, "TemplateModel": model});
    let answer = api.postmark("/email/withTemplate", by("welcome", json!({"name": "Ada"}))).await.ok(200);
    let path = format!("/v1/messages/{}", answer["MessageID"].as_str().unwrap());
    assert_eq!(api.get(&path).await.ok(200)["subject"], "Hello Ada");
    let said = refused(&api.postmark("/email/withTemplate", by("none", json!({}))).await, 422, 1101);
    assert!(said.contains("TemplateAlias"), "{said}");
    refused(&api.postmark("/email/withTemplate", message("Hi")).await, 422, 1120);
    refused(&api.postmark("/email/withTemplate", by("welcome", json!("x"))).await, 422, 1122);
    let said = refused(&api.postmark("/email/withTemplate", by("welcome", json!({}))).await, 422, 1122);
    assert!(said.starts_with("TemplateModel: ") && said.contains("\"name\" is not given"), "{said}");
    let batch = json!({"Messages": [by("welcome", json!({"name": "Bob"})), by("none", json!({}))]});
    let answers = api.postmark("/email/batchWithTemplates", batch).await.ok(200);
    assert_eq!((&answers[0]["ErrorCode"], &answers[1]["ErrorCode"]), (&json!(0), &json!(1101)));
}

#[tokio::test]
async fn suppressed_recipients_are_inactive() {
    let api = Api::start().await;
    api.post("/v1/suppressions", json!({"address": "ada@example.net", "reason": "manual"})).await.ok(201);
    let said = refused(
        &api.postmark("/email", with(message("Hi"), json!({"To": "Ada <ADA@example.net>"}))).await,
        422,
        406,
    );
    // As the gem for Rails, django-anymail and the package of npm look for them.
    assert!(said.lines().any(|line| line == "Found inactive addresses: ada@example.net."), "{said}");
    assert!(
        said.contains("inactive addresses: ada@example.net.\nInactive recipients are ones that"),
        "{said}"
    );
    assert!(said.contains("Found inactive addresses: ada@example.net. Inactive"), "{said}");
    let some = api.postmark("/email", with(message("Hi"), json!({"Cc": "bob@example.net"}))).await.ok(200);
    assert_eq!(some["ErrorCode"], 0);
    assert_eq!(
        some["Message"],
        "Message OK, but will not deliver to these inactive addresses: ada@example.net. Inactive recipients are ones that have \
         generated a hard bounce, a spam complaint, or a manual suppression."
    );
    let answers = api.postmark(
        "/email/batch",
        json!([message("One"), with(message("Two"), json!({"To": "bob@example.net"}))]),
    );
    let answers = answers.await.ok(200);
    assert_eq!((&answers[0]["ErrorCode"], &answers[1]["ErrorCode"]), (&json!(406), &json!(0)));
    assert_eq!(api.stored_messages().await, 2);
}
