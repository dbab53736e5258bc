//! Email addresses: the addr-spec of an envelope and the mailbox of a header.
//!
//! [`EmailAddress`] is an RFC 5321 `NamedAddress` with the RFC 6531 extension (UTF-8); [`NamedAddress`] adds
//! a display name. Both are parsed once, by intake, so that a value of these types can be written into an
//! SMTP command or a header without another check. They never contain a control character. An address
//! contains no white space and no invisible character, not even quoted, because nothing legitimate needs them
//! and attacks do.
//!
//! The domain is stored in lower case and as A-labels (an address literal in its canonical form), so that two
//! spellings of one domain are equal, hash alike and sort together; [`EmailAddress::to_unicode`] has the
//! spelling for people. The local part belongs to the receiver and is stored as written. Parsing fails with
//! an [`AddressError`] that names the broken rule; nothing here panics.
//!
//! Groups, comments and obsolete syntax are not supported.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub mod dns;
mod domain_pattern;
mod idn;
mod list;
mod mailbox;
pub mod pattern;
pub mod suppression;

pub use idn::domain_to_unicode;
pub use list::split_list;
pub use mailbox::NamedAddress;

/// The longest address: a path of 256 octets (RFC 5321, 4.5.3.1.3) without its angle brackets. The local part
/// has no separate bound: RFC 5321 (4.5.3.1.1) names 64 octets, but VERP, SRS and BATV write a complete
/// address into it, and a server that refuses such an address loses the bounces that come back to it.
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
    /// The address has no `@`.
    #[error("the address has no @")]
    NoAt,
    /// A control character, white space or invisible character in an address.
    #[error("the address contains U+{:04X}: remove controls, white space and invisible characters", u32::from(*.0))]
    Character(char),
    /// The address is too long.
    #[error("the address is longer than {ADDRESS_OCTETS_MAX} octets")]
    TooLong,
    /// The part before the `@` breaks the syntax.
    #[error("the part before the @ {0}")]
    Local(&'static str),
    /// The domain breaks the syntax.
    #[error("the domain {0}")]
    Domain(&'static str),
    /// A label of the domain is not a valid internationalised name.
    #[error("the domain has the label `{0}`, which is no valid internationalised name (IDNA)")]
    Label(Box<str>),
    /// The display name breaks the syntax.
    #[error("the display name {0}")]
    Name(&'static str),
    /// The angle brackets are missing or not matched.
    #[error("the mailbox {0}")]
    Brackets(&'static str),
}

/// A valid addr-spec, such as `user@example.org`, with its domain in lower case and as A-labels.
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

    /// The domain in lower case and as A-labels, or the address literal in its brackets.
    pub fn domain(&self) -> &str {
        self.split().1
    }

    /// Whether a server must offer SMTPUTF8 (RFC 6531) to accept this address. The domain never needs it.
    pub fn needs_smtputf8(&self) -> bool {
        !self.0.is_ascii()
    }

    /// The address with U-labels, if that differs.
    pub fn to_unicode(&self) -> Option<String> {
        let (local, domain) = self.split();
        domain_to_unicode(domain).map(|domain| format!("{local}@{domain}"))
    }

    /// Reads a stored address, which may be older than the rule that domains are stored as A-labels. A domain
    /// that IDNA would refuse now stays unchanged: mail that was accepted must stay readable.
    pub fn read_back(text: &str) -> Result<Self, AddressError> {
        text.parse().or_else(|error| match error {
            AddressError::Label(_) => Ok(Self(text.into())),
            error => Err(error),
        })
    }

    /// The key for comparing addresses without regard to case; for a malformed address, the text in lower
    /// case.
    pub fn key_of(text: &str) -> String {
        let text = text.trim();
        let is_idn = |(_, domain): (&str, &str)| !domain.is_ascii() || idn::has_a_label(domain);
        let has_idn = text.rsplit_once('@').is_some_and(is_idn);
        match has_idn.then(|| text.parse::<Self>()) {
            Some(Ok(address)) => address.as_str().to_lowercase(),
            Some(Err(_)) | None => text.to_lowercase(),
        }
    }

    /// Whether two texts are the same address, whatever their case and the spelling of the domain.
    pub fn is_same(one: &str, other: &str) -> bool {
        let (one, other) = (one.trim(), other.trim());
        one.eq_ignore_ascii_case(other) || Self::key_of(one) == Self::key_of(other)
    }

    /// The spellings under which an address may have been stored or signed: as given, and with the other kind
    /// of labels if that differs.
    pub fn spellings_of(text: &str) -> impl Iterator<Item = String> + use<> {
        let other = text.rsplit_once('@').and_then(|(local, domain)| {
            let other = match domain.is_ascii() {
                true => domain_to_unicode(domain),
                false => canonical_domain(domain).ok(),
            };
            other.map(|domain| format!("{local}@{domain}"))
        });
        std::iter::once(text.to_owned()).chain(other)
    }

    fn split(&self) -> (&str, &str) {
        // A domain has no @, while a quoted local part may: the last one separates them.
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
        // A-labels may be longer than the U-labels.
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

/// The domain in the spelling that is compared and sent: in lower case and as A-labels.
pub fn domain_to_ascii(domain: &str) -> Result<String, AddressError> {
    match domain.chars().find(|c| is_unseen(*c)) {
        Some(bad) => Err(AddressError::Character(bad)),
        None => canonical_domain(domain),
    }
}

fn canonical_domain(domain: &str) -> Result<String, AddressError> {
    if let Some(rest) = domain.strip_prefix('[') {
        let literal = rest.strip_suffix(']').ok_or(AddressError::Domain("has no closing bracket"))?;
        return canonical_literal(literal);
    }
    if domain.is_empty() {
        return Err(AddressError::Domain("is empty"));
    }
    for label in domain.split('.') {
        check_label(label)?;
    }
    if domain.is_ascii() && !idn::has_a_label(domain) {
        return Ok(domain.to_ascii_lowercase());
    }
    idn::to_a_labels(domain)
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
    // A non-ASCII label counts with the length of its A-label.
    if label.is_ascii() && label.len() > LABEL_OCTETS_MAX {
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

/// Characters that IDNA maps to a dot or to ASCII, so that two domains would look alike.
fn is_dot_or_wide(c: char) -> bool {
    matches!(c, '\u{3002}' | '\u{FF00}'..='\u{FFEF}')
}

/// A character of an atom: RFC 5322 `atext`, and every visible character beyond ASCII (RFC 6531).
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
serde_as_string!(NamedAddress);

#[cfg(test)]
mod tests;
