//! Installing, again and elsewhere, with an index, around migrations, and removing.

use sqlx::{Connection, MySqlConnection, PgConnection, SqliteConnection};

use super::{Rig, on_each};
use crate::{
    conformance::{sample::Sample, stage},
    driver::mysql::MysqlStore,
    tools::views::{self, ViewsDatabase, ViewsError, ViewsPlan, install, remove, script},
};

on_each! {
    installing_again_changes_nothing
    another_place_can_be_named
    an_index_finds_messages_by_their_ids
    a_migration_may_change_what_views_show
    what_was_removed_is_gone
    nothing_can_be_written_through_a_view
}

async fn installing_again_changes_nothing(rig: Rig) {
    stage::accept(&rig.store, Sample::new(1).client_id("one")).await;
    for _ in 0..2 {
        assert_eq!(rig.install().await, views::schema(&rig.database, &ViewsPlan::default()).unwrap());
        assert_eq!(rig.word("emails", "one").await, "READY");
    }
    // The store goes on beside them, and is opened over them.
    stage::accept(&rig.store, Sample::new(2).client_id("two")).await;
    assert_eq!(rig.word("messages", "two").await, "PENDING");
    let statements = script(&rig.database, &ViewsPlan::default()).unwrap();
    assert!(!statements.contains('{') && !statements.contains('}'), "{statements}");
}

async fn another_place_can_be_named(rig: Rig) {
    // Test databases of MySQL share a server.
    let schema = format!("{}_legacy", views::schema(&rig.database, &ViewsPlan::default()).unwrap());
    let plan = ViewsPlan { schema: Some(schema.clone()), index: false };
    assert_eq!(install(&rig.database, &plan).await.unwrap(), schema);
    let name = views::place(&rig.database, &plan).unwrap().name("email_logs");
    assert!(rig.rows(&format!("SELECT status FROM {name}")).await.is_empty());
    remove(&rig.database, &plan).await.unwrap();
    for wrong in ["", "a b", "a\"b", "a`b", "pg_views", &"x".repeat(64)] {
        let plan = ViewsPlan { schema: Some(wrong.to_owned()), index: false };
        assert!(matches!(install(&rig.database, &plan).await, Err(ViewsError::Name(_))), "{wrong}");
    }
}

/// On SQLite while no server has the file: an index takes its time.
async fn an_index_finds_messages_by_their_ids(mut rig: Rig) {
    let uid = stage::accept(&rig.store, Sample::new(1)).await;
    stage::accept(&rig.store, Sample::new(2).client_id("mine")).await;
    let plan = ViewsPlan { index: true, ..ViewsPlan::default() };
    if matches!(rig.database, ViewsDatabase::Sqlite(_)) {
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
        ViewsDatabase::Sqlite(_) => "EXPLAIN QUERY PLAN",
        ViewsDatabase::Postgres(_) => "SET enable_seqscan = off; EXPLAIN",
        ViewsDatabase::Mysql(_) => "EXPLAIN FORMAT=JSON",
    };
    for (view, key) in [("emails", "id"), ("email_statuses", "email_id"), ("messages", "id")] {
        let plan =
            rig.explained(explain, &format!("SELECT * FROM {} WHERE {key} = 'mine'", rig.view(view))).await;
        assert!(plan.contains("content_view_id"), "{view}: {plan}");
    }
    if !matches!(rig.database, ViewsDatabase::Sqlite(_)) {
        stage::accept(&rig.store, Sample::new(3).client_id("later")).await;
        assert_eq!(rig.word("email_logs", "later").await, "VALIDATED");
    }
    // Without a word about the index it stays, and is used.
    rig.install().await;
    assert_eq!(rig.word("emails", "mine").await, "READY");
    remove(&rig.database, &ViewsPlan::default()).await.unwrap();
    rig.install().await;
    assert_eq!(rig.word("emails", "mine").await, "READY");
}

/// A column that is shown is taken away and comes back, and readers find what they had.
async fn a_migration_may_change_what_views_show(rig: Rig) {
    rig.install().await;
    stage::accept(&rig.store, Sample::new(1).client_id("mine")).await;
    match &rig.database {
        ViewsDatabase::Sqlite(path) => {
            let mut conn = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
            sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut conn).await.unwrap();
            views::sqlite::put_views_aside(&mut conn).await.unwrap();
            let change = "ALTER TABLE content RENAME COLUMN request_id TO request; \
                 ALTER TABLE content RENAME COLUMN request TO request_id";
            sqlx::raw_sql(change).execute(&mut conn).await.unwrap();
            views::sqlite::recreate_views(&mut conn).await.unwrap();
            sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
        }
        ViewsDatabase::Postgres(url) => {
            rig.run("GRANT SELECT ON postway_views.email_logs TO PUBLIC").await;
            let mut conn = PgConnection::connect(url).await.unwrap();
            let change = "ALTER TABLE content ALTER COLUMN request_id TYPE VARCHAR(2000)";
            assert!(sqlx::raw_sql(change).execute(&mut conn).await.is_err(), "a view is in the way");
            sqlx::raw_sql("BEGIN").execute(&mut conn).await.unwrap();
            views::postgres::put_views_aside(&mut conn).await.unwrap();
            sqlx::raw_sql(change).execute(&mut conn).await.unwrap();
            sqlx::raw_sql("ALTER TABLE content ALTER COLUMN request_id TYPE TEXT COLLATE \"C\"")
                .execute(&mut conn)
                .await
                .unwrap();
            views::postgres::recreate_views(&mut conn).await.unwrap();
            sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
            let granted = "SELECT (relacl::text LIKE '%{=r/%' OR relacl::text LIKE '%,=r/%')::text FROM pg_class \
                 WHERE oid = 'postway_views.email_logs'::regclass";
            assert_eq!(rig.rows(granted).await[0][0].as_deref(), Some("true"));
        }
        ViewsDatabase::Mysql(url) => {
            rig.run("ALTER TABLE attempt CHANGE duration_ms lasted BIGINT NOT NULL").await;
            rig.run("ALTER TABLE attempt CHANGE lasted duration_ms BIGINT NOT NULL").await;
            let view = rig.view("email_logs");
            rig.run(&format!("CREATE OR REPLACE VIEW {view} AS SELECT 1 AS nothing")).await;
            let mut conn = MySqlConnection::connect(url).await.unwrap();
            views::mysql::recreate_views(&mut conn).await;
        }
    }
    assert_eq!(rig.word("email_logs", "mine").await, "VALIDATED");
}

/// Also by who may write to everything, in columns that are shown as they are stored.
async fn nothing_can_be_written_through_a_view(rig: Rig) {
    rig.install().await;
    stage::accept(&rig.store, Sample::new(1).client_id("mine")).await;
    for (view, column) in [
        ("emails", "version"),
        ("emails", "message_uid"),
        ("email_statuses", "tenant_id"),
        ("messages", "account_id"),
        ("monitored_emails", "id"),
        ("monitored_emails_tasks", "uid"),
        ("email_outbox", "externalId"),
        ("email_logs", "attempts"),
        ("email_events", "companyId"),
    ] {
        let (name, quote) =
            (rig.view(view), if matches!(rig.database, ViewsDatabase::Mysql(_)) { '`' } else { '"' });
        for statement in [
            format!("UPDATE {name} SET {quote}{column}{quote} = {quote}{column}{quote}"),
            format!("INSERT INTO {name} ({quote}{column}{quote}) VALUES (NULL)"),
            format!("DELETE FROM {name}"),
        ] {
            assert!(rig.try_run(&statement).await.is_err(), "{statement}");
        }
    }
    assert_eq!(rig.word("emails", "mine").await, "READY");
}

async fn what_was_removed_is_gone(rig: Rig) {
    rig.install().await;
    for _ in 0..2 {
        remove(&rig.database, &ViewsPlan::default()).await.unwrap();
    }
    let left = match &rig.database {
        ViewsDatabase::Sqlite(_) => "SELECT name FROM sqlite_schema WHERE type = 'view'".to_owned(),
        ViewsDatabase::Postgres(_) => {
            "SELECT nspname::text FROM pg_namespace WHERE nspname = 'postway_views'".to_owned()
        }
        ViewsDatabase::Mysql(_) => {
            let schema = views::schema(&rig.database, &ViewsPlan::default()).unwrap();
            format!(
                "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata WHERE schema_name = '{schema}'"
            )
        }
    };
    assert!(rig.rows(&left).await.is_empty());
    stage::accept(&rig.store, Sample::new(1)).await;
}

/// Names of databases that a pattern would not distinguish.
#[tokio::test]
async fn a_migration_leaves_the_views_of_another_database_alone() {
    let one = Rig::mysql().await;
    let ViewsDatabase::Mysql(url) = &one.database else { panic!("this is MySQL") };
    let (head, socket) = url.split_once('?').unwrap();
    let (server, name) = head.rsplit_once('/').unwrap();
    let alike = name.replace('_', "x");
    one.run(&format!("CREATE DATABASE {alike}")).await;
    let other = ViewsDatabase::parse(&format!("{server}/{alike}?{socket}")).unwrap();
    let ViewsDatabase::Mysql(other_url) = &other else { panic!("this is MySQL") };
    MysqlStore::migrate(other_url).await.unwrap();
    one.install().await;
    install(&other, &ViewsPlan::default()).await.unwrap();
    views::mysql::recreate_views(&mut MySqlConnection::connect(url).await.unwrap()).await;
    let definition = "SELECT CAST(view_definition AS CHAR) FROM information_schema.views WHERE table_name = 'emails' \
         AND table_schema = ";
    let shown = one.rows(&format!("{definition}'{alike}_views'")).await[0][0].clone().unwrap();
    assert!(
        shown.contains(&format!("`{alike}`.`message`")) && !shown.contains(&format!("`{name}`")),
        "{shown}"
    );
}

/// Columns of another version are no reason to lose what readers were granted.
#[tokio::test]
async fn views_of_another_version_are_made_anew_with_their_grants() {
    let rig = Rig::postgres().await;
    let ViewsDatabase::Postgres(url) = &rig.database else { panic!("this is PostgreSQL") };
    rig.install().await;
    stage::accept(&rig.store, Sample::new(1).client_id("mine")).await;
    let reader = format!("reader_{}", url.rsplit('/').next().unwrap());
    let earlier = format!(
        "DROP VIEW postway_views.emails; CREATE VIEW postway_views.emails AS SELECT 1 AS id, 'x'::text AS state; \
         COMMENT ON VIEW postway_views.emails IS 'made by postway views install'; CREATE ROLE {reader}; \
         GRANT SELECT ON postway_views.emails TO PUBLIC; GRANT SELECT ON postway_views.messages TO {reader} WITH GRANT OPTION"
    );
    let granted = format!(
        "SELECT concat_ws(' ', has_table_privilege('{reader}', 'postway_views.emails', 'SELECT'), \
         has_table_privilege('{reader}', 'postway_views.messages', 'SELECT WITH GRANT OPTION'), \
         has_table_privilege('{reader}', 'postway_views.email_logs', 'SELECT'))"
    );
    let is_granted = async || assert_eq!(rig.rows(&granted).await[0][0].as_deref(), Some("t t f"));
    rig.run(&earlier).await;
    rig.install().await;
    assert_eq!(rig.word("emails", "mine").await, "READY");
    is_granted().await;
    // The same for a migration, which had put empty views in their place.
    rig.run(earlier.split("CREATE ROLE").next().unwrap()).await;
    rig.run("GRANT SELECT ON postway_views.emails TO PUBLIC").await;
    let mut conn = PgConnection::connect(url).await.unwrap();
    let mut txn = conn.begin().await.unwrap();
    views::postgres::put_views_aside(&mut txn).await.unwrap();
    views::postgres::recreate_views(&mut txn).await.unwrap();
    txn.commit().await.unwrap();
    assert_eq!(rig.word("emails", "mine").await, "READY");
    is_granted().await;
    rig.run(&format!("DROP OWNED BY {reader}; DROP ROLE {reader}")).await;
}

/// Nor are they replaced or removed.
#[tokio::test]
async fn views_that_are_not_ours_are_not_touched() {
    let rig = Rig::postgres().await;
    rig.run("CREATE SCHEMA app; CREATE VIEW app.messages AS SELECT 7 AS seven").await;
    let plan = ViewsPlan { schema: Some("app".to_owned()), index: false };
    let error = install(&rig.database, &plan).await.unwrap_err();
    assert!(matches!(&error, ViewsError::Taken { view, .. } if view == "messages"), "{error}");
    remove(&rig.database, &plan).await.unwrap();
    assert_eq!(rig.rows("SELECT seven::text FROM app.messages").await[0][0].as_deref(), Some("7"));
    rig.install().await;
    rig.run("CREATE VIEW app.sums AS SELECT count(*) AS n FROM postway_views.emails").await;
    let error = remove(&rig.database, &ViewsPlan::default()).await.unwrap_err();
    assert!(matches!(&error, ViewsError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("drop them first"), "{error}");
}

/// Views of tables that are not there would be of no use.
#[tokio::test]
async fn a_database_without_our_tables_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let missing = ViewsDatabase::Sqlite(folder.path().join("none.db"));
    assert!(matches!(install(&missing, &ViewsPlan::default()).await, Err(ViewsError::NotMigrated)));
    assert!(!folder.path().join("none.db").exists());
    let url = postway_testkit::mariadb::MariaDb::shared().create_database();
    let empty = ViewsDatabase::parse(&url).unwrap();
    assert!(matches!(install(&empty, &ViewsPlan::default()).await, Err(ViewsError::NotMigrated)));
}

/// A user who may not create a database learns what to ask for, and may use an existing one.
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
    let database = ViewsDatabase::parse(&format!("mysql://{name}@localhost/{name}?{socket}")).unwrap();
    let error = install(&database, &ViewsPlan::default()).await.unwrap_err();
    assert!(
        matches!(&error, ViewsError::Denied { schema, .. } if *schema == format!("{name}_views")),
        "{error}"
    );
    let plan = ViewsPlan { schema: Some(format!("{name}_given")), index: false };
    install(&database, &plan).await.unwrap();
}

#[test]
fn a_wrong_address_is_refused() {
    for wrong in ["", "here", "sqlite://", "redis://h/0"] {
        assert!(matches!(ViewsDatabase::parse(wrong), Err(ViewsError::Address)), "{wrong}");
    }
    let nameless = ViewsDatabase::parse("mysql://h").unwrap();
    assert!(matches!(script(&nameless, &ViewsPlan::default()), Err(ViewsError::Address)));
    let plan = ViewsPlan { index: true, ..ViewsPlan::default() };
    let printed = script(&ViewsDatabase::parse("mariadb://h/mail").unwrap(), &plan).unwrap();
    assert!(printed.contains("`mail_views`.`emails`") && printed.contains("`mail`.`message`"), "{printed}");
}
