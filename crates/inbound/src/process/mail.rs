//! Dealing with one mail: what it is, whom it is about, what the rules want.
//!
//! In the order of a mailbox's roles: a receipt of certified mail, a report about a message, and else the rules. A report that
//! is about no message of ours is looked at by the rules too; loop guards keep it from being forwarded.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use postway_domain::{
    Clock, LeaseToken, WatchedMailbox, inbound::LOST_LEASES_MAX, mailbox::MailboxRole, verp::VerpKey,
};
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
use tokio::sync::Semaphore;

use super::{
    conclusion::{Progress, Trouble, Verdict, conclude, is_reminder},
    imap_actions::{Errand, Errands, Ran},
    order::MailTurns,
    replies,
    time_limit::{ThreadPlace, work_on},
};
use crate::{
    correlate::{self, Proof, Realm, Receipts},
    crash::crash_point_for,
    loop_guard::{MailboxMarks, Marker},
    mail::Mail,
    rules::{RuleSet, WorkStop},
    tenant_slots::TenantSeats,
};

/// Large mails in hand at the same time, in KiB.
pub(super) const LARGE_KIB_MAX: usize = 128 * 1024;
/// What is held of a mail, in its size: it, its text and files once they are decoded, and the mail that is made of them.
const WEIGHT_PER_BYTE: u64 = 4;

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
    /// Threads for work that takes long.
    pub threads: Arc<TenantSeats>,
    pub large: Semaphore,
    /// In which order mails are sent on.
    pub turns: Arc<MailTurns>,
}

/// A mailbox and its rules, as they were when its mail was claimed.
pub(super) struct Desk {
    pub mailbox: WatchedMailbox,
    pub rules: RuleSet,
    /// The marks of mail that is forwarded from it.
    pub marks: MailboxMarks,
}

/// What is left to do with a mail that was dealt with.
pub(super) enum DealtMail {
    /// It is to be written down.
    Over(Box<Routed>),
    /// Something on its server; then it is to be written down.
    Errand(Box<ErrandDue>),
}

/// A mail whose own work is done, and what is left to do on its server.
pub(super) struct ErrandDue {
    /// Without its bytes.
    pub job: ToRoute,
    pub desk: Arc<Desk>,
    pub token: LeaseToken,
    errand: Errand,
    progress: Progress,
}

impl ErrandDue {
    /// Does what is left, and says what to write.
    pub(super) async fn run(mut self, means: &Means) -> Routed {
        let ended = match means.errands.run(&self.desk.mailbox, &self.job, &self.errand).await {
            Ok(Ran::Done) => Ok(Verdict::Routed),
            Ok(Ran::Unknowable) => {
                let words = "the server gave its mail new UIDs; this one was not marked or moved";
                Ok(Verdict::RoutedBut(words.to_owned()))
            }
            Err(error) => {
                tell_failed(&self.job);
                self.progress.result.insert("errand".to_owned(), json!(error.message));
                Err(Trouble::Failed(error.message))
            }
        };
        self.conclude(means, ended)
    }

    /// There is no room for it: what was sent is written down, and the rest is done later. No try is used.
    pub(super) fn postpone(self, means: &Means, wait: Duration) -> Routed {
        let why = "what is to be done on its server waits for that of other mail".to_owned();
        self.conclude(means, Err(Trouble::Postponed { wait, why }))
    }

    fn conclude(self, means: &Means, ended: Result<Verdict, Trouble>) -> Routed {
        let attempts_max = self.desk.attempts_max();
        conclude(&self.job, self.token, self.progress, ended, attempts_max, means.clock.now())
    }
}

impl Desk {
    fn attempts_max(&self) -> u32 {
        self.mailbox.settings.attempts_max.max(1)
    }
}

/// Deals with a mail; always gives something to write.
pub(super) async fn deal(
    means: &Arc<Means>,
    desk: &Arc<Desk>,
    job: &Arc<ToRoute>,
    token: LeaseToken,
    place: Option<ThreadPlace>,
) -> DealtMail {
    let attempts_max = desk.attempts_max();
    let (progress, ended) = match set_aside(job, attempts_max) {
        Some(why) => (Progress::of(job), Err(Trouble::Hopeless(why))),
        None => work_on(means, desk, job, place).await,
    };
    let ended = match ended {
        Ok(Verdict::Errand(errand)) => {
            let bare = ToRoute { body: Body::EMPTY, ..ToRoute::clone(job) };
            let due = ErrandDue { job: bare, desk: desk.clone(), token, errand, progress };
            // One that is dealt with alone keeps all others waiting: it has lived, and its errand is for the next time.
            return match job.lost_leases {
                0 => DealtMail::Errand(Box::new(due)),
                _ => DealtMail::Over(due.postpone(means, Duration::ZERO).into()),
            };
        }
        ended => ended,
    };
    if ended.as_ref().is_err_and(|trouble| !matches!(trouble, Trouble::Postponed { .. })) {
        tell_failed(job);
    }
    DealtMail::Over(conclude(job, token, progress, ended, attempts_max, means.clock.now()).into())
}

/// Logs that a mail could not be dealt with. Why stands with the mail: it may name somebody.
fn tell_failed(job: &ToRoute) {
    let (tenant, mailbox) = (&job.key.tenant, &job.key.mailbox);
    tracing::warn!(uid = %job.uid, %tenant, %mailbox, tries = job.tries, "a mail could not be dealt with");
}

/// Why a mail is not to be touched any more.
fn set_aside(job: &ToRoute, attempts_max: u32) -> Option<String> {
    if job.lost_leases >= LOST_LEASES_MAX {
        return Some(format!(
            "the process died {} times in a row while it was dealing with this mail, the last time with nothing else in \
             hand; it was set aside: replay it to try again",
            job.lost_leases
        ));
    }
    // Tries that failed end before: the last of these never did.
    (job.tries >= i64::from(attempts_max))
        .then(|| format!("it was tried {} times, the last time without an end", job.tries))
}

/// What a mail weighs while it is dealt with, in KiB: it, what is taken out of it and what is made of that. One in its row, which is
/// small, weighs nothing.
fn weight_kib(body: &Body) -> u64 {
    let bytes = body.blob().map_or(0, |blob| blob.size.saturating_mul(WEIGHT_PER_BYTE));
    bytes.div_ceil(1024).min(LARGE_KIB_MAX as u64)
}

pub(super) async fn deal_with(
    means: &Means,
    desk: &Desk,
    job: &ToRoute,
    stop: &WorkStop,
    progress: &mut Progress,
) -> Result<Verdict, Trouble> {
    // A body that is not in its row is weighed: few large ones are in hand at a time. Its turn comes first: those before it, which it
    // would wait for, may need the room. The semaphore is never closed.
    let weight = weight_kib(&job.body);
    if weight > 0 {
        means.turns.wait(job).await;
    }
    let _weighed = means.large.acquire_many(u32::try_from(weight).unwrap_or(u32::MAX)).await;
    let raw = means.depot.resolve(&job.key.tenant, job.body.clone()).await.map_err(StoreError::from)?;
    crash_point_for("inbound_deal", &raw);
    if is_reminder(job) {
        return super::rules::remind(means, desk, job, &raw, stop, progress).await;
    }
    let settings = &desk.mailbox.settings;
    let receipt = settings.has(MailboxRole::Pec).then(|| pec::read(&raw)).flatten();
    let report = received::inspect(&raw);
    progress.kind = Some(if receipt.is_some() { "pec" } else { report.kind.as_str() });
    if report.kind == Kind::Ordinary && replies::leave_stream(means, desk, &raw, progress).await? {
        return Ok(Verdict::Routed);
    }
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
    let is_answer = report.kind == Kind::Ordinary && replies::take_reply(means, desk, &raw, progress).await?;
    if settings.has(MailboxRole::Forward) {
        let verdict = super::rules::apply(means, desk, job, &raw, reasons, stop, progress).await?;
        return Ok(match verdict {
            // That no rule is about it is no fault of an answer.
            Verdict::NoMatch(_) if is_answer => Verdict::Routed,
            verdict => verdict,
        });
    }
    if is_answer {
        return Ok(Verdict::Routed);
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
    let realm = realm(desk);
    let named = match receipt.postway_uid {
        Some(uid) => means.store.traced(&[uid]).await?.into_iter().find(|traced| realm.holds(traced)),
        None => None,
    };
    let is_by_our_id = named.is_some();
    let found = match (named, receipt.reference.as_deref()) {
        (None, Some(reference)) => correlate::by_foreign_id(&*means.store, &realm, reference).await?,
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

pub(super) fn realm(desk: &Desk) -> Realm<'_> {
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

#[cfg(test)]
mod tests {
    use postway_store::record::{BlobName, BlobRef};

    use super::*;

    #[test]
    fn a_large_mail_weighs_what_is_made_of_it_too() {
        let large = |size| Body::Blob(BlobRef { name: BlobName { digest: [7; 32], generation: 0 }, size });
        assert_eq!(weight_kib(&Body::Inline(vec![b'x'; 10_000].into())), 0);
        assert_eq!(weight_kib(&large(1 << 20)), 4 * 1024);
        assert_eq!(weight_kib(&large(u64::MAX)), LARGE_KIB_MAX as u64);
    }
}
