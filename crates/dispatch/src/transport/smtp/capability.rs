//! The extensions that a relay offers in its reply to EHLO.

use crate::transport::RelayReply;

/// The extensions that the client uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RelayExtensions {
    pub(super) pipelining: bool,
    pub(super) eight_bit_mime: bool,
    pub(super) smtputf8: bool,
    pub(super) dsn: bool,
    pub(super) starttls: bool,
    /// SIZE is offered.
    pub(super) size: bool,
    /// The most bytes that a mail may have, if the relay says so.
    pub(super) size_max: Option<u64>,
    /// AUTH is offered, with any mechanisms.
    pub(super) auth: bool,
    pub(super) auth_plain: bool,
    pub(super) auth_login: bool,
    pub(super) auth_xoauth2: bool,
    pub(super) auth_oauthbearer: bool,
}

impl RelayExtensions {
    /// Reads the lines after the first. Unknown and malformed lines are ignored.
    pub(super) fn read(ehlo: &RelayReply) -> Self {
        let mut offered = Self::default();
        for line in ehlo.text.lines().skip(1) {
            let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
            let keyword = words.next().unwrap_or_default();
            let is = |name: &str| keyword.eq_ignore_ascii_case(name);
            if is("PIPELINING") {
                offered.pipelining = true;
            } else if is("8BITMIME") {
                offered.eight_bit_mime = true;
            } else if is("SMTPUTF8") {
                offered.smtputf8 = true;
            } else if is("DSN") {
                offered.dsn = true;
            } else if is("STARTTLS") {
                offered.starttls = true;
            } else if is("SIZE") {
                offered.size = true;
                // RFC 1870: zero or no value announces no fixed maximum.
                offered.size_max = words.next().and_then(|max| max.parse().ok()).filter(|&max| max > 0);
            } else if is("AUTH") {
                offered.auth = true;
                for mechanism in words {
                    offered.auth_plain |= mechanism.eq_ignore_ascii_case("PLAIN");
                    offered.auth_login |= mechanism.eq_ignore_ascii_case("LOGIN");
                    offered.auth_xoauth2 |= mechanism.eq_ignore_ascii_case("XOAUTH2");
                    offered.auth_oauthbearer |= mechanism.eq_ignore_ascii_case("OAUTHBEARER");
                }
            }
        }
        offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RelayExtensions {
        RelayExtensions::read(&RelayReply { code: 250, enhanced: None, text: text.to_owned() })
    }

    #[test]
    fn extensions_are_read_in_any_case_and_form() {
        let offered = read(
            "mx\npipelining\nSIZE 35882577\n8BITMIME\nAUTH LOGIN\nAUTH=PLAIN\nSMTPUTF8\nSTARTTLS\nX-ODD a b",
        );
        assert!(offered.pipelining && offered.eight_bit_mime && offered.smtputf8 && offered.starttls);
        assert!(offered.auth && offered.auth_plain && offered.auth_login);
        assert_eq!(offered.size_max, Some(35_882_577));
    }

    #[test]
    fn a_size_without_a_limit_has_none() {
        for text in ["mx\nSIZE", "mx\nSIZE 0", "mx\nSIZE lots"] {
            assert_eq!((read(text).size, read(text).size_max), (true, None), "{text}");
        }
    }

    #[test]
    fn the_greeting_line_is_no_extension() {
        assert_eq!(read("STARTTLS"), RelayExtensions::default());
    }
}
