//! TLS reports: the JSON of RFC 8460.
//!
//! A report has several policies, each about one domain. The policies of a domain become one report, so that
//! a tenant sees its own domains only. Failures that the details do not explain are counted without a cause.

use std::collections::BTreeMap;

use postway_domain::{
    Time,
    domain_report::{DomainReport, DomainReportKind, TlsSessionResult},
};
use serde::{Deserialize, Deserializer};

use super::{COUNT_MAX, DomainReportError, REPORTS_MAX, bounded_line, normal_domain, tally::ReportTally};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsFile {
    organization_name: Option<String>,
    report_id: Option<String>,
    date_range: Option<TlsDates>,
    policies: Vec<TlsPolicyPart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsDates {
    start_datetime: String,
    end_datetime: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsPolicyPart {
    policy: TlsPolicyName,
    #[serde(default)]
    summary: TlsSessionTotals,
    #[serde(default)]
    failure_details: Vec<TlsFailureDetail>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsPolicyName {
    policy_type: Option<String>,
    policy_domain: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsSessionTotals {
    #[serde(default, deserialize_with = "count")]
    total_successful_session_count: i64,
    #[serde(default, deserialize_with = "count")]
    total_failure_session_count: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TlsFailureDetail {
    result_type: Option<String>,
    receiving_mx_hostname: Option<String>,
    #[serde(default, deserialize_with = "count")]
    failed_session_count: i64,
}

/// A number, which some reporters write as text. What cannot be a count is zero.
fn count<'de, D: Deserializer<'de>>(given: D) -> Result<i64, D::Error> {
    let given = serde_json::Value::deserialize(given)?;
    let number = given.as_i64().or_else(|| given.as_str()?.trim().parse().ok());
    Ok(number.unwrap_or(0).clamp(0, COUNT_MAX))
}

/// Whether JSON is such a report, by the one name that every report has.
pub(super) fn looks_so(file: &[u8]) -> bool {
    memchr::memmem::find(file, b"\"policies\"").is_some()
        && memchr::memmem::find(file, b"\"report-id\"").is_some()
}

/// What was read about one domain.
#[derive(Default)]
struct TlsDomainData {
    policy: Option<String>,
    tally: ReportTally,
}

/// Reads a report.
pub(super) fn read(file: &[u8]) -> Result<Vec<DomainReport>, DomainReportError> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let file: TlsFile = serde_json::from_slice(file)
        .map_err(|_| DomainReportError::Json("it is not the JSON that RFC 8460 describes"))?;
    let lacks = DomainReportError::Lacks;
    let filled = |text: Option<String>| text.map(|text| bounded_line(&text)).filter(|text| !text.is_empty());
    let organisation = filled(file.organization_name).ok_or(lacks("organisation"))?;
    let report_id = filled(file.report_id).ok_or(lacks("id"))?;
    let dates = file.date_range.ok_or(lacks("time"))?;
    let began_at = time(&dates.start_datetime).ok_or(lacks("beginning"))?;
    let ended_at = time(&dates.end_datetime).ok_or(lacks("end"))?.max(began_at);
    let mut domains: BTreeMap<String, TlsDomainData> = BTreeMap::new();
    for part in file.policies {
        let Some(domain) = part.policy.policy_domain.as_deref().and_then(normal_domain) else { continue };
        if domains.contains_key(&domain) || domains.len() < REPORTS_MAX {
            domains.entry(domain).or_default().add(part);
        }
    }
    if domains.is_empty() {
        return Err(lacks("domain"));
    }
    let report = |(domain, data): (String, TlsDomainData)| DomainReport {
        kind: DomainReportKind::Tls,
        domain,
        organisation: organisation.clone(),
        report_id: report_id.clone(),
        began_at,
        ended_at,
        policy: data.policy,
        lines: data.tally.into_lines(),
    };
    Ok(domains.into_iter().map(report).collect())
}

impl TlsDomainData {
    fn add(&mut self, part: TlsPolicyPart) {
        let policy = part.policy.policy_type.map(|word| bounded_line(&word.to_ascii_lowercase()));
        self.policy = self.policy.take().or(policy.filter(|word| !word.is_empty()));
        let succeeded = part.summary.total_successful_session_count;
        self.tally.add(String::new(), TlsSessionResult::Success.code(), succeeded);
        let mut explained = 0_i64;
        for detail in part.failure_details {
            let result = TlsSessionResult::from_failure_word(detail.result_type.as_deref().unwrap_or(""));
            let server = detail.receiving_mx_hostname.as_deref().and_then(normal_domain);
            explained = explained.saturating_add(detail.failed_session_count);
            self.tally.add(server.unwrap_or_default(), result.code(), detail.failed_session_count);
        }
        let left = part.summary.total_failure_session_count.saturating_sub(explained);
        self.tally.add(String::new(), TlsSessionResult::Other.code(), left);
    }
}

fn time(text: &str) -> Option<Time> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    Some(Time::from_millis(at.as_millisecond())).filter(|at| at.as_millis() >= 0)
}
