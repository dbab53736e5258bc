//! Bodies that are too large, over a real connection: the answer must arrive though the client is still
//! writing.

use axum::body::Body;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::{Api, KEY, REQUEST_BYTES_MAX};

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused() {
    let api = Api::start().await;
    let error = api.call("POST", "/v1/messages", vec![b' '; REQUEST_BYTES_MAX + 1]).await;
    error.refused(413, "payload_too_large");
    let streamed = Body::from_stream(futures::stream::iter(
        (0..200).map(|_| Ok::<_, std::io::Error>(axum::body::Bytes::from(vec![b' '; 1024]))),
    ));
    api.call("POST", "/v1/messages/batch", streamed).await.refused(413, "payload_too_large");
    api.call("POST", "/v1/accounts", vec![b' '; (1 << 20) + 1]).await.refused(413, "payload_too_large");
}

#[tokio::test]
async fn a_client_that_writes_on_still_gets_the_answer() {
    let api = Api::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(axum::serve(listener, api.router.clone()).into_future());
    let body = vec![b'x'; 8 * 1024 * 1024];
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nX-Request-Id: big-1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("\"payload_too_large\"") && answer.contains("big-1"), "{answer}");
    server.abort();
}
