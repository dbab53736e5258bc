//! Networks: those where a key may be shown without TLS, those that need none, and clients behind a proxy.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::TenantSettings;
use postway_intake::smtp::{OpenNetwork, SmtpConfig};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{ITERATIONS, MAIL, SmtpClient, TestGateway, client_proof, config, uid_of};

async fn gateway(config: SmtpConfig) -> TestGateway {
    TestGateway::with(config, TenantSettings::default()).await
}

fn open(network: &str, account: Option<&str>) -> OpenNetwork {
    OpenNetwork {
        network: network.parse().unwrap(),
        tenant: "default".parse().unwrap(),
        account: account.map(|account| account.parse().unwrap()),
    }
}

fn proxies() -> SmtpConfig {
    let mut config = SmtpConfig { proxy_networks: vec!["127.0.0.0/8".parse().unwrap()], ..config() };
    config.timeouts.proxy = Duration::from_millis(200);
    config
}

/// A client behind a proxy that sends this header.
async fn proxied(gateway: &TestGateway, header: &[u8]) -> SmtpClient<TcpStream> {
    let mut client = gateway.connect().await;
    client.stream.write_all(header).await.unwrap();
    client
}

fn v1(client: &str) -> Vec<u8> {
    format!("PROXY TCP4 {client} 127.0.0.1 50000 25\r\n").into_bytes()
}

#[tokio::test]
async fn a_named_network_sends_without_a_key_and_its_mail_says_so() {
    let gateway =
        gateway(SmtpConfig { open_networks: vec![open("127.0.0.0/8", Some("relay"))], ..config() }).await;
    let mut client = gateway.client().await;
    client.expect("EHLO app.example", "250").await;
    let uid = uid_of(&client.send(MAIL).await);
    let raw = gateway.raw(uid).await;
    assert!(
        raw.starts_with("Received: from app.example ([127.0.0.1])\r\n\tby mx.example with ESMTP id smtp-"),
        "{raw}"
    );
    assert_eq!(gateway.stored(uid).await.summary.lane.account.as_str(), "relay");
    // The account in the mail overrides the rule.
    let refused = client.send(&format!("X-Postway-Account: nowhere\r\n{MAIL}")).await;
    assert!(refused.starts_with("550 5.6.0 X-Postway-Account: "), "{refused}");
    // A key may still be shown, and a wrong one does not cost the network its permission.
    client.expect(&crate::auth("bad"), "535").await;
    client.expect(&crate::auth("good"), "235").await;
    let uid = uid_of(&client.send(MAIL).await);
    assert!(gateway.raw(uid).await.contains(" with ESMTPA id "));
}

#[tokio::test]
async fn other_networks_still_need_a_key() {
    let gateway = gateway(SmtpConfig { open_networks: vec![open("10.0.0.0/8", None)], ..config() }).await;
    let mut client = gateway.client().await;
    client.expect("EHLO me", "250").await;
    client.expect("MAIL FROM:<a@example.com>", "530 5.7.0").await;
}

#[tokio::test]
async fn a_proxy_says_who_is_behind_it_and_rules_hold_for_that_address() {
    let config = SmtpConfig {
        plaintext_networks: vec!["192.0.2.0/24".parse().unwrap()],
        open_networks: vec![open("198.51.100.0/24", None)],
        connections_per_client_max: 1,
        ..proxies()
    };
    let gateway = gateway(config).await;
    // The trace has the client's address, and that address decides whether a key may be shown.
    let mut client = proxied(&gateway, &v1("192.0.2.7")).await;
    assert!(client.reply().await.starts_with("220 "));
    client.log_in("good").await;
    let uid = uid_of(&client.send(MAIL).await);
    assert!(gateway.raw(uid).await.starts_with("Received: from me.example ([192.0.2.7])\r\n"));
    // The limit for each client counts the client behind the proxy.
    let told = proxied(&gateway, &v1("192.0.2.7")).await.reply().await;
    assert!(told.starts_with("421 4.7.0 ") && told.contains("from your address"), "{told}");
    let mut other = proxied(&gateway, &v1("203.0.113.9")).await;
    assert!(other.reply().await.starts_with("220 "));
    assert!(!other.expect("EHLO me", "250").await.contains("AUTH"), "that network is not one for plain text");
    other.expect(&crate::auth("good"), "538").await;
    let mut open = proxied(&gateway, &v1("198.51.100.3")).await;
    assert!(open.reply().await.starts_with("220 "));
    open.expect("EHLO me", "250").await;
    uid_of(&open.send(MAIL).await);
    // A client that a proxy reports as loopback has still crossed a network.
    let mut near = proxied(&gateway, &v1("127.0.0.1")).await;
    assert!(near.reply().await.starts_with("220 "));
    assert!(!near.expect("EHLO me", "250").await.contains("AUTH"));
}

#[tokio::test]
async fn version_two_and_what_follows_in_the_same_packet_are_read() {
    let gateway =
        gateway(SmtpConfig { plaintext_networks: vec!["192.0.2.0/24".parse().unwrap()], ..proxies() }).await;
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\xc3\x50\x00\x19EHLO me.example\r\n";
    let mut client = proxied(&gateway, header).await;
    assert!(client.reply().await.starts_with("220 "));
    assert!(client.reply().await.starts_with("250-mx.example"));
    client.expect(&crate::auth("good"), "235").await;
    let uid = uid_of(&client.send(MAIL).await);
    assert!(gateway.raw(uid).await.starts_with("Received: from me.example ([192.0.2.7])\r\n"));
}

#[tokio::test]
async fn a_proxy_that_names_nobody_is_served_and_trusted_for_nothing() {
    let config = SmtpConfig {
        plaintext_networks: vec!["127.0.0.0/8".parse().unwrap()],
        open_networks: vec![open("127.0.0.0/8", None)],
        ..proxies()
    };
    let gateway = gateway(config).await;
    for header in [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"] {
        let mut client = proxied(&gateway, header).await;
        assert!(client.reply().await.starts_with("220 "));
        assert!(!client.expect("EHLO me", "250").await.contains("AUTH"));
        client.expect("MAIL FROM:<a@example.com>", "530").await;
        client.expect("QUIT", "221").await;
    }
}

#[tokio::test]
async fn a_proxy_without_its_header_gets_no_session() {
    let gateway = gateway(proxies()).await;
    for (header, status) in [
        (&b"EHLO me\r\n"[..], "421 4.7.0 "),
        (b"PROXY TCP4 nonsense\r\n", "421 4.7.0 "),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", "421 4.7.0 "),
        (b"PROXY TCP4 192.0.2.7", "421 4.4.2 "),
        (b"", "421 4.4.2 "),
    ] {
        let mut client = proxied(&gateway, header).await;
        let told = client.reply().await;
        assert!(told.starts_with(status), "{}: {told}", header.escape_ascii());
        assert!(client.is_over().await);
    }
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn who_is_no_proxy_cannot_pretend_to_speak_for_another() {
    let gateway = gateway(config()).await;
    let mut client = gateway.client().await;
    let told = client.ask("PROXY TCP4 192.0.2.7 127.0.0.1 50000 25").await;
    assert!(told.starts_with("554 5.7.1 ") && client.is_over().await, "{told}");
    // Version 2 is not a command either, and its bare LF ends the session.
    let mut binary = gateway.client().await;
    binary
        .stream
        .write_all(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\xc3\x50\x00\x19")
        .await
        .unwrap();
    binary.end().await;
    let told = String::from_utf8_lossy(&binary.unread).into_owned();
    assert!(told.contains("554 5.5.2 bare LF") && !told.contains("250"), "{told}");
}

#[tokio::test]
async fn a_key_that_is_proven_sends_and_opens_no_more_once_it_is_revoked() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.client().await;
    client.expect("EHLO me.example", "250").await;
    let bare = "n=default,r=client";
    let first =
        client.ask(&format!("AUTH SCRAM-SHA-256 {}", BASE64_STANDARD.encode(format!("n,,{bare}")))).await;
    let first = BASE64_STANDARD.decode(first.trim_end().strip_prefix("334 ").unwrap()).unwrap();
    let first = String::from_utf8(first).unwrap();
    let nonce = first.strip_prefix("r=").unwrap().split(',').next().unwrap();
    let salt =
        BASE64_STANDARD.decode(first.split(",s=").nth(1).unwrap().split(",i=").next().unwrap()).unwrap();
    let last = format!("c=biws,r={nonce}");
    let proof = client_proof("good", &salt, ITERATIONS, format!("{bare},{first},{last}").as_bytes());
    let last = format!("{last},p={}", BASE64_STANDARD.encode(proof));
    client.expect(&BASE64_STANDARD.encode(last), "334 ").await;
    client.expect("", "235").await;
    let uid = uid_of(&client.send(MAIL).await);
    assert!(gateway.raw(uid).await.contains(" with ESMTPA id "));
    gateway.keys.revoked.lock().unwrap().insert("good".to_owned());
    let refused = client.send(MAIL).await;
    assert!(refused.starts_with("550 5.7.8 "), "{refused}");
}
