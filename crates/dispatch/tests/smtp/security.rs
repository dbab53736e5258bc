//! TLS with real certificates, and sign-in.

use super::*;
use postway_domain::failure::{FailureCategory, FailurePhase};
use postway_testkit::{SinkAction, SinkVerb, TestCa, TestCert};

fn over_tls(sink: &SmtpSink, mode: RelayTlsMode, cert: &TestCert) -> SmtpSettings {
    SmtpSettings {
        host: "localhost".to_owned(),
        tls: mode,
        extra_roots_pem: Some(cert.ca_pem.clone()),
        ..settings(sink)
    }
}

#[tokio::test]
async fn starttls_and_implicit_tls_verify_and_send() {
    let cert = TestCert::localhost();
    let starttls = SmtpSink::builder().starttls(&cert).start().await;
    let implicit = SmtpSink::builder().implicit_tls(&cert).start().await;
    for (sink, mode) in [(&starttls, RelayTlsMode::Starttls), (&implicit, RelayTlsMode::Implicit)] {
        let mut connection = open(&over_tls(sink, mode, &cert)).await.unwrap();
        assert!(connection.is_tls());
        for _ in 0..3 {
            assert_accepted(&send(&mut connection).await);
            assert!(connection.is_reusable());
        }
        connection.quit().await;
        assert!(sink.mails().iter().all(|mail| mail.tls));
    }
    assert_eq!(starttls.ledger().commands_of("EHLO").len(), 2);
}

#[tokio::test]
async fn roots_can_be_given_to_the_client_as_a_whole() {
    let cert = TestCert::localhost();
    let sink = SmtpSink::builder().implicit_tls(&cert).start().await;
    let tls = TlsClient::with_extra_roots(cert.ca_pem.as_bytes()).unwrap();
    let settings = SmtpSettings { extra_roots_pem: None, ..over_tls(&sink, RelayTlsMode::Implicit, &cert) };
    let mut connection = SmtpConnection::open(&settings, &tls).await.unwrap();
    assert_accepted(&send(&mut connection).await);
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_the_accounts_trouble() {
    let ca = TestCa::new();
    let other_name = ca.issue(&["mail.example.org"]);
    let wrong_ca = TestCert { ca_pem: TestCa::new().pem(), ..ca.issue(&["localhost"]) };
    for cert in [other_name, wrong_ca] {
        let sink = SmtpSink::builder().starttls(&cert).start().await;
        let failure = open(&over_tls(&sink, RelayTlsMode::Starttls, &cert)).await.unwrap_err();
        assert_eq!((failure.code.as_ref(), failure.phase), ("tls_certificate", FailurePhase::Tls));
        assert!(failure.is_account());
        assert!(failure.message.contains("localhost"), "{failure}");
    }
}

#[tokio::test]
async fn starttls_that_is_not_offered_is_not_done_without() {
    let sink = SmtpSink::start().await;
    let failure = open(&SmtpSettings { tls: RelayTlsMode::Starttls, ..settings(&sink) }).await.unwrap_err();
    assert_eq!(failure.code, "starttls_not_offered");
    assert!(failure.is_account());
}

#[tokio::test]
async fn opportunistic_takes_any_certificate_and_none_at_all() {
    let cert = TestCa::new().issue(&["elsewhere.example"]);
    let plain = SmtpSink::start().await;
    let unverifiable = SmtpSink::builder().starttls(&cert).start().await;
    let broken = SmtpSink::builder().starttls(&cert).on(SinkVerb::Tls, SinkAction::Cut).start().await;
    let refusing = SmtpSink::builder()
        .starttls(&cert)
        .on(SinkVerb::StartTls, SinkAction::reply("454 4.7.0 not now"))
        .start()
        .await;
    for (sink, tls) in [(&plain, false), (&unverifiable, true), (&broken, false), (&refusing, false)] {
        let mut connection =
            open(&SmtpSettings { tls: RelayTlsMode::Opportunistic, ..settings(sink) }).await.unwrap();
        assert_accepted(&send(&mut connection).await);
        assert_eq!(sink.mails()[0].tls, tls);
    }
}

#[tokio::test]
async fn a_tls_cut_is_transient_and_in_its_phase() {
    let cert = TestCert::localhost();
    let starttls = SmtpSink::builder().starttls(&cert).on(SinkVerb::Tls, SinkAction::Cut).start().await;
    let implicit = SmtpSink::builder().implicit_tls(&cert).on(SinkVerb::Tls, SinkAction::Cut).start().await;
    for (sink, mode) in [(&starttls, RelayTlsMode::Starttls), (&implicit, RelayTlsMode::Implicit)] {
        let failure = open(&over_tls(sink, mode, &cert)).await.unwrap_err();
        assert_eq!((failure.phase, failure.category), (FailurePhase::Tls, FailureCategory::Tls), "{failure}");
        assert!(failure.is_transient());
    }
}

#[tokio::test]
async fn plain_text_after_starttls_is_not_taken_for_the_servers_word() {
    let cert = TestCert::localhost();
    let injected = SinkAction::reply("220 Ready\r\n250-evil.example\r\n250 AUTH PLAIN");
    let sink =
        SmtpSink::builder().starttls(&cert).on(SinkVerb::StartTls, injected).auth("bob", "pw").start().await;
    let settings =
        SmtpSettings { credentials: credentials("pw"), ..over_tls(&sink, RelayTlsMode::Starttls, &cert) };
    let failure = open(&settings).await.unwrap_err();
    assert_eq!(failure.code, "starttls_injection");
    assert!(failure.is_transient());
    assert!(sink.ledger().commands_of("AUTH").is_empty());
}

#[tokio::test]
async fn plain_and_login_sign_in_under_tls() {
    let cert = TestCert::localhost();
    for mechanisms in ["PLAIN LOGIN", "LOGIN", "CRAM-MD5 PLAIN"] {
        let sink = SmtpSink::builder()
            .starttls(&cert)
            .auth("bob", "pä ss")
            .auth_mechanisms(mechanisms)
            .start()
            .await;
        let settings = SmtpSettings {
            credentials: credentials("pä ss"),
            ..over_tls(&sink, RelayTlsMode::Starttls, &cert)
        };
        let mut connection = open(&settings).await.unwrap();
        assert_accepted(&send(&mut connection).await);
        assert_eq!(sink.mails()[0].user.as_deref(), Some("bob"));
    }
}

#[tokio::test]
async fn sign_in_troubles_are_the_accounts() {
    let cert = TestCert::localhost();
    let usual = SmtpSink::builder().starttls(&cert).auth("bob", "right").start().await;
    let foreign =
        SmtpSink::builder().starttls(&cert).auth("bob", "x").auth_mechanisms("XOAUTH2").start().await;
    let none = SmtpSink::builder().starttls(&cert).start().await;
    for (sink, code) in
        [(&usual, "smtp_535"), (&foreign, "auth_mechanism_unsupported"), (&none, "auth_not_offered")]
    {
        let settings = SmtpSettings {
            credentials: credentials("wrong"),
            ..over_tls(sink, RelayTlsMode::Starttls, &cert)
        };
        let failure = open(&settings).await.unwrap_err();
        assert_eq!((failure.code.as_ref(), failure.phase), (code, FailurePhase::Auth));
        assert!(failure.is_account());
        assert!(!failure.message.contains("wrong"));
    }
    // A relay that demands a sign-in that is not configured refuses MAIL.
    let mut connection = open(&over_tls(&usual, RelayTlsMode::Starttls, &cert)).await.unwrap();
    let failure = not_sent(send(&mut connection).await);
    assert_eq!((failure.code.as_ref(), failure.category), ("smtp_530", FailureCategory::Authentication));
    assert!(failure.is_account());
}

#[tokio::test]
async fn a_temporary_sign_in_failure_is_transient() {
    let reply = SinkAction::reply("454 4.7.0 Temporary authentication failure");
    let sink = SmtpSink::builder().auth("bob", "pw").once(SinkVerb::Auth, reply).start().await;
    let settings =
        SmtpSettings { credentials: credentials("pw"), allow_plaintext_auth: true, ..settings(&sink) };
    assert!(open(&settings).await.unwrap_err().is_transient());
    assert_accepted(&send(&mut open(&settings).await.unwrap()).await);
}

#[tokio::test]
async fn credentials_do_not_leave_without_verified_tls_unless_allowed() {
    let cert = TestCa::new().issue(&["elsewhere.example"]);
    for (offers_tls, mode, code) in [
        (false, RelayTlsMode::None, "plaintext_auth_refused"),
        (false, RelayTlsMode::Opportunistic, "plaintext_auth_refused"),
        (true, RelayTlsMode::Opportunistic, "tls_certificate"),
    ] {
        let builder = SmtpSink::builder().auth("bob", "pw");
        let sink = if offers_tls { builder.starttls(&cert) } else { builder }.start().await;
        let mut settings = SmtpSettings { credentials: credentials("pw"), ..over_tls(&sink, mode, &cert) };
        let failure = open(&settings).await.unwrap_err();
        assert_eq!(failure.code, code);
        assert!(failure.is_account());
        assert!(sink.ledger().commands_of("AUTH").is_empty());
        settings.allow_plaintext_auth = true;
        assert_accepted(&send(&mut open(&settings).await.unwrap()).await);
    }
}

#[tokio::test]
async fn a_guarded_account_does_not_reach_a_private_relay_unless_it_is_allowed() {
    let sink = SmtpSink::start().await;
    for host in ["127.0.0.1", "localhost"] {
        let guard = Arc::new(AddressGuard::default());
        let guarded = SmtpSettings { host: host.to_owned(), guard, ..settings(&sink) };
        let failure = open(&guarded).await.unwrap_err();
        assert_eq!((failure.code.as_ref(), failure.phase), ("target_private", FailurePhase::Connect));
        assert!(failure.is_account() && failure.message.contains(host), "{}", failure.message);
    }
    assert_eq!(sink.ledger().connections, 0);
    let guard = Arc::new(AddressGuard::new(vec![("127.0.0.0".parse().unwrap(), 8)]));
    assert_accepted(&send(&mut open(&SmtpSettings { guard, ..settings(&sink) }).await.unwrap()).await);
}

#[tokio::test]
async fn a_trial_fails_where_a_username_has_no_password() {
    use postway_dispatch::probe::AccountProber;
    use postway_domain::{Account, AccountKind, AccountSettings, Clock, Time, secret::SecretKey};
    use postway_oauth::OAuthTokens;
    use postway_store::memory::MemoryStore;
    use std::sync::Arc;

    struct Still;
    impl Clock for Still {
        fn now(&self) -> Time {
            Time::from_millis(0)
        }
    }

    let sink = SmtpSink::start().await;
    let key = Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap());
    let guard = Arc::new(AddressGuard::with_loopback());
    let store = Arc::new(MemoryStore::shared());
    let tokens = OAuthTokens::new(store, Arc::new(Still), key.clone(), guard.clone());
    let prober = AccountProber::new(key, Arc::new(Still), guard, tokens, "client.example");
    let account = |username: Option<&str>| Account {
        tenant: "default".parse().unwrap(),
        id: "relay".parse().unwrap(),
        settings: AccountSettings {
            kind: AccountKind::Smtp,
            host: Some("127.0.0.1".to_owned()),
            port: Some(sink.port()),
            tls: RelayTlsMode::None,
            username: username.map(str::to_owned),
            ..AccountSettings::sandbox()
        },
        secret: None,
        version: 1,
        created_at: Time::from_millis(0),
        updated_at: Time::from_millis(0),
    };
    let open = prober.probe(&account(None)).await;
    assert!(open.iter().all(|step| step.outcome.is_ok()), "{open:?}");
    let steps = prober.probe(&account(Some("shop"))).await;
    let results: Vec<_> = steps.iter().map(|step| (step.name, step.outcome.is_ok())).collect();
    assert_eq!(results, [("connect", true), ("tls", true), ("auth", false)]);
    let failure = steps[2].outcome.as_ref().unwrap_err();
    assert_eq!((failure.code.as_ref(), failure.phase), ("password_missing", FailurePhase::Auth));
    assert!(failure.message.contains("never signs in"), "{}", failure.message);
}
