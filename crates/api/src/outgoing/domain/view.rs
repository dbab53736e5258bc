//! Domains as JSON.

use postway_domain::Time;
use postway_store::record::DomainCheckRecord;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    check::{DnsFinding, worst},
    unicode,
};

/// A domain that mail is sent from, or that bounces come back to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Domain)]
pub(crate) struct SendingDomainView {
    /// The domain; one outside ASCII as A-labels (`xn--…`).
    #[schema(example = "example.com")]
    pub(crate) domain: String,
    /// The domain in Unicode, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain_unicode: Option<String>,
    /// Whether a key signs for it.
    pub(super) signs: bool,
    /// Whether bounces come back to it.
    pub(super) takes_bounces: bool,
    /// The worst finding of the last check, or `unchecked`.
    #[schema(example = "ok")]
    pub(crate) state: &'static str,
    /// Since when every check found nothing missing or wrong; null if the last one did.
    #[schema(value_type = Option<String>, format = DateTime)]
    right_since: Option<Time>,
    /// When it was checked.
    #[schema(value_type = Option<String>, format = DateTime)]
    checked_at: Option<Time>,
    /// When the latest DMARC or TLS report about it came.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(super) reported_at: Option<Time>,
    /// What the last check found.
    pub(crate) findings: Vec<DnsFinding>,
}

impl SendingDomainView {
    /// A domain that was never checked.
    pub(super) fn unchecked(domain: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            domain_unicode: unicode(domain),
            signs: false,
            takes_bounces: false,
            state: "unchecked",
            right_since: None,
            checked_at: None,
            reported_at: None,
            findings: Vec::new(),
        }
    }

    /// Takes over what a check found.
    pub(super) fn set_check(&mut self, check: &DomainCheckRecord) {
        self.findings = serde_json::from_str(&check.findings).unwrap_or_default();
        self.state = worst(&self.findings);
        (self.right_since, self.checked_at) = (check.right_since, Some(check.checked_at));
    }
}

/// A tenant's domains.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DomainList)]
pub(crate) struct SendingDomainList {
    /// By name.
    pub(super) data: Vec<SendingDomainView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}
