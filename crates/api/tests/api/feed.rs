//! The feed: in order, from a cursor, waiting, and as a stream.

use std::time::Duration;

use axum::{body::Body, http::Request};
use futures::StreamExt;
use postway_domain::{MessageState, RecipientStatus::*};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Api, KEY};

async fn sent(api: &Api, id: &str) {
    api.stored(id, MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.fan_out().await;
}

fn told(feed: &Value) -> Vec<(String, String)> {
    let entries = feed["data"].as_array().unwrap().iter();
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries.map(|entry| (name(&entry["message"]["id"]), name(&entry["type"]))).collect()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, event)| ((*id).to_owned(), (*event).to_owned())).collect()
}

#[tokio::test]
async fn what_happened_is_read_in_order_and_from_where_one_was() {
    let api = Api::start().await;
    let empty = api.get("/v1/events").await.ok(200);
    assert_eq!(empty["data"], json!([]));
    let start = empty["next_cursor"].as_str().unwrap();
    sent(&api, "m-1").await;
    sent(&api, "m-2").await;

    let feed = api.get(&format!("/v1/events?after={start}")).await.ok(200);
    let all =
        [("m-1", "email.accepted"), ("m-1", "email.sent"), ("m-2", "email.accepted"), ("m-2", "email.sent")];
    assert_eq!(told(&feed), named(&all));
    let entry = &feed["data"][1];
    assert_eq!(
        (&entry["event"], &entry["sequence"], &entry["data"]),
        (&json!("sent"), &json!(2), &json!({}))
    );

    let mut cursor = String::new();
    for expected in all {
        let one = api.get(&format!("/v1/events?limit=1{cursor}")).await.ok(200);
        assert_eq!(told(&one), named(&[expected]));
        assert_eq!(one["next_cursor"], one["data"][0]["cursor"]);
        cursor = format!("&after={}", one["next_cursor"].as_str().unwrap());
    }
    let end = api.get(&format!("/v1/events?limit=1{cursor}")).await.ok(200);
    assert_eq!(end["data"], json!([]), "and there it stays");
    assert!(cursor.ends_with(end["next_cursor"].as_str().unwrap()));

    let from_now = api.get("/v1/events?after=now").await.ok(200);
    assert_eq!(from_now["data"], json!([]));
    let now = from_now["next_cursor"].as_str().unwrap();
    sent(&api, "m-3").await;
    let news = api.get(&format!("/v1/events?after={now}")).await.ok(200);
    assert_eq!(told(&news), named(&[("m-3", "email.accepted"), ("m-3", "email.sent")]));
    assert_eq!(api.in_tenant("other", "GET", "/v1/events", "").await.ok(200)["data"], json!([]));
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused() {
    let api = Api::start().await;
    api.get("/v1/events?after=7.3").await.refused(400, "malformed_request");
    assert_eq!(api.get("/v1/events?wait=31").await.wrong_fields(), ["wait"]);
    assert_eq!(api.get("/v1/events?limit=0&since=1").await.wrong_fields(), ["limit", "since"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_answered_with_the_news_or_when_the_time_is_up() {
    let api = Api::start().await;
    let began = tokio::time::Instant::now();
    let nothing = api.get("/v1/events?wait=20").await.ok(200);
    assert_eq!((nothing["data"].clone(), began.elapsed().as_secs()), (json!([]), 20));
    let began = tokio::time::Instant::now();
    let news = async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        sent(&api, "m-1").await;
    };
    let (feed, ()) = tokio::join!(api.get("/v1/events?wait=30"), news);
    assert_eq!(told(&feed.ok(200)).len(), 2);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_stream_brings_each_entry_with_its_cursor_and_goes_on_after_the_last() {
    let api = Api::start().await;
    sent(&api, "m-1").await;
    let open = async |last: Option<&str>| {
        let mut request = Request::get("/v1/events")
            .header("authorization", format!("Bearer {KEY}"))
            .header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answer = api.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        answer.into_body().into_data_stream()
    };
    let text = |bytes: Option<Result<axum::body::Bytes, axum::Error>>| {
        String::from_utf8(bytes.unwrap().unwrap().to_vec()).unwrap()
    };
    let mut stream = open(None).await;
    let (first, second) = (text(stream.next().await), text(stream.next().await));
    assert!(
        first.contains(r#""type":"email.accepted""#) && second.contains(r#""type":"email.sent""#),
        "{first}{second}"
    );
    let id = |event: &str| event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    assert!(text(stream.next().await).starts_with(':'), "a heartbeat while nothing happens");
    sent(&api, "m-2").await;
    assert!(text(stream.next().await).contains("m-2"));

    let mut again = open(Some(&id(&first))).await;
    assert_eq!(text(again.next().await), second, "a reader that comes back misses nothing");
    let mut rest = open(Some(&id(&second))).await;
    assert!(text(rest.next().await).contains("m-2"));
}
