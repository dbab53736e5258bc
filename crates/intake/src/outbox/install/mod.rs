//! Installs the outbox into an application's database. Installing again is safe: existing tables stay
//! unchanged, and missing ones are added.

use futures::future::BoxFuture;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection};

use super::{
    address::{SourceOptions, SourceUrl},
    database::{CONNECT_S_MAX, within},
    error::OutboxError,
};

/// The longest time for installing: tables of an earlier system are rewritten.
const INSTALL_S_MAX: u64 = 3_600;
/// The first version of PostgreSQL that generates random UUIDs by itself.
const POSTGRES_MIN: i32 = 130_000;

/// What to install.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    /// The schema of the outbox, on PostgreSQL.
    pub schema: String,
    /// The schema of accounts and tokens, if they are wanted.
    pub accounts_schema: Option<String>,
    /// Whether secrets and codes of tokens stay in their rows while the tokens are valid.
    pub keep_secrets: bool,
}

/// Whether a text can name a schema: a plain name that needs no quoting.
pub fn is_schema_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_plain)
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.starts_with("pg_")
}

/// The statements for a database of this kind.
pub fn script(url: &SourceUrl, plan: &InstallPlan) -> Result<String, OutboxError> {
    for name in [Some(&plan.schema), plan.accounts_schema.as_ref()].into_iter().flatten() {
        if !is_schema_name(name) {
            let message = format!("`{name}` cannot name a schema: use small letters, digits and _");
            return Err(OutboxError::Unsuited(message));
        }
    }
    let generic = match url.options()? {
        SourceOptions::Postgres(_) => include_str!("postgres.sql"),
        SourceOptions::Mysql(_) => include_str!("mysql.sql"),
        SourceOptions::Sqlite(_) => include_str!("sqlite.sql"),
    };
    let accounts = match &plan.accounts_schema {
        None if plan.keep_secrets => {
            let message = "only tokens have secrets to keep: name the preset `accounts`";
            return Err(OutboxError::Unsuited(message.to_owned()));
        }
        None => String::new(),
        Some(_) if !url.is_postgres() => {
            let message =
                "the preset `accounts` is made of triggers and notifications of PostgreSQL: leave it out";
            return Err(OutboxError::Unsuited(message.to_owned()));
        }
        Some(tables) => {
            let keep = if plan.keep_secrets { include_str!("accounts_keep.sql") } else { "" };
            let accounts =
                include_str!("accounts.sql").replace("{tables_text}", &format!("'{tables}'")) + keep;
            format!("\n{}", accounts.replace("{tables}", &format!("\"{tables}\"")))
        }
    };
    Ok(format!("{generic}{accounts}").replace("{schema}", &format!("\"{}\"", plan.schema)))
}

/// Whether secrets and codes stay in the rows of tokens in this schema, as an earlier installation chose.
pub async fn keeps_secrets(url: &SourceUrl, accounts_schema: &str) -> Result<bool, OutboxError> {
    let SourceOptions::Postgres(options) = url.options()? else { return Ok(false) };
    let mut conn = connected(PgConnection::connect_with(&options)).await?;
    within(CONNECT_S_MAX, async {
        let asked = sqlx::query_as(
            "SELECT EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE t.tgname = 'postway_token_keeps' AND c.relname = 'tokens' AND n.nspname = $1)",
        );
        let (keeps,): (bool,) = asked.bind(accounts_schema).fetch_one(&mut conn).await?;
        Ok(keeps)
    })
    .await
}

/// Installs the outbox; on PostgreSQL and SQLite in one transaction.
pub async fn install(url: &SourceUrl, plan: &InstallPlan) -> Result<(), OutboxError> {
    let script = script(url, plan)?;
    match url.options()? {
        SourceOptions::Postgres(options) => {
            let mut conn = connected(PgConnection::connect_with(&options)).await?;
            let (version,): (i32,) = sqlx::query_as("SELECT current_setting('server_version_num')::int")
                .fetch_one(&mut conn)
                .await?;
            if version < POSTGRES_MIN {
                let message = "this is PostgreSQL before 13; upgrade it".to_owned();
                return Err(OutboxError::Unsuited(message));
            }
            within(INSTALL_S_MAX, async {
                let mut txn = conn.begin().await?;
                // Two installations at once would conflict over the tables.
                sqlx::raw_sql("SELECT pg_advisory_xact_lock(8095987614732939522); SET LOCAL client_min_messages = warning")
                    .execute(&mut *txn)
                    .await?;
                sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *txn).await?;
                Ok(txn.commit().await?)
            })
            .await
        }
        SourceOptions::Mysql(options) => {
            let mut conn = connected(MySqlConnection::connect_with(&options)).await?;
            within(INSTALL_S_MAX, async {
                sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut conn).await?;
                Ok(())
            })
            .await
        }
        SourceOptions::Sqlite(options) => {
            let mut conn = connected(SqliteConnection::connect_with(&options)).await?;
            within(INSTALL_S_MAX, async {
                let mut txn = conn.begin_with("BEGIN IMMEDIATE").await?;
                sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *txn).await?;
                Ok(txn.commit().await?)
            })
            .await
        }
    }
}

fn connected<'a, C: 'a>(
    connecting: impl Future<Output = Result<C, sqlx::Error>> + Send + 'a,
) -> BoxFuture<'a, Result<C, OutboxError>> {
    within(CONNECT_S_MAX, async { Ok(connecting.await?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(accounts_schema: Option<&str>) -> InstallPlan {
        let accounts_schema = accounts_schema.map(str::to_owned);
        InstallPlan { schema: "postway".to_owned(), accounts_schema, keep_secrets: false }
    }

    #[test]
    fn a_script_is_complete_for_its_database() {
        for (url, accounts) in [
            ("postgres://h/d", None),
            ("postgres://h/d", Some("public")),
            ("mysql://h/d", None),
            ("sqlite:///d", None),
        ] {
            let script = script(&SourceUrl::parse(url).unwrap(), &plan(accounts)).unwrap();
            assert!(!script.contains("{schema}") && !script.contains("{tables"), "{url}");
            assert_eq!(script.contains("token_insert"), accounts.is_some());
        }
    }

    #[test]
    fn secrets_are_kept_only_where_that_is_asked_for() {
        let url = SourceUrl::parse("postgres://h/d").unwrap();
        for keep_secrets in [false, true] {
            let script = script(&url, &InstallPlan { keep_secrets, ..plan(Some("public")) }).unwrap();
            assert_eq!(script.contains("CREATE TRIGGER postway_token_keeps"), keep_secrets);
            assert!(!script.contains("{schema}") && !script.contains("{tables"));
        }
    }

    #[test]
    fn what_cannot_be_installed_is_refused() {
        let refused = |url: &str, plan: &InstallPlan| script(&SourceUrl::parse(url).unwrap(), plan).is_err();
        assert!(refused("mysql://h/d", &plan(Some("public"))));
        assert!(refused("postgres://h/d", &InstallPlan { keep_secrets: true, ..plan(None) }));
        for name in ["", "Postway", "a\"b", "1a", "pg_x", "a-b"] {
            assert!(refused("postgres://h/d", &plan(Some(name))), "{name}");
        }
    }
}
