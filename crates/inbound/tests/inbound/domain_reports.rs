//! Reports about domains, from mail to figures: whose they are, how often they count, and whom they are
//! believed of.

use std::sync::Arc;

use postway_domain::{
    Clock, InboundState, Incarnation, TenantSettings, WatchedMailbox,
    domain_report::{DomainReportKind, ReportAuthentication, ReportDay},
    mailbox::{MailboxRole, MailboxSettings, MailboxTls, WatchStart},
};
use postway_inbound::{FolderSource, ImapSource};
use postway_net::AddressGuard;
use postway_store::{
    DomainReportStore, InboundStore,
    record::{DirectoryChange, DomainCheckRecord, DomainReportQuestion},
};
use postway_testkit::{Dovecot, dovecot::PASSWORD};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{TestGateway, key, secret_key, tenant, wait_until};

const ROLES: &[MailboxRole] = &[MailboxRole::DomainReports];

/// A report about a domain, on the day before the test's.
fn report(domain: &str, id: &str) -> String {
    format!(
        "<feedback><report_metadata><org_name>Receiver</org_name><report_id>{id}</report_id><date_range>\
         <begin>1703980800</begin><end>1704067199</end></date_range></report_metadata><policy_published><domain>\
         {domain}</domain><p>none</p></policy_published><record><row><source_ip>192.0.2.7</source_ip><count>4</count>\
         <policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row>\
         </record></feedback>"
    )
}

fn mail(above: &str, from: &str, file: &str) -> String {
    format!(
        "{above}From: <reports@{from}>\r\nSubject: Report domain: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\n\r\nThis is a report.\r\n--b\r\nContent-Type: application/octet-stream\r\n\
         Content-Disposition: attachment; filename=r.bin\r\n\r\n{file}\r\n--b--\r\n"
    )
}

async fn gateway(authserv_id: Option<&str>) -> TestGateway {
    let settings =
        TenantSettings { bounce_domain: Some("bounces.own.example".to_owned()), ..Default::default() };
    let gateway = TestGateway::with(settings, WatchStart::Beginning, ROLES).await;
    let check = DomainCheckRecord {
        tenant: tenant(),
        domain: "example.com".to_owned(),
        findings: "[]".to_owned(),
        checked_at: gateway.clock.now(),
        right_since: None,
    };
    gateway.change(DirectoryChange::PutDomainCheck(check)).await;
    let (mailbox, _) = gateway.store.mailbox(&key()).await.unwrap().unwrap();
    let settings =
        MailboxSettings { authserv_id: authserv_id.map(str::to_owned), ..mailbox.settings.clone() };
    let version = mailbox.version;
    let changed = WatchedMailbox { settings, version: version + 1, ..mailbox };
    gateway.change(DirectoryChange::UpdateMailbox(changed, version)).await;
    gateway
}

/// How many messages are counted for a domain.
async fn counted(gateway: &TestGateway, domain: &str) -> i64 {
    let question = DomainReportQuestion {
        tenant: tenant(),
        domain: domain.to_owned(),
        kind: DomainReportKind::Dmarc,
        since: ReportDay(0),
        limit: 99,
    };
    let sources = gateway.store.domain_report_sources(&question).await.unwrap();
    sources.iter().map(|sum| sum.total).sum()
}

async fn authentications(gateway: &TestGateway) -> Vec<ReportAuthentication> {
    let listed = gateway.store.domain_reports(&tenant(), "example.com", None, 9).await.unwrap();
    let mut found: Vec<_> = listed.iter().map(|view| view.authentication).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_report_counts_once_whatever_mail_repeats_it_and_however_often_it_is_processed() {
    let gateway = gateway(None).await;
    for subject in ["", "X-Copy: 1\r\n"] {
        let raw = mail(subject, "receiver.example", &report("example.com", "1"));
        gateway.mail_server.deliver(raw, gateway.clock.now());
    }
    let mails = gateway.settled(2).await;
    for one in &mails {
        assert_eq!((one.state, one.kind.as_deref()), (InboundState::Routed, Some("domain_report")));
    }
    assert!(mails[0].result.as_ref().unwrap().contains("\"total\":4"));
    gateway.store.replay_inbound(&tenant(), mails[0].uid, gateway.clock.now()).await.unwrap();
    gateway.settled(2).await;
    assert_eq!(counted(&gateway, "example.com").await, 4);
    assert_eq!(authentications(&gateway).await, [ReportAuthentication::Unknown]);
}

/// Nothing is recorded of the first process, whatever it had read.
#[tokio::test]
async fn a_process_that_dies_over_a_report_costs_and_doubles_nothing() {
    let gateway = gateway(None).await;
    let raw = mail("", "receiver.example", &report("example.com", "1"));
    gateway.mail_server.deliver(raw, gateway.clock.now());
    let source: Arc<dyn FolderSource> = Arc::new(gateway.mail_server.clone());
    let stop = CancellationToken::new();
    let monitor = tokio::spawn(gateway.monitor(source).run(stop.clone()));
    wait_until("it is registered", || async { gateway.mails().await.len() == 1 }).await;
    stop.cancel();
    monitor.await.unwrap();
    assert_eq!(gateway.claim(1).await.len(), 1);
    gateway.die().await;
    gateway.settled(1).await;
    assert_eq!(counted(&gateway, "example.com").await, 4);
}

#[tokio::test]
async fn only_reports_about_domains_of_the_tenant_and_of_these_days_are_recorded() {
    let gateway = gateway(None).await;
    let old = report("example.com", "2").replace("1703980800", "1600000000");
    let files = [
        report("news.example.com", "1"),
        report("own.example", "1"),
        report("bank.example", "1"),
        old,
        "<feedback><!DOCTYPE x></feedback>".to_owned(),
        "no report at all".to_owned(),
    ];
    for file in &files {
        gateway.mail_server.deliver(mail("", "receiver.example", file), gateway.clock.now());
    }
    let mails = gateway.settled(files.len()).await;
    let said: Vec<_> = mails.iter().map(|one| (one.state, one.error.clone().unwrap_or_default())).collect();
    assert_eq!((said[0].0, said[1].0), (InboundState::Routed, InboundState::Routed));
    for (index, words) in
        [(2, "bank.example, which is no domain"), (3, "last 31 days"), (4, "malformed"), (5, "no mail that")]
    {
        assert_eq!(said[index].0, InboundState::NoMatch);
        assert!(said[index].1.contains(words), "{}", said[index].1);
    }
    assert_eq!((counted(&gateway, "news.example.com").await, counted(&gateway, "own.example").await), (4, 4));
    assert_eq!((counted(&gateway, "bank.example").await, counted(&gateway, "example.com").await), (0, 0));
}

#[tokio::test]
async fn a_report_is_believed_as_far_as_its_mail_proves_who_sent_it() {
    let gateway = gateway(Some("mx.own.example")).await;
    let by = "Authentication-Results: mx.own.example;";
    for (id, results, expected) in [
        ("1", format!("{by} dmarc=pass header.from=receiver.example\r\n"), 4),
        (
            "2",
            format!(
                "{by} dmarc=fail header.from=receiver.example; spf=pass smtp.mailfrom=a@evil.example\r\n"
            ),
            4,
        ),
        ("3", format!("{by} dmarc=none; dkim=pass header.d=receiver.example\r\n"), 8),
        ("4", format!("{by} dmarc=none; spf=pass smtp.mailfrom=a@evil.example\r\n"), 8),
        // A field that the sender wrote.
        (
            "5",
            "Authentication-Results: mx.evil.example; dmarc=pass header.from=receiver.example\r\n".to_owned(),
            12,
        ),
    ] {
        let raw = mail(&results, "receiver.example", &report("example.com", id));
        gateway.mail_server.deliver(raw, gateway.clock.now());
        gateway.settled(id.parse().unwrap()).await;
        assert_eq!(counted(&gateway, "example.com").await, expected, "{id}");
    }
    use ReportAuthentication::{Failed, Passed, Unknown};
    assert_eq!(authentications(&gateway).await, [Unknown, Passed, Passed, Failed, Failed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_read_from_a_real_imap_server() {
    let server = Dovecot::shared();
    let gateway = gateway(None).await;
    let (mut mailbox, _) = gateway.store.mailbox(&key()).await.unwrap().unwrap();
    let settings = &mut mailbox.settings;
    (settings.host, settings.port, settings.tls) = ("127.0.0.1".to_owned(), server.port(), MailboxTls::None);
    settings.username = "domain-reports".to_owned();
    let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
    mailbox.secret = Some(secret_key().seal(&place, &json!({"password": PASSWORD}).to_string()).unwrap());
    let version = mailbox.version;
    mailbox.version += 1;
    gateway.change(DirectoryChange::UpdateMailbox(mailbox, version)).await;
    server.append("domain-reports", "INBOX", mail("", "r.example", &report("example.com", "9")).as_bytes());
    let guard = Arc::new(AddressGuard::with_loopback());
    let source: Arc<dyn FolderSource> = Arc::new(ImapSource::new(Arc::new(secret_key()), guard));
    let stop = CancellationToken::new();
    let incarnation = Incarnation::new(gateway.clock.now(), &mut rand::rng());
    let monitor = tokio::spawn(gateway.monitor(source.clone()).run(stop.clone()));
    let router = tokio::spawn(gateway.router(source, incarnation).run(stop.clone()));
    wait_until("the report is counted", || async { counted(&gateway, "example.com").await == 4 }).await;
    stop.cancel();
    monitor.await.unwrap();
    router.await.unwrap();
}
