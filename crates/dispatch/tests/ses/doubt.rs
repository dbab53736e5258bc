//! Calls that are sent, not sent, or in doubt.

use super::*;
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity};
use postway_testkit::{ClosedPort, TestCert};

#[tokio::test]
async fn a_request_without_a_well_formed_answer_is_in_doubt() {
    for (play, code) in [
        (Play::Silence, "SES_TIMEOUT"),
        (Play::CutAfter(1), "NETWORK_ERROR"),
        (Play::CutAfter(200), "NETWORK_ERROR"),
        (Play::Raw(Vec::new()), "NETWORK_ERROR"),
        (Play::Raw(b"HTTP/1.1 200".to_vec()), "NETWORK_ERROR"),
        (Play::Raw(b"220 mail.example.org ESMTP\r\n".to_vec()), "NETWORK_ERROR"),
        (Play::Raw(vec![0xff; 4096]), "NETWORK_ERROR"),
        (Play::Answer(502, "", "<html>bad gateway</html>".to_owned()), "SES_SERVICE_UNAVAILABLE"),
    ] {
        let fake = Fake::start(play.clone()).await;
        let (delivery, gate) = send_to(&client(hasty(fake.url())), ONE).await;
        let failure = in_doubt(delivery.end);
        assert_eq!((failure.code.as_ref(), failure.phase), (code, FailurePhase::Request), "{play:?}");
        assert!(failure.is_transient());
        assert_eq!((gate.commits, fake.connections()), (1, 1), "asked once, written once: {play:?}");
    }
}

#[tokio::test]
async fn a_success_that_does_not_say_what_the_mail_was_taken_as_is_in_doubt() {
    let broken = b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"MessageId\":\"01".to_vec();
    for play in [
        Play::Raw(broken),
        Play::Endless,
        Play::Answer(200, "", "<html>".to_owned()),
        Play::Answer(200, "", String::new()),
    ] {
        let fake = Fake::start(play.clone()).await;
        let failure = in_doubt(send(&client(settings(fake.url()))).await);
        assert_eq!(failure.code, "SES_UNEXPECTED_ANSWER", "{play:?}");
        assert!(failure.is_transient());
    }
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_leaves_no_doubt() {
    let closed = ClosedPort::take();
    let endpoint = format!("http://{}", closed.address());
    let (delivery, gate) = send_to(&client(settings(endpoint)), ONE).await;
    let failure = not_sent(delivery.end);
    assert_eq!((failure.code.as_ref(), failure.category), ("NETWORK_ERROR", FailureCategory::Network));
    assert_eq!((failure.phase, failure.is_transient(), gate.commits), (FailurePhase::Connect, true, 1));
    assert_eq!(failure.reference_category(), "TRANSIENT_ERROR");
}

#[tokio::test]
async fn a_handshake_that_never_ends_leaves_no_doubt() {
    // The service accepts the connection and is silent; the client waits for TLS.
    let fake = Fake::start(Play::Silence).await;
    let endpoint = fake.url().replace("http:", "https:");
    let failure = not_sent(send(&client(hasty(endpoint))).await);
    assert_eq!((failure.code.as_ref(), failure.phase), ("NETWORK_ERROR", FailurePhase::Connect));
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_the_accounts_fault() {
    let cert = TestCert::localhost();
    let fake = Fake::start_tls(Play::taken("1"), &cert).await;
    let failure = not_sent(send(&client(settings(fake.url()))).await);
    assert_eq!((failure.code.as_ref(), failure.severity), ("tls_certificate", FailureSeverity::Account));
    assert!(fake.requests().is_empty());

    let trusting = SesSettings { extra_roots_pem: Some(cert.ca_pem.clone()), ..settings(fake.url()) };
    assert_eq!(accepted(send(&client(trusting)).await).as_deref(), Some("1"));
}

/// Over TLS a connection exists only after the service took part in the handshake.
#[tokio::test]
async fn a_mail_is_let_go_when_its_connection_stands() {
    let cert = TestCert::localhost();
    let fake = Arc::new(Fake::start_tls(Play::taken("1"), &cert).await);
    let trusting = SesSettings { extra_roots_pem: Some(cert.ca_pem.clone()), ..settings(fake.url()) };
    let client = client(trusting);
    let mut refusing = Gate { refuse_connected: true, watched: Some(fake.clone()), ..Gate::default() };
    let refused = client.deliver(&envelope(ONE, BODY), BODY, &mut refusing).await;
    assert!(matches!(refused.end, DeliveryEnd::GateRefused), "{:?}", refused.end);
    assert_eq!((refusing.commits, refusing.connections_at_begin), (1, Some(1)));

    let mut gate = Gate { watched: Some(fake.clone()), ..Gate::default() };
    let delivery = client.deliver(&envelope(ONE, BODY), BODY, &mut gate).await;
    assert_eq!(accepted(delivery.end).as_deref(), Some("1"));
    assert_eq!(gate.connections_at_begin, Some(2), "the one that was given up is not used again");
    let heard = fake.requests();
    assert_eq!(heard.len(), 1, "nothing of a mail that was refused is heard");
    assert_eq!(heard[0].header("Content-Length"), Some(heard[0].body.len().to_string().as_str()));
    assert_eq!(heard[0].header("Transfer-Encoding"), None);
}

#[tokio::test]
async fn a_slow_service_is_not_asked_twice() {
    let fake = Fake::start(Play::Silence).await;
    assert_eq!(in_doubt(send(&client(hasty(fake.url()))).await).category, FailureCategory::Timeout);
    assert_eq!((fake.requests().len(), fake.connections()), (1, 1));
}
