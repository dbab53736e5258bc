//! Rules, applied: forwarding, tags, telling subscribers, errands on the server, reminders.
//!
//! What is sent is durable before anything else of a rule is done, and what was sent before, in an earlier try, is not sent
//! again. Errands come last and elsewhere; where they fail the mail is tried again without sending.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{MessageUid, Time, id::RuleId, rule::FollowUp};
use postway_intake::Refusal;
use postway_store::record::ToRoute;
use serde_json::json;

use super::{
    conclusion::{Progress, Trouble, Verdict},
    imap_actions::Errand,
    mail::{Desk, Means},
};
use crate::{
    forward::{ForwardShape, Forwarding, NotSent},
    loop_guard,
    mail::{Mail, Summary},
    rules::{Plan, PlannedForward, ReadyRule, WorkStop},
};

/// Attachments that subscribers are told of.
const NAMES_TOLD_MAX: usize = 50;

/// How long mail waits for its mailbox to have a rule: whoever sets one up makes the mailbox first.
const RULE_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How long it waits until somebody looks again; a new rule wakes it.
const RULE_WAIT: Duration = Duration::from_secs(600);
/// How long mail waits until somebody looks again whether its tenant has an account that sends.
const ACCOUNT_WAIT: Duration = Duration::from_secs(30);
const NO_RULE: &str = "the mailbox has no active rule: make one, or give it another role than forward";

/// Asks the rules in order and does what they want.
pub(super) async fn apply(
    means: &Means,
    desk: &Desk,
    job: &ToRoute,
    raw: &Bytes,
    mut reasons: Vec<String>,
    stop: &WorkStop,
    progress: &mut Progress,
) -> Result<Verdict, Trouble> {
    if desk.rules.rules.is_empty() && reasons.is_empty() {
        return match means.clock.now().since(job.created_at) < RULE_WAIT_MAX {
            true => Err(Trouble::Postponed { wait: RULE_WAIT, why: NO_RULE.to_owned() }),
            false => Ok(Verdict::NoMatch(NO_RULE.to_owned())),
        };
    }
    let mail = Mail::new(raw);
    let (mut applied, mut errand, mut tells) = (Vec::new(), Errand::default(), false);
    for rule in &desk.rules.rules {
        let contacts = (&*means.store, &desk.mailbox.tenant);
        let planned = match rule.plan(&mail, &contacts, stop).await? {
            Plan::Passes => continue,
            Plan::Unable(why) => {
                reasons.push(format!("rule {}: {why}", rule.id));
                continue;
            }
            Plan::Applies(planned) => planned,
        };
        if let Some(forward) = &planned.forward {
            match send(means, desk, job, &mail, rule, forward, None, progress).await? {
                Ok(_) => {}
                Err(why) => {
                    reasons.push(format!("rule {}: {why}", rule.id));
                    continue;
                }
            }
            if let (Some(follow_up), None) = (rule.follow_up(), &progress.follow_up) {
                progress.follow_up = next(rule, follow_up, job.reminders, means.clock.now());
            }
        }
        progress.tags.extend(planned.tags);
        tells |= planned.tells;
        errand.marks_seen |= planned.marks_seen;
        errand.moves_to = errand.moves_to.or(planned.moves_to);
        progress.has_effect |= tells || !progress.tags.is_empty();
        applied.push(rule.id.clone());
        if planned.stops {
            break;
        }
    }
    if !reasons.is_empty() {
        progress.result.insert("reasons".to_owned(), json!(reasons));
    }
    if applied.is_empty() {
        if reasons.is_empty() {
            reasons.push("no rule matched".to_owned());
        }
        return Ok(Verdict::NoMatch(reasons.join("; ")));
    }
    progress.result.insert("rules".to_owned(), json!(applied));
    progress.tags.sort();
    progress.tags.dedup();
    if tells {
        progress.received = Some(told(job, &mail, &progress.tags));
    }
    Ok(if errand.is_empty() { Verdict::Routed } else { Verdict::Errand(errand) })
}

/// Sends a mail on, unless it was sent before or must not be; why not.
#[expect(clippy::too_many_arguments, reason = "each of them is what a forwarded mail is made of")]
async fn send(
    means: &Means,
    desk: &Desk,
    job: &ToRoute,
    mail: &Mail<'_>,
    rule: &ReadyRule,
    planned: &PlannedForward,
    reminder: Option<i64>,
    progress: &mut Progress,
) -> Result<Result<MessageUid, String>, Trouble> {
    if reminder.is_none()
        && let Some((_, uid)) = job.messages.iter().find(|(by, _)| *by == rule.id)
    {
        progress.has_effect = true;
        return Ok(Ok(*uid));
    }
    if let Some(why) = loop_guard::loops(mail, Some(&desk.marks)) {
        return Ok(Err(why));
    }
    let (mailbox, mark) = (&desk.mailbox, desk.marks.written());
    let shape = ForwardShape { mail, planned, mark, reminder };
    let forwarding = Forwarding { job, mailbox, rule: &rule.id, shape };
    means.turns.wait(job).await;
    match forwarding.send(&means.door).await {
        Ok(uid) => {
            progress.messages.push((rule.id.clone(), uid));
            progress.has_effect = true;
            Ok(Ok(uid))
        }
        Err(NotSent::Unable(why)) => Ok(Err(why)),
        // Nothing is done with it before: a mail that is moved or deleted in its mailbox must have left.
        Err(NotSent::WouldCapture(why)) => {
            Err(Trouble::Postponed { wait: ACCOUNT_WAIT, why: format!("rule {}: {why}", rule.id) })
        }
        Err(NotSent::Refused(refusal)) => {
            let refusal = match refusal.into_store_error() {
                Ok(error) => return Err(error.into()),
                Err(refusal) => refusal,
            };
            let words = format!("rule {}: it could not be forwarded: {refusal}", rule.id);
            let can_help = !matches!(refusal, Refusal::TooLarge { .. });
            Err(if can_help { Trouble::Failed(words) } else { Trouble::Hopeless(words) })
        }
    }
}

/// Sends a mail on once more, because nobody has said that it is resolved.
pub(super) async fn remind(
    means: &Means,
    desk: &Desk,
    job: &ToRoute,
    raw: &Bytes,
    stop: &WorkStop,
    progress: &mut Progress,
) -> Result<Verdict, Trouble> {
    progress.has_effect = true;
    let rule = job.follow_up.as_ref().and_then(|id| desk.rules.get(id));
    let Some((rule, follow_up)) = rule.and_then(|rule| Some((rule, rule.follow_up()?))) else {
        return Ok(Verdict::RoutedBut("the rule that reminds of it is no more".to_owned()));
    };
    let nth = job.reminders + 1;
    if nth > i64::from(follow_up.times_max) {
        return Ok(Verdict::Routed);
    }
    // Where this one fails for good, the next one is still due in its turn.
    progress.follow_up = next(rule, follow_up, nth, means.clock.now());
    progress.reminders = nth;
    let mail = Mail::new(raw);
    let contacts = (&*means.store, &desk.mailbox.tenant);
    let unable = match rule.plan(&mail, &contacts, stop).await? {
        Plan::Applies(planned) => match &planned.forward {
            Some(forward) => send(means, desk, job, &mail, rule, forward, Some(nth), progress).await?.err(),
            None => Some("the rule does not forward any more".to_owned()),
        },
        Plan::Passes => Some("its conditions do not hold any more".to_owned()),
        Plan::Unable(why) => Some(why),
    };
    Ok(match unable {
        None => Verdict::Routed,
        Some(why) => {
            progress.follow_up = None;
            Verdict::RoutedBut(format!("rule {}: no more reminders: {why}", rule.id))
        }
    })
}

/// When the next reminder is due, after so many.
fn next(rule: &ReadyRule, follow_up: FollowUp, reminders: i64, now: Time) -> Option<(RuleId, Time)> {
    let hours = u64::from(follow_up.every_hours.clamp(1, FollowUp::HOURS_MAX));
    let at = now.plus(Duration::from_secs(hours * 3_600));
    (reminders < i64::from(follow_up.times_max)).then(|| (rule.id.clone(), at))
}

/// What subscribers are told of a mail.
fn told(job: &ToRoute, mail: &Mail<'_>, tags: &[String]) -> String {
    let Summary { sender, recipients, subject, message_id, dated_at } = Summary::of(mail);
    let attachments: Vec<&String> = mail.attached().names.iter().take(NAMES_TOLD_MAX).collect();
    json!({
        "id": job.uid,
        "mailbox": job.key.mailbox,
        "from": sender,
        "to": recipients,
        "subject": subject,
        "message_id": message_id,
        "date": dated_at,
        "received_at": job.arrived_at.unwrap_or(job.created_at),
        "size": mail.raw().len(),
        "tags": tags,
        "attachments": attachments,
    })
    .to_string()
}
