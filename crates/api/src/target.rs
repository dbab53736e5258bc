//! Addresses that a tenant has us call: webhooks, its client, its files.
//!
//! One that would not be called must not look as if it were, whichever key names it. What a name resolves to is checked with every
//! call; here, what needs no resolver.

use url::Url;

use crate::{error::FieldError, state::App};

/// What is said of a private host.
const PRIVATE: &str =
    "is private and would not be called; allow its network with POSTWAY_ALLOW_PRIVATE_TARGETS";

/// Refuses the address in `field` where its host is private, and what is no address at all.
pub(crate) fn check(app: &App, field: &str, url: &str) -> Result<(), FieldError> {
    match host_of(url) {
        None => Err(FieldError::new(field, "must be an address like https://app.example.com")),
        Some(host) if !app.probe.may_name(&host) => Err(FieldError::new(field, PRIVATE)),
        Some(_) => Ok(()),
    }
}

fn host_of(url: &str) -> Option<String> {
    Some(Url::parse(url).ok()?.host_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_seen_through_its_spelling() {
        for spelling in ["http://127.1/", "http://0x7f000001:80/", "http://2130706433", "HTTP://127.0.0.1/x"]
        {
            assert_eq!(host_of(spelling).as_deref(), Some("127.0.0.1"), "{spelling}");
        }
        assert_eq!(host_of("http://[::1]:80/").as_deref(), Some("[::1]"));
        assert_eq!(host_of("https://"), None);
    }
}
