//! How each database reads a page: from its key on, in order. Otherwise a copy takes the square of its rows.

use super::{
    super::{ColumnKind, CopyDialect, TABLES, Value},
    DatabaseAddress, Street, TransferRole, moved,
};

/// The plan of a table's second page, as text.
async fn plans(address: &DatabaseAddress) -> Vec<(&'static str, String)> {
    let mut database = address.open(TransferRole::Source).await.unwrap();
    let (explain, kinds): (_, &[ColumnKind]) = match database.dialect() {
        CopyDialect::Sqlite => {
            ("EXPLAIN QUERY PLAN", &[ColumnKind::Int, ColumnKind::Int, ColumnKind::Int, ColumnKind::Text])
        }
        CopyDialect::Postgres => ("EXPLAIN", &[ColumnKind::Text]),
        CopyDialect::Mysql => ("EXPLAIN FORMAT=JSON", &[ColumnKind::Text]),
    };
    if database.dialect() == CopyDialect::Mysql {
        // MySQL from 9 on has two forms of it.
        let form = "SET @form = 0 /*!80300 , SESSION explain_json_format_version = 1 */";
        database.run(form).await.unwrap();
    }
    let mut plans = Vec::new();
    for table in TABLES {
        let key_kinds: Vec<ColumnKind> = table.key_columns().iter().map(|column| column.kind).collect();
        let (first, _) = database.dialect().page(table, false, 1);
        let key = database.rows(first, Vec::new(), &key_kinds).await.unwrap();
        let Some(key) = key.first() else { panic!("{} is empty", table.name) };
        let (sql, places) = database.dialect().page(table, true, 500);
        let values: Vec<Value> = places.iter().map(|place| key[*place].clone()).collect();
        let plan = database.rows(format!("{explain} {sql}"), values, kinds).await.unwrap();
        let lines: Vec<&str> = plan.iter().filter_map(|row| row.last()?.as_text()).collect();
        plans.push((table.name, lines.join("\n")));
    }
    database.close().await;
    plans
}

#[tokio::test]
async fn a_page_is_read_from_its_key_on() {
    let street = Street::new();
    let (old, _) = street.furnished().await;
    moved(&old, &street.postgres()).await;
    moved(&old, &street.mysql()).await;
    for (table, plan) in plans(&old).await {
        assert!(plan.contains("SEARCH") && !plan.contains("TEMP B-TREE"), "{table}\n{plan}");
    }
    for (table, plan) in plans(&street.postgres()).await {
        assert!(plan.contains("Index Cond") && !plan.contains("Sort"), "{table}\n{plan}");
    }
    for ((table, plan), listed) in plans(&street.mysql()).await.into_iter().zip(TABLES) {
        let is_sorted = plan.replace(r#""using_filesort": false"#, "").contains("filesort");
        // MySQL reads a table of one row from its beginning.
        let is_range =
            plan.contains(r#""access_type": "range""#) || plan.contains(r#""rows_examined_per_scan": 1,"#);
        assert!(is_range && !is_sorted, "{table}\n{plan}");
        let key_parts = plan.split_once("used_key_parts").and_then(|(_, rest)| rest.split(']').next());
        for column in listed.key_columns() {
            let quoted = format!("\"{}\"", column.name);
            assert!(key_parts.is_some_and(|parts| parts.contains(&quoted)), "{table}\n{plan}");
        }
    }
}
