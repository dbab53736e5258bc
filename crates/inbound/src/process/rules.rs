//! Applies rules: forwarding, tags, notifications, actions on the server, reminders.
//!
//! What a rule forwards is durable before anything else of the rule is done, and what an earlier try
//! forwarded is not forwarded again. Actions on the server come last and run elsewhere; if they fail, the
//! mail is tried again without forwarding.

use std::time::Duration;

use bytes::Bytes;
use postway_domain::{MessageUid, Time, id::RuleId, rule::FollowUpPlan};
use postway_intake::Refusal;
use postway_store::record::MailToProcess;
use serde_json::json;

use super::{
    conclusion::{MailProgress, MailVerdict, ProcessFailure},
    context::{MailboxContext, ProcessContext},
    imap_actions::ImapActions,
};
use crate::{
    forward::{ForwardFailure, ForwardShape, Forwarding},
    loop_guard,
    mail::ParsedMail,
    rules::{PlannedForward, ReadyRule, RulePlan, WorkStopSignal},
};

/// How long mail waits for its mailbox to have a rule: the mailbox is created before its rules.
const RULE_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How long the mail waits between two checks; a new rule wakes it.
const RULE_WAIT: Duration = Duration::from_secs(600);
/// How long mail waits between two checks whether its tenant has an account that sends.
const ACCOUNT_WAIT: Duration = Duration::from_secs(30);
const NO_RULE: &str = "the mailbox has no active rule: make one, or give it another role than forward";

/// Checks the rules in order and carries out those that apply.
pub(super) async fn apply(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
    raw: &Bytes,
    mut reasons: Vec<String>,
    stop: &WorkStopSignal,
    progress: &mut MailProgress,
) -> Result<MailVerdict, ProcessFailure> {
    if mailbox_context.rules.rules.is_empty() && reasons.is_empty() && !progress.notifies {
        return match context.clock.now().since(job.created_at) < RULE_WAIT_MAX {
            true => Err(ProcessFailure::Postponed { wait: RULE_WAIT, why: NO_RULE.to_owned() }),
            false => Ok(MailVerdict::NoMatch(NO_RULE.to_owned())),
        };
    }
    let mail = ParsedMail::new(raw);
    let (mut applied, mut actions, mut notifies) = (Vec::new(), ImapActions::default(), false);
    for rule in &mailbox_context.rules.rules {
        let contacts = (&*context.store, &mailbox_context.mailbox.tenant);
        let planned = match rule.plan(&mail, &contacts, stop).await? {
            RulePlan::Passes => continue,
            RulePlan::Unable(why) => {
                reasons.push(format!("rule {}: {why}", rule.id));
                continue;
            }
            RulePlan::Applies(planned) => planned,
        };
        if let Some(forward) = &planned.forward {
            match send(context, mailbox_context, job, &mail, rule, forward, None, progress).await? {
                Ok(_) => {}
                Err(why) => {
                    reasons.push(format!("rule {}: {why}", rule.id));
                    continue;
                }
            }
            if let (Some(follow_up), None) = (rule.follow_up(), &progress.follow_up) {
                progress.follow_up = next(rule, follow_up, job.reminders, context.clock.now());
            }
        }
        progress.tags.extend(planned.tags);
        notifies |= planned.notifies;
        // Mail from the reception is in no folder.
        if !mailbox_context.mailbox.settings.is_received() {
            actions.marks_seen |= planned.marks_seen;
            actions.moves_to = actions.moves_to.or(planned.moves_to);
        }
        progress.has_effect |= notifies || !progress.tags.is_empty();
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
        return Ok(MailVerdict::NoMatch(reasons.join("; ")));
    }
    progress.result.insert("rules".to_owned(), json!(applied));
    progress.tags.sort();
    progress.tags.dedup();
    progress.notifies |= notifies;
    Ok(if actions.is_empty() { MailVerdict::Routed } else { MailVerdict::ImapActions(actions) })
}

/// Forwards a mail, unless it was forwarded before; returns the reason if it must not be forwarded.
#[expect(clippy::too_many_arguments, reason = "each of them is what a forwarded mail is made of")]
async fn send(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
    mail: &ParsedMail<'_>,
    rule: &ReadyRule,
    planned: &PlannedForward,
    reminder: Option<i64>,
    progress: &mut MailProgress,
) -> Result<Result<MessageUid, String>, ProcessFailure> {
    if reminder.is_none()
        && let Some((_, uid)) = job.messages.iter().find(|(by, _)| *by == rule.id)
    {
        progress.has_effect = true;
        return Ok(Ok(*uid));
    }
    if let Some(why) = loop_guard::loops(mail, Some(&mailbox_context.marks)) {
        return Ok(Err(why));
    }
    let (mailbox, mark) = (&mailbox_context.mailbox, mailbox_context.marks.written());
    let shape = ForwardShape { mail, planned, mark, reminder };
    let forwarding = Forwarding { job, mailbox, rule: &rule.id, shape, trace: progress.trace };
    context.turns.wait(job).await;
    match forwarding.send(&context.door).await {
        Ok(uid) => {
            progress.messages.push((rule.id.clone(), uid));
            progress.has_effect = true;
            Ok(Ok(uid))
        }
        Err(ForwardFailure::Unable(why)) => Ok(Err(why)),
        // Nothing else is done before: a mail may be moved or deleted in its mailbox only after it has been
        // forwarded.
        Err(ForwardFailure::WouldCapture(why)) => {
            Err(ProcessFailure::Postponed { wait: ACCOUNT_WAIT, why: format!("rule {}: {why}", rule.id) })
        }
        Err(ForwardFailure::Refused(refusal)) => {
            let refusal = match refusal.into_store_error() {
                Ok(error) => return Err(error.into()),
                Err(refusal) => refusal,
            };
            let text = format!("rule {}: it could not be forwarded: {refusal}", rule.id);
            let can_help = !matches!(refusal, Refusal::TooLarge { .. });
            Err(if can_help { ProcessFailure::Failed(text) } else { ProcessFailure::Hopeless(text) })
        }
    }
}

/// Forwards a mail once more, because it was not marked as resolved.
pub(super) async fn remind(
    context: &ProcessContext,
    mailbox_context: &MailboxContext,
    job: &MailToProcess,
    raw: &Bytes,
    stop: &WorkStopSignal,
    progress: &mut MailProgress,
) -> Result<MailVerdict, ProcessFailure> {
    progress.has_effect = true;
    let rule = job.follow_up.as_ref().and_then(|id| mailbox_context.rules.get(id));
    let Some((rule, follow_up)) = rule.and_then(|rule| Some((rule, rule.follow_up()?))) else {
        return Ok(MailVerdict::RoutedBut("the rule that reminds of it is no more".to_owned()));
    };
    let nth = job.reminders + 1;
    if nth > i64::from(follow_up.times_max) {
        return Ok(MailVerdict::Routed);
    }
    // If this reminder fails, the next one is still due in its turn.
    progress.follow_up = next(rule, follow_up, nth, context.clock.now());
    progress.reminders = nth;
    let mail = ParsedMail::new(raw);
    let contacts = (&*context.store, &mailbox_context.mailbox.tenant);
    let unable = match rule.plan(&mail, &contacts, stop).await? {
        RulePlan::Applies(planned) => match &planned.forward {
            Some(forward) => {
                send(context, mailbox_context, job, &mail, rule, forward, Some(nth), progress).await?.err()
            }
            None => Some("the rule does not forward any more".to_owned()),
        },
        RulePlan::Passes => Some("its conditions do not hold any more".to_owned()),
        RulePlan::Unable(why) => Some(why),
    };
    Ok(match unable {
        None => MailVerdict::Routed,
        Some(why) => {
            progress.follow_up = None;
            MailVerdict::RoutedBut(format!("rule {}: no more reminders: {why}", rule.id))
        }
    })
}

/// When the next reminder is due, after `reminders` of them.
fn next(rule: &ReadyRule, follow_up: FollowUpPlan, reminders: i64, now: Time) -> Option<(RuleId, Time)> {
    let hours = u64::from(follow_up.every_hours.clamp(1, FollowUpPlan::HOURS_MAX));
    let at = now.plus(Duration::from_secs(hours * 3_600));
    (reminders < i64::from(follow_up.times_max)).then(|| (rule.id.clone(), at))
}
