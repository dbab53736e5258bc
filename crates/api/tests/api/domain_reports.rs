//! Reports about domains: what they sum up to, page by page, and for whom.

use postway_domain::{
    InboundState, Time,
    domain_report::{
        DmarcDisposition, DmarcResult, DomainReport, DomainReportKind, DomainReportLine,
        ReportAuthentication, TlsSessionResult,
    },
};
use postway_store::record::NewDomainReport;
use serde_json::{Value, json};

use crate::support::Api;

const DAY_MS: i64 = 86_400_000;
/// 2023-11-14, which is the day of the tests' clock.
const TODAY_MS: i64 = 1_699_920_000_000;

fn line(source: &str, result: i64, count: i64) -> DomainReportLine {
    DomainReportLine { source: source.to_owned(), result, count }
}

fn dmarc(dkim: bool, spf: bool, disposition: DmarcDisposition) -> i64 {
    DmarcResult { dkim, spf, disposition }.code()
}

fn report(kind: DomainReportKind, id: &str, days_ago: i64, lines: Vec<DomainReportLine>) -> DomainReport {
    let began = TODAY_MS - days_ago * DAY_MS;
    DomainReport {
        kind,
        domain: "shop.example".to_owned(),
        organisation: "Receiver".to_owned(),
        report_id: id.to_owned(),
        began_at: Time::from_millis(began),
        ended_at: Time::from_millis(began + DAY_MS - 1_000),
        policy: Some("none".to_owned()),
        lines,
    }
}

/// A mail brings these reports.
async fn bring(api: &Api, reports: Vec<(DomainReport, ReportAuthentication)>) {
    let mail = api.arrived("reports", "Subject: x\r\n\r\n").await;
    let at = postway_domain::Clock::now(&*api.clock);
    api.routed(InboundState::Routed, |routed| {
        routed.kind = Some("domain_report");
        routed.domain_reports = reports
            .into_iter()
            .map(|(report, authentication)| NewDomainReport {
                tenant: "default".parse().unwrap(),
                report,
                sender: Some("receiver.example".to_owned()),
                authentication,
                mail,
                at,
            })
            .collect();
    })
    .await;
}

#[tokio::test]
async fn reports_about_a_domain_are_listed_and_summed_up_with_unknown_sources_first() {
    let api = Api::start().await;
    api.mailbox("reports", json!({"roles": ["domain_reports"]})).await;
    api.get("/v1/domains/shop.example/reports").await.refused(404, "not_found");
    api.post("/v1/domains/shop.example/check", json!({})).await.ok(200);
    let summary = api.get("/v1/domains/shop.example/reports/summary").await.ok(200);
    assert_eq!((&summary["dmarc"]["total"], &summary["tls"]["total"]), (&json!(0), &json!(0)));
    use DmarcDisposition::{None, Quarantine, Reject};
    let own =
        [line("192.0.2.1", dmarc(true, true, None), 90), line("192.0.2.1", dmarc(false, false, None), 2)];
    let strangers = [
        line("203.0.113.9", dmarc(false, false, Reject), 5),
        line("203.0.113.8", dmarc(false, false, Quarantine), 7),
    ];
    let tls = vec![
        line("", TlsSessionResult::Success.code(), 40),
        line("mx.shop.example", TlsSessionResult::CertificateExpired.code(), 3),
    ];
    let passed = ReportAuthentication::Passed;
    let (of_dmarc, of_tls) = (DomainReportKind::Dmarc, DomainReportKind::Tls);
    bring(
        &api,
        vec![
            (report(of_dmarc, "1", 0, own.to_vec()), passed),
            (report(of_dmarc, "2", 1, strangers.to_vec()), ReportAuthentication::Unknown),
            (report(of_dmarc, "3", 1, vec![line("192.0.2.99", 3, 1_000)]), ReportAuthentication::Failed),
            (report(of_tls, "4", 0, tls), passed),
        ],
    )
    .await;
    let path = "/v1/domains/shop.example/reports";
    let summary = api.get(&format!("{path}/summary")).await.ok(200);
    assert_eq!((&summary["domain"], &summary["since"]), (&json!("shop.example"), &json!("2023-10-16")));
    let dmarc = &summary["dmarc"];
    let figures =
        ["total", "passed", "failed", "dkim_passed", "spf_passed", "quarantined", "rejected", "unproven"];
    assert_eq!(figures.map(|name| dmarc[name].as_i64().unwrap()), [104, 90, 14, 90, 90, 7, 5, 12]);
    assert_eq!(
        dmarc["days"],
        json!([
            {"day": "2023-11-14", "passed": 90, "failed": 2},
            {"day": "2023-11-13", "passed": 0, "failed": 12},
        ])
    );
    let sources: Vec<Value> = dmarc["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["address"], one["is_known"], one["total"], one["passed"], one["held_back"]]))
        .collect();
    let expected = [
        json!(["203.0.113.8", false, 7, 0, 7]),
        json!(["203.0.113.9", false, 5, 0, 5]),
        json!(["192.0.2.1", true, 92, 90, 0]),
    ];
    assert_eq!(sources, expected);
    assert_eq!((&summary["tls"]["total"], &summary["tls"]["failed"]), (&json!(43), &json!(3)));
    assert_eq!(
        summary["tls"]["failures"],
        json!([{"type": "certificate-expired", "server": "mx.shop.example", "total": 3,
            "first_day": "2023-11-14", "last_day": "2023-11-14"}])
    );
    let today = api.get(&format!("{path}/summary?days=1")).await.ok(200);
    assert_eq!(today["dmarc"]["total"], 92);
    assert_eq!(api.get(&format!("{path}/summary?days=401")).await.wrong_fields(), ["days"]);
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{path}?limit=3{cursor}")).await.ok(200);
        seen.extend(page["data"].as_array().unwrap().iter().map(|one| one["report_id"].clone()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            std::option::Option::None => break,
        }
    }
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, [json!("1"), json!("2"), json!("3"), json!("4")]);
    let listed = api.get(path).await.ok(200);
    let failed = listed["data"].as_array().unwrap().iter().find(|one| one["report_id"] == "3").unwrap();
    assert_eq!((&failed["authentication"], &failed["total"]), (&json!("failed"), &json!(1_000)));
    let domains = api.get("/v1/domains").await.ok(200);
    assert!(domains["data"][0]["reported_at"].is_string());
    for cursor in ["eA", "MSB4", "MSB6eg"] {
        api.get(&format!("{path}?cursor={cursor}")).await.refused(400, "malformed_request");
    }
}
