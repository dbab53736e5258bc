//! Email addresses: the addr-spec of an envelope and the mailbox of a header.
//!
//! [`EmailAddress`] is an RFC 5321 `Mailbox` with the RFC 6531 extension (UTF-8); [`Mailbox`] adds a display
//! name. Both are parsed once, at the door, and by hand: what holds one of these can be written into an SMTP
//! command or a header without another check. They never contain a control character, and an address contains
//! no white space and no invisible character at all, not even quoted, because nothing legitimate needs them
//! and much that is hostile does.
//!
//! The domain is kept in lower case (and an address literal in its canonical form), so that two spellings of
//! one domain are equal, hash alike and sort together. The local part is the receiver's business and is kept
//! as written. Parsing fails with an [`AddressError`] that says which rule was broken; nothing here panics.
//!
//! Not done here: lists and groups, comments, obsolete syntax, and IDNA (a U-label stays one, and
//! [`EmailAddress::needs_smtputf8`] says so).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest local part (RFC 5321, 4.5.3.1.1).
pub const LOCAL_OCTETS_MAX: usize = 64;
/// The longest address: a path of 256 octets (RFC 5321, 4.5.3.1.3) less its angle brackets.
pub const ADDRESS_OCTETS_MAX: usize = 254;
/// The longest label of a domain (RFC 1035, 2.3.4).
pub const LABEL_OCTETS_MAX: usize = 63;
/// The longest display name; no standard sets one, so this is ours.
pub const NAME_OCTETS_MAX: usize = 512;

/// Why a text is not an email address or a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// There is nothing to parse.
    #[error("the address is empty")]
    Empty,
    /// No `@` parts the address.
    #[error("the address has no @")]
    NoAt,
    /// A control character, white space or invisible character in an address.
    #[error("the address contains U+{:04X}: remove controls, white space and invisible characters", u32::from(*.0))]
    Character(char),
    /// The whole is too long.
    #[error("the address is longer than {ADDRESS_OCTETS_MAX} octets")]
    TooLong,
    /// The part before the `@` is too long.
    #[error("the part before the @ is longer than {LOCAL_OCTETS_MAX} octets")]
    LocalTooLong,
    /// The part before the `@` breaks the syntax.
    #[error("the part before the @ {0}")]
    Local(&'static str),
    /// The domain breaks the syntax.
    #[error("the domain {0}")]
    Domain(&'static str),
    /// The display name breaks the syntax.
    #[error("the display name {0}")]
    Name(&'static str),
    /// The angle brackets are missing or not matched.
    #[error("the mailbox {0}")]
    Brackets(&'static str),
}

/// A valid addr-spec, such as `user@example.org`, with its domain in lower case.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EmailAddress(Box<str>);

impl EmailAddress {
    /// The address as it goes into an SMTP command or between angle brackets.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`, as written (with its quotes, if it has them).
    pub fn local(&self) -> &str {
        self.split().0
    }

    /// The domain in lower case, or the address literal in its brackets.
    pub fn domain(&self) -> &str {
        self.split().1
    }

    /// Whether a server must offer SMTPUTF8 (RFC 6531) to be handed this address.
    pub fn needs_smtputf8(&self) -> bool {
        !self.0.is_ascii()
    }

    fn split(&self) -> (&str, &str) {
        // A domain never holds an @, while a quoted local part may: the last one parts them.
        self.0.rsplit_once('@').unwrap_or((&self.0, ""))
    }
}

impl FromStr for EmailAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.len() > ADDRESS_OCTETS_MAX {
            return Err(AddressError::TooLong);
        }
        if let Some(bad) = text.chars().find(|c| is_unseen(*c)) {
            return Err(AddressError::Character(bad));
        }
        let (local, domain) = text.rsplit_once('@').ok_or(AddressError::NoAt)?;
        check_local(local)?;
        let domain = canonical_domain(domain)?;
        let address = format!("{local}@{domain}");
        // Lower case may be longer than upper case outside ASCII.
        if address.len() > ADDRESS_OCTETS_MAX {
            return Err(AddressError::TooLong);
        }
        Ok(Self(address.into_boxed_str()))
    }
}

fn check_local(local: &str) -> Result<(), AddressError> {
    if local.is_empty() {
        return Err(AddressError::Local("is empty"));
    }
    if local.len() > LOCAL_OCTETS_MAX {
        return Err(AddressError::LocalTooLong);
    }
    if let Some(rest) = local.strip_prefix('"') {
        return check_quoted_local(rest);
    }
    if local.starts_with('.') || local.ends_with('.') || local.contains("..") {
        return Err(AddressError::Local("begins or ends with a dot or has two in a row"));
    }
    if local.chars().all(|c| c == '.' || is_atext(c)) {
        Ok(())
    } else {
        Err(AddressError::Local("contains a character that must be quoted"))
    }
}

fn check_quoted_local(rest: &str) -> Result<(), AddressError> {
    let mut chars = rest.chars();
    let mut length = 0;
    while let Some(c) = chars.next() {
        match c {
            '"' if length == 0 => return Err(AddressError::Local("is an empty quoted string")),
            '"' if chars.as_str().is_empty() => return Ok(()),
            '"' => return Err(AddressError::Local("goes on after its closing quote")),
            '\\' => match chars.next() {
                Some(escaped) if escaped.is_ascii() => length += 1,
                _ => return Err(AddressError::Local("has a backslash that escapes nothing")),
            },
            _ => length += 1,
        }
    }
    Err(AddressError::Local("has no closing quote"))
}

fn canonical_domain(domain: &str) -> Result<String, AddressError> {
    if let Some(rest) = domain.strip_prefix('[') {
        let literal = rest.strip_suffix(']').ok_or(AddressError::Domain("has no closing bracket"))?;
        return canonical_literal(literal);
    }
    if domain.is_empty() {
        return Err(AddressError::Domain("is empty"));
    }
    let lower = domain.to_lowercase();
    for label in lower.split('.') {
        check_label(label)?;
    }
    Ok(lower)
}

fn canonical_literal(literal: &str) -> Result<String, AddressError> {
    const BAD: AddressError =
        AddressError::Domain("is not a literal such as [192.0.2.1] or [IPv6:2001:db8::1]");
    match literal.get(..5) {
        Some(tag) if tag.eq_ignore_ascii_case("ipv6:") => {
            let address: Ipv6Addr = literal[5..].parse().map_err(|_| BAD)?;
            Ok(format!("[IPv6:{address}]"))
        }
        _ => {
            let address: Ipv4Addr = literal.parse().map_err(|_| BAD)?;
            Ok(format!("[{address}]"))
        }
    }
}

fn check_label(label: &str) -> Result<(), AddressError> {
    if label.is_empty() {
        return Err(AddressError::Domain("has an empty label (a dot too many)"));
    }
    if label.len() > LABEL_OCTETS_MAX {
        return Err(AddressError::Domain("has a label longer than 63 octets"));
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(AddressError::Domain("has a label that begins or ends with a hyphen"));
    }
    let allowed = |c: char| {
        if c.is_ascii() { c.is_ascii_alphanumeric() || c == '-' } else { !is_dot_or_wide(c) && !is_unseen(c) }
    };
    if label.chars().all(allowed) {
        Ok(())
    } else {
        Err(AddressError::Domain("contains a character other than letters, digits, hyphens and dots"))
    }
}

/// Characters that IDNA maps to a dot or to ASCII: they would make two domains look like one.
fn is_dot_or_wide(c: char) -> bool {
    matches!(c, '\u{3002}' | '\u{FF00}'..='\u{FFEF}')
}

/// An atom's character: RFC 5322 `atext`, and beyond ASCII anything that can be seen (RFC 6531).
fn is_atext(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

/// Control, white space, and the invisible characters that reorder or hide text.
fn is_unseen(c: char) -> bool {
    const HIDDEN: [std::ops::RangeInclusive<char>; 5] = [
        '\u{00AD}'..='\u{00AD}',
        '\u{200B}'..='\u{200F}',
        '\u{202A}'..='\u{202E}',
        '\u{2060}'..='\u{206F}',
        '\u{FEFF}'..='\u{FEFF}',
    ];
    c.is_control() || c.is_whitespace() || HIDDEN.iter().any(|range| range.contains(&c))
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for EmailAddress {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// An address with an optional display name, such as `"Doe, Jane" <jane@example.org>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mailbox {
    name: Option<String>,
    address: EmailAddress,
}

impl Mailbox {
    /// A mailbox from its parts; the name is trimmed, and an empty one is none.
    pub fn new(name: Option<&str>, address: EmailAddress) -> Result<Self, AddressError> {
        // Before trimming, which would take a line break at either end for white space.
        if name.is_some_and(|name| name.contains(char::is_control)) {
            return Err(AddressError::Name("contains a control character"));
        }
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        if name.is_some_and(|name| name.len() > NAME_OCTETS_MAX) {
            return Err(AddressError::Name("is longer than 512 octets"));
        }
        Ok(Self { name: name.map(str::to_owned), address })
    }

    /// The display name, without quotes; never empty.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address.
    pub fn address(&self) -> &EmailAddress {
        &self.address
    }

    /// The address alone, when the name is not wanted any more.
    pub fn into_address(self) -> EmailAddress {
        self.address
    }
}

impl From<EmailAddress> for Mailbox {
    fn from(address: EmailAddress) -> Self {
        Self { name: None, address }
    }
}

impl FromStr for Mailbox {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim_matches(' ');
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        let Some(inner) = text.strip_suffix('>') else {
            // A '<' inside the quotes of a local part is no bracket; every other one has lost its '>'.
            return match text.parse() {
                Ok(address) => Ok(Self { name: None, address }),
                Err(_) if text.contains('<') => {
                    Err(AddressError::Brackets("has a < but does not end with >"))
                }
                Err(error) => Err(error),
            };
        };
        let (name, address) = match inner.strip_prefix('"') {
            Some(rest) => split_quoted_name(rest)?,
            None => split_plain_name(inner)?,
        };
        Self::new(Some(&name), address.parse()?)
    }
}

fn split_plain_name(inner: &str) -> Result<(String, &str), AddressError> {
    let (name, address) = inner.split_once('<').ok_or(AddressError::Brackets("has a > without a <"))?;
    if name.contains(needs_quotes) {
        return Err(AddressError::Name(
            "contains one of , ; : @ \" \\ > and must be put in quotes (one mailbox only, no list)",
        ));
    }
    Ok((name.to_owned(), address))
}

fn split_quoted_name(rest: &str) -> Result<(String, &str), AddressError> {
    let mut name = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next() {
            Some('"') => break,
            Some('\\') => name.extend(chars.next()),
            Some(c) => name.push(c),
            None => return Err(AddressError::Name("has no closing quote")),
        }
    }
    let address = chars
        .as_str()
        .trim_start_matches(' ')
        .strip_prefix('<')
        .ok_or(AddressError::Brackets("must have <address> right after the quoted name"))?;
    Ok((name, address))
}

/// What an unquoted name may not hold. RFC 5322 counts `.()[]` too, but read literally they do no harm, and
/// people do write `Acme Inc. (Sales) <sales@acme.example>`.
fn needs_quotes(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '@' | '"' | '\\' | '<' | '>')
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let Some(name) = &self.name else {
            return self.address.fmt(f);
        };
        if name.chars().all(|c| c == ' ' || is_atext(c)) {
            f.write_str(name)?;
        } else {
            f.write_char('"')?;
            for c in name.chars() {
                if matches!(c, '"' | '\\') {
                    f.write_char('\\')?;
                }
                f.write_char(c)?;
            }
            f.write_char('"')?;
        }
        write!(f, " <{}>", self.address)
    }
}

macro_rules! serde_as_string {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

serde_as_string!(EmailAddress);
serde_as_string!(Mailbox);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> Result<EmailAddress, AddressError> {
        text.parse()
    }

    fn mailbox(text: &str) -> Result<Mailbox, AddressError> {
        text.parse()
    }

    #[test]
    fn ordinary_and_unusual_addresses_are_accepted() {
        for text in [
            "a@b",
            "user.name+tag@example.org",
            "!#$%&'*+-/=?^_`{|}~@example.org",
            r#""a@b"@example.org"#,
            r#""a\"b"@example.org"#,
            "user@[192.0.2.1]",
            "user@[IPv6:2001:db8::1]",
            "пример@пример.рф",
            "user@münchen.de",
        ] {
            assert_eq!(address(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn malformed_addresses_are_refused_with_the_reason() {
        let long_local = format!("{}@b", "a".repeat(65));
        let long_label = format!("a@{}.org", "b".repeat(64));
        let long = format!("a@{}", vec!["b".repeat(60); 5].join("."));
        for (text, words) in [
            ("", "empty"),
            ("plain", "no @"),
            ("@b", "before the @ is empty"),
            ("a@", "domain is empty"),
            ("a b@c", "U+0020"),
            ("a@b\r\nRCPT TO:<x@y>", "U+000D"),
            ("a\0@b", "U+0000"),
            ("\"a b\"@c", "U+0020"),
            ("a@b\u{202E}c", "U+202E"),
            (".a@b", "dot"),
            ("a..b@c", "dot"),
            ("a,b@c", "must be quoted"),
            ("<a@b>", "must be quoted"),
            ("\"a@b", "closing quote"),
            ("\"a\"b@c", "closing quote"),
            ("\"\"@c", "empty quoted"),
            ("a@b..c", "empty label"),
            ("a@b.", "empty label"),
            ("a@-b.c", "hyphen"),
            ("a@b_c.d", "other than letters"),
            ("a@b。c", "other than letters"),
            ("a@[300.1.1.1]", "literal"),
            ("a@[IPv6:zz]", "literal"),
            ("a@[192.0.2.1", "closing bracket"),
            (&long_local, "64 octets"),
            (&long_label, "63 octets"),
            (&long, "254 octets"),
        ] {
            let error = address(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }

    #[test]
    fn domains_are_equal_in_any_case_and_local_parts_are_not() {
        assert_eq!(address("u@EXAMPLE.org"), address("u@example.ORG"));
        assert_eq!(address("u@[ipv6:2001:DB8:0::1]"), address("u@[IPv6:2001:db8::1]"));
        assert_ne!(address("U@example.org"), address("u@example.org"));
        let parsed = address("Ab@EXAMPLE.org").unwrap();
        assert_eq!((parsed.local(), parsed.domain()), ("Ab", "example.org"));
    }

    #[test]
    fn only_non_ascii_addresses_need_smtputf8() {
        assert!(!address("a@b").unwrap().needs_smtputf8());
        assert!(address("ä@b").unwrap().needs_smtputf8());
        assert!(address("a@ä").unwrap().needs_smtputf8());
    }

    #[test]
    fn mailboxes_are_read_in_their_three_forms() {
        for (text, name) in [
            ("a@b", None),
            ("<a@b>", None),
            ("\"\" <a@b>", None),
            (" Jane Doe <a@b> ", Some("Jane Doe")),
            ("Acme Inc. (Sales) <a@b>", Some("Acme Inc. (Sales)")),
            (r#""Doe, \"J\" \\" <a@b>"#, Some(r#"Doe, "J" \"#)),
            ("Zoë <a@b>", Some("Zoë")),
        ] {
            let parsed = mailbox(text).unwrap();
            assert_eq!((parsed.name(), parsed.address().as_str()), (name, "a@b"), "{text}");
        }
        assert_eq!(mailbox(r#""<"@b"#).unwrap().address().as_str(), r#""<"@b"#);
    }

    #[test]
    fn lists_groups_and_broken_mailboxes_are_refused() {
        for text in [
            "a@b, c@d",
            "A <a@b>, C <c@d>",
            "Doe, Jane <a@b>",
            "group: a@b;",
            "x@y <a@b>",
            "A <a@b",
            "a@b>",
            "\"A <a@b>",
            "\"A\" x <a@b>",
            "A <a@b> c",
            "A <>",
            "A\r\nBcc: x <a@b>",
            "A\t<a@b>",
            "A\r\n <a@b>",
            "\n<a@b>",
            "\"A\u{1}\" <a@b>",
        ] {
            assert!(mailbox(text).is_err(), "{text:?}");
        }
        assert!(mailbox(&format!("{} <a@b>", "n".repeat(513))).is_err());
    }

    #[test]
    fn serde_speaks_strings_and_refuses_what_parsing_refuses() {
        let parsed: Mailbox = serde_json::from_str(r#""Jane <jane@example.org>""#).unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), r#""Jane <jane@example.org>""#);
        let error = serde_json::from_str::<EmailAddress>(r#""nobody""#).unwrap_err();
        assert!(error.to_string().contains("no @"), "{error}");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>(), near in r#"["<>\\a-c@., \[\]:;é]{0,40}"#) {
            for text in [text, near] {
                if let Ok(parsed) = address(&text) {
                    prop_assert!(!parsed.as_str().contains(is_unseen));
                    prop_assert_eq!(address(parsed.as_str()), Ok(parsed));
                }
                if let Ok(parsed) = mailbox(&text) {
                    prop_assert_eq!(mailbox(&parsed.to_string()), Ok(parsed));
                }
            }
        }

        #[test]
        fn a_displayed_mailbox_parses_to_itself(name in any::<String>(), local in r#"[a-zé"\\<>,@!.]{1,12}"#) {
            let quoted = format!("\"{}\"@Example.org", local.replace('\\', "\\\\").replace('"', "\\\""));
            let Ok(built) = Mailbox::new(Some(&name), address(&quoted).unwrap()) else { return Ok(()) };
            prop_assert_eq!(mailbox(&built.to_string()), Ok(built));
        }
    }
}
