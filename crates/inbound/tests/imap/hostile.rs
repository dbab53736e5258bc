//! Servers that mean harm: bounded memory and time, and an error that says so.

use std::time::Duration;

use postway_inbound::imap::{
    FetchedContent, IdleOutcome, ImapDeadlines, ImapFault, ImapSession, ImapTlsMode, MailboxError,
};
use postway_net::TlsClient;
use postway_testkit::{ImapAct, ImapSink, TestCert, imap_sink::ImapSinkBuilder};
use tokio::time::Instant;

use crate::{LONG, connection, deadlines, listed};

/// What a flood may fill besides the client's buffers: those of the two sockets.
const SOCKETS_BYTES_MAX: u64 = 24 << 20;

async fn start(builder: ImapSinkBuilder) -> (ImapSink, ImapSession) {
    start_with(builder, deadlines()).await
}

async fn start_with(builder: ImapSinkBuilder, deadlines: ImapDeadlines) -> (ImapSink, ImapSession) {
    let sink = builder.start().await;
    let connection = connection(sink.port(), "victim", ImapTlsMode::None);
    let session = ImapSession::open(&connection, &TlsClient::new(), deadlines).await.unwrap();
    (sink, session)
}

async fn fetch_error(session: &mut ImapSession, uids: &[u32]) -> MailboxError {
    let mails: Vec<_> = uids.iter().map(|uid| listed(*uid)).collect();
    let mut fetch = session.fetch(&mails, 10_000);
    loop {
        match fetch.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the fetch came to a good end"),
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn a_mail_of_ten_billion_octets_is_told_and_ends_the_session() {
    let head = "* 1 FETCH (UID 1 BODY[] {5}\r\nhello)\r\n* 2 FETCH (UID 2 BODY[] {9999999999}\r\n";
    let (sink, mut session) =
        start(ImapSink::builder().on("UID FETCH", ImapAct::flood(head, "xxxxxxxx"))).await;
    {
        let mut fetch = session.fetch(&[listed(1), listed(2), listed(3)], 10_000);
        assert_eq!(fetch.next().await.unwrap().unwrap().content, FetchedContent::Mail("hello".into()));
        let second = fetch.next().await.unwrap().unwrap();
        assert_eq!((second.uid, second.content), (2, FetchedContent::TooLarge { size: 9_999_999_999 }));
        let error = fetch.next().await.unwrap_err();
        assert!(matches!(error.fault, ImapFault::TooMuch { .. }), "{error}");
    }
    assert!(matches!(session.select("INBOX").await.unwrap_err().fault, ImapFault::OutOfStep));
    assert!(sink.sent_bytes() < SOCKETS_BYTES_MAX, "{}", sink.sent_bytes());
}

#[tokio::test]
async fn a_literal_or_a_line_without_end_is_given_up() {
    for (head, again) in [
        ("* LIST () \"/\" {9999999999}\r\n", "xxxxxxxx"),
        ("* 1 FETCH (UID 1 BODY[] {9999999999}\r\n", "xxxxxxxx"),
        ("* OK ", "xxxxxxxx"),
        ("", "x"),
        ("* 1 FETCH (", "(((((((("),
        ("* 1 FETCH (X ", "{3}\r\nabc "),
    ] {
        let builder = ImapSink::builder().on("UID FETCH", ImapAct::flood(head, again));
        let (sink, mut session) = start(builder).await;
        let error = session.list(1, 100, 10).await.unwrap_err();
        assert!(matches!(error.fault, ImapFault::TooMuch { .. }), "{head}: {error}");
        assert!(!error.is_setup());
        assert!(sink.sent_bytes() < SOCKETS_BYTES_MAX, "{}", sink.sent_bytes());
    }
}

#[tokio::test]
async fn responses_that_never_end_are_counted() {
    let (_sink, mut session) =
        start(ImapSink::builder().on("UID FETCH", ImapAct::flood("", "* 5 EXISTS\r\n"))).await;
    let error = session.list(1, 100, 10).await.unwrap_err();
    assert!(matches!(error.fault, ImapFault::TooMuch { .. }), "{error}");
}

#[tokio::test]
async fn uids_out_of_order_or_twice_or_never_asked_for_are_put_right() {
    let said = "* 9 FETCH (UID 9 RFC822.SIZE 90)\r\n* 3 FETCH (UID 3 RFC822.SIZE 30)\r\n\
        * 3 FETCH (UID 3 RFC822.SIZE 31)\r\n* 1 FETCH (RFC822.SIZE 10 UID 5000)\r\n\
        * 4 FETCH (FLAGS (\\Seen) UID 4)\r\n* 2 FETCH (RFC822.SIZE 7)\r\n* 22 EXISTS\r\n* 1 EXPUNGE\r\nTAG OK\r\n";
    let texts = "* 9 FETCH (BODY[] {4}\r\nnine UID 9)\r\n* 8 FETCH (UID 8 BODY[] {5}\r\neight)\r\n\
        * 9 FETCH (UID 9 BODY[] {5}\r\nagain)\r\n* 3 FETCH (UID 3 BODY[] \"three\")\r\nTAG OK\r\n";
    let (_sink, mut session) =
        start(ImapSink::builder().on("UID FETCH", ImapAct::say(said)).on("UID FETCH", ImapAct::say(texts)))
            .await;
    let page = session.list(1, 10, 100).await.unwrap();
    let facts: Vec<_> = page.mails.iter().map(|mail| (mail.uid, mail.size)).collect();
    assert_eq!((facts, page.through), (vec![(3, 31), (9, 90)], 10));
    let fetched = crate::fetch_all(&mut session, &page.mails, 10_000).await;
    let texts: Vec<_> = fetched.iter().map(|mail| (mail.uid, crate::text(&mail.content))).collect();
    assert_eq!(texts, [(3, &b"three"[..]), (9, b"nine")]);
}

#[tokio::test]
async fn a_page_never_grows_beyond_its_limit() {
    let said: String =
        (0..5000).rev().map(|n| format!("* 1 FETCH (UID {} RFC822.SIZE 1)\r\n", n % 50 + 1)).collect();
    let (_sink, mut session) =
        start(ImapSink::builder().on("UID FETCH", ImapAct::say(format!("{said}TAG OK\r\n")))).await;
    let page = session.list(1, 50, 10).await.unwrap();
    let uids: Vec<_> = page.mails.iter().map(|mail| mail.uid).collect();
    assert_eq!((uids, page.through), ((1..=10).collect(), 10));
}

#[tokio::test]
async fn a_mail_that_does_not_come_is_gone_only_if_it_is_not_listed() {
    let builder = ImapSink::builder()
        .on("UID FETCH", ImapAct::say("* 1 FETCH (UID 1 BODY[] NIL)\r\nTAG NO [SERVERBUG] disk on fire\r\n"))
        .on("UID FETCH", ImapAct::say("* 1 FETCH (UID 1)\r\n* 7 FETCH (UID 7)\r\nTAG OK\r\n"));
    let (sink, mut session) = start(builder).await;
    let fetched = crate::fetch_all(&mut session, &[listed(1), listed(2)], 10_000).await;
    assert_eq!(fetched[0].content, FetchedContent::Withheld("disk on fire".into()));
    assert_eq!(fetched[1].content, FetchedContent::Gone);
    let commands = sink.commands();
    assert_eq!(
        commands[commands.len() - 3..],
        ["UID FETCH 1:2 (UID BODY.PEEK[])", "NOOP", "UID FETCH 1:2 (UID)"]
    );
}

#[tokio::test]
async fn a_goodbye_or_a_cut_at_any_point_is_a_passing_fault() {
    for (words, is_goodbye) in [
        ("* BYE shutting down\r\n", true),
        ("* 1 FETCH (UID 1 BODY[] {5}\r\nhello)\r\n* BYE enough\r\n", true),
        ("* 1 FETCH (UID 1 BODY[] {500}\r\nhello", false),
        ("* 1 FETCH (UID 1 BO", false),
        ("", false),
    ] {
        let (_sink, mut session) =
            start(ImapSink::builder().on("UID FETCH", ImapAct::say_and_cut(words))).await;
        let error = fetch_error(&mut session, &[1, 2]).await;
        assert!(!error.is_setup(), "{error}");
        assert_eq!(matches!(error.fault, ImapFault::Bye(_)), is_goodbye, "{words:?}: {error}");
    }
}

#[tokio::test]
async fn tls_that_is_cut_in_a_mail_is_a_passing_fault() {
    let cert = TestCert::localhost();
    let sink = ImapSink::builder()
        .implicit_tls(&cert)
        .on("UID FETCH", ImapAct::say_and_cut("* 1 FETCH (UID 1 BODY[] {500}\r\nhello"))
        .start()
        .await;
    let mut connection = connection(sink.port(), "cut", ImapTlsMode::Implicit);
    connection.extra_roots_pem = Some(cert.ca_pem.clone());
    let mut session = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
    let error = fetch_error(&mut session, &[1]).await;
    assert!(!error.is_setup() && matches!(error.fault, ImapFault::Io(_) | ImapFault::Closed), "{error}");
}

#[tokio::test]
async fn silence_ends_at_the_deadline_wherever_it_begins() {
    let short = ImapDeadlines::uniform(Duration::from_secs(1));
    let tls = TlsClient::new();
    for builder in [
        ImapSink::builder().greeting(ImapAct::Silence),
        ImapSink::builder().on("CAPABILITY", ImapAct::Silence),
        ImapSink::builder().on("AUTHENTICATE", ImapAct::Silence),
    ] {
        let sink = builder.start().await;
        let error = ImapSession::open(&connection(sink.port(), "mute", ImapTlsMode::None), &tls, short)
            .await
            .unwrap_err();
        assert!(matches!(error.fault, ImapFault::Timeout(_)) && !error.is_setup(), "{error}");
    }
    let silent = |command| ImapSink::builder().on(command, ImapAct::Silence);
    let (_sink, mut session) = start_with(silent("SELECT"), short).await;
    assert!(matches!(session.select("INBOX").await.unwrap_err().fault, ImapFault::Timeout(_)));
    let (_sink, mut session) = start_with(silent("UID FETCH"), short).await;
    assert!(matches!(fetch_error(&mut session, &[1]).await.fault, ImapFault::Timeout(_)));
    // The server is asked to end IDLE and does not react.
    let (_sink, mut session) = start_with(silent("+ DONE"), short).await;
    let error = session.idle(Instant::now() + Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(error.fault, ImapFault::Timeout("end of IDLE")), "{error}");
}

#[tokio::test]
async fn idle_survives_chatter_and_hears_the_news_in_it() {
    let builder = ImapSink::builder()
        .on("IDLE", ImapAct::say("* OK still here\r\n* 0 EXISTS\r\n* 0 RECENT\r\n+ idling\r\n"))
        .on("IDLE", ImapAct::say("* 1 EXISTS\r\n+ idling\r\n"));
    let (sink, mut session) = start(builder.on("+ DONE", ImapAct::say("TAG OK\r\n"))).await;
    session.select("INBOX").await.unwrap();
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(session.idle(soon).await.unwrap(), IdleOutcome::Quiet);
    assert_eq!(session.idle(Instant::now() + LONG).await.unwrap(), IdleOutcome::News);
    assert_eq!(sink.commands().iter().filter(|command| *command == "+ DONE").count(), 2);
}

#[tokio::test]
async fn answers_out_of_step_are_not_believed() {
    for words in ["A99 OK\r\n", "* 1 FETCH (UID x)\r\nTAG OK\r\n", "+ more?\r\n", "nonsense\r\n", "\r\n"] {
        let (_sink, mut session) = start(ImapSink::builder().on("UID FETCH", ImapAct::say(words))).await;
        let error = session.list(1, 10, 10).await.unwrap_err();
        assert!(matches!(error.fault, ImapFault::Garbled(_)), "{words:?}: {error}");
        assert!(matches!(session.select("INBOX").await.unwrap_err().fault, ImapFault::OutOfStep));
    }
}

#[tokio::test]
async fn a_fetch_left_half_way_ends_the_session() {
    let words =
        "* 1 FETCH (UID 1 BODY[] {5}\r\nhello)\r\n* 2 FETCH (UID 2 BODY[] {5}\r\nhello)\r\nTAG OK\r\n";
    let (_sink, mut session) = start(ImapSink::builder().on("UID FETCH", ImapAct::say(words))).await;
    session.fetch(&[listed(1), listed(2)], 100).next().await.unwrap();
    assert!(matches!(session.select("INBOX").await.unwrap_err().fault, ImapFault::OutOfStep));
}

#[tokio::test]
async fn a_folder_is_known_also_where_the_server_tells_little() {
    let little = "* 3 EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\nTAG OK\r\n";
    for (status, probe, expected) in [
        ("* STATUS INBOX (UIDNEXT 12)\r\nTAG OK\r\n", "TAG OK\r\n", Some(12)),
        ("TAG BAD no\r\n", "* 2 FETCH (UID 99)\r\n* 3 FETCH (UID 41)\r\nTAG OK\r\n", Some(42)),
        ("TAG OK\r\n", "TAG OK\r\n", None),
    ] {
        let builder = ImapSink::builder()
            .on("SELECT", ImapAct::say(little))
            .on("STATUS", ImapAct::say(status))
            .on("FETCH", ImapAct::say(probe));
        let (_sink, mut session) = start(builder).await;
        let folder = session.select("INBOX").await;
        match expected {
            Some(next) => assert_eq!(folder.unwrap().uid_next, next),
            None => assert!(matches!(folder.unwrap_err().fault, ImapFault::Garbled(_))),
        }
    }
    let (_sink, mut session) =
        start(ImapSink::builder().on("SELECT", ImapAct::say("* 3 EXISTS\r\nTAG OK\r\n"))).await;
    assert!(matches!(session.select("INBOX").await.unwrap_err().fault, ImapFault::Garbled(_)));
}
