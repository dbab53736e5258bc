//! Rules: conditions, and what is done with a mail if all of them hold.
//!
//! [`check_rule`] says what is wrong with a rule before it is stored, [`try_rule`] what it would do with a
//! mail. Processing and the dry run use the same [`MailboxRuleSet`] and get the same [`RulePlan`]: captures,
//! contacts and addresses are resolved first, so that a rule either applies as a whole or not at all, with a
//! reason.

mod check;
mod condition;
mod plan;
mod template;
mod trial;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use postway_domain::{
    id::RuleId,
    rule::{FollowUpPlan, InboundRule, RuleContent},
};

pub(crate) use self::plan::{ContactLookup, PlannedActions, PlannedForward, RulePlan};
pub use self::{
    check::check_rule,
    trial::{RuleTrialResult, try_rule},
};
use self::{condition::ReadyCondition, template::Captures};
use crate::mail::ParsedMail;

/// Asks the work on one mail to stop, because it has taken too long. Checked before each text that a
/// condition compares: the work for one text is bounded by the limits of texts and patterns, the work for all
/// of them is not.
#[derive(Clone, Default)]
pub(crate) struct WorkStopSignal(Arc<AtomicBool>);

impl WorkStopSignal {
    /// Stops the work.
    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work must stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops the work when the returned guard is dropped, because no caller waits for it any more.
    pub(crate) fn stop_on_drop(&self) -> WorkStopGuard<'_> {
        WorkStopGuard(self)
    }
}

/// The guard of [`WorkStopSignal::stop_on_drop`].
pub(crate) struct WorkStopGuard<'s>(&'s WorkStopSignal);

impl Drop for WorkStopGuard<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The active rules of a mailbox, in order.
#[derive(Default)]
pub(crate) struct MailboxRuleSet {
    pub rules: Vec<ReadyRule>,
}

/// A rule that is ready to be checked.
pub(crate) struct ReadyRule {
    pub id: RuleId,
    content: RuleContent,
    /// Its conditions, or why one of them cannot be checked. The API refuses such rules, but they may come
    /// from elsewhere.
    conditions: Result<Vec<ReadyCondition>, String>,
}

/// The result of a rule's conditions for a mail.
pub(crate) struct JudgedConditions {
    /// For each condition, whether it holds, and why.
    pub conditions: Vec<(bool, String)>,
    pub captures: Captures,
}

impl JudgedConditions {
    /// Whether all hold.
    pub(crate) fn holds(&self) -> bool {
        self.conditions.iter().all(|(holds, _)| *holds)
    }
}

impl MailboxRuleSet {
    /// Prepares the active ones of these rules.
    pub(crate) fn new(rules: Vec<InboundRule>) -> Self {
        let active = rules.into_iter().filter(|rule| rule.active);
        Self { rules: active.map(|rule| ReadyRule::new(rule.id, rule.content)).collect() }
    }

    /// How many conditions there are.
    pub(crate) fn conditions(&self) -> usize {
        self.rules.iter().map(|rule| rule.content.conditions.len()).sum()
    }

    /// Whether any of them has a pattern: even a short text may take a pattern long.
    pub(crate) fn has_patterns(&self) -> bool {
        let ready = self.rules.iter().filter_map(|rule| rule.conditions.as_ref().ok());
        ready.flatten().any(ReadyCondition::has_pattern)
    }

    /// The rule with this id.
    pub(crate) fn get(&self, id: &RuleId) -> Option<&ReadyRule> {
        self.rules.iter().find(|rule| rule.id == *id)
    }
}

impl ReadyRule {
    pub(crate) fn new(id: RuleId, content: RuleContent) -> Self {
        let conditions =
            content.conditions.iter().map(|one| ReadyCondition::new(one).map_err(|error| error.to_string()));
        Self { id, conditions: conditions.collect(), content }
    }

    /// The reminders of what it forwards.
    pub(crate) fn follow_up(&self) -> Option<FollowUpPlan> {
        self.content.follow_up
    }

    /// Checks all conditions, or says which cannot be checked.
    pub(crate) fn judge(
        &self,
        mail: &ParsedMail<'_>,
        stop: &WorkStopSignal,
    ) -> Result<JudgedConditions, String> {
        let ready = self.conditions.as_ref().map_err(|why| format!("a condition {why}"))?;
        let (mut captures, mut conditions) = (Captures::new(), Vec::with_capacity(ready.len()));
        for one in ready {
            conditions.push(one.ask(mail, &mut captures, stop));
            // A result that was computed while the work had to stop means nothing.
            if stop.is_stopped() {
                return Err("asking the rules took too long".to_owned());
            }
        }
        Ok(JudgedConditions { conditions, captures })
    }
}
