//! The rules for tags and attributes.
//!
//! URLs are searched for in every attribute except those known to contain text, so a new attribute that takes
//! a URL is covered, too. Values come decoded from the tokenizer; leading controls and inner tabs and line
//! breaks are dropped here, as URL parsers do.

use html5ever::tokenizer::Tag;

use super::fault::HtmlFaults;
use super::json_ld::{JsonLdScript, JsonLdStep};
use super::parse::HtmlToken;
use super::{HtmlFault, HtmlFaultKind};

/// Attributes whose value is text, never a URL that is followed.
const TEXT_ATTRIBUTES: [&str; 14] = [
    "abbr",
    "alt",
    "class",
    "content",
    "id",
    "label",
    "name",
    "placeholder",
    "style",
    "summary",
    "title",
    "value",
    "lang",
    "rel",
];
/// Words that begin like event handlers but are not.
const NO_HANDLERS: [&str; 5] = ["once", "one", "online", "only", "onsite"];
/// Attributes that hold several URLs.
const LIST_ATTRIBUTES: [&str; 5] = ["srcset", "imagesrcset", "ping", "archive", "values"];
/// Attributes through which an SVG is an image only, without its scripts.
const IMAGE_ATTRIBUTES: [&str; 5] = ["src", "srcset", "imagesrcset", "background", "poster"];

/// Checks a document token by token.
#[derive(Default)]
pub(super) struct HtmlJudge {
    faults: HtmlFaults,
    /// The open `<script>` of data, until its end.
    data: Option<JsonLdScript>,
}

impl HtmlJudge {
    /// Takes the next token.
    pub(super) fn take_token(&mut self, token: &HtmlToken<'_>) {
        if let Some(data) = self.data.take() {
            match data.take_token(token) {
                JsonLdStep::Open(data) => self.data = Some(data),
                JsonLdStep::Ended(fault) => fault.into_iter().for_each(|fault| self.faults.add(fault)),
            }
        }
        if let HtmlToken::Start { tag, is_foreign } = token {
            if &*tag.name == "script" {
                match JsonLdScript::from_start_tag(tag, *is_foreign) {
                    Some(data) => self.data = Some(data),
                    None => self.faults.add(HtmlFault::new(HtmlFaultKind::Script, "<script>")),
                }
            }
            check_tag(tag, &mut self.faults);
        }
    }

    /// Returns all faults at the end of the document.
    pub(super) fn finish(mut self) -> HtmlFaults {
        if self.data.is_some() {
            self.faults.add(HtmlFault::new(HtmlFaultKind::Data, "it has no end"));
        }
        self.faults
    }
}

/// Adds the faults of one start tag.
fn check_tag(tag: &Tag, faults: &mut HtmlFaults) {
    let element = &*tag.name;
    for attribute in &tag.attrs {
        let (name, value) = (&*attribute.name.local, &*attribute.value);
        if is_handler(name) && !value.is_empty() {
            faults.add(HtmlFault::new(HtmlFaultKind::EventHandler, format!("{name} of <{element}>")));
        } else if name == "srcdoc" {
            faults.add(HtmlFault::new(HtmlFaultKind::EmbeddedDocument, format!("srcdoc of <{element}>")));
        } else if let Some(scheme) = script_in(element, name, value) {
            faults
                .add(HtmlFault::new(HtmlFaultKind::ScriptUrl, format!("{scheme} in {name} of <{element}>")));
        }
    }
    if element == "meta" && is_refresh(tag) {
        let content = tag.attrs.iter().find(|attribute| &*attribute.name.local == "content");
        if let Some(scheme) = content.and_then(|content| scheme(refresh_target(&content.value), true)) {
            faults.add(HtmlFault::new(HtmlFaultKind::ScriptUrl, format!("{scheme} in content of <meta>")));
        }
    }
}

/// Whether a browser could treat this attribute as an event handler: anything that begins with `on`, except a
/// few words that are not events in any browser. A list of handlers would miss those of the next browser.
fn is_handler(name: &str) -> bool {
    name.len() > 2 && name.starts_with("on") && !NO_HANDLERS.contains(&name)
}

fn script_in(element: &str, name: &str, value: &str) -> Option<&'static str> {
    if TEXT_ATTRIBUTES.contains(&name) || name.starts_with("aria-") || name.starts_with("data-") {
        return None;
    }
    let active =
        !IMAGE_ATTRIBUTES.contains(&name) || matches!(element, "iframe" | "embed" | "frame" | "script");
    if LIST_ATTRIBUTES.contains(&name) {
        value.split([' ', '\t', '\n', '\r', '\x0c', ',', ';']).find_map(|url| scheme(url, active))
    } else {
        scheme(value, active)
    }
}

/// The scheme of a URL that can contain a script. `active` means that a document could be shown, not just an
/// image.
fn scheme(url: &str, active: bool) -> Option<&'static str> {
    let url = url.trim_start_matches(|c: char| c <= ' ');
    // Most attributes need no copy.
    if !matches!(url.as_bytes().first(), Some(b'j' | b'J' | b'v' | b'V' | b'd' | b'D')) {
        return None;
    }
    let kept = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).take(40);
    let head: String = kept.map(|c| c.to_ascii_lowercase()).collect();
    if head.starts_with("javascript:") {
        return Some("javascript:");
    }
    if head.starts_with("vbscript:") {
        return Some("vbscript:");
    }
    let media_type = head.strip_prefix("data:")?.trim_start();
    let documents = ["text/html", "application/xhtml", "text/xml", "application/xml"];
    if documents.iter().any(|document| media_type.starts_with(document)) {
        return Some("data:text/html");
    }
    (active && media_type.starts_with("image/svg")).then_some("data:image/svg+xml")
}

fn is_refresh(tag: &Tag) -> bool {
    let mut attributes = tag.attrs.iter();
    attributes.any(|a| &*a.name.local == "http-equiv" && a.value.trim().eq_ignore_ascii_case("refresh"))
}

/// The URL of `5; url='…'`.
fn refresh_target(content: &str) -> &str {
    let after = content.split_once([';', ',']).map_or("", |(_, after)| after).trim_start();
    let named = after.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("url"));
    let url = if named { after[3..].trim_start().trim_start_matches('=').trim_start() } else { after };
    url.trim_start_matches(['"', '\''])
}
