//! SPF: whether the domain names its senders, in a record that receivers can evaluate (RFC 7208).
//!
//! Read as far as a check needs: the terms are parsed, macros are not expanded, and no sender is evaluated.

use std::net::{Ipv4Addr, Ipv6Addr};

use postway_domain::dns::txt_line;

use super::{
    dns::{DnsError, DnsLookup},
    report::{DomainCheckState, DomainFinding},
};

/// More questions than this make a record an error (RFC 7208, 4.6.4).
const LOOKUPS_MAX: usize = 10;

/// One term, as far as the checks need it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SpfTerm {
    /// `all` with its qualifier.
    All(char),
    /// `include`, whose domain is read as well.
    Include(String),
    /// `redirect`, which counts where there is no `all`.
    Redirect(String),
    /// Something that costs a question: `a`, `mx`, `exists`.
    Asking,
    /// `ptr`, which costs one and should not be used any more.
    Pointer,
    /// Something that costs nothing.
    Free,
}

/// Why the DNS lookups of a record cannot be counted.
enum SpfObstacle {
    Dns(DnsError),
    Record(String),
}

pub(super) async fn check(domain: &str, wanted: &[String], dns: &dyn DnsLookup) -> Vec<DomainFinding> {
    let mut records = match dns.txt(domain).await {
        Ok(records) => records,
        Err(error) => {
            return vec![DomainFinding::new("spf", DomainCheckState::Unknown).advice(error.to_string())];
        }
    };
    records.retain(|record| is_spf(record));
    let [record] = records.as_slice() else {
        return vec![absent_or_several(domain, wanted, &records)];
    };
    let terms = match parse(record) {
        Ok(terms) => terms,
        Err(bad) => {
            let advice =
                format!("{bad:?} is no term of SPF, so the whole record counts for nothing: mend it");
            return vec![DomainFinding::new("spf", DomainCheckState::Wrong).found(record).advice(advice)];
        }
    };
    vec![judge(domain, record, &terms, wanted), count(&terms, dns).await]
}

fn absent_or_several(domain: &str, wanted: &[String], records: &[String]) -> DomainFinding {
    if records.is_empty() {
        let senders = if wanted.is_empty() { "mx".to_owned() } else { wanted.join(" ") };
        let record = format!("v=spf1 {senders} ~all");
        let line = txt_line(domain, &record);
        let finding = DomainFinding::new("spf", DomainCheckState::Missing).advice(format!("add: {line}"));
        return finding.publish(domain, &record);
    }
    let advice = "with more than one record none counts: put their terms into one";
    DomainFinding::new("spf", DomainCheckState::Wrong).found(&records.join(" | ")).advice(advice)
}

fn judge(domain: &str, record: &str, terms: &[SpfTerm], wanted: &[String]) -> DomainFinding {
    let finding = |state| DomainFinding::new("spf", state).found(record);
    let has = |mechanism: &String| {
        let plain = |term: &str| term.trim_start_matches('+').eq_ignore_ascii_case(mechanism);
        record.split(' ').any(plain)
    };
    let absent: Vec<&str> = wanted.iter().filter(|mechanism| !has(mechanism)).map(String::as_str).collect();
    if !absent.is_empty() {
        let rest = record.split_once(' ').map_or("~all", |(_, rest)| rest.trim());
        let record = format!("v=spf1 {} {rest}", absent.join(" "));
        let line = txt_line(domain, &record);
        return finding(DomainCheckState::Wrong)
            .advice(format!("it does not name a way out that is used: replace it by\n{line}"))
            .publish(domain, &record);
    }
    let redirects = terms.iter().any(|term| matches!(term, SpfTerm::Redirect(_)));
    let all = terms
        .iter()
        .find_map(|term| if let SpfTerm::All(qualifier) = term { Some(*qualifier) } else { None });
    match all {
        Some('+') => finding(DomainCheckState::Wrong)
            .advice("+all lets everyone send for the domain: end with ~all or -all"),
        Some('?') => finding(DomainCheckState::Warn)
            .advice("?all says nothing about other senders: end with ~all or -all"),
        None if !redirects => finding(DomainCheckState::Warn)
            .advice("nothing is said about other senders: end with ~all or -all"),
        _ if terms.contains(&SpfTerm::Pointer) => finding(DomainCheckState::Warn)
            .advice("ptr is slow and many receivers ignore it: name the servers by ip4, ip6 or a"),
        _ => finding(DomainCheckState::Ok),
    }
}

async fn count(terms: &[SpfTerm], dns: &dyn DnsLookup) -> DomainFinding {
    let finding = |state| DomainFinding::new("spf lookups", state);
    match lookups(terms, dns).await {
        Ok(lookups) if lookups > LOOKUPS_MAX => finding(DomainCheckState::Wrong).found(&format!("more than {LOOKUPS_MAX}")).advice(
            "receivers stop there and take the record for an error: name servers by ip4 or ip6, or drop an include",
        ),
        Ok(lookups) => finding(DomainCheckState::Ok).found(&format!("{lookups} of {LOOKUPS_MAX}")),
        Err(SpfObstacle::Dns(error)) => finding(DomainCheckState::Unknown).advice(error.to_string()),
        Err(SpfObstacle::Record(why)) => finding(DomainCheckState::Wrong).found(&why).advice("mend or remove what leads to it"),
    }
}

/// How many questions a receiver asks at most; no more are followed than needed to say that they are too
/// many. Every record that is read costs one, so a circle ends as well.
async fn lookups(terms: &[SpfTerm], dns: &dyn DnsLookup) -> Result<usize, SpfObstacle> {
    let mut lookups = 0;
    let mut to_read = Vec::new();
    add_costs(terms, &mut lookups, &mut to_read);
    while let Some(domain) = to_read.pop().filter(|_| lookups <= LOOKUPS_MAX) {
        // A macro depends on the mail.
        if domain.contains('%') {
            continue;
        }
        let mut records = dns.txt(&domain).await.map_err(SpfObstacle::Dns)?;
        records.retain(|record| is_spf(record));
        let [record] = records.as_slice() else {
            return Err(SpfObstacle::Record(format!(
                "{domain}, which is included, has {} SPF records",
                records.len()
            )));
        };
        let parsed = parse(record);
        let terms = parsed.map_err(|bad| {
            SpfObstacle::Record(format!("{domain}, which is included, has the unknown term {bad:?}"))
        })?;
        add_costs(&terms, &mut lookups, &mut to_read);
    }
    Ok(lookups)
}

fn add_costs(terms: &[SpfTerm], lookups: &mut usize, to_read: &mut Vec<String>) {
    let has_all = terms.iter().any(|term| matches!(term, SpfTerm::All(_)));
    for term in terms {
        match term {
            SpfTerm::Include(domain) => to_read.push(domain.clone()),
            SpfTerm::Redirect(domain) if !has_all => to_read.push(domain.clone()),
            SpfTerm::Asking | SpfTerm::Pointer => {}
            SpfTerm::All(_) | SpfTerm::Redirect(_) | SpfTerm::Free => continue,
        }
        *lookups += 1;
    }
}

fn is_spf(record: &str) -> bool {
    let version = record.split(' ').next().unwrap_or_default();
    version.eq_ignore_ascii_case("v=spf1")
}

/// The terms of a record, or its first invalid term.
fn parse(record: &str) -> Result<Vec<SpfTerm>, String> {
    let terms = record.split(' ').skip(1).filter(|term| !term.is_empty());
    terms.map(|term| read_term(term).ok_or_else(|| term.to_owned())).collect()
}

fn read_term(term: &str) -> Option<SpfTerm> {
    if let Some((name, value)) = term.split_once('=').filter(|(name, _)| is_modifier(name)) {
        return match name.to_ascii_lowercase().as_str() {
            "redirect" => is_target(value).then(|| SpfTerm::Redirect(value.to_owned())),
            _ => Some(SpfTerm::Free),
        };
    }
    let qualifier = term.chars().next().filter(|c| matches!(c, '+' | '-' | '~' | '?'));
    let mechanism = &term[qualifier.map_or(0, char::len_utf8)..];
    let name = &mechanism[..mechanism.find([':', '/']).unwrap_or(mechanism.len())];
    let argument = &mechanism[name.len()..];
    let value = argument.strip_prefix(':');
    // A domain, and how many bits of its addresses count; both may be left out.
    let is_host = || match value.map(|value| value.split('/').next().unwrap_or_default()) {
        Some(domain) => is_target(domain),
        None => argument.is_empty() || argument.starts_with('/'),
    };
    match name.to_ascii_lowercase().as_str() {
        "all" => argument.is_empty().then(|| SpfTerm::All(qualifier.unwrap_or('+'))),
        "include" => value.filter(|value| is_target(value)).map(|value| SpfTerm::Include(value.to_owned())),
        "exists" => value.filter(|value| is_target(value)).map(|_| SpfTerm::Asking),
        "a" | "mx" => is_host().then_some(SpfTerm::Asking),
        "ptr" => is_host().then_some(SpfTerm::Pointer),
        "ip4" => value.filter(|value| is_network::<Ipv4Addr>(value, 32)).map(|_| SpfTerm::Free),
        "ip6" => value.filter(|value| is_network::<Ipv6Addr>(value, 128)).map(|_| SpfTerm::Free),
        _ => None,
    }
}

fn is_modifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A domain, or what macros make one of.
fn is_target(domain: &str) -> bool {
    domain.contains('.') && domain.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_network<A: std::str::FromStr>(text: &str, bits_max: u8) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    address.parse::<A>().is_ok()
        && bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_the_rfc_has_them() {
        let read = |record| parse(record).unwrap();
        assert_eq!(read("v=spf1"), []);
        assert_eq!(
            read(
                "v=spf1  +mx a:x.example/24//64 IP4:192.0.2.0/24 ip6:2001:db8::/32 exists:%{i}.x.example -ALL"
            ),
            [
                SpfTerm::Asking,
                SpfTerm::Asking,
                SpfTerm::Free,
                SpfTerm::Free,
                SpfTerm::Asking,
                SpfTerm::All('-')
            ]
        );
        assert_eq!(
            read("v=spf1 ?include:a.example ptr redirect=b.example exp=c.example"),
            [
                SpfTerm::Include("a.example".into()),
                SpfTerm::Pointer,
                SpfTerm::Redirect("b.example".into()),
                SpfTerm::Free
            ]
        );
    }

    #[test]
    fn what_is_no_term_is_named() {
        for bad in [
            "ipv4:192.0.2.1",
            "ip4:192.0.2",
            "ip4:192.0.2.0/33",
            "ip6:x",
            "include",
            "include:",
            "all:x",
            "all.",
            "redirect=",
            "é",
        ] {
            assert_eq!(parse(&format!("v=spf1 mx {bad} -all")), Err(bad.to_owned()));
        }
    }
}
