//! A command to the server. No value is ever read as part of the command.
//!
//! A value that does not fit a quoted string is sent as a literal, which the server must ask for first; so a
//! command is a list of chunks, and each but the first waits for a go-ahead. The octets are wiped when the
//! command is dropped, because some of them are credentials.

use std::fmt::Write as _;

use secrecy::zeroize::Zeroizing;

use super::utf7;

/// The longest quoted string; a longer value is sent as a literal.
const QUOTED_BYTES_MAX: usize = 1000;

/// A command without its tag.
pub(super) struct ImapCommand {
    pub(super) chunks: Vec<Zeroizing<Vec<u8>>>,
    /// The answer to a go-ahead after the last chunk: with it a server explains why it refuses a token, and
    /// it must be answered before the refusal follows. It is an empty line, except for OAUTHBEARER (RFC 7628
    /// 3.2.3).
    pub(super) consent: Option<&'static str>,
}

impl ImapCommand {
    /// A command with a constant text.
    pub(super) fn new(text: &str) -> Self {
        Self { chunks: vec![Zeroizing::new(text.as_bytes().to_vec())], consent: None }
    }

    /// Adds a value.
    pub(super) fn string(mut self, value: &str) -> Self {
        let is_quotable = value.len() <= QUOTED_BYTES_MAX && value.bytes().all(|b| matches!(b, b' '..=b'~'));
        let last = self.last();
        if is_quotable {
            last.extend_from_slice(b" \"");
            for octet in value.bytes() {
                if matches!(octet, b'"' | b'\\') {
                    last.push(b'\\');
                }
                last.push(octet);
            }
            last.push(b'"');
        } else {
            last.extend_from_slice(format!(" {{{}}}", value.len()).as_bytes());
            self.chunks.push(Zeroizing::new(value.as_bytes().to_vec()));
        }
        self
    }

    /// Adds a folder's name.
    pub(super) fn folder(self, name: &str) -> Self {
        self.string(&utf7::encode(name))
    }

    /// Adds constant text.
    pub(super) fn then(mut self, text: &str) -> Self {
        self.last().extend_from_slice(text.as_bytes());
        self
    }

    /// Signs in by a mechanism whose only response, in base64, is part of the command or waits until the
    /// server asks for it.
    pub(super) fn sign_in(mechanism: &str, response: &str, at_once: bool) -> Self {
        let mut command = Self::new("AUTHENTICATE ");
        command.consent = Some(if mechanism == "OAUTHBEARER" { "AQ==" } else { "" });
        command.last().extend_from_slice(mechanism.as_bytes());
        if at_once {
            command.last().push(b' ');
            command.last().extend_from_slice(response.as_bytes());
        } else {
            command.chunks.push(Zeroizing::new(response.as_bytes().to_vec()));
        }
        command
    }

    fn last(&mut self) -> &mut Zeroizing<Vec<u8>> {
        if self.chunks.is_empty() {
            self.chunks.push(Zeroizing::default());
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }
}

/// UIDs in ascending order as an IMAP set, with neighbours as ranges: `1:3,7`.
pub(super) fn uid_set(uids: impl IntoIterator<Item = u32>) -> String {
    let mut set = String::new();
    let mut uids = uids.into_iter().peekable();
    while let Some(first) = uids.next() {
        let mut last = first;
        while let Some(next) = uids.next_if(|uid| last.checked_add(1) == Some(*uid)) {
            last = next;
        }
        let comma = if set.is_empty() { "" } else { "," };
        let written =
            if first == last { write!(set, "{comma}{first}") } else { write!(set, "{comma}{first}:{last}") };
        debug_assert!(written.is_ok(), "a string takes whatever is written");
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(command: &ImapCommand) -> Vec<String> {
        command.chunks.iter().map(|chunk| String::from_utf8(chunk.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_value_cannot_end_the_command() {
        let command = ImapCommand::new("LOGIN").string("bob \"\\").string("a\r\nA9 LOGOUT").then(" x");
        assert_eq!(wire(&command), ["LOGIN \"bob \\\"\\\\\" {12}", "a\r\nA9 LOGOUT x"]);
        assert_eq!(wire(&ImapCommand::new("LOGIN").string("pä")), ["LOGIN {3}", "pä"]);
        assert_eq!(wire(&ImapCommand::new("SELECT").folder("a\r\n\"b")), ["SELECT \"a&AA0ACg-\\\"b\""]);
        assert_eq!(wire(&ImapCommand::new("X").string("")), ["X \"\""]);
        assert_eq!(wire(&ImapCommand::new("X").string(&"x".repeat(1001)))[0], "X {1001}");
    }

    #[test]
    fn neighbours_become_ranges() {
        assert_eq!(uid_set([1, 2, 3, 7, 9, 10]), "1:3,7,9:10");
        assert_eq!(uid_set([u32::MAX - 1, u32::MAX]), "4294967294:4294967295");
        assert_eq!(uid_set([]), "");
    }
}
