//! The compatibility APIs, and which of them are enabled.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// A compatibility API, by its name in paths and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompatApi {
    /// `000`: an outbox with callbacks.
    Reference000,
    /// `001`: a message proxy for many tenants.
    Reference001,
    /// `004`: a gateway that validates and sends by SES.
    Reference004,
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
        Self::Reference000,
        Self::Reference001,
        Self::Reference004,
        Self::Resend,
        Self::Postmark,
        Self::SendGrid,
        Self::Mailgun,
    ];

    /// The name in `/compat/NAME`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reference000 => "000",
            Self::Reference001 => "001",
            Self::Reference004 => "004",
            Self::Resend => "resend",
            Self::Postmark => "postmark",
            Self::SendGrid => "sendgrid",
            Self::Mailgun => "mailgun",
        }
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
        let found = Self::ALL.into_iter().find(|api| api.as_str() == text);
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
            assert_eq!(api.to_string().parse(), Ok(api));
        }
        let error = "002".parse::<CompatApi>().unwrap_err().to_string();
        assert_eq!(error, "`002` is no door; there are 000, 001, 004, resend, postmark, sendgrid, mailgun");
    }
}
