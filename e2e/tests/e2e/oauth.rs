//! Signing in with tokens: consent at the command line, mail that leaves by it, a refusal in the provider's
//! words, and a death with a new token in hand.

use postway_e2e::{Gateway, files_below, holds, mail};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use serde_json::{Value, json};

const USER: &str = "shop@example.com";

fn ok(answer: Value) -> SourceReply {
    SourceReply::ok(answer.to_string()).header("content-type", "application/json")
}

fn refused(error: &str, description: &str) -> SourceReply {
    let body = json!({"error": error, "error_description": description}).to_string().into_bytes();
    SourceReply::Whole { status: 400, headers: Vec::new(), body }
}

fn token(number: u32) -> SourceReply {
    ok(json!({"access_token": format!("access-token-{number}"), "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": format!("refresh-token-{number}")}))
}

fn grant(provider: &HttpSource) -> Value {
    json!({"grant": "refresh_token", "client_id": "app-1", "token_url": provider.url("/token"), "scope": "mail"})
}

async fn sink(token: &str) -> SmtpSink {
    SmtpSink::builder().auth(USER, token).auth_mechanisms("XOAUTH2").start().await
}

async fn account(gateway: &Gateway, sink: &SmtpSink, grant: Value) -> anyhow::Result<()> {
    let settings = json!({"username": USER, "allow_plaintext_auth": true, "oauth": grant});
    gateway.relay_with(sink.port(), settings).await
}

/// The forms that were posted to the provider.
fn forms(provider: &HttpSource) -> Vec<String> {
    let asked = provider.requests();
    asked.into_iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect()
}

#[tokio::test]
async fn a_person_consents_at_the_command_line_and_mail_leaves_with_tokens() -> anyhow::Result<()> {
    let provider = HttpSource::start().await;
    let consent = json!({"device_code": "device-1", "user_code": "ABCD-EFGH", "interval": 0,
        "verification_uri": "https://provider.example/device"});
    provider.serve("/device", ok(consent));
    let pending = refused("authorization_pending", "not yet");
    provider.serve_in_turn("/token", vec![pending, token(1), token(2)]);
    let relay = sink("access-token-2").await;
    let mut gateway = Gateway::start_with(&[("POSTWAY_LOG", "debug")]).await?;
    account(&gateway, &relay, grant(&provider)).await?;
    gateway.send(mail("early", "ada@example.net")).await?;
    let waiting = gateway.wait_until_open("relay").await?;
    assert_eq!(waiting["circuit"]["code"], "oauth_settings");
    assert!(waiting["circuit"]["reason"].to_string().contains("accounts authorize"), "{waiting:#}");
    assert_eq!(provider.requests().len(), 0, "without consent nothing is asked for");

    let device = provider.url("/device");
    let ran = gateway.cli(&["accounts", "authorize", "relay", "--device-url", &device]).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("https://provider.example/device") && ran.err.contains("ABCD-EFGH"),
        "{}",
        ran.err
    );
    gateway.wait_for("early", "sent").await?;
    assert_eq!(relay.mails()[0].user.as_deref(), Some(USER));
    assert!(forms(&provider)[3].contains("refresh_token=refresh-token-1"), "{:?}", forms(&provider));

    assert!(gateway.terminate().await?.success());
    for secret in ["access-token-2", "refresh-token-1", "refresh-token-2"] {
        for file in files_below(&gateway.data_dir())? {
            assert!(!holds(&std::fs::read(&file)?, secret), "{} has {secret}", file.display());
        }
        assert!(!gateway.log().contains(secret) && !ran.out.contains(secret) && !ran.err.contains(secret));
    }
    // What was given is still good after a restart: nobody is asked.
    let asked = provider.requests().len();
    gateway.launch(&[]).await?;
    gateway.send(mail("late", "ada@example.net")).await?;
    gateway.wait_for("late", "sent").await?;
    assert_eq!(provider.requests().len(), asked);
    Ok(())
}

#[tokio::test]
async fn a_refused_token_holds_the_mail_with_the_words_of_the_provider() -> anyhow::Result<()> {
    let provider = HttpSource::start().await;
    provider.serve("/token", refused("invalid_grant", "AADSTS700082: the refresh token has expired"));
    let relay = sink("access-token-1").await;
    let gateway = Gateway::start().await?;
    let mut grant = grant(&provider);
    grant["refresh_token"] = "refresh-token-0".into();
    account(&gateway, &relay, grant).await?;
    gateway.send(mail("held", "ada@example.net")).await?;
    let open = gateway.wait_until_open("relay").await?;
    assert_eq!(open["circuit"]["code"], "oauth_refused");
    assert!(open["circuit"]["reason"].to_string().contains("AADSTS700082"), "{open:#}");
    assert_eq!(relay.ledger().connections, 0);
    provider.serve("/token", token(1));
    gateway.patch("/v1/accounts/relay", json!({"oauth": {"refresh_token": "refresh-token-9"}})).await?;
    gateway.wait_for("held", "sent").await?;
    Ok(())
}

/// The provider takes the old refresh token again, as large ones do: nothing is lost but the time of a turn.
#[tokio::test]
async fn a_death_with_a_new_token_in_hand_delays_the_mail_and_loses_none() -> anyhow::Result<()> {
    let provider = HttpSource::start().await;
    provider.serve_in_turn("/token", vec![token(1), token(2)]);
    let relay = sink("access-token-2").await;
    let mut gateway = Gateway::idle()?;
    gateway.launch(&[("FAILPOINTS", "oauth_after_answer=1*return")]).await?;
    let mut grant = grant(&provider);
    grant["refresh_token"] = "refresh-token-0".into();
    account(&gateway, &relay, grant).await?;
    gateway.send(mail("struck", "ada@example.net")).await?;
    assert!(!gateway.ended().await?.success(), "the failpoint was not met");
    gateway.launch(&[]).await?;
    gateway.wait_for("struck", "sent").await?;
    assert_eq!(relay.mails().len(), 1);
    let forms = forms(&provider);
    assert!(forms.len() == 2 && forms[1].contains("refresh_token=refresh-token-0"), "{forms:?}");
    Ok(())
}
