//! Before there is a store, and when the listener stops.

use std::time::Duration;

use postway_domain::TenantSettings;
use postway_intake::smtp::SmtpService;
use tokio::time::timeout;

use crate::{MAIL, PATIENCE, TestGateway, config, uid_of};

#[tokio::test]
async fn who_comes_before_the_store_is_told_to_come_again() {
    let gateway = TestGateway::unopened(config(), TenantSettings::default()).await;
    let mut early = gateway.connect().await;
    let told = early.reply().await;
    assert!(told.starts_with("421 4.3.2 mx.example this server is starting"), "{told}");
    assert!(early.is_over().await);
    let service = SmtpService { door: gateway.door.clone(), gatekeeper: gateway.keys.clone() };
    gateway.service.send_replace(Some(service));
    uid_of(&gateway.sender().await.send(MAIL).await);
}

#[tokio::test]
async fn a_stop_ends_idle_sessions_and_finishes_mails() {
    let gateway = TestGateway::new().await;
    let (mut idle, mut busy) = (gateway.sender().await, gateway.sender().await);
    for line in ["MAIL FROM:<>", "RCPT TO:<ada@example.net>", "DATA"] {
        busy.ask(line).await;
    }
    gateway.stop.cancel();
    let told = idle.reply().await;
    assert!(told.starts_with("421 4.3.2 ") && idle.is_over().await, "{told}");
    uid_of(&busy.ask(&format!("{MAIL}.")).await);
    assert!(busy.reply().await.starts_with("421 4.3.2 "));
    timeout(PATIENCE, gateway.serving).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_mail_for_ever() {
    let mut hurried = config();
    hurried.timeouts.drain = Duration::from_millis(50);
    let gateway = TestGateway::with(hurried, TenantSettings::default()).await;
    let mut client = gateway.sender().await;
    for line in ["MAIL FROM:<>", "RCPT TO:<ada@example.net>", "DATA"] {
        client.ask(line).await;
    }
    gateway.stop.cancel();
    let told = client.reply().await;
    assert!(told.starts_with("421 4.3.2 "), "{told}");
    timeout(PATIENCE, gateway.serving).await.expect("it ends").unwrap();
}
