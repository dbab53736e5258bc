//! The two spellings of an address: ASCII, which is compared and sent, and Unicode, which is shown beside it.

use postway_domain::EmailAddress;

/// The address with A-labels. Earlier versions stored U-labels; those are converted here.
pub(crate) fn ascii(address: String) -> String {
    match address.is_ascii() {
        true => address,
        false => address.parse::<EmailAddress>().map_or(address, |address| address.to_string()),
    }
}

/// The address with U-labels, if that differs from the ASCII spelling.
pub(crate) fn unicode(address: &str) -> Option<String> {
    EmailAddress::spellings_of(address).nth(1)
}
