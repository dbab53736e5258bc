//! Digests as text.

use std::fmt::Write;

/// A digest in hexadecimal.
pub(crate) fn hex(digest: &[u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}
