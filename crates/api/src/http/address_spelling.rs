//! Addresses as they are shown: in the spelling of machines, which is compared and sent, and beside it in that of people.

use postway_domain::EmailAddress;

/// The address with A-labels: what an earlier version kept with U-labels is shown as it is found by now.
pub(crate) fn ascii(address: String) -> String {
    match address.is_ascii() {
        true => address,
        false => address.parse::<EmailAddress>().map_or(address, |address| address.to_string()),
    }
}

/// The address with U-labels, where that is another text.
pub(crate) fn unicode(address: &str) -> Option<String> {
    EmailAddress::spellings_of(address).nth(1)
}
