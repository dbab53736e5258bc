//! The directory of recipients.

use postway_domain::{KnownRecipient, RecipientKey, secret::SecretKey};
use postway_store::CatalogueStore;
use serde_json::{Value, json};

use crate::support::Api;

fn ada() -> Value {
    json!({"external_id": "C-1", "name": "Ada", "address": "Ada@Example.net", "personal_number": "19800101-1234"})
}

async fn with_ada() -> (Api, String) {
    let api = Api::start().await;
    let made = api.post("/v1/recipients", ada()).await.ok(201);
    let id = made["id"].as_str().unwrap().to_owned();
    (api, id)
}

#[tokio::test]
async fn a_recipient_is_found_by_either_id() {
    let api = Api::start().await;
    let answer = api.post("/v1/recipients", ada()).await;
    let made = answer.ok(201);
    let id = made["id"].as_str().unwrap();
    assert_eq!(answer.headers["location"], format!("/v1/recipients/{id}").as_str());
    assert_eq!((&made["external_id"], &made["version"]), (&json!("C-1"), &json!(1)));
    assert_eq!(api.get(&format!("/v1/recipients/{id}")).await.ok(200), made);
    assert_eq!(api.get("/v1/recipients/external:C-1").await.ok(200), made);
    for unknown in ["external:C-2", "C-1", "0192d3a4-5b6c-7d8e-9f01-23456789abcd"] {
        api.get(&format!("/v1/recipients/{unknown}")).await.refused(404, "not_found");
    }
    api.post("/v1/recipients", ada()).await.refused(409, "conflict");
    let by_email = json!({"email": "bob@example.net"});
    assert_eq!(api.post("/v1/recipients", by_email).await.ok(201)["address"], "bob@example.net");
}

#[tokio::test]
async fn a_personal_number_is_sealed_masked_and_found_by_its_digest() {
    let (api, id) = with_ada().await;
    let shown = api.get(&format!("/v1/recipients/{id}")).await;
    assert_eq!(shown.ok(200)["personal_number"], "**********234");
    let key = RecipientKey::Id(id.parse().unwrap());
    let stored = api.store.recipient(&"default".parse().unwrap(), &key).await.unwrap().unwrap();
    let place = KnownRecipient::sealing_context(&stored.tenant, &stored.id);
    let opened =
        SecretKey::from_bytes(&[7; 32]).unwrap().open(&place, stored.personal_number.as_ref().unwrap());
    assert_eq!(opened.unwrap(), "19800101-1234");
    for (query, found) in [
        ("personal_number=198001011234", 1),
        ("personal_number=19800101-1235", 0),
        ("personal_number=19800101-1234&external_id=C-2", 0),
        ("personal_number=19800101-1234&address=bob@example.net", 0),
    ] {
        let list = api.get(&format!("/v1/recipients?{query}")).await;
        assert_eq!(list.ok(200)["data"].as_array().unwrap().len(), found, "{query}");
    }
    let elsewhere = api.in_tenant("other", "GET", "/v1/recipients?personal_number=19800101-1234", "").await;
    assert_eq!(elsewhere.ok(200)["data"], json!([]));
    let audit = api.get("/v1/audit").await;
    for body in [&shown.body, &audit.body] {
        let text = String::from_utf8_lossy(body);
        assert!(!text.contains("19800101") && !text.contains("Example.net\",\"action"), "{text}");
    }
}

#[tokio::test]
async fn a_change_is_of_what_is_given() {
    let (api, id) = with_ada().await;
    let path = format!("/v1/recipients/{id}");
    let changed = api.patch(&path, json!({"name": null, "address": "ada@example.org"})).await.ok(200);
    assert_eq!((&changed["name"], &changed["address"]), (&Value::Null, &json!("ada@example.org")));
    assert_eq!((&changed["external_id"], &changed["version"]), (&json!("C-1"), &json!(2)));
    assert_eq!(changed["personal_number"], "**********234");
    let again = api.patch(&path, changed.clone()).await.ok(200);
    assert_eq!((&again["version"], &again["personal_number"]), (&json!(3), &json!("**********234")));
    assert_eq!(
        api.get("/v1/recipients?personal_number=19800101-1234").await.ok(200)["data"][0]["id"],
        id.as_str()
    );
    api.patch(&path, changed).await.refused(409, "conflict");
    assert_eq!(
        api.patch(&path, json!({"personal_number": null})).await.ok(200)["personal_number"],
        Value::Null
    );
    let bob = api.post("/v1/recipients", json!({"address": "bob@example.net", "external_id": "C-2"})).await;
    let path = format!("/v1/recipients/{}", bob.ok(201)["id"].as_str().unwrap());
    api.patch(&path, json!({"external_id": "C-1"})).await.refused(409, "conflict");
    api.patch("/v1/recipients/external:none", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_deleted_recipient_is_shown_as_such_and_its_external_id_is_free() {
    let (api, id) = with_ada().await;
    assert_eq!(api.delete("/v1/recipients/external:C-1").await, 204);
    let shown = api.get(&format!("/v1/recipients/{id}")).await.ok(200);
    assert_eq!(shown["deleted_at"], "2023-11-14T22:13:20.000Z");
    assert_eq!(
        api.get("/v1/recipients/external:C-1").await.ok(200),
        shown,
        "as long as no other has that id"
    );
    for query in ["", "?external_id=C-1", "?address=ada@example.net"] {
        assert_eq!(api.get(&format!("/v1/recipients{query}")).await.ok(200)["data"], json!([]), "{query}");
    }
    assert_eq!(api.get("/v1/recipients?personal_number=19800101-1234").await.ok(200)["data"], json!([]));
    assert_eq!(api.delete(&format!("/v1/recipients/{id}")).await, 404);
    api.patch(&format!("/v1/recipients/{id}"), json!({"name": "x"})).await.refused(409, "conflict");
    let new = api.post("/v1/recipients", ada()).await.ok(201);
    assert_eq!(api.get("/v1/recipients/external:C-1").await.ok(200), new);
}

#[tokio::test]
async fn wrong_recipients_are_refused_with_their_fields() {
    let api = Api::start().await;
    for (body, fields) in [
        (json!({"name": "Ada"}), &["address"][..]),
        (json!({"address": "nobody", "external_id": ""}), &["external_id", "address"]),
        (json!({"address": "a@example.net", "personal_number": "12"}), &["personal_number"]),
        (json!({"address": "a@example.net", "personal_number": "****1234"}), &["personal_number"]),
        (json!({"address": "a@example.net", "phone": "1"}), &["phone"]),
    ] {
        assert_eq!(api.post("/v1/recipients", body.clone()).await.wrong_fields(), fields, "{body}");
    }
    assert_eq!(api.get("/v1/recipients?address=nobody&x=1").await.wrong_fields(), ["address", "x"]);
}

#[tokio::test]
async fn the_directory_comes_in_pages() {
    let api = Api::start().await;
    for number in 0..5 {
        let body = json!({"address": format!("r{number}@example.net"), "external_id": format!("C-{number}")});
        api.post("/v1/recipients", body).await.ok(201);
        api.clock.forward_ms(10);
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/recipients?limit=2".to_owned());
    loop {
        let page = api.get(&path).await.ok(200);
        seen.extend(page["data"].as_array().unwrap().iter().map(|one| one["external_id"].clone()));
        match &page["next_cursor"] {
            Value::String(cursor) => path = format!("/v1/recipients?limit=2&cursor={cursor}"),
            _ => break,
        }
    }
    assert_eq!(seen, ["C-0", "C-1", "C-2", "C-3", "C-4"]);
    let found = api.get("/v1/recipients?address=R3@example.net").await.ok(200);
    assert_eq!(found["data"][0]["external_id"], "C-3", "{found}");
    let found = api.get("/v1/recipients?external_id=C-2").await.ok(200);
    assert_eq!(found["data"][0]["address"], "r2@example.net", "{found}");
}

#[tokio::test]
async fn a_message_is_for_a_recipient_of_the_directory_or_refused() {
    let (api, id) = with_ada().await;
    let mail = |recipient: Value| {
        let body = json!({"from": "shop@example.com", "to": "ada@example.net", "text": "Hi", "recipient": recipient});
        api.post("/v1/messages", body)
    };
    let uid = mail(json!({"external_id": "C-1", "email": "ada@example.net"})).await.ok(202)["uid"].clone();
    let shown = api.get(&format!("/v1/messages/{}", uid.as_str().unwrap())).await.ok(200);
    assert_eq!(shown["recipient_id"], id.as_str());
    let other = mail(json!({"id": id, "email": "bob@example.net"})).await.refused(422, "validation_error");
    assert_eq!(other["details"][0]["code"], "INVALID_PAYLOAD", "{other}");
    assert_eq!(api.delete(&format!("/v1/recipients/{id}")).await, 204);
    let gone = mail(json!({"id": id})).await.refused(422, "validation_error");
    assert_eq!(gone["details"][0]["code"], "RECIPIENT_NOT_FOUND", "{gone}");
    assert_eq!(gone["details"][0]["check"], "RECIPIENT");
}
