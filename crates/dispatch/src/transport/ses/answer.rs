//! Reads an answer of SES as far as possible.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// The longest error name that is stored; messages are bounded by `Failure`.
const NAME_CHARS_MAX: usize = 64;

/// An answer, complete or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SesAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The name of the error without its namespace, such as `MessageRejected`. Only the service itself gives
    /// a name; a proxy in front of it does not.
    pub error: Option<String>,
    /// The message of the error; may be empty.
    pub message: String,
    /// The document, if the body is complete JSON.
    pub document: Option<Value>,
}

impl SesAnswer {
    pub fn new(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let document: Option<Value> = serde_json::from_slice(body).ok();
        let field = |names: &[&str]| {
            let document = document.as_ref()?;
            names.iter().find_map(|name| document.get(name)?.as_str())
        };
        let in_header = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
        let error = match status {
            200..300 => None,
            _ => in_header.or_else(|| field(&["__type", "code", "Code"])).and_then(bare_name),
        };
        let message = field(&["message", "Message"]).unwrap_or_default().to_owned();
        Self { status, error, message, document }
    }

    /// True for 2xx.
    pub fn is_success(&self) -> bool {
        self.status / 100 == 2
    }

    /// A text field of the document.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.document.as_ref()?.get(name)?.as_str()
    }
}

/// `com.amazonaws.ses#MessageRejected:http://…` is `MessageRejected`.
fn bare_name(name: &str) -> Option<String> {
    let name = name.split(':').next().unwrap_or(name);
    let name = name.rsplit('#').next().unwrap_or(name).trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| name.chars().take(NAME_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(header: Option<&'static str>, body: &str) -> SesAnswer {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert("x-amzn-ErrorType", value.parse().unwrap());
        }
        SesAnswer::new(400, &headers, body.as_bytes())
    }

    #[test]
    fn the_name_is_found_wherever_the_service_puts_it() {
        for (header, body) in [
            (Some("MessageRejected"), r#"{"message":"no"}"#),
            (Some("MessageRejected:http://internal.amazon.com/coral/"), r#"{"message":"no"}"#),
            (None, r#"{"__type":"com.amazonaws.ses#MessageRejected","Message":"no"}"#),
            (None, r#"{"code":"MessageRejected","message":"no"}"#),
        ] {
            let answer = answer(header, body);
            assert_eq!((answer.error.as_deref(), answer.message.as_str()), (Some("MessageRejected"), "no"));
        }
    }

    #[test]
    fn what_is_not_of_the_service_has_no_name() {
        for body in
            ["", "<html>", "[1]", r#"{"message":7}"#, r#"{"code":"a b"}"#, r#"{"code":404}"#, "{\"code\":"]
        {
            let answer = answer(None, body);
            assert_eq!((answer.error, answer.message.as_str()), (None, ""), "{body}");
        }
        let long = format!(r#"{{"code":"{}"}}"#, "x".repeat(9_000));
        assert_eq!(answer(None, &long).error.map(|name| name.len()), Some(NAME_CHARS_MAX));
    }
}
