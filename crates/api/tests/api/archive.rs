//! The archive: set, listed, shown, opened, and deleted by an admin alone.

use postway_domain::{Clock, MessageUid, TenantId, Time, sealed_copy::seal_copy, secret::SecretKey};
use postway_store::{
    ArchiveStore, DirectoryStore,
    record::{ArchivedMail, ChangeResult, DirectoryChange},
};
use serde_json::{Value, json};

use crate::support::Api;

const COPY: &[u8] = b"X-Postway-Id: x\r\nSubject: order\r\n\r\nHello\r\n";

impl Api {
    /// A copy of a message of the tenant `default`.
    pub async fn archived(&self, uid: &str, copy: &[u8], is_sealed: bool) -> ArchivedMail {
        let (tenant, uid): (TenantId, MessageUid) = ("default".parse().unwrap(), uid.parse().unwrap());
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let bytes = match is_sealed {
            true => seal_copy(&key, &tenant, uid, copy).unwrap(),
            false => copy.to_vec(),
        };
        let mail = ArchivedMail {
            path: format!("archive/default/2023/11/14/{uid}.eml"),
            tenant,
            uid,
            size: bytes.len() as u64,
            digest: [0xab; 32],
            is_sealed,
            archived_at: self.clock.now(),
            expires_at: Some(Time::from_millis(1_800_000_000_000)),
        };
        self.depot.put_object(&mail.path, bytes.into()).await.unwrap();
        let put = DirectoryChange::PutArchived(mail.clone());
        assert_eq!(self.store.change(put, None).await.unwrap(), ChangeResult::Done);
        mail
    }
}

#[tokio::test]
async fn an_archive_is_a_setting_of_the_tenant() {
    let api = Api::start().await;
    let path = "/v1/tenants/default";
    assert_eq!(api.get(path).await.ok(200)["archive"], Value::Null);
    let wrong = json!({"archive": {"encrypt": true, "days": 0, "to": "x", "colour": 1}});
    let fields = api.patch(path, wrong).await.wrong_fields();
    for field in ["archive.colour", "archive.encrypt", "archive.days", "archive.to"] {
        assert!(fields.iter().any(|given| given == field), "{field}: {fields:?}");
    }
    let set = json!({"archive": {"storage": true, "encrypt": true, "days": 3_650}});
    let shown = api.patch(path, set).await.ok(200);
    let whole = json!({"to": null, "from": null, "storage": true, "encrypt": true, "days": 3_650});
    assert_eq!(shown["archive"], whole);
    let more =
        json!({"archive": {"to": "box@archive.example", "from": "Archive <a@shop.example>", "days": null}});
    let shown = api.patch(path, more).await.ok(200);
    assert_eq!((&shown["archive"]["storage"], &shown["archive"]["days"]), (&json!(true), &Value::Null));
    // It is not shown as a webhook.
    assert_eq!(api.get("/v1/webhooks").await.ok(200)["data"], json!([]));
    api.get("/v1/webhooks/archive").await.refused(404, "not_found");
    assert_eq!(api.get("/v1/archive").await.ok(200)["waiting"], 0);
    assert_eq!(api.patch(path, json!({"archive": null})).await.ok(200)["archive"], Value::Null);
    assert_eq!(api.get("/v1/archive").await.ok(200)["waiting"], Value::Null);
}

#[tokio::test]
async fn copies_are_listed_from_the_latest_and_sealed_ones_are_opened() {
    let api = Api::start().await;
    let ids = [
        "0192d3a4-5b6c-7d8e-9f01-000000000001",
        "0192d3a4-5b6d-7d8e-9f01-000000000002",
        "0192d3a4-5b6e-7d8e-9f01-000000000003",
    ];
    for (index, id) in ids.iter().enumerate() {
        api.archived(id, COPY, index == 1).await;
    }
    let page = api.get("/v1/archive?limit=2").await.ok(200);
    let listed = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&page), [ids[2], ids[1]]);
    let next = format!("/v1/archive?cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(listed(&api.get(&next).await.ok(200)), [ids[0]]);
    assert_eq!(
        listed(&api.get("/v1/archive?until=2020-01-01T00:00:00Z").await.ok(200)),
        Vec::<String>::new()
    );
    let shown = api.get(&format!("/v1/archive/{}", ids[1])).await.ok(200);
    assert_eq!((&shown["encrypted"], &shown["sha256"]), (&json!(true), &json!("ab".repeat(32))));
    for id in &ids[..2] {
        let raw = api.get(&format!("/v1/archive/{id}/raw")).await;
        assert_eq!((raw.status.as_u16(), &raw.body[..]), (200, COPY));
        assert_eq!(raw.headers["content-type"], "message/rfc822");
    }
    assert_eq!(api.get("/v1/archive?since=x&colour=1").await.wrong_fields(), ["since", "colour"]);
    for path in ["/v1/archive/x", "/v1/archive/0192d3a4-5b6c-7d8e-9f01-23456789abcd/raw"] {
        api.get(path).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn only_an_admin_deletes_a_copy() {
    let api = Api::start().await;
    let id = "0192d3a4-5b6c-7d8e-9f01-000000000001";
    let mail = api.archived(id, COPY, false).await;
    let path = format!("/v1/archive/{id}");
    let key = api.key("default", json!({"scopes": ["send", "read", "manage", "read:content"]})).await;
    api.as_key(&key, "DELETE", &path, "").await.refused(403, "forbidden");
    assert_eq!(api.call("DELETE", &path, "").await.status.as_u16(), 204);
    assert_eq!(api.store.archived(&mail.tenant, mail.uid).await.unwrap(), None);
    assert!(api.depot.get_object(&mail.path).await.is_err());
    api.call("DELETE", &path, "").await.refused(404, "not_found");
    let audit = api.get("/v1/audit").await.ok(200);
    assert_eq!(audit["data"][0]["action"], "archive.delete");
}
