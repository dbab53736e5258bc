//! Templates: stored in versions, rendered, and used.

use serde_json::{Value, json};

use crate::support::Api;

fn welcome() -> Value {
    json!({
        "name": "welcome", "subject": "Welcome, {{ name }}", "html": "<p>Hello {{ name }}</p>",
        "description": "The first mail", "sample": {"name": "Ada"},
    })
}

async fn with_welcome() -> Api {
    let api = Api::start().await;
    api.post("/v1/templates", welcome()).await.ok(201);
    api
}

#[tokio::test]
async fn a_template_comes_back_as_it_was_made() {
    let api = Api::start().await;
    let answer = api.post("/v1/templates", welcome()).await;
    assert_eq!(answer.headers["location"], "/v1/templates/welcome");
    let made = answer.ok(201);
    let mut expected = welcome();
    expected["version"] = json!(1);
    expected["created_at"] = json!("2023-11-14T22:13:20.000Z");
    for part in ["text", "mjml", "layout", "locale"] {
        expected[part] = Value::Null;
    }
    expected["inline_css"] = json!(false);
    assert_eq!(made, expected);
    assert_eq!(api.get("/v1/templates/welcome").await.ok(200), made);
    api.post("/v1/templates", welcome()).await.refused(409, "conflict");
}

#[tokio::test]
async fn each_change_is_a_version_of_its_own() {
    let api = with_welcome().await;
    let put = |subject: &str| api.put("/v1/templates/welcome", json!({"subject": subject, "text": "Hi"}));
    assert_eq!(put("Two").await.ok(201)["version"], 2);
    assert_eq!(put("Three").await.ok(201)["version"], 3);
    assert_eq!(put("Three").await.ok(200)["version"], 3, "the same once more is no new version");
    assert_eq!(api.get("/v1/templates/welcome").await.ok(200)["subject"], "Three");
    assert_eq!(api.get("/v1/templates/welcome?version=2").await.ok(200)["subject"], "Two");
    api.get("/v1/templates/welcome?version=4").await.refused(404, "not_found");
    assert_eq!(api.get("/v1/templates/welcome?version=0").await.wrong_fields(), ["version"]);
    let first = api.get("/v1/templates/welcome/versions?limit=2").await.ok(200);
    let numbers: Vec<&Value> = first["data"].as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(numbers, [3, 2]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = api.get(&format!("/v1/templates/welcome/versions?cursor={cursor}")).await.ok(200);
    assert_eq!((&rest["data"][0]["version"], &rest["next_cursor"]), (&json!(1), &Value::Null));
    api.get("/v1/templates/none/versions").await.refused(404, "not_found");
    let mut shown = api.get("/v1/templates/welcome").await.ok(200);
    shown["subject"] = json!("Four");
    assert_eq!(api.put("/v1/templates/welcome", shown.clone()).await.ok(201)["version"], 4);
    api.put("/v1/templates/welcome", shown).await.refused(409, "conflict");
}

#[tokio::test]
async fn versions_made_at_once_all_get_a_number() {
    let api = with_welcome().await;
    let put = |number: u32| api.put("/v1/templates/welcome", json!({"text": format!("Hi {number}")}));
    let made = futures::future::join_all((0..4).map(put)).await;
    let mut numbers: Vec<i64> = made.iter().map(|made| made.ok(201)["version"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5]);
}

#[tokio::test]
async fn the_list_has_the_latest_versions_without_their_sources() {
    let api = with_welcome().await;
    api.put("/v1/templates/welcome", json!({"subject": "Two", "html": "<p>Hi</p>", "text": "Hi"}))
        .await
        .ok(201);
    api.put("/v1/templates/bye", json!({"text": "Bye"})).await.ok(201);
    let page = api.get("/v1/templates?limit=1").await.ok(200);
    assert_eq!(page["data"][0]["name"], "bye");
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = api.get(&format!("/v1/templates?cursor={cursor}")).await.ok(200);
    let [one] = rest["data"].as_array().unwrap().as_slice() else { panic!("{rest}") };
    assert_eq!((&one["version"], &one["parts"]), (&json!(2), &json!(["html", "text"])));
    assert!(one.get("html").is_none() && rest["next_cursor"].is_null(), "{rest}");
}

#[tokio::test]
async fn a_deleted_template_is_gone_with_its_versions() {
    let api = with_welcome().await;
    assert_eq!(api.delete("/v1/templates/welcome").await, 204);
    assert_eq!(api.delete("/v1/templates/welcome").await, 404);
    for path in ["/v1/templates/welcome", "/v1/templates/welcome?version=1", "/v1/templates/a%20b"] {
        api.get(path).await.refused(404, "not_found");
    }
    let audit = api.get("/v1/audit").await.ok(200);
    let actions: Vec<&Value> =
        audit["data"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["template.delete", "template.create"]);
}

#[tokio::test]
async fn what_cannot_be_a_template_is_refused_with_its_field() {
    let api = Api::start().await;
    for (body, field) in [
        (json!({"name": "a"}), "html"),
        (json!({"text": "Hi"}), "name"),
        (json!({"name": "preview", "text": "Hi"}), "name"),
        (json!({"name": "../../x", "text": "Hi"}), "name"),
        (json!({"name": "a", "text": "Hi {{ name"}), "text"),
        (json!({"name": "a", "subject": "{% if %}", "text": "Hi"}), "subject"),
        (json!({"name": "a", "html": "<p>", "mjml": "<mjml></mjml>"}), "mjml"),
        (json!({"name": "a", "text": "Hi", "color": "red"}), "color"),
    ] {
        assert_eq!(api.post("/v1/templates", body.clone()).await.wrong_fields(), [field], "{body}");
    }
    let missing = json!({"name": "a", "html": "{% extends 'nowhere' %}"});
    let error = api.post("/v1/templates", missing).await.refused(422, "validation_error");
    assert!(error["message"].as_str().unwrap().contains("nowhere"), "{error}");
    assert_eq!(error["details"][0]["code"], "INVALID_TEMPLATE");
    let large = json!({"name": "a", "text": "x".repeat(1024 * 1024 + 1)});
    api.post("/v1/templates", large).await.refused(422, "validation_error");
    assert_eq!(api.get("/v1/templates").await.ok(200)["data"], json!([]));
}

#[tokio::test]
async fn a_preview_fills_in_what_is_given_or_the_sample() {
    let api = with_welcome().await;
    let preview = |body: Value| api.post("/v1/templates/welcome/preview", body);
    let made = preview(json!({})).await.ok(200);
    assert_eq!((&made["subject"], &made["version"]), (&json!("Welcome, Ada"), &json!(1)));
    assert!(made["text"].as_str().unwrap().contains("Hello Ada"), "{made}");
    assert_eq!(made["warnings"], json!([]));
    let made = preview(json!({"variables": {"name": "<b>"}, "version": 1})).await.ok(200);
    assert!(made["html"].as_str().unwrap().contains("&lt;b&gt;"), "{made}");
    let error = preview(json!({"variables": {}})).await.refused(422, "validation_error");
    assert!(error["message"].as_str().unwrap().contains("name"), "{error}");
    preview(json!({"version": 9})).await.refused(404, "not_found");
    assert_eq!(preview(json!({"variables": [1], "to": "x"})).await.wrong_fields(), ["variables", "to"]);
    api.post("/v1/templates/none/preview", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_source_is_previewed_without_being_stored() {
    let api = with_welcome().await;
    let source = json!({"subject": "Hi", "html": "<p onclick=\"x()\">{{ n }}</p>", "variables": {"n": 7}});
    let made = api.post("/v1/templates/preview", source).await.ok(200);
    assert_eq!((&made["version"], &made["subject"]), (&Value::Null, &json!("Hi")));
    assert_eq!(made["warnings"][0]["code"], "INVALID_TEMPLATE", "{made}");
    let extending = json!({"subject": "Hi", "html": "{% include 'welcome' %}", "sample": {"name": "Bob"}});
    let made = api.post("/v1/templates/preview", extending).await.ok(200);
    assert!(made["html"].as_str().unwrap().contains("Hello Bob"), "{made}");
    assert_eq!(
        api.post("/v1/templates/preview", json!({"variables": 1})).await.wrong_fields(),
        ["variables"]
    );
    assert_eq!(api.get("/v1/templates").await.ok(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_is_made_of_a_template() {
    let api = with_welcome().await;
    let mail = |variables: Value| {
        json!({
            "id": "m-1", "from": "shop@example.com", "to": "ada@example.net",
            "template": {"name": "welcome", "variables": variables},
        })
    };
    api.post("/v1/messages", mail(json!({}))).await.refused(422, "validation_error");
    api.post("/v1/messages", mail(json!({"name": "Ada"}))).await.ok(202);
    assert_eq!(api.get("/v1/messages/m-1").await.ok(200)["subject"], "Welcome, Ada");
}

/// The template `welcome` with a German form.
async fn with_languages() -> Api {
    let api = with_welcome().await;
    let german = json!({
        "name": "welcome", "locale": "de_at", "subject": "Willkommen, {{ name }}", "html": "<p>Hallo {{ name }}</p>",
        "sample": {"name": "Ada"},
    });
    let made = api.post("/v1/templates", german).await.ok(201);
    assert_eq!((&made["name"], &made["locale"]), (&json!("welcome.de-AT"), &json!("de-AT")));
    api
}

#[tokio::test]
async fn a_template_in_a_language_is_found_by_it() {
    let api = with_languages().await;
    let shown = api.get("/v1/templates/welcome.de-AT").await.ok(200);
    api.put("/v1/templates/welcome.de-AT", shown).await.ok(200);
    let other = json!({"text": "x", "locale": "de"});
    assert_eq!(api.put("/v1/templates/welcome", other).await.wrong_fields(), ["locale"]);
    let preview = |locale: &str| api.post("/v1/templates/welcome/preview", json!({"locale": locale}));
    let made = preview("de-AT").await.ok(200);
    assert_eq!((&made["name"], &made["locale"]), (&json!("welcome.de-AT"), &json!("de-AT")));
    assert_eq!((&made["version"], &made["subject"]), (&json!(1), &json!("Willkommen, Ada")));
    let made = preview("it").await.ok(200);
    assert_eq!((&made["name"], &made["locale"]), (&json!("welcome"), &Value::Null));
    assert_eq!(preview("Italian").await.wrong_fields(), ["locale"]);
    api.patch("/v1/tenants/default", json!({"locale": "de-AT"})).await.ok(200);
    api.clock.forward_ms(2_000);
    assert_eq!(preview("it").await.ok(200)["name"], "welcome.de-AT");
    assert_eq!(api.patch("/v1/tenants/default", json!({"locale": "x"})).await.wrong_fields(), ["locale"]);
}

#[tokio::test]
async fn a_template_keeps_its_layout_and_its_choice_of_styles() {
    let api = Api::start().await;
    let base =
        json!({"name": "base", "html": "<style>p{color:red}</style>{% block content %}{% endblock %}"});
    api.post("/v1/templates", base).await.ok(201);
    let letter = json!({"name": "letter", "html": "<p>Hi</p>", "layout": "base", "inline_css": true});
    let made = api.post("/v1/templates", letter).await.ok(201);
    assert_eq!((&made["layout"], &made["inline_css"]), (&json!("base"), &json!(true)));
    api.put("/v1/templates/letter", made).await.ok(200);
    let made = api.post("/v1/templates/letter/preview", json!({})).await.ok(200);
    assert!(made["html"].as_str().unwrap().contains("<p style=\"color: red;\">Hi</p>"), "{made}");
    let plain = json!({"name": "plain", "html": "<p>x</p>"});
    api.post("/v1/templates", plain).await.ok(201);
    let nowhere = json!({"name": "a", "html": "<p>Hi</p>", "layout": "plain"});
    let error = api.post("/v1/templates", nowhere).await.refused(422, "validation_error");
    assert!(error["message"].as_str().unwrap().contains("no place for the content"), "{error}");
}

#[tokio::test]
async fn a_test_goes_to_the_given_addresses_alone_and_is_marked() {
    let api = with_languages().await;
    let test = |body: Value| api.post("/v1/templates/welcome/test", body);
    let body =
        json!({"to": ["eve@example.net", "bob@example.net"], "from": "shop@example.com", "locale": "de-AT"});
    let sent = test(body).await.ok(202);
    let uid = sent["uid"].as_str().unwrap();
    let message = api.get(&format!("/v1/messages/{uid}")).await.ok(200);
    assert_eq!((&message["subject"], &message["tags"]), (&json!("[Test] Willkommen, Ada"), &json!(["test"])));
    let to: Vec<&Value> =
        message["recipients"].as_array().unwrap().iter().map(|one| &one["address"]).collect();
    assert_eq!(to, ["eve@example.net", "bob@example.net"]);
    let checks = &message["events"][1]["data"]["checks"][2];
    assert_eq!((&checks["template"], &checks["locale"]), (&json!("welcome.de-AT"), &json!("de-AT")));
    for (body, fields) in [
        (json!({"from": "shop@example.com"}), &["to"][..]),
        (json!({"to": [], "from": "shop@example.com"}), &["to"]),
        (json!({"to": ["nobody"], "from": "shop@example.com"}), &["to"]),
        (json!({"to": vec!["a@example.net"; 11], "from": "shop@example.com"}), &["to"]),
        (json!({"to": ["a@example.net"], "cc": ["b@example.net"]}), &["cc"]),
        (json!({"to": ["a@example.net"], "variables": [1], "locale": "x"}), &["variables", "locale"]),
    ] {
        assert_eq!(test(body.clone()).await.wrong_fields(), fields, "{body}");
    }
    let missing = json!({"to": ["a@example.net"], "from": "shop@example.com"});
    api.post("/v1/templates/gone/test", missing).await.refused(404, "not_found");
}
