//! The questions that people bring to the page: what needs me, how did today's mail go, where is that one mail.

use postway_e2e::{Browser, Gateway, mail_with};
use postway_testkit::SmtpSink;
use serde_json::json;

use crate::page::{go, signed_in};

/// The figure of a tile of the overview, as it is read.
async fn figure(browser: &Browser, name: &str, wanted: &str) -> anyhow::Result<()> {
    let script = format!(
        "const tile = [...document.querySelectorAll('.tile')].find((one) => one.querySelector('span').innerText === '{name}');
        return tile?.querySelector('strong').innerText === '{wanted}'"
    );
    browser.wait_until(&format!("{wanted} {name}"), &script).await
}

#[tokio::test]
async fn every_figure_leads_to_just_its_messages() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().rcpt("nobody@", "550 5.1.1 no such user").start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    for n in 0..3 {
        gateway.send(mail_with(&format!("good-{n}"), "ada@example.net", json!({}))).await?;
    }
    gateway.send(mail_with("bad", "nobody@example.net", json!({}))).await?;
    let several = json!({"to": ["ada@example.net", "nobody@example.net", "bob@example.net"]});
    gateway.send(mail_with("partly", "ada@example.net", several)).await?;
    gateway.post("/v1/batches/spring/suspend", json!({})).await?;
    for n in 0..2 {
        gateway.send(mail_with(&format!("held-{n}"), "ada@example.net", json!({"batch": "spring"}))).await?;
    }
    for (id, status) in
        [("good-0", "sent"), ("good-1", "sent"), ("good-2", "sent"), ("bad", "failed"), ("partly", "sent")]
    {
        gateway.wait_for(id, status).await?;
    }
    let browser = signed_in(&gateway, 1440, 900).await?;
    for (name, wanted) in
        [("accepted", "7"), ("sent", "4"), ("failed", "1"), ("bounced", "0"), ("waiting", "2")]
    {
        go(&browser, &gateway, "").await?;
        figure(&browser, name, wanted).await?;
        let press = format!(
            "[...document.querySelectorAll('.tile')].find((one) => one.querySelector('span').innerText === '{name}').click()"
        );
        browser.run(&press).await?;
        // The list's own count, and its rows.
        let script = format!(
            "return document.querySelector('main h1')?.innerText === 'Messages' &&
                document.querySelector('main .title .muted')?.innerText.trim() === '{wanted}' &&
                document.querySelectorAll('main tbody tr').length === {wanted}"
        );
        browser.wait_until(&format!("a list of {wanted} {name}"), &script).await?;
    }
    go(&browser, &gateway, "messages?status=sent").await?;
    browser.wait_for_text("1 of 3 failed").await?;
    // What holds mail is named, with how much it holds and what to press.
    go(&browser, &gateway, "").await?;
    browser.wait_for_text("The batch spring is suspended").await?;
    browser.wait_for_text("2 messages wait").await?;
    browser.click("Activate").await?;
    gateway.wait_for("held-0", "sent").await?;
    browser
        .wait_until(
            "nothing to be held",
            "return !/is suspended/.test(document.querySelector('main').innerText)",
        )
        .await
}

#[tokio::test]
async fn a_daily_quota_that_is_nearly_or_all_used_up_needs_somebody() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"daily_quota": {"messages": 5}})).await?;
    for n in 0..4 {
        gateway.send(mail_with(&format!("mail-{n}"), "ada@example.net", json!({}))).await?;
    }
    let browser = signed_in(&gateway, 1440, 900).await?;
    go(&browser, &gateway, "").await?;
    browser.wait_for_text("80 % of the daily quota is used").await?;
    browser.wait_for_text("4 of 5 messages").await?;
    gateway.send(mail_with("mail-4", "ada@example.net", json!({}))).await?;
    browser.wait_for_text("The daily quota is used up").await?;
    browser.wait_for_text("mail is refused until").await?;
    let (status, _, metrics) = gateway.bytes("/metrics").await?;
    let metrics = String::from_utf8(metrics)?;
    for percent in ["80", "100"] {
        let counted = format!("postway_quota_warnings_total{{percent=\"{percent}\"}} 1");
        anyhow::ensure!(status == 200 && metrics.contains(&counted), "no {counted} in {metrics}");
    }
    // A wider one takes the warning away.
    gateway.patch("/v1/tenants/default", json!({"daily_quota": {"messages": 500}})).await?;
    browser
        .wait_until("no warning", "return !/daily quota/.test(document.querySelector('main').innerText)")
        .await
}

#[tokio::test]
async fn a_list_announces_what_is_new_and_follows_what_is_shown() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/accounts/sandbox/suspend", json!({})).await?;
    let sandbox = json!({"account": "sandbox"});
    gateway.send(mail_with("first", "ada@example.net", sandbox.clone())).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages").await?;
    browser.wait_for_text("first").await?;
    gateway.send(mail_with("second", "bob@example.net", sandbox)).await?;
    browser.wait_for_text("1 new: show").await?;
    let rows = "return document.querySelectorAll('main tbody tr').length";
    assert_eq!(browser.run(rows).await?, 1, "nothing is pushed away");
    gateway.post("/v1/accounts/sandbox/activate", json!({})).await?;
    browser
        .wait_until(
            "the state of the row",
            "return document.querySelector('main tbody .badge')?.innerText === 'sent'",
        )
        .await?;
    browser.click("1 new: show").await?;
    browser.wait_until("both", &format!("{rows} === 2")).await
}

#[tokio::test]
async fn one_field_finds_by_whatever_one_has_and_half_a_word_is_no_mistake() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let mails = [
        ("order-1", "ada.lovelace@mail.example", "Your invoice"),
        ("order-2", "bob@example.net", "Welcome aboard"),
    ];
    for (id, to, subject) in mails {
        gateway.send(mail_with(id, to, json!({"account": "sandbox", "subject": subject}))).await?;
    }
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages").await?;
    let only = |subject: &str| {
        format!(
            "const rows = [...document.querySelectorAll('main tbody tr')];
            return rows.length === 1 && rows[0].innerText.includes('{subject}') && !document.querySelector('.fault')"
        )
    };
    for (typed, chip, subject) in [
        ("love", "words", "Your invoice"),
        ("ada.lovelace@", "words", "Your invoice"),
        ("ada.lovelace@mail.example", "to", "Your invoice"),
        ("@example.net", "at", "Welcome aboard"),
        ("aboard", "words", "Welcome aboard"),
        ("order-1", "words", "Your invoice"),
        ("id:order-2", "id", "Welcome aboard"),
    ] {
        let set = format!(
            "const field = document.querySelector('[name=q]'); field.value = '{typed}';
            field.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        );
        browser.run(&set).await?;
        browser.wait_until(&format!("`{typed}` to be found"), &only(subject)).await?;
        let chips = format!(
            "return [...document.querySelectorAll('.chips .chip')].some((one) => one.innerText.startsWith('{chip} '))"
        );
        browser.wait_until(&format!("what `{typed}` was taken for"), &chips).await?;
    }
    Ok(())
}

/// In a timeline the clock and the step, in facts the clock and how long ago, and the zone at the foot.
#[tokio::test]
async fn times_are_told_as_the_clock_shows_them() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let tomorrow = (gateway.now().await? + jiff::SignedDuration::from_hours(24)).to_string();
    gateway
        .send(mail_with("later", "ada@example.net", json!({"account": "sandbox", "send_at": tomorrow})))
        .await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages?status=scheduled").await?;
    let due =
        "return [...document.querySelectorAll('main th')].some((one) => one.innerText.trim() === 'Due')";
    assert_eq!(browser.run(due).await?, true);
    go(&browser, &gateway, "messages/later").await?;
    let shown = r"const text = document.querySelector('main').innerText;
        return /\d\d:\d\d:\d\d\.\d{3}/.test(text) && /\+\d+ ms|\+[\d.]+ s/.test(text) && /\d\d:\d\d:\d\d \(in 2[34] h\)/.test(text)";
    browser.wait_until("clock, step and span", shown).await?;
    browser
        .wait_until("the zone", "return /times in \\S+/.test(document.querySelector('footer').innerText)")
        .await
}
