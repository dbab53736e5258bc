//! Streams and long waits end with the right that opened them, on every node.

use std::time::Duration;

use axum::{body::Body, http::Request};
use futures::StreamExt;
use postway_domain::{MessageState, RecipientStatus};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    support::{Api, KEY},
    users::Person,
};

/// Two seconds of a cache, two between checks, and a machine that others use.
const SECONDS_MAX: Duration = Duration::from_secs(20);

/// Opens a stream, and waits for its first piece; what is left of it ends when the stream does.
async fn open(node: &Api, path: &str, name: &str, value: &str) -> tokio::task::JoinHandle<()> {
    let request = Request::get(path).header("accept", "text/event-stream").header(name, value);
    let answer = node.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    let mut pieces = answer.into_body().into_data_stream();
    assert!(pieces.next().await.is_some(), "{path} says nothing");
    tokio::spawn(async move { while pieces.next().await.is_some_and(|piece| piece.is_ok()) {} })
}

async fn ends(what: &str, stream: tokio::task::JoinHandle<()>) {
    tokio::time::timeout(SECONDS_MAX, stream).await.unwrap_or_else(|_| panic!("{what} goes on")).unwrap();
}

#[tokio::test]
async fn a_stream_ends_with_the_session_the_role_or_the_key_that_opened_it() {
    let api = Api::start().await;
    let other_node = api.beside(None);
    api.stored("m-1", MessageState::Sent, &[("bob@example.net", RecipientStatus::Sent)]).await;
    api.fan_out().await;
    let ada = Person::made(&api, "ada", "viewer", json!(["default"])).await;
    let eve = Person::made(&api, "eve", "viewer", json!(["default"])).await;
    let made = api.post("/v1/tenants/default/keys", json!({"scopes": ["read"]})).await.ok(201);
    let (key, key_id) = (text(&made, "key"), text(&made, "id"));
    let admins = open(&api, "/v1/events", "x-api-key", KEY).await;
    let mut streams = Vec::new();
    for node in [&api, &other_node] {
        for path in ["/v1/events", "/v1/overview"] {
            streams.push(("ada's", open(node, path, "cookie", &ada.cookie).await));
            streams.push(("eve's", open(node, path, "cookie", &eve.cookie).await));
            streams.push(("the key's", open(node, path, "x-api-key", &key).await));
        }
    }
    // They last longer than what is remembered of a right.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(streams.iter().all(|(_, stream)| !stream.is_finished()));
    assert_eq!(ada.ask(&api, "DELETE", "/v1/sessions", "").await.status, 204);
    api.patch("/v1/users/eve", json!({"disabled": true})).await.ok(200);
    assert_eq!(api.delete(&format!("/v1/tenants/default/keys/{key_id}")).await, 204);
    for (whose, stream) in streams {
        ends(whose, stream).await;
    }
    assert!(!admins.is_finished(), "others go on");
    admins.abort();
}

#[tokio::test]
async fn who_lost_the_right_while_waiting_gets_nothing_more() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "admin", json!(null)).await;
    let paths = ["/v1/events?after=now&wait=4", "/v1/audit/lines?after=99&wait=4"];
    let taken_away = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(api.delete("/v1/users/ada/sessions").await, 204);
    };
    let (events, lines, ()) =
        tokio::join!(ada.ask(&api, "GET", paths[0], ""), ada.ask(&api, "GET", paths[1], ""), taken_away);
    events.refused(401, "unauthorized");
    lines.refused(401, "unauthorized");
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap().to_owned()
}
