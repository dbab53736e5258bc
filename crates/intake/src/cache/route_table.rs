//! A tenant's active routes, ready to choose an account: with the accounts that they name, and whether each
//! can send now.
//!
//! The table is read with the tenant's settings and as old as they are, at most a second. A choice compares
//! words and allocates only for what it says. An account that is suspended, at fault or at its limit is left
//! out as long as another account of the route can send; an account that is gone is always left out. A route
//! whose accounts are all gone is passed over, so that no mail is lost: the next route decides, or the
//! tenant's default account.

use std::{fmt::Write as _, sync::Arc};

use postway_domain::{
    Account, AccountId, MailRoute, MessageUid, TenantId, Time,
    id::RouteId,
    route::{RouteCondition, RouteFacts, choose_by_weight},
};
use postway_store::{
    Store, StoreError,
    record::{AccountKey, SuspensionScope},
};

use super::settings_cache::SendingAccount;

/// The active routes of a tenant, in their order.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    routes: Vec<PlannedRoute>,
    /// Whether one of them compares the domains of recipients.
    pub reads_recipients: bool,
}

/// A route and the accounts that exist of those it names.
#[derive(Debug)]
pub(crate) struct PlannedRoute {
    pub route: MailRoute,
    pub targets: Vec<PlannedTarget>,
    /// The accounts that are gone.
    pub missing: Vec<AccountId>,
}

/// An account of a route.
#[derive(Debug)]
pub(crate) struct PlannedTarget {
    pub account: Arc<SendingAccount>,
    pub weight: u32,
    /// Why it cannot send now: `suspended`, `circuit` or `limit`.
    pub held_by: Option<&'static str>,
}

/// What the routes say of a message.
#[derive(Debug, Default)]
pub(crate) struct RouteDecision {
    /// The account, if a route matches.
    pub account: Option<Arc<SendingAccount>>,
    /// What to record of the choice, as JSON; `None` if no route had a part in it.
    pub note: Option<String>,
}

impl RouteTable {
    /// Reads a tenant's routes, and the state of the accounts that they name.
    pub(crate) async fn read(store: &dyn Store, tenant: &TenantId, now: Time) -> Result<Self, StoreError> {
        let mut routes = store.routes(tenant).await?;
        routes.retain(|route| route.active);
        if routes.is_empty() {
            return Ok(Self::default());
        }
        let accounts = store.accounts(Some(tenant)).await?;
        // Whether an account can send matters only where there is another one.
        let is_choice = routes.iter().any(|route| route.content.accounts.len() > 1);
        let standing = match is_choice {
            true => AccountStanding::read(store, tenant, &accounts, &routes, now).await?,
            false => AccountStanding::default(),
        };
        Ok(Self::plan(routes, &accounts, &standing))
    }

    /// The table of these routes, active and in their order.
    fn plan(routes: Vec<MailRoute>, accounts: &[Account], standing: &AccountStanding) -> Self {
        let reads_recipients =
            routes.iter().any(|route| !route.content.conditions.recipient_domains.is_empty());
        let find = |id: &AccountId| accounts.iter().find(|account| account.id == *id);
        let planned = |route: MailRoute| {
            let (mut targets, mut missing) = (Vec::new(), Vec::new());
            for target in &route.content.accounts {
                match find(&target.account) {
                    Some(account) => targets.push(PlannedTarget {
                        account: Arc::new(SendingAccount::chosen(account, find)),
                        weight: target.weight,
                        held_by: standing.held_by(&account.id),
                    }),
                    None => missing.push(target.account.clone()),
                }
            }
            PlannedRoute { route, targets, missing }
        };
        Self { routes: routes.into_iter().map(planned).collect(), reads_recipients }
    }

    /// Whether the tenant has no active routes.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The routes in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PlannedRoute> {
        self.routes.iter()
    }

    /// The account that the first matching route chooses for this message.
    pub(crate) fn decide(&self, facts: &RouteFacts<'_>, uid: MessageUid) -> RouteDecision {
        let mut passed_over: Vec<&RouteId> = Vec::new();
        for planned in &self.routes {
            if !planned.route.content.conditions.match_all(facts) {
                continue;
            }
            match planned.choose(uid) {
                Some((target, left_out)) => {
                    let note = planned.note(target, &left_out, &passed_over);
                    return RouteDecision { account: Some(Arc::clone(&target.account)), note: Some(note) };
                }
                None => passed_over.push(&planned.route.id),
            }
        }
        let note = (!passed_over.is_empty()).then(|| format!("{{{}}}", names("passed_over", &passed_over)));
        RouteDecision { account: None, note }
    }
}

impl PlannedRoute {
    /// The account for this message, and those that would have got it if they could send. If none can, the
    /// first choice waits. `None` if all accounts are gone.
    fn choose(&self, uid: MessageUid) -> Option<(&PlannedTarget, Vec<&PlannedTarget>)> {
        if let [only] = self.targets.as_slice() {
            return Some((only, Vec::new()));
        }
        let mut open: Vec<&PlannedTarget> = self.targets.iter().collect();
        let mut left_out = Vec::new();
        loop {
            let weights: Vec<u32> = open.iter().map(|target| target.weight).collect();
            let Some(place) = choose_by_weight(&weights, uid, left_out.len() as u64) else {
                return Some((*left_out.first()?, Vec::new()));
            };
            match open[place].held_by {
                None => return Some((open[place], left_out)),
                Some(_) => left_out.push(open.remove(place)),
            }
        }
    }

    /// What is recorded with the message. Ids need no escaping in JSON.
    fn note(&self, chosen: &PlannedTarget, left_out: &[&PlannedTarget], passed_over: &[&RouteId]) -> String {
        let because: Vec<&str> = self.route.content.conditions.set().map(RouteCondition::as_str).collect();
        let mut note = format!(
            "{{\"id\":\"{}\",\"account\":\"{}\",\"accounts\":{},{}",
            self.route.id,
            chosen.account.id,
            self.targets.len(),
            names("because", &because),
        );
        if let Some(held_by) = chosen.held_by.filter(|_| self.targets.len() > 1) {
            // Writing to a String does not fail.
            let _ = write!(note, ",\"waits_for\":\"{held_by}\"");
        }
        if !left_out.is_empty() {
            let held: Vec<String> = left_out
                .iter()
                .map(|one| format!("{}:{}", one.held_by.unwrap_or_default(), one.account.id))
                .collect();
            let _ = write!(note, ",{}", names("left_out", &held));
        }
        if !passed_over.is_empty() {
            let _ = write!(note, ",{}", names("passed_over", passed_over));
        }
        note.push('}');
        note
    }
}

/// A member of a JSON object: a list of words that need no escaping.
fn names(name: &str, words: &[impl std::fmt::Display]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("\"{name}\":[{}]", words.join(","))
}

/// Which accounts of a tenant cannot send now, and why.
#[derive(Debug, Default)]
struct AccountStanding(Vec<(AccountId, &'static str)>);

impl AccountStanding {
    async fn read(
        store: &dyn Store,
        tenant: &TenantId,
        accounts: &[Account],
        routes: &[MailRoute],
        now: Time,
    ) -> Result<Self, StoreError> {
        let mut held = Vec::new();
        for suspension in store.suspensions(tenant).await? {
            if let SuspensionScope::Account(id) = suspension.scope {
                held.push((id, "suspended"));
            }
        }
        // When its time is over, an account gets mail again: one message must try it.
        let circuits = store.circuits(Some(tenant)).await?.into_iter();
        held.extend(
            circuits
                .filter(|circuit| circuit.open_until > now)
                .map(|circuit| (circuit.key.account, "circuit")),
        );
        let is_named = |id: &AccountId| {
            let mut targets = routes.iter().flat_map(|route| &route.content.accounts);
            targets.any(|target| target.account == *id)
        };
        for account in accounts.iter().filter(|account| is_named(&account.id)) {
            let limits = account.settings.effective_limits(now);
            if limits.is_unlimited() {
                continue;
            }
            let key = AccountKey { tenant: tenant.clone(), account: account.id.clone() };
            let used = store.used(&key, &limits, now).await?;
            let of = |span| used.iter().find(|(of, _)| *of == span).map_or(0, |(_, used)| used.count);
            if limits.left(of) == 0 {
                held.push((account.id.clone(), "limit"));
            }
        }
        Ok(Self(held))
    }

    fn held_by(&self, id: &AccountId) -> Option<&'static str> {
        self.0.iter().find(|(held, _)| held == id).map(|(_, why)| *why)
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::{
        AccountSettings,
        route::{RouteConditions, RouteContent, RouteTarget},
    };

    use super::*;

    fn account(id: &str) -> Account {
        Account {
            tenant: "default".parse().unwrap(),
            id: id.parse().unwrap(),
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: Time::from_millis(0),
            updated_at: Time::from_millis(0),
        }
    }

    fn route(id: &str, conditions: &str, accounts: &[(&str, u32)]) -> MailRoute {
        let target = |(account, weight): &(&str, u32)| RouteTarget {
            account: account.parse().unwrap(),
            weight: *weight,
        };
        MailRoute {
            tenant: "default".parse().unwrap(),
            id: id.parse().unwrap(),
            position: 1,
            active: true,
            content: RouteContent {
                description: None,
                conditions: serde_json::from_str::<RouteConditions>(conditions).unwrap(),
                accounts: accounts.iter().map(target).collect(),
            },
            version: 1,
            created_at: Time::from_millis(0),
            updated_at: Time::from_millis(0),
        }
    }

    fn table(routes: Vec<MailRoute>, held: &[(&str, &'static str)]) -> RouteTable {
        let accounts = ["a", "b", "c"].map(account);
        let held = held.iter().map(|(id, why)| (id.parse().unwrap(), *why)).collect();
        RouteTable::plan(routes, &accounts, &AccountStanding(held))
    }

    fn uid(number: u128) -> MessageUid {
        MessageUid::from_bytes(number.to_be_bytes())
    }

    fn chosen(table: &RouteTable, number: u128) -> (Option<String>, Option<serde_json::Value>) {
        let RouteDecision { account, note } = table.decide(&RouteFacts::default(), uid(number));
        let note = note.map(|note| serde_json::from_str(&note).unwrap());
        (account.map(|account| account.id.to_string()), note)
    }

    #[test]
    fn an_account_that_cannot_send_is_left_out_and_named() {
        let routes = || vec![route("all", "{}", &[("a", 1), ("b", 1)])];
        let free = table(routes(), &[]);
        let half = table(routes(), &[("a", "circuit")]);
        let mut moved = 0;
        for number in 0..200 {
            let (was, _) = chosen(&free, number);
            let (now, note) = chosen(&half, number);
            assert_eq!(now.as_deref(), Some("b"));
            let left_out = note.unwrap().get("left_out").cloned();
            match was.as_deref() {
                Some("a") => {
                    assert_eq!(left_out, Some(serde_json::json!(["circuit:a"])));
                    moved += 1;
                }
                _ => assert_eq!(left_out, None, "it was the first choice"),
            }
        }
        assert!((60..140).contains(&moved), "{moved}");
    }

    #[test]
    fn if_no_account_can_send_the_first_choice_waits() {
        let routes = || vec![route("all", "{}", &[("a", 1), ("b", 1), ("c", 1)])];
        let free = table(routes(), &[]);
        let held = table(routes(), &[("a", "limit"), ("b", "suspended"), ("c", "circuit")]);
        for number in 0..50 {
            let (first, _) = chosen(&free, number);
            let (waits, note) = chosen(&held, number);
            assert_eq!(waits, first);
            assert!(note.unwrap()["waits_for"].is_string());
        }
    }

    #[test]
    fn a_route_whose_accounts_are_gone_is_passed_over_and_named() {
        let gone = || route("old", "{}", &[("gone", 1)]);
        let table_of = |routes| table(routes, &[]);
        let (account, note) = chosen(&table_of(vec![gone(), route("new", "{}", &[("a", 1)])]), 1);
        assert_eq!(account.as_deref(), Some("a"));
        assert_eq!(note.unwrap()["passed_over"], serde_json::json!(["old"]));
        let (account, note) = chosen(&table_of(vec![gone()]), 1);
        assert_eq!((account, note), (None, Some(serde_json::json!({"passed_over": ["old"]}))));
        let (account, note) = chosen(&table_of(vec![route("mixed", "{}", &[("gone", 9), ("b", 1)])]), 1);
        assert_eq!((account.as_deref(), note.unwrap()["accounts"].as_i64()), (Some("b"), Some(1)));
    }

    #[test]
    fn weight_zero_gets_mail_only_if_it_is_alone() {
        let of = |accounts: &[(&str, u32)]| table(vec![route("r", "{}", accounts)], &[]);
        let two = of(&[("a", 0), ("b", 1)]);
        assert!((0..50).all(|number| chosen(&two, number).0.as_deref() == Some("b")));
        assert_eq!(chosen(&of(&[("a", 0)]), 1).0.as_deref(), Some("a"));
    }

    #[test]
    fn what_is_not_matched_is_not_noted() {
        let table = table(vec![route("r", r#"{"tags":["x"]}"#, &[("a", 1)])], &[]);
        assert_eq!(chosen(&table, 1), (None, None));
    }
}
