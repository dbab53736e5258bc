//! The page at `/`, in a real browser, on the real binary.

use std::path::PathBuf;

use postway_e2e::{ALLOW_LOOPBACK, Browser, Gateway, Receiver, eventually, mail, mail_with, text};
use postway_testkit::{ClosedPort, SinkAction, SinkVerb, SmtpSink, SourceReply};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Where pictures are kept: in the target folder, for whoever wants to look.
pub(crate) fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page").join(format!("{name}.png"))
}

/// A browser whose user is signed in with the admin key.
pub(crate) async fn signed_in(gateway: &Gateway, width: u32, height: u32) -> anyhow::Result<Browser> {
    let browser = Browser::start(width, height).await?;
    browser.open(&gateway.url()).await?;
    browser.type_into("input[name=key]", &gateway.key()).await?;
    browser.click("Sign in").await?;
    browser.wait_for_text("Overview").await?;
    Ok(browser)
}

/// Goes to a page and waits until all of it is drawn. The menu and the page one leaves may show the same
/// words.
pub(crate) async fn go(browser: &Browser, gateway: &Gateway, place: &str) -> anyhow::Result<()> {
    let leave = format!(
        "if (location.hash !== {}) document.querySelector('main').dataset.left = ''",
        json!(format!("#/{place}"))
    );
    browser.run(&leave).await?;
    browser.open(&format!("{}/#/{place}", gateway.url())).await?;
    browser
        .wait_until(
            &format!("all of #/{place}"),
            "return !!document.querySelector('main:not([data-left]) h1') &&
                !document.querySelector('main .loading, main [aria-busy=true]')",
        )
        .await
}

#[tokio::test]
async fn a_newcomer_signs_in_sends_a_mail_and_reads_it() -> anyhow::Result<()> {
    let gateway = Gateway::start_untouched(&[]).await?;
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
    browser.wait_for_text("to ada@example.net").await?;
    browser.wait_for_text("Mail of this tenant is captured").await?;
    browser.screenshot(&picture("inbox")).await?;
    // Routes stand before the default account.
    let no_notice = "return !!document.querySelector('h1') && !document.querySelector('.capture')";
    gateway.relay_to(9).await?;
    let route = json!({"id": "news", "match": {"tags": ["news"]}, "accounts": [{"account": "relay"}]});
    gateway.post("/v1/routes", route).await?;
    go(&browser, &gateway, "messages").await?;
    browser.wait_for_text("Mail of this tenant that no route takes is captured").await?;
    gateway.patch("/v1/routes/news", json!({"match": {}})).await?;
    go(&browser, &gateway, "inbox").await?;
    browser.wait_until("no notice", no_notice).await?;
    gateway.patch("/v1/routes/news", json!({"active": false})).await?;
    go(&browser, &gateway, "messages").await?;
    browser.wait_for_text("Mail of this tenant is captured").await?;
    gateway.patch("/v1/tenants/default", json!({"test": true})).await?;
    go(&browser, &gateway, "inbox").await?;
    browser.wait_until("no notice", no_notice).await?;
    // The session's cookie is out of reach of scripts.
    let cookies = browser.run("return document.cookie").await?;
    assert!(!cookies.to_string().contains("postway_session"), "{cookies}");
    browser.click("Sign out").await?;
    browser.wait_until("the form to sign in", "return !!document.querySelector('input[name=key]')").await
}

#[tokio::test]
async fn a_message_is_watched_as_it_fails_and_is_tried_again() -> anyhow::Result<()> {
    let sink =
        SmtpSink::builder().on(SinkVerb::Rcpt, SinkAction::reply("550 5.1.1 no such user")).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail_with("to-nobody", "nobody@example.net", json!({"subject": "A doomed mail"}))).await?;
    gateway.wait_for("to-nobody", "failed").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages/to-nobody").await?;
    browser
        .wait_until(
            "its own reason",
            "return document.querySelector('.reason')?.innerText === 'no such user'",
        )
        .await?;
    browser.wait_for_text("1 recipient; a subject of 13 characters").await?;
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

/// Counted as it crossed the network: the page, its styles and scripts, with the chart. A second visit brings
/// none of it again.
#[tokio::test]
async fn the_overview_is_drawn_with_less_than_100_kilobytes() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.send(json!({"id": "one", "from": "a@example.com", "to": "b@example.net", "subject": "One", "text": "x"})).await?;
    gateway.wait_for("one", "sent").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    browser.wait_until("the chart", "return !!document.querySelector('main canvas')").await?;
    let bytes = browser
        .run(
            "return performance.getEntries().filter((one) => one.entryType === 'navigation' ||
                one.name.includes('/assets/')).reduce((sum, one) => sum + one.encodedBodySize, 0)",
        )
        .await?;
    let bytes = bytes.as_f64().unwrap_or_default();
    assert!((20_000.0..100_000.0).contains(&bytes), "{bytes} bytes");
    browser.run("location.reload()").await?;
    browser.wait_until("the chart", "return !!document.querySelector('main canvas')").await?;
    let again = "return performance.getEntries().filter((one) => one.name.includes('/assets/'))
        .reduce((sum, one) => sum + one.transferSize, 0)";
    assert_eq!(browser.run(again).await?, 0, "what has the version's name is kept");
    // A tab says which message it shows, and the keys are a key away.
    go(&browser, &gateway, "messages/one").await?;
    browser.wait_until("the title", "return document.title === 'One · Postway'").await?;
    browser
        .run("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }))")
        .await?;
    browser.wait_for_text("search messages").await
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
    browser.click("Suspend").await?;
    eventually("the batch to be suspended", async || {
        let batch = gateway.get("/v1/batches/spring").await?;
        Ok((!batch["suspended_since"].is_null() || batch["suspended"] == true).then_some(()))
    })
    .await
}

/// Presses the button of the dialog that does it, once there is one to press.
async fn submit(browser: &Browser) -> anyhow::Result<()> {
    let press = "const it = document.querySelector('dialog[open] button[type=submit]:enabled'); it?.click(); return !!it";
    browser.wait_until("the dialog's button", press).await
}

#[tokio::test]
async fn a_message_that_waits_is_given_another_time() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let tomorrow = (gateway.now().await? + jiff::SignedDuration::from_hours(24)).as_second() / 60 * 60 + 30;
    let later = json!({"account": "sandbox", "send_at": tomorrow});
    gateway.send(mail_with("later", "ada@example.net", later)).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages/later").await?;
    browser.click("Another time").await?;
    browser
        .wait_until(
            "the time it has",
            "return !!document.querySelector('dialog[open] [type=datetime-local]')?.value",
        )
        .await?;
    submit(&browser).await?;
    browser.wait_for_text("It waits for its new time").await?;
    let moved = gateway.get("/v1/messages/later").await?;
    assert!(text(&moved, "due_at").ends_with(":00.000Z"), "a whole minute: {moved}");
    Ok(())
}

#[tokio::test]
async fn a_tenant_is_deleted_once_its_id_was_typed() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/tenants", json!({"id": "acme", "name": "Acme"})).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "tenants").await?;
    let offered = "return [...document.querySelectorAll('main tbody tr')]
        .filter((row) => /Delete/.test(row.innerText)).map((row) => row.cells[0].innerText.trim()).join()";
    assert_eq!(browser.run(offered).await?, "acme", "the tenant `default` cannot be deleted");
    browser.click("Delete").await?;
    browser.wait_for_text("What waits is deleted as well").await?;
    browser.type_into("dialog input", "ac").await?;
    submit(&browser).await?;
    browser.wait_for_text("this is not acme").await?;
    gateway.get("/v1/tenants/acme").await?;
    browser.type_into("dialog input", "me").await?;
    submit(&browser).await?;
    browser.wait_for_text("The tenant is deleted").await?;
    let (status, _) = gateway.call(Method::GET, "/v1/tenants/acme", None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    browser
        .wait_until(
            "the tenant to leave the lists",
            "return !/acme/i.test(document.querySelector('#app').innerText)",
        )
        .await
}

#[tokio::test]
async fn what_does_not_work_is_not_shown_as_merely_active() -> anyhow::Result<()> {
    let closed = ClosedPort::take();
    let nobody = closed.port();
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(nobody).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(500)]).await?;
    let mailbox = json!({"id": "bounces", "host": "127.0.0.1", "port": nobody, "tls": "none", "username": "u",
        "password": "p", "roles": ["bounces"]});
    gateway.post("/v1/mailboxes", mailbox).await?;
    gateway.send(mail("stuck", "ada@example.net")).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "accounts").await?;
    browser.wait_for_text("circuit open").await?;
    browser.screenshot(&picture("circuit")).await?;
    go(&browser, &gateway, "messages/stuck").await?;
    browser.wait_for_text("(tried again").await?;
    go(&browser, &gateway, "webhooks").await?;
    browser.wait_for_text("calls fail").await?;
    browser.wait_for_text("HTTP 500; tried again").await?;
    browser.screenshot(&picture("webhooks")).await?;
    go(&browser, &gateway, &format!("webhooks/{}", receiver.id)).await?;
    browser.wait_for_text("Calls to it fail: HTTP 500").await?;
    browser.wait_for_text("In whose words").await?;
    browser.wait_for_text("postway").await?;
    go(&browser, &gateway, "mailboxes").await?;
    browser.click("Test").await?;
    browser.wait_for_text("bounces does not work").await?;
    let steps = browser.run("return document.querySelector('dialog').innerText").await?.to_string();
    assert!(!steps.contains("undefined"), "{steps}");
    browser.click("Close").await?;
    browser.click("Delete").await?;
    browser.wait_for_text("Its rules, and all that is kept of mail that came by it, are deleted").await
}

#[tokio::test]
async fn a_list_says_what_holds_each_message() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().times(1, SinkVerb::Dot, SinkAction::Cut.recorded()).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"limits": {"per_day": 1}})).await?;
    gateway.send(mail_with("doubtful", "ada@example.net", json!({"on_doubt": "hold"}))).await?;
    gateway.wait_for("doubtful", "in_doubt").await?;
    gateway.send(mail("too-many", "ada@example.net")).await?;
    let batch = json!({"account": "sandbox", "batch": "spring"});
    gateway.post("/v1/batches/spring/suspend", json!({})).await?;
    gateway.send(mail_with("in-batch", "ada@example.net", batch)).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    browser.wait_for_text("waits for your word").await?;
    go(&browser, &gateway, "messages").await?;
    browser.wait_for_text("in-batch · the batch spring is suspended").await?;
    browser.wait_for_text("too-many · the account relay has used up its limit").await?;
    browser.wait_for_text("it is held until somebody says what became of it").await?;
    let held = "return [...document.querySelectorAll('main tbody .badge')].filter((one) => one.innerText === 'held').length";
    assert_eq!(browser.run(held).await?, 3);
    browser.screenshot(&picture("held")).await
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
