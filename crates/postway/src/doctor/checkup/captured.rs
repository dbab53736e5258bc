//! Whether a sandbox that nobody chose captures a tenant's mail: mail that names no account, and that no
//! route takes before it comes to the tenant's default account.

use serde_json::Value;

use super::server::CheckedTenant;
use super::{CheckupFinding, CheckupState, within};
use crate::cli::output::{field, list};

/// Judges an account as the tenant's sandbox; none if it captures nothing unasked.
pub(super) async fn judge_sandbox(
    tenant: &CheckedTenant,
    name: &str,
    account: &Value,
) -> Option<CheckupFinding> {
    if account["kind"] != "sandbox" || !captures(&settings_of(tenant).await, &field(account, "id")) {
        return None;
    }
    judge_capture(name, &routes_of(tenant).await)
}

/// A tenant's settings, also for its own key; null if the server does not show them.
async fn settings_of(tenant: &CheckedTenant) -> Value {
    match &tenant.settings {
        Value::Null => within(tenant.client.get(&["v1", "tenant"], &[])).await.unwrap_or_default(),
        settings => settings.clone(),
    }
}

/// Whether this account captures a tenant's mail although nobody chose that.
fn captures(tenant: &Value, sandbox: &str) -> bool {
    tenant["default_account"] == sandbox && tenant["test"] != true
}

/// A tenant's routes; none if the server does not show them.
async fn routes_of(tenant: &CheckedTenant) -> Value {
    within(tenant.client.get(&["v1", "routes"], &[])).await.unwrap_or_default()
}

/// A sandbox that nobody chose, by the mail that comes to it: none if a route takes all of that.
fn judge_capture(name: &str, routes: &Value) -> Option<CheckupFinding> {
    if takes_all(routes) {
        return None;
    }
    let found = match list(routes, "data") {
        [] => "mail that names no account is captured by it, and sent to nobody",
        _ => "mail that names no account and that no route takes is captured by it, and sent to nobody",
    };
    let advice = "add a relay with `postway accounts create` and make it the tenant's default_account; where the \
                  tenant is there for tests, say so: `postway tenants update ID --test true`";
    Some(CheckupFinding::new(name, CheckupState::Warning).found(found).advice(advice))
}

/// Whether a route takes all mail that names no account: it has no conditions, and an account that exists.
fn takes_all(routes: &Value) -> bool {
    let takes_all = |route: &Value| {
        let is_bare = route["match"]
            .as_object()
            .is_some_and(|all| all.values().all(|one| one.as_array().is_some_and(Vec::is_empty)));
        let has_account = list(route, "accounts").iter().any(|one| one["missing"] == false);
        route["active"] == true && is_bare && has_account
    };
    list(routes, "data").iter().any(takes_all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sandbox_that_nobody_chose_is_reported() {
        let tenant = |account: &str, test: bool| json!({"default_account": account, "test": test});
        assert!(captures(&tenant("sandbox", false), "sandbox"));
        assert!(!captures(&tenant("sandbox", true), "sandbox"));
        assert!(!captures(&tenant("relay", false), "sandbox"));
        assert!(!captures(&Value::Null, "sandbox"));
    }

    #[test]
    fn a_sandbox_that_a_route_stands_before_is_not_reported() {
        let route = |active: bool, tags: &[&str], missing: bool| {
            json!({"active": active, "match": {"tags": tags, "batches": []},
                "accounts": [{"account": "relay", "missing": missing}]})
        };
        let found = |route: Value| {
            judge_capture("sandbox", &json!({"data": [route]})).and_then(|finding| finding.found)
        };
        assert_eq!(found(route(true, &[], false)), None);
        let rest = "mail that names no account and that no route takes";
        for other in [route(true, &["news"], false), route(false, &[], false), route(true, &[], true)] {
            assert!(found(other).is_some_and(|found| found.starts_with(rest)));
        }
        assert!(judge_capture("sandbox", &Value::Null).is_some());
    }
}
