//! Finds addresses in running text.
//!
//! It is lenient: quoted local parts, `=?utf-8?B?…?=` and UTF-8 are accepted unchanged. A result has a local
//! part and a domain and no white space outside quotes. The domain is in lower case and as A-labels, because
//! addresses are compared in that form.

use postway_domain::address::domain_to_ascii;

use super::bytes::trim;

/// The longest address (RFC 5321, 4.5.3.1.3).
const ADDRESS_OCTETS_MAX: usize = 320;

/// An address in a text, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundAddress {
    pub(super) address: String,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// The first address in the text.
pub(super) fn first(text: &[u8]) -> Option<String> {
    next(text, 0).map(|found| found.address)
}

/// The address of a line that contains nothing else, with or without angle brackets.
pub(super) fn sole(line: &[u8]) -> Option<String> {
    let line = trim(line);
    let line = line.strip_suffix(b":").unwrap_or(line);
    let found = next(line, 0)?;
    let before = trim(&line[..found.begin]);
    let after = trim(&line[found.end..]);
    let opened = matches!(
        before,
        b"" | b"<" | b"[" | b"(" | b"'" | b"*" | b"\xe2\x80\xa2" | b"-" | b">>>" | b"* <" | b"\""
    );
    let closed = matches!(after, b"" | b">" | b"]" | b")" | b"'" | b"." | b"," | b";" | b">." | b"\"");
    (opened && closed).then_some(found.address)
}

/// The first address from `from` on.
pub(super) fn next(text: &[u8], from: usize) -> Option<FoundAddress> {
    let mut from = from;
    while let Some(found) = memchr::memchr(b'@', text.get(from..)?) {
        let at = from + found;
        let begin = local_begin(text, at);
        let end = domain_end(text, at + 1);
        if begin < at && end > at + 1 && end - begin <= ADDRESS_OCTETS_MAX {
            let local = String::from_utf8_lossy(&text[begin..at]);
            let domain = String::from_utf8_lossy(&text[at + 1..end]);
            let domain = domain_to_ascii(&domain).unwrap_or_else(|_| domain.to_lowercase());
            return Some(FoundAddress { address: format!("{local}@{domain}"), begin, end });
        }
        from = at + 1;
    }
    None
}

/// The start of the local part of an address whose at sign is at `at`.
fn local_begin(text: &[u8], at: usize) -> usize {
    let floor = at.saturating_sub(ADDRESS_OCTETS_MAX);
    if at > 0 && text[at - 1] == b'"' {
        // A quoted local part begins at its opening quote.
        let mut begin = at - 1;
        while begin > floor {
            begin -= 1;
            if text[begin] == b'"' && (begin == 0 || text[begin - 1] != b'\\') {
                return begin;
            }
            if text[begin] == b'\n' {
                return at;
            }
        }
        return at;
    }
    let mut begin = at;
    while begin > floor && is_local(text[begin - 1]) {
        begin -= 1;
    }
    begin = unglued_begin(text, begin, at);
    // Skips punctuation that often precedes an address but cannot begin one.
    while begin < at
        && matches!(text[begin], b'.' | b'\'' | b'`' | b'*' | b'|' | b'=')
        && !encoded_word(&text[begin..at])
    {
        begin += 1;
    }
    begin
}

/// The start of a local part that follows words without a space, as in languages that do not separate words:
/// after the last punctuation, and after an ideograph that is followed by an ASCII letter or digit.
fn unglued_begin(text: &[u8], begin: usize, at: usize) -> usize {
    let Ok(local) = std::str::from_utf8(&text[begin..at]) else { return begin };
    if local.is_ascii() {
        return begin;
    }
    let mut start = 0;
    let mut characters = local.char_indices().peekable();
    while let Some((place, character)) = characters.next() {
        let before_ascii = characters.peek().is_some_and(|(_, next)| next.is_ascii_alphanumeric());
        if is_wide_punctuation(character) || (is_ideographic(character) && before_ascii) {
            start = place + character.len_utf8();
        }
    }
    if start < local.len() { begin + start } else { begin }
}

fn is_wide_punctuation(character: char) -> bool {
    matches!(character, '\u{2018}'..='\u{201f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}')
}

/// Han, kana and hangul.
fn is_ideographic(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn encoded_word(local: &[u8]) -> bool {
    local.starts_with(b"=?")
}

fn is_local(octet: u8) -> bool {
    octet >= 0x80 || octet.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~.-".contains(&octet)
}

/// The end of the domain that begins at `from`.
fn domain_end(text: &[u8], from: usize) -> usize {
    if text.get(from) == Some(&b'[') {
        return memchr::memchr(b']', &text[from..text.len().min(from + 60)])
            .map_or(from, |end| from + end + 1);
    }
    let mut end = from;
    while end < text.len()
        && (text[end] >= 0x80 || text[end].is_ascii_alphanumeric() || b".-_".contains(&text[end]))
        // Sendmail writes three dots between an address and its text.
        && !text[end..].starts_with(b"..")
    {
        end += 1;
    }
    end = unglued_end(text, from, end);
    while end > from && matches!(text[end - 1], b'.' | b'-' | b'_') {
        end -= 1;
    }
    end
}

/// The end of a domain that words follow without a space: before punctuation, and before an ideograph after
/// an ASCII letter or digit.
fn unglued_end(text: &[u8], from: usize, end: usize) -> usize {
    let Ok(domain) = std::str::from_utf8(&text[from..end]) else { return end };
    if domain.is_ascii() {
        return end;
    }
    let mut previous = '.';
    for (place, character) in domain.char_indices() {
        let is_word =
            is_ideographic(character) && previous.is_ascii_alphanumeric() && domain[..place].contains('.');
        if is_wide_punctuation(character) || is_word {
            return from + place;
        }
        previous = character;
    }
    end
}

/// Reads the address in a field of a report: `rfc822; <a@example.org>`, `a@example.org`,
/// `rfc822;a@example.org`.
pub(super) fn in_field(value: &[u8]) -> Option<String> {
    let value = match memchr::memchr(b';', value) {
        Some(at) if !value[..at].contains(&b'@') => &value[at + 1..],
        _ => value,
    };
    let value = trim(value);
    // xtext (RFC 3461, 4): `+2B` is an encoded plus sign.
    first(value).map(|address| if address.contains('+') { unxtext(&address) } else { address })
}

fn unxtext(address: &str) -> String {
    ["+2B", "+2b"]
        .iter()
        .fold(address.to_owned(), |address, code| address.replace(code, "+"))
        .replace("+3D", "=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_running_text() {
        assert_eq!(first(b"to <Ada.L@Example.ORG>.").as_deref(), Some("Ada.L@example.org"));
        assert_eq!(first(b"@ b@ @c x@y.example, z").as_deref(), Some("x@y.example"));
        assert_eq!(first(b"<\"a b\"@example.org>").as_deref(), Some("\"a b\"@example.org"));
        assert_eq!(first(b"mailto:a@example.org").as_deref(), Some("a@example.org"));
        assert_eq!(first(b"550 a@example.org...unknown").as_deref(), Some("a@example.org"));
        assert_eq!(first(b"none here"), None);
    }

    #[test]
    fn words_without_spaces_are_no_part_of_an_address() {
        assert_eq!(first("无法投递到：ada@example.cn。".as_bytes()).as_deref(), Some("ada@example.cn"));
        assert_eq!(first("宛先ada@example.jpです".as_bytes()).as_deref(), Some("ada@example.jp"));
        assert_eq!(first("用户@例子.example".as_bytes()).as_deref(), Some("用户@xn--fsqu00a.example"));
        assert_eq!(first("müller@example.de".as_bytes()).as_deref(), Some("müller@example.de"));
    }

    #[test]
    fn a_line_may_be_nothing_but_an_address() {
        assert_eq!(sole(b"   <a@example.org>: ").as_deref(), Some("a@example.org"));
        assert_eq!(sole(b"a@example.org").as_deref(), Some("a@example.org"));
        assert_eq!(sole(b"write to a@example.org"), None);
    }

    #[test]
    fn fields_have_a_type_before_the_address() {
        assert_eq!(in_field(b"rfc822; <a@example.org>").as_deref(), Some("a@example.org"));
        assert_eq!(in_field(b"rfc822;a+2Bb@example.org").as_deref(), Some("a+b@example.org"));
        assert_eq!(in_field(b"X-Unix; |/bin/cat"), None);
    }
}
