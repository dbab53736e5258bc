//! Templates as they are kept: versioned, never changed in place.

use crate::{
    identity::id::{TemplateName, TenantId},
    time::Time,
};

/// One version of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub name: TemplateName,
    /// From 1; the greatest is the one that is used where none is named.
    pub version: i64,
    /// The subject line.
    pub subject: String,
    /// The html part.
    pub html: Option<String>,
    /// The text part; made from the html where absent.
    pub text: Option<String>,
    /// The html part as MJML, in the place of `html`.
    pub mjml: Option<String>,
    /// What it is for, in people's words.
    pub description: Option<String>,
    /// Variables to preview it with, as a JSON object.
    pub sample: Option<String>,
    /// When this version was made.
    pub created_at: Time,
}

impl Template {
    /// The largest source, all parts together.
    pub const BYTES_MAX: usize = 1024 * 1024;
    /// The most versions that are kept of one; older ones go.
    pub const VERSIONS_MAX: i64 = 1_000;
}
