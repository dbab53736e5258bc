//! What a command reads besides its arguments: texts, attachments, files. Bounded, and errors name the file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::cli::failure::CommandFailure;

/// No input is read beyond this; the server's own bound is lower and names itself.
const INPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A text given directly, as `@FILE`, as `-` for standard input, or behind `@@` if it begins with `@`.
pub fn read_text(part: &str) -> Result<String, CommandFailure> {
    let (path, bytes) = match part.strip_prefix('@') {
        Some(literal) if literal.starts_with('@') => return Ok(literal.to_owned()),
        Some(path) => (path, read_input(Path::new(path))?),
        None if part == "-" => (part, read_input(Path::new("-"))?),
        None => return Ok(part.to_owned()),
    };
    String::from_utf8(bytes).map_err(|_| CommandFailure::Usage(format!("{path} is not UTF-8 text")))
}

/// The bytes of a file, or of standard input for `-`; bounded.
pub fn read_input(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)),
    };
    match read {
        Ok(length) if length as u64 > INPUT_BYTES_MAX => {
            Err(CommandFailure::Usage(format!("{} is larger than {INPUT_BYTES_MAX} bytes", path.display())))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(CommandFailure::Usage(format!("cannot read {}: {error}", path.display()))),
    }
}

/// `NAME=VALUE`, as its two halves.
pub fn pair(text: &str) -> Result<(String, String), CommandFailure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(CommandFailure::Usage(format!("`{text}` is not a variable; write it like name=Ada"))),
    }
}

/// A file as the API takes an attachment.
pub fn attachment(path: &Path) -> Result<Value, CommandFailure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name =
        name.ok_or_else(|| CommandFailure::Usage(format!("{} has no usable file name", path.display())))?;
    let content = BASE64_STANDARD.encode(read_input(path)?);
    Ok(json!({"filename": name, "content_type": content_type(path), "content": content}))
}

/// The types that people attach most; all others are plain bytes.
fn content_type(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "txt" | "log" | "md" => "text/plain",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "ics" => "text/calendar",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "xml" => "application/xml",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "p7m" => "application/pkcs7-mime",
        _ => "application/octet-stream",
    }
}
