//! The Resend API: good and bad input, batches, and that one tenant's key sees nothing of another's.

use std::time::Duration;

use axum::{body::Body, http::Request};
use postway_domain::{Clock, MessageState, RecipientStatus};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY, REQUEST_BYTES_MAX};

const DOOR: &str = "/compat/resend";

fn email(subject: &str) -> Value {
    json!({"from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": subject, "html": "<p>Hi</p>"})
}

fn with(mut email: Value, part: Value) -> Value {
    email.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    email
}

impl Api {
    async fn resend(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{DOOR}{path}"));
        request = request.header("content-type", "application/json");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", format!("Bearer {KEY}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { body.to_string().into() };
        self.ask(request.body(body).unwrap()).await
    }

    async fn count(&self) -> usize {
        self.get("/v1/messages").await.ok(200)["data"].as_array().unwrap().len()
    }
}

/// Checks the shape of an error; its message.
#[track_caller]
fn refused(answer: &Answer, status: u16, name: &str) -> String {
    let json = answer.json();
    assert_eq!((answer.status.as_u16(), json["name"].as_str()), (status, Some(name)), "{json}");
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(json["statusCode"], status, "{json}");
    assert_eq!(json.as_object().unwrap().len(), 3, "{json}");
    json["message"].as_str().unwrap().to_owned()
}

#[track_caller]
fn id(answer: &Answer) -> String {
    answer.ok(200)["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_email_is_taken_shown_and_listed() {
    let api = Api::start().await;
    let sent = with(
        email("Hi"),
        json!({
            "cc": "cc@example.net", "bcc": ["bcc@example.net"], "reply_to": "Help <help@example.com>", "text": "Hi",
            "tags": [{"name": "kind", "value": "receipt"}], "headers": {"X-Order": "7"},
            "attachments": [{"filename": "a.txt", "content": "aGk="}],
        }),
    );
    let id = id(&api.resend("POST", "/emails", &[], sent).await);
    let shown = api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200);
    for (name, value) in [
        ("object", json!("email")),
        ("id", json!(id)),
        ("from", json!("Shop <shop@example.com>")),
        ("to", json!(["ada@example.net"])),
        ("cc", json!(["cc@example.net"])),
        ("bcc", json!(["bcc@example.net"])),
        ("reply_to", json!(["Help <help@example.com>"])),
        ("subject", json!("Hi")),
        ("last_event", json!("queued")),
        ("scheduled_at", json!(null)),
        ("tags", json!([{"name": "kind", "value": "receipt"}])),
    ] {
        assert_eq!(shown[name], value, "{name} of {shown}");
    }
    assert!(shown["html"].as_str().unwrap().contains("<p>Hi</p>"), "{shown}");
    assert_eq!(shown["text"].as_str().unwrap().trim(), "Hi");
    let ours = api.get(&format!("/v1/messages/{id}")).await.ok(200);
    assert_eq!((&ours["uid"], &ours["tags"]), (&json!(id), &json!(["kind:receipt"])));

    for subject in ["Two", "Three"] {
        api.clock.forward_ms(1);
        api.resend("POST", "/emails", &[], email(subject)).await.ok(200);
    }
    let first = api.resend("GET", "/emails?limit=2", &[], Value::Null).await.ok(200);
    assert_eq!((&first["object"], &first["has_more"]), (&json!("list"), &json!(true)));
    let subjects = |page: &Value| {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|email| email["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(subjects(&first), ["Three", "Two"]);
    let after = first["data"][1]["id"].as_str().unwrap();
    let rest = api.resend("GET", &format!("/emails?limit=2&after={after}"), &[], Value::Null).await.ok(200);
    assert_eq!((subjects(&rest), &rest["has_more"]), (vec!["Hi".to_owned()], &json!(false)));
    let page = async |query: String| {
        let page = api.resend("GET", &format!("/emails?{query}"), &[], Value::Null).await.ok(200);
        (subjects(&page), page["has_more"].as_bool().unwrap())
    };
    assert_eq!(page(format!("before={id}")).await, (vec!["Three".to_owned(), "Two".to_owned()], false));
    assert_eq!(page(format!("limit=1&before={id}")).await, (vec!["Two".to_owned()], true));
    assert_eq!(page(format!("limit=1&before={after}")).await, (vec!["Three".to_owned()], false));
    let both = api.resend("GET", &format!("/emails?before={id}&after={id}"), &[], Value::Null).await;
    refused(&both, 422, "validation_error");
}

/// Html alone gets a text, as there; an empty one says that none is wanted, and what is shown is what is in
/// the mail.
#[tokio::test]
async fn html_alone_gets_a_text_unless_none_is_wanted() {
    let api = Api::start().await;
    let raw = async |id: &str| {
        String::from_utf8_lossy(&api.get(&format!("/v1/messages/{id}/raw")).await.body).into_owned()
    };
    let show = async |id: &str| api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200);
    let made = id(&api.resend("POST", "/emails", &[], email("Hi")).await);
    assert!(raw(&made).await.contains("multipart/alternative"));
    let shown = show(&made).await;
    assert_eq!((&shown["text"], &shown["html"]), (&json!("Hi"), &json!("<p>Hi</p>")));
    let none = id(&api.resend("POST", "/emails", &[], with(email("Hi"), json!({"text": ""}))).await);
    assert!(!raw(&none).await.contains("text/plain"));
    let shown = show(&none).await;
    assert_eq!((&shown["text"], &shown["html"]), (&json!(null), &json!("<p>Hi</p>")));
    let plain = with(email("Hi"), json!({"html": null, "text": "Ho"}));
    let shown = show(&id(&api.resend("POST", "/emails", &[], plain).await)).await;
    assert_eq!((&shown["text"], &shown["html"]), (&json!("Ho"), &json!(null)));
}

#[tokio::test]
async fn bounds_are_those_of_resend() {
    let api = Api::start().await;
    let long = "x".repeat(256);
    let sent = with(
        email(&"s".repeat(998)),
        json!({"tags": [{"name": long, "value": long}], "headers": {"Message-ID": "<x@y>", "Date": "x",
               "Sender": "other@example.com", "Return-Path": "<bounce@example.com>", "X-Order": "7"}}),
    );
    let id = id(&api.resend("POST", "/emails", &[], sent).await);
    let shown = api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200);
    assert_eq!(shown["tags"], json!([{"name": long, "value": long}]));
    assert_eq!(shown["subject"].as_str().unwrap().len(), 998);
    let raw = String::from_utf8_lossy(&api.get(&format!("/v1/messages/{id}/raw")).await.body).into_owned();
    assert!(raw.contains("X-Order: 7") && !raw.contains("<x@y>") && !raw.contains("Sender:"), "{raw}");
    api.patch("/v1/tenants/default", json!({"content": {"subject_chars": 100}})).await.ok(200);
    let long = api.resend("POST", "/emails", &[], email(&"s".repeat(101))).await;
    assert!(
        refused(&long, 422, "validation_error").contains("100 characters"),
        "the tenant's own bound holds"
    );
}

#[tokio::test]
async fn attachments_are_listed_and_fetched_by_links_that_end() {
    let api = Api::start().await;
    let sent = with(
        email("Hi"),
        json!({"attachments": [
            {"filename": "a.txt", "content": "aGk="}, {"content": "aG8=", "content_type": "text/csv"},
            {"filename": "l.png", "content": "iVBORw0KGgo=", "content_id": "logo"},
        ]}),
    );
    let id = id(&api.resend("POST", "/emails", &[], sent).await);
    let path = format!("/emails/{id}/attachments");
    let list = api.resend("GET", &path, &[], Value::Null).await.ok(200);
    assert_eq!((&list["object"], &list["has_more"]), (&json!("list"), &json!(false)));
    let names: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|file| &file["filename"]).collect();
    assert_eq!(names.len(), 3, "{list}");
    let of =
        |name: &str| list["data"].as_array().unwrap().iter().find(|file| file["filename"] == name).unwrap();
    assert_eq!(
        (&of("attachment.csv")["size"], &of("attachment.csv")["content_type"]),
        (&json!(2), &json!("text/csv"))
    );
    assert_eq!(
        (&of("l.png")["content_id"], &of("l.png")["content_disposition"]),
        (&json!("logo"), &json!("inline"))
    );
    let one =
        api.resend("GET", &format!("{path}/{}", of("a.txt")["id"].as_str().unwrap()), &[], Value::Null).await;
    let one = one.ok(200);
    assert_eq!((&one["object"], &one["filename"]), (&json!("attachment"), &json!("a.txt")));
    let page = api.resend("GET", &format!("{path}?limit=2"), &[], Value::Null).await.ok(200);
    assert_eq!((page["data"].as_array().unwrap().len(), &page["has_more"]), (2, &json!(true)));
    refused(&api.resend("GET", &format!("{path}/att_9"), &[], Value::Null).await, 404, "not_found");
    refused(&api.resend("GET", &format!("{path}/x"), &[], Value::Null).await, 404, "not_found");

    let url = one["download_url"].as_str().unwrap();
    let link = &url[url.find("/files/").unwrap()..];
    let follow = async |link: &str| api.ask(Request::get(link).body(Body::empty()).unwrap()).await;
    let file = follow(link).await;
    assert_eq!((file.status.as_u16(), &*file.body), (200, &b"hi"[..]), "it needs no key");
    assert!(file.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
    follow(&format!("{link}A")).await.refused(404, "not_found");
    api.clock.forward_ms(3_600_000);
    assert_eq!(follow(link).await.status.as_u16(), 410);
}

#[tokio::test]
async fn webhooks_are_made_shown_changed_and_removed() {
    let api = Api::start().await;
    let hook = json!({"endpoint": "https://app.example.com/hook", "events": ["email.sent", "email.delivery_delayed", "email.opened"]});
    let made = api.resend("POST", "/webhooks", &[], hook.clone()).await.ok(200);
    let id = made["id"].as_str().unwrap();
    assert!(
        made["object"] == "webhook" && made["signing_secret"].as_str().unwrap().starts_with("whsec_"),
        "{made}"
    );
    let ours = api.get(&format!("/v1/webhooks/{id}")).await.ok(200);
    assert_eq!((&ours["form"], &ours["kind"]), (&json!("resend"), &json!("webhook")));
    assert_eq!(ours["events"], json!(["email.deferred", "email.delayed", "email.opened", "email.sent"]));
    let path = format!("/webhooks/{id}");
    let shown = api.resend("GET", &path, &[], Value::Null).await.ok(200);
    for (name, value) in [
        ("object", json!("webhook")),
        ("endpoint", hook["endpoint"].clone()),
        ("status", json!("enabled")),
        ("events", json!(["email.delivery_delayed", "email.opened", "email.sent"])),
    ] {
        assert_eq!(shown[name], value, "{name} of {shown}");
    }
    let rotated =
        api.resend("POST", &format!("{path}/signing-secret/rotate"), &[], Value::Null).await.ok(200);
    assert_ne!(rotated["signing_secret"], made["signing_secret"]);
    let change = json!({"status": "disabled", "events": ["email.bounced"]});
    assert_eq!(api.resend("PATCH", &path, &[], change).await.ok(200), json!({"object": "webhook", "id": id}));
    let list = api.resend("GET", "/webhooks", &[], Value::Null).await.ok(200);
    assert_eq!(
        (&list["data"][0]["status"], &list["data"][0]["events"]),
        (&json!("disabled"), &json!(["email.bounced"]))
    );
    let native = api.post("/v1/webhooks", json!({"url": "https://app.example.com/own"})).await.ok(201);
    assert_eq!(native["form"], "postway");
    let native = format!("/webhooks/{}", native["id"].as_str().unwrap());
    refused(&api.resend("GET", &native, &[], Value::Null).await, 404, "not_found");
    refused(&api.resend("DELETE", &native, &[], Value::Null).await, 404, "not_found");
    for (body, name, said) in [
        (json!({"events": ["email.sent"]}), "missing_required_field", "`endpoint`"),
        (json!({"endpoint": "ftp://x", "events": ["email.sent"]}), "validation_error", "`endpoint`"),
        (
            json!({"endpoint": "https://a.example", "events": ["email.none"]}),
            "validation_error",
            "`events[0]`",
        ),
        (
            json!({"endpoint": "https://a.example", "events": ["contact.created"]}),
            "validation_error",
            "`events`",
        ),
        (json!({"endpoint": "https://a.example", "events": []}), "validation_error", "`events`"),
    ] {
        let message = refused(&api.resend("POST", "/webhooks", &[], body.clone()).await, 422, name);
        assert!(message.contains(said), "{body}: {message}");
    }
    let gone = api.resend("DELETE", &path, &[], Value::Null).await.ok(200);
    assert_eq!(gone, json!({"object": "webhook", "id": id, "deleted": true}));
    refused(&api.resend("GET", &path, &[], Value::Null).await, 404, "not_found");
}

#[tokio::test]
async fn templates_are_made_filled_in_changed_and_removed() {
    let api = Api::start().await;
    let template = json!({"name": "Order Confirmation", "subject": "Order {{{PRODUCT}}}", "html": "<p>{{{PRODUCT}}}: {{{PRICE}}}</p>",
        "variables": [{"key": "PRODUCT", "type": "string"}, {"key": "PRICE", "type": "number", "fallback_value": 25}]});
    let made = api.resend("POST", "/templates", &[], template.clone()).await.ok(200);
    assert_eq!(made, json!({"object": "template", "id": "order-confirmation"}));
    let again = api.resend("POST", "/templates", &[], template.clone()).await.ok(200);
    assert_eq!(again["id"], "order-confirmation-2");
    let path = "/templates/order-confirmation";
    assert_eq!(
        api.resend("POST", &format!("{path}/publish"), &[], Value::Null).await.ok(200)["id"],
        made["id"]
    );
    let shown = api.resend("GET", path, &[], Value::Null).await.ok(200);
    for name in ["name", "subject", "html"] {
        assert_eq!(shown[name], template[name], "{name} of {shown}");
    }
    assert_eq!((&shown["status"], &shown["alias"]), (&json!("published"), &made["id"]));
    let price = json!({"key": "PRICE", "type": "number", "fallback_value": 25});
    assert!(shown["variables"].as_array().unwrap().contains(&price), "{shown}");

    let send = async |variables: Value| {
        let sent = json!({"from": "a@example.com", "to": "b@example.net", "template": {"id": made["id"], "variables": variables}});
        api.resend("POST", "/emails", &[], sent).await
    };
    let html = async |answer: Answer| {
        let id = self::id(&answer);
        api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200)["html"].clone()
    };
    assert_eq!(html(send(json!({"PRODUCT": "Tea & co"})).await).await, "<p>Tea &amp; co: 25</p>");
    let said = refused(&send(json!({"PRICE": 1})).await, 422, "validation_error");
    assert!(said.contains("PRODUCT"), "{said}");

    let change = json!({"html": "<p>{{{PRODUCT}}} a{#b}</p>"});
    api.resend("PATCH", path, &[], change).await.ok(200);
    assert_eq!(html(send(json!({"PRODUCT": "Tea"})).await).await, "<p>Tea a{#b}</p>");
    let shown = api.resend("GET", path, &[], Value::Null).await.ok(200);
    assert_eq!(
        (&shown["subject"], &shown["html"]),
        (&template["subject"], &json!("<p>{{{PRODUCT}}} a{#b}</p>"))
    );
    let list = api.resend("GET", "/templates?limit=1", &[], Value::Null).await.ok(200);
    assert_eq!((&list["data"][0]["id"], &list["has_more"]), (&made["id"], &json!(true)));

    // One of ours keeps what has no word there.
    let native = json!({"name": "own", "subject": "s", "html": "{% if a is defined %}A{% endif %}{{ b }}"});
    api.post("/v1/templates", native.clone()).await.ok(201);
    api.resend("PATCH", "/templates/own", &[], json!({"subject": "t"})).await.ok(200);
    let own = api.get("/v1/templates/own").await.ok(200);
    assert_eq!((&own["html"], &own["subject"]), (&native["html"], &json!("t")));

    let taken = json!({"name": "x", "alias": "own", "html": "<p>x</p>"});
    refused(&api.resend("POST", "/templates", &[], taken).await, 422, "validation_error");
    refused(
        &api.resend("POST", "/templates", &[], json!({"html": "<p>x</p>"})).await,
        422,
        "missing_required_field",
    );
    let from = json!({"name": "x", "html": "<p>x</p>", "from": "a@example.com"});
    refused(&api.resend("POST", "/templates", &[], from).await, 422, "invalid_from_address");
    let gone = api.resend("DELETE", path, &[], Value::Null).await.ok(200);
    assert_eq!(gone["deleted"], true);
    refused(&api.resend("GET", path, &[], Value::Null).await, 404, "not_found");
}

#[tokio::test]
async fn what_is_wrong_is_named_as_its_users_know_it() {
    let api = Api::start().await;
    for (part, name, said) in [
        (json!({"from": null}), "missing_required_field", "`from`: is missing"),
        (json!({"to": null}), "missing_required_field", "`to`: is missing"),
        (json!({"subject": null}), "missing_required_field", "`subject`: is missing"),
        (json!({"from": "shop"}), "invalid_from_address", "`from`"),
        (json!({"to": ["ada"]}), "validation_error", "`to[0]`"),
        (json!({"to": 5}), "validation_error", "`to`"),
        (json!({"html": null}), "validation_error", "neither text nor html"),
        (json!({"scheduled_at": "in a while"}), "validation_error", "`tomorrow at 9am`"),
        (json!({"tags": [{"name": "a", "value": "x".repeat(257)}]}), "validation_error", "`tags[0].value`"),
        (json!({"headers": {"Subject": "x"}}), "validation_error", "`headers.Subject`"),
        (json!({"scheduled_at": "in 99 weeks"}), "validation_error", "`scheduled_at`"),
        (json!({"template": {"id": "none"}, "html": null}), "validation_error", "`template.id`"),
        (
            json!({"attachments": [{"filename": "a", "content": "%"}]}),
            "invalid_attachment",
            "`attachments[0].content`",
        ),
        (
            json!({"attachments": [{"filename": "a", "path": "ftp://x"}]}),
            "invalid_attachment",
            "`attachments[0].path`",
        ),
        (json!({"topic_id": "news"}), "validation_error", "`topic_id`"),
    ] {
        let answer = api.resend("POST", "/emails", &[], with(email("Hi"), part.clone())).await;
        let message = refused(&answer, 422, name);
        assert!(message.contains(said), "{part}: {message}");
    }
    let broken = api.call("POST", &format!("{DOOR}/emails"), "{").await;
    refused(&broken, 400, "validation_error");
    let large = with(email("Hi"), json!({"text": "x".repeat(REQUEST_BYTES_MAX)}));
    refused(&api.resend("POST", "/emails", &[], large).await, 413, "validation_error");
    refused(&api.resend("GET", "/emails/none", &[], Value::Null).await, 404, "not_found");
    refused(&api.resend("GET", "/domains", &[], Value::Null).await, 404, "not_found");
    refused(&api.resend("DELETE", "/emails", &[], Value::Null).await, 405, "method_not_allowed");
    refused(&api.resend("GET", "/emails?limit=0", &[], Value::Null).await, 422, "validation_error");
    refused(&api.resend("GET", "/emails?before=x", &[], Value::Null).await, 422, "validation_error");
    for word in ["metrics", "receiving"] {
        let said =
            refused(&api.resend("GET", &format!("/emails/{word}"), &[], Value::Null).await, 404, "not_found");
        assert!(said.contains("no call") && !said.contains("no message"), "{said}");
    }
    assert_eq!(api.count().await, 0);
}

/// Bytes as numbers, and an object without fields as an empty list: what the SDKs for Go, Python, Ruby and
/// PHP write.
#[tokio::test]
async fn emails_of_other_languages_sdks_are_taken() {
    let api = Api::start().await;
    let sent = with(
        email("Hi"),
        json!({
            "headers": [], "cc": [], "reply_to": "help@example.com, desk@example.com",
            "attachments": [{"filename": "a.bin", "content": [0, 1, 254, 255], "content_type": "", "path": ""}],
        }),
    );
    let id = id(&api.resend("POST", "/emails", &[], sent).await);
    let raw = api.get(&format!("/v1/messages/{id}/raw")).await;
    let raw = String::from_utf8_lossy(&raw.body).into_owned();
    assert!(raw.contains("AAH+/w=="), "{raw}");
    let shown = api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200);
    assert_eq!(shown["reply_to"], json!(["help@example.com", "desk@example.com"]));
    let no_bytes = with(email("Hi"), json!({"attachments": [{"filename": "a.bin", "content": [0, 256]}]}));
    refused(&api.resend("POST", "/emails", &[], no_bytes).await, 422, "invalid_attachment");
}

#[tokio::test]
async fn a_time_may_be_in_words_and_a_repeat_of_them_is_the_same_email() {
    let api = Api::start().await;
    let soon = with(email("Hi"), json!({"scheduled_at": "in 1 hour"}));
    let id = id(&api.resend("POST", "/emails", &[], soon.clone()).await);
    let path = format!("/emails/{id}");
    let due = async || api.resend("GET", &path, &[], Value::Null).await.ok(200)["scheduled_at"].clone();
    let hours = |count: u64| json!(api.clock.now().plus(Duration::from_secs(3_600 * count)));
    assert_eq!(due().await, hours(1));
    api.resend("PATCH", &path, &[], json!({"scheduled_at": "in 2 hours"})).await.ok(200);
    assert_eq!(due().await, hours(2));
    api.resend("POST", "/emails/batch", &[], json!([soon])).await.ok(200);
    let key = [("idempotency-key", "k")];
    let first = self::id(&api.resend("POST", "/emails", &key, soon.clone()).await);
    api.clock.forward_ms(60_000);
    assert_eq!(self::id(&api.resend("POST", "/emails", &key, soon.clone()).await), first);
    let other = with(email("Hi"), json!({"scheduled_at": "in 2 hours"}));
    refused(&api.resend("POST", "/emails", &key, other).await, 409, "invalid_idempotent_request");
    let key = [("idempotency-key", "batch")];
    let batch = async || api.resend("POST", "/emails/batch", &key, json!([soon])).await.ok(200);
    let once = batch().await;
    api.clock.forward_ms(60_000);
    assert_eq!(batch().await, once);
    assert_eq!(api.count().await, 4);
    // The clock of these tests stands on 2023-11-14, a Tuesday.
    for (words, time) in [
        ("tomorrow at 9am", "2023-11-15T09:00:00.000Z"),
        ("next monday at 10:00 UTC+2", "2023-11-20T08:00:00.000Z"),
        ("Friday at 3pm ET", "2023-11-17T20:00:00.000Z"),
    ] {
        let sent = with(email("Hi"), json!({"scheduled_at": words}));
        let id = self::id(&api.resend("POST", "/emails", &[], sent).await);
        let shown = api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200);
        assert_eq!(shown["scheduled_at"], time, "{words}");
    }
    // Natively, a time is a time.
    api.post(
        "/v1/messages",
        json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t",
        "send_at": "tomorrow at 9am"}),
    )
    .await
    .refused(422, "validation_error");
}

#[tokio::test]
async fn a_key_is_missing_wrong_or_too_weak() {
    let api = Api::start().await;
    let missing = Request::get(format!("{DOOR}/emails")).body(Body::empty()).unwrap();
    refused(&api.ask(missing).await, 401, "missing_api_key");
    let wrong = [("authorization", "Bearer re_123")];
    let said = refused(&api.resend("POST", "/emails", &wrong, email("Hi")).await, 403, "invalid_api_key");
    assert!(said.contains("`Authorization: Bearer KEY`") && !said.contains("X-API-Key"), "{said}");
    let only_sends = api.key("other", json!({"name": "k", "scopes": ["send"]})).await;
    let header = [("authorization", &*format!("Bearer {only_sends}"))];
    let id = id(&api.resend("POST", "/emails", &header, email("Hi")).await);
    let shown = api.resend("GET", &format!("/emails/{id}"), &header, Value::Null).await;
    refused(&shown, 401, "restricted_api_key");
}

#[tokio::test]
async fn a_tenants_key_sees_its_own_emails_only() {
    let api = Api::start().await;
    let scheduled = with(email("Hi"), json!({"scheduled_at": "2023-12-01T00:00:00Z"}));
    let id = id(&api.resend("POST", "/emails", &[], scheduled).await);
    let key = api.key("other", json!({"name": "k", "scopes": ["send", "read", "manage"]})).await;
    let other = [("authorization", &*format!("Bearer {key}"))];
    refused(&api.resend("GET", &format!("/emails/{id}"), &other, Value::Null).await, 404, "not_found");
    refused(
        &api.resend("POST", &format!("/emails/{id}/cancel"), &other, Value::Null).await,
        404,
        "not_found",
    );
    let later = json!({"scheduled_at": "2023-12-02T00:00:00Z"});
    refused(&api.resend("PATCH", &format!("/emails/{id}"), &other, later).await, 404, "not_found");
    let list = api.resend("GET", "/emails", &other, Value::Null).await.ok(200);
    assert_eq!(list["data"], json!([]));
}

#[tokio::test]
async fn a_key_for_repeats_gives_the_same_email_and_refuses_another() {
    let api = Api::start().await;
    let key = [("idempotency-key", "order-7")];
    let first = id(&api.resend("POST", "/emails", &key, email("Hi")).await);
    assert_eq!(id(&api.resend("POST", "/emails", &key, email("Hi")).await), first);
    let other = api.resend("POST", "/emails", &key, email("Other")).await;
    refused(&other, 409, "invalid_idempotent_request");
    let long = "x".repeat(257);
    let answer = api.resend("POST", "/emails", &[("idempotency-key", &long)], email("Hi")).await;
    refused(&answer, 400, "invalid_idempotency_key");
    assert_eq!(api.count().await, 1);
}

#[tokio::test]
async fn addresses_read_back_as_they_were_given_and_blank_ones_are_none() {
    let api = Api::start().await;
    let bare = with(
        email("Hi"),
        json!({"from": "shop@example.com", "reply_to": ["help@example.com", "\"Ada, L.\" <ada@example.net>"],
            "cc": "", "bcc": ""}),
    );
    let id = id(&api.resend("POST", "/emails", &[], bare.clone()).await);
    let shown = api.resend("GET", &format!("/emails/{id}"), &[], Value::Null).await.ok(200);
    assert_eq!((&shown["from"], &shown["reply_to"]), (&bare["from"], &bare["reply_to"]));
    assert_eq!((&shown["cc"], &shown["bcc"]), (&json!([]), &json!([])));
    let blank = with(email("Hi"), json!({"replyTo": "", "scheduled_at": ""}));
    api.resend("POST", "/emails", &[], blank).await.ok(200);
    let nobody = with(email("Hi"), json!({"to": "", "cc": "ada@example.net"}));
    refused(&api.resend("POST", "/emails", &[], nobody).await, 422, "validation_error");
}

#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all() {
    let api = Api::start().await;
    let good = json!([email("One"), email("Two")]);
    let taken = api.resend("POST", "/emails/batch", &[], good).await.ok(200);
    assert_eq!(taken["data"].as_array().unwrap().len(), 2);
    assert!(taken.get("errors").is_none(), "{taken}");
    let one_bad = json!([email("One"), with(email("Two"), json!({"to": "ada"}))]);
    let message = refused(&api.resend("POST", "/emails/batch", &[], one_bad).await, 422, "validation_error");
    assert!(message.starts_with("`[1].to`"), "{message}");
    let untranslated = json!([with(email("One"), json!({"from": null})), email("Two")]);
    let answer = api.resend("POST", "/emails/batch", &[], untranslated).await;
    assert!(refused(&answer, 422, "missing_required_field").starts_with("`[0].from`"));
    for bad in [json!([]), json!({}), Value::Array(vec![email("x"); 101])] {
        refused(&api.resend("POST", "/emails/batch", &[], bad).await, 422, "validation_error");
    }
    let odd = [("x-batch-validation", "lenient")];
    refused(&api.resend("POST", "/emails/batch", &odd, json!([email("x")])).await, 422, "validation_error");
    assert_eq!(api.count().await, 2, "only the batch that was good");
}

#[tokio::test]
async fn a_permissive_batch_takes_the_valid_ones_and_names_the_others() {
    let api = Api::start().await;
    let batch = json!([
        with(email("0"), json!({"from": null})),
        email("1"),
        with(email("2"), json!({"to": "ada"})),
        email("3"),
    ]);
    let permissive = [("x-batch-validation", "permissive")];
    let answer = api.resend("POST", "/emails/batch", &permissive, batch).await.ok(200);
    let ids: Vec<&str> =
        answer["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let mut subjects = Vec::new();
    for id in &ids {
        subjects.push(api.get(&format!("/v1/messages/{id}")).await.ok(200)["subject"].clone());
    }
    assert_eq!(subjects, ["1", "3"]);
    let errors = answer["errors"].as_array().unwrap();
    assert_eq!(errors.iter().map(|error| error["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(errors[0]["message"], "`from`: is missing");
    let none = json!([with(email("0"), json!({"from": null}))]);
    let answer = api.resend("POST", "/emails/batch", &permissive, none).await.ok(200);
    assert_eq!((&answer["data"], answer["errors"].as_array().unwrap().len()), (&json!([]), 1));
}

#[tokio::test]
async fn a_batch_under_a_key_is_known_as_a_whole() {
    let api = Api::start().await;
    let key = [("idempotency-key", "run-1")];
    let send = async |batch: Value| api.resend("POST", "/emails/batch", &key, batch).await;
    let first = send(json!([email("One"), email("Two")])).await.ok(200);
    assert_eq!(send(json!([email("One"), email("Two")])).await.ok(200), first);
    for other in [
        json!([email("One"), email("Other")]),
        json!([email("Other"), email("Two")]),
        json!([email("One")]),
        json!([email("Other"), email("Two"), email("Three")]),
    ] {
        refused(&send(other).await, 409, "invalid_idempotent_request");
    }
    assert_eq!(api.count().await, 2);
}

#[tokio::test]
async fn an_email_that_waits_gets_another_time_or_none() {
    let api = Api::start().await;
    let scheduled = with(email("Hi"), json!({"scheduled_at": "2023-12-01T00:00:00Z"}));
    let id = id(&api.resend("POST", "/emails", &[], scheduled).await);
    let path = format!("/emails/{id}");
    let show = async || api.resend("GET", &path, &[], Value::Null).await.ok(200);
    let shown = show().await;
    assert_eq!(
        (&shown["last_event"], &shown["scheduled_at"]),
        (&json!("scheduled"), &json!("2023-12-01T00:00:00.000Z"))
    );
    let later = json!({"scheduled_at": "2023-12-24T12:00:00.000Z"});
    let updated = api.resend("PATCH", &path, &[], later).await.ok(200);
    assert_eq!(updated, json!({"object": "email", "id": id}));
    assert_eq!(show().await["scheduled_at"], "2023-12-24T12:00:00.000Z");
    let events = api.get(&format!("/v1/messages/{id}")).await.ok(200)["events"].clone();
    let last = events.as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["type"], &last["data"]["send_at"]),
        (&json!("scheduled"), &json!("2023-12-24T12:00:00.000Z"))
    );

    for (body, name) in [
        (json!({}), "missing_required_field"),
        (json!({"scheduled_at": "tomorrow"}), "validation_error"),
        (json!({"scheduled_at": "2033-12-24T12:00:00Z"}), "validation_error"),
    ] {
        let message = refused(&api.resend("PATCH", &path, &[], body).await, 422, name);
        assert!(message.contains("`scheduled_at`"), "{message}");
    }
    let canceled = api.resend("POST", &format!("{path}/cancel"), &[], Value::Null).await.ok(200);
    assert_eq!(canceled, json!({"object": "email", "id": id}));
    assert_eq!(show().await["last_event"], "canceled");
    let again = api.resend("POST", &format!("{path}/cancel"), &[], Value::Null).await;
    assert!(refused(&again, 422, "validation_error").contains("cancelled"));
    let later = json!({"scheduled_at": "2023-12-25T12:00:00Z"});
    assert!(
        refused(&api.resend("PATCH", &path, &[], later).await, 422, "validation_error").contains("cancelled")
    );
}

#[tokio::test]
async fn a_message_must_be_rescheduled_before_it_expires() {
    let api = Api::start().await;
    let message = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t",
                         "send_at": "2023-12-01T00:00:00Z", "expires_at": "2023-12-02T00:00:00Z"});
    let uid = api.post("/v1/messages", message).await.ok(202)["uid"].as_str().unwrap().to_owned();
    let path = format!("/emails/{uid}");
    let late = api.resend("PATCH", &path, &[], json!({"scheduled_at": "2023-12-02T00:00:00Z"})).await;
    assert!(refused(&late, 422, "validation_error").contains("expires_at"));
    api.resend("PATCH", &path, &[], json!({"scheduled_at": "2020-01-01T00:00:00Z"})).await.ok(200);
    let due = api.get(&format!("/v1/messages/{uid}")).await.ok(200);
    assert_eq!(
        (&due["status"], &due["due_at"]),
        (&json!("scheduled"), &due["updated_at"]),
        "the past is now"
    );
}

#[tokio::test]
async fn what_came_by_another_way_is_shown_and_secrets_are_not() {
    let api = Api::start().await;
    api.stored("plain", MessageState::Sent, &[("ada@example.net", RecipientStatus::Sent)]).await;
    let shown = api.resend("GET", "/emails/plain", &[], Value::Null).await.ok(200);
    assert_eq!(
        (&shown["last_event"], &shown["tags"]),
        (&json!("sent"), &json!([{"name": "receipt", "value": ""}]))
    );
    let hide = |message: &mut postway_store::record::NewMessage| message.content.sensitive = true;
    api.stored_with("secret", MessageState::Ready, &[("ada@example.net", RecipientStatus::Pending)], hide)
        .await;
    let shown = api.resend("GET", "/emails/secret", &[], Value::Null).await.ok(200);
    assert_eq!(
        (&shown["subject"], &shown["text"], &shown["from"]),
        (&json!("[hidden]"), &json!(null), &json!(""))
    );
}
