//! Reports about domains: DMARC aggregate reports and TLS reports in mailboxes with that role.
//!
//! A report belongs to the tenant of the mailbox, and only if it is about a domain that this tenant uses. So
//! nobody can fill the figures of a tenant with domains of others, and a mailbox for all tenants gives its
//! reports to none of them. Who sent the mail is taken from a server that the mailbox trusts: a report that
//! failed is listed and does not count, and one of which nothing is known is marked.

use bytes::Bytes;
use postway_domain::{
    TenantId, Time,
    address::domain_to_ascii,
    domain_report::{DomainReport, ReportAuthentication, ReportDay, is_about},
    mailbox::MailboxSettings,
};
use postway_mime::domain_report::{self, FoundReports};
use postway_store::record::{DomainCheckRecord, MailToProcess, NewDomainReport};
use serde_json::json;

use super::{
    conclusion::{MailProgress, ProcessFailure},
    context::{MailboxContext, ProcessContext},
};
use crate::mail::{ParsedMail, TrustedAuthentication, bounded};

/// The word for such mail.
const KIND: &str = "domain_report";
/// The longest domain in a list, in characters.
const DOMAIN_CHARS_MAX: usize = 253;

/// What a mail is to this role.
pub(super) enum DomainReportMail {
    /// It brings no report.
    Other,
    /// Its reports are recorded.
    Recorded,
    /// It brings a report that is not recorded, for this reason.
    Refused(String),
}

/// Records the reports that a mail brings.
pub(super) async fn record(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
    raw: &Bytes,
    progress: &mut MailProgress,
) -> Result<DomainReportMail, ProcessFailure> {
    let FoundReports { reports, fault } = domain_report::find(raw);
    if reports.is_empty() {
        return Ok(
            fault.map_or(DomainReportMail::Other, |fault| DomainReportMail::Refused(fault.to_string()))
        );
    }
    progress.kind = Some(KIND);
    let tenant = &mailbox_context.mailbox.tenant;
    let used = domains_in_use(context, tenant).await?;
    let mail = ParsedMail::new(raw);
    let (sender, now) = (author_domain(&mail), context.clock.now());
    let authentication = authentication(&mail, &mailbox_context.mailbox.settings, sender.as_deref());
    let mut refused = None;
    for report in reports {
        match why_refused(&report, &used, now) {
            Some(why) => refused = refused.or(Some(why)),
            None => progress.domain_reports.push(NewDomainReport {
                tenant: tenant.clone(),
                report,
                sender: sender.clone(),
                authentication,
                mail: job.uid,
                at: now,
            }),
        }
    }
    if let Some(why) = refused
        && progress.domain_reports.is_empty()
    {
        return Ok(DomainReportMail::Refused(why));
    }
    let recorded = progress.domain_reports.iter().map(|new| {
        let DomainReport { kind, domain, organisation, .. } = &new.report;
        json!({
            "kind": kind.as_str(), "domain": domain, "organisation": organisation, "total": new.report.total(),
            "failed": new.report.failed(),
        })
    });
    progress.result.insert("domain_reports".to_owned(), recorded.collect());
    progress.result.insert("authentication".to_owned(), json!(authentication.as_str()));
    progress.has_effect = true;
    Ok(DomainReportMail::Recorded)
}

/// The domains of a tenant: those that it signs for, that takes its bounces, and that it had checked.
async fn domains_in_use(context: &ProcessContext, tenant: &TenantId) -> Result<Vec<String>, ProcessFailure> {
    let store = &*context.store;
    let mut used: Vec<String> =
        store.dkim_keys(Some(tenant), None).await?.into_iter().map(|key| key.domain).collect();
    let settings = store.tenant(tenant).await?.map(|tenant| tenant.settings);
    used.extend(settings.and_then(|settings| settings.bounce_domain));
    let checks = store.domain_checks(tenant, DomainCheckRecord::DOMAINS_MAX).await?;
    used.extend(checks.into_iter().map(|check| check.domain));
    Ok(used.iter().map(|domain| normal(domain)).collect())
}

fn normal(domain: &str) -> String {
    let domain = domain.trim().trim_end_matches('.').to_lowercase();
    domain_to_ascii(&domain).unwrap_or(domain)
}

/// Why a report is not recorded.
fn why_refused(report: &DomainReport, used: &[String], now: Time) -> Option<String> {
    let domain = bounded(&report.domain, DOMAIN_CHARS_MAX);
    if !used.iter().any(|one| is_about(&report.domain, one)) {
        return Some(format!(
            "the report is about {domain}, which is no domain of this tenant; check it with \
             POST /v1/domains/{domain}/check if it is"
        ));
    }
    let (day, today) = (ReportDay::of(report.began_at), ReportDay::of(now));
    if day < today.before(NewDomainReport::LATE_DAYS_MAX) || day.0 > today.0 + 1 {
        let most = NewDomainReport::LATE_DAYS_MAX;
        return Some(format!("the report about {domain} is not about one of the last {most} days"));
    }
    None
}

/// The domain of the author, if there is exactly one, and it is one.
fn author_domain(mail: &ParsedMail<'_>) -> Option<String> {
    let people = mail.people("From");
    let [author] = &people[..] else { return None };
    let domain = normal(author.address.rsplit_once('@')?.1);
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (domain.len() <= DOMAIN_CHARS_MAX && !domain.is_empty() && domain.bytes().all(good)).then_some(domain)
}

/// Whether the mail is from whom it names, as a trusted server says.
fn authentication(
    mail: &ParsedMail<'_>,
    settings: &MailboxSettings,
    sender: Option<&str>,
) -> ReportAuthentication {
    let found = match &settings.authserv_id {
        _ if settings.is_received() => TrustedAuthentication::read_topmost(mail),
        Some(by) => TrustedAuthentication::read(mail, by),
        None => None,
    };
    let Some(found) = found else { return ReportAuthentication::Unknown };
    let Some(sender) = sender else { return ReportAuthentication::Failed };
    let of_sender =
        |domain: &Option<String>| domain.as_deref().is_some_and(|domain| is_about(domain, sender));
    match found.dmarc.as_ref().map(|dmarc| (dmarc.result.as_str(), of_sender(&dmarc.domain))) {
        Some(("pass", true)) => return ReportAuthentication::Passed,
        Some(("temperror", _)) => return ReportAuthentication::Unknown,
        Some(("fail", _)) => return ReportAuthentication::Failed,
        _ => {}
    }
    // The sender's domain has no policy: a signature or an envelope sender of its own is as good.
    let mut proofs = found.dkim.iter().chain(&found.spf);
    match proofs.any(|one| one.result == "pass" && of_sender(&one.domain)) {
        true => ReportAuthentication::Passed,
        false => ReportAuthentication::Failed,
    }
}
