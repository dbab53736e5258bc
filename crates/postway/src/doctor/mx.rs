//! MX: whether replies and bounces can reach the domain.

use super::{
    dns::{DnsError, DnsLookup},
    report::{DomainCheckState, DomainFinding},
};

/// The most exchangers that are checked.
const HOSTS_MAX: usize = 20;

pub(super) async fn check(domain: &str, dns: &dyn DnsLookup) -> Vec<DomainFinding> {
    let judged = judge(domain, dns).await;
    judged.unwrap_or_else(|error| {
        vec![DomainFinding::new("mx", DomainCheckState::Unknown).advice(error.to_string())]
    })
}

async fn judge(domain: &str, dns: &dyn DnsLookup) -> Result<Vec<DomainFinding>, DnsError> {
    let mut hosts = dns.mx(domain).await?;
    hosts.sort();
    if hosts.is_empty() {
        return Ok(vec![without_record(domain, dns).await?]);
    }
    if hosts.iter().any(|(_, host)| host.is_empty()) {
        let only = hosts.len() == 1;
        let (state, advice) = match only {
            true => (
                DomainCheckState::Warn,
                "the domain says that it takes no mail: answers and bounces are lost, and some servers refuse what it sends; use a return path of another domain".to_owned(),
            ),
            false => (
                DomainCheckState::Wrong,
                format!("a null MX must be the only one: remove \"{domain}. IN MX 0 .\", or the others"),
            ),
        };
        return Ok(vec![DomainFinding::new("mx", state).found("0 .").advice(advice)]);
    }
    let mut findings = Vec::new();
    for (preference, host) in hosts.iter().take(HOSTS_MAX) {
        findings.push(exchanger(*preference, host, dns).await);
    }
    Ok(findings)
}

async fn without_record(domain: &str, dns: &dyn DnsLookup) -> Result<DomainFinding, DnsError> {
    let add =
        format!("add: {domain}. IN MX 10 mail.{domain}.\n(with the name of the server that takes its mail)");
    let addresses = dns.addresses(domain).await?;
    Ok(match addresses.first() {
        Some(address) => DomainFinding::new("mx", DomainCheckState::Warn)
            .found(&format!("no MX; mail goes to {address}, the address of the domain itself"))
            .advice(add),
        None => DomainFinding::new("mx", DomainCheckState::Missing).advice(add),
    })
}

async fn exchanger(preference: u16, host: &str, dns: &dyn DnsLookup) -> DomainFinding {
    let finding =
        |state, rest: &str| DomainFinding::new("mx", state).found(&format!("{preference} {host}{rest}"));
    if host.parse::<std::net::IpAddr>().is_ok() {
        return finding(DomainCheckState::Wrong, "")
            .advice("an MX names a host, not an address: give the host's name");
    }
    match dns.addresses(host).await {
        Err(error) => finding(DomainCheckState::Unknown, "").advice(error.to_string()),
        Ok(addresses) => match addresses.first() {
            Some(address) => finding(DomainCheckState::Ok, &format!(" ({address})")),
            None => finding(DomainCheckState::Wrong, "").advice(format!(
                "{host} has no address: add {host}. IN A … with the server's, or remove the MX"
            )),
        },
    }
}
