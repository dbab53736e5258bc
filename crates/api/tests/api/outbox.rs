//! The calls about the outbox; its sources are tested in the intake.

use serde_json::json;

use crate::support::Api;

#[tokio::test]
async fn without_sources_there_is_nothing_to_list_and_nothing_to_verify() {
    let api = Api::start().await;
    assert_eq!(api.get("/v1/outbox").await.ok(200)["data"], json!([]));
    let body = json!({"token": "AAAA", "path": "/activate"});
    api.post("/v1/tokens/verify", body).await.refused(404, "not_found");
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_named() {
    let api = Api::start().await;
    let wrong = async |body| api.post("/v1/tokens/verify", body).await.wrong_fields();
    assert_eq!(wrong(json!({})).await, ["token", "path"]);
    let body = json!({"token": 1, "path": "/activate", "code": "0".repeat(17), "consume": "yes", "x": 1});
    assert_eq!(wrong(body).await, ["token", "code", "consume", "x"]);
}

#[tokio::test]
async fn whoever_verifies_too_often_is_told_to_wait() {
    let api = Api::start().await;
    let body = json!({"token": "AAAA", "path": "/activate"}).to_string();
    let mut answer = api.call("POST", "/v1/tokens/verify", body.clone()).await;
    // The bucket fills while we ask, a little.
    for _ in 0..10_000 {
        if answer.status.as_u16() == 429 {
            break;
        }
        answer = api.call("POST", "/v1/tokens/verify", body.clone()).await;
    }
    answer.refused(429, "too_many_requests");
    assert_eq!(answer.headers["retry-after"], "1");
    // Nobody else waits with them.
    api.in_tenant("other", "POST", "/v1/tokens/verify", body).await.refused(404, "not_found");
}
