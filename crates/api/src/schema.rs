//! What callers send, for the OpenAPI document. The door reads message bodies by itself, from bytes; these structs are
//! never filled. A test reads their examples through the door, so that they cannot drift far.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A mail to send. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageRequest {
    /// Your own id of it, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ : @ -`. The `uid` stands in when absent.
    #[schema(example = "order-1")]
    id: Option<String>,
    /// The account to send by; your tenant's default when absent.
    account: Option<String>,
    /// The sender, with or without a name.
    #[schema(example = "Shop <shop@example.com>")]
    from: String,
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
    /// The plain text; this, `html` or both.
    #[schema(example = "Thank you.")]
    text: Option<String>,
    /// The HTML.
    html: Option<String>,
    /// Further headers; those that Postway writes itself are refused.
    headers: Option<BTreeMap<String, String>>,
    /// Files that go with it.
    attachments: Option<Vec<AttachmentRequest>>,
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
    /// Your reference to something of your own.
    external_id: Option<String>,
}

/// A file.
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
    content: String,
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

/// An account to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountRequest {
    /// Its id, unique in your tenant; only when it is made.
    #[schema(example = "relay-1")]
    id: Option<String>,
    /// `smtp` (default) or `sandbox`, which captures mail instead of sending it.
    #[schema(example = "smtp")]
    kind: Option<String>,
    /// The relay's host name or address.
    #[schema(example = "smtp.example.com")]
    host: Option<String>,
    /// The relay's port.
    #[schema(example = 587)]
    port: Option<u16>,
    /// `starttls` (default), `implicit`, `none` or `opportunistic`.
    #[schema(example = "starttls")]
    tls: Option<String>,
    /// Who signs in.
    #[schema(example = "shop")]
    username: Option<String>,
    /// The password: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only, example = "correct horse battery staple")]
    password: Option<String>,
    /// Whether the password may cross a connection without TLS.
    #[schema(default = false)]
    allow_plaintext_auth: Option<bool>,
    /// More certificate authorities to trust for this relay, in PEM form.
    ca_pem: Option<String>,
    /// The most connections at once, 1 to 500.
    #[schema(default = 10)]
    max_connections: Option<u32>,
    /// The envelope sender, when it is not the mail's From.
    return_path: Option<String>,
    /// When to try again.
    retry: Option<RetrySchema>,
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
