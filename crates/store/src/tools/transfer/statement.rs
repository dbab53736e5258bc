//! The SQL of a transfer, generated from the list of tables for each database.

use super::table_description::{ColumnKind, CopiedColumn, CopiedTable};

/// The SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyDialect {
    Sqlite,
    Postgres,
    Mysql,
}

/// The values of the key to bind, by their positions in it.
pub(super) type KeyPlaces = Vec<usize>;

impl CopyDialect {
    /// Quotes a name that may be a keyword, such as `key`.
    fn quoted(self, name: &str) -> String {
        match self {
            CopyDialect::Mysql => format!("`{name}`"),
            CopyDialect::Sqlite | CopyDialect::Postgres => format!("\"{name}\""),
        }
    }

    fn list(self, columns: &[CopiedColumn]) -> String {
        columns.iter().map(|column| self.quoted(column.name)).collect::<Vec<_>>().join(", ")
    }

    /// The placeholder of the n-th value, counted from one.
    pub fn place(self, n: usize) -> String {
        match self {
            CopyDialect::Postgres => format!("${n}"),
            CopyDialect::Sqlite | CopyDialect::Mysql => "?".to_owned(),
        }
    }

    /// The placeholders of `count` values.
    pub fn places(self, count: usize) -> String {
        (1..=count).map(|n| self.place(n)).collect::<Vec<_>>().join(", ")
    }

    /// The condition for rows after a key.
    fn after(self, table: &CopiedTable) -> (String, KeyPlaces) {
        let key = table.key_columns();
        match self {
            CopyDialect::Sqlite | CopyDialect::Postgres => {
                (format!("({}) > ({})", self.list(key), self.places(key.len())), (0..key.len()).collect())
            }
            // MySQL reads an index from its beginning for a comparison of row values.
            CopyDialect::Mysql => {
                let (mut steps, mut places) = (Vec::new(), Vec::new());
                for last in 0..key.len() {
                    let equal = key[..last].iter().map(|column| format!("{} = ?", self.quoted(column.name)));
                    let above = format!("{} > ?", self.quoted(key[last].name));
                    steps.push(format!("({})", equal.chain([above]).collect::<Vec<_>>().join(" AND ")));
                    places.extend(0..=last);
                }
                (steps.join(" OR "), places)
            }
        }
    }

    fn page_of(self, what: &str, table: &CopiedTable, after_key: bool, rows: usize) -> (String, KeyPlaces) {
        let mut sql = format!("SELECT {what} FROM {}", self.quoted(table.name));
        if self == CopyDialect::Mysql {
            sql.push_str(" FORCE INDEX (PRIMARY)");
        }
        let (condition, places) = match after_key {
            true => self.after(table),
            false => (String::new(), Vec::new()),
        };
        if after_key {
            sql.push_str(&format!(" WHERE {condition}"));
        }
        sql.push_str(&format!(" ORDER BY {} LIMIT {rows}", self.list(table.key_columns())));
        (sql, places)
    }

    /// Reads the next rows of a table.
    pub fn page(self, table: &CopiedTable, after_key: bool, rows: usize) -> (String, KeyPlaces) {
        self.page_of(&self.list(table.columns), table, after_key, rows)
    }

    /// Reads how large the next rows are.
    pub fn sizes(
        self,
        table: &CopiedTable,
        bytes: &str,
        after_key: bool,
        rows: usize,
    ) -> (String, KeyPlaces) {
        self.page_of(bytes, table, after_key, rows)
    }

    /// Counts a table, and sums its change numbers.
    pub fn count(self, table: &CopiedTable) -> String {
        let integer = match self {
            CopyDialect::Mysql => "SIGNED",
            CopyDialect::Sqlite | CopyDialect::Postgres => "BIGINT",
        };
        let (name, summed) = (self.quoted(table.name), table.summed);
        format!("SELECT COUNT(*), CAST(COALESCE(SUM({summed}), 0) AS {integer}) FROM {name}")
    }

    /// Finds a row that no first start writes.
    pub fn foreign_row(self, table: &CopiedTable) -> String {
        let condition = table.seeds.map(|seeds| format!(" WHERE NOT ({seeds})")).unwrap_or_default();
        format!("SELECT 1 FROM {}{condition} LIMIT 1", self.quoted(table.name))
    }

    /// Deletes the rows that a first start writes.
    pub fn delete_seeds(self, table: &CopiedTable) -> Option<String> {
        table.seeds.map(|seeds| format!("DELETE FROM {} WHERE {seeds}", self.quoted(table.name)))
    }

    /// Writes rows given as single values, or on PostgreSQL as one array for each column.
    pub fn insert(self, table: &CopiedTable, rows: usize) -> String {
        let head = format!("INSERT INTO {} ({})", self.quoted(table.name), self.list(table.columns));
        let values = match self {
            CopyDialect::Postgres => {
                let arrays =
                    (1..).zip(table.columns).map(|(n, column)| format!("${n}::{}", array(column.kind)));
                format!("SELECT * FROM UNNEST({})", arrays.collect::<Vec<_>>().join(", "))
            }
            CopyDialect::Sqlite | CopyDialect::Mysql => {
                let row = format!("({})", vec!["?"; table.columns.len()].join(","));
                format!("VALUES {}", vec![row; rows].join(","))
            }
        };
        format!("{head} {values} {}", self.replace(table))
    }

    /// Existing rows are replaced by those of the source.
    fn replace(self, table: &CopiedTable) -> String {
        let rest = &table.columns[table.key..];
        let set = |column: &CopiedColumn| {
            let name = self.quoted(column.name);
            match self {
                CopyDialect::Mysql => format!("{name} = VALUES({name})"),
                CopyDialect::Sqlite | CopyDialect::Postgres => format!("{name} = excluded.{name}"),
            }
        };
        let changes = rest.iter().map(set).collect::<Vec<_>>().join(", ");
        let key = self.list(table.key_columns());
        match self {
            // `INSERT IGNORE` would ignore values that do not fit as well.
            CopyDialect::Mysql if rest.is_empty() => {
                let name = self.quoted(table.columns[0].name);
                format!("ON DUPLICATE KEY UPDATE {name} = {name}")
            }
            CopyDialect::Mysql => format!("ON DUPLICATE KEY UPDATE {changes}"),
            CopyDialect::Sqlite | CopyDialect::Postgres if rest.is_empty() => {
                format!("ON CONFLICT ({key}) DO NOTHING")
            }
            CopyDialect::Sqlite | CopyDialect::Postgres => {
                format!("ON CONFLICT ({key}) DO UPDATE SET {changes}")
            }
        }
    }

    /// Rebuilds the counters from the messages, all in the first shard if there are shards, and moves
    /// generated ids behind the copied ones.
    pub fn count_anew(self) -> Vec<&'static str> {
        let insert = match self {
            CopyDialect::Sqlite => {
                "INSERT INTO tally (tenant, status, count) \
                 SELECT tenant, status, COUNT(*) FROM message GROUP BY tenant, status"
            }
            CopyDialect::Postgres => {
                "INSERT INTO tally (tenant, status, shard, count) \
                 SELECT tenant, status, 0, COUNT(*) FROM message GROUP BY tenant, status"
            }
            CopyDialect::Mysql => {
                "INSERT INTO tally (tenant, status, shard, `count`) \
                 SELECT tenant, status, 0, COUNT(*) FROM message GROUP BY tenant, status"
            }
        };
        let mut statements = vec!["DELETE FROM tally", insert];
        // The other databases derive the next id from the table.
        if self == CopyDialect::Postgres {
            statements.push(
                "SELECT setval(pg_get_serial_sequence('journal', 'id'), \
                 COALESCE((SELECT MAX(id) FROM journal), 0) + 1, FALSE)",
            );
        }
        statements
    }

    /// Creates the table of progress.
    pub fn create_journal(self) -> String {
        let engine = match self {
            CopyDialect::Mysql => " ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
            CopyDialect::Sqlite | CopyDialect::Postgres => "",
        };
        format!(
            "CREATE TABLE IF NOT EXISTS copy_progress (name VARCHAR(64) NOT NULL PRIMARY KEY, source TEXT NOT NULL, \
             rows_total BIGINT NOT NULL, sum_total BIGINT NOT NULL, rows_done BIGINT NOT NULL, last_key TEXT){engine}"
        )
    }
}

fn array(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Int => "bigint[]",
        ColumnKind::Bool => "boolean[]",
        ColumnKind::Text => "text[]",
        ColumnKind::Bytes => "bytea[]",
    }
}
