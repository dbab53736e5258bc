//! Writes the rules of `<style>` elements into the elements that they select, because some mail programs read
//! only `style` attributes.
//!
//! css-inline does the work; this module keeps hostile style sheets away from it. Its time grows with
//! elements × selectors, times the depth of the document for a selector that looks upwards, and times its
//! width for one that looks at siblings; and with elements × declarations × names of properties. So the style
//! sheet is read once before, these products are computed, and what exceeds [`STEPS_MAX`] is refused. Nothing
//! is fetched: links to style sheets stay as they are.
//!
//! Rules that cannot be written into an element (`@media`, `:hover`) stay in the document's head.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use css_inline::{CSSInliner, InlineError};
use cssparser::{BasicParseErrorKind, ParseErrorKind, Parser, Token};

use super::parse::{HtmlToken, walk_within};
use super::prefilter::contains_ignoring_case;

/// The longest html whose styles are inlined.
const HTML_BYTES_MAX: usize = 1024 * 1024;
/// The longest html that may result.
const OUTPUT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The longest style sheet, all `<style>` elements together.
const STYLES_BYTES_MAX: usize = 256 * 1024;
const DEPTH_MAX: u32 = 128;
/// How deep blocks and parentheses of a style sheet may be nested.
const NESTING_MAX: u8 = 12;
/// The most steps of either product: about a second of a slow processor.
const STEPS_MAX: u64 = 400_000_000;

/// Why the styles of an html body were not inlined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InlineCssError {
    /// The html, its styles, or the result exceeds a bound.
    #[error("{0}: make the style sheet or the html simpler")]
    TooMuch(String),
    /// The inliner failed.
    #[error("the style sheet cannot be inlined: make it simpler")]
    Failed,
}

/// Writes the rules of an html body's `<style>` elements into the elements that they select.
pub fn inline_css(html: &str) -> Result<Cow<'_, str>, InlineCssError> {
    if !contains_ignoring_case(html, b"<style") {
        return Ok(Cow::Borrowed(html));
    }
    if html.len() > HTML_BYTES_MAX {
        return Err(too_much(format!("the html has more than {HTML_BYTES_MAX} bytes")));
    }
    let outline = read_outline(html)?;
    if outline.styles.len() > STYLES_BYTES_MAX {
        return Err(too_much(format!("the style sheet has more than {STYLES_BYTES_MAX} bytes")));
    }
    check_steps(&outline)?;
    let inliner = CSSInliner::options()
        .load_remote_stylesheets(false)
        .keep_link_tags(true)
        .keep_at_rules(true)
        .remove_inlined_selectors(true)
        .build();
    let inlined = catch_unwind(AssertUnwindSafe(|| {
        let mut output = InlinedHtml(Vec::with_capacity(2 * html.len()));
        inliner.inline_to(html, &mut output).map(|()| output.0)
    }));
    match inlined {
        Ok(Ok(bytes)) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| InlineCssError::Failed),
        Ok(Err(InlineError::IO(_))) => {
            Err(too_much(format!("the html with its styles inlined has more than {OUTPUT_BYTES_MAX} bytes")))
        }
        Ok(Err(_)) | Err(_) => Err(InlineCssError::Failed),
    }
}

fn too_much(detail: String) -> InlineCssError {
    InlineCssError::TooMuch(detail)
}

/// What the time to inline depends on, in the html.
#[derive(Default)]
struct StyledOutline {
    styles: String,
    elements: u64,
    /// The greatest depth.
    depth: u64,
}

/// Reads the document as the inliner does: with scripting, so that both see the same `<style>` elements.
fn read_outline(html: &str) -> Result<StyledOutline, InlineCssError> {
    let mut outline = StyledOutline::default();
    let (mut depth, mut is_style) = (0_u64, false);
    walk_within(html, true, DEPTH_MAX, |token| match token {
        HtmlToken::Start { tag, .. } => {
            outline.elements += 1;
            depth += 1;
            // End tags may be missing, so this may count too much, but never more than there can be.
            outline.depth = outline.depth.max(depth.min(DEPTH_MAX.into()));
            is_style |= &*tag.name == "style";
        }
        HtmlToken::Text(text) if is_style => outline.styles.push_str(text),
        HtmlToken::End(name) => {
            depth = depth.saturating_sub(1);
            if name == "style" && is_style {
                is_style = false;
                outline.styles.push('\n');
            }
        }
        HtmlToken::Text(_) | HtmlToken::Other => {}
    })
    .map_err(|fault| too_much(format!("the html has {}", fault.detail)))?;
    Ok(outline)
}

/// Refuses styles that would take too long to match or to merge.
fn check_steps(outline: &StyledOutline) -> Result<(), InlineCssError> {
    let mut sheet =
        StyleMeasure { depth: outline.depth, elements: outline.elements, ..StyleMeasure::default() };
    let mut parser = Parser::new(&outline.styles);
    parser.set_nested_block_limit(NESTING_MAX);
    measure(&mut parser, &mut sheet, &mut StyleSegment::default())?;
    let names = sheet.names.len() as u64;
    let merging = outline.elements.saturating_mul(sheet.declarations).saturating_mul(names);
    if outline.elements.saturating_mul(sheet.matching) > STEPS_MAX || merging > STEPS_MAX {
        let message = format!(
            "{} elements and a style sheet of {} rules and {} declarations take too long to match",
            outline.elements, sheet.rules, sheet.declarations
        );
        return Err(too_much(message));
    }
    Ok(())
}

/// What the time to inline depends on, in the style sheet.
#[derive(Default)]
struct StyleMeasure {
    depth: u64,
    elements: u64,
    rules: u64,
    /// The steps to match all selectors with one element.
    matching: u64,
    declarations: u64,
    /// The names of properties.
    names: HashSet<String>,
}

/// The tokens since the last rule or declaration: a selector, or a declaration.
#[derive(Default)]
struct StyleSegment {
    tokens: u64,
    looks_up: bool,
    looks_aside: bool,
    name: Option<String>,
}

impl StyleMeasure {
    fn end_selector(&mut self, segment: StyleSegment) {
        let mut steps = 1;
        if segment.looks_up {
            steps += self.depth;
        }
        if segment.looks_aside {
            steps += self.elements;
        }
        self.rules += 1;
        self.matching = self.matching.saturating_add(segment.tokens.saturating_mul(steps));
    }

    fn end_declaration(&mut self, segment: StyleSegment) {
        self.declarations += u64::from(segment.tokens > 0);
        self.names.extend(segment.name);
    }
}

/// Measures the tokens of a block, with those of all blocks in it. `segment` is what they continue.
fn measure(
    parser: &mut Parser<'_>,
    sheet: &mut StyleMeasure,
    segment: &mut StyleSegment,
) -> Result<(), InlineCssError> {
    loop {
        let Ok(token) = parser.next_including_whitespace() else { return Ok(()) };
        match token {
            Token::WhiteSpace(_) => segment.looks_up |= segment.tokens > 0,
            Token::Semicolon => sheet.end_declaration(std::mem::take(segment)),
            Token::CurlyBracketBlock => {
                sheet.end_selector(std::mem::take(segment));
                let mut inner = StyleSegment::default();
                measure_nested(parser, sheet, &mut inner)?;
                sheet.end_declaration(inner);
            }
            Token::Function(name) => {
                let is_nth = name.len() >= 4 && name.as_bytes()[..4].eq_ignore_ascii_case(b"nth-");
                segment.looks_aside |= is_nth || name.eq_ignore_ascii_case("has");
                segment.tokens += 1;
                measure_nested(parser, sheet, segment)?;
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => {
                segment.tokens += 1;
                measure_nested(parser, sheet, segment)?;
            }
            Token::Ident(name) if segment.tokens == 0 => {
                segment.name = Some(name.to_ascii_lowercase());
                segment.tokens = 1;
            }
            other => {
                segment.looks_aside |= matches!(other, Token::Delim('~'));
                segment.tokens += 1;
            }
        }
    }
}

fn measure_nested(
    parser: &mut Parser<'_>,
    sheet: &mut StyleMeasure,
    segment: &mut StyleSegment,
) -> Result<(), InlineCssError> {
    let mut refused = None;
    let parsed = parser.parse_nested_block(|parser| {
        refused = measure(parser, sheet, segment).err();
        Ok::<(), cssparser::ParseError<()>>(())
    });
    match (refused, parsed) {
        (Some(refused), _) => Err(refused),
        (None, Err(error))
            if error.kind == ParseErrorKind::Basic(BasicParseErrorKind::TooManyNestedBlocks) =>
        {
            Err(too_much(format!("the style sheet is nested deeper than {NESTING_MAX} levels")))
        }
        (None, _) => Ok(()),
    }
}

/// Html that fails to grow beyond its maximum.
struct InlinedHtml(Vec<u8>);

impl io::Write for InlinedHtml {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other("the output is full"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inlined(html: &str) -> String {
        inline_css(html).unwrap().into_owned()
    }

    fn page(css: &str, body: &str) -> String {
        format!("<html><head><style>{css}</style></head><body>{body}</body></html>")
    }

    #[test]
    fn rules_go_into_the_elements_that_they_select_and_the_rest_stays() {
        let css = "p{color:red;margin:0} .a{color:blue} p.a:hover{color:green} @media (max-width:600px){p{margin:9px}}";
        let html =
            inlined(&page(css, "<p class=\"a\" style=\"padding:1px\">Hi %unsubscribe_url%</p><p>Bye</p>"));
        assert!(html.contains("color: blue") && html.contains("padding: 1px"), "{html}");
        assert!(html.contains("<p style=\"color: red;margin: 0;\">Bye</p>"), "{html}");
        assert!(
            html.contains("@media (max-width:600px){p{margin:9px}}") && html.contains("p.a:hover"),
            "{html}"
        );
        assert!(html.contains("Hi %unsubscribe_url%"), "{html}");
    }

    #[test]
    fn html_without_styles_stays_as_it_is_and_nothing_is_fetched() {
        for html in ["<p>Hi", "Hi & bye", "<link rel=stylesheet href=\"http://127.0.0.1:1/x.css\"><p>Hi</p>"]
        {
            assert!(matches!(inline_css(html), Ok(Cow::Borrowed(same)) if same == html), "{html}");
        }
        let link = "<link rel=\"stylesheet\" href=\"file:///etc/passwd\">";
        let html = inlined(&format!("{link}<style>p{{color:red}}</style><p>Hi</p>"));
        assert!(html.contains(link) && html.contains("<p style=\"color: red;\">"), "{html}");
    }

    #[test]
    fn what_outlook_reads_in_comments_stays() {
        let mso = "<!--[if mso]><table><tr><td><![endif]-->";
        let html = inlined(&page("p{color:red}", &format!("{mso}<p>Hi</p>")));
        assert!(html.contains(mso), "{html}");
    }

    #[test]
    fn a_broken_style_sheet_is_no_error() {
        for css in [
            "p{",
            "}}}",
            "p{color",
            "@import url(x",
            "/*",
            "p{color:\"red",
            "{}{}",
            ":not(",
            "p:not(.a{color:red}",
        ] {
            let html = inlined(&page(css, "<p>Hi</p>"));
            assert!(html.contains("Hi</p>"), "{css}: {html}");
        }
    }

    #[test]
    fn hostile_styles_are_refused_before_they_cost_anything() {
        let many = |unit: &str, times: usize| unit.repeat(times);
        let wide = many("<p class=a><b>x</b></p>", 5_000);
        let deep = many("<div class=a>", 120);
        for (css, body) in [
            (many("p{color:red}", 30_000), wide.clone()),
            (many("p ~ p ~ p ~ p ~ p{color:red}", 50), wide.clone()),
            (many("p:nth-child(2n+1) b{color:red}", 100), wide.clone()),
            (many(".a .a .a .a .a .a .a .a .a b{color:red}", 3_000), deep.clone() + &wide),
            ((0..3_000).map(|n| format!("p{{--x{n}:1}}")).collect(), wide.clone()),
            (many(":not(", 50) + &many(")", 50) + "{color:red}", "<p>".to_owned()),
            (many("@layer a{", 50), "<p>".to_owned()),
            (many("@media x{/*}*/", 50), "<p>".to_owned()),
            (many("x", 300_000), "<p>".to_owned()),
            (format!("p{{background:{}}}", many("x", 3_000)), wide.clone()),
        ] {
            let (begin, refused) = (std::time::Instant::now(), inline_css(&page(&css, &body)).unwrap_err());
            assert!(matches!(refused, InlineCssError::TooMuch(_)), "{css:.60}: {refused}");
            assert!(begin.elapsed().as_secs() < 20, "{css:.60}: {:?}", begin.elapsed());
        }
    }

    #[test]
    fn a_large_newsletter_passes() {
        let css: String =
            (0..300).map(|n| format!("td.c{n} p, .c{n} > a{{color:#{n:06};padding:{n}px}}")).collect();
        let row: String =
            (0..400).map(|n| format!("<tr><td class=c{n}><p>x</p><a href=x>y</a></td></tr>")).collect();
        let html = inlined(&page(&css, &format!("<table>{row}</table>")));
        assert!(html.contains("<p style=\"color: #000007;padding: 7px;\">"), "{html:.3000}");
    }
}
