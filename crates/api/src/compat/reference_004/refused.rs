//! A mail that fails a check is stored there, as `VALIDATION_FAILED` with its event; so is one that this API
//! refuses.

use std::time::Instant;

use axum::http::StatusCode;
use postway_domain::{EmailAddress, NamedAddress, RecipientKind};
use postway_intake::{FieldFault, RefusalCode, RefusedMail, RequestContext};
use serde_json::value::RawValue;

use super::log_received;
use crate::{
    compat::translate::{RawFields, RawItems, split_addresses, text},
    http::error::ApiError,
    state::AppState,
};

/// The most addresses that are read of one field.
const ADDRESSES_MAX: usize = 50;

/// Stores a record of a mail that failed a check. Its sender gets the refusal either way.
pub(super) async fn store_refused(
    app: &AppState,
    context: &RequestContext,
    bytes: &[u8],
    error: &ApiError,
    started: Instant,
) {
    let Some(mail) = refused(bytes, error) else { return };
    match app.door.record_refused(context, mail).await {
        Ok(uid) => log_received(context, uid, "invalid", started),
        Err(error) => {
            let request_id = context.request_id.as_str();
            tracing::warn!(request_id, %error, "a refused mail could not be recorded");
        }
    }
}

/// The data of a mail that failed a check; `None` for a request that failed otherwise.
fn refused(bytes: &[u8], error: &ApiError) -> Option<RefusedMail> {
    if error.status() != StatusCode::UNPROCESSABLE_ENTITY {
        return None;
    }
    let first = error.details().first()?;
    let code = first.code.and_then(RefusalCode::from_word)?;
    let fields = RawFields::read(bytes).unwrap_or(RawFields(Vec::new()));
    let said = |name| fields.get(name).and_then(text).map(|text| text.into_owned());
    let kinds = [("to", RecipientKind::To), ("cc", RecipientKind::Cc), ("bcc", RecipientKind::Bcc)];
    let recipients = kinds.into_iter().flat_map(|(name, kind)| {
        let addresses = fields.get(name).map(addresses).unwrap_or_default();
        addresses.into_iter().map(move |address| (kind, address))
    });
    Some(RefusedMail {
        recipients: recipients.collect(),
        subject: said("subject").unwrap_or_default(),
        external_id: said("externalId"),
        fault: FieldFault::new(first.field.clone(), first.message.clone()).coded(code),
    })
}

/// The valid addresses of a text or a list.
fn addresses(value: &RawValue) -> Vec<EmailAddress> {
    let lines: Vec<String> = match text(value) {
        Some(line) => split_addresses(&line).into_iter().map(Into::into).collect(),
        None => {
            let items = RawItems::read("", value).map_or(Vec::new(), |RawItems(items)| items);
            items.into_iter().take(ADDRESSES_MAX).filter_map(text).map(|line| line.into_owned()).collect()
        }
    };
    let address = |line: &String| Some(line.parse::<NamedAddress>().ok()?.address().clone());
    lines.iter().take(ADDRESSES_MAX).filter_map(address).collect()
}
