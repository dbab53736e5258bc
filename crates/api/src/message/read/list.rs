//! `GET /v1/messages`: messages that match, newest first, page by page.

use axum::{Json, extract::State, http::Uri};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    AccountId, ClientId, EmailAddress, EventKind, MessageStatus, MessageUid, TenantId, Time, id::BatchCode,
    inbound::outcome_rank,
};
use postway_store::{
    Store, StoreError,
    record::{MessageFilter, MessageKey, MessagePage, MessageSummary, MetadataField},
};

use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        pagination::PageRequest,
        query::{QueryParameters, bounded_text},
    },
    message::{
        read::{blocked_filter::BlockedBy, search_text::ParsedSearch, summaries::summaries},
        view::{MatchCountView, MessageList},
    },
    state::{AppState, SharedState},
};

/// The most messages that are counted.
pub(crate) const COUNTED_MAX: u32 = 100_000;

/// List messages
///
/// Newest first. A message must match every filter. Unknown parameters are refused. A page examines some
/// thousands of messages at most, or the texts of about a million: as long as there is a `next_cursor`, continue
/// with it, even after a page with fewer messages than requested, or none. `searched_since` then says how far
/// back the search went.
#[utoipa::path(
    get,
    path = "/v1/messages",
    operation_id = "listMessages",
    tag = "messages",
    params(
        ("q" = Option<String>, Query, description = "One text for every search: an address or part of one, `@domain`, an id or uid, `<Message-ID>`, a failure code, an `external_id`, `key=value` of the metadata, `#tag`, words of the subject, or `tag:`, `subject:`, `to:`, `id:`, `external:`, `metadata:`, `code:`, `status:`, `outcome:`, `account:`, `batch:` before a value. Quotes hold words together: `subject:\"your order\"`. Nothing is refused; `understood` says how it was interpreted"),
        ("status" = Option<String>, Query, description = "Only those in this state"),
        ("outcome" = Option<String>, Query, description = "Only those with a recipient that has this outcome"),
        ("held_by" = Option<String>, Query, description = "Only those that this blocks now: `any`, `tenant`, `batch:CODE`, `account:ID`, `limit:ID`, `circuit:ID`, or `doubt` for those that wait for your decision"),
        ("waiting" = Option<bool>, Query, description = "Only those that wait to be sent"),
        ("account" = Option<String>, Query, description = "Only those of this account"),
        ("batch" = Option<String>, Query, description = "Only those of this batch"),
        ("recipient" = Option<String>, Query, description = "Only those to this address"),
        ("subject" = Option<String>, Query, description = "Only those whose subject contains this, in any case"),
        ("tag" = Option<String>, Query, description = "Only those with this label"),
        ("metadata" = Option<String>, Query, description = "Only those with this field in their metadata, as `key=value`"),
        ("request_id" = Option<String>, Query, description = "Only those that came with this request"),
        ("provider_message_id" = Option<String>, Query, description = "Only the message with this id of the relay"),
        ("error_code" = Option<String>, Query, description = "Only those whose latest failure has this code, such as `smtp_550`"),
        ("since" = Option<String>, Query, description = "Accepted at or after this time"),
        ("until" = Option<String>, Query, description = "Accepted before this time"),
        ("count" = Option<bool>, Query, description = "Whether to count all matching messages, up to 100,000"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = MessageList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<MessageList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let is_counted = query.parse("count", yes_or_no).unwrap_or(false);
    let asked = AskedFilter::take(&mut query);
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let (tenant, is_searched) = (&caller.tenant, asked.search.is_some());
    let ParsedSearch { filter, key, maybe_id, terms, maybe_external: _ } =
        asked.search_in(&*app.store, tenant, app.clock.now()).await?;
    let understood = is_searched.then_some(terms);
    if let Some(found) = one_by_key(&*app.store, tenant, key, maybe_id).await? {
        let messages = summaries(&app, tenant, found).await?;
        let count = is_counted.then_some(MatchCountView { messages: messages.len() as u64, or_more: false });
        let searched_since = None;
        return Ok(Json(MessageList {
            data: messages,
            next_cursor: None,
            searched_since,
            count,
            understood,
        }));
    }
    let count = match is_counted {
        true => Some(app.store.count(tenant, &filter, COUNTED_MAX).await?),
        false => None,
    };
    let count = count.map(|count| MatchCountView { messages: count.messages, or_more: count.is_more });
    let Json(page) = page_of(&app, tenant, &filter, limit, cursor).await?;
    Ok(Json(MessageList { count, understood, ..page }))
}

/// The message that a search names by its id, if it does. An unknown uid matches nothing; a text that is no
/// uid is left to the list.
pub(crate) async fn one_by_key(
    store: &dyn Store,
    tenant: &TenantId,
    key: Option<MessageKey>,
    maybe_id: Option<ClientId>,
) -> Result<Option<Vec<MessageSummary>>, StoreError> {
    if let Some(key) = key {
        let found = store.message(tenant, &key).await?;
        return Ok(Some(found.into_iter().map(|record| record.summary).collect()));
    }
    let Some(id) = maybe_id else { return Ok(None) };
    let found = store.message(tenant, &MessageKey::Client(id)).await?;
    Ok(found.map(|record| vec![record.summary]))
}

/// The filter of a request, before the store was asked what blocks mail now.
#[derive(Debug)]
pub(crate) struct AskedFilter {
    filter: MessageFilter,
    held_by: Option<BlockedBy>,
    search: Option<String>,
}

impl AskedFilter {
    /// Reads all that `GET /v1/messages` filters by.
    pub(crate) fn take(query: &mut QueryParameters) -> Self {
        let status = query.parse("status", str::parse::<MessageStatus>);
        let outcome = query.parse("outcome", outcome_of);
        let held_by = query.parse("held_by", str::parse::<BlockedBy>);
        let waits = query.parse("waiting", yes_or_no).unwrap_or(false);
        let search = query.parse("q", bounded_text).filter(|text| !text.trim().is_empty());
        Self { filter: MessageFilter { status, outcome, waits, ..filter(query) }, held_by, search }
    }

    /// The outcome that recipients must have, if one is asked for.
    pub(crate) fn outcome(&self) -> Option<EventKind> {
        self.filter.outcome
    }

    /// The filter as it is now, and how its search is understood.
    pub(crate) async fn search_in(
        &self,
        store: &dyn Store,
        tenant: &TenantId,
        now: Time,
    ) -> Result<ParsedSearch, StoreError> {
        let filter = match self.held_by.clone() {
            Some(held_by) => held_by.narrow(store, tenant, self.filter.clone(), now).await?,
            None => self.filter.clone(),
        };
        let Some(text) = &self.search else {
            return Ok(ParsedSearch { filter, ..ParsedSearch::default() });
        };
        let mut read = ParsedSearch::read(text, filter);
        if let Some(word) = &read.maybe_external {
            let named = read.as_external_id(word);
            let is_id = one_by_key(store, tenant, None, read.maybe_id.clone()).await?.is_some();
            if !is_id && !store.search(tenant, &named.filter, None, 1).await?.messages.is_empty() {
                read = named;
            }
        }
        Ok(read)
    }
}

/// The outcome of a recipient that a filter names.
pub(crate) fn outcome_of(word: &str) -> Result<EventKind, &'static str> {
    EventKind::ALL.iter().copied().find(|kind| kind.as_str() == word && outcome_rank(*kind).is_some()).ok_or(
        "must be delivered, bounced, complained, delayed, auto_replied, pec_accepted, pec_taken_over, pec_timeout, \
         pec_delivered or pec_failed",
    )
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    text.parse().map_err(|_| "must be true or false")
}

/// The filters that all lists of messages share.
pub(crate) fn filter(query: &mut QueryParameters) -> MessageFilter {
    MessageFilter {
        account: query.parse("account", str::parse::<AccountId>),
        batch: query.parse("batch", str::parse::<BatchCode>).map(|code| code.to_string()),
        recipient: query.parse("recipient", str::parse::<EmailAddress>).map(|address| address.to_string()),
        tag: query.parse("tag", bounded_text),
        metadata: query.parse("metadata", metadata_field),
        request_id: query.parse("request_id", bounded_text),
        provider_message_id: query.parse("provider_message_id", bounded_text),
        subject: query.parse("subject", bounded_text),
        error_code: query.parse("error_code", bounded_text),
        since: query.parse("since", str::parse::<Time>),
        until: query.parse("until", str::parse::<Time>),
        ..MessageFilter::default()
    }
}

fn metadata_field(text: &str) -> Result<MetadataField, String> {
    let text = bounded_text(text)?;
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or("must be key=value, such as order=17")?;
    Ok(MetadataField { key: key.to_owned(), value: value.to_owned() })
}

/// The page that the rest of the query requests.
pub(crate) async fn page(
    app: &AppState,
    tenant: &TenantId,
    filter: MessageFilter,
    mut query: QueryParameters,
) -> Result<Json<MessageList>, ApiError> {
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    page_of(app, tenant, &filter, limit, cursor).await
}

async fn page_of(
    app: &AppState,
    tenant: &TenantId,
    filter: &MessageFilter,
    limit: u32,
    cursor: Option<String>,
) -> Result<Json<MessageList>, ApiError> {
    let before = cursor.as_deref().map(read_cursor).transpose()?;
    let MessagePage { messages, next } = app.store.search(tenant, filter, before, limit).await?;
    let data = summaries(app, tenant, messages).await?;
    let searched_since = next.filter(|_| data.len() < limit as usize).map(MessageUid::time);
    let next_cursor = next.map(write_cursor);
    Ok(Json(MessageList { data, next_cursor, searched_since, count: None, understood: None }))
}

pub(crate) fn write_cursor(last: MessageUid) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(last.as_bytes())
}

pub(crate) fn read_cursor(text: &str) -> Result<MessageUid, ApiError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(MessageUid::from_bytes).ok_or_else(|| {
        ApiError::malformed("the cursor is not one of ours: pass the next_cursor of the previous page")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        let uid = MessageUid::from_bytes([7; 16]);
        assert_eq!(read_cursor(&write_cursor(uid)).unwrap(), uid);
        for bad in ["", "!!", "AAAA", "0190a000-0000-7000-8000-000000000000"] {
            assert!(read_cursor(bad).is_err(), "{bad}");
        }
    }
}
