//! `/v1/domains/{domain}/reports`: what other servers report about mail in the domain's name and about TLS
//! with its servers.

use axum::{Json, extract::State, http::Uri};
use postway_domain::{
    Time,
    domain_report::{DomainReportKind, ReportDay},
};
use postway_store::record::{DomainReportPlace, DomainReportQuestion, NewDomainReport};

use super::{
    NamedDomain, find,
    report_view::{DmarcSummary, DomainReportList, DomainReportSummary, TlsSummary, day_text},
};
use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    state::SharedState,
};

/// The days of a summary if the caller does not say.
const DAYS_DEFAULT: u32 = 30;
/// The most sums of sources and results in a summary.
const SOURCES_MAX: u32 = 1_000;
/// The most sums of days: each day has at most 13 results of three kinds of mail.
const DAY_SUMS_MAX: u32 = NewDomainReport::KEPT_DAYS * 39;

/// List reports about a domain
///
/// DMARC aggregate reports and TLS reports that came to mailboxes with the role `domain_reports`, the latest
/// first. They are kept for 400 days.
#[utoipa::path(
    get,
    path = "/v1/domains/{domain}/reports",
    operation_id = "listDomainReports",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The latest first", body = DomainReportList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    NamedDomain(domain): NamedDomain,
    uri: Uri,
) -> Result<Json<DomainReportList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    find(&app, &caller.tenant, &domain).await?;
    let before = cursor.as_deref().map(read_place).transpose()?;
    // One more than requested shows whether there is a next page.
    let mut found = app.store.domain_reports(&caller.tenant, &domain, before, limit + 1).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|last| write_place((last.received_at, last.digest)));
    Ok(Json(DomainReportList { data: found.into_iter().map(Into::into).collect(), next_cursor }))
}

/// Sum up the reports about a domain
///
/// Who sends mail in the domain's name, how much of it passes SPF, DKIM and DMARC, day by day, and with which
/// results other servers connect to the domain's own. Each report counts once. Reports whose mail is proven
/// not to be from its sender do not count.
#[utoipa::path(
    get,
    path = "/v1/domains/{domain}/reports/summary",
    operation_id = "summarizeDomainReports",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("days" = Option<u32>, Query, description = "How many days, today included, 1 to 400; 30 when absent"),
    ),
    responses((status = 200, description = "The sums", body = DomainReportSummary))
)]
pub(crate) async fn summary(
    State(app): State<SharedState>,
    caller: Reader,
    NamedDomain(domain): NamedDomain,
    uri: Uri,
) -> Result<Json<DomainReportSummary>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let days = query.parse("days", parse_days).unwrap_or(DAYS_DEFAULT);
    query.finish()?;
    find(&app, &caller.tenant, &domain).await?;
    let since = ReportDay::of(app.clock.now()).before(days - 1);
    let question = |kind, limit| DomainReportQuestion {
        tenant: caller.tenant.clone(),
        domain: domain.clone(),
        kind,
        since,
        limit,
    };
    let (dmarc, tls) = (DomainReportKind::Dmarc, DomainReportKind::Tls);
    let dmarc_days = app.store.domain_report_days(&question(dmarc, DAY_SUMS_MAX)).await?;
    let dmarc_sums = app.store.domain_report_sources(&question(dmarc, SOURCES_MAX)).await?;
    let tls_days = app.store.domain_report_days(&question(tls, DAY_SUMS_MAX)).await?;
    let tls_sums = app.store.domain_report_sources(&question(tls, SOURCES_MAX)).await?;
    Ok(Json(DomainReportSummary {
        domain,
        since: day_text(since),
        dmarc: DmarcSummary::new(&dmarc_days, &dmarc_sums, SOURCES_MAX as usize),
        tls: TlsSummary::new(&tls_days, tls_sums),
    }))
}

fn parse_days(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(days @ 1..=NewDomainReport::KEPT_DAYS) => Ok(days),
        _ => Err(format!("must be a number from 1 to {}", NewDomainReport::KEPT_DAYS)),
    }
}

fn write_place((at, digest): DomainReportPlace) -> String {
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    pagination::write_cursor(&format!("{} {digest}", at.as_millis()))
}

fn read_place(cursor: &str) -> Result<DomainReportPlace, ApiError> {
    let text: String = pagination::read_cursor(cursor)?;
    let place = || {
        let (at, hex) = text.split_once(' ')?;
        let mut digest = [0; 32];
        let pairs = hex.as_bytes().as_chunks::<2>().0;
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (byte, pair) in digest.iter_mut().zip(pairs) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some((Time::from_millis(at.parse().ok()?), digest))
    };
    place().ok_or_else(pagination::not_ours)
}
