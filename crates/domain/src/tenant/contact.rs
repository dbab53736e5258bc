//! Contacts: a tenant's directory of names and addresses that inbound rules look up, such as the person in
//! charge of a customer. Recipients that mail can be addressed to by id are in `known_recipient`.

use crate::{
    identity::id::{ContactId, TenantId},
    time::Time,
};

/// A name with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its id.
    pub id: ContactId,
    /// The name that rules look up, unique in its tenant by [`Contact::key`].
    pub name: String,
    /// The addresses; a contact may have none.
    pub addresses: Vec<String>,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl Contact {
    /// The most addresses of a contact.
    pub const ADDRESSES_MAX: usize = 100;
    /// The longest name, in characters.
    pub const NAME_CHARS_MAX: usize = 200;

    /// The key by which names are compared, without regard to case and the amount of white space.
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
