//! `[database]`: where messages are kept.

use std::path::{Path, PathBuf};

use super::layers::Layers;

/// Which database holds the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file, opened by one process.
    Sqlite {
        /// The database file.
        path: PathBuf,
    },
}

impl Database {
    pub(super) fn read(layers: &mut Layers, data_dir: &Path) -> Option<Self> {
        let path = data_dir.join("postway.db");
        let shown = format!("sqlite://{}", path.display());
        layers.take("database.url", Self::Sqlite { path }, &shown, parse)
    }
}

fn parse(url: &str) -> Result<Database, String> {
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
            Ok(Database::Sqlite { path: PathBuf::from(path) })
        }
        "postgres" | "postgresql" | "mysql" | "mariadb" => {
            Err(format!("{scheme}:// is not in this build yet; use sqlite:// and a path"))
        }
        _ => Err("unknown scheme; use sqlite:// and a path".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_paths_may_be_relative_or_absolute() {
        for (url, path) in
            [("sqlite://a/b.db", "a/b.db"), ("sqlite:///srv/b.db", "/srv/b.db"), ("sqlite:b.db", "b.db")]
        {
            assert_eq!(parse(url), Ok(Database::Sqlite { path: PathBuf::from(path) }));
        }
    }

    #[test]
    fn other_databases_are_refused_with_the_reason() {
        assert!(parse("postgres://u:p@h/db").unwrap_err().contains("not in this build yet"));
        assert!(parse("mysql://h/db").unwrap_err().contains("not in this build yet"));
        assert!(parse("redis://h").unwrap_err().contains("unknown scheme"));
        assert!(parse("sqlite::memory:").unwrap_err().contains("names no file"));
    }
}
