//! The doctor against a zone in memory, and once against a name server that speaks DNS over UDP.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use postway_domain::dns::txt_line;
use tokio::net::UdpSocket;

use super::{dns::DnsError, *};

const KEY: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// A zone: what is not in it does not exist, and a name with `fails` in it gets no answer.
#[derive(Default, Clone)]
pub(super) struct TestZone {
    txt: BTreeMap<String, Vec<String>>,
    mx: BTreeMap<String, Vec<(u16, String)>>,
    a: BTreeMap<String, Vec<IpAddr>>,
}

impl TestZone {
    fn txt(mut self, name: &str, value: &str) -> Self {
        self.txt.entry(name.to_owned()).or_default().push(value.to_owned());
        self
    }

    fn mx(mut self, name: &str, preference: u16, host: &str) -> Self {
        self.mx.entry(name.to_owned()).or_default().push((preference, host.to_owned()));
        self
    }

    fn a(mut self, name: &str) -> Self {
        self.a.entry(name.to_owned()).or_default().push(Ipv4Addr::new(192, 0, 2, 1).into());
        self
    }

    /// Everything as it should be.
    fn sound() -> Self {
        Self::default()
            .txt("example.com", "google-site-verification=x")
            .txt("example.com", "v=spf1 include:relay.example ip4:192.0.2.0/24 -all")
            .txt("relay.example", "v=spf1 a mx -all")
            .txt("p1._domainkey.example.com", KEY)
            .txt("_dmarc.example.com", "v=DMARC1; p=reject; rua=mailto:d@example.com; adkim=s; aspf=r")
            .mx("example.com", 10, "mail.example.com")
            .a("mail.example.com")
    }

    /// The zone with another record under a name.
    fn with(mut self, name: &str, value: &str) -> Self {
        self.txt.remove(name);
        self.txt(name, value)
    }
}

fn found<T: Clone>(records: &BTreeMap<String, Vec<T>>, name: &str) -> Result<Vec<T>, DnsError> {
    match name.contains("fails") {
        true => Err(DnsError { name: name.to_owned(), reason: "no answer".to_owned() }),
        false => Ok(records.get(name).cloned().unwrap_or_default()),
    }
}

#[async_trait]
impl DnsLookup for TestZone {
    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError> {
        found(&self.txt, name)
    }

    async fn mx(&self, name: &str) -> Result<Vec<(u16, String)>, DnsError> {
        found(&self.mx, name)
    }

    async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        found(&self.a, name)
    }
}

fn options() -> DomainOptions {
    let key = ExpectedDkimKey { selector: "p1".to_owned(), record: KEY.to_owned() };
    DomainOptions { spf: vec!["include:relay.example".to_owned()], keys: vec![key], reports_to: None }
}

/// Whether all that is needed is in this state.
fn is_all(report: &DoctorReport, state: DomainCheckState) -> bool {
    report.findings.iter().all(|finding| [state, DomainCheckState::Absent].contains(&finding.state))
}

#[tokio::test]
async fn what_announces_tls_is_no_need_and_is_judged_where_it_is() {
    for (name, check, right, wrong) in [
        ("_mta-sts.example.com", "mta-sts", "v=STSv1; id=20260101;", "v=STSv1;"),
        ("_smtp._tls.example.com", "tls-rpt", "v=TLSRPTv1; rua=mailto:t@example.com", "v=TLSRPTv1"),
    ] {
        let absent = finding(&TestZone::sound(), check).await;
        assert_eq!(absent.state, DomainCheckState::Absent);
        assert_eq!(absent.record.unwrap().name, name);
        for (record, state) in [(right, DomainCheckState::Ok), (wrong, DomainCheckState::Warn)] {
            assert_eq!(finding(&TestZone::sound().txt(name, record), check).await.state, state, "{record}");
        }
        let twice = TestZone::sound().txt(name, right).txt(name, right);
        assert_eq!(finding(&twice, check).await.state, DomainCheckState::Warn);
    }
}

#[tokio::test]
async fn what_is_to_be_published_is_told_as_a_form_takes_it() {
    let report = check_domain("example.com", &options(), &TestZone::default()).await;
    let record = |check: &str| {
        let finding = report.findings.iter().find(|one| one.check == check).unwrap();
        finding.record.clone().map(|record| (record.name, record.value))
    };
    let told = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
    assert_eq!(record("spf"), told("example.com", "v=spf1 include:relay.example ~all"));
    assert_eq!(record("dkim p1"), told("p1._domainkey.example.com", KEY));
    assert_eq!(record("dmarc"), told("_dmarc.example.com", "v=DMARC1; p=none; rua=mailto:dmarc@example.com"));
}

/// The only finding of a check.
async fn finding(zone: &TestZone, check: &str) -> DomainFinding {
    let mut report = check_domain("example.com", &options(), zone).await;
    report.findings.retain(|finding| finding.check == check);
    assert_eq!(report.findings.len(), 1, "{report}");
    report.findings.remove(0)
}

async fn assert_record(name: &str, check: &str, cases: &[(&str, DomainCheckState, &str)]) {
    for (record, state, advice) in cases {
        let finding = finding(&TestZone::sound().with(name, record), check).await;
        assert_eq!(finding.state, *state, "{record}: {finding:?}");
        assert!(finding.advice.as_deref().unwrap_or_default().contains(advice), "{record}: {finding:?}");
    }
}

#[tokio::test]
async fn a_sound_domain_has_nothing_to_do() {
    let report = check_domain("Example.COM.", &options(), &TestZone::sound()).await;
    assert!(report.is_sound(), "{report}");
    let needed: Vec<&DomainFinding> =
        report.findings.iter().filter(|finding| finding.state != DomainCheckState::Absent).collect();
    assert_eq!(needed.len(), 5);
    assert!(
        needed.iter().all(|finding| finding.state == DomainCheckState::Ok && finding.advice.is_none()),
        "{report}"
    );
    let text = report.to_string();
    assert!(text.starts_with("example.com\n  ok       spf          v=spf1 include:relay.example"), "{text}");
    assert!(text.contains("\n  ok       spf lookups  3 of 10\n"), "{text}");
    assert!(text.contains("\n  ok       mx           10 mail.example.com (192.0.2.1)\n"), "{text}");
}

#[tokio::test]
async fn a_bare_domain_is_told_every_record_to_add() {
    let report = check_domain("example.com", &options(), &TestZone::default()).await;
    assert!(is_all(&report, DomainCheckState::Missing), "{report}");
    let text = report.to_string();
    for line in [
        r#"add: example.com. IN TXT "v=spf1 include:relay.example ~all""#,
        &format!(r#"add: p1._domainkey.example.com. IN TXT "{KEY}""#),
        r#"add: _dmarc.example.com. IN TXT "v=DMARC1; p=none; rua=mailto:dmarc@example.com""#,
        "add: example.com. IN MX 10 mail.example.com.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["findings"][0]["check"], "spf");
    assert_eq!(json["findings"][0]["state"], "missing");
}

#[tokio::test]
async fn spf_records_that_harm_are_wrong() {
    assert_record(
        "example.com",
        "spf",
        &[
            ("v=spf1 include:relay.example +all", DomainCheckState::Wrong, "everyone"),
            ("v=spf1 include:relay.example all", DomainCheckState::Wrong, "everyone"),
            ("v=spf1 include:relay.example ?all", DomainCheckState::Warn, "~all or -all"),
            ("v=spf1 include:relay.example", DomainCheckState::Warn, "~all or -all"),
            ("v=spf1 include:relay.example redirect=relay.example", DomainCheckState::Ok, ""),
            ("v=spf1 include:relay.example ptr -all", DomainCheckState::Warn, "ptr"),
            ("v=spf1 include:relay.example ipv4:192.0.2.1 -all", DomainCheckState::Wrong, "ipv4:192.0.2.1"),
            ("v=spf1 mx -all", DomainCheckState::Wrong, r#"IN TXT "v=spf1 include:relay.example mx -all""#),
            ("v=spf10 mx -all", DomainCheckState::Missing, "add:"),
        ],
    )
    .await;
    let twice = TestZone::sound().txt("example.com", "v=spf1 -all");
    assert_eq!(finding(&twice, "spf").await.state, DomainCheckState::Wrong);
}

#[tokio::test]
async fn spf_lookups_are_counted_through_includes() {
    let chain = |length: usize| {
        (1..length)
            .fold(TestZone::sound().with("relay.example", "v=spf1 include:r1.example -all"), |zone, n| {
                zone.txt(&format!("r{n}.example"), &format!("v=spf1 include:r{}.example -all", n + 1))
            })
    };
    let ten = chain(9).txt("r9.example", "v=spf1 ip4:192.0.2.1 -all");
    assert_eq!(finding(&ten, "spf lookups").await.found.as_deref(), Some("10 of 10"));
    let eleven = chain(10).txt("r10.example", "v=spf1 -all");
    assert_eq!(finding(&eleven, "spf lookups").await.state, DomainCheckState::Wrong);
    let circle = TestZone::sound().with("relay.example", "v=spf1 include:relay.example -all");
    assert_eq!(finding(&circle, "spf lookups").await.state, DomainCheckState::Wrong);
    let broken = TestZone::sound().with("relay.example", "nothing of the kind");
    assert_eq!(finding(&broken, "spf lookups").await.state, DomainCheckState::Wrong);
    let silent = TestZone::sound().with("relay.example", "v=spf1 include:fails.example -all");
    assert_eq!(finding(&silent, "spf lookups").await.state, DomainCheckState::Unknown);
}

#[tokio::test]
async fn a_published_key_must_be_the_one_that_signs() {
    let spaced = KEY.replace("AYKx", " AYKx");
    assert_record(
        "p1._domainkey.example.com",
        "dkim p1",
        &[
            (&spaced, DomainCheckState::Ok, ""),
            (&KEY.replace("v=DKIM1; ", ""), DomainCheckState::Ok, ""),
            (&format!("{KEY}; t=y"), DomainCheckState::Warn, "t=y"),
            (
                "v=DKIM1; k=ed25519; p=AAAA",
                DomainCheckState::Wrong,
                &txt_line("p1._domainkey.example.com", KEY),
            ),
            ("v=DKIM1; k=ed25519; p=", DomainCheckState::Wrong, "revoked"),
            (&KEY.replace("k=ed25519", "k=rsa"), DomainCheckState::Wrong, "another key"),
            ("v=spf1 -all", DomainCheckState::Wrong, "no DKIM record"),
            ("hello", DomainCheckState::Wrong, "no DKIM record"),
        ],
    )
    .await;
    let twice = TestZone::sound().txt("p1._domainkey.example.com", KEY);
    assert_eq!(finding(&twice, "dkim p1").await.state, DomainCheckState::Wrong);
}

#[tokio::test]
async fn dmarc_records_are_judged() {
    assert_record(
        "_dmarc.example.com",
        "dmarc",
        &[
            ("v=DMARC1; p=none; rua=mailto:d@example.com", DomainCheckState::Warn, "p=quarantine"),
            ("v=DMARC1; p=quarantine", DomainCheckState::Warn, "rua=mailto:dmarc@example.com"),
            ("v=DMARC1; p=reject; rua=mailto:a@b.example, mailto:c@d.example", DomainCheckState::Ok, ""),
            ("v=DMARC1; p=reject; rua=d@example.com", DomainCheckState::Wrong, "mailto:"),
            ("v=DMARC1; rua=mailto:d@example.com", DomainCheckState::Wrong, "no policy"),
            ("v=DMARC1; p=maybe", DomainCheckState::Wrong, "quarantine"),
            ("v=DMARC1; p=reject; adkim=x", DomainCheckState::Wrong, "adkim"),
            ("v=DMARC1; p reject", DomainCheckState::Wrong, "name=value"),
            ("v=DMARC2; p=reject", DomainCheckState::Missing, "add:"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_subdomain_inherits_the_policy_of_its_parent() {
    let zone =
        TestZone::sound().with("_dmarc.example.com", "v=DMARC1; p=reject; sp=none; rua=mailto:d@example.com");
    let report = check_domain("a.b.example.com", &DomainOptions::default(), &zone).await;
    let dmarc = report.findings.iter().find(|finding| finding.check == "dmarc").unwrap();
    assert_eq!(dmarc.state, DomainCheckState::Warn);
    assert!(dmarc.advice.as_deref().unwrap().contains("p=none"));
}

#[tokio::test]
async fn mail_must_find_its_way_back() {
    let mut zone = TestZone::sound();
    zone.mx.clear();
    assert_eq!(finding(&zone, "mx").await.state, DomainCheckState::Missing);
    assert_eq!(finding(&zone.clone().a("example.com"), "mx").await.state, DomainCheckState::Warn);
    assert_eq!(finding(&zone.clone().mx("example.com", 0, ""), "mx").await.state, DomainCheckState::Warn);
    let both = zone.clone().mx("example.com", 0, "").mx("example.com", 10, "mail.example.com");
    assert_eq!(finding(&both, "mx").await.state, DomainCheckState::Wrong);
    for (host, state) in [
        ("gone.example", DomainCheckState::Wrong),
        ("192.0.2.1", DomainCheckState::Wrong),
        ("fails.example", DomainCheckState::Unknown),
    ] {
        assert_eq!(finding(&zone.clone().mx("example.com", 10, host), "mx").await.state, state, "{host}");
    }
}

/// DNS has A-labels, whichever a person gives.
#[tokio::test]
async fn a_domain_outside_ascii_is_asked_for_by_its_a_labels() {
    let zone = TestZone::default()
        .mx("xn--bcher-kva.example", 10, "mail.example.com")
        .a("mail.example.com")
        .txt("xn--bcher-kva.example", "v=spf1 -all");
    for spelling in ["bücher.example", "BÜCHER.example.", "xn--bcher-kva.example"] {
        let bounces = check_mx(spelling, &zone).await;
        assert_eq!(
            (bounces.domain.as_str(), bounces.findings[0].state),
            ("xn--bcher-kva.example", DomainCheckState::Ok)
        );
        let whole = check_domain(spelling, &options(), &zone).await;
        assert_eq!(whole.domain, "xn--bcher-kva.example", "{whole}");
        let state = |check: &str| whole.findings.iter().find(|one| one.check == check).map(|one| one.state);
        assert_eq!(state("mx"), Some(DomainCheckState::Ok), "{whole}");
        assert_ne!(state("spf"), Some(DomainCheckState::Missing), "{whole}");
    }
}

#[tokio::test]
async fn without_an_answer_nothing_is_called_missing() {
    let report = check_domain("fails.example", &options(), &TestZone::sound()).await;
    assert!(report.findings.iter().all(|finding| finding.state == DomainCheckState::Unknown), "{report}");
    assert!(!report.is_sound());
}

#[tokio::test]
async fn what_is_no_domain_is_not_asked_for() {
    for bad in ["", "localhost", "a b.example", "xn--bücher.example", "a..example", "x@example.com"] {
        let report = check_domain(bad, &options(), &TestZone::sound()).await;
        assert_eq!(
            (report.findings.len(), report.findings[0].state),
            (1, DomainCheckState::Wrong),
            "{bad:?}"
        );
    }
}

#[tokio::test]
async fn control_characters_of_a_record_are_not_shown() {
    let zone = TestZone::sound().with("example.com", "v=spf1 \u{1b}[31m -all");
    assert!(!check_domain("example.com", &options(), &zone).await.to_string().contains('\u{1b}'));
}

/// Answers queries over UDP from the zone until the socket's owner goes.
pub(super) async fn serve(socket: Arc<UdpSocket>, zone: TestZone) {
    let mut buffer = [0; 1500];
    loop {
        let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
        socket.send_to(&answer(&buffer[..length], &zone), client).await.unwrap();
    }
}

/// The response to a query with one question (RFC 1035, 4.1).
fn answer(query: &[u8], zone: &TestZone) -> Vec<u8> {
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8(query[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    let name = labels.join(".").to_lowercase();
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    let data: Vec<Vec<u8>> = match kind {
        1 => zone
            .a
            .get(&name)
            .into_iter()
            .flatten()
            .map(|address| match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(_) => panic!("the zone has addresses of one family"),
            })
            .collect(),
        15 => zone
            .mx
            .get(&name)
            .into_iter()
            .flatten()
            .map(|(preference, host)| [&preference.to_be_bytes()[..], &wire_name(host)].concat())
            .collect(),
        16 => zone
            .txt
            .get(&name)
            .into_iter()
            .flatten()
            .map(|text| {
                text.as_bytes()
                    .chunks(255)
                    .flat_map(|part| [&[part.len() as u8][..], part].concat())
                    .collect()
            })
            .collect(),
        _ => Vec::new(),
    };
    let exists = [&zone.txt.contains_key(&name), &zone.mx.contains_key(&name), &zone.a.contains_key(&name)];
    let code = if exists.contains(&&true) { 0 } else { 3 };
    let mut out = query[..2].to_vec();
    // An answer with recursion, and what came of it.
    out.extend([0x81, 0x80 | code, 0, 1, 0, data.len() as u8, 0, 0, 0, 0]);
    out.extend(&query[12..at + 5]);
    for data in data {
        // The name of the question, class IN, a minute to live.
        out.extend([0xc0, 12]);
        out.extend(kind.to_be_bytes());
        out.extend([0, 1, 0, 0, 0, 60]);
        out.extend((data.len() as u16).to_be_bytes());
        out.extend(data);
    }
    out
}

fn wire_name(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let mut out: Vec<u8> =
        labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    out.push(0);
    out
}

#[tokio::test]
async fn a_real_name_server_is_asked() {
    let long = format!("v=DKIM1; k=rsa; p={}", "A".repeat(392));
    let zone = TestZone::sound().with("p1._domainkey.example.com", &long);
    let socket = Arc::new(UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap());
    let dns = SystemDns::with_server(socket.local_addr().unwrap()).unwrap();
    let server = tokio::spawn(serve(socket, zone.clone().mx("null.example", 0, "")));
    let key = ExpectedDkimKey { selector: "p1".to_owned(), record: long };
    let options = DomainOptions { keys: vec![key], ..options() };
    let report = check_domain("example.com", &options, &dns).await;
    assert!(is_all(&report, DomainCheckState::Ok), "{report}");
    assert_eq!(report, check_domain("example.com", &options, &zone).await);
    let bare = check_domain("bare.example", &options, &dns).await;
    assert!(is_all(&bare, DomainCheckState::Missing), "{bare}");
    assert_eq!(dns.mx("null.example").await, Ok(vec![(0, String::new())]));
    server.abort();
}
