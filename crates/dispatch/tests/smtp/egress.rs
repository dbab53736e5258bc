//! Relays are reached by the path that the account gives: through proxies, and from an address of this
//! machine.

use super::*;
use postway_domain::failure::{FailureCategory, FailurePhase};
use postway_net::EgressPath;
use postway_testkit::{ClosedPort, EgressProxy, ProxyManner, TestCert};

fn through(sink: &SmtpSink, url: &str) -> SmtpSettings {
    SmtpSettings { egress: EgressPath::through(Some(url.parse().expect("it is a URL"))), ..hasty(sink) }
}

async fn both(manner: ProxyManner) -> [EgressProxy; 2] {
    [EgressProxy::socks5(manner.clone()).await, EgressProxy::connect(manner).await]
}

#[tokio::test]
async fn mail_goes_through_a_proxy_with_starttls_to_the_relay_itself() {
    let cert = TestCert::localhost();
    for proxy in both(ProxyManner::Password("bob", "right")).await {
        let sink = SmtpSink::builder().starttls(&cert).auth("bob", "hunter2").start().await;
        let settings = SmtpSettings {
            host: "localhost".to_owned(),
            tls: RelayTlsMode::Starttls,
            extra_roots_pem: Some(cert.ca_pem.clone()),
            credentials: credentials("hunter2"),
            ..through(&sink, &proxy.url_of("bob:right"))
        };
        let mut connection = open(&settings).await.unwrap();
        assert_accepted(&send(&mut connection).await);
        assert!(sink.mails()[0].tls);
        assert_eq!(proxy.targets().last(), Some(&format!("127.0.0.1:{}", sink.port())), "a checked address");
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_is_the_accounts_fault_and_one_that_fails_is_not() {
    let sink = SmtpSink::start().await;
    let closed = ClosedPort::take();
    let mut failures = Vec::new();
    for proxy in both(ProxyManner::Password("bob", "right")).await {
        failures.push((open(&through(&sink, &proxy.url_of("bob:wrong"))).await.unwrap_err(), true));
    }
    for proxy in both(ProxyManner::Refusing).await {
        failures.push((open(&through(&sink, &proxy.url())).await.unwrap_err(), true));
    }
    for proxy in both(ProxyManner::Silent).await.into_iter().chain(both(ProxyManner::Closing).await) {
        failures.push((open(&through(&sink, &proxy.url())).await.unwrap_err(), false));
    }
    let nobody = format!("socks5://127.0.0.1:{}", closed.port());
    failures.push((open(&through(&sink, &nobody)).await.unwrap_err(), false));
    for (failure, is_settings) in failures {
        assert_eq!(failure.phase, FailurePhase::Connect, "{failure:?}");
        assert_eq!(failure.is_account(), is_settings, "{failure:?}");
        assert!(failure.message.contains("proxy"), "{}", failure.message);
        assert!(
            !failure.message.contains("wrong") && !failure.message.contains("right"),
            "{}",
            failure.message
        );
    }
    assert_eq!(sink.ledger().connections, 0);
}

#[tokio::test]
async fn the_dialogue_and_debug_output_never_have_the_proxys_password() {
    let sink = SmtpSink::start().await;
    let proxy = EgressProxy::socks5(ProxyManner::Password("bob", "right")).await;
    let settings = through(&sink, &proxy.url_of("bob:s3cr3t"));
    let mut reached = postway_dispatch::transport::HandshakeMilestones::default();
    let failure = SmtpConnection::open_watched(&settings, &TlsClient::new(), &mut reached).await.unwrap_err();
    let dialogue = reached.opening.ended_by(&failure);
    assert!(dialogue.contains("SOCKS5 proxy"), "{dialogue}");
    assert!(!dialogue.contains("s3cr3t") && !format!("{settings:?}").contains("s3cr3t"), "{dialogue}");
}

#[tokio::test]
async fn a_proxy_does_not_lead_around_the_guard() {
    let sink = SmtpSink::start().await;
    let proxy = EgressProxy::socks5(ProxyManner::Open).await;
    // The proxy's own address is allowed, and no other.
    let guard = Arc::new(AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)]));
    for host in ["127.0.0.2", "10.0.0.1", "[::1]", "0x7f000002"] {
        let settings =
            SmtpSettings { host: host.to_owned(), guard: guard.clone(), ..through(&sink, &proxy.url()) };
        let failure = open(&settings).await.unwrap_err();
        assert!(failure.is_account() && failure.code == "target_private", "{host}: {failure:?}");
    }
    assert_eq!(proxy.targets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_leaves_from_the_source_address_or_says_why_not() {
    let sink = SmtpSink::start().await;
    let from = |address: &str| SmtpSettings {
        egress: EgressPath { proxy: None, source: Some(address.parse().unwrap()) },
        ..hasty(&sink)
    };
    let mut connection = open(&from("127.0.0.6")).await.unwrap();
    assert_accepted(&send(&mut connection).await);
    for address in ["192.0.2.1", "2001:db8::1"] {
        let failure = open(&from(address)).await.unwrap_err();
        assert!(failure.is_account() && failure.category == FailureCategory::Configuration, "{failure:?}");
        assert!(failure.message.contains(address), "{}", failure.message);
        assert_eq!(failure.code, "source_address");
    }
    assert_eq!(sink.ledger().connections, 1);
}
