//! Processes the content of one mail: what kind of mail it is, which message it is about, what the rules say.
//!
//! The order follows a mailbox's roles: a receipt of certified mail, a report about a domain, a report about a
//! message, and otherwise the rules. A report that is about no known message goes to the rules too; loop guards keep it from being
//! forwarded.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::mailbox::MailboxRole;
use postway_intake::VirusVerdict;
use postway_mime::{
    pec::{self, CertifiedReceipt},
    received::{self, ReceivedReport, ReportKind},
};
use postway_store::{
    StoreError,
    record::{MailToProcess, StoredBody},
};
use serde_json::json;

use super::{
    conclusion::{MailProgress, MailVerdict, ProcessFailure, is_reminder},
    context::{LARGE_KIB_MAX, MailboxContext, ProcessContext},
    domain_reports::{self, DomainReportMail},
    received as received_event, replies, rules,
};
use crate::{
    correlate::{self, ReceiptContext, ReportProof},
    crash::crash_point_for,
    mail::ParsedMail,
    rules::WorkStopSignal,
};

/// How long mail waits that may not pass without a scan, until the scanner is tried again.
const SCANNER_WAIT: Duration = Duration::from_secs(30);
/// The memory that a mail takes, as a multiple of its size: the mail, its decoded text and files, and the
/// mail that is made of them.
const WEIGHT_PER_BYTE: u64 = 4;

/// The memory that a mail takes while it is processed, in KiB: the mail, its decoded contents, and the mail
/// that is made of them. A mail stored in its row is small and takes nothing.
fn memory_kib(body: &StoredBody) -> u64 {
    let bytes = body.blob().map_or(0, |blob| blob.size.saturating_mul(WEIGHT_PER_BYTE));
    bytes.div_ceil(1024).min(LARGE_KIB_MAX as u64)
}

pub(super) async fn process_content(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
    stop: &WorkStopSignal,
    progress: &mut MailProgress,
) -> Result<MailVerdict, ProcessFailure> {
    // Only mails stored as blobs take from the budget, so that few large ones are in memory at a time. The
    // mail's turn comes first: earlier mails, for which it would wait, may need the budget. The semaphore is
    // never closed.
    let memory = memory_kib(&job.body);
    if memory > 0 {
        context.turns.wait(job).await;
    }
    let _share = context.large.acquire_many(u32::try_from(memory).unwrap_or(u32::MAX)).await;
    let raw = context.depot.resolve(&job.key.tenant, job.body.clone()).await.map_err(StoreError::from)?;
    crash_point_for("inbound_deal", &raw);
    if is_reminder(job) {
        return rules::remind(context, mailbox_context, job, &raw, stop, progress).await;
    }
    let settings = &mailbox_context.mailbox.settings;
    let receipt = settings.has(MailboxRole::Pec).then(|| pec::read(&raw)).flatten();
    let report = received::inspect(&raw);
    progress.kind = Some(if receipt.is_some() { "pec" } else { report.kind.as_str() });
    if report.kind == ReportKind::Ordinary
        && replies::record_unsubscribe(context, mailbox_context, &raw, progress).await?
    {
        return Ok(MailVerdict::Routed);
    }
    let mut reasons = Vec::new();
    let receipt_is_absent = receipt.is_none();
    if receipt_is_absent && settings.has(MailboxRole::DomainReports) {
        match domain_reports::record(context, mailbox_context, job, &raw, progress).await? {
            DomainReportMail::Recorded => return Ok(MailVerdict::Routed),
            DomainReportMail::Refused(why) => reasons.push(why),
            DomainReportMail::Other => {}
        }
    }
    if let Some(receipt) = receipt {
        match record_receipt(context, mailbox_context, job, &raw, &receipt, progress).await? {
            None => return Ok(MailVerdict::Routed),
            Some(why) => reasons.push(why),
        }
    } else if settings.has(MailboxRole::Bounces) && report.kind != ReportKind::Ordinary {
        match record_report(context, mailbox_context, &raw, &report, progress).await? {
            None => return Ok(MailVerdict::Routed),
            Some(why) => reasons.push(why),
        }
    }
    let is_ordinary = receipt_is_absent && report.kind == ReportKind::Ordinary;
    let is_answer = report.kind == ReportKind::Ordinary
        && replies::record_reply(context, mailbox_context, &raw, progress).await?;
    progress.notifies = is_ordinary && settings.has(MailboxRole::Events);
    // Reports and receipts are read as data, and go nowhere.
    let infection = match is_ordinary {
        true => scan(context, mailbox_context, &raw, progress).await?,
        false => None,
    };
    if let Some(name) = infection {
        if progress.notifies {
            let tags = &progress.tags;
            progress.received =
                Some(received_event::event_data(job, &ParsedMail::new(&raw), tags, settings, Some(&name)));
        }
        return Ok(MailVerdict::NoMatch(format!("infected: {name}")));
    }
    let verdict = match settings.has(MailboxRole::Forward) {
        true => {
            Some(rules::apply(context, mailbox_context, job, &raw, reasons.clone(), stop, progress).await?)
        }
        false => None,
    };
    if progress.notifies {
        let mail = ParsedMail::new(&raw);
        let data = received_event::event_data(job, &mail, &progress.tags, settings, None);
        progress.received = Some(data);
        progress.has_effect = true;
    }
    match verdict {
        // A reply need not match a rule, and neither does a mail that is reported as it is.
        Some(MailVerdict::NoMatch(_)) if is_answer || progress.notifies => return Ok(MailVerdict::Routed),
        Some(verdict) => return Ok(verdict),
        None if is_answer || progress.notifies => return Ok(MailVerdict::Routed),
        None => {}
    }
    if reasons.is_empty() {
        reasons.push("it is no mail that this mailbox is watched for".to_owned());
    }
    Ok(MailVerdict::NoMatch(reasons.join("; ")))
}

/// Scans a mail for viruses; returns the name of the signature that matches.
async fn scan(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    raw: &Bytes,
    progress: &mut MailProgress,
) -> Result<Option<String>, ProcessFailure> {
    match context.door.scan_received(&mailbox_context.mailbox.tenant, raw).await? {
        VirusVerdict::Clean => Ok(None),
        VirusVerdict::Infected(name) => {
            progress.result.insert("infected".to_owned(), json!(name));
            Ok(Some(name))
        }
        VirusVerdict::Unscanned(why) => {
            progress.result.insert("unscanned".to_owned(), json!(why));
            Ok(None)
        }
        VirusVerdict::Withheld(why) => Err(ProcessFailure::Postponed { wait: SCANNER_WAIT, why }),
    }
}

/// Records a receipt; returns the reason if it is about no known message.
async fn record_receipt(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
    raw: &Bytes,
    receipt: &CertifiedReceipt,
    progress: &mut MailProgress,
) -> Result<Option<String>, ProcessFailure> {
    let scope = mailbox_context.scope();
    let named = match receipt.postway_uid {
        Some(uid) => context.store.traced(&[uid]).await?.into_iter().find(|traced| scope.contains(traced)),
        None => None,
    };
    let is_by_our_id = named.is_some();
    let found = match (named, receipt.reference.as_deref()) {
        (None, Some(reference)) => correlate::by_foreign_id(&*context.store, &scope, reference).await?,
        (named, _) => named,
    };
    let Some(traced) = found else {
        return Ok(Some(match receipt.postway_uid {
            Some(_) => "the message that the receipt refers to is not known".to_owned(),
            None => "the receipt refers to no message of ours".to_owned(),
        }));
    };
    let uid = traced.uid;
    if traced.gone {
        return Ok(Some(format!("the message that the receipt refers to, {uid}, was removed")));
    }
    let earlier = context.store.receipts(&traced.tenant, uid).await?;
    // A receipt belongs to the message, whose tenant may differ from the mailbox's: blobs belong to their
    // tenants.
    let body = match &job.body {
        StoredBody::Blob(_) if traced.tenant != job.key.tenant => {
            let (limit, now) = (postway_store::blob::INLINE_BYTES_MAX, context.clock.now());
            let stored = context.depot.keep(&*context.store, &traced.tenant, raw.clone(), limit, now).await;
            stored.map_err(StoreError::from)?
        }
        body => body.clone(),
    };
    let known = ReceiptContext {
        raw,
        body: &body,
        digest: job.digest,
        trust: &context.trust,
        is_by_our_id,
        earlier: &earlier,
        arrived_at: job.arrived_at.unwrap_or(job.created_at),
    };
    let finding = correlate::receipt(receipt, &traced, &known);
    progress.result.insert("message".to_owned(), json!(uid));
    progress.result.insert("receipt".to_owned(), json!(receipt.kind_text));
    progress.result.insert("event".to_owned(), json!(finding.kind.as_str()));
    progress.findings.push(finding);
    progress.has_effect = true;
    Ok(None)
}

/// Records the findings of a report; returns the reason if it is about no known message.
async fn record_report(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    raw: &Bytes,
    report: &ReceivedReport,
    progress: &mut MailProgress,
) -> Result<Option<String>, ProcessFailure> {
    let (mail, now) = (ParsedMail::new(raw), context.clock.now());
    let found = correlate::correlate(
        &*context.store,
        &context.verp_key,
        &mailbox_context.scope(),
        &mail,
        report,
        now,
    )
    .await?;
    let Some((traced, proof)) = found else {
        return Ok(Some(format!("no message of ours was found for this {}", kind_name(report.kind))));
    };
    if traced.gone {
        return Ok(Some(format!("the message that it is about, {}, was removed", traced.uid)));
    }
    progress.findings = correlate::findings(report, &traced, proof, now);
    if progress.findings.is_empty() {
        return Ok(Some(format!("this {} says nothing against the message", kind_name(report.kind))));
    }
    progress.has_effect = true;
    record_findings(progress, &traced.uid.to_string(), proof);
    Ok(None)
}

fn record_findings(progress: &mut MailProgress, message: &str, proof: ReportProof) {
    let events: Vec<_> = progress.findings.iter().map(|finding| finding.kind.as_str()).collect();
    let suppressed = progress.findings.iter().filter(|finding| finding.suppress.is_some()).count();
    progress.result.insert("message".to_owned(), json!(message));
    progress.result.insert("proof".to_owned(), json!(proof.as_str()));
    progress.result.insert("events".to_owned(), json!(events));
    progress.result.insert("suppressed".to_owned(), json!(suppressed));
}

fn kind_name(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Bounce => "bounce",
        ReportKind::Delay => "delay notice",
        ReportKind::Success => "delivery notice",
        ReportKind::Complaint => "complaint",
        ReportKind::AutoReply => "automatic reply",
        ReportKind::Ordinary => "mail",
    }
}

#[cfg(test)]
mod tests {
    use postway_store::record::{BlobName, BlobRef};

    use super::*;

    #[test]
    fn a_large_mail_weighs_what_is_made_of_it_too() {
        let large =
            |size| StoredBody::Blob(BlobRef { name: BlobName { digest: [7; 32], generation: 0 }, size });
        assert_eq!(memory_kib(&StoredBody::Inline(vec![b'x'; 10_000].into())), 0);
        assert_eq!(memory_kib(&large(1 << 20)), 4 * 1024);
        assert_eq!(memory_kib(&large(u64::MAX)), LARGE_KIB_MAX as u64);
    }
}
