//! DNS records as text for a zone file.

/// The longest string of a TXT record; a longer value is split into several (RFC 1035, 3.3.14).
const STRING_OCTETS_MAX: usize = 255;

/// A TXT value as quoted strings, each short enough for DNS. Readers join them without a separator.
pub fn quoted_txt(value: &str) -> String {
    let mut out = String::from('"');
    let mut octets = 0;
    for c in value.chars() {
        if octets + c.len_utf8() > STRING_OCTETS_MAX {
            out.push_str("\" \"");
            octets = 0;
        }
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
        octets += c.len_utf8();
    }
    out.push('"');
    out
}

/// A TXT record as a line of a zone file.
pub fn txt_line(name: &str, value: &str) -> String {
    format!("{name}. IN TXT {}", quoted_txt(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_becomes_strings_that_dns_takes() {
        assert_eq!(quoted_txt(""), r#""""#);
        assert_eq!(quoted_txt(&"a".repeat(255)), format!("\"{}\"", "a".repeat(255)));
        let parts = ["a".repeat(255), "a".repeat(255), "a".to_owned()];
        assert_eq!(quoted_txt(&"a".repeat(511)), format!("\"{}\"", parts.join("\" \"")));
    }

    #[test]
    fn what_would_end_a_string_is_escaped() {
        assert_eq!(txt_line("_dmarc.example.com", r#"a"b\c"#), r#"_dmarc.example.com. IN TXT "a\"b\\c""#);
    }
}
