//! Messages made from templates.

use postway_domain::{Template, Time, tenant::TenantSettings};
use postway_intake::{PreviewTarget, Refusal};
use postway_store::record::DirectoryChange;
use serde_json::{Value, json};

use crate::{GatewayPlan, NOW_MS, TestGateway, body_of, complaint, ctx, faults, fields, message, tenant};

/// The source of a template, with a subject and an html part.
pub(crate) fn source(name: &str, version: i64, subject: &str, html: &str) -> Template {
    Template {
        tenant: tenant(),
        name: name.parse().unwrap(),
        version,
        subject: subject.to_owned(),
        html: Some(html.to_owned()),
        text: None,
        mjml: None,
        layout: None,
        inline_css: false,
        description: None,
        sample: None,
        created_at: Time::from_millis(NOW_MS),
    }
}

/// Stores a template.
pub(crate) async fn put(gateway: &TestGateway, template: Template) {
    gateway.door.check_template(&template).await.unwrap();
    gateway.change(DirectoryChange::CreateTemplate(template)).await;
}

/// A message that uses a template.
pub(crate) fn of(template: Value) -> Value {
    message(json!({"subject": null, "text": null, "template": template}))
}

/// An installation with the template `welcome`.
async fn gateway() -> TestGateway {
    let gateway = TestGateway::new().await;
    put(&gateway, source("welcome", 1, "Hi {{ name }}", "<p>Hello {{ name }}, you owe {{ sum }}</p>")).await;
    gateway
}

#[tokio::test]
async fn a_template_makes_subject_html_and_text() {
    let gateway = gateway().await;
    let variables = json!({"name": "Ada & Bob", "sum": "<5>"});
    let receipt = gateway.send(&of(json!({"name": "welcome", "variables": variables}))).await.unwrap();
    assert_eq!(gateway.stored(receipt.uid).await.summary.subject, "Hi Ada & Bob");
    let raw = gateway.raw(receipt.uid).await;
    let mail = mail_parser::MessageParser::new().parse(raw.as_bytes()).unwrap();
    assert_eq!(mail.subject(), Some("Hi Ada & Bob"));
    assert_eq!(mail.body_html(0).unwrap().trim(), "<p>Hello Ada &amp; Bob, you owe &lt;5&gt;</p>");
    assert_eq!(mail.body_text(0).unwrap().trim(), "Hello Ada & Bob, you owe <5>");
    let (_, validated) = gateway.events(receipt.uid).await.remove(1);
    let check = &validated["checks"][2];
    assert_eq!((&check["template"], &check["version"]), (&json!("welcome"), &json!(1)));
}

#[tokio::test]
async fn a_missing_variable_is_named_with_its_part() {
    let gateway = gateway().await;
    let refused = gateway.send(&of(json!({"name": "welcome", "variables": {"name": "Ada"}}))).await;
    assert_eq!(faults(refused.clone()), [("template.html".to_owned(), "INVALID_TEMPLATE")]);
    assert!(complaint(refused).contains("sum"));
    let refused = gateway.send(&of(json!({"name": "welcome"}))).await;
    assert_eq!(fields(refused), ["template.subject"]);
    let refused = gateway.send(&of(json!({"name": "welcome", "variables": [1]}))).await;
    assert_eq!(fields(refused), ["template.variables"]);
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn a_broken_template_is_not_told_as_missing_html_as_well() {
    let settings: TenantSettings =
        serde_json::from_value(json!({"content": {"html_required": true}})).unwrap();
    let gateway = GatewayPlan::with(settings).await;
    assert_eq!(fields(gateway.send(&of(json!({"name": "gone"}))).await), ["template.name"]);
}

#[tokio::test]
async fn a_version_is_used_by_its_number_and_the_latest_without() {
    let gateway = gateway().await;
    put(&gateway, source("welcome", 2, "Second", "<p>two</p>")).await;
    let subject = async |template: Value| {
        let receipt = gateway.send(&of(template)).await.unwrap();
        gateway.stored(receipt.uid).await.summary.subject
    };
    let variables = json!({"name": "Ada", "sum": 1});
    assert_eq!(subject(json!({"name": "welcome"})).await, "Second");
    assert_eq!(subject(json!({"name": "welcome", "version": 1, "variables": variables})).await, "Hi Ada");
    let refused = gateway.send(&of(json!({"name": "welcome", "version": 3}))).await;
    assert!(complaint(refused).contains("version 3"));
}

#[tokio::test]
async fn a_subject_of_its_own_wins_and_bodies_of_its_own_are_refused() {
    let gateway = gateway().await;
    let template = json!({"name": "welcome", "variables": {"name": "Ada", "sum": 1}});
    let own = message(json!({"subject": "Own", "text": null, "template": template}));
    let receipt = gateway.send(&own).await.unwrap();
    assert_eq!(gateway.stored(receipt.uid).await.summary.subject, "Own");
    let both = message(json!({"subject": null, "text": "t", "html": "<p>h</p>", "template": template}));
    assert_eq!(fields(gateway.send(&both).await), ["text", "html"]);
}

#[tokio::test]
async fn templates_extend_and_include_others_of_the_tenant() {
    let gateway = TestGateway::new().await;
    put(&gateway, source("layout", 1, "", "<body>{% block body %}{% endblock %}</body>")).await;
    put(&gateway, source("footer", 1, "", "<i>Shop</i>")).await;
    let child = r#"{% extends "layout" %}{% block body %}<b>{{ n }}</b>{% include "footer" %}{% endblock %}"#;
    put(&gateway, source("order", 1, "Order {{ n }}", child)).await;
    let receipt = gateway.send(&of(json!({"name": "order", "variables": {"n": 7}}))).await.unwrap();
    let raw = gateway.raw(receipt.uid).await;
    assert!(raw.contains("<body><b>7</b><i>Shop</i></body>"), "{raw}");
    let optional = r#"<p>x</p>{% include "promotion" ignore missing %}"#;
    put(&gateway, source("quiet", 1, "s", optional)).await;
    gateway.send(&of(json!({"name": "quiet"}))).await.unwrap();
}

#[tokio::test]
async fn a_template_is_checked_with_all_that_it_refers_to() {
    let gateway = TestGateway::new().await;
    let refused = async |template: Template| match gateway.door.check_template(&template).await {
        Err(Refusal::Invalid { details }) => details[0].clone(),
        other => panic!("{other:?}"),
    };
    let fault = refused(source("a", 1, "s", r#"{% include "gone" %}"#)).await;
    assert_eq!((fault.field.as_str(), fault.code.as_str()), ("html", "INVALID_TEMPLATE"));
    assert!(fault.message.contains("gone"), "{}", fault.message);
    assert_eq!(refused(source("a", 1, "s", r#"{% include "a" %}"#)).await.field, "html");
    let many: String = (0..40).map(|n| format!("{{% include \"x{n}\" ignore missing %}}")).collect();
    assert!(refused(source("a", 1, "s", &many)).await.message.contains("more than 32"));
    assert!(refused(source("a", 1, "s", &"x".repeat(2 * 1024 * 1024))).await.message.contains("bytes"));
}

#[tokio::test]
async fn a_deleted_template_is_gone_at_once() {
    let gateway = gateway().await;
    let body = of(json!({"name": "welcome", "variables": {"name": "Ada", "sum": 1}}));
    gateway.send(&body).await.unwrap();
    gateway.change(DirectoryChange::DeleteTemplate(tenant(), "welcome".parse().unwrap())).await;
    assert_eq!(faults(gateway.send(&body).await), [("template.name".to_owned(), "INVALID_TEMPLATE")]);
}

#[tokio::test]
async fn a_variable_injects_neither_header_nor_script() {
    let gateway = gateway().await;
    let variables = json!({"name": "x\r\nBcc: evil@example.org", "sum": 1});
    let refused = gateway.send(&of(json!({"name": "welcome", "variables": variables}))).await;
    assert_eq!(fields(refused), ["template.subject"]);
    let variables = json!({"name": "Ada", "sum": "<script>alert(1)</script>"});
    let receipt = gateway.send(&of(json!({"name": "welcome", "variables": variables}))).await.unwrap();
    assert!(gateway.raw(receipt.uid).await.contains("&lt;script&gt;"));
    put(&gateway, source("raw", 1, "s", "<p>{{ x|safe }}</p>")).await;
    let variables = json!({"x": "<img src=x onerror=alert(1)>"});
    let refused = gateway.send(&of(json!({"name": "raw", "variables": variables}))).await;
    assert_eq!(faults(refused), [("html".to_owned(), "INVALID_TEMPLATE")]);
}

#[tokio::test]
async fn another_tenants_template_is_unknown() {
    let gateway = TestGateway::new().await;
    let other = Template { tenant: "other".parse().unwrap(), ..source("theirs", 1, "s", "<p>x</p>") };
    gateway.change(DirectoryChange::CreateTemplate(other)).await;
    assert_eq!(fields(gateway.send(&of(json!({"name": "theirs"}))).await), ["template.name"]);
}

#[tokio::test]
async fn a_preview_shows_what_would_be_sent_and_why_it_would_not() {
    let gateway = gateway().await;
    let stored = PreviewTarget::Stored { name: "welcome".parse().unwrap(), version: None, locale: None };
    let variables = json!({"name": "Ada", "sum": 1}).to_string();
    let preview = gateway.door.preview(&tenant(), stored.clone(), &variables).await.unwrap();
    assert_eq!((preview.stored, preview.subject.as_str()), (Some(("welcome".to_owned(), 1)), "Hi Ada"));
    assert_eq!(preview.text.as_deref().map(str::trim), Some("Hello Ada, you owe 1"));
    assert!(preview.warnings.is_empty());
    let refused = gateway.door.preview(&tenant(), stored, "{}").await;
    assert_eq!(faults(refused), [("subject".to_owned(), "INVALID_TEMPLATE")]);
    let bad = source("draft", 1, &"x".repeat(151), "<script>x</script>");
    let preview = gateway.door.preview(&tenant(), PreviewTarget::Source(Box::new(bad)), "{}").await.unwrap();
    let fields: Vec<_> = preview.warnings.iter().map(|warning| warning.field.as_str()).collect();
    assert_eq!((preview.stored, fields), (None, vec!["html", "subject"]));
}

#[tokio::test]
async fn a_preview_warns_of_all_that_a_message_is_refused_for() {
    let gateway = gateway().await;
    let draft = |text: &str| {
        let template = Template { html: None, text: Some(text.to_owned()), ..source("draft", 1, "s", "") };
        PreviewTarget::Source(Box::new(template))
    };
    let variables = json!({"nul": "\u{0}", "blank": ""}).to_string();
    for (text, is_refused) in [("{{ nul }}", true), ("{{ blank }}", true), ("Hi", false)] {
        let preview = gateway.door.preview(&tenant(), draft(text), &variables).await.unwrap();
        let fields: Vec<_> = preview.warnings.iter().map(|warning| warning.field.as_str()).collect();
        assert_eq!(fields == ["text"], is_refused, "{text}: {fields:?}");
    }
}

/// A message with these variables; the template need not exist.
fn with_variables(json: &str) -> String {
    let message = of(json!({"name": "none", "variables": "HERE"})).to_string();
    message.replace("\"HERE\"", json)
}

#[tokio::test]
async fn variables_are_bounded_before_they_are_built() {
    let gateway = gateway().await;
    let send =
        async |json: &str| gateway.door.accept_json(&ctx(), body_of(with_variables(json).as_bytes())).await;
    let zeros = |count: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(count - 1));
    // Twenty MiB of text, which would be a gigabyte of values.
    for (json, limit) in [
        (zeros(10_000_000), "1048576 bytes"),
        (format!("{{\"a\":\"{}\"}}", "x".repeat(1024 * 1024)), "1048576 bytes"),
        (zeros(100_000), "50000 values"),
        (format!("{{\"a\":[{}{{}}]}}", "{},".repeat(60_000)), "50000 values"),
        (
            format!("{{{}\"z\":1}}", (0..60_000).map(|n| format!("\"{n}\":1,")).collect::<String>()),
            "50000 values",
        ),
    ] {
        let refused = send(&json).await;
        assert_eq!(fields(refused.clone()), ["template.variables"]);
        assert!(complaint(refused.clone()).contains(limit), "{}: {}", json.len(), complaint(refused));
        let preview = PreviewTarget::Stored { name: "welcome".parse().unwrap(), version: None, locale: None };
        let refused = gateway.door.preview(&tenant(), preview, &json).await.map(drop);
        assert_eq!(fields(refused), ["variables"]);
        let batch = format!("{{\"messages\":[{},{}]}}", with_variables(&json), message(json!({})));
        let batch = gateway.door.accept_batch(&ctx(), body_of(batch.as_bytes())).await.unwrap();
        assert_eq!((batch.accepted, batch.rejected), (1, 1));
    }
    assert_eq!(fields(send(&zeros(40_000)).await), ["template.name"], "that is within the bounds");
    for deep in [20_000, 1_000_000] {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(deep), "]".repeat(deep));
        assert!(send(&deep).await.is_err());
    }
}

#[tokio::test]
async fn templates_that_refer_to_too_much_are_refused() {
    let gateway = TestGateway::new().await;
    let large = "x".repeat(500_000);
    for number in 0..10 {
        put(&gateway, source(&format!("part{number}"), 1, "s", &large)).await;
    }
    let includes =
        |count: usize| (0..count).map(|number| format!("{{% include 'part{number}' %}}")).collect::<String>();
    put(&gateway, source("some", 1, "s", &includes(8))).await;
    let refused = gateway.door.check_template(&source("all", 1, "s", &includes(10))).await;
    assert!(complaint(refused).contains("4194304 bytes together"));
}
