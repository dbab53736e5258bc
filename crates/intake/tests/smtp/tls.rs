//! STARTTLS, implicit TLS, and certificates that change.

use std::{path::Path, sync::Arc, time::Duration};

use postway_domain::TenantSettings;
use postway_intake::smtp::SmtpConfig;
use postway_net::listen::{CertificateFiles, ServerCertificate};
use postway_testkit::TestCert;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

use crate::{MAIL, SmtpClient, TestGateway, config, loopback, uid_of};

fn write(folder: &Path, certificate: &TestCert) {
    std::fs::write(folder.join("key.pem"), &certificate.key_pem).unwrap();
    std::fs::write(folder.join("cert.pem"), &certificate.cert_pem).unwrap();
}

/// The certificate in these files, which are watched as long as the test runs.
fn opened(folder: &Path) -> Arc<ServerCertificate> {
    let files = CertificateFiles::new(folder.join("cert.pem"), folder.join("key.pem"));
    let opened = Arc::new(ServerCertificate::open(files).unwrap());
    tokio::spawn(opened.clone().watch_files(Duration::from_millis(20), CancellationToken::new()));
    opened
}

async fn gateway(certificate: &TestCert) -> (TempDir, TestGateway) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), certificate);
    let certificate = Some(opened(folder.path()));
    let config = SmtpConfig { tls_listen: Some(loopback()), certificate, ..config() };
    (folder, TestGateway::with(config, TenantSettings::default()).await)
}

/// A handshake by a client that trusts this certificate's authority; `None` if it fails.
async fn handshake(tcp: TcpStream, trusted: &TestCert) -> Option<SmtpClient<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.ca_pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.ok().map(SmtpClient::new)
}

async fn tls_client(gateway: &TestGateway, trusted: &TestCert) -> Option<SmtpClient<TlsStream<TcpStream>>> {
    handshake(TcpStream::connect(gateway.tls_address.unwrap()).await.unwrap(), trusted).await
}

#[tokio::test]
async fn starttls_begins_anew_and_hears_nothing_from_before() {
    let certificate = TestCert::localhost();
    let (_folder, gateway) = gateway(&certificate).await;
    let mut plain = gateway.client().await;
    assert!(plain.expect("EHLO me", "250").await.contains("STARTTLS"));
    // Commands after STARTTLS in the same packet are dropped.
    plain.say("STARTTLS\r\nEHLO injected\r\n").await;
    assert!(plain.reply().await.starts_with("220 2.0.0 "));
    let mut client = handshake(plain.stream, &certificate).await.unwrap();
    client.expect("MAIL FROM:<>", "503").await;
    let offered = client.expect("EHLO me.example", "250").await;
    assert!(offered.contains("AUTH PLAIN LOGIN") && !offered.contains("STARTTLS"), "{offered}");
    client.expect(&crate::auth("good"), "235").await;
    let uid = uid_of(&client.send(MAIL).await);
    assert!(gateway.raw(uid).await.contains(" with ESMTPSA id "));
    client.expect("STARTTLS", "503").await;
    client.expect("QUIT", "221").await;
    assert!(client.is_over().await);
}

#[tokio::test]
async fn tls_may_begin_with_the_first_byte() {
    let certificate = TestCert::localhost();
    let (_folder, gateway) = gateway(&certificate).await;
    let mut client = tls_client(&gateway, &certificate).await.unwrap();
    assert!(client.reply().await.starts_with("220 "));
    client.log_in("good").await;
    uid_of(&client.send(MAIL).await);
    // A client that does not speak TLS is disconnected, and no one else notices.
    let mut confused = SmtpClient::new(TcpStream::connect(gateway.tls_address.unwrap()).await.unwrap());
    confused.say("EHLO me\r\n").await;
    confused.end().await;
    uid_of(&client.send(MAIL).await);
}

/// Programs that use TLS whenever it is offered would not trust the certificate.
#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_offered_to_those_who_need_it() {
    let certificate = TestCert::localhost();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &certificate);
    let certificate = Some(opened(folder.path()));
    let proxy_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let own = SmtpConfig { certificate, certificate_is_own: true, ..config() };
    let near = TestGateway::with(own.clone(), TenantSettings::default()).await;
    let offered = near.client().await.expect("EHLO me", "250").await;
    assert!(!offered.contains("STARTTLS") && offered.contains("AUTH PLAIN"), "{offered}");
    let far = TestGateway::with(SmtpConfig { proxy_networks, ..own }, TenantSettings::default()).await;
    let mut client = far.connect().await;
    client.say("PROXY TCP4 192.0.2.7 127.0.0.1 50000 25\r\n").await;
    client.reply().await;
    let offered = client.expect("EHLO me", "250").await;
    assert!(offered.contains("STARTTLS") && !offered.contains("AUTH"), "{offered}");
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_new_sessions() {
    let (old, new) = (TestCert::localhost(), TestCert::localhost());
    let (folder, gateway) = gateway(&old).await;
    let mut before = tls_client(&gateway, &old).await.unwrap();
    write(folder.path(), &new);
    let mut after = None;
    for _ in 0..3_000 {
        after = tls_client(&gateway, &new).await;
        if after.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(after.expect("the new one is shown").reply().await.starts_with("220 "));
    before.reply().await;
    before.log_in("good").await;
    uid_of(&before.send(MAIL).await);
}
