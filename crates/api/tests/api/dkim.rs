//! Signing keys.

use postway_store::CatalogueStore;
use serde_json::{Value, json};

use crate::support::Api;

async fn with_key() -> Api {
    let api = Api::start().await;
    let key = json!({"domain": "Example.com", "selector": "s1", "algorithm": "ed25519"});
    api.post("/v1/dkim", key).await.ok(201);
    api
}

#[tokio::test]
async fn a_key_is_made_with_the_record_to_publish() {
    let api = Api::start().await;
    let answer = api.post("/v1/dkim", json!({"domain": "example.com", "algorithm": "ed25519"})).await;
    assert_eq!(answer.headers["location"], "/v1/dkim/example.com/pw202311");
    let made = answer.ok(201);
    assert_eq!((&made["selector"], &made["active"]), (&json!("pw202311"), &json!(true)));
    assert_eq!(made["dns_name"], "pw202311._domainkey.example.com");
    assert!(made["dns_record"].as_str().unwrap().starts_with("v=DKIM1; k=ed25519; p="), "{made}");
    assert_eq!(api.get("/v1/dkim/example.com/pw202311").await.ok(200), made);
    let stored = api.store.dkim_keys(None, Some("example.com")).await.unwrap();
    let private = format!("{:?}", stored[0].private);
    assert!(!String::from_utf8_lossy(&answer.body).contains("private") && private.contains("***"));
}

#[tokio::test]
async fn a_domain_outside_ascii_is_taken_in_either_spelling() {
    let api = Api::start().await;
    let key = json!({"domain": "EXÄMPLE.com", "selector": "s1", "algorithm": "ed25519"});
    let made = api.post("/v1/dkim", key.clone()).await.ok(201);
    assert_eq!(
        (&made["domain"], &made["domain_unicode"]),
        (&json!("xn--exmple-cua.com"), &json!("exämple.com"))
    );
    assert_eq!(made["dns_name"], "s1._domainkey.xn--exmple-cua.com");
    for path in ["/v1/dkim/ex%C3%A4mple.com/s1", "/v1/dkim/xn--exmple-cua.com/s1"] {
        assert_eq!(api.get(path).await.ok(200), made);
    }
    let found = api.get("/v1/dkim?domain=ex%C3%A4mple.com").await.ok(200);
    assert_eq!(found["data"], json!([made]));
    api.post("/v1/dkim", key).await.refused(409, "conflict");
    let wrong = api.post("/v1/dkim", json!({"domain": "xn--ä.com", "algorithm": "ed25519"})).await;
    assert_eq!(wrong.wrong_fields(), ["domain"]);
}

#[tokio::test]
async fn rsa_is_what_is_made_where_nothing_is_said() {
    let api = Api::start().await;
    let made = api.post("/v1/dkim", json!({"domain": "example.com", "selector": "r"})).await.ok(201);
    assert_eq!(made["algorithm"], "rsa");
    let record = made["dns_record"].as_str().unwrap();
    assert!(record.starts_with("v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0B") && record.len() > 400, "{record}");
}

#[tokio::test]
async fn a_domain_may_have_several_keys_of_different_names() {
    let api = with_key().await;
    let taken = json!({"domain": "example.com", "selector": "S1", "algorithm": "ed25519"});
    api.post("/v1/dkim", taken).await.refused(409, "conflict");
    for (domain, selector) in [("example.com", "s2"), ("example.org", "s1")] {
        let key = json!({"domain": domain, "selector": selector, "algorithm": "ed25519"});
        api.post("/v1/dkim", key).await.ok(201);
    }
    let names = |list: Value| -> Vec<String> {
        let keys = list["data"].as_array().unwrap().iter();
        keys.map(|key| key["dns_name"].as_str().unwrap().replace("._domainkey.", "@")).collect()
    };
    let all = names(api.get("/v1/dkim").await.ok(200));
    assert_eq!(all, ["s1@example.com", "s2@example.com", "s1@example.org"]);
    assert_eq!(names(api.get("/v1/dkim?domain=EXAMPLE.org.").await.ok(200)), ["s1@example.org"]);
}

#[tokio::test]
async fn a_key_is_suspended_activated_and_deleted() {
    let api = with_key().await;
    let path = "/v1/dkim/example.com/s1";
    assert_eq!(api.post(&format!("{path}/suspend"), json!({})).await.ok(200)["active"], false);
    assert_eq!(api.post(&format!("{path}/suspend"), json!({})).await.ok(200)["active"], false);
    assert_eq!(api.get(path).await.ok(200)["active"], false);
    assert_eq!(api.post("/v1/dkim/EXAMPLE.COM/S1/activate", json!({})).await.ok(200)["active"], true);
    assert_eq!(api.delete(path).await, 204);
    assert_eq!(api.delete(path).await, 404);
    api.get(path).await.refused(404, "not_found");
    api.post(&format!("{path}/activate"), json!({})).await.refused(404, "not_found");
    let audit = api.get("/v1/audit").await.ok(200);
    let told: Vec<&Value> = audit["data"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(told, ["dkim.delete", "dkim.activate", "dkim.suspend", "dkim.create"]);
    assert_eq!(audit["data"][0]["target"], "example.com/s1");
}

#[tokio::test]
async fn names_that_dns_does_not_take_are_refused() {
    let api = Api::start().await;
    for (body, field) in [
        (json!({}), "domain"),
        (json!({"domain": "not a domain"}), "domain"),
        (json!({"domain": "xn--bücher.example"}), "domain"),
        (json!({"domain": "a;d=b.example"}), "domain"),
        (json!({"domain": "example.com", "selector": "a_b"}), "selector"),
        (json!({"domain": "example.com", "selector": "a".repeat(64)}), "selector"),
        (json!({"domain": "example.com", "algorithm": "dsa"}), "algorithm"),
        (json!({"domain": "example.com", "bits": 1024}), "bits"),
    ] {
        assert_eq!(api.post("/v1/dkim", body.clone()).await.wrong_fields(), [field], "{body}");
    }
    assert_eq!(api.get("/v1/dkim").await.ok(200)["data"], json!([]));
}
