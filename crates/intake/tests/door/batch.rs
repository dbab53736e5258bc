//! Many messages in one request.

use postway_domain::Template;
use postway_intake::{IntakeLimits, Refusal, RequestContext};
use serde_json::{Value, json};

use crate::{
    TestGateway, body_of, claim, ctx, fields, message,
    template::{put, source},
};

async fn send(gateway: &TestGateway, body: &Value) -> Result<postway_intake::BatchReceipt, Refusal> {
    gateway.door.accept_batch(&ctx(), body_of(body.to_string().as_bytes())).await
}

#[tokio::test]
async fn good_messages_are_taken_and_bad_ones_answered_in_their_place() {
    let gateway = TestGateway::new().await;
    let body = json!({"messages": [
        message(json!({"id": "a"})),
        message(json!({"id": "b", "to": "nobody"})),
        message(json!({"id": "c", "colour": "red"})),
        5,
        message(json!({"id": "d", "text": "x".repeat(70_000)})),
        message(json!({"id": "a", "text": "other"})),
        message(json!({"account": "gone"})),
        message(json!({})),
    ]});
    let receipt = send(&gateway, &body).await.unwrap();
    assert_eq!((receipt.accepted, receipt.rejected, gateway.count().await), (2, 6, 2));
    let outcomes: Vec<(Option<String>, Option<Vec<String>>)> = receipt
        .results
        .into_iter()
        .map(|result| match result {
            Ok(receipt) => (Some(receipt.status.to_owned()), None),
            Err(item) => match item.refusal {
                Refusal::Invalid { .. } => (item.id, Some(fields::<()>(Err(item.refusal)))),
                Refusal::TooLarge { .. } => (item.id, Some(vec!["too large".to_owned()])),
                Refusal::Conflict { .. } => (item.id, Some(vec!["conflict".to_owned()])),
                other => panic!("{other:?}"),
            },
        })
        .collect();
    let refused =
        |id: &str, field: &str| ((!id.is_empty()).then(|| id.to_owned()), Some(vec![field.to_owned()]));
    let accepted = || (Some("accepted".to_owned()), None);
    assert_eq!(
        outcomes,
        [
            accepted(),
            refused("b", "to"),
            refused("c", "colour"),
            refused("", ""),
            refused("d", "too large"),
            refused("a", "conflict"),
            refused("", "account"),
            accepted(),
        ]
    );
}

#[tokio::test]
async fn messages_of_one_call_have_ids_in_its_order() {
    let gateway = TestGateway::new().await;
    // More messages than one chunk.
    let messages: Vec<Value> = (0..120).map(|n| message(json!({"subject": n.to_string()}))).collect();
    let receipt = send(&gateway, &json!({"messages": messages})).await.unwrap();
    let uids: Vec<_> = receipt.results.iter().flatten().map(|receipt| receipt.uid).collect();
    assert!(uids.len() == 120 && uids.is_sorted(), "{uids:?}");
}

#[tokio::test]
async fn defaults_stand_under_each_message() {
    let gateway = TestGateway::new().await;
    let body = json!({
        "defaults": {"from": "shop@example.com", "subject": "default", "account": "second", "tags": ["d"],
                     "headers": {"X-A": "default", "X-B": "default"}, "metadata": {"a": 1, "b": 1}},
        "messages": [
            {"to": "a@example.net", "text": "one"},
            {"to": "b@example.net", "text": "two", "subject": "own", "account": null, "tags": [],
             "headers": {"x-b": "own", "X-C": "own"}, "metadata": {"b": 2}},
            {"text": "three"},
        ],
    });
    let receipt = send(&gateway, &body).await.unwrap();
    let uids: Vec<_> = receipt.results.iter().flatten().map(|receipt| receipt.uid).collect();
    let [one, two] = uids[..] else { panic!("{receipt:?}") };
    let summary = gateway.stored(one).await.summary;
    assert_eq!((summary.subject.as_str(), summary.lane.account.as_str()), ("default", "second"));
    assert_eq!((summary.tags.len(), summary.metadata.as_deref()), (1, Some(r#"{"a":1,"b":1}"#)));
    let summary = gateway.stored(two).await.summary;
    assert_eq!((summary.subject.as_str(), summary.lane.account.as_str()), ("own", "relay"));
    assert_eq!((summary.tags.len(), summary.metadata.as_deref()), (0, Some(r#"{"a":1,"b":2}"#)));
    let raw = gateway.raw(two).await;
    for header in ["\r\nX-A: default\r\n", "\r\nX-C: own\r\n", "\r\nx-b: own\r\n"] {
        assert!(raw.contains(header), "{raw}");
    }
    assert!(!raw.contains("X-B"));
    assert_eq!(claim(&gateway, two).await.sender, "shop@example.com");
}

#[tokio::test]
async fn a_batch_has_messages_but_not_too_many() {
    let gateway =
        TestGateway::with_limits(IntakeLimits { batch_messages_max: 2, ..IntakeLimits::default() }).await;
    for body in [
        json!({}),
        json!({"messages": []}),
        json!({"messages": null}),
        json!({"messages": [1, 2, 3]}),
        json!({"messages": {}}),
        json!({"messages": vec![0; 150_000]}),
    ] {
        assert_eq!(fields(send(&gateway, &body).await), ["messages"]);
    }
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn a_broken_batch_is_refused_as_a_whole() {
    let gateway = TestGateway::new().await;
    for (body, field) in [
        (json!({"message": []}), "message"),
        (json!([]), ""),
        (json!({"defaults": 5, "messages": [{}]}), "defaults"),
        (json!({"defaults": {"subjekt": "x"}, "messages": [{}]}), "defaults.subjekt"),
        (json!({"defaults": {"to": [1]}, "messages": [{}]}), "defaults.to[0]"),
        (json!({"defaults": {"id": "x"}, "messages": [{}]}), "defaults.id"),
    ] {
        assert_eq!(fields(send(&gateway, &body).await), [field], "{body}");
    }
    let malformed = gateway.door.accept_batch(&ctx(), body_of(b"{\"messages\":[{\"to\":}]}")).await;
    assert!(matches!(malformed, Err(Refusal::Malformed { .. })), "{malformed:?}");
}

#[tokio::test]
async fn large_defaults_are_not_multiplied_without_bound() {
    let gateway =
        TestGateway::with_limits(IntakeLimits { request_bytes_max: 100_000, ..IntakeLimits::default() })
            .await;
    let body = json!({"defaults": {"text": "x".repeat(10_000)}, "messages": vec![json!({}); 20]});
    assert!(matches!(send(&gateway, &body).await, Err(Refusal::TooLarge { .. })));
}

#[tokio::test]
async fn a_dry_run_of_a_batch_stores_nothing() {
    let gateway = TestGateway::new().await;
    let body = json!({"messages": [message(json!({})), message(json!({"to": "x"}))]}).to_string();
    let ctx = RequestContext { dry_run: true, ..ctx() };
    let receipt = gateway.door.accept_batch(&ctx, body_of(body.as_bytes())).await.unwrap();
    assert_eq!((receipt.accepted, receipt.rejected), (1, 1));
    assert_eq!(receipt.results[0].as_ref().unwrap().status, "valid");
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_batch_is_one_commit_and_keeps_its_order() {
    use postway_store::OperationStore;

    let gateway = TestGateway::new().await;
    let messages: Vec<Value> = (0..1_000).map(|n| message(json!({"id": format!("m-{n}")}))).collect();
    let before = gateway.store.commits();
    let receipt = send(&gateway, &json!({"messages": messages})).await.unwrap();
    assert_eq!((receipt.accepted, gateway.store.commits() - before), (1_000, 1));
    let ids: Vec<_> = receipt.results.iter().flatten().map(|receipt| receipt.id.clone()).collect();
    assert_eq!(ids, (0..1_000).map(|n| format!("m-{n}")).collect::<Vec<_>>());
}

async fn send_whole(
    gateway: &TestGateway,
    key: Option<&str>,
    messages: Value,
) -> Result<postway_intake::BatchReceipt, Refusal> {
    let context = RequestContext { idempotency_key: key.map(str::to_owned), ..ctx() };
    let messages = messages.as_array().unwrap().iter().map(|message| message.to_string().into());
    gateway.door.accept_all_or_none(&context, messages.collect()).await
}

#[tokio::test]
async fn a_whole_batch_is_taken_or_leaves_nothing() {
    let gateway = TestGateway::new().await;
    let bad = json!([message(json!({})), message(json!({"to": "nobody"}))]);
    let refused = send_whole(&gateway, None, bad).await.unwrap();
    assert_eq!((refused.accepted, refused.rejected, gateway.count().await), (1, 1, 0));
    assert_eq!(refused.results[0].as_ref().unwrap().status, "valid");
    let named = send_whole(&gateway, None, json!([message(json!({})), message(json!({"id": "a"}))])).await;
    assert_eq!(fields(named), ["messages[1].id"]);
    let taken = send_whole(&gateway, None, json!([message(json!({})), message(json!({}))])).await.unwrap();
    assert_eq!((taken.accepted, gateway.count().await), (2, 2));
}

#[tokio::test]
async fn a_whole_batch_is_known_by_all_its_messages() {
    let gateway = TestGateway::new().await;
    let text = |text: &str| message(json!({"text": text}));
    let first = send_whole(&gateway, Some("k"), json!([text("a"), text("b")])).await.unwrap();
    let again = send_whole(&gateway, Some("k"), json!([text("a"), text("b")])).await.unwrap();
    let uids = |receipt: &postway_intake::BatchReceipt| {
        receipt.results.iter().map(|one| one.as_ref().unwrap().uid).collect::<Vec<_>>()
    };
    assert_eq!(uids(&first), uids(&again));
    for other in [json!([text("a"), text("c")]), json!([text("c"), text("b"), text("d")]), json!([text("a")])]
    {
        let refused = send_whole(&gateway, Some("k"), other).await;
        assert!(matches!(refused, Err(Refusal::Conflict { .. })), "{refused:?}");
    }
    assert_eq!(gateway.count().await, 2);
}

#[tokio::test]
async fn what_a_batch_makes_is_bounded_however_little_it_says() {
    let limits = IntakeLimits { message_bytes_max: 4 << 20, ..IntakeLimits::default() };
    let gateway = TestGateway::with_limits(limits).await;
    let text = "A line of words, and one more of them.\n".repeat(12_000);
    put(&gateway, Template { html: None, text: Some(text), ..source("long", 1, "s", "") }).await;
    let long = |count: usize| {
        let message = message(json!({"subject": null, "text": null, "template": {"name": "long"}}));
        json!({"messages": vec![message; count]})
    };
    let (few, many) = (long(3), long(160));
    assert!(many.to_string().len() < 30_000, "the request is small");
    assert_eq!(send(&gateway, &few).await.unwrap().accepted, 3);
    let refused = send(&gateway, &many).await;
    assert!(
        matches!(&refused, Err(Refusal::TooLarge { message }) if message.contains("67108864 bytes together")),
        "{refused:?}"
    );
    assert_eq!(gateway.count().await, 3, "nothing of it was stored");
    assert_eq!(send(&gateway, &few).await.unwrap().accepted, 3, "all of it was given back");
}

#[tokio::test]
async fn recipients_count_among_what_a_batch_makes() {
    let gateway = TestGateway::new().await;
    let everybody: Vec<String> = (0..1_000).map(|number| format!("{number}@a.b")).collect();
    let messages = |count: usize| json!({"messages": vec![message(json!({"to": everybody})); count]});
    assert_eq!(send(&gateway, &messages(2)).await.unwrap().accepted, 2);
    assert!(matches!(send(&gateway, &messages(270)).await, Err(Refusal::TooLarge { .. })));
}
