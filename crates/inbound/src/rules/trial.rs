//! The dry run of a rule: what it would do with a mail, and why.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use postway_domain::{
    TenantId,
    id::{InvalidIdentifier, RuleId},
    rule::{ForwardForm, RuleContent},
};
use postway_store::{Store, StoreError};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ContactLookup, JudgedConditions, PlannedActions, ReadyRule, RulePlan, WorkStopSignal};
use crate::{loop_guard, mail::ParsedMail};

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleTrialResult {
    /// Whether its conditions hold and it could be applied.
    pub matched: bool,
    /// For each condition in order, whether it holds and why.
    pub conditions: Vec<(bool, String)>,
    /// The captures of its patterns.
    pub captures: BTreeMap<String, String>,
    /// What would be done, in the vocabulary of rules: `{"do": "forward", "to": […], "as": "redirect"}`.
    pub actions: Vec<Value>,
    /// Why the rule would not be applied although its conditions hold.
    pub reason: Option<String>,
}

/// How long checking a rule's conditions may take.
const TRIAL_MAX: Duration = Duration::from_secs(20);

/// What a thread works out about a rule and a mail.
struct TrialJudgement {
    rule: ReadyRule,
    judged: Result<JudgedConditions, String>,
    /// Why the mail would not be forwarded.
    looping: Option<String>,
}

/// Tries a rule on a mail. Nothing is sent and nothing is written.
///
/// The conditions are checked on a thread of their own, which keeps the mail's bytes until it has ended. It
/// is asked to stop when its time is over or the caller is gone.
pub async fn try_rule(
    store: &dyn Store,
    tenant: &TenantId,
    content: &RuleContent,
    raw: Bytes,
) -> Result<RuleTrialResult, StoreError> {
    attempt(&(store, tenant), content, raw, TRIAL_MAX).await
}

async fn attempt(
    contacts: &dyn ContactLookup,
    content: &RuleContent,
    raw: Bytes,
    within: Duration,
) -> Result<RuleTrialResult, StoreError> {
    let unable = |conditions, captures, reason| RuleTrialResult {
        matched: false,
        conditions,
        captures,
        actions: Vec::new(),
        reason: Some(reason),
    };
    let unjudged = |reason| Ok(unable(Vec::new(), BTreeMap::new(), reason));
    let TrialJudgement { rule, judged, looping } = match judge(content, raw, within).await {
        Ok(judgement) => judgement,
        Err(why) => return unjudged(why),
    };
    let judged = match judged {
        Ok(judged) => judged,
        Err(why) => return unjudged(why),
    };
    let plan = rule.plan_judged(&judged, contacts).await?;
    let (conditions, captures) = (judged.conditions, judged.captures);
    Ok(match plan {
        RulePlan::Passes => {
            RuleTrialResult { matched: false, conditions, captures, actions: Vec::new(), reason: None }
        }
        RulePlan::Unable(why) => unable(conditions, captures, why),
        RulePlan::Applies(planned) => match looping.filter(|_| planned.forward.is_some()) {
            Some(why) => unable(conditions, captures, why),
            None => RuleTrialResult {
                matched: true,
                conditions,
                captures,
                actions: planned_json(&planned),
                reason: None,
            },
        },
    })
}

async fn judge(content: &RuleContent, raw: Bytes, within: Duration) -> Result<TrialJudgement, String> {
    let unnamed: RuleId = "trial".parse().map_err(|error: InvalidIdentifier| error.to_string())?;
    let (content, stop) = (content.clone(), WorkStopSignal::default());
    let asked = stop.clone();
    let thread = tokio::task::spawn_blocking(move || {
        let rule = ReadyRule::new(unnamed, content);
        let mail = ParsedMail::new(&raw);
        let judged = rule.judge(&mail, &asked);
        TrialJudgement { judged, looping: loop_guard::loops(&mail, None), rule }
    });
    let _stopped = stop.stop_on_drop();
    match timeout(within, thread).await {
        Ok(Ok(judgement)) => Ok(judgement),
        Ok(Err(_)) => Err("trying it failed inside Postway: see the log for the time".to_owned()),
        Err(_) => Err(format!("asking its conditions took longer than {} s", within.as_secs())),
    }
}

fn planned_json(planned: &PlannedActions) -> Vec<Value> {
    let mut actions = Vec::new();
    if let Some(forward) = &planned.forward {
        let to: Vec<_> = forward.to.iter().map(ToString::to_string).collect();
        let form = match forward.form {
            ForwardForm::Redirect => "redirect",
            ForwardForm::Attachment => "attachment",
            ForwardForm::Compose => "compose",
        };
        actions.push(json!({"do": "forward", "to": to, "as": form}));
    }
    actions.extend(planned.tags.iter().map(|tag| json!({"do": "tag", "tag": tag})));
    if planned.notifies {
        actions.push(json!({"do": "webhook"}));
    }
    if planned.marks_seen {
        actions.push(json!({"do": "mark_seen"}));
    }
    if let Some(folder) = &planned.moves_to {
        actions.push(json!({"do": "move", "folder": folder}));
    }
    if planned.stops {
        actions.push(json!({"do": "stop"}));
    }
    actions
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    struct ContactBook;

    #[async_trait]
    impl ContactLookup for ContactBook {
        async fn addresses(&self, name: &str) -> Result<Option<Vec<String>>, StoreError> {
            Ok(match name {
                "ACME" => {
                    Some(vec!["a@acme.example".into(), "b@acme.example".into(), "a@acme.example".into()])
                }
                "Empty" => Some(Vec::new()),
                _ => None,
            })
        }
    }

    async fn tried(rule: Value, raw: &str) -> RuleTrialResult {
        let raw = Bytes::copy_from_slice(raw.as_bytes());
        attempt(&ContactBook, &serde_json::from_value(rule).unwrap(), raw, TRIAL_MAX).await.unwrap()
    }

    fn lookup() -> Value {
        json!({
            "match": [{"field": "subject", "regex": "for (?<who>\\w+)"}],
            "actions": [{"do": "forward", "contact": "{who}", "as": "redirect"}, {"do": "tag", "tag": "of-{who}"}, {"do": "stop"}]
        })
    }

    #[tokio::test]
    async fn a_capture_is_looked_up_and_what_would_be_done_is_told() {
        let trial = tried(lookup(), "Subject: order for ACME\n\n").await;
        assert!(trial.matched);
        assert_eq!(trial.captures["who"], "ACME");
        assert_eq!(
            Value::from(trial.actions),
            json!([
                {"do": "forward", "to": ["a@acme.example", "b@acme.example"], "as": "redirect"},
                {"do": "tag", "tag": "of-ACME"}, {"do": "stop"}
            ])
        );
    }

    #[tokio::test]
    async fn a_lookup_that_finds_nobody_is_a_reason_and_no_match() {
        for (subject, reason) in [("for Nobody", "no contact named"), ("for Empty", "has no address")] {
            let trial = tried(lookup(), &format!("Subject: {subject}\n\n")).await;
            assert!(!trial.matched && trial.conditions[0].0);
            assert!(trial.reason.unwrap().contains(reason));
        }
        let trial = tried(lookup(), "Subject: none\n\n").await;
        assert!(!trial.matched && !trial.conditions[0].0 && trial.reason.is_none());
    }

    #[tokio::test]
    async fn an_automatic_mail_is_not_forwarded_in_a_dry_run_either() {
        let trial = tried(lookup(), "Subject: order for ACME\nAuto-Submitted: auto-replied\n\n").await;
        assert!(trial.reason.unwrap().starts_with("loop guard: "));
    }

    /// Bytes that signal when their last handle is dropped.
    struct WatchedBytes(Vec<u8>, std::sync::mpsc::Sender<()>);

    impl AsRef<[u8]> for WatchedBytes {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for WatchedBytes {
        fn drop(&mut self) {
            let _ = self.1.send(());
        }
    }

    #[tokio::test]
    async fn a_trial_ends_in_time_keeps_nobody_waiting_and_its_mail_until_its_thread_has_ended() {
        // Each of these conditions takes a while for each person, and the header has as many people as it may
        // have.
        let pattern = r"(?-u)^(?:a?b?c?d?){100}z$";
        let conditions = vec![json!({"field": "to", "regex": pattern}); 50];
        let rule = serde_json::from_value(json!({"match": conditions, "actions": [{"do": "stop"}]})).unwrap();
        let people = format!("\"{}\" <a@example.org>, ", "abcd".repeat(60)).repeat(110);
        let (ended, has_ended) = std::sync::mpsc::channel();
        let raw =
            Bytes::from_owner(WatchedBytes(format!("To: {people}b@example.org\n\n").into_bytes(), ended));
        // The runtime has one thread, and that is free: the deadline is noticed.
        let trial = attempt(&ContactBook, &rule, raw, Duration::from_millis(50)).await.unwrap();
        assert!(!trial.matched && trial.reason.unwrap().contains("took longer than"));
        let ended = tokio::task::spawn_blocking(move || has_ended.recv_timeout(Duration::from_secs(30)));
        assert_eq!(ended.await.unwrap(), Ok(()), "it was asked to stop, and did");
    }
}
