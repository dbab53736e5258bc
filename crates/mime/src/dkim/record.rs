//! The DNS record that publishes a key: its name, its content, and checks of both names.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{Algorithm, DkimError, key::key_tag};

/// The longest DNS name, written with dots.
const NAME_OCTETS_MAX: usize = 253;

/// The DNS name of a selector's record, without a final dot.
pub fn dns_name(selector: &str, domain: &str) -> String {
    format!("{selector}._domainkey.{domain}")
}

/// The record's content; [`postway_domain::dns::quoted_txt`] writes it for a zone file.
pub fn dns_record(algorithm: Algorithm, public: &[u8]) -> String {
    format!("v=DKIM1; k={}; p={}", key_tag(algorithm), BASE64_STANDARD.encode(public))
}

/// Checks that a selector and a domain can be published and named in a signature;
/// [`DkimSigner`](super::Signer) does too.
pub fn check_names(selector: &str, domain: &str) -> Result<(), DkimError> {
    if !is_host_name(domain) || !domain.contains('.') {
        return Err(DkimError::Domain(domain.chars().take(NAME_OCTETS_MAX).collect()));
    }
    if !is_host_name(selector) || dns_name(selector, domain).len() > NAME_OCTETS_MAX {
        return Err(DkimError::Selector(selector.chars().take(NAME_OCTETS_MAX).collect()));
    }
    Ok(())
}

fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let fits = (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-');
        fits && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_that_of_the_rfc() {
        // RFC 8463, A.2.
        let public = BASE64_STANDARD.decode("11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=").unwrap();
        assert_eq!(
            dns_record(Algorithm::Ed25519, &public),
            "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
        );
        assert_eq!(dns_name("brisbane", "football.example.com"), "brisbane._domainkey.football.example.com");
    }

    #[test]
    fn names_that_would_break_the_signature_or_the_record_are_refused() {
        assert_eq!(check_names("a.b-1", "example.com"), Ok(()));
        let long = "a".repeat(64);
        for bad in
            ["", "example", "bücher.example", "a..b", "-a.example", "a b.example", "a;d=b.example", &long]
        {
            assert!(matches!(check_names("s", bad), Err(DkimError::Domain(_))), "{bad:?}");
        }
        let deep = "abcdefgh.".repeat(30);
        for bad in ["", "a_b", "a\r\n", deep.trim_end_matches('.')] {
            assert!(matches!(check_names(bad, "example.com"), Err(DkimError::Selector(_))), "{bad:?}");
        }
    }
}
