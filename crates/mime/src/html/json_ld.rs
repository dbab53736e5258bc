//! JSON-LD: `<script type="application/ld+json">`, which Gmail and Outlook read for orders, flights and
//! buttons.
//!
//! Browsers do not run a script of an unknown type, so JSON-LD is inert for a program that follows the
//! standard. Not every mail program does, so more is required: exactly this type, given once, in html and not
//! in SVG, no attribute that fetches anything, an end tag, and JSON content without anything that a simpler
//! parser could take for a tag or a comment. Everything else is refused.

use html5ever::tokenizer::Tag;
use serde::de::IgnoredAny;

use super::parse::HtmlToken;
use super::{HtmlFault, HtmlFaultKind};

/// The only type of data that is allowed, in any case.
const JSON_LD: &str = "application/ld+json";
/// Attributes that only name an element.
const NAMING_ATTRIBUTES: [&str; 2] = ["class", "id"];

/// An open `<script>` of data, and its content so far.
pub(super) struct JsonLdScript {
    content: String,
}

/// The state of a data script after a token.
pub(super) enum JsonLdStep {
    /// It has not ended yet.
    Open(JsonLdScript),
    /// It has ended, with a fault or without.
    Ended(Option<HtmlFault>),
}

impl JsonLdScript {
    /// The data script that begins with this start tag; `None` if a mail program could run it as a script.
    pub(super) fn from_start_tag(tag: &Tag, is_foreign: bool) -> Option<Self> {
        let mut is_data = false;
        for attribute in &tag.attrs {
            let name = &*attribute.name.local;
            if name == "type" {
                is_data = attribute.value.eq_ignore_ascii_case(JSON_LD);
            } else if !NAMING_ATTRIBUTES.contains(&name) && !name.starts_with("data-") {
                return None;
            }
        }
        // Of two `type` attributes this tokenizer keeps the first; another program may keep the last.
        let is_plain = !is_foreign && !tag.self_closing && !tag.had_duplicate_attributes;
        (is_data && is_plain).then(|| Self { content: String::new() })
    }

    /// Takes the next token, which is text until the end tag.
    pub(super) fn take_token(mut self, token: &HtmlToken<'_>) -> JsonLdStep {
        match token {
            HtmlToken::Text(text) => {
                self.content.push_str(text);
                JsonLdStep::Open(self)
            }
            HtmlToken::End("script") => JsonLdStep::Ended(self.fault()),
            // The tokenizer does not treat this as a script, so it is not accepted as data.
            HtmlToken::Start { .. } | HtmlToken::End(_) | HtmlToken::Other => {
                JsonLdStep::Ended(Some(fault("it has tags within")))
            }
        }
    }

    fn fault(&self) -> Option<HtmlFault> {
        let content = self.content.as_bytes();
        let opens_tag =
            |pair: &[u8]| pair[0] == b'<' && (pair[1].is_ascii_alphabetic() || b"!/?".contains(&pair[1]));
        if content.windows(2).any(opens_tag) {
            return Some(fault("write < as \\u003c within"));
        }
        if !self.content.trim_start().starts_with(['{', '[']) {
            return Some(fault("it is no JSON object or list"));
        }
        serde_json::from_str::<IgnoredAny>(&self.content).err().map(|_| fault("it is not JSON"))
    }
}

fn fault(detail: &str) -> HtmlFault {
    HtmlFault::new(HtmlFaultKind::Data, detail)
}
