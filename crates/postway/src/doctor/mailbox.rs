//! Whether watched mailboxes are read: reachable, without a fault, and not far behind.
//!
//! Each is judged by its state in the server and, if it is active, by a test of its connection. The functions
//! are pure: the caller supplies both.

use postway_domain::Time;
use serde_json::Value;

use super::{
    if_guarded,
    report::{DomainCheckState, DomainFinding},
};
use crate::cli::output::{field, list};

/// The UIDs that a mailbox may be behind without a warning: a page or two in progress.
const LAG_SOUND: u64 = 1_000;
/// How many polls a mailbox may have missed without a warning.
const LOOKS_MISSED: i64 = 5;
/// Servers that announce new mail are still polled this often.
const QUIET_MS: i64 = 30 * 60 * 1_000;

/// The findings about a mailbox, as `GET /v1/mailboxes` shows it, tried as `POST /v1/mailboxes/{id}/test`
/// says.
pub fn judge(mailbox: &Value, trial: Option<&Value>, now: Time) -> DomainFinding {
    let check = format!("mailbox {}", field(mailbox, "id"));
    if mailbox["active"] != true {
        let advice = "it is suspended: nothing is read from it; `postway mailboxes activate` reads on";
        return DomainFinding::new(check, DomainCheckState::Warn).found("not active").advice(advice);
    }
    let failed = trial.and_then(|trial| list(trial, "steps").iter().find(|step| step["ok"] != true));
    if let Some(step) = failed {
        let (step, detail) = (field(step, "step"), field(step, "detail"));
        let advice = if_guarded(&detail).unwrap_or_else(|| what_to_do(&step));
        return DomainFinding::new(check, DomainCheckState::Wrong)
            .found(&format!("{step}: {detail}"))
            .advice(advice);
    }
    if !list(mailbox, "addresses").is_empty() {
        return DomainFinding::new(check, DomainCheckState::Ok).found("gets its mail from the reception");
    }
    let error = field(mailbox, "error");
    if !error.is_empty() {
        let since = field(mailbox, "error_since");
        let advice = "a trial just now went well: it is tried again within minutes; look once more then";
        return DomainFinding::new(check, DomainCheckState::Warn)
            .found(&format!("{error} (since {since})"))
            .advice(advice);
    }
    let Some(scanned_at) = time(mailbox, "last_scanned_at") else {
        let advice =
            "it has not been read to its end yet: wait, or see whether a server is running (`postway nodes`)";
        return DomainFinding::new(check, DomainCheckState::Unknown).found("not read yet").advice(advice);
    };
    let poll_ms = mailbox["poll_seconds"].as_i64().unwrap_or(60).saturating_mul(1_000);
    let silent_ms = now.as_millis().saturating_sub(scanned_at.as_millis());
    if silent_ms > QUIET_MS.max(poll_ms.saturating_mul(LOOKS_MISSED)) {
        let advice =
            "nobody has looked at it for long: see whether a server is running (`postway nodes`) and its log";
        return DomainFinding::new(check, DomainCheckState::Wrong)
            .found(&format!("last read at {scanned_at}"))
            .advice(advice);
    }
    let lag = mailbox["lag"].as_u64().unwrap_or(0);
    let found = format!("read at {scanned_at}, {lag} behind");
    if lag > LAG_SOUND {
        let advice = "it is far behind: where the lag does not fall, its server is slow, or mail comes faster than it is read";
        return DomainFinding::new(check, DomainCheckState::Warn).found(&found).advice(advice);
    }
    DomainFinding::new(check, DomainCheckState::Ok).found(&found)
}

/// Advice for a step that failed.
fn what_to_do(step: &str) -> &'static str {
    match step {
        "connect" => "check host, port and proxy, and that this machine may connect there",
        "tls" => {
            "check `tls` (implicit for 993, starttls for 143), and give `ca_pem` where the certificate is your own"
        }
        "login" | "auth" => {
            "check username and password; many providers want an application password or a token"
        }
        "folder" | "select" => "check the folder's name: folders are named as the server names them",
        _ => "see what the server said; `postway mailboxes test` tries it again",
    }
}

fn time(value: &Value, name: &str) -> Option<Time> {
    value.get(name)?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(mailbox: Value, trial: Option<Value>) -> DomainCheckState {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut whole = json!({"id": "bounces", "active": true, "poll_seconds": 60, "lag": 0,
            "last_scanned_at": "2026-11-15T11:59:00Z", "error": null});
        for (name, value) in mailbox.as_object().unwrap() {
            whole[name] = value.clone();
        }
        judge(&whole, trial.as_ref(), now).state
    }

    #[test]
    fn a_mailbox_that_is_read_is_sound() {
        let well = json!({"ok": true, "steps": [{"step": "connect", "ok": true, "detail": "x"}]});
        assert_eq!(state(json!({}), Some(well)), DomainCheckState::Ok);
    }

    #[test]
    fn a_mailbox_of_the_reception_is_read_from_nowhere() {
        let received = json!({"addresses": ["a@x.example"], "last_scanned_at": null});
        assert_eq!(state(received, None), DomainCheckState::Ok);
    }

    #[test]
    fn what_keeps_a_mailbox_from_being_read_is_reported() {
        let refused = json!({"ok": false, "steps": [{"step": "login", "ok": false, "detail": "no"}]});
        assert_eq!(state(json!({}), Some(refused)), DomainCheckState::Wrong);
        assert_eq!(state(json!({"active": false}), None), DomainCheckState::Warn);
        assert_eq!(
            state(json!({"error": "cut", "error_since": "2026-11-15T11:58:00Z"}), None),
            DomainCheckState::Warn
        );
        assert_eq!(state(json!({"lag": 5_000}), None), DomainCheckState::Warn);
        assert_eq!(state(json!({"last_scanned_at": null}), None), DomainCheckState::Unknown);
        assert_eq!(state(json!({"last_scanned_at": "2026-11-15T09:00:00Z"}), None), DomainCheckState::Wrong);
        let rarely = json!({"last_scanned_at": "2026-11-15T09:00:00Z", "poll_seconds": 7_200});
        assert_eq!(state(rarely, None), DomainCheckState::Ok);
    }
}
