//! The dry run of a rule: what it would do with a mail, and why.

use std::collections::BTreeMap;

use postway_domain::{
    TenantId,
    rule::{ForwardForm, RuleContent},
};
use postway_store::{Store, StoreError};
use serde_json::{Value, json};

use super::{Contacts, Plan, Planned, ReadyRule, WorkStop};
use crate::{forward::guard, mail::Mail};

/// What a rule would do with a mail.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Whether its conditions hold and it could be applied.
    pub matched: bool,
    /// Each condition in order: whether it holds, and why or why not.
    pub conditions: Vec<(bool, String)>,
    /// What its patterns captured.
    pub captures: BTreeMap<String, String>,
    /// What would be done, in the words of rules: `{"do": "forward", "to": […], "as": "redirect"}`.
    pub actions: Vec<Value>,
    /// Why it would not be applied although its conditions hold.
    pub reason: Option<String>,
}

/// Tries a rule on a mail. Nothing is sent and nothing is written.
pub async fn try_rule(
    store: &dyn Store,
    tenant: &TenantId,
    content: &RuleContent,
    raw: &[u8],
) -> Result<Trial, StoreError> {
    attempt(&(store, tenant), content, raw).await
}

async fn attempt(contacts: &dyn Contacts, content: &RuleContent, raw: &[u8]) -> Result<Trial, StoreError> {
    let mail = Mail::new(raw);
    let unnamed = "trial"
        .parse()
        .map_err(|error: postway_domain::id::IdError| StoreError::Unexpected(error.to_string()))?;
    let rule = ReadyRule::new(unnamed, content.clone());
    let unable = |conditions, captures, reason| Trial {
        matched: false,
        conditions,
        captures,
        actions: Vec::new(),
        reason: Some(reason),
    };
    let judged = match rule.judge(&mail, &WorkStop::default()) {
        Ok(judged) => judged,
        Err(why) => return Ok(unable(Vec::new(), BTreeMap::new(), why)),
    };
    let plan = rule.plan_judged(&judged, contacts).await?;
    let (conditions, captures) = (judged.conditions, judged.captures);
    Ok(match plan {
        Plan::Passes => Trial { matched: false, conditions, captures, actions: Vec::new(), reason: None },
        Plan::Unable(why) => unable(conditions, captures, why),
        Plan::Applies(planned) => match planned.forward.as_ref().and_then(|_| guard::loops(&mail, None)) {
            Some(why) => unable(conditions, captures, why),
            None => Trial { matched: true, conditions, captures, actions: told(&planned), reason: None },
        },
    })
}

fn told(planned: &Planned) -> Vec<Value> {
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
    if planned.tells {
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

    struct Book;

    #[async_trait]
    impl Contacts for Book {
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

    async fn tried(rule: Value, raw: &str) -> Trial {
        attempt(&Book, &serde_json::from_value(rule).unwrap(), raw.as_bytes()).await.unwrap()
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
}
