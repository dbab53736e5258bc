//! What is wrong with an html body, worded so that its author knows what to remove.
//!
//! A detail names elements, attributes and schemes, never the value of an attribute: faults appear in events
//! and API responses, which must not contain parts of a body.

use std::fmt;

/// The maximum number of reported faults: the author needs only the first few.
const FAULTS_MAX: usize = 16;
const DETAIL_CHARS_MAX: usize = 80;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HtmlFaultKind {
    /// A `<script>` element, in HTML, SVG or MathML.
    Script,
    /// A `<script>` of data (JSON-LD) that is not only data.
    Data,
    /// A URL that runs or carries script: `javascript:`, `vbscript:`, `data:text/html`.
    ScriptUrl,
    /// An attribute like `onclick`.
    EventHandler,
    /// A document inside an attribute: `<iframe srcdoc>`.
    EmbeddedDocument,
    /// The html is nested too deeply to be checked.
    TooDeep,
    /// The html has too many elements to be checked.
    TooManyElements,
    /// A tag has too many attributes to be checked.
    TooManyAttributes,
    /// The html is too long to be checked.
    TooLong,
}

/// One thing that must be removed from an html body before it can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtmlFault {
    /// The rule that was broken.
    pub kind: HtmlFaultKind,
    /// The element, or the number, without text of the body; clipped.
    pub detail: String,
}

impl HtmlFault {
    pub(super) fn new(kind: HtmlFaultKind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let detail = match detail.char_indices().nth(DETAIL_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &detail[..end]),
            None => detail,
        };
        Self { kind, detail }
    }
}

impl fmt::Display for HtmlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &self.detail;
        match self.kind {
            HtmlFaultKind::Script => write!(f, "contains a {detail} element: remove it"),
            HtmlFaultKind::Data => write!(f, "contains JSON-LD that is not only data ({detail}): correct it"),
            HtmlFaultKind::ScriptUrl => write!(f, "contains a script URL, {detail}: remove it"),
            HtmlFaultKind::EventHandler => write!(f, "contains an event handler, {detail}: remove it"),
            HtmlFaultKind::EmbeddedDocument => {
                write!(f, "contains a document in an attribute, {detail}: remove it")
            }
            HtmlFaultKind::TooDeep => write!(f, "is nested too deeply ({detail}): use fewer levels"),
            HtmlFaultKind::TooManyElements => write!(f, "has too many elements ({detail}): make it smaller"),
            HtmlFaultKind::TooManyAttributes => {
                write!(f, "has a tag with too many attributes ({detail}): remove some")
            }
            HtmlFaultKind::TooLong => write!(f, "is too long to be checked ({detail}): make it smaller"),
        }
    }
}

/// A list of faults without repeats, cut after [`FAULTS_MAX`].
#[derive(Default)]
pub(super) struct HtmlFaults(Vec<HtmlFault>);

impl HtmlFaults {
    pub(super) fn add(&mut self, fault: HtmlFault) {
        if self.0.len() < FAULTS_MAX && !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    pub(super) fn extend(&mut self, others: HtmlFaults) {
        for fault in others.0 {
            self.add(fault);
        }
    }

    pub(super) fn into_result(self) -> Result<(), Vec<HtmlFault>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
