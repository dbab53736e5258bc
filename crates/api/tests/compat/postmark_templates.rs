//! Templates and layouts of the Postmark API: written in Mustachio, shown unchanged, sent by alias and
//! number.

use serde_json::{Value, json};

use crate::{
    postmark::refused,
    support::{Answer, Api, KEY},
};

async fn call(api: &Api, method: &str, path: &str, body: Value) -> Answer {
    api.postmark_as(KEY, method, path, body).await
}

async fn sent_subject_and_source(api: &Api, by: Value, model: Value) -> (String, String) {
    let mut mail = json!({"From": "shop@example.com", "To": "ada@example.net", "TemplateModel": model});
    mail.as_object_mut().unwrap().extend(by.as_object().unwrap().clone());
    let sent = api.postmark("/email/withTemplate", mail).await.ok(200);
    let id = sent["MessageID"].as_str().unwrap();
    let subject =
        api.get(&format!("/v1/messages/{id}")).await.ok(200)["subject"].as_str().unwrap().to_owned();
    let dump = call(api, "GET", &format!("/messages/outbound/{id}/details"), Value::Null).await.ok(200);
    (subject, dump["HtmlBody"].as_str().unwrap().trim().to_owned())
}

fn welcome() -> Value {
    json!({
        "Name": "Welcome!", "Alias": "welcome", "Subject": "Hi {{name}}",
        "HtmlBody": "<p>{{#person}}{{name}}{{/person}}{{^person}}nobody{{/person}}</p>{{#each items}}<b>{{.}}</b>{{/each}}",
        "TextBody": "Hi {{name}}",
    })
}

#[tokio::test]
async fn a_template_is_shown_as_it_was_written_and_goes_by_alias_and_number() {
    let api = Api::start().await;
    let made = call(&api, "POST", "/templates", welcome()).await.ok(200);
    let id = made["TemplateId"].as_u64().unwrap();
    assert_eq!((&made["Alias"], &made["TemplateType"]), (&json!("welcome"), &json!("Standard")));
    for given in ["welcome", &id.to_string()] {
        let shown = call(&api, "GET", &format!("/templates/{given}"), Value::Null).await.ok(200);
        for name in ["Name", "Alias", "Subject", "HtmlBody", "TextBody"] {
            assert_eq!(shown[name], welcome()[name], "{name} of {given}");
        }
        assert_eq!(shown["TemplateId"], id);
    }
    let model = json!({"name": "Ada", "person": {"name": "<A>"}, "items": ["x", "y"]});
    let html = "<p>&lt;A&gt;</p><b>x</b><b>y</b>";
    for by in [json!({"TemplateAlias": "welcome"}), json!({"TemplateId": id})] {
        let (subject, source) = sent_subject_and_source(&api, by, model.clone()).await;
        assert_eq!((subject.as_str(), source.as_str()), ("Hi Ada", html));
    }
    // What the model lacks is nothing there, and no error.
    let (subject, source) = sent_subject_and_source(&api, json!({"TemplateId": id}), json!({})).await;
    assert_eq!((subject.as_str(), source.as_str()), ("Hi", "<p>nobody</p>"));
    let batch = json!({"Messages": [
        {"From": "shop@example.com", "To": "ada@example.net", "TemplateId": id, "TemplateModel": {}},
        {"From": "shop@example.com", "To": "ada@example.net", "TemplateId": 7, "TemplateModel": {}},
    ]});
    let answers = api.postmark("/email/batchWithTemplates", batch).await.ok(200);
    assert_eq!((&answers[0]["ErrorCode"], &answers[1]["ErrorCode"]), (&json!(0), &json!(1101)));
    refused(&call(&api, "POST", "/templates", welcome()).await, 422, 1123);
}

#[tokio::test]
async fn a_template_is_changed_renamed_and_deleted() {
    let api = Api::start().await;
    let mut unnamed = welcome();
    unnamed.as_object_mut().unwrap().remove("Alias");
    let id = call(&api, "POST", "/templates", unnamed).await.ok(200)["TemplateId"].as_u64().unwrap();
    let path = format!("/templates/{id}");
    assert_eq!(call(&api, "GET", &path, Value::Null).await.ok(200)["Alias"], Value::Null);
    let changed =
        call(&api, "PUT", &path, json!({"Name": "Other", "HtmlBody": "<i>{{name}}</i>"})).await.ok(200);
    assert_eq!((&changed["Name"], &changed["TemplateId"]), (&json!("Other"), &json!(id)));
    let renamed = call(&api, "PUT", &path, json!({"Alias": "hello"})).await.ok(200);
    assert_eq!((&renamed["Alias"], &renamed["TemplateId"]), (&json!("hello"), &json!(id)));
    let again = call(&api, "PUT", "/templates/hello", json!({"Alias": "hi", "Subject": "Yo"})).await.ok(200);
    assert_eq!((&again["Alias"], &again["TemplateId"]), (&json!("hi"), &json!(id)));
    let shown = call(&api, "GET", &path, Value::Null).await.ok(200);
    assert_eq!((&shown["HtmlBody"], &shown["Subject"]), (&json!("<i>{{name}}</i>"), &json!("Yo")));
    refused(&call(&api, "GET", "/templates/hello", Value::Null).await, 422, 1101);
    let list = call(&api, "GET", "/templates?Count=10&Offset=0", Value::Null).await.ok(200);
    assert_eq!((&list["TotalCount"], &list["Templates"][0]["TemplateId"]), (&json!(1), &json!(id)), "{list}");
    let gone = call(&api, "DELETE", &path, Value::Null).await.ok(200);
    assert_eq!(gone["ErrorCode"], 0);
    for path in [path.as_str(), "/templates/hi"] {
        let said = refused(&call(&api, "GET", path, Value::Null).await, 422, 1101);
        assert!(said.contains("not found") && said.contains("not valid"), "{said}");
    }
    assert_eq!(call(&api, "GET", "/templates", Value::Null).await.ok(200)["TotalCount"], 0);
    assert_eq!(api.get("/v1/templates").await.ok(200)["data"], json!([]), "nothing is left behind");
}

#[tokio::test]
async fn a_layout_goes_around_its_templates() {
    let api = Api::start().await;
    let layout = json!({"Name": "Base", "Alias": "base", "TemplateType": "Layout",
        "HtmlBody": "<h1>{{shop}}</h1>{{{ @content }}}", "TextBody": "{{{@content}}} -- {{shop}}"});
    let made = call(&api, "POST", "/templates", layout).await.ok(200);
    assert_eq!(made["TemplateType"], "Layout");
    let mut inner = welcome();
    inner["LayoutTemplate"] = json!("base");
    call(&api, "POST", "/templates", inner).await.ok(200);
    let model = json!({"name": "Ada", "shop": "S&Co"});
    let (_, source) = sent_subject_and_source(&api, json!({"TemplateAlias": "welcome"}), model).await;
    assert_eq!(source, "<h1>S&amp;Co</h1><p>nobody</p>");
    let list = |query: &'static str| call(&api, "GET", query, Value::Null);
    assert_eq!(list("/templates?templateType=Layout").await.ok(200)["Templates"][0]["Alias"], "base");
    assert_eq!(
        list("/templates?templateType=Standard").await.ok(200)["Templates"][0]["LayoutTemplate"],
        "base"
    );
    assert_eq!(list("/templates?LayoutTemplate=none").await.ok(200)["TotalCount"], 0);
    let said = refused(&call(&api, "PUT", "/templates/base", json!({"HtmlBody": "none"})).await, 422, 1122);
    assert!(said.contains("The layout content placeholder must be present"), "{said}");
    for layout in ["welcome", "nothing"] {
        let mut bad = welcome();
        (bad["Alias"], bad["LayoutTemplate"]) = (json!("other"), json!(layout));
        refused(&call(&api, "POST", "/templates", bad).await, 422, 1122);
    }
    let free = call(&api, "PUT", "/templates/welcome", json!({"LayoutTemplate": ""})).await.ok(200);
    assert_eq!(free["LayoutTemplate"], Value::Null);
}

#[tokio::test]
async fn what_is_wrong_with_a_template_is_named() {
    let api = Api::start().await;
    for (part, code, said) in [
        (json!({"Name": null}), 1120, "Name: "),
        (json!({"Subject": ""}), 1120, "Subject: "),
        (json!({"HtmlBody": null, "TextBody": ""}), 1120, "HtmlBody: "),
        (json!({"Alias": "7up"}), 1122, "Alias: "),
        (json!({"Alias": "a b"}), 1122, "Alias: "),
        (json!({"TemplateType": "Other"}), 1122, "TemplateType: "),
        (json!({"HtmlBody": "{{#a}}"}), 1122, "HtmlBody: "),
        (json!({"TextBody": "{{> a}}"}), 1122, "TextBody: "),
        (json!({"Subject": "{{a"}), 0, ""),
        (json!({"Subject": "{{#a}}"}), 1122, "Subject: "),
        (json!({"Subject": "a\r\nBcc: x@y.example"}), 1122, "Subject: "),
    ] {
        let mut template = welcome();
        template.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let answer = call(&api, "POST", "/templates", template).await;
        if code == 0 {
            answer.ok(200);
            call(&api, "DELETE", "/templates/welcome", Value::Null).await.ok(200);
            continue;
        }
        let message = refused(&answer, 422, code);
        assert!(message.starts_with(said), "{part}: {message}");
    }
    api.post("/v1/templates", json!({"name": "native", "subject": "Hi", "text": "{{ name }}"})).await.ok(201);
    refused(&call(&api, "PUT", "/templates/native", json!({"Subject": "x"})).await, 422, 1122);
    assert_eq!(call(&api, "GET", "/templates/native", Value::Null).await.ok(200)["Alias"], "native");
}

#[tokio::test]
async fn a_template_is_tried_out_part_by_part() {
    let api = Api::start().await;
    let given = json!({"Subject": "{{subject}}", "HtmlBody": "{{#a}}", "TextBody": "Hi {{name}}", "TestRenderModel": {"name": "joe"}});
    let tried = call(&api, "POST", "/templates/validate", given).await.ok(200);
    assert_eq!(tried["AllContentIsValid"], false);
    assert_eq!(
        (&tried["TextBody"]["ContentIsValid"], &tried["TextBody"]["RenderedContent"]),
        (&json!(true), &json!("Hi joe"))
    );
    assert_eq!(tried["HtmlBody"]["ContentIsValid"], false);
    assert!(
        tried["HtmlBody"]["ValidationErrors"][0]["Message"].as_str().unwrap().contains("{{#a}}"),
        "{tried}"
    );
    let layout =
        json!({"TemplateType": "Layout", "HtmlBody": "{{{@content}}}", "TextBody": "{{id}} {{{@content}}}!"});
    let tried = call(&api, "POST", "/templates/validate", layout).await.ok(200);
    assert_eq!(tried["AllContentIsValid"], true, "{tried}");
    assert_eq!(api.get("/v1/templates").await.ok(200)["data"], json!([]));
}

#[tokio::test]
async fn who_may_only_read_or_send_changes_no_template() {
    let api = Api::start().await;
    let reader = api.key("default", json!({"name": "r", "scopes": ["read", "send"]})).await;
    for (method, path) in [("POST", "/templates"), ("PUT", "/templates/x"), ("DELETE", "/templates/x")] {
        refused(&api.postmark_as(&reader, method, path, welcome()).await, 401, 10);
    }
    api.postmark_as(&reader, "GET", "/templates", Value::Null).await.ok(200);
    let sender = api.key("default", json!({"name": "s", "scopes": ["send"]})).await;
    refused(&api.postmark_as(&sender, "GET", "/templates", Value::Null).await, 401, 10);
}
