//! Counts the attributes of the tag that is being read, before the tokenizer collects them.
//!
//! html5ever compares each attribute with all earlier ones of its tag, so that a single tag of a megabyte would take
//! minutes. This follows the tokenizer through a tag with the states of the HTML standard and stops in time.
//!
//! It cannot know whether a `<` in a comment or in `<style>` begins a tag. The caller tells after each piece whether
//! the tokenizer produced a token meanwhile; where that leaves a doubt, counting goes on from the next `<` and errs to
//! the high side.

use super::ATTRIBUTES_MAX;

#[derive(Clone, Copy)]
enum State {
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
    AfterQuoted,
}

/// Where the tokenizer is within a tag, as far as one can tell.
#[derive(Default)]
pub(super) struct AttributeCount {
    state: Option<State>,
    count: u32,
    certain: bool,
    began_here: bool,
}

impl AttributeCount {
    /// Goes through the next piece, which begins with its only `<`; false if a tag has too many attributes.
    pub(super) fn piece(&mut self, piece: &[u8]) -> bool {
        self.began_here = opens_tag(piece) && (self.state.is_none() || !self.certain);
        if self.began_here {
            self.count = if self.state.is_some() { self.count + 1 } else { 0 };
            self.certain = self.state.is_none();
            self.state = Some(State::TagName);
        }
        let from = usize::from(self.began_here);
        for &byte in &piece[from..] {
            let Some(state) = self.state else { break };
            self.state = self.step(state, byte);
        }
        self.count <= ATTRIBUTES_MAX
    }

    /// Takes note of whether the tokenizer produced a token while it read the last piece.
    pub(super) fn fed(&mut self, produced: bool) {
        if produced && self.began_here {
            self.certain = false;
        } else if produced {
            self.state = None;
        }
    }

    fn step(&mut self, state: State, byte: u8) -> Option<State> {
        let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
        Some(match (state, byte) {
            (State::Quoted(quote), _) if byte == quote => State::AfterQuoted,
            (State::Quoted(_), _) => state,
            (_, b'>') => return None,
            (State::BeforeValue, b'"' | b'\'') => State::Quoted(byte),
            (State::BeforeValue, _) if space => state,
            (State::BeforeValue, _) => State::Unquoted,
            (State::Name | State::AfterName, b'=') => State::BeforeValue,
            (State::Name, _) if space => State::AfterName,
            (State::AfterName, _) if space => state,
            (State::Unquoted, b'/') => state,
            (_, b'/') => State::BeforeName,
            (_, _) if space => State::BeforeName,
            (State::BeforeName | State::AfterName | State::AfterQuoted, _) => {
                self.count += 1;
                State::Name
            }
            (State::TagName | State::Name | State::Unquoted, _) => state,
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
        count.piece(tag.as_bytes());
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
