//! Checks of domains: the same code as `postway doctor` for the API, and the loop that repeats checks.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_api::{DnsFinding, DnsRecordView, DomainChecker, DomainProbe, DomainUse};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::membership::ClusterMembership,
    doctor::{DomainFinding, DomainOptions, ExpectedDkimKey, SystemDns, check_domain, check_mx},
};

/// The duty of repeating checks.
const DUTY: &str = "domains";
/// How often checks to repeat are searched for.
const EVERY: Duration = Duration::from_secs(60);
/// How long one check may take with all its questions.
const CHECK_MAX: Duration = Duration::from_secs(20);
/// How many checks ask DNS at the same time; others wait for their turn. Four are those that the API lets in, and
/// one is that of the loop.
const TOGETHER: usize = 5;

/// Asks DNS about domains for the API.
pub struct DnsProbe {
    server: Option<SocketAddr>,
    turns: Semaphore,
}

impl DnsProbe {
    /// Asks this name server, or that of the system.
    pub fn new(server: Option<SocketAddr>) -> Self {
        Self { server, turns: Semaphore::new(TOGETHER) }
    }

    async fn ask(&self, domain: &str, used: &DomainUse) -> Vec<DnsFinding> {
        let dns = match self.server {
            Some(server) => SystemDns::with_server(server),
            None => SystemDns::from_system(),
        };
        let dns = match dns {
            Ok(dns) => dns,
            Err(error) => return vec![unanswered(&error.to_string())],
        };
        let key = |(selector, record): &(String, String)| ExpectedDkimKey {
            selector: selector.clone(),
            record: record.clone(),
        };
        let report = match used.is_sender {
            true => {
                let keys = used.keys.iter().map(key).collect();
                check_domain(domain, &DomainOptions { keys, ..DomainOptions::default() }, &dns).await
            }
            false => check_mx(domain, &dns).await,
        };
        report.findings.into_iter().map(shown).collect()
    }
}

#[async_trait]
impl DomainProbe for DnsProbe {
    async fn check(&self, domain: &str, used: &DomainUse) -> Vec<DnsFinding> {
        let turn = async {
            // Nothing closes it.
            let _turn = self.turns.acquire().await.ok();
            self.ask(domain, used).await
        };
        let seconds = CHECK_MAX.as_secs();
        match timeout(CHECK_MAX, turn).await {
            Ok(findings) => findings,
            Err(_) => vec![unanswered(&format!("DNS did not answer within {seconds} seconds"))],
        }
    }
}

fn unanswered(why: &str) -> DnsFinding {
    DnsFinding {
        check: "dns".to_owned(),
        state: "unknown".to_owned(),
        found: None,
        advice: Some(why.to_owned()),
        record: None,
    }
}

fn shown(DomainFinding { check, state, found, advice, record }: DomainFinding) -> DnsFinding {
    let record = record.map(|record| DnsRecordView {
        name: record.name,
        kind: record.kind.to_owned(),
        value: record.value,
    });
    DnsFinding { check, state: state.as_str().to_owned(), found, advice, record }
}

/// Repeats the checks of domains until `stop` is cancelled, while this node has the duty.
pub async fn keep_checking(
    checker: DomainChecker,
    membership: Arc<ClusterMembership>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let round = async {
            match membership.has_duty(DUTY).await? {
                true => checker.round().await,
                false => Ok(false),
            }
        };
        let is_more = round.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot repeat the checks of domains");
            false
        });
        if !is_more {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }
}
