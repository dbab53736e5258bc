//! Lists of mailboxes as people write them in one line.

/// Splits a list at its commas, except those in quotes, brackets or comments. The parts are not checked.
pub fn split_list(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_that_separate() {
        assert_eq!(split_list("a@x, b@y,,"), ["a@x", "b@y"]);
        assert_eq!(split_list(r#""A \", B" <a@x>, (c, d) e@y"#), [r#""A \", B" <a@x>"#, "(c, d) e@y"]);
        assert_eq!(split_list("ä@x,ö@y"), ["ä@x", "ö@y"]);
        assert_eq!(split_list("  "), Vec::<&str>::new());
    }
}
