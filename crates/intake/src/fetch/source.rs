//! The source of a file, and how a request writes it.

use std::path::{Component, PathBuf};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use postway_net::http::parse_url;
use url::Url;

/// Standard base64, with its padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The source of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileSource {
    /// The request contains the file.
    Content(Bytes),
    /// A URL on the web.
    Url(Url),
    /// The tenant's own endpoint, which receives this text.
    Endpoint(String),
    /// A file in a folder of this machine that the operator has opened.
    Path(PathBuf),
}

impl FileSource {
    /// The field of an attachment for this kind of source.
    pub(super) fn field(&self) -> &'static str {
        match self {
            Self::Content(_) => "content",
            Self::Url(_) => "url",
            Self::Endpoint(_) => "endpoint",
            Self::Path(_) => "path",
        }
    }
}

/// Reads the source of a file. `mode` is the name of the field, or the name that other systems use. Without a
/// mode, the prefix of the text decides: `base64:…`, `http://…` or `https://…`, `/a/path`; anything else is
/// for the endpoint. The error says what is wrong and what to do.
pub(crate) fn infer_source(mode: Option<&str>, text: &str) -> Result<FileSource, String> {
    match mode.unwrap_or_else(|| mode_by_prefix(text)) {
        "content" | "base64" => {
            let content = text.strip_prefix("base64:").unwrap_or(text);
            decode_base64(content).map(|bytes| FileSource::Content(bytes.into()))
        }
        _ if text.trim().is_empty() => Err("is empty: say where the file comes from".to_owned()),
        "url" | "http_url" => parse_url(text).map(FileSource::Url).map_err(|error| error.to_string()),
        "path" | "filesystem" if !is_path(text) => Err(
            "must be a path on the server, from / on or below a folder of attachments.folders, without a `..`".to_owned(),
        ),
        "path" | "filesystem" => Ok(FileSource::Path(text.into())),
        "endpoint" => Ok(FileSource::Endpoint(text.to_owned())),
        mode => Err(format!("{mode:?} is no fetch mode: use base64, http_url, filesystem or endpoint")),
    }
}

/// Whether a text is a path and not a URL. An absolute path is checked when it is opened.
fn is_path(text: &str) -> bool {
    let is_below = || {
        let parts = std::path::Path::new(text).components();
        !text.contains("://")
            && parts.into_iter().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    text.starts_with('/') || is_below()
}

fn mode_by_prefix(text: &str) -> &'static str {
    let is = |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if text.starts_with("base64:") {
        "base64"
    } else if is("http://") || is("https://") {
        "url"
    } else if text.starts_with('/') {
        "path"
    } else {
        "endpoint"
    }
}

/// Decodes base64. Line breaks, which some encoders add, cost a second pass.
fn decode_base64(content: &str) -> Result<Vec<u8>, String> {
    let refused = |error: base64::DecodeError| format!("is not valid base64: {error}");
    match BASE64.decode(content) {
        Ok(bytes) => Ok(bytes),
        Err(_) if content.bytes().any(|byte| byte.is_ascii_whitespace()) => {
            let packed: Vec<u8> = content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            BASE64.decode(packed).map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

/// The content type of the text for an endpoint: JSON, a form, or plain text.
pub(super) fn endpoint_content_type(text: &str) -> &'static str {
    let is_form = || {
        let name = text.split_once('=').map_or("", |(name, _)| name);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-[]%+".contains(&byte);
        !name.is_empty() && name.bytes().all(is_name) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if text.starts_with('{') {
        "application/json"
    } else if is_form() {
        "application/x-www-form-urlencoded"
    } else {
        "text/plain; charset=utf-8"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_tells_what_it_is() {
        let url = |text: &str| FileSource::Url(text.parse().unwrap());
        for (text, source) in [
            ("base64:aGVsbG8=", FileSource::Content("hello".into())),
            ("https://example.com/a", url("https://example.com/a")),
            ("HTTP://example.com/a", url("http://example.com/a")),
            ("/srv/docs/a.pdf", FileSource::Path("/srv/docs/a.pdf".into())),
            ("doc_id=7", FileSource::Endpoint("doc_id=7".to_owned())),
            ("ftp://example.com/a", FileSource::Endpoint("ftp://example.com/a".to_owned())),
            ("é", FileSource::Endpoint("é".to_owned())),
        ] {
            assert_eq!(infer_source(None, text).unwrap(), source, "{text}");
        }
        for text in ["", "  ", "base64:*", "http://user:pw@example.com/", "https://"] {
            assert!(infer_source(None, text).is_err(), "{text}");
        }
        assert_eq!(infer_source(Some("base64"), "aGVsbG8=").unwrap(), FileSource::Content("hello".into()));
        assert_eq!(infer_source(Some("content"), "").unwrap(), FileSource::Content(Bytes::new()));
        assert_eq!(infer_source(Some("endpoint"), "/a").unwrap(), FileSource::Endpoint("/a".to_owned()));
        assert_eq!(infer_source(Some("http_url"), "https://example.com/a"), Ok(url("https://example.com/a")));
        assert_eq!(infer_source(Some("filesystem"), "/a"), Ok(FileSource::Path("/a".into())));
        assert!(infer_source(Some("url"), "/a").is_err());
        assert_eq!(infer_source(Some("path"), "a/b.pdf"), Ok(FileSource::Path("a/b.pdf".into())));
        for path in ["../a", "a/../../b", "file://elsewhere/a", "https://example.com/a"] {
            assert!(infer_source(Some("path"), path).unwrap_err().contains("attachments.folders"), "{path}");
        }
        assert!(infer_source(Some("s3"), "a").unwrap_err().contains("no fetch mode"));
    }

    #[test]
    fn the_endpoint_is_told_what_it_gets() {
        for (text, content_type) in [
            ("doc_id=7", "application/x-www-form-urlencoded"),
            ("a[0]=1&b=x%20y", "application/x-www-form-urlencoded"),
            ("{\"id\":7}", "application/json"),
            ("invoice 7 = the last", "text/plain; charset=utf-8"),
            ("=7", "text/plain; charset=utf-8"),
            ("7", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(endpoint_content_type(text), content_type, "{text}");
        }
    }

    #[test]
    fn base64_is_taken_padded_unpadded_and_broken_into_lines() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs\r\nbG8=\n", " aGVs bG8"] {
            assert_eq!(decode_base64(text).unwrap(), b"hello", "{text:?}");
        }
        for text in ["aGVsbG8*", "a", "aGVs=bG8", "data:text/plain;base64,aGVsbG8="] {
            assert!(decode_base64(text).is_err(), "{text:?}");
        }
    }
}
