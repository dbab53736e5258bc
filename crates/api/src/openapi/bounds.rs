//! Bounds of sizes, lengths and numbers, declared once: what the code refuses beyond them, the document does
//! not allow either.
//!
//! If a bound is in bytes, the document can only say characters: a text within it may still be too long.
//! Bounds that an operator sets, or that apply to several fields together, are described in prose. Names are
//! those of [`super::named`].

use postway_domain::{
    AccountSettings, Contact, MailRoute, MailStream, TenantSettings,
    address_pattern::AddressPattern,
    destination::DestinationLimit,
    dsn::DsnRequest,
    egress::{PROXY_CHARS_MAX, PROXY_PASSWORD_BYTES_MAX},
    limit::WarmUpPlan,
    mailbox::MailboxSettings,
    retry::RetryPolicy,
    route::{RouteConditions, RouteContent, RouteTarget},
    rule::{FollowUpPlan, RuleContent},
};
use postway_intake::IntakeLimits;
use utoipa::openapi::{
    OpenApi as Document, RefOr, Schema, Type,
    schema::{ArrayItems, Object, SchemaType},
};

use super::named;
use crate::message::bulk;

/// Letters, digits, dot, underscore and dash.
const NAME_64: &str = "^[A-Za-z0-9._-]{1,64}$";
const NAME_128: &str = "^[A-Za-z0-9._-]{1,128}$";
/// A locale, as [`postway_domain::MailLocale`] reads it.
const LOCALE: &str = "^[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?$";
const CLIENT_ID: &str = "^[A-Za-z0-9._:@-]{1,128}$";

/// One bound.
#[derive(Clone, Copy)]
enum SchemaBound {
    /// A whole number, from and to.
    Number(u32, u32),
    /// A number with a fraction, from and to.
    Fraction(f64, f64),
    /// The characters of a text, from and to, or of each text of a list.
    Chars(usize, usize),
    /// The form of a text.
    Form(&'static str),
    /// The length of a list, from and to.
    Items(usize, usize),
}

/// Adds the bounds to the document. A name that is not in the document is skipped; a test checks that all
/// are.
pub(super) fn set(document: &mut Document) {
    for (bound, names) in bounds() {
        for name in names {
            if let Some(schema) = named::find(document, name) {
                bound.limit(schema);
            }
        }
    }
}

fn bounds() -> Vec<(SchemaBound, &'static [&'static str])> {
    use SchemaBound::{Chars, Form, Fraction, Items, Number};
    let limits = IntakeLimits::default();
    let days_max = TenantSettings::RETENTION_DAYS_MAX;
    vec![
        (
            Form(CLIENT_ID),
            &["MessageRequest.id", "MessageRequest.batch", "sendRawMessage?id", "sendRawMessage?batch"],
        ),
        (Form(CLIENT_ID), &["listMessages?batch", "listDeadLetters?batch"]),
        (
            Form(NAME_64),
            &[
                "AccountRequest.id",
                "AccountRequest.fallback",
                "TenantRequest.id",
                "TenantRequest.default_account",
            ],
        ),
        (
            Form(NAME_64),
            &[
                "MailboxRequest.id",
                "RuleRequest.id",
                "RuleRequest.mailbox",
                "ContactRequest.id",
                "TrialRequest.id",
            ],
        ),
        (
            Form(NAME_64),
            &["MessageRequest.account", "sendRawMessage?account", "InboundReplayRequest.mailbox"],
        ),
        (
            Form(NAME_64),
            &[
                "StreamRequest.id",
                "MessageRequest.stream",
                "ScopedSuppressionRequest.stream",
                "listScopedSuppressions?stream",
                "deleteScopedSuppression?stream",
            ],
        ),
        (
            Form(NAME_64),
            &[
                "RouteRequest.id",
                "RouteAccountRequest.account",
                "RouteMatchRequest.streams",
                "RouteTrialRequest.stream",
            ],
        ),
        (Form(CLIENT_ID), &["RouteMatchRequest.batches", "RouteTrialRequest.batch"]),
        (Chars(1, 1_024), &["RouteMatchRequest.tags"]),
        (Chars(0, MailRoute::DESCRIPTION_CHARS_MAX), &["RouteRequest.description"]),
        (Items(1, RouteContent::ACCOUNTS_MAX), &["RouteRequest.accounts"]),
        (Number(0, RouteTarget::WEIGHT_MAX), &["RouteAccountRequest.weight"]),
        (Items(0, MailRoute::PER_TENANT_MAX), &["RouteOrderRequest.ids"]),
        (
            Items(0, RouteConditions::LIST_MAX),
            &[
                "RouteMatchRequest.sender_domains",
                "RouteMatchRequest.tags",
                "RouteMatchRequest.batches",
                "RouteMatchRequest.streams",
                "RouteMatchRequest.priorities",
                "RouteMatchRequest.recipient_domains",
                "RouteTrialRequest.tags",
            ],
        ),
        (Chars(0, MailStream::NAME_CHARS_MAX), &["StreamRequest.name"]),
        (Chars(0, MailStream::DESCRIPTION_CHARS_MAX), &["StreamRequest.description"]),
        (Chars(0, 500), &["ScopedSuppressionRequest.note"]),
        (Form(NAME_64), &["listMessages?account", "listDeadLetters?account", "getStatistics?account"]),
        (
            Form(NAME_64),
            &["listInbound?mailbox", "listRules?mailbox", "listAudit?tenant", "deleteTenant?confirm"],
        ),
        (Form(NAME_128), &["TemplateRequest.name", "TemplateUse.name", "SourcePreviewRequest.name"]),
        (Form(NAME_128), &["TemplateRequest.layout", "SourcePreviewRequest.layout"]),
        (
            Form(LOCALE),
            &[
                "TemplateRequest.locale",
                "SourcePreviewRequest.locale",
                "PreviewRequest.locale",
                "TemplateTestRequest.locale",
                "MessageRequest.locale",
                "RecipientRequest.locale",
                "TenantRequest.locale",
            ],
        ),
        (Items(1, 10), &["TemplateTestRequest.to"]),
        (Chars(0, 400), &["TemplateTestRequest.from"]),
        (Form(NAME_64), &["TemplateTestRequest.account"]),
        (Form("^[A-Za-z0-9._-]{5,15}$"), &["TenantRequest.feedback_id"]),
        (Form("^[Xx]-[A-Za-z0-9-]{1,60}$"), &["TenantRequest.id_header"]),
        (
            Items(0, limits.recipients_max),
            &["MessageRequest.to", "MessageRequest.cc", "MessageRequest.bcc", "sendRawMessage?to"],
        ),
        (Items(0, limits.reply_to_max), &["MessageRequest.reply_to"]),
        (Items(0, limits.attachments_max), &["MessageRequest.attachments"]),
        (Items(0, limits.tags_max), &["MessageRequest.tags", "sendRawMessage?tag"]),
        (Chars(1, limits.tag_chars_max), &["MessageRequest.tags", "sendRawMessage?tag"]),
        (Chars(1, limits.collapse_key_chars_max), &["MessageRequest.collapse_key"]),
        (Chars(1, limits.external_id_chars_max), &["MessageRequest.external_id"]),
        (Chars(0, 256), &["MessageRequest.traceparent"]),
        (Items(1, limits.batch_messages_max), &["BatchRequest.messages"]),
        (Items(1, bulk::IDS_MAX), &["BulkActionRequest.ids"]),
        (Chars(0, 500), &["BulkActionRequest.note"]),
        (Items(1, 1_000), &["ReplayRequest.ids", "SuppressionRequest.addresses"]),
        (
            Chars(1, 998),
            &[
                "listMessages?q",
                "listMessages?subject",
                "listMessages?tag",
                "listMessages?request_id",
                "listMessages?error_code",
                "listMessages?metadata",
                "listAudit?actor",
                "listAudit?action",
                "listAudit?target",
            ],
        ),
        (
            Chars(1, 998),
            &["listMessages?provider_message_id", "listDeadLetters?subject", "listDeadLetters?tag"],
        ),
        (
            Chars(1, 998),
            &[
                "listDeadLetters?metadata",
                "listDeadLetters?request_id",
                "listDeadLetters?error_code",
                "listDeadLetters?provider_message_id",
            ],
        ),
        (
            Chars(1, 256),
            &[
                "sendMessage?Idempotency-Key",
                "sendBatch?Idempotency-Key",
                "sendRawMessage?Idempotency-Key",
                "sendTemplateTest?Idempotency-Key",
            ],
        ),
        (Number(0, 30), &["readEvents?wait", "followAudit?wait"]),
        (
            Number(0, days_max * 86_400),
            &["cleanUp?older_than_seconds", "TenantRequest.report_retention_seconds"],
        ),
        (Number(0, days_max), &["TenantRequest.retention_days", "TenantRequest.unreported_retention_days"]),
        (Number(1, TenantSettings::WEIGHT_MAX), &["TenantRequest.weight"]),
        (
            Number(1, u32::MAX),
            &["ContentRequest.subject_chars", "ContentRequest.html_bytes", "ContentRequest.message_bytes"],
        ),
        (Chars(0, 200), &["TenantRequest.name", "KeyRequest.name", "RecipientRequest.name"]),
        (Chars(1, Contact::NAME_CHARS_MAX), &["ContactRequest.name"]),
        (
            Chars(0, 320),
            &[
                "TenantRequest.return_path",
                "TenantRequest.default_from",
                "ArchiveRequest.to",
                "ArchiveRequest.from",
            ],
        ),
        (
            Chars(1, 253),
            &["TenantRequest.bounce_domain", "SigningKeyRequest.domain", "SigningKeyRequest.selector"],
        ),
        (Chars(0, 2_048), &["RemoteRequest.url", "RemoteRequest.path", "WebhookRequest.url"]),
        (Items(0, 100), &["KeyRequest.allow_ips"]),
        (
            Items(0, AddressPattern::LIST_MAX),
            &["KeyRequest.allowed_senders", "KeyRequest.allowed_recipients", "TenantRequest.allowed_senders"],
        ),
        (Items(1, 100), &["WebhookRequest.events"]),
        (
            Chars(0, 500),
            &["WebhookRequest.description", "MailboxRequest.description", "TemplateRequest.description"],
        ),
        (
            Chars(0, 500),
            &["SourcePreviewRequest.description", "SuppressionRequest.note", "SuppressionChange.note"],
        ),
        (Chars(0, 2_000), &["TemplateRequest.subject", "SourcePreviewRequest.subject"]),
        (Chars(1, 320), &["AccountRequest.username", "MailboxRequest.username"]),
        (
            Chars(1, 1_024),
            &["AccountRequest.password", "AccountRequest.secret_access_key", "AccountRequest.api_key"],
        ),
        (Number(1, u16::MAX as u32), &["AccountRequest.port", "MailboxRequest.port"]),
        (Number(1, AccountSettings::CONNECTIONS_MAX), &["AccountRequest.max_connections"]),
        (Items(0, RetryPolicy::DELAYS_MAX), &["RetryRequest.delays_s"]),
        (Number(1, RetryPolicy::DELAY_S_MAX), &["RetryRequest.delays_s"]),
        (Fraction(0.0, 0.9), &["RetryRequest.jitter"]),
        (Items(1, WarmUpPlan::DAYS_MAX), &["WarmUpRequest.per_day"]),
        (Number(1, u32::MAX), &["WarmUpRequest.per_day"]),
        (
            Number(0, DestinationLimit::MAX),
            &["DestinationRequest.connections", "DestinationRequest.per_second"],
        ),
        (Chars(1, 253), &["MailboxRequest.host"]),
        (Chars(0, 255), &["MailboxRequest.folder", "MailboxRequest.proxy_password"]),
        (Chars(0, PROXY_CHARS_MAX), &["MailboxRequest.proxy", "AccountRequest.proxy"]),
        (Chars(1, PROXY_PASSWORD_BYTES_MAX), &["AccountRequest.proxy_password"]),
        (Chars(0, DsnRequest::CHARS_MAX), &["AccountRequest.dsn", "MessageRequest.dsn"]),
        (
            Number(MailboxSettings::POLL_SECONDS_MIN, MailboxSettings::POLL_SECONDS_MAX),
            &["MailboxRequest.poll_seconds"],
        ),
        (Number(1, MailboxSettings::ATTEMPTS_MAX), &["MailboxRequest.attempts_max"]),
        (
            Number(MailboxSettings::MAIL_BYTES_LEAST, MailboxSettings::MAIL_BYTES_MOST),
            &["MailboxRequest.mail_bytes_max"],
        ),
        (Items(0, RuleContent::CONDITIONS_MAX), &["RuleRequest.match"]),
        (Items(0, RuleContent::ACTIONS_MAX), &["RuleRequest.actions"]),
        (Number(1, FollowUpPlan::HOURS_MAX), &["FollowUpRequest.every_hours"]),
        (Number(1, FollowUpPlan::TIMES_MAX), &["FollowUpRequest.times_max"]),
        (Items(0, Contact::ADDRESSES_MAX), &["ContactRequest.addresses"]),
        (Chars(1, 256), &["RecipientRequest.external_id"]),
        (Chars(4, 64), &["RecipientRequest.personal_number"]),
        (Number(1, 1_000), &["InboundReplayRequest.limit"]),
        (Chars(0, 200), &["ResendDeliveriesRequest.cursor"]),
        (Chars(0, 1_024), &["VerifyToken.token", "VerifyToken.path"]),
        (Chars(0, 16), &["VerifyToken.code"]),
    ]
}

impl SchemaBound {
    fn limit(self, schema: &mut RefOr<Schema>) {
        match schema {
            RefOr::T(Schema::Object(object)) => self.limit_value(object),
            RefOr::T(Schema::Array(array)) => match self {
                SchemaBound::Items(min, max) => {
                    (array.min_items, array.max_items) = ((min > 0).then_some(min), Some(max));
                }
                _ => {
                    if let ArrayItems::RefOrSchema(items) = &mut array.items {
                        self.limit(items);
                    }
                }
            },
            RefOr::T(Schema::OneOf(choice)) => choice.items.iter_mut().for_each(|one| self.limit(one)),
            _ => {}
        }
    }

    fn limit_value(self, object: &mut Object) {
        let is = |kind: Type| match &object.schema_type {
            SchemaType::Type(own) => *own == kind,
            SchemaType::Array(own) => own.contains(&kind),
            SchemaType::AnyValue => false,
        };
        match self {
            SchemaBound::Number(min, max) if is(Type::Integer) => {
                (object.minimum, object.maximum) = (Some(min.into()), Some(max.into()));
            }
            SchemaBound::Fraction(min, max) if is(Type::Number) => {
                (object.minimum, object.maximum) = (Some(min.into()), Some(max.into()));
            }
            SchemaBound::Chars(min, max) if is(Type::String) => {
                (object.min_length, object.max_length) = ((min > 0).then_some(min), Some(max));
            }
            SchemaBound::Form(form) if is(Type::String) => object.pattern = Some(form.to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_set_where_it_says() {
        let mut document = super::super::document();
        for (bound, names) in bounds() {
            for name in names {
                let schema = named::find(&mut document, name).unwrap_or_else(|| panic!("there is no {name}"));
                let text = serde_json::to_string(schema).unwrap();
                let keyword = match bound {
                    SchemaBound::Number(..) | SchemaBound::Fraction(..) => "\"maximum\":",
                    SchemaBound::Chars(..) => "\"maxLength\":",
                    SchemaBound::Form(_) => "\"pattern\":",
                    SchemaBound::Items(..) => "\"maxItems\":",
                };
                assert!(text.contains(keyword), "{name}: {text}");
            }
        }
    }
}
