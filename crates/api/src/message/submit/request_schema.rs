//! Request bodies of messages as the OpenAPI document describes them; other requests are described beside
//! their handlers. These structs are never filled: the intake parses message bodies from bytes. A test sends
//! what they describe, in each form, so that they cannot drift far. Unknown fields are refused everywhere,
//! which `openapi` states for every schema at once.

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
#[schema(as = MessageRequest)]
pub(crate) struct MessageSchema {
    /// Your own id of the message, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ : @ -`. The `uid` when
    /// absent.
    #[schema(example = "order-1")]
    id: Option<String>,
    /// The account that sends it; your tenant's default when absent.
    account: Option<String>,
    /// The sender, with or without a name; required unless the tenant has a `default_from`.
    #[schema(example = "Shop <shop@example.com>")]
    from: Option<String>,
    /// The recipients: a list or a single one. At most 1,000 together with `cc` and `bcc`, and at least one
    /// among the three.
    #[schema(inline)]
    to: Option<Recipients>,
    /// The recipients of copies: a list or a single one.
    #[schema(inline)]
    cc: Option<Texts>,
    /// The recipients whom the others do not see: a list or a single one.
    #[schema(inline)]
    bcc: Option<Texts>,
    /// The addresses for replies: a list of at most 25, or a single one.
    #[schema(inline)]
    reply_to: Option<Texts>,
    /// The envelope sender, if it is not `from`.
    return_path: Option<String>,
    /// The subject.
    #[schema(example = "Your order")]
    subject: Option<String>,
    /// The plain text. This, `html` or both are required, unless a `template` renders them.
    #[schema(example = "Thank you.")]
    text: Option<String>,
    /// The HTML.
    html: Option<String>,
    /// Derives a missing plain text from the HTML. The tenant's `content.auto_text` applies when
    /// absent.
    #[schema(default = false)]
    auto_text: Option<bool>,
    /// Alternative forms of the content, at most one of each kind: an invitation, an AMP mail.
    alternatives: Option<Vec<AlternativeSchema>>,
    /// Further headers. Those that Postway writes itself are refused.
    headers: Option<BTreeMap<String, String>>,
    /// The attached files.
    attachments: Option<Vec<AttachmentSchema>>,
    /// The template that renders subject and texts, instead of `subject`, `text` and `html`.
    template: Option<TemplateUseSchema>,
    /// The language of the template: `de`, `de-AT`, `zh-Hant`. The recipient's when absent, else the
    /// tenant's. A template that lacks it is used in the closest language that it has: `de` for `de-AT`, the
    /// tenant's, or the one without a language.
    #[schema(example = "de-AT")]
    locale: Option<String>,
    /// Writes the rules of the HTML's `<style>` into the elements that they select. The template's setting
    /// applies when absent.
    #[schema(default = false)]
    inline_css: Option<bool>,
    /// The entry of your recipient directory that it is for; its address is the one in `to`.
    recipient: Option<RecipientUseSchema>,
    /// How a reader unsubscribes (`List-Unsubscribe`).
    unsubscribe: Option<UnsubscribeSchema>,
    /// Whether the mail declares that a program sent it (`Auto-Submitted`). The tenant's setting applies when
    /// absent.
    auto_submitted: Option<bool>,
    /// Hides subject and bodies from every reader, and removes the bodies once the mail is sent.
    #[schema(default = false)]
    sensitive: Option<bool>,
    /// 0 to 3, or `immediate`, `high`, `normal` (2, when absent), `low`.
    #[schema(inline)]
    priority: Option<Urgency>,
    /// The code of the batch it belongs to. A code that begins with a stream's id and a colon belongs to that
    /// stream.
    batch: Option<String>,
    /// The stream it belongs to, which must exist; short for a `batch` of that name.
    stream: Option<String>,
    /// The earliest time to send it: RFC 3339 or Unix seconds.
    #[schema(inline)]
    send_at: Option<When>,
    /// The latest time to send it: RFC 3339 or Unix seconds.
    #[schema(inline)]
    expires_at: Option<When>,
    /// Labels for searching.
    tags: Option<Vec<String>>,
    /// Your own JSON object, returned with the message: at most 16 KiB, nested at most 32 levels deep.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// What to do if the relay's final answer is lost: `resend` (default, may deliver twice) or `hold`.
    on_doubt: Option<String>,
    /// The reports to ask the relay for, if it offers DSN, as parameters of SMTP (RFC 3461): `NOTIFY` with
    /// `NEVER` or a list of `SUCCESS`, `FAILURE` and `DELAY`, and optionally `RET` with `FULL` or `HDRS`. The
    /// account's setting applies when absent.
    #[schema(example = "NOTIFY=SUCCESS,FAILURE RET=HDRS")]
    dsn: Option<String>,
    /// A newer message with the same key cancels this one if it has not been sent yet.
    collapse_key: Option<String>,
    /// A reference of your own.
    external_id: Option<String>,
    /// The message's place in a trace (W3C Trace Context), instead of the header of that name. What
    /// cannot be read is ignored.
    traceparent: Option<String>,
}

/// An alternative form of the content.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlternativeRequest)]
pub(crate) struct AlternativeSchema {
    /// `text/calendar` (`; method=REQUEST` unless the calendar has its METHOD), `text/x-amp-html` or
    /// `text/watch-html`.
    #[schema(example = "text/calendar; method=REQUEST")]
    content_type: String,
    /// The content, as text.
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
#[schema(as = TemplateUse)]
pub(crate) struct TemplateUseSchema {
    /// Its name.
    #[schema(example = "welcome")]
    name: String,
    /// Its version; the latest when absent.
    version: Option<i64>,
    /// The values to fill in. A variable that the template uses and this lacks is an error. At most 1 MiB of
    /// JSON and 50,000 values.
    #[schema(value_type = Option<Object>, example = json!({"name": "Ada"}))]
    variables: Option<Value>,
}

/// A recipient of your directory; at least one of the ids is required.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecipientUse)]
pub(crate) struct RecipientUseSchema {
    /// Its id.
    id: Option<String>,
    /// Your own id of the recipient.
    #[schema(example = "C-1")]
    external_id: Option<String>,
    /// The display name.
    name: Option<String>,
    /// The address, which must be the one in `to`.
    #[schema(example = "ada@example.net")]
    email: Option<String>,
}

/// How a reader unsubscribes: either or both.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Unsubscribe)]
pub(crate) struct UnsubscribeSchema {
    /// The URL that the reader's mail program posts to with one click (RFC 8058): `https://`.
    #[schema(example = "https://example.com/unsubscribe/c1")]
    url: Option<String>,
    /// The address that the reader writes to.
    #[schema(example = "unsubscribe@example.com")]
    mailto: Option<String>,
}

/// A file: its bytes, or their location (`content`, `url`, `endpoint` or `path`, or all in one as
/// `storage_path`).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attachment)]
pub(crate) struct AttachmentSchema {
    /// The file's name.
    #[schema(example = "invoice.pdf")]
    filename: String,
    /// The media type.
    #[schema(example = "application/pdf")]
    content_type: Option<String>,
    /// The bytes in base64.
    #[schema(example = "JVBERi0xLjQK")]
    content: Option<String>,
    /// The URL to fetch it from, `http://` or `https://`; not from private networks.
    url: Option<String>,
    /// The reference that your tenant's `attachment_endpoint` is asked for, with POST.
    endpoint: Option<String>,
    /// A file on the server's disk, in a folder that its operator allows.
    path: Option<String>,
    /// The expected SHA-256 digest, in hexadecimal.
    sha256: Option<String>,
    /// The expected MD5 digest, in hexadecimal, for clients without a better one.
    content_md5: Option<String>,
    /// The older form of all of these: `base64:…`, `https://…`, `/path`, or a reference for the endpoint.
    storage_path: Option<String>,
    /// The kind of `storage_path`, if its form does not say: `base64`, `http_url`, `filesystem` or
    /// `endpoint`.
    fetch_mode: Option<String>,
    /// The id by which the HTML refers to it (`cid:…`).
    content_id: Option<String>,
    /// Whether the HTML displays it.
    inline: Option<bool>,
}

/// Many mails at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchRequest)]
pub(crate) struct BatchSchema {
    /// Fields for every message that does not set them, except `id`; `headers` and `metadata` are merged.
    #[schema(example = json!({"from": "shop@example.com"}))]
    defaults: Option<MessageSchema>,
    /// 1 to 1,000 messages, each as for `POST /v1/messages` with the defaults applied.
    messages: Vec<MessageSchema>,
}

/// Another time for a waiting message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RescheduleRequest {
    #[schema(schema_with = new_time)]
    send_at: When,
}

fn new_time() -> RefOr<Schema> {
    let about = "Not before this time, RFC 3339 or Unix seconds, at most 366 days ahead.";
    schema_form::described::<When>(about, Some(json!("2030-01-01T09:00:00Z")))
}

/// An operator's decision on a message in doubt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolveRequest {
    /// `sent`: it arrived. `failed`: it did not, and is not sent again. `resend`: send it again, perhaps a
    /// second time.
    #[schema(example = "resend")]
    outcome: String,
}

/// The messages to put back in the queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplayRequest {
    /// Ids or uids, at most 1,000.
    #[schema(example = json!(["order-1"]))]
    ids: Vec<String>,
}
