//! What messages are composed with: templates, known recipients, signing keys, links. The same for every SQL
//! database.
//!
//! Changes come as [`crate::record::DirectoryChange`] and run in the same transactions as other changes, with
//! their audit entries; links are written with the preparation that made them. Reads use separate
//! connections.

pub(crate) mod dkim_keys;
pub(crate) mod links;
pub(crate) mod recipients;
pub(crate) mod templates;

#[cfg(test)]
mod tests;

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    let listed = [templates::STATEMENTS, recipients::STATEMENTS, dkim_keys::STATEMENTS].concat();
    [listed, links::statements()].concat()
}
