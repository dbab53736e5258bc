//! Checks of everything that delivery depends on.
//!
//! [`examine`] checks everything. The other functions check one domain: whether receivers will trust its
//! mail, by SPF, DKIM, DMARC and MX, as they are in DNS now, and whether it announces TLS.
//!
//! [`check_domain`] asks and judges; it changes nothing. Each [`DomainFinding`] says what was found and,
//! where something is to be done, the record to add as a line of a zone file. What DNS did not answer is
//! `unknown`, never `missing`. The checks run side by side, each with a bounded number of bounded questions.

mod checkup;
mod dkim;
mod dmarc;
mod dns;
mod mailbox;
mod mx;
mod report;
mod spf;
mod tls_policy;

#[cfg(test)]
mod tests;

pub use checkup::{AREAS, CheckupState, CheckupSubject, DoctorCheckup, examine};
pub use dns::{DnsLookup, SystemDns};
pub use mailbox::judge as judge_mailbox;
pub use report::{DoctorReport, DomainCheckState, DomainFinding};

use postway_domain::address::domain_to_ascii;

/// What the caller knows about the domain besides its name.
#[derive(Debug, Clone, Default)]
pub struct DomainOptions {
    /// The SPF mechanisms that let our relays send for the domain, such as `include:amazonses.com`.
    pub spf: Vec<String>,
    /// The keys that sign for it.
    pub keys: Vec<ExpectedDkimKey>,
    /// Where DMARC reports should go, if anywhere in particular.
    pub reports_to: Option<String>,
}

/// A DKIM key of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedDkimKey {
    /// Its selector.
    pub selector: String,
    /// The content of the record that should publish it.
    pub record: String,
}

/// Checks everything about the domain. Never fails: what goes wrong is a finding.
pub async fn check_domain(domain: &str, options: &DomainOptions, dns: &dyn DnsLookup) -> DoctorReport {
    let domain = in_dns(domain);
    if !is_domain(&domain) {
        let advice = "give a domain, such as example.com or bücher.example";
        let finding = DomainFinding::new("domain", DomainCheckState::Wrong).found(&domain).advice(advice);
        return DoctorReport { domain, findings: vec![finding] };
    }
    let (spf, dkim, dmarc, mx, tls) = tokio::join!(
        spf::check(&domain, &options.spf, dns),
        dkim::check(&domain, &options.keys, dns),
        dmarc::check(&domain, options.reports_to.as_deref(), dns),
        mx::check(&domain, dns),
        tls_policy::check(&domain, dns),
    );
    DoctorReport { domain, findings: [spf, dkim, dmarc, mx, tls].concat() }
}

/// Checks that mail can reach the domain; for a domain that only receives bounces.
pub async fn check_mx(domain: &str, dns: &dyn DnsLookup) -> DoctorReport {
    let domain = in_dns(domain);
    let findings = mx::check(&domain, dns).await;
    DoctorReport { domain, findings }
}

/// A domain as DNS knows it: in lower case, with A-labels. Anything else is returned unchanged.
pub(crate) fn in_dns(domain: &str) -> String {
    let domain = domain.trim_end_matches('.').to_ascii_lowercase();
    domain_to_ascii(&domain).unwrap_or(domain)
}

/// Advice for a failure because private addresses are not connected to.
fn if_guarded(found: &str) -> Option<&'static str> {
    found.contains("POSTWAY_ALLOW_PRIVATE_TARGETS").then_some(
        "name a public host, or allow this one in the server's configuration and restart; until then its mail waits. The \
         log of the server's start has the address and the line to add",
    )
}

fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(good)
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(is_label)
}

/// The `name=value` pairs of a record of DKIM or DMARC; `None` if it is not such a list.
fn tags(record: &str) -> Option<Vec<(&str, &str)>> {
    let tags = record.split(';').map(str::trim).filter(|tag| !tag.is_empty());
    tags.map(|tag| tag.split_once('=').map(|(name, value)| (name.trim(), value.trim()))).collect()
}

fn tag<'r>(tags: &[(&str, &'r str)], name: &str) -> Option<&'r str> {
    tags.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
}
