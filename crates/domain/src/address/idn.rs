//! Internationalised domains (IDNA, UTS #46 without its transitional forms).
//!
//! A domain has two spellings: A-labels (`xn--mller-kva.example`) for machines and U-labels
//! (`müller.example`) for people. Postway uses A-labels on the wire and in every comparison, since every
//! relay accepts them and there is only one such spelling. U-labels are shown beside them.

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::AddressError;

/// The prefix of an A-label.
const PREFIX: &str = "xn--";

/// Whether one of the labels has the prefix of an A-label.
pub(super) fn has_a_label(domain: &str) -> bool {
    domain
        .split('.')
        .any(|label| label.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX)))
}

/// The domain with each non-ASCII label as an A-label; existing A-labels are checked.
pub(super) fn to_a_labels(domain: &str) -> Result<String, AddressError> {
    match Uts46::new().to_ascii(
        domain.as_bytes(),
        AsciiDenyList::STD3,
        Hyphens::CheckFirstLast,
        DnsLength::Verify,
    ) {
        Ok(ascii) => Ok(ascii.into_owned()),
        Err(_) => Err(AddressError::Label(bad_label(domain).into())),
    }
}

/// The invalid label, or the complete domain if it is merely too long.
fn bad_label(domain: &str) -> &str {
    let is_good = |label: &str| {
        let deny = AsciiDenyList::STD3;
        Uts46::new().to_ascii(label.as_bytes(), deny, Hyphens::CheckFirstLast, DnsLength::Verify).is_ok()
    };
    domain.split('.').find(|label| !is_good(label)).unwrap_or(domain)
}

/// The domain with U-labels, if that differs from `domain`. Returns `None` for a text that is not an
/// internationalised domain.
pub fn domain_to_unicode(domain: &str) -> Option<String> {
    if !has_a_label(domain) {
        return None;
    }
    let deny = AsciiDenyList::STD3;
    let (unicode, result) = Uts46::new().to_unicode(domain.as_bytes(), deny, Hyphens::CheckFirstLast);
    (result.is_ok() && unicode != domain).then(|| unicode.into_owned())
}
