//! How statements find what they return.

use postway_testkit::postgres::PostgresDatabase;
use sqlx::{PgPool, Row, SqlitePool, sqlite::SqliteConnectOptions};

use super::{dkim_keys, links, recipients, templates};
use crate::{
    driver::{postgres::PostgresStore, sqlite::SqliteStore},
    sql::numbered,
};

/// A page of names must not read their older versions, nor a look-up its whole tenant.
#[tokio::test]
async fn sqlite_finds_by_index() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("postway.db");
    SqliteStore::migrate(&path).await.unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    for (sql, steps) in [
        (
            templates::LIST,
            &[
                "SEARCH f USING PRIMARY KEY (tenant=? AND name>?)",
                "SEARCH n USING PRIMARY KEY (tenant=? AND name>?)",
                "SEARCH t USING PRIMARY KEY (tenant=? AND name=? AND version=?)",
                "SEARCH v USING PRIMARY KEY (tenant=? AND name=?)",
            ][..],
        ),
        (recipients::BY_EXTERNAL, &["known_recipient_external (tenant=? AND external_id=? AND live=?)"]),
        (recipients::BY_PERSONAL, &["known_recipient_personal (tenant=? AND personal_digest=?)"]),
        (recipients::LIST, &["PRIMARY KEY (tenant=? AND id>?)"]),
        (recipients::LIST_OF_ADDRESS, &["known_recipient_address (tenant=? AND address=? AND id>?)"]),
        (dkim_keys::OF_TENANT_AND_DOMAIN, &["PRIMARY KEY (tenant=? AND domain=?)"]),
        (links::ENDED, &["link_expiry (expires_at<?)"]),
    ] {
        let explain = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.sqlite)));
        let rows = explain.fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(3)).collect();
        for step in steps {
            assert!(plan.iter().any(|line| line.contains(step)), "{}\n{plan:#?}", sql.sqlite);
        }
        let scans = |line: &&String| line.contains("SCAN") && !line.contains("SCAN page");
        assert_eq!(plan.iter().find(scans), None, "{}", sql.sqlite);
    }
}

#[tokio::test]
async fn postgres_finds_by_index() {
    let database = PostgresDatabase::create();
    PostgresStore::migrate(&database.url()).await.unwrap();
    database.run(
        "INSERT INTO known_recipient (tenant, id, external_id, live, address, personal_digest, version, created_at, \
         updated_at) SELECT 'acme', decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 1, n || '@example.org', \
         decode(lpad(to_hex(n), 64, '0'), 'hex'), 1, 0, 0 FROM generate_series(1, 5000) n; \
         INSERT INTO template (tenant, name, version, subject, created_at) \
         SELECT 'acme', n % 50, n / 50, 'Hello', 0 FROM generate_series(1, 5000) n; \
         ANALYZE known_recipient, template",
    );
    let pool = PgPool::connect(&database.url()).await.unwrap();
    for (sql, index) in [
        (templates::LIST, "template_pkey"),
        (recipients::BY_EXTERNAL, "known_recipient_external"),
        (recipients::BY_PERSONAL, "known_recipient_personal"),
        (recipients::LIST, "known_recipient_pkey"),
        (recipients::LIST_OF_ADDRESS, "known_recipient_address"),
        (dkim_keys::OF_TENANT_AND_DOMAIN, "dkim_key_pkey"),
        (links::ENDED, "link_expiry"),
    ] {
        let parameters = vec!["NULL"; sql.postgres.matches('?').count()].join(",");
        let explain = format!(
            "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; DEALLOCATE ALL; \
             PREPARE asked AS {}; EXPLAIN EXECUTE asked({parameters})",
            numbered(sql.postgres),
        );
        let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain)).fetch_all(&pool).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{}\n{plan}", sql.postgres);
    }
}
