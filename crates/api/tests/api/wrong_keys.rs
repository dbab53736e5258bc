//! Wrong keys: how many an address may try, who is admitted all the same, and what the store is asked.

use std::time::{Duration, Instant};

use axum::{body::Body, http::Request};
use postway_api::RequestOrigin;
use postway_domain::{ApiKey, KeyDigest, KeyScope};
use postway_store::{DirectoryStore, record::DirectoryChange};
use serde_json::json;

use crate::support::{Answer, Api, KEY};

const WAIT_MAX: Duration = Duration::from_secs(30);

/// Asks with a key from an address.
async fn from(api: &Api, origin: RequestOrigin, key: &str) -> Answer {
    let request = Request::get("/v1/stats").header("x-api-key", key).extension(origin);
    api.ask(request.body(Body::empty()).unwrap()).await
}

fn at(address: &str) -> RequestOrigin {
    RequestOrigin::direct(address.parse().unwrap())
}

/// Sends wrong keys from an address until the next one is not checked, and returns their number.
async fn exhaust(api: &Api, origin: RequestOrigin) -> usize {
    for tried in 0..1_000 {
        let answer = from(api, origin, &format!("pw_wrong_{tried}")).await;
        if answer.status == 429 {
            answer.refused(429, "too_many_requests");
            let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
            return tried;
        }
        answer.refused(401, "unauthorized");
    }
    panic!("wrong keys are not bounded");
}

#[tokio::test]
async fn many_wrong_keys_from_an_address_are_not_looked_up_any_more() {
    let api = Api::start().await;
    let (known, unknown) = (api.key("other", json!({})).await, api.key("other", json!({})).await);
    from(&api, at("192.0.2.1"), &known).await.ok(200);
    let tried = exhaust(&api, at("192.0.2.1")).await;
    assert!((10..20).contains(&tried), "{tried}");
    // A valid key that was never used here cannot be distinguished from a wrong one without asking the store.
    from(&api, at("192.0.2.1"), &unknown).await.refused(429, "too_many_requests");
    from(&api, at("192.0.2.1"), "no key at all").await.refused(429, "too_many_requests");
    // Who shares the address and was let in before is not locked out, and neither is anybody elsewhere.
    from(&api, at("192.0.2.1"), &known).await.ok(200);
    from(&api, at("192.0.2.1"), KEY).await.ok(200);
    from(&api, at("192.0.2.2"), &unknown).await.ok(200);
    from(&api, at("192.0.2.1"), &unknown).await.ok(200);
}

#[tokio::test]
async fn an_address_of_ipv6_is_its_network_and_a_shared_one_is_nobody() {
    let api = Api::start().await;
    exhaust(&api, at("2001:db8::1")).await;
    from(&api, at("2001:db8::ffff:2"), "pw_x").await.refused(429, "too_many_requests");
    from(&api, at("2001:db8:0:1::1"), "pw_x").await.refused(401, "unauthorized");
    let proxy = RequestOrigin { is_shared: true, ..at("192.0.2.9") };
    for origin in [at("127.0.0.1"), at("::1"), proxy] {
        for tried in 0..30 {
            from(&api, origin, &format!("pw_{tried}")).await.refused(401, "unauthorized");
        }
    }
}

#[tokio::test]
async fn signing_in_and_other_doors_share_the_count() {
    let api = Api::start().await;
    let origin = at("192.0.2.1");
    let sign_in = async |key: &str| {
        let request = Request::post("/v1/session").extension(origin);
        api.ask(request.body(Body::from(json!({"key": key}).to_string())).unwrap()).await
    };
    exhaust(&api, origin).await;
    sign_in("pw_guess").await.refused(429, "too_many_requests");
    let door =
        Request::get("/compat/resend/emails").header("authorization", "Bearer pw_guess").extension(origin);
    let answer = api.ask(door.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 429);
    assert!(answer.headers.contains_key("retry-after"));
    let verify = Request::post("/v1/tokens/verify").header("x-api-key", "pw_guess").extension(origin);
    api.ask(verify.body(Body::from("{}")).unwrap()).await.refused(429, "too_many_requests");
    sign_in(KEY).await.ok(200);
}

#[tokio::test]
async fn the_same_wrong_key_is_refused_from_memory_for_a_moment_only() {
    let api = Api::start().await;
    let text = "pw_made_elsewhere";
    api.as_key(text, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    let key = ApiKey {
        id: "made".to_owned(),
        tenant: "other".parse().unwrap(),
        name: "made on another node".to_owned(),
        digest: KeyDigest::of(text.as_bytes()),
        scopes: vec![KeyScope::Read],
        networks: Vec::new(),
        restrictions: None,
        created_at: postway_domain::Time::from_millis(0),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        scram: None,
        created_by: None,
    };
    let began = Instant::now();
    api.store.change(DirectoryChange::CreateKey(key), None).await.unwrap();
    let first = api.as_key(text, "GET", "/v1/stats", "").await.status;
    // On a machine so slow that the moment has passed, nothing is shown.
    assert!(first == 401 || began.elapsed() > Duration::from_secs(1), "the store was asked again");
    while api.as_key(text, "GET", "/v1/stats", "").await.status != 200 {
        assert!(began.elapsed() < WAIT_MAX, "the key never opens");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
