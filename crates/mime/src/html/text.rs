//! Makes plain text of an html body.
//!
//! html2text lays the text out; this module keeps it away from its weak points. It panics on absurd
//! `colspan`s, takes quadratic time for many `rowspan`s, and multiplies lines by nesting: the bounds below
//! refuse such input, and a remaining panic is caught. So the time is proportional to the input, and the
//! function always returns.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use html2text::config;
use html2text::render::TextDecorator;
use html5ever::tokenizer::Tag;

use super::hidden::{is_padding, remove_hidden};
use super::parse::{HtmlToken, walk_within};

/// The longest html that is converted.
const HTML_BYTES_MAX: usize = 1024 * 1024;
/// The longest text that may result.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Ten tables inside each other are about fifty levels.
const DEPTH_MAX: u32 = 128;
const WIDTH: usize = 78;
/// Stands for a URL that is only known when the mail is composed.
const UNSUBSCRIBE_URL: &str = "%unsubscribe_url%";
const SPAN_MAX: u64 = 1_000;
const ROWSPANS_MAX: u32 = 300;

/// Why no text could be made of an html body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HtmlTextError {
    /// The html, or its text, passes a bound.
    #[error("the html has {0}: make it simpler, or give a text of your own")]
    TooMuch(String),
    /// The layout failed.
    #[error("the html cannot be laid out as text: give a text of your own")]
    Layout,
}

/// Lays html out as text of 78 columns, each link followed by its URL, without hidden elements.
///
/// Lines end in LF, have no trailing space, and there are never two empty ones in a row.
pub fn to_text(html: &str) -> Result<String, HtmlTextError> {
    if html.len() > HTML_BYTES_MAX {
        return Err(HtmlTextError::TooMuch(format!("more than {HTML_BYTES_MAX} bytes")));
    }
    let mut spans = TableSpans::default();
    let count_spans = |token: HtmlToken<'_>| {
        if let HtmlToken::Start { tag, .. } = token {
            spans.add(tag);
        }
    };
    walk_within(html, false, DEPTH_MAX, count_spans).map_err(|fault| HtmlTextError::TooMuch(fault.detail))?;
    spans.check()?;

    let links = LinkMarks::default();
    let urls = links.urls.clone();
    let layout =
        config::with_decorator(links).allow_width_overflow().no_table_borders().link_footnotes(false);
    let laid_out = catch_unwind(AssertUnwindSafe(|| {
        let dom = layout.parse_html(html.as_bytes())?;
        remove_hidden(&dom);
        layout.render_to_string(layout.dom_to_render_tree(&dom)?, WIDTH)
    }));
    let text = laid_out.map_err(|_| HtmlTextError::Layout)?.map_err(|_| HtmlTextError::Layout)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(HtmlTextError::TooMuch(format!("more than {TEXT_BYTES_MAX} bytes of text")));
    }
    Ok(tidy(&text, &urls.borrow()))
}

#[derive(Default)]
struct TableSpans {
    rowspans: u32,
    widest: u64,
}

impl TableSpans {
    fn add(&mut self, tag: &Tag) {
        for attribute in &tag.attrs {
            let name = &*attribute.name.local;
            if name == "rowspan" || name == "colspan" {
                let value = attribute.value.trim().parse().unwrap_or(1);
                self.widest = self.widest.max(value);
                self.rowspans += u32::from(name == "rowspan" && value > 1);
            }
        }
    }

    fn check(&self) -> Result<(), HtmlTextError> {
        if self.widest > SPAN_MAX {
            return Err(HtmlTextError::TooMuch(format!("a cell over more than {SPAN_MAX} columns or rows")));
        }
        if self.rowspans > ROWSPANS_MAX {
            return Err(HtmlTextError::TooMuch(format!("more than {ROWSPANS_MAX} cells with a rowspan")));
        }
        Ok(())
    }
}

/// Drops padding and repeated empty lines, and inserts the URLs after their links, unless the text of the
/// link is the URL.
fn tidy(laid_out: &str, urls: &[String]) -> String {
    let mut text = String::with_capacity(laid_out.len());
    let mut empty = true;
    for line in laid_out.lines().map(|line| line.trim_end_matches(is_padding)) {
        if line.is_empty() && empty {
            continue;
        }
        empty = line.is_empty();
        for c in line.chars() {
            match url_of(c, urls) {
                Some(url) if text.ends_with(url) => {}
                Some(url) => text.extend([" (", url, ")"]),
                None => text.push(c),
            }
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The first of a range of private characters that represent the URLs of links during layout, so that no URL
/// is broken into lines.
const MARK: u32 = 0xf_0000;
const URLS_MAX: usize = 0xfffd;

fn url_of(c: char, urls: &[String]) -> Option<&str> {
    let at = u32::from(c).checked_sub(MARK)?;
    urls.get(at as usize).map(String::as_str)
}

/// A decorator that writes a link as its text and a mark for its URL, and adds no other decoration.
#[derive(Default)]
struct LinkMarks {
    /// The marks of the open links; `None` for a link whose URL is not shown.
    open: Vec<Option<char>>,
    urls: Rc<RefCell<Vec<String>>>,
}

impl TextDecorator for LinkMarks {
    type Annotation = ();

    fn decorate_link_start(&mut self, url: &str) -> (String, ()) {
        let url = url.trim();
        let shown = url.strip_prefix("mailto:").unwrap_or(url);
        let mut urls = self.urls.borrow_mut();
        let is_url = url.starts_with("http:") || url.starts_with("https:") || url == UNSUBSCRIBE_URL;
        let is_shown = shown != url || is_url;
        let mark =
            if is_shown && urls.len() < URLS_MAX { char::from_u32(MARK + urls.len() as u32) } else { None };
        if mark.is_some() {
            urls.push(shown.to_owned());
        }
        self.open.push(mark);
        (String::new(), ())
    }

    fn decorate_link_end(&mut self) -> String {
        self.open.pop().flatten().map_or(String::new(), String::from)
    }

    fn decorate_em_start(&self) -> (String, ()) {
        Default::default()
    }

    fn decorate_em_end(&self) -> String {
        String::new()
    }

    fn decorate_strong_start(&self) -> (String, ()) {
        Default::default()
    }

    fn decorate_strong_end(&self) -> String {
        String::new()
    }

    fn decorate_strikeout_start(&self) -> (String, ()) {
        Default::default()
    }

    fn decorate_strikeout_end(&self) -> String {
        String::new()
    }

    fn decorate_code_start(&self) -> (String, ()) {
        Default::default()
    }

    fn decorate_code_end(&self) -> String {
        String::new()
    }

    fn decorate_preformat_first(&self) {}

    fn decorate_preformat_cont(&self) {}

    fn decorate_image(&mut self, _: &str, title: &str) -> (String, ()) {
        (title.to_owned(), ())
    }

    fn header_prefix(&self, _: usize) -> String {
        String::new()
    }

    fn quote_prefix(&self) -> String {
        "> ".to_owned()
    }

    fn unordered_item_prefix(&self) -> String {
        "* ".to_owned()
    }

    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }

    fn make_subblock_decorator(&self) -> Self {
        Self { open: Vec::new(), urls: self.urls.clone() }
    }
}
