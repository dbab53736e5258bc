//! The account of a message: the one that it names, else the one that the tenant's routes choose, else the
//! tenant's default. Pure; the routes were read when the settings were looked up.

use std::{ops::Deref, sync::Arc};

use postway_domain::{EmailAddress, MessageUid, route::RouteFacts};

use super::{check::MessageTerms, look_up::LookupResult};
use crate::{
    cache::settings_cache::{AccountLookup, SendingAccount, TenantProfile},
    refusal::{CAPTURES, CAPTURES_UNROUTED},
};

/// The account that sends a message.
#[derive(Debug)]
pub(crate) struct ChosenAccount {
    account: Arc<SendingAccount>,
    /// The part that routes had in the choice, as JSON.
    pub route: Option<String>,
}

impl Deref for ChosenAccount {
    type Target = SendingAccount;

    fn deref(&self) -> &SendingAccount {
        &self.account
    }
}

/// Chooses the account of a message. `given` is the account that it names or the tenant's default, or the
/// fault of that name; `by_routes` says that it names none. `facts` is asked only if the tenant has routes.
pub(crate) fn choose_account<'m>(
    given: AccountLookup,
    profile: &TenantProfile,
    by_routes: bool,
    facts: impl FnOnce() -> RouteFacts<'m>,
    uid: MessageUid,
) -> Result<ChosenAccount, String> {
    if !by_routes || profile.routes.is_empty() {
        return given.map(|account| ChosenAccount { account, route: None });
    }
    let decision = profile.routes.decide(&facts(), uid);
    match decision.account {
        Some(account) => Ok(ChosenAccount { account, route: decision.note }),
        None => match given {
            Ok(account) => Ok(ChosenAccount { account, route: decision.note }),
            Err(fault) if fault == CAPTURES => Err(CAPTURES_UNROUTED.to_owned()),
            Err(fault) => Err(fault),
        },
    }
}

impl LookupResult {
    /// Chooses the account of a message between these parties and on these terms.
    pub(crate) fn choose<'m>(
        &self,
        (from, to): (Option<&'m EmailAddress>, impl Iterator<Item = &'m EmailAddress>),
        terms: &'m MessageTerms,
        uid: MessageUid,
    ) -> Result<ChosenAccount, String> {
        let reads_recipients = self.profile.routes.reads_recipients;
        let facts = || RouteFacts {
            sender_domain: from.map(EmailAddress::domain),
            recipient_domains: match reads_recipients {
                true => to.map(EmailAddress::domain).collect(),
                false => Vec::new(),
            },
            tags: &terms.tags,
            batch: terms.batch.as_ref(),
            priority: terms.priority,
        };
        choose_account(self.account.clone(), &self.profile, self.by_routes, facts, uid)
    }
}
