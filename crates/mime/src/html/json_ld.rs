//! JSON-LD: `<script type="application/ld+json">`, which Gmail and Outlook read for orders, flights and buttons.
//!
//! Browsers run no script of a type they do not know, so it is inert where it is read as the standard says. Not every
//! reader of mail does, so more is asked for: this type to the letter and given once, in html and not in SVG, no
//! attribute that fetches anything, an end tag, and content that is JSON and nothing that a simpler parser could take for
//! a tag or a comment. What looks like more than that is refused.

use html5ever::tokenizer::Tag;
use serde::de::IgnoredAny;

use super::parse::HtmlToken;
use super::{FaultKind, HtmlFault};

/// The type of data that is let through, whatever its case.
const JSON_LD: &str = "application/ld+json";
/// Attributes that only name an element.
const NAMING_ATTRIBUTES: [&str; 2] = ["class", "id"];

/// A `<script>` of data that has begun, and what it has said so far.
pub(super) struct DataScript {
    content: String,
}

/// How it goes on after a token.
pub(super) enum DataStep {
    /// It has not ended yet.
    Goes(DataScript),
    /// It has ended, well or not.
    Ends(Option<HtmlFault>),
}

impl DataScript {
    /// The data that begins with this start tag; none if it could be a script to anybody.
    pub(super) fn of(tag: &Tag, is_foreign: bool) -> Option<Self> {
        let mut is_data = false;
        for attribute in &tag.attrs {
            let name = &*attribute.name.local;
            if name == "type" {
                is_data = attribute.value.eq_ignore_ascii_case(JSON_LD);
            } else if !NAMING_ATTRIBUTES.contains(&name) && !name.starts_with("data-") {
                return None;
            }
        }
        // Of two types this tokenizer keeps the first; another reader may keep the last.
        let is_plain = !is_foreign && !tag.self_closing && !tag.had_duplicate_attributes;
        (is_data && is_plain).then(|| Self { content: String::new() })
    }

    /// Takes the next token: text, until the end tag.
    pub(super) fn see(mut self, token: &HtmlToken<'_>) -> DataStep {
        match token {
            HtmlToken::Text(text) => {
                self.content.push_str(text);
                DataStep::Goes(self)
            }
            HtmlToken::End("script") => DataStep::Ends(self.fault()),
            // The tokenizer did not take it for a script: neither may we.
            HtmlToken::Start { .. } | HtmlToken::End(_) | HtmlToken::Other => {
                DataStep::Ends(Some(fault("it has tags within")))
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
    HtmlFault::new(FaultKind::Data, detail)
}
