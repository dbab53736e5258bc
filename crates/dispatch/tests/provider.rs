//! Providers over HTTP, against a service that answers as each of them does, and misbehaves on demand.
//!
//! One binary, one file per theme; this file has the shared parts. Rules for all providers are tested with
//! each.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

#[path = "provider/answers.rs"]
mod answers;
#[path = "service/fake.rs"]
mod fake;
#[path = "provider/misbehaving.rs"]
mod misbehaving;
#[path = "provider/requests.rs"]
mod requests;
#[path = "provider/tokens.rs"]
mod tokens;

use std::{sync::Arc, time::Duration};

use postway_dispatch::transport::{
    CallTimeouts, DeliveryEnd, DeliveryResult, GateRefused, MailEnvelope, ProviderClient,
    ProviderCredentials, ProviderSettings, RecipientReply, WireGate,
};
use postway_domain::{AccountKind, Clock, MessageUid, SendFailure, Time, provider_account::ProviderAccount};
use postway_net::AddressGuard;
use postway_oauth::TokenSource;

use fake::{Fake, Play};

/// Longer than anything here takes; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The deadline for a misbehaving service when a test waits for it to pass.
const BRIEF: Duration = Duration::from_secs(8);
const KEY: &str = "s3cret-key";
const BODY: &[u8] = b"From: \"The Shop\" <shop@example.net>\r\nTo: a@example.org\r\nSubject: hi\r\n\
    Message-ID: <1@example.net>\r\n\r\nHello\r\n";
const ONE: &[&str] = &["a@example.org"];

/// Every provider.
const KINDS: [AccountKind; 7] = [
    AccountKind::Sendgrid,
    AccountKind::Mailgun,
    AccountKind::Postmark,
    AccountKind::Resend,
    AccountKind::Graph,
    AccountKind::Gmail,
    AccountKind::Http,
];

/// The answer with which each provider accepts a mail.
fn taken(kind: AccountKind) -> Play {
    let (status, headers, body) = match kind {
        AccountKind::Sendgrid => (202, "X-Message-Id: taken-1\r\n", ""),
        AccountKind::Mailgun => (200, "", r#"{"id":"<taken-1>","message":"Queued. Thank you."}"#),
        AccountKind::Postmark => {
            (200, "", r#"{"To":"a@example.org","MessageID":"taken-1","ErrorCode":0,"Message":"OK"}"#)
        }
        AccountKind::Graph => (202, "request-id: taken-1\r\n", ""),
        AccountKind::Gmail => (200, "", r#"{"id":"taken-1","threadId":"t","labelIds":["SENT"]}"#),
        _ => (200, "", r#"{"id":"taken-1"}"#),
    };
    Play::Answer(status, headers, body.to_owned())
}

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Time {
        Time::from_millis(1_772_368_245_678)
    }
}

/// A gate that counts its calls, and refuses on demand.
#[derive(Default)]
struct CountingGate {
    commits: usize,
    begins: usize,
    accepted: usize,
    refuse: bool,
    refuse_connected: bool,
}

#[async_trait::async_trait]
impl WireGate for CountingGate {
    async fn commit(&mut self, recipients: &[RecipientReply]) -> Result<(), GateRefused> {
        self.commits += 1;
        self.accepted = recipients.iter().filter(|reply| reply.is_accepted()).count();
        if self.refuse { Err(GateRefused) } else { Ok(()) }
    }

    async fn begin_after_wait(&mut self) -> Result<(), GateRefused> {
        self.begins += 1;
        if self.refuse_connected { Err(GateRefused) } else { Ok(()) }
    }
}

fn settings(kind: AccountKind, url: String) -> ProviderSettings {
    let key = KEY.to_owned().into();
    let credentials = match kind {
        AccountKind::Graph | AccountKind::Gmail => ProviderCredentials::Token(TokenSource::given(key)),
        _ => ProviderCredentials::Key(key),
    };
    ProviderSettings {
        account: ProviderAccount {
            base_url: Some(url),
            domain: Some("mg.example.net".to_owned()),
            message_stream: Some("news".to_owned()),
        },
        username: Some("shop@example.net".to_owned()),
        timeouts: CallTimeouts { connect: PATIENCE, request: PATIENCE },
        guard: Arc::new(AddressGuard::with_loopback()),
        ..ProviderSettings::new(kind, credentials)
    }
}

/// Settings with brief deadlines, for services that do not answer.
fn hasty(kind: AccountKind, url: String) -> ProviderSettings {
    ProviderSettings { timeouts: CallTimeouts { connect: BRIEF, request: BRIEF }, ..settings(kind, url) }
}

fn client(settings: ProviderSettings) -> ProviderClient {
    ProviderClient::new(settings, Arc::new(Fixed)).expect("the settings are usable")
}

fn uid() -> MessageUid {
    "01930000-0000-7000-8000-000000000001".parse().unwrap()
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

async fn send_mail(
    client: &ProviderClient,
    recipients: &[&str],
    body: &[u8],
) -> (DeliveryResult, CountingGate) {
    let mut gate = CountingGate::default();
    let delivery = client.deliver(&envelope(recipients, body), uid(), body, &mut gate).await;
    (delivery, gate)
}

async fn send(client: &ProviderClient) -> DeliveryResult {
    send_mail(client, ONE, BODY).await.0
}

#[track_caller]
fn accepted(end: DeliveryEnd) -> String {
    match end {
        DeliveryEnd::Accepted { provider_message_id, .. } => provider_message_id.expect("it has an id"),
        other => panic!("expected a mail that was taken, got {other:?}"),
    }
}

#[track_caller]
fn not_sent(end: DeliveryEnd) -> SendFailure {
    match end {
        DeliveryEnd::NotSent(failure) => failure,
        other => panic!("expected a mail that was not sent, got {other:?}"),
    }
}

#[track_caller]
fn in_doubt(end: DeliveryEnd) -> SendFailure {
    match end {
        DeliveryEnd::InDoubt(failure) => failure,
        other => panic!("expected a mail in doubt, got {other:?}"),
    }
}
