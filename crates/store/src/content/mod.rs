//! What content is made with: templates, known recipients, signing keys, links. The same for every SQL database.
//!
//! Changes come as [`crate::record::DirectoryChange`] and run in the directory's transactions, with their audit entries;
//! links are written with the preparation that made them. Reads run on connections of their own.

pub(crate) mod dkim_keys;
pub(crate) mod links;
pub(crate) mod recipients;
pub(crate) mod templates;

#[cfg(test)]
mod tests;

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::Sql> {
    let listed = [templates::STATEMENTS, recipients::STATEMENTS, dkim_keys::STATEMENTS].concat();
    [listed, links::statements()].concat()
}
