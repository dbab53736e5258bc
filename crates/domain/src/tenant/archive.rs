//! A tenant's archive: a copy of each mail that was sent.

use serde::{Deserialize, Serialize};

use crate::address::EmailAddress;

/// Where copies go, and for how long they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArchiveSettings {
    /// The address that gets each copy, as a mail of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The author of these mails; the tenant's default author if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether copies are stored beside the blobs.
    pub storage: bool,
    /// Whether stored copies are encrypted with the gateway's secret key.
    pub encrypt: bool,
    /// How long stored copies are kept, in days; for ever if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
}

impl ArchiveSettings {
    /// The longest that stored copies are kept, in days.
    pub const DAYS_MAX: u32 = 36_500;

    /// The address, if it is one.
    pub fn address(&self) -> Option<EmailAddress> {
        self.to.as_deref()?.parse().ok()
    }

    /// The faults of these settings, as pairs of field and message.
    pub(super) fn check(&self, default_from: Option<&str>) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if self.to.is_none() && !self.storage {
            wrong.push(("archive", "needs an address (to), storage, or both".to_owned()));
        }
        if self.to.is_some() && self.address().is_none() {
            wrong.push(("archive.to", "must be an address".to_owned()));
        }
        let from = self.from.as_deref().or(default_from);
        let is_author = |from: &str| from.parse::<crate::address::NamedAddress>().is_ok();
        if self.to.is_some() && !from.is_some_and(is_author) {
            let message =
                "must be an address such as Archive <archive@example.com>, because there is no default_from";
            wrong.push(("archive.from", message.to_owned()));
        }
        if self.encrypt && !self.storage {
            wrong.push(("archive.encrypt", "is about stored copies: set storage, too".to_owned()));
        }
        if self.days.is_some_and(|days| !(1..=Self::DAYS_MAX).contains(&days)) {
            wrong.push(("archive.days", format!("must be between 1 and {}", Self::DAYS_MAX)));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_archive_nothing_or_cannot_work_are_refused() {
        let faults = |settings: ArchiveSettings| -> Vec<&str> {
            settings.check(None).into_iter().map(|(field, _)| field).collect()
        };
        let good = ArchiveSettings { storage: true, encrypt: true, days: Some(3_650), ..Default::default() };
        assert!(faults(good.clone()).is_empty());
        assert_eq!(faults(ArchiveSettings::default()), ["archive"]);
        let to = ArchiveSettings { to: Some("box@example.com".to_owned()), ..Default::default() };
        assert_eq!(faults(to.clone()), ["archive.from"]);
        assert!(to.check(Some("a@example.com")).is_empty());
        let wrong = ArchiveSettings { to: Some("no".to_owned()), encrypt: true, days: Some(0), ..to };
        assert_eq!(faults(wrong), ["archive.to", "archive.from", "archive.encrypt", "archive.days"]);
    }
}
