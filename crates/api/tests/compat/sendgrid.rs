//! The SendGrid API: good and bad input, personalizations, and that a call is accepted completely or not at
//! all.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

const PATH: &str = "/compat/sendgrid/v3/mail/send";

fn mail(subject: &str) -> Value {
    json!({
        "personalizations": [{"to": [{"email": "ada@example.net", "name": "Ada"}]}],
        "from": {"email": "shop@example.com", "name": "Shop"}, "subject": subject,
        "content": [{"type": "text/plain", "value": "Hi"}, {"type": "text/html", "value": "<p>Hi</p>"}],
    })
}

fn with(mut mail: Value, part: Value) -> Value {
    mail.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    mail
}

impl Api {
    async fn sendgrid(&self, body: Value) -> Answer {
        self.post(PATH, body).await
    }

    async fn sendgrid_stored(&self) -> Vec<Value> {
        self.get("/v1/messages").await.ok(200)["data"].as_array().unwrap().clone()
    }
}

/// The fields of the errors, after a check of their form.
#[track_caller]
fn refused(answer: &Answer, status: u16) -> Vec<Value> {
    let json = answer.json();
    assert_eq!(answer.status.as_u16(), status, "{json}");
    let errors = json["errors"].as_array().unwrap();
    assert!(errors.iter().all(|one| one["message"].is_string() && one["help"].is_null()), "{json}");
    errors.iter().map(|one| one["field"].clone()).collect()
}

#[track_caller]
fn accepted(answer: &Answer) -> String {
    assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0), "{:?}", answer.body);
    answer.headers["x-message-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_mail_is_taken_with_all_that_it_says() {
    let api = Api::start().await;
    let sent = with(
        mail("Hi"),
        json!({
            "categories": ["receipt", "eu"], "custom_args": {"order": "7"}, "headers": {"X-Order": "7", "Date": "x"},
            "reply_to_list": [{"email": "help@example.com"}, {"email": "more@example.com"}],
            "attachments": [{"content": "aGk=", "filename": "a.txt", "type": "text/plain"}], "batch_id": "spring",
        }),
    );
    let id = accepted(&api.sendgrid(sent).await);
    let ours = api.get(&format!("/v1/messages/{id}")).await.ok(200);
    for (name, value) in [
        ("uid", json!(id)),
        ("tags", json!(["receipt", "eu"])),
        ("metadata", json!({"order": "7"})),
        ("batch", json!("spring")),
    ] {
        assert_eq!(ours[name], value, "{ours}");
    }
    let raw = api.get(&format!("/v1/messages/{id}/raw")).await;
    let raw = String::from_utf8_lossy(&raw.body).into_owned();
    for part in [
        "From: \"Shop\" <shop@example.com>",
        "To: \"Ada\" <ada@example.net>",
        "X-Order: 7",
        "more@example.com",
        "a.txt",
    ] {
        assert!(raw.contains(part), "{part} is missing:\n{raw}");
    }
}

#[tokio::test]
async fn personalizations_are_accepted_completely_or_not_at_all() {
    let api = Api::start().await;
    let to = |address: &str| json!({"to": [{"email": address}], "substitutions": {"-name-": address}});
    let two = |second: &str| json!({"subject": "Hi -name-", "personalizations": [to("ada@example.net"), to(second)]});
    let bad = with(
        mail("x"),
        json!({"categories": ["x".repeat(1_001)], "personalizations": two("b@example.net")["personalizations"]}),
    );
    assert_eq!(refused(&api.sendgrid(bad).await, 400), ["categories.0"], "what is common is told once");
    assert_eq!(
        refused(&api.sendgrid(with(mail("x"), two("bob"))).await, 400),
        ["personalizations.1.to.0.email"]
    );
    let late = with(
        mail("x"),
        json!({"personalizations": [to("ada@example.net"), with(to("b@example.net"), json!({"send_at": 1}))]}),
    );
    assert!(api.sendgrid(late).await.status.is_success(), "a time that has passed means now");
    let before = api.sendgrid_stored().await.len();
    let far = with(
        mail("x"),
        json!({"personalizations": [to("ada@example.net"), with(to("b@example.net"), json!({"send_at": 99_999_999_999_i64}))]}),
    );
    assert_eq!(refused(&api.sendgrid(far).await, 400), ["send_at"]);
    assert_eq!(api.sendgrid_stored().await.len(), before, "the first one was kept");

    let id = accepted(&api.sendgrid(with(mail("x"), two("bob@example.net"))).await);
    let stored = api.sendgrid_stored().await;
    let uid = |subject: &str| {
        let mut of = stored.iter().filter(|message| message["subject"] == subject);
        (of.next().unwrap()["uid"].clone(), of.count())
    };
    assert_eq!(uid("Hi ada@example.net"), (json!(id), 0), "the id is the first one's");
    assert_eq!(uid("Hi bob@example.net").1, 0);
}

#[tokio::test]
async fn a_repeat_under_a_key_is_the_same_call() {
    let api = Api::start().await;
    let send = async |subject: &str| {
        let request = Request::post(PATH).header("authorization", format!("Bearer {KEY}"));
        let request = request.header("idempotency-key", "order-7").header("content-type", "application/json");
        api.ask(request.body(Body::from(mail(subject).to_string())).unwrap()).await
    };
    let first = accepted(&send("Hi").await);
    assert_eq!(accepted(&send("Hi").await), first);
    refused(&send("Other").await, 409);
    assert_eq!(api.sendgrid_stored().await.len(), 1);
}

#[tokio::test]
async fn a_trial_is_checked_and_not_kept() {
    let api = Api::start().await;
    let trial = |mail: Value| with(mail, json!({"mail_settings": {"sandbox_mode": {"enable": true}}}));
    let answer = api.sendgrid(trial(mail("Hi"))).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    let bad =
        with(trial(mail("Hi")), json!({"content": [{"type": "text/html", "value": "<script>x</script>"}]}));
    assert_eq!(refused(&api.sendgrid(bad).await, 400), ["content"]);
    assert_eq!(api.sendgrid_stored().await.len(), 0);
}

#[tokio::test]
async fn a_template_has_a_name_here_and_an_unsubscribe_group_is_a_stream() {
    let api = Api::start().await;
    let template = json!({"name": "d-welcome", "subject": "Hi {{ name }}", "text": "Dear {{ name }}"});
    api.post("/v1/templates", template).await.ok(201);
    let of = |name: &str, data: Value| {
        let to = json!([{"to": [{"email": "ada@example.net"}], "dynamic_template_data": data}]);
        with(mail("passed over"), json!({"template_id": name, "personalizations": to}))
    };
    let id = accepted(&api.sendgrid(of("d-welcome", json!({"name": "Ada"}))).await);
    assert_eq!(api.get(&format!("/v1/messages/{id}")).await.ok(200)["subject"], "Hi Ada");
    assert_eq!(refused(&api.sendgrid(of("d-none", json!({}))).await, 400), ["template_id"]);
    let missing = refused(&api.sendgrid(of("d-welcome", json!({}))).await, 400);
    assert!(
        missing[0].as_str().unwrap().starts_with("personalizations.0.dynamic_template_data"),
        "{missing:?}"
    );
    let group = with(mail("Hi"), json!({"asm": {"group_id": 12}}));
    assert_eq!(refused(&api.sendgrid(group).await, 400), ["asm.group_id"]);
}

#[tokio::test]
async fn every_refusal_has_their_form() {
    let api = Api::start().await;
    let stranger = Request::post(PATH).header("authorization", "Bearer SG.x").body(Body::from("{}")).unwrap();
    assert_eq!(refused(&api.ask(stranger).await, 401), [Value::Null]);
    let reader = api.key("default", json!({"name": "reader", "scopes": ["read"]})).await;
    refused(&api.as_key(&reader, "POST", PATH, mail("Hi").to_string()).await, 403);
    refused(&api.call("POST", PATH, "{").await, 400);
    refused(&api.call("POST", PATH, "[]").await, 400);
    refused(&api.call("GET", PATH, "").await, 405);
    refused(&api.get("/compat/sendgrid/v3/templates").await, 404);
    let both = json!({"personalizations": [], "subject": "Hi"});
    assert_eq!(refused(&api.sendgrid(both).await, 400), ["from", "personalizations"]);
    assert_eq!(refused(&api.sendgrid(with(mail("x"), json!({"content": []}))).await, 400), ["content"]);
}
