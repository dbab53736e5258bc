//! Marking and moving.

use postway_inbound::imap::{ImapFault, ImapSession, ImapTlsMode};
use postway_net::TlsClient;
use postway_testkit::{ImapAct, ImapSink, dovecot::Dovecot};

use crate::{connection, deadlines, mail, open};

#[tokio::test]
async fn a_mail_is_marked_as_seen() {
    let dovecot = Dovecot::shared();
    dovecot.append_all("seen", "INBOX", &[mail(1, 300), mail(2, 300)]);
    let mut session = open("seen").await;
    session.select("INBOX").await.unwrap();
    session.mark_seen(2).await.unwrap();
    // A mail that does not exist is not an error.
    session.mark_seen(99).await.unwrap();
    let mut client = dovecot.client("seen");
    client.run("SELECT INBOX");
    let flags = client.run("FETCH 1:2 (FLAGS)");
    assert!(!flags[0].contains("\\Seen") && flags[1].contains("\\Seen"), "{flags:?}");
}

#[tokio::test]
async fn a_mail_is_moved_into_a_folder_that_is_there() {
    let dovecot = Dovecot::shared();
    dovecot.append_all("moved", "INBOX", &[mail(1, 300), mail(2, 300)]);
    dovecot.client("moved").run("CREATE \"Done &- dusted\"");
    let mut session = open("moved").await;
    session.select("INBOX").await.unwrap();
    session.move_to(1, "Done & dusted").await.unwrap();
    session.move_to(1, "Done & dusted").await.unwrap();
    let error = session.move_to(2, "Nowhere").await.unwrap_err();
    assert!(error.is_setup() && matches!(error.fault, ImapFault::NoFolder { .. }), "{error}");
    assert_eq!(session.select("INBOX").await.unwrap().exists, 1);
    assert_eq!(session.select("Done & dusted").await.unwrap().exists, 1);
}

#[tokio::test]
async fn without_move_a_mail_is_copied_and_only_it_is_removed() {
    for (capabilities, expected) in [
        (
            "IMAP4rev1 UIDPLUS",
            vec!["UID COPY 7 \"Done\"", "UID STORE 7 +FLAGS.SILENT (\\Deleted)", "UID EXPUNGE 7"],
        ),
        ("IMAP4rev1", vec!["UID COPY 7 \"Done\"", "UID STORE 7 +FLAGS.SILENT (\\Deleted)"]),
    ] {
        let sink = ImapSink::builder().capabilities(capabilities).start().await;
        let connection = connection(sink.port(), "copied", ImapTlsMode::None);
        let mut session = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
        session.move_to(7, "Done").await.unwrap();
        let commands = sink.commands();
        assert_eq!(commands[commands.len() - expected.len()..], expected);
    }
}

#[tokio::test]
async fn a_mail_that_could_not_be_copied_is_not_removed() {
    let sink = ImapSink::builder()
        .capabilities("IMAP4rev1 UIDPLUS")
        .on("UID COPY", ImapAct::say("TAG NO [OVERQUOTA] full\r\n"))
        .start()
        .await;
    let connection = connection(sink.port(), "full", ImapTlsMode::None);
    let mut session = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
    let error = session.move_to(7, "Done").await.unwrap_err();
    assert!(!error.is_setup() && error.to_string().contains("full"), "{error}");
    assert!(sink.commands().last().unwrap().starts_with("UID COPY"));
}
