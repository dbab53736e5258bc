//! Request bodies as the OpenAPI document describes them. The structs are never filled; `edit` and `key` read
//! the bodies.

use serde::Serialize;
use serde_json::json;
use utoipa::{
    ToSchema,
    openapi::{ObjectBuilder, Type, schema::SchemaType},
};

use crate::http::schema_form::{When, forms, of_type, one_of, shown_as, words};

/// A tenant to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantRequest {
    /// The id, 1 to 64 of `A-Z a-z 0-9 . _ -`; required on creation, and fixed then.
    #[schema(example = "acme")]
    id: Option<String>,
    /// The display name; the id when absent.
    #[schema(example = "Acme Ltd")]
    name: Option<String>,
    /// The weight when tenants compete, 1 to 10,000.
    #[schema(default = 100)]
    weight: Option<u32>,
    /// The account for mail that names none; it must exist.
    #[schema(example = "sandbox")]
    default_account: Option<String>,
    /// Limits of the mail it may send.
    content: Option<ContentRequest>,
    /// The older spelling of `report_retention_seconds`, in days; only one of them may be given.
    #[schema(example = json!(null))]
    retention_days: Option<u32>,
    /// How long messages are kept once they ended and were completely reported; 0 removes them at the next
    /// clean-up.
    #[schema(default = 604_800, maximum = 315_360_000)]
    report_retention_seconds: Option<u64>,
    /// How many days messages are kept that ended and could not be completely reported, at most 3,650; never
    /// shorter than the other.
    #[schema(default = 90)]
    unreported_retention_days: Option<u32>,
    /// The endpoint for its delivery reports.
    client_sync: Option<RemoteRequest>,
    /// The endpoint for attachments named by `endpoint`.
    attachment_endpoint: Option<RemoteRequest>,
    /// The format of its reports: `event` (default), `outbox` or `batch`.
    callback_form: Option<String>,
    /// What to do with attachments too large to mail: all settings, or the policy alone, as a text.
    #[schema(inline)]
    large_files: Option<LargeFilesForm>,
    /// The domain that its bounces return to.
    #[schema(example = "bounces.example.com")]
    bounce_domain: Option<String>,
    /// The envelope sender for mail and accounts that name none.
    #[schema(example = "bounces@example.com")]
    return_path: Option<String>,
    /// The sender of mail that names none.
    #[schema(example = "Acme <mail@acme.example>")]
    default_from: Option<String>,
    /// Its identity for receivers that count complaints (`Feedback-ID`): 5 to 15 of `A-Z a-z 0-9 . _ -`.
    #[schema(example = "acme-mail")]
    feedback_id: Option<String>,
    /// Whether its mail declares that a program sent it (`Auto-Submitted`), so that no holiday notice
    /// answers.
    #[schema(default = false)]
    auto_submitted: Option<bool>,
    /// Whether it is a test tenant: mail captured by its sandbox counts as sent, and compatibility APIs
    /// accept mail for it.
    #[schema(default = false)]
    test: Option<bool>,
    /// The name of a header in which its mail carries the client's own id: `X-` and up to 60 of `A-Z a-z 0-9
    /// -`.
    #[schema(example = "X-Genro-Mail-ID")]
    id_header: Option<String>,
    /// What to do with mail in doubt if neither the mail nor its account says: `resend` (default), or `hold`,
    /// which never sends twice.
    #[schema(example = "hold")]
    on_doubt: Option<String>,
    /// The senders its mail may have (`From`, `Sender`, envelope sender), however it is submitted: addresses,
    /// domains, and patterns such as `*.example.com`, at most 200; any when empty.
    #[schema(example = json!(["example.com", "*.example.com"]))]
    allowed_senders: Option<Vec<String>>,
    /// Whether `Reply-To` must be one of them, too.
    #[schema(default = false)]
    bind_reply_to: Option<bool>,
    /// What becomes of mail that the virus scanner could not scan: it passes (`open`, the default) or waits
    /// (`closed`). `off` scans nothing.
    #[schema(example = "closed")]
    virus_policy: Option<String>,
    /// How much mail it may hand over in a day of UTC, whichever way; any amount when absent.
    daily_quota: Option<DailyQuotaRequest>,
    /// Whether reading bodies (mail, content, attachments, submitted requests) takes the right `read:content`,
    /// beside `read`.
    #[schema(default = false)]
    guard_content: Option<bool>,
    /// Where copies of what was sent go; nowhere when absent.
    archive: Option<ArchiveRequest>,
    /// The language of its templates for mail that names none, or one that a template does not have: `de`,
    /// `de-AT`, `zh-Hant`.
    #[schema(example = "de")]
    locale: Option<String>,
    /// With `PATCH`: change only if the tenant still has this version.
    version: Option<i64>,
}

/// Where copies of what was sent go: an address, storage, or both.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArchiveRequest {
    /// The address that gets each copy, as a mail of its own with the original attached.
    #[schema(example = "archive@example.com")]
    to: Option<String>,
    /// The author of these mails; the tenant's `default_from` when absent.
    #[schema(example = "Archive <archive@example.com>")]
    from: Option<String>,
    /// Whether copies are stored beside the blobs, by date.
    #[schema(default = false)]
    storage: Option<bool>,
    /// Whether stored copies are encrypted with the gateway's secret key.
    #[schema(default = false)]
    encrypt: Option<bool>,
    /// How many days stored copies are kept; for ever when absent.
    #[schema(example = 3_650, minimum = 1, maximum = 36_500)]
    days: Option<u32>,
}

/// How much mail a tenant may hand over in a day of UTC.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DailyQuotaRequest {
    /// Messages.
    #[schema(example = 100_000, minimum = 1, maximum = 9_007_199_254_740_992_u64)]
    messages: Option<u64>,
    /// Bytes of mail.
    #[schema(example = 1_000_000_000, minimum = 1, maximum = 9_007_199_254_740_992_u64)]
    bytes: Option<u64>,
    /// Recipients.
    #[schema(example = 500_000, minimum = 1, maximum = 9_007_199_254_740_992_u64)]
    recipients: Option<u64>,
}

/// Limits of composed mail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentRequest {
    /// The longest subject, in characters; 150 when absent.
    #[schema(example = 200)]
    subject_chars: Option<u32>,
    /// The largest HTML part, in bytes; 524,288 when absent.
    html_bytes: Option<u32>,
    /// The largest message, in bytes; the gateway's own limit when absent.
    message_bytes: Option<u32>,
    /// Whether every composed message must have html.
    #[schema(default = false)]
    html_required: Option<bool>,
    /// Whether a message with html and no text gets a text derived from the html, unless its own `auto_text`
    /// is `false`.
    #[schema(default = false)]
    auto_text: Option<bool>,
}

forms! {
    /// What to do with attachments too large to mail.
    LargeFilesForm => shown_as(
        one_of([policy(), large_files()]),
        json!({"policy": "rewrite", "above_bytes": 10_000_000, "link_days": 30}),
    );
}

/// The settings for large files.
fn large_files() -> ObjectBuilder {
    let policies = "`reject` (default) the message, `warn` in its history and send it, or `rewrite` it with a link in the \
        file's place";
    let above =
        "The largest file that is not too large, in bytes; null: only the message as a whole is bounded";
    let days = "How many days a link works; 30 when null";
    of_type(Type::Object)
        .property("policy", policy().description(Some(policies)))
        .property("above_bytes", number().description(Some(above)))
        .property("link_days", number().maximum(Some(3_650)).description(Some(days)))
}

fn policy() -> ObjectBuilder {
    words(&["reject", "warn", "rewrite", "link"])
}

fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::Integer, Type::Null])).minimum(Some(1))
}

/// An endpoint of the tenant's own. With `PATCH`, absent fields keep their values.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemoteRequest {
    /// The URL, `http://` or `https://`; required unless one is set already.
    #[schema(example = "https://app.example.com")]
    url: Option<String>,
    /// A path below it.
    #[schema(example = "/mail/reports")]
    path: Option<String>,
    /// How to authenticate there.
    auth: Option<RemoteAuthRequest>,
}

/// How to authenticate at an endpoint. Secrets are encrypted at rest and never shown again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemoteAuthRequest {
    /// `none` (default), `bearer` with a `token`, or `basic` with `username` and `password`.
    #[serde(rename = "type")]
    #[schema(example = "bearer")]
    kind: Option<String>,
    /// For `bearer`.
    #[schema(write_only, example = "s3cret")]
    token: Option<String>,
    /// For `basic`.
    username: Option<String>,
    /// For `basic`.
    #[schema(write_only)]
    password: Option<String>,
    /// Whether a token or password is set; it may come back as it was shown, and changes nothing.
    #[schema(read_only)]
    has_secret: Option<bool>,
}

/// A key to create. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeyRequest)]
pub(crate) struct ApiKeyRequest {
    /// The display name.
    #[schema(example = "shop")]
    name: Option<String>,
    /// What it may do: `send` (hand over, cancel, retry), `read`, `manage` (accounts, batches, suppressions,
    /// templates, recipients, signing keys), and `read:content` (bodies, where the tenant guards them). The
    /// first three when absent.
    #[schema(nullable = false, example = json!(["send", "read"]))]
    scopes: Option<Vec<String>>,
    /// When it expires: RFC 3339 or Unix seconds.
    #[schema(inline)]
    expires_at: Option<When>,
    /// The addresses and networks it may be used from; any when absent.
    #[schema(example = json!(["10.0.0.0/8"]))]
    allow_ips: Option<Vec<String>>,
    /// The senders its mail may have, besides the restrictions of its tenant: addresses, domains, and
    /// patterns such as `*.example.com` or `news-*@example.com`, at most 200.
    #[schema(example = json!(["shop@example.com"]))]
    allowed_senders: Option<Vec<String>>,
    /// The recipients its mail may have, for test systems; any when absent.
    #[schema(example = json!(["test.example.com"]))]
    allowed_recipients: Option<Vec<String>>,
}
