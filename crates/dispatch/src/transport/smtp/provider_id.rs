//! The relay's own id for a mail, read from its reply to the final dot.
//!
//! There is no standard: each form below is one server's habit. A wrong guess is harmless, since the complete
//! reply is stored beside it.

/// The longest id that is stored.
const ID_CHARS_MAX: usize = 128;

/// The id in `text`, if it has one of the known forms.
pub(super) fn provider_message_id(text: &str) -> Option<String> {
    let line = text.lines().next_back()?.trim();
    let lower = line.to_ascii_lowercase();
    // ASCII lower-casing keeps every byte position, so positions found in `lower` hold in `line`.
    let after = |mark: &str| lower.find(mark).map(|at| line[at + mark.len()..].trim_start());
    let before = |mark: &str| lower.find(mark).map(|at| line[..at].trim_end());

    let found = if let Some(rest) = after("queued as ") {
        word(rest) // Postfix, Mailjet, SendGrid: "Ok: queued as 4F2B11C0A"
    } else if let Some(rest) = after("internalid=") {
        word(rest) // Exchange: "<…> [InternalId=1234, Hostname=…] Queued mail for delivery"
    } else if let Some(rest) = after("id=") {
        word(rest) // Exim: "OK id=1rAbCd-000Xyz-2B"
    } else if let Some(rest) = after("message queued (") {
        word(rest) // Haraka: "Message Queued (6B1C…)"
    } else if let Some(rest) = before(" - gsmtp") {
        rest.split_whitespace().next_back().unwrap_or_default() // Gmail: "OK 1699999999 a1-2002….5 - gsmtp"
    } else if let Some(rest) = before(" message accepted for delivery") {
        rest.split_whitespace().next_back().unwrap_or_default() // Sendmail: "x1AB2345 Message accepted for delivery"
    } else if lower.starts_with("ok ") {
        let rest = line[3..].trim();
        match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [id] => word(id),     // SES: "Ok 0100018f…-000000"
            [_, "qp", _] => rest, // qmail: "ok 1699999999 qp 12345"
            _ => "",
        }
    } else {
        ""
    };
    let id: String = found.chars().filter(|c| !c.is_control()).take(ID_CHARS_MAX).collect();
    // Every known id has a digit; a word of a sentence has none.
    id.contains(|c: char| c.is_ascii_digit()).then_some(id)
}

/// The first word, without the punctuation around it.
fn word(text: &str) -> &str {
    let word = text.split([' ', ',', ')', ']', ';']).next().unwrap_or_default();
    word.trim_matches(|c: char| matches!(c, '<' | '>' | '.' | '"' | '('))
}

#[cfg(test)]
mod tests {
    use super::provider_message_id;

    #[test]
    fn known_forms_are_read() {
        for (text, id) in [
            ("Ok: queued as 4F2B11C0A", "4F2B11C0A"),
            ("OK queued as 6b1d-11ee.", "6b1d-11ee"),
            ("OK id=1rAbCd-000Xyz-2B", "1rAbCd-000Xyz-2B"),
            ("Ok 0100018f3c2b-aaaa-000000", "0100018f3c2b-aaaa-000000"),
            ("OK  1699999999 a1-20020a17090si1234567.45 - gsmtp", "a1-20020a17090si1234567.45"),
            (
                "<m@example.org> [InternalId=17179869184, Hostname=X.example] 1234 bytes in 0.1, 9 KB/sec Queued mail for delivery",
                "17179869184",
            ),
            ("x1AB2345 Message accepted for delivery", "x1AB2345"),
            ("Message Queued (6B1C-22.1)", "6B1C-22.1"),
            ("ok 1699999999 qp 12345", "1699999999 qp 12345"),
            ("first line\nOk: queued as A1", "A1"),
        ] {
            assert_eq!(provider_message_id(text).as_deref(), Some(id), "{text}");
        }
    }

    #[test]
    fn other_texts_have_none() {
        for text in
            ["", "Ok", "OK thanks", "Great success", "queued as ", "Ok message received and queued", "ok ÄÖ"]
        {
            assert_eq!(provider_message_id(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_id_is_bounded() {
        assert_eq!(provider_message_id(&format!("queued as {}", "1".repeat(9_000))).unwrap().len(), 128);
    }
}
