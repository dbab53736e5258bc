//! Tests a mailbox before it is relied on, step by step.

use std::time::Duration;

use postway_domain::WatchedMailbox;
use postway_net::NetError;

use crate::{
    imap::{ImapDeadlines, ImapFault, ImapTlsMode, MailboxError},
    source::ImapSource,
};

/// How long each step may take.
const STEP_MAX: Duration = Duration::from_secs(10);

/// One step of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxProbeStep {
    /// `settings`, `connect`, `tls`, `login`, `folder` or `mail`.
    pub name: &'static str,
    /// Whether the step succeeded.
    pub ok: bool,
    /// What was seen, or what to do.
    pub message: String,
}

impl MailboxProbeStep {
    fn good(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, ok: true, message: message.into() }
    }

    fn bad(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, ok: false, message: message.into() }
    }
}

/// Tests a mailbox: connects, establishes TLS, signs in, opens the folder, counts its mail. Ends with the
/// first step that fails, and changes nothing.
pub async fn probe(source: &ImapSource, mailbox: &WatchedMailbox) -> Vec<MailboxProbeStep> {
    if mailbox.settings.is_received() {
        let words = format!("mail for {} comes from the reception", mailbox.settings.addresses.join(", "));
        return vec![MailboxProbeStep::good("settings", words)];
    }
    let access = match source.access(mailbox).await {
        Ok(access) => access,
        Err(error) => return vec![MailboxProbeStep::bad("settings", error.message)],
    };
    let connection = access.connection.clone();
    let server = format!("{}:{}", connection.host, connection.port);
    let reached = |through: usize| {
        let via = connection.proxy.as_ref().map(|proxy| format!(" through the {proxy}")).unwrap_or_default();
        let tls = match connection.tls {
            ImapTlsMode::Implicit | ImapTlsMode::Starttls => {
                "the connection is encrypted and the certificate is good"
            }
            ImapTlsMode::None => "the connection is not encrypted, as the mailbox asks",
        };
        let steps = [("connect", format!("connected to {server}{via}")), ("tls", tls.to_owned())];
        steps
            .into_iter()
            .take(through)
            .map(|(name, words)| MailboxProbeStep::good(name, words))
            .collect::<Vec<_>>()
    };
    let opened = access.open(&source.tls, ImapDeadlines::uniform(STEP_MAX)).await;
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => {
            let (through, name) = failed_at(&error);
            let mut steps = reached(through);
            steps.push(MailboxProbeStep::bad(name, error.to_string()));
            return steps;
        }
    };
    let mut steps = reached(2);
    steps.push(MailboxProbeStep::good("login", format!("signed in as {}", mailbox.settings.username)));
    match session.select(&mailbox.settings.folder).await {
        Ok(folder) => {
            let idle = if session.has_idle() {
                "the server reports new mail by itself"
            } else {
                "it is asked for new mail"
            };
            steps.push(MailboxProbeStep::good(
                "folder",
                format!("{} is there; {idle}", mailbox.settings.folder),
            ));
            steps.push(MailboxProbeStep::good(
                "mail",
                format!("{} mails; the next one gets UID {}", folder.exists, folder.uid_next),
            ));
        }
        Err(error) => steps.push(MailboxProbeStep::bad("folder", error.to_string())),
    }
    session.logout().await;
    steps
}

/// How many steps succeeded before an error, and the name of the step that failed.
fn failed_at(error: &MailboxError) -> (usize, &'static str) {
    match &error.fault {
        ImapFault::Net(NetError::Certificate { .. } | NetError::Handshake { .. } | NetError::TlsSetup(_))
        | ImapFault::NoStarttls
        | ImapFault::StarttlsInjected => (1, "tls"),
        ImapFault::LoginRefused(_)
        | ImapFault::LoginUnsupported(_)
        | ImapFault::Unwritable(_)
        | ImapFault::Refused { .. } => (2, "login"),
        _ => (0, "connect"),
    }
}
