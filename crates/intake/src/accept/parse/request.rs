//! The shape of a message as clients write it.
//!
//! Only shape is decided here: names, and whether a value is a text, a number, a list or an object. Everything else is
//! [`crate::accept::check`]'s, so that it can be collected. An absent field and `null` are the same.

use postway_domain::tenant::ContentLimits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use crate::json::{Addresses, Entries, List, Object, Scalar, Text};

/// More attachments than this are not even read.
const ATTACHMENTS_READ_MAX: usize = 1_000;
/// More alternatives than this are not even read.
const ALTERNATIVES_READ_MAX: usize = 100;
/// More tags than this are not even read.
const TAGS_READ_MAX: usize = 1_000;
/// More headers than this are not even read.
const HEADERS_READ_MAX: usize = 1_000;

/// The variables of a template become values of many times their size: they weigh this much more than other text.
pub(crate) const VARIABLES_WEIGHT: usize = 16;
/// Html that is laid out as text weighs this much more than html that is only checked.
const LAYOUT_WEIGHT: usize = 8;

/// One message to send. As it serializes, it is the canonical form that repeats are recognised by.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MessageRequest<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub account: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub from: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub to: Option<Addresses<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub cc: Option<Addresses<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub bcc: Option<Addresses<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Addresses<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub return_path: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub html: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<List<Object<AlternativeRequest<'a>>, ALTERNATIVES_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Entries<'a, Text<'a>, HEADERS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<List<Object<AttachmentRequest<'a>>, ATTACHMENTS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Scalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub send_at: Option<Scalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Scalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub tags: Option<List<Text<'a>, TAGS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub on_doubt: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub template: Option<Object<TemplateRequest<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Object<RecipientRequest<'a>>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub unsubscribe: Option<Object<UnsubscribeRequest<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_text: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_submitted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<bool>,
    // Never part of the canonical form: earlier versions left it out.
    #[serde(skip_serializing)]
    pub collapse_key: Option<Text<'a>>,
}

impl MessageRequest<'_> {
    /// How heavy the work on this request of `bytes` bytes is, under the tenant's content settings, which may ask for a
    /// text to be made from html.
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
pub(crate) struct TemplateRequest<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    pub version: Option<i64>,
    #[serde(borrow)]
    pub variables: Option<&'a RawValue>,
}

/// The entry of the tenant's directory that the message is for.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecipientRequest<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub external_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    #[serde(borrow)]
    pub email: Option<Text<'a>>,
}

/// Where a reader gets off the list.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UnsubscribeRequest<'a> {
    #[serde(borrow)]
    pub url: Option<Text<'a>>,
    #[serde(borrow)]
    pub mailto: Option<Text<'a>>,
}

/// A further form of a message's text.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AlternativeRequest<'a> {
    #[serde(borrow)]
    pub content_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub content: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach: Option<bool>,
}

/// One file of a message.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AttachmentRequest<'a> {
    #[serde(borrow)]
    pub filename: Option<Text<'a>>,
    #[serde(borrow)]
    pub content_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub content: Option<Text<'a>>,
    #[serde(borrow)]
    pub content_id: Option<Text<'a>>,
    pub inline: Option<bool>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text<'a>>,
    /// The digest that the bytes must have, in hexadecimal.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Text<'a>>,
    /// The same by the digest that older systems use.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub content_md5: Option<Text<'a>>,
    /// All of the above in one field, told apart by how it begins, or by `fetch_mode`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub storage_path: Option<Text<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub fetch_mode: Option<Text<'a>>,
}
