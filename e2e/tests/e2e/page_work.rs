//! Working with the page: nothing dangerous is chosen for anybody, nothing typed is lost unasked, and the
//! focus stays where it was.

use postway_e2e::{ALLOW_LOOPBACK, Browser, Gateway, mail_with};
use reqwest::Method;
use serde_json::json;

use crate::page::{go, picture, signed_in};

/// As WebDriver writes the key.
const ESCAPE: &str = "\u{e00c}";

/// Chooses an option of a select.
pub(crate) fn choose(css: &str, option: &str) -> String {
    format!(
        "const field = document.querySelector('{css}'); field.value = '{option}';
        field.dispatchEvent(new Event('change', {{ bubbles: true }}))"
    )
}

#[tokio::test]
async fn nothing_is_chosen_and_what_cannot_be_undone_is_typed() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/accounts/sandbox/suspend", json!({})).await?;
    for n in 0..3 {
        let account = json!({"account": "sandbox"});
        gateway.send(mail_with(&format!("mail-{n}"), "ada@example.net", account)).await?;
    }
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages").await?;
    browser.click("Act on all of these…").await?;
    browser.wait_for_text("No filter is set").await?;
    assert_eq!(browser.run("return document.querySelector('dialog select').value").await?, "");
    let is_offered = "return !document.querySelector('dialog .acts button:last-child').disabled";
    assert_eq!(browser.run(is_offered).await?, false, "nothing is chosen yet");
    browser.run(&choose("dialog select", "cancel")).await?;
    browser.wait_for_text("3 of 3 messages").await?;
    assert_eq!(browser.run(is_offered).await?, false, "the number is to be typed first");
    browser.screenshot(&picture("bulk-plan")).await?;
    browser.type_into("dialog input", "3").await?;
    browser.wait_until("the button to be offered", is_offered).await?;
    browser.type_into("dialog input", ESCAPE).await?;
    browser.wait_until("the dialog to close", "return !document.querySelector('dialog[open]')").await?;
    assert_eq!(gateway.message("mail-0").await?["status"], "ready", "nothing was done");

    // Two of them are selected.
    browser.run("[...document.querySelectorAll('main tbody input[type=checkbox]')].slice(0, 2).forEach((box) => box.click())").await?;
    browser.click("Act on 2 selected…").await?;
    browser.run(&choose("dialog select", "cancel")).await?;
    browser.wait_for_text("2 of 2 messages").await?;
    browser.type_into("dialog input", "2").await?;
    browser.wait_until("the button to be offered", is_offered).await?;
    browser.run("document.querySelector('dialog .acts button:last-child').click()").await?;
    browser.wait_for_text("2 done, 0 left as they were").await?;
    browser.click("Done").await?;
    let stats = gateway.get("/v1/stats").await?;
    assert_eq!(
        (&stats["by_status"]["cancelled"], &stats["by_status"]["ready"]),
        (&json!(2), &json!(1)),
        "{stats}"
    );
    go(&browser, &gateway, "bulk-actions").await?;
    browser.wait_for_text("2 selected").await?;
    browser.wait_for_text("finished").await?;
    browser.screenshot(&picture("bulk-actions")).await
}

#[tokio::test]
async fn the_focus_comes_back_and_what_was_typed_is_not_thrown_away_unasked() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "contacts").await?;
    let press = "const it = [...document.querySelectorAll('main button')].find((one) => /^New/.test(one.innerText.trim()));
        it.focus(); it.click()";
    let focused = "return /^New/.test(document.activeElement.innerText.trim())";
    browser.run(press).await?;
    browser.type_into("dialog input", ESCAPE).await?;
    browser.wait_until("the focus to come back", focused).await?;

    browser.run(press).await?;
    browser.type_into("dialog input", "half a name").await?;
    browser.type_into("dialog input", ESCAPE).await?;
    browser.wait_for_text("What you typed is not saved").await?;
    browser.click("Go on editing").await?;
    let kept = "return document.querySelector('dialog[open] input')?.value === 'half a name'";
    browser.wait_until("what was typed", kept).await?;
    // A link is a way to lose it, too.
    browser.run("location.hash = '#/audit'").await?;
    browser.wait_for_text("What you typed is not saved").await?;
    browser.click("Go on editing").await?;
    browser.wait_until("what was typed", kept).await?;
    assert_eq!(browser.run("return location.hash.endsWith('contacts')").await?, true);
    browser.type_into("dialog input", ESCAPE).await?;
    browser.click("Throw it away").await?;
    browser.wait_until("the focus to come back", focused).await
}

#[tokio::test]
async fn a_changed_template_is_kept_and_its_old_preview_marked() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let template = json!({"subject": "Hello", "html": "<p>Hi</p>"});
    gateway.call(Method::PUT, "/v1/templates/welcome", Some(template)).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "templates/welcome").await?;
    browser.wait_until("the preview", "return !!document.querySelector('main iframe')").await?;
    browser.type_into("#source-subject", " {{ name").await?;
    browser
        .wait_until("the old preview to be marked", "return !!document.querySelector('.stale iframe')")
        .await?;
    browser.click("Messages").await?;
    browser.wait_for_text("What you typed is not saved").await?;
    browser.click("Go on editing").await?;
    let kept = "return document.querySelector('#source-subject')?.value === 'Hello {{ name'";
    browser.wait_until("what was typed", kept).await?;
    browser.click("Messages").await?;
    browser.click("Throw it away").await?;
    browser.wait_for_text("Act on all of these").await
}

/// Nothing is cut off on a small screen, with rows in every list that has buttons.
#[tokio::test]
async fn lists_with_buttons_fit_a_small_screen() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let mailbox = json!({"id": "customer-service", "host": "imap.customers.example.com", "port": 993, "tls": "implicit",
        "username": "customer-service@customers.example.com", "password": "p", "roles": ["bounces", "forward"]});
    gateway.post("/v1/mailboxes", mailbox).await?;
    let rule = json!({"id": "invoices-of-the-northern-branch", "mailbox": "customer-service",
        "match": [{"field": "subject", "contains": "invoice"}, {"field": "from", "contains": "@suppliers.example.com"}],
        "actions": [{"do": "forward", "to": ["accounting@customers.example.com"]}, {"do": "stop"}],
        "follow_up": {"every_hours": 24}});
    gateway.post("/v1/rules", rule).await?;
    let contact = json!({"name": "Northern Branch Office", "addresses": ["northern-branch-office@customers.example.com"]});
    gateway.post("/v1/contacts", contact).await?;
    let account = json!({"id": "northern-relay", "kind": "smtp", "host": "smtp.customers.example.com", "port": 587,
        "limits": {"per_minute": 100, "per_hour": 2000, "per_day": 10000}});
    gateway.post("/v1/accounts", account).await?;
    let browser: Browser = signed_in(&gateway, 1024, 768).await?;
    for place in ["mailboxes", "rules", "contacts", "accounts", "webhooks", "tenants"] {
        go(&browser, &gateway, place).await?;
        let cut = browser
            .run(
                "return [document.documentElement, ...document.querySelectorAll('.scroll')]
                    .map((one) => one.scrollWidth - one.clientWidth).filter((more) => more > 1)",
            )
            .await?;
        assert_eq!(cut, json!([]), "#/{place} is wider than the window");
    }
    Ok(())
}
