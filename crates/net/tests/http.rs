//! Tests the HTTP client with a server that misbehaves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use bytes::Bytes;
use postway_net::{
    AddressGuard,
    http::{
        BodySink, FetchRequest, FetchedDocument, HttpAuth, HttpClient, HttpError, HttpSettings, SendRequest,
        parse_url,
    },
};
use postway_testkit::{ClosedPort, HttpSource, SourceReply, TestCert};
use tokio::time::Instant;

/// Longer than every test, so that only a deadline of the client can end a wait.
const LONG: Duration = Duration::from_secs(30);

/// Allows 127.0.0.1 and no other private address.
fn client() -> HttpClient {
    client_with(HttpSettings::default())
}

fn client_with(settings: HttpSettings) -> HttpClient {
    HttpClient::new(Arc::new(AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)])), settings)
}

fn get(url: &str) -> FetchRequest {
    FetchRequest { timeout: LONG, idle_timeout: LONG, ..FetchRequest::get(parse_url(url).unwrap(), 100_000) }
}

async fn fetch(request: &FetchRequest) -> Result<(FetchedDocument, Vec<u8>), HttpError> {
    let mut body = Vec::new();
    client().fetch(request, &mut body).await.map(|fetched| (fetched, body))
}

async fn refusal(url: &str) -> HttpError {
    fetch(&get(url)).await.unwrap_err()
}

#[tokio::test]
async fn a_document_is_fetched_as_it_is() {
    let source = HttpSource::start().await;
    source.serve("/a?b=c", SourceReply::ok("hello").header("content-type", "text/plain"));
    let (fetched, body) = fetch(&get(&source.url("/a?b=c"))).await.unwrap();
    assert_eq!((fetched.status, fetched.bytes, fetched.content_type()), (200, 5, Some("text/plain")));
    assert_eq!(body, b"hello");
    let request = &source.requests()[0];
    assert_eq!(request.method, "GET");
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn more_than_the_cap_is_refused_whether_it_says_so_or_not() {
    let source = HttpSource::start().await;
    source.serve("/declared", SourceReply::Declared(5 * 1024 * 1024 * 1024));
    source.serve("/endless", SourceReply::Endless);
    for path in ["/declared", "/endless"] {
        let mut body = Vec::new();
        let error = client().fetch(&get(&source.url(path)), &mut body).await.unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { bytes_max: 100_000, .. }), "{path}: {error}");
        assert!(!error.is_transient() && body.len() <= 100_000);
        assert!(body.is_empty() || path == "/endless", "it is refused before it is read");
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_cap_passes() {
    let source = HttpSource::start().await;
    source.serve("/", SourceReply::ok(vec![7; 100_000]));
    assert_eq!(fetch(&get(&source.url("/"))).await.unwrap().1.len(), 100_000);
}

#[tokio::test]
async fn slow_and_silent_sources_end_at_their_deadlines() {
    let source = HttpSource::start().await;
    source.serve("/drip", SourceReply::Drip { body: vec![1; 1_000], every: Duration::from_millis(20) });
    source.serve("/silent", SourceReply::Silent);
    let slow = FetchRequest { timeout: Duration::from_secs(2), ..get(&source.url("/drip")) };
    let idle = FetchRequest { idle_timeout: Duration::from_secs(1), ..get(&source.url("/silent")) };
    for (request, what) in [(slow, "rest of the answer"), (idle, "no answer")] {
        let started = Instant::now();
        let error = fetch(&request).await.unwrap_err();
        assert!(matches!(error, HttpError::Timeout { .. }) && error.is_transient(), "{error}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(started.elapsed() < LONG / 2);
    }
}

#[tokio::test]
async fn redirects_are_followed_three_times_and_no_more() {
    let source = HttpSource::start().await;
    source.serve("/loop", SourceReply::redirect(302, "/loop"));
    for (path, to) in [("/1", "/2"), ("/2", "/3"), ("/3", "/end"), ("/0", "/1")] {
        source.serve(path, SourceReply::redirect(307, to));
    }
    source.serve("/end", SourceReply::ok("end"));
    assert_eq!(fetch(&get(&source.url("/1"))).await.unwrap().1, b"end");
    for path in ["/0", "/loop"] {
        let before = source.requests().len();
        let error = refusal(&source.url(path)).await;
        assert!(matches!(error, HttpError::Redirects { max: 3, .. }) && !error.is_transient(), "{error}");
        assert_eq!(source.requests().len() - before, 4);
    }
}

#[tokio::test]
async fn a_redirect_into_the_private_network_is_refused() {
    let source = HttpSource::start().await;
    let inside = HttpSource::start_on([127, 0, 0, 2]).await;
    inside.serve("/", SourceReply::ok("secret"));
    let port = inside.address().port();
    for to in [
        inside.url("/"),
        format!("http://2130706434:{port}/"),
        format!("http://0x7f.0.0.2:{port}/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        "http://[::1]/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "//10.0.0.1/".to_owned(),
    ] {
        source.serve("/", SourceReply::redirect(302, &to));
        let error = refusal(&source.url("/")).await;
        assert!(matches!(error, HttpError::Guarded { .. }) && !error.is_transient(), "{to}: {error}");
    }
    for to in ["file:///etc/passwd", "http://user:secret@127.0.0.1/", "http://[", "ftp://127.0.0.1/"] {
        source.serve("/", SourceReply::redirect(302, to));
        let error = refusal(&source.url("/")).await;
        assert!(
            matches!(error, HttpError::Url { .. }) && !error.to_string().contains("secret"),
            "{to}: {error}"
        );
    }
    assert_eq!(inside.requests().len(), 0);
}

#[tokio::test]
async fn a_name_is_reached_only_at_addresses_that_are_allowed() {
    let source = HttpSource::start().await;
    source.serve("/", SourceReply::ok("hello"));
    let url = format!("http://localhost:{}/", source.address().port());
    assert_eq!(fetch(&get(&url)).await.unwrap().1, b"hello");
    let strict = HttpClient::new(Arc::new(AddressGuard::default()), HttpSettings::default());
    let error = strict.fetch(&get(&url), &mut Vec::new()).await.unwrap_err();
    assert!(matches!(&error, HttpError::Guarded { host } if host.starts_with("localhost:")), "{error}");
    assert_eq!(source.requests().len(), 1);
}

#[tokio::test]
async fn credentials_stay_with_the_origin_they_were_given_for() {
    let (source, other) = (HttpSource::start().await, HttpSource::start().await);
    source.serve("/same", SourceReply::redirect(302, "/here"));
    source.serve("/here", SourceReply::ok("here"));
    source.serve("/away", SourceReply::redirect(302, other.url("/there")));
    other.serve("/there", SourceReply::redirect(302, source.url("/here")));
    let with_secrets = |path| FetchRequest {
        auth: HttpAuth::Bearer("secret-token".into()),
        headers: vec![("x-api-key".to_owned(), "secret-key".to_owned())],
        ..get(&source.url(path))
    };
    fetch(&with_secrets("/same")).await.unwrap();
    fetch(&with_secrets("/away")).await.unwrap();
    let held = |request: &postway_testkit::http_source::ReceivedRequest| {
        (request.header("authorization").is_some(), request.header("x-api-key").is_some())
    };
    let requests = source.requests();
    assert_eq!(requests[1].header("authorization"), Some("Bearer secret-token"));
    assert!(requests[..3].iter().all(|request| held(request) == (true, true)));
    assert!(requests[3..].iter().chain(&other.requests()).all(|request| held(request) == (false, false)));
    assert!(!format!("{:?}", with_secrets("/same").auth).contains("secret-token"));
}

#[tokio::test]
async fn a_post_carries_its_body_and_is_not_redirected() {
    let source = HttpSource::start().await;
    source.serve("/doc", SourceReply::ok("document"));
    source.serve("/moved", SourceReply::redirect(307, "/doc"));
    let post = |path| FetchRequest {
        auth: HttpAuth::Basic { username: "ada".to_owned(), password: "pass".into() },
        ..FetchRequest::post(parse_url(&source.url(path)).unwrap(), Bytes::from("id=7"), "text/plain", 100)
    };
    assert_eq!(fetch(&post("/doc")).await.unwrap().1, b"document");
    let error = fetch(&post("/moved")).await.unwrap_err();
    assert!(matches!(error, HttpError::PostRedirect { status: 307, .. }) && !error.is_transient(), "{error}");
    let requests = source.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[0].method.as_str(), &requests[0].body[..]), ("POST", &b"id=7"[..]));
    assert_eq!(requests[0].header("content-type"), Some("text/plain"));
    assert_eq!(requests[0].header("authorization"), Some("Basic YWRhOnBhc3M="));
}

#[tokio::test]
async fn nothing_is_decompressed() {
    let source = HttpSource::start().await;
    source.serve("/bomb", SourceReply::ok(vec![0x1f, 0x8b]).header("content-encoding", "gzip"));
    source.serve("/plain", SourceReply::ok("as it is").header("content-encoding", "identity"));
    let error = refusal(&source.url("/bomb")).await;
    assert!(matches!(&error, HttpError::Encoded { encoding, .. } if encoding == "gzip"), "{error}");
    assert!(!error.is_transient());
    assert!(fetch(&get(&source.url("/plain"))).await.is_ok());
}

#[tokio::test]
async fn statuses_say_whether_to_come_back_and_when() {
    let source = HttpSource::start().await;
    let after = |status, seconds| SourceReply::status(status).header("retry-after", seconds);
    source.serve("/404", SourceReply::status(404));
    source.serve("/204", SourceReply::status(204));
    source.serve("/429", after(429, "7"));
    source.serve("/503", after(503, "120"));
    source.serve("/500", SourceReply::status(500));
    for (path, transient, seconds) in [
        ("/404", false, None),
        ("/204", false, None),
        ("/429", true, Some(7)),
        ("/503", true, Some(120)),
        ("/500", true, None),
    ] {
        let error = refusal(&source.url(path)).await;
        assert!(error.to_string().contains(&path[1..]), "{error}");
        assert_eq!(error.is_transient(), transient, "{error}");
        assert_eq!(error.retry_after(), seconds.map(Duration::from_secs), "{error}");
    }
}

#[tokio::test]
async fn what_breaks_off_may_work_later() {
    let source = HttpSource::start().await;
    source.serve("/cut", SourceReply::Cut { declared: 1_000, body: vec![1; 10] });
    source.serve("/garbage", SourceReply::Raw(b"not http at all\r\n\r\n".to_vec()));
    source.serve("/nothing", SourceReply::Raw(Vec::new()));
    let two_lengths = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 5\r\n\r\nhello";
    source.serve("/lengths", SourceReply::Raw(two_lengths.to_vec()));
    for path in ["/cut", "/garbage", "/nothing", "/lengths"] {
        let error = refusal(&source.url(path)).await;
        assert!(matches!(error, HttpError::Broken { .. }) && error.is_transient(), "{path}: {error}");
    }
    let closed = ClosedPort::take();
    let error = refusal(&format!("http://{}/gone", closed.address())).await;
    assert!(matches!(error, HttpError::Connect { .. }) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_reader_can_stop_the_fetch() {
    struct Full;
    impl BodySink for Full {
        fn begin(&mut self, _: Option<u64>) {}
        fn take(&mut self, _: &[u8]) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let source = HttpSource::start().await;
    source.serve("/", SourceReply::Endless);
    let error = client().fetch(&get(&source.url("/")), &mut Full).await.unwrap_err();
    assert!(matches!(error, HttpError::Stopped { .. }), "{error}");
}

#[tokio::test]
async fn headers_that_frame_the_request_are_refused() {
    let source = HttpSource::start().await;
    for (name, value) in [("Host", "other"), ("Content-Length", "0"), ("x\r\ny", "1"), ("x", "1\r\ny: 2")] {
        let request =
            FetchRequest { headers: vec![(name.to_owned(), value.to_owned())], ..get(&source.url("/")) };
        let error = fetch(&request).await.unwrap_err();
        assert!(matches!(error, HttpError::Request { .. }) && !error.is_transient(), "{error}");
    }
    assert_eq!(source.requests().len(), 0);
}

#[tokio::test]
async fn https_is_verified() {
    let cert = TestCert::localhost();
    let source = HttpSource::start_tls(&cert).await;
    source.serve("/", SourceReply::ok("secure"));
    let error = refusal(&source.url("/")).await;
    assert!(matches!(error, HttpError::Certificate { .. }) && !error.is_transient(), "{error}");
    let trusting = HttpSettings { extra_roots_pem: Some(cert.ca_pem.clone()), ..HttpSettings::default() };
    let mut body = Vec::new();
    client_with(trusting).fetch(&get(&source.url("/")), &mut body).await.unwrap();
    assert_eq!(body, b"secure");
}

#[tokio::test]
async fn sending_hears_any_status_and_keeps_a_bounded_answer() {
    let source = HttpSource::start().await;
    source.serve("/ok", SourceReply::ok("thanks").header("x-id", "7"));
    source.serve("/moved", SourceReply::redirect(302, "/ok"));
    source.serve("/busy", SourceReply::status(503).header("retry-after", "9"));
    source.serve("/endless", SourceReply::Endless);
    source.serve("/cut", SourceReply::Cut { declared: 100, body: b"part".to_vec() });
    let client = client();
    let send = async |path: &str| {
        let request = SendRequest {
            url: parse_url(&source.url(path)).unwrap(),
            body: Bytes::from("{}"),
            content_type: "application/json".to_owned(),
            headers: vec![("webhook-id".to_owned(), "1".to_owned())],
            auth: HttpAuth::None,
            timeout: LONG,
            answer_bytes_max: 10,
        };
        client.send(&request).await.unwrap()
    };
    let ok = send("/ok").await;
    assert!(ok.is_success() && !ok.is_cut && ok.body == "thanks" && ok.header("x-id") == Some("7"));
    assert_eq!(send("/moved").await.status, 302);
    let busy = send("/busy").await;
    assert!(busy.is_transient() && busy.retry_after() == Some(Duration::from_secs(9)));
    let endless = send("/endless").await;
    assert!(endless.is_success() && endless.is_cut && endless.body.len() == 10);
    let cut = send("/cut").await;
    assert!(cut.is_cut && cut.body == "part");
    let request = &source.requests()[0];
    assert_eq!(request.header("content-length"), Some("2"));
    assert_eq!(request.header("webhook-id"), Some("1"));
    assert_eq!(source.requests().len(), 5, "the redirect is not followed");
}
