//! Reading the source: pages that are bounded in rows and in bytes, and counts.

use super::{ColumnKind, CopiedTable, CopyConnection, Row, TableCount, TransferError, Value};

/// The most rows of a page. With the columns of the widest table that is well below the 32,766 values that
/// SQLite accepts in one statement.
const ROWS_MAX: usize = 500;
/// The most bytes of a page, unless a single row has more.
const BYTES_MAX: i64 = 8 * 1024 * 1024;

/// The rows after a key in the order of keys; empty at the end of the table.
pub(super) async fn read(
    source: &mut dyn CopyConnection,
    table: &CopiedTable,
    after: Option<&[Value]>,
) -> Result<Vec<Row>, TransferError> {
    let rows_max = match table.bytes {
        Some(bytes) => rows_that_fit(source, table, bytes, after).await?,
        None => ROWS_MAX,
    };
    let (sql, places) = source.dialect().page(table, after.is_some(), rows_max);
    let kinds: Vec<ColumnKind> = table.columns.iter().map(|column| column.kind).collect();
    source.rows(sql, bound(after, &places), &kinds).await
}

/// The number of the next rows that make a page. Read first, because a server sends everything it was asked
/// for.
async fn rows_that_fit(
    source: &mut dyn CopyConnection,
    table: &CopiedTable,
    bytes: &str,
    after: Option<&[Value]>,
) -> Result<usize, TransferError> {
    let (sql, places) = source.dialect().sizes(table, bytes, after.is_some(), ROWS_MAX);
    let sizes = source.rows(sql, bound(after, &places), &[ColumnKind::Int]).await?;
    let sizes = sizes.iter().map(|row| row[0].as_int().unwrap_or(0));
    Ok(fitting(sizes, BYTES_MAX).max(1))
}

fn fitting(sizes: impl Iterator<Item = i64>, bytes_max: i64) -> usize {
    let sums = sizes.scan(0i64, |sum, size| {
        *sum = sum.saturating_add(size);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= bytes_max).count()
}

fn bound(key: Option<&[Value]>, places: &[usize]) -> Vec<Value> {
    let key = key.unwrap_or_default();
    places.iter().map(|place| key[*place].clone()).collect()
}

/// The counts of a table.
pub(super) async fn count(
    database: &mut dyn CopyConnection,
    table: &CopiedTable,
) -> Result<TableCount, TransferError> {
    let sql = database.dialect().count(table);
    let rows = database.rows(sql, Vec::new(), &[ColumnKind::Int, ColumnKind::Int]).await?;
    let number = |place: usize| rows.first().and_then(|row| row[place].as_int());
    match (number(0), number(1)) {
        (Some(rows), Some(sum)) => Ok(TableCount { rows, sum }),
        _ => Err(database.role().failed(format!("it does not count its table {}", table.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_before_its_bytes_are_over() {
        for (sizes, rows) in [(&[][..], 0), (&[3, 3, 4], 3), (&[3, 3, 5], 2), (&[11, 1], 0), (&[10, 0, 1], 2)]
        {
            assert_eq!(fitting(sizes.iter().copied(), 10), rows, "{sizes:?}");
        }
    }
}
