//! The shape of a message as clients write it.
//!
//! Only shape is decided here: names, and whether a value is a text, a number, a list or an object. Everything else is
//! [`crate::check`]'s, so that it can be collected. An absent field and `null` are the same.

mod value;

pub(crate) use value::{Addresses, Entries, List, Object, Scalar, Text};

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// More attachments than this are not even read.
const ATTACHMENTS_READ_MAX: usize = 1_000;
/// More tags than this are not even read.
const TAGS_READ_MAX: usize = 1_000;
/// More headers than this are not even read.
const HEADERS_READ_MAX: usize = 1_000;

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
    pub headers: Option<Entries<'a, Text<'a>, HEADERS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<List<Object<AttachmentRequest<'a>>, ATTACHMENTS_READ_MAX>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Scalar<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Text<'a>>,
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
    // Known to the documentation, not yet to this version: refused unless null, so never part of the canonical form.
    #[serde(skip_serializing)]
    pub template: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    pub recipient: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    pub collapse_key: Option<Text<'a>>,
    #[serde(skip_serializing)]
    pub sensitive: Option<bool>,
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
    #[serde(skip_serializing)]
    pub url: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    pub endpoint: Option<IgnoredAny>,
    #[serde(skip_serializing)]
    pub path: Option<IgnoredAny>,
}
