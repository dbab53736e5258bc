//! Daily quotas of tenants: which are nearly or completely used up.

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::server::ReachedServer;
use super::{CheckupFinding, CheckupState, TOGETHER, within};

/// A finding for each tenant with a quota that needs attention.
pub async fn check(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let bounded = reached.tenants.iter().filter(|tenant| has_quota(&tenant.settings));
    let asked = stream::iter(bounded).map(async |tenant| {
        let overview = within(tenant.client.get(&["v1", "overview"], &[])).await;
        // What does not answer is told by the other checks.
        overview.ok().and_then(|overview| judge(&reached.name(tenant, "daily quota"), &overview["quota"]))
    });
    asked.buffered(TOGETHER).collect::<Vec<_>>().await.into_iter().flatten().collect()
}

fn has_quota(settings: &Value) -> bool {
    settings["daily_quota"].as_object().is_some_and(|quota| quota.values().any(|bound| !bound.is_null()))
}

fn judge(check: &str, quota: &Value) -> Option<CheckupFinding> {
    let percent = quota["warning_percent"].as_u64().filter(|percent| *percent > 0)?;
    let used = |name: &str| {
        let bound = &quota[name];
        bound.is_object().then(|| format!("{} of {} {name}", bound["used"], bound["of"]))
    };
    let used: Vec<String> = ["messages", "bytes", "recipients"].into_iter().filter_map(used).collect();
    let (state, found) = match percent {
        100.. => (CheckupState::Problem, format!("used up, mail is refused: {}", used.join(", "))),
        _ => (CheckupState::Warning, format!("nearly used up: {}", used.join(", "))),
    };
    let advice = "raise it with `PATCH /v1/tenants/ID` and `daily_quota`, or wait for the next day of UTC";
    Some(CheckupFinding::new(check, state).found(found).advice(advice))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quota_is_told_when_it_is_nearly_used_up() {
        let quota =
            |percent| json!({"messages": {"used": 8, "of": 10}, "bytes": null, "warning_percent": percent});
        assert!(judge("q", &quota(0)).is_none() && judge("q", &json!(null)).is_none());
        assert_eq!(judge("q", &quota(80)).map(|finding| finding.state), Some(CheckupState::Warning));
        let over = judge("q", &quota(100)).unwrap();
        assert_eq!(over.state, CheckupState::Problem);
        assert!(has_quota(&json!({"daily_quota": {"messages": 5, "bytes": null}})));
        assert!(
            !has_quota(&json!({"daily_quota": {"messages": null, "bytes": null}})) && !has_quota(&json!({}))
        );
    }
}
