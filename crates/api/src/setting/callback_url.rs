//! Checks of hosts that settings ask us to connect to: relays, mailboxes, webhooks, a tenant's client and its
//! files.
//!
//! A setting that would never be connected to is refused at once, whichever key sets it. What a name resolves
//! to is checked at every connection; here, only what needs no resolver.

use url::Url;

use crate::{
    http::error::{ApiError, FieldError},
    state::AppState,
};

/// Refuses the URL in `field` if it is malformed or its host is private.
pub(crate) fn check(app: &AppState, field: &str, url: &str) -> Result<(), FieldError> {
    match host_of(url) {
        None => Err(FieldError::new(field, "must be an address like https://app.example.com")),
        Some(host) => check_host(app, field, &host),
    }
}

/// Refuses hosts, each with its field, that the guard would not connect to.
pub(crate) fn check_hosts<const N: usize>(
    app: &AppState,
    named: [(&'static str, Option<String>); N],
) -> Result<(), ApiError> {
    let named = named.into_iter().filter_map(|(field, host)| Some((field, host?)));
    let wrong: Vec<_> = named.filter_map(|(field, host)| check_host(app, field, &host).err()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(wrong)) }
}

fn check_host(app: &AppState, field: &str, host: &str) -> Result<(), FieldError> {
    app.probe.refusal(host).map_or(Ok(()), |reason| Err(FieldError::new(field, reason)))
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
