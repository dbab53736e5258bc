//! The client against a stub that answers once.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers one request with these bytes and returns what was asked.
async fn stub(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 16 * 1024];
        let read = stream.read(&mut buffer).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    });
    (url, asked)
}

fn client(url: &str) -> ApiClient {
    postway_net::install_crypto_provider();
    ApiClient::new(url, Some(ConfigSecret::new("the-key")), Some("acme".to_owned())).unwrap()
}

#[tokio::test]
async fn a_request_carries_key_tenant_and_encoded_path() {
    let (url, asked) = stub("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":1}").await;
    let answer = client(&url).get(&["v1", "messages", "a/b"], &[("limit", "5".to_owned())]).await.unwrap();
    assert_eq!(answer["id"], 1);
    let asked = asked.await.unwrap().to_lowercase();
    assert!(asked.starts_with("get /v1/messages/a%2fb?limit=5 http/1.1\r\n"), "{asked}");
    assert!(
        asked.contains("authorization: bearer the-key\r\n") && asked.contains("x-tenant: acme\r\n"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_refusal_names_the_fields_that_failed() {
    let (url, _asked) = stub(concat!(
        "HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 122\r\n\r\n",
        r#"{"error":{"code":"validation_error","message":"checks failed","details":[{"field":"to[0]","message":"not an address"}]}}  "#
    ))
    .await;
    let failure = client(&url).get(&["v1"], &[]).await.unwrap_err();
    assert!(matches!(&failure, CommandFailure::Refused(_)), "{failure:?}");
    let message = failure.to_string();
    assert!(
        message.starts_with("checks failed (422") && message.contains("\n  to[0]: not an address"),
        "{message}"
    );
}

#[tokio::test]
async fn what_is_not_found_is_told_apart() {
    let (url, _asked) = stub("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
    assert!(matches!(client(&url).get(&["v1"], &[]).await, Err(CommandFailure::NotFound(_))));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    // Taken, so that nobody else listens there.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    let failure = client(&url).get(&["v1"], &[]).await.unwrap_err();
    assert!(matches!(&failure, CommandFailure::Unreachable { .. }), "{failure:?}");
    assert!(failure.to_string().to_lowercase().contains("refused"), "{failure}");
}

#[test]
fn ids_that_a_path_cannot_carry_are_refused_before_asking() {
    assert!(matches!(client("http://127.0.0.1:1").url(&["v1", ".."]), Err(CommandFailure::Usage(_))));
}

#[test]
fn a_server_on_every_address_is_reached_over_loopback() {
    let env = [("POSTWAY_HTTP_LISTEN".into(), "0.0.0.0:9".into())];
    let config = crate::config::load_from(None, env).unwrap().config;
    assert_eq!(local_url(&config), "http://127.0.0.1:9");
}

#[test]
fn the_key_left_in_the_data_folder_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("POSTWAY_DATA_DIR".into(), folder.path().into())];
    let config = crate::config::load_from(None, env).unwrap().config;
    assert!(key_of(&config).unwrap().is_none());
    std::fs::write(folder.path().join("admin.key"), "the-key\n").unwrap();
    assert_eq!(key_of(&config).unwrap().unwrap().expose(), "the-key");
}
