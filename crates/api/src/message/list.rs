//! `GET /v1/messages`: messages that match, newest first, page by page.

use axum::{Json, extract::State, http::Uri};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{AccountId, EmailAddress, MessageUid, Status, TenantId, Time, id::BatchCode};
use postway_store::record::{Filter, MessagePage};

use super::{summaries::summaries, view::MessageList};
use crate::{
    auth::Reader,
    error::ApiError,
    page::Paging,
    query::Parameters,
    state::{App, Shared},
};

/// The longest text a filter is compared with.
const TEXT_BYTES_MAX: usize = 998;

/// List messages
///
/// Newest first. Every filter given must hold. Unknown parameters are refused. For one page some thousands are looked at at most:
/// where `next_cursor` is there, go on with it, also after a page with fewer messages than asked for, or none.
#[utoipa::path(
    get,
    path = "/v1/messages",
    operation_id = "listMessages",
    tag = "messages",
    params(
        ("status" = Option<String>, Query, description = "Only those in this state"),
        ("account" = Option<String>, Query, description = "Only those of this account"),
        ("batch" = Option<String>, Query, description = "Only those of this batch"),
        ("recipient" = Option<String>, Query, description = "Only those to this address"),
        ("subject" = Option<String>, Query, description = "Only those whose subject contains this, in any case"),
        ("tag" = Option<String>, Query, description = "Only those with this label"),
        ("request_id" = Option<String>, Query, description = "Only those that came with this request"),
        ("provider_message_id" = Option<String>, Query, description = "Only the one that the relay calls so"),
        ("error_code" = Option<String>, Query, description = "Only those whose latest failure has this code, such as `smtp_550`"),
        ("since" = Option<String>, Query, description = "Accepted at or after this time"),
        ("until" = Option<String>, Query, description = "Accepted before this time"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "One page", body = MessageList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<MessageList>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let status = query.parse("status", str::parse::<Status>);
    let filter = Filter { status, ..filter(&mut query) };
    page(&app, &caller.tenant, filter, query).await
}

/// The filters that all lists of messages have.
pub(crate) fn filter(query: &mut Parameters) -> Filter {
    Filter {
        status: None,
        account: query.parse("account", str::parse::<AccountId>),
        batch: query.parse("batch", str::parse::<BatchCode>).map(|code| code.to_string()),
        recipient: query.parse("recipient", str::parse::<EmailAddress>).map(|address| address.to_string()),
        tag: query.parse("tag", bounded),
        request_id: query.parse("request_id", bounded),
        provider_message_id: query.parse("provider_message_id", bounded),
        subject: query.parse("subject", bounded),
        error_code: query.parse("error_code", bounded),
        since: query.parse("since", str::parse::<Time>),
        until: query.parse("until", str::parse::<Time>),
        exhausted: false,
    }
}

fn bounded(text: &str) -> Result<String, String> {
    match text.len() {
        0..=TEXT_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("must have at most {TEXT_BYTES_MAX} bytes")),
    }
}

/// The page that the rest of the query asks for.
pub(crate) async fn page(
    app: &App,
    tenant: &TenantId,
    filter: Filter,
    mut query: Parameters,
) -> Result<Json<MessageList>, ApiError> {
    let Paging { limit, cursor } = Paging::take(&mut query);
    query.finish()?;
    let before = cursor.as_deref().map(read_cursor).transpose()?;
    let MessagePage { messages, next } = app.store.search(tenant, &filter, before, limit).await?;
    let data = summaries(app, tenant, messages).await?;
    Ok(Json(MessageList { data, next_cursor: next.map(write_cursor) }))
}

pub(crate) fn write_cursor(last: MessageUid) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(last.as_bytes())
}

pub(crate) fn read_cursor(text: &str) -> Result<MessageUid, ApiError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map(MessageUid::from_bytes).ok_or_else(|| {
        ApiError::malformed("the cursor is not one of ours: give next_cursor of the page before, as it is")
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
