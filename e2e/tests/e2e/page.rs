//! The page at `/`, in a real browser, on the real binary.

use std::path::PathBuf;

use postway_e2e::{Browser, Gateway, mail_with, text};
use postway_testkit::{Action, SmtpSink, Verb, axe};
use serde_json::{Value, json};

/// Where pictures are kept: in the target folder, for whoever wants to look.
fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page").join(format!("{name}.png"))
}

/// A browser whose user is signed in with the admin key.
async fn signed_in(gateway: &Gateway, width: u32, height: u32) -> anyhow::Result<Browser> {
    let browser = Browser::start(width, height).await?;
    browser.open(&gateway.url()).await?;
    browser.type_into("input[name=key]", &gateway.key()).await?;
    browser.click("Sign in").await?;
    browser.wait_for_text("Overview").await?;
    Ok(browser)
}

async fn go(browser: &Browser, gateway: &Gateway, place: &str) -> anyhow::Result<()> {
    browser.open(&format!("{}/#/{place}", gateway.url())).await
}

#[tokio::test]
async fn a_newcomer_signs_in_sends_a_mail_and_reads_it() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let browser = Browser::start(1280, 800).await?;
    browser.open(&gateway.url()).await?;
    browser.type_into("input[name=key]", "not the key").await?;
    browser.click("Sign in").await?;
    browser.wait_for_text("This key opens nothing").await?;
    let cookies = browser.run("return document.cookie").await?;
    assert!(!cookies.to_string().contains("postway_session"), "{cookies}");

    let browser = signed_in(&gateway, 1280, 800).await?;
    gateway
        .send(json!({"from": "Shop <shop@example.com>", "to": "ada@example.net", "subject": "Welcome aboard",
        "html": "<h1>Hello Ada</h1>", "text": "Hello Ada"}))
        .await?;
    go(&browser, &gateway, "inbox").await?;
    browser.wait_for_text("Welcome aboard").await?;
    browser.screenshot(&picture("inbox")).await?;
    // The session's cookie is out of reach of scripts.
    let cookies = browser.run("return document.cookie").await?;
    assert!(!cookies.to_string().contains("postway_session"), "{cookies}");
    browser.click("Sign out").await?;
    browser.wait_until("the form to sign in", "return !!document.querySelector('input[name=key]')").await
}

#[tokio::test]
async fn a_message_is_watched_as_it_fails_and_is_tried_again() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().on(Verb::Rcpt, Action::reply("550 5.1.1 no such user")).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail_with("to-nobody", "nobody@example.net", json!({"subject": "A doomed mail"}))).await?;
    gateway.wait_for("to-nobody", "failed").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages/to-nobody").await?;
    browser.wait_for_text("no such user").await?;
    browser.screenshot(&picture("failed")).await?;
    sink.clear_rules();
    browser.click("Retry").await?;
    gateway.wait_for("to-nobody", "sent").await?;
    browser.wait_until(
        "the page to show that it was sent",
        "return [...document.querySelectorAll('.title *')].some((one) => one.textContent.trim() === 'sent')",
    )
    .await
}

/// Counted as the browser received it, before anything is compressed: the page, its styles and scripts, with the chart.
#[tokio::test]
async fn the_overview_is_drawn_with_less_than_200_kilobytes() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.send(json!({"id": "one", "from": "a@example.com", "to": "b@example.net", "subject": "One", "text": "x"})).await?;
    gateway.wait_for("one", "sent").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    browser.wait_until("the chart", "return !!document.querySelector('main canvas')").await?;
    let bytes = browser
        .run(
            "return performance.getEntries().filter((one) => one.entryType === 'navigation' ||
                one.name.includes('/assets/')).reduce((sum, one) => sum + one.decodedBodySize, 0)",
        )
        .await?;
    let bytes = bytes.as_f64().unwrap_or_default();
    assert!((50_000.0..200_000.0).contains(&bytes), "{bytes} bytes");
    Ok(())
}

#[tokio::test]
async fn a_list_names_recipients_and_a_batch_its_progress() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway
        .send(json!({"id": "one", "from": "a@example.com", "to": ["ada@example.net", "bob@example.net"],
        "subject": "To two", "text": "x", "batch": "spring"}))
        .await?;
    gateway.wait_for("one", "sent").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages?subject=TO+TWO").await?;
    browser.wait_for_text("ada@example.net").await?;
    browser.wait_for_text("and 1 more").await?;
    go(&browser, &gateway, "batches").await?;
    browser.wait_for_text("spring").await?;
    browser.click("Progress").await?;
    browser.wait_for_text("1 of 1 done").await
}

/// A key of a tenant reads the settings of its own, and is offered no change of them.
#[tokio::test]
async fn a_tenants_key_sees_its_settings() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let made =
        gateway.post("/v1/tenants/default/keys", json!({"name": "reader", "scopes": ["read"]})).await?;
    let browser = Browser::start(1280, 800).await?;
    browser.open(&gateway.url()).await?;
    browser.type_into("input[name=key]", text(&made, "key")).await?;
    browser.click("Sign in").await?;
    browser.wait_for_text("Overview").await?;
    go(&browser, &gateway, "settings").await?;
    browser.wait_for_text("Settings of").await?;
    browser.wait_for_text("Default account").await?;
    assert_eq!(browser.run("return !!document.querySelector('main form')").await?, false);
    Ok(())
}

#[tokio::test]
async fn a_batch_is_suspended_by_a_click() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let tomorrow = gateway.now().await? + jiff::SignedDuration::from_hours(24);
    gateway.send(json!({"from": "a@example.com", "to": "b@example.net", "subject": "x", "text": "x", "batch": "spring",
        "send_at": tomorrow.to_string()})).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "batches").await?;
    browser.wait_for_text("spring").await?;
    browser.click("Suspend").await?;
    // Some actions ask first.
    let confirm =
        "const it = document.querySelector('dialog[open] button[type=submit], dialog[open] .primary');
        if (it) it.click(); return true;";
    browser.run(confirm).await?;
    postway_e2e::eventually("the batch to be suspended", async || {
        let batch = gateway.get("/v1/batches/spring").await?;
        Ok((!batch["suspended_since"].is_null() || batch["suspended"] == true).then_some(()))
    })
    .await
}

#[tokio::test]
async fn hostile_html_is_shown_and_does_nothing() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    // Composed mail with a script is refused; a ready-made one is its author's own.
    let raw = "From: a@example.com\r\nTo: b@example.net\r\nSubject: Hostile\r\nMIME-Version: 1.0\r\n\
        Content-Type: text/html\r\n\r\n<h1>Look</h1><script>parent.pwned = top.pwned = 1; document.title = 'pwned'</script>\
        <img src=x onerror=\"parent.pwned = 1\"><a href=\"javascript:parent.pwned = 1\">x</a>\
        <form action=\"/v1/session\" method=post><input autofocus onfocus=\"top.pwned = 1\"></form>\r\n";
    let request =
        gateway.request(reqwest::Method::POST, "/v1/messages/raw").header("content-type", "message/rfc822");
    let made: Value = request.body(raw).send().await?.error_for_status()?.json().await?;
    let uid = text(&made, "uid");
    gateway.wait_for(uid, "sent").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, &format!("messages/{uid}")).await?;
    browser.wait_until("the preview", "return !!document.querySelector('iframe')").await?;
    let (status, headers, html) = gateway.bytes(&format!("/v1/messages/{uid}/preview")).await?;
    assert!(status.is_success() && String::from_utf8_lossy(&html).contains("Look"));
    let policy = headers["content-security-policy"].to_str()?;
    assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{policy}");
    // Long enough for a script to have run, had it been let.
    browser.run("return new Promise((done) => setTimeout(done, 500))").await?;
    assert_eq!(browser.run("return window.pwned === undefined").await?, true);
    assert_ne!(browser.run("return document.title").await?, "pwned");
    browser.screenshot(&picture("hostile")).await
}

#[tokio::test]
async fn every_page_is_accessible_on_a_desk_and_on_a_phone() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.send(json!({"id": "one", "from": "a@example.com", "to": "b@example.net", "subject": "One", "text": "x"})).await?;
    gateway.wait_for("one", "sent").await?;
    let judge = axe::script();
    for (name, width, height) in [("desk", 1280, 800), ("phone", 390, 844)] {
        let browser = signed_in(&gateway, width, height).await?;
        for place in [
            "",
            "messages",
            "messages/one",
            "inbox",
            "accounts",
            "batches",
            "templates",
            "suppressions",
            "webhooks",
            "mailboxes",
            "rules",
            "inbound",
            "contacts",
            "dead-letters",
            "tenants",
            "nodes",
            "audit",
        ] {
            go(&browser, &gateway, place).await?;
            browser.wait_until("the page", "return !!document.querySelector('main h1')").await?;
            browser.run(&judge).await?;
            let found = browser
                .run(
                    "return axe.run().then(({ violations }) => violations.map((one) =>
                `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`))",
                )
                .await?;
            assert_eq!(found, json!([]), "{name}, #/{place}");
            let wide = browser.run("return document.documentElement.scrollWidth > innerWidth + 1").await?;
            assert_eq!(wide, false, "{name}, #/{place} scrolls sideways");
            browser.screenshot(&picture(&format!("{name}-{}", place.replace('/', "-")))).await?;
        }
    }
    Ok(())
}
