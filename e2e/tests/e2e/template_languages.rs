//! Templates in languages, with layouts and inlined styles, from files to the relay; a test send; and
//! webhooks about changed suppressions.

use postway_e2e::{ALLOW_LOOPBACK, Gateway, Opened, PATIENCE, Receiver, eventually, text};
use postway_testkit::{SmtpSink, SourceReply};
use reqwest::Method;
use serde_json::json;

/// Writes templates in three languages, with a layout, into a folder.
fn write_templates(gateway: &Gateway) -> anyhow::Result<String> {
    let folder = gateway.folder().join("mails");
    std::fs::create_dir_all(&folder)?;
    for (file, source) in [
        ("base.html", "<style>p{color:red}</style><body>{% block content %}{% endblock %}<i>Bye</i></body>"),
        (
            "base.de.html",
            "<style>p{color:red}</style><body>{% block content %}{% endblock %}<i>Adieu</i></body>",
        ),
        ("welcome.subject.txt", "Welcome, {{ name }}"),
        ("welcome.html", "<p>Hello {{ name }}</p>"),
        ("welcome.sample.json", r#"{"name": "Sample"}"#),
        ("welcome.settings.json", r#"{"layout": "base", "inline_css": true}"#),
        ("welcome.de.subject.txt", "Willkommen, {{ name }}"),
        ("welcome.de.html", "<p>Hallo {{ name }}</p>"),
    ] {
        std::fs::write(folder.join(file), source)?;
    }
    Ok(folder.to_string_lossy().into_owned())
}

#[tokio::test]
async fn a_mail_leaves_in_the_language_of_its_reader() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let folder = write_templates(&gateway)?;
    for times in ["first", "second"] {
        let created = gateway.cli(&["templates", "create", &folder]).await?;
        assert_eq!(created.code, Some(0), "{times}: {created:?}");
    }
    let listed = gateway.cli(&["templates", "list", "--json"]).await?;
    assert!(listed.out.contains("welcome.de") && !listed.out.contains("\"version\":2"), "{listed:?}");
    let mail = |id: &str, locale: &str| {
        json!({"id": id, "account": "relay", "from": "shop@example.com", "to": ["ada@example.net"], "locale": locale,
            "template": {"name": "welcome", "variables": {"name": "Ada"}}})
    };
    gateway.send(mail("german", "de-AT")).await?;
    let message = gateway.wait_for("german", "sent").await?;
    let checks = &message["events"][1]["data"]["checks"][2];
    assert_eq!((text(checks, "template"), text(checks, "locale")), ("welcome.de", "de"), "{message:#}");
    gateway.send(mail("french", "fr")).await?;
    gateway.wait_for("french", "sent").await?;
    let opened = Opened::of(&sink.mails()[0])?;
    assert_eq!(opened.subject, "Willkommen, Ada");
    assert!(opened.html.contains("<p style=\"color: red;\">Hallo Ada</p><i>Adieu</i>"), "{}", opened.html);
    let opened = Opened::of(&sink.mails()[1])?;
    assert_eq!(opened.subject, "Welcome, Ada");
    assert!(opened.html.contains("Hello Ada</p><i>Bye</i>"), "{}", opened.html);
    Ok(())
}

#[tokio::test]
async fn a_test_of_a_template_leaves_for_the_given_addresses() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let folder = write_templates(&gateway)?;
    gateway.cli(&["templates", "create", &folder]).await?;
    let test = ["templates", "send-test", "welcome", "--to", "eve@example.net", "--locale", "de"];
    let refused = gateway.cli(&[&test[..], &["--account", "relay"]].concat()).await?;
    assert!(refused.code == Some(4) && refused.err.contains("from"), "{refused:?}");
    let more = ["--from", "shop@example.com", "--account", "relay", "--var", "name=Eve"];
    let sent = gateway.cli(&[&test[..], &more[..]].concat()).await?;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    eventually("the test arrives", async || Ok((sink.mails().len() == 1).then_some(()))).await?;
    let mail = &sink.mails()[0];
    assert_eq!(Opened::of(mail)?.subject, "[Test] Willkommen, Eve");
    assert_eq!(mail.recipients, ["eve@example.net"]);
    Ok(())
}

#[tokio::test]
async fn webhooks_hear_of_changed_suppressions() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    gateway.post("/v1/suppressions", json!({"address": "ada@example.net", "reason": "manual"})).await?;
    gateway.call(Method::DELETE, "/v1/suppressions/ada@example.net", None).await?;
    receiver.wait_for(2, PATIENCE).await;
    let calls = receiver.calls()?;
    let kinds: Vec<&str> = calls.iter().map(|call| call.kind()).collect();
    assert_eq!(kinds, ["suppression.created", "suppression.deleted"]);
    let data = &calls[0].body["data"];
    assert_eq!(
        (text(data, "address"), text(data, "origin"), text(data, "reason")),
        ("ada@example.net", "operator", "manual")
    );
    let feed = gateway.get("/v1/events").await?;
    assert_eq!(feed["data"][0]["type"], "suppression.created", "{feed:#}");
    assert!(feed["data"][0]["message"].is_null() && feed["data"][0]["inbound"].is_null(), "{feed:#}");
    Ok(())
}
