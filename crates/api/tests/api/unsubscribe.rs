//! Streams: created, sent to, unsubscribed from, and partly suppressed.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Answer, Api};

async fn with_stream(api: &Api) {
    let stream = json!({"id": "news", "name": "Weekly <b>news</b>", "unsubscribe": true});
    api.post("/v1/streams", stream).await.ok(201);
}

fn mail(id: &str, to: Value) -> Value {
    json!({"id": id, "from": "shop@example.com", "to": to, "subject": "Hi", "stream": "news",
           "text": "Leave: %unsubscribe_url%", "html": "<p><a href=\"%unsubscribe_url%\">Leave</a></p>"})
}

/// The header of a mail that was accepted, unfolded.
async fn header(api: &Api, id: &str) -> String {
    let raw = api.get(&format!("/v1/messages/{id}/raw")).await;
    let text = String::from_utf8(raw.body.to_vec()).unwrap();
    text.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ")
}

/// The path of the link of a message.
async fn path(api: &Api, id: &str) -> String {
    let header = header(api, id).await;
    let line = header.lines().find(|line| line.starts_with("List-Unsubscribe: ")).unwrap();
    let url = line.split(['<', '>']).nth(1).unwrap();
    url.strip_prefix("https://mail.example").unwrap().to_owned()
}

/// As a reader, who has no key.
async fn reader(api: &Api, method: &str, path: &str, form: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept-language", "de-DE, en;q=0.5");
    api.ask(request.body(Body::from(form.to_owned())).unwrap()).await
}

async fn kinds(api: &Api, id: &str) -> Vec<String> {
    let events = api.get(&format!("/v1/messages/{id}/events")).await.ok(200);
    let events = events["data"].as_array().unwrap().iter();
    events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_reader_leaves_by_one_click_and_comes_back_by_the_page() {
    let api = Api::start().await;
    with_stream(&api).await;
    let key = json!({"domain": "example.com", "selector": "s1", "algorithm": "ed25519"});
    api.post("/v1/dkim", key).await.ok(201);
    api.post("/v1/dkim/example.com/s1/activate", json!({})).await.ok(200);
    api.post("/v1/messages", mail("one", json!("Ada@example.net"))).await.ok(202);
    let header = header(&api, "one").await;
    let signed = header.lines().find(|line| line.starts_with("DKIM-Signature:")).unwrap();
    for name in [":list-unsubscribe:", ":list-unsubscribe-post:"] {
        assert!(signed.replace(' ', "").contains(name), "a signature covers it: {signed}");
    }
    assert!(header.contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{header}");
    let link = path(&api, "one").await;
    assert!(!link.contains("ada") && !link.contains("news"), "a link tells nothing: {link}");
    let content = api.get("/v1/messages/one/content").await.ok(200);
    assert!(content["text"].as_str().unwrap().contains(&link), "{content}");

    // A scanner follows the link, as often as it likes.
    for method in ["GET", "GET", "HEAD"] {
        let page = reader(&api, method, &link, "").await;
        assert_eq!(page.status, 200);
        assert_eq!(page.headers["content-language"], "de");
        assert_eq!(page.headers["referrer-policy"], "no-referrer");
    }
    let page = String::from_utf8(reader(&api, "GET", &link, "").await.body.to_vec()).unwrap();
    assert!(page.contains("Weekly &lt;b&gt;news") && page.contains("a…@example.net"), "{page}");
    assert!(page.contains("name=\"unsubscribe\"") && !page.contains("ada@"), "{page}");
    assert!(!kinds(&api, "one").await.contains(&"unsubscribed".to_owned()), "a look changes nothing");

    for _ in 0..2 {
        assert_eq!(reader(&api, "POST", &link, "List-Unsubscribe=One-Click").await.status, 200);
    }
    let told = kinds(&api, "one").await;
    assert_eq!(told.iter().filter(|kind| *kind == "unsubscribed").count(), 1, "{told:?}");
    let page = String::from_utf8(reader(&api, "GET", &link, "").await.body.to_vec()).unwrap();
    assert!(page.contains("name=\"undo\""), "{page}");
    api.post("/v1/messages", mail("two", json!("ada@EXAMPLE.net"))).await.ok(202);
    assert_eq!(api.get("/v1/messages/two").await.ok(200)["status"], "suppressed");
    let other = json!({"id": "receipt", "from": "shop@example.com", "to": "ada@example.net", "text": "Paid"});
    api.post("/v1/messages", other).await.ok(202);
    assert_ne!(api.get("/v1/messages/receipt").await.ok(200)["status"], "suppressed");
    let list = api.get("/v1/scoped-suppressions?stream=news").await.ok(200);
    assert_eq!(
        (&list["data"][0]["pattern"], &list["data"][0]["reason"]),
        (&json!("ada@example.net"), &json!("unsubscribe"))
    );

    assert_eq!(reader(&api, "POST", &link, "undo=1").await.status, 200);
    assert_eq!(kinds(&api, "one").await.last().map(String::as_str), Some("resubscribed"));
    api.post("/v1/messages", mail("three", json!("ada@example.net"))).await.ok(202);
    assert_ne!(api.get("/v1/messages/three").await.ok(200)["status"], "suppressed");
}

#[tokio::test]
async fn forged_links_and_odd_forms_do_nothing() {
    let api = Api::start().await;
    with_stream(&api).await;
    api.post("/v1/messages", mail("one", json!("ada@example.net"))).await.ok(202);
    let link = path(&api, "one").await;
    let middle = link.len() - 20;
    let other = if &link[middle..=middle] == "A" { "B" } else { "A" };
    let forged = format!("{}{other}{}", &link[..middle], &link[middle + 1..]);
    let cut = &link[..link.len() - 4];
    for wrong in [forged.as_str(), cut, "/unsubscribe/x", "/unsubscribe/%00"] {
        for (method, form) in [("GET", ""), ("POST", "List-Unsubscribe=One-Click")] {
            assert_eq!(reader(&api, method, wrong, form).await.status, 404, "{method} {wrong}");
        }
    }
    for form in ["", "x=1", "List-Unsubscribe=No"] {
        reader(&api, "POST", &link, form).await.refused(400, "malformed_request");
    }
    let long = "x".repeat(5_000);
    reader(&api, "POST", &link, &long).await.refused(413, "payload_too_large");
    assert!(api.get("/v1/scoped-suppressions").await.ok(200)["data"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_message_has_a_link_only_where_it_can_mean_one_reader() {
    let api = Api::start().await;
    with_stream(&api).await;
    api.post("/v1/messages", mail("many", json!(["a@example.net", "b@example.net"]))).await.ok(202);
    let mut own = mail("own", json!("a@example.net"));
    own["unsubscribe"] = json!({"url": "https://shop.example/leave"});
    api.post("/v1/messages", own).await.ok(202);
    let mut plain = mail("plain", json!("a@example.net"));
    plain["stream"] = Value::Null;
    api.post("/v1/messages", plain).await.ok(202);
    assert!(!header(&api, "many").await.contains("List-Unsubscribe"));
    assert!(!header(&api, "plain").await.contains("List-Unsubscribe"));
    let header_own = header(&api, "own").await;
    assert!(
        header_own.contains("<https://shop.example/leave>") && !header_own.contains("mail.example/unsub")
    );
    let raw = "From: a@example.com\r\nTo: b@example.net\r\n\r\nHi\r\n";
    let made = api.call("POST", "/v1/messages/raw?batch=news:1", raw).await.ok(202);
    let id = made["id"].as_str().unwrap();
    assert!(path(&api, id).await.starts_with("/unsubscribe/"));
    let theirs = format!("List-Unsubscribe: <mailto:x@example.com>\r\n{raw}");
    let made = api.call("POST", "/v1/messages/raw?batch=news:1", theirs).await.ok(202);
    assert!(!header(&api, made["id"].as_str().unwrap()).await.contains("https://"));
}

#[tokio::test]
async fn a_stream_is_named_by_mail_and_must_be_there() {
    let api = Api::start().await;
    with_stream(&api).await;
    let mut unknown = mail("a", json!("a@example.net"));
    unknown["stream"] = json!("nws");
    assert_eq!(api.post("/v1/messages", unknown).await.wrong_fields(), ["stream"]);
    let mut other = mail("a", json!("a@example.net"));
    other["batch"] = json!("offers");
    assert_eq!(api.post("/v1/messages", other).await.wrong_fields(), ["batch"]);
    let mut part = mail("a", json!("a@example.net"));
    part["batch"] = json!("news:2026-11");
    api.post("/v1/messages", part).await.ok(202);
    assert_eq!(api.get("/v1/messages/a").await.ok(200)["batch"], "news:2026-11");
    api.post("/v1/messages", mail("b", json!("a@example.net"))).await.ok(202);
    assert_eq!(api.get("/v1/messages/b").await.ok(200)["batch"], "news");
}

#[tokio::test]
async fn streams_are_made_changed_listed_and_deleted() {
    let api = Api::start().await;
    with_stream(&api).await;
    api.post("/v1/streams", json!({"id": "news"})).await.refused(409, "conflict");
    assert_eq!(api.post("/v1/streams", json!({"id": "mailbox"})).await.wrong_fields(), ["id"]);
    let changed = json!({"description": "Every Monday", "unsubscribe": false, "version": 1});
    let changed = api.patch("/v1/streams/news", changed).await.ok(200);
    assert_eq!((&changed["version"], &changed["unsubscribe"]), (&json!(2), &json!(false)));
    api.patch("/v1/streams/news", json!({"version": 1})).await.refused(409, "conflict");
    api.post("/v1/messages", mail("one", json!("ada@example.net"))).await.ok(202);
    assert!(!header(&api, "one").await.contains("List-Unsubscribe"), "it is switched off");
    api.post("/v1/streams", json!({"id": "offers"})).await.ok(201);
    let page = api.get("/v1/streams?limit=1").await.ok(200);
    assert_eq!(page["data"][0]["id"], "news");
    let next = format!("/v1/streams?cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(api.get(&next).await.ok(200)["data"][0]["id"], "offers");
    assert_eq!(api.delete("/v1/streams/news").await, 204);
    api.get("/v1/streams/news").await.refused(404, "not_found");
}

#[tokio::test]
async fn patterns_and_the_whole_installation_are_suppressed() {
    let api = Api::start().await;
    let path = "/v1/scoped-suppressions";
    let made = api.post(path, json!({"pattern": "*@Example.NET", "note": "gone"})).await.ok(201);
    assert_eq!((&made["pattern"], &made["installation"]), (&json!("*@example.net"), &json!(false)));
    api.post(path, json!({"pattern": "postmaster@*", "installation": true})).await.ok(201);
    for wrong in [json!({}), json!({"pattern": "*@*"}), json!({"pattern": "ada@example.net"})] {
        assert_eq!(api.post(path, wrong).await.wrong_fields(), ["pattern"]);
    }
    let theirs = api.key("other", json!({"scopes": ["send", "read", "manage"]})).await;
    let everywhere = json!({"pattern": "*@example.org", "installation": true}).to_string();
    api.as_key(&theirs, "POST", path, everywhere).await.refused(403, "forbidden");
    let asked = format!("{path}?installation=true");
    api.as_key(&theirs, "GET", &asked, "").await.refused(403, "forbidden");
    let send = async |tenant: &str, id: &str, to: &str| {
        let mail = json!({"id": id, "from": "a@example.com", "to": to, "text": "Hi"}).to_string();
        api.in_tenant(tenant, "POST", "/v1/messages", mail).await.ok(202);
        let shown = api.in_tenant(tenant, "GET", &format!("/v1/messages/{id}"), "").await.ok(200);
        shown["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(send("default", "a", "x@example.net").await, "suppressed");
    assert_ne!(send("other", "a", "x@example.net").await, "suppressed");
    assert_eq!(send("other", "b", "Postmaster@x.example").await, "suppressed");
    assert_eq!(api.get(path).await.ok(200)["data"].as_array().unwrap().len(), 1);
    assert_eq!(api.get(&asked).await.ok(200)["data"].as_array().unwrap().len(), 1);
    let one = "/v1/scoped-suppressions/postmaster@*";
    assert_eq!(api.delete(one).await, 404, "that is the installation's");
    assert_eq!(api.delete(&format!("{one}?installation=true")).await, 204);
    assert_ne!(send("other", "c", "postmaster@x.example").await, "suppressed");
}

#[tokio::test]
async fn the_statistics_of_a_stream_count_its_mail_and_who_left() {
    let api = Api::start().await;
    with_stream(&api).await;
    api.post("/v1/messages", mail("one", json!("ada@example.net"))).await.ok(202);
    reader(&api, "POST", &path(&api, "one").await, "List-Unsubscribe=One-Click").await;
    api.fan_out().await;
    let found = api.get("/v1/streams/news/statistics").await.ok(200);
    let total = &found["total"];
    assert_eq!((&total["accepted"], &total["unsubscribed"]), (&json!(1), &json!(1)), "{found}");
    assert_eq!((&total["sent"], &total["complaint_rate"]), (&json!(0), &Value::Null), "{found}");
    assert_eq!(found["data"].as_array().unwrap().len(), 1, "{found}");
    api.get("/v1/streams/gone/statistics").await.refused(404, "not_found");
    assert_eq!(api.get("/v1/streams/news/statistics?by=week").await.wrong_fields(), ["by"]);
    let long = "/v1/streams/news/statistics?since=2020-01-01T00:00:00Z";
    assert_eq!(api.get(long).await.wrong_fields(), ["since"]);
    let theirs = api.in_tenant("other", "GET", "/v1/streams/news/statistics", "").await;
    theirs.refused(404, "not_found");
    let feed = api.get("/v1/events").await.ok(200);
    let kinds: Vec<&Value> = feed["data"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert!(kinds.contains(&&json!("suppression.created")), "{feed}");
}
