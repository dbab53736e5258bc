//! What a mail server found when it checked who sent a mail (Authentication-Results, RFC 8601).
//!
//! Anybody can write such a field into a mail. Only the topmost field with the name of a server that the
//! operator trusts is read: that server puts its field above everything the sender wrote, and removes fields
//! that claim to be its own.

use serde::Serialize;

use super::{ParsedMail, bounded};

/// The longest field that is read, in characters.
const FIELD_CHARS_MAX: usize = 8_192;
/// The most results that are read of one field.
const RESULTS_MAX: usize = 32;
/// The longest result or domain that is kept, in characters.
const WORD_CHARS_MAX: usize = 255;

/// One result of one method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AuthenticationResult {
    /// `pass`, `fail`, `softfail`, `neutral`, `none`, `temperror`, `permerror` or `policy`.
    pub result: String,
    /// The domain that the result is about.
    pub domain: Option<String>,
}

/// The results of a trusted server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TrustedAuthentication {
    /// The server.
    pub by: String,
    /// The envelope sender.
    pub spf: Option<AuthenticationResult>,
    /// The signatures, each.
    pub dkim: Vec<AuthenticationResult>,
    /// The author.
    pub dmarc: Option<AuthenticationResult>,
}

impl TrustedAuthentication {
    /// Reads the topmost field of the server with this name.
    pub(crate) fn read(mail: &ParsedMail<'_>, authserv_id: &str) -> Option<Self> {
        mail.plain("Authentication-Results").find_map(|value| Self::parse(&value, Some(authserv_id)))
    }

    /// Reads the topmost field, whoever wrote it: for mail that we wrote it into.
    pub(crate) fn read_topmost(mail: &ParsedMail<'_>) -> Option<Self> {
        mail.plain("Authentication-Results").next().and_then(|value| Self::parse(&value, None))
    }

    fn parse(value: &str, authserv_id: Option<&str>) -> Option<Self> {
        let value = without_comments(&bounded(value, FIELD_CHARS_MAX));
        let mut clauses = value.split(';');
        let by = clauses.next()?.split_whitespace().next()?;
        if authserv_id.is_some_and(|authserv_id| !by.eq_ignore_ascii_case(authserv_id)) {
            return None;
        }
        let mut found = Self { by: by.to_ascii_lowercase(), spf: None, dkim: Vec::new(), dmarc: None };
        for clause in clauses.take(RESULTS_MAX) {
            let mut words = clause.split_whitespace();
            let Some((method, result)) = words.next().and_then(|word| word.split_once('=')) else { continue };
            // A method may have a version: `dkim/1`.
            let method = method.split('/').next().unwrap_or(method).to_ascii_lowercase();
            let properties: &[&str] = match method.as_str() {
                "spf" => &["smtp.mailfrom", "smtp.helo"],
                "dkim" => &["header.d", "header.i"],
                "dmarc" => &["header.from"],
                _ => continue,
            };
            let given: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
            let domain = properties.iter().find_map(|name| {
                let (_, value) = given.iter().find(|(given, _)| given.eq_ignore_ascii_case(name))?;
                let domain = value.trim_matches('"').rsplit('@').next().unwrap_or_default();
                (!domain.is_empty()).then(|| bounded(&domain.to_ascii_lowercase(), WORD_CHARS_MAX))
            });
            let result = bounded(&result.to_ascii_lowercase(), WORD_CHARS_MAX);
            let one = AuthenticationResult { result, domain };
            match method.as_str() {
                "spf" => found.spf = found.spf.or(Some(one)),
                "dkim" => found.dkim.push(one),
                _ => found.dmarc = found.dmarc.or(Some(one)),
            }
        }
        Some(found)
    }
}

/// The text without comments, which may be nested, and with quoted strings kept.
fn without_comments(text: &str) -> String {
    let (mut kept, mut depth, mut quoted, mut escaped) =
        (String::with_capacity(text.len()), 0_u32, false, false);
    for c in text.chars() {
        let is_plain = std::mem::take(&mut escaped);
        match c {
            '\\' if !is_plain && (quoted || depth > 0) => escaped = true,
            '"' if !is_plain && depth == 0 => quoted = !quoted,
            '(' if !is_plain && !quoted => depth += 1,
            ')' if !is_plain && depth > 0 => {
                depth -= 1;
                kept.push(' ');
            }
            _ if depth > 0 => {}
            // A quoted semicolon or blank parts nothing.
            ';' | ' ' | '\t' if quoted => kept.push('_'),
            c => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Option<TrustedAuthentication> {
        TrustedAuthentication::read(&ParsedMail::new(header.as_bytes()), "mx.example.net")
    }

    #[test]
    fn the_topmost_field_of_the_trusted_server_counts_and_no_other() {
        let header = "Authentication-Results: other.example; dmarc=pass header.from=bank.example\r\n\
            Received: from a\r\n\
            Authentication-Results: MX.example.net 1; spf=softfail (no ; dmarc=pass) smtp.mailfrom=x@A.example;\r\n\
            \tdkim=pass header.d=a.example header.s=k; dkim/1=fail reason=\"x; dmarc=pass\" header.i=@b.example;\r\n\
            \tdmarc=fail (p=reject) header.from=bank.example; arc=none\r\n\
            Authentication-Results: mx.example.net; dmarc=pass header.from=bank.example\r\n\r\n";
        let found = read(header).unwrap();
        let one = |result: &str, domain: &str| AuthenticationResult {
            result: result.to_owned(),
            domain: Some(domain.to_owned()),
        };
        assert_eq!(found.by, "mx.example.net");
        assert_eq!(found.spf, Some(one("softfail", "a.example")));
        assert_eq!(found.dkim, [one("pass", "a.example"), one("fail", "b.example")]);
        assert_eq!(found.dmarc, Some(one("fail", "bank.example")));
    }

    #[test]
    fn what_nobody_trusted_wrote_is_nothing() {
        for header in [
            "Authentication-Results: mx.example.net.evil.example; dmarc=pass\r\n\r\n",
            "Authentication-Results: (mx.example.net) evil.example; dmarc=pass\r\n\r\n",
            "Authentication-Results:\r\n\r\n",
            "Authentication-Results: ;;;;\r\n\r\n",
            "Subject: x\r\n\r\nAuthentication-Results: mx.example.net; dmarc=pass\r\n",
        ] {
            assert_eq!(read(header), None, "{header}");
        }
        let none = read("Authentication-Results: mx.example.net; none\r\n\r\n").unwrap();
        assert_eq!((none.spf, none.dkim.len(), none.dmarc), (None, 0, None));
        let open = format!("Authentication-Results: mx.example.net; {}dmarc=pass\r\n\r\n", "(".repeat(5_000));
        assert_eq!(read(&open).unwrap().dmarc, None, "a comment that never ends hides the rest");
    }
}
