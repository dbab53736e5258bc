//! Webhooks: every event arrives, in order for each message and under one id, whatever the receiver or the
//! gateway goes through.

use std::{collections::BTreeSet, time::Duration};

use postway_e2e::{
    ALLOW_LOOPBACK, ALLOW_NOTHING, Call, Client, Gateway, Load, PATIENCE, Receiver, a_while, audit, column,
    event_types, eventually, mail, mail_with, text,
};
use postway_testkit::{SmtpSink, SourceReply};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// What a message that goes out at once tells of itself.
const SMOOTH: [&str; 2] = ["email.accepted", "email.sent"];

fn mails(count: usize) -> Vec<Value> {
    (0..count).map(|n| mail(&format!("mail-{n}"), "ada@example.net")).collect()
}

/// A mail that needs no relay.
fn sandboxed(id: &str) -> Value {
    mail_with(id, "ada@example.net", json!({"account": "sandbox"}))
}

/// Hands over all of them at once.
async fn send_all(gateway: &Client, mails: &[Value]) -> anyhow::Result<()> {
    let answer = gateway.post("/v1/messages/batch", json!({"messages": mails})).await?;
    assert_eq!(answer["accepted"], mails.len(), "{answer:#}");
    Ok(())
}

fn kinds(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(Call::kind).collect()
}

#[tokio::test]
async fn each_message_tells_its_events_once_in_order_and_signed() -> anyhow::Result<()> {
    const MAILS: usize = 50;
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    send_all(&gateway, &mails(MAILS)).await?;
    receiver.wait_for(2 * MAILS, PATIENCE).await;

    let told = receiver.told()?;
    assert_eq!(told.len(), MAILS);
    for (id, calls) in &told {
        assert_eq!(kinds(calls), SMOOTH, "{id}");
        let message = gateway.wait_until_reported(id).await?;
        assert_eq!(column(&message, "notifications", "status"), ["acknowledged"; 2], "{message:#}");
        assert_eq!(column(&message, "notifications", "event"), SMOOTH, "{message:#}");
        assert_eq!(column(&message, "notifications", "subscriber"), [receiver.id.as_str(); 2]);
        let last = &calls[1].body["data"];
        assert_eq!((text(last, "uid"), text(last, "status")), (text(&message, "uid"), "sent"));
        assert_eq!(last["recipients"][0]["smtp_code"], 250, "{last:#}");
    }
    let ids: BTreeSet<String> = receiver.calls()?.into_iter().map(|call| call.id).collect();
    assert_eq!(
        (ids.len(), receiver.count()),
        (2 * MAILS, 2 * MAILS),
        "each event came once, under its own id"
    );
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_was_out_of_order_gets_all_of_it_later() -> anyhow::Result<()> {
    const MAILS: usize = 20;
    const FAILURES: usize = 4;
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let replies = [vec![SourceReply::status(500); FAILURES], vec![SourceReply::status(200)]].concat();
    let receiver = Receiver::subscribe(&gateway, replies).await?;
    send_all(&gateway, &mails(MAILS)).await?;
    receiver.wait_for(2 * MAILS + FAILURES, PATIENCE).await;

    let told = receiver.told()?;
    assert_eq!(told.len(), MAILS);
    for (id, calls) in &told {
        assert_eq!(kinds(calls), SMOOTH, "{id}");
        gateway.wait_until_reported(id).await?;
    }
    assert_eq!(receiver.count(), 2 * MAILS + FAILURES, "what it took is not told again");
    let deliveries = gateway.get(&format!("/v1/webhooks/{}/deliveries?limit=500", receiver.id)).await?;
    let deliveries = deliveries["data"].as_array().map_or(&[][..], Vec::as_slice);
    let again = deliveries.iter().filter_map(|one| one["tries"].as_u64()).map(|tries| tries as usize - 1);
    assert_eq!(again.sum::<usize>(), FAILURES, "{deliveries:#?}");
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_was_away_for_a_day_gets_all_of_it_in_order() -> anyhow::Result<()> {
    const MAILS: usize = 20;
    const A_DAY_LATER: (&str, &str) = ("FAILPOINTS_CLOCK_SKEW_MS", "86400000");
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(503)]).await?;
    send_all(&gateway, &mails(MAILS)).await?;
    gateway.wait_until_settled(PATIENCE).await?;
    receiver.wait_for(3, PATIENCE).await;
    assert!(gateway.terminate().await?.success());
    let failures = receiver.count();
    receiver.answer(SourceReply::status(200));
    gateway.launch(&[ALLOW_LOOPBACK, A_DAY_LATER]).await?;
    receiver.wait_for(failures + 2 * MAILS, PATIENCE).await;
    let told = receiver.told()?;
    assert_eq!(told.len(), MAILS);
    for (id, calls) in &told {
        assert_eq!(kinds(calls), SMOOTH, "{id}");
        gateway.wait_until_reported(id).await?;
    }
    assert_eq!(receiver.count(), failures + 2 * MAILS);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_lose_no_event_and_change_no_order() -> anyhow::Result<()> {
    const MAILS: usize = 200;
    const KILLS: usize = 5;
    // Those of which a history and a receiver have the same to tell.
    const TOLD: [&str; 5] = ["accepted", "in_doubt", "resent", "resolved", "sent"];
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 4})).await?;
    // It takes its time to answer, so that a kill finds calls under way.
    let slow = SourceReply::Drip { body: b"ok".to_vec(), every: Duration::from_millis(10) };
    let receiver = Receiver::subscribe(&gateway, vec![slow]).await?;
    let mut acknowledged = Vec::new();
    for wave in mails(MAILS).chunks(MAILS / KILLS) {
        let load = Load::of(&[gateway.client()], wave);
        a_while(80..300).await;
        gateway.kill().await?;
        gateway.launch(&[ALLOW_LOOPBACK]).await?;
        acknowledged.extend(load.finish().await?);
    }
    assert_eq!(acknowledged.len(), MAILS);
    audit(&gateway, &sink, &acknowledged).await?;

    for one in &acknowledged {
        let message = gateway.wait_until_reported(&one.id).await?;
        let open = column(&message, "notifications", "status").iter().any(|status| status != "acknowledged");
        assert!(!open, "{message:#}");
    }
    let told = receiver.told()?;
    assert_eq!(told.len(), MAILS);
    for (id, calls) in told {
        let history: Vec<String> = event_types(&gateway.message(&id).await?)
            .into_iter()
            .filter(|kind| TOLD.contains(&kind.as_str()))
            .map(|kind| format!("email.{kind}"))
            .collect();
        assert_eq!(kinds(&calls), history, "{id}");
    }
    Ok(())
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_in_a_crash_comes_again_under_its_id() -> anyhow::Result<()> {
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[ALLOW_LOOPBACK, ("FAILPOINTS", "notify_after_answer=1*return")]).await?;
    gateway.send(sandboxed("struck")).await?;
    assert!(!gateway.ended().await?.success(), "the failpoint was not met");
    assert_eq!(receiver.count(), 1);
    gateway.launch(&[ALLOW_LOOPBACK]).await?;

    let message = gateway.wait_until_reported("struck").await?;
    assert_eq!(column(&message, "notifications", "status"), ["acknowledged"; 2], "{message:#}");
    let calls = receiver.calls()?;
    assert_eq!(kinds(&calls), ["email.accepted", "email.accepted", "email.sent"]);
    assert_eq!(calls[0].id, calls[1].id);
    assert_eq!(kinds(&receiver.told()?["struck"]), SMOOTH);
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_is_dead_delays_no_other() -> anyhow::Result<()> {
    const MAILS: usize = 15;
    // Less than the dead one makes its callers wait.
    const SOON: Duration = Duration::from_secs(14);
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    let dead = Receiver::subscribe(&gateway, vec![SourceReply::Silent]).await?;
    let lively = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    send_all(&gateway, &mails(MAILS)).await?;
    lively.wait_for(2 * MAILS, SOON).await;
    assert_eq!(lively.told()?.len(), MAILS);
    dead.wait_for(1, PATIENCE).await;

    gateway.wait_for("mail-0", "sent").await?;
    let message = gateway.message("mail-0").await?;
    assert!(message["reported_at"].is_null(), "one of them does not know yet: {message:#}");
    let of = |receiver: &Receiver| {
        let told = message["notifications"].as_array().into_iter().flatten();
        let states = told.filter(|one| text(one, "subscriber") == receiver.id);
        states.map(|one| text(one, "status").to_owned()).collect::<Vec<_>>()
    };
    assert!(of(&dead).iter().all(|status| status != "acknowledged"), "{message:#}");
    Ok(())
}

#[tokio::test]
async fn what_was_told_can_be_read_and_told_again() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::ok("thank you")]).await?;
    let hook = format!("/v1/webhooks/{}", receiver.id);
    let tested = gateway.post(&format!("{hook}/test"), json!({})).await?;
    assert_eq!((&tested["ok"], &tested["status"]), (&json!(true), &json!(200)), "{tested}");
    assert_eq!(text(&tested, "answer"), "thank you");
    assert_eq!(kinds(&receiver.calls()?), ["webhook.test"]);

    let uid = gateway.send(sandboxed("order-1")).await?;
    gateway.wait_until_reported("order-1").await?;
    let deliveries = gateway.get(&format!("{hook}/deliveries?status=acknowledged")).await?;
    assert_eq!(column(&deliveries, "data", "message"), [uid.as_str(); 2], "the test is not among them");
    let deliveries = deliveries["data"].as_array().map_or(&[][..], Vec::as_slice);
    let sent = deliveries.iter().find(|one| text(one, "event") == "email.sent").expect("it was told");
    let call = &sent["last_call"];
    assert_eq!((&call["status"], text(call, "answer")), (&json!(200), "thank you"), "{sent:#}");
    assert!(text(call, "request").contains("order-1") && call["latency_ms"].is_u64(), "{sent:#}");

    let again = format!("{hook}/deliveries/{uid}/{}/resend", sent["sequence"]);
    let (status, answer) = gateway.call(Method::POST, &again, None).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer:#}");
    receiver.wait_for(4, PATIENCE).await;
    let calls = receiver.calls()?;
    assert_eq!(kinds(&calls)[1..], ["email.accepted", "email.sent", "email.sent"]);
    assert_eq!(calls[2].id, calls[3].id);
    gateway.wait_until_reported("order-1").await?;
    Ok(())
}

/// Notifications read many mails at once, except those with many recipients.
#[tokio::test]
async fn one_that_lives_beside_many_dead_is_told_of_mails_to_one_and_to_many() -> anyhow::Result<()> {
    const DEAD: usize = 40;
    const TO_MANY: usize = 40;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    for number in 0..DEAD {
        let nowhere = format!("http://127.0.0.1:9/{number}");
        gateway.post("/v1/webhooks", json!({"url": nowhere, "events": ["*"]})).await?;
    }
    let many: Vec<String> = (0..TO_MANY).map(|number| format!("r{number}@example.net")).collect();
    let crowd = mail_with("crowd", "ada@example.net", json!({"account": "sandbox", "to": many}));
    send_all(&gateway, &[sandboxed("one"), crowd]).await?;
    receiver.wait_for(4, PATIENCE).await;

    let told = receiver.told()?;
    for (id, recipients) in [("one", 1), ("crowd", TO_MANY)] {
        let calls = &told[id];
        assert_eq!(kinds(calls), SMOOTH, "{id}");
        let sent = column(&calls[1].body["data"], "recipients", "status");
        assert_eq!(sent, vec!["sent"; recipients], "{id}");
    }
    Ok(())
}

/// What would never be called is not taken, whoever asks; a name is looked up when it is called.
#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_allowed() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_NOTHING]).await?;
    let make = async |url: &str| gateway.call(Method::POST, "/v1/webhooks", Some(json!({"url": url}))).await;
    for private in ["http://127.0.0.1:9/", "http://[::1]/", "http://10.1.2.3/", "http://localhost:9/"] {
        let (status, answer) = make(private).await?;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{private}: {answer}");
        assert!(answer.to_string().contains("POSTWAY_ALLOW_PRIVATE_TARGETS"), "{private}: {answer}");
    }
    assert_eq!(make("https://hooks.example.com/").await?.0, StatusCode::CREATED);
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.post("/v1/webhooks", json!({"url": "http://localhost:9/"})).await?;
    Ok(())
}

/// A receiver can tell a failure that is tried again from the last one, and why it came to that.
#[tokio::test]
async fn a_dead_letter_is_told_with_when_and_why_it_failed() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().rcpt("full@", "452 4.2.2 mailbox full").start().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [1], "jitter": 0.0}})).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    gateway.send(mail("dead", "full@example.net")).await?;
    let message = gateway.wait_until_reported("dead").await?;
    let told = receiver.told()?;
    let calls = &told["dead"];
    assert_eq!(kinds(calls), ["email.accepted", "email.deferred", "email.failed"]);
    let data = &calls[2].body["data"];
    for key in [
        "status",
        "attempt",
        "version",
        "exhausted",
        "failed_at",
        "request_id",
        "reason",
        "priority",
        "error",
    ] {
        assert_eq!(data[key], message[key], "{key}: {data:#}");
    }
    assert_eq!((&data["exhausted"], &data["due_at"]), (&json!(true), &Value::Null), "{data:#}");
    assert!(text(data, "reason").contains("mailbox full"), "{data:#}");
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_says_gone_is_switched_off_and_on_again_by_hand() -> anyhow::Result<()> {
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(410)]).await?;
    let hook = format!("/v1/webhooks/{}", receiver.id);
    gateway.send(sandboxed("first")).await?;
    let off = eventually("the webhook to be off", async || {
        let webhook = gateway.get(&hook).await?;
        Ok((webhook["active"] == false).then_some(webhook))
    })
    .await?;
    assert!(text(&off, "disabled_reason").contains("410"), "{off:#}");
    gateway.wait_for("first", "sent").await?;

    gateway.send(sandboxed("second")).await?;
    let second = gateway.wait_until_reported("second").await?;
    assert_eq!(second["notifications"], json!([]), "nothing is collected for one that is off");
    let calls = receiver.count();

    receiver.answer(SourceReply::status(200));
    let on = gateway.patch(&hook, json!({"active": true})).await?;
    assert_eq!((&on["active"], &on["disabled_reason"]), (&json!(true), &Value::Null));
    gateway.send(sandboxed("third")).await?;
    let third = gateway.wait_until_reported("third").await?;
    assert_eq!(column(&third, "notifications", "status"), ["acknowledged"; 2], "{third:#}");
    assert!(receiver.count() >= calls + 2);
    Ok(())
}
