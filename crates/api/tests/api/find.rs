//! Searching messages, and counting the matches.

use postway_domain::{
    MessageState,
    RecipientStatus::{Failed, Pending, Sent},
};
use serde_json::{Value, json};

use crate::support::Api;

async fn found(api: &Api, query: &str) -> Vec<String> {
    let list = api.get(&format!("/v1/messages?count=true&{query}")).await.ok(200);
    let ids: Vec<String> =
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        list["count"],
        json!({"messages": ids.len(), "or_more": false}),
        "{query}: what is counted is listed"
    );
    ids
}

async fn some() -> Api {
    let api = Api::start().await;
    api.stored("order-1", MessageState::Failed, &[("ada@example.net", Failed), ("bob@mail.example", Sent)])
        .await;
    api.clock.forward_ms(1);
    api.stored("order-2", MessageState::Ready, &[("cy@example.net", Pending)]).await;
    api.clock.forward_ms(1);
    api.stored("order-3", MessageState::InDoubt, &[("dee@example.org", Sent)]).await;
    api
}

#[tokio::test]
async fn one_text_finds_by_whatever_it_looks_like() {
    let api = some().await;
    for (query, expected) in [
        ("q=ada%40example.net", vec!["order-1"]),
        ("q=%40mail.example", vec!["order-1"]),
        ("q=example.", vec!["order-3", "order-2", "order-1"]),
        ("q=ADA", vec!["order-1"]),
        ("q=order-2", vec!["order-2"]),
        ("q=id:order-2", vec!["order-2"]),
        ("q=id:nobody", vec![]),
        ("q=status:ready", vec!["order-2"]),
        ("q=example.net&status=failed", vec!["order-1"]),
        ("q=%25", vec![]),
        ("q=ada%40", vec!["order-1"]),
        ("q=%3A%3A%3C%3E%27%22", vec![]),
        ("waiting=true", vec!["order-2"]),
    ] {
        assert_eq!(found(&api, query).await, expected, "{query}");
    }
    let list = api.get("/v1/messages?q=%40mail.example+status:failed+words").await.ok(200);
    let understood = json!([{"name": "domain", "value": "mail.example"}, {"name": "status", "value": "failed"}, {"name": "text", "value": "words"}]);
    assert_eq!(list["understood"], understood);
    assert_eq!(list.get("count"), None, "it is counted where it is asked for");
    assert_eq!(api.get("/v1/messages").await.ok(200).get("understood"), None);
}

#[tokio::test]
async fn mail_is_found_by_its_metadata_and_references() {
    let api = Api::start().await;
    let send = async |id: &str, more: Value| {
        let mut mail = json!({"id": id, "to": "ada@example.net", "subject": format!("Mail {id}"), "text": "x",
            "from": "news@example.com"});
        mail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.post("/v1/messages", mail).await.ok(202);
        api.clock.forward_ms(1);
    };
    send("m-1", json!({"metadata": {"order": "A-17", "n": 3}, "external_id": "crm 4711"})).await;
    send("m-2", json!({"metadata": {"order": "A-171"}, "tags": ["receipt"]})).await;
    send("m-3", json!({"metadata": {"order": ["A-17"]}, "external_id": "m-2"})).await;
    for (query, expected) in [
        ("metadata=order%3DA-17", vec!["m-1"]),
        ("q=order%3DA-17", vec!["m-1"]),
        ("q=n%3D3+Mail", vec!["m-1"]),
        ("q=n%3D4", vec![]),
        ("q=%23receipt", vec!["m-2"]),
        ("q=crm+4711", vec!["m-1"]),
        ("q=m-2", vec!["m-2"]),
        ("q=external:m-2", vec!["m-3"]),
        ("q=subject:%22mail+m-3%22", vec!["m-3"]),
    ] {
        assert_eq!(found(&api, query).await, expected, "{query}");
    }
    let list = api.get("/v1/messages?q=crm+4711").await.ok(200);
    assert_eq!(list["understood"], json!([{"name": "external_id", "value": "crm 4711"}]));
    assert_eq!(list.get("searched_since"), None, "all was searched");
    let wrong: Value = api.get("/v1/messages?metadata=order").await.refused(422, "validation_error");
    assert!(wrong.to_string().contains("must be key=value"), "{wrong}");
}

#[tokio::test]
async fn what_holds_mail_finds_it_and_nothing_else() {
    let api = some().await;
    for query in [
        "held_by=any",
        "held_by=tenant",
        "held_by=batch:b-1",
        "held_by=account:sandbox",
        "held_by=limit:sandbox",
    ] {
        assert_eq!(found(&api, query).await, Vec::<String>::new(), "{query}");
    }
    assert_eq!(found(&api, "held_by=doubt").await, ["order-3"]);
    assert_eq!(found(&api, "held_by=doubt&status=ready").await, Vec::<String>::new());
    api.post("/v1/batches/b-1/suspend", json!({})).await.ok(200);
    for query in ["held_by=any", "held_by=batch:b-1"] {
        assert_eq!(found(&api, query).await, ["order-2"], "{query}");
    }
    assert_eq!(found(&api, "held_by=batch:b-2").await, Vec::<String>::new());
    let overview = api.get("/v1/overview").await.ok(200);
    let holder = &overview["holders"][0];
    assert_eq!((&holder["held_by"], &holder["messages"]), (&json!("batch:b-1"), &json!(1)), "{overview}");
    assert!(holder["since"].is_string() && holder["until"].is_null(), "{holder}");
    assert_eq!(overview["held"], 1);
}

#[tokio::test]
async fn a_filter_nobody_has_says_which_there_are() {
    let api = some().await;
    let wrong: Value = api
        .get("/v1/messages?outcome=lost&held_by=nobody&waiting=perhaps")
        .await
        .refused(422, "validation_error");
    let text = wrong.to_string();
    for words in [
        "must be delivered, bounced, complained",
        "must be any, doubt, tenant, batch:CODE",
        "must be true or false",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(found(&api, "outcome=bounced").await, Vec::<String>::new());
    let list = api.get("/v1/messages?status=failed").await.ok(200);
    assert_eq!(
        (&list["data"][0]["refused_count"], &list["data"][0]["recipient_count"]),
        (&json!(1), &json!(2))
    );
}
