//! Trying accounts for the API, with the transports of dispatch.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use postway_api::{AccountProbe, ProbeStep};
use postway_dispatch::probe::{Prober, Step};
use postway_domain::Account;
use postway_net::Guard;

/// What the API asks.
pub struct Probe {
    /// Who tries.
    pub prober: Prober,
    /// What a tenant's own key may name.
    pub guard: Arc<Guard>,
}

#[async_trait]
impl AccountProbe for Probe {
    async fn probe(&self, account: &Account) -> Vec<ProbeStep> {
        self.prober.probe(account).await.into_iter().map(told).collect()
    }

    fn may_name(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']);
        // Names are checked when they are connected to; this one needs no resolver.
        let address = match host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
            true => Ok(IpAddr::from([127, 0, 0, 1])),
            false => host.parse(),
        };
        address.map_or(true, |address| self.guard.allows(address))
    }
}

fn told(Step { name, outcome, took }: Step) -> ProbeStep {
    let ok = outcome.is_ok();
    let detail = outcome.unwrap_or_else(|failure| format!("{} ({})", failure.message, failure.code));
    ProbeStep { step: name, ok, detail, duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
}
