//! The views on all three databases: what the store's port brings about, in the words that readers know.

mod install;
mod requests;
mod words;

use std::sync::Arc;

use postway_domain::{EventKind, MessageState, MessageUid, message::AttemptOutcome};
use postway_testkit::{mariadb::MariaDb, postgres::PostgresDatabase};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, Row, SqliteConnection};
use tempfile::TempDir;

use super::{ViewsDatabase, ViewsPlan, install as install_views, place};
use crate::{
    conformance::{
        Shared,
        sample::{Sample, at},
        stage,
    },
    driver::{mysql::MysqlStore, postgres::PostgresStore, sqlite::SqliteStore},
    record::Acceptance,
};

/// Makes one test of each rule on each database.
macro_rules! on_each {
    ($($rule:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $rule() { super::$rule(crate::tools::views::tests::Rig::sqlite().await).await; })* }
        mod postgres { $(#[tokio::test] async fn $rule() { super::$rule(crate::tools::views::tests::Rig::postgres().await).await; })* }
        mod mysql { $(#[tokio::test] async fn $rule() { super::$rule(crate::tools::views::tests::Rig::mysql().await).await; })* }
    };
}
use on_each;

/// An open store, and its database from outside.
struct Rig {
    store: Shared,
    database: ViewsDatabase,
    _folder: Option<TempDir>,
    _postgres: Option<PostgresDatabase>,
}

impl Rig {
    async fn new(
        store: Shared,
        database: ViewsDatabase,
        folder: Option<TempDir>,
        postgres: Option<PostgresDatabase>,
    ) -> Self {
        stage::open(&store).await;
        Self { store, database, _folder: folder, _postgres: postgres }
    }

    async fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("postway.db");
        let store = Arc::new(SqliteStore::open(&path).await.unwrap());
        Self::new(store, ViewsDatabase::Sqlite(path), Some(folder), None).await
    }

    async fn postgres() -> Self {
        let database = PostgresDatabase::create();
        let url = database.url();
        let store = Arc::new(PostgresStore::open(&url).await.unwrap());
        Self::new(store, ViewsDatabase::parse(&url).unwrap(), None, Some(database)).await
    }

    async fn mysql() -> Self {
        let url = MariaDb::shared().create_database();
        let store = Arc::new(MysqlStore::open(&url).await.unwrap());
        Self::new(store, ViewsDatabase::parse(&url).unwrap(), None, None).await
    }

    async fn install(&self) -> String {
        install_views(&self.database, &ViewsPlan::default()).await.unwrap()
    }

    fn view(&self, name: &str) -> String {
        place(&self.database, &ViewsPlan::default()).unwrap().name(name)
    }

    /// Runs statements.
    async fn run(&self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    /// Runs statements that may fail.
    async fn try_run(&self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.database {
            ViewsDatabase::Sqlite(path) => {
                let mut conn = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
                sqlx::raw_sql(sql).execute(&mut conn).await.map(drop)
            }
            ViewsDatabase::Postgres(url) => {
                sqlx::raw_sql(sql).execute(&mut PgConnection::connect(url).await?).await.map(drop)
            }
            ViewsDatabase::Mysql(url) => {
                sqlx::raw_sql(sql).execute(&mut MySqlConnection::connect(url).await?).await.map(drop)
            }
        }
    }

    /// The rows of a query whose columns are all texts.
    async fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        fn texts<R: Row>(rows: &[R]) -> Vec<Vec<Option<String>>>
        where
            usize: sqlx::ColumnIndex<R>,
            Option<String>: for<'r> sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        {
            let row = |row: &R| (0..row.len()).map(|index| row.try_get(index).unwrap()).collect();
            rows.iter().map(row).collect()
        }
        match &self.database {
            ViewsDatabase::Sqlite(path) => {
                let mut conn =
                    SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
                texts(&sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut conn).await.unwrap())
            }
            ViewsDatabase::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                texts(&sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut conn).await.unwrap())
            }
            ViewsDatabase::Mysql(url) => {
                let mut conn = MySqlConnection::connect(url).await.unwrap();
                texts(&sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut conn).await.unwrap())
            }
        }
    }

    /// Some columns of the rows of a view for which a condition holds, as texts.
    async fn show(
        &self,
        view: &str,
        columns: &[&str],
        condition: &str,
        order: &str,
    ) -> Vec<Vec<Option<String>>> {
        let (quote, text) = match self.database {
            ViewsDatabase::Mysql(_) => ("`", "CHAR"),
            ViewsDatabase::Sqlite(_) | ViewsDatabase::Postgres(_) => ("\"", "TEXT"),
        };
        let columns = columns.iter().map(|column| format!("CAST({quote}{column}{quote} AS {text})"));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let condition = condition.replace('"', quote);
        let order = order.replace('"', quote);
        self.rows(&format!("SELECT {columns} FROM {} WHERE {condition} ORDER BY {order}", self.view(view)))
            .await
    }

    /// What one row of a view shows.
    async fn one(&self, view: &str, columns: &[&str], condition: &str) -> Vec<Option<String>> {
        let mut rows = self.show(view, columns, condition, "1").await;
        assert_eq!(rows.len(), 1, "{view} where {condition}: {rows:?}");
        rows.remove(0)
    }

    /// A word of one row.
    async fn word(&self, view: &str, id: &str) -> String {
        let (column, key) = match view {
            "email_outbox" | "email_logs" => ("status", "\"outboxId\""),
            _ => ("status", "id"),
        };
        let shown = self.one(view, &[column], &format!("{key} = '{id}'")).await;
        shown[0].clone().expect("every row has its word")
    }

    /// Closes the store, so that no process has the file open.
    async fn without_store(self) -> Self {
        self.store.close().await;
        Self { store: Arc::new(crate::driver::memory::MemoryStore::new()), ..self }
    }

    /// How the database would answer a query.
    async fn explained(&self, explain: &str, query: &str) -> String {
        let explained = format!("{explain} {query}");
        match &self.database {
            // The last column says it.
            ViewsDatabase::Sqlite(path) => {
                let mut conn =
                    SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
                let rows = sqlx::query(AssertSqlSafe(explained)).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| row.get::<String, _>(3)).collect::<Vec<_>>().join("\n")
            }
            ViewsDatabase::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                let rows = sqlx::raw_sql(AssertSqlSafe(explained)).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
            }
            ViewsDatabase::Mysql(_) => self.rows(&explained).await.into_iter().flatten().flatten().collect(),
        }
    }

    /// Accepts a message with this history.
    async fn accept_with(&self, sample: Sample, kinds: &[EventKind]) -> MessageUid {
        let mut message = sample.build();
        message.events = kinds.iter().map(|kind| crate::conformance::sample::event(*kind)).collect();
        let uid = message.uid;
        let answers = self.store.accept(vec![message]).await.unwrap();
        assert!(matches!(answers[..], [Acceptance::Accepted { .. }]), "{answers:?}");
        // The store need not have noticed the views yet.
        super::spread_events(&self.database).await.unwrap();
        uid
    }

    /// Sends a message, or has it fail.
    async fn end(&self, sample: Sample, outcome: AttemptOutcome) -> MessageUid {
        let mut claimed = stage::accept_and_claim(&self.store, sample, 1).await;
        let sent = outcome == AttemptOutcome::Sent;
        if sent {
            assert!(stage::commit_wire(&self.store, &mut claimed, at(1)).await);
        }
        assert!(stage::apply(&self.store, stage::outcome(&claimed, sent, outcome, at(2))).await);
        claimed.uid
    }
}

/// Every status with its reason to wait, once.
fn states() -> impl Iterator<Item = MessageState> {
    MessageState::ALL.iter().copied()
}
