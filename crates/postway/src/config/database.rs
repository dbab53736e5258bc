//! `[database]`: where messages are stored.

use std::path::{Path, PathBuf};

use super::{keys::ConfigSecret, layers::ConfigLayers};

/// The database that stores the messages.
#[derive(Clone, Debug)]
pub enum DatabaseConfig {
    /// A file, opened by one process.
    Sqlite {
        /// The database file.
        path: PathBuf,
    },
    /// A PostgreSQL server.
    Postgres {
        /// Its address and login; may contain a password.
        url: ConfigSecret,
    },
    /// A MySQL or MariaDB server.
    Mysql {
        /// Its address and login; may contain a password.
        url: ConfigSecret,
    },
}

impl DatabaseConfig {
    pub(super) fn read(layers: &mut ConfigLayers, data_dir: &Path) -> Option<Self> {
        let path = data_dir.join("postway.db");
        let shown = format!("sqlite://{}", path.display());
        layers.take("database.url", Self::Sqlite { path }, &shown, parse)
    }
}

fn parse(url: &str) -> Result<DatabaseConfig, String> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "sqlite" => {
            let rest = url.trim_start_matches("sqlite:");
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() || path.contains(":memory:") {
                return Err(
                    "names no file; write sqlite:// and a path, such as sqlite:///var/lib/postway/postway.db"
                        .to_owned(),
                );
            }
            if path.contains('?') {
                return Err("options after `?` are not taken; remove them".to_owned());
            }
            Ok(DatabaseConfig::Sqlite { path: PathBuf::from(path) })
        }
        "postgres" | "postgresql" => server(url, |url| DatabaseConfig::Postgres { url }),
        "mysql" => server(url, |url| DatabaseConfig::Mysql { url }),
        "mariadb" => server(&url.replacen("mariadb", "mysql", 1), |url| DatabaseConfig::Mysql { url }),
        _ => Err("unknown scheme; use sqlite:// and a path, postgres://user:password@host/database or \
                  mysql://user:password@host/database"
            .to_owned()),
    }
}

/// A server's URL must name a host and a database; whether they exist shows when it is opened.
fn server(url: &str, kind: impl Fn(ConfigSecret) -> DatabaseConfig) -> Result<DatabaseConfig, String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    match place.split_once('/') {
        Some((host, name)) if !host.is_empty() && !name.is_empty() && !name.starts_with('?') => {
            Ok(kind(ConfigSecret::new(url)))
        }
        _ => Err("names no host or no database; write it like postgres://user:password@host:5432/postway"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_paths_may_be_relative_or_absolute() {
        for (url, expected) in
            [("sqlite://a/b.db", "a/b.db"), ("sqlite:///srv/b.db", "/srv/b.db"), ("sqlite:b.db", "b.db")]
        {
            let Ok(DatabaseConfig::Sqlite { path }) = parse(url) else { panic!("{url}") };
            assert_eq!(path, PathBuf::from(expected));
        }
    }

    #[test]
    fn servers_need_a_host_and_a_database_and_hide_their_password() {
        let Ok(postgres) = parse("postgres://u:hunter2@h:5432/db") else { panic!() };
        assert!(matches!(postgres, DatabaseConfig::Postgres { .. }));
        assert!(!format!("{postgres:?}").contains("hunter2"));
        assert!(matches!(parse("mysql://h/db"), Ok(DatabaseConfig::Mysql { .. })));
        let Ok(DatabaseConfig::Mysql { url }) = parse("mariadb://h/db") else { panic!() };
        assert_eq!(url.expose(), "mysql://h/db");
        for incomplete in ["postgres://", "postgres://h", "postgres://h/", "mysql:///db", "mysql://u:p@/db"] {
            assert!(parse(incomplete).is_err_and(|error| error.contains("names no host")), "{incomplete}");
        }
        assert!(parse("redis://h").is_err_and(|error| error.contains("unknown scheme")));
        assert!(parse("sqlite::memory:").is_err_and(|error| error.contains("names no file")));
    }
}
