//! What mail is made of: templates, ready-made mail, the directory of recipients, and a rehearsal of all of
//! it.

use jiff::SignedDuration;
use postway_e2e::{
    ALLOW_LOOPBACK, Gateway, Opened, PATIENCE, column, event_types, files_below, mail_with, text,
};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

/// A mail made of the template `welcome`.
fn welcome(id: &str, variables: Value) -> Value {
    let template = json!({"name": "welcome", "variables": variables});
    json!({"id": id, "account": "relay", "from": "shop@example.com", "to": ["ada@example.net"], "template": template})
}

async fn make_template(gateway: &Gateway) -> anyhow::Result<()> {
    let layout =
        json!({"name": "layout", "subject": "-", "html": "<h1>Shop</h1>{% block body %}{% endblock %}"});
    gateway.post("/v1/templates", layout).await?;
    let welcome = json!({"name": "welcome", "subject": "Welcome, {{ name }}",
        "html": "{% extends \"layout\" %}{% block body %}<p>{{ name }} owes {{ total|money(\"EUR\", \"de\") }}</p>{% endblock %}"});
    gateway.post("/v1/templates", welcome).await.map(drop)
}

#[tokio::test]
async fn a_template_made_over_http_arrives_filled_in() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    make_template(&gateway).await?;
    gateway.send(welcome("w-1", json!({"name": "Ada & Söhne", "total": 1234.5}))).await?;
    gateway.wait_for("w-1", "sent").await?;
    let opened = Opened::of(&sink.mails()[0])?;
    assert_eq!(opened.subject, "Welcome, Ada & Söhne");
    assert!(opened.html.contains("<h1>Shop</h1><p>Ada &amp; Söhne owes 1.234,50"), "{}", opened.html);
    assert!(opened.text.contains("Ada & Söhne owes 1.234,50"), "made from the html: {}", opened.text);
    Ok(())
}

#[tokio::test]
async fn a_mail_is_made_of_the_version_that_is_the_latest_when_it_comes() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    make_template(&gateway).await?;
    gateway.send(welcome("w-1", json!({"name": "Ada", "total": 1}))).await?;
    gateway.wait_for("w-1", "sent").await?;
    let newer = json!({"subject": "Hi {{ name }}", "text": "Hi {{ name }}\n"});
    let (status, answer) = gateway.call(Method::PUT, "/v1/templates/welcome", Some(newer)).await?;
    assert_eq!((status, &answer["version"]), (StatusCode::CREATED, &json!(2)), "{answer:#}");
    gateway.send(welcome("w-2", json!({"name": "Bob"}))).await?;
    gateway.wait_for("w-2", "sent").await?;
    assert_eq!(Opened::of(&sink.mails()[1])?.subject, "Hi Bob");
    Ok(())
}

#[tokio::test]
async fn a_missing_variable_is_refused_by_its_name() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.relay_to(9).await?;
    make_template(&gateway).await?;
    let (status, answer) =
        gateway.call(Method::POST, "/v1/messages", Some(welcome("w-1", json!({"name": "Ada"})))).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let detail = &answer["error"]["details"][0];
    assert_eq!((text(detail, "code"), text(detail, "check")), ("INVALID_TEMPLATE", "TEMPLATE"), "{answer:#}");
    assert!(text(detail, "message").contains("total"), "{detail}");
    assert_eq!(gateway.call(Method::GET, "/v1/messages/w-1", None).await?.0, StatusCode::NOT_FOUND);
    Ok(())
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_stores_nothing() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    source.serve("/a.pdf", SourceReply::ok("%PDF-1.7 something"));
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let with = |path: &str| {
        let files = json!({"attachments": [{"filename": "a.pdf", "url": source.url(path)}]});
        mail_with("order-1", "ada@example.net", files)
    };
    let dry = "/v1/messages?dry_run=true";
    let (status, answer) = gateway.call(Method::POST, dry, Some(with("/a.pdf"))).await?;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    assert_eq!(source.requests().len(), 1, "the file was fetched to look at it");
    let (status, answer) = gateway.call(Method::POST, dry, Some(with("/none.pdf"))).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
    assert_eq!(text(&answer["error"]["details"][0], "field"), "attachments[0].url", "{answer:#}");

    assert_eq!(gateway.call(Method::GET, "/v1/messages/order-1", None).await?.0, StatusCode::NOT_FOUND);
    assert_eq!(gateway.get("/v1/messages").await?["data"], json!([]));
    assert!(files_below(&gateway.data_dir().join("blobs"))?.is_empty());
    // The id was not used up either.
    gateway.send(with("/a.pdf")).await?;
    gateway.wait_for("order-1", "sent").await?;
    assert_eq!(sink.mails().len(), 1, "and only this one went out");
    Ok(())
}

#[tokio::test]
async fn ready_made_mail_comes_in_by_http_and_by_command() -> anyhow::Result<()> {
    const EML: &str = "From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nBcc: bea@example.net\r\nSubject: Ready\r\n\
                       X-Kept: yes\r\n\r\nAs it is.\r\n.dot\r\n";
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let by_http = gateway
        .request(Method::POST, "/v1/messages?id=raw-1&account=relay")
        .header(CONTENT_TYPE, "message/rfc822")
        .body(EML)
        .send()
        .await?;
    assert_eq!(by_http.status(), StatusCode::ACCEPTED);
    let file = gateway.folder().join("mail.eml");
    std::fs::write(&file, EML)?;
    let file = file.to_string_lossy().into_owned();
    let command = ["send", "--eml", &file, "--id", "raw-2", "--account", "relay", "--to", "eve@example.net"];
    let sent = gateway.cli(&command).await?;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    for id in ["raw-1", "raw-2"] {
        gateway.wait_for(id, "sent").await?;
    }

    let mut mails = sink.wait_for(2, PATIENCE).await;
    mails.sort_by_key(|mail| mail.recipients.len());
    assert_eq!(mails[0].recipients, ["eve@example.net"], "what the caller says, and not the mail");
    let mut named = mails[1].recipients.clone();
    named.sort();
    assert_eq!(named, ["ada@example.net", "bea@example.net"]);
    for mail in mails {
        assert_eq!(mail.header("Bcc"), None);
        assert_eq!(
            (mail.header("X-Kept").as_deref(), mail.sender.as_str()),
            (Some("yes"), "shop@example.com")
        );
        assert!(mail.raw.ends_with(b"\r\n\r\nAs it is.\r\n.dot\r\n"), "{:?}", mail.raw);
    }
    Ok(())
}

#[tokio::test]
async fn a_recipient_deleted_before_its_mail_is_due_gets_none() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    for (id, address) in [("C-1", "ada@example.net"), ("C-2", "bob@example.net")] {
        gateway.post("/v1/recipients", json!({"external_id": id, "name": id, "address": address})).await?;
    }
    let send_at = gateway.now().await? + SignedDuration::from_secs(8);
    let later = |id: &str, to: &str, recipient: &str| {
        let fields = json!({"recipient": {"external_id": recipient}, "send_at": send_at.to_string()});
        mail_with(id, to, fields)
    };
    gateway.send(later("to-ada", "ada@example.net", "C-1")).await?;
    gateway.send(later("to-bob", "bob@example.net", "C-2")).await?;
    let (status, answer) = gateway.call(Method::DELETE, "/v1/recipients/external:C-1", None).await?;
    assert!(status.is_success(), "{status} {answer}");

    let failed = gateway.wait_for("to-ada", "failed").await?;
    assert_eq!(text(&failed["error"], "code"), "RECIPIENT_NOT_FOUND", "{failed:#}");
    assert_eq!(
        event_types(&failed),
        ["accepted", "validated", "scheduled", "sending", "failed"],
        "{failed:#}"
    );
    assert_eq!(column(&failed, "recipients", "status"), ["failed"]);
    gateway.wait_for("to-bob", "sent").await?;
    assert_eq!(
        sink.mails().iter().flat_map(|mail| &mail.recipients).collect::<Vec<_>>(),
        ["bob@example.net"]
    );

    let gone = json!({"recipient": {"external_id": "C-1"}});
    let (status, answer) =
        gateway.call(Method::POST, "/v1/messages", Some(mail_with("again", "ada@example.net", gone))).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(text(&answer["error"]["details"][0], "code"), "RECIPIENT_NOT_FOUND", "{answer:#}");
    Ok(())
}
