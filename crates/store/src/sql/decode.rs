//! Decoding stored values into types of the domain, the same for every driver.

use std::{any::type_name, str::FromStr};

use bytes::Bytes;
use postway_domain::{
    EmailAddress, Incarnation, MessageState, MessageStatus,
    dsn::DsnWishes,
    message::{OnDoubt, ScheduleReason},
};
use postway_trace::TraceContext;

use crate::{
    error::StoreError,
    record::{BlobRef, BodyLocation, StoredBody},
};

pub(crate) fn id16(bytes: &[u8]) -> Result<[u8; 16], StoreError> {
    bytes.try_into().map_err(|_| StoreError::Unexpected("an id that is not 16 bytes".into()))
}

pub(crate) fn incarnation(bytes: Option<&[u8]>) -> Result<Option<Incarnation>, StoreError> {
    bytes.map(|bytes| id16(bytes).map(Incarnation::from_bytes)).transpose()
}

pub(crate) fn parsed<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Unexpected(format!("a stored {} that does not parse", type_name::<T>())))
}

/// An address of a message, also one that an earlier version accepted and this one would refuse.
pub(crate) fn kept_address(text: &str) -> Result<EmailAddress, StoreError> {
    EmailAddress::read_back(text)
        .map_err(|error| StoreError::Unexpected(format!("a stored address that does not parse: {error}")))
}

pub(crate) fn coded<T>(code: i64, from_code: fn(i64) -> Option<T>) -> Result<T, StoreError> {
    from_code(code).ok_or_else(|| {
        StoreError::Unexpected(format!("a stored {} with the unknown code {code}", type_name::<T>()))
    })
}

pub(crate) fn on_doubt(code: i64) -> OnDoubt {
    if code == OnDoubt::Hold as i64 { OnDoubt::Hold } else { OnDoubt::Resend }
}

pub(crate) fn state(
    status: i64,
    wait: Option<i64>,
    wire_committed: bool,
) -> Result<MessageState, StoreError> {
    Ok(MessageState::from_parts(
        coded(status, MessageStatus::from_code)?,
        wait.and_then(ScheduleReason::from_code),
        wire_committed,
    ))
}

pub(crate) fn tags(json: Option<&str>) -> Result<Vec<String>, StoreError> {
    json.map_or(Ok(Vec::new()), |json| {
        serde_json::from_str(json).map_err(|error| StoreError::Unexpected(format!("stored tags: {error}")))
    })
}

/// The requested delivery status notifications. A value that cannot be read counts as no request: it must not
/// keep the mail from leaving.
pub(crate) fn dsn_wishes(json: Option<&str>) -> Option<DsnWishes> {
    json.and_then(|json| serde_json::from_str(json).ok())
}

/// A message's place in a trace. A value that cannot be read counts as none, as with wishes.
pub(crate) fn trace_context(bytes: Option<&[u8]>) -> Option<TraceContext> {
    bytes.and_then(TraceContext::from_bytes)
}

/// Where the bytes of a message are stored: in the row, with their number, or in a blob.
pub(crate) fn kept(
    has_inline: bool,
    blob: Option<&str>,
    size: Option<i64>,
) -> Result<BodyLocation, StoreError> {
    let size = u64::try_from(size.unwrap_or(0))
        .map_err(|_| StoreError::Unexpected("a stored size below zero".to_owned()))?;
    Ok(match blob {
        Some(name) => BodyLocation::Blob(BlobRef { name: parsed(name)?, size }),
        None if has_inline => BodyLocation::Inline(size),
        None => BodyLocation::Nowhere,
    })
}

/// The bytes of a message or their blob; `None` if they do not exist yet or were removed.
pub(crate) fn body(
    inline: Option<Bytes>,
    blob: Option<&str>,
    size: Option<i64>,
) -> Result<Option<StoredBody>, StoreError> {
    Ok(match (kept(inline.is_some(), blob, size)?, inline) {
        (BodyLocation::Blob(blob), _) => Some(StoredBody::Blob(blob)),
        (BodyLocation::Inline(_), Some(bytes)) => Some(StoredBody::Inline(bytes)),
        (BodyLocation::Inline(_) | BodyLocation::Nowhere, _) => None,
    })
}

/// A tenant's weight, clamped to its range.
pub(crate) fn weight(stored: i64) -> u32 {
    stored.clamp(1, postway_domain::TenantSettings::WEIGHT_MAX.into()) as u32
}
