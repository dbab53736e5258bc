//! Queries about header fields that reports need.

use super::bytes::contains;
use crate::reader::{HeaderFields, unstructured};

/// Whether the field of that name contains the word, in any case.
pub(super) fn field_contains(head: HeaderFields<'_, '_>, name: &[u8], word: &[u8]) -> bool {
    head.get(name).is_some_and(|value| contains(value, word))
}

/// Whether this is the header of a mail rather than of a part.
pub(super) fn is_of_mail(head: HeaderFields<'_, '_>) -> bool {
    let telling: [&[u8]; 4] = [b"message-id", b"from", b"subject", b"return-path"];
    head.has(b"received") || telling.iter().filter(|name| head.has(name)).count() > 1
}

/// A value in lower case, its encoded words (RFC 2047) decoded.
pub(super) fn decoded_lowercase(value: &[u8]) -> String {
    unstructured(value).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_words_are_decoded() {
        assert_eq!(
            decoded_lowercase(b"=?utf-8?Q?Delivery_Status?=\n =?utf-8?B?IChGYWlsdXJlKQ==?="),
            "delivery status (failure)"
        );
        assert_eq!(decoded_lowercase(b"Failure NOTICE"), "failure notice");
    }
}
