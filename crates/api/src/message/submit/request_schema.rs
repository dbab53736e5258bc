//! What callers send, for the OpenAPI document: messages here, other things with their calls. The door reads message
//! bodies by itself, from bytes; these structs are never filled. A test sends what they describe, in each form, so that
//! they cannot drift far. Unknown fields are refused everywhere, which `openapi` says of every schema at once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use crate::http::schema_form::{self, Recipients, Texts, Urgency, When};

/// A mail to send. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageRequest {
    /// Your own id of it, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ : @ -`. The `uid` stands in when absent.
    #[schema(example = "order-1")]
    id: Option<String>,
    /// The account to send by; your tenant's default when absent.
    account: Option<String>,
    /// The sender, with or without a name; needed unless the tenant has a `default_from`.
    #[schema(example = "Shop <shop@example.com>")]
    from: Option<String>,
    /// Recipients: a list, or one. At most 1,000 with `cc` and `bcc`, and at least one of them all.
    #[schema(inline)]
    to: Option<Recipients>,
    /// Recipients of copies: a list, or one.
    #[schema(inline)]
    cc: Option<Texts>,
    /// Recipients that the others do not see: a list, or one.
    #[schema(inline)]
    bcc: Option<Texts>,
    /// Where answers go: a list of at most 25, or one.
    #[schema(inline)]
    reply_to: Option<Texts>,
    /// The envelope sender, when it is not `from`.
    return_path: Option<String>,
    /// The subject.
    #[schema(example = "Your order")]
    subject: Option<String>,
    /// The plain text; this, `html` or both, unless a `template` makes them.
    #[schema(example = "Thank you.")]
    text: Option<String>,
    /// The HTML.
    html: Option<String>,
    /// Makes the plain text of the HTML where there is none; as `content.auto_text` of your tenant is set when absent.
    #[schema(default = false)]
    auto_text: Option<bool>,
    /// Further forms of the text, at most one of each kind: an invitation, an AMP mail.
    alternatives: Option<Vec<AlternativeRequest>>,
    /// Further headers; those that Postway writes itself are refused.
    headers: Option<BTreeMap<String, String>>,
    /// Files that go with it.
    attachments: Option<Vec<AttachmentRequest>>,
    /// The template that makes subject and texts, in the place of `subject`, `text` and `html`.
    template: Option<TemplateUse>,
    /// The entry of your directory of recipients that it is for; its address is the one in `to`.
    recipient: Option<RecipientUse>,
    /// Where a reader gets off the list (`List-Unsubscribe`).
    unsubscribe: Option<Unsubscribe>,
    /// Whether it says that a program sent it (`Auto-Submitted`); as your tenant is set when absent.
    auto_submitted: Option<bool>,
    /// Hides subject and bodies from every reader, and removes the bodies once it is sent.
    #[schema(default = false)]
    sensitive: Option<bool>,
    /// 0 to 3, or `immediate`, `high`, `normal` (2, when absent), `low`.
    #[schema(inline)]
    priority: Option<Urgency>,
    /// The code of the batch it belongs to. One that begins with a stream's id and a colon is mail of that stream.
    batch: Option<String>,
    /// The stream it belongs to, which must be there; short for a `batch` of that name.
    stream: Option<String>,
    /// Not before this time: RFC 3339 or Unix seconds.
    #[schema(inline)]
    send_at: Option<When>,
    /// Not after this time: RFC 3339 or Unix seconds.
    #[schema(inline)]
    expires_at: Option<When>,
    /// Labels to find it by.
    tags: Option<Vec<String>>,
    /// Your own JSON object, given back with the message: at most 16 KiB, nested at most 32 levels deep.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// What to do when the relay's last answer is lost: `resend` (default, perhaps twice) or `hold`.
    on_doubt: Option<String>,
    /// A newer message with the same key cancels this one if it has not left yet.
    collapse_key: Option<String>,
    /// Your reference to something of your own.
    external_id: Option<String>,
}

/// A further form of the text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AlternativeRequest {
    /// `text/calendar` (`; method=REQUEST` unless the calendar has its METHOD), `text/x-amp-html` or `text/watch-html`.
    #[schema(example = "text/calendar; method=REQUEST")]
    content_type: String,
    /// What it says, as text.
    #[schema(
        example = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//EN\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n"
    )]
    content: String,
    /// Whether a calendar is attached as `invite.ics` as well.
    #[schema(default = false)]
    attach: Option<bool>,
}

/// A template to fill in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateUse {
    /// Its name.
    #[schema(example = "welcome")]
    name: String,
    /// Its version; the latest when absent.
    version: Option<i64>,
    /// What to fill in; a variable that the template uses and this lacks is an error. At most 1 MiB of JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
}

/// A recipient of your directory; at least one of the ids.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecipientUse {
    /// Its id.
    id: Option<String>,
    /// Your own id of it.
    #[schema(example = "C-1")]
    external_id: Option<String>,
    /// The name, for people.
    name: Option<String>,
    /// The address, which must be the one in `to`.
    #[schema(example = "ada@example.net")]
    email: Option<String>,
}

/// Where a reader gets off a list: either or both.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Unsubscribe {
    /// Where the reader's mail program posts, with one click (RFC 8058): an `https://` address.
    #[schema(example = "https://example.com/unsubscribe/c1")]
    url: Option<String>,
    /// Where it writes.
    #[schema(example = "unsubscribe@example.com")]
    mailto: Option<String>,
}

/// A file: its bytes, or where they are (`content`, `url`, `endpoint` or `path`, or all in one as `storage_path`).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attachment)]
pub(crate) struct AttachmentRequest {
    /// Its name.
    #[schema(example = "invoice.pdf")]
    filename: String,
    /// Its media type.
    #[schema(example = "application/pdf")]
    content_type: Option<String>,
    /// Its bytes in base64.
    #[schema(example = "JVBERi0xLjQK")]
    content: Option<String>,
    /// Where to fetch it, `http://` or `https://`; not from private networks.
    url: Option<String>,
    /// What to ask your tenant's `attachment_endpoint` for, with POST.
    endpoint: Option<String>,
    /// A file on the server's disk, in a folder that its operator allows.
    path: Option<String>,
    /// The SHA-256 that its bytes must have, in hexadecimal.
    sha256: Option<String>,
    /// The MD5 that its bytes must have, in hexadecimal, for clients that have no better digest.
    content_md5: Option<String>,
    /// The older form of all of these: `base64:…`, `https://…`, `/path`, or else what to ask the endpoint for.
    storage_path: Option<String>,
    /// What `storage_path` is, where its form does not tell: `base64`, `http_url`, `filesystem` or `endpoint`.
    fetch_mode: Option<String>,
    /// The name by which the HTML shows it (`cid:…`).
    content_id: Option<String>,
    /// Whether the HTML shows it.
    inline: Option<bool>,
}

/// Many mails at once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchRequest {
    /// Fields for every message that does not have its own, all but `id`; `headers` and `metadata` are merged.
    #[schema(example = json!({"from": "shop@example.com"}))]
    defaults: Option<MessageRequest>,
    /// 1 to 1,000, each as for `POST /v1/messages` once it has the defaults.
    messages: Vec<MessageRequest>,
}

/// Another time for a message that waits for its own.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RescheduleRequest {
    #[schema(schema_with = new_time)]
    send_at: When,
}

fn new_time() -> RefOr<Schema> {
    let about = "Not before this time, RFC 3339 or Unix seconds, at most 366 days ahead.";
    schema_form::told::<When>(about, Some(json!("2030-01-01T09:00:00Z")))
}

/// An operator's word on a message in doubt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolveRequest {
    /// `sent`: it arrived. `failed`: it did not, and shall not. `resend`: send it again, perhaps twice.
    #[schema(example = "resend")]
    outcome: String,
}

/// Which messages to put back in the queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplayRequest {
    /// Ids or uids, at most 1,000.
    #[schema(example = json!(["order-1"]))]
    ids: Vec<String>,
}
