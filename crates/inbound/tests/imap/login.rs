//! Connecting and signing in.

use std::sync::Arc;

use crate::{connection, deadlines};
use postway_inbound::imap::{ImapFault, ImapLogin, ImapSession, ImapTlsMode};
use postway_net::{AddressGuard, TlsClient};
use postway_testkit::{
    EgressProxy, ImapAct, ImapSink, ProxyManner, TestCert,
    dovecot::{Dovecot, PASSWORD},
};

#[tokio::test]
async fn a_mailbox_opens_in_every_tls_mode() {
    let dovecot = Dovecot::shared();
    for (port, mode) in [
        (dovecot.port(), ImapTlsMode::None),
        (dovecot.port(), ImapTlsMode::Starttls),
        (dovecot.tls_port(), ImapTlsMode::Implicit),
    ] {
        let mut connection = connection(port, "modes", mode);
        connection.extra_roots_pem = Some(dovecot.ca_pem().to_owned());
        let mut session = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
        assert!(session.has_idle(), "{mode:?}");
        assert!(session.select("INBOX").await.unwrap().uid_validity > 0);
        session.logout().await;
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_a_fault_of_the_set_up() {
    let dovecot = Dovecot::shared();
    for (port, mode) in [(dovecot.port(), ImapTlsMode::Starttls), (dovecot.tls_port(), ImapTlsMode::Implicit)]
    {
        let error = ImapSession::open(&connection(port, "ca", mode), &TlsClient::new(), deadlines())
            .await
            .unwrap_err();
        assert!(error.is_setup(), "{error}");
        assert!(error.to_string().contains(&format!("localhost:{port}")), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_a_fault_of_the_set_up_and_is_not_printed() {
    let mut connection = connection(Dovecot::shared().port(), "wrong", ImapTlsMode::None);
    connection.login = ImapLogin::Password { username: "wrong".into(), password: "hunter2hunter2".into() };
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    assert!(error.is_setup() && matches!(error.fault, ImapFault::LoginRefused(_)), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_guard_keeps_a_mailbox_off_private_networks() {
    let mut connection = connection(Dovecot::shared().port(), "guarded", ImapTlsMode::None);
    connection.guard = Arc::new(AddressGuard::default());
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    assert!(error.is_setup(), "{error}");
}

#[tokio::test]
async fn a_mailbox_opens_through_a_proxy_under_tls() {
    let dovecot = Dovecot::shared();
    let proxy = EgressProxy::connect(ProxyManner::Open).await;
    let target = dovecot.tls_port();
    let mut connection = connection(target, "proxied", ImapTlsMode::Implicit);
    connection.extra_roots_pem = Some(dovecot.ca_pem().to_owned());
    connection.proxy = Some(proxy.url().parse().unwrap());
    let session = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
    session.logout().await;
    // The proxy stands beside us, so the name was resolved and checked here.
    assert_eq!(proxy.targets().last(), Some(&format!("127.0.0.1:{target}")));
}

#[tokio::test]
async fn the_way_to_sign_in_is_the_best_that_is_offered() {
    let (user, password) = ("b\"o\\b", "pä\r\nss wörd");
    for (capabilities, expected) in [
        ("IMAP4rev1 AUTH=PLAIN SASL-IR", vec!["AUTHENTICATE PLAIN AGIib1xiAHDDpA0Kc3Mgd8O2cmQ="]),
        ("IMAP4rev1 AUTH=PLAIN LOGINDISABLED", vec!["AUTHENTICATE PLAIN", "+ AGIib1xiAHDDpA0Kc3Mgd8O2cmQ="]),
        ("IMAP4rev1 AUTH=PLAIN", vec!["LOGIN \"b\\\"o\\\\b\" {13}pä\r\nss wörd"]),
    ] {
        let asked = capabilities.contains("LOGINDISABLED");
        let act = if asked { "+ \r\n" } else { "TAG OK [CAPABILITY IMAP4rev1] hello\r\n" };
        let sink = ImapSink::builder()
            .capabilities(capabilities)
            .on("AUTHENTICATE", ImapAct::say(act))
            .on("+", ImapAct::say("TAG OK [CAPABILITY IMAP4rev1] hello\r\n"))
            .start()
            .await;
        let mut connection = connection(sink.port(), user, ImapTlsMode::None);
        connection.login = ImapLogin::Password { username: user.into(), password: password.into() };
        ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
        let mut commands = sink.commands();
        commands.retain(|command| !command.starts_with("CAPABILITY"));
        assert_eq!(commands, expected, "{capabilities}");
    }
}

#[tokio::test]
async fn a_password_is_not_sent_where_the_server_takes_none() {
    let sink = ImapSink::builder().capabilities("IMAP4rev1 LOGINDISABLED").start().await;
    let connection = connection(sink.port(), "disabled", ImapTlsMode::None);
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    assert!(error.is_setup() && matches!(error.fault, ImapFault::LoginUnsupported(_)), "{error}");
    assert_eq!(sink.commands(), ["CAPABILITY"]);
}

#[tokio::test]
async fn a_bearer_token_signs_in_and_its_refusal_is_heard_out() {
    let consent = ImapAct::say("TAG OK [CAPABILITY IMAP4rev1 IDLE] hello\r\n");
    let sink = ImapSink::builder()
        .on("AUTHENTICATE", consent)
        .on("AUTHENTICATE", ImapAct::say("+ eyJzdGF0dXMiOiI0MDAifQ==\r\n"))
        .on("+", ImapAct::say("TAG NO [AUTHENTICATIONFAILED] token expired\r\n"))
        .start()
        .await;
    let mut connection = connection(sink.port(), "bearer", ImapTlsMode::None);
    connection.login = ImapLogin::OAuth2 {
        username: "someuser@example.com".into(),
        token: "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg".into(),
    };
    let session = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap();
    assert!(session.has_idle());
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    let said = error.to_string();
    assert!(error.is_setup() && said.contains(r#"token expired ({"status":"400"})"#), "{said}");
    let sent = "AUTHENTICATE XOAUTH2 dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJoZG1semRHRXVZMjl0Q2cBAQ==";
    assert_eq!(sink.commands(), ["CAPABILITY", sent, "CAPABILITY", sent, "+ "]);
}

#[tokio::test]
async fn a_server_without_xoauth2_is_signed_in_to_by_oauthbearer() {
    let sink = ImapSink::builder()
        .capabilities("IMAP4rev1 AUTH=PLAIN AUTH=OAUTHBEARER SASL-IR")
        .on("AUTHENTICATE", ImapAct::say("+ eyJzdGF0dXMiOiJpbnZhbGlkX3Rva2VuIn0=\r\n"))
        .on("+", ImapAct::say("TAG NO [AUTHENTICATIONFAILED] no\r\n"))
        .start()
        .await;
    let mut connection = connection(sink.port(), "bearer", ImapTlsMode::None);
    connection.login = ImapLogin::OAuth2 { username: "a=b,c@example.com".into(), token: "t0p-s3cret".into() };
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    assert!(error.to_string().contains("invalid_token"), "{error}");
    // `n,a=a=3Db=2Cc@example.com,^Aauth=Bearer t0p-s3cret^A^A`, and the acknowledgement that RFC 7628 asks
    // for.
    let sent =
        "AUTHENTICATE OAUTHBEARER bixhPWE9M0RiPTJDY0BleGFtcGxlLmNvbSwBYXV0aD1CZWFyZXIgdDBwLXMzY3JldAEB";
    assert_eq!(sink.commands(), ["CAPABILITY", sent, "+ AQ=="]);
}

#[tokio::test]
async fn a_refusal_that_repeats_the_password_is_not_quoted() {
    let long = "x".repeat(190);
    for (words, is_quoted) in [
        ("TAG NO bad LOGIN joe open-sesame".to_owned(), false),
        ("TAG NO what is AGpvZQBvcGVuLXNlc2FtZQ==?".to_owned(), false),
        ("* BYE bad LOGIN joe open-sesame".to_owned(), false),
        (format!("TAG NO {long}AGpvZQBvcGVuLXNlc2FtZQ=="), false),
        ("TAG NO AUTHENTICATE failed for joe".to_owned(), true),
    ] {
        let act = ImapAct::say_and_cut(format!("{words}\r\n"));
        let sink = ImapSink::builder().on("AUTHENTICATE", act).start().await;
        let connection = connection(sink.port(), "joe", ImapTlsMode::None);
        let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
        let text = error.to_string();
        assert!(!text.contains(PASSWORD) && !text.contains("AGpvZQ"), "{text}");
        assert_eq!(!text.contains("not repeated"), is_quoted, "{text}");
    }
}

#[tokio::test]
async fn a_server_too_busy_for_a_login_is_tried_again() {
    for words in ["[UNAVAILABLE] later", "[ALERT] Too many simultaneous connections. (Failure)"] {
        let sink =
            ImapSink::builder().on("AUTHENTICATE", ImapAct::say(format!("TAG NO {words}\r\n"))).start().await;
        let error = ImapSession::open(
            &connection(sink.port(), "busy", ImapTlsMode::None),
            &TlsClient::new(),
            deadlines(),
        )
        .await
        .unwrap_err();
        assert!(!error.is_setup(), "{error}");
    }
}

#[tokio::test]
async fn words_in_front_of_tls_are_not_taken_for_words_under_it() {
    let cert = TestCert::localhost();
    let sink = ImapSink::builder()
        .starttls(&cert)
        .on("STARTTLS", ImapAct::StartTls(b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n".to_vec()))
        .start()
        .await;
    let mut connection = connection(sink.port(), "injected", ImapTlsMode::Starttls);
    connection.extra_roots_pem = Some(cert.ca_pem.clone());
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    assert!(matches!(error.fault, ImapFault::StarttlsInjected), "{error}");
    assert_eq!(sink.commands(), ["CAPABILITY", "STARTTLS"]);
}

#[tokio::test]
async fn without_starttls_no_password_is_sent() {
    let sink = ImapSink::builder().start().await;
    let connection = connection(sink.port(), "stripped", ImapTlsMode::Starttls);
    let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
    assert!(error.is_setup() && matches!(error.fault, ImapFault::NoStarttls), "{error}");
    assert_eq!(sink.commands(), ["CAPABILITY"]);
}

#[tokio::test]
async fn a_greeting_that_is_none_says_what_came() {
    for (greeting, is_setup) in [
        ("220 mail.example.org ESMTP\r\n", true),
        ("HTTP/1.1 400 Bad Request\r\n", true),
        ("* PREAUTH welcome back\r\n", true),
        ("* BYE overloaded\r\n", false),
    ] {
        let sink = ImapSink::builder().greeting(ImapAct::say(greeting)).start().await;
        let connection = connection(sink.port(), "greeted", ImapTlsMode::None);
        let error = ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap_err();
        assert_eq!(error.is_setup(), is_setup, "{error}");
        assert!(error.to_string().contains(&format!("localhost:{}", sink.port())), "{error}");
        assert_eq!(sink.commands(), [""; 0]);
    }
}
