//! The columns that are read, the names that an old system may have for them, and their SQL in each database.

/// A database's dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldDatabaseDialect {
    Sqlite,
    Postgres,
    Mysql,
}

/// The largest cell: the maximum size of a request.
pub(crate) const CELL_BYTES_MAX: usize = 40 * 1024 * 1024;

/// A column that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldColumnSchema {
    /// Its names in the old system: the first that exists is read. Errors use the first name.
    pub(crate) names: &'static [&'static str],
    pub(crate) is_needed: bool,
}

/// A required column.
pub(crate) const fn needed(names: &'static [&'static str]) -> OldColumnSchema {
    OldColumnSchema { names, is_needed: true }
}

/// An optional column.
pub(crate) const fn optional(names: &'static [&'static str]) -> OldColumnSchema {
    OldColumnSchema { names, is_needed: false }
}

/// A table of an old system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldTableSchema {
    pub(crate) name: &'static str,
    /// The columns; the first is the key.
    pub(crate) columns: &'static [OldColumnSchema],
    /// Columns that are known and not read.
    pub(crate) passed_over: &'static [&'static str],
}

/// A table that exists in the old database, with the actual names of its columns.
#[derive(Clone, Debug)]
pub(crate) struct MatchedOldTable {
    pub(crate) table: OldTableSchema,
    /// One name for each column; `None` if it is missing.
    names: Vec<Option<String>>,
    /// Unknown columns, which are not read.
    pub(crate) unread: Vec<String>,
}

impl MatchedOldTable {
    /// Matches the existing columns. Returns also the names of required columns that are missing.
    pub(crate) fn new(table: OldTableSchema, there: Vec<String>) -> (Self, Vec<&'static str>) {
        let find = |column: &OldColumnSchema| {
            let named = |name: &&str| there.iter().find(|there| there.eq_ignore_ascii_case(name));
            column.names.iter().find_map(|name| named(name).cloned())
        };
        let names: Vec<Option<String>> = table.columns.iter().map(find).collect();
        let missing =
            table.columns.iter().zip(&names).filter(|(column, name)| column.is_needed && name.is_none());
        let missing = missing.map(|(column, _)| column.names[0]).collect();
        let is_known = |name: &String| {
            let is_passed_over = |known: &&str| known.eq_ignore_ascii_case(name);
            names.iter().flatten().any(|read| read == name) || table.passed_over.iter().any(is_passed_over)
        };
        let unread = there.into_iter().filter(|name| !is_known(name)).collect();
        (Self { table, names, unread }, missing)
    }

    /// Whether a column exists, by its first name.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.name_of(column).is_some()
    }

    /// The actual name of a column.
    fn name_of(&self, column: &str) -> Option<&str> {
        let place = self.table.columns.iter().position(|one| one.names[0] == column)?;
        self.names[place].as_deref()
    }

    /// A column as SQL; `NULL` if it is missing.
    pub(crate) fn sql(&self, dialect: OldDatabaseDialect, alias: &str, column: &str) -> String {
        match self.name_of(column) {
            Some(name) => format!("{alias}.{}", quoted(dialect, name)),
            None => "NULL".to_owned(),
        }
    }

    /// The columns with their first names, as SQL.
    pub(crate) fn all(&self, dialect: OldDatabaseDialect, alias: &str) -> Vec<(&'static str, String)> {
        let names = self.table.columns.iter().map(|column| column.names[0]);
        names.map(|name| (name, self.sql(dialect, alias, name))).collect()
    }
}

/// Quotes a name. The names are ours, in the spelling of the database.
pub(crate) fn quoted(dialect: OldDatabaseDialect, name: &str) -> String {
    match dialect {
        OldDatabaseDialect::Sqlite | OldDatabaseDialect::Postgres => {
            format!("\"{}\"", name.replace('"', "\"\""))
        }
        OldDatabaseDialect::Mysql => format!("`{}`", name.replace('`', "``")),
    }
}

/// Casts an expression to text.
pub(crate) fn as_text(dialect: OldDatabaseDialect, sql: &str) -> String {
    match dialect {
        OldDatabaseDialect::Sqlite | OldDatabaseDialect::Postgres => format!("CAST({sql} AS TEXT)"),
        OldDatabaseDialect::Mysql => format!("CAST({sql} AS CHAR CHARACTER SET utf8mb4)"),
    }
}

/// Two expressions: the text, `NULL` if it is too long, and its length.
pub(crate) fn bounded(dialect: OldDatabaseDialect, sql: &str) -> String {
    let text = as_text(dialect, sql);
    let bytes = match dialect {
        OldDatabaseDialect::Sqlite => format!("LENGTH(CAST({sql} AS BLOB))"),
        OldDatabaseDialect::Postgres => format!("CAST(OCTET_LENGTH({text}) AS BIGINT)"),
        OldDatabaseDialect::Mysql => format!("CAST(LENGTH({text}) AS SIGNED)"),
    };
    format!("CASE WHEN {bytes} > {CELL_BYTES_MAX} THEN NULL ELSE {text} END, {bytes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: OldTableSchema = OldTableSchema {
        name: "messages",
        columns: &[needed(&["id"]), needed(&["payload"]), optional(&["companyId", "company_id"])],
        passed_over: &["created_at"],
    };

    #[test]
    fn columns_are_found_by_any_of_their_names_and_the_others_are_named() {
        let there = ["ID", "company_id", "created_at", "colour"].map(str::to_owned).to_vec();
        let (found, missing) = MatchedOldTable::new(TABLE, there);
        assert_eq!(missing, ["payload"]);
        assert_eq!(found.unread, ["colour"]);
        assert_eq!(found.sql(OldDatabaseDialect::Postgres, "m", "companyId"), "m.\"company_id\"");
        assert_eq!(found.sql(OldDatabaseDialect::Mysql, "m", "id"), "m.`ID`");
        assert_eq!(found.sql(OldDatabaseDialect::Sqlite, "m", "payload"), "NULL");
    }
}
