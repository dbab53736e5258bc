//! Folder names on the wire: modified UTF-7 (RFC 3501 5.1.3).
//!
//! Every IMAP4rev1 server reads it unless UTF8=ACCEPT is enabled, which this client never does. The encoded
//! name is printable ASCII, so a line end in a name cannot end a command. It could break an answer, though:
//! Dovecot repeats the decoded name with its line end. So names with control characters are not sent at all.

use base64::{
    Engine,
    alphabet::IMAP_MUTF7,
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

use super::error::ImapFault;

const ENGINE: GeneralPurpose = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);

/// Refuses a name that a server could not repeat.
pub(super) fn check(name: &str) -> Result<(), ImapFault> {
    match name.chars().any(char::is_control) {
        true => Err(ImapFault::Unwritable("the name of a folder cannot contain control characters")),
        false => Ok(()),
    }
}

/// Encodes a folder's name for the wire.
pub(super) fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    let mut shifted: Vec<u8> = Vec::new();
    let unshift = |shifted: &mut Vec<u8>, encoded: &mut String| {
        if !shifted.is_empty() {
            encoded.push('&');
            ENGINE.encode_string(&shifted, encoded);
            encoded.push('-');
            shifted.clear();
        }
    };
    for character in name.chars() {
        match character {
            ' '..='~' => {
                unshift(&mut shifted, &mut encoded);
                encoded.push(character);
                if character == '&' {
                    encoded.push('-');
                }
            }
            other => {
                let mut units = [0; 2];
                shifted.extend(other.encode_utf16(&mut units).iter().flat_map(|unit| unit.to_be_bytes()));
            }
        }
    }
    unshift(&mut shifted, &mut encoded);
    encoded
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn names_are_written_as_the_standard_shows() {
        assert_eq!(encode("INBOX"), "INBOX");
        assert_eq!(encode("~peter/mail/台北/日本語"), "~peter/mail/&U,BTFw-/&ZeVnLIqe-");
        assert_eq!(encode("Tom & Jerry"), "Tom &- Jerry");
        assert_eq!(encode("Gelöscht"), "Gel&APY-scht");
        assert_eq!(encode("📬"), "&2D3c7A-");
        assert_eq!(encode("a\r\nA2 LOGOUT"), "a&AA0ACg-A2 LOGOUT");
    }
}
