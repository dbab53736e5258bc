//! The Mailgun API: forms of both kinds, ready-made mails, mails for each recipient, and refusals.

use axum::{body::Body, http::Request};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::support::{Answer, Api, KEY};

const PATH: &str = "/compat/mailgun/v3/mg.example.com/messages";
const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=b";

impl Api {
    async fn mailgun_as(&self, key: &str, path: &str, kind: &str, body: impl Into<Body>) -> Answer {
        let basic = BASE64_STANDARD.encode(format!("api:{key}"));
        let request = Request::post(path).header("authorization", format!("Basic {basic}"));
        self.ask(request.header("content-type", kind).body(body.into()).unwrap()).await
    }

    async fn mailgun(&self, form: &str) -> Answer {
        self.mailgun_as(KEY, PATH, FORM, form.to_owned()).await
    }

    async fn mailgun_stored(&self) -> Vec<Value> {
        self.get("/v1/messages").await.ok(200)["data"].as_array().unwrap().clone()
    }

    async fn mailgun_raw(&self, uid: &Value) -> String {
        let raw = self.get(&format!("/v1/messages/{}/raw", uid.as_str().unwrap())).await;
        String::from_utf8_lossy(&raw.body).into_owned()
    }
}

/// The message of a refusal, after a check of its form.
#[track_caller]
fn refused(answer: &Answer, status: u16) -> String {
    let json = answer.json();
    assert_eq!(answer.status.as_u16(), status, "{json}");
    assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
    json["message"].as_str().unwrap().to_owned()
}

#[track_caller]
fn queued(answer: &Answer) -> String {
    let json = answer.ok(200);
    assert_eq!(json["message"], "Queued. Thank you.");
    json["id"].as_str().unwrap().to_owned()
}

const MAIL: &str = "from=Shop+%3Cshop%40example.com%3E&to=Ada+%3Cada%40example.net%3E&subject=Hi&text=Hi";

fn part(head: &str, body: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n")
}

#[tokio::test]
async fn a_form_is_taken_with_all_that_it_says() {
    let api = Api::start().await;
    let id = queued(
        &api.mailgun(&format!("{MAIL}&o:tag=receipt&v:order=7&h:X-Order=7&h:Reply-To=help%40example.com"))
            .await,
    );
    let message = &api.mailgun_stored().await[0];
    let uid = message["uid"].as_str().unwrap();
    assert_eq!(id, format!("<{uid}@example.com>"));
    let ours = api.get(&format!("/v1/messages/{uid}")).await.ok(200);
    assert_eq!((&ours["tags"][0], &ours["metadata"]["order"]), (&"receipt".into(), &"7".into()));
    let raw = api.mailgun_raw(&message["uid"]).await;
    for part in [
        &*format!("Message-ID: {id}"),
        "X-Order: 7",
        "Reply-To: <help@example.com>",
        "To: \"Ada\" <ada@example.net>",
    ] {
        assert!(raw.contains(part), "{part} is missing:\n{raw}");
    }
}

#[tokio::test]
async fn files_come_in_parts() {
    let api = Api::start().await;
    let body = [
        part("name=\"from\"", "shop@example.com"),
        part("name=\"to\"", "ada@example.net"),
        part("name=\"subject\"", "Grüße"),
        part("name=\"html\"", "<p><img src=\"cid:logo.png\"></p>"),
        part("name=\"attachment\"; filename=\"a b.txt\"\r\nContent-Type: text/plain", "hello"),
        part("name=\"inline\"; filename=\"logo.png\"\r\nContent-Type: image/png", "png"),
        "--b--\r\n".to_owned(),
    ]
    .concat();
    queued(&api.mailgun_as(KEY, PATH, PARTS, body.clone()).await);
    let message = &api.mailgun_stored().await[0];
    assert_eq!(message["subject"], "Grüße");
    let raw = api.mailgun_raw(&message["uid"]).await;
    assert!(raw.contains("a b.txt") && raw.contains("Content-ID: <logo.png>"), "{raw}");
    let cut = &body[..body.len() - 10];
    assert!(refused(&api.mailgun_as(KEY, PATH, PARTS, cut.to_owned()).await, 400).contains("ended before"));
    assert_eq!(api.mailgun_stored().await.len(), 1);
}

#[tokio::test]
async fn each_recipient_gets_a_mail_of_its_own_or_nobody_one() {
    let api = Api::start().await;
    let each = |second: &str| {
        let variables = format!(r#"{{"ada@example.net":{{"n":"Ada"}},"{second}":{{"n":"Bob"}}}}"#);
        let variables: String = url::form_urlencoded::byte_serialize(variables.as_bytes()).collect();
        format!(
            "from=shop%40example.com&to=ada%40example.net&to={second}&subject=Hi+%25recipient.n%25&text=x&recipient-variables={variables}"
        )
    };
    assert!(refused(&api.mailgun(&each("bob")).await, 400).starts_with("to[0]"));
    assert_eq!(api.mailgun_stored().await.len(), 0);
    let id = queued(&api.mailgun(&each("bob@example.net")).await);
    let stored = api.mailgun_stored().await;
    assert_eq!(stored.len(), 2);
    let ada = stored.iter().find(|message| message["subject"] == "Hi Ada").unwrap();
    assert!(id.contains(ada["uid"].as_str().unwrap()), "the id is the first one's");
    assert!(stored.iter().any(|message| message["subject"] == "Hi Bob"));
}

#[tokio::test]
async fn a_ready_made_mail_goes_to_the_addresses_of_the_form() {
    let api = Api::start().await;
    let mail = "From: shop@example.com\r\nTo: list@example.net\r\nMessage-ID: <own-1@example.com>\r\nSubject: Ready\r\n\r\nHi\r\n";
    let body = [
        part("name=\"to\"", "ada@example.net"),
        part("name=\"o:tag\"", "x"),
        part("name=\"message\"; filename=\"m\"", mail),
    ]
    .concat();
    let path = format!("{PATH}.mime");
    let answer = api.mailgun_as(KEY, &path, PARTS, body + "--b--").await;
    assert_eq!(queued(&answer), "<own-1@example.com>", "its own Message-ID is kept");
    let message = &api.mailgun_stored().await[0];
    let ours = api.get(&format!("/v1/messages/{}", message["uid"].as_str().unwrap())).await.ok(200);
    assert_eq!(
        (&ours["recipients"][0]["address"], &ours["tags"][0]),
        (&"ada@example.net".into(), &"x".into())
    );
    assert!(refused(&api.mailgun_as(KEY, &path, FORM, "to=a@example.net").await, 400).contains("'message'"));
    assert!(refused(&api.mailgun_as(KEY, &path, FORM, "message=x").await, 400).contains("'to'"));
}

#[tokio::test]
async fn every_refusal_has_their_form() {
    let api = Api::start().await;
    assert!(refused(&api.mailgun_as("key-x", PATH, FORM, MAIL).await, 401).contains("Invalid private key"));
    let nobody = Request::post(PATH).header("content-type", FORM).body(Body::from(MAIL)).unwrap();
    refused(&api.ask(nobody).await, 401);
    let reader = api.key("default", serde_json::json!({"name": "reader", "scopes": ["read"]})).await;
    refused(&api.mailgun_as(&reader, PATH, FORM, MAIL).await, 403);
    refused(&api.mailgun_as(KEY, PATH, "application/json", "{}").await, 415);
    refused(&api.mailgun_as(KEY, "/compat/mailgun/v3/domains", FORM, "").await, 404);
    assert_eq!(refused(&api.mailgun("to=a%40example.net&text=x").await, 400), "'from' parameter is missing");
    assert!(
        refused(&api.mailgun(&MAIL.replace("ada%40example.net", "ada")).await, 400).starts_with("to[0]: ")
    );
    assert!(refused(&api.mailgun(&format!("{MAIL}&template=none")).await, 400).contains("template"));
    assert_eq!(api.mailgun_stored().await.len(), 0);
    queued(&api.mailgun(&format!("{MAIL}&o:testmode=yes")).await);
    assert_eq!(api.mailgun_stored().await[0]["account"], "sandbox");
}
