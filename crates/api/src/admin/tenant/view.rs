//! A tenant as JSON, without its secrets.

use postway_domain::{
    Tenant, Time,
    address_pattern::AddressPattern,
    message::OnDoubt,
    quota::DailyQuota,
    tenant::{CallbackForm, LargeFilePolicy, RemoteAuth, RemoteService, archive::ArchiveSettings},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(crate) struct TenantView {
    /// Its id.
    #[schema(example = "acme")]
    id: String,
    /// The display name.
    #[schema(example = "Acme Ltd")]
    name: String,
    /// Whether all its mail is suspended.
    suspended: bool,
    /// When it was suspended.
    #[schema(value_type = Option<String>, format = DateTime)]
    suspended_since: Option<Time>,
    /// The account for mail that names none.
    default_account: Option<String>,
    /// Its weight when tenants compete.
    weight: u32,
    /// Limits of the mail it may send; null means the gateway's own.
    content: ContentLimitsView,
    /// The older spelling of `report_retention_seconds`, in days.
    retention_days: Option<u32>,
    /// How long messages are kept once they ended and were completely reported; null means as long as the
    /// gateway is configured for, 604,800 by default.
    #[schema(example = 604_800)]
    report_retention_seconds: Option<u64>,
    /// How many days messages are kept that ended and could not be completely reported; null means 90.
    #[schema(example = 90)]
    unreported_retention_days: Option<u32>,
    /// The endpoint for its delivery reports.
    client_sync: Option<RemoteEndpointView>,
    /// The endpoint for attachments named by `endpoint`.
    attachment_endpoint: Option<RemoteEndpointView>,
    /// The format of its reports: `event`, `outbox` or `batch`.
    #[schema(value_type = String, example = "event")]
    callback_form: CallbackForm,
    /// What to do with attachments too large to mail.
    large_files: LargeFilesView,
    /// The domain that its bounces return to.
    bounce_domain: Option<String>,
    /// The envelope sender for mail and accounts that name none.
    return_path: Option<String>,
    /// The sender of mail that names none.
    #[schema(example = "Acme <mail@acme.example>")]
    default_from: Option<String>,
    /// Its identity for receivers that count complaints (`Feedback-ID`).
    feedback_id: Option<String>,
    /// Whether its mail declares that a program sent it (`Auto-Submitted`).
    auto_submitted: bool,
    /// Whether it is a test tenant: mail captured by its sandbox counts as sent.
    test: bool,
    /// The name of a header in which its mail carries the client's own id.
    #[schema(example = "X-Genro-Mail-ID")]
    id_header: Option<String>,
    /// What to do with mail in doubt if neither the mail nor its account says; null for `resend`.
    #[schema(value_type = Option<String>, example = "hold")]
    on_doubt: Option<OnDoubt>,
    /// The senders its mail may have: addresses, domains, patterns; any when empty.
    #[schema(value_type = Vec<String>, example = json!(["example.com"]))]
    allowed_senders: Vec<AddressPattern>,
    /// Whether `Reply-To` must be one of them, too.
    bind_reply_to: bool,
    /// What becomes of mail that the virus scanner could not scan: `open`, `closed` or `off`.
    #[schema(value_type = String, example = "open")]
    virus_policy: postway_domain::tenant::VirusPolicy,
    /// How much mail it may hand over in a day of UTC; null means any amount.
    daily_quota: DailyQuotaView,
    /// Whether reading bodies takes the right `read:content`, beside `read`.
    guard_content: bool,
    /// Where copies of what was sent go; null for nowhere.
    archive: Option<ArchiveView>,
    /// The language of its templates for mail that names none; null means templates without a language.
    #[schema(value_type = Option<String>, example = "de")]
    locale: Option<postway_domain::MailLocale>,
    /// Increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// Where copies of what was sent go.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Archive)]
pub(crate) struct ArchiveView {
    /// The address that gets each copy.
    #[schema(example = "archive@example.com")]
    to: Option<String>,
    /// The author of these mails; null for the tenant's `default_from`.
    #[schema(example = "Archive <archive@example.com>")]
    from: Option<String>,
    /// Whether copies are stored.
    storage: bool,
    /// Whether stored copies are encrypted with the gateway's secret key.
    encrypt: bool,
    /// How many days stored copies are kept; null for ever.
    days: Option<u32>,
}

impl From<ArchiveSettings> for ArchiveView {
    fn from(settings: ArchiveSettings) -> Self {
        let ArchiveSettings { to, from, storage, encrypt, days } = settings;
        Self { to, from, storage, encrypt, days }
    }
}

/// Limits of composed mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentLimits)]
pub(crate) struct ContentLimitsView {
    /// The longest subject, in characters.
    subject_chars: Option<u32>,
    /// The largest HTML part, in bytes.
    html_bytes: Option<u32>,
    /// The largest message, in bytes.
    message_bytes: Option<u32>,
    /// Whether every composed message must have html.
    html_required: bool,
    /// Whether a message with html and no text gets a text derived from the html.
    auto_text: bool,
}

/// What to do with attachments too large to mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LargeFiles)]
pub(crate) struct LargeFilesView {
    /// `reject` the message, `warn` in its history and send it, or `rewrite` it with a link in the file's
    /// place.
    #[schema(value_type = String, example = "rewrite")]
    pub(crate) policy: LargeFilePolicy,
    /// The largest file that is not too large, in bytes; null: only the complete message is limited.
    #[schema(example = 10_000_000)]
    pub(crate) above_bytes: Option<u64>,
    /// How many days a link works, at most 3,650; 30 when null.
    #[schema(example = 30)]
    pub(crate) link_days: Option<u32>,
}

/// An endpoint of the tenant's own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Remote)]
pub(crate) struct RemoteEndpointView {
    /// The URL.
    #[schema(example = "https://app.example.com")]
    url: String,
    /// A path below it.
    path: Option<String>,
    /// How to authenticate there.
    auth: RemoteAuthView,
}

/// How to authenticate at an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RemoteAuth)]
pub(crate) struct RemoteAuthView {
    /// `none`, `bearer` or `basic`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "bearer")]
    kind: RemoteAuth,
    /// The user name, with `basic`.
    username: Option<String>,
    /// Whether a token or password is set; it is never shown.
    has_secret: bool,
}

/// A page of tenants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantList {
    /// The tenants, by id.
    pub(crate) data: Vec<TenantView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// How much mail a tenant may hand over in a day of UTC.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DailyQuota)]
pub(crate) struct DailyQuotaView {
    /// Messages.
    #[schema(example = 100_000)]
    messages: Option<u64>,
    /// Bytes of mail.
    bytes: Option<u64>,
    /// Recipients.
    recipients: Option<u64>,
}

impl From<DailyQuota> for DailyQuotaView {
    fn from(DailyQuota { messages, bytes, recipients }: DailyQuota) -> Self {
        Self { messages, bytes, recipients }
    }
}

impl TenantView {
    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn new(tenant: &Tenant, suspended_since: Option<Time>) -> Self {
        let settings = tenant.settings.clone();
        Self {
            id: tenant.id.to_string(),
            name: tenant.name.clone(),
            suspended: suspended_since.is_some(),
            suspended_since,
            default_account: tenant.default_account.as_ref().map(ToString::to_string),
            weight: settings.weight,
            content: ContentLimitsView {
                subject_chars: settings.content.subject_chars,
                html_bytes: settings.content.html_bytes,
                message_bytes: settings.content.message_bytes,
                html_required: settings.content.html_required,
                auto_text: settings.content.auto_text,
            },
            retention_days: settings.retention_days,
            report_retention_seconds: settings.report_retention_seconds,
            unreported_retention_days: settings.unreported_retention_days,
            client_sync: settings.client_sync.map(RemoteEndpointView::from),
            attachment_endpoint: settings.attachment_endpoint.map(RemoteEndpointView::from),
            callback_form: settings.callback_form,
            large_files: LargeFilesView {
                policy: settings.large_files.policy,
                above_bytes: settings.large_files.above_bytes,
                link_days: settings.large_files.link_days,
            },
            bounce_domain: settings.bounce_domain,
            return_path: settings.return_path,
            default_from: settings.default_from,
            feedback_id: settings.feedback_id,
            auto_submitted: settings.auto_submitted,
            test: settings.test,
            id_header: settings.id_header,
            on_doubt: settings.on_doubt,
            allowed_senders: settings.allowed_senders,
            bind_reply_to: settings.bind_reply_to,
            virus_policy: settings.virus_policy,
            daily_quota: DailyQuotaView::from(settings.daily_quota),
            guard_content: settings.guard_content,
            archive: settings.archive.map(ArchiveView::from),
            locale: settings.locale,
            version: tenant.version,
            created_at: tenant.created_at,
            updated_at: tenant.updated_at,
        }
    }
}

impl From<RemoteService> for RemoteEndpointView {
    fn from(RemoteService { url, path, auth, username }: RemoteService) -> Self {
        // An authentication method is stored only together with its secret.
        let has_secret = auth != RemoteAuth::None;
        Self { url, path, auth: RemoteAuthView { kind: auth, username, has_secret } }
    }
}
