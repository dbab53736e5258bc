//! Trying a mailbox before it is relied on: each step of the way, and where it ends.

use std::time::Duration;

use postway_domain::WatchedMailbox;
use postway_net::NetError;

use crate::{
    imap::{Deadlines, Fault, MailboxError, TlsMode},
    source::ImapSource,
};

/// How long each step of a trial may take.
const STEP_MAX: Duration = Duration::from_secs(10);

/// One step of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `settings`, `connect`, `tls`, `login`, `folder` or `mail`.
    pub name: &'static str,
    /// Whether it worked.
    pub ok: bool,
    /// What was found, or what to do.
    pub message: String,
}

impl Step {
    fn good(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, ok: true, message: message.into() }
    }

    fn bad(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, ok: false, message: message.into() }
    }
}

/// Tries a mailbox: connects, secures, signs in, opens the folder, counts its mail. Ends with the first step that fails;
/// changes nothing.
pub async fn probe(source: &ImapSource, mailbox: &WatchedMailbox) -> Vec<Step> {
    let access = match source.access(mailbox).await {
        Ok(access) => access,
        Err(error) => return vec![Step::bad("settings", error.message)],
    };
    let connection = access.connection.clone();
    let server = format!("{}:{}", connection.host, connection.port);
    let reached = |through: usize| {
        let via = connection.proxy.as_ref().map(|proxy| format!(" through the {proxy}")).unwrap_or_default();
        let tls = match connection.tls {
            TlsMode::Implicit | TlsMode::Starttls => {
                "the connection is encrypted and the certificate is good"
            }
            TlsMode::None => "the connection is not encrypted, as the mailbox asks",
        };
        let steps = [("connect", format!("connected to {server}{via}")), ("tls", tls.to_owned())];
        steps.into_iter().take(through).map(|(name, words)| Step::good(name, words)).collect::<Vec<_>>()
    };
    let opened = access.open(&source.tls, Deadlines::uniform(STEP_MAX)).await;
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => {
            let (through, name) = failed_at(&error);
            let mut steps = reached(through);
            steps.push(Step::bad(name, error.to_string()));
            return steps;
        }
    };
    let mut steps = reached(2);
    steps.push(Step::good("login", format!("signed in as {}", mailbox.settings.username)));
    match session.select(&mailbox.settings.folder).await {
        Ok(folder) => {
            let idle = if session.has_idle() {
                "the server tells of new mail by itself"
            } else {
                "it is asked for new mail"
            };
            steps.push(Step::good("folder", format!("{} is there; {idle}", mailbox.settings.folder)));
            steps.push(Step::good(
                "mail",
                format!("{} mails; the next one gets UID {}", folder.exists, folder.uid_next),
            ));
        }
        Err(error) => steps.push(Step::bad("folder", error.to_string())),
    }
    session.logout().await;
    steps
}

/// How many steps worked before an error of opening, and the name of the one that did not.
fn failed_at(error: &MailboxError) -> (usize, &'static str) {
    match &error.fault {
        Fault::Net(NetError::Certificate { .. } | NetError::Handshake { .. } | NetError::TlsSetup(_))
        | Fault::NoStarttls
        | Fault::StarttlsInjected => (1, "tls"),
        Fault::LoginRefused(_)
        | Fault::LoginUnsupported(_)
        | Fault::Unwritable(_)
        | Fault::Refused { .. } => (2, "login"),
        _ => (0, "connect"),
    }
}
