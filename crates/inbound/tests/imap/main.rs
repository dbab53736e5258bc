//! Mailboxes against a real Dovecot, and against servers that mean harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

mod change;
mod hostile;
mod login;
mod pace;
mod read;

use std::{sync::Arc, time::Duration};

use postway_inbound::imap::{Connection, Content, Deadlines, Fetched, Listed, Login, Session, TlsMode};
use postway_net::{Guard, TlsClient};
use postway_testkit::dovecot::{Dovecot, PASSWORD};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn connection(port: u16, user: &str, tls: TlsMode) -> Connection {
    Connection {
        host: "localhost".into(),
        port,
        tls,
        login: Login::Password { username: user.into(), password: PASSWORD.into() },
        extra_roots_pem: None,
        proxy: None,
        guard: Arc::new(Guard::with_loopback()),
    }
}

fn deadlines() -> Deadlines {
    Deadlines::uniform(LONG)
}

/// A session with the shared Dovecot.
async fn open(user: &str) -> Session {
    let connection = connection(Dovecot::shared().port(), user, TlsMode::None);
    Session::open(&connection, &TlsClient::new(), deadlines()).await.unwrap()
}

/// A mail of that many octets.
fn mail(number: usize, bytes: usize) -> Vec<u8> {
    let mut mail = format!("From: a@example.org\r\nSubject: {number}\r\n\r\n").into_bytes();
    while mail.len() + 2 < bytes {
        let rest = (bytes - mail.len() - 2).min(70);
        mail.extend(std::iter::repeat_n(b'x', rest));
        mail.extend(b"\r\n");
    }
    mail
}

fn listed(uid: u32) -> Listed {
    Listed { uid, size: 10, internal_date: None }
}

async fn fetch_all(session: &mut Session, mails: &[Listed], bytes_max: usize) -> Vec<Fetched> {
    let mut fetch = session.fetch(mails, bytes_max);
    let mut all = Vec::new();
    while let Some(fetched) = fetch.next().await.unwrap() {
        all.push(fetched);
    }
    all.sort_by_key(|fetched| fetched.uid);
    all
}

fn text(content: &Content) -> &[u8] {
    match content {
        Content::Mail(raw) => raw,
        other => panic!("{other:?}"),
    }
}
