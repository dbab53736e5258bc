//! Reference 004: one mail per call, its states and events.

use axum::{body::Body, http::Request};
use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

const SEND: &str = "/compat/004/v1/email/send";

fn mail() -> Value {
    json!({"from": "Shop <shop@example.com>", "to": "ada@example.net", "subject": "Your order",
        "html": "<p>Thank you.</p>"})
}

async fn send(api: &Api, body: &Value, key: Option<&str>) -> Answer {
    let mut request = Request::post(SEND).header("x-api-key", KEY).header("x-request-id", "req-1");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

fn with(fields: Value) -> Value {
    let mut mail = mail();
    mail.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    mail
}

#[tokio::test]
async fn a_mail_is_received_and_found_by_its_outbox_id() {
    let api = Api::start().await;
    let body =
        with(json!({"cc": ["bob@example.net"], "bcc": "cy@example.net", "replyTo": "help@example.com",
        "headers": {"X-Order": "1"}, "tags": ["receipt"], "externalId": "order-7", "text": "Thank you.",
        "recipient": {"externalId": "C-1", "cpfCnpj": "123.456.789-09", "razaoSocial": "Ada Ltda",
            "email": "ada@example.net"},
        "attachments": [{"filename": "a.txt", "content": "aGVsbG8=", "contentType": "text/plain"}]}));
    let answer = send(&api, &body, None).await.ok(202);
    assert_eq!((&answer["status"], &answer["requestId"]), (&json!("RECEIVED"), &json!("req-1")));
    assert_eq!(answer["outboxId"], answer["jobId"]);
    assert_eq!(answer["recipient"], json!({"externalId": "C-1"}));
    assert_eq!(answer["receivedAt"], "2023-11-14T22:13:20.000Z");
    let id = answer["outboxId"].as_str().unwrap();
    let shown = api.get(&format!("/compat/004/v1/emails/{id}")).await.ok(200);
    assert_eq!((&shown["status"], &shown["companyId"]), (&json!("VALIDATED"), &json!("default")));
    assert_eq!((&shown["to"], &shown["cc"]), (&json!("ada@example.net"), &json!(["bob@example.net"])));
    assert_eq!((&shown["externalId"], &shown["requestId"]), (&json!("order-7"), &json!("req-1")));
    assert_eq!(shown["id"], shown["outboxId"]);
    let event = &shown["events"][0];
    assert_eq!((&event["id"], &event["timestamp"]), (&json!(format!("{id}-1")), &event["createdAt"]));
    assert_eq!(
        (&shown["events"][0]["type"], &shown["events"][1]["type"]),
        (&json!("RECEIVED"), &json!("VALIDATED"))
    );
    let payload = api.get(&format!("/v1/messages/{id}/payload")).await;
    assert!(!payload.json().to_string().contains("456"), "a personal number is not kept: {:?}", payload.body);
}

#[tokio::test]
async fn what_is_said_in_two_ways_counts_once_and_what_is_blank_is_not_there() {
    let api = Api::start().await;
    let file = |extra: Value| {
        let mut file = json!({"filename": "a.txt", "content": "aGVsbG8="});
        file.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        file
    };
    let body = with(json!({"cc": "", "bcc": "", "replyTo": "", "externalId": "",
        "recipient": {"externalId": "C-1", "razaoSocial": "Ada Ltda", "nome": "Ada", "name": "A", "recipientId": "",
            "cpfCnpj": "", "email": "ada@example.net"},
        "attachments": [file(json!({"mimeType": "text/plain"})),
            file(json!({"mimeType": "image/png", "contentType": "text/plain"})),
            file(json!({"mimeType": "text/plain", "contentType": ""}))]}));
    let answer = send(&api, &body, None).await.ok(202);
    let id = answer["outboxId"].as_str().unwrap();
    let payload = api.get(&format!("/v1/messages/{id}/payload")).await.ok(200);
    let recipient = json!({"external_id": "C-1", "name": "Ada Ltda", "email": "ada@example.net"});
    assert_eq!(payload["recipient"], recipient, "{payload}");
    for file in payload["attachments"].as_array().unwrap() {
        assert_eq!(file["content_type"], "text/plain");
    }
    for name in ["cc", "bcc", "reply_to", "external_id"] {
        assert!(payload.get(name).is_none(), "{name}");
    }
    let plain = send(&api, &mail(), None).await.ok(202);
    assert!(plain.get("recipient").is_none(), "none was given");
}

#[tokio::test]
async fn a_recipient_that_nothing_names_is_told_what_would_name_it() {
    let api = Api::start().await;
    for recipient in [json!({}), json!({"nome": "Ada", "cpfCnpj": " "})] {
        let answer = send(&api, &with(json!({"recipient": recipient})), None).await;
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status.as_u16(), &error["code"]), (422, &json!("INVALID_PAYLOAD")));
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("externalId") && said.contains("cpfCnpj"), "{said}");
    }
}

#[tokio::test]
async fn the_first_page_may_be_named_by_its_number() {
    let api = Api::start().await;
    for n in 0..3 {
        api.stored(&format!("m-{n}"), MessageState::Ready, &[("ada@example.net", Pending)]).await;
        api.clock.forward_ms(1);
    }
    let path = "/compat/004/v1/emails";
    let first = api.get(&format!("{path}?page=1&pageSize=2")).await.ok(200);
    assert_eq!(first["data"].as_array().unwrap().len(), 2);
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = api.get(&format!("{path}?pageSize=2&cursor={cursor}")).await.ok(200);
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["nextCursor"]), (1, &json!(null)));
    for (query, field, said) in [
        ("page=one", "page", "the first page is 1"),
        ("page=21&pageSize=500", "page", "10000th"),
        ("pageSize=0", "pageSize", "1 to 500"),
    ] {
        let answer = api.get(&format!("{path}?{query}")).await;
        let fault = answer.json()["error"]["details"][0].clone();
        assert_eq!((answer.status.as_u16(), &fault["field"]), (422, &json!(field)), "{query}");
        assert!(fault["message"].as_str().unwrap().contains(said), "{query}: {fault}");
    }
}

#[tokio::test]
async fn a_repeat_is_answered_as_the_first_and_another_body_is_refused() {
    let api = Api::start().await;
    let first = send(&api, &mail(), Some("key-1")).await.ok(202);
    api.clock.forward_ms(5_000);
    assert_eq!(send(&api, &mail(), Some("key-1")).await.ok(202), first);
    let other = send(&api, &with(json!({"subject": "Another"})), Some("key-1")).await;
    assert_eq!((other.status.as_u16(), &other.json()["error"]["code"]), (409, &json!("CONFLICT")));
    assert_ne!(send(&api, &mail(), Some("key-2")).await.ok(202)["outboxId"], first["outboxId"]);
}

#[tokio::test]
async fn the_tenants_sender_stands_in_where_a_mail_has_none() {
    let api = Api::start().await;
    let mut body = mail();
    body.as_object_mut().unwrap().remove("from");
    let refused = send(&api, &body, None).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["details"][0]["field"]),
        (422, &json!("from"))
    );
    api.patch("/v1/tenants/default", json!({"default_from": "Shop <shop@example.com>"})).await.ok(200);
    let answer = send(&api, &body, None).await.ok(202);
    let id = answer["outboxId"].as_str().unwrap();
    let raw = api.get(&format!("/v1/messages/{id}/raw")).await;
    assert!(
        String::from_utf8_lossy(&raw.body).contains("From: \"Shop\" <shop@example.com>"),
        "{:?}",
        raw.body
    );
}

#[tokio::test]
async fn what_is_wrong_is_named_in_its_words_with_its_codes() {
    let api = Api::start().await;
    for (fields, field, code) in [
        (json!({"to": "nobody"}), "to", "INVALID_EMAIL"),
        (json!({"replyTo": "nobody"}), "replyTo", "INVALID_EMAIL"),
        (json!({"subject": "x".repeat(200)}), "subject", "INVALID_TEMPLATE"),
        (json!({"html": "<script>alert(1)</script>"}), "html", "INVALID_TEMPLATE"),
        (json!({"externalId": 7}), "externalId", "INVALID_PAYLOAD"),
        (json!({"to": 5}), "to", "INVALID_PAYLOAD"),
        (json!({"to": null, "cc": "bob@example.net"}), "to", "INVALID_PAYLOAD"),
        (json!({"subject": null}), "subject", "INVALID_PAYLOAD"),
        (json!({"html": null, "text": "Thank you."}), "html", "INVALID_TEMPLATE"),
        (json!({"companyId": "other"}), "companyId", "OUTBOX_NOT_FOUND"),
        (
            json!({"recipient": {"externalId": "C", "email": "bob@example.net"}}),
            "recipient.email",
            "INVALID_PAYLOAD",
        ),
        (
            json!({"recipient": {"cpfCnpj": "12345678909", "email": "bob@example.net"}}),
            "recipient.email",
            "INVALID_PAYLOAD",
        ),
        (json!({"recipient": {"email": "ada@example.net"}}), "recipient", "INVALID_PAYLOAD"),
        (json!({"recipient": {"recipientId": "none"}}), "recipient.recipientId", "RECIPIENT_NOT_FOUND"),
        (json!({"recipient": {"id": "none"}}), "recipient.id", "RECIPIENT_NOT_FOUND"),
        (json!({"recipient": {"externalId": 7}}), "recipient.externalId", "INVALID_PAYLOAD"),
        (json!({"colour": "red"}), "colour", "INVALID_PAYLOAD"),
        (json!({"recipient": {"colour": 1}}), "recipient.colour", "INVALID_PAYLOAD"),
        (
            json!({"attachments": [{"filename": "a", "colour": 1}]}),
            "attachments[0].colour",
            "INVALID_PAYLOAD",
        ),
    ] {
        let answer = send(&api, &with(fields.clone()), None).await;
        let error = &answer.json()["error"];
        assert_eq!(answer.status.as_u16(), 422, "{fields} {error}");
        assert_eq!(
            (&error["details"][0]["field"], &error["code"]),
            (&json!(field), &json!(code)),
            "{fields}"
        );
        assert_eq!(error["requestId"], "req-1");
    }
    let kept = api.get("/v1/messages?limit=100").await.ok(200);
    let kept = kept["data"].as_array().unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|one| one["status"] == "invalid"), "none was taken");
}

#[tokio::test]
async fn what_was_refused_is_a_row_without_what_came() {
    let api = Api::start().await;
    let body = with(json!({"to": ["ada@example.net", "nobody"], "cc": "Bob <bob@example.net>",
        "externalId": "order-7", "html": "<p>secret words</p>"}));
    send(&api, &body, Some("key-1")).await;
    let list = api.get("/compat/004/v1/emails?status=VALIDATION_FAILED&externalId=order-7").await.ok(200);
    let id = list["data"][0]["outboxId"].as_str().unwrap();
    let shown = api.get(&format!("/compat/004/v1/emails/{id}")).await.ok(200);
    assert_eq!((&shown["to"], &shown["cc"]), (&json!("ada@example.net"), &json!(["bob@example.net"])));
    assert_eq!((&shown["errorCode"], &shown["subject"]), (&json!("INVALID_EMAIL"), &json!("Your order")));
    let event = &shown["events"][1];
    assert_eq!((&event["type"], &event["metadata"]["field"]), (&json!("VALIDATION_FAILED"), &json!("to[1]")));
    let payload = api.get(&format!("/v1/messages/{id}/payload")).await;
    assert_ne!(payload.status.as_u16(), 200, "{:?}", payload.body);
    // Nothing is known by its key: mended, it goes.
    let mended = with(json!({"externalId": "order-7"}));
    send(&api, &mended, Some("key-1")).await.ok(202);
    let all = api.get("/compat/004/v1/emails?externalId=order-7").await.ok(200);
    assert_eq!(all["data"].as_array().unwrap().len(), 2);
    assert_eq!(api.get("/compat/004/v1/emails?externalId=order").await.ok(200)["data"], json!([]));
}

#[tokio::test]
async fn a_known_recipient_is_found_by_the_personal_number() {
    let api = Api::start().await;
    let known = json!({"address": "ada@example.net", "name": "Ada", "personal_number": "12345678909"});
    let known = api.post("/v1/recipients", known).await;
    let known = known.json();
    let body = with(json!({"recipient": {"cpfCnpj": "12345678909", "email": "ada@example.net"}}));
    let answer = send(&api, &body, None).await.ok(202);
    let shown =
        api.get(&format!("/compat/004/v1/emails/{}", answer["outboxId"].as_str().unwrap())).await.ok(200);
    assert_eq!(shown["recipientId"], known["id"], "{known}");
}

#[tokio::test]
async fn states_are_those_its_users_know_and_lists_go_by_them() {
    let api = Api::start().await;
    for (id, state, recipient) in [
        ("sent", MessageState::Sent, Sent),
        ("failed", MessageState::Failed, Failed),
        ("cancelled", MessageState::Cancelled, Cancelled),
        ("retry", MessageState::Scheduled(ScheduleReason::Retry), Pending),
        ("later", MessageState::Scheduled(ScheduleReason::SendAt), Pending),
        ("ready", MessageState::Ready, Pending),
        ("doubt", MessageState::InDoubt, InDoubt),
        ("invalid", MessageState::Invalid, Pending),
    ] {
        api.stored(id, state, &[("ada@example.net", recipient)]).await;
    }
    let list = async |status: &str| {
        let list = api.get(&format!("/compat/004/v1/emails?status={status}")).await.ok(200);
        list["data"].as_array().unwrap().len()
    };
    for (status, count) in [
        ("SENT", 1),
        ("FAILED", 2),
        ("RETRY_SCHEDULED", 1),
        ("VALIDATED", 2),
        ("SENT_ATTEMPT", 1),
        ("VALIDATION_FAILED", 1),
        ("RECEIVED", 0),
    ] {
        assert_eq!(list(status).await, count, "{status}");
    }
    let failed = api.get("/compat/004/v1/emails/failed").await.ok(200);
    assert_eq!((&failed["errorCode"], &failed["errorReason"]), (&json!("smtp_450"), &json!("come back")));
    assert_eq!(failed["events"].as_array().unwrap().last().unwrap()["type"], "FAILED");
    let cancelled = api.get("/compat/004/v1/emails/cancelled").await.ok(200);
    assert!(cancelled["failedAt"].is_string() && cancelled["sentAt"].is_null(), "{cancelled}");
    assert_eq!(api.get("/compat/004/v1/emails?status=sent").await.status.as_u16(), 422);
    assert_eq!(
        api.get("/compat/004/v1/emails?requestId=req-7").await.ok(200)["data"].as_array().unwrap().len(),
        8
    );
}

#[tokio::test]
async fn pages_have_numbers_and_are_full_whatever_lies_between() {
    let api = Api::start().await;
    for n in 0..10 {
        let wait = if n % 2 == 0 { ScheduleReason::Retry } else { ScheduleReason::SendAt };
        api.stored(&format!("m-{n}"), MessageState::Scheduled(wait), &[("ada@example.net", Pending)]).await;
        api.clock.forward_ms(1);
    }
    let page = async |query: &str| -> (Vec<String>, bool) {
        let page = api.get(&format!("/compat/004/v1/emails?{query}")).await.ok(200);
        let data = page["data"].as_array().unwrap().iter();
        let mut ids = Vec::new();
        for one in data {
            let uid = one["id"].as_str().unwrap();
            ids.push(
                api.get(&format!("/v1/messages/{uid}")).await.ok(200)["id"].as_str().unwrap().to_owned(),
            );
        }
        (ids, page["nextCursor"].is_string())
    };
    assert_eq!(
        page("pageSize=4&page=1").await,
        (vec!["m-9".into(), "m-8".into(), "m-7".into(), "m-6".into()], true)
    );
    assert_eq!(page("pageSize=4&page=3").await.0, ["m-1", "m-0"]);
    assert_eq!(page("pageSize=4&page=4").await, (vec![], false));
    let retries = "status=RETRY_SCHEDULED&pageSize=2";
    assert_eq!(page(&format!("{retries}&page=1")).await, (vec!["m-8".into(), "m-6".into()], true));
    assert_eq!(page(&format!("{retries}&page=2")).await.0, ["m-4", "m-2"]);
    assert_eq!(page(&format!("{retries}&page=3")).await, (vec!["m-0".into()], false));
    let first = api.get(&format!("/compat/004/v1/emails?{retries}")).await.ok(200);
    let cursor = first["nextCursor"].as_str().unwrap();
    assert_eq!(page(&format!("{retries}&cursor={cursor}")).await.0, ["m-4", "m-2"], "and by the cursor");
    for wrong in ["page=0", "pageSize=501", &format!("page=2&cursor={cursor}")] {
        assert_eq!(api.get(&format!("/compat/004/v1/emails?{wrong}")).await.status.as_u16(), 422, "{wrong}");
    }
}

#[tokio::test]
async fn another_tenants_mail_is_not_there() {
    let api = Api::start().await;
    let id = send(&api, &mail(), None).await.ok(202)["outboxId"].as_str().unwrap().to_owned();
    let key = api.key("other", json!({"name": "all", "scopes": ["send", "read", "manage"]})).await;
    let answer = api.as_key(&key, "GET", &format!("/compat/004/v1/emails/{id}"), "").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (404, &json!("NOT_FOUND")));
    let list = api.as_key(&key, "GET", "/compat/004/v1/emails", "").await.ok(200);
    assert_eq!(list["data"], json!([]));
}
