//! What callers send, for the OpenAPI document. The door reads message bodies by itself, from bytes; these structs are
//! never filled. A test reads their examples through the door, so that they cannot drift far.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::tenant::LargeFilesView;

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
    /// Recipients: a list, or one string. At most 1,000 with `cc` and `bcc`.
    #[schema(example = json!(["ada@example.net"]))]
    to: Vec<String>,
    /// Recipients of copies.
    cc: Option<Vec<String>>,
    /// Recipients that the others do not see.
    bcc: Option<Vec<String>>,
    /// Where answers go.
    reply_to: Option<Vec<String>>,
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
    /// 0 to 3, or `immediate`, `high`, `normal`, `low`.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 3, default = 2)]
    priority: Option<u8>,
    /// The code of the batch it belongs to.
    batch: Option<String>,
    /// Not before this time: RFC 3339 or Unix seconds.
    #[schema(format = DateTime)]
    send_at: Option<String>,
    /// Not after this time.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Labels to find it by.
    tags: Option<Vec<String>>,
    /// Your own JSON object, given back with the message.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// What to do when the relay's last answer is lost: `resend` (default, perhaps twice) or `hold`.
    on_doubt: Option<String>,
    /// A newer message with the same key cancels this one if it has not left yet.
    collapse_key: Option<String>,
    /// Your reference to something of your own.
    external_id: Option<String>,
}

/// A template to fill in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateUse {
    /// Its name.
    #[schema(example = "welcome")]
    name: String,
    /// Its version; the latest when absent.
    version: Option<i64>,
    /// What to fill in; a variable that the template uses and this lacks is an error.
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
    /// Fields for every message that does not have its own.
    #[schema(value_type = Option<Object>, example = json!({"from": "shop@example.com"}))]
    defaults: Option<Value>,
    /// At most 1,000, each as for `POST /v1/messages`.
    messages: Vec<MessageRequest>,
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

/// Delays between attempts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Retry)]
pub(crate) struct RetrySchema {
    /// Seconds to wait after the first, second, … transient failure.
    #[schema(example = json!([1, 5, 30, 120, 600]))]
    pub(crate) delays_s: Vec<u32>,
    /// How much chance moves each delay: 0.25 means up to a quarter shorter or longer.
    #[schema(default = 0.25)]
    pub(crate) jitter: f64,
}

/// A tenant to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantRequest {
    /// Its id, 1 to 64 of `A-Z a-z 0-9 . _ -`; only when it is made.
    #[schema(example = "acme")]
    id: Option<String>,
    /// Its name for people; the id when absent.
    #[schema(example = "Acme Ltd")]
    name: Option<String>,
    /// Its share where tenants compete, 1 to 10,000.
    #[schema(default = 100)]
    weight: Option<u32>,
    /// The account its mail takes when it names none; it must exist.
    #[schema(example = "sandbox")]
    default_account: Option<String>,
    /// Bounds of what it may send: `subject_chars`, `html_bytes`, `message_bytes`, and whether there must be html:
    /// `html_required`.
    #[schema(value_type = Option<Object>, example = json!({"subject_chars": 200}))]
    content: Option<Value>,
    /// The older spelling of `report_retention_seconds`, in days; only one of them may be given.
    #[schema(example = json!(null))]
    retention_days: Option<u32>,
    /// How long messages are kept once they ended and were reported; 0 takes them away with the next sweep.
    #[schema(default = 604_800, maximum = 315_360_000)]
    report_retention_seconds: Option<u64>,
    /// How many days messages are kept that ended and could not be reported, at most 3,650; never shorter than the
    /// other.
    #[schema(default = 90)]
    unreported_retention_days: Option<u32>,
    /// Where its delivery reports go.
    client_sync: Option<RemoteRequest>,
    /// Where attachments named by `endpoint` are fetched.
    attachment_endpoint: Option<RemoteRequest>,
    /// How its reports are written: `event` (default), `outbox` or `batch`.
    callback_form: Option<String>,
    /// What becomes of attachments too large to mail; also the policy alone, as a text.
    large_files: Option<LargeFilesView>,
    /// The domain its bounces come back to.
    #[schema(example = "bounces.example.com")]
    bounce_domain: Option<String>,
    /// The envelope sender of mail that names none, by accounts that name none.
    #[schema(example = "bounces@example.com")]
    return_path: Option<String>,
    /// Whom mail is from that names nobody.
    #[schema(example = "Acme <mail@acme.example>")]
    default_from: Option<String>,
    /// Who it is to receivers that count complaints (`Feedback-ID`): 5 to 15 of `A-Z a-z 0-9 . _ -`.
    #[schema(example = "acme-mail")]
    feedback_id: Option<String>,
    /// Whether its mail says that a program sent it (`Auto-Submitted`), so that no holiday notice answers.
    #[schema(default = false)]
    auto_submitted: Option<bool>,
    /// With `PATCH`: only if the tenant still has this version.
    version: Option<i64>,
}

/// Somewhere of the tenant's own to call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemoteRequest {
    /// The address, `http://` or `https://`.
    #[schema(example = "https://app.example.com")]
    url: String,
    /// A path under it.
    #[schema(example = "/mail/reports")]
    path: Option<String>,
    /// How to sign in there.
    auth: Option<RemoteAuthRequest>,
}

/// How to sign in somewhere. Secrets are encrypted at rest and never shown again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemoteAuthRequest {
    /// `none` (default), `bearer` with a `token`, or `basic` with `username` and `password`.
    #[serde(rename = "type")]
    #[schema(example = "bearer")]
    kind: String,
    /// For `bearer`.
    #[schema(write_only, example = "s3cret")]
    token: Option<String>,
    /// For `basic`.
    username: Option<String>,
    /// For `basic`.
    #[schema(write_only)]
    password: Option<String>,
}

/// A key to make.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyRequest {
    /// Its name for people.
    #[schema(example = "shop")]
    name: Option<String>,
    /// What it may do: `send` (hand over, cancel, retry), `read`, `manage` (accounts, batches, suppressions,
    /// templates, recipients, signing keys). All three when absent.
    #[schema(example = json!(["send", "read"]))]
    scopes: Option<Vec<String>>,
    /// After which it does not open any more.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// From where it may be used: addresses and networks; anywhere when absent.
    #[schema(example = json!(["10.0.0.0/8"]))]
    allow_ips: Option<Vec<String>>,
}

/// Addresses to suppress: one, or many that share the rest. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionRequest {
    /// The address; this or `addresses`.
    #[schema(example = "ada@example.net")]
    address: Option<String>,
    /// At most 1,000 addresses.
    addresses: Option<Vec<String>>,
    /// `manual` (default), `hard_bounce` or `complaint`.
    #[schema(example = "manual")]
    reason: Option<String>,
    /// More about it, at most 500 characters.
    note: Option<String>,
    /// Until when; for ever when absent.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}
