//! Mailboxes against a real Dovecot, and against servers that mean harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

mod change;
mod hostile;
mod login;
mod pace;
mod read;

use std::{sync::Arc, time::Duration};

use postway_inbound::imap::{
    FetchedContent, FetchedMail, ImapConnection, ImapDeadlines, ImapLogin, ImapSession, ImapTlsMode,
    ListedMail,
};
use postway_net::{AddressGuard, TlsClient};
use postway_testkit::dovecot::{Dovecot, PASSWORD};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn connection(port: u16, user: &str, tls: ImapTlsMode) -> ImapConnection {
    ImapConnection {
        host: "localhost".into(),
        port,
        tls,
        login: ImapLogin::Password { username: user.into(), password: PASSWORD.into() },
        extra_roots_pem: None,
        proxy: None,
        guard: Arc::new(AddressGuard::with_loopback()),
    }
}

fn deadlines() -> ImapDeadlines {
    ImapDeadlines::uniform(LONG)
}

/// A session with the shared Dovecot.
async fn open(user: &str) -> ImapSession {
    let connection = connection(Dovecot::shared().port(), user, ImapTlsMode::None);
    ImapSession::open(&connection, &TlsClient::new(), deadlines()).await.unwrap()
}

/// A mail of `octets` octets.
fn mail(number: usize, bytes: usize) -> Vec<u8> {
    let mut mail = format!("From: a@example.org\r\nSubject: {number}\r\n\r\n").into_bytes();
    while mail.len() + 2 < bytes {
        let rest = (bytes - mail.len() - 2).min(70);
        mail.extend(std::iter::repeat_n(b'x', rest));
        mail.extend(b"\r\n");
    }
    mail
}

fn listed(uid: u32) -> ListedMail {
    ListedMail { uid, size: 10, internal_date: None }
}

async fn fetch_all(session: &mut ImapSession, mails: &[ListedMail], bytes_max: usize) -> Vec<FetchedMail> {
    let mut fetch = session.fetch(mails, bytes_max);
    let mut all = Vec::new();
    while let Some(fetched) = fetch.next().await.unwrap() {
        all.push(fetched);
    }
    all.sort_by_key(|fetched| fetched.uid);
    all
}

fn text(content: &FetchedContent) -> &[u8] {
    match content {
        FetchedContent::Mail(raw) => raw,
        other => panic!("{other:?}"),
    }
}
