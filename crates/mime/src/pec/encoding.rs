//! Decodes an XML document. Providers write UTF-8; older ones write Latin-1 and Latin-9.

use mail_parser::decoders::charsets::map::charset_decoder;

/// The document as text, decoded by its byte order mark, by its declaration, or as UTF-8. Invalid octets are
/// replaced.
pub(super) fn decode(bytes: &[u8]) -> String {
    let declared = match bytes {
        [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] => Some("utf-16".to_owned()),
        [0xEF, 0xBB, 0xBF, ..] => None,
        _ => declared_encoding(&bytes[..bytes.len().min(200)]),
    };
    let decoder = declared.filter(|name| name != "utf-8").and_then(|name| charset_decoder(name.as_bytes()));
    match decoder {
        Some(decode) => decode(bytes),
        None => String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)).into_owned(),
    }
}

fn declared_encoding(start: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(start.trim_ascii_start());
    let declaration = start.strip_prefix("<?xml")?.split("?>").next()?;
    let after = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some(after[1..].split(quote).next()?.trim().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declared_encoding_is_used() {
        assert!(decode(b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xE0</a>").ends_with("<a>\u{e0}</a>"));
        assert!(
            decode(b"<?xml version=\"1.0\" encoding=\"iso-8859-15\"?><a>\xA4</a>")
                .ends_with("<a>\u{20ac}</a>")
        );
        assert!(decode("<?xml encoding=\"UTF-8\"?><a>\u{e0}</a>".as_bytes()).ends_with("<a>\u{e0}</a>"));
        assert_eq!(decode(b"\xEF\xBB\xBF<a/>"), "<a/>");
        assert!(decode(b"\xFF\xFE<\0a\0/\0>\0").ends_with("<a/>"));
    }

    #[test]
    fn an_encoding_that_is_wrong_or_unknown_is_survived() {
        assert_eq!(decode(b"<a>\xE0</a>"), "<a>\u{fffd}</a>");
        assert!(decode(b"<?xml encoding=\"made-up\"?><a/>").ends_with("<a/>"));
        assert!(decode(b"<?xml encoding=").starts_with("<?xml"));
        assert_eq!(decode(b""), "");
    }
}
