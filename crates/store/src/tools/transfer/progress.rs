//! The target's record of a transfer under way, in the table `copy_progress`: the source, the progress of
//! each table, and the counts of the source when the transfer began. It exists exactly while a transfer is
//! not done.

use super::{
    ColumnKind, CopiedTable, CopyConnection, Row, TABLES, TableCount, TransferError, Value, page,
    value::{read_key, write_key},
};

const DROP: &str = "DROP TABLE copy_progress";
const READ: &str = "SELECT name, source, rows_total, sum_total, rows_done, last_key FROM copy_progress";
const READ_KINDS: [ColumnKind; 6] =
    [ColumnKind::Text, ColumnKind::Text, ColumnKind::Int, ColumnKind::Int, ColumnKind::Int, ColumnKind::Text];

/// The progress of one table.
pub(super) struct TableProgress {
    pub table: &'static CopiedTable,
    /// The counts of the source.
    pub total: TableCount,
    pub rows_done: i64,
    /// The key of the last row in the target, in the source's order.
    pub last_key: Option<Vec<Value>>,
}

/// Begins a transfer, or resumes the one that is under way.
pub(super) async fn begin(
    source: &mut dyn CopyConnection,
    target: &mut dyn CopyConnection,
    identity: &str,
) -> Result<Vec<TableProgress>, TransferError> {
    let mut entries = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let total = page::count(source, table).await?;
        entries.push(TableProgress { table, total, rows_done: 0, last_key: None });
    }
    target.run(&target.dialect().create_journal()).await?;
    let found = target.rows(READ.to_owned(), Vec::new(), &READ_KINDS).await?;
    if !found.is_empty() {
        return resume(entries, &found, identity).map_err(|error| error.unwrap_or_else(|| damaged(target)));
    }
    if let Err(error) = check_empty(target).await {
        target.run(DROP).await?;
        return Err(error);
    }
    let dialect = target.dialect();
    target.run("BEGIN").await?;
    // Referring tables are cleared first.
    for sql in TABLES.iter().rev().filter_map(|table| dialect.delete_seeds(table)) {
        target.run(&sql).await?;
    }
    for entry in &entries {
        let sql = format!(
            "INSERT INTO copy_progress (name, source, rows_total, sum_total, rows_done) VALUES ({})",
            dialect.places(5)
        );
        let values = vec![
            Value::text(entry.table.name),
            Value::text(identity),
            Value::int(entry.total.rows),
            Value::int(entry.total.sum),
            Value::int(0),
        ];
        target.execute(sql, values).await?;
    }
    target.run("COMMIT").await?;
    Ok(entries)
}

async fn check_empty(target: &mut dyn CopyConnection) -> Result<(), TransferError> {
    // The queue is copied last, so its presence means that something else wrote it.
    for table in TABLES.iter().rev() {
        let sql = target.dialect().foreign_row(table);
        // A literal's type differs from database to database, so it is not read.
        if !target.rows(sql, Vec::new(), &[]).await?.is_empty() {
            return Err(TransferError::Filled(table.name));
        }
    }
    Ok(())
}

fn damaged(target: &dyn CopyConnection) -> TransferError {
    target.role().failed("its table copy_progress is not as this version writes it")
}

/// Fails without text if the record cannot be read.
fn resume(
    entries: Vec<TableProgress>,
    found: &[Row],
    identity: &str,
) -> Result<Vec<TableProgress>, Option<TransferError>> {
    let take_up = |entry: TableProgress| {
        let row = found.iter().find(|row| row[0].as_text() == Some(entry.table.name)).ok_or(None)?;
        let source = row[1].as_text().ok_or(None)?;
        if source != identity {
            return Err(Some(TransferError::OtherSource(source.to_owned())));
        }
        let number = |place: usize| row[place].as_int().ok_or(None);
        if entry.total != (TableCount { rows: number(2)?, sum: number(3)? }) {
            return Err(Some(TransferError::Changed(entry.table.name)));
        }
        let last_key = match row[5].as_text() {
            Some(text) => Some(read_key(text, entry.table.key_columns()).ok_or(None)?),
            None => None,
        };
        Ok(TableProgress { rows_done: number(4)?, last_key, ..entry })
    };
    entries.into_iter().map(take_up).collect()
}

/// Writes a page and its progress in one transaction.
pub(super) async fn write(
    target: &mut dyn CopyConnection,
    entry: &mut TableProgress,
    rows: Vec<Row>,
    last_key: Vec<Value>,
) -> Result<(), TransferError> {
    let dialect = target.dialect();
    let rows_done = entry.rows_done + rows.len() as i64;
    target.run("BEGIN").await?;
    target.insert(entry.table, rows).await?;
    let sql = format!(
        "UPDATE copy_progress SET rows_done = {}, last_key = {} WHERE name = {} AND rows_done = {}",
        dialect.place(1),
        dialect.place(2),
        dialect.place(3),
        dialect.place(4)
    );
    let values = vec![
        Value::int(rows_done),
        Value::text(write_key(&last_key)),
        Value::text(entry.table.name),
        Value::int(entry.rows_done),
    ];
    if target.execute(sql, values).await? != 1 {
        return Err(TransferError::Overtaken);
    }
    crate::failpoint::crash_point("copy_page");
    target.run("COMMIT").await?;
    entry.rows_done = rows_done;
    entry.last_key = Some(last_key);
    Ok(())
}

/// Ends a finished transfer.
pub(super) async fn end(target: &mut dyn CopyConnection) -> Result<(), TransferError> {
    target.run(DROP).await
}
