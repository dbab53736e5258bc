//! Installing, again and elsewhere, with an index, around migrations, and removing.

use sqlx::{Connection, MySqlConnection, PgConnection, SqliteConnection};

use super::{Rig, on_each};
use crate::{
    conformance::{sample::Sample, stage},
    mysql::MysqlStore,
    views::{self, Database, Plan, ViewsError, install, remove, script},
};

on_each! {
    installing_again_changes_nothing
    another_place_can_be_named
    an_index_finds_messages_by_their_ids
    a_migration_may_change_what_views_show
    what_was_removed_is_gone
}

async fn installing_again_changes_nothing(rig: Rig) {
    stage::accept(&rig.store, Sample::new(1).client_id("one")).await;
    for _ in 0..2 {
        assert_eq!(rig.install().await, views::schema(&rig.database, &Plan::default()).unwrap());
        assert_eq!(rig.word("emails", "one").await, "READY");
    }
    // The store goes on beside them, and is opened over them.
    stage::accept(&rig.store, Sample::new(2).client_id("two")).await;
    assert_eq!(rig.word("messages", "two").await, "PENDING");
    let statements = script(&rig.database, &Plan::default()).unwrap();
    assert!(!statements.contains('{') && !statements.contains('}'), "{statements}");
}

async fn another_place_can_be_named(rig: Rig) {
    // Test databases of MySQL share a server.
    let schema = format!("{}_legacy", views::schema(&rig.database, &Plan::default()).unwrap());
    let plan = Plan { schema: Some(schema.clone()), index: false };
    assert_eq!(install(&rig.database, &plan).await.unwrap(), schema);
    let name = views::place(&rig.database, &plan).unwrap().name("email_logs");
    assert!(rig.rows(&format!("SELECT status FROM {name}")).await.is_empty());
    remove(&rig.database, &plan).await.unwrap();
    for wrong in ["", "a b", "a\"b", "a`b", "pg_views", &"x".repeat(64)] {
        let plan = Plan { schema: Some(wrong.to_owned()), index: false };
        assert!(matches!(install(&rig.database, &plan).await, Err(ViewsError::Name(_))), "{wrong}");
    }
}

/// On SQLite while no server has the file: an index takes its time.
async fn an_index_finds_messages_by_their_ids(mut rig: Rig) {
    let uid = stage::accept(&rig.store, Sample::new(1)).await;
    stage::accept(&rig.store, Sample::new(2).client_id("mine")).await;
    let plan = Plan { index: true, ..Plan::default() };
    if matches!(rig.database, Database::Sqlite(_)) {
        assert!(matches!(install(&rig.database, &plan).await, Err(ViewsError::Store(_))));
        rig = rig.without_store().await;
    }
    for _ in 0..2 {
        install(&rig.database, &plan).await.unwrap();
    }
    for id in [uid.to_string(), "mine".to_owned()] {
        assert_eq!(rig.word("emails", &id).await, "READY");
        assert_eq!(rig.word("email_outbox", &id).await, "VALIDATED");
    }
    let explain = match &rig.database {
        Database::Sqlite(_) => "EXPLAIN QUERY PLAN",
        Database::Postgres(_) => "SET enable_seqscan = off; EXPLAIN",
        Database::Mysql(_) => "EXPLAIN FORMAT=JSON",
    };
    for (view, key) in [("emails", "id"), ("email_statuses", "email_id"), ("messages", "id")] {
        let plan =
            rig.explained(explain, &format!("SELECT * FROM {} WHERE {key} = 'mine'", rig.view(view))).await;
        assert!(plan.contains("content_view_id"), "{view}: {plan}");
    }
    if !matches!(rig.database, Database::Sqlite(_)) {
        stage::accept(&rig.store, Sample::new(3).client_id("later")).await;
        assert_eq!(rig.word("email_logs", "later").await, "VALIDATED");
    }
    // Without a word about the index it stays, and is used.
    rig.install().await;
    assert_eq!(rig.word("emails", "mine").await, "READY");
    remove(&rig.database, &Plan::default()).await.unwrap();
    rig.install().await;
    assert_eq!(rig.word("emails", "mine").await, "READY");
}

/// A column that is shown is taken away and comes back, and readers find what they had.
async fn a_migration_may_change_what_views_show(rig: Rig) {
    rig.install().await;
    stage::accept(&rig.store, Sample::new(1).client_id("mine")).await;
    match &rig.database {
        Database::Sqlite(path) => {
            let mut conn = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
            sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut conn).await.unwrap();
            views::sqlite::stand_aside(&mut conn).await.unwrap();
            let change = "ALTER TABLE content RENAME COLUMN request_id TO request; \
                 ALTER TABLE content RENAME COLUMN request TO request_id";
            sqlx::raw_sql(change).execute(&mut conn).await.unwrap();
            views::sqlite::come_back(&mut conn).await.unwrap();
            sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
        }
        Database::Postgres(url) => {
            rig.run("GRANT SELECT ON postway_views.email_logs TO PUBLIC").await;
            let mut conn = PgConnection::connect(url).await.unwrap();
            let change = "ALTER TABLE content ALTER COLUMN request_id TYPE VARCHAR(2000)";
            assert!(sqlx::raw_sql(change).execute(&mut conn).await.is_err(), "a view is in the way");
            sqlx::raw_sql("BEGIN").execute(&mut conn).await.unwrap();
            views::postgres::stand_aside(&mut conn).await.unwrap();
            sqlx::raw_sql(change).execute(&mut conn).await.unwrap();
            sqlx::raw_sql("ALTER TABLE content ALTER COLUMN request_id TYPE TEXT COLLATE \"C\"")
                .execute(&mut conn)
                .await
                .unwrap();
            views::postgres::come_back(&mut conn).await.unwrap();
            sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
            let granted = "SELECT (relacl::text LIKE '%{=r/%' OR relacl::text LIKE '%,=r/%')::text FROM pg_class \
                 WHERE oid = 'postway_views.email_logs'::regclass";
            assert_eq!(rig.rows(granted).await[0][0].as_deref(), Some("true"));
        }
        Database::Mysql(url) => {
            rig.run("ALTER TABLE attempt CHANGE duration_ms lasted BIGINT NOT NULL").await;
            rig.run("ALTER TABLE attempt CHANGE lasted duration_ms BIGINT NOT NULL").await;
            let view = rig.view("email_logs");
            rig.run(&format!("CREATE OR REPLACE VIEW {view} AS SELECT 1 AS nothing")).await;
            let mut conn = MySqlConnection::connect(url).await.unwrap();
            views::mysql::come_back(&mut conn).await;
        }
    }
    assert_eq!(rig.word("email_logs", "mine").await, "VALIDATED");
}

async fn what_was_removed_is_gone(rig: Rig) {
    rig.install().await;
    for _ in 0..2 {
        remove(&rig.database, &Plan::default()).await.unwrap();
    }
    let left = match &rig.database {
        Database::Sqlite(_) => "SELECT name FROM sqlite_schema WHERE type = 'view'".to_owned(),
        Database::Postgres(_) => {
            "SELECT nspname::text FROM pg_namespace WHERE nspname = 'postway_views'".to_owned()
        }
        Database::Mysql(_) => {
            let schema = views::schema(&rig.database, &Plan::default()).unwrap();
            format!(
                "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata WHERE schema_name = '{schema}'"
            )
        }
    };
    assert!(rig.rows(&left).await.is_empty());
    stage::accept(&rig.store, Sample::new(1)).await;
}

/// Views of tables that are not there would be of no use.
#[tokio::test]
async fn a_database_without_our_tables_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let missing = Database::Sqlite(folder.path().join("none.db"));
    assert!(matches!(install(&missing, &Plan::default()).await, Err(ViewsError::NotMigrated)));
    assert!(!folder.path().join("none.db").exists());
    let url = postway_testkit::mariadb::MariaDb::shared().create_database();
    let empty = Database::parse(&url).unwrap();
    assert!(matches!(install(&empty, &Plan::default()).await, Err(ViewsError::NotMigrated)));
}

/// Who may not make a database is told what to ask for, and may use one that is there.
#[tokio::test]
async fn a_user_without_rights_is_told_what_to_do() {
    let url = postway_testkit::mariadb::MariaDb::shared().create_database();
    MysqlStore::migrate(&url).await.unwrap();
    let (head, socket) = url.split_once('?').unwrap();
    let name = head.rsplit('/').next().unwrap();
    let mut root = MySqlConnection::connect(&url).await.unwrap();
    let grants = format!(
        "CREATE DATABASE {name}_given; CREATE USER IF NOT EXISTS {name}@localhost; \
         GRANT ALL ON `{name}`.* TO {name}@localhost; GRANT ALL ON {name}_given.* TO {name}@localhost"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(grants)).execute(&mut root).await.unwrap();
    let database = Database::parse(&format!("mysql://{name}@localhost/{name}?{socket}")).unwrap();
    let error = install(&database, &Plan::default()).await.unwrap_err();
    assert!(
        matches!(&error, ViewsError::Denied { schema, .. } if *schema == format!("{name}_views")),
        "{error}"
    );
    let plan = Plan { schema: Some(format!("{name}_given")), index: false };
    install(&database, &plan).await.unwrap();
}

#[test]
fn a_wrong_address_is_refused() {
    for wrong in ["", "here", "sqlite://", "redis://h/0"] {
        assert!(matches!(Database::parse(wrong), Err(ViewsError::Address)), "{wrong}");
    }
    let nameless = Database::parse("mysql://h").unwrap();
    assert!(matches!(script(&nameless, &Plan::default()), Err(ViewsError::Address)));
    let plan = Plan { index: true, ..Plan::default() };
    let printed = script(&Database::parse("mariadb://h/mail").unwrap(), &plan).unwrap();
    assert!(printed.contains("`mail_views`.`emails`") && printed.contains("`mail`.`message`"), "{printed}");
}
