//! The list of tables against the schema that the migrations make.

use std::collections::BTreeMap;

use postway_testkit::{mariadb::MariaDb, postgres::PostgresDatabase};
use sqlx::{MySqlPool, PgPool, SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use super::super::{table_description::ColumnKind, tables::TABLES};
use crate::driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore};

const SQLITE: &str = "SELECT t.name, c.name, c.type, c.pk FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
     WHERE t.type = 'table' AND c.hidden = 0";
const POSTGRES: &str = "SELECT c.table_name::text, c.column_name::text, c.data_type::text, \
     COALESCE(k.ordinal_position, 0)::bigint FROM information_schema.columns c \
     LEFT JOIN information_schema.key_column_usage k ON k.table_schema = c.table_schema \
     AND k.table_name = c.table_name AND k.column_name = c.column_name AND k.constraint_name = c.table_name || '_pkey' \
     WHERE c.table_schema = current_schema() AND c.is_generated = 'NEVER'";
const MYSQL: &str = "SELECT CAST(c.table_name AS CHAR), CAST(c.column_name AS CHAR), CAST(c.data_type AS CHAR), \
     CAST(COALESCE(k.ordinal_position, 0) AS SIGNED) FROM information_schema.columns c \
     LEFT JOIN information_schema.key_column_usage k ON k.table_schema = c.table_schema \
     AND k.table_name = c.table_name AND k.column_name = c.column_name AND k.constraint_name = 'PRIMARY' \
     WHERE c.table_schema = DATABASE() AND c.extra NOT LIKE '%GENERATED%'";

/// Tables that are not copied: the schema's own record, the copy's own, counters and text blocks, which are made
/// anew, and what belongs to running processes.
const NOT_COPIED: &[&str] =
    &["schema_migration", "copy_progress", "tally", "pace", "node", "duty", "writer_mark", "text_block"];

/// CopiedTable, column, type, place in the primary key from one, or zero.
type Found = Vec<(String, String, String, i64)>;

/// The kind of a column of this type. For texts that MySQL stores as bytes, only the list knows.
fn keeps(data_type: &str, listed: ColumnKind) -> bool {
    match data_type.to_lowercase().as_str() {
        "bigint" => listed == ColumnKind::Int,
        // SQLite's integers are its booleans.
        "integer" => matches!(listed, ColumnKind::Int | ColumnKind::Bool),
        "boolean" | "tinyint" => listed == ColumnKind::Bool,
        "text" | "varchar" | "mediumtext" | "longtext" => listed == ColumnKind::Text,
        "bytea" | "blob" | "longblob" | "binary" => listed == ColumnKind::Bytes,
        "varbinary" => matches!(listed, ColumnKind::Bytes | ColumnKind::Text),
        other => panic!("a type that the copy does not know: {other}"),
    }
}

fn compare(database: &str, found: Found) {
    let mut tables: BTreeMap<String, Vec<(String, String, i64)>> = BTreeMap::new();
    for (table, column, data_type, key_place) in found {
        if !NOT_COPIED.contains(&table.as_str()) {
            tables.entry(table).or_default().push((column, data_type, key_place));
        }
    }
    for table in TABLES {
        let name = table.name;
        let found = tables.remove(name).unwrap_or_else(|| panic!("{database} has no table {name}"));
        for (column, data_type, key_place) in &found {
            let listed = table.columns.iter().position(|listed| listed.name == column);
            let place = listed.unwrap_or_else(|| panic!("{name}.{column} of {database} would not be copied"));
            assert!(
                keeps(data_type, table.columns[place].kind),
                "{database}: {name}.{column} is {data_type}"
            );
            let expected = if place < table.key { place as i64 + 1 } else { 0 };
            // SQLite's `content` has a key of its own making besides.
            if (database, name) != ("SQLite", "content") {
                assert_eq!(*key_place, expected, "{database}: {name}.{column} in the primary key");
            }
        }
        assert_eq!(found.len(), table.columns.len(), "{database} lacks a column of {name}");
    }
    assert!(tables.is_empty(), "these tables of {database} would not be copied: {:?}", tables.keys());
}

#[tokio::test]
async fn every_table_and_column_of_sqlite_is_listed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    compare("SQLite", sqlx::query_as(SQLITE).fetch_all(&pool).await.unwrap());
}

#[tokio::test]
async fn every_table_and_column_of_postgresql_is_listed() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    let pool = PgPool::connect(&database.url()).await.unwrap();
    compare("PostgreSQL", sqlx::query_as(POSTGRES).fetch_all(&pool).await.unwrap());
    pool.close().await;
}

#[tokio::test]
async fn every_table_and_column_of_mariadb_is_listed() {
    let url = MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let pool = MySqlPool::connect(&url).await.unwrap();
    compare("MariaDB", sqlx::query_as(MYSQL).fetch_all(&pool).await.unwrap());
}
