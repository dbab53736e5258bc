//! The header that gives a download its name (RFC 6266).

use std::fmt::Write;

/// An attachment of this name. The plain form is for readers that know no other and has no character that
/// could end it.
pub(super) fn attachment(filename: &str) -> String {
    let plain: String =
        filename
            .chars()
            .map(|c| {
                if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%' | '/') || c == ' ' { c } else { '_' }
            })
            .collect();
    let mut header = format!("attachment; filename=\"{plain}\"");
    if plain != filename {
        header.push_str("; filename*=UTF-8''");
        for byte in filename.bytes() {
            // The attr-char of RFC 8187.
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                header.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(header, "%{byte:02X}");
            }
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::attachment;

    #[test]
    fn a_plain_name_is_quoted_as_it_is() {
        assert_eq!(attachment("report 1.pdf"), "attachment; filename=\"report 1.pdf\"");
    }

    #[test]
    fn a_name_cannot_end_its_quotes_or_its_line() {
        let header = attachment("a\"; x=\r\nb: ü.pdf");
        assert_eq!(
            header,
            "attachment; filename=\"a_; x=__b: _.pdf\"; filename*=UTF-8''a%22%3B%20x%3D%0D%0Ab%3A%20%C3%BC.pdf"
        );
    }
}
