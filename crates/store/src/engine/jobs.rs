//! The work of one transaction: the jobs of a group, kind by kind, so that each kind is one set of
//! statements. New messages come first, then the results of older work, and claims after that, so that they
//! see both.

use std::collections::BTreeSet;

use postway_domain::MessageStatus;

use super::{Job, JobAnswer, directory_change, write_probe};
use crate::{
    admin::{self, GateQuestion, Recipients, SuspensionGates},
    blob,
    error::StoreError,
    hook, inbound, journal,
    queue::{
        bulk_step, collapse, dialogue, hand_over::HandOver, lease_conditions::LeaseConditions,
        packing::PackedMessage, preparation, rate_limit, transaction::WriteTransaction,
    },
    record::{
        Acceptance, AccountKey, AccountWant, ChangeResult, ClaimRequest, ClaimedMessage, DirectoryChange,
        MessageChange, WireCommit,
    },
    reporting::{self, ReportAnswer, ReportJob},
    retention,
};

/// Does the jobs of a group inside one transaction, and answers each.
pub(super) async fn do_jobs<E: WriteTransaction>(
    engine: &mut E,
    handover: &HandOver,
    jobs: &[&Job],
) -> Result<Vec<JobAnswer>, StoreError> {
    let mut accepts = Vec::new();
    let mut wire_commits = Vec::new();
    let mut changes = Vec::new();
    let mut settled = Vec::new();
    for job in jobs {
        match job {
            Job::Accept(messages) => accepts.extend(messages),
            Job::WireCommit(commits) => wire_commits.extend(commits),
            Job::Apply(set) => changes.extend(set),
            Job::Report(ReportJob::Settle(set)) => settled.extend(set),
            Job::Claim(_)
            | Job::Prepare(_)
            | Job::Directory(..)
            | Job::Blobs(..)
            | Job::Retain(_)
            | Job::Report(_)
            | Job::Inbound(_)
            | Job::Hook(_)
            | Job::BulkStep(_)
            | Job::Ping => {}
        }
    }
    engine.begin().await?;
    let standing = standing_wants(handover, &accepts);
    let limited = limited_accounts(jobs, &standing);
    if !limited.is_empty() {
        rate_limit::lock(&mut *engine.session()?, limited).await?;
    }
    let mut terms = read_terms(engine, &standing, jobs, &accepts).await?;
    let mut accepted = accept(engine, &accepts, &mut terms).await?.into_iter();
    let mut committed = commit_wire(engine, &wire_commits, &terms).await?.into_iter();
    let applied = engine.apply(&changes).await?;
    let written: Vec<&MessageChange> =
        changes.iter().zip(&applied).filter_map(|(change, held)| held.then_some(*change)).collect();
    preparation::settle(engine, &written).await?;
    if written.iter().any(|change| change.awaits_receipt.is_some()) {
        inbound::begin_waiting(&mut *engine.session()?, &written).await?;
    }
    let is_failure =
        |change: &&MessageChange| change.attempt.as_ref().is_some_and(|one| one.dialogue.is_some());
    if written.iter().any(is_failure) {
        dialogue::keep(&mut *engine.session()?, &written).await?;
    }
    let refunds = rate_limit::refunds(written.into_iter());
    if !refunds.is_empty() {
        rate_limit::refund(&mut *engine.session()?, refunds).await?;
    }
    let mut applied = applied.into_iter();
    let mut settled = reporting::settle(engine, &settled).await?.into_iter();
    let mut answers = Vec::with_capacity(jobs.len());
    for job in jobs {
        answers.push(match job {
            Job::Accept(messages) => JobAnswer::Accepted(accepted.by_ref().take(messages.len()).collect()),
            Job::WireCommit(set) => JobAnswer::Held(committed.by_ref().take(set.len()).collect()),
            Job::Apply(set) => JobAnswer::Held(applied.by_ref().take(set.len()).collect()),
            Job::Claim(request) => JobAnswer::Claimed(claim(engine, request, &mut terms).await?),
            Job::Prepare(request) => JobAnswer::ToPrepare(preparation::claim(engine, request).await?),
            Job::Blobs(job) => {
                engine.after().wrote = true;
                JobAnswer::Blobs(blob::write(&mut *engine.session()?, job).await?)
            }
            Job::Retain(job) => {
                engine.after().wrote = true;
                JobAnswer::Retained(retention::write(engine, job).await?)
            }
            Job::Report(ReportJob::Settle(set)) => {
                JobAnswer::Reported(ReportAnswer::Held(settled.by_ref().take(set.len()).collect()))
            }
            Job::Report(job) => JobAnswer::Reported(reporting::write(engine, job).await?),
            Job::Inbound(job) => JobAnswer::Inbound(inbound::write(engine, job).await?),
            Job::Hook(job) => JobAnswer::Hook(hook::write(engine, job).await?),
            Job::BulkStep(step) => JobAnswer::Advanced(bulk_step::advance(engine, step).await?),
            Job::Ping => {
                engine.after().wrote = true;
                write_probe::write(&mut *engine.session()?).await?;
                JobAnswer::Pinged
            }
            Job::Directory(job) => {
                let (change, audit) = &**job;
                if let DirectoryChange::DeleteAccount(key) = change {
                    engine.exclude_accepts(key).await?;
                }
                let mut after = std::mem::take(engine.after());
                let mut session = engine.session()?;
                let changed = directory_change::change(&mut *session, change, &mut after).await?;
                if let (ChangeResult::Done, Some(entry)) = (changed, audit) {
                    admin::record_audit(&mut *session, entry).await?;
                }
                drop(session);
                *engine.after() = after;
                JobAnswer::Changed(changed)
            }
        });
    }
    terms.allowances.write(&mut *engine.session()?).await?;
    let told = std::mem::take(&mut engine.after().journal);
    if !told.is_empty() {
        journal::write(&mut *engine.session()?, told).await?;
        engine.after().reports = true;
    }
    Ok(answers)
}

/// Reads the suspensions of the group's tenants, which accounts of its new mail exist, which of its new
/// recipients are suppressed, and what is left of the limits of accounts with standing claims.
async fn read_terms<E: WriteTransaction>(
    engine: &mut E,
    standing: &[AccountWant],
    jobs: &[&Job],
    accepts: &[&PackedMessage],
) -> Result<LeaseConditions, StoreError> {
    let mut terms = LeaseConditions::default();
    let asked = question_of(jobs);
    if asked.tenants.is_empty() {
        return Ok(terms);
    }
    let mut session = engine.session()?;
    terms.gates = admin::suspensions_of(&mut *session, asked).await?;
    let Some(now) = accepts.first().map(|message| message.created_at) else {
        return Ok(terms);
    };
    let to_send = accepts.iter().copied().filter(|message| !message.state.status().is_final());
    let accounts = accounts_of(&to_send.collect::<Vec<_>>());
    terms.accounts = admin::accounts_there(&mut *session, accounts).await?;
    terms.suppressed = admin::suppressed_of(&mut *session, recipients_of(accepts, &terms.gates), now).await?;
    for want in standing {
        terms.allowances.open(&mut *session, &want.sender(), want.limits, now).await?;
    }
    Ok(terms)
}

/// The standing claims that new messages may fill.
fn standing_wants(handover: &HandOver, accepts: &[&PackedMessage]) -> Vec<AccountWant> {
    accounts_of(accepts).iter().filter_map(|key| handover.standing(key)).collect()
}

/// The accounts whose limits the group may debit or refund.
fn limited_accounts(jobs: &[&Job], standing: &[AccountWant]) -> BTreeSet<AccountKey> {
    let wanted = jobs.iter().flat_map(|job| match job {
        Job::Claim(request) => request.wants.as_slice(),
        _ => &[],
    });
    let limited = wanted.chain(standing).filter(|want| !want.limits.is_unlimited());
    let refunded = jobs.iter().flat_map(|job| match job {
        Job::Apply(changes) => changes.as_slice(),
        _ => &[],
    });
    let refunded = refunded.filter_map(|change| change.refund.as_ref()).map(|permit| permit.key.clone());
    limited.map(AccountWant::sender).chain(refunded).collect()
}

/// The suspensions that the group must know.
fn question_of(jobs: &[&Job]) -> GateQuestion {
    let mut asked = GateQuestion::default();
    for job in jobs {
        match job {
            Job::Accept(messages) => messages.iter().for_each(|message| asked.lane(&message.lane)),
            Job::WireCommit(commits) => commits.iter().for_each(|commit| asked.lane(&commit.lane)),
            Job::Claim(request) => request.wants.iter().for_each(|want| asked.tenant(&want.key.tenant)),
            Job::Apply(_)
            | Job::Prepare(_)
            | Job::Directory(..)
            | Job::Blobs(..)
            | Job::Retain(_)
            | Job::Report(_)
            | Job::Inbound(_)
            | Job::Hook(_)
            | Job::BulkStep(_)
            | Job::Ping => {}
        }
    }
    asked
}

/// The recipients of tenants that have a suppression list.
fn recipients_of(messages: &[&PackedMessage], gates: &SuspensionGates) -> Recipients {
    let mut recipients = Recipients::new();
    for message in messages.iter().filter(|message| gates.has_list(&message.lane.tenant)) {
        let addresses = message.recipients.iter().map(|one| one.address.as_str().to_ascii_lowercase());
        recipients.entry(message.lane.tenant.clone()).or_default().extend(addresses);
    }
    recipients
}

/// The recipients of claimed messages, of tenants that have a suppression list.
fn claimed_recipients(claimed: &[ClaimedMessage], gates: &SuspensionGates) -> Recipients {
    let mut recipients = Recipients::new();
    for one in claimed.iter().filter(|one| gates.has_list(&one.lane.tenant)) {
        let addresses = one.recipients.iter().map(|to| to.address.as_str().to_ascii_lowercase());
        recipients.entry(one.lane.tenant.clone()).or_default().extend(addresses);
    }
    recipients
}

fn accounts_of(messages: &[&PackedMessage]) -> BTreeSet<AccountKey> {
    let key = |message: &&PackedMessage| AccountKey {
        tenant: message.lane.tenant.clone(),
        account: message.lane.account.clone(),
    };
    messages.iter().map(key).collect()
}

async fn accept<E: WriteTransaction>(
    engine: &mut E,
    messages: &[&PackedMessage],
    terms: &mut LeaseConditions,
) -> Result<Vec<Acceptance>, StoreError> {
    let answers = engine.accept(messages, terms).await?;
    let stored = messages.iter().zip(&answers).filter(|(_, answer)| answer.is_accepted());
    let keyed: Vec<&PackedMessage> =
        stored.map(|(message, _)| *message).filter(|message| message.collapse_key.is_some()).collect();
    if !keyed.is_empty() {
        let superseded = collapse::superseded(&mut *engine.session()?, &keyed).await?;
        let written = engine.apply(&superseded.changes.iter().collect::<Vec<_>>()).await?;
        let moved =
            superseded.changes.iter().zip(written).filter(|(change, written)| *written && change.moves());
        let states: Vec<MessageStatus> = moved.map(|(change, _)| change.to.status()).collect();
        engine.after().superseded.extend(states);
        collapse::outdate(&mut *engine.session()?, &superseded.older).await?;
    }
    Ok(answers)
}

/// Suspended mail gets no permission: a suspension applies to everything that has not left yet.
async fn commit_wire<E: WriteTransaction>(
    engine: &mut E,
    commits: &[&WireCommit],
    terms: &LeaseConditions,
) -> Result<Vec<bool>, StoreError> {
    let open: Vec<&WireCommit> = commits.iter().copied().filter(|commit| terms.may_leave(commit)).collect();
    if open.len() == commits.len() {
        return engine.wire_commit(commits).await;
    }
    let mut given = engine.wire_commit(&open).await?.into_iter();
    Ok(commits.iter().map(|commit| terms.may_leave(commit) && given.next() == Some(true)).collect())
}

async fn claim<E: WriteTransaction>(
    engine: &mut E,
    request: &ClaimRequest,
    terms: &mut LeaseConditions,
) -> Result<Vec<ClaimedMessage>, StoreError> {
    for want in &request.wants {
        let mut session = engine.session()?;
        terms.allowances.open(&mut *session, &want.sender(), want.limits, request.now).await?;
    }
    let mut claimed = engine.claim(request, terms).await?;
    let recipients = claimed_recipients(&claimed, &terms.gates);
    terms.suppressed = admin::suppressed_of(&mut *engine.session()?, recipients, request.now).await?;
    terms.suppress(&mut claimed);
    admin::mark_departed(&mut *engine.session()?, &terms.gates, &mut claimed).await?;
    Ok(claimed)
}
