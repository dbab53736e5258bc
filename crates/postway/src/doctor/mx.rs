//! MX: whether answers and bounces find their way back to the domain.

use super::{
    dns::{Dns, DnsError},
    report::{Finding, State},
};

/// The most exchangers that are looked at.
const HOSTS_MAX: usize = 20;

pub(super) async fn check(domain: &str, dns: &dyn Dns) -> Vec<Finding> {
    let judged = judge(domain, dns).await;
    judged.unwrap_or_else(|error| vec![Finding::new("mx", State::Unknown).advice(error.to_string())])
}

async fn judge(domain: &str, dns: &dyn Dns) -> Result<Vec<Finding>, DnsError> {
    let mut hosts = dns.mx(domain).await?;
    hosts.sort();
    if hosts.is_empty() {
        return Ok(vec![without_record(domain, dns).await?]);
    }
    if hosts.iter().any(|(_, host)| host.is_empty()) {
        let only = hosts.len() == 1;
        let (state, advice) = match only {
            true => (
                State::Warn,
                "the domain says that it takes no mail: answers and bounces are lost, and some servers refuse what it sends; use a return path of another domain".to_owned(),
            ),
            false => (
                State::Wrong,
                format!("a null MX must be the only one: remove \"{domain}. IN MX 0 .\", or the others"),
            ),
        };
        return Ok(vec![Finding::new("mx", state).found("0 .").advice(advice)]);
    }
    let mut findings = Vec::new();
    for (preference, host) in hosts.iter().take(HOSTS_MAX) {
        findings.push(exchanger(*preference, host, dns).await);
    }
    Ok(findings)
}

async fn without_record(domain: &str, dns: &dyn Dns) -> Result<Finding, DnsError> {
    let add =
        format!("add: {domain}. IN MX 10 mail.{domain}.\n(with the name of the server that takes its mail)");
    let addresses = dns.addresses(domain).await?;
    Ok(match addresses.first() {
        Some(address) => Finding::new("mx", State::Warn)
            .found(&format!("no MX; mail goes to {address}, the address of the domain itself"))
            .advice(add),
        None => Finding::new("mx", State::Missing).advice(add),
    })
}

async fn exchanger(preference: u16, host: &str, dns: &dyn Dns) -> Finding {
    let finding = |state, rest: &str| Finding::new("mx", state).found(&format!("{preference} {host}{rest}"));
    if host.parse::<std::net::IpAddr>().is_ok() {
        return finding(State::Wrong, "").advice("an MX names a host, not an address: give the host's name");
    }
    match dns.addresses(host).await {
        Err(error) => finding(State::Unknown, "").advice(error.to_string()),
        Ok(addresses) => match addresses.first() {
            Some(address) => finding(State::Ok, &format!(" ({address})")),
            None => finding(State::Wrong, "").advice(format!(
                "{host} has no address: add {host}. IN A … with the server's, or remove the MX"
            )),
        },
    }
}
