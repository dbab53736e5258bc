//! Divides the text between tags, so that the engine's fuel counts it.

use minijinja::machinery::Span;

use super::{TemplateWalk, refused};
use crate::template::TemplateFault;

/// The length of text between two instructions.
const TEXT_BYTES: usize = 256;
/// White space cannot be divided, so its length is limited.
const SPACE_BYTES_MAX: usize = 2 * 1024;

impl<'s> TemplateWalk<'s> {
    /// Divides long text where a tag is possible: not beside white space, which a `-` of a tag may trim, and
    /// not beside characters that would form another token.
    pub(super) fn text(&mut self, text: &'s str, span: Span) -> Result<(), TemplateFault> {
        if text.len() <= TEXT_BYTES {
            return Ok(());
        }
        let offset = text.as_ptr().addr() - self.source.as_ptr().addr();
        let cut = if in_raw_block(&self.source[..offset]) { "{% endraw %}{% raw %}" } else { "{##}" };
        let plain = |c: char| !c.is_whitespace() && !"{}%#-+".contains(c);
        let (mut last, mut previous) = (0, '{');
        for (at, c) in text.char_indices() {
            if at - last >= TEXT_BYTES && plain(previous) && plain(c) {
                self.insert(offset + at, cut);
                last = at;
            }
            previous = c;
            if at - last > SPACE_BYTES_MAX {
                let message = format!(
                    "there are more than {SPACE_BYTES_MAX} bytes of white space or signs: remove some"
                );
                return Err(refused(span, message));
            }
        }
        Ok(())
    }
}

/// Whether the text is inside `{% raw %}`, where a comment would be text.
fn in_raw_block(before: &str) -> bool {
    let before = before.trim_end();
    let tag = before.strip_suffix("%}").and_then(|before| before.rfind("{%").map(|at| &before[at + 2..]));
    tag.is_some_and(|tag| tag.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+') == "raw")
}
