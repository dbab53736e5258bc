//! Reads html as a browser does and passes every tag and text to a visitor.
//!
//! Tags are taken from the tokenizer, with the tree builder behind it to switch it into and out of raw text
//! and foreign content. So a tag is seen even if the tree has no position for it (a second `<body onload>`, a
//! stray `<frame>`): another program might have one.
//!
//! The input goes in piece by piece, each up to the next `<`, and reading stops after the piece that passes a
//! bound.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};

use super::attributes::AttributeCount;
use super::outline::{DocumentOutline, OutlineNode};
use super::{ATTRIBUTES_MAX, DEPTH_MAX, HtmlFault, HtmlFaultKind};

/// A token of html.
pub(super) enum HtmlToken<'a> {
    /// A start tag.
    Start {
        /// The tag, its attributes decoded.
        tag: &'a Tag,
        /// Whether it is in SVG or MathML, where other rules apply to its content.
        is_foreign: bool,
    },
    /// Text, or a piece of it.
    Text(&'a str),
    /// An end tag of this name.
    End(&'a str),
    /// Anything else: comments, a doctype, NUL.
    Other,
}

/// Calls `visit` for each token, until the end or the bound that was passed.
///
/// With `scripting`, the inside of `<noscript>` is text.
pub(super) fn walk(html: &str, scripting: bool, visit: impl FnMut(HtmlToken<'_>)) -> Result<(), HtmlFault> {
    walk_within(html, scripting, DEPTH_MAX, visit)
}

/// As [`walk`], with another maximum depth.
pub(super) fn walk_within(
    html: &str,
    scripting: bool,
    depth_max: u32,
    visit: impl FnMut(HtmlToken<'_>),
) -> Result<(), HtmlFault> {
    let options = TreeBuilderOpts { scripting_enabled: scripting, drop_doctype: true, ..Default::default() };
    let builder = TreeBuilder::new(DocumentOutline::new(depth_max), options);
    let watch = TokenWatcher { builder, visit: RefCell::new(visit), produced: Cell::new(false) };
    let tokenizer = Tokenizer::new(watch, TokenizerOpts::default());
    let mut attributes = AttributeCount::default();
    let input = BufferQueue::default();
    for piece in pieces(html) {
        if !attributes.count_piece(piece.as_bytes()) {
            let detail = format!("more than {ATTRIBUTES_MAX}");
            return Err(HtmlFault::new(HtmlFaultKind::TooManyAttributes, detail));
        }
        input.push_back(StrTendril::from_slice(piece));
        // The tokenizer pauses for a script or an encoding; both are ignored.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        attributes.note_tokens(tokenizer.sink.produced.take());
        if let Some(fault) = tokenizer.sink.builder.sink.passed() {
            return Err(fault);
        }
    }
    tokenizer.end();
    tokenizer.sink.builder.sink.passed().map_or(Ok(()), Err)
}

/// The html cut before every `<`.
fn pieces(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = html;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('<').map_or(rest.len(), |at| first + at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

struct TokenWatcher<F> {
    builder: TreeBuilder<Rc<OutlineNode>, DocumentOutline>,
    visit: RefCell<F>,
    /// Whether a token was produced since this was last taken.
    produced: Cell<bool>,
}

impl<F: FnMut(HtmlToken<'_>)> TokenSink for TokenWatcher<F> {
    type Handle = Rc<OutlineNode>;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Rc<OutlineNode>> {
        let shown = match &token {
            Token::ParseError(_) => return TokenSinkResult::Continue,
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let is_foreign = self.builder.adjusted_current_node_present_but_not_in_html_namespace();
                HtmlToken::Start { tag, is_foreign }
            }
            Token::TagToken(tag) => HtmlToken::End(&tag.name),
            Token::CharacterTokens(text) => HtmlToken::Text(text),
            Token::EOFToken => return self.builder.process_token(token, line),
            _ => HtmlToken::Other,
        };
        (self.visit.borrow_mut())(shown);
        self.produced.set(true);
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}
