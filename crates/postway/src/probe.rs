//! Trying accounts and webhooks for the API, with the transports of dispatch and the calls of notify.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use postway_api::{AccountProbe, ProbeStep, WebhookTest};
use postway_dispatch::probe::{Prober, Step};
use postway_domain::{Account, Clock, Subscriber, secret::SecretKey};
use postway_net::{Guard, http::HttpClient};
use postway_notify::call_test;

/// What the API asks.
pub struct Probe {
    /// Who tries.
    pub prober: Prober,
    /// What a tenant's own key may name.
    pub guard: Arc<Guard>,
    /// The way to webhooks.
    pub http: HttpClient,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Opens webhooks' secrets.
    pub secret_key: Arc<SecretKey>,
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

    async fn test_webhook(&self, webhook: &Subscriber) -> WebhookTest {
        let tested = call_test(&self.http, &*self.clock, &self.secret_key, webhook).await;
        WebhookTest {
            ok: tested.is_taken(),
            status: tested.status,
            latency_ms: u64::try_from(tested.latency.as_millis()).unwrap_or(u64::MAX),
            answer: tested.answer,
        }
    }
}

fn told(Step { name, outcome, took }: Step) -> ProbeStep {
    let ok = outcome.is_ok();
    let detail = outcome.unwrap_or_else(|failure| format!("{} ({})", failure.message, failure.code));
    ProbeStep { step: name, ok, detail, duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
}
