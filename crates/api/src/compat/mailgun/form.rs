//! Reads forms: `multipart/form-data` (RFC 7578) and `application/x-www-form-urlencoded`.
//!
//! The body is in memory already, and bounded; files are slices of it. A form whose last boundary is missing
//! was cut off and is refused.

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use memchr::memmem;
use url::form_urlencoded;

use crate::http::{body::essence, error::ApiError};

/// The most fields of a form.
const FIELDS_MAX: usize = 5_000;
/// The longest head of a part.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Fields whose bytes are no text, also where they have no name of a file.
const FILE_FIELDS: [&str; 3] = ["attachment", "inline", "message"];
/// The longest boundary; RFC 2046 allows 70.
const BOUNDARY_BYTES_MAX: usize = 200;

/// A form.
#[derive(Debug, Default)]
pub(super) struct MailgunForm {
    texts: Vec<(String, String)>,
    pub(super) files: Vec<FormFile>,
}

/// A file of a form.
#[derive(Debug, PartialEq)]
pub(super) struct FormFile {
    /// The name of the field.
    pub(super) field: String,
    pub(super) filename: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) bytes: Bytes,
}

impl MailgunForm {
    /// Reads the form that a body with these headers is.
    pub(super) fn read(headers: &HeaderMap, body: &Bytes) -> Result<Self, ApiError> {
        let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let essence = essence(kind);
        if essence.eq_ignore_ascii_case(b"multipart/form-data") {
            let boundary = std::str::from_utf8(kind).ok().and_then(|kind| parameter(kind, "boundary"));
            return match boundary.filter(|text| (1..=BOUNDARY_BYTES_MAX).contains(&text.len())) {
                Some(boundary) => multipart(body, &boundary),
                None => Err(ApiError::malformed("the content type names no boundary")),
            };
        }
        if essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
            return urlencoded(body);
        }
        Err(ApiError::media_type("this call takes multipart/form-data or application/x-www-form-urlencoded"))
    }

    /// The first value of a field, unless it is blank.
    pub(super) fn text<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).find(|value| !value.trim().is_empty())
    }

    /// Every value of a field, in order.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.texts.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The fields with this prefix, without it.
    pub(super) fn beginning<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.texts.iter().filter_map(move |(name, value)| Some((name.strip_prefix(start)?, value.as_str())))
    }

    /// A form of texts, for tests.
    #[cfg(test)]
    pub(super) fn of(texts: &[(&str, &str)]) -> Self {
        let texts = texts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { texts: texts.collect(), files: Vec::new() }
    }
}

fn too_many() -> ApiError {
    ApiError::malformed(format!("the form has more than {FIELDS_MAX} fields"))
}

fn urlencoded(body: &[u8]) -> Result<MailgunForm, ApiError> {
    let mut form = MailgunForm::default();
    for (name, value) in form_urlencoded::parse(body) {
        if form.texts.len() == FIELDS_MAX {
            return Err(too_many());
        }
        form.texts.push((name.into_owned(), value.into_owned()));
    }
    Ok(form)
}

fn multipart(body: &Bytes, boundary: &str) -> Result<MailgunForm, ApiError> {
    let cut = || ApiError::malformed("the form ended before its last boundary");
    let line = format!("\r\n--{boundary}");
    let delimiter = memmem::Finder::new(&line);
    // The first one need not follow a line; what stands before it means nothing.
    let mut at = match body.starts_with(&line.as_bytes()[2..]) {
        true => line.len() - 2,
        false => delimiter.find(body).ok_or_else(cut)? + line.len(),
    };
    let mut form = MailgunForm::default();
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Ok(form);
        }
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if !rest[blank..].starts_with(b"\r\n") {
            return Err(if rest.len() <= blank + 1 { cut() } else { not_a_form() });
        }
        if form.texts.len() + form.files.len() == FIELDS_MAX {
            return Err(too_many());
        }
        // The line's end stays, so that a part without a head has an empty line too.
        let start = at + blank;
        let length = delimiter.find(&body[start + 2..]).ok_or_else(cut)? + 2;
        let part = body.slice(start..start + length);
        form.add(&part)?;
        at = start + length + line.len();
    }
}

fn not_a_form() -> ApiError {
    ApiError::malformed("the form cannot be read: a part has no head with its name")
}

impl MailgunForm {
    /// Adds a part, which begins with a line's end.
    fn add(&mut self, part: &Bytes) -> Result<(), ApiError> {
        let window = &part[..part.len().min(HEAD_BYTES_MAX)];
        let end = memmem::find(window, b"\r\n\r\n").ok_or_else(not_a_form)?;
        let head = std::str::from_utf8(&part[..end]).map_err(|_| not_a_form())?;
        let line = |name: &str| {
            let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
            lines.find(|(other, _)| other.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        let disposition = line("Content-Disposition").ok_or_else(not_a_form)?;
        let field = parameter(disposition, "name").ok_or_else(not_a_form)?;
        let filename = extended(disposition).or_else(|| parameter(disposition, "filename"));
        let bytes = part.slice(end + 4..);
        if filename.is_none() && !FILE_FIELDS.contains(&&*field) {
            let text = String::from_utf8(bytes.into())
                .map_err(|_| ApiError::field(field.chars().take(100).collect::<String>(), "must be UTF-8"))?;
            self.texts.push((field, text));
            return Ok(());
        }
        let content_type = line("Content-Type").filter(|kind| !kind.is_empty()).map(str::to_owned);
        let filename = filename.filter(|name| !name.is_empty());
        // A form that a person filled in has such a part where no file was chosen.
        if filename.is_some() || !bytes.is_empty() {
            self.files.push(FormFile { field, filename, content_type, bytes });
        }
        Ok(())
    }
}

/// A parameter of a header, without its quotes. Browsers and clients write quotes and line breaks in names as
/// `%22`, `%0D` and `%0A`, others put a backslash before quotes.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (found, after) = rest.split_once('=')?;
        let found = found.trim_matches([' ', '\t', ';']);
        let (given, behind) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => read_quoted(quoted)?,
            None => {
                let (given, behind) = after.split_once(';').unwrap_or((after, ""));
                (given.trim().to_owned(), behind)
            }
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(given.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"));
        }
        rest = behind;
    }
}

/// The text up to its closing quote, and what follows.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let (mut given, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((given, &text[at + 1..])),
            '\\' if text[at + 1..].starts_with(['"', '\\']) => {
                given.extend(letters.next().map(|(_, next)| next))
            }
            _ => given.push(letter),
        }
    }
    None
}

/// `filename*=UTF-8''…` of RFC 5987.
fn extended(disposition: &str) -> Option<String> {
    let given = parameter(disposition, "filename*")?;
    let (charset, rest) = given.split_once('\'')?;
    let encoded = rest.split_once('\'')?.1;
    // As a form's name, in which these characters would mean something else.
    let encoded = encoded.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let decoded = form_urlencoded::parse(encoded.as_bytes()).next()?.0.into_owned();
    charset.eq_ignore_ascii_case("utf-8").then_some(decoded)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(kind: &'static str, body: &str) -> Result<MailgunForm, u16> {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let body = Bytes::copy_from_slice(body.as_bytes());
        MailgunForm::read(&headers, &body).map_err(|error| error.status().as_u16())
    }

    const KIND: &str = "multipart/form-data; boundary=\"x y\"";

    #[test]
    fn a_form_in_parts_is_read() {
        let body = "before\r\n--x y\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\na@example.net\r\n\
                    --x y  \r\ncontent-disposition: form-data; name=to\r\n\r\n\r\n--x\r\nb\r\n\
                    --x y\r\nContent-Disposition: form-data; name=\"attachment\"; filename=\"a %22\\\"; b.txt\"\r\n\
                    Content-Type: text/plain\r\n\r\n\r\n\r\n--x y\r\n\
                    Content-Disposition: form-data; name=\"inline\"; filename=\"x\"; filename*=utf-8''%C3%A4+&.png\r\n\r\nhi\r\n\
                    --x y\r\nContent-Disposition: form-data; name=\"attachment\"; filename=\"\"\r\n\r\n\r\n--x y--\r\nafter";
        let form = read(KIND, body).unwrap();
        assert_eq!(form.all("to").collect::<Vec<_>>(), ["a@example.net", "\r\n--x\r\nb"]);
        let [first, second] = &form.files[..] else { panic!("{:?}", form.files) };
        assert_eq!(first.filename.as_deref(), Some("a \"\"; b.txt"));
        assert_eq!((first.content_type.as_deref(), &first.bytes[..]), (Some("text/plain"), &b"\r\n"[..]));
        assert_eq!((second.filename.as_deref(), &second.field[..]), (Some("ä+&.png"), "inline"));
    }

    #[test]
    fn a_form_of_one_line_is_read() {
        let form = read("application/x-www-form-urlencoded; charset=utf-8", "to=a%40x&to=b+c&v:n=%C3%A4&e=")
            .unwrap();
        assert_eq!((form.text("to"), form.text("e")), (Some("a@x"), None));
        assert_eq!(form.all("to").count(), 2);
        assert_eq!(form.beginning("v:").collect::<Vec<_>>(), [("n", "ä")]);
    }

    #[test]
    fn what_is_no_form_is_refused() {
        assert_eq!(read("application/json", "{}").err(), Some(415));
        assert_eq!(read("multipart/form-data", "--x--").err(), Some(400));
        for bad in [
            "",
            "--x y",
            "--x yz\r\n",
            "--x y\r\nContent-Disposition: form-data; name=to\r\n\r\ncut",
            "--x y\r\n\r\nno head\r\n--x y--",
            "--x y\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--x y--",
            "--x y\r\nContent-Disposition: form-data; name=\"open\r\n\r\nx\r\n--x y--",
        ] {
            assert_eq!(read(KIND, bad).err(), Some(400), "{bad:?}");
        }
        assert!(read(KIND, "--x y--").unwrap().files.is_empty());
        let many = "a=1&".repeat(FIELDS_MAX + 1);
        assert_eq!(read("application/x-www-form-urlencoded", &many).err(), Some(400));
    }
}
