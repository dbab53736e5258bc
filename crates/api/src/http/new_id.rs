//! Ids for resources that callers do not name themselves.

use std::{fmt::Display, str::FromStr};

use postway_domain::Time;
use rand::Rng;

use crate::http::error::ApiError;

/// A new id after a prefix such as `rule_`. Ids increase with time, so a list by id is a list by age.
pub(crate) fn fresh_id<T: FromStr<Err: Display>>(prefix: &str, now: Time) -> Result<T, ApiError> {
    let ms = u64::try_from(now.as_millis()).unwrap_or(0);
    let uuid = uuid::Builder::from_unix_timestamp_millis(ms, &rand::rng().random()).into_uuid();
    format!("{prefix}{}", uuid.simple()).parse().map_err(ApiError::internal)
}
