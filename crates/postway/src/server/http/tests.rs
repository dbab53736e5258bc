//! The real listener on a real socket.

use std::net::Ipv4Addr;

use axum::{extract::Request as AxumRequest, routing::get};
use postway_api::RequestOrigin;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
    time::timeout,
};

use super::*;

const WAIT_MAX: Duration = Duration::from_secs(30);
const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

struct TestListener {
    address: SocketAddr,
    stop: CancellationToken,
    /// Lets `/slow` answer.
    go: Arc<Notify>,
    /// Says that `/slow` was asked.
    asked: Arc<Notify>,
    server: tokio::task::JoinHandle<()>,
}

/// A listener on which every connection counts as one client's, although all come from this machine.
async fn served(bounds: HttpBounds) -> TestListener {
    served_as(bounds, None).await
}

/// The same under TLS.
async fn served_as(bounds: HttpBounds, tls: Option<TlsAcceptor>) -> TestListener {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (go, asked) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (go, asked) = (go.clone(), asked.clone());
        move || async move {
            asked.notify_one();
            go.notified().await;
            "slow"
        }
    };
    let router = Router::new()
        .route("/", get(|| async { "here" }).post(|body: String| async move { body.len().to_string() }))
        .route("/large", get(|| async { "x".repeat(1 << 20) }))
        .route(
            "/origin",
            get(|request: AxumRequest| async move {
                format!("{:?}", request.extensions().get::<RequestOrigin>())
            }),
        )
        .route("/slow", get(slow));
    let stop = CancellationToken::new();
    let server = tokio::spawn({
        let stop = stop.clone();
        async move {
            let (_keep, router) = watch::channel(router);
            HttpListeners::new(bounds).serve(listener, tls, router, stop).await;
        }
    });
    TestListener { address, stop, go, asked, server }
}

fn bounds(connections_max: usize, connections_per_client_max: usize) -> HttpBounds {
    HttpBounds {
        head_max: WAIT_MAX,
        is_loopback_shared: false,
        ..HttpBounds::new(connections_max, connections_per_client_max)
    }
}

impl TestListener {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection of another client: all of 127.0.0.0/8 is this machine.
    async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into()).unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

/// Asks and reads one answer whole; the status.
async fn ask(stream: &mut TcpStream, request: &str) -> u16 {
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(stream).await.0
}

/// One answer: its status and body.
async fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return (head[9..12].parse().unwrap(), body.to_owned());
            }
        }
        let got = timeout(WAIT_MAX, stream.read_buf(&mut read)).await.expect("an answer comes").unwrap();
        assert!(got > 0, "closed before an answer: {text}");
    }
}

/// Waits until the other end closes.
async fn closed(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    // A reset is an end as well.
    let _ = timeout(WAIT_MAX, stream.read_to_end(&mut read)).await.expect("it is closed");
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn one_address_has_so_many_connections_and_others_have_theirs() {
    let served = served(bounds(100, 10)).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        let mut stream = served.connect().await;
        assert_eq!(ask(&mut stream, GET).await, 200);
        held.push(stream);
    }
    let mut refused = served.connect().await;
    let (status, body) = answer(&mut refused).await;
    assert_eq!(status, 503);
    assert!(body.contains("http.max_connections_per_client"), "{body}");
    closed(&mut refused).await;
    assert_eq!(ask(&mut served.connect_from(2).await, GET).await, 200, "another address is let in");
    // Whoever closes one has it again.
    drop(held.pop());
    let again = async {
        loop {
            let mut stream = served.connect().await;
            if ask(&mut stream, GET).await == 200 {
                return;
            }
        }
    };
    timeout(WAIT_MAX, again).await.expect("the place is free again");
}

#[tokio::test]
async fn when_all_is_full_an_unused_connection_makes_room_and_a_request_in_progress_stays() {
    let served = served(bounds(3, 3)).await;
    let mut busy = served.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(WAIT_MAX, served.asked.notified()).await.unwrap();
    // Two that begin a head and do not go on.
    let mut halves = Vec::new();
    for _ in 0..2 {
        let mut half = served.connect().await;
        half.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
        halves.push(half);
    }
    let mut strangers = Vec::new();
    for last in 2..12 {
        let mut stranger = served.connect_from(last).await;
        stranger.write_all(GET.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stranger).await, (200, "here".to_owned()), "strangers get in");
        strangers.push(stranger);
    }
    for half in &mut halves {
        assert_eq!(closed(half).await, "", "who did not ask is not answered");
    }
    served.go.notify_one();
    assert_eq!(answer(&mut busy).await, (200, "slow".to_owned()));
}

#[tokio::test]
async fn strangers_who_come_and_go_get_in_beside_those_who_stay() {
    let served = served(bounds(3, 3)).await;
    let mut halves = Vec::new();
    for _ in 0..3 {
        let mut half = served.connect().await;
        half.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
        halves.push(half);
    }
    for number in 0..200 {
        let mut stranger = served.connect_from(2 + number).await;
        assert_eq!(ask(&mut stranger, GET).await, 200, "{number}");
    }
}

#[tokio::test]
async fn where_every_connection_is_busy_a_new_one_is_told_so() {
    let served = served(bounds(1, 1)).await;
    let mut busy = served.connect().await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(WAIT_MAX, served.asked.notified()).await.unwrap();
    let (status, body) = answer(&mut served.connect_from(2).await).await;
    assert_eq!(status, 503);
    assert!(body.contains("http.max_connections)"), "{body}");
    served.go.notify_one();
    assert_eq!(answer(&mut busy).await.0, 200);
}

#[tokio::test]
async fn a_head_of_100_kb_is_refused_and_a_body_of_that_size_is_not() {
    let served = served(bounds(10, 10)).await;
    let large = "x".repeat(100_000);
    let mut stream = served.connect().await;
    // It is answered before all of it was read.
    let _ =
        stream.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\nx-large: {large}\r\n\r\n").as_bytes()).await;
    assert_eq!(answer(&mut stream).await.0, 431);
    closed(&mut stream).await;
    let fits = "x".repeat(20_000);
    let mut stream = served.connect().await;
    assert_eq!(ask(&mut stream, &format!("GET / HTTP/1.1\r\nhost: x\r\nx-large: {fits}\r\n\r\n")).await, 200);
    let many: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    let mut stream = served.connect().await;
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n").as_bytes()).await;
    assert_eq!(answer(&mut stream).await.0, 431, "fields are counted, too");
    let mut stream = served.connect().await;
    let post = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{large}");
    stream.write_all(post.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream).await, (200, "100000".to_owned()));
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert_eq!(answer(&mut stream).await.1.len(), 1 << 20);
}

#[tokio::test]
async fn a_head_that_does_not_arrive_in_time_ends_its_connection_and_an_idle_one_goes_on() {
    let head_max = Duration::from_millis(300);
    let served = served(HttpBounds { head_max, ..bounds(10, 10) }).await;
    let mut silent = served.connect().await;
    let mut idle = served.connect().await;
    assert_eq!(ask(&mut idle, GET).await, 200);
    let mut dripping = served.connect().await;
    let drip = async {
        // One that never stops sending is not given more time for it.
        for byte in std::iter::repeat_n(b"x", 10_000) {
            if dripping.write_all(byte).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("a head of many little pieces was waited for");
    };
    timeout(WAIT_MAX, drip).await.expect("it is closed");
    assert_eq!(closed(&mut silent).await, "");
    assert_eq!(ask(&mut idle, GET).await, 200, "between requests there is more time");
    idle.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert_eq!(closed(&mut idle).await, "", "the next head has its deadline as well");
}

#[tokio::test]
async fn a_stop_lets_requests_finish_and_waits_for_nobody_else() {
    let served = served(bounds(10, 10)).await;
    let (mut unused, mut half, mut busy) =
        (served.connect().await, served.connect().await, served.connect().await);
    half.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    timeout(WAIT_MAX, served.asked.notified()).await.unwrap();
    served.stop.cancel();
    assert_eq!((closed(&mut unused).await, closed(&mut half).await), (String::new(), String::new()));
    served.go.notify_one();
    assert_eq!(answer(&mut busy).await, (200, "slow".to_owned()));
    timeout(WAIT_MAX, served.server).await.expect("it stops").unwrap();
}

#[tokio::test]
async fn a_request_knows_where_it_came_from_and_believes_trusted_proxies_alone() {
    let request = "GET /origin HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 203.0.113.1\r\n\r\n";
    let asked = async |bounds| {
        let mut stream = served(bounds).await.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(&mut stream).await.1
    };
    assert!(asked(bounds(9, 9)).await.contains("127.0.0.1"));
    let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    assert!(asked(HttpBounds { trusted_proxies, ..bounds(9, 9) }).await.contains("203.0.113.1"));
}

#[test]
fn this_machine_and_trusted_proxies_are_nobody_in_particular() {
    let bounds = HttpBounds { trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()], ..HttpBounds::new(9, 9) };
    let client = |text: &str| bounds.client(text.parse().unwrap());
    for shared in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.2.3"] {
        assert_eq!(client(shared), None, "{shared}");
    }
    assert!(client("192.0.2.1").is_some());
}

#[tokio::test]
async fn a_tcp_proxy_names_the_client_and_nobody_else_can() {
    let request = "GET /origin HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 198.51.100.1\r\n\r\n";
    let named = "PROXY TCP4 203.0.113.1 127.0.0.1 50000 80\r\n";
    let proxy_networks = vec!["127.0.0.1".parse().unwrap()];
    let served = served(HttpBounds { proxy_networks, ..bounds(9, 1) }).await;
    let ask = async |mut stream: TcpStream, text: &str| {
        stream.write_all(text.as_bytes()).await.unwrap();
        answer(&mut stream).await
    };
    let (status, origin) = ask(served.connect().await, &format!("{named}{request}")).await;
    assert!(
        status == 200 && origin.contains("203.0.113.1") && origin.contains("is_shared: false"),
        "{origin}"
    );
    let (_, origin) = ask(served.connect().await, &format!("PROXY UNKNOWN\r\n{request}")).await;
    assert!(origin.contains("127.0.0.1") && origin.contains("is_shared: true"), "{origin}");
    // Who is not named sends what is no request.
    let (status, _) = ask(served.connect_from(2).await, &format!("{named}{request}")).await;
    assert_eq!(status, 400);
    // From a named network a header must come first.
    let mut bare = served.connect().await;
    bare.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(closed(&mut bare).await, "");
    // The bound of a client holds for the one behind the proxy.
    let mut first = served.connect().await;
    first.write_all(format!("{named}{GET}").as_bytes()).await.unwrap();
    assert_eq!(answer(&mut first).await.0, 200);
    let (status, _) = ask(served.connect().await, &format!("{named}{GET}")).await;
    assert_eq!(status, 503);
}

mod tls {
    use postway_net::listen::{CertificateFiles, ServerCertificate};
    use postway_testkit::Http2Client;

    use super::*;

    fn acceptor(folder: &std::path::Path) -> TlsAcceptor {
        let key = rcgen::KeyPair::generate().unwrap();
        let made =
            rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = CertificateFiles::new(folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&files.certificate, made.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        Arc::new(ServerCertificate::open(files).unwrap()).acceptor(&[HTTP2, HTTP1]).unwrap()
    }

    async fn client(address: SocketAddr, folder: &std::path::Path) -> reqwest::Client {
        let root = std::fs::read(folder.join("cert.pem")).unwrap();
        reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(&root).unwrap()])
            .resolve("localhost", address)
            .build()
            .unwrap()
    }

    #[tokio::test]
    async fn tls_is_spoken_and_a_silent_handshake_holds_no_slot_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let served = served_as(bounds(2, 9), Some(acceptor(folder.path()))).await;
        let (_silent, mut half) = (served.connect().await, served.connect().await);
        half.write_all(b"\x16\x03\x01").await.unwrap();
        // Both slots are taken by connections in their handshake; a third client gets the place of one.
        let client = client(served.address, folder.path()).await;
        let url = format!("https://localhost:{}/origin", served.address.port());
        let answer = client.get(&url).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(text.contains("is_https: true"), "{text}");
        let mut plain = served.connect().await;
        plain.write_all(GET.as_bytes()).await.unwrap();
        let said = closed(&mut plain).await;
        assert!(!said.contains("200"), "{said}");
    }

    #[tokio::test]
    async fn a_handshake_that_does_not_end_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let bounds = HttpBounds { handshake_max: Duration::from_millis(100), ..bounds(9, 9) };
        let served = served_as(bounds, Some(acceptor(folder.path()))).await;
        let mut half = served.connect().await;
        half.write_all(b"\x16\x03\x01").await.unwrap();
        assert_eq!(closed(&mut half).await, "");
    }

    /// Requests that never end are one client's, over however many connections they come.
    #[tokio::test]
    async fn requests_over_http2_are_bounded_like_connections() {
        let folder = tempfile::tempdir().unwrap();
        let served = served_as(bounds(9, 3), Some(acceptor(folder.path()))).await;
        let connect = async |last: u8| {
            let from = Ipv4Addr::new(127, 0, 0, last).into();
            Http2Client::connect(from, served.address).await.unwrap()
        };
        let slow =
            [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/slow")];
        let mut first = connect(1).await;
        for _ in 0..4 {
            first.begin(&slow, b"").await.unwrap();
        }
        let refused = timeout(WAIT_MAX, first.answer()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&refused.data).into_owned();
        assert!(refused.request == 7 && said.contains("http.max_connections_per_client"), "{said}");
        let mut second = connect(1).await;
        second.begin(&slow, b"").await.unwrap();
        let refused = timeout(WAIT_MAX, second.answer()).await.unwrap().unwrap();
        assert!(refused.request == 1 && !refused.data.is_empty());
        // Another client has its own, and whoever is answered may ask again.
        let mut other = connect(2).await;
        other.begin(&slow, b"").await.unwrap();
        let answered = async {
            let mut answer = std::pin::pin!(other.answer());
            loop {
                served.go.notify_waiters();
                tokio::select! {
                    answer = answer.as_mut() => return answer.unwrap(),
                    () = tokio::time::sleep(Duration::from_millis(20)) => {}
                }
            }
        };
        assert_eq!(timeout(WAIT_MAX, answered).await.unwrap().data, b"slow");
        let at_root = slow.map(|(name, value)| (name, if value == "/slow" { "/" } else { value }));
        let again = async {
            loop {
                second.begin(&at_root, b"").await.unwrap();
                if second.answer().await.unwrap().data == b"here" {
                    return;
                }
            }
        };
        timeout(WAIT_MAX, again).await.unwrap();
    }
}
