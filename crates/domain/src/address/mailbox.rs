//! The mailbox of a header: an address with a display name.

use std::{fmt, str::FromStr};

use super::{AddressError, EmailAddress, NAME_OCTETS_MAX, is_atext};

/// An address with an optional display name, such as `"Doe, Jane" <jane@example.org>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedAddress {
    name: Option<String>,
    address: EmailAddress,
}

impl NamedAddress {
    /// A mailbox from its parts. The name is trimmed; an empty name counts as absent.
    pub fn new(name: Option<&str>, address: EmailAddress) -> Result<Self, AddressError> {
        // Checked before trimming, which would remove a line break at either end.
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

    /// The address, without the name.
    pub fn into_address(self) -> EmailAddress {
        self.address
    }
}

impl From<EmailAddress> for NamedAddress {
    fn from(address: EmailAddress) -> Self {
        Self { name: None, address }
    }
}

impl FromStr for NamedAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim_matches(' ');
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        let Some(inner) = text.strip_suffix('>') else {
            // A '<' inside a quoted local part is not a bracket; any other one lacks its '>'.
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

/// Characters that an unquoted name must not contain. RFC 5322 also excludes `.()[]`, but they are harmless
/// if read literally, and people write `Acme Inc. (Sales) <sales@acme.example>`.
fn needs_quotes(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '@' | '"' | '\\' | '<' | '>')
}

impl fmt::Display for NamedAddress {
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
