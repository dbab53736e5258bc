//! Callbacks in the words of an outbox: `TRAVELING` when a message was sent, `DISPATCH-ERROR` with the reason when it will
//! not arrive.
//!
//! Messages that came to the same end for the same reason share a call. Any 2xx acknowledges; a 409, like everything else,
//! means to try again. The message's history tells of the calls, each before it is made: a process that dies in one leaves
//! its trace. That costs a write for each call, whatever the number of its messages.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{Event, EventKind, Status, Time};
use postway_store::{
    StoreError,
    record::{BegunCall, MessageBrief, Notified},
};
use serde::Serialize;

use super::{
    Means, STORE_AWAY,
    http_call::{self, LOGGED_BYTES_MAX, LOGGED_SHARED_BYTES_MAX},
    look_up,
    payload::{id_of, reason},
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

/// How long a call may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// The most messages of one call.
pub(crate) const MESSAGES_MAX: usize = 50;

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Code {
    /// The relay has it.
    #[serde(rename = "TRAVELING")]
    Traveling,
    /// It will not arrive.
    #[serde(rename = "DISPATCH-ERROR")]
    DispatchError,
}

#[derive(Serialize)]
struct Body<'a> {
    code: Code,
    /// When the latest of them came to its end.
    reached_at: Time,
    message_ids: &'a [String],
    reason: Option<&'a str>,
}

/// Messages that share a call.
struct Group<'l> {
    code: Code,
    reason: Option<String>,
    reached_at: Time,
    ids: Vec<String>,
    leased: Vec<&'l Leased>,
}

/// Tells the batch, one call for each group. After a call that failed the rest is not called: it would fail too.
pub(crate) async fn tell(means: &Means, batch: &Batch, reach: &Reach) -> Result<Told, StoreError> {
    let mut told = Told::uncalled(Vec::with_capacity(batch.leased.len()), None);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for leased in &batch.leased {
        let Some((standing, event)) = look_up(means, leased).await? else {
            told.notified.push(verdict(means, leased, without_message(leased), None));
            continue;
        };
        let record = &standing.brief;
        match code(record, event) {
            Some(code) => gather(&mut groups, leased, code, record, event),
            None => told.notified.push(verdict(means, leased, Verdict::Pointless, None)),
        }
    }
    for group in groups {
        let is_late = group.leased.iter().any(|leased| leased.until < means.clock.now().plus(TIMEOUT));
        if told.conduct == Conduct::Failed || is_late {
            let back = |leased: &&Leased| verdict(means, leased, Verdict::GivenBack, None);
            told.notified.extend(group.leased.iter().map(back));
            continue;
        }
        if let Some(group) = begin(means, group, &mut told).await {
            call_group(means, reach, &group, &mut told).await?;
        }
    }
    Ok(told)
}

/// Tells the histories that a group is about to be called. What others have claimed since is left to them; where it cannot be
/// told, all of it is left for later.
async fn begin<'l>(means: &Means, group: Group<'l>, told: &mut Told) -> Option<Group<'l>> {
    let at = means.clock.now();
    let begun = |leased: &&Leased| BegunCall { key: leased.job.key.clone(), token: leased.token, at };
    let held = match means.store.begin_calls(group.leased.iter().map(begun).collect()).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "a callback could not be written to the histories, so it is made later");
            told.quiet_until = told.quiet_until.max(Some(at.plus(STORE_AWAY)));
            vec![false; group.leased.len()]
        }
    };
    let (mut ids, mut leased) = (Vec::with_capacity(group.ids.len()), Vec::with_capacity(group.leased.len()));
    for ((id, one), held) in group.ids.into_iter().zip(group.leased).zip(held) {
        match held {
            true => {
                ids.push(id);
                leased.push(one);
            }
            false => told.notified.push(verdict(means, one, Verdict::GivenBack, None)),
        }
    }
    (!leased.is_empty()).then_some(Group { ids, leased, ..group })
}

fn gather<'l>(
    groups: &mut Vec<Group<'l>>,
    leased: &'l Leased,
    code: Code,
    record: &MessageBrief,
    event: &Event,
) {
    let reason = (code == Code::DispatchError).then(|| reason(record, event));
    let id = id_of(&record.summary);
    match groups.iter_mut().find(|group| group.code == code && group.reason == reason) {
        Some(group) => {
            group.reached_at = group.reached_at.max(event.at);
            group.ids.push(id);
            group.leased.push(leased);
        }
        None => {
            groups.push(Group { code, reason, reached_at: event.at, ids: vec![id], leased: vec![leased] })
        }
    }
}

async fn call_group(
    means: &Means,
    reach: &Reach,
    group: &Group<'_>,
    told: &mut Told,
) -> Result<(), StoreError> {
    let body = Body {
        code: group.code,
        reached_at: group.reached_at,
        message_ids: &group.ids,
        reason: group.reason.as_deref(),
    };
    let body = serde_json::to_string(&body).map_err(unwritable)?;
    let to = (&reach.url, &reach.auth);
    let sent = Bytes::copy_from_slice(body.as_bytes());
    let timeout = TIMEOUT.min(means.patience);
    let called = http_call::post(&means.http, &*means.clock, to, Vec::new(), sent, timeout).await;
    let is_taken = called.status().is_some_and(|status| (200..300).contains(&status));
    let reached = match is_taken {
        true => Verdict::Acknowledged,
        false => Verdict::Failed { asked: called.asked() },
    };
    let kept = if group.leased.len() > 1 { LOGGED_SHARED_BYTES_MAX } else { LOGGED_BYTES_MAX };
    let logged = called.logged(&body, kept);
    let now = means.clock.now();
    let write = |leased: &&Leased| -> Notified {
        leased.notified(reached, Some(logged.clone()), true, now, &mut rand::rng())
    };
    told.notified.extend(group.leased.iter().map(write));
    told.conduct = if is_taken { Conduct::Answered } else { Conduct::Failed };
    told.quiet_until = told.quiet_until.max(called.asked_for_quiet().map(|wait| called.at.plus(wait)));
    Ok(())
}

/// What an event means to the client; `None` where it means nothing to it.
fn code(record: &MessageBrief, event: &Event) -> Option<Code> {
    match event.kind {
        EventKind::Sent => Some(Code::Traveling),
        EventKind::Failed
        | EventKind::Invalid
        | EventKind::Expired
        | EventKind::Cancelled
        | EventKind::Suppressed
        | EventKind::Captured
        | EventKind::Bounced => Some(Code::DispatchError),
        EventKind::Resolved => match record.summary.state.status() {
            Status::Sent => Some(Code::Traveling),
            Status::Failed => Some(Code::DispatchError),
            _ => None,
        },
        _ => None,
    }
}
