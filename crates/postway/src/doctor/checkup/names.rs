//! DNS: whether the resolver answers, and whether the domains that mail is sent from are set up.
//!
//! Those domains are the ones with signing keys, and the ones that bounces come back to. A sound domain is
//! one line; of any other domain only the findings that are not sound are listed, as in `postway doctor
//! domain`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::time::timeout;

use super::server::ReachedServer;
use super::{CHECK_MAX, CheckupFinding, CheckupState, TOGETHER, within};
use crate::cli::output::{field, list};
use crate::doctor::{
    DnsLookup, DoctorReport, DomainCheckState, DomainFinding, DomainOptions, ExpectedDkimKey, SystemDns,
    check_domain, check_mx, in_dns,
};

/// A name that every resolver knows; an answer without a record counts as well.
const KNOWN_NAME: &str = "example.com";
/// The most domains that are checked.
const DOMAINS_MAX: usize = 50;

/// Why a domain is checked.
#[derive(Debug, Default, PartialEq, Eq)]
struct DomainInterest {
    /// The keys that sign for it; empty for one that only takes bounces.
    keys: Vec<ExpectedDkimKey>,
}

/// The resolver, then each domain.
pub async fn check(server: Option<SocketAddr>, reached: Option<&ReachedServer>) -> Vec<CheckupFinding> {
    let dns = match server {
        Some(server) => SystemDns::with_server(server),
        None => SystemDns::from_system(),
    };
    let dns = match dns {
        Ok(dns) => dns,
        Err(error) => return vec![unanswered(&error.to_string())],
    };
    match timeout(CHECK_MAX, dns.mx(KNOWN_NAME)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return vec![unanswered(&error.to_string())],
        Err(_) => return vec![unanswered(&format!("no answer within {} seconds", CHECK_MAX.as_secs()))],
    }
    let mut findings = vec![CheckupFinding::new("resolver", CheckupState::Ok).found("answers")];
    let Some(reached) = reached else {
        findings.push(
            CheckupFinding::new("domains", CheckupState::Skipped).found("no server to ask which are used"),
        );
        return findings;
    };
    findings.extend(domains(reached, &dns).await);
    findings
}

fn unanswered(reason: &str) -> CheckupFinding {
    let advice = "relays and webhooks cannot be found without DNS: check /etc/resolv.conf and the way to the name server";
    CheckupFinding::new("resolver", CheckupState::Problem).found(reason).advice(advice)
}

async fn domains(reached: &ReachedServer, dns: &dyn DnsLookup) -> Vec<CheckupFinding> {
    let mut interests: BTreeMap<String, DomainInterest> = BTreeMap::new();
    let mut findings = Vec::new();
    for tenant in &reached.tenants {
        match within(tenant.client.get(&["v1", "dkim"], &[])).await {
            Ok(keys) => gather(&mut interests, &keys, &tenant.settings),
            Err(failure) => {
                let check = reached.name(tenant, "signing keys");
                findings.push(CheckupFinding::new(check, CheckupState::Skipped).found(failure.to_string()));
            }
        }
    }
    if interests.len() > DOMAINS_MAX {
        let found = format!("{} of {} are looked at", DOMAINS_MAX, interests.len());
        let finding = CheckupFinding::new("domains", CheckupState::Skipped).found(found);
        findings.push(finding.advice("look at one of the others with `postway doctor domain`"));
    }
    let looked = stream::iter(interests.iter().take(DOMAINS_MAX)).map(async |(domain, interest)| {
        match timeout(CHECK_MAX, look(domain, interest, dns)).await {
            Ok(report) => judge(report),
            Err(_) => {
                let found = format!("DNS did not answer within {} seconds", CHECK_MAX.as_secs());
                let advice = format!("try again, or look at it alone: `postway doctor domain {domain}`");
                vec![CheckupFinding::new(domain, CheckupState::Warning).found(found).advice(advice)]
            }
        }
    });
    let looked: Vec<Vec<CheckupFinding>> = looked.buffered(TOGETHER).collect().await;
    findings.extend(looked.into_iter().flatten());
    findings
}

/// The domains of a tenant: those that its active keys sign for, and the one that its bounces come back to.
fn gather(interests: &mut BTreeMap<String, DomainInterest>, keys: &Value, settings: &Value) {
    for key in list(keys, "data").iter().filter(|key| key["active"] == true) {
        let expected = ExpectedDkimKey { selector: field(key, "selector"), record: field(key, "dns_record") };
        interests.entry(field(key, "domain")).or_default().keys.push(expected);
    }
    let bounces = field(settings, "bounce_domain");
    if !bounces.is_empty() {
        interests.entry(in_dns(&bounces)).or_default();
    }
}

async fn look(domain: &str, interest: &DomainInterest, dns: &dyn DnsLookup) -> DoctorReport {
    match interest.keys.is_empty() {
        true => check_mx(domain, dns).await,
        false => {
            let options = DomainOptions { keys: interest.keys.clone(), ..DomainOptions::default() };
            check_domain(domain, &options, dns).await
        }
    }
}

fn judge(DoctorReport { domain, findings }: DoctorReport) -> Vec<CheckupFinding> {
    // What need not be there is no news.
    let findings: Vec<DomainFinding> =
        findings.into_iter().filter(|finding| finding.state != DomainCheckState::Absent).collect();
    let sound: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.state == DomainCheckState::Ok)
        .map(|finding| finding.check.as_str())
        .collect();
    if sound.len() == findings.len() {
        return vec![CheckupFinding::new(domain, CheckupState::Ok).found(sound.join(", "))];
    }
    let unsound = findings.into_iter().filter(|finding| finding.state != DomainCheckState::Ok);
    unsound
        .map(|finding| {
            let check = format!("{domain} {}", finding.check);
            CheckupFinding { check, ..finding.into() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn domains_are_those_that_sign_and_those_that_take_bounces() {
        let mut interests = BTreeMap::new();
        let keys = json!({"data": [
            {"domain": "a.example", "selector": "s1", "dns_record": "v=DKIM1; p=x", "active": true},
            {"domain": "b.example", "selector": "s1", "dns_record": "v=DKIM1; p=y", "active": false},
        ]});
        gather(&mut interests, &keys, &json!({"bounce_domain": "bounces.example"}));
        assert_eq!(interests.keys().collect::<Vec<_>>(), ["a.example", "bounces.example"]);
        assert_eq!((interests["a.example"].keys.len(), interests["bounces.example"].keys.len()), (1, 0));
    }

    #[test]
    fn a_sound_domain_is_one_line_and_another_tells_what_is_not() {
        let report = |states: [DomainCheckState; 2]| {
            let checks = ["spf", "mx"].into_iter().zip(states);
            let findings = checks.map(|(check, state)| crate::doctor::DomainFinding {
                check: check.to_owned(),
                state,
                found: None,
                advice: None,
                record: None,
            });
            judge(DoctorReport { domain: "a.example".to_owned(), findings: findings.collect() })
        };
        let sound = report([DomainCheckState::Ok, DomainCheckState::Ok]);
        assert_eq!((sound.len(), sound[0].found.as_deref()), (1, Some("spf, mx")));
        let wrong = report([DomainCheckState::Ok, DomainCheckState::Missing]);
        assert_eq!((wrong[0].check.as_str(), wrong[0].state), ("a.example mx", CheckupState::Problem));
        assert_eq!(report([DomainCheckState::Unknown, DomainCheckState::Ok])[0].state, CheckupState::Warning);
    }
}
