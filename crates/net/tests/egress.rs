//! Tests that HTTP takes the path that it is given: through proxies that agree, refuse, are silent or are not
//! there, and from an address of this machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{sync::Arc, time::Duration};

use postway_net::{
    AddressGuard, EgressPath,
    http::{FetchRequest, HttpAnswer, HttpAuth, HttpClient, HttpError, HttpSettings, SendRequest, parse_url},
};
use postway_testkit::{ClosedPort, EgressProxy, HttpSource, ProxyManner, SourceReply, TestCa, TestCert};

/// Longer than every test.
const LONG: Duration = Duration::from_secs(30);

fn client(egress: EgressPath) -> HttpClient {
    settings_client(HttpSettings { egress, ..HttpSettings::default() })
}

fn settings_client(settings: HttpSettings) -> HttpClient {
    HttpClient::new(Arc::new(AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)])), settings)
}

fn through(url: &str) -> EgressPath {
    EgressPath::through(Some(url.parse().unwrap()))
}

async fn post(client: &HttpClient, url: &str) -> Result<HttpAnswer, HttpError> {
    let request = SendRequest {
        url: parse_url(url).unwrap(),
        body: "{}".into(),
        content_type: "application/json".to_owned(),
        headers: vec![("x-own".to_owned(), "1".to_owned())],
        auth: HttpAuth::bearer("token"),
        timeout: LONG,
        answer_bytes_max: 1_000,
    };
    client.send(&request).await
}

#[tokio::test]
async fn calls_take_the_proxy_under_tls_and_without_and_reuse_its_connections() {
    let cert = TestCert::localhost();
    for proxy in [EgressProxy::socks5(ProxyManner::Open).await, EgressProxy::connect(ProxyManner::Open).await]
    {
        for source in [HttpSource::start().await, HttpSource::start_tls(&cert).await] {
            source.serve("/hook", SourceReply::ok("done"));
            let client = settings_client(HttpSettings {
                egress: through(&proxy.url()),
                extra_roots_pem: Some(cert.ca_pem.clone()),
                ..HttpSettings::default()
            });
            let before = proxy.targets().len();
            for _ in 0..3 {
                let answer = post(&client, &source.url("/hook")).await.unwrap();
                assert_eq!((answer.status, &answer.body[..]), (200, &b"done"[..]));
            }
            let request = source.requests()[0].clone();
            assert_eq!((request.method.as_str(), request.header("x-own")), ("POST", Some("1")));
            assert_eq!(request.header("authorization"), Some("Bearer token"));
            assert!(
                request
                    .header("host")
                    .is_some_and(|host| host.contains(&source.address().port().to_string()))
            );
            assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("postway/")));
            assert_eq!(request.header("proxy-authorization"), None, "the target learns nothing of the proxy");
            assert!(proxy.targets().len() <= before + 1, "one connection served three calls");
        }
    }
}

#[tokio::test]
async fn a_fetch_with_a_redirect_is_checked_again_on_the_way_through_a_proxy() {
    let proxy = EgressProxy::socks5(ProxyManner::Open).await;
    let source = HttpSource::start().await;
    source.serve("/out", SourceReply::redirect(302, "http://127.0.0.2:80/metadata"));
    source.serve("/on", SourceReply::redirect(302, "/end"));
    source.serve("/end", SourceReply::ok("here"));
    let client = client(through(&proxy.url()));
    let get = |path: &str| FetchRequest::get(parse_url(&source.url(path)).unwrap(), 1_000);
    let mut body = Vec::new();
    client.fetch(&get("/on"), &mut body).await.unwrap();
    assert_eq!(body, b"here");
    let error = client.fetch(&get("/out"), &mut Vec::new()).await.unwrap_err();
    assert!(matches!(error, HttpError::Guarded { .. }), "{error}");
    assert!(proxy.targets().iter().all(|target| target.starts_with("127.0.0.1:")), "{:?}", proxy.targets());
}

#[tokio::test]
async fn a_proxy_that_does_not_help_is_named_and_its_password_is_not() {
    let source = HttpSource::start().await;
    source.serve("/hook", SourceReply::ok("done"));
    let closed = ClosedPort::take();
    let url = source.url("/hook");
    for (manner, says) in [
        (ProxyManner::Password("bob", "right"), "refuses the user name and password"),
        (ProxyManner::Refusing, "does not allow this connection"),
        (ProxyManner::Closing, "proxy"),
    ] {
        for proxy in [EgressProxy::socks5(manner.clone()).await, EgressProxy::connect(manner.clone()).await] {
            let error = post(&client(through(&proxy.url_of("bob:wrong"))), &url).await.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, HttpError::Connect { .. }) && text.contains(says), "{manner:?}: {text}");
            assert!(text.contains(&format!("proxy 127.0.0.1:{}", proxy.port())), "{text}");
            assert!(!text.contains("wrong"), "{text}");
        }
    }
    let error =
        post(&client(through(&format!("http://127.0.0.1:{}", closed.port()))), &url).await.unwrap_err();
    assert!(error.to_string().contains("takes no connection"), "{error}");
    assert_eq!(source.requests().len(), 0);

    let right = EgressProxy::connect(ProxyManner::Password("bob", "right")).await;
    post(&client(through(&right.url_of("bob:right"))), &url).await.unwrap();
}

#[tokio::test]
async fn a_silent_proxy_ends_at_the_deadline_of_the_connection() {
    let source = HttpSource::start().await;
    let proxy = EgressProxy::socks5(ProxyManner::Silent).await;
    let client = settings_client(HttpSettings {
        connect_timeout: Duration::from_millis(300),
        egress: through(&proxy.url()),
        ..HttpSettings::default()
    });
    let error = post(&client, &source.url("/hook")).await.unwrap_err();
    assert!(error.to_string().contains("no proxy handshake with 127.0.0.1"), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_proxy_in_a_network_that_is_not_allowed_is_never_reached() {
    let source = HttpSource::start().await;
    let error = post(&client(through("socks5://127.0.0.2:1080")), &source.url("/hook")).await.unwrap_err();
    assert!(matches!(&error, HttpError::Guarded { host } if host == "127.0.0.2"), "{error}");
}

#[tokio::test]
async fn calls_leave_from_the_chosen_address() {
    let source = HttpSource::start().await;
    source.serve("/hook", SourceReply::ok("done"));
    let from = |address: &str| EgressPath { proxy: None, source: Some(address.parse().unwrap()) };
    post(&client(from("127.0.0.7")), &source.url("/hook")).await.unwrap();
    let error = post(&client(from("192.0.2.1")), &source.url("/hook")).await.unwrap_err();
    assert!(error.to_string().contains("192.0.2.1 is no address of this machine"), "{error}");
}

#[tokio::test]
async fn a_certificate_is_checked_for_the_target_and_not_for_the_proxy() {
    let cert = TestCa::new().issue(&["elsewhere.example"]);
    let source = HttpSource::start_tls(&cert).await;
    source.serve("/hook", SourceReply::ok("done"));
    let proxy = EgressProxy::connect(ProxyManner::Open).await;
    let client = settings_client(HttpSettings {
        egress: through(&proxy.url()),
        extra_roots_pem: Some(cert.ca_pem.clone()),
        ..HttpSettings::default()
    });
    let error = post(&client, &source.url("/hook")).await.unwrap_err();
    assert!(matches!(error, HttpError::Certificate { .. }), "{error}");
}
