//! Mail that was received, as webhooks carry it: the stored event, and with it the mail's text, html, header
//! and files.
//!
//! The mail is read when it is delivered, so that the store, the feed and the delivery log stay small. What is
//! too large for a call is cut and said to be (`truncated`); files, and the whole mail, are links that need no
//! key and expire. A mail whose bytes are gone is delivered as the event alone.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{
    MessageEvent, MessageUid, TenantId, Time,
    attachment_link::{AttachmentLink, LinkedMail, RECEIVED_LINK_LASTS},
};
use postway_store::{StoreError, record::StoredBody};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::{context::DeliveryContext, payload::particulars};

/// The most bytes of text, and of html, in a call.
pub const RECEIVED_TEXT_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of header fields in a call.
pub const RECEIVED_HEADER_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of files in a call, for the form that carries them.
pub const RECEIVED_FILE_BYTES_MAX: usize = 1024 * 1024;
/// The memory for mails that are being read, in KiB, and what a mail takes as a multiple of its size.
const READING_KIB_MAX: u32 = 128 * 1024;
const WEIGHT_PER_BYTE: u64 = 3;

/// All calls of the process share the memory.
static READING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(READING_KIB_MAX as usize));

/// Somebody named in a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedPerson {
    /// The name, if there is one.
    pub name: Option<String>,
    /// The address.
    pub address: String,
}

/// A file of a received mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedFile {
    /// Its name, if it has one.
    pub filename: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// Its size in bytes.
    pub size: usize,
    /// The id by which the html refers to it.
    pub content_id: Option<String>,
    /// Its bytes, if they fit.
    pub content: Option<Vec<u8>>,
}

/// A received mail, read within the bounds above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedMail {
    /// The author.
    pub from: Option<ReceivedPerson>,
    /// The people in `To`.
    pub to: Vec<ReceivedPerson>,
    /// The people in `Cc`.
    pub cc: Vec<ReceivedPerson>,
    /// The people in `Bcc`, which few mails have.
    pub bcc: Vec<ReceivedPerson>,
    /// The address that replies go to, as written.
    pub reply_to: Option<String>,
    /// The header fields in order, decoded.
    pub headers: Vec<(String, String)>,
    /// The text.
    pub text: Option<String>,
    /// The html.
    pub html: Option<String>,
    /// The new text of an answer.
    pub reply_text: Option<String>,
    /// The files in order.
    pub files: Vec<ReceivedFile>,
    /// What was cut: `text`, `html`, `headers`, `files`.
    pub truncated: Vec<&'static str>,
}

/// The function behind a [`ReceivedMailReader`].
type ReadReceivedMail = dyn Fn(&[u8]) -> ReceivedMail + Send + Sync;

/// Reads the bytes of a received mail. It must end, and must not fail, whatever they are.
#[derive(Clone)]
pub struct ReceivedMailReader(pub Arc<ReadReceivedMail>);

impl fmt::Debug for ReceivedMailReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceivedMailReader")
    }
}

/// Reads the mail of an event; `None` if its bytes are no longer stored.
pub(super) async fn read(
    context: &DeliveryContext,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<ReceivedMail>, StoreError> {
    let Some(body) = context.store.inbound_raw(tenant, uid).await? else { return Ok(None) };
    let bytes = match &body {
        StoredBody::Blob(blob) => blob.size,
        StoredBody::Inline(bytes) => bytes.len() as u64,
    };
    let kib = bytes.saturating_mul(WEIGHT_PER_BYTE).div_ceil(1024).clamp(1, u64::from(READING_KIB_MAX));
    let kib = u32::try_from(kib).unwrap_or(READING_KIB_MAX);
    let share = READING.acquire_many(kib).await;
    let raw = context.depot.resolve(tenant, body).await.map_err(StoreError::from)?;
    let reader = context.received.clone();
    // The share is free only when the work is done, also if the call is given up meanwhile.
    let read = tokio::task::spawn_blocking(move || {
        let _share = share;
        (reader.0)(&raw)
    });
    read.await.map(Some).map_err(|error| StoreError::Unexpected(format!("a mail could not be read: {error}")))
}

/// Links to the files of a mail, which expire some time after `now`.
pub(super) struct ReceivedLinks<'a> {
    context: &'a DeliveryContext,
    tenant: &'a TenantId,
    uid: MessageUid,
    pub(super) until: Time,
}

impl<'a> ReceivedLinks<'a> {
    pub(super) fn new(context: &'a DeliveryContext, tenant: &'a TenantId, uid: MessageUid) -> Self {
        Self { context, tenant, uid, until: context.clock.now().plus(RECEIVED_LINK_LASTS) }
    }

    /// The link to the file at this position; `None` if the gateway does not know its own URL.
    pub(super) fn file(&self, place: usize) -> Option<String> {
        self.link(u16::try_from(place).ok().filter(|place| *place != AttachmentLink::WHOLE)?)
    }

    /// The link to the whole mail.
    fn whole(&self) -> Option<String> {
        self.link(AttachmentLink::WHOLE)
    }

    fn link(&self, place: u16) -> Option<String> {
        let base = self.context.public_url.as_deref()?.trim_end_matches('/');
        let (mail, tenant, until) = (LinkedMail::Inbound, self.tenant.clone(), self.until);
        let link = AttachmentLink { mail, tenant, uid: self.uid, place, until };
        Some(format!("{base}/files/{}", link.token(&self.context.secret_key)))
    }
}

/// The data of the event in Postway's own form.
pub(super) fn own_data(
    event: &MessageEvent,
    mail: Option<&ReceivedMail>,
    links: &ReceivedLinks<'_>,
) -> Value {
    let mut data = match particulars(event) {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    let Some(mail) = mail else { return Value::Object(data) };
    let file = |(place, file): (usize, &ReceivedFile)| {
        json!({
            "index": place,
            "filename": file.filename,
            "content_type": file.content_type,
            "size": file.size,
            "content_id": file.content_id,
            "url": links.file(place),
            "expires_at": links.until,
        })
    };
    let files: Vec<Value> = mail.files.iter().enumerate().map(file).collect();
    let headers: Vec<Value> =
        mail.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let added = [
        ("text", json!(mail.text)),
        ("html", json!(mail.html)),
        ("headers", json!(headers)),
        ("files", json!(files)),
        ("truncated", json!(mail.truncated)),
        ("raw", json!({"url": links.whole(), "expires_at": links.until})),
    ];
    data.extend(added.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(data)
}

/// The body of Postmark's inbound webhook.
pub(super) fn postmark_body(event: &MessageEvent, mail: &ReceivedMail, links: &ReceivedLinks<'_>) -> Value {
    let data = particulars(event);
    let recipient = data["envelope"]["to"][0].as_str().map(str::to_owned);
    let recipient = recipient.or_else(|| mail.to.first().map(|one| one.address.clone())).unwrap_or_default();
    let person = |one: &ReceivedPerson| json!({"Email": one.address, "Name": one.name.as_deref().unwrap_or_default(), "MailboxHash": detail(&one.address)});
    let people = |all: &[ReceivedPerson]| all.iter().map(person).collect::<Vec<_>>();
    let written = |all: &[ReceivedPerson]| all.iter().map(full).collect::<Vec<_>>().join(", ");
    let file = |(place, file): (usize, &ReceivedFile)| {
        let mut shown = json!({
            "Name": file.filename.as_deref().unwrap_or("attachment"),
            "Content": file.content.as_ref().map(|bytes| BASE64_STANDARD.encode(bytes)).unwrap_or_default(),
            "ContentType": file.content_type,
            "ContentLength": file.size,
            "ContentID": file.content_id.as_deref().unwrap_or_default(),
        });
        if file.content.is_none() {
            shown["ContentURL"] = json!(links.file(place));
        }
        shown
    };
    let author = mail.from.clone().unwrap_or_default();
    json!({
        "FromName": author.name.as_deref().unwrap_or_default(),
        "MessageStream": "inbound",
        "From": author.address,
        "FromFull": person(&author),
        "To": written(&mail.to),
        "ToFull": people(&mail.to),
        "Cc": written(&mail.cc),
        "CcFull": people(&mail.cc),
        "Bcc": written(&mail.bcc),
        "BccFull": people(&mail.bcc),
        "OriginalRecipient": recipient,
        "Subject": data["subject"].as_str().unwrap_or_default(),
        "MessageID": data["id"],
        "ReplyTo": mail.reply_to.as_deref().unwrap_or_default(),
        "MailboxHash": detail(&recipient),
        "Date": header(mail, "Date"),
        "TextBody": mail.text.as_deref().unwrap_or_default(),
        "HtmlBody": mail.html.as_deref().unwrap_or_default(),
        "StrippedTextReply": mail.reply_text.as_deref().unwrap_or_default(),
        "Tag": data["tags"][0].as_str().unwrap_or_default(),
        "Headers": mail.headers.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect::<Vec<_>>(),
        "Attachments": mail.files.iter().enumerate().map(file).collect::<Vec<_>>(),
    })
}

/// The part of a recipient's local part after its first plus.
fn detail(address: &str) -> &str {
    let local = address.rsplit_once('@').map_or("", |(local, _)| local);
    local.split_once('+').map_or("", |(_, detail)| detail)
}

/// Name and address, as a header has them.
pub(super) fn full(person: &ReceivedPerson) -> String {
    match person.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => format!("\"{}\" <{}>", name.replace(['"', '\\'], ""), person.address),
        None => person.address.clone(),
    }
}

fn header<'m>(mail: &'m ReceivedMail, name: &str) -> &'m str {
    let found = mail.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detail_of_an_address_follows_its_plus() {
        let details = ["a+b@x", "a@x", "a+b+c@x", "+@x", "x", "a@b+c"].map(detail);
        assert_eq!(details, ["b", "", "b+c", "", "", ""]);
    }

    #[test]
    fn a_name_cannot_end_its_quotes() {
        let person = ReceivedPerson { name: Some("a\" <x@y>, \"b\\".to_owned()), address: "c@d".to_owned() };
        assert_eq!(full(&person), "\"a <x@y>, b\" <c@d>");
    }
}
