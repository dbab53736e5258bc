//! Reference 000: lists of mails, their states, and requeueing.

use std::collections::HashSet;

use axum::{body::Body, http::Request};
use postway_domain::{EventKind, MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::record::{NewEvent, NewMessage, NotificationState};
use serde_json::{Value, json};

use crate::support::Api;

const EMAILS: &str = "/compat/000/emails";

fn mail(id: &str) -> Value {
    json!({"id": id, "from": "shop@example.com", "to": "ada@example.net", "subject": "Your order",
        "body_html": "<p>Thank you.</p>", "body_text": "Thank you."})
}

#[tokio::test]
async fn every_mail_has_its_own_result_in_order() {
    let api = Api::start().await;
    let id = "0190a000-0000-7000-8000-000000000001";
    let mut odd = mail("odd");
    odd["colour"] = json!("red");
    let mut empty = mail("empty");
    empty["body_html"] = json!(7);
    let mut filed = mail("filed");
    filed["attachments"] = json!([{"filename": "a.txt", "content": "aGVsbG8="}]);
    let answer = api.post(EMAILS, json!({"data": [mail(id), odd, empty, filed]})).await.ok(200);
    assert_eq!(answer["summary"], json!({"total": 4, "successful": 2, "failed": 2}));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0], json!({"id": id, "status": "success"}));
    assert_eq!(results[3], json!({"id": "filed", "status": "success"}));
    for (result, id, field) in [(&results[1], "odd", "colour"), (&results[2], "empty", "body_html")] {
        assert_eq!((&result["id"], &result["status"]), (&json!(id), &json!("error")));
        let error = &result["error"];
        assert_eq!(
            (&error["code"], &error["details"][0]["field"]),
            (&json!("validation_error"), &json!(field))
        );
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{field}: ")), "{error}");
    }
    let shown = api.get(&format!("{EMAILS}/{id}")).await.ok(200);
    assert_eq!((&shown["id"], &shown["status"]), (&json!(id), &json!("READY")));
    assert_eq!(shown["history"][0]["status"], "ACCEPTED");
    assert_eq!(
        (&shown["payload_file_path"], &shown["eml_file_path"]),
        (&json!(null), &json!(null)),
        "no files"
    );
    let again = api.post(EMAILS, json!({"data": [mail(id)]})).await.ok(201);
    assert_eq!(again["summary"], json!({"total": 1, "successful": 1, "failed": 0}), "a repeat");
    let mut other = mail(id);
    other["subject"] = json!("Another");
    let refused = api.post(EMAILS, json!({"data": [other]})).await;
    let answer = refused.json();
    assert_eq!((refused.status.as_u16(), &answer["summary"]["failed"]), (422, &json!(1)));
    assert_eq!(answer["results"][0]["error"]["code"], "conflict");
    for body in [json!({}), json!({"data": []}), json!({"data": {}}), json!({"data": [], "x": 1})] {
        assert_eq!(api.post(EMAILS, body.clone()).await.status.as_u16(), 422, "{body}");
    }
}

#[tokio::test]
async fn headers_files_and_answers_may_come_in_its_own_form() {
    let api = Api::start().await;
    let mut whole = mail("whole");
    whole["custom_headers"] = json!({"X-Order": "17"});
    whole["reply_to"] = json!("help@example.com");
    api.post(EMAILS, json!({"data": [whole.clone()]})).await.ok(201);
    let raw = api.get("/v1/messages/whole/raw").await;
    let raw = String::from_utf8_lossy(&raw.body);
    assert!(raw.contains("X-Order: 17") && raw.contains("Reply-To: <help@example.com>"), "{raw}");
    let payload = |path: &str| {
        json!({"data": [{"id": "f", "from": "shop@example.com", "to": "ada@example.net",
        "subject": "s", "body_text": "t", "attachments": [path]}]})
    };
    for path in ["../files/a.pdf", "file://elsewhere/files/a.pdf"] {
        let refused = api.post(EMAILS, payload(path)).await;
        assert_eq!(refused.status.as_u16(), 422, "{}", refused.json());
        let fault = refused.json()["results"][0]["error"]["details"][0].clone();
        assert!(fault["field"].as_str().unwrap().starts_with("attachments[0]"), "{fault}");
        assert!(fault["message"].as_str().unwrap().contains("attachments.folders"), "{path}: {fault}");
    }
    api.post(EMAILS, payload("file:///files/a%20b.pdf")).await.ok(201);
    let file = &api.get("/v1/messages/f/payload").await.ok(200)["attachments"][0];
    assert_eq!((&file["path"], &file["filename"]), (&json!("/files/a b.pdf"), &json!("a b.pdf")));
    let mut blank = mail("blank");
    let fields = json!({"cc": "", "bcc": " ", "reply_to": ""});
    blank.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    api.post(EMAILS, json!({"data": [blank.clone()]})).await.ok(201);
    assert_eq!(api.get("/v1/messages/blank").await.ok(200)["recipients"].as_array().unwrap().len(), 1);
    blank["id"] = json!("nobody");
    blank["to"] = json!("");
    blank["cc"] = json!("bob@example.net");
    assert_eq!(api.post(EMAILS, json!({"data": [blank]})).await.status.as_u16(), 422, "to must be there");
    whole["headers"] = json!({"X-Order": "18"});
    let mut broken = mail("broken");
    broken["custom_headers"] = json!({"X-Order": "a\r\nBcc: eve@example.net"});
    let refused = api.post(EMAILS, json!({"data": [whole, broken]})).await;
    assert_eq!(refused.status.as_u16(), 422);
    for result in refused.json()["results"].as_array().unwrap() {
        let field = result["error"]["details"][0]["field"].as_str().unwrap();
        assert!(field.starts_with("custom_headers"), "{result}");
    }
}

#[tokio::test]
async fn its_health_needs_no_key() {
    let api = Api::start().await;
    let request = Request::get("/compat/000/health-check").body(Body::empty()).unwrap();
    assert_eq!(api.ask(request).await.ok(200), json!({"status": "ok"}));
}

#[tokio::test]
async fn a_state_says_how_it_stands_with_the_callback() {
    let api = Api::start().await;
    api.post("/v1/webhooks", json!({"url": "https://app.example.com/hook", "events": ["*"]})).await.ok(201);
    api.stored("webhook", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    assert!(api.notify(NotificationState::Acknowledged, 200).await >= 1);
    let show = async |id: &str| api.get(&format!("{EMAILS}/{id}")).await.ok(200);
    assert_eq!(show("webhook").await["status"], "SENT", "a webhook is no callback");
    let called = |state: MessageState, kinds: &'static [EventKind]| {
        move |message: &mut NewMessage| {
            (message.state, message.due_at) = (state, None);
            message.events.extend(kinds.iter().map(|kind| NewEvent { kind: *kind, data: None }));
        }
    };
    let sent = called(MessageState::Sent, &[EventKind::Sent]);
    api.stored_with("sent", MessageState::Sent, &[("ada@example.net", Sent)], sent).await;
    let told = called(MessageState::Sent, &[EventKind::Sent, EventKind::Notifying, EventKind::Notified]);
    api.stored_with("told", MessageState::Sent, &[("ada@example.net", Sent)], told).await;
    let twice = &[EventKind::Failed, EventKind::Notifying, EventKind::Notifying, EventKind::Notified];
    let failed = called(MessageState::Failed, twice);
    api.stored_with("failed", MessageState::Failed, &[("ada@example.net", Failed)], failed).await;
    for (id, words) in [
        ("sent", &["SENT"][..]),
        ("told", &["SENT", "CALLING-SENT-CALLBACK", "SENT-ACKNOWLEDGED"]),
        ("failed", &["FAILED", "CALLING-FAILED-CALLBACK", "CALLING-FAILED-CALLBACK", "FAILED-ACKNOWLEDGED"]),
    ] {
        let shown = show(id).await;
        let history: Vec<&str> =
            shown["history"].as_array().unwrap().iter().map(|row| row["status"].as_str().unwrap()).collect();
        assert!(history.ends_with(words), "{history:?}");
        assert_eq!(shown["status"], *words.last().unwrap(), "{id}");
        let ours = api.get(&format!("/v1/messages/{id}")).await.ok(200)["version"].as_i64().unwrap();
        let calls = words.len() as i64 - 1;
        assert_eq!(shown["version"], ours + calls, "each call and each answer is a change");
    }
    let list = async |status: &str| {
        let list = api.get(&format!("{EMAILS}?status={status}")).await.ok(200);
        list["data"].as_array().unwrap().len()
    };
    assert_eq!((list("SENT").await, list("SENT-ACKNOWLEDGED").await), (2, 1));
    assert_eq!(api.get(&format!("{EMAILS}?status=GONE")).await.status.as_u16(), 422);
}

#[tokio::test]
async fn a_subject_has_no_bound_but_the_tenants_own() {
    let api = Api::start().await;
    let long = |id: &str| {
        let mut mail = mail(id);
        mail["subject"] = json!("é".repeat(400));
        json!({"data": [mail]})
    };
    api.post(EMAILS, long("long")).await.ok(201);
    let native =
        json!({"from": "shop@example.com", "to": "ada@example.net", "subject": "é".repeat(400), "text": "t"});
    assert_eq!(api.post("/v1/messages", native).await.status.as_u16(), 422, "the bound of other ways in");
    let bound = json!({"content": {"subject_chars": 200}});
    api.patch("/v1/tenants/default", bound).await.ok(200);
    let refused = api.post(EMAILS, long("longer")).await;
    assert_eq!(refused.status.as_u16(), 422);
    assert_eq!(refused.json()["results"][0]["error"]["details"][0]["field"], "subject");
}

#[tokio::test]
async fn an_invalid_mail_is_checked_anew_once_it_is_requeued() {
    let api = Api::start().await;
    api.stored("late", MessageState::Invalid, &[("ada@example.net", Failed)]).await;
    let before = api.get(&format!("{EMAILS}/late")).await.ok(200)["version"].as_i64().unwrap();
    let requeued = api.post(&format!("{EMAILS}/late/requeue"), json!({})).await;
    assert_eq!((requeued.status.as_u16(), requeued.body.len()), (204, 0));
    let shown = api.get(&format!("{EMAILS}/late")).await.ok(200);
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("ACCEPTED"), &json!(null)));
    assert_eq!(shown["version"], before + 1);
    let recipient = api.get("/v1/messages/late").await.ok(200)["recipients"][0]["status"].clone();
    assert_eq!(recipient, "pending");
    let again = api.post(&format!("{EMAILS}/requeue"), json!({"ids": ["late"]})).await.ok(200);
    assert_eq!(again["data"][0], json!({"id": "late", "status": "ACCEPTED"}), "it has its turn");
}

#[tokio::test]
async fn nobody_acknowledged_an_end_that_nobody_was_told_of() {
    let api = Api::start().await;
    let hook = json!({"url": "https://app.example.com/hook", "events": ["email.accepted"]});
    api.post("/v1/webhooks", hook).await.ok(201);
    api.stored("sent", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 1);
    assert_eq!(api.get(&format!("{EMAILS}/sent")).await.ok(200)["status"], "SENT");
    let list = api.get("/compat/001/messages").await.ok(200);
    assert_eq!(
        (&list["messages"][0]["status"], &list["messages"][0]["reported_ts"]),
        (&json!("SENT"), &json!(null))
    );
}

#[tokio::test]
async fn a_history_says_why() {
    let api = Api::start().await;
    api.stored_with("old", MessageState::Cancelled, &[("ada@example.net", Cancelled)], |message| {
        let data = Some(json!({"message": null, "reason": "superseded"}).to_string());
        message.events.push(NewEvent { kind: EventKind::Cancelled, data });
    })
    .await;
    let shown = api.get(&format!("{EMAILS}/old")).await.ok(200);
    let last = shown["history"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["status"], &last["reason"]), (&json!("FAILED"), &json!("superseded")));
}

#[tokio::test]
async fn a_bare_list_has_all_that_fit_a_page() {
    let api = Api::start().await;
    for n in 0..60 {
        api.stored(&format!("m-{n}"), MessageState::Invalid, &[("ada@example.net", Pending)]).await;
    }
    let length = async |path: &str| api.get(path).await.ok(200).as_array().unwrap().len();
    assert_eq!(length("/compat/000/invalid-emails").await, 60, "its users know no pages");
    assert_eq!(length("/compat/000/invalid-emails?limit=7").await, 7);
    let paged = api.get(&format!("{EMAILS}/invalid")).await.ok(200);
    assert_eq!(paged["data"].as_array().unwrap().len(), 50);
    assert_eq!(api.get("/compat/000/invalid-emails?limit=501").await.status.as_u16(), 422);
    assert_eq!(api.get("/compat/001/messages").await.ok(200)["messages"].as_array().unwrap().len(), 60);
}

#[tokio::test]
async fn stale_and_invalid_mails_are_listed_and_stale_ones_go_again() {
    let api = Api::start().await;
    api.stored("waits", MessageState::Scheduled(ScheduleReason::Retry), &[("ada@example.net", Pending)])
        .await;
    api.stored("doubt", MessageState::InDoubt, &[("ada@example.net", InDoubt)]).await;
    api.stored("ready", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    api.stored("invalid", MessageState::Invalid, &[("ada@example.net", Pending)]).await;
    api.stored("sent", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let ids = async |path: &str| -> Vec<String> {
        let list = api.get(&format!("{EMAILS}{path}")).await.ok(200);
        let data = list["data"].as_array().unwrap().iter();
        let mut ids: Vec<String> = data.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids("/invalid").await, ["invalid"]);
    assert!(ids("/stale").await.is_empty());
    api.clock.forward_ms(901_000);
    assert_eq!(ids("/stale").await, ["doubt", "ready"], "a retry had to wait for a minute first");
    api.clock.forward_ms(60_000);
    assert_eq!(ids("/stale").await, ["doubt", "ready", "waits"]);
    assert!(ids("/stale?older_than_seconds=1000").await.is_empty());
    let bare = api.get("/compat/000/stale-emails?limit=2").await;
    let (first, cursor) = (bare.ok(200), bare.headers["x-next-cursor"].to_str().unwrap());
    let rest = api.get(&format!("/compat/000/stale-emails?limit=2&cursor={cursor}")).await;
    let (first, rest_of_it) = (first.as_array().unwrap().clone(), rest.ok(200));
    assert!(!rest.headers.contains_key("x-next-cursor"));
    let both: HashSet<&str> =
        first.iter().chain(rest_of_it.as_array().unwrap()).map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(both, HashSet::from(["doubt", "ready", "waits"]));
    let bare = api.get("/compat/000/invalid-emails").await.ok(200);
    assert_eq!((&bare[0]["id"], &bare[0]["status"]), (&json!("invalid"), &json!("INVALID")));
    assert_eq!(bare.as_array().unwrap().len(), 1);
    let answer = api.post(&format!("{EMAILS}/requeue"), json!({"stale": true})).await.ok(200);
    assert_eq!((&answer["requeued"], &answer["refused"]), (&json!(3), &json!(0)), "{answer}");
    assert_eq!(ids("?status=READY").await, ["doubt", "ready", "waits"]);
    let answer =
        api.post(&format!("{EMAILS}/requeue"), json!({"ids": ["sent", "none", "ready"]})).await.ok(200);
    assert_eq!((&answer["requeued"], &answer["refused"]), (&json!(1), &json!(2)));
    assert_eq!(answer["data"][0]["code"], "conflict");
    assert_eq!(answer["data"][1]["code"], "not_found");
    api.stored("failed", MessageState::Failed, &[("ada@example.net", Failed)]).await;
    let one = api.post(&format!("{EMAILS}/failed/requeue"), json!({})).await;
    assert_eq!((one.status.as_u16(), one.body.len()), (204, 0));
    assert_eq!(api.get(&format!("{EMAILS}/failed")).await.ok(200)["status"], "READY");
    let sent = api.post(&format!("{EMAILS}/sent/requeue"), json!({})).await;
    assert_eq!((sent.status.as_u16(), &sent.json()["code"]), (409, &json!("conflict")));
    for body in [json!({}), json!({"ids": []}), json!({"ids": [1]}), json!({"stale": false}), json!({"x": 1})]
    {
        assert_eq!(api.post(&format!("{EMAILS}/requeue"), body.clone()).await.status.as_u16(), 422, "{body}");
    }
}

#[tokio::test]
async fn what_waits_for_its_time_is_not_stale_and_is_not_sent_before_it() {
    let api = Api::start().await;
    let later = json!({"id": "later", "from": "shop@example.com", "to": "ada@example.net", "subject": "s", "text": "t",
        "send_at": 1_700_000_000 + 7_200});
    api.post("/v1/messages", later).await.ok(202);
    api.stored("retry", MessageState::Scheduled(ScheduleReason::Retry), &[("ada@example.net", Pending)])
        .await;
    api.clock.forward_ms(30_000);
    let stale = async |older_than: u64| -> Vec<String> {
        let list = api.get(&format!("{EMAILS}/stale?older_than_seconds={older_than}")).await.ok(200);
        let data = list["data"].as_array().unwrap().iter();
        data.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert!(stale(0).await.is_empty(), "both wait for their time");
    let requeue = async || api.post(&format!("{EMAILS}/requeue"), json!({"stale": true})).await.ok(200);
    api.clock.forward_ms(3_600_000);
    assert_eq!(stale(900).await, ["retry"], "its back-off ended long ago");
    assert_eq!(requeue().await["data"], json!([{"id": "retry", "status": "READY"}]));
    let waits = api.get("/v1/messages/later").await.ok(200);
    assert_eq!(
        (&waits["status"], &waits["due_at"]),
        (&json!("scheduled"), &json!("2023-11-15T00:13:20.000Z"))
    );
    api.clock.forward_ms(7_200_000);
    assert!(stale(900).await.contains(&"later".to_owned()), "its time came and went");
}

#[tokio::test]
async fn stale_mails_behind_many_that_wait_are_found() {
    let api = Api::start().await;
    api.stored("stuck", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    let send_at = 1_700_000_000 + 864_000;
    for part in 0..3 {
        let mail = |n: usize| {
            json!({"id": format!("w-{part}-{n}"), "from": "shop@example.com", "to": "ada@example.net",
            "subject": "s", "text": "t", "send_at": send_at})
        };
        api.clock.forward_ms(1);
        let batch = json!({"messages": (0..200).map(mail).collect::<Vec<_>>()});
        api.post("/v1/messages/batch", batch).await.ok(202);
    }
    api.clock.forward_ms(3_600_000);
    let answer = api.post(&format!("{EMAILS}/requeue"), json!({"stale": true})).await.ok(200);
    assert_eq!((&answer["requeued"], &answer["data"][0]["id"]), (&json!(1), &json!("stuck")), "{answer}");
}

#[tokio::test]
async fn another_tenants_mail_is_not_there() {
    let api = Api::start().await;
    api.post(EMAILS, json!({"data": [mail("ours")]})).await.ok(201);
    let key = api.key("other", json!({"name": "all", "scopes": ["send", "read", "manage"]})).await;
    for (method, path) in [("GET", "/ours"), ("POST", "/ours/requeue")] {
        let answer = api.as_key(&key, method, &format!("{EMAILS}{path}"), "").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (404, &json!("not_found")), "{path}");
    }
    for path in ["", "/stale?older_than_seconds=0", "/invalid"] {
        assert_eq!(api.as_key(&key, "GET", &format!("{EMAILS}{path}"), "").await.ok(200)["data"], json!([]));
    }
    for path in ["/stale-emails?older_than_seconds=0", "/invalid-emails"] {
        let path = format!("/compat/000{path}");
        assert_eq!(api.as_key(&key, "GET", &path, "").await.ok(200), json!([]));
        assert_eq!(
            api.ask(Request::get(&path).body(Body::empty()).unwrap()).await.status.as_u16(),
            401,
            "{path}"
        );
    }
    let accepted =
        api.as_key(&key, "POST", EMAILS, json!({"data": [mail("ours")]}).to_string()).await.ok(201);
    assert_eq!(accepted["summary"]["successful"], 1, "ids are each tenant's own");
}
