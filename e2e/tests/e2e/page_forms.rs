//! Forms for people: what there is can be chosen, what is usual is filled in, and all of it is there as JSON.

use postway_e2e::{ALLOW_LOOPBACK, Browser, Gateway};
use postway_testkit::{SmtpSink, accessibility};
use serde_json::json;

use crate::{
    page::{go, picture, signed_in},
    page_work::choose,
};

async fn is_accessible(browser: &Browser, place: &str) -> anyhow::Result<()> {
    browser.run(&accessibility::script()).await?;
    let found = browser
        .run(
            "return axe.run().then(({ violations }) => violations.map((one) =>
            `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`))",
        )
        .await?;
    assert_eq!(found, json!([]), "{place}");
    Ok(())
}

#[tokio::test]
async fn an_account_is_filled_in_saved_and_tested() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "accounts").await?;
    browser.click("New account").await?;
    browser.type_into("dialog input[name=id]", "relay-7").await?;
    browser.run(&choose("dialog select[name=relay]", "gmail")).await?;
    let host = "return document.querySelector('dialog input[name=host]').value";
    browser
        .wait_until("the host of the preset", &host.replace("return ", "return 'smtp.gmail.com' === "))
        .await?;
    browser.wait_for_text("An app password of the Google account").await?;
    // A fallback is one of the accounts there are.
    browser
        .wait_until(
            "the accounts",
            "return [...document.querySelectorAll('dialog select[name=fallback] option')].some((one) => one.value === 'sandbox')",
        )
        .await?;
    is_accessible(&browser, "the form of an account").await?;
    browser.screenshot(&picture("form-account")).await?;
    // All of it as JSON, which is sent as it stands.
    browser.click("As JSON").await?;
    browser.wait_for_text("All of it as JSON").await?;
    let body =
        json!({"id": "relay-7", "kind": "smtp", "host": "127.0.0.1", "port": sink.port(), "tls": "none"});
    let write = format!(
        "const field = document.querySelector('dialog textarea[name=json]'); field.value = JSON.stringify({body});
        field.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    );
    browser.run(&write).await?;
    is_accessible(&browser, "the JSON of an account").await?;
    browser.click("Create and test").await?;
    browser.wait_for_text("relay-7 works").await?;
    assert_eq!(gateway.get("/v1/accounts/relay-7").await?["port"], sink.port());
    Ok(())
}

#[tokio::test]
async fn events_are_boxes_and_a_rule_is_made_of_rows() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let mailbox = json!({"id": "support", "host": "127.0.0.1", "port": 1, "tls": "none", "username": "u",
        "password": "p", "roles": ["forward"]});
    gateway.post("/v1/mailboxes", mailbox).await?;
    let browser = signed_in(&gateway, 1280, 900).await?;
    go(&browser, &gateway, "webhooks").await?;
    browser.click("New webhook").await?;
    browser.type_into("dialog input[name=url]", "https://app.example.com/hook").await?;
    for event in ["all of them", "bounced", "failed"] {
        let press = format!(
            "[...document.querySelectorAll('dialog .checks label')].find((one) => one.innerText === '{event}').click()"
        );
        browser.run(&press).await?;
    }
    is_accessible(&browser, "the form of a webhook").await?;
    browser.screenshot(&picture("form-webhook")).await?;
    browser.click("Create").await?;
    browser.wait_for_text("The webhook's secret").await?;
    let made = gateway.get("/v1/webhooks").await?;
    let mut events: Vec<&str> =
        made["data"][0]["events"].as_array().into_iter().flatten().filter_map(|one| one.as_str()).collect();
    events.sort_unstable();
    assert_eq!(events, ["email.bounced", "email.failed"]);

    go(&browser, &gateway, "rules").await?;
    browser.click("New rule").await?;
    browser
        .wait_until(
            "the mailboxes",
            "return [...document.querySelectorAll('dialog select[name=mailbox] option')].some((one) => one.value === 'support')",
        )
        .await?;
    browser.run(&choose("dialog select[name=mailbox]", "support")).await?;
    browser.click("Add a condition").await?;
    browser.type_into("dialog .row input[aria-label='What it is compared with']", "order").await?;
    browser.type_into("dialog .row input[aria-label=Addresses]", "orders@example.com").await?;
    browser.click("Add an action").await?;
    browser.run(&choose("dialog .row[aria-label=\"Action 2\"] select", "stop")).await?;
    is_accessible(&browser, "the form of a rule").await?;
    browser.screenshot(&picture("form-rule")).await?;
    browser.click("Create").await?;
    browser.wait_for_text("The rule is made").await?;
    let rule = gateway.get("/v1/rules").await?["data"][0].clone();
    assert_eq!(rule["match"], json!([{"field": "subject", "contains": "order"}]));
    assert_eq!(rule["actions"][0]["to"], json!(["orders@example.com"]), "{rule}");
    assert_eq!(rule["actions"][1]["do"], "stop", "{rule}");
    Ok(())
}
