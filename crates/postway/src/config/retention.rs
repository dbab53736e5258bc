//! `[retention]`: how long data of no tenant is retained, and data of tenants without a setting of their own.

use std::time::Duration;

use postway_domain::TenantSettings;

use super::integer_between;
use super::layers::ConfigLayers;

const DAY: Duration = Duration::from_secs(86_400);
const AUDIT_DAYS: u32 = 365;
/// The longest retention that a tenant may set.
const SECONDS_MAX: u64 = TenantSettings::RETENTION_DAYS_MAX as u64 * 86_400;

/// How long data is retained.
#[derive(Clone, Debug)]
pub struct RetentionSection {
    /// Entries of the audit log; none: for ever.
    pub audit: Option<Duration>,
    /// Messages that ended and were reported, of tenants without a setting.
    pub reported: Duration,
}

impl RetentionSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let audit_days =
            layers.take("retention.audit_days", AUDIT_DAYS, &AUDIT_DAYS.to_string(), |text| {
                integer_between(text, 0, 36_500).map(|days| days as u32)
            })?;
        let seconds = TenantSettings::REPORT_RETENTION_SECONDS;
        let reported =
            layers.take("retention.report_retention_seconds", seconds, &seconds.to_string(), |text| {
                integer_between(text, 0, SECONDS_MAX)
            })?;
        Some(Self {
            audit: (audit_days > 0).then(|| DAY * audit_days),
            reported: Duration::from_secs(reported),
        })
    }
}
