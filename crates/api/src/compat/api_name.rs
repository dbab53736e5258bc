//! The compatibility APIs, and which of them are enabled.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// A compatibility API, by its name in paths and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompatApi {
    /// `outbox`: an outbox with callbacks.
    Outbox,
    /// `proxy`: a message proxy for many tenants.
    Proxy,
    /// `pipeline`: a gateway that validates and sends by SES.
    Pipeline,
    /// `resend`: the API of Resend.
    Resend,
    /// `postmark`: the API of Postmark.
    Postmark,
    /// `sendgrid`: the API of SendGrid.
    SendGrid,
    /// `mailgun`: the API of Mailgun.
    Mailgun,
}

impl CompatApi {
    /// Every compatibility API.
    pub const ALL: [Self; 7] = [
        Self::Outbox,
        Self::Proxy,
        Self::Pipeline,
        Self::Resend,
        Self::Postmark,
        Self::SendGrid,
        Self::Mailgun,
    ];

    /// The name in `/compat/NAME`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outbox => "outbox",
            Self::Proxy => "proxy",
            Self::Pipeline => "pipeline",
            Self::Resend => "resend",
            Self::Postmark => "postmark",
            Self::SendGrid => "sendgrid",
            Self::Mailgun => "mailgun",
        }
    }
}

impl CompatApi {
    /// The number that it had as its name, which paths and settings still take.
    pub fn number(self) -> Option<&'static str> {
        match self {
            Self::Outbox => Some("000"),
            Self::Proxy => Some("001"),
            Self::Pipeline => Some("004"),
            Self::Resend | Self::Postmark | Self::SendGrid | Self::Mailgun => None,
        }
    }

    /// The names under which paths and settings have it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [Some(self.as_str()), self.number()].into_iter().flatten()
    }
}

impl fmt::Display for CompatApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that no compatibility API has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCompatApi(String);

impl fmt::Display for UnknownCompatApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no door; there are {}", self.0, CompatApi::ALL.map(CompatApi::as_str).join(", "))
    }
}

impl std::error::Error for UnknownCompatApi {}

impl FromStr for CompatApi {
    type Err = UnknownCompatApi;

    fn from_str(text: &str) -> Result<Self, UnknownCompatApi> {
        let found = Self::ALL.into_iter().find(|api| api.names().any(|name| name == text));
        found.ok_or_else(|| UnknownCompatApi(text.chars().take(40).collect()))
    }
}

/// Which compatibility APIs are enabled, and which of them is also at `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompatConfig {
    /// Those enabled under `/compat/NAME`.
    pub doors: BTreeSet<CompatApi>,
    /// The one that also answers without a prefix.
    pub root: Option<CompatApi>,
}

impl Default for CompatConfig {
    /// All of them, each under its prefix only.
    fn default() -> Self {
        Self { doors: CompatApi::ALL.into(), root: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_door_is_found_by_its_name_and_nothing_else_is() {
        for api in CompatApi::ALL {
            assert!(api.names().all(|name| name.parse() == Ok(api)));
        }
        let error = "002".parse::<CompatApi>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`002` is no door; there are outbox, proxy, pipeline, resend, postmark, sendgrid, mailgun"
        );
    }
}
