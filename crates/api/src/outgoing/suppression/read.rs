//! Suppressions from request bodies.

use postway_domain::{EmailAddress, TenantId, Time};
use postway_store::record::{SuppressionReason, SuppressionRecord};
use serde_json::{Map, Value};

use super::ADDRESSES_MAX;
use crate::http::{error::FieldError, json_fields::JsonFieldReader};

const NOTE_CHARS_MAX: usize = 500;

/// An address in the form that is stored and compared.
pub(super) fn address(text: &str) -> Result<String, String> {
    let address: EmailAddress = text.trim().parse().map_err(|error| format!("{error}"))?;
    Ok(address.as_str().to_ascii_lowercase())
}

pub(super) fn reason(text: &str) -> Option<SuppressionReason> {
    SuppressionReason::ALL.into_iter().find(|reason| reason.as_str() == text)
}

/// The addresses of a body, which share its other fields.
pub(super) fn body(
    body: Map<String, Value>,
    tenant: &TenantId,
    now: Time,
) -> Result<Vec<SuppressionRecord>, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let addresses: Vec<(String, String)> = match (fields.take("address"), fields.take("addresses")) {
        (Some(one), None) => vec![("address".to_owned(), as_text(&one))],
        (None, Some(Value::Array(many))) if (1..=ADDRESSES_MAX).contains(&many.len()) => {
            many.iter().enumerate().map(|(at, one)| (format!("addresses[{at}]"), as_text(one))).collect()
        }
        (None, Some(_)) => {
            fields.refuse("addresses", format!("must be a list of 1 to {ADDRESSES_MAX} addresses"));
            Vec::new()
        }
        (None, None) => {
            fields.refuse("address", "give an `address`, or a list as `addresses`");
            Vec::new()
        }
        (Some(_), Some(_)) => {
            fields.refuse("addresses", "give either `address` or `addresses`");
            Vec::new()
        }
    };
    let terms = SuppressionTerms::read(&mut fields, now);
    let mut list: Vec<SuppressionRecord> = Vec::with_capacity(addresses.len());
    for (field, text) in addresses {
        match address(&text) {
            Ok(address) => list.push(terms.suppression_for(tenant, address, now)),
            Err(message) => fields.refuse(&field, message),
        }
    }
    fields.finish("is not a field of a suppression");
    if wrong.is_empty() { Ok(list) } else { Err(wrong) }
}

/// One entry of an import.
pub(super) fn entry(
    object: Map<String, Value>,
    tenant: &TenantId,
    now: Time,
) -> Result<SuppressionRecord, String> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(object, &mut wrong);
    // An export contains the time; an import begins anew.
    fields.take("created_at");
    let given: Option<String> = fields.read("address", "must be a text");
    let parsed = match given.as_deref().map(address) {
        Some(Ok(address)) => Some(address),
        Some(Err(message)) => {
            fields.refuse("address", message);
            None
        }
        None => None,
    };
    let terms = SuppressionTerms::read(&mut fields, now);
    fields.finish("is not a field of a suppression");
    match (parsed, wrong.first()) {
        (Some(address), None) => Ok(terms.suppression_for(tenant, address, now)),
        (_, Some(wrong)) => Err(wrong.to_string()),
        (None, None) => Err("address: is needed".to_owned()),
    }
}

/// `current` with the fields of a body.
pub(super) fn patch(
    body: Map<String, Value>,
    current: SuppressionRecord,
    now: Time,
) -> Result<SuppressionRecord, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let (has_reason, has_note, has_expiry) =
        (fields.has("reason"), fields.has("note"), fields.has("expires_at"));
    let terms = SuppressionTerms::read(&mut fields, now);
    // A client may send back what GET showed.
    let shown = [("address", current.address.clone()), ("created_at", current.created_at.to_string())];
    for (name, shown) in shown {
        if fields.take(name).is_some_and(|given| given != shown) {
            fields.refuse(name, "cannot be changed");
        }
    }
    fields.finish("is not a field of a suppression");
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(SuppressionRecord {
        reason: if has_reason { terms.reason } else { current.reason },
        note: if has_note { terms.note } else { current.note },
        expires_at: if has_expiry { terms.expires_at } else { current.expires_at },
        ..current
    })
}

/// The fields of a suppression besides the address.
pub(super) struct SuppressionTerms {
    pub(super) reason: SuppressionReason,
    pub(super) note: Option<String>,
    pub(super) expires_at: Option<Time>,
}

impl SuppressionTerms {
    pub(super) fn read(fields: &mut JsonFieldReader<'_>, now: Time) -> Self {
        let given = fields.text("reason", 100);
        let known = given.as_deref().map(reason);
        if known == Some(None) {
            fields.refuse("reason", "must be manual, hard_bounce, complaint or unsubscribe");
        }
        let note = fields.text("note", NOTE_CHARS_MAX).filter(|note| !note.is_empty());
        let expires_at: Option<Time> = fields.read("expires_at", "must be a time: RFC 3339 or Unix seconds");
        if expires_at.is_some_and(|at| at <= now) {
            fields.refuse("expires_at", "is in the past");
        }
        Self { reason: known.flatten().unwrap_or(SuppressionReason::Manual), note, expires_at }
    }

    fn suppression_for(&self, tenant: &TenantId, address: String, now: Time) -> SuppressionRecord {
        SuppressionRecord {
            tenant: tenant.clone(),
            address,
            reason: self.reason,
            note: self.note.clone(),
            created_at: now,
            expires_at: self.expires_at,
        }
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
