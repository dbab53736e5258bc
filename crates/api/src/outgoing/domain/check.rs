//! The check of a domain's DNS, and what is remembered of it.
//!
//! DNS itself is asked by the binary, through [`DomainProbe`]: it is the same code that `postway doctor`
//! runs. What it finds is stored, so that a page shows at once what was found last, and since when a domain
//! has been right.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{Clock, TenantId, Time};
use postway_intake::{FairBudget, FairShare, signing};
use postway_store::{
    Store, StoreError,
    record::{DirectoryChange, DomainCheckRecord},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How old a check becomes until it is repeated.
const REPEATED_AFTER: Duration = Duration::from_secs(6 * 60 * 60);
/// How many domains one round checks.
const ROUND_DOMAINS: u32 = 4;
/// How many checks that were asked for wait for DNS at once, in all and for one tenant, and how long others wait
/// for their turn: whose name servers are silent must not keep everybody from asking.
const ASKED_MAX: usize = 4;
const ASKED_PER_TENANT_MAX: usize = 2;
const TURN_S_MAX: Duration = Duration::from_secs(20);
/// A domain whose DNS does not answer keeps its time, unless it has not answered for as long.
const UNKNOWN: &str = "unknown";

/// What a domain is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainUse {
    /// The selectors and records of the keys that sign for it.
    pub keys: Vec<(String, String)>,
    /// Whether mail is sent from it. Otherwise it only takes bounces.
    pub is_sender: bool,
}

/// Asks DNS about domains.
#[async_trait]
pub trait DomainProbe: Send + Sync {
    /// Checks a domain, in bounded time. What DNS does not answer is a finding, too.
    async fn check(&self, domain: &str, used: &DomainUse) -> Vec<DnsFinding>;
}

/// One finding about a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DnsFinding {
    /// What was checked: `spf`, `spf lookups`, `dkim` and the selector, `dmarc`, `mx`, `mta-sts`, `tls-rpt`.
    #[schema(example = "spf")]
    pub check: String,
    /// `ok`, `warn`, `absent` (and not needed), `unknown` (no answer), `missing` or `wrong`.
    #[schema(example = "missing")]
    pub state: String,
    /// What DNS has.
    pub found: Option<String>,
    /// What to do, or what to know.
    pub advice: Option<String>,
    /// The record to publish.
    #[serde(default)]
    pub record: Option<DnsRecordView>,
}

/// A DNS record to publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DnsRecord)]
pub struct DnsRecordView {
    /// Its name.
    #[schema(example = "example.com")]
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    #[schema(example = "TXT")]
    pub kind: String,
    /// Its value.
    #[schema(example = "v=spf1 mx ~all")]
    pub value: String,
}

/// The states of findings, from the best to the worst.
pub(crate) const STATES: [&str; 6] = ["ok", "absent", "warn", UNKNOWN, "missing", "wrong"];

/// How bad a state is.
pub(crate) fn rank(state: &str) -> usize {
    STATES.iter().position(|known| *known == state).unwrap_or(STATES.len())
}

/// The worst state of these findings.
pub(crate) fn worst(findings: &[DnsFinding]) -> &'static str {
    let worst = findings.iter().map(|finding| rank(&finding.state)).max().unwrap_or(0);
    STATES.get(worst).copied().unwrap_or("wrong")
}

/// Since when a domain is right: nothing of it missing or wrong. A check without an answer says nothing about
/// it, so what was right stays so.
fn right_since(findings: &[DnsFinding], before: Option<&DomainCheckRecord>, now: Time) -> Option<Time> {
    let earlier = before.and_then(|check| check.right_since);
    match worst(findings) {
        "missing" | "wrong" => None,
        UNKNOWN => earlier,
        _ => earlier.or(Some(now)),
    }
}

/// What a tenant uses a domain for now.
pub(crate) async fn use_of(
    store: &dyn Store,
    tenant: &TenantId,
    domain: &str,
) -> Result<DomainUse, StoreError> {
    let keys = store.dkim_keys(Some(tenant), Some(domain)).await?;
    let active = keys.iter().filter(|key| key.active);
    let keys: Vec<(String, String)> =
        active.map(|key| (key.selector.clone(), signing::dns_record(key))).collect();
    let settings = store.tenant(tenant).await?.map(|tenant| tenant.settings);
    let takes_bounces = settings
        .and_then(|settings| settings.bounce_domain)
        .is_some_and(|bounces| super::normal_domain(&bounces) == domain);
    Ok(DomainUse { is_sender: !keys.is_empty() || !takes_bounces, keys })
}

/// Checks domains when they are asked for, and again from time to time.
#[derive(Clone)]
pub struct DomainChecker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    probe: Arc<dyn DomainProbe>,
    turns: Arc<FairBudget>,
}

impl DomainChecker {
    /// Nothing is checked until it is asked for.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, probe: Arc<dyn DomainProbe>) -> Self {
        Self { store, clock, probe, turns: FairBudget::new(ASKED_MAX, ASKED_PER_TENANT_MAX) }
    }

    /// Waits for a turn to ask DNS for a tenant.
    pub(crate) async fn turn(&self, tenant: &TenantId) -> Option<FairShare> {
        self.turns.wait(tenant, 1, TURN_S_MAX).await
    }

    /// Checks a domain of a tenant now, and remembers what was found.
    pub(crate) async fn check(
        &self,
        tenant: &TenantId,
        domain: &str,
    ) -> Result<DomainCheckRecord, StoreError> {
        let used = use_of(&*self.store, tenant, domain).await?;
        let findings = self.probe.check(domain, &used).await;
        let before = self.store.domain_checks(tenant, DomainCheckRecord::DOMAINS_MAX).await?;
        let before = before.iter().find(|check| check.domain == domain);
        let now = self.clock.now();
        let check = DomainCheckRecord {
            tenant: tenant.clone(),
            domain: domain.to_owned(),
            right_since: right_since(&findings, before, now),
            findings: serde_json::to_string(&findings).unwrap_or_default(),
            checked_at: now,
        };
        self.store.change(DirectoryChange::PutDomainCheck(check.clone()), None).await?;
        Ok(check)
    }

    /// Repeats the checks that are the longest ago, and says whether there may be more to do.
    pub async fn round(&self) -> Result<bool, StoreError> {
        let ago = i64::try_from(REPEATED_AFTER.as_millis()).unwrap_or(i64::MAX);
        let before = Time::from_millis(self.clock.now().as_millis() - ago);
        let stale = self.store.stale_domain_checks(before, ROUND_DOMAINS).await?;
        for check in &stale {
            let known = self.store.tenant(&check.tenant).await?;
            if known.is_none_or(|tenant| tenant.deleted_at.is_some()) {
                let forget = DirectoryChange::DeleteDomainCheck(check.tenant.clone(), check.domain.clone());
                self.store.change(forget, None).await?;
                continue;
            }
            let was_right = check.right_since.is_some();
            let now = self.check(&check.tenant, &check.domain).await?;
            if was_right && now.right_since.is_none() {
                tracing::warn!(
                    domain = check.domain,
                    tenant = %check.tenant,
                    "the DNS of a sending domain is not right any more: see `postway doctor domain`"
                );
            }
        }
        Ok(stale.len() == ROUND_DOMAINS as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(states: &[&str]) -> Vec<DnsFinding> {
        let finding = |state: &&str| DnsFinding {
            check: "spf".to_owned(),
            state: (*state).to_owned(),
            found: None,
            advice: None,
            record: None,
        };
        states.iter().map(finding).collect()
    }

    #[test]
    fn a_domain_is_right_from_the_first_check_that_finds_it_so() {
        let at = Time::from_millis;
        let before = |right_since| DomainCheckRecord {
            tenant: "acme".parse().unwrap(),
            domain: "a.example".to_owned(),
            findings: String::new(),
            checked_at: at(1),
            right_since,
        };
        let since = |states: &[&str], earlier| right_since(&found(states), Some(&before(earlier)), at(9));
        assert_eq!(right_since(&found(&["ok", "absent"]), None, at(9)), Some(at(9)));
        assert_eq!(since(&["ok", "warn"], Some(at(3))), Some(at(3)));
        assert_eq!(since(&["ok", "missing"], Some(at(3))), None);
        assert_eq!(since(&["unknown"], Some(at(3))), Some(at(3)), "no answer is no news");
        assert_eq!(since(&["unknown"], None), None);
    }

    #[test]
    fn the_worst_finding_is_that_of_the_domain() {
        assert_eq!(worst(&found(&["ok", "wrong", "warn"])), "wrong");
        assert_eq!(worst(&found(&["ok", "absent"])), "absent");
        assert_eq!(worst(&found(&["something new"])), "wrong");
    }
}
