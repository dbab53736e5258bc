//! Dealing with one mail: what it is, whom it is about, what the rules want.
//!
//! In the order of a mailbox's roles: a receipt of certified mail, a report about a message, and else the rules. A report that
//! is about no message of ours is looked at by the rules too; loop guards keep it from being forwarded.

use std::{panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures::FutureExt;
use postway_domain::{Clock, LeaseToken, WatchedMailbox, mailbox::MailboxRole, verp::VerpKey};
use postway_intake::Door;
use postway_mime::{
    pec::{self, Receipt, TrustStore},
    received::{self, Kind, Report},
};
use postway_store::{
    Store, StoreError,
    blob::Depot,
    record::{Body, Routed, ToRoute},
};
use serde_json::json;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    time::timeout,
};

use super::{
    errands::Errands,
    outcome::{Progress, Trouble, Verdict, conclude, is_reminder},
};
use crate::{
    correlate::{self, Proof, Realm, Receipts},
    forward::guard::{MailboxMarks, Marker},
    mail::Mail,
    rules::RuleSet,
};

/// How long dealing with one mail may take.
const DEAL_MAX: std::time::Duration = std::time::Duration::from_secs(180);
/// From here on, looking at a mail takes longer than a runtime's thread may be kept.
const HEAVY_BYTES: usize = 256 * 1024;
/// Large mails in hand at the same time, in KiB.
pub(super) const LARGE_KIB_MAX: usize = 128 * 1024;

/// What dealing needs.
pub(super) struct Means {
    pub store: Arc<dyn Store>,
    pub depot: Arc<Depot>,
    pub door: Arc<Door>,
    pub clock: Arc<dyn Clock>,
    pub verp_key: VerpKey,
    pub marker: Marker,
    pub trust: TrustStore,
    pub errands: Errands,
    pub large: Semaphore,
}

/// How often workers may be lost with a mail in hand, beyond the attempts that it has: a process that is killed again and
/// again is seldom the mail's fault.
const LOST_MAX: i64 = 8;

/// A mailbox and its rules, as they were when its mail was claimed.
pub(super) struct Desk {
    pub mailbox: WatchedMailbox,
    pub rules: RuleSet,
    /// The marks of mail that is forwarded from it.
    pub marks: MailboxMarks,
}

/// Deals with a mail; always gives something to write.
pub(super) async fn deal(means: &Means, desk: &Desk, job: &ToRoute, token: LeaseToken) -> Routed {
    let attempts_max = desk.mailbox.settings.attempts_max.max(1);
    let mut progress = Progress { reminders: job.reminders, ..Progress::default() };
    let ended = if job.tries >= i64::from(attempts_max) + LOST_MAX {
        // Only lost leases get it here: it may be what kills its workers.
        Err(Trouble::Failed(format!("its workers were lost {} times; it was left alone", job.tries)))
    } else {
        let dealing = AssertUnwindSafe(deal_with(means, desk, job, &mut progress)).catch_unwind();
        match timeout(DEAL_MAX, dealing).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(_)) => Err(Trouble::Failed(
                "dealing with it failed inside Postway: see the log for the time".to_owned(),
            )),
            Err(_) => {
                Err(Trouble::Failed(format!("dealing with it took longer than {} s", DEAL_MAX.as_secs())))
            }
        }
    };
    if ended.is_err() {
        // Why stands with the mail: it may name somebody.
        let (tenant, mailbox) = (&job.key.tenant, &job.key.mailbox);
        tracing::warn!(uid = %job.uid, %tenant, %mailbox, tries = job.tries, "a mail could not be dealt with");
    }
    conclude(job, token, progress, ended, attempts_max, means.clock.now())
}

async fn deal_with(
    means: &Means,
    desk: &Desk,
    job: &ToRoute,
    progress: &mut Progress,
) -> Result<Verdict, Trouble> {
    // A body that is not in its row is weighed: few large ones are in hand at a time. The semaphore is never closed.
    let weight = job.body.blob().map_or(0, |blob| blob.size.div_ceil(1024).min(LARGE_KIB_MAX as u64));
    let _weighed = means.large.acquire_many(u32::try_from(weight).unwrap_or(u32::MAX)).await;
    let raw = means.depot.resolve(&job.key.tenant, job.body.clone()).await.map_err(StoreError::from)?;
    if is_reminder(job) {
        return super::apply::remind(means, desk, job, &raw, progress).await;
    }
    let settings = &desk.mailbox.settings;
    let (report, receipt) = heavy(raw.len(), || {
        let receipt = settings.has(MailboxRole::Pec).then(|| pec::read(&raw)).flatten();
        (received::inspect(&raw), receipt)
    });
    progress.kind = Some(if receipt.is_some() { "pec" } else { report.kind.as_str() });
    let mut reasons = Vec::new();
    if let Some(receipt) = receipt {
        match take_receipt(means, desk, job, &raw, &receipt, progress).await? {
            None => return Ok(Verdict::Routed),
            Some(why) => reasons.push(why),
        }
    } else if settings.has(MailboxRole::Bounces) && report.kind != Kind::Ordinary {
        match take_report(means, desk, &raw, &report, progress).await? {
            None => return Ok(Verdict::Routed),
            Some(why) => reasons.push(why),
        }
    }
    if settings.has(MailboxRole::Forward) {
        return super::apply::apply(means, desk, job, &raw, reasons, progress).await;
    }
    if reasons.is_empty() {
        reasons.push("it is no mail that this mailbox is watched for".to_owned());
    }
    Ok(Verdict::NoMatch(reasons.join("; ")))
}

/// Writes down a receipt; why not, where it is about no message of ours.
async fn take_receipt(
    means: &Means,
    desk: &Desk,
    job: &ToRoute,
    raw: &Bytes,
    receipt: &Receipt,
    progress: &mut Progress,
) -> Result<Option<String>, Trouble> {
    let Some(uid) = receipt.postway_uid else {
        return Ok(Some("the receipt refers to no message of ours".to_owned()));
    };
    let realm = realm(desk);
    let traced = means.store.traced(&[uid]).await?;
    let Some(traced) = traced.into_iter().find(|traced| realm.holds(traced)) else {
        return Ok(Some("the message that the receipt refers to is not known".to_owned()));
    };
    if traced.gone {
        return Ok(Some(format!("the message that the receipt refers to, {uid}, was removed")));
    }
    let earlier = means.store.receipts(&traced.tenant, uid).await?;
    // A receipt belongs to the message, whose tenant may be another than the mailbox's: blobs are their tenants'.
    let body = match &job.body {
        Body::Blob(_) if traced.tenant != job.key.tenant => {
            let (limit, now) = (postway_store::blob::INLINE_BYTES_MAX, means.clock.now());
            let kept = means.depot.keep(&*means.store, &traced.tenant, raw.clone(), limit, now).await;
            kept.map_err(StoreError::from)?
        }
        body => body.clone(),
    };
    let known = Receipts {
        raw,
        body: &body,
        digest: job.digest,
        trust: &means.trust,
        earlier: &earlier,
        arrived_at: job.arrived_at.unwrap_or(job.created_at),
    };
    let finding = heavy(raw.len(), || correlate::receipt(receipt, &traced, &known));
    progress.result.insert("message".to_owned(), json!(uid));
    progress.result.insert("receipt".to_owned(), json!(receipt.kind_text));
    progress.result.insert("event".to_owned(), json!(finding.kind.as_str()));
    progress.findings.push(finding);
    progress.has_effect = true;
    Ok(None)
}

/// Writes down what a report says; why not, where it is about no message of ours.
async fn take_report(
    means: &Means,
    desk: &Desk,
    raw: &Bytes,
    report: &Report,
    progress: &mut Progress,
) -> Result<Option<String>, Trouble> {
    let (mail, now) = (Mail::new(raw), means.clock.now());
    let found =
        correlate::correlate(&*means.store, &means.verp_key, &realm(desk), &mail, report, now).await?;
    let Some((traced, proof)) = found else {
        return Ok(Some(format!("no message of ours was found for this {}", words(report.kind))));
    };
    if traced.gone {
        return Ok(Some(format!("the message that it is about, {}, was removed", traced.uid)));
    }
    progress.findings = correlate::findings(report, &traced, proof, now);
    if progress.findings.is_empty() {
        return Ok(Some(format!("this {} says nothing against the message", words(report.kind))));
    }
    progress.has_effect = true;
    note(progress, &traced.uid.to_string(), proof);
    Ok(None)
}

fn note(progress: &mut Progress, message: &str, proof: Proof) {
    let events: Vec<_> = progress.findings.iter().map(|finding| finding.kind.as_str()).collect();
    let suppressed = progress.findings.iter().filter(|finding| finding.suppress.is_some()).count();
    progress.result.insert("message".to_owned(), json!(message));
    progress.result.insert("proof".to_owned(), json!(proof.as_str()));
    progress.result.insert("events".to_owned(), json!(events));
    progress.result.insert("suppressed".to_owned(), json!(suppressed));
}

fn realm(desk: &Desk) -> Realm<'_> {
    Realm { tenant: &desk.mailbox.tenant, all_tenants: desk.mailbox.settings.all_tenants }
}

fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Bounce => "bounce",
        Kind::Delay => "delay notice",
        Kind::Success => "delivery notice",
        Kind::Complaint => "complaint",
        Kind::AutoReply => "automatic reply",
        Kind::Ordinary => "mail",
    }
}

/// Does work on this many bytes. Heavy work tells the runtime to move its other tasks to another thread first, where it
/// has one.
pub(super) fn heavy<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    let multi_thread =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > HEAVY_BYTES && multi_thread() { tokio::task::block_in_place(work) } else { work() }
}
