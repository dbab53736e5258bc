//! `[retention]`: how long is kept what belongs to no tenant.

use std::time::Duration;

use super::integer_between;
use super::layers::Layers;

const DAY: Duration = Duration::from_secs(86_400);
const AUDIT_DAYS: u32 = 365;

/// How long what is kept for all tenants stays.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Entries of the audit log; none: for ever.
    pub audit: Option<Duration>,
}

impl Retention {
    pub(super) fn read(layers: &mut Layers) -> Option<Self> {
        let audit_days =
            layers.take("retention.audit_days", AUDIT_DAYS, &AUDIT_DAYS.to_string(), |text| {
                integer_between(text, 0, 36_500).map(|days| days as u32)
            })?;
        Some(Self { audit: (audit_days > 0).then(|| DAY * audit_days) })
    }
}
