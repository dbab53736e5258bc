//! Accepted mail, and the changes to its header.

use std::sync::atomic::Ordering;

use postway_domain::{MessagePriority, RecipientKind, TenantSettings};

use crate::{MAIL, TestGateway, config, uid_of};

#[tokio::test]
async fn a_mail_is_durable_when_it_is_answered_and_has_its_trace() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let uid = uid_of(&client.send(MAIL).await);
    let raw = gateway.raw(uid).await;
    assert!(
        raw.starts_with("Received: from me.example ([127.0.0.1])\r\n\tby mx.example with ESMTPA id smtp-"),
        "{raw}"
    );
    let front = format!(";\r\n\tMon, 1 Jan 2024 00:00:00 +0000\r\nX-Postway-ID: {uid}\r\n");
    assert!(raw.contains(&front) && raw.contains("\r\nMIME-Version: 1.0\r\nFrom: Shop"), "{raw}");
    assert!(raw.contains("\r\nDate: ") && raw.contains(&format!("Message-ID: <{uid}@example.com>")), "{raw}");
    assert!(raw.ends_with("\r\n\r\nHi.\r\n"), "{raw}");
    let again = uid_of(&client.send(MAIL).await);
    assert!(again != uid && gateway.count().await == 2);
    client.expect("QUIT", "221").await;
    assert!(client.is_over().await);
}

#[tokio::test]
async fn the_envelope_decides_who_gets_it() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    client.say("MAIL FROM:<bounce@example.com>\r\nRCPT TO:<ada@example.net>\r\nRCPT TO:<hidden@example.net>\r\nDATA\r\n").await;
    for code in ["250", "250", "250", "354"] {
        assert!(client.reply().await.starts_with(code));
    }
    let mail = MAIL.replace("Subject:", "Bcc: nobody@example.net\r\nSubject:");
    let uid = uid_of(&client.ask(&format!("{mail}.")).await);
    let stored = gateway.stored(uid).await;
    let recipients: Vec<_> = stored.recipients.iter().map(|to| (to.address.as_str(), to.kind)).collect();
    assert_eq!(
        recipients,
        [("ada@example.net", RecipientKind::To), ("hidden@example.net", RecipientKind::Bcc)]
    );
    let raw = gateway.raw(uid).await;
    assert!(!raw.contains("nobody@") && !raw.contains("hidden@"), "{raw}");
}

/// Another gateway may have added these fields; without them the two would forward to each other in a loop.
#[tokio::test]
async fn marks_against_loops_go_on_with_the_mail() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let marks = "X-Postway-Forwarded: 00112233445566778899aabbccddeeff\r\n\
                 X-Postway-Forwarded: ffeeddccbbaa99887766554433221100\r\n";
    let uid = uid_of(&client.send(&format!("{marks}X-Postway-Forwarded: other\r\n{MAIL}")).await);
    let raw = gateway.raw(uid).await;
    assert!(raw.contains(marks), "{raw}");
    assert_eq!(raw.matches("X-Postway-Forwarded").count(), 2, "{raw}");
}

#[tokio::test]
async fn header_fields_choose_options_and_do_not_leave() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let chosen = "X-Postway-Batch: news\r\nX-Postway-Priority: high\r\nX-Postway-Tag: a, b\r\nX-Postway-Client-Id: c-1\r\n\
        X-Postway-Idempotency-Key: k\r\nX-Postway-Unknown: x\r\n";
    let uid = uid_of(&client.send(&format!("{chosen}{MAIL}")).await);
    let stored = gateway.stored(uid).await;
    let lane = &stored.summary.lane;
    assert_eq!(
        (lane.batch.as_ref().map(|batch| batch.as_str()), lane.priority),
        (Some("news"), MessagePriority::High)
    );
    assert_eq!(stored.summary.tags, ["a", "b"]);
    let raw = gateway.raw(uid).await;
    assert_eq!(raw.matches("X-Postway-").count(), 1, "{raw}");
    assert!(raw.contains(&format!("X-Postway-ID: {uid}")), "{raw}");

    assert_eq!(uid_of(&client.send(&format!("{chosen}{MAIL}")).await), uid, "a repeat is the same mail");
    let anew = format!("Date: Tue, 2 Jan 2024 00:00:00 +0000\r\nMessage-ID: <anew@host>\r\n{chosen}{MAIL}");
    assert_eq!(uid_of(&client.send(&anew).await), uid, "also when its program has made it anew");
    let other = client.send(&format!("{chosen}{MAIL}PS\r\n")).await;
    assert!(other.starts_with("554 5.6.0 "), "{other}");
    for (header, named) in [
        ("X-Postway-Priority: urgent", "X-Postway-Priority: "),
        ("X-Postway-Account: nowhere", "X-Postway-Account: "),
        ("X-Postway-Send-At: soon", "X-Postway-Send-At: "),
        ("X-Postway-Idempotency-Key: \u{e9}", "X-Postway-Idempotency-Key: "),
    ] {
        let refused = client.send(&format!("{header}\r\n{MAIL}")).await;
        assert!(refused.starts_with(&format!("550 5.6.0 {named}")), "{refused}");
    }
    assert_eq!(gateway.count().await, 1);
}

#[tokio::test]
async fn choices_may_be_encoded_as_mail_programs_do() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let chosen = "X-Postway-Tag: =?utf-8?q?B=C3=BCcher?=\r\nX-Postway-Batch: =?utf-8?q?spring-?=\r\n =?utf-8?q?news?=\r\n";
    let stored = gateway.stored(uid_of(&client.send(&format!("{chosen}{MAIL}")).await)).await;
    assert_eq!(stored.summary.tags, ["B\u{fc}cher"]);
    assert_eq!(stored.summary.lane.batch.as_ref().map(|batch| batch.as_str()), Some("spring-news"));
}

#[tokio::test]
async fn a_mail_that_cannot_be_sent_is_refused_with_its_fault() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let endless = format!("X: {}\r\n\r\n", "y".repeat(60 * 1024));
    for (mail, fault) in [
        ("From: a@example.com\r\n\r\na\0b\r\n", "550 5.6.0 "),
        (
            "From: a@example.com\r\nno field\r\nBcc: hidden@example.net\r\n\r\nHi\r\n",
            "550 5.6.0 line 2 of the mail is no header field",
        ),
        (&format!("{}{MAIL}", "Received: from a by b;\r\n\tx\r\n".repeat(101)), "554 5.4.6 "),
    ] {
        let refused = client.send(mail).await;
        assert!(refused.starts_with(fault), "{mail:?}: {refused}");
    }
    uid_of(&client.send(&endless).await);
    let large = client.send(&format!("{MAIL}{}", "x\r\n".repeat(22_000))).await;
    assert!(large.starts_with("552 5.3.4 "), "{large}");
    uid_of(&client.send(MAIL).await);
    assert_eq!(gateway.count().await, 2);
}

/// Mail that Postfix carries is accepted: the envelope names the recipients, so the header need not.
#[tokio::test]
async fn an_odd_header_is_carried_and_not_judged() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    for header in [
        "From: Shop <shop@example.com>\r\nTo: root",
        "From: Shop <shop@example.com>\r\nTo: Customers",
        "From: Shop <shop@example.com>\r\nTo: (recipient list suppressed)",
        "From: Shop <shop@example.com>\r\nTo: undisclosed-recipients:;",
        "From: Shop <shop@example.com>\r\nTo: Doe, John <ada@example.net>",
        "From: Shop <shop@example.com>\r\nTo: ada@example.net, not an address, @",
        "From: Shop <shop@example.com>\r\nTo: a@example.net\r\nTo: b@example.net\r\nCc: x\r\nCc: y",
        "From: Shop <shop@example.com>\r\nReply-To: nobody\r\nReply-To: <>\r\nSubject: a\r\nSubject: b",
        "From: Shop <shop@example.com>\r\nDate: yesterday\r\nDate: today",
        "From: Doe, John <shop@example.com>, root",
        "From: <shop@example.com> (Shop",
    ] {
        let rest = "\r\nMessage-ID: <one@host>\r\nDate: x\r\nMIME-Version: 1.0\r\n\r\nHi.\r\n";
        let uid = uid_of(&client.send(&format!("{header}{rest}")).await);
        let raw = gateway.raw(uid).await;
        assert!(raw.ends_with(&format!("\r\nX-Postway-ID: {uid}\r\n{header}{rest}")), "{raw}");
        let stored = gateway.stored(uid).await;
        assert_eq!((stored.recipients.len(), stored.summary.message_id.as_str()), (1, "one@host"));
        assert_eq!(changes(&stored), Vec::<String>::new(), "{header}");
    }
}

/// The changes that the history of a message lists.
fn changes(stored: &postway_store::record::MessageRecord) -> Vec<String> {
    let validated =
        stored.events.iter().find(|event| event.kind == postway_domain::EventKind::Validated).unwrap();
    let data: serde_json::Value = serde_json::from_str(validated.data.as_deref().unwrap()).unwrap();
    let words = data["changes"].as_array().into_iter().flatten();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_was_changed_is_told_in_the_history() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let long = format!("From: a@example.com\r\n\r\n{}\r\n", "x".repeat(2_000));
    for (mail, told) in [
        (MAIL, &["message_id_added", "date_added", "mime_version_added"][..]),
        (
            "From: root (Cron Daemon)\r\nTo: root\r\nMessage-ID: <1@host>\r\nDate: x\r\nMIME-Version: 1.0\r\n\r\nHi\r\n",
            &["from_completed"],
        ),
        ("Message-ID: <1@host>\r\nDate: x\r\nMIME-Version: 1.0\r\n\r\nHi\r\n", &["from_completed"]),
        (
            "From: a@example.com\r\nSubject: \u{fc}\r\nBcc: x\r\nMessage-ID: odd\r\nDate: x\r\nMIME-Version: 1.0\r\n\r\n",
            &["message_id_replaced", "bcc_removed", "header_8bit_encoded"],
        ),
        (&long, &["message_id_added", "date_added", "mime_version_added", "long_lines_reencoded"]),
        (
            "Hi there\r\n",
            &["from_completed", "message_id_added", "date_added", "mime_version_added", "header_ended"],
        ),
        (
            "From: a@example.com\r\nFrom: b@example.com\r\nX-PM-Tag: t\r\nMessage-ID: <1@host>\r\nDate: x\r\nMIME-Version: 1.0\r\n\r\n",
            &["author_repeated", "service_fields_removed"],
        ),
    ] {
        let stored = gateway.stored(uid_of(&client.send(mail).await)).await;
        assert_eq!(changes(&stored), told, "{mail}");
    }
}

#[tokio::test]
async fn an_author_without_an_address_is_completed_from_the_envelope_or_the_tenant() {
    let cron = "From: root (Cron Daemon)\r\nTo: root\r\nSubject: Cron\r\n\r\nout of disk\r\n";
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let raw = gateway.raw(uid_of(&client.send(cron).await)).await;
    assert!(raw.contains("\r\nFrom: \"Cron Daemon\" <shop@example.com>\r\nX-Original-From: root (Cron Daemon)\r\nTo: root\r\n"), "{raw}");
    let refused = client.send_from("<>", cron).await;
    assert!(refused.starts_with("550 5.6.0 from: the mail's From names nobody with an address"), "{refused}");

    let settings =
        TenantSettings { return_path: Some("bounces@example.com".to_owned()), ..TenantSettings::default() };
    let gateway = TestGateway::with(config(), settings).await;
    let mut client = gateway.sender().await;
    let raw = gateway.raw(uid_of(&client.send_from("<>", cron).await)).await;
    assert!(raw.contains("\r\nFrom: \"Cron Daemon\" <bounces@example.com>\r\n"), "{raw}");
}

#[tokio::test]
async fn programs_set_up_for_other_services_choose_in_their_words() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let chosen = "X-PM-Tag: welcome\r\nX-PM-Message-Stream: news\r\nX-PM-Metadata-order: 7\r\nX-PM-TrackOpens: true\r\n\
        Resend-Idempotency-Key: k\r\nX-SES-CONFIGURATION-SET: own\r\n";
    let uid = uid_of(&client.send(&format!("{chosen}{MAIL}")).await);
    let summary = gateway.stored(uid).await.summary;
    assert_eq!(summary.tags, ["welcome"]);
    assert_eq!(summary.lane.batch.as_ref().map(|batch| batch.as_str()), Some("news"));
    assert_eq!(summary.metadata.as_deref(), Some(r#"{"order":"7"}"#));
    assert_eq!(uid_of(&client.send(&format!("{chosen}{MAIL}")).await), uid, "a repeat is the same mail");
    let raw = gateway.raw(uid).await;
    assert!(
        !raw.contains("X-PM-")
            && !raw.contains("Resend-")
            && raw.contains("\r\nX-SES-CONFIGURATION-SET: own\r\n"),
        "{raw}"
    );
}

/// Python's `sendmail` with bytes, `curl -T` and old scripts use the line endings of their files.
#[tokio::test]
async fn a_mail_with_bare_line_feeds_is_taken_and_leaves_with_cr_lf() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let uid = uid_of(&client.send(&format!("{}\r\n", MAIL.replace("\r\n", "\n"))).await);
    let raw = gateway.raw(uid).await;
    assert!(raw.ends_with("\r\n\r\nHi.\r\n\r\n"), "{raw}");
    assert_eq!(raw.matches('\n').count(), raw.matches("\r\n").count(), "{raw}");
    client.expect("QUIT", "221").await;
}

/// VERP and SRS, devices without brackets, and the one name that needs no domain.
#[tokio::test]
async fn envelopes_are_carried_as_they_are() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let verp = "announce-bounces+some.long.user.name=some-long-company.example.net@lists.example.com";
    for (mail, rcpt, sender, recipient) in [
        (format!("<{verp}>"), format!("<{verp}>"), verp, verp),
        ("a@example.com".to_owned(), " ada@example.net".to_owned(), "a@example.com", "ada@example.net"),
        ("<>".to_owned(), "<Postmaster>".to_owned(), "", "postmaster@mx.example"),
        (
            "<@a.example,@b.example:c@example.com>".to_owned(),
            "<ada@example.net>".to_owned(),
            "c@example.com",
            "ada@example.net",
        ),
    ] {
        client.expect(&format!("MAIL FROM:{mail}"), "250").await;
        client.expect(&format!("RCPT TO:{rcpt}"), "250").await;
        client.expect("DATA", "354").await;
        let uid = uid_of(&client.ask(&format!("{MAIL}.")).await);
        assert_eq!(gateway.stored(uid).await.recipients[0].address, recipient);
        assert_eq!(gateway.sender_of(uid).await, sender);
    }
}

#[tokio::test]
async fn wishes_about_reports_are_kept_with_the_mail() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    client.expect("MAIL FROM:<a@example.com> RET=HDRS ENVID=QQ314159", "250").await;
    client.expect("RCPT TO:<ada@example.net> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;ada@example.org", "250").await;
    client.expect("RCPT TO:<bob@example.net>", "250").await;
    client.expect("DATA", "354").await;
    let uid = uid_of(&client.ask(&format!("{MAIL}.")).await);
    let plain = uid_of(&client.send(MAIL).await);
    let claimed = gateway.claimed().await;
    let dsn = |uid| claimed.iter().find(|claimed| claimed.uid == uid).unwrap().dsn.clone();
    let kept = serde_json::to_string(&dsn(uid).unwrap()).unwrap();
    let expected = r#"{"ret":"HDRS","envid":"QQ314159","recipients":{"ada@example.net":{"notify":"SUCCESS,DELAY","orcpt":"rfc822;ada@example.org"}}}"#;
    assert_eq!(kept, expected);
    assert_eq!(dsn(plain), None);
}

#[tokio::test]
async fn a_header_asks_for_reports_unless_the_envelope_does() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let asking = format!("X-Postway-DSN: NOTIFY=SUCCESS RET=HDRS\r\n{MAIL}");
    let by_header = uid_of(&client.send(&asking).await);
    client.expect("MAIL FROM:<a@example.com>", "250").await;
    client.expect("RCPT TO:<ada@example.net> NOTIFY=NEVER", "250").await;
    client.expect("DATA", "354").await;
    let by_envelope = uid_of(&client.ask(&format!("{asking}.")).await);
    let claimed = gateway.claimed().await;
    let dsn = |uid| claimed.iter().find(|claimed| claimed.uid == uid).unwrap().dsn.clone().unwrap();
    let kept = |uid| serde_json::to_string(&dsn(uid)).unwrap();
    assert_eq!(kept(by_header), r#"{"request":"NOTIFY=SUCCESS RET=HDRS"}"#);
    assert_eq!(kept(by_envelope), r#"{"recipients":{"ada@example.net":{"notify":"NEVER"}}}"#);
    let refused = client.send(&format!("X-Postway-DSN: always\r\n{MAIL}")).await;
    assert!(refused.starts_with("550 5.6.0"), "{refused}");
}

#[tokio::test]
async fn a_sender_that_is_the_author_leaves_bounces_to_the_tenant() {
    let settings =
        TenantSettings { bounce_domain: Some("bounces.example.com".to_owned()), ..TenantSettings::default() };
    let gateway = TestGateway::with(config(), settings).await;
    let mut client = gateway.sender().await;
    let uid = uid_of(&client.send(MAIL).await);
    let sender = gateway.sender_of(uid).await;
    assert!(sender.ends_with("@bounces.example.com"), "{sender}");
    client.expect("MAIL FROM:<other@example.com>", "250").await;
    client.expect("RCPT TO:<ada@example.net>", "250").await;
    client.expect("DATA", "354").await;
    let uid = uid_of(&client.ask(&format!("{MAIL}.")).await);
    assert_eq!(gateway.sender_of(uid).await, "other@example.com");
}

#[tokio::test]
async fn a_key_that_was_revoked_opens_nothing_more() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    uid_of(&client.send(MAIL).await);
    gateway.keys.revoked.lock().unwrap().insert("good".to_owned());
    let refused = client.send(MAIL).await;
    assert!(refused.starts_with("550 5.7.8 this key does not open"), "{refused}");
    let mut late = gateway.client().await;
    late.expect("EHLO me", "250").await;
    late.expect(&crate::auth("good"), "535 5.7.8").await;
    assert_eq!(gateway.count().await, 1);
}

#[tokio::test]
async fn keys_that_cannot_be_looked_up_are_no_wrong_keys() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    gateway.keys.away.store(true, Ordering::Relaxed);
    let deferred = client.send(MAIL).await;
    assert!(deferred.starts_with("451 4.3.0 "), "{deferred}");
    let mut other = gateway.client().await;
    other.expect("EHLO me", "250").await;
    for _ in 0..4 {
        other.expect(&crate::auth("good"), "454 4.7.0").await;
    }
    gateway.keys.away.store(false, Ordering::Relaxed);
    other.expect(&crate::auth("good"), "235").await;
    uid_of(&client.send(MAIL).await);
}

#[tokio::test]
async fn chunks_make_a_mail_too() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.sender().await;
    let (first, second) = MAIL.split_at(20);
    let said = format!(
        "MAIL FROM:<> BODY=8BITMIME\r\nRCPT TO:<ada@example.net>\r\nBDAT {}\r\n{first}BDAT {} LAST\r\n{second}",
        first.len(),
        second.len()
    );
    client.say(&said).await;
    for _ in 0..3 {
        assert!(client.reply().await.starts_with("250"));
    }
    let uid = uid_of(&client.reply().await);
    assert_eq!(gateway.sender_of(uid).await, "");
}

#[tokio::test]
async fn a_sender_or_recipient_that_is_not_allowed_is_refused_with_5_7_1() {
    let allowed_senders = vec!["elsewhere.example".parse().unwrap()];
    let gateway =
        TestGateway::with(config(), TenantSettings { allowed_senders, ..TenantSettings::default() }).await;
    let reply = gateway.sender().await.send(MAIL).await;
    assert!(reply.starts_with("550 5.7.1 from: "), "{reply}");
    assert_eq!(gateway.count().await, 0);

    let gateway = TestGateway::new().await;
    let mut client = gateway.client().await;
    client.log_in("good-bound").await;
    let reply = client.send(MAIL).await;
    assert!(reply.starts_with("550 5.7.1 to: "), "{reply}");
    assert_eq!(gateway.count().await, 0);
}
