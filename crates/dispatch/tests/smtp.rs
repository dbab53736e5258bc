//! The SMTP client against a sink that misbehaves on demand.
//!
//! One binary, one file per theme; this file has the shared parts.

#[path = "smtp/converted.rs"]
mod converted;
#[path = "smtp/dialogue.rs"]
mod dialogue;
#[path = "smtp/doubt.rs"]
mod doubt;
#[path = "smtp/egress.rs"]
mod egress;
#[path = "smtp/faults.rs"]
mod faults;
#[path = "smtp/happy.rs"]
mod happy;
#[path = "smtp/lmtp.rs"]
mod lmtp;
#[path = "smtp/recipients.rs"]
mod recipients;
#[path = "smtp/security.rs"]
mod security;
#[path = "smtp/token.rs"]
mod token;

use std::{sync::Arc, time::Duration};

use postway_dispatch::transport::{
    DeliveryEnd, DeliveryResult, GateRefused, MailEnvelope, RecipientReply, RelayCredentials, SmtpConnection,
    SmtpDeadlines, SmtpSettings, WireGate,
};
use postway_domain::{RelayTlsMode, SendFailure};
use postway_net::{AddressGuard, TlsClient};
use postway_testkit::SmtpSink;

/// Longer than anything here takes; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline for a misbehaving peer when a test waits for it to pass.
const BRIEF: Duration = Duration::from_secs(3);
/// The pause between two bytes of a reply that takes longer than [`BRIEF`] in total.
const DRIP: Duration = Duration::from_millis(400);
const BODY: &[u8] = b"Message-ID: <1@example.org>\r\nX-Postway-ID: 7\r\nSubject: hi\r\n\r\nHello\r\n";
const ONE: &[&str] = &["a@example.org"];

/// A gate that counts its calls, and refuses on demand.
#[derive(Default)]
struct Gate {
    commits: usize,
    accepted: usize,
    refuse: bool,
}

#[async_trait::async_trait]
impl WireGate for Gate {
    async fn commit(&mut self, recipients: &[RecipientReply]) -> Result<(), GateRefused> {
        self.commits += 1;
        self.accepted = recipients.iter().filter(|reply| reply.is_accepted()).count();
        if self.refuse { Err(GateRefused) } else { Ok(()) }
    }
}

fn settings(sink: &SmtpSink) -> SmtpSettings {
    let mut settings = SmtpSettings::new("127.0.0.1", sink.port(), RelayTlsMode::None);
    settings.deadlines = SmtpDeadlines::uniform(PATIENCE);
    settings.ehlo_name = "client.example".to_owned();
    settings.guard = Arc::new(AddressGuard::with_loopback());
    settings
}

/// Settings with brief deadlines, for peers that do not answer.
fn hasty(sink: &SmtpSink) -> SmtpSettings {
    SmtpSettings { deadlines: SmtpDeadlines::uniform(BRIEF), ..settings(sink) }
}

fn credentials(password: &str) -> Option<RelayCredentials> {
    Some(RelayCredentials::Password { username: "bob".to_owned(), password: password.into() })
}

async fn open(settings: &SmtpSettings) -> Result<SmtpConnection, SendFailure> {
    SmtpConnection::open(settings, &TlsClient::new()).await
}

async fn connect(sink: &SmtpSink) -> SmtpConnection {
    open(&settings(sink)).await.expect("the sink takes connections")
}

fn envelope<'a>(recipients: &'a [&'a str], body: &[u8]) -> MailEnvelope<'a> {
    MailEnvelope {
        sender: "from@example.net",
        recipients,
        size: body.len(),
        eight_bit: false,
        smtputf8: false,
        dsn: None,
        trace: None,
    }
}

async fn send_to(connection: &mut SmtpConnection, recipients: &[&str], body: &[u8]) -> DeliveryResult {
    connection.deliver(&envelope(recipients, body), body, &mut Gate::default()).await
}

async fn send(connection: &mut SmtpConnection) -> DeliveryEnd {
    send_to(connection, ONE, BODY).await.end
}

fn assert_accepted(end: &DeliveryEnd) {
    assert!(matches!(end, DeliveryEnd::Accepted { .. }), "{end:?}");
}

fn not_sent(end: DeliveryEnd) -> SendFailure {
    match end {
        DeliveryEnd::NotSent(failure) => failure,
        other => panic!("expected a mail that was not sent, got {other:?}"),
    }
}

fn in_doubt(end: DeliveryEnd) -> SendFailure {
    match end {
        DeliveryEnd::InDoubt(failure) => failure,
        other => panic!("expected a mail in doubt, got {other:?}"),
    }
}
