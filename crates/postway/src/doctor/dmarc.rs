//! DMARC: whether the domain says what to do with mail that only pretends to come from it (RFC 7489).

use postway_domain::dns::txt_line;

use super::{
    dns::{DnsError, DnsLookup},
    report::{DomainCheckState, DomainFinding},
    tag, tags,
};

/// The most parents that are asked for a policy which a subdomain inherits.
const PARENTS_MAX: usize = 8;

pub(super) async fn check(domain: &str, reports_to: Option<&str>, dns: &dyn DnsLookup) -> Vec<DomainFinding> {
    let reports_to = reports_to.map_or_else(|| format!("dmarc@{domain}"), str::to_owned);
    let record = format!("v=DMARC1; p=none; rua=mailto:{reports_to}");
    let add = txt_line(&format!("_dmarc.{domain}"), &record);
    vec![match find(domain, dns).await {
        Err(error) => DomainFinding::new("dmarc", DomainCheckState::Unknown).advice(error.to_string()),
        Ok(None) => DomainFinding::new("dmarc", DomainCheckState::Missing).advice(format!(
            "add: {add}\n(p=none only asks for reports; go on to p=quarantine once they show no mail of yours failing)"
        ))
        .publish(&format!("_dmarc.{domain}"), &record),
        Ok(Some((owner, records))) => judge(domain, &owner, &records, &reports_to),
    }]
}

/// The records that count, with the domain that has them: its own, or else those of the nearest parent.
async fn find(domain: &str, dns: &dyn DnsLookup) -> Result<Option<(String, Vec<String>)>, DnsError> {
    let parents = std::iter::successors(Some(domain), |name| name.split_once('.').map(|(_, parent)| parent));
    for owner in parents.take_while(|name| name.contains('.')).take(PARENTS_MAX) {
        let mut records = dns.txt(&format!("_dmarc.{owner}")).await?;
        records.retain(|record| record.trim_start().starts_with("v=DMARC1"));
        if !records.is_empty() {
            return Ok(Some((owner.to_owned(), records)));
        }
    }
    Ok(None)
}

fn judge(domain: &str, owner: &str, records: &[String], reports_to: &str) -> DomainFinding {
    let finding = |state| DomainFinding::new("dmarc", state).found(&records.join(" | "));
    let wrong = |why: &str| {
        finding(DomainCheckState::Wrong).advice(format!("{why}: mend the record of _dmarc.{owner}"))
    };
    let [record] = records else {
        return wrong("with more than one record none counts");
    };
    let Some(tags) = tags(record) else {
        return wrong("it is no list of name=value, parted by semicolons");
    };
    let inherited = domain != owner;
    let policy = inherited.then(|| tag(&tags, "sp")).flatten().or_else(|| tag(&tags, "p"));
    let Some(policy) = policy.map(str::to_ascii_lowercase) else {
        return wrong("it has no policy, p=none, p=quarantine or p=reject");
    };
    if !matches!(policy.as_str(), "none" | "quarantine" | "reject") {
        return wrong("its policy is none of none, quarantine and reject");
    }
    let is_alignment = |name| tag(&tags, name).is_none_or(|value| matches!(value, "r" | "s" | "R" | "S"));
    if !is_alignment("adkim") || !is_alignment("aspf") {
        return wrong("adkim and aspf are r (relaxed) or s (strict)");
    }
    let mut notes = Vec::new();
    if policy == "none" {
        notes.push(
            "p=none asks for reports and protects nothing: go on to p=quarantine, then p=reject".to_owned(),
        );
    }
    match tag(&tags, "rua") {
        None => {
            notes.push(format!("nobody is told who sends in its name: append \"; rua=mailto:{reports_to}\""))
        }
        Some(addresses) if !addresses.split(',').all(|uri| uri.trim().starts_with("mailto:")) => {
            return wrong("rua is a list of mailto: addresses");
        }
        Some(_) => {}
    }
    if tag(&tags, "aspf").is_some_and(|value| value.eq_ignore_ascii_case("s")) {
        notes.push("aspf=s: SPF counts only where the return path is of exactly this domain".to_owned());
    }
    match notes.is_empty() {
        true => finding(DomainCheckState::Ok),
        false => finding(DomainCheckState::Warn).advice(notes.join("\n")),
    }
}
