//! Misbehaving providers: the outcome of the mail is the same for all of them.

use super::*;
use futures::future::join_all;
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity};
use postway_testkit::{ClosedPort, TestCert};

#[tokio::test]
async fn a_request_without_a_well_formed_answer_is_in_doubt() {
    let html = || "<html>bad gateway</html>".to_owned();
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"id\":\"01".to_vec();
    for (play, code) in [
        (Play::Silence, "provider_timeout"),
        (Play::CutAfter(1), "NETWORK_ERROR"),
        (Play::CutAfter(200), "NETWORK_ERROR"),
        (Play::Raw(Vec::new()), "NETWORK_ERROR"),
        (Play::Raw(b"HTTP/1.1 200".to_vec()), "NETWORK_ERROR"),
        (Play::Raw(cut), "provider_unexpected_answer"),
        (Play::Endless, "provider_unexpected_answer"),
        (Play::Answer(200, "", html()), "provider_unexpected_answer"),
        (Play::Answer(200, "", String::new()), "provider_unexpected_answer"),
        (Play::Answer(500, "", html()), "provider_unavailable"),
        (Play::Answer(502, "", html()), "provider_unavailable"),
        (Play::Answer(504, "", String::new()), "provider_unavailable"),
    ] {
        // Only a silent service needs the brief deadline; the others must not run into it on a busy machine.
        let is_silence = matches!(play, Play::Silence);
        let mut tried = Vec::new();
        for kind in KINDS {
            let fake = Fake::start(play.clone()).await;
            let settings = if is_silence { hasty(kind, fake.url()) } else { settings(kind, fake.url()) };
            tried.push((kind, client(settings), fake));
        }
        let play = &play;
        join_all(tried.into_iter().map(async |(kind, client, fake)| {
            let (delivery, gate) = send_mail(&client, ONE, BODY).await;
            let failure = in_doubt(delivery.end);
            assert_eq!(
                (failure.code.as_ref(), failure.phase),
                (code, FailurePhase::Request),
                "{kind:?} {play:?}"
            );
            assert!(failure.is_transient());
            assert_eq!(
                (gate.commits, fake.connections()),
                (1, 1),
                "asked once, written once: {kind:?} {play:?}"
            );
        }))
        .await;
    }
}

#[tokio::test]
async fn a_refusal_that_nobody_signed_is_no_verdict_on_the_mail() {
    for (status, code, severity) in [
        (400, "provider_unexpected_answer", FailureSeverity::Transient),
        (401, "provider_access_denied", FailureSeverity::Account),
        (403, "provider_access_denied", FailureSeverity::Account),
        (404, "provider_settings", FailureSeverity::Account),
        (413, "provider_rejected", FailureSeverity::Permanent),
        (418, "provider_unexpected_answer", FailureSeverity::Transient),
        (503, "provider_unavailable", FailureSeverity::Transient),
    ] {
        for kind in KINDS {
            let fake = Fake::start(Play::Answer(status, "", "<html>".to_owned())).await;
            let failure = not_sent(send(&client(settings(kind, fake.url()))).await.end);
            assert_eq!((failure.code.as_ref(), failure.severity), (code, severity), "{kind:?} {status}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_is_the_accounts_fault() {
    for kind in KINDS {
        let fake = Fake::start(taken(kind)).await;
        let location = format!("HTTP/1.1 307 X\r\nLocation: {}/\r\nContent-Length: 0\r\n\r\n", fake.url());
        let elsewhere = Fake::start(Play::Raw(location.into())).await;
        let failure = not_sent(send(&client(settings(kind, elsewhere.url()))).await.end);
        assert_eq!(
            (failure.code.as_ref(), failure.severity),
            ("provider_settings", FailureSeverity::Account)
        );
        assert_eq!(fake.connections(), 0, "{kind:?}: neither mail nor key goes elsewhere");
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_a_pause_gets_it() {
    for kind in KINDS {
        for (headers, pause) in [("Retry-After: 7\r\n", 7), ("Retry-After: 86400\r\n", 300), ("", 5)] {
            let fake = Fake::start(Play::Answer(429, headers, "{}".to_owned())).await;
            let delivery = send(&client(settings(kind, fake.url()))).await;
            assert_eq!(delivery.pause.map(|pause| pause.as_secs()), Some(pause), "{kind:?}");
            let failure = not_sent(delivery.end);
            assert_eq!(
                (failure.category, failure.severity),
                (FailureCategory::RateLimited, FailureSeverity::Transient)
            );
        }
    }
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_leaves_no_doubt() {
    for kind in KINDS {
        let closed = ClosedPort::take();
        let url = format!("http://{}", closed.address());
        let (delivery, gate) = send_mail(&client(settings(kind, url)), ONE, BODY).await;
        let failure = not_sent(delivery.end);
        assert_eq!((failure.code.as_ref(), failure.phase), ("NETWORK_ERROR", FailurePhase::Connect));
        assert_eq!((failure.is_transient(), gate.commits), (true, 1));
    }
}

#[tokio::test]
async fn a_refused_gate_sends_nothing_before_or_after_the_connection() {
    for kind in KINDS {
        let fake = Fake::start(taken(kind)).await;
        let client = client(settings(kind, fake.url()));
        for mut gate in [
            CountingGate { refuse: true, ..CountingGate::default() },
            CountingGate { refuse_connected: true, ..CountingGate::default() },
        ] {
            let delivery = client.deliver(&envelope(ONE, BODY), uid(), BODY, &mut gate).await;
            assert!(matches!(delivery.end, DeliveryEnd::GateRefused), "{:?}", delivery.end);
            assert_eq!(fake.requests().len(), 0, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_the_accounts_fault() {
    let cert = TestCert::localhost();
    let kind = AccountKind::Resend;
    let fake = Fake::start_tls(taken(kind), &cert).await;
    let failure = not_sent(send(&client(settings(kind, fake.url()))).await.end);
    assert_eq!((failure.code.as_ref(), failure.severity), ("tls_certificate", FailureSeverity::Account));
    assert!(fake.requests().is_empty());
    let trusting =
        ProviderSettings { extra_roots_pem: Some(cert.ca_pem.clone()), ..settings(kind, fake.url()) };
    assert_eq!(accepted(send(&client(trusting)).await.end), "taken-1");
}

#[tokio::test]
async fn a_guarded_address_is_not_reached_by_address_nor_by_name() {
    let kind = AccountKind::Http;
    let fake = Fake::start(taken(kind)).await;
    let guarded = |url: String| ProviderSettings { guard: Arc::default(), ..settings(kind, url) };
    let by_address = fake.url().replace("localhost", "127.0.0.1");
    let failure = ProviderClient::new(guarded(by_address), Arc::new(Fixed)).unwrap_err();
    assert!(failure.is_account() && failure.message.contains("no public address"), "{}", failure.message);
    let failure = not_sent(send(&client(guarded(fake.url()))).await.end);
    assert!(failure.is_account() && failure.message.contains("no public address"), "{}", failure.message);
    assert!(fake.requests().is_empty());
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_the_accounts_fault() {
    let credentials = ProviderCredentials::Key("a\nb".to_owned().into());
    let settings =
        ProviderSettings { credentials, ..settings(AccountKind::Resend, "http://localhost:9".to_owned()) };
    assert!(not_sent(send(&client(settings)).await.end).is_account());
}
