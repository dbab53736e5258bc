//! `POST /v1/email/send`: one mail.

use std::{borrow::Cow, time::Instant};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use bytes::Bytes;
use postway_domain::{MessageUid, RecipientKey, TenantId, Time};
use postway_intake::{RefusalCode, RequestContext, count_refused, run_heavy};
use serde_json::{Value, json, value::RawValue};

use super::{NAMES, log_received, refused};
use crate::{
    auth::Sender,
    compat::translate::{
        MessageWriter, RawFields, RawItems, expect_text, is_blank, is_empty_list, is_null, refuse_mail,
        renamed, unknown,
    },
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::submit::accept::{compat_context, take},
    outgoing::recipient::personal,
    state::{AppState, SharedState},
};

/// A translated mail, without a recipient who is known by a personal number only.
struct TranslatedEmail<'a> {
    ours: MessageWriter,
    recipient: Option<TranslatedRecipient<'a>>,
}

/// The directory entry that it is for.
struct TranslatedRecipient<'a> {
    /// Our name, its name, and the value; each once.
    fields: Vec<(&'static str, &'static str, &'a RawValue)>,
    personal_number: Option<Cow<'a, str>>,
    /// The sender's own id, repeated in the answer.
    external_id: Option<&'a RawValue>,
}

/// Our names of a recipient's fields, and their names there: the first that is given counts.
const RECIPIENT: [(&str, &[&str]); 4] = [
    ("id", &["id", "recipientId"]),
    ("external_id", &["externalId"]),
    ("name", &["razaoSocial", "nome", "name"]),
    ("email", &["email"]),
];

pub(super) async fn send(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let context = compat_context(caller, &request_id, &parts.headers)?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let received = match receive(&app, &context, &bytes).await {
        Ok(received) => received,
        Err(error) => {
            refused::store_refused(&app, &context, &bytes, &error, started).await;
            return Err(error);
        }
    };
    let ReceivedEmail { uid, external_id } = received;
    log_received(&context, Some(uid), "accepted", started);
    let mut answer = json!({
        "outboxId": uid,
        "jobId": uid,
        "requestId": request_id.as_str(),
        "status": "RECEIVED",
        "receivedAt": received_at(uid),
    });
    if let Some(id) = external_id {
        answer["recipient"] = json!({"externalId": id});
    }
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// A mail that was accepted.
struct ReceivedEmail<'a> {
    uid: MessageUid,
    /// The sender's id of the recipient.
    external_id: Option<&'a RawValue>,
}

async fn receive<'a>(
    app: &AppState,
    context: &RequestContext,
    bytes: &'a Bytes,
) -> Result<ReceivedEmail<'a>, ApiError> {
    let tenant = &context.tenant;
    let TranslatedEmail { mut ours, recipient } = run_heavy(bytes.len(), || translate(bytes, Some(tenant)))?;
    let external_id = recipient.as_ref().and_then(|recipient| recipient.external_id);
    let mut said = Vec::new();
    if let Some(recipient) = recipient {
        said.extend(recipient.fields.iter().map(|(ours, theirs, _)| (*ours, *theirs)));
        // Unless something else names the recipient, the looked-up ids stand for the number.
        said.extend([("id", "cpfCnpj"), ("external_id", "cpfCnpj")]);
        ours.json("recipient", &in_directory(app, tenant, recipient).await?);
    }
    let taken = take(app, context, Bytes::from(ours.into_json())).await;
    let in_its_names = |field: &str| match field.strip_prefix("recipient.") {
        Some(of_recipient) => format!("recipient.{}", renamed(of_recipient, &said)),
        None => renamed(field, NAMES),
    };
    let receipt = taken.map_err(|error| error.renamed(in_its_names))?;
    Ok(ReceivedEmail { uid: receipt.uid, external_id })
}

/// When a message was accepted: its uid begins with the time, so that a repeat gets the same answer as the
/// first.
fn received_at(uid: MessageUid) -> Time {
    let [a, b, c, d, e, f, ..] = *uid.as_bytes();
    Time::from_millis(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// Required fields, and the code and message if one is missing.
const REQUIRED: [(&str, RefusalCode, &str); 3] = [
    ("to", RefusalCode::InvalidPayload, "is missing: give the address that it is for"),
    ("subject", RefusalCode::InvalidPayload, "is missing: give the subject"),
    ("html", RefusalCode::InvalidTemplate, "is missing or empty: give the html; a text may come beside it"),
];

/// Translates a mail.
fn translate<'a>(bytes: &'a [u8], tenant: Option<&TenantId>) -> Result<TranslatedEmail<'a>, ApiError> {
    let fields = RawFields::read(bytes).map_err(unread)?;
    let mut ours = MessageWriter::with_capacity(bytes.len() + 64);
    let (mut whom, mut wrong) = (None, Vec::new());
    for (name, value) in fields.0.iter().filter(|(_, value)| !is_null(value)) {
        match &**name {
            "from" | "externalId" | "onDoubt" if is_blank(value) => {}
            "from" | "subject" | "html" | "text" | "headers" | "tags" => ours.json(name, value.get()),
            "to" | "cc" | "bcc" => ours.addresses(name, value),
            "replyTo" => ours.addresses("reply_to", value),
            "externalId" => ours.json("external_id", value.get()),
            "companyId" if is_blank(value) => {}
            "companyId" => wrong.extend(tenant.and_then(|tenant| other_company(value, tenant))),
            "onDoubt" => ours.json("on_doubt", value.get()),
            "recipient" => match recipient(value) {
                Ok(read) => whom = Some(read),
                Err(faults) => wrong.extend(faults),
            },
            "attachments" => match attachments(value) {
                Ok(files) => ours.json("attachments", &files),
                Err(faults) => wrong.extend(faults),
            },
            _ => wrong.push(unknown(name)),
        }
    }
    for (name, code, message) in REQUIRED {
        let is_empty = |value: &RawValue| is_empty_list(value) || (name == "html" && is_blank(value));
        if fields.get(name).is_none_or(is_empty) {
            wrong.push(fault(name, message, code));
        }
    }
    if wrong.is_empty() { Ok(TranslatedEmail { ours, recipient: whom }) } else { Err(refuse(wrong)) }
}

/// The fault of a body that is not an object, or repeats a field.
fn unread(error: ApiError) -> ApiError {
    match error.details() {
        [] => {
            count_refused([RefusalCode::InvalidPayload.check()]);
            error
        }
        faults => refuse(faults.to_vec()),
    }
}

/// A fault found by this API belongs to the first check, unless it says otherwise.
fn refuse(mut faults: Vec<FieldError>) -> ApiError {
    for fault in &mut faults {
        fault.code.get_or_insert(RefusalCode::InvalidPayload.as_str());
        fault.check.get_or_insert(RefusalCode::InvalidPayload.check());
    }
    refuse_mail(faults)
}

fn fault(field: &str, message: &str, code: RefusalCode) -> FieldError {
    postway_intake::FieldFault::new(field, message).coded(code).into()
}

/// The key decides the tenant; a company that is named as well must be the same.
fn other_company(value: &RawValue, tenant: &TenantId) -> Option<FieldError> {
    match expect_text("companyId", value) {
        Ok(company) if company == tenant.as_str() => None,
        Ok(_) => {
            let message = "is not the company of this key: leave it out, or use that company's key";
            Some(fault("companyId", message, RefusalCode::OutboxNotFound))
        }
        Err(fault) => Some(fault),
    }
}

/// Translates a mail without a call. Its recipient must be known by an id: there is no directory to look in.
pub(in crate::compat) fn translate_row(bytes: &[u8]) -> Result<String, ApiError> {
    let TranslatedEmail { mut ours, recipient } = translate(bytes, None)?;
    if let Some(TranslatedRecipient { fields, .. }) = recipient {
        let mut known = MessageWriter::with_capacity(256);
        for (name, _, value) in &fields {
            known.json(name, value.get());
        }
        ours.json("recipient", &known.into_json());
    }
    Ok(ours.into_json())
}

fn recipient(value: &RawValue) -> Result<TranslatedRecipient<'_>, Vec<FieldError>> {
    let Ok(mut given) = RawFields::read(value.get().as_bytes()) else {
        return Err(vec![FieldError::new("recipient", "must be an object, with each field once")]);
    };
    given.0.retain(|(_, value)| !is_blank(value));
    let mut wrong = Vec::new();
    let personal_number = given
        .take("cpfCnpj")
        .and_then(|number| expect_text("recipient.cpfCnpj", number).map_err(|fault| wrong.push(fault)).ok());
    let external_id = given.get("externalId");
    let mut fields = Vec::with_capacity(RECIPIENT.len());
    for (ours, theirs) in RECIPIENT {
        let mut values = theirs.iter().filter_map(|name| Some((*name, given.take(name)?)));
        fields.extend(values.next().map(|(name, value)| (ours, name, value)));
        // The other names say the same.
        values.for_each(drop);
    }
    for (name, _) in &given.0 {
        let FieldError { field, message, .. } = unknown(name);
        wrong.push(FieldError::new(format!("recipient.{field}"), message));
    }
    let is_named = fields.iter().any(|(name, ..)| matches!(*name, "id" | "external_id"));
    if wrong.is_empty() && !is_named && personal_number.is_none() {
        let message = "give its recipientId, its externalId or its cpfCnpj";
        wrong.push(fault("recipient", message, RefusalCode::InvalidPayload));
    }
    if wrong.is_empty() {
        Ok(TranslatedRecipient { fields, personal_number, external_id })
    } else {
        Err(wrong)
    }
}

/// Translates the recipient. A personal number is never stored in the clear: the directory entry with that
/// number replaces it, or without an entry, its digest.
async fn in_directory(
    app: &AppState,
    tenant: &TenantId,
    TranslatedRecipient { fields, personal_number, .. }: TranslatedRecipient<'_>,
) -> Result<String, ApiError> {
    let mut ours = MessageWriter::with_capacity(256);
    for (name, _, value) in &fields {
        ours.json(name, value.get());
    }
    let is_named = fields.iter().any(|(name, ..)| matches!(*name, "id" | "external_id"));
    if let Some(number) = personal_number.filter(|_| !is_named) {
        let digests = personal::digests(&app.secret_key, tenant, &number);
        let mut known = None;
        for digest in &digests {
            known = app.store.recipient(tenant, &RecipientKey::Personal(*digest)).await?;
            if known.is_some() {
                break;
            }
        }
        match (known, digests.first()) {
            (Some(known), _) => ours.text("id", &known.id.to_string()),
            (None, Some(digest)) => {
                let hex: String = digest.0.iter().map(|byte| format!("{byte:02x}")).collect();
                ours.text("external_id", &hex);
            }
            (None, None) => {}
        }
    }
    Ok(ours.into_json())
}

fn attachments(list: &RawValue) -> Result<String, Vec<FieldError>> {
    let RawItems(files) = RawItems::read("attachments", list).map_err(|wrong| vec![wrong])?;
    let mut wrong = Vec::new();
    let mut translated = Vec::with_capacity(files.len());
    for (index, file) in files.into_iter().enumerate() {
        let at = format!("attachments[{index}]");
        let Ok(RawFields(fields)) = RawFields::read(file.get().as_bytes()) else {
            wrong.push(FieldError::new(at, "must be an object, with each field once"));
            continue;
        };
        let mut ours = MessageWriter::with_capacity(file.get().len());
        for (name, value) in fields.iter().filter(|(_, value)| !is_null(value)) {
            match &**name {
                "filename" | "content" | "url" | "path" | "inline" => ours.json(name, value.get()),
                "contentType" | "mimeType" | "contentId" if is_blank(value) => {}
                "mimeType" if fields.iter().any(|(name, kind)| name == "contentType" && !is_blank(kind)) => {}
                "contentType" | "mimeType" => ours.json("content_type", value.get()),
                "contentId" => ours.json("content_id", value.get()),
                _ => {
                    let FieldError { field, message, .. } = unknown(name);
                    wrong.push(FieldError::new(format!("{at}.{field}"), message));
                }
            }
        }
        translated.push(ours.into_json());
    }
    if wrong.is_empty() { Ok(format!("[{}]", translated.join(","))) } else { Err(wrong) }
}
