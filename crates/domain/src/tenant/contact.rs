//! A tenant's directory of contacts: names that rules look up, and the addresses behind them.

use crate::{
    identity::id::{ContactId, TenantId},
    time::Time,
};

/// A name and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Whose directory.
    pub tenant: TenantId,
    /// Its id.
    pub id: ContactId,
    /// The name it is found by, unique in its tenant as [`Contact::key`] has it.
    pub name: String,
    /// Where to; none means that the name is known and has no address.
    pub addresses: Vec<String>,
    /// Rises with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl Contact {
    /// Addresses of one contact, at most.
    pub const ADDRESSES_MAX: usize = 100;
    /// Characters of a name, at most.
    pub const NAME_CHARS_MAX: usize = 200;

    /// What names are compared by: neither case nor the amount of white space matters.
    pub fn key(name: &str) -> String {
        let mut key = String::with_capacity(name.len());
        for word in name.split_whitespace() {
            if !key.is_empty() {
                key.push(' ');
            }
            key.extend(word.chars().flat_map(char::to_lowercase));
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_whatever_their_case_and_spacing() {
        assert_eq!(Contact::key("  Ada\tLOVELACE "), "ada lovelace");
        assert_eq!(Contact::key(" \n"), "");
    }
}
