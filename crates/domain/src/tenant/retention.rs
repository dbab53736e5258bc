//! How long a tenant's messages are retained after they ended. Messages that have not ended are always
//! retained.

use std::time::Duration;

use super::TenantSettings;

const DAY_S: u64 = 86_400;

impl TenantSettings {
    /// The default retention of reported messages, if neither tenant nor gateway sets one.
    pub const REPORT_RETENTION_SECONDS: u64 = 604_800;
    /// The default retention of messages that could not be reported.
    pub const UNREPORTED_RETENTION_DAYS: u32 = 90;

    /// How long messages are retained after they ended and were reported; the gateway's setting if the tenant
    /// has none.
    pub fn report_retention(&self, otherwise: Duration) -> Duration {
        let in_days = || self.retention_days.map(|days| u64::from(days) * DAY_S);
        let seconds = self.report_retention_seconds.or_else(in_days);
        seconds.map_or(otherwise, Duration::from_secs)
    }

    /// How long messages are retained that ended and could not be reported: at least as long as reported
    /// ones.
    pub fn unreported_retention(&self, otherwise: Duration) -> Duration {
        let days = self.unreported_retention_days.unwrap_or(Self::UNREPORTED_RETENTION_DAYS);
        Duration::from_secs(u64::from(days) * DAY_S).max(self.report_retention(otherwise))
    }

    /// The faults of these settings, as pairs of field and message.
    pub(super) fn check_retention(&self) -> Vec<(&'static str, String)> {
        let days_max = Self::RETENTION_DAYS_MAX;
        let mut wrong = Vec::new();
        for (field, days) in [
            ("retention_days", self.retention_days),
            ("unreported_retention_days", self.unreported_retention_days),
        ] {
            if days.is_some_and(|days| days > days_max) {
                wrong.push((field, format!("must be at most {days_max}")));
            }
        }
        let seconds_max = u64::from(days_max) * DAY_S;
        if self.report_retention_seconds.is_some_and(|seconds| seconds > seconds_max) {
            wrong.push(("report_retention_seconds", format!("must be at most {seconds_max}")));
        }
        if self.retention_days.is_some() && self.report_retention_seconds.is_some() {
            let message =
                "is the older spelling of report_retention_seconds: give one, and null for the other";
            wrong.push(("retention_days", message.to_owned()));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_is_told_in_seconds_or_days_and_the_second_bound_is_never_the_shorter() {
        let days = |days: u64| Duration::from_secs(days * DAY_S);
        let kept = |settings: &TenantSettings, otherwise: u64| {
            let otherwise = days(otherwise);
            (settings.report_retention(otherwise), settings.unreported_retention(otherwise))
        };
        let mut settings = TenantSettings::default();
        assert_eq!(kept(&settings, 7), (days(7), days(90)));
        assert_eq!(kept(&settings, 100), (days(100), days(100)));
        settings.retention_days = Some(120);
        assert_eq!(kept(&settings, 7), (days(120), days(120)));
        settings = TenantSettings { report_retention_seconds: Some(0), ..TenantSettings::default() };
        assert_eq!((kept(&settings, 7).0, settings.check()), (Duration::ZERO, Vec::new()));
        settings.retention_days = Some(1);
        settings.unreported_retention_days = Some(9_999);
        let fields: Vec<_> = settings.check().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["unreported_retention_days", "retention_days"]);
    }
}
