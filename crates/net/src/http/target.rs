//! Checks which URLs may be requested.
//!
//! A URL is checked in its parsed form, so that every spelling of an address (decimal, octal, hexadecimal,
//! shortened, IPv4 inside IPv6) has become the address itself. An address is checked against the guard here,
//! because it is not resolved; the resolver checks names.

use std::net::IpAddr;

use url::{Host, Url};

use super::error::HttpError;
use crate::AddressGuard;

/// The longest URL, in bytes.
pub(super) const URL_BYTES_MAX: usize = 2_048;

fn refused(reason: impl Into<String>) -> HttpError {
    HttpError::Url { reason: reason.into() }
}

/// Parses a URL and checks everything that needs neither a network nor a guard.
pub fn parse_url(text: &str) -> Result<Url, HttpError> {
    if text.len() > URL_BYTES_MAX {
        return Err(refused(format!("is longer than {URL_BYTES_MAX} bytes: shorten it")));
    }
    let url = Url::parse(text).map_err(|error| refused(format!("cannot be read: {error}")))?;
    check_form(&url)?;
    Ok(url)
}

fn check_form(url: &Url) -> Result<(), HttpError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("is neither http nor https: give one of these"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("holds a user name or password: give them apart from it"));
    }
    if url.host().is_none() {
        return Err(refused("has no host: name one"));
    }
    if url.port() == Some(0) {
        return Err(refused("has port 0: give the port of the service"));
    }
    // Checked again, because parsing can make a URL longer.
    if url.as_str().len() > URL_BYTES_MAX {
        return Err(refused(format!("is longer than {URL_BYTES_MAX} bytes once encoded: shorten it")));
    }
    Ok(())
}

/// Checks a URL before a request.
pub(super) fn check_target(url: &Url, guard: &AddressGuard) -> Result<(), HttpError> {
    check_form(url)?;
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    if guard.allows(address) { Ok(()) } else { Err(HttpError::Guarded { host: host(url) }) }
}

/// Host and port, for errors.
pub(super) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://①②⑦.0.0.1/",
            "http:\\\\127.0.0.1/",
            "http://0/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0xA9FEA9FE/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "http://10.0.0.1:8080/",
            "https://192.168.1.1/",
        ] {
            let url = parse_url(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let error = check_target(&url, &AddressGuard::default()).unwrap_err();
            assert!(matches!(error, HttpError::Guarded { .. }), "{text}: {error}");
            assert!(error.to_string().contains("POSTWAY_ALLOW_PRIVATE_TARGETS") && !error.is_transient());
        }
    }

    #[test]
    fn names_and_public_addresses_pass_to_the_resolver() {
        for text in ["http://example.com/a?b=c", "https://8.8.8.8:8443/", "http://[2606:4700::1111]/"] {
            check_target(&parse_url(text).unwrap(), &AddressGuard::default()).unwrap();
        }
    }

    #[test]
    fn what_is_no_plain_web_address_is_refused_with_the_reason() {
        let long = format!("http://example.com/{}", "a".repeat(URL_BYTES_MAX));
        // Three bytes for every one once it is encoded.
        let grows = format!("http://example.com/{}", " ".repeat(1_000)) + "x";
        for (text, reason) in [
            ("file:///etc/passwd", "neither http nor https"),
            ("gopher://example.com/", "neither http nor https"),
            ("ftp://example.com/", "neither http nor https"),
            ("http://user@example.com/", "user name"),
            ("http://:secret@example.com/", "user name"),
            ("http://example.com:0/", "port 0"),
            ("http://example.com:99999/", "invalid port"),
            ("http://", "empty host"),
            ("http://256.256.256.256/", "IPv4"),
            ("/etc/passwd", "cannot be read"),
            (&long, "longer than 2048"),
            (&grows, "longer than 2048"),
        ] {
            let error = parse_url(text).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
