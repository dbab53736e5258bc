//! Templates in languages: which one a message gets, and what stays settled.

use postway_domain::{MailLocale, MessageState, tenant::TenantSettings};
use postway_intake::PreviewTarget;
use postway_store::record::DirectoryChange;
use postway_testkit::{HttpSource, SourceReply};
use serde_json::{Value, json};

use crate::{
    GatewayPlan, TestGateway, complaint,
    directory::known,
    fields, message,
    prepare::{Room, reaches},
    template::{of, put, source},
    tenant,
};

/// An installation whose tenant has this language, with `welcome` in none, German and Italian.
async fn gateway(default: Option<&str>) -> TestGateway {
    let settings: TenantSettings = serde_json::from_value(json!({"locale": default})).unwrap();
    let gateway = GatewayPlan::with(settings).await;
    for (name, subject) in [("welcome", "Welcome"), ("welcome.de", "Willkommen"), ("welcome.it", "Benvenuto")]
    {
        put(&gateway, source(name, 1, subject, "<p>{{ name|default('') }}</p>")).await;
    }
    gateway
}

/// The message, in a language.
fn localised(template: Value, locale: &str) -> Value {
    let mut message = of(template);
    message["locale"] = locale.into();
    message
}

async fn subject(gateway: &TestGateway, message: &Value) -> String {
    let receipt = gateway.send(message).await.unwrap();
    gateway.stored(receipt.uid).await.summary.subject
}

#[tokio::test]
async fn a_message_gets_the_closest_language_that_its_template_has() {
    let without = gateway(None).await;
    let welcome = || json!({"name": "welcome"});
    for (locale, expected) in
        [("de-AT", "Willkommen"), ("DE", "Willkommen"), ("it_IT", "Benvenuto"), ("fr", "Welcome")]
    {
        assert_eq!(subject(&without, &localised(welcome(), locale)).await, expected, "{locale}");
    }
    assert_eq!(subject(&without, &of(welcome())).await, "Welcome");
    let italian = gateway(Some("it-CH")).await;
    for (locale, expected) in [("de-AT", "Willkommen"), ("fr", "Benvenuto")] {
        assert_eq!(subject(&italian, &localised(welcome(), locale)).await, expected, "{locale}");
    }
    assert_eq!(subject(&italian, &of(welcome())).await, "Benvenuto");
}

#[tokio::test]
async fn the_history_says_which_language_was_used() {
    let gateway = gateway(None).await;
    let checks = async |message: &Value| {
        let receipt = gateway.send(message).await.unwrap();
        let (_, validated) = gateway.events(receipt.uid).await.remove(1);
        validated["checks"][2].clone()
    };
    let used = checks(&localised(json!({"name": "welcome"}), "de-AT")).await;
    assert_eq!((&used["template"], &used["locale"]), (&json!("welcome.de"), &json!("de")));
    let used = checks(&localised(json!({"name": "welcome"}), "fr")).await;
    assert_eq!((&used["template"], &used["locale"]), (&json!("welcome"), &Value::Null));
}

#[tokio::test]
async fn a_known_recipient_has_a_language_of_its_own() {
    let gateway = gateway(Some("it")).await;
    let mut ada = known(tenant(), "C-1");
    ada.locale = Some("de".parse().unwrap());
    gateway.change(DirectoryChange::CreateRecipient(ada)).await;
    let mut to_ada = of(json!({"name": "welcome"}));
    to_ada["recipient"] = json!({"external_id": "C-1"});
    to_ada["to"] = "a@example.net".into();
    assert_eq!(subject(&gateway, &to_ada).await, "Willkommen");
    to_ada["locale"] = "it".into();
    assert_eq!(subject(&gateway, &to_ada).await, "Benvenuto", "the message has the last word");
}

#[tokio::test]
async fn a_version_is_one_of_the_language_and_no_other_stands_in_for_it() {
    let gateway = gateway(None).await;
    put(&gateway, source("welcome", 2, "Welcome again", "<p>two</p>")).await;
    assert_eq!(
        subject(&gateway, &localised(json!({"name": "welcome", "version": 1}), "de")).await,
        "Willkommen"
    );
    let refused = gateway.send(&localised(json!({"name": "welcome", "version": 2}), "de")).await;
    assert!(complaint(refused).contains("no template welcome in version 2, nor welcome.de"));
    assert_eq!(fields(gateway.send(&localised(json!({"name": "gone"}), "de")).await), ["template.name"]);
    assert_eq!(fields(gateway.send(&localised(json!({"name": "welcome"}), "German")).await), ["locale"]);
}

#[tokio::test]
async fn layouts_and_what_is_included_are_in_the_language_too() {
    let gateway = gateway(None).await;
    put(&gateway, source("base", 1, "", "<main>{% block content %}{% endblock %}</main><i>Bye</i>")).await;
    put(&gateway, source("base.de", 1, "", "<main>{% block content %}{% endblock %}</main><i>Adieu</i>"))
        .await;
    for name in ["letter", "letter.de"] {
        let mut letter = source(name, 1, "Letter", "<p>Text</p>");
        letter.layout = Some("base".parse().unwrap());
        put(&gateway, letter).await;
    }
    let raw = async |locale: &str| {
        let receipt = gateway.send(&localised(json!({"name": "letter"}), locale)).await.unwrap();
        gateway.raw(receipt.uid).await
    };
    assert!(raw("de").await.contains("<main><p>Text</p></main><i>Adieu</i>"));
    assert!(raw("en").await.contains("<main><p>Text</p></main><i>Bye</i>"));
    let mut only = source("base.fr", 1, "", "<b>{% block content %}{% endblock %}</b>");
    put(&gateway, only.clone()).await;
    only = source("lettre.fr", 1, "Lettre", "x");
    only.layout = Some("base".parse().unwrap());
    put(&gateway, only).await;
}

#[tokio::test]
async fn the_language_is_settled_when_the_message_is_accepted() {
    let files = HttpSource::start().await;
    files.serve("/a", SourceReply::ok("x"));
    let gateway = gateway(None).await;
    let mut message = localised(json!({"name": "welcome"}), "de-AT");
    message["attachments"] = json!([{"filename": "a.txt", "url": files.url("/a")}]);
    let receipt = gateway.send(&message).await.unwrap();
    put(&gateway, source("welcome.de-AT", 1, "Servus", "<p>Servus</p>")).await;
    put(&gateway, source("welcome.de", 2, "Hallo", "<p>Hallo</p>")).await;
    let _room = Room::open(&gateway);
    let record = reaches(&gateway, receipt.uid, MessageState::Ready).await;
    assert_eq!(record.summary.subject, "Willkommen");
}

#[tokio::test]
async fn a_preview_is_made_in_the_language_that_mail_would_have() {
    let gateway = gateway(Some("it")).await;
    let preview = async |locale: Option<&str>| {
        let locale: Option<MailLocale> = locale.map(|locale| locale.parse().unwrap());
        let target = PreviewTarget::Stored { name: "welcome".parse().unwrap(), version: None, locale };
        let made = gateway.door.preview(&tenant(), target, "{}").await.unwrap();
        (made.stored.unwrap().0, made.locale.map(|locale| locale.to_string()), made.subject)
    };
    let german = ("welcome.de".to_owned(), Some("de".to_owned()), "Willkommen".to_owned());
    assert_eq!(preview(Some("de-AT")).await, german);
    assert_eq!(preview(None).await.0, "welcome.it");
}

#[tokio::test]
async fn styles_are_inlined_if_the_template_or_the_message_says_so() {
    let gateway = gateway(None).await;
    let html = "<style>p{color:red}</style><p>Hi</p>";
    let mut styled = source("styled", 1, "Styled", html);
    styled.inline_css = true;
    put(&gateway, styled).await;
    let raw = async |message: &Value| {
        let receipt = gateway.send(message).await.unwrap();
        gateway.raw(receipt.uid).await
    };
    let is_inlined = |raw: &str| raw.replace("=3D", "=").contains("<p style=\"color: red;\">");
    assert!(is_inlined(&raw(&of(json!({"name": "styled"}))).await));
    let mut plain = of(json!({"name": "styled"}));
    plain["inline_css"] = false.into();
    assert!(!is_inlined(&raw(&plain).await));
    assert!(is_inlined(&raw(&message(json!({"html": html, "inline_css": true}))).await));
    assert!(!is_inlined(&raw(&message(json!({"html": html}))).await));
    let hostile =
        format!("<style>{}</style>{}", "p ~ p ~ p{color:red}".repeat(300), "<p>x</p>".repeat(5_000));
    let receipt = gateway.send(&message(json!({"html": hostile, "inline_css": true}))).await.unwrap();
    let (_, validated) = gateway.events(receipt.uid).await.remove(1);
    assert!(validated["warnings"][0].as_str().unwrap().contains("was not inlined"), "{validated}");
}
