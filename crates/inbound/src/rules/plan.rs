//! The plan of a rule for a mail, made before anything is done.

use async_trait::async_trait;
use postway_domain::{
    AccountId, Contact, NamedAddress, TenantId,
    message::OnDoubt,
    rule::{ForwardAction, ForwardForm, RuleAction},
};
use postway_store::{Store, StoreError};

use super::{
    JudgedConditions, ReadyRule, WorkStopSignal,
    check::TAG_BYTES_MAX,
    template::{Captures, fill},
};
use crate::mail::{ParsedMail, bounded};

/// The most recipients of one forwarded mail.
const RECIPIENTS_MAX: usize = 200;

/// Looks contacts up by name.
#[async_trait]
pub(crate) trait ContactLookup: Sync {
    /// The addresses of the contact with this name; `None` if there is no such contact.
    async fn addresses(&self, name: &str) -> Result<Option<Vec<String>>, StoreError>;
}

#[async_trait]
impl ContactLookup for (&dyn Store, &TenantId) {
    async fn addresses(&self, name: &str) -> Result<Option<Vec<String>>, StoreError> {
        let found = self.0.contact_named(self.1, name).await?;
        Ok(found.map(|contact: Contact| contact.addresses))
    }
}

/// Whether a rule applies.
pub(crate) enum RulePlan {
    /// Its conditions hold, and this is to be done.
    Applies(PlannedActions),
    /// Its conditions hold, but it cannot be done, for this reason.
    Unable(String),
    /// Its conditions do not hold.
    Passes,
}

/// The actions to carry out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedActions {
    pub forward: Option<PlannedForward>,
    pub tags: Vec<String>,
    pub notifies: bool,
    pub marks_seen: bool,
    pub moves_to: Option<String>,
    pub stops: bool,
}

/// The recipients of a forwarded mail, and its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedForward {
    pub to: Vec<NamedAddress>,
    pub form: ForwardForm,
    pub from: Option<NamedAddress>,
    pub account: Option<AccountId>,
    pub on_doubt: Option<OnDoubt>,
}

impl ReadyRule {
    /// Plans what the rule does with a mail.
    pub(crate) async fn plan(
        &self,
        mail: &ParsedMail<'_>,
        contacts: &dyn ContactLookup,
        stop: &WorkStopSignal,
    ) -> Result<RulePlan, StoreError> {
        match self.judge(mail, stop) {
            Err(why) => Ok(RulePlan::Unable(why)),
            Ok(judged) => self.plan_judged(&judged, contacts).await,
        }
    }

    pub(super) async fn plan_judged(
        &self,
        judged: &JudgedConditions,
        contacts: &dyn ContactLookup,
    ) -> Result<RulePlan, StoreError> {
        if !judged.holds() {
            return Ok(RulePlan::Passes);
        }
        let mut planned = PlannedActions::default();
        for action in &self.content.actions {
            match action {
                RuleAction::Forward(forward) if planned.forward.is_none() => {
                    match address(forward, &judged.captures, contacts).await? {
                        Ok(forward) => planned.forward = Some(forward),
                        Err(why) => return Ok(RulePlan::Unable(why)),
                    }
                }
                // A rule sends one message; the API refuses a second forward.
                RuleAction::Forward(_) => {}
                RuleAction::Tag { tag } => match fill(tag, &judged.captures) {
                    Ok(tag) => planned.tags.push(bounded(&tag.replace(char::is_control, " "), TAG_BYTES_MAX)),
                    Err(error) => return Ok(RulePlan::Unable(error.to_string())),
                },
                RuleAction::Webhook => planned.notifies = true,
                RuleAction::MarkSeen => planned.marks_seen = true,
                RuleAction::Move { folder } => planned.moves_to = Some(folder.clone()),
                RuleAction::Stop => planned.stops = true,
            }
        }
        Ok(RulePlan::Applies(planned))
    }
}

/// Resolves the recipients of a forwarded mail, or says why there are none.
async fn address(
    forward: &ForwardAction,
    captures: &Captures,
    contacts: &dyn ContactLookup,
) -> Result<Result<PlannedForward, String>, StoreError> {
    let mut texts = Vec::new();
    for to in &forward.to {
        match fill(to, captures) {
            Ok(text) => texts.push(text),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    if let Some(contact) = &forward.contact {
        let name = match fill(contact, captures) {
            Ok(name) => name,
            Err(error) => return Ok(Err(error.to_string())),
        };
        match contacts.addresses(&name).await? {
            None => return Ok(Err(format!("there is no contact named {:?}", bounded(&name, 100)))),
            Some(addresses) if addresses.is_empty() => {
                return Ok(Err(format!("the contact {:?} has no address", bounded(&name, 100))));
            }
            Some(addresses) => texts.extend(addresses),
        }
    }
    let mut to: Vec<NamedAddress> = Vec::new();
    for text in texts.iter().take(RECIPIENTS_MAX) {
        match text.parse::<NamedAddress>() {
            Ok(mailbox) if to.iter().any(|known| known.address() == mailbox.address()) => {}
            Ok(mailbox) => to.push(mailbox),
            Err(error) => {
                return Ok(Err(format!("{:?} cannot be forwarded to: {error}", bounded(text, 100))));
            }
        }
    }
    if to.is_empty() {
        return Ok(Err("there is nobody to forward to".to_owned()));
    }
    let from = match forward.from.as_deref().map(str::parse::<NamedAddress>).transpose() {
        Ok(from) => from,
        Err(error) => return Ok(Err(format!("cannot be sent on in that name: {error}"))),
    };
    let ForwardAction { form, ref account, on_doubt, .. } = *forward;
    Ok(Ok(PlannedForward { to, form, from, account: account.clone(), on_doubt }))
}
