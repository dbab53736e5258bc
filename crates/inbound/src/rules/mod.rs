//! Rules: conditions, and what is done with a mail where all of them hold.
//!
//! [`check_rule`] says what is wrong with a rule before it is kept, [`try_rule`] what it would do with a mail. Routing and
//! the dry run ask the same [`RuleSet`] and get the same [`Plan`]: all that a rule wants is worked out first (captures,
//! contacts, addresses), so that a rule either applies as a whole or not at all, with the reason.

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
    rule::{FollowUp, Rule, RuleContent},
};

pub(crate) use self::plan::{Contacts, Plan, Planned, PlannedForward};
pub use self::{
    check::check_rule,
    trial::{Trial, try_rule},
};
use self::{condition::Ready, template::Captures};
use crate::mail::Mail;

/// Says to work on one mail that it has taken too long. Asked before each text that a condition compares: the work for one text is
/// bounded by what is compared of it and by what a pattern may be, the work for all of them is not.
#[derive(Clone, Default)]
pub(crate) struct WorkStop(Arc<AtomicBool>);

impl WorkStop {
    /// Stops the work.
    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops the work when what this gives is dropped: nobody waits for it any more.
    pub(crate) fn at_drop(&self) -> StopAtDrop<'_> {
        StopAtDrop(self)
    }
}

/// See [`WorkStop::at_drop`].
pub(crate) struct StopAtDrop<'s>(&'s WorkStop);

impl Drop for StopAtDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The rules of a mailbox that are asked, in order.
#[derive(Default)]
pub(crate) struct RuleSet {
    pub rules: Vec<ReadyRule>,
}

/// One rule, ready to be asked.
pub(crate) struct ReadyRule {
    pub id: RuleId,
    content: RuleContent,
    /// Its conditions; or why one of them cannot be asked. The API refuses such rules, but one may come from elsewhere.
    conditions: Result<Vec<Ready>, String>,
}

/// What a rule's conditions say of a mail.
pub(crate) struct Judged {
    /// Each condition: whether it holds, and why.
    pub conditions: Vec<(bool, String)>,
    pub captures: Captures,
}

impl Judged {
    /// Whether all hold.
    pub(crate) fn holds(&self) -> bool {
        self.conditions.iter().all(|(holds, _)| *holds)
    }
}

impl RuleSet {
    /// Of those that are active.
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let active = rules.into_iter().filter(|rule| rule.active);
        Self { rules: active.map(|rule| ReadyRule::new(rule.id, rule.content)).collect() }
    }

    /// How many conditions there are.
    pub(crate) fn conditions(&self) -> usize {
        self.rules.iter().map(|rule| rule.content.conditions.len()).sum()
    }

    /// Whether one of them has a pattern: a short text may take it long.
    pub(crate) fn has_patterns(&self) -> bool {
        let ready = self.rules.iter().filter_map(|rule| rule.conditions.as_ref().ok());
        ready.flatten().any(Ready::has_pattern)
    }

    /// The one of this name.
    pub(crate) fn get(&self, id: &RuleId) -> Option<&ReadyRule> {
        self.rules.iter().find(|rule| rule.id == *id)
    }
}

impl ReadyRule {
    pub(crate) fn new(id: RuleId, content: RuleContent) -> Self {
        let conditions =
            content.conditions.iter().map(|one| Ready::new(one).map_err(|error| error.to_string()));
        Self { id, conditions: conditions.collect(), content }
    }

    /// How what it forwards is followed up.
    pub(crate) fn follow_up(&self) -> Option<FollowUp> {
        self.content.follow_up
    }

    /// Asks all conditions, or says which cannot be asked.
    pub(crate) fn judge(&self, mail: &Mail<'_>, stop: &WorkStop) -> Result<Judged, String> {
        let ready = self.conditions.as_ref().map_err(|why| format!("a condition {why}"))?;
        let (mut captures, mut conditions) = (Captures::new(), Vec::with_capacity(ready.len()));
        for one in ready {
            conditions.push(one.ask(mail, &mut captures, stop));
            // What was asked while it was to stop has no answer.
            if stop.is_stopped() {
                return Err("asking the rules took too long".to_owned());
            }
        }
        Ok(Judged { conditions, captures })
    }
}
