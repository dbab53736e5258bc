//! Templates: versioned, and never changed after they were stored.

use crate::{
    identity::id::{TemplateName, TenantId},
    time::Time,
};

/// One version of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name.
    pub name: TemplateName,
    /// The version, from 1. The greatest is used if a message names none.
    pub version: i64,
    /// The subject line.
    pub subject: String,
    /// The html part.
    pub html: Option<String>,
    /// The text part; made from the html if absent.
    pub text: Option<String>,
    /// The html part as MJML, instead of `html`.
    pub mjml: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// Variables to preview it with, as a JSON object.
    pub sample: Option<String>,
    /// When this version was stored.
    pub created_at: Time,
}

impl Template {
    /// The largest source, all parts together.
    pub const BYTES_MAX: usize = 1024 * 1024;
    /// The most versions of a template; older ones are deleted.
    pub const VERSIONS_MAX: i64 = 1_000;
}
