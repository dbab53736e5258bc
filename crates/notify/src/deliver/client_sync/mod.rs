//! Client sync: one call carries many outcomes, and its answer says which of them the client refuses.
//!
//! Only entries that were not refused are acknowledged. An answer that is no success, or that is neither a
//! plain `OK` nor JSON that says `ok`, refuses all of them. The answer may also ask for no calls until a
//! given time, or for another call at once because the client has more to hand over.

mod answer;
mod entry;

use std::time::Duration;

use bytes::Bytes;
use postway_domain::Time;
use postway_net::http::HttpAnswer;
use postway_store::{StoreError, record::DirectoryChange};
use postway_trace::TraceContext;

use super::{
    call_span,
    context::{DeliveryContext, read_message, verdict, verdict_without_message},
    http_call::{self, FinishedCall, LOGGED_SHARED_BYTES_MAX},
    payload::{id_of, unwritable},
};
use crate::notification::{
    batch::NotificationBatch,
    call_limits::SYNC_TIMEOUT,
    outcome::{BatchOutcome, LeasedNotification, NotificationVerdict, SubscriberConduct},
    target::SubscriberAccess,
};
use answer::SyncAnswer;
use entry::SyncEntry;

/// The longest quiet time that a client may ask for.
const QUIET_MAX: Duration = Duration::from_secs(24 * 3_600);

/// An entry that is being sent.
struct SentEntry<'l> {
    leased: &'l LeasedNotification,
    id: String,
    json: String,
    place: Option<TraceContext>,
}

/// Delivers the batch in one call. The batch may be empty: then the client asked to be called again.
pub(crate) async fn deliver(
    context: &DeliveryContext,
    batch: &NotificationBatch,
    access: &SubscriberAccess,
) -> Result<BatchOutcome, StoreError> {
    let mut outcome = BatchOutcome::uncalled(Vec::with_capacity(batch.leased.len()), None);
    let mut sent: Vec<SentEntry<'_>> = Vec::with_capacity(batch.leased.len());
    for leased in &batch.leased {
        let Some((snapshot, event)) = read_message(context, leased).await? else {
            outcome.notified.push(verdict(context, leased, verdict_without_message(leased), None));
            continue;
        };
        let record = &snapshot.brief;
        match SyncEntry::new(record, event, leased.job.deferred) {
            Some(entry) => {
                let json = serde_json::to_string(&entry).map_err(unwritable)?;
                sent.push(SentEntry {
                    leased,
                    id: id_of(&record.summary),
                    json,
                    place: record.summary.trace,
                });
            }
            None => outcome.notified.push(verdict(context, leased, NotificationVerdict::Pointless, None)),
        }
    }
    if sent.is_empty() && !batch.leased.is_empty() {
        return Ok(outcome);
    }
    let entries: Vec<&str> = sent.iter().map(|one| one.json.as_str()).collect();
    let body = Bytes::from(format!("{{\"delivery_report\":[{}]}}", entries.join(",")));
    let to = (&access.url, &access.auth);
    let timeout = SYNC_TIMEOUT.min(context.patience);
    let span = call_span::begin(&batch.target.subscriber, sent.iter().map(|one| one.place));
    let headers = Vec::from_iter(call_span::header(&span));
    let called = http_call::post(&context.http, &*context.clock, to, headers, body, timeout).await;
    call_span::end(span, &called);
    let answer = read(&called);

    let write = |one: &SentEntry<'_>| {
        let reached = match &answer {
            Ok(answer) if answer.refuses(&one.id) => NotificationVerdict::Failed { asked: None },
            Ok(_) => NotificationVerdict::Acknowledged,
            Err(_) => NotificationVerdict::Failed { asked: called.retry_after() },
        };
        let mut logged = called.logged(&one.json, LOGGED_SHARED_BYTES_MAX);
        if let (Err(reason), Some(200..300)) = (&answer, logged.status) {
            logged.answer = format!("{reason}: {}", logged.answer);
        }
        verdict(context, one.leased, reached, Some(logged))
    };
    outcome.notified.extend(sent.iter().map(write));
    outcome.conduct = if answer.is_ok() { SubscriberConduct::Answered } else { SubscriberConduct::Failed };
    outcome.quiet_until = called.requested_quiet().map(|wait| called.at.plus(wait));
    if let Ok(answer) = answer {
        let quiet_until = quiet_until(&answer, context.clock.now());
        outcome.comes_again = answer.queued > 0 && quiet_until.is_none();
        if let Some(until) = quiet_until {
            outcome.quiet_until = Some(until);
            leave_alone(context, batch, until).await;
        }
    }
    Ok(outcome)
}

fn read(called: &FinishedCall) -> Result<SyncAnswer, String> {
    match &called.answer {
        Ok(answer) if HttpAnswer::is_success(answer) => SyncAnswer::read(&answer.body),
        Ok(answer) => Err(format!("status {}", answer.status)),
        Err(error) => Err(error.to_string()),
    }
}

/// The end of the quiet time that the client asks for, if it is in the future.
fn quiet_until(answer: &SyncAnswer, now: Time) -> Option<Time> {
    answer.next_sync_after.filter(|until| *until > now).map(|until| until.min(now.plus(QUIET_MAX)))
}

/// Stores the quiet time for all nodes. If that fails, only this node observes it; that is no reason to
/// repeat entries that the client has taken.
async fn leave_alone(context: &DeliveryContext, batch: &NotificationBatch, until: Time) {
    let key = batch.key.clone();
    let change = DirectoryChange::QuietSubscriber(key.tenant, key.subscriber, until);
    if let Err(error) = context.store.change(change, None).await {
        tracing::warn!(%error, tenant = %batch.key.tenant, "that a client wants to be left alone could not be stored");
    }
}
