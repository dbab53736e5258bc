//! Tests of accounts, webhooks, mailboxes and rules for the API, with the same code that the subsystems use.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use postway_api::{
    AccountProbe, InboundProbe, MailboxStep, ProbeStep, RuleTrial, TriedCondition, WebhookTest,
};
use postway_dispatch::probe::{AccountProbeStep, AccountProber};
use postway_domain::{
    Account, Clock, Subscriber, TenantId, WatchedMailbox, rule::RuleContent, secret::SecretKey,
};
use postway_inbound::ImapSource;
use postway_net::{AddressGuard, how_to_allow, http::HttpClient, literal_address};
use postway_notify::call_test;
use postway_store::{Store, StoreError};

/// Tests accounts and webhooks.
pub struct OutgoingProbe {
    /// Tests accounts.
    pub prober: AccountProber,
    /// Decides which hosts may be connected to.
    pub guard: Arc<AddressGuard>,
    /// Calls webhooks.
    pub http: HttpClient,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Decrypts the secrets of webhooks.
    pub secret_key: Arc<SecretKey>,
}

#[async_trait]
impl AccountProbe for OutgoingProbe {
    async fn probe(&self, account: &Account) -> Vec<ProbeStep> {
        self.prober.probe(account).await.into_iter().map(probe_step).collect()
    }

    fn refusal(&self, host: &str) -> Option<String> {
        let address = literal_address(host).filter(|address| !self.guard.allows(*address))?;
        let allow = how_to_allow(address);
        Some(format!(
            "is not on the public internet, so it is not connected to; if it is to be reached, {allow}"
        ))
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

fn probe_step(AccountProbeStep { name, outcome, took }: AccountProbeStep) -> ProbeStep {
    let ok = outcome.is_ok();
    let detail = outcome.unwrap_or_else(|failure| format!("{} ({})", failure.message, failure.code));
    ProbeStep { step: name, ok, detail, duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
}

/// Tests mailboxes and rules.
pub struct IncomingProbe {
    /// The store, in which contacts are looked up.
    pub store: Arc<dyn Store>,
    /// Opens mailboxes.
    pub source: ImapSource,
}

#[async_trait]
impl InboundProbe for IncomingProbe {
    async fn probe_mailbox(&self, mailbox: &WatchedMailbox) -> Vec<MailboxStep> {
        let steps = postway_inbound::probe(&self.source, mailbox).await;
        steps
            .into_iter()
            .map(|step| MailboxStep { step: step.name, ok: step.ok, detail: step.message })
            .collect()
    }

    fn check_rule(&self, rule: &RuleContent) -> Vec<(String, String)> {
        postway_inbound::check_rule(rule)
    }

    async fn try_rule(
        &self,
        tenant: &TenantId,
        rule: &RuleContent,
        mail: Bytes,
    ) -> Result<RuleTrial, StoreError> {
        let trial = postway_inbound::try_rule(&*self.store, tenant, rule, mail).await?;
        let conditions = trial.conditions.into_iter().map(|(holds, why)| TriedCondition { holds, why });
        Ok(RuleTrial {
            matched: trial.matched,
            conditions: conditions.collect(),
            captures: trial.captures,
            actions: trial.actions,
            reason: trial.reason,
        })
    }
}
