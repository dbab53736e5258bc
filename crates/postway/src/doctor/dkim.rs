//! DKIM: whether the keys that sign for the domain are published, each as it is.

use postway_domain::dns::txt_line;

use super::{
    ExpectedDkimKey,
    dns::DnsLookup,
    report::{DomainCheckState, DomainFinding},
    tag, tags,
};

pub(super) async fn check(domain: &str, keys: &[ExpectedDkimKey], dns: &dyn DnsLookup) -> Vec<DomainFinding> {
    if keys.is_empty() {
        let advice =
            "no key is known to sign for this domain: make one, and publish the record that it prints";
        return vec![DomainFinding::new("dkim", DomainCheckState::Missing).advice(advice)];
    }
    let mut findings = Vec::with_capacity(keys.len());
    for key in keys {
        findings.push(check_key(domain, key, dns).await);
    }
    findings
}

async fn check_key(domain: &str, key: &ExpectedDkimKey, dns: &dyn DnsLookup) -> DomainFinding {
    let name = format!("{}._domainkey.{domain}", key.selector);
    let finding = |state| DomainFinding::new(format!("dkim {}", key.selector), state);
    let line = txt_line(&name, &key.record);
    let records = match dns.txt(&name).await {
        Ok(records) => records,
        Err(error) => return finding(DomainCheckState::Unknown).advice(error.to_string()),
    };
    let record = match records.as_slice() {
        [] => {
            return finding(DomainCheckState::Missing)
                .advice(format!("add: {line}"))
                .publish(&name, &key.record);
        }
        [record] => record,
        several => {
            let advice = format!("there must be one record under {name}: remove all but\n{line}");
            let finding = finding(DomainCheckState::Wrong).found(&several.join(" | ")).advice(advice);
            return finding.publish(&name, &key.record);
        }
    };
    let replace = |why: &str| {
        let finding = finding(DomainCheckState::Wrong).found(record);
        finding.advice(format!("{why}: replace it by\n{line}")).publish(&name, &key.record)
    };
    let (Some(found), Some(expected)) = (tags(record), tags(&key.record)) else {
        return replace("it is no DKIM record");
    };
    // The first tag, if it is there at all (RFC 6376, 3.6.1).
    if tag(&found, "v").is_some() && found.first() != Some(&("v", "DKIM1")) {
        return replace("it is no DKIM record");
    }
    let kind = |tags: &[(&str, &str)]| tag(tags, "k").unwrap_or("rsa").to_owned();
    // Pasted keys often have a space where a zone file had two strings.
    let public = |tags: &[(&str, &str)]| tag(tags, "p").map(|key| key.replace(char::is_whitespace, ""));
    match public(&found) {
        None => replace("it has no key"),
        Some(key) if key.is_empty() => replace("it says that the key is revoked"),
        published if published != public(&expected) || kind(&found) != kind(&expected) => {
            replace("it has another key than the one that signs")
        }
        _ if tag(&found, "t").is_some_and(|flags| flags.split(':').any(|flag| flag.trim() == "y")) => {
            let advice = "t=y says that the domain only tests DKIM: remove it once mail verifies";
            finding(DomainCheckState::Warn).found(record).advice(advice)
        }
        _ => finding(DomainCheckState::Ok).found(record),
    }
}
