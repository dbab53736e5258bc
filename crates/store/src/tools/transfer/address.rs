//! The address of a database, and how the transfer opens it.

use std::path::PathBuf;

use sqlx::{mysql::MySqlConnectOptions, postgres::PgConnectOptions};

use super::{
    CopyConnection, TransferError, TransferRole, mysql::MysqlSide, postgres::PostgresSide, sqlite::SqliteSide,
};
use crate::driver::{
    mysql::MysqlStore,
    postgres::PostgresStore,
    sqlite::{MigrationState, SqliteStore},
};

/// The address of a database.
#[derive(Clone)]
pub struct DatabaseAddress(DatabaseKind);

#[derive(Clone)]
enum DatabaseKind {
    Sqlite(PathBuf),
    Postgres(String),
    Mysql(String),
}

impl DatabaseAddress {
    /// A SQLite file.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self(DatabaseKind::Sqlite(path.into()))
    }

    /// Reads a URL: `sqlite://` and a path, `postgres://…` or `mysql://…`.
    pub fn parse(url: &str, role: TransferRole) -> Result<Self, TransferError> {
        let wrong = || TransferError::Address(role);
        let (scheme, rest) = url.split_once(':').ok_or_else(wrong)?;
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                let names_a_file = !path.is_empty() && !path.contains(":memory:") && !path.contains('?');
                if names_a_file { Ok(Self::sqlite(path)) } else { Err(wrong()) }
            }
            "postgres" | "postgresql" => {
                let options: PgConnectOptions = url.parse().map_err(|_| wrong())?;
                options.get_database().ok_or_else(wrong)?;
                Ok(Self(DatabaseKind::Postgres(url.to_owned())))
            }
            "mysql" | "mariadb" => {
                let url = format!("mysql:{rest}");
                let options: MySqlConnectOptions = url.parse().map_err(|_| wrong())?;
                options.get_database().ok_or_else(wrong)?;
                Ok(Self(DatabaseKind::Mysql(url)))
            }
            _ => Err(wrong()),
        }
    }

    /// What identifies this database, without username and password.
    pub fn identity(&self) -> String {
        let server =
            |scheme: &str, host: &str, port: u16, socket: Option<&PathBuf>, database: Option<&str>| {
                let place = match socket {
                    Some(socket) => socket.display().to_string(),
                    None => format!("{host}:{port}"),
                };
                format!("{scheme}://{place}/{}", database.unwrap_or_default())
            };
        match &self.0 {
            DatabaseKind::Sqlite(path) => {
                let path = path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or(path.clone());
                format!("sqlite://{}", path.display())
            }
            DatabaseKind::Postgres(url) => url
                .parse()
                .map(|options: PgConnectOptions| {
                    let (host, database) = (options.get_host(), options.get_database());
                    server("postgres", host, options.get_port(), options.get_socket(), database)
                })
                .unwrap_or_default(),
            DatabaseKind::Mysql(url) => url
                .parse()
                .map(|options: MySqlConnectOptions| {
                    let (host, database) = (options.get_host(), options.get_database());
                    server("mysql", host, options.get_port(), options.get_socket(), database)
                })
                .unwrap_or_default(),
        }
    }

    /// Migrates the schema and connects. Fails if another process has the database open exclusively.
    pub(super) async fn open(&self, role: TransferRole) -> Result<Box<dyn CopyConnection>, TransferError> {
        if role == TransferRole::Source {
            self.check_source().await?;
        }
        let opening = |error| TransferError::Open { role, error };
        Ok(match &self.0 {
            // A file stays locked as long as its store is open.
            DatabaseKind::Sqlite(path) => {
                let store = SqliteStore::open_half_copied(path).await.map_err(opening)?;
                Box::new(SqliteSide::connect(path, store, role).await?)
            }
            DatabaseKind::Postgres(url) => {
                PostgresStore::migrate(url).await.map_err(opening)?;
                Box::new(PostgresSide::connect(url, role).await?)
            }
            DatabaseKind::Mysql(url) => {
                MysqlStore::migrate(url).await.map_err(opening)?;
                Box::new(MysqlSide::connect(url, role).await?)
            }
        })
    }

    /// A wrong address must not create an empty database that is then copied.
    async fn check_source(&self) -> Result<(), TransferError> {
        let opening = |error| TransferError::Open { role: TransferRole::Source, error };
        let states: Vec<MigrationState> = match &self.0 {
            DatabaseKind::Sqlite(path) if !path.is_file() => Vec::new(),
            DatabaseKind::Sqlite(path) => SqliteStore::migration_status(path).await.map_err(opening)?,
            DatabaseKind::Postgres(url) => PostgresStore::migration_status(url).await.map_err(opening)?,
            DatabaseKind::Mysql(url) => MysqlStore::migration_status(url).await.map_err(opening)?,
        };
        match states.iter().any(|state| state.applied) {
            true => Ok(()),
            false => Err(TransferError::NoSource(self.identity())),
        }
    }
}

impl std::fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.identity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_tells_databases_apart_and_hides_the_password() {
        let identity = |url| DatabaseAddress::parse(url, TransferRole::Source).unwrap().identity();
        assert_eq!(identity("postgres://u:hunter2@h/db"), "postgres://h:5432/db");
        assert_eq!(identity("postgresql://other@h:5432/db"), "postgres://h:5432/db");
        assert_eq!(identity("mariadb://u:hunter2@h:3307/db"), "mysql://h:3307/db");
        assert_eq!(identity("mysql://u@localhost/db?socket=/run/x"), "mysql:///run/x/db");
        assert_eq!(identity("sqlite:///srv/none.db"), "sqlite:///srv/none.db");
        let address = DatabaseAddress::parse("mysql://u:hunter2@h/db", TransferRole::Source).unwrap();
        assert!(!format!("{address:?}").contains("hunter2"));
    }

    #[test]
    fn an_address_without_a_database_is_refused() {
        for wrong in ["", "here", "sqlite://", "sqlite::memory:", "mysql://h", "redis://h/0", "postgres://h"]
        {
            assert!(
                matches!(
                    DatabaseAddress::parse(wrong, TransferRole::Target),
                    Err(TransferError::Address(TransferRole::Target))
                ),
                "{wrong}"
            );
        }
    }
}
