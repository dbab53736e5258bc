//! The addresses of a field such as `From` or `To`.

use mail_parser::{Addr, Address, HeaderValue, parsers::MessageStream};

use super::{header::unfold, word::without_false_words};

/// A name and an address in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderAddress {
    /// The name beside the address, decoded.
    pub name: Option<String>,
    /// The address; some entries have only a name.
    pub address: Option<String>,
}

/// The first `count_max` addresses of a field's value, with groups expanded.
///
/// The parser is mail-parser's. It is linear in the length of the value once false `=?` are removed.
pub fn addresses(value: &[u8], count_max: usize) -> Vec<HeaderAddress> {
    let unfolded = unfold(value);
    let mut line = without_false_words(&unfolded).into_owned();
    line.extend_from_slice(b"\r\n");
    let HeaderValue::Address(found) = MessageStream::new(&line).parse_address() else { return Vec::new() };
    let owned = |one: &Addr<'_>| HeaderAddress {
        name: one.name().map(str::to_owned),
        address: one.address().map(str::to_owned),
    };
    match &found {
        Address::List(list) => list.iter().take(count_max).map(owned).collect(),
        Address::Group(groups) => {
            groups.iter().flat_map(|group| &group.addresses).take(count_max).map(owned).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_names_and_groups_are_dissolved() {
        let found = addresses(
            b"=?utf-8?q?Ren=C3=A9e?= <r@example.org>,\r\n friends: a@x.example, \"B, C\" <b@x.example>;",
            10,
        );
        let reported: Vec<_> =
            found.iter().map(|one| (one.name.as_deref(), one.address.as_deref())).collect();
        assert_eq!(
            reported,
            [
                (Some("Ren\u{e9}e"), Some("r@example.org")),
                (None, Some("a@x.example")),
                (Some("B, C"), Some("b@x.example"))
            ]
        );
        assert_eq!(addresses(b"a@b.example, c@d.example", 1).len(), 1);
        assert!(addresses(b"", 10).is_empty());
    }
}
