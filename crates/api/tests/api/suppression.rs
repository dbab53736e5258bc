//! Suppression lists: added, checked, imported, exported.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Answer, Api, KEY};

async fn import(api: &Api, kind: &str, file: impl Into<Body>) -> Answer {
    let request =
        Request::post("/v1/suppressions/import").header("x-api-key", KEY).header("content-type", kind);
    api.ask(request.body(file.into()).unwrap()).await
}

async fn addresses(api: &Api) -> Vec<String> {
    let list = api.get("/v1/suppressions").await.ok(200);
    list["data"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_address_is_suppressed_checked_changed_and_released() {
    let api = Api::start().await;
    let body = json!({"address": "Ada@Example.NET", "reason": "complaint", "note": "by phone", "expires_at": 1_700_000_060});
    let made = api.post("/v1/suppressions", body).await.ok(201);
    assert_eq!((&made["address"], &made["reason"]), (&json!("ada@example.net"), &json!("complaint")));
    assert_eq!(api.get("/v1/suppressions/ADA@example.net").await.ok(200), made);
    let path = "/v1/suppressions/ada@example.net";
    let changed = api.call("PATCH", path, r#"{"note": null, "reason": "manual"}"#).await.ok(200);
    assert_eq!((&changed["reason"], &changed["note"]), (&json!("manual"), &json!(null)));
    assert_eq!(changed["expires_at"], made["expires_at"]);
    api.clock.forward_ms(60_000);
    api.get(path).await.refused(404, "not_found");
    assert!(addresses(&api).await.is_empty(), "what is over is gone");
    api.post("/v1/suppressions", json!({"address": "ada@example.net"})).await.ok(201);
    assert_eq!(api.call("DELETE", path, "").await.status.as_u16(), 204);
    api.call("DELETE", path, "").await.refused(404, "not_found");
    api.call("PATCH", path, "{}").await.refused(404, "not_found");
    assert_eq!(api.get("/v1/suppressions/nobody").await.wrong_fields(), ["address"]);
}

#[tokio::test]
async fn either_spelling_of_a_domain_is_the_same_address() {
    let api = Api::start().await;
    let made = api.post("/v1/suppressions", json!({"address": "Gone@EXÄMPLE.net"})).await.ok(201);
    assert_eq!(made["address"], "gone@xn--exmple-cua.net");
    assert_eq!(made["address_unicode"], "gone@exämple.net");
    for spelling in ["gone@xn--exmple-cua.net", "gone@ex%C3%A4mple.net"] {
        assert_eq!(api.get(&format!("/v1/suppressions/{spelling}")).await.ok(200), made);
    }
    let wrong = api.post("/v1/suppressions", json!({"address": "a@xn--ä.de"})).await;
    assert_eq!(wrong.wrong_fields(), ["address"]);
    let plain = api.post("/v1/suppressions", json!({"address": "a@example.net"})).await.ok(201);
    assert!(plain.get("address_unicode").is_none(), "only where it differs: {plain}");
}

#[tokio::test]
async fn many_are_added_together_or_none() {
    let api = Api::start().await;
    let body = json!({"addresses": ["b@example.net", "a@example.net"], "reason": "hard_bounce"});
    let made = api.post("/v1/suppressions", body).await.ok(201);
    assert_eq!(
        (&made["data"][0]["address"], &made["data"][1]["reason"]),
        (&json!("b@example.net"), &json!("hard_bounce"))
    );
    let of_nobody_else = json!({"address": null, "addresses": ["a@example.net", "b@example.net"]});
    let made = api.post("/v1/suppressions", of_nobody_else).await.ok(201);
    assert_eq!(made["data"].as_array().map(Vec::len), Some(2));
    for (body, fields) in [
        (json!({}), &["address"][..]),
        (json!({"address": 1}), &["address"]),
        (json!({"address": "a@example.net", "addresses": []}), &["addresses"]),
        (json!({"addresses": []}), &["addresses"]),
        (json!({"addresses": vec!["a@example.net"; 1001]}), &["addresses"]),
        (json!({"addresses": ["c@example.net", "nobody"], "reason": "sad"}), &["reason", "addresses[1]"]),
        (json!({"address": "c@example.net", "expires_at": 1, "x": 1}), &["expires_at", "x"]),
    ] {
        assert_eq!(api.post("/v1/suppressions", body.clone()).await.wrong_fields(), fields, "{body}");
    }
    assert_eq!(addresses(&api).await, ["a@example.net", "b@example.net"]);
    let first = api.get("/v1/suppressions?limit=1").await.ok(200);
    let rest =
        api.get(&format!("/v1/suppressions?cursor={}", first["next_cursor"].as_str().unwrap())).await.ok(200);
    assert_eq!((&rest["data"][0]["address"], &rest["next_cursor"]), (&json!("b@example.net"), &json!(null)));
}

#[tokio::test]
async fn a_file_is_imported_and_its_wrong_lines_are_told() {
    let api = Api::start().await;
    let file = "address,reason,note\r\na@example.net,hard_bounce,\"gone, \"\"for good\"\"\"\r\nnobody\r\nb@example.net,sad\r\n";
    let result = import(&api, "text/csv; charset=utf-8", file).await.ok(200);
    assert_eq!((&result["imported"], &result["rejected"]), (&json!(1), &json!(2)));
    let lines: Vec<&Value> =
        result["errors"].as_array().unwrap().iter().map(|wrong| &wrong["line"]).collect();
    assert_eq!(lines, [&json!(3), &json!(4)]);
    assert_eq!(api.get("/v1/suppressions/a@example.net").await.ok(200)["note"], "gone, \"for good\"");
    let lines = "{\"address\":\"c@example.net\",\"reason\":\"complaint\"}\n\"d@example.net\"\n{\"x\":1}\n";
    let result = import(&api, "application/x-ndjson", lines).await.ok(200);
    assert_eq!((&result["imported"], &result["errors"][0]["line"]), (&json!(2), &json!(3)));
    import(&api, "application/pdf", "x").await.refused(415, "unsupported_media_type");
    import(&api, "text/csv", vec![0xff]).await.refused(400, "malformed_request");
    import(&api, "text/csv", vec![b'x'; (16 << 20) + 1]).await.refused(413, "payload_too_large");
    let by_name = api.call("POST", "/v1/suppressions/import?format=csv", "e@example.net").await.ok(200);
    assert_eq!(by_name["imported"], 1);
    // As clients send it that are made of the document.
    assert_eq!(import(&api, "application/octet-stream", "f@example.net").await.ok(200)["imported"], 1);
    let expected = ["a@example.net", "c@example.net", "d@example.net", "e@example.net", "f@example.net"];
    assert_eq!(addresses(&api).await, expected);
}

#[tokio::test]
async fn a_long_list_is_exported_whole_and_can_be_imported_again() {
    let api = Api::start().await;
    let file: String = (0..1_203).map(|n| format!("u{n:04}@example.net,manual,\"n,{n}\"\n")).collect();
    assert_eq!(import(&api, "text/csv", file).await.ok(200)["imported"], 1_203);
    let export = api.get("/v1/suppressions/export").await;
    assert_eq!(export.headers["content-type"], "text/csv; charset=utf-8");
    let text = String::from_utf8(export.body.to_vec()).unwrap();
    assert_eq!(text.lines().count(), 1_204);
    assert!(
        text.starts_with(
            "address,reason,note,created_at,expires_at\r\nu0000@example.net,manual,\"n,0\",2023-"
        ),
        "{}",
        &text[..200]
    );
    let other = Request::post("/v1/suppressions/import")
        .header("x-api-key", KEY)
        .header("x-tenant", "other")
        .header("content-type", "text/csv");
    let result = api.ask(other.body(Body::from(text)).unwrap()).await.ok(200);
    assert_eq!((&result["imported"], &result["rejected"]), (&json!(1_203), &json!(0)));
}
