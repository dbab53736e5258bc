//! The content of a message: its request, its mail, and who may not see them.

use axum::{body::Body, http::Request};
use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::record::{BlobName, BlobRef, NewMessage, StoredBody as Kept};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

const TO_ADA: [(&str, postway_domain::RecipientStatus); 1] = [("ada@example.net", Pending)];

/// As intake leaves a message that something must be fetched for.
fn uncomposed(message: &mut NewMessage) {
    message.state = MessageState::Accepted;
    message.content.raw = Kept::EMPTY;
    message.settled = Some("{}".to_owned());
}

async fn hand_over(api: &Api, path: &str, mail: &'static str) -> Answer {
    let request = Request::post(path).header("x-api-key", KEY).header("content-type", "message/rfc822");
    api.ask(request.body(Body::from(mail)).unwrap()).await
}

#[tokio::test]
async fn a_request_is_read_back_as_it_was_submitted() {
    let api = Api::start().await;
    let body = r#"{"id": "m-1", "from":"shop@example.com", "to":"ada@example.net",  "text": "Hi"}"#;
    api.call("POST", "/v1/messages", body).await.ok(202);
    let payload = api.get("/v1/messages/m-1/payload").await;
    assert_eq!((payload.status.as_u16(), payload.body.as_ref()), (200, body.as_bytes()));
    assert_eq!(payload.headers["content-type"], "application/json");
    let shown = api.get("/v1/messages/m-1").await.ok(200);
    assert_eq!((&shown["payload_file_path"], &shown["eml_file_path"]), (&json!("inline"), &json!("inline")));
    assert_eq!((&shown["sensitive"], &shown["recipient_id"]), (&json!(false), &Value::Null));
    api.get("/v1/messages/none/payload").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_ready_made_mail_may_come_to_either_address() {
    let api = Api::start().await;
    let mail = "From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Hi\r\n\r\nHello.\r\n";
    for (path, id) in [("/v1/messages/raw?id=a", "a"), ("/v1/messages?id=b&to=bob@example.net", "b")] {
        hand_over(&api, path, mail).await.ok(202);
        let payload = api.get(&format!("/v1/messages/{id}/payload")).await;
        assert_eq!(
            (payload.headers["content-type"].as_bytes(), &payload.body[..]),
            (&b"message/rfc822"[..], mail.as_bytes())
        );
    }
    assert_eq!(api.get("/v1/messages/b").await.ok(200)["recipients"][0]["address"], "bob@example.net");
    assert_eq!(hand_over(&api, "/v1/messages?x=1", mail).await.wrong_fields(), ["x"]);
}

#[tokio::test]
async fn what_is_not_composed_says_so() {
    let api = Api::start().await;
    api.stored_with("new", MessageState::Accepted, &TO_ADA, uncomposed).await;
    let error = api.get("/v1/messages/new/raw").await.refused(404, "not_found");
    assert!(error["message"].as_str().unwrap().contains("not composed yet"), "{error}");
    let shown = api.get("/v1/messages/new").await.ok(200);
    assert_eq!((&shown["status"], &shown["eml_file_path"]), (&json!("accepted"), &Value::Null));
    let told = api.get("/v1/messages/new/explain").await.ok(200);
    assert!(told["reason"].as_str().unwrap().starts_with("it is being prepared"), "{told}");
    assert_eq!(told["gates"], json!([]));
}

#[tokio::test]
async fn a_fetch_that_is_tried_again_is_explained() {
    let api = Api::start().await;
    api.stored_with("later", MessageState::Scheduled(ScheduleReason::Fetch), &TO_ADA, uncomposed).await;
    let told = api.get("/v1/messages/later/explain").await.ok(200);
    assert_eq!(told["gates"][0]["gate"], "retry", "{told}");
    let reason = told["gates"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("come back") && !reason.contains("attempt"), "{reason}");
    assert_eq!(told["next_at"], "2023-11-14T22:14:20.000Z");
}

#[tokio::test]
async fn bytes_outside_the_database_are_shown_by_their_name() {
    let api = Api::start().await;
    let blob = BlobRef { name: BlobName { digest: [0xa5; 32], generation: 1 }, size: 7 };
    api.stored_with("m", MessageState::Ready, &TO_ADA, |message| {
        message.content.payload = Some(Kept::Blob(blob))
    })
    .await;
    let shown = api.get("/v1/messages/m").await.ok(200);
    assert_eq!(shown["payload_file_path"], format!("a5/a5/{}-1", "a5".repeat(32)));
}

#[tokio::test]
async fn nobody_reads_a_sensitive_message() {
    let api = Api::start().await;
    let body = json!({
        "id": "m-1", "from": "shop@example.com", "to": "ada@example.net", "subject": "Your code", "text": "Code 4711",
        "metadata": {"code": "4711"}, "sensitive": true,
    });
    api.post("/v1/messages", body).await.ok(202);
    for tail in ["raw", "payload"] {
        api.get(&format!("/v1/messages/m-1/{tail}")).await.refused(403, "sensitive");
    }
    let shown = api.get("/v1/messages/m-1").await.ok(200);
    assert_eq!((&shown["sensitive"], &shown["subject"]), (&json!(true), &json!("[hidden]")));
    assert_eq!(
        (&shown["metadata"], &shown["recipients"][0]["address"]),
        (&Value::Null, &json!("ada@example.net"))
    );
    for path in ["/v1/messages", "/v1/messages/m-1", "/v1/messages/m-1/events", "/v1/messages/m-1/explain"] {
        let text = String::from_utf8(api.get(path).await.body.to_vec()).unwrap();
        assert!(!text.contains("4711") && !text.contains("Your code"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_sensitive_message_that_was_sent_after_all_loses_its_bodies() {
    let api = Api::start().await;
    let edit = |message: &mut NewMessage| message.content.sensitive = true;
    api.stored_with("m", MessageState::InDoubt, &[("ada@example.net", InDoubt)], edit).await;
    api.post("/v1/messages/m/resolve", json!({"outcome": "sent"})).await.ok(200);
    let shown = api.get("/v1/messages/m").await.ok(200);
    assert_eq!((&shown["payload_file_path"], &shown["eml_file_path"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_fault_is_told_with_the_words_that_users_know() {
    let api = Api::start().await;
    let body = json!({"from": "shop@example.com", "to": "nobody", "html": "<script>x()</script>"});
    let error = api.post("/v1/messages", body).await.refused(422, "validation_error");
    let told: Vec<(&str, &str)> = error["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| (detail["code"].as_str().unwrap(), detail["check"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("INVALID_EMAIL", "RECIPIENT"), ("INVALID_TEMPLATE", "TEMPLATE")], "{error}");
}

#[tokio::test]
async fn a_mail_beyond_the_limits_is_shown_as_far_as_they_reach_and_says_what_is_left_out() {
    let api = Api::start().await;
    let head = "From: shop@example.com\r\nTo: ada@example.net\r\n";
    let parts = "--b\r\n\r\none\r\n".repeat(1_500);
    let many = format!("{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--\r\n");
    let deep = format!("{head}{}", "Content-Type: message/rfc822\r\n\r\n".repeat(1_900));
    let plain = format!("{head}\r\nHello.\r\n");
    for (id, mail, omitted) in [
        ("many", many, json!(["parts beyond 1,000"])),
        ("deep", deep, json!([])),
        ("plain", plain, json!([])),
    ] {
        hand_over(&api, &format!("/v1/messages/raw?id={id}"), mail.leak()).await.ok(202);
        let content = api.get(&format!("/v1/messages/{id}/content")).await.ok(200);
        assert_eq!(content["omitted"], omitted, "{id}");
        let from = json!({"name": "From", "value": "shop@example.com"});
        assert!(content["headers"].as_array().unwrap().contains(&from), "{content:#}");
    }
    let shown = api.get("/v1/messages/many/content").await.ok(200);
    assert_eq!(shown["text"].as_str().unwrap().lines().count(), 999);
    let deep = api.get("/v1/messages/deep/content").await.ok(200);
    assert_eq!(deep["attachments"].as_array().unwrap().len(), 1);
    assert!(api.get("/v1/messages/deep/attachments/0").await.body.len() > 58_000);
    api.get("/v1/messages/deep/preview").await.refused(404, "not_found");
}

/// What a batch says once holds for each of its mails that says nothing itself.
#[tokio::test]
async fn a_text_is_made_of_html_where_the_defaults_of_a_batch_ask_for_it() {
    let api = Api::start().await;
    let mail = |id: &str| json!({"id": id, "to": "ada@example.net", "subject": "Hi", "html": "<p>Hello <b>Ada</b></p>"});
    let mut own = mail("own");
    own["auto_text"] = json!(false);
    let batch = json!({"defaults": {"from": "shop@example.com", "auto_text": true}, "messages": [mail("asked"), own]});
    api.post("/v1/messages/batch", batch).await.ok(202);
    assert_eq!(
        api.get("/v1/messages/asked/content").await.ok(200)["text"].as_str().map(str::trim),
        Some("Hello Ada")
    );
    let raw = api.get("/v1/messages/asked/raw").await;
    assert!(String::from_utf8_lossy(&raw.body).contains("text/plain"), "the text is in the mail");
    let raw = api.get("/v1/messages/own/raw").await;
    assert!(!String::from_utf8_lossy(&raw.body).contains("text/plain"), "its own word counts");
}

/// An invitation is a form of the text, and a file if it is asked for.
#[tokio::test]
async fn the_content_of_an_invitation_shows_its_texts_and_its_calendar() {
    let api = Api::start().await;
    let calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:1@example.com\r\n\
        DTSTAMP:20260101T000000Z\r\nDTSTART:20270101T090000Z\r\nSUMMARY:Tea\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    for (id, attach) in [("shown", false), ("filed", true)] {
        let part =
            json!({"content_type": "text/calendar; method=REQUEST", "content": calendar, "attach": attach});
        let mail = json!({"id": id, "from": "shop@example.com", "to": "ada@example.net", "subject": "Tea", "text": "Come",
            "html": "<p>Come</p>", "alternatives": [part]});
        api.post("/v1/messages", mail).await.ok(202);
        let content = api.get(&format!("/v1/messages/{id}/content")).await.ok(200);
        assert_eq!(content["text"].as_str().map(str::trim), Some("Come"), "{content}");
        assert_eq!(content["has_html"], true, "{content}");
        let files: Vec<&str> = content["attachments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["content_type"].as_str().unwrap())
            .collect();
        let expected = if attach { &["text/calendar", "application/ics"][..] } else { &["text/calendar"] };
        assert_eq!(files, expected, "{content}");
        for index in 0..files.len() {
            let file = api.get(&format!("/v1/messages/{id}/attachments/{index}")).await;
            assert_eq!(
                (file.status.as_u16(), file.body.as_ref()),
                (200, calendar.as_bytes()),
                "{index} of {id}"
            );
        }
    }
}
