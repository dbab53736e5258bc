//! The dot went out and no answer came: sent again under the same name, or held for somebody's word.

use postway_e2e::{Gateway, column, copies, event_types, events_of, eventually, mail, mail_with, text};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A relay that takes the first `count` mails and hangs up without a word.
async fn silent_taker(count: usize) -> SmtpSink {
    SmtpSink::builder().times(count, SinkVerb::Dot, SinkAction::Cut.recorded()).start().await
}

#[tokio::test]
async fn a_mail_in_doubt_is_sent_again_under_the_same_message_id() -> anyhow::Result<()> {
    let sink = silent_taker(1).await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("twice", "ada@example.net")).await?;

    let message = gateway.wait_for("twice", "sent").await?;
    assert_eq!(
        event_types(&message),
        ["accepted", "validated", "ready", "sending", "in_doubt", "sending", "resent", "sent"]
    );
    assert_eq!(column(&message, "attempts", "outcome"), ["in_doubt", "sent"]);
    assert_eq!(column(&message, "recipients", "status"), ["sent"]);
    let mails = sink.mails();
    assert_eq!(mails.len(), 2);
    assert_eq!(mails[0].message_id, mails[1].message_id);
    assert_eq!(mails[0].raw, mails[1].raw, "the same mail, byte for byte");
    Ok(())
}

async fn held(gateway: &Gateway, id: &str) -> anyhow::Result<String> {
    let uid = gateway.send(mail_with(id, "ada@example.net", json!({"on_doubt": "hold"}))).await?;
    let message = gateway.wait_for(id, "in_doubt").await?;
    assert!(message["due_at"].is_null(), "nothing will move it: {message:#}");
    assert_eq!(column(&message, "recipients", "status"), ["in_doubt"]);
    assert_eq!(message["error"]["phase"], "dot");
    let explained = gateway.get(&format!("/v1/messages/{id}/explain")).await?;
    assert_eq!(column(&explained, "gates", "gate"), ["doubt"], "{explained:#}");
    assert_eq!((&explained["gates"][0]["until"], &explained["next_at"]), (&Value::Null, &Value::Null));
    Ok(uid)
}

async fn resolve(gateway: &Gateway, id: &str, outcome: &str) -> anyhow::Result<(StatusCode, Value)> {
    let path = format!("/v1/messages/{id}/resolve");
    gateway.call(Method::POST, &path, Some(json!({"outcome": outcome}))).await
}

#[tokio::test]
async fn a_held_doubt_waits_for_somebodys_word() -> anyhow::Result<()> {
    let sink = silent_taker(3).await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let mut uids = Vec::new();
    for id in ["arrived", "vanished", "unsure"] {
        uids.push(held(&gateway, id).await?);
    }
    // A restart is no word.
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[]).await?;
    for id in ["arrived", "vanished", "unsure"] {
        assert_eq!(text(&gateway.message(id).await?, "status"), "in_doubt");
    }

    assert_eq!(resolve(&gateway, "arrived", "sent").await?.1["status"], "sent");
    assert_eq!(resolve(&gateway, "vanished", "failed").await?.1["status"], "failed");
    assert_eq!(resolve(&gateway, "unsure", "resend").await?.0, StatusCode::OK);
    gateway.wait_for("unsure", "sent").await?;
    assert_eq!(resolve(&gateway, "unsure", "sent").await?.0, StatusCode::CONFLICT);
    assert_eq!(resolve(&gateway, "arrived", "perhaps").await?.0, StatusCode::UNPROCESSABLE_ENTITY);

    let unsure = gateway.message("unsure").await?;
    let steps =
        ["accepted", "validated", "ready", "sending", "in_doubt", "resolved", "sending", "resent", "sent"];
    assert_eq!(event_types(&unsure), steps);
    for (id, status) in [("arrived", "sent"), ("vanished", "failed"), ("unsure", "sent")] {
        let message = gateway.message(id).await?;
        assert_eq!(column(&message, "recipients", "status"), [status], "{message:#}");
    }
    let taken: Vec<usize> = uids.iter().map(|uid| copies(&sink, uid)).collect();
    assert_eq!(taken, [1, 1, 2], "only what was to be sent again was sent again");
    Ok(())
}

/// Hands over a mail to somebody whom the relay takes and to somebody whom it refuses for now, so often, and
/// dies after the dot. Starts again with this delay between tries.
async fn half_in_doubt(refusals: u32, delay_s: u32) -> anyhow::Result<(SmtpSink, Gateway)> {
    let sink = SmtpSink::builder()
        .rule(move |event| {
            let refused = event.verb == SinkVerb::Rcpt && event.argument.starts_with("later@");
            (refused && event.tries <= refusals as usize).then(|| SinkAction::reply("450 4.2.0 greylisted"))
        })
        .start()
        .await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [delay_s], "jitter": 0.0}})).await?;
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[("FAILPOINTS", "smtp_after_dot=1*return")]).await?;
    let fields = json!({"to": ["here@example.net", "later@example.net"], "on_doubt": "hold"});
    // The crash may come before the answer is out: it is asked again below.
    let _unanswered = gateway.send(mail_with("half", "", fields.clone())).await;
    assert!(!gateway.ended().await?.success(), "it did not die");
    gateway.launch(&[]).await?;
    gateway.send(mail_with("half", "", fields)).await?;
    Ok((sink, gateway))
}

#[tokio::test]
async fn who_was_refused_for_now_is_tried_again_after_a_crash_that_left_others_in_doubt() -> anyhow::Result<()>
{
    let (sink, gateway) = half_in_doubt(1, 1).await?;
    let message = gateway.wait_for("half", "in_doubt").await?;
    assert_eq!(column(&message, "recipients", "status"), ["in_doubt", "sent"], "{message:#}");
    let steps = ["accepted", "validated", "ready", "sending", "scheduled", "sending", "in_doubt"];
    assert_eq!(event_types(&message), steps);
    assert!(message["due_at"].is_null(), "it is held: {message:#}");
    let last = sink.mails().pop().expect("it was tried again");
    assert_eq!(last.recipients, ["later@example.net"], "who is in doubt is not sent to again");

    assert_eq!(resolve(&gateway, "half", "failed").await?.1["status"], "sent", "to one of them it was");
    let message = gateway.message("half").await?;
    assert_eq!(column(&message, "recipients", "status"), ["failed", "sent"], "{message:#}");
    Ok(())
}

#[tokio::test]
async fn what_may_have_been_sent_stays_in_doubt_when_the_rest_is_cancelled() -> anyhow::Result<()> {
    let (_sink, gateway) = half_in_doubt(u32::MAX, 3_600).await?;
    let message = gateway.wait_for("half", "scheduled").await?;
    assert_eq!(column(&message, "recipients", "status"), ["in_doubt", "pending"], "{message:#}");

    let cancelled = gateway.post("/v1/messages/half/cancel", json!({})).await?;
    assert_eq!(cancelled["status"], "in_doubt");
    let message = gateway.message("half").await?;
    assert_eq!(column(&message, "recipients", "status"), ["in_doubt", "cancelled"], "{message:#}");
    let steps = ["accepted", "validated", "ready", "sending", "scheduled", "cancelled", "in_doubt"];
    assert_eq!(event_types(&message), steps);
    assert_eq!((text(&message["error"], "code"), &message["due_at"]), ("in_doubt", &Value::Null));

    assert_eq!(resolve(&gateway, "half", "sent").await?.1["status"], "sent");
    let message = gateway.message("half").await?;
    assert_eq!(column(&message, "recipients", "status"), ["sent", "cancelled"], "{message:#}");
    Ok(())
}

/// A relay that takes a mail, hangs up without a word, and answers so whenever it is offered again.
async fn taken_then(answer: &'static str) -> SmtpSink {
    SmtpSink::builder()
        .times(1, SinkVerb::Dot, SinkAction::Cut.recorded())
        .rule(move |event| {
            (event.verb == SinkVerb::Rcpt && event.tries > 1).then(|| SinkAction::reply(answer))
        })
        .start()
        .await
}

/// That a mail is in doubt, and that nothing but somebody's word will move it.
fn assert_held(message: &Value) {
    assert_eq!(text(message, "status"), "in_doubt", "{message:#}");
    assert_eq!(column(message, "recipients", "status"), ["in_doubt"], "{message:#}");
    assert!(message["due_at"].is_null(), "{message:#}");
}

#[tokio::test]
async fn a_refusal_of_the_second_copy_does_not_hide_that_the_first_may_have_arrived() -> anyhow::Result<()> {
    let sink = taken_then("550 5.1.1 who is that").await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("refused", "ada@example.net")).await?;
    let refused = |message: &Value| message["attempts"].as_array().is_some_and(|all| all.len() == 2);
    let message = gateway.wait_until("refused", "refused", refused).await?;
    assert_held(&message);
    let steps = ["accepted", "validated", "ready", "sending", "in_doubt", "sending", "in_doubt"];
    assert_eq!(event_types(&message), steps);
    assert_eq!(text(&message["error"], "code"), "smtp_550", "{message:#}");
    assert_eq!(sink.mails().len(), 1);
    assert_eq!(resolve(&gateway, "refused", "sent").await?.1["status"], "sent");
    Ok(())
}

#[tokio::test]
async fn a_doubt_that_waits_beyond_its_time_is_held() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().times(1, SinkVerb::Dot, SinkAction::Cut.recorded()).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [15], "jitter": 0.0}})).await?;
    let expires_at = gateway.now().await? + jiff::SignedDuration::from_secs(25);
    let mail = mail_with("brief", "ada@example.net", json!({"expires_at": expires_at.to_string()}));
    gateway.send(mail).await?;
    let message = gateway.wait_for("brief", "in_doubt").await?;
    assert!(!message["due_at"].is_null(), "it is to be sent again: {message:#}");
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    eventually("its time to be over", async || Ok((gateway.now().await? > expires_at).then_some(()))).await?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    let held = |message: &Value| message["status"] == "in_doubt" && message["due_at"].is_null();
    let message = gateway.wait_until("brief", "held", held).await?;
    assert_held(&message);
    assert_eq!((text(&message["error"], "code"), copies(&sink, text(&message, "uid"))), ("expired", 1));
    assert_eq!(events_of(&message, "resent"), 0, "{message:#}");
    Ok(())
}

#[tokio::test]
async fn a_mail_that_may_have_arrived_is_not_called_withdrawn() -> anyhow::Result<()> {
    let sink = taken_then("450 4.2.0 greylisted").await;
    let gateway = Gateway::start().await?;
    let retry = json!({"retry": {"delays_s": [1, 3600], "jitter": 0.0}});
    gateway.relay_with(sink.port(), retry).await?;
    gateway.send(mail("later", "ada@example.net")).await?;
    let tried = |message: &Value| {
        message["status"] == "scheduled" && message["attempts"].as_array().is_some_and(|all| all.len() == 3)
    };
    let message = gateway.wait_until("later", "tried three times", tried).await?;
    assert_eq!(column(&message, "recipients", "status"), ["in_doubt"], "{message:#}");

    gateway.post("/v1/messages/later/cancel", json!({})).await?;
    let message = gateway.message("later").await?;
    assert_held(&message);
    let steps: [&str; 11] = [
        "accepted",
        "validated",
        "ready",
        "sending",
        "in_doubt",
        "sending",
        "scheduled",
        "sending",
        "scheduled",
        "cancelled",
        "in_doubt",
    ];
    assert_eq!(event_types(&message), steps);
    Ok(())
}

#[tokio::test]
async fn who_may_have_got_it_is_not_called_suppressed() -> anyhow::Result<()> {
    let sink = silent_taker(1).await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let uid = held(&gateway, "gone").await?;
    gateway.post("/v1/suppressions", json!({"address": "ada@example.net", "reason": "complaint"})).await?;
    resolve(&gateway, "gone", "resend").await?;
    let again = |message: &Value| events_of(message, "in_doubt") == 2;
    let message = gateway.wait_until("gone", "in doubt again", again).await?;
    assert_held(&message);
    assert_eq!(text(&message["error"], "code"), "suppressed", "{message:#}");
    assert_eq!((copies(&sink, &uid), events_of(&message, "resent")), (1, 0), "{message:#}");
    Ok(())
}

#[tokio::test]
async fn a_mail_in_doubt_does_not_come_after_the_one_that_took_its_place() -> anyhow::Result<()> {
    let sink = silent_taker(1).await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [3600], "jitter": 0.0}})).await?;
    let keyed = |id| mail_with(id, "ada@example.net", json!({"collapse_key": "balance"}));
    gateway.send(keyed("old")).await?;
    let old = gateway.wait_for("old", "in_doubt").await?;
    assert!(old["due_at"].is_string(), "it is to be sent again: {old:#}");
    let newer = gateway.send(keyed("new")).await?;
    gateway.wait_for("new", "sent").await?;

    let old = gateway.message("old").await?;
    assert_held(&old);
    let last = old["events"].as_array().and_then(|events| events.last()).expect("it has a history");
    assert_eq!((&last["type"], &last["data"]["reason"]), (&json!("in_doubt"), &json!("superseded")));
    assert_eq!(last["data"]["by"], json!(newer));
    assert_eq!(old["on_doubt"], "hold");
    Ok(())
}
