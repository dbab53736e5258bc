//! The SES client, against moto's server and against one that misbehaves on demand.
//!
//! One binary, one file per theme; this file has the shared parts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

#[path = "ses/account.rs"]
mod account;
#[path = "ses/doubt.rs"]
mod doubt;
#[path = "ses/errors.rs"]
mod errors;
#[path = "service/fake.rs"]
mod fake;
#[path = "ses/real.rs"]
mod real;

use std::{sync::Arc, time::Duration};

use postway_dispatch::transport::{
    CallTimeouts, DeliveryEnd, DeliveryResult, GateRefused, MailEnvelope, RecipientReply, SesClient,
    SesCredentials, SesSettings, WireGate,
};
use postway_domain::{Clock, SendFailure, Time};
use postway_net::AddressGuard;

use fake::{Fake, Play};

/// Longer than anything here takes; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline for a misbehaving service when a test waits for it to pass.
const BRIEF: Duration = Duration::from_secs(2);
const REGION: &str = "eu-west-1";
const BODY: &[u8] =
    b"From: \"The Shop\" <shop@example.net>\r\nTo: a@example.org\r\nSubject: hi\r\n\r\nHello\r\n";
const ONE: &[&str] = &["a@example.org"];

impl Play {
    fn taken(id: &str) -> Self {
        Self::Answer(200, "", format!(r#"{{"MessageId":"{id}"}}"#))
    }

    fn error(status: u16, name: &str, message: &str) -> Self {
        Self::Answer(status, "", format!(r#"{{"__type":"{name}","message":"{message}"}}"#))
    }
}

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Time {
        Time::from_millis(1_772_368_245_678)
    }
}

/// A gate that counts its calls, and refuses on demand.
#[derive(Default)]
struct Gate {
    commits: usize,
    accepted: usize,
    refuse: bool,
    /// Refuses once there is a connection.
    refuse_connected: bool,
    /// The service, to see how many connections it had when the mail began.
    watched: Option<Arc<Fake>>,
    connections_at_begin: Option<usize>,
}

#[async_trait::async_trait]
impl WireGate for Gate {
    async fn commit(&mut self, recipients: &[RecipientReply]) -> Result<(), GateRefused> {
        self.commits += 1;
        self.accepted = recipients.iter().filter(|reply| reply.is_accepted()).count();
        if self.refuse { Err(GateRefused) } else { Ok(()) }
    }

    async fn begin_after_wait(&mut self) -> Result<(), GateRefused> {
        self.connections_at_begin = self.watched.as_ref().map(|service| service.connections());
        if self.refuse_connected { Err(GateRefused) } else { Ok(()) }
    }
}

fn settings(endpoint: String) -> SesSettings {
    let credentials = SesCredentials::new("AKIDEXAMPLE", "secret".to_owned().into(), None);
    let timeouts = CallTimeouts { connect: PATIENCE, request: PATIENCE };
    let guard = Arc::new(AddressGuard::with_loopback());
    SesSettings { endpoint: Some(endpoint), timeouts, guard, ..SesSettings::new(REGION, credentials) }
}

/// Settings with brief deadlines, for services that do not answer.
fn hasty(endpoint: String) -> SesSettings {
    SesSettings { timeouts: CallTimeouts { connect: BRIEF, request: BRIEF }, ..settings(endpoint) }
}

fn client(settings: SesSettings) -> SesClient {
    SesClient::new(settings, Arc::new(Fixed)).expect("the settings are usable")
}

fn envelope<'a>(recipients: &'a [&'a str], body: &[u8]) -> MailEnvelope<'a> {
    MailEnvelope {
        sender: "bounces@example.net",
        recipients,
        size: body.len(),
        eight_bit: false,
        smtputf8: false,
        dsn: None,
        trace: None,
    }
}

async fn send_to(client: &SesClient, recipients: &[&str]) -> (DeliveryResult, Gate) {
    let mut gate = Gate::default();
    let delivery = client.deliver(&envelope(recipients, BODY), BODY, &mut gate).await;
    (delivery, gate)
}

async fn send(client: &SesClient) -> DeliveryEnd {
    send_to(client, ONE).await.0.end
}

fn accepted(end: DeliveryEnd) -> Option<String> {
    match end {
        DeliveryEnd::Accepted { provider_message_id, .. } => provider_message_id,
        other => panic!("expected a mail that was taken, got {other:?}"),
    }
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
