//! Everything at once: `postway doctor` without a subcommand.
//!
//! [`examine`] checks the configuration, the database, the disk and the clock of this machine by itself, and
//! asks a running server about the rest. Nothing is changed, but for what a trial of an account or a mailbox
//! does: it signs in. It never fails: what goes wrong is a [`CheckupFinding`] that says what to do. Each
//! check has ten seconds, checks run side by side, and lists are bounded, and the findings say what was left
//! out. Without a server, only this machine is checked.

mod archives;
mod captured;
mod clock;
mod configuration;
mod database;
mod disk;
mod names;
mod quotas;
mod report;
mod server;
mod tenants;
#[cfg(test)]
mod tests;
mod webhooks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

pub use report::{CheckupArea, CheckupFinding, CheckupState, DoctorCheckup};

use self::server::ReachedServer;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::config::{ConfigErrors, LoadedConfig, ServerConfig};

/// How long one check may take.
const CHECK_MAX: Duration = Duration::from_secs(10);
/// Checks of one kind that run at once.
const TOGETHER: usize = 16;

/// What to check.
pub struct CheckupSubject {
    /// The configuration of this machine; none if the server is on another.
    pub loaded: Option<Result<LoadedConfig, ConfigErrors>>,
    /// The file it was read from, if there is one.
    pub config_file: Option<PathBuf>,
    /// The client of the server, or why it cannot be made.
    pub client: Result<ApiClient, CommandFailure>,
    /// The tenant to check; `None`: all that the key may see.
    pub tenant: Option<String>,
    /// The name server to ask; none: the system's.
    pub dns: Option<SocketAddr>,
}

/// How many areas there are; `ended` is called once for each.
pub const AREAS: u64 = 13;

/// Checks everything. `ended` is called with each area as soon as it is done.
pub async fn examine(subject: &CheckupSubject, ended: &dyn Fn(&CheckupArea)) -> DoctorCheckup {
    let there = async {
        let (findings, reached) = server::check(subject).await;
        let server = done("server", findings, ended);
        let (mut areas, rest) = futures::join!(surroundings(subject, reached.as_ref(), ended), async {
            match &reached {
                Some(reached) => Box::pin(known(reached, ended)).await,
                None => unknown(ended),
            }
        });
        areas.insert(0, server);
        areas.extend(rest);
        areas
    };
    let (here, there) = futures::join!(Box::pin(here(subject, ended)), Box::pin(there));
    DoctorCheckup { areas: [here, there].concat() }
}

fn done(name: &'static str, findings: Vec<CheckupFinding>, ended: &dyn Fn(&CheckupArea)) -> CheckupArea {
    let area = CheckupArea::new(name, findings);
    ended(&area);
    area
}

/// The checks that need no server.
async fn here(subject: &CheckupSubject, ended: &dyn Fn(&CheckupArea)) -> Vec<CheckupArea> {
    let configuration = done("configuration", configuration::check(subject), ended);
    let Some(config) = subject.config() else {
        let skipped = |name| {
            done(
                name,
                vec![CheckupFinding::new(name, CheckupState::Skipped).found(subject.no_config())],
                ended,
            )
        };
        return vec![configuration, skipped("database"), skipped("disk")];
    };
    let database = done("database", database::check(&config.database).await, ended);
    vec![configuration, database, done("disk", disk::check(config), ended)]
}

/// The checks of this machine that use the server's answers.
async fn surroundings(
    subject: &CheckupSubject,
    reached: Option<&ReachedServer>,
    ended: &dyn Fn(&CheckupArea),
) -> Vec<CheckupArea> {
    let (clock, names) = futures::join!(async { done("clock", clock::check(reached).await, ended) }, async {
        done("dns", names::check(subject.dns, reached).await, ended)
    },);
    vec![clock, names]
}

/// The checks that need a running server.
async fn known(reached: &ReachedServer, ended: &dyn Fn(&CheckupArea)) -> Vec<CheckupArea> {
    let nodes = done("nodes", server::nodes(reached), ended);
    let senders = done("senders", tenants::senders(reached), ended);
    let (queue, accounts, mailboxes, webhooks, outbox) = futures::join!(
        async {
            let (queues, quotas, archives) =
                futures::join!(tenants::queues(reached), quotas::check(reached), archives::check(reached));
            done("queue", [queues, quotas, archives].concat(), ended)
        },
        async {
            let mut found = tenants::accounts(reached).await;
            found.extend(tenants::routes(reached).await);
            done("accounts", found, ended)
        },
        async { done("mailboxes", tenants::mailboxes(reached).await, ended) },
        async { done("webhooks", webhooks::check(reached).await, ended) },
        async { done("outbox", tenants::outboxes(reached).await, ended) },
    );
    vec![nodes, senders, queue, accounts, mailboxes, webhooks, outbox]
}

/// The areas that are skipped without a server.
fn unknown(ended: &dyn Fn(&CheckupArea)) -> Vec<CheckupArea> {
    let names = ["nodes", "senders", "queue", "accounts", "mailboxes", "webhooks", "outbox"];
    let skipped = |name| vec![CheckupFinding::new(name, CheckupState::Skipped).found("no server to ask")];
    names.map(|name| done(name, skipped(name), ended)).into()
}

impl CheckupSubject {
    fn config(&self) -> Option<&ServerConfig> {
        self.loaded.as_ref()?.as_ref().ok().map(|loaded| &loaded.config)
    }

    fn no_config(&self) -> &'static str {
        match self.loaded {
            None => "the server is on another machine; run this there",
            Some(_) => "the configuration is wrong",
        }
    }
}

/// An answer within the time that one check has.
async fn within<T>(asked: impl Future<Output = Result<T, CommandFailure>>) -> Result<T, CommandFailure> {
    match timeout(CHECK_MAX, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(anyhow::anyhow!("no answer within {} seconds", CHECK_MAX.as_secs()).into()),
    }
}
