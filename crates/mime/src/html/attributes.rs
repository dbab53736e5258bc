//! Counts the attributes of the tag that is being read, before the tokenizer collects them.
//!
//! html5ever compares each attribute with all earlier ones of its tag, so a single tag of a megabyte would
//! take minutes. This module follows the tokenizer through a tag with the states of the HTML standard and
//! stops it early.
//!
//! It cannot know whether a `<` in a comment or in `<style>` begins a tag. After each piece the caller
//! reports whether the tokenizer produced a token. If that leaves a doubt, counting continues at the next `<`
//! and may count too many.

use super::ATTRIBUTES_MAX;

#[derive(Clone, Copy)]
enum TagScanState {
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
    AfterQuoted,
}

/// The tokenizer's state within a tag, as far as it can be known.
#[derive(Default)]
pub(super) struct AttributeCount {
    state: Option<TagScanState>,
    count: u32,
    certain: bool,
    began_here: bool,
}

impl AttributeCount {
    /// Counts the attributes in the next piece, which begins with its only `<`; false if a tag has too many.
    pub(super) fn count_piece(&mut self, piece: &[u8]) -> bool {
        self.began_here = opens_tag(piece) && (self.state.is_none() || !self.certain);
        if self.began_here {
            self.count = if self.state.is_some() { self.count + 1 } else { 0 };
            self.certain = self.state.is_none();
            self.state = Some(TagScanState::TagName);
        }
        let from = usize::from(self.began_here);
        for &byte in &piece[from..] {
            let Some(state) = self.state else { break };
            self.state = self.step(state, byte);
        }
        self.count <= ATTRIBUTES_MAX
    }

    /// Records whether the tokenizer produced a token while it read the last piece.
    pub(super) fn note_tokens(&mut self, produced: bool) {
        if produced && self.began_here {
            self.certain = false;
        } else if produced {
            self.state = None;
        }
    }

    fn step(&mut self, state: TagScanState, byte: u8) -> Option<TagScanState> {
        let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        Some(match (state, byte) {
            (TagScanState::Quoted(quote), _) if byte == quote => TagScanState::AfterQuoted,
            (TagScanState::Quoted(_), _) => state,
            (_, b'>') => return None,
            (TagScanState::BeforeValue, b'"' | b'\'') => TagScanState::Quoted(byte),
            (TagScanState::BeforeValue, _) if space => state,
            (TagScanState::BeforeValue, _) => TagScanState::Unquoted,
            (TagScanState::Name | TagScanState::AfterName, b'=') => TagScanState::BeforeValue,
            (TagScanState::Name, _) if space => TagScanState::AfterName,
            (TagScanState::AfterName, _) if space => state,
            (TagScanState::Unquoted, b'/') => state,
            (_, b'/') => TagScanState::BeforeName,
            (_, _) if space => TagScanState::BeforeName,
            (TagScanState::BeforeName | TagScanState::AfterName | TagScanState::AfterQuoted, _) => {
                self.count += 1;
                TagScanState::Name
            }
            (TagScanState::TagName | TagScanState::Name | TagScanState::Unquoted, _) => state,
        })
    }
}

fn opens_tag(piece: &[u8]) -> bool {
    match piece {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(tag: &str) -> u32 {
        let mut count = AttributeCount::default();
        count.count_piece(tag.as_bytes());
        count.count
    }

    #[test]
    fn attributes_are_counted_as_the_standard_reads_them() {
        assert_eq!(count("<a>"), 0);
        assert_eq!(count("<a href='x y z' b=c d/e>f g"), 4);
        assert_eq!(count("<a =\"b c d\">"), 3, "an equals sign can begin a name");
        assert_eq!(count("<a b=\"c\"d=\"e\"f>"), 3);
        assert_eq!(count("<a b = c / d = \"> e\" f>"), 3);
    }
}
