//! Every view of the page, with something in it: accessible and whole in both themes and three sizes, and what belongs
//! together linked. The pictures are kept in the target folder, under `page/views`.

use postway_e2e::{ALLOW_LOOPBACK, Browser, Gateway, Receiver, text};
use postway_testkit::{SmtpSink, SourceReply, accessibility};
use reqwest::Method;
use serde_json::{Value, json};

use crate::page::{go, picture, signed_in};

/// The sizes of a desk, a small laptop and a phone.
const SIZES: [(&str, u32, u32); 3] = [("desk", 1440, 900), ("laptop", 1024, 768), ("phone", 390, 844)];
const THEMES: [&str; 2] = ["light", "dark"];
/// The address of each view; `{webhook}` stands for the id of the one there is.
const VIEWS: [&str; 35] = [
    "",
    "send",
    "messages",
    "messages?q=order%3DA-17",
    "messages?q=nobody%20wrote%20this",
    "messages/order-17",
    "messages/captured",
    "inbox",
    "dead-letters",
    "bulk-actions",
    "accounts",
    "accounts/relay",
    "routes",
    "batches",
    "templates",
    "templates/welcome",
    "recipients",
    "suppressions",
    "suppressions?address=gone%40example.net",
    "domains",
    "signing-keys",
    "mailboxes",
    "mailboxes/desk",
    "rules",
    "inbound",
    "contacts",
    "webhooks",
    "webhooks/{webhook}",
    "outbox",
    "settings",
    "tenants",
    "tenants/default",
    "nodes",
    "audit?action=account.",
    "no-such-page",
];

/// A gateway with something in every list, and the id of its webhook.
async fn filled() -> anyhow::Result<(Gateway, SmtpSink, Receiver)> {
    let sink = SmtpSink::builder().start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    gateway.relay_to(sink.port()).await?;
    let template = json!({"subject": "Welcome {{ name }}", "html": "<p>Hello {{ name }}</p>", "text": "Hello {{ name }}",
        "sample": {"name": "Ada"}});
    let (status, made) = gateway.call(Method::PUT, "/v1/templates/welcome", Some(template)).await?;
    anyhow::ensure!(status.is_success(), "{made}");
    for (path, body) in [
        (
            "/v1/mailboxes",
            json!({"id": "desk", "host": "127.0.0.1", "port": 1, "tls": "none", "username": "u",
            "password": "p", "roles": ["forward", "bounces"]}),
        ),
        (
            "/v1/rules",
            json!({"id": "invoices", "mailbox": "desk", "match": [{"field": "subject", "contains": "invoice"}],
            "actions": [{"do": "forward", "to": ["accounting@example.com"]}]}),
        ),
        ("/v1/contacts", json!({"name": "Northern branch", "addresses": ["branch@example.com"]})),
        ("/v1/suppressions", json!({"addresses": ["gone@example.net"], "reason": "hard_bounce"})),
        ("/v1/batches/spring/suspend", json!({})),
    ] {
        gateway.post(path, body).await?;
    }
    gateway
        .send(json!({"id": "order-17", "from": "Shop <shop@example.com>", "to": "ada@example.net",
            "account": "relay", "template": {"name": "welcome", "variables": {"name": "Ada"}}, "external_id": "crm 4711",
            "tags": ["welcome"],
            "metadata": {"order": "A-17", "deep": {"x": 1}}}))
        .await?;
    let mail = json!({"id": "captured", "from": "shop@example.com", "to": "bob@example.net", "account": "sandbox",
        "subject": "FREE!!! Act now", "html": "<p>Hello <img src=\"https://example.com/a.png\"></p>"});
    gateway.send(mail).await?;
    let held = json!({"id": "held", "from": "shop@example.com", "to": "cy@example.net", "batch": "spring",
        "subject": "Spring", "text": "x"});
    gateway.send(held).await?;
    gateway.wait_for("order-17", "sent").await?;
    gateway.wait_until_reported("order-17").await?;
    Ok((gateway, sink, receiver))
}

/// What axe-core finds, and what is wider than the window.
async fn faults(browser: &Browser) -> anyhow::Result<Value> {
    browser
        .run(
            "return axe.run().then(({ violations }) => [
                ...violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`),
                ...(document.documentElement.scrollWidth > innerWidth + 1 ? ['it scrolls sideways'] : []),
                ...(/undefined|NaN|\\[object/.test(document.querySelector('main').innerText) ? ['it says undefined'] : []),
            ])",
        )
        .await
}

#[tokio::test]
async fn every_view_is_accessible_in_both_themes_and_three_sizes() -> anyhow::Result<()> {
    let (gateway, _sink, receiver) = filled().await?;
    let judge = accessibility::script();
    let mut wrong = Vec::new();
    for (size, width, height) in SIZES {
        let browser = signed_in(&gateway, width, height).await?;
        for view in VIEWS {
            let place = view.replace("{webhook}", &receiver.id);
            go(&browser, &gateway, &place).await?;
            browser.run(&judge).await?;
            let name: String =
                view.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            for theme in THEMES {
                let turn = format!(
                    "document.documentElement.dataset.theme = '{theme}'; dispatchEvent(new Event('themechange'))"
                );
                browser.run(&turn).await?;
                let found = faults(&browser).await?;
                if found != json!([]) {
                    wrong.push(format!("{size}, {theme}, #/{place}: {found}"));
                }
                browser.screenshot(&picture(&format!("views/{size}-{theme}-{name}"))).await?;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn what_belongs_together_is_linked() -> anyhow::Result<()> {
    let (gateway, _sink, receiver) = filled().await?;
    let browser = signed_in(&gateway, 1280, 900).await?;
    go(&browser, &gateway, "messages/order-17").await?;
    for (words, address) in [
        ("welcome, version 1", "#/t/default/templates/welcome?version=1"),
        ("order=A-17", "#/t/default/messages?metadata=order%3DA-17"),
        ("crm 4711", "#/t/default/messages?q=external%3A%22crm+4711%22"),
        ("relay", "#/t/default/accounts/relay"),
    ] {
        let script = format!(
            "return [...document.querySelectorAll('main a')].some((one) => one.textContent.trim() === {} &&
                decodeURIComponent(one.getAttribute('href')).replaceAll('+', ' ') ===
                decodeURIComponent({}).replaceAll('+', ' '))",
            json!(words),
            json!(address)
        );
        browser.wait_until(&format!("a link `{words}` to {address}"), &script).await?;
    }
    browser.click("order=A-17").await?;
    browser.wait_for_text("Welcome Ada").await?;
    go(&browser, &gateway, &format!("webhooks/{}", receiver.id)).await?;
    browser.wait_for_text("The last hour").await?;
    browser.wait_for_text("half answer within").await?;
    browser.wait_for_text("order-17").await?;
    let delivery = gateway.get(&format!("/v1/webhooks/{}/deliveries?limit=1", receiver.id)).await?;
    assert!(delivery["data"][0]["subject"].is_string(), "{delivery}");
    go(&browser, &gateway, "mailboxes").await?;
    browser.click("desk").await?;
    browser.wait_for_text("came in").await?;
    browser.wait_for_text("invoices").await?;
    go(&browser, &gateway, "suppressions").await?;
    browser.type_into("input[name=address]", "nobody@example.net").await?;
    browser.wait_for_text("Nothing keeps mail from this address").await?;
    go(&browser, &gateway, "suppressions?address=gone%40example.net").await?;
    browser.wait_for_text("gone@example.net").await?;
    go(&browser, &gateway, "audit?action=account.").await?;
    browser.wait_for_text("account.create").await?;
    let all = browser.run("return document.querySelector('main').innerText.includes('template')").await?;
    assert_eq!(all, false, "what was done to templates is not asked for");
    Ok(())
}

/// The blocks of texts are filled minutes later; until then, and without them, a search finds the same.
#[tokio::test]
async fn a_search_by_metadata_reference_and_part_of_an_address_finds_its_mail() -> anyhow::Result<()> {
    let (gateway, _sink, _receiver) = filled().await?;
    for (search, found) in [
        ("order=A-17", vec!["order-17"]),
        ("crm 4711", vec!["order-17"]),
        ("da@exam", vec!["order-17"]),
        ("#welcome", vec!["order-17"]),
        ("order=A-18", vec![]),
    ] {
        let list = gateway.cli(&["messages", "list", search, "--json"]).await?;
        anyhow::ensure!(list.code == Some(0), "{search}: {}", list.err);
        assert_eq!(list.out.contains("order-17"), !found.is_empty(), "{search}: {}", list.out);
        for id in found {
            assert!(list.out.contains(id), "{search}: {}", list.out);
        }
    }
    let list = gateway.cli(&["messages", "list", "--metadata", "order=A-17", "--json"]).await?;
    assert!(list.out.contains("order-17"), "{}", list.out);
    let shown = gateway.get("/v1/messages?q=order%3DA-17").await?;
    assert_eq!(text(&shown["data"][0], "id"), "order-17");
    Ok(())
}
