//! Handing over twice sends once.

use futures::future::try_join_all;
use postway_e2e::{Gateway, PATIENCE, column, mail, mail_with, start_node};
use postway_testkit::{SmtpSink, mariadb::MariaDb, postgres::PostgresDatabase};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn post(gateway: &Gateway, key: &str, body: &Value) -> anyhow::Result<(StatusCode, Value)> {
    let request = gateway.request(Method::POST, "/v1/messages").header("Idempotency-Key", key);
    let answer = request.json(body).send().await?;
    Ok((answer.status(), answer.json().await?))
}

/// A mail without an id of its own.
fn nameless(subject: &str) -> Value {
    json!({"account": "relay", "from": "shop@example.com", "to": "ada@example.net", "subject": subject, "text": "Hi"})
}

#[tokio::test]
async fn the_same_key_gives_the_same_answer_and_one_mail() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let (status, first) = post(&gateway, "key-1", &nameless("One")).await?;
    assert_eq!(status, StatusCode::ACCEPTED);
    sink.wait_for(1, PATIENCE).await;
    // A repeat is known across a restart, and while or after the mail was sent.
    for _ in 0..2 {
        assert_eq!(post(&gateway, "key-1", &nameless("One")).await?, (StatusCode::ACCEPTED, first.clone()));
        gateway.kill().await?;
        gateway.launch(&[]).await?;
    }
    let (status, answer) = post(&gateway, "key-1", &nameless("Two")).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    assert_eq!(answer["error"]["code"], "conflict");

    gateway.send(mail("order-1", "ada@example.net")).await?;
    gateway.send(mail("order-1", "ada@example.net")).await?;
    let other = mail_with("order-1", "ada@example.net", json!({"subject": "Other"}));
    let (status, _) = gateway.call(Method::POST, "/v1/messages", Some(other)).await?;
    assert_eq!(status, StatusCode::CONFLICT);
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(gateway.get("/v1/stats").await?["by_status"]["sent"], 2);
    let mut uids: Vec<_> = sink.mails().into_iter().map(|mail| mail.postway_id).collect();
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), 2);
    Ok(())
}

#[tokio::test]
async fn twenty_at_once_with_the_same_key_are_one_mail() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let body = nameless("Once");
    let answers = try_join_all((0..20).map(|_| post(&gateway, "same", &body))).await?;
    for answer in &answers {
        assert_eq!(answer, &(StatusCode::ACCEPTED, answers[0].1.clone()));
    }
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_batch_takes_the_good_ones_and_names_what_is_wrong_with_the_others() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let batch = json!({
        "defaults": {"account": "relay", "from": "shop@example.com", "subject": "Hello"},
        "messages": [
            {"id": "a", "to": "ada@example.net", "text": "Hi"},
            {"id": "b", "to": "nobody", "text": "Hi"},
            {"id": "c", "to": "carl@example.net"},
            {"id": "d", "to": "dora@example.net", "html": "<p>Hi</p>"},
            {"id": "a", "to": "ada@example.net", "text": "Something else"},
        ],
    });
    let (status, answer) = gateway.call(Method::POST, "/v1/messages/batch", Some(batch.clone())).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(2), &json!(3)), "{answer:#}");
    assert_eq!(column(&answer, "results", "id"), ["a", "b", "c", "d", "a"]);
    let codes: Vec<&Value> = (0..5).map(|n| &answer["results"][n]["error"]["code"]).collect();
    assert_eq!(
        codes,
        [
            &Value::Null,
            &json!("validation_error"),
            &json!("validation_error"),
            &Value::Null,
            &json!("conflict")
        ]
    );
    let fields = [1, 2].map(|n| column(&answer["results"][n]["error"], "details", "field").join(","));
    assert_eq!(fields, ["to", "text"]);

    gateway.post("/v1/messages/batch", batch).await?;
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), 2, "repeating the batch sends nothing twice");
    Ok(())
}

/// Each key goes to both nodes in the same moment, from clients that know nothing of each other.
async fn raced_on_two_nodes(url: &str) -> anyhow::Result<()> {
    const KEYS: usize = 100;
    let sink = SmtpSink::start().await;
    let nodes = [start_node(url, "first.example").await?, start_node(url, "second.example").await?];
    nodes[0].relay_with(sink.port(), json!({"max_connections": 4})).await?;
    let race = |n: usize| {
        let nodes = &nodes;
        async move {
            let (key, body) = (format!("key-{n}"), nameless(&format!("Mail {n}")));
            // Whichever is asked first, and twice each.
            let order = if n.is_multiple_of(2) { [0, 1, 0, 1] } else { [1, 0, 1, 0] };
            let answers = try_join_all(order.map(|node| post(&nodes[node], &key, &body))).await?;
            for answer in &answers {
                assert_eq!(answer, &(StatusCode::ACCEPTED, answers[0].1.clone()), "{key}: {answers:?}");
            }
            anyhow::Ok(answers[0].1["uid"].clone())
        }
    };
    let mut uids = Vec::new();
    for first in (0..KEYS).step_by(10) {
        uids.extend(try_join_all((first..first + 10).map(race)).await?);
    }
    // The same key for another mail is refused by whichever node it comes to.
    for node in &nodes {
        let (status, answer) = post(node, "key-0", &nameless("Another")).await?;
        assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    }
    let stats = nodes[1].wait_until_settled(PATIENCE).await?;
    assert_eq!(stats["by_status"]["sent"], KEYS, "{stats:#}");
    let mut sent: Vec<Value> = sink.mails().into_iter().map(|mail| json!(mail.postway_id)).collect();
    let by_text = |one: &Value| one.to_string();
    sent.sort_by_key(by_text);
    uids.sort_by_key(by_text);
    assert_eq!(sent, uids, "one mail for each key");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_raced_on_two_nodes_is_one_mail_on_postgresql() -> anyhow::Result<()> {
    raced_on_two_nodes(&PostgresDatabase::create().url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_raced_on_two_nodes_is_one_mail_on_mariadb() -> anyhow::Result<()> {
    raced_on_two_nodes(&MariaDb::shared().create_database()).await
}
