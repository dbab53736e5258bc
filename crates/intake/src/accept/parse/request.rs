//! The shape of a message as clients write it.
//!
//! Only the shape is decided here: names, and whether a value is a text, a number, a list or an object.
//! Everything else is checked in [`crate::accept::check`], which collects all faults. An absent field and
//! `null` are the same.

use postway_domain::tenant::ContentLimits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use crate::json::{AddressList, JsonEntries, JsonList, JsonObject, JsonScalar, JsonText};

/// A request with more attachments than this is refused while it is read.
const ATTACHMENTS_READ_MAX: usize = 1_000;
/// A request with more alternatives than this is refused while it is read.
const ALTERNATIVES_READ_MAX: usize = 100;
/// A request with more tags than this is refused while it is read.
const TAGS_READ_MAX: usize = 1_000;
/// A request with more headers than this is refused while it is read.
const HEADERS_READ_MAX: usize = 1_000;

/// The variables of a template become values of many times their size: they weigh this much more than other
/// text.
pub(crate) const VARIABLES_WEIGHT: usize = 16;
/// Html that is laid out as text weighs this much more than html that is only checked.
const LAYOUT_WEIGHT: usize = 8;

/// One message to send. Its serialized form is the canonical form by which repeats are recognised.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MessageInput<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub account: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub from: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub to: Option<AddressList<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub cc: Option<AddressList<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub bcc: Option<AddressList<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<AddressList<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub return_path: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub subject: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub text: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub html: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<JsonList<JsonObject<AlternativeInput<'a>>, ALTERNATIVES_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub headers: Option<JsonEntries<'a, JsonText<'a>, HEADERS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<JsonList<JsonObject<AttachmentInput<'a>>, ATTACHMENTS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub priority: Option<JsonScalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub batch: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub stream: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub send_at: Option<JsonScalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<JsonScalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub tags: Option<JsonList<JsonText<'a>, TAGS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub dsn: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub template: Option<JsonObject<TemplateInput<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub locale: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<JsonObject<RecipientInput<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub unsubscribe: Option<JsonObject<UnsubscribeInput<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_text: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline_css: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_submitted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<bool>,
    // Never part of the canonical form: earlier versions left it out.
    #[serde(skip_serializing)]
    pub collapse_key: Option<JsonText<'a>>,
    // Neither is this: a repeat has another. What cannot be read is ignored.
    #[serde(borrow, skip_serializing)]
    pub traceparent: Option<&'a RawValue>,
}

impl MessageInput<'_> {
    /// How heavy the work on this request of `bytes` bytes is, under the tenant's content settings, which may
    /// ask for a text to be made from html.
    pub(crate) fn weight(&self, bounds: &ContentLimits, bytes: usize) -> usize {
        let variables = self.template.as_ref().and_then(|template| template.0.variables);
        let variables = variables.map_or(0, |json| json.get().len().saturating_mul(VARIABLES_WEIGHT));
        let is_laid_out = self.text.is_none() && self.auto_text.unwrap_or(bounds.auto_text);
        let html = self.html.as_deref().filter(|_| is_laid_out).map_or(0, str::len);
        bytes.max(variables).max(html.saturating_mul(LAYOUT_WEIGHT))
    }
}

/// The template that makes subject and texts.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TemplateInput<'a> {
    #[serde(borrow)]
    pub name: Option<JsonText<'a>>,
    pub version: Option<i64>,
    #[serde(borrow)]
    pub variables: Option<&'a RawValue>,
}

/// The entry of the tenant's directory that the message is for.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecipientInput<'a> {
    #[serde(borrow)]
    pub id: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub external_id: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub name: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub email: Option<JsonText<'a>>,
}

/// How a reader unsubscribes.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UnsubscribeInput<'a> {
    #[serde(borrow)]
    pub url: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub mailto: Option<JsonText<'a>>,
}

/// A further alternative to the text.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AlternativeInput<'a> {
    #[serde(borrow)]
    pub content_type: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub content: Option<JsonText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach: Option<bool>,
}

/// One file of a message.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AttachmentInput<'a> {
    #[serde(borrow)]
    pub filename: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub content_type: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub content: Option<JsonText<'a>>,
    #[serde(borrow)]
    pub content_id: Option<JsonText<'a>>,
    pub inline: Option<bool>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub path: Option<JsonText<'a>>,
    /// The SHA-256 that the bytes must have, in hexadecimal.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<JsonText<'a>>,
    /// The MD5 that the bytes must have, as older systems give it.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub content_md5: Option<JsonText<'a>>,
    /// The source of the file in one field; its prefix or `fetch_mode` says which kind of source it is.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub storage_path: Option<JsonText<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub fetch_mode: Option<JsonText<'a>>,
}
