//! Text that strangers choose, in a real browser: a subject, a relay's reply, a file's name, an IMAP folder
//! and its server's words, and the html of a mail that came in. Each is shown as the text it is; no script
//! runs, nothing is fetched, and the page keeps its form.

use postway_e2e::{ALLOW_LOOPBACK, Browser, Gateway, eventually, mail_with, text};
use postway_testkit::{
    HttpSource, ImapAct, ImapSink, SinkAction, SinkVerb, SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use serde_json::{Value, json};

use crate::page::{go, signed_in};

const USER: &str = "hostile@example.com";

/// What breaks out of an attribute or an element, if anything can, and marks the window it runs in.
fn hostile(place: &str, beacon: &str) -> String {
    format!(
        "\"'><img src=\"{beacon}/{place}\" onerror=\"top.pwned='{place}'\"><script>top.pwned='{place}'</script> {place}"
    )
}

/// Fails if anything ran, or if the page is wider than its window.
async fn is_harmless(browser: &Browser, place: &str) -> anyhow::Result<()> {
    // Long enough for a script to have run, had it been let.
    browser.run("return new Promise((done) => setTimeout(done, 300))").await?;
    let ran = browser.run("return String(window.pwned)").await?;
    assert_eq!(ran, "undefined", "a script ran on {place}");
    let injected =
        browser.run("return document.querySelectorAll('#app img[onerror], #app script').length").await?;
    assert_eq!(injected, 0, "text became elements on {place}");
    let is_a_page = browser.run("return !document.body.innerText.includes('There is no such page')").await?;
    assert_eq!(is_a_page, true, "{place} is no page");
    let overflow = browser.run("return document.documentElement.scrollWidth - window.innerWidth").await?;
    assert!(overflow.as_i64() <= Some(0), "{place} is wider than its window by {overflow}");
    Ok(())
}

/// A mail that came in and tries everything.
fn received(beacon: &str) -> String {
    let subject = hostile("inbound-subject", beacon);
    format!(
        "From: \"<b>Eve</b>\" <eve@example.org>\r\nTo: {USER}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n\
         Message-ID: <hostile-1@example.org>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
         <html><head><base href=\"{beacon}/\"><meta http-equiv=refresh content=\"0; url={beacon}/refresh\">\r\n\
         <link rel=stylesheet href=\"{beacon}/style.css\"><link rel=prefetch href=\"{beacon}/prefetch\">\r\n\
         <style>@import url({beacon}/import.css); body {{ background: url({beacon}/background) }}</style></head>\r\n\
         <body onload=\"top.pwned='onload'\"><p>Seen by its reader</p><script>top.pwned='script'</script>\r\n\
         <img src=\"{beacon}/pixel\" onerror=\"top.pwned='img'\"><iframe src=\"{beacon}/frame\"></iframe>\r\n\
         <iframe srcdoc=\"<script>top.pwned='srcdoc'</script>\"></iframe><object data=\"{beacon}/object\"></object>\r\n\
         <svg><animate onbegin=\"top.pwned='svg'\" attributeName=x dur=1s></svg>\r\n\
         <video src=\"{beacon}/video\" autoplay></video><form action=\"{beacon}/form\"><input autofocus \
         onfocus=\"top.pwned='focus'\"></form><a href=\"javascript:top.pwned='link'\" id=link>x</a></body></html>\r\n\
         --b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment;\r\n \
         filename=\"<img src=x onerror=top.pwned='inbound-file'>.txt\"\r\n\r\nHi\r\n--b--\r\n"
    )
}

#[tokio::test]
async fn what_strangers_write_is_shown_as_text_and_does_nothing() -> anyhow::Result<()> {
    let source = HttpSource::start().await;
    let beacon = source.url("").trim_end_matches('/').to_owned();
    let reply = format!("550 5.1.1 {}", hostile("reply", &beacon));
    let sink = SmtpSink::builder().on(SinkVerb::Rcpt, SinkAction::reply(&reply)).start().await;
    let dovecot = Dovecot::start();
    dovecot.append(USER, "INBOX", received(&beacon).as_bytes());
    let words = format!("TAG NO {}\r\n", hostile("imap", &beacon));
    let imap = ImapSink::builder()
        .on("SELECT", ImapAct::say(&words))
        .on("EXAMINE", ImapAct::say(&words))
        .start()
        .await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let mailbox = |id: &str, port: u16, folder: &str| {
        json!({"id": id, "host": "127.0.0.1", "port": port, "tls": "none", "username": USER, "password": PASSWORD,
            "folder": folder, "roles": ["forward"], "start": "beginning", "poll_seconds": 5,
            "description": hostile("description", &beacon)})
    };
    gateway.post("/v1/mailboxes", mailbox("good", dovecot.port(), "INBOX")).await?;
    let folder = hostile("folder", &beacon);
    gateway.post("/v1/mailboxes", mailbox("bad", imap.port(), &folder)).await?;

    // A mail that is refused, with a subject and a file name of that kind, and a subject without a place to
    // break it.
    let name = "<img src=x onerror=top.pwned='file'>.txt";
    let fields = json!({"subject": hostile("subject", &beacon),
        "attachments": [{"filename": name, "content": "aGVsbG8="}]});
    gateway.send(mail_with("hostile", "nobody@example.net", fields)).await?;
    gateway.wait_for("hostile", "failed").await?;
    let endless = format!(
        "From: a@example.com\r\nTo: b@example.net\r\nSubject: \u{202e}{}\r\n\r\nHi\r\n",
        "W".repeat(900)
    );
    let request =
        gateway.request(reqwest::Method::POST, "/v1/messages/raw").header("content-type", "message/rfc822");
    let endless: Value = request.body(endless).send().await?.error_for_status()?.json().await?;
    let endless = text(&endless, "uid").to_owned();
    gateway.wait_for(&endless, "sent").await?;
    let inbound = eventually("the mail that came in", async || {
        let list = gateway.get("/v1/inbound").await?;
        Ok(list["data"].as_array().and_then(|list| list.first()).map(|one| text(one, "id").to_owned()))
    })
    .await?;
    let failing = eventually("the folder's fault", async || {
        let mailbox = gateway.get("/v1/mailboxes/bad").await?;
        Ok(mailbox["error"].as_str().map(str::to_owned))
    })
    .await?;

    let browser = signed_in(&gateway, 1280, 800).await?;
    let shown = async |place: &str, wanted: &[&str]| -> anyhow::Result<()> {
        go(&browser, &gateway, place).await?;
        for text in wanted {
            browser.wait_for_text(text).await?;
        }
        is_harmless(&browser, place).await
    };
    shown("", &["Overview"]).await?;
    shown("messages", &[&hostile("subject", &beacon)]).await?;
    shown("dead-letters", &["Dead letters"]).await?;
    shown("messages/hostile", &[&hostile("subject", &beacon), &hostile("reply", &beacon)]).await?;
    browser.click("Attachments (1)").await?;
    browser.wait_for_text(name).await?;
    is_harmless(&browser, "the attachments of a message").await?;
    shown(&format!("messages/{endless}"), &["WWWW"]).await?;
    shown("inbox", &[]).await?;
    shown("mailboxes", &[&folder, &failing]).await?;
    shown("inbound", &["inbound-subject"]).await?;
    shown(&format!("inbound/{inbound}"), &["inbound-subject"]).await?;
    browser.wait_until("the preview", "return !!document.querySelector('iframe')").await?;
    is_harmless(&browser, "the preview").await?;
    for tab in ["Attachments (1)", "Headers", "Source"] {
        browser.click(tab).await?;
        is_harmless(&browser, tab).await?;
    }
    // Alone in a tab of its own, as somebody may open it.
    browser.open(&format!("{}/v1/inbound/{inbound}/preview", gateway.url())).await?;
    browser.wait_for_text("Seen by its reader").await?;
    let ran =
        browser.run("return [String(window.pwned), location.pathname.startsWith('/v1/inbound/')]").await?;
    assert_eq!(ran, json!(["undefined", true]), "it ran, or led away");
    let fetched: Vec<String> = source.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(Value::from(fetched), json!([]), "these were fetched");
    Ok(())
}
