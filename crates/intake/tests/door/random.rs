//! The door answers any input.

use bytes::Bytes;
use postway_intake::{RawOptions, Refusal};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{TestGateway, body_of, ctx};

const FIELDS: &[&str] = &[
    "id",
    "account",
    "from",
    "to",
    "cc",
    "bcc",
    "reply_to",
    "return_path",
    "subject",
    "text",
    "html",
    "headers",
    "attachments",
    "template",
    "recipient",
    "priority",
    "batch",
    "send_at",
    "expires_at",
    "tags",
    "metadata",
    "on_doubt",
    "dsn",
    "collapse_key",
    "sensitive",
    "external_id",
    "filename",
    "content_type",
    "content",
    "content_id",
    "inline",
    "url",
    "endpoint",
    "path",
    "messages",
    "defaults",
    "unknown",
    "X-A",
];

const WORDS: &[&str] =
    &["a@example.net", "A <a@example.net>", "aGk=", "2024-06-01T00:00:00Z", "normal", "hold", "relay", ""];

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![prop::sample::select(WORDS).prop_map(Value::from), any::<String>().prop_map(Value::from)]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2..6_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text(),
        text(),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from), object(inner)]
    })
}

fn object(value: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let name = prop::sample::select(FIELDS).prop_map(str::to_owned);
    prop::collection::vec((name, value), 0..6)
        .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
}

/// A valid message with some field replaced by anything.
fn near_message() -> impl Strategy<Value = Value> {
    (prop::sample::select(FIELDS), value()).prop_map(|(name, value)| crate::message(json!({name: value})))
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// An answer is well formed, and nothing is stored for a refusal.
async fn try_all(body: &[u8]) {
    let gateway = TestGateway::new().await;
    let single = gateway.door.accept_json(&ctx(), body_of(body)).await;
    if let Err(refusal) = &single {
        assert!(!refusal.to_string().is_empty());
        assert!(!matches!(refusal, Refusal::Unavailable(_)), "{refusal}");
        assert!(!refusal.to_string().contains("could not be composed"));
    }
    let stored = usize::from(single.is_ok());
    assert_eq!(gateway.count().await, stored);
    let accepted = gateway.door.accept_batch(&ctx(), body_of(body)).await.map_or(0, |batch| batch.accepted);
    assert_eq!(gateway.count().await, stored + accepted);
    if let Err(refusal) =
        gateway.door.accept_raw(&ctx(), RawOptions::default(), Bytes::copy_from_slice(body)).await
    {
        assert!(!refusal.to_string().contains("could not be composed"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_bytes_are_answered(body in prop::collection::vec(any::<u8>(), 0..200)) {
        run(try_all(&body));
    }

    #[test]
    fn any_json_is_answered(body in object(value())) {
        run(try_all(body.to_string().as_bytes()));
    }

    #[test]
    fn any_value_in_any_field_is_answered(body in near_message(), default in object(value())) {
        run(async {
            try_all(body.to_string().as_bytes()).await;
            try_all(json!({"messages": [body]}).to_string().as_bytes()).await;
            try_all(json!({"defaults": default, "messages": [body]}).to_string().as_bytes()).await;
        });
    }

    #[test]
    fn a_message_cut_anywhere_is_answered(body in near_message(), cut in any::<prop::sample::Index>()) {
        let body = body.to_string();
        run(try_all(&body.as_bytes()[..cut.index(body.len())]));
    }
}
