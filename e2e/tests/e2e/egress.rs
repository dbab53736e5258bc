//! Mail and notifications leave through proxies and from a chosen address; a wrong password of a proxy stops
//! its account with its own words, and appears nowhere.

use postway_e2e::{Gateway, Receiver, eventually, mail, text};
use postway_testkit::{EgressProxy, ProxyManner, SmtpSink, SourceReply};
use serde_json::json;

const PASSWORD: &str = "quiet-harbour-77";

#[tokio::test]
async fn an_account_sends_through_its_proxy_and_waits_while_that_refuses_it() -> anyhow::Result<()> {
    for proxy in [
        EgressProxy::socks5(ProxyManner::Password("shop", PASSWORD)).await,
        EgressProxy::connect(ProxyManner::Password("shop", PASSWORD)).await,
    ] {
        let sink = SmtpSink::start().await;
        let gateway = Gateway::start().await?;
        let settings = json!({"proxy": proxy.url_of("shop"), "proxy_password": "wrong-harbour"});
        gateway.relay_with(sink.port(), settings).await?;
        let tested = gateway.post("/v1/accounts/relay/test", json!({})).await?;
        assert_eq!(tested["ok"], false);
        assert!(
            text(&tested["steps"][0], "detail").contains("refuses the user name and password"),
            "{tested:#}"
        );

        gateway.send(mail("waits", "ada@example.net")).await?;
        let account = gateway.wait_until_open("relay").await?;
        assert_eq!(text(&account["circuit"], "code"), "connect_denied", "{account:#}");
        assert_eq!(
            (account["proxy_password_set"].as_bool(), account.get("proxy_password")),
            (Some(true), None)
        );
        let message = gateway.message("waits").await?;
        assert_eq!(text(&message, "status"), "ready", "the mail waits and uses no retry: {message:#}");

        gateway.patch("/v1/accounts/relay", json!({"proxy_password": PASSWORD})).await?;
        let message = gateway.wait_for("waits", "sent").await?;
        assert_eq!((sink.mails().len(), !proxy.targets().is_empty()), (1, true));
        let tested = gateway.post("/v1/accounts/relay/test", json!({})).await?;
        assert!(text(&tested["steps"][0], "detail").contains("through the"), "{tested:#}");

        let shown = format!("{message}{}{}", gateway.get("/v1/accounts/relay").await?, gateway.printed());
        for secret in [PASSWORD, "wrong-harbour"] {
            assert!(!shown.contains(secret), "a password of the proxy was shown");
        }
        // Another proxy does not get the password that is stored.
        let moved = json!({"proxy": "socks5://shop@127.0.0.1:9"});
        let refused = gateway.patch("/v1/accounts/relay", moved).await.unwrap_err().to_string();
        assert!(refused.contains("proxy_password"), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn webhooks_take_the_proxy_of_the_installation() -> anyhow::Result<()> {
    let proxy = EgressProxy::connect(ProxyManner::Password("ops", PASSWORD)).await;
    let url = proxy.url_of(&format!("ops:{PASSWORD}"));
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[("POSTWAY_EGRESS_NOTIFICATION_PROXY", &url)]).await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    gateway.send(mail("told", "ada@example.net")).await?;
    gateway.wait_until_reported("told").await?;
    assert!(receiver.calls()?.iter().any(|call| call.kind() == "email.sent"));
    assert!(!proxy.targets().is_empty(), "the calls went through it");
    assert!(!gateway.printed().contains(PASSWORD));
    Ok(())
}

#[tokio::test]
async fn a_source_address_that_the_machine_does_not_have_stops_the_account_in_words() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"source_address": "127.0.0.5"})).await?;
    gateway.send(mail("from-five", "ada@example.net")).await?;
    gateway.wait_for("from-five", "sent").await?;
    gateway.patch("/v1/accounts/relay", json!({"source_address": "192.0.2.77"})).await?;
    gateway.send(mail("from-nowhere", "ada@example.net")).await?;
    let account = gateway.wait_until_open("relay").await?;
    assert_eq!(text(&account["circuit"], "code"), "source_address");
    assert!(text(&account["circuit"], "reason").contains("192.0.2.77 is no address of this machine"));
    gateway.patch("/v1/accounts/relay", json!({"source_address": null})).await?;
    eventually("the mail", async || Ok((sink.mails().len() == 2).then_some(()))).await
}
