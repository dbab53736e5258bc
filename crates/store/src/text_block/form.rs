//! The bytes of a text block, and finding messages in them.
//!
//! Each message has its texts in lower case, each between two separators, and an end. So the position of a message
//! in the block is the number of ends before it, and a whole text, such as `key=value`, is found with the
//! separators around it.

use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::{BLOCK_BYTES_MAX, BLOCK_MESSAGES};
use crate::{
    error::StoreError,
    record::{MessageFilter, MetadataField},
};

/// Stands in place of texts that do not fit: this message is a candidate of every search.
const UNREAD: u8 = 0x1d;
/// Ends a message.
const MESSAGE_END: u8 = 0x1e;
/// Separates the texts of a message.
const TEXT_END: u8 = 0x1f;
/// The most bytes of text of one message.
const MESSAGE_BYTES_MAX: usize = 4_096;
/// The most fields of a message's metadata that are read.
const METADATA_FIELDS_MAX: usize = 64;
/// A level that is fast and yet knows repeated domains and subjects.
const LEVEL: i32 = 3;
/// The most bytes of an opened block: ends and marks stay when there is no more room for texts.
const OPENED_BYTES_MAX: usize = BLOCK_BYTES_MAX + 64 * BLOCK_MESSAGES;

/// A text as blocks have it: in lower case, without the separators.
fn folded(text: &str) -> String {
    let plain = |c: char| if ('\u{1d}'..='\u{1f}').contains(&c) { ' ' } else { c };
    text.to_lowercase().chars().map(plain).collect()
}

/// A block that is being filled.
#[derive(Default)]
pub(crate) struct TextBlockWriter {
    text: Vec<u8>,
    messages: usize,
}

/// The texts of one message.
#[derive(Debug, Default)]
pub(crate) struct MessageTexts<'a> {
    /// Its subject; `None` if nobody may see it.
    pub subject: Option<&'a str>,
    /// Its metadata, a JSON object.
    pub metadata: Option<&'a str>,
    /// The addresses of its recipients.
    pub addresses: &'a [String],
    /// Whether it has more addresses.
    pub has_more: bool,
}

impl TextBlockWriter {
    /// Adds the next message, in the order of ids.
    pub fn push(&mut self, message: &MessageTexts<'_>) {
        self.messages += 1;
        let start = self.text.len();
        let is_whole = !message.has_more && self.push_texts(message, start);
        if !is_whole {
            self.text.truncate(start);
            self.text.push(UNREAD);
        }
        self.text.push(MESSAGE_END);
    }

    /// Adds its texts; returns whether there was room for all.
    fn push_texts(&mut self, message: &MessageTexts<'_>, start: usize) -> bool {
        self.text.push(TEXT_END);
        let mut is_whole = message.subject.is_none_or(|subject| self.push_text(subject, start));
        if let Some(metadata) = message.metadata {
            let fields: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(metadata).unwrap_or_default();
            is_whole &= fields.len() <= METADATA_FIELDS_MAX;
            for (key, value) in fields.iter().take(METADATA_FIELDS_MAX) {
                if let Some(value) = MetadataField::text_of(value) {
                    is_whole &= self.push_text(&format!("{key}={value}"), start);
                }
            }
        }
        message
            .addresses
            .iter()
            .fold(is_whole, |is_whole, address| is_whole && self.push_text(address, start))
    }

    fn push_text(&mut self, text: &str, start: usize) -> bool {
        let text = folded(text);
        let has_room = self.text.len() + text.len() - start < MESSAGE_BYTES_MAX
            && self.text.len() + text.len() < BLOCK_BYTES_MAX;
        if has_room {
            self.text.extend_from_slice(text.as_bytes());
            self.text.push(TEXT_END);
        }
        has_room
    }

    /// The number of messages, and the block's bytes.
    pub fn finish(self) -> Result<(usize, Vec<u8>), StoreError> {
        let packed = zstd::bulk::compress(&self.text, LEVEL)
            .map_err(|error| StoreError::Unexpected(format!("a text block cannot be compressed: {error}")))?;
        Ok((self.messages, packed))
    }
}

/// What a message must contain to match a filter: all of these texts. More may match a needle than the filter.
#[derive(Debug)]
pub(crate) struct SearchNeedles {
    finders: Vec<memmem::Finder<'static>>,
}

impl SearchNeedles {
    /// The needles of a filter, if it looks for texts that blocks have.
    pub fn of(filter: &MessageFilter) -> Option<Self> {
        let end = char::from(TEXT_END);
        let plain = [&filter.text, &filter.subject].into_iter().flatten().map(|text| folded(text));
        let domain = filter.domain.as_deref().map(|domain| format!("@{}{end}", folded(domain)));
        let field = filter.metadata.as_ref();
        let field =
            field.map(|field| format!("{end}{}{end}", folded(&format!("{}={}", field.key, field.value))));
        let mut needles: Vec<String> = plain.chain(domain).chain(field).collect();
        // The longest is the rarest, as far as one can know.
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.len()));
        let finders: Vec<memmem::Finder<'static>> =
            needles.iter().map(|needle| memmem::Finder::new(needle.as_bytes()).into_owned()).collect();
        (!finders.is_empty()).then_some(Self { finders })
    }

    /// The positions of the messages in a block that may match, in ascending order, and the block's size.
    pub fn candidates(&self, packed: &[u8]) -> Result<(Vec<usize>, usize), StoreError> {
        let text = zstd::bulk::decompress(packed, OPENED_BYTES_MAX)
            .map_err(|error| StoreError::Unexpected(format!("a text block cannot be opened: {error}")))?;
        Ok((self.positions(&text), text.len()))
    }

    fn positions(&self, text: &[u8]) -> Vec<usize> {
        let Some((first, others)) = self.finders.split_first() else { return Vec::new() };
        let (mut found, mut ends_before, mut at) = (Vec::new(), 0, 0);
        let mut hit = first.find(text);
        let mut unread = memchr(UNREAD, text);
        while let Some(place) = hit.into_iter().chain(unread).min() {
            ends_before += memchr_iter(MESSAGE_END, &text[at..place]).count();
            let start = memrchr(MESSAGE_END, &text[..place]).map_or(0, |end| end + 1);
            let end = memchr(MESSAGE_END, &text[place..]).map_or(text.len(), |end| place + end);
            let message = &text[start..end];
            if message.contains(&UNREAD) || others.iter().all(|needle| needle.find(message).is_some()) {
                found.push(ends_before);
            }
            at = end;
            if hit.is_some_and(|hit| hit < end) {
                hit = first.find(&text[end..]).map(|next| end + next);
            }
            if unread.is_some_and(|unread| unread < end) {
                unread = memchr(UNREAD, &text[end..]).map(|next| end + next);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(messages: &[(&str, &str, &[&str])]) -> Vec<u8> {
        let mut writer = TextBlockWriter::default();
        for (subject, metadata, addresses) in messages {
            let addresses: Vec<String> = addresses.iter().map(|one| (*one).to_owned()).collect();
            let metadata = (!metadata.is_empty()).then_some(*metadata);
            writer.push(&MessageTexts {
                subject: Some(subject),
                metadata,
                addresses: &addresses,
                has_more: false,
            });
        }
        writer.finish().unwrap().1
    }

    fn text(text: &str) -> MessageFilter {
        MessageFilter { text: Some(text.to_owned()), ..MessageFilter::default() }
    }

    fn found(block: &[u8], filter: &MessageFilter) -> Vec<usize> {
        SearchNeedles::of(filter).unwrap().candidates(block).unwrap().0
    }

    #[test]
    fn messages_are_found_by_all_their_texts() {
        let block = block(&[
            ("Your ÄRGER 17", r#"{"order":"A-7","n":3,"deep":{"x":1}}"#, &["ada@example.org"]),
            ("", "", &["bob@mail.example", "Ärger@example.org"]),
            ("Order a-7", "", &["eve@sub.mail.example"]),
        ]);
        assert_eq!(found(&block, &text("ärger")), [0, 1]);
        assert_eq!(found(&block, &text("A-7")), [0, 2]);
        assert_eq!(found(&block, &text("nobody")), [0_usize; 0]);
        let domain = MessageFilter { domain: Some("mail.example".to_owned()), ..MessageFilter::default() };
        assert_eq!(found(&block, &domain), [1]);
        let field = |key: &str, value: &str| MessageFilter {
            metadata: Some(MetadataField { key: key.to_owned(), value: value.to_owned() }),
            ..MessageFilter::default()
        };
        assert_eq!(found(&block, &field("order", "A-7")), [0]);
        assert_eq!(found(&block, &field("n", "3")), [0]);
        assert_eq!(found(&block, &field("order", "A")), [0_usize; 0], "a part of a value is not the value");
        assert_eq!(found(&block, &MessageFilter { text: text("17").text, ..field("n", "3") }), [0]);
        assert_eq!(found(&block, &MessageFilter { text: text("18").text, ..field("n", "3") }), [0_usize; 0]);
    }

    #[test]
    fn a_message_without_room_is_always_a_candidate() {
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        let block = block(&[("a", "", &[]), (&long, "", &[]), ("b", "", &[]), ("zz", "", &[])]);
        assert_eq!(found(&block, &text("zz")), [1, 3]);
        assert_eq!(found(&block, &text("b")), [1, 2]);
    }

    #[test]
    fn separators_in_texts_shift_nothing() {
        let block = block(&[("a\u{1e}\u{1d}\u{1f}b", "", &[]), ("c", "", &[])]);
        assert_eq!(found(&block, &text("c")), [1]);
        assert_eq!(found(&block, &text("a\u{1e}")), [0]);
    }

    #[test]
    fn a_full_block_stays_within_its_bounds() {
        let mut writer = TextBlockWriter::default();
        let subject = "ß".repeat(1_900);
        for _ in 0..4 * BLOCK_MESSAGES {
            writer.push(&MessageTexts { subject: Some(&subject), ..MessageTexts::default() });
        }
        assert!(writer.text.len() < OPENED_BYTES_MAX, "{}", writer.text.len());
        let (messages, packed) = writer.finish().unwrap();
        let needles = SearchNeedles::of(&text("nothing")).unwrap();
        let candidates = needles.candidates(&packed).unwrap().0;
        assert!(messages == 4 * BLOCK_MESSAGES && candidates.len() > 3 * BLOCK_MESSAGES);
    }

    #[test]
    fn what_is_no_block_is_an_error() {
        assert!(SearchNeedles::of(&text("a")).unwrap().candidates(b"no frame").is_err());
    }
}
