//! Values of a row. The driver is strict: it distinguishes signed, unsigned, text and bytes.

use postway_domain::{MessageState, Time, message::OnDoubt};
use sqlx::{Row, mysql::MySqlRow};

use super::failed;
use crate::{error::StoreError, sql::decode};

pub(super) fn bytes16(row: &MySqlRow, index: usize) -> Result<[u8; 16], StoreError> {
    decode::id16(row.try_get(index).map_err(failed)?)
}

pub(super) fn coded<T>(
    row: &MySqlRow,
    index: usize,
    from_code: fn(i64) -> Option<T>,
) -> Result<T, StoreError> {
    decode::coded(row.try_get(index).map_err(failed)?, from_code)
}

pub(super) fn on_doubt(row: &MySqlRow, index: usize) -> Result<OnDoubt, StoreError> {
    Ok(decode::on_doubt(row.try_get(index).map_err(failed)?))
}

/// A state from three columns in a row: status, wait, wire_committed.
pub(super) fn state(row: &MySqlRow, first: usize) -> Result<MessageState, StoreError> {
    decode::state(
        row.try_get(first).map_err(failed)?,
        row.try_get(first + 1).map_err(failed)?,
        row.try_get(first + 2).map_err(failed)?,
    )
}

pub(super) fn time(row: &MySqlRow, index: usize) -> Result<Option<Time>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(index).map_err(failed)?.map(Time::from_millis))
}

/// A text that is kept as bytes.
pub(super) fn text(row: &MySqlRow, index: usize) -> Result<Option<String>, StoreError> {
    let bytes: Option<Vec<u8>> = row.try_get(index).map_err(failed)?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| StoreError::Unexpected("a stored text that is not UTF-8".into()))
}

/// A number that is never below zero, though its column could be.
pub(super) fn unsigned<T: TryFrom<i64>>(row: &MySqlRow, index: usize) -> Result<T, StoreError> {
    let number: i64 = row.try_get(index).map_err(failed)?;
    number.try_into().map_err(|_| StoreError::Unexpected(format!("a stored number out of range: {number}")))
}
