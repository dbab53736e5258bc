//! Checks of header fields that a user sets.
//!
//! A name is an RFC 5322 `field-name`, and a value has no control character except the tab. This makes header
//! injection impossible: no CR, LF or NUL passes these functions, and the composer calls them for every draft
//! even if its caller has done so already.

pub(crate) mod write;

/// The longest field name: with its colon and a space it fits on a line of 78.
pub const HEADER_NAME_OCTETS_MAX: usize = 76;
/// The longest field value before encoding and folding.
pub const HEADER_VALUE_OCTETS_MAX: usize = 8 * 1024;
/// The maximum number of header fields that a draft may add.
pub const HEADER_COUNT_MAX: usize = 100;

/// Why a header field is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is empty, too long, or has a character that a name may not have.
    #[error(
        "header name {name:?} is not valid: use 1 to {HEADER_NAME_OCTETS_MAX} printable ASCII characters, no colon or space"
    )]
    Name {
        /// The beginning of the name.
        name: String,
    },
    /// Postway writes this field itself, or the request has a property for it.
    #[error("header {name} is reserved: it is set by postway or has a field of its own")]
    Reserved {
        /// The name.
        name: String,
    },
    /// The value has a control character.
    #[error("header {name} contains the control character U+{character:04X}: remove it")]
    Control {
        /// The name of the field.
        name: String,
        /// The code point.
        character: u32,
    },
    /// The value is too long.
    #[error("header {name} is longer than {HEADER_VALUE_OCTETS_MAX} octets: shorten it")]
    TooLong {
        /// The name of the field.
        name: String,
    },
    /// There are too many fields.
    #[error("there are more than {HEADER_COUNT_MAX} extra headers: send fewer")]
    TooMany,
}

/// Whether a user may not set a header of this name.
pub fn reserved_header(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "From",
        "To",
        "Cc",
        "Bcc",
        "Sender",
        "Reply-To",
        "Subject",
        "Date",
        "Message-ID",
        "Return-Path",
        "Received",
        "X-Original-Message-ID",
    ];
    const PREFIXES: [&str; 5] = ["MIME-", "Content-", "DKIM-", "Resent-", "X-Postway-"];
    let begins_with =
        |prefix: &&str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    NAMES.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) || PREFIXES.iter().any(begins_with)
}

/// Checks the syntax of one extra header; it does not check whether the name is reserved ([`reserved_header`]
/// does).
pub fn check_header(name: &str, value: &str) -> Result<(), HeaderError> {
    let is_ftext = |byte: u8| byte.is_ascii_graphic() && byte != b':';
    if name.is_empty() || name.len() > HEADER_NAME_OCTETS_MAX || !name.bytes().all(is_ftext) {
        return Err(HeaderError::Name { name: name.chars().take(HEADER_NAME_OCTETS_MAX).collect() });
    }
    check_value(name, value)
}

/// Checks a subject line.
pub fn check_subject(subject: &str) -> Result<(), HeaderError> {
    check_value("Subject", subject)
}

fn check_value(name: &str, value: &str) -> Result<(), HeaderError> {
    if value.len() > HEADER_VALUE_OCTETS_MAX {
        return Err(HeaderError::TooLong { name: name.to_owned() });
    }
    match value.chars().find(|c| c.is_control() && *c != '\t') {
        Some(c) => Err(HeaderError::Control { name: name.to_owned(), character: c as u32 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_known_in_any_case() {
        for name in [
            "from",
            "TO",
            "Cc",
            "bCC",
            "Sender",
            "date",
            "message-id",
            "MIME-Version",
            "content-type",
            "DKIM-Signature",
            "x-postway-id",
            "X-Postway-Anything",
            "reply-to",
            "return-path",
            "Received",
            "Resent-To",
            "subject",
        ] {
            assert!(reserved_header(name), "{name}");
        }
        for name in ["X-Campaign", "List-Unsubscribe", "References", "In-Reply-To", "Fromage", "é", "X-"] {
            assert!(!reserved_header(name), "{name}");
        }
    }

    #[test]
    fn injection_through_a_name_or_a_value_is_refused() {
        for name in ["", "A B", "A:B", "A\r\nBcc", "Ä", "A\0", &"n".repeat(77)] {
            assert!(matches!(check_header(name, "v"), Err(HeaderError::Name { .. })), "{name:?}");
        }
        for value in ["a\r\nBcc: x@y", "a\nb", "a\rb", "a\0", "a\u{7f}", "a\u{85}b"] {
            assert!(matches!(check_header("X-A", value), Err(HeaderError::Control { .. })), "{value:?}");
        }
        assert!(matches!(check_header("X-A", &"v".repeat(8193)), Err(HeaderError::TooLong { .. })));
        assert_eq!(check_header("X-A", "tab\tand ünïcode"), Ok(()));
        assert_eq!(check_subject("ok"), Ok(()));
    }
}
