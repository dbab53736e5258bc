//! Domains on the real binary, against a name server: what is missing, what to paste, and since when it is right.

use std::net::Ipv4Addr;

use postway_e2e::{Gateway, mail_with, text};
use postway_testkit::{NameServer, accessibility};
use serde_json::json;

use crate::page::{go, picture, signed_in};

#[tokio::test]
async fn a_domain_is_set_up_as_the_page_says_and_then_right() -> anyhow::Result<()> {
    let dns = NameServer::start().await?;
    let server = dns.address().to_string();
    let gateway = Gateway::start_with(&[("POSTWAY_DNS_SERVER", &server)]).await?;
    let key = json!({"domain": "shop.example", "selector": "s1", "algorithm": "ed25519"});
    let key = gateway.post("/v1/dkim", key).await?;
    // The overview of a tenant without mail is an invitation to send some.
    gateway.send(mail_with("one", "ada@example.net", json!({"account": "sandbox"}))).await?;
    gateway.wait_for("one", "sent").await?;
    let browser = signed_in(&gateway, 1280, 900).await?;
    // A domain that was never checked is checked at once.
    go(&browser, &gateway, "domains").await?;
    browser.wait_for_text("DKIM: missing").await?;
    browser.wait_for_text("v=spf1 mx ~all").await?;
    browser.wait_for_text(text(&key, "dns_record")).await?;
    browser.run(&accessibility::script()).await?;
    let found = browser.run("return axe.run().then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`))").await?;
    assert_eq!(found, json!([]));
    browser.screenshot(&picture("domains-missing")).await?;
    let overview = gateway.get("/v1/overview").await?;
    assert_eq!(overview["domains"][0]["domain"], "shop.example", "{overview:#}");
    go(&browser, &gateway, "").await?;
    browser.wait_for_text("shop.example is not set up in DNS").await?;

    // Just what the findings say is published.
    let checked = gateway.get("/v1/domains").await?["data"][0].clone();
    for finding in checked["findings"].as_array().into_iter().flatten() {
        let record = &finding["record"];
        if record["type"] == "TXT" && finding["state"] == "missing" {
            dns.txt(text(record, "name"), text(record, "value"));
        }
    }
    dns.mx("shop.example", "mail.shop.example");
    dns.a("mail.shop.example", Ipv4Addr::new(192, 0, 2, 1));
    go(&browser, &gateway, "domains").await?;
    browser.click("Check now").await?;
    browser.wait_for_text("Right since").await?;
    browser.screenshot(&picture("domains-right")).await?;
    let overview = gateway.get("/v1/overview").await?;
    assert_eq!(overview["domains"], json!([]));
    // The command line has the same eyes.
    let doctor = gateway.cli(&["doctor", "domain", "shop.example", "--dns", &server]).await?;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(doctor.out.contains("absent   mta-sts"), "{doctor:?}");
    Ok(())
}
