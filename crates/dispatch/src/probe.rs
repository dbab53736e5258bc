//! Probes an account without sending mail: connect, TLS, sign in.

use std::{future::Future, sync::Arc, time::Duration};

use futures::FutureExt as _;

use postway_domain::{
    Account, Clock, SendFailure,
    failure::{FailureCategory, FailurePhase, FailureSeverity},
    secret::SecretKey,
};
use postway_net::{AddressGuard, TlsClient};
use postway_oauth::OAuthTokens;
use tokio::time::Instant;

use crate::{
    account::config::{AccountTransport, TransportResources},
    transport::{HandshakeMilestones, RelayDialer, SmtpConnection, SmtpDeadlines, SmtpSettings, TcpDialer},
};

/// How long each step may take; a person waits for the answer.
const STEP_MAX: Duration = Duration::from_secs(10);

/// One step of a probe.
#[derive(Clone, Debug)]
pub struct AccountProbeStep {
    /// `connect`, `tls` or `auth`.
    pub name: &'static str,
    /// A sentence about the success, or the failure.
    pub outcome: Result<String, SendFailure>,
    /// How long it took.
    pub took: Duration,
}

/// Probes accounts with the same transports that dispatch uses.
pub struct AccountProber {
    secret_key: Arc<SecretKey>,
    clock: Arc<dyn Clock>,
    guard: Arc<AddressGuard>,
    tokens: OAuthTokens,
    ehlo_name: String,
    tls: TlsClient,
}

impl AccountProber {
    /// A prober with these keys, clock, guard and tokens.
    pub fn new(
        secret_key: Arc<SecretKey>,
        clock: Arc<dyn Clock>,
        guard: Arc<AddressGuard>,
        tokens: OAuthTokens,
        ehlo_name: impl Into<String>,
    ) -> Self {
        Self { secret_key, clock, guard, tokens, ehlo_name: ehlo_name.into(), tls: TlsClient::new() }
    }

    /// Probes an account step by step, up to the first step that fails. Sends no mail and uses none of its
    /// limits.
    pub async fn probe(&self, account: &Account) -> Vec<AccountProbeStep> {
        let dial: Arc<dyn RelayDialer> = Arc::new(TcpDialer);
        let resources = TransportResources {
            secret_key: &self.secret_key,
            clock: &self.clock,
            tokens: &self.tokens,
            guard: &self.guard,
            dial: &dial,
            ehlo_name: &self.ehlo_name,
            deadlines: SmtpDeadlines::uniform(STEP_MAX),
        };
        let started = Instant::now();
        match AccountTransport::new(account, &resources) {
            AccountTransport::Sandbox => {
                let said = "captures mail; there is nothing to connect to".to_owned();
                vec![AccountProbeStep { name: "connect", outcome: Ok(said), took: Duration::ZERO }]
            }
            AccountTransport::Unusable(failure) => {
                vec![AccountProbeStep { name: "connect", outcome: Err(failure), took: started.elapsed() }]
            }
            AccountTransport::Smtp(settings) => {
                probe_relay(&settings, &self.tls, account.settings.username.is_some()).await
            }
            AccountTransport::Ses(client) => {
                let signed_in = || "SES took the key, and sending is not switched off".to_owned();
                probe_api(&client.route(), client.check().map(|checked| checked.map(|()| signed_in()))).await
            }
            AccountTransport::Provider(client) => probe_api(&client.route(), client.check()).await,
        }
    }
}

/// Probes a relay. `names_user` says whether the account has a username, which is useless without a password.
async fn probe_relay(settings: &SmtpSettings, tls: &TlsClient, names_user: bool) -> Vec<AccountProbeStep> {
    let started = Instant::now();
    let mut reached = HandshakeMilestones::default();
    let opened = SmtpConnection::open_watched(settings, tls, &mut reached).await;
    let ended = Instant::now();
    let connected = reached.connected.unwrap_or(ended);
    let greeted = reached.greeted.unwrap_or(ended);
    let remote = format!("{}:{}", settings.host, settings.port);
    let step = |name, outcome, took| AccountProbeStep { name, outcome, took };
    let mut steps = Vec::new();
    let failed_in = opened.as_ref().err().map(|failure| failure.phase);
    if reached.connected.is_some() && failed_in != Some(FailurePhase::Greeting) {
        steps.push(step(
            "connect",
            Ok(format!("connected to {remote}{}", settings.egress)),
            connected - started,
        ));
    }
    match opened {
        Ok(connection) => {
            let secured = match connection.is_tls() {
                true => "the connection is encrypted",
                false => "the connection is not encrypted",
            };
            steps.push(step("tls", Ok(secured.to_owned()), greeted - connected));
            let signed_in = match &settings.credentials {
                Some(_) => Ok("signed in".to_owned()),
                None if names_user => Err(no_password()),
                None => Ok("no sign-in is configured".to_owned()),
            };
            steps.push(step("auth", signed_in, ended - greeted));
            connection.quit().await;
        }
        Err(failure) => match failure.phase {
            FailurePhase::Tls => steps.push(step("tls", Err(failure), ended - connected)),
            // Without a token the relay was not connected to.
            FailurePhase::Auth if reached.connected.is_none() => {
                steps.push(step("auth", Err(failure), ended - started));
            }
            FailurePhase::Auth => {
                steps.push(step("tls", Ok("the relay has greeted".to_owned()), greeted - connected));
                steps.push(step("auth", Err(failure), ended - greeted));
            }
            FailurePhase::Connect
            | FailurePhase::Greeting
            | FailurePhase::Mail
            | FailurePhase::Rcpt
            | FailurePhase::Data
            | FailurePhase::Dot
            | FailurePhase::Request
            | FailurePhase::Compose => steps.push(step("connect", Err(failure), ended - started)),
        },
    }
    steps
}

fn no_password() -> SendFailure {
    let message = "the account has a username and no password, so it never signs in: give it a password, or take \
                   the username away";
    SendFailure::new(
        "password_missing",
        FailureCategory::Configuration,
        FailurePhase::Auth,
        FailureSeverity::Account,
        message,
    )
}

/// Probes an API. One call covers all three steps; its duration is shown with the last.
async fn probe_api(
    remote: &str,
    check: impl Future<Output = Result<String, SendFailure>>,
) -> Vec<AccountProbeStep> {
    let started = Instant::now();
    let checked = check.await;
    let took = started.elapsed();
    let good = |name, said: String| AccountProbeStep { name, outcome: Ok(said), took: Duration::ZERO };
    let connected = || good("connect", format!("connected to {remote}"));
    let secured = || good("tls", "as the endpoint asks".to_owned());
    match checked {
        Ok(signed_in) => {
            vec![connected(), secured(), AccountProbeStep { name: "auth", outcome: Ok(signed_in), took }]
        }
        Err(failure) => match failure.phase {
            FailurePhase::Connect => vec![AccountProbeStep { name: "connect", outcome: Err(failure), took }],
            FailurePhase::Tls => {
                vec![connected(), AccountProbeStep { name: "tls", outcome: Err(failure), took }]
            }
            FailurePhase::Greeting
            | FailurePhase::Auth
            | FailurePhase::Mail
            | FailurePhase::Rcpt
            | FailurePhase::Data
            | FailurePhase::Dot
            | FailurePhase::Request
            | FailurePhase::Compose => {
                vec![connected(), secured(), AccountProbeStep { name: "auth", outcome: Err(failure), took }]
            }
        },
    }
}
