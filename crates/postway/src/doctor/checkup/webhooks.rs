//! Webhooks: switched off, without an answer for minutes, or with events that were given up.
//!
//! They are judged by the calls that the server recorded; none is called. The judging functions are pure.

use postway_domain::{Clock as _, Time};
use serde_json::Value;

use super::server::{CheckedTenant, ReachedServer};
use super::tenants::{things, unasked};
use super::{CheckupFinding, CheckupState, within};
use crate::cli::amount::span;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{field, list};
use crate::cluster::clock::NodeClock;

/// The most notifications that are read, of each state.
const DELIVERIES_MAX: usize = 100;
/// Notifications that fail for longer than this are a warning: a receiver may be restarting for less.
const LATE_S: u64 = 120;

/// The notifications that a webhook has not acknowledged.
struct UndeliveredNotifications {
    /// Dead notifications, which were given up.
    dead: Value,
    /// Notifications that failed and will be tried again.
    waiting: Value,
    /// Notifications that were not tried yet.
    pending: Value,
}

/// Checks every webhook by its dead and waiting notifications.
pub async fn check(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let now = NodeClock::default().now();
    things(reached, "webhooks", async |tenant, name, webhook| match undelivered(tenant, webhook).await {
        Ok(undelivered) => judge(&name, webhook, &undelivered, now),
        Err(failure) => unasked(&name, &failure),
    })
    .await
}

async fn undelivered(
    tenant: &CheckedTenant,
    webhook: &Value,
) -> Result<UndeliveredNotifications, CommandFailure> {
    let id = field(webhook, "id");
    let of = async |status: &str| {
        let query = [("status", status.to_owned()), ("limit", DELIVERIES_MAX.to_string())];
        within(tenant.client.get(&["v1", "webhooks", &id, "deliveries"], &query)).await
    };
    let (dead, waiting, pending) = futures::join!(of("dead"), of("waiting"), of("pending"));
    Ok(UndeliveredNotifications { dead: dead?, waiting: waiting?, pending: pending? })
}

fn judge(name: &str, webhook: &Value, undelivered: &UndeliveredNotifications, now: Time) -> CheckupFinding {
    let url = field(webhook, "url");
    let reason = field(webhook, "disabled_reason");
    if !reason.is_empty() {
        let advice = "nothing is collected for it: mend it, then `postway webhooks update ID --active true`, or remove it";
        return CheckupFinding::new(name, CheckupState::Problem)
            .found(format!("{url} is switched off: {reason}"))
            .advice(advice);
    }
    if webhook["active"] != true {
        return CheckupFinding::new(name, CheckupState::Ok)
            .found(format!("{url} is switched off by its owner"));
    }
    if let Some(found) = late(webhook, undelivered, now) {
        let advice = "nothing is lost: `postway webhooks test ID` calls it, `postway webhooks deliveries ID --status waiting` has its answers";
        return CheckupFinding::new(name, CheckupState::Warning)
            .found(format!("{url} {found}"))
            .advice(advice);
    }
    let lost = list(&undelivered.dead, "data").len();
    if lost > 0 {
        let more = more(&undelivered.dead);
        let advice = "see `postway webhooks deliveries ID --status dead`; `postway webhooks resend ID --since TIME` tells them again";
        let found = format!("{url} missed {lost}{more} events");
        return CheckupFinding::new(name, CheckupState::Warning).found(found).advice(advice);
    }
    CheckupFinding::new(name, CheckupState::Ok).found(url)
}

/// Finds notifications that fail for minutes. A webhook that asked for a pause is not late.
fn late(webhook: &Value, undelivered: &UndeliveredNotifications, now: Time) -> Option<String> {
    if time(webhook, "quiet_until").is_some_and(|until| until > now) {
        return None;
    }
    let since = |deliveries: &Value, name: &str| {
        let times = list(deliveries, "data").iter().filter_map(|delivery| time(delivery, name));
        times.map(|at| now.since(at).as_secs()).max().filter(|seconds| *seconds >= LATE_S)
    };
    if let Some(seconds) = since(&undelivered.waiting, "created_at") {
        let failing = list(&undelivered.waiting, "data");
        let latest =
            failing.iter().map(|delivery| &delivery["last_call"]).max_by_key(|call| time(call, "at"));
        let answer = latest.map_or_else(String::new, |call| match call["status"].as_u64() {
            Some(status) => format!("; the latest answer is {status}"),
            None => format!("; the latest call: {}", field(call, "answer")),
        });
        let (count, more) = (failing.len(), more(&undelivered.waiting));
        return Some(format!(
            "takes no calls: {count}{more} failed, the first {} ago{answer}",
            span(seconds)
        ));
    }
    let seconds = since(&undelivered.pending, "next_at")?;
    let (count, more) = (list(&undelivered.pending, "data").len(), more(&undelivered.pending));
    Some(format!("is behind: {count}{more} events wait, the first is due for {}", span(seconds)))
}

fn time(value: &Value, name: &str) -> Option<Time> {
    value[name].as_str()?.parse().ok()
}

fn more(deliveries: &Value) -> &'static str {
    if deliveries["next_cursor"].is_null() { "" } else { " and more" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn none() -> Value {
        json!({"data": [], "next_cursor": null})
    }

    fn judged(webhook: Value, undelivered: UndeliveredNotifications) -> (CheckupState, String) {
        let finding = judge("wh", &webhook, &undelivered, "2030-01-01T00:10:00Z".parse().unwrap());
        (finding.state, finding.found.unwrap_or_default())
    }

    fn state(webhook: Value, dead: Value) -> CheckupState {
        judged(webhook, UndeliveredNotifications { dead, waiting: none(), pending: none() }).0
    }

    #[test]
    fn a_webhook_is_judged_by_what_it_missed() {
        assert_eq!(state(json!({"url": "u", "active": true}), none()), CheckupState::Ok);
        assert_eq!(state(json!({"url": "u", "active": false}), none()), CheckupState::Ok);
        assert_eq!(state(json!({"active": false, "disabled_reason": "410"}), none()), CheckupState::Problem);
        assert_eq!(
            state(json!({"url": "u", "active": true}), json!({"data": [{}], "next_cursor": null})),
            CheckupState::Warning
        );
    }

    #[test]
    fn a_webhook_whose_calls_fail_for_minutes_is_reported() {
        let webhook = || json!({"url": "u", "active": true});
        let waiting = |since: &str| {
            json!({"data": [{"created_at": since, "tries": 2, "next_at": "2030-01-01T00:12:00Z",
                "last_call": {"at": since, "status": 500, "answer": "no"}}], "next_cursor": null})
        };
        let with = |waiting: Value| {
            judged(webhook(), UndeliveredNotifications { dead: none(), waiting, pending: none() })
        };
        assert_eq!(with(waiting("2030-01-01T00:09:30Z")).0, CheckupState::Ok, "it may be starting again");
        let (state, found) = with(waiting("2030-01-01T00:01:00Z"));
        assert_eq!(state, CheckupState::Warning);
        assert!(found.contains("takes no calls") && found.contains("500"), "{found}");
    }

    #[test]
    fn a_webhook_that_is_behind_is_told_unless_it_asked_for_quiet() {
        let pending = || json!({"data": [{"next_at": "2030-01-01T00:01:00Z"}], "next_cursor": "x"});
        let with = |webhook: Value| {
            judged(webhook, UndeliveredNotifications { dead: none(), waiting: none(), pending: pending() })
        };
        let (state, found) = with(json!({"url": "u", "active": true}));
        assert_eq!(state, CheckupState::Warning);
        assert!(found.contains("1 and more events wait"), "{found}");
        let quiet = json!({"url": "u", "active": true, "quiet_until": "2030-01-01T01:00:00Z"});
        assert_eq!(with(quiet).0, CheckupState::Ok);
    }
}
