//! Signing in from a browser, and the files of the dashboard.

use std::time::{Duration, Instant};

use axum::{
    body::Body,
    http::{HeaderName, Method, Request},
};
use postway_api::RequestOrigin;
use postway_domain::{MessageState, RecipientStatus};
use serde_json::json;

use crate::support::{Answer, Api, KEY};

struct Browser<'a> {
    api: &'a Api,
    cookie: String,
    csrf: String,
}

async fn sign_in(api: &Api, key: &str) -> Answer {
    let request = Request::post("/v1/session").header("host", "mail.example.org");
    api.ask(request.body(Body::from(json!({"key": key}).to_string())).unwrap()).await
}

impl<'a> Browser<'a> {
    async fn open(api: &'a Api, key: &str) -> Self {
        let answer = sign_in(api, key).await;
        let csrf = answer.ok(200)["csrf_token"].as_str().unwrap().to_owned();
        let set = answer.headers["set-cookie"].to_str().unwrap();
        assert!(
            set.contains("HttpOnly") && set.contains("SameSite=Strict") && set.contains("Secure"),
            "{set}"
        );
        let cookie = set.split(';').next().unwrap().to_owned();
        assert!(cookie.starts_with("__Host-postway_session=") && set.contains("Path=/"), "{set}");
        Self { api, cookie, csrf }
    }

    async fn ask(&self, method: Method, path: &str, more: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("cookie", &self.cookie);
        for (name, value) in more {
            request = request.header(name.parse::<HeaderName>().unwrap(), *value);
        }
        self.api.ask(request.body(Body::from(body.to_owned())).unwrap()).await
    }
}

#[tokio::test]
async fn a_session_stands_for_its_key_and_changes_need_its_token() {
    let api = Api::start().await;
    let key = api.key("other", json!({"name": "desk", "scopes": ["read", "manage"]})).await;
    let browser = Browser::open(&api, &key).await;
    let who = browser.ask(Method::GET, "/v1/session", &[], "").await.ok(200);
    assert_eq!((who["tenant"].as_str(), who["admin"].as_bool()), (Some("other"), Some(false)));
    assert_eq!(who["scopes"], json!(["read", "manage"]));
    assert_eq!(who["csrf_token"], browser.csrf.as_str());

    let entry = json!({"address": "ada@example.net"}).to_string();
    let without = browser.ask(Method::POST, "/v1/suppressions", &[], &entry).await;
    without.refused(403, "forbidden");
    let token = [("x-csrf-token", browser.csrf.as_str())];
    assert_eq!(browser.ask(Method::POST, "/v1/suppressions", &token, &entry).await.status, 201);
    // It is the key's, not the admin's.
    browser.ask(Method::GET, "/v1/tenants", &[], "").await.refused(403, "forbidden");
    browser.ask(Method::POST, "/v1/messages", &token, "{}").await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_session_ends_with_its_key_its_time_and_by_signing_out() {
    let api = Api::start().await;
    let made = api.post("/v1/tenants/other/keys", json!({"name": "desk", "scopes": ["read"]})).await.ok(201);
    let browser = Browser::open(&api, made["key"].as_str().unwrap()).await;
    let admin = Browser::open(&api, KEY).await;
    assert_eq!(browser.ask(Method::GET, "/v1/stats", &[], "").await.status, 200);
    let id = made["id"].as_str().unwrap();
    assert_eq!(api.delete(&format!("/v1/tenants/other/keys/{id}")).await, 204);
    browser.ask(Method::GET, "/v1/stats", &[], "").await.refused(401, "unauthorized");

    let left = admin.ask(Method::DELETE, "/v1/session", &[], "").await;
    assert!(left.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    api.clock.forward_ms(12 * 60 * 60 * 1000);
    admin.ask(Method::GET, "/v1/stats", &[], "").await.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_copied_cookie_ends_with_the_sign_out_on_every_node() {
    let api = Api::start().await;
    let other_node = api.beside(None);
    let key = api.key("other", json!({"scopes": ["read"]})).await;
    for key in [KEY, &key] {
        let browser = Browser::open(&api, key).await;
        let copied = Browser { api: &other_node, cookie: browser.cookie.clone(), csrf: String::new() };
        let stays = Browser::open(&api, key).await;
        for session in [&browser, &copied, &stays] {
            session.ask(Method::GET, "/v1/stats", &[], "").await.ok(200);
        }
        let left = browser.ask(Method::DELETE, "/v1/session", &[], "").await;
        assert_eq!(left.status, 204);
        let set = left.headers["set-cookie"].to_str().unwrap();
        assert!(set.starts_with("__Host-postway_session=;") && set.contains("Max-Age=0"), "{set}");
        browser.ask(Method::GET, "/v1/stats", &[], "").await.refused(401, "unauthorized");
        // The other node has seen it go on a moment ago, and believes that for as long as it believes a key.
        let began = Instant::now();
        while copied.ask(Method::GET, "/v1/stats", &[], "").await.status != 401 {
            assert!(began.elapsed() < Duration::from_secs(30), "the copy goes on");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stays.ask(Method::GET, "/v1/stats", &[], "").await.ok(200);
        // Again, and with nothing to sign out of.
        assert_eq!(browser.ask(Method::DELETE, "/v1/session", &[], "").await.status, 204);
    }
    assert_eq!(api.ask(Request::delete("/v1/session").body(Body::empty()).unwrap()).await.status, 204);
}

#[tokio::test]
async fn a_key_that_is_bound_to_networks_signs_in_from_there_alone() {
    let api = Api::start().await;
    let key = api.key("other", json!({"scopes": ["read"], "allow_ips": ["10.0.0.0/8"]})).await;
    let from = async |address: &str| {
        let origin = RequestOrigin::direct(address.parse().unwrap());
        let request = Request::post("/v1/session").extension(origin);
        api.ask(request.body(Body::from(json!({"key": key}).to_string())).unwrap()).await
    };
    let refused = from("192.0.2.1").await;
    refused.refused(403, "forbidden");
    assert!(!refused.headers.contains_key("set-cookie"));
    from("10.1.2.3").await.ok(200);
    sign_in(&api, &key).await.refused(403, "forbidden");
}

#[tokio::test]
async fn wrong_keys_broken_cookies_and_other_sites_open_nothing() {
    let api = Api::start().await;
    sign_in(&api, "not a key").await.refused(401, "unauthorized");
    assert_eq!(
        api.call("POST", "/v1/session", json!({"kee": KEY}).to_string()).await.wrong_fields(),
        ["key"]
    );
    let foreign = Request::post("/v1/session").header("sec-fetch-site", "cross-site");
    let foreign = foreign.body(Body::from(json!({"key": KEY}).to_string())).unwrap();
    api.ask(foreign).await.refused(403, "forbidden");
    let browser = Browser::open(&api, KEY).await;
    let mut broken = browser.cookie.clone();
    broken.pop();
    let planted = browser.cookie.replace("__Host-", "");
    for cookie in
        [broken.as_str(), &planted, "__Host-postway_session=AAAA", "__Host-postway_session=", "other=1"]
    {
        let request = Request::get("/v1/stats").header("cookie", cookie);
        api.ask(request.body(Body::empty()).unwrap()).await.refused(401, "unauthorized");
    }
    // Another session's token is of no use.
    let other = Browser::open(&api, KEY).await;
    let token = [("x-csrf-token", other.csrf.as_str())];
    browser.ask(Method::POST, "/v1/messages", &token, "{}").await.refused(403, "forbidden");
}

#[tokio::test]
async fn an_admins_page_shows_the_tenant_it_chose() {
    let api = Api::start().await;
    api.stored("m-1", MessageState::Ready, &[("ada@example.net", RecipientStatus::Pending)]).await;
    let mut browser = Browser::open(&api, KEY).await;
    assert_eq!(browser.ask(Method::GET, "/v1/messages/m-1", &[], "").await.status, 200);
    // A neighbour under the same domain can plant a cookie, but none of this name.
    browser.cookie.push_str("; postway_tenant=other");
    assert_eq!(browser.ask(Method::GET, "/v1/messages/m-1", &[], "").await.status, 200);
    browser.cookie.push_str("; __Host-postway_tenant=other");
    browser.ask(Method::GET, "/v1/messages/m-1", &[], "").await.refused(404, "not_found");
    let named = [("x-tenant", "default")];
    assert_eq!(browser.ask(Method::GET, "/v1/messages/m-1", &named, "").await.status, 200);
}

#[tokio::test]
async fn the_page_is_served_with_a_policy_and_every_part_it_names() {
    let api = Api::start().await;
    let open = async |path: &str| api.ask(Request::get(path).body(Body::empty()).unwrap()).await;
    let page = open("/").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    let parts: Vec<&str> = text.split(['"', '\'']).filter(|part| part.starts_with("/assets/")).collect();
    assert!(parts.len() >= 2, "{text}");
    for part in parts {
        assert_eq!(open(part).await.status, 200, "{part}");
    }
    open("/assets/none.js").await.refused(404, "not_found");
}

#[tokio::test]
async fn the_overview_tells_what_is_stuck() {
    let api = Api::start().await;
    api.stored("m-1", MessageState::Ready, &[("ada@example.net", RecipientStatus::Pending)]).await;
    api.fan_out().await;
    let overview = api.get("/v1/overview").await.ok(200);
    assert_eq!(overview["by_status"]["ready"], 1);
    assert_eq!(overview["rates"]["accepted"], 0.02);
    assert_eq!(overview["last_hour"].as_array().unwrap().len(), 60);
    assert_eq!(overview["last_hour"][59]["accepted"], 1);
    assert_eq!(overview["time_in_queue"], json!({"p50_ms": null, "p95_ms": null, "sample": 0}));
    let found = api.get("/v1/messages?subject=HELLO").await.ok(200);
    let all = api.get("/v1/messages").await.ok(200);
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    let subject = all["data"][0]["subject"].as_str().unwrap().to_lowercase();
    assert_eq!(found["data"].as_array().unwrap().len(), usize::from(subject.contains("hello")));
}

#[tokio::test]
async fn a_page_that_was_open_goes_on_after_the_secret_key_was_replaced() {
    let key = |byte: u8| postway_domain::secret::SecretKey::from_bytes(&[byte; 32]).unwrap();
    let old = Api::with_secret_key(key(7)).await;
    let Browser { cookie, csrf, .. } = Browser::open(&old, KEY).await;
    let new = Api::with_secret_key(key(8).with_previous(key(7))).await;
    let browser = Browser { api: &new, cookie, csrf };
    let entry = json!({"address": "ada@example.net"}).to_string();
    let token = [("x-csrf-token", browser.csrf.as_str())];
    assert_eq!(browser.ask(Method::POST, "/v1/suppressions", &token, &entry).await.status, 201);
    let forged = [("x-csrf-token", "AAAA")];
    browser.ask(Method::POST, "/v1/suppressions", &forged, &entry).await.refused(403, "forbidden");
}
