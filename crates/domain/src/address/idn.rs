//! Internationalised domains (IDNA, UTS #46 without its transitional forms).
//!
//! A domain has two spellings: A-labels (`xn--mller-kva.example`) for machines and U-labels (`müller.example`) for people.
//! Ours is that of machines, on the wire and in every comparison, since each relay takes it and it is one text, however the
//! other was typed; the other is shown beside it.

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::AddressError;

/// What an A-label begins with.
const PREFIX: &str = "xn--";

/// Whether one of the labels is an A-label, or means to be one.
pub(super) fn has_a_label(domain: &str) -> bool {
    domain
        .split('.')
        .any(|label| label.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX)))
}

/// A domain with each label outside ASCII as an A-label; those that are A-labels already are checked to be some.
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

/// The label that is at fault, or the whole where they are only too long together.
fn bad_label(domain: &str) -> &str {
    let is_good = |label: &str| {
        let deny = AsciiDenyList::STD3;
        Uts46::new().to_ascii(label.as_bytes(), deny, Hyphens::CheckFirstLast, DnsLength::Verify).is_ok()
    };
    domain.split('.').find(|label| !is_good(label)).unwrap_or(domain)
}

/// The spelling of a domain for people, where it is another than that for machines.
///
/// Anything may be given: what is no internationalised domain has no other spelling.
pub fn domain_to_unicode(domain: &str) -> Option<String> {
    if !has_a_label(domain) {
        return None;
    }
    let deny = AsciiDenyList::STD3;
    let (unicode, result) = Uts46::new().to_unicode(domain.as_bytes(), deny, Hyphens::CheckFirstLast);
    (result.is_ok() && unicode != domain).then(|| unicode.into_owned())
}
