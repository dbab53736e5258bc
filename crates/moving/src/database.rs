//! The old database: a read-only connection that lists columns and reads rows one by one.

use std::{fmt, path::PathBuf, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Database, Decode, MySqlConnection, PgConnection, Row,
    SqliteConnection, Type, mysql::MySqlConnectOptions, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};
use tokio::time::timeout;

use crate::{
    column::{MatchedOldTable, OldDatabaseDialect, OldTableSchema, bounded},
    error::MovingError,
    row::{OldCellValue, OldTableRow},
    verdict::{RowFault, RowLocation},
};

/// The longest wait for a connection.
const CONNECT_S_MAX: u64 = 15;

const POSTGRES_SESSION: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";
/// Rows are read as fast as the gateway accepts them, which may be slow.
const MYSQL_SESSION: &str = "SET SESSION TRANSACTION READ ONLY; SET SESSION net_write_timeout = 3600; \
     SET SESSION time_zone = '+00:00'";

const SQLITE_COLUMNS: &str = "SELECT name FROM pragma_table_info(?) ORDER BY cid";
const POSTGRES_COLUMNS: &str = "SELECT CAST(column_name AS TEXT) FROM information_schema.columns \
     WHERE table_schema = ANY (current_schemas(false)) AND table_name = $1 ORDER BY ordinal_position";
const MYSQL_COLUMNS: &str = "SELECT CAST(column_name AS CHAR) FROM information_schema.columns \
     WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position";

/// A read-only connection.
pub struct OldDatabase {
    connection: OldConnection,
    url: SecretString,
}

enum OldConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

/// A statement: columns by their names in the rows, and the rest of the SQL.
pub(crate) struct OldTableSelect<'a> {
    /// The table's name, for errors.
    pub(crate) table: &'a str,
    pub(crate) columns: Vec<(&'static str, String)>,
    /// The clauses from `FROM` on.
    pub(crate) from: String,
}

impl OldDatabase {
    /// Connects: `postgres://…`, `mysql://…` (or `mariadb://…`), `sqlite://` and a path.
    pub async fn open(url: &str) -> Result<Self, MovingError> {
        let url = url.trim();
        let connected = timeout(Duration::from_secs(CONNECT_S_MAX), OldConnection::open(url)).await;
        let late = || MovingError::Connect {
            database: without_password(url),
            reason: format!("it did not answer within {CONNECT_S_MAX} s"),
        };
        let connection = connected.unwrap_or_else(|_| Err(late()))?;
        Ok(Self { connection, url: SecretString::from(url.to_owned()) })
    }

    pub(crate) fn dialect(&self) -> OldDatabaseDialect {
        match self.connection {
            OldConnection::Sqlite(_) => OldDatabaseDialect::Sqlite,
            OldConnection::Postgres(_) => OldDatabaseDialect::Postgres,
            OldConnection::Mysql(_) => OldDatabaseDialect::Mysql,
        }
    }

    /// Finds a table, if it exists, and the faults of its columns.
    pub(crate) async fn find(
        &mut self,
        table: OldTableSchema,
    ) -> Result<(Option<MatchedOldTable>, Vec<RowFault>), MovingError> {
        let name = table.name;
        let columns: Result<Vec<String>, sqlx::Error> = match &mut self.connection {
            OldConnection::Sqlite(conn) => {
                sqlx::query_scalar(SQLITE_COLUMNS).bind(name).fetch_all(conn).await
            }
            OldConnection::Postgres(conn) => {
                sqlx::query_scalar(POSTGRES_COLUMNS).bind(name).fetch_all(conn).await
            }
            OldConnection::Mysql(conn) => sqlx::query_scalar(MYSQL_COLUMNS).bind(name).fetch_all(conn).await,
        };
        let columns = columns.map_err(|error| unreadable(name, &error))?;
        if columns.is_empty() {
            return Ok((None, Vec::new()));
        }
        let (found, missing) = MatchedOldTable::new(table, columns);
        let place = RowLocation { table: name.to_owned(), key: String::new() };
        let fault = |column| {
            RowFault::new(
                &place,
                column,
                "the column is missing: is this the old system's database, fully migrated?",
            )
        };
        Ok((Some(found), missing.into_iter().map(fault).collect()))
    }

    /// Reads the rows, one at a time.
    pub(crate) fn rows<'c>(
        &'c mut self,
        select: &OldTableSelect<'_>,
    ) -> BoxStream<'c, Result<OldTableRow, MovingError>> {
        let dialect = self.dialect();
        let names: Vec<&'static str> = select.columns.iter().map(|(name, _)| *name).collect();
        let cells: Vec<String> = select.columns.iter().map(|(_, sql)| bounded(dialect, sql)).collect();
        // The SQL consists of our own text and of quoted column names.
        let sql = AssertSqlSafe(format!("SELECT {} {}", cells.join(", "), select.from));
        let table = select.table.to_owned();
        match &mut self.connection {
            OldConnection::Sqlite(conn) => {
                sqlx::query(sql).fetch(conn).map(move |row| read(row, &table, &names)).boxed()
            }
            OldConnection::Postgres(conn) => {
                sqlx::query(sql).fetch(conn).map(move |row| read(row, &table, &names)).boxed()
            }
            OldConnection::Mysql(conn) => {
                sqlx::query(sql).fetch(conn).map(move |row| read(row, &table, &names)).boxed()
            }
        }
    }
}

impl OldConnection {
    async fn open(url: &str) -> Result<Self, MovingError> {
        // A driver's error may quote the address, so it is not repeated.
        let wrong = |like: &str| MovingError::Address(format!("cannot be read; write it like {like}"));
        let refused = |error: sqlx::Error| MovingError::Connect {
            database: without_password(url),
            reason: database_message(&error),
        };
        match url.split(':').next().unwrap_or_default() {
            "postgres" | "postgresql" => {
                let options: PgConnectOptions =
                    url.parse().map_err(|_| wrong("postgres://user:password@host:5432/database"))?;
                let options = options.application_name("postway-moving").disable_statement_logging();
                let mut conn = PgConnection::connect_with(&options).await.map_err(refused)?;
                sqlx::raw_sql(POSTGRES_SESSION).execute(&mut conn).await.map_err(refused)?;
                Ok(Self::Postgres(conn))
            }
            "mysql" | "mariadb" => {
                let like = "mysql://user:password@host:3306/database";
                let options: MySqlConnectOptions =
                    url.replacen("mariadb://", "mysql://", 1).parse().map_err(|_| wrong(like))?;
                if options.get_database().is_none() {
                    return Err(wrong(like));
                }
                let options = options.charset("utf8mb4").disable_statement_logging();
                let mut conn = MySqlConnection::connect_with(&options).await.map_err(refused)?;
                sqlx::raw_sql(MYSQL_SESSION).execute(&mut conn).await.map_err(refused)?;
                Ok(Self::Mysql(conn))
            }
            "sqlite" => {
                let rest = url.trim_start_matches("sqlite:");
                let path = PathBuf::from(rest.strip_prefix("//").unwrap_or(rest));
                if path.as_os_str().is_empty() || rest.contains(":memory:") || rest.contains('?') {
                    return Err(wrong("sqlite:///srv/old/mail.db"));
                }
                if !path.is_file() {
                    return Err(MovingError::NoFile(path.display().to_string()));
                }
                let options = SqliteConnectOptions::new().filename(path).read_only(true);
                let options = options.busy_timeout(Duration::from_secs(10)).disable_statement_logging();
                Ok(Self::Sqlite(SqliteConnection::connect_with(&options).await.map_err(refused)?))
            }
            _ => Err(MovingError::Address(
                "has an unknown scheme; use postgres://…, mysql://… or sqlite:// and a path".to_owned(),
            )),
        }
    }
}

impl fmt::Display for OldDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(self.url.expose_secret()))
    }
}

/// An address without its password and its options, which may contain one.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    if scheme == "sqlite" {
        return url.to_owned();
    }
    let rest = rest.trim_start_matches('/').split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((credentials, place)) => {
            let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
            let mask = if password.is_empty() { "" } else { ":***" };
            format!("{scheme}://{user}{mask}@{place}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// Reads a row's cells. A cell that is not text does not affect the others.
fn read<R>(
    row: Result<R, sqlx::Error>,
    table: &str,
    names: &[&'static str],
) -> Result<OldTableRow, MovingError>
where
    R: Row,
    usize: sqlx::ColumnIndex<R>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    R::Database: Database,
{
    let row = row.map_err(|error| unreadable(table, &error))?;
    let cell = |place: usize| {
        let bytes = row.try_get::<Option<i64>, _>(2 * place + 1);
        match (row.try_get::<Option<String>, _>(2 * place), bytes) {
            (Ok(Some(text)), _) => OldCellValue::Text(text),
            (Ok(None), Ok(Some(bytes))) => OldCellValue::TooLong(bytes),
            (Ok(None), _) => OldCellValue::Null,
            (Err(_), _) => OldCellValue::Unreadable,
        }
    };
    let cells = names.iter().enumerate().map(|(place, name)| (*name, cell(place))).collect();
    Ok(OldTableRow::new(table, cells))
}

fn unreadable(table: &str, error: &sqlx::Error) -> MovingError {
    MovingError::Read { table: table.to_owned(), reason: database_message(error) }
}

/// The database's message, in one line.
fn database_message(error: &sqlx::Error) -> String {
    let text = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    };
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, expected) in [
            ("postgres://app:hunter2@db:5432/shop?sslpassword=hunter2", "postgres://app:***@db:5432/shop"),
            ("mysql://app:p@ss@db/shop", "mysql://app:***@db/shop"),
            ("sqlite:///srv/app.db", "sqlite:///srv/app.db"),
        ] {
            assert_eq!(without_password(url), expected);
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_read_is_refused_without_quoting_it() {
        for url in ["redis://h", "mysql://root:hunter2@h", "sqlite::memory:", "postgres://u:hunter2@h:port/d"]
        {
            let error = OldDatabase::open(url).await.err().unwrap().to_string();
            assert!(!error.contains("hunter2") && !error.is_empty(), "{error}");
        }
    }
}
