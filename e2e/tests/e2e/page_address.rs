//! Addresses of the page: each shows the same to whoever opens it, and the browser's way back leads to where
//! one was.

use postway_e2e::{Browser, Gateway, mail_with, text};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::page::{go, signed_in};

/// A gateway with a second tenant that has a message `order-1`.
async fn two_tenants() -> anyhow::Result<Gateway> {
    let gateway = Gateway::start().await?;
    gateway.post("/v1/tenants", json!({"id": "acme", "name": "Acme"})).await?;
    let mail = json!({"id": "order-1", "from": "a@example.com", "to": "b@example.net", "subject": "Acme's order", "text": "x"});
    let request = gateway.request(Method::POST, "/v1/messages").header("X-Tenant", "acme").json(&mail);
    assert_eq!(request.send().await?.status(), StatusCode::ACCEPTED);
    Ok(gateway)
}

/// The address behind `#`, with its values readable.
async fn address(browser: &Browser) -> anyhow::Result<String> {
    let hash = browser.run("return decodeURIComponent(location.hash)").await?;
    Ok(hash.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_address_names_its_tenant_and_each_tab_has_its_own() -> anyhow::Result<()> {
    let gateway = two_tenants().await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    browser.open(&format!("{}/#/t/acme/messages/order-1", gateway.url())).await?;
    browser.wait_for_text("Acme's order").await?;
    // Whoever follows a link, or writes one without a tenant, stays there.
    browser.click("Batches").await?;
    browser.wait_for_text("No batches yet").await?;
    assert_eq!(address(&browser).await?, "#/t/acme/batches");
    go(&browser, &gateway, "messages").await?;
    browser.wait_for_text("Acme's order").await?;
    assert_eq!(address(&browser).await?, "#/t/acme/messages");
    // Another tab looks at another tenant, and this one is read anew.
    browser.run("document.cookie = 'postway_tenant=default; Path=/'; location.reload()").await?;
    browser.wait_for_text("Acme's order").await?;
    // Frames and downloads are told by a cookie: it is this tab's again once somebody turns to it.
    browser.run("dispatchEvent(new Event('focus'))").await?;
    let cookies = browser.run("return document.cookie").await?.to_string();
    assert!(cookies.contains("postway_tenant=acme"), "{cookies}");
    Ok(())
}

#[tokio::test]
async fn a_link_to_another_tenant_says_so_to_a_tenants_key() -> anyhow::Result<()> {
    let gateway = two_tenants().await?;
    let made =
        gateway.post("/v1/tenants/default/keys", json!({"name": "reader", "scopes": ["read"]})).await?;
    let browser = Browser::start(1280, 800).await?;
    browser.open(&format!("{}/#/t/acme/messages/order-1", gateway.url())).await?;
    browser.type_into("input[name=key]", text(&made, "key")).await?;
    browser.click("Sign in").await?;
    browser.wait_for_text("Another tenant's page").await?;
    let shown = browser.run("return document.body.innerText").await?.to_string();
    assert!(!shown.contains("Acme's order"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn back_leads_to_the_page_of_the_list_that_one_came_from() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let mails: Vec<Value> = (0..120)
        .map(|n| json!({"id": format!("mail-{n:03}"), "from": "a@example.com", "to": "b@example.net", "subject": format!("Mail {n:03}"), "text": "x"}))
        .collect();
    gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages").await?;
    browser.run("scrollTo(0, document.body.scrollHeight)").await?;
    browser.click("Next").await?;
    browser.wait_for_text("page 2").await?;
    browser.wait_until("the head of the new page", "return scrollY === 0").await?;
    let second = "return document.querySelector('main tbody a')?.innerText.trim()";
    let shown = browser.run(second).await?;
    let link = address(&browser).await?;
    assert!(link.contains("cursor="), "{link}");
    browser.run("document.querySelector('main tbody a').click()").await?;
    browser.wait_for_text("What happened").await?;
    browser.run("history.back()").await?;
    browser.wait_for_text("page 2").await?;
    browser.wait_until("the same mails", &format!("{second} === {shown}")).await?;
    browser.click("Previous").await?;
    browser.wait_for_text("page 1").await?;
    // A colleague who opens it sees the same.
    let other = signed_in(&gateway, 1280, 800).await?;
    other.open(&format!("{}/{link}", gateway.url())).await?;
    other.wait_until("the same mails", &format!("{second} === {shown}")).await?;
    other.click("Previous").await?;
    other.wait_for_text("page 1").await
}

#[tokio::test]
async fn times_in_an_address_are_the_same_everywhere() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages?since=2026-11-16T11:20:00Z").await?;
    let field = "return document.querySelector('[name=since]').value.length";
    assert_eq!(browser.run(field).await?, "2026-11-16T11:20".len());
    let set = "const field = document.querySelector('[name=until]'); field.value = '2026-11-17T08:00';
        field.dispatchEvent(new Event('input', { bubbles: true }))";
    browser.run(set).await?;
    browser
        .wait_until(
            "the time in the address",
            r"return /until=[^&]*Z/.test(decodeURIComponent(location.hash))",
        )
        .await?;
    assert!(address(&browser).await?.contains("since=2026-11-16T11:20:00.000Z"));
    Ok(())
}

#[tokio::test]
async fn the_tab_that_is_open_is_part_of_the_address() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    gateway.send(mail_with("one", "ada@example.net", json!({"account": "sandbox"}))).await?;
    gateway.wait_for("one", "sent").await?;
    let browser = signed_in(&gateway, 1280, 800).await?;
    go(&browser, &gateway, "messages/one").await?;
    browser.click("Headers").await?;
    browser.wait_until("the tab in the address", "return location.hash.includes('tab=headers')").await?;
    browser.run("location.reload()").await?;
    let open = "return document.querySelector('main [role=tab][aria-selected=true]')?.innerText.trim() === 'Headers'";
    browser.wait_until("the same tab", open).await
}
