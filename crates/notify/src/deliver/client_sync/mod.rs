//! Client sync: one call for many outcomes, whose answer says which of them were not taken.
//!
//! Only what was not refused is acknowledged: an answer that is no success, or that is neither a plain `OK` nor JSON that says
//! `ok`, refuses all of it. The answer may also ask to be left alone until a time, or to be called again now, because the client has more to
//! hand over.

mod answer;
mod entry;

use std::time::Duration;

use bytes::Bytes;
use postway_domain::Time;
use postway_net::http::Answer;
use postway_store::{StoreError, record::DirectoryChange};

use super::{
    Means,
    http_call::{self, Called, LOGGED_SHARED_BYTES_MAX},
    look_up,
    payload::id_of,
    verdict,
    webhook::unwritable,
    without_message,
};
use crate::{
    notification::{
        outcome::{Conduct, Leased, Told, Verdict},
        target::Reach,
    },
    scheduler::Batch,
};
use answer::SyncAnswer;
use entry::Entry;

/// How long a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// The most entries of one call.
pub(crate) const ENTRIES_MAX: usize = 200;
/// The longest that a client is left alone because it asked for that.
const QUIET_MAX: Duration = Duration::from_secs(24 * 3_600);

/// An entry on its way.
struct Sent<'l> {
    leased: &'l Leased,
    id: String,
    json: String,
}

/// Tells the batch in one call. It may be empty: the client asked to be called again.
pub(crate) async fn tell(means: &Means, batch: &Batch, reach: &Reach) -> Result<Told, StoreError> {
    let mut told = Told::uncalled(Vec::with_capacity(batch.leased.len()), None);
    let mut sent: Vec<Sent<'_>> = Vec::with_capacity(batch.leased.len());
    for leased in &batch.leased {
        let Some((standing, event)) = look_up(means, leased).await? else {
            told.notified.push(verdict(means, leased, without_message(leased), None));
            continue;
        };
        let record = &standing.brief;
        match Entry::new(record, event, leased.job.deferred) {
            Some(entry) => {
                let json = serde_json::to_string(&entry).map_err(unwritable)?;
                sent.push(Sent { leased, id: id_of(&record.summary), json });
            }
            None => told.notified.push(verdict(means, leased, Verdict::Pointless, None)),
        }
    }
    if sent.is_empty() && !batch.leased.is_empty() {
        return Ok(told);
    }
    let entries: Vec<&str> = sent.iter().map(|one| one.json.as_str()).collect();
    let body = Bytes::from(format!("{{\"delivery_report\":[{}]}}", entries.join(",")));
    let to = (&reach.url, &reach.auth);
    let timeout = TIMEOUT.min(means.patience);
    let called = http_call::post(&means.http, &*means.clock, to, Vec::new(), body, timeout).await;
    let answer = read(&called);

    let write = |one: &Sent<'_>| {
        let reached = match &answer {
            Ok(answer) if answer.refuses(&one.id) => Verdict::Failed { asked: None },
            Ok(_) => Verdict::Acknowledged,
            Err(_) => Verdict::Failed { asked: called.asked() },
        };
        let mut logged = called.logged(&one.json, LOGGED_SHARED_BYTES_MAX);
        if let (Err(reason), Some(200..300)) = (&answer, logged.status) {
            logged.answer = format!("{reason}: {}", logged.answer);
        }
        verdict(means, one.leased, reached, Some(logged))
    };
    told.notified.extend(sent.iter().map(write));
    told.conduct = if answer.is_ok() { Conduct::Answered } else { Conduct::Failed };
    told.quiet_until = called.asked_for_quiet().map(|wait| called.at.plus(wait));
    if let Ok(answer) = answer {
        let quiet_until = quiet_until(&answer, means.clock.now());
        told.comes_again = answer.queued > 0 && quiet_until.is_none();
        if let Some(until) = quiet_until {
            told.quiet_until = Some(until);
            leave_alone(means, batch, until).await;
        }
    }
    Ok(told)
}

fn read(called: &Called) -> Result<SyncAnswer, String> {
    match &called.heard {
        Ok(answer) if Answer::is_success(answer) => SyncAnswer::read(&answer.body),
        Ok(answer) => Err(format!("status {}", answer.status)),
        Err(error) => Err(error.to_string()),
    }
}

/// Until when the client wants to be left alone, if that is still to come.
fn quiet_until(answer: &SyncAnswer, now: Time) -> Option<Time> {
    answer.next_sync_after.filter(|until| *until > now).map(|until| until.min(now.plus(QUIET_MAX)))
}

/// Tells all nodes. Where that fails only this one keeps to it, which is no reason to call again what was taken.
async fn leave_alone(means: &Means, batch: &Batch, until: Time) {
    let key = batch.key.clone();
    let change = DirectoryChange::QuietSubscriber(key.tenant, key.subscriber, until);
    if let Err(error) = means.store.change(change, None).await {
        tracing::warn!(%error, tenant = %batch.key.tenant, "that a client wants to be left alone could not be stored");
    }
}
