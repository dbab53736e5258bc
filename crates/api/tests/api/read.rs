//! Reading messages back.

use postway_domain::{MessageState, RecipientStatus::*, message::ScheduleReason};
use postway_store::record::NewMessage;
use serde_json::{Value, json};

use crate::support::Api;

#[tokio::test]
async fn a_message_comes_back_with_all_its_fields_and_parts() {
    let api = Api::start().await;
    let uid = api
        .stored("order-1", MessageState::Failed, &[("ada@example.net", Failed), ("bob@example.net", Sent)])
        .await;
    let message = api.get("/v1/messages/order-1").await.ok(200);
    for field in [
        "id",
        "uid",
        "tenant",
        "account",
        "status",
        "held_by",
        "priority",
        "batch",
        "subject",
        "to",
        "recipient_count",
        "refused_count",
        "created_at",
        "updated_at",
        "due_at",
        "sent_at",
        "failed_at",
        "reported_at",
        "attempt",
        "version",
        "exhausted",
        "request_id",
        "message_id",
        "provider_message_id",
        "reason",
        "error",
        "outcome",
        "bounce",
        "recipients",
        "attempts",
        "events",
        "notifications",
    ] {
        assert!(message.get(field).is_some(), "{field} is missing");
    }
    assert_eq!(message["id"], "order-1");
    assert_eq!(message["uid"], uid.to_string());
    assert_eq!((&message["status"], &message["exhausted"]), (&json!("failed"), &json!(true)));
    assert_eq!(message["priority"], 2);
    assert_eq!(message["created_at"], "2023-11-14T22:13:20.000Z");
    assert_eq!(message["reason"], "come back");
    assert_eq!(message["error"]["enhanced_code"], "4.2.0");
    assert_eq!(message["metadata"], json!({"order": 17}));
    assert_eq!(message["recipients"][0]["address"], "ada@example.net");
    assert_eq!(message["recipients"][1]["status"], "sent");
    for field in ["kind", "smtp_code", "enhanced_code", "reply", "outcome", "bounce"] {
        assert!(message["recipients"][0].get(field).is_some(), "recipient.{field} is missing");
    }
    assert_eq!(message["events"][0]["type"], "accepted");
    assert_eq!(message["events"][0]["data"], json!({}));
    assert_eq!(api.get(&format!("/v1/messages/{uid}")).await.ok(200), message);
}

#[tokio::test]
async fn an_id_that_looks_like_a_uuid_or_like_a_call_is_found_too() {
    let api = Api::start().await;
    let id = "0190a000-0000-7000-8000-000000000000";
    for id in [id, "batch", "raw"] {
        api.stored(id, MessageState::Sent, &[("ada@example.net", Sent)]).await;
        assert_eq!(api.get(&format!("/v1/messages/{id}")).await.ok(200)["id"], id);
        assert_eq!(api.get(&format!("/v1/messages/{id}/explain")).await.ok(200)["status"], "sent");
    }
}

#[tokio::test]
async fn nobody_reads_across_tenants() {
    let api = Api::start().await;
    let uid = api.stored("order-1", MessageState::Sent, &[("ada@example.net", Sent)]).await.to_string();
    let other = |path: String| {
        let request = axum::http::Request::get(path)
            .header("x-api-key", crate::support::KEY)
            .header("x-tenant", "other");
        api.ask(request.body(axum::body::Body::empty()).unwrap())
    };
    for tail in ["", "/events", "/raw", "/explain"] {
        other(format!("/v1/messages/order-1{tail}")).await.refused(404, "not_found");
        other(format!("/v1/messages/{uid}{tail}")).await.refused(404, "not_found");
    }
    assert_eq!(other("/v1/messages".to_owned()).await.ok(200)["data"], json!([]));
    assert_eq!(other("/v1/stats".to_owned()).await.ok(200)["by_status"]["sent"], 0);
}

#[tokio::test]
async fn pages_cover_everything_once_newest_first() {
    let api = Api::start().await;
    for number in 0..7 {
        api.stored(&format!("m-{number}"), MessageState::Sent, &[("ada@example.net", Sent)]).await;
        api.clock.forward_ms(10);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/messages?limit=3".to_owned();
    loop {
        let page = api.get(&path).await.ok(200);
        let ids =
            page["data"].as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match &page["next_cursor"] {
            Value::String(cursor) => path = format!("/v1/messages?limit=3&cursor={cursor}"),
            other => break assert!(other.is_null()),
        }
    }
    assert_eq!(seen, ["m-6", "m-5", "m-4", "m-3", "m-2", "m-1", "m-0"]);
    assert!(api.get("/v1/messages?limit=7").await.ok(200)["next_cursor"].is_null());
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let api = Api::start().await;
    api.stored("sent", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.clock.forward_ms(60_000);
    api.stored("failed", MessageState::Failed, &[("bob@example.net", Failed)]).await;
    for (query, found) in [
        ("status=sent", &["sent"][..]),
        ("recipient=bob@EXAMPLE.net", &["failed"]),
        ("account=sandbox", &["failed", "sent"]),
        ("account=none", &[]),
        ("batch=b-1", &["failed", "sent"]),
        ("tag=receipt&status=failed", &["failed"]),
        ("tag=other", &[]),
        ("request_id=req-7", &["failed", "sent"]),
        ("provider_message_id=x", &[]),
        ("since=1700000030", &["failed"]),
        ("until=2023-11-14T22:13:30Z", &["sent"]),
    ] {
        let page = api.get(&format!("/v1/messages?{query}")).await.ok(200);
        let ids: Vec<&str> =
            page["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
        assert_eq!(ids, found, "{query}");
    }
    let dead = api.get("/v1/dead-letters").await.ok(200);
    assert_eq!(dead["data"][0]["id"], "failed");
    assert_eq!(dead["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_filters_are_named() {
    let api = Api::start().await;
    for (query, field) in [
        ("status=lost", "status"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("recipient=nobody", "recipient"),
        ("since=yesterday", "since"),
        ("account=a/b", "account"),
        ("stauts=sent", "stauts"),
        ("status=sent&status=failed", "status"),
    ] {
        assert_eq!(api.get(&format!("/v1/messages?{query}")).await.wrong_fields(), [field], "{query}");
    }
    assert_eq!(api.get("/v1/dead-letters?status=sent").await.wrong_fields(), ["status"]);
    api.get("/v1/messages?cursor=nonsense").await.refused(400, "malformed_request");
}

#[tokio::test]
async fn the_history_and_the_mail_itself_can_be_had() {
    let api = Api::start().await;
    let uid = api.stored("order-1", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    assert_eq!(api.get("/v1/messages/order-1/events").await.ok(200)["data"][0]["seq"], 1);
    let raw = api.get("/v1/messages/order-1/raw").await;
    assert_eq!(raw.status.as_u16(), 200);
    assert_eq!(raw.headers["content-type"], "message/rfc822");
    assert_eq!(raw.headers["content-disposition"], format!("attachment; filename=\"{uid}.eml\""));
    assert!(raw.body.starts_with(b"Subject: Your order\r\n"));
    api.get("/v1/messages/order-2/raw").await.refused(404, "not_found");
    api.get("/v1/messages/%FF").await.refused(400, "malformed_request");
}

#[tokio::test]
async fn what_holds_a_message_is_explained() {
    let api = Api::start().await;
    let one = [("ada@example.net", Pending)];
    for (id, state, gates) in [
        ("now", MessageState::Ready, json!([])),
        ("later", MessageState::Scheduled(ScheduleReason::SendAt), json!(["schedule"])),
        ("again", MessageState::Scheduled(ScheduleReason::Retry), json!(["retry"])),
        ("doubt", MessageState::InDoubt, json!(["doubt"])),
        ("done", MessageState::Sent, json!([])),
    ] {
        api.stored(id, state, &one).await;
        let told = api.get(&format!("/v1/messages/{id}/explain")).await.ok(200);
        assert_eq!(told["status"], state.status().as_str());
        let names: Vec<&Value> = told["gates"].as_array().unwrap().iter().map(|gate| &gate["gate"]).collect();
        assert_eq!(json!(names), gates, "{told}");
    }
    let ahead = |message: &mut NewMessage| {
        message.due_at = message.due_at.map(|at| at.plus(std::time::Duration::from_secs(60)))
    };
    api.stored_with("ahead", MessageState::Ready, &one, ahead).await;
    let told = api.get("/v1/messages/ahead/explain").await.ok(200);
    assert_eq!(told["gates"][0]["gate"], "clock", "it became ready before the clock was set back: {told}");
    assert_eq!(told["gates"][0]["until"], told["next_at"]);
    let again = api.get("/v1/messages/again/explain").await.ok(200);
    assert!(again["gates"][0]["reason"].as_str().unwrap().contains("come back"), "{again}");
    assert_eq!(again["gates"][0]["until"], again["next_at"]);
    let doubt = api.get("/v1/messages/doubt/explain").await.ok(200);
    assert!(
        doubt["gates"][0]["until"].is_null() && doubt["next_at"].is_null(),
        "held for an operator: {doubt}"
    );
}

#[tokio::test]
async fn a_list_names_the_first_recipient_and_is_filtered_by_subject_and_code() {
    let api = Api::start().await;
    api.stored("one", MessageState::Failed, &[("ada@example.net", Failed), ("bob@example.net", Sent)]).await;
    api.clock.forward_ms(1);
    api.stored("two", MessageState::Ready, &[("cy@example.net", Pending)]).await;
    let list = api.get("/v1/messages").await.ok(200);
    let whom = |n: usize| (list["data"][n]["to"].clone(), list["data"][n]["recipient_count"].clone());
    assert_eq!(whom(0), (json!("cy@example.net"), json!(1)));
    assert_eq!(whom(1), (json!("ada@example.net"), json!(2)));
    let code = list["data"][1]["error"]["code"].as_str().unwrap().to_owned();
    let found = |query: String| {
        let api = &api;
        async move {
            let list = api.get(&format!("/v1/messages?{query}")).await.ok(200);
            assert_eq!(list["next_cursor"], Value::Null);
            list["data"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
        }
    };
    assert_eq!(found(format!("error_code={code}")).await, ["one"]);
    assert_eq!(found("error_code=none".to_owned()).await, Vec::<Value>::new());
    assert_eq!(found(format!("status=ready&error_code={code}")).await, Vec::<Value>::new());
    assert_eq!(found("subject=no+such+words".to_owned()).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_message_that_a_newer_one_replaced_says_so() {
    let api = Api::start().await;
    let one = [("ada@example.net", Pending)];
    for id in ["older", "newer"] {
        let collapsing = |message: &mut NewMessage| message.collapse_key = Some("cart-7".to_owned());
        api.stored_with(id, MessageState::Ready, &one, collapsing).await;
        api.clock.forward_ms(1);
    }
    let older = api.get("/v1/messages/older").await.ok(200);
    assert_eq!((&older["status"], &older["error"]["code"]), (&json!("cancelled"), &json!("superseded")));
    assert_eq!(older["reason"], "a newer message with the same collapse_key took its place");
    let list = api.get("/v1/messages?status=cancelled").await.ok(200);
    assert_eq!(list["data"][0]["reason"], older["reason"]);
    api.stored("withdrawn", MessageState::Cancelled, &one).await;
    let withdrawn = api.get("/v1/messages/withdrawn").await.ok(200);
    assert_eq!(withdrawn["reason"], "withdrawn before it was sent");
}
