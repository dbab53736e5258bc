//! Limits on the time, memory and connections of one client.

use std::time::Duration;

use postway_domain::TenantSettings;
use postway_intake::smtp::SmtpConfig;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{MAIL, PATIENCE, TestGateway, auth, config, uid_of};

async fn gateway(config: SmtpConfig) -> TestGateway {
    TestGateway::with(config, TenantSettings::default()).await
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let gateway = gateway(SmtpConfig { connections_max: 2, ..config() }).await;
    let (first, _second) = (gateway.sender().await, gateway.sender().await);
    let mut third = gateway.connect().await;
    let told = third.reply().await;
    assert!(told.starts_with("421 4.7.0 mx.example there are too many connections:"), "{told}");
    assert!(third.is_over().await);
    drop(first);
    wait_for_room(&gateway).await;
}

#[tokio::test]
async fn strangers_who_do_not_log_in_make_room_for_others() {
    let gateway = gateway(SmtpConfig { connections_max: 2, ..config() }).await;
    let mut known = gateway.sender().await;
    let mut silent = gateway.client().await;
    let mut newer = gateway.sender().await;
    let told = silent.reply().await;
    assert!(told.starts_with("421 4.7.0 "), "{told}");
    assert!(silent.is_over().await);
    for client in [&mut known, &mut newer] {
        client.expect("NOOP", "250").await;
    }
}

#[tokio::test]
async fn a_client_has_its_own_bound() {
    let gateway = gateway(SmtpConfig { connections_per_client_max: 1, ..config() }).await;
    let first = gateway.client().await;
    let told = gateway.connect().await.reply().await;
    assert!(told.contains("too many connections from your address"), "{told}");
    drop(first);
    wait_for_room(&gateway).await;
}

/// The server notices a closed connection a moment later.
async fn wait_for_room(gateway: &TestGateway) {
    for _ in 0..3_000 {
        if gateway.connect().await.reply().await.starts_with("220") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no room became free");
}

#[tokio::test]
async fn who_says_nothing_is_cut_off() {
    let mut patient = config();
    patient.timeouts.login = Duration::from_millis(50);
    let gateway = gateway(patient).await;
    let mut client = gateway.client().await;
    let told = client.reply().await;
    assert!(told.starts_with("421 4.4.2 "), "{told}");
    assert!(client.is_over().await);
}

#[tokio::test]
async fn an_unfinished_mail_is_not_waited_for_for_ever() {
    let mut patient = config();
    patient.timeouts.mail = Duration::from_millis(50);
    let gateway = gateway(patient).await;
    let mut client = gateway.sender().await;
    client.expect("MAIL FROM:<>", "250").await;
    client.expect("RCPT TO:<ada@example.net>", "250").await;
    client.expect("DATA", "354").await;
    client.say("From: a@example.com\r\n").await;
    let told = client.reply().await;
    assert!(told.starts_with("421 4.4.2 ") && client.is_over().await, "{told}");
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn mail_over_the_common_memory_is_put_off() {
    let gateway = gateway(SmtpConfig { in_flight_bytes_max: 64 * 1024, ..config() }).await;
    let mut one = gateway.sender().await;
    for line in ["MAIL FROM:<>", "RCPT TO:<ada@example.net>", "DATA"] {
        one.ask(line).await;
    }
    one.say(MAIL).await;
    let mut other = gateway.sender().await;
    // The first one's bytes may not have been read yet.
    let mut put_off = String::new();
    for _ in 0..1_000 {
        put_off = other.send(MAIL).await;
        if put_off.starts_with("452") {
            break;
        }
    }
    assert!(put_off.starts_with("452 4.3.1 "), "{put_off}");
    uid_of(&one.ask(".").await);
    uid_of(&other.send(MAIL).await);
}

#[tokio::test]
async fn three_wrong_keys_end_the_session() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.client().await;
    client.expect("EHLO me", "250").await;
    for _ in 0..3 {
        client.expect(&auth("bad"), "535 5.7.8").await;
    }
    assert!(client.is_over().await);
}

#[tokio::test]
async fn who_has_to_wait_with_a_key_is_told_so_and_not_that_it_is_wrong() {
    let gateway = TestGateway::new().await;
    let mut client = gateway.client().await;
    client.expect("EHLO me", "250").await;
    for _ in 0..3 {
        client.expect(&auth("later"), "454 4.7.0 too many wrong keys: wait").await;
    }
    assert!(client.is_over().await);
}

#[tokio::test]
async fn a_smuggler_is_told_and_cut_off() {
    let gateway = TestGateway::new().await;
    let tricks = [
        "\n.\n",
        "\n.\r\n",
        "\r.\r",
        "\r\n.\n",
        "\r\n.\r\r\n",
        "\r.\r\n",
        "\r\n\n.\r\n",
        "\n\n.\n",
        "\n\r\n.\n",
        "\n.\r\r\n",
        "\r\r\n.\r\n",
    ];
    for trick in tricks {
        let mut client = gateway.sender().await;
        for line in ["MAIL FROM:<a@example.com>", "RCPT TO:<ada@example.net>", "DATA"] {
            client.ask(line).await;
        }
        client.say(&format!("{MAIL}x{trick}MAIL FROM:<evil@example.com>\r\nRCPT TO:<ada@example.net>\r\nDATA\r\n{MAIL}.\r\n")).await;
        let told = client.reply().await;
        assert!(told.starts_with("554 5.5.2 bare "), "{trick:?}: {told}");
        assert!(client.is_over().await, "{trick:?}");
    }
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_stops_talking_is_cut_off_too() {
    let mut patient = config();
    patient.timeouts.login = Duration::from_millis(50);
    let gateway = gateway(patient).await;
    let client = gateway.client().await;
    // On a slow machine the end may have arrived with the greeting.
    let mut told = client.unread;
    let (mut reader, mut writer) = client.stream.into_split();
    let talking = tokio::spawn(async move {
        let noise = vec![b'x'; 64 * 1024];
        // The chunk is not allowed, but it is read to its end.
        let mut heard = writer.write_all(b"BDAT 9999999999999\r\n").await;
        while heard.is_ok() {
            heard = writer.write_all(&noise).await;
        }
    });
    let ended = timeout(PATIENCE, reader.read_to_end(&mut told)).await.expect("an end");
    assert!(ended.is_err() || told.starts_with(b"421 4.4.2 "), "{ended:?} {}", told.escape_ascii());
    timeout(PATIENCE, talking).await.expect("it is not listened to any more").unwrap();
}
