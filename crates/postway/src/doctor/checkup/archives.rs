//! Archives of tenants: whether copies have waited for long.

use futures::{StreamExt as _, stream};
use postway_domain::{Clock, Time};
use serde_json::Value;

use super::server::ReachedServer;
use super::{CheckupFinding, CheckupState, TOGETHER, within};
use crate::cluster::clock::NodeClock;

/// How long a copy may wait without a warning.
const WAIT_MS_MAX: i64 = 15 * 60 * 1_000;

/// A finding for each tenant whose archive is behind.
pub async fn check(reached: &ReachedServer) -> Vec<CheckupFinding> {
    let now = NodeClock::default().now();
    let with_archive = reached.tenants.iter().filter(|tenant| tenant.settings["archive"].is_object());
    let asked = stream::iter(with_archive).map(async |tenant| {
        let answer = within(tenant.client.get(&["v1", "archive"], &[("limit", "1".to_owned())])).await;
        // Other checks say what does not answer.
        answer.ok().and_then(|answer| judge(&reached.name(tenant, "archive"), &answer, now))
    });
    asked.buffered(TOGETHER).collect::<Vec<_>>().await.into_iter().flatten().collect()
}

fn judge(check: &str, answer: &Value, now: Time) -> Option<CheckupFinding> {
    let waiting = answer["waiting"].as_i64().filter(|waiting| *waiting > 0)?;
    let since: Time = answer["waiting_since"].as_str()?.parse().ok()?;
    if now.as_millis() - since.as_millis() < WAIT_MS_MAX {
        return None;
    }
    let found =
        format!("{waiting} copies wait, the oldest since {since}; their messages are kept until then");
    let advice = "check that the storage can be written, or that mail to the archive's address is accepted; \
        the reason is in the notifications of a message that waits";
    Some(CheckupFinding::new(check, CheckupState::Warning).found(found).advice(advice))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_archive_is_told_when_its_oldest_copy_has_waited_for_long() {
        let now = Time::from_millis(1_700_000_000_000);
        let since = |minutes: i64| Time::from_millis(now.as_millis() - minutes * 60_000).to_string();
        let answer = |waiting: i64, minutes| json!({"waiting": waiting, "waiting_since": since(minutes)});
        assert!(judge("a", &answer(9, 14), now).is_none() && judge("a", &answer(0, 99), now).is_none());
        assert!(judge("a", &json!({"waiting": null, "waiting_since": null}), now).is_none());
        assert_eq!(judge("a", &answer(9, 16), now).map(|found| found.state), Some(CheckupState::Warning));
    }
}
