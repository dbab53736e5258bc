//! The queue, accounts and mailboxes of each tenant, and the outbox sources. Webhooks are in `webhooks`.
//!
//! Each is judged by its state in the server; accounts and mailboxes are also tested. The judging functions
//! are pure.

use futures::{StreamExt as _, stream};
use postway_domain::{AccountKind, Clock as _, HookProvider};
use reqwest::Method;
use serde_json::Value;

use super::captured::judge_sandbox;
use super::server::{CheckedTenant, ReachedServer};
use super::{CheckupFinding, CheckupState, TOGETHER, within};
use crate::cli::amount::span;
use crate::cli::client::RequestBody;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};
use crate::cluster::clock::NodeClock;
use crate::doctor::{if_guarded, judge_mailbox};

/// Accounts, mailboxes and webhooks that are looked at, of each kind.
const THINGS_MAX: usize = 100;
/// Mail that is due for longer is a warning, and for this long a problem.
const DUE_S: (u64, u64) = (300, 3_600);
/// Dead letters that are counted.
const DEAD_LETTERS_MAX: usize = 100;
/// Tenants without bounds that are named.
const SENDERS_NAMED_MAX: usize = 10;
/// An outbox source that is further behind does not keep up.
const LAG_S: f64 = 300.0;

/// Queues of all tenants: a finding for each that needs attention, and one for all others.
pub async fn queues(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let asked = stream::iter(&reached.tenants).map(async |tenant| {
        let limit = [("limit", DEAD_LETTERS_MAX.to_string())];
        let stats = within(tenant.client.get(&["v1", "stats"], &[])).await;
        let dead = within(tenant.client.get(&["v1", "dead-letters"], &limit)).await;
        match (stats, dead) {
            (Ok(stats), Ok(dead)) => judge_queue(&reached.name(tenant, ""), &stats, &dead),
            (Err(failure), _) | (_, Err(failure)) => {
                vec![unasked(&reached.name(tenant, "queue"), &failure)]
            }
        }
    });
    let mut findings: Vec<CheckupFinding> = asked.buffered(TOGETHER).collect::<Vec<_>>().await.concat();
    if findings.is_empty() {
        findings.push(
            CheckupFinding::new("queue", CheckupState::Ok)
                .found("nothing is late, held for long, waiting for a word or dead"),
        );
    }
    findings
}

fn judge_queue(prefix: &str, stats: &Value, dead: &Value) -> Vec<CheckupFinding> {
    let check = |name: &str| format!("{prefix}{name}");
    let number = |name: &str| stats[name].as_u64().unwrap_or(0);
    let mut findings = Vec::new();
    let (oldest, oldest_held) = (number("oldest_due_seconds"), number("oldest_held_seconds"));
    if oldest >= DUE_S.0 {
        let state = if oldest >= DUE_S.1 { CheckupState::Problem } else { CheckupState::Warning };
        let advice =
            "see what it waits for: `postway messages list --status ready`, `postway messages explain ID`";
        let found = format!("due for {}", span(oldest));
        findings.push(CheckupFinding::new(check("oldest due"), state).found(found).advice(advice));
    }
    if oldest_held >= DUE_S.0 {
        let found = format!(
            "{} by a suspension, a used-up limit or an account at fault; due for {}",
            number("held"),
            span(oldest_held)
        );
        let advice = "`postway messages explain ID` says what holds one, and `postway accounts list` which account is at fault";
        findings.push(CheckupFinding::new(check("held"), CheckupState::Warning).found(found).advice(advice));
    }
    let doubts = number("in_doubt_held");
    if doubts > 0 {
        let advice = "they may have arrived: `postway messages list --status in_doubt`, then `postway messages resolve`";
        let found = format!("{doubts} held, waiting for your word");
        findings
            .push(CheckupFinding::new(check("in doubt"), CheckupState::Warning).found(found).advice(advice));
    }
    let letters = list(dead, "data").len();
    if letters > 0 {
        let more = if dead["next_cursor"].is_null() { "" } else { " and more" };
        let advice =
            "see why: `postway messages list --status failed`; `postway messages retry ID` sends one again";
        let found = format!("{letters}{more} whose retries ran out");
        findings.push(
            CheckupFinding::new(check("dead letters"), CheckupState::Warning).found(found).advice(advice),
        );
    }
    findings
}

/// Tenants that may write any sender, where there are several: each can write as the other.
pub fn senders(reached: &ReachedServer) -> Vec<CheckupFinding> {
    if reached.tenants.len() < 2 {
        return vec![CheckupFinding::new("senders", CheckupState::Ok).found("there is one tenant")];
    }
    let is_unbound = |tenant: &&CheckedTenant| {
        let settings = &tenant.settings;
        settings["test"] != true && settings["allowed_senders"].as_array().is_some_and(Vec::is_empty)
    };
    let unbound: Vec<String> =
        reached.tenants.iter().filter(is_unbound).map(|tenant| field(&tenant.settings, "id")).collect();
    if unbound.is_empty() {
        return vec![
            CheckupFinding::new("senders", CheckupState::Ok).found("every tenant is bound to its own"),
        ];
    }
    let named = unbound.iter().take(SENDERS_NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let found = format!("{} of the tenants may write any From: {named}", unbound.len());
    let advice = "bind each to its domains: `PATCH /v1/tenants/ID` with `allowed_senders`";
    vec![CheckupFinding::new("senders", CheckupState::Warning).found(found).advice(advice)]
}

/// Every account, by what the server knows and a trial.
pub async fn accounts(reached: &ReachedServer) -> Vec<CheckupFinding> {
    things(reached, "accounts", async |tenant, name, account| {
        let id = field(account, "id");
        let show = ["v1", "accounts", &id];
        let test = ["v1", "accounts", &id, "test"];
        let (shown, trial) = futures::join!(
            within(tenant.client.get(&show, &[])),
            within(tenant.client.call(Method::POST, &test, &[], RequestBody::Empty)),
        );
        match (shown, trial) {
            (Ok(shown), trial) => {
                if let Some(finding) = judge_sandbox(tenant, &name, &shown).await {
                    return finding;
                }
                let judged = judge_account(&name, &shown, &trial);
                if judged.state != CheckupState::Ok || !reports_events(&field(&shown, "kind")) {
                    return judged;
                }
                let hook = ["v1", "accounts", &id, "hook"];
                judge_hook(judged, &within(tenant.client.get(&hook, &[])).await)
            }
            (Err(failure), _) => unasked(&name, &failure),
        }
    })
    .await
}

/// Whether the provider of such an account reports bounces and complaints to a hook, and in no other way.
fn reports_events(kind: &str) -> bool {
    AccountKind::from_word(kind).and_then(HookProvider::of_account).is_some_and(|provider| {
        // A service of one's own need not report anything.
        provider != HookProvider::Http
    })
}

/// An account that works, by whether its provider can report to it.
fn judge_hook(judged: CheckupFinding, hook: &Result<Value, CommandFailure>) -> CheckupFinding {
    match hook {
        Err(CommandFailure::NotFound(_)) => {
            let advice = "make one with `postway hooks set ID` and give its URL to the provider; the guide has a page, What providers report";
            CheckupFinding { state: CheckupState::Warning, ..judged }
                .found("it has no hook: bounces and complaints that its provider reports are not known here")
                .advice(advice)
        }
        Ok(_) | Err(_) => judged,
    }
}

fn judge_account(name: &str, account: &Value, trial: &Result<Value, CommandFailure>) -> CheckupFinding {
    let place = [field(account, "kind"), field(account, "host")].join(" ");
    let circuit = &account["circuit"];
    if circuit["state"] == "open" {
        let found = format!("at fault since {}: {}", field(circuit, "since"), field(circuit, "reason"));
        let advice = if_guarded(&found)
            .unwrap_or("its mail waits; mend it with `postway accounts update`, and it goes on at once");
        return CheckupFinding::new(name, CheckupState::Problem).found(found).advice(advice);
    }
    let steps = match trial {
        Ok(trial) => list(trial, "steps"),
        Err(failure @ CommandFailure::Refused(_)) => {
            return unasked(name, failure).advice("only a key that may manage can try accounts");
        }
        Err(failure) => return unasked(name, failure),
    };
    if let Some(step) = steps.iter().find(|step| step["ok"] != true) {
        let found = format!("{}: {}", field(step, "step"), field(step, "detail"));
        let advice =
            if_guarded(&found).unwrap_or_else(|| mend(&field(account, "kind"), &field(step, "step")));
        return CheckupFinding::new(name, CheckupState::Problem).found(found).advice(advice);
    }
    if account["suspended"] == true {
        let advice = "its mail waits until `postway accounts activate`";
        return CheckupFinding::new(name, CheckupState::Warning).found("suspended").advice(advice);
    }
    let done: Vec<String> = steps.iter().map(|step| field(step, "step")).collect();
    CheckupFinding::new(name, CheckupState::Ok).found(format!("{}: {}", place.trim(), done.join(", ")))
}

/// Advice for a failed step of an account of this kind.
fn mend(kind: &str, step: &str) -> &'static str {
    match step {
        "connect" if kind == "ses" => {
            "check region and endpoint, and that this machine may connect there; for a key that is missing or cannot be \
             opened, `postway accounts update ID --access-key-id … --password-file …`"
        }
        "tls" if kind == "ses" => "check endpoint, and give `ca_pem` where its certificate is your own",
        "auth" if kind == "ses" => {
            "check the key, and whether AWS lets it send: `postway accounts update ID --access-key-id … --password-file …`"
        }
        "connect" | "tls" if is_provider(kind) => {
            "check base_url, and that this machine may connect there; give `ca_pem` where its certificate is your own"
        }
        "auth" if is_provider(kind) => {
            "check the key or the grant, and whether the provider lets it send: `postway accounts update ID --api-key-file …`"
        }
        "connect" => "check host and port, and that this machine may connect there",
        "tls" => {
            "check `tls` (starttls for 587, implicit for 465), and give `ca_pem` where the certificate is your own"
        }
        "auth" => "check user name and password: `postway accounts update ID --username … --password-file …`",
        _ => "see what was said; `postway accounts test` tries it again",
    }
}

/// Whether accounts of this kind call a provider, so that they have neither host nor port.
fn is_provider(kind: &str) -> bool {
    let has_none = |kind: AccountKind| {
        !matches!(kind, AccountKind::Smtp | AccountKind::Lmtp | AccountKind::Ses | AccountKind::Sandbox)
    };
    AccountKind::from_word(kind).is_some_and(has_none)
}

/// Active routes that name accounts which are gone.
pub async fn routes(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let asked = stream::iter(&reached.tenants).map(async |tenant| {
        match within(tenant.client.get(&["v1", "routes"], &[])).await {
            Ok(routes) => judge_routes(&reached.name(tenant, ""), &routes),
            Err(failure) => vec![unasked(&reached.name(tenant, "routes"), &failure)],
        }
    });
    asked.buffered(TOGETHER).collect::<Vec<_>>().await.concat()
}

fn judge_routes(prefix: &str, routes: &Value) -> Vec<CheckupFinding> {
    let judge = |route: &Value| {
        let accounts = list(route, "accounts");
        let missing: Vec<String> =
            accounts.iter().filter(|one| one["missing"] == true).map(|one| field(one, "account")).collect();
        if route["active"] != true || missing.is_empty() {
            return None;
        }
        let so = match missing.len() == accounts.len() {
            true => "so it is passed over",
            false => "so the others get its mail",
        };
        let found = format!("there is no account {}, {so}", missing.join(", "));
        let name = format!("{prefix}route {}", field(route, "id"));
        let advice = "name other accounts with `postway routes update ID --to ACCOUNT`";
        Some(CheckupFinding::new(name, CheckupState::Warning).found(found).advice(advice))
    };
    list(routes, "data").iter().filter_map(judge).collect()
}

/// Every mailbox, by what the server knows and a trial.
pub async fn mailboxes(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let now = NodeClock::default().now();
    things(reached, "mailboxes", async |tenant, name, mailbox| {
        let id = field(mailbox, "id");
        let path = ["v1", "mailboxes", &id, "test"];
        let trial = match mailbox["active"] == true {
            true => match within(tenant.client.call(Method::POST, &path, &[], RequestBody::Empty)).await {
                Ok(trial) => Some(trial),
                Err(failure) => return unasked(&name, &failure),
            },
            false => None,
        };
        CheckupFinding { check: name, ..judge_mailbox(mailbox, trial.as_ref(), now).into() }
    })
    .await
}

/// The outbox sources; the admin key sees all of them, a tenant's own key its own.
pub async fn outboxes(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let Some(tenant) = reached.tenants.first() else { return Vec::new() };
    match within(tenant.client.get(&["v1", "outbox"], &[])).await {
        Ok(sources) => match list(&sources, "data") {
            [] => vec![CheckupFinding::new("outbox", CheckupState::Ok).found("none")],
            sources => sources.iter().map(judge_outbox).collect(),
        },
        Err(failure) => vec![unasked("outbox", &failure)],
    }
}

fn judge_outbox(source: &Value) -> CheckupFinding {
    let (name, status, error) = (field(source, "name"), field(source, "status"), field(source, "error"));
    let lag = source["lag_seconds"].as_f64().unwrap_or(0.0);
    if matches!(status.as_str(), "away" | "stopped") {
        let advice = "see that the application's database runs, and `postway outbox status`";
        return CheckupFinding::new(name, CheckupState::Problem)
            .found(format!("{status}: {error}"))
            .advice(advice);
    }
    let found = format!("{status}, {} rows wait, {lag:.0} s behind", source["waiting"].as_i64().unwrap_or(0));
    if lag > LAG_S {
        let advice = "rows come faster than they are taken, or the application's database is slow";
        return CheckupFinding::new(name, CheckupState::Warning).found(found).advice(advice);
    }
    CheckupFinding::new(name, CheckupState::Ok).found(found)
}

/// Looks at each thing of a kind that any tenant has, several at a time.
pub(super) async fn things(
    reached: &ReachedServer,
    kind: &'static str,
    look: impl AsyncFn(&CheckedTenant, String, &Value) -> CheckupFinding,
) -> Vec<CheckupFinding> {
    let asked = stream::iter(&reached.tenants)
        .map(async |tenant| (tenant, within(tenant.client.get(&["v1", kind], &[])).await));
    let lists: Vec<(&CheckedTenant, Result<Value, CommandFailure>)> =
        asked.buffered(TOGETHER).collect().await;
    let mut findings = Vec::new();
    let mut found = Vec::new();
    for (tenant, answer) in &lists {
        match answer {
            Ok(answer) => found.extend(list(answer, "data").iter().map(|thing| (*tenant, thing))),
            Err(failure) => findings.push(unasked(&reached.name(tenant, kind), failure)),
        }
    }
    let left = found.len().saturating_sub(THINGS_MAX);
    let looked = stream::iter(found.into_iter().take(THINGS_MAX)).map(async |(tenant, thing)| {
        let name = reached.name(tenant, &field(thing, "id"));
        look(tenant, name, thing).await
    });
    findings.extend(looked.buffered(TOGETHER).collect::<Vec<_>>().await);
    if left > 0 {
        let finding =
            CheckupFinding::new(kind, CheckupState::Skipped).found(format!("{left} more are not looked at"));
        findings.push(finding.advice("look at one tenant at a time with --tenant"));
    }
    if findings.is_empty() {
        findings.push(CheckupFinding::new(kind, CheckupState::Ok).found("none"));
    }
    findings
}

/// A check that the server did not answer. A refusal is not a fault of what is checked.
pub(super) fn unasked(check: &str, failure: &CommandFailure) -> CheckupFinding {
    let state = if matches!(failure, CommandFailure::Refused(_)) {
        CheckupState::Skipped
    } else {
        CheckupState::Problem
    };
    CheckupFinding::new(check, state).found(failure.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_route_to_an_account_that_is_gone_is_reported() {
        let account = |id: &str, missing: bool| json!({"account": id, "missing": missing});
        let routes = json!({"data": [
            {"id": "sound", "active": true, "accounts": [account("a", false)]},
            {"id": "off", "active": false, "accounts": [account("b", true)]},
            {"id": "half", "active": true, "accounts": [account("a", false), account("b", true)]},
            {"id": "gone", "active": true, "accounts": [account("b", true)]},
        ]});
        let findings = judge_routes("acme/", &routes);
        let told: Vec<_> = findings.iter().map(|one| (one.check.as_str(), one.found.clone())).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!((told[0].0, told[1].0), ("acme/route half", "acme/route gone"));
        assert!(told[1].1.as_deref().is_some_and(|found| found.contains("passed over")), "{told:?}");
    }

    #[test]
    fn a_queue_that_keeps_up_has_nothing_to_say() {
        let quiet = json!({"oldest_due_seconds": 3, "held": 9, "oldest_held_seconds": 20, "in_doubt_held": 0,
            "by_status": {"in_doubt": 7}});
        assert!(judge_queue("", &quiet, &json!({"data": []})).is_empty());
    }

    #[test]
    fn late_held_doubtful_and_dead_mail_is_reported() {
        let stats = |oldest: u64, held: u64| json!({"oldest_due_seconds": oldest, "held": 9, "oldest_held_seconds": held, "in_doubt_held": 2});
        let dead = json!({"data": [{}, {}], "next_cursor": "x"});
        let findings = judge_queue("acme/", &stats(7_200, 7_200), &dead);
        let states: Vec<_> = findings.iter().map(|finding| (finding.check.as_str(), finding.state)).collect();
        assert_eq!(
            states,
            [
                ("acme/oldest due", CheckupState::Problem),
                ("acme/held", CheckupState::Warning),
                ("acme/in doubt", CheckupState::Warning),
                ("acme/dead letters", CheckupState::Warning),
            ]
        );
        let found = |place: usize| findings[place].found.as_deref().unwrap();
        assert!(found(1).starts_with("9 by") && found(2).starts_with("2 held"));
        assert!(found(3).starts_with("2 and more"));
        let held = judge_queue("", &stats(0, 7_200), &dead);
        assert_eq!((held[0].check.as_str(), held[0].state), ("held", CheckupState::Warning), "on purpose");
    }

    #[test]
    fn an_account_of_ses_has_no_host_and_port_to_check() {
        assert!(mend("smtp", "connect").contains("host and port"));
        for step in ["connect", "tls", "auth"] {
            let advice = mend("ses", step);
            assert!(!advice.contains("host") && !advice.contains("user name"), "{advice}");
        }
    }

    #[test]
    fn an_account_is_judged_by_its_circuit_its_trial_and_its_suspension() {
        let well = || Ok(json!({"ok": true, "steps": [{"step": "connect", "ok": true, "detail": "x"}]}));
        let refused = Ok(json!({"ok": false, "steps": [{"step": "auth", "ok": false, "detail": "535 no"}]}));
        let account = |suspended: bool, circuit: &str| {
            json!({"id": "relay", "kind": "smtp", "host": "h", "suspended": suspended,
                "circuit": {"state": circuit, "reason": "535", "since": "now"}})
        };
        let state = |account: &Value, trial: &Result<Value, CommandFailure>| {
            judge_account("relay", account, trial).state
        };
        assert_eq!(state(&account(false, "closed"), &well()), CheckupState::Ok);
        assert_eq!(state(&account(true, "closed"), &well()), CheckupState::Warning);
        assert_eq!(state(&account(false, "open"), &well()), CheckupState::Problem);
        assert_eq!(
            state(&account(false, "closed"), &Err(CommandFailure::Refused("no".to_owned()))),
            CheckupState::Skipped
        );
        let wrong = judge_account("relay", &account(false, "closed"), &refused);
        assert_eq!(wrong.state, CheckupState::Problem);
        assert!(wrong.advice.unwrap().contains("password"));
    }

    #[test]
    fn an_outbox_that_is_away_is_a_problem_and_a_late_one_a_warning() {
        let state = |status: &str, lag: f64| {
            judge_outbox(&json!({"name": "s", "status": status, "lag_seconds": lag})).state
        };
        assert_eq!(state("serving", 2.0), CheckupState::Ok);
        assert_eq!(state("serving", 900.0), CheckupState::Warning);
        assert_eq!(state("away", 0.0), CheckupState::Problem);
    }
}
