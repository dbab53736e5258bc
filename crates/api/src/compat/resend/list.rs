//! `GET /emails`: a page of emails, new to old, in both directions.
//!
//! Our lists go from new to old. The page before an email is found by its time: a time window that begins
//! with it is widened until it contains a page, and narrowed if it contains far more. The number of messages
//! read is bounded.

use std::time::Duration;

use axum::{Json, extract::State, http::Uri};
use postway_domain::{MessageUid, TenantId, Time};
use postway_store::record::{MessageFilter, MessageKey, MessageSummary};
use serde_json::{Map, Value, json};

use super::read::listed;
use crate::{
    auth::Reader,
    compat::shown_content::ShownContent,
    http::{error::ApiError, query::QueryParameters},
    state::{AppState, SharedState},
};

/// The default and the largest page.
const PAGE: u32 = 20;
const PAGE_MAX: u32 = 100;
/// The most emails that are read to find the page before one.
const LOOKED_AT_MAX: u32 = 1_000;
/// The first time window, the factor of each next one, and their number.
const WINDOW: Duration = Duration::from_secs(1);
const WIDER: u32 = 8;
const WINDOWS_MAX: usize = 40;

/// The requested page of a list.
pub(super) struct ResendPageQuery {
    pub(super) limit: Option<usize>,
    pub(super) after: Option<String>,
    pub(super) before: Option<String>,
}

impl ResendPageQuery {
    /// Reads the query, which has nothing else.
    pub(super) fn read(uri: &Uri) -> Result<Self, ApiError> {
        let mut query = QueryParameters::from_uri(uri)?;
        let limit = query.parse("limit", |text| match text.parse::<u32>() {
            Ok(limit @ 1..=PAGE_MAX) => Ok(limit as usize),
            _ => Err(format!("must be a number from 1 to {PAGE_MAX}")),
        });
        let (after, before) = (query.take("after"), query.take("before"));
        query.finish()?;
        if after.is_some() && before.is_some() {
            return Err(ApiError::field("before", "goes the other way than `after`: give one of them"));
        }
        Ok(Self { limit, after, before })
    }

    /// The page of a list that is in memory, by ids.
    pub(super) fn page_of<T>(self, all: Vec<T>, id: impl Fn(&T) -> &str) -> Result<(Vec<T>, bool), ApiError> {
        let place = |field: &str, given: &str| {
            let found = all.iter().position(|one| id(one) == given);
            found.ok_or_else(|| ApiError::field(field, "must be an id that this list has"))
        };
        let begin =
            self.after.as_deref().map(|given| place("after", given)).transpose()?.map_or(0, |at| at + 1);
        let end =
            self.before.as_deref().map(|given| place("before", given)).transpose()?.unwrap_or(all.len());
        let limit = self.limit.unwrap_or(all.len());
        let (from, to) = match self.before {
            Some(_) => (end.saturating_sub(limit), end),
            None => (begin, end.min(begin + limit)),
        };
        let has_more = if self.before.is_some() { from > 0 } else { to < all.len() };
        Ok((all.into_iter().take(to).skip(from).collect(), has_more))
    }
}

/// A list in this API's format.
pub(super) fn answer(data: Vec<Value>, has_more: bool) -> Json<Value> {
    Json(json!({"object": "list", "has_more": has_more, "data": data}))
}

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let ResendPageQuery { limit, after, before } = ResendPageQuery::read(&uri)?;
    let limit = limit.unwrap_or(PAGE as usize);
    let uid = |field: &str, given: String| {
        given.parse::<MessageUid>().map_err(|_| ApiError::field(field, "must be the id of an email"))
    };
    let after = after.map(|given| uid("after", given)).transpose()?;
    let (found, has_more) = match before.map(|given| uid("before", given)).transpose()? {
        Some(before) => newer(&app, &caller.tenant, before, limit).await?,
        None => {
            // One item more than requested shows whether there is a next page.
            let wanted = u32::try_from(limit + 1).unwrap_or(PAGE_MAX);
            let mut found =
                app.store.messages(&caller.tenant, &MessageFilter::default(), after, wanted).await?;
            let has_more = found.len() > limit;
            found.truncate(limit);
            (found, has_more)
        }
    };
    let may_see = caller.may_see_content(&app).await?;
    let mut data = Vec::with_capacity(found.len());
    for message in found {
        // An email that was removed meanwhile is left out.
        data.extend(one(&app, &caller.tenant, message.uid, may_see).await?.map(Value::Object));
    }
    Ok(answer(data, has_more))
}

async fn one(
    app: &AppState,
    tenant: &TenantId,
    uid: MessageUid,
    may_see: bool,
) -> Result<Option<Map<String, Value>>, ApiError> {
    let Some(record) = app.store.message(tenant, &MessageKey::Uid(uid)).await? else { return Ok(None) };
    let content = ShownContent::read(app, tenant, &record, may_see).await?;
    Ok(Some(listed(&record, &content)))
}

/// The emails that came right after this one, newest first, and whether there are newer ones.
async fn newer(
    app: &AppState,
    tenant: &TenantId,
    uid: MessageUid,
    limit: usize,
) -> Result<(Vec<MessageSummary>, bool), ApiError> {
    let begin = time_of(uid);
    let filter = MessageFilter { since: Some(begin), ..MessageFilter::default() };
    let (mut narrow, mut width, mut wide) = (Duration::ZERO, WINDOW, None);
    for _ in 0..WINDOWS_MAX {
        let end = begin.plus(width);
        // Ids contain their time; the clocks of several nodes may differ a little.
        let reaches_now = end > app.clock.now().plus(Duration::from_secs(60));
        let before = (!reaches_now).then(|| MessageUid::first_at(end));
        let mut found = app.store.messages(tenant, &filter, before, LOOKED_AT_MAX).await?;
        let is_cut = found.len() == LOOKED_AT_MAX as usize;
        found.retain(|message| message.uid > uid);
        if !is_cut && (found.len() > limit || reaches_now) {
            let has_more = found.len() > limit;
            return Ok((found.split_off(found.len() - found.len().min(limit)), has_more));
        }
        match is_cut {
            true => wide = Some(width),
            false => narrow = width,
        }
        width = match wide {
            Some(wide) => narrow + (wide - narrow) / 2,
            None => width * WIDER,
        };
    }
    Err(ApiError::field("before", "too many emails came right after that one: page forward with `after`"))
}

/// When an id was generated.
fn time_of(uid: MessageUid) -> Time {
    let [a, b, c, d, e, f, ..] = *uid.as_bytes();
    Time::from_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<(Vec<&'static str>, bool), ApiError> {
        let uri: Uri = format!("/x?{query}").parse().unwrap();
        ResendPageQuery::read(&uri)?.page_of(vec!["a", "b", "c", "d"], |one| one)
    }

    #[test]
    fn a_list_is_paged_in_both_directions() {
        assert_eq!(page("").unwrap(), (vec!["a", "b", "c", "d"], false));
        assert_eq!(page("limit=2").unwrap(), (vec!["a", "b"], true));
        assert_eq!(page("limit=2&after=b").unwrap(), (vec!["c", "d"], false));
        assert_eq!(page("limit=2&before=d").unwrap(), (vec!["b", "c"], true));
        assert_eq!(page("before=c").unwrap(), (vec!["a", "b"], false));
        for wrong in ["limit=0", "limit=101", "after=x", "before=x", "after=a&before=b", "page=1"] {
            assert!(page(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_tells_its_time() {
        let at = Time::from_millis(1_700_000_000_123);
        assert_eq!(time_of(MessageUid::first_at(at)), at);
    }
}
