//! Lists in pages, and exports as a stream.
//!
//! A cursor is the encoded key of the last item, so that clients do not build one by hand and its form can
//! change. Long lists always come in pages ([`PageRequest`]); short ones come complete unless a `limit` is
//! given ([`ListPart`]).

use std::{fmt::Display, str::FromStr};

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::stream;
use postway_store::StoreError;
use serde::{Serialize, de::DeserializeOwned};

use crate::http::{error::ApiError, query::QueryParameters};

const LIMIT_DEFAULT: u32 = 50;
/// The most items of a page.
pub(crate) const LIMIT_MAX: u32 = 500;
/// The most rows that are read for one page when some are skipped.
const LOOKED_AT_MAX: usize = 10_000;

/// The requested page.
pub(crate) struct PageRequest {
    /// The number of items.
    pub(crate) limit: u32,
    /// Where to continue, as the caller sent it.
    pub(crate) cursor: Option<String>,
}

impl PageRequest {
    /// Reads `limit` and `cursor` from a query.
    pub(crate) fn take(query: &mut QueryParameters) -> Self {
        Self { limit: Self::take_limit(query), cursor: query.take("cursor") }
    }

    /// Reads `limit` only.
    pub(crate) fn take_limit(query: &mut QueryParameters) -> u32 {
        query.parse("limit", parse_limit).unwrap_or(LIMIT_DEFAULT)
    }
}

/// The requested part of a list that is in memory.
pub(crate) struct ListPart {
    /// The number of items; all of them when absent.
    limit: Option<u32>,
    /// Where to continue, as the caller sent it.
    cursor: Option<String>,
}

impl ListPart {
    /// Reads `limit` and `cursor` from a query.
    pub(crate) fn take(query: &mut QueryParameters) -> Self {
        Self { limit: query.parse("limit", parse_limit), cursor: query.take("cursor") }
    }

    /// The requested part of the list, and the cursor of the next. The keys give the order, and no two items
    /// share one; an item that is added or removed between two pages moves no other.
    pub(crate) fn select<T, K>(
        self,
        mut items: Vec<T>,
        key: impl Fn(&T) -> K,
    ) -> Result<(Vec<T>, Option<String>), ApiError>
    where
        K: Ord + Serialize + DeserializeOwned,
    {
        items.sort_by_cached_key(&key);
        if let Some(cursor) = self.cursor {
            let json: String = read_cursor(&cursor)?;
            let after: K = serde_json::from_str(&json).map_err(|_| not_ours())?;
            items.retain(|item| key(item) > after);
        }
        let Some(limit) = self.limit.map(|limit| limit as usize).filter(|limit| items.len() > *limit) else {
            return Ok((items, None));
        };
        items.truncate(limit);
        let last = items.last().map(|last| serde_json::to_string(&key(last)));
        let last = last.transpose().map_err(ApiError::internal)?;
        Ok((items, last.as_ref().map(write_cursor)))
    }
}

/// The extractor for lists without other parameters.
impl<S: Send + Sync> FromRequestParts<S> for ListPart {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let uri = Uri::from_request_parts(parts, state).await.map_err(ApiError::internal)?;
        let mut query = QueryParameters::from_uri(&uri)?;
        let part = Self::take(&mut query);
        query.finish().map(|()| part)
    }
}

fn parse_limit(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(limit @ 1..=LIMIT_MAX) => Ok(limit),
        _ => Err(format!("must be a number from 1 to {LIMIT_MAX}")),
    }
}

/// The cursor after the item with this key.
pub(crate) fn write_cursor(key: &impl Display) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(key.to_string())
}

/// The key that a cursor encodes.
pub(crate) fn read_cursor<K: FromStr>(text: &str) -> Result<K, ApiError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()).ok_or_else(not_ours)
}

/// The refusal of a cursor that no answer returned.
pub(crate) fn not_ours() -> ApiError {
    ApiError::malformed("the cursor is not one of ours: pass the next_cursor of the previous page")
}

/// A full page of the items that match, and the key after which the next page begins. Rows that do not match,
/// such as deleted ones, are skipped, and reading goes on.
pub(crate) async fn filled<T, K: Clone, R: Future<Output = Result<Vec<T>, StoreError>>>(
    mut after: Option<K>,
    limit: u32,
    read: impl Fn(Option<K>, u32) -> R,
    key: impl Fn(&T) -> K,
    worth_showing: impl Fn(&T) -> bool,
) -> Result<(Vec<T>, Option<K>), StoreError> {
    let mut items: Vec<T> = Vec::new();
    let mut looked_at = 0;
    loop {
        // One item more than requested shows whether there is a next page.
        let found = read(after.clone(), limit + 1).await?;
        let was_last = found.len() <= limit as usize;
        looked_at += found.len();
        for item in found {
            let next = key(&item);
            if worth_showing(&item) {
                if items.len() == limit as usize {
                    return Ok((items, after));
                }
                items.push(item);
            }
            after = Some(next);
        }
        if was_last {
            return Ok((items, None));
        }
        if looked_at >= LOOKED_AT_MAX {
            return Ok((items, after));
        }
    }
}

/// A body that is produced page by page. The first page is read before the answer begins, so that an
/// unavailable store is an error and not a truncated body. `make` returns a page's bytes and where the next
/// one begins.
pub(crate) async fn streamed<C, R>(first: C, make: impl Fn(C) -> R + Send + 'static) -> Result<Body, ApiError>
where
    C: Send + 'static,
    R: Future<Output = Result<(Vec<u8>, Option<C>), ApiError>> + Send + 'static,
{
    let (bytes, next) = make(first).await?;
    let rest = stream::try_unfold((next, make), |(next, make)| async move {
        let Some(at) = next else { return Ok(None) };
        match make(at).await {
            Ok((bytes, next)) => Ok(Some((Bytes::from(bytes), (next, make)))),
            Err(error) => {
                let cause = error.cause().unwrap_or("unknown").to_owned();
                tracing::warn!(cause, "an export was cut off");
                Err(std::io::Error::other("the store went away"))
            }
        }
    });
    let first = stream::once(async { Ok(Bytes::from(bytes)) });
    Ok(Body::from_stream(futures::StreamExt::chain(first, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        assert_eq!(read_cursor::<u32>(&write_cursor(&7)).unwrap(), 7);
        for bad in ["!!", "AAAA", "7", ""] {
            assert!(read_cursor::<u32>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_short_list_comes_whole_or_in_parts_in_the_order_of_its_keys() {
        let part = |limit, cursor: Option<&str>| ListPart { limit, cursor: cursor.map(str::to_owned) };
        let key = |word: &&'static str| (word.len(), (*word).to_owned());
        let words = || vec!["ccc", "a", "bb", "aa"];
        assert_eq!(part(None, None).select(words(), key).unwrap(), (vec!["a", "aa", "bb", "ccc"], None));
        let (first, next) = part(Some(2), None).select(words(), key).unwrap();
        assert_eq!(first, ["a", "aa"]);
        // The last item of the previous page is gone, and one that would be on it was added.
        let (rest, end) = part(Some(2), next.as_deref()).select(vec!["ccc", "0", "bb"], key).unwrap();
        assert_eq!((rest, end), (vec!["bb", "ccc"], None));
        for bad in ["!!", &write_cursor(&"x"), &write_cursor(&"[1]")] {
            assert!(part(None, Some(bad)).select(words(), key).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn pages_are_full_though_rows_are_passed_over() {
        let rows: Vec<u32> = (1..=40).collect();
        let read = |after: Option<u32>, limit: u32| {
            let later = rows.iter().copied().filter(|row| after.is_none_or(|after| *row > after));
            let page = later.take(limit as usize).collect();
            async move { Ok::<Vec<u32>, StoreError>(page) }
        };
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = filled(after, 3, read, |row| *row, |row| row % 4 == 0).await.unwrap();
            assert!(page.len() == 3 || next.is_none(), "{page:?}");
            seen.extend(page);
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, [4, 8, 12, 16, 20, 24, 28, 32, 36, 40]);
    }
}
