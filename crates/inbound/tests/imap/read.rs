//! Listing, fetching, waiting: a real Dovecot.

use std::time::Duration;

use postway_inbound::imap::{FetchedContent, FolderPage, IdleOutcome, ImapFault, ImapSession, ImapTlsMode};
use postway_net::TlsClient;
use postway_testkit::dovecot::Dovecot;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    time::Instant,
};

use crate::{LONG, connection, deadlines, fetch_all, mail, open, text};

fn uids(page: &FolderPage) -> Vec<u32> {
    page.mails.iter().map(|mail| mail.uid).collect()
}

#[tokio::test]
async fn a_folder_is_read_page_by_page_to_its_end() {
    let dovecot = Dovecot::shared();
    let mails: Vec<_> = (0..25).map(|number| mail(number, 500 + number)).collect();
    dovecot.append_all("pages", "INBOX", &mails);
    let mut session = open("pages").await;
    let folder = session.select("INBOX").await.unwrap();
    assert_eq!((folder.uid_next, folder.exists), (26, 25));
    let (mut from, mut seen) = (1, Vec::new());
    while from < folder.uid_next {
        let page = session.list(from, folder.uid_next - 1, 10).await.unwrap();
        assert!(page.mails.len() <= 10 && page.through >= from);
        for fetched in fetch_all(&mut session, &page.mails, 10_000).await {
            seen.push(text(&fetched.content).to_vec());
        }
        from = page.through + 1;
    }
    assert_eq!(seen, mails);
    let page = session.list(3, 4, 10).await.unwrap();
    assert_eq!((uids(&page), page.through), (vec![3, 4], 4));
    assert_eq!(page.mails[0].size, mails[2].len() as u64);
    assert!(page.mails[0].internal_date.is_some());
    // Reading marked nothing as seen.
    let flags = dovecot.client("pages").run("STATUS INBOX (UNSEEN)");
    assert!(flags[0].contains("UNSEEN 25"), "{flags:?}");
    session.logout().await;
}

#[tokio::test]
async fn few_mails_among_many_uids_are_found_in_few_commands() {
    let dovecot = Dovecot::shared();
    dovecot.append_all("sparse", "INBOX", &(0..3000).map(|number| mail(number, 100)).collect::<Vec<_>>());
    let mut client = dovecot.client("sparse");
    client.run("SELECT INBOX");
    // The remaining mails: 5, every hundredth of the second thousand, 2999 and 3000.
    client.run("UID STORE 1:4,6:1000,2001:2998 +FLAGS.SILENT (\\Deleted)");
    for hundred in 10..20 {
        client.run(&format!("UID STORE {}01:{}99 +FLAGS.SILENT (\\Deleted)", hundred, hundred));
    }
    client.run("EXPUNGE");
    let mut session = open("sparse").await;
    let folder = session.select("INBOX").await.unwrap();
    assert_eq!((folder.uid_next, folder.exists), (3001, 13));
    let (mut from, mut seen, mut pages) = (1, Vec::new(), 0);
    while from < folder.uid_next {
        let page = session.list(from, folder.uid_next - 1, 10).await.unwrap();
        assert!(page.through >= from, "a page gets further");
        seen.extend(uids(&page));
        from = page.through + 1;
        pages += 1;
    }
    let expected: Vec<u32> = [5].into_iter().chain((1100..=2000).step_by(100)).chain([2999, 3000]).collect();
    assert_eq!(seen, expected);
    assert!(pages <= 5, "{pages} pages");
    let page = session.list(1, u32::MAX, 10_000).await.unwrap();
    assert_eq!((uids(&page).len(), page.through), (13, u32::MAX));
    let page = session.list(3001, u32::MAX, 10).await.unwrap();
    assert_eq!((uids(&page), page.through), (vec![], u32::MAX));
}

#[tokio::test]
async fn mails_that_are_too_large_or_gone_are_told_apart() {
    let dovecot = Dovecot::shared();
    let mails = [mail(1, 1000), mail(2, 100_000), mail(3, 1000), mail(4, 1000), mail(5, 1000)];
    dovecot.append_all("odd", "INBOX", &mails);
    let mut session = open("odd").await;
    session.select("INBOX").await.unwrap();
    let page = session.list(1, 5, 100).await.unwrap();
    let mut client = dovecot.client("odd");
    client.run("SELECT INBOX");
    client.run("UID STORE 3,5 +FLAGS.SILENT (\\Deleted)");
    client.run("EXPUNGE");
    let fetched = fetch_all(&mut session, &page.mails, 50_000).await;
    assert_eq!(fetched.iter().map(|fetched| fetched.uid).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(text(&fetched[0].content), mails[0]);
    assert_eq!(fetched[1].content, FetchedContent::TooLarge { size: page.mails[1].size });
    assert_eq!(fetched[2].content, FetchedContent::Gone);
    assert_eq!(text(&fetched[3].content), mails[3]);
    assert_eq!(fetched[4].content, FetchedContent::Gone);
    // A server that understates the size changes nothing.
    let mut lying = page.mails.clone();
    lying[1].size = 10;
    let fetched = fetch_all(&mut session, &lying[..2], 50_000).await;
    assert_eq!(fetched[1].content, FetchedContent::TooLarge { size: mails[1].len() as u64 });
    session.logout().await;
}

#[tokio::test]
async fn what_an_mta_delivers_is_there_to_be_read() {
    let tcp = tokio::net::TcpStream::connect(("127.0.0.1", Dovecot::shared().lmtp_port())).await.unwrap();
    let mut lmtp = BufReader::new(tcp);
    let said = "LHLO here\r\nMAIL FROM:<>\r\nRCPT TO:<bob@example.org>\r\nDATA\r\n";
    lmtp.write_all(said.as_bytes()).await.unwrap();
    let mut reply = String::new();
    while !reply.starts_with("354") {
        reply.clear();
        assert_ne!(lmtp.read_line(&mut reply).await.unwrap(), 0);
    }
    lmtp.write_all(b"Subject: lmtp\r\n\r\nhello\r\n.\r\nQUIT\r\n").await.unwrap();
    reply.clear();
    lmtp.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("250"), "{reply}");
    let mut session = open("bob@example.org").await;
    let folder = session.select("INBOX").await.unwrap();
    let page = session.list(1, folder.uid_next - 1, 10).await.unwrap();
    let fetched = fetch_all(&mut session, &page.mails, 10_000).await;
    assert!(text(&fetched[0].content).ends_with(b"Subject: lmtp\r\n\r\nhello\r\n"));
}

#[tokio::test]
async fn where_to_begin_is_found_without_a_search() {
    let dovecot = Dovecot::shared();
    let mut client = dovecot.client("start");
    for day in 1..=20 {
        client.append("INBOX", Some(&format!("{day:02}-Mar-2024 12:00:00 +0100")), &[mail(day, 200)]);
    }
    let mut session = open("start").await;
    session.select("INBOX").await.unwrap();
    for (count, first) in [(1, Some(20)), (5, Some(16)), (20, Some(1)), (u32::MAX, Some(1)), (0, None)] {
        assert_eq!(session.first_of_newest(count).await.unwrap(), first, "{count}");
    }
    for (since, first) in [
        ("2024-03-05T11:00:00Z", Some(5)),
        ("2024-03-05T11:00:01Z", Some(6)),
        ("2001-01-01T00:00:00Z", Some(1)),
        ("2030-01-01T00:00:00Z", None),
    ] {
        assert_eq!(session.first_since(since.parse().unwrap()).await.unwrap(), first, "{since}");
    }
    let mut empty = open("start-empty").await;
    empty.select("INBOX").await.unwrap();
    assert_eq!(empty.first_of_newest(5).await.unwrap(), None);
    assert_eq!(empty.first_since("2001-01-01T00:00:00Z".parse().unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn a_rebuilt_folder_has_another_uid_validity() {
    let dovecot = Dovecot::shared();
    for (user, name) in [("rebuilt", "INBOX"), ("rebuilt", "Archive")] {
        dovecot.append_all(user, name, &[mail(1, 300), mail(2, 300)]);
        let mut session = open(user).await;
        let before = session.select(name).await.unwrap();
        session.logout().await;
        dovecot.bump_uid_validity(user, name);
        let mut session = open(user).await;
        let after = session.select(name).await.unwrap();
        assert_ne!(after.uid_validity, before.uid_validity);
        assert_eq!(after.exists, 2);
        assert_eq!(session.list(1, after.uid_next - 1, 10).await.unwrap().mails.len(), 2);
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_a_fault_of_the_set_up_and_the_session_goes_on() {
    let mut session = open("unknown").await;
    let error = session.select("No such & folder").await.unwrap_err();
    assert!(error.is_setup() && error.leaves_session_usable(), "{error}");
    assert!(
        matches!(&error.fault, ImapFault::NoFolder { folder, .. } if folder == "No such & folder"),
        "{error}"
    );
    session.select("INBOX").await.unwrap();
}

#[tokio::test]
async fn a_name_in_any_script_is_found_and_cannot_be_a_command() {
    let dovecot = Dovecot::shared();
    dovecot.append("names", "Gel&APY-scht &- &JgM-", &mail(1, 300));
    let mut session = open("names").await;
    assert_eq!(session.select("Gelöscht & ☃").await.unwrap().exists, 1);
    for error in [
        session.select("x\r\nA9 LOGOUT").await.unwrap_err(),
        session.move_to(1, "x\r\nA9 LOGOUT").await.unwrap_err(),
    ] {
        assert!(error.is_setup() && error.leaves_session_usable(), "{error}");
    }
    for name in ["\"", "\\", "x\" (y", "{5}", "%", "*"] {
        assert!(
            matches!(session.select(name).await.unwrap_err().fault, ImapFault::NoFolder { .. }),
            "{name}"
        );
    }
    session.select("INBOX").await.unwrap();
}

#[tokio::test]
async fn waiting_ends_with_news_or_with_its_time() {
    let dovecot = Dovecot::shared();
    let mut session = open("idle").await;
    session.select("INBOX").await.unwrap();
    let soon = Instant::now() + Duration::from_millis(50);
    assert_eq!(session.idle(soon).await.unwrap(), IdleOutcome::Quiet);
    let delivered = tokio::task::spawn_blocking(|| dovecot.append("idle", "INBOX", &mail(1, 300)));
    assert_eq!(session.idle(Instant::now() + LONG).await.unwrap(), IdleOutcome::News);
    delivered.await.unwrap();
    let folder = session.select("INBOX").await.unwrap();
    assert_eq!((folder.exists, folder.uid_next), (1, 2));
    // Mail that arrived during another command is news at once.
    dovecot.append("idle", "INBOX", &mail(2, 300));
    session.mark_seen(1).await.unwrap();
    assert_eq!(session.idle(Instant::now() + LONG).await.unwrap(), IdleOutcome::News);
    assert_eq!(session.select("INBOX").await.unwrap().exists, 2);
    session.logout().await;
}

#[tokio::test]
async fn a_server_that_is_killed_or_restarted_is_a_passing_fault() {
    let dovecot = Dovecot::start();
    dovecot.append("killed", "INBOX", &mail(1, 300));
    let connection = connection(dovecot.port(), "killed", ImapTlsMode::None);
    let tls = TlsClient::new();
    let mut session = ImapSession::open(&connection, &tls, deadlines()).await.unwrap();
    let before = session.select("INBOX").await.unwrap();
    dovecot.kill();
    let error = session.select("INBOX").await.unwrap_err();
    assert!(!error.is_setup() && !error.leaves_session_usable(), "{error}");
    let error = ImapSession::open(&connection, &tls, deadlines()).await.unwrap_err();
    assert!(!error.is_setup(), "{error}");
    dovecot.start_again();
    let mut session = ImapSession::open(&connection, &tls, deadlines()).await.unwrap();
    assert_eq!(session.select("INBOX").await.unwrap(), before);
    let (idle, ()) = tokio::join!(session.idle(Instant::now() + LONG), async { dovecot.kill() });
    let error = idle.unwrap_err();
    assert!(!error.is_setup(), "{error}");
    dovecot.start_again();
    dovecot.restart();
    let mut session = ImapSession::open(&connection, &tls, deadlines()).await.unwrap();
    assert_eq!(session.select("INBOX").await.unwrap(), before);
}
