//! Reference system 002, an IMAP monitor that forwards each mail once: its document from top to bottom, on
//! the real binary with Dovecot. The numbers are those of its requirements. `mailboxes` walks the table of
//! mailboxes.
//!
//! What is shown elsewhere: nothing missed and nothing decided twice through kills and a rebuilt mailbox (1,
//! 3–5, 17, 24, 36, 47, 49: `forwarding.rs`), mail that breaks its worker (49: `poison.rs`), the words of the
//! views in every database (7–28: the store's `views/tests/words.rs`), one page after the other, a proxy, a
//! failing mailbox beside others (32, 33, 35, 45, 51: `crates/inbound/tests`), and metrics (40–43:
//! `crates/inbound/src/tally.rs` and the guide's tests).
//!
//! Each requirement under its number, with the tests that show it here and elsewhere: `requirements/002.md`.

mod mailboxes;

use anyhow::Context;
use postway_e2e::{Gateway, PATIENCE, eventually, text};
use postway_testkit::{
    SinkPause, SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A mail that says when it was sent: long before it came.
fn received(n: usize, subject: &str) -> Vec<u8> {
    format!(
        "From: Client {n} <client-{n}@example.org>\r\nTo: desk@example.com\r\nSubject: {subject}\r\n\
         Message-ID: <case-{n}@example.org>\r\nDate: Sun, 15 Nov 2026 04:00:00 +0000\r\n\r\nBody of {n}\r\n"
    )
    .into_bytes()
}

async fn watch(gateway: &Gateway, dovecot: &Dovecot, id: &str, fields: Value) -> anyhow::Result<()> {
    let mut mailbox = json!({
        "id": id, "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": id, "password": PASSWORD,
        "start": "beginning", "poll_seconds": 5,
    });
    for (name, value) in fields.as_object().context("no object")? {
        mailbox[name] = value.clone();
    }
    gateway.post("/v1/mailboxes", mailbox).await.map(drop)
}

/// A rule that finds the lawyer by the client's name in the subject.
fn to_their_lawyer(mailbox: &str, fields: Value) -> Value {
    let mut forward =
        json!({"do": "forward", "contact": "{client}", "account": "relay", "from": "desk@example.com"});
    if let Some(fields) = fields.as_object() {
        forward.as_object_mut().expect("it is one").extend(fields.clone());
    }
    let subject = json!({"field": "subject", "regex": "case of (?<client>[a-z]+)"});
    json!({"id": format!("{mailbox}-rule"), "mailbox": mailbox, "match": [subject], "actions": [forward]})
}

async fn contact(gateway: &Gateway, name: &str) -> anyhow::Result<()> {
    let addresses = [format!("{name}@lawyers.example")];
    gateway.post("/v1/contacts", json!({"name": name, "addresses": addresses})).await.map(drop)
}

async fn of_status(gateway: &Gateway, mailbox: &str, status: &str) -> anyhow::Result<Vec<Value>> {
    let found = gateway.get(&format!("/v1/inbound?limit=500&mailbox={mailbox}&status={status}")).await?;
    Ok(found["data"].as_array().cloned().unwrap_or_default())
}

async fn wait_for(
    gateway: &Gateway,
    mailbox: &str,
    status: &str,
    count: usize,
) -> anyhow::Result<Vec<Value>> {
    let what = format!("{count} mails of {mailbox} that are {status}");
    let found = eventually(&what, async || {
        let found = of_status(gateway, mailbox, status).await?;
        Ok((found.len() == count).then_some(found))
    });
    found.await.with_context(|| gateway.log())
}

/// The numbers in the subjects that arrived, in the order in which they did.
fn arrived(sink: &SmtpSink) -> Vec<usize> {
    let subjects = sink.mails().into_iter().filter_map(|mail| mail.header("Subject"));
    subjects.filter_map(|subject| subject.rsplit(' ').next()?.parse().ok()).collect()
}

/// 6, 15, 19–21, 26–28, 31, 38, 39, 44, 48, and the page's own order: mailbox, contacts, rules.
/// Requirements 1, 6, 15, 18, 19, 21, 31, 39–43, 48.
#[tokio::test]
async fn a_mover_who_follows_the_page_finds_every_mail_in_order() -> anyhow::Result<()> {
    const MAILS: usize = 200;
    let (dovecot, sink) = (Dovecot::start(), SmtpSink::start().await);
    let gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    let mails: Vec<Vec<u8>> = (0..MAILS).map(|n| received(n, &format!("case of ada {n}"))).collect();
    dovecot.append_all("desk", "INBOX", &mails);
    watch(&gateway, &dovecot, "desk", json!({})).await?;
    // What comes before the rule waits for it.
    let waiting = wait_for(&gateway, "desk", "waiting", MAILS).await?;
    assert!(text(&waiting[0], "error").contains("no active rule"), "{:#}", waiting[0]);
    contact(&gateway, "ada").await?;
    gateway.post("/v1/rules", to_their_lawyer("desk", json!({}))).await?;
    let routed = wait_for(&gateway, "desk", "routed", MAILS).await?;
    sink.wait_for(MAILS, PATIENCE).await;
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(arrived(&sink), (0..MAILS).collect::<Vec<_>>(), "in the order in which they came");

    // Ids rise with the order of arrival; lists have the newest first.
    let uids: Vec<u64> = routed.iter().rev().filter_map(|mail| mail["imap_uid"].as_u64()).collect();
    assert!(uids.is_sorted() && uids.len() == MAILS, "{uids:?}");
    let task = gateway.get(&format!("/v1/inbound/{}", text(&routed[0], "id"))).await?;
    assert_eq!(
        (text(&task, "date"), task["attempts"].as_i64()),
        ("2026-11-15T04:00:00.000Z", Some(1)),
        "{task:#}"
    );
    assert_ne!(task["arrived_at"], task["date"]);
    let content = gateway.get(&format!("/v1/inbound/{}/content", text(&routed[0], "id"))).await?;
    assert!(content["text"].as_str().is_some_and(|text| text.contains("Body of 199")), "{content:#}");
    let message = gateway.message(text(&task["messages"][0], "uid")).await?;
    assert_eq!((text(&message, "status"), text(&message, "batch")), ("sent", "mailbox:desk"), "{message:#}");
    let metrics = String::from_utf8(gateway.bytes("/metrics").await?.2)?;
    let of_desk = |name: &str| {
        let start = format!("postway_{name}{{tenant=\"default\",mailbox=\"desk\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse::<f64>().ok())
    };
    assert_eq!(of_desk("inbound_processed_total"), Some(MAILS as f64), "{metrics}");
    assert_eq!(of_desk("mailbox_lag"), Some(0.0), "{metrics}");
    // The first try of each found no rule.
    for name in ["inbound_tries_total", "inbound_retries_total", "mailbox_round_seconds_count"] {
        assert!(of_desk(name).is_some_and(|count| count >= 1.0), "{name}\n{metrics}");
    }
    for name in ["inbound_no_match_total", "inbound_skipped_total", "inbound_failed_total"] {
        assert_eq!(of_desk(name).unwrap_or(0.0), 0.0, "{name}\n{metrics}");
    }
    Ok(())
}

/// 22, 25, 29, 30, 37, 38, 46 and the first day: contacts that come later, an account that a rule needs, a
/// relay that refuses. Requirements 22, 25, 28–30, 37, 38, 40, 46.
#[tokio::test]
async fn what_was_not_forwarded_can_be_forwarded_later_and_once() -> anyhow::Result<()> {
    let dovecot = Dovecot::start();
    let sink = SmtpSink::builder().rcpt("refused@", "550 5.1.1 no such user").start().await;
    let gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    watch(&gateway, &dovecot, "desk", json!({"mail_bytes_max": 65_536})).await?;
    gateway.post("/v1/rules", to_their_lawyer("desk", json!({}))).await?;
    contact(&gateway, "refused").await?;
    let mut large = received(9, "case of large 9");
    large.resize(2_000_000, b'x');
    let subjects = ["case of eve 1", "case of eve 2", "case of refused 3"];
    let mut mails: Vec<_> = (1..).zip(subjects).map(|(n, subject)| received(n, subject)).collect();
    mails.push(large);
    dovecot.append_all("desk", "INBOX", &mails);
    let unmatched = wait_for(&gateway, "desk", "no_match", 2).await?;
    assert!(text(&unmatched[0], "error").contains("no contact named"), "{:#}", unmatched[0]);
    let dead = wait_for(&gateway, "desk", "dead", 1).await?;
    assert!(text(&dead[0], "error").contains("mail_bytes_max"), "{:#}", dead[0]);
    wait_for(&gateway, "desk", "routed", 1).await?;
    let of_desk = |name: &str, count: usize| {
        format!("postway_inbound_{name}_total{{tenant=\"default\",mailbox=\"desk\"}} {count}")
    };
    let counts = [of_desk("processed", 3), of_desk("no_match", 2), of_desk("failed", 1)];
    eventually("all to be counted", async || {
        let metrics = String::from_utf8(gateway.bytes("/metrics").await?.2)?;
        Ok(counts.iter().all(|line| metrics.lines().any(|shown| shown == line)).then_some(()))
    })
    .await?;

    contact(&gateway, "eve").await?;
    let all = json!({"mailbox": "desk", "status": "no_match"});
    let replayed = gateway.post("/v1/inbound/replay", all.clone()).await?;
    assert_eq!((replayed["replayed"].as_u64(), replayed["more"].as_bool()), (Some(2), Some(false)));
    sink.wait_for(2, PATIENCE).await;
    wait_for(&gateway, "desk", "routed", 3).await?;
    let again = gateway.cli(&["inbound", "replay", "--status", "routed", "--mailbox", "desk"]).await?;
    anyhow::ensure!(again.out.contains('3'), "{}", again.out);
    wait_for(&gateway, "desk", "routed", 3).await?;
    assert_eq!(gateway.post("/v1/inbound/replay", all).await?["replayed"], 0);
    let (status, answer) =
        gateway.call(Method::POST, "/v1/inbound/replay", Some(json!({"state": "dead"}))).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), 2, "none of them twice");

    // What the relay refused is tried again by the message's own retry.
    let failed = gateway.get("/v1/messages?status=failed").await?;
    let failed = text(&failed["data"][0], "uid").to_owned();
    sink.clear_rules();
    gateway.post(&format!("/v1/messages/{failed}/retry"), json!({})).await?;
    gateway.wait_for(&failed, "sent").await?;

    let (status, answer) = gateway.call(Method::DELETE, "/v1/accounts/relay", None).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{answer:#}");
    assert!(answer.to_string().contains("desk-rule"), "{answer:#}");
    let (status, answer) = gateway.call(Method::DELETE, "/v1/accounts/relay?force=true", None).await?;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer:#}");
    Ok(())
}

/// 27: a mail counts as forwarded, and is moved, only once its forward has left: without an account that
/// sends it waits, and what the sandbox took on purpose is an error. Requirement 27.
#[tokio::test]
async fn a_mail_whose_forward_would_be_captured_waits_and_stays_where_it_is() -> anyhow::Result<()> {
    let (dovecot, sink) = (Dovecot::start(), SmtpSink::start().await);
    let gateway = Gateway::start_untouched(&[]).await?;
    contact(&gateway, "ada").await?;
    dovecot.append("desk", "INBOX", &received(1, "case of ada 1"));
    watch(&gateway, &dovecot, "desk", json!({})).await?;
    let mut rule = to_their_lawyer("desk", json!({"account": null}));
    rule["actions"].as_array_mut().context("no list")?.push(json!({"do": "mark_seen"}));
    gateway.post("/v1/rules", rule).await?;
    let sentence = "no account of this tenant sends mail yet";
    let waiting = eventually("the mail to wait for an account", async || {
        let waiting = of_status(&gateway, "desk", "waiting").await?;
        Ok(waiting.first().filter(|mail| text(mail, "error").contains(sentence)).cloned())
    });
    let waiting = waiting.await.with_context(|| gateway.log())?;
    assert_eq!(gateway.get("/v1/messages").await?["data"], json!([]), "nothing was captured");
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    // By itself, within half a minute.
    let routed = wait_for(&gateway, "desk", "routed", 1).await?;
    assert_eq!(routed[0]["id"], waiting["id"]);
    sink.wait_for(1, PATIENCE).await;

    dovecot.append("trial", "INBOX", &received(2, "case of ada 2"));
    watch(&gateway, &dovecot, "trial", json!({})).await?;
    gateway.post("/v1/rules", to_their_lawyer("trial", json!({"account": "sandbox"}))).await?;
    let routed = wait_for(&gateway, "trial", "routed", 1).await?;
    let task = gateway.get(&format!("/v1/inbound/{}", text(&routed[0], "id"))).await?;
    gateway.wait_for(text(&task["messages"][0], "uid"), "captured").await?;
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}

/// 2: never twice, said by the rule, whatever is killed and when; and what nobody can know is listed, and
/// settled by a word. Requirement 2.
#[tokio::test]
async fn with_hold_no_second_copy_arrives_whatever_is_killed() -> anyhow::Result<()> {
    const MAILS: usize = 200;
    const KILLS: usize = 5;
    let (dovecot, sink) = (Dovecot::start(), SmtpSink::start().await);
    let mut gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    let mails: Vec<Vec<u8>> = (0..MAILS).map(|n| received(n, &format!("case of ada {n}"))).collect();
    dovecot.append_all("desk", "INBOX", &mails);
    contact(&gateway, "ada").await?;
    watch(&gateway, &dovecot, "desk", json!({"active": false})).await?;
    gateway.post("/v1/rules", to_their_lawyer("desk", json!({"on_doubt": "hold"}))).await?;
    for kill in 0..KILLS {
        // The relay has the mail, and its answer never comes.
        let hold = SinkPause::new();
        sink.hold_next_dot(&hold);
        if kill == 0 {
            gateway.post("/v1/mailboxes/desk/activate", json!({})).await?;
        }
        tokio::time::timeout(PATIENCE, hold.reached()).await.context("nothing was sent")?;
        gateway.kill().await?;
        hold.release();
        sink.clear_rules();
        gateway.launch(&[]).await?;
    }
    let all = eventually("all mail to be dealt with", async || {
        for mail in of_status(&gateway, "desk", "dead").await? {
            gateway.post(&format!("/v1/inbound/{}/replay", text(&mail, "id")), json!({})).await?;
        }
        Ok((of_status(&gateway, "desk", "routed").await?.len() == MAILS).then_some(()))
    });
    all.await.with_context(|| gateway.log())?;
    let doubtful = eventually("the rest to be sent", async || {
        let sent = gateway.get("/v1/messages?status=sent&limit=500").await?;
        let held = gateway.get("/v1/messages?status=in_doubt&limit=500").await?;
        let (sent, held) =
            (sent["data"].as_array().context("no list")?, held["data"].as_array().context("no list")?);
        Ok((sent.len() + held.len() == MAILS).then(|| held.clone()))
    });
    let doubtful = doubtful.await.with_context(|| gateway.log())?;
    assert_eq!(doubtful.len(), KILLS, "each kill left one mail of which nobody knows");
    let mut numbers = arrived(&sink);
    numbers.sort();
    assert_eq!(numbers, (0..MAILS).collect::<Vec<_>>(), "each mail once");
    for message in &doubtful {
        let path = format!("/v1/messages/{}/resolve", text(message, "uid"));
        gateway.post(&path, json!({"outcome": "sent"})).await?;
    }
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), MAILS, "no word sent anything");
    Ok(())
}

/// 2: who says what to do in doubt, and who is heard first: the message, the call, the rule, the mailbox, the
/// account, the tenant. Requirement 2.
#[tokio::test]
async fn every_door_and_every_level_says_what_to_do_in_doubt() -> anyhow::Result<()> {
    let (dovecot, sink) = (Dovecot::start(), SmtpSink::start().await);
    let gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
    let doors = [
        (
            "/v1/messages",
            json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"}),
            "on_doubt",
        ),
        (
            "/compat/004/v1/email/send",
            json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "html": "<p>t</p>",
            "recipient": {"externalId": "C-1", "email": "b@example.net"}}),
            "onDoubt",
        ),
        (
            "/compat/000/emails",
            json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "body_text": "t"}),
            "on_doubt",
        ),
        (
            "/compat/001/commands/add-messages",
            json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "body": "t"}),
            "on_doubt",
        ),
        (
            "/compat/resend/emails",
            json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"}),
            "",
        ),
        (
            "/compat/postmark/email",
            json!({"From": "a@example.com", "To": "b@example.net", "Subject": "s", "TextBody": "t"}),
            "",
        ),
    ];
    let mut number = 0;
    // Sends through a door; what the message that came of it does in doubt.
    let mut through = async |path: &str, mut mail: Value, header: Option<&str>| -> anyhow::Result<String> {
        number += 1;
        let body = match path {
            "/compat/000/emails" | "/compat/001/commands/add-messages" => {
                mail["id"] = format!("m-{number}").into();
                let list = if path.contains("000") { "data" } else { "messages" };
                json!({list: [mail]})
            }
            _ => mail,
        };
        let mut request = gateway.request(Method::POST, path);
        if path.contains("postmark") {
            request = request.header("X-Postmark-Server-Token", gateway.key());
        }
        if let Some(word) = header {
            request = request.header("X-Postway-On-Doubt", word);
        }
        let answer = request.json(&body).send().await?;
        let (status, answer) = (answer.status(), answer.text().await?);
        anyhow::ensure!(status.is_success(), "{path}: {status} {answer}");
        let newest = gateway.get("/v1/messages?limit=1").await?;
        let message = gateway.message(text(&newest["data"][0], "uid")).await?;
        Ok(text(&message, "on_doubt").to_owned())
    };
    for (path, mail, field) in doors {
        assert_eq!(through(path, mail.clone(), None).await?, "resend", "{path}");
        assert_eq!(through(path, mail.clone(), Some("hold")).await?, "hold", "{path}");
        if !field.is_empty() {
            let mut said = mail;
            said[field] = "hold".into();
            assert_eq!(through(path, said, Some("resend")).await?, "hold", "{path}");
        }
    }
    let refused = gateway.request(Method::POST, "/v1/messages").header("X-Postway-On-Doubt", "panic");
    let refused =
        refused.json(&json!({"from": "a@example.com", "to": "b@example.net", "text": "t"})).send().await?;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);

    let plain = json!({"from": "a@example.com", "to": "b@example.net", "subject": "s", "text": "t"});
    gateway.patch("/v1/tenants/default", json!({"on_doubt": "hold"})).await?;
    assert_eq!(through("/v1/messages", plain.clone(), None).await?, "hold", "the tenant's");
    gateway.patch("/v1/accounts/relay", json!({"on_doubt": "resend"})).await?;
    assert_eq!(through("/v1/messages", plain, None).await?, "resend", "the account's comes first");

    contact(&gateway, "ada").await?;
    for (mailbox, fields, action, expected) in [
        ("by-account", json!({}), json!({}), "resend"),
        ("by-mailbox", json!({"on_doubt": "hold"}), json!({}), "hold"),
        ("by-rule", json!({"on_doubt": "hold"}), json!({"on_doubt": "resend"}), "resend"),
    ] {
        dovecot.append(mailbox, "INBOX", &received(1, "case of ada 1"));
        watch(&gateway, &dovecot, mailbox, fields).await?;
        gateway.post("/v1/rules", to_their_lawyer(mailbox, action)).await?;
        let routed = wait_for(&gateway, mailbox, "routed", 1).await?;
        let task = gateway.get(&format!("/v1/inbound/{}", text(&routed[0], "id"))).await?;
        let message = gateway.message(text(&task["messages"][0], "uid")).await?;
        assert_eq!(message["on_doubt"], expected, "{mailbox}");
    }
    let wrong = to_their_lawyer("by-rule", json!({"on_doubt": "perhaps"}));
    let (status, answer) = gateway.call(Method::POST, "/v1/rules", Some(wrong)).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:#}");
    assert!(answer.to_string().contains("actions[0].on_doubt"), "{answer:#}");
    Ok(())
}
