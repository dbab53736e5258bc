//! What is wrong with an html body, said so that its author knows what to remove.
//!
//! A detail names elements, attributes and schemes, never the value of an attribute: faults end up in events and
//! answers, and bodies do not belong there.

use std::fmt;

/// How many faults are told at most: the first few are what the author needs.
const FAULTS_MAX: usize = 16;
const DETAIL_CHARS_MAX: usize = 80;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A `<script>` element, in HTML, SVG or MathML.
    Script,
    /// A `<script>` of data (JSON-LD) that is something else as well.
    Data,
    /// A URL that runs or carries script: `javascript:`, `vbscript:`, `data:text/html`.
    ScriptUrl,
    /// An attribute like `onclick`.
    EventHandler,
    /// A document inside an attribute: `<iframe srcdoc>`.
    EmbeddedDocument,
    /// More nesting than is looked at.
    TooDeep,
    /// More elements than are looked at.
    TooManyElements,
    /// More attributes in one tag than are looked at.
    TooManyAttributes,
    /// More bytes than are looked at.
    TooLong,
}

/// One thing that must be removed from an html body before it can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtmlFault {
    /// The rule.
    pub kind: FaultKind,
    /// Where, or how much: clipped, and free of the body's own text.
    pub detail: String,
}

impl HtmlFault {
    pub(super) fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
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
            FaultKind::Script => write!(f, "contains a {detail} element: remove it"),
            FaultKind::Data => write!(f, "contains JSON-LD that is not only data ({detail}): correct it"),
            FaultKind::ScriptUrl => write!(f, "contains a script URL, {detail}: remove it"),
            FaultKind::EventHandler => write!(f, "contains an event handler, {detail}: remove it"),
            FaultKind::EmbeddedDocument => {
                write!(f, "contains a document in an attribute, {detail}: remove it")
            }
            FaultKind::TooDeep => write!(f, "is nested too deeply ({detail}): use fewer levels"),
            FaultKind::TooManyElements => write!(f, "has too many elements ({detail}): make it smaller"),
            FaultKind::TooManyAttributes => {
                write!(f, "has a tag with too many attributes ({detail}): remove some")
            }
            FaultKind::TooLong => write!(f, "is too long to be checked ({detail}): make it smaller"),
        }
    }
}

/// Faults as they are found: each once, and not more than a few.
#[derive(Default)]
pub(super) struct Faults(Vec<HtmlFault>);

impl Faults {
    pub(super) fn add(&mut self, fault: HtmlFault) {
        if self.0.len() < FAULTS_MAX && !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    pub(super) fn extend(&mut self, others: Faults) {
        for fault in others.0 {
            self.add(fault);
        }
    }

    pub(super) fn into_result(self) -> Result<(), Vec<HtmlFault>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
