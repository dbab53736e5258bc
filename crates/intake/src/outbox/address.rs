//! The address of a source's database. Its password is never shown.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    ConnectOptions, mysql::MySqlConnectOptions, postgres::PgConnectOptions, sqlite::SqliteConnectOptions,
};

use super::error::OutboxError;

/// The address of a source's database.
#[derive(Clone)]
pub struct SourceUrl(Arc<SecretString>);

/// Connection options for each kind of database.
pub(super) enum SourceOptions {
    Postgres(Box<PgConnectOptions>),
    Mysql(Box<MySqlConnectOptions>),
    Sqlite(Box<SqliteConnectOptions>),
}

impl SourceUrl {
    /// Parses an address: `postgres://`, `mysql://` (or `mariadb://`), or `sqlite://` and a path.
    pub fn parse(text: &str) -> Result<Self, OutboxError> {
        let url = Self(Arc::new(SecretString::from(text.trim().to_owned())));
        url.options().map(|_| url)
    }

    pub(super) fn options(&self) -> Result<SourceOptions, OutboxError> {
        let url = self.0.expose_secret();
        // The driver's error may quote the address.
        let wrong = |like: &str| OutboxError::Address(format!("cannot be read; write it like {like}"));
        match url.split(':').next().unwrap_or_default() {
            "postgres" | "postgresql" => {
                let options: PgConnectOptions =
                    url.parse().map_err(|_| wrong("postgres://user:password@host:5432/database"))?;
                Ok(SourceOptions::Postgres(Box::new(
                    options.application_name("postway-outbox").disable_statement_logging(),
                )))
            }
            "mysql" | "mariadb" => {
                let url = url.replacen("mariadb://", "mysql://", 1);
                let options: MySqlConnectOptions =
                    url.parse().map_err(|_| wrong("mysql://user:password@host:3306/database"))?;
                if options.get_database().is_none() {
                    return Err(wrong("mysql://user:password@host:3306/database"));
                }
                Ok(SourceOptions::Mysql(Box::new(
                    options.charset("utf8mb4").timezone("+00:00".to_owned()).disable_statement_logging(),
                )))
            }
            "sqlite" => {
                let rest = url.trim_start_matches("sqlite:");
                let path = PathBuf::from(rest.strip_prefix("//").unwrap_or(rest));
                if path.as_os_str().is_empty() || rest.contains(":memory:") || rest.contains('?') {
                    return Err(wrong("sqlite:///srv/app/app.db"));
                }
                let options = SqliteConnectOptions::new().filename(path);
                Ok(SourceOptions::Sqlite(Box::new(
                    options.busy_timeout(Duration::from_secs(10)).disable_statement_logging(),
                )))
            }
            _ => Err(OutboxError::Address(
                "unknown scheme; use postgres://…, mysql://… or sqlite:// and a path".to_owned(),
            )),
        }
    }

    /// Whether the database sends notifications.
    pub fn is_postgres(&self) -> bool {
        matches!(self.options(), Ok(SourceOptions::Postgres(_)))
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.0.expose_secret();
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        let rest = rest.trim_start_matches('/');
        // Options may contain a password too.
        let rest = rest.split('?').next().unwrap_or_default();
        match rest.rsplit_once('@') {
            Some((credentials, host)) => {
                let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
                let mask = if password.is_empty() { "" } else { ":***" };
                write!(f, "{scheme}://{user}{mask}@{host}")
            }
            None if scheme == "sqlite" => {
                write!(f, "sqlite://{}", url.trim_start_matches("sqlite:").trim_start_matches("//"))
            }
            None => write!(f, "{scheme}://{rest}"),
        }
    }
}

impl fmt::Debug for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, shown) in [
            ("postgres://app:hunter2@db:5432/shop?sslpassword=hunter2", "postgres://app:***@db:5432/shop"),
            ("postgres://app@db/shop", "postgres://app@db/shop"),
            ("mysql://app:p@ss@db/shop", "mysql://app:***@db/shop"),
            ("sqlite:///srv/app.db", "sqlite:///srv/app.db"),
        ] {
            assert_eq!(SourceUrl::parse(url).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_refused_without_quoting_it() {
        for url in ["redis://h", "mysql://root:hunter2@h", "sqlite::memory:", "postgres://u:hunter2@h:port/d"]
        {
            let error = SourceUrl::parse(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.is_empty(), "{error}");
        }
    }
}
