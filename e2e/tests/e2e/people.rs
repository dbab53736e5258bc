//! People sign in to the page of the real binary, in a real browser: with a passkey of a virtual
//! authenticator, and at a real OpenID provider.
//!
//! Browsers offer passkeys to pages with a host name only, so the page is opened on `localhost`.

use std::net::TcpListener;

use anyhow::Context;
use postway_e2e::{Browser, Gateway, text};
use postway_testkit::OidcServer;
use reqwest::Method;
use serde_json::json;

/// A port that was free a moment ago, for a server that must be found there again.
fn port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[tokio::test]
async fn a_person_is_invited_takes_a_passkey_and_signs_in_with_it_after_a_crash() -> anyhow::Result<()> {
    let port = port()?;
    let (listen, page) = (format!("127.0.0.1:{port}"), format!("http://localhost:{port}"));
    let env = [("POSTWAY_HTTP_LISTEN", listen.as_str())];
    let mut gateway = Gateway::idle()?;
    gateway.launch(&env).await?;
    gateway.post("/v1/users", json!({"name": "ada", "role": "operator", "tenants": ["default"]})).await?;
    let invited = gateway.post("/v1/users/ada/invitation", json!({})).await?;

    let browser = Browser::start(1280, 800).await?;
    browser.give_authenticator().await?;
    browser.open(&format!("{page}{}", text(&invited, "path"))).await?;
    browser.wait_for_text("Welcome, ada").await?;
    browser.screenshot(&crate::page::picture("invitation")).await?;
    browser.click("Use a passkey").await?;
    browser.wait_for_text("Overview").await?;
    assert_eq!(gateway.get("/v1/users/ada").await?["passkeys"], 1);

    // What was acknowledged opens after a crash, and the old session goes on until it is ended.
    gateway.kill().await?;
    gateway.launch(&env).await?;
    browser.open(&format!("{page}/#/passkeys")).await?;
    browser.wait_for_text("First passkey").await?;
    browser.screenshot(&crate::page::picture("passkeys")).await?;
    // One device has one passkey for one person.
    browser.click("New passkey").await?;
    browser.type_into("dialog input[name=name]", "second").await?;
    browser.click("Add").await?;
    browser.wait_for_text("This device has a passkey of yours already").await?;

    gateway.call(Method::DELETE, "/v1/users/ada/sessions", None).await?;
    browser.open(&format!("{page}/?again#/sign-in")).await?;
    browser.wait_for_text("Sign in with a passkey").await?;
    browser.screenshot(&crate::page::picture("sign_in_of_people")).await?;
    browser.click("Sign in with a passkey").await?;
    browser.wait_for_text("Overview").await?;
    let sessions = gateway.get("/v1/users/ada/sessions").await?;
    let ways: Vec<&str> =
        sessions["data"].as_array().context("sessions")?.iter().map(|one| text(one, "way")).collect();
    assert_eq!(ways, ["passkey"]);

    // Without a passkey of the person the page says so, and signs nobody in.
    let stranger = Browser::start(1280, 800).await?;
    stranger.give_authenticator().await?;
    stranger.open(&format!("{page}/#/sign-in")).await?;
    stranger.click("Sign in with a passkey").await?;
    stranger.wait_for_text("The device gave no passkey").await?;
    Ok(())
}

#[tokio::test]
async fn a_person_signs_in_at_a_provider_which_says_what_it_may_do() -> anyhow::Result<()> {
    let (port, provider) = (port()?, OidcServer::shared());
    let (listen, page) = (format!("127.0.0.1:{port}"), format!("http://localhost:{port}"));
    let (issuer, redirect) = (provider.url(""), format!("{page}/v1/session/oidc/callback"));
    let mut gateway = Gateway::idle()?;
    gateway
        .launch(&[
            ("POSTWAY_HTTP_LISTEN", &listen),
            ("POSTWAY_OIDC_ISSUER", &issuer),
            ("POSTWAY_OIDC_CLIENT_ID", "person"),
            ("POSTWAY_OIDC_CLIENT_SECRET", "person-secret"),
            ("POSTWAY_OIDC_NAME", "Acme"),
            ("POSTWAY_OIDC_SCOPES", "mail"),
            ("POSTWAY_OIDC_REDIRECT_URL", &redirect),
            ("POSTWAY_OIDC_ROLE_CLAIM", "groups"),
            ("POSTWAY_OIDC_ROLES", "mail-admins=admin,mail-ops=operator"),
            ("POSTWAY_OIDC_TENANTS_CLAIM", "mail_tenants"),
            ("POSTWAY_OIDC_JUST_IN_TIME", "true"),
        ])
        .await?;
    let browser = Browser::start(1280, 800).await?;
    browser.open(&format!("{page}/#/sign-in")).await?;
    browser.click("Sign in with Acme").await?;
    browser.type_into("input[name=login]", "grace").await?;
    browser.type_into("input[name=password]", "anything").await?;
    browser.click("Sign-in").await?;
    browser.click("Continue").await?;
    browser.wait_for_text("Overview").await?;
    let users = gateway.get("/v1/users").await?;
    let user = &users["data"][0];
    assert_eq!(
        (&user["role"], &user["subject"], &user["tenants"]),
        (&json!("operator"), &json!("grace"), &json!(["default"])),
        "{users:#}"
    );
    // A way in that the provider could not close is not given.
    let refused = browser
        .run(
            "const session = await (await fetch('/v1/session')).json();
            const headers = {'X-CSRF-Token': session.csrf_token};
            return (await fetch('/v1/passkeys/challenge', {method: 'POST', headers})).status",
        )
        .await?;
    assert_eq!(refused, 403);
    let audit = gateway.get("/v1/audit?limit=20").await?;
    assert!(audit.to_string().contains("\"oidc\""), "{audit:#}");
    // The provider signs her out, and the page that was open is closed.
    let sign_out = async |login: &str| {
        let said = format!("{login} {page}/v1/session/oidc/logout");
        let client = reqwest::Client::builder().no_proxy().build()?;
        client.post(provider.url("/sign-out")).body(said).send().await?.text().await
    };
    assert_eq!(sign_out("heidi").await?, "signed out");
    assert_eq!(gateway.get("/v1/users/grace/sessions").await?["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(sign_out("grace").await?, "signed out");
    assert_eq!(gateway.get("/v1/users/grace/sessions").await?["data"], json!([]));
    browser.wait_for_text("Sign in with a name").await?;
    Ok(())
}
