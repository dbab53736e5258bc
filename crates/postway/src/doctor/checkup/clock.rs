//! The clock: whether it agrees with the server's, and whether it is synchronised.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::server::{ReachedServer, ServerTimeSample};
use super::{CheckupFinding, CheckupState};
use crate::cli::amount::wait;

/// How long the system may take to answer.
const TELLS_WITHIN: Duration = Duration::from_secs(5);
/// Clocks that differ by less are left alone, and by more are wrong.
const APART_MS: (i64, i64) = (2_000, 60_000);

/// Checks both clocks.
pub async fn check(reached: Option<&ReachedServer>) -> Vec<CheckupFinding> {
    let server = match reached.and_then(|reached| reached.glance) {
        Some(glance) => judge(glance),
        None => CheckupFinding::new("server's clock", CheckupState::Skipped).found("no server to ask"),
    };
    vec![server, check_synchronisation().await]
}

/// The server's time must lie between our asking and its answering.
fn judge(glance: ServerTimeSample) -> CheckupFinding {
    let (apart_ms, found) = glance.apart("this machine's");
    let check = "server's clock";
    let advice = "times of mail, limits and expiry go by it: have both machines follow NTP";
    match apart_ms {
        apart if apart >= APART_MS.1 => {
            CheckupFinding::new(check, CheckupState::Problem).found(found).advice(advice)
        }
        apart if apart >= APART_MS.0 => {
            CheckupFinding::new(check, CheckupState::Warning).found(found).advice(advice)
        }
        _ => CheckupFinding::new(check, CheckupState::Ok).found(found),
    }
}

impl ServerTimeSample {
    /// How far a clock is from `other`, at least, and how to say so.
    pub(super) fn apart(self, other: &str) -> (i64, String) {
        let before = self.asked_at.as_millis() - self.at.as_millis();
        let after = self.at.as_millis() - self.answered_at.as_millis();
        let apart_ms = before.max(after).max(0);
        let way = if after > before { "ahead of" } else { "behind" };
        match apart_ms {
            0 => (0, format!("agrees with {other}")),
            _ => (apart_ms, format!("{} {way} {other}", wait(apart_ms))),
        }
    }
}

/// Whether this machine's clock is synchronised, according to systemd.
async fn check_synchronisation() -> CheckupFinding {
    let asked = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let answer = match timeout(TELLS_WITHIN, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    };
    let check = "ntp";
    match answer.as_str() {
        "yes" => CheckupFinding::new(check, CheckupState::Ok).found("this machine's clock is synchronised"),
        "no" => {
            let advice = "switch it on: `timedatectl set-ntp true`, or install chrony";
            CheckupFinding::new(check, CheckupState::Warning)
                .found("this machine's clock is not synchronised")
                .advice(advice)
        }
        _ => {
            let found = "this system does not tell (no timedatectl, or it has no answer)";
            CheckupFinding::new(check, CheckupState::Skipped).found(found)
        }
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::Time;

    use super::*;

    #[test]
    fn clocks_may_differ_by_the_time_an_answer_takes_and_a_little_more() {
        let finding = |at: i64| {
            let time = Time::from_millis;
            judge(ServerTimeSample { asked_at: time(1_000_000), at: time(at), answered_at: time(1_000_300) })
        };
        for (at, state) in [
            (1_000_100, CheckupState::Ok),
            (999_000, CheckupState::Ok),
            (1_003_300, CheckupState::Warning),
            (900_000, CheckupState::Problem),
        ] {
            assert_eq!(finding(at).state, state, "{at}");
        }
        assert!(finding(1_003_300).found.unwrap().starts_with("3.0 s ahead of"));
        assert!(finding(900_000).found.unwrap().contains("behind"));
    }
}
