//! A key that opens nothing is answered alike, whatever is wrong with it: nobody learns from the answer
//! whether it was near, whether it was ever good, or which tenants there are.

use postway_e2e::{Gateway, text};
use reqwest::header::{DATE, HeaderMap};
use serde_json::{Value, json};

/// An answer without what differs by request.
async fn answer(gateway: &Gateway, path: &str, key: &str) -> anyhow::Result<(u16, HeaderMap, Value)> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let answer = client.get(format!("{}{path}", gateway.url())).bearer_auth(key).send().await?;
    let (status, mut headers) = (answer.status().as_u16(), answer.headers().clone());
    headers.remove(DATE);
    headers.remove("x-request-id");
    let mut body: Value = answer.json().await?;
    assert!(body["error"]["request_id"].take().is_string(), "{body}");
    Ok((status, headers, body))
}

/// The same key with its last character changed.
fn near(key: &str) -> String {
    let last = if key.ends_with('A') { 'B' } else { 'A' };
    format!("{}{last}", &key[..key.len() - 1])
}

#[tokio::test]
async fn every_wrong_key_gets_the_same_answer() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    for tenant in ["acme", "gone"] {
        gateway.post("/v1/tenants", json!({"id": tenant, "name": tenant})).await?;
    }
    let make = async |tenant: &str| -> anyhow::Result<(String, String)> {
        let path = format!("/v1/tenants/{tenant}/keys");
        let made = gateway.post(&path, json!({"name": "k", "scopes": ["read"]})).await?;
        Ok((text(&made, "key").to_owned(), text(&made, "id").to_owned()))
    };
    let (good, _) = make("acme").await?;
    let (revoked, id) = make("acme").await?;
    let (orphan, _) = make("gone").await?;
    // Each has been good, so that each may be remembered.
    let client = reqwest::Client::builder().no_proxy().build()?;
    for key in [&good, &revoked, &orphan] {
        let list = client.get(format!("{}/v1/messages", gateway.url())).bearer_auth(key).send().await?;
        assert!(list.status().is_success());
    }
    gateway.call(reqwest::Method::DELETE, &format!("/v1/tenants/acme/keys/{id}"), None).await?;
    gateway.call(reqwest::Method::DELETE, "/v1/tenants/gone?confirm=gone", None).await?;

    let admin = gateway.key();
    let wrong = [near(&admin), near(&good), revoked, orphan, "x".to_owned(), "y".repeat(500)];
    let (status, headers, body) = answer(&gateway, "/v1/messages", &wrong[0]).await?;
    assert_eq!(status, 401, "{body}");
    for key in &wrong[1..] {
        assert_eq!(answer(&gateway, "/v1/messages", key).await?, (status, headers.clone(), body.clone()));
    }
    // Of what there is, and of what there is not.
    for path in ["/v1/messages/no-such-mail", "/v1/tenants/acme", "/v1/tenants/nobody"] {
        assert_eq!(
            answer(&gateway, path, &wrong[0]).await?,
            (status, headers.clone(), body.clone()),
            "{path}"
        );
    }
    Ok(())
}
