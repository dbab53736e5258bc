//! The content type of a file, and whether it may be sent at all.
//!
//! A declared type is used, unless the signature of the content contradicts it in a way that could harm the
//! person who opens it: a file declared as an image, audio, video, font or PDF must not be a web page, script
//! or program. (This also catches an error page that was fetched instead of a document.) Without a declared
//! type, the signature and the file name decide.
//!
//! Programs are refused, by their content and by the extensions that Windows runs on a click: most mail hosts
//! refuse mail with such a file, and none is a document. Archives are not opened.

use std::fmt;

use infer::MatcherType;

/// Extensions that Windows runs, or hands to a program that runs their content.
const REFUSED_EXTENSIONS: [&str; 44] = [
    "ade",
    "adp",
    "appx",
    "appxbundle",
    "bat",
    "chm",
    "cmd",
    "com",
    "cpl",
    "dll",
    "exe",
    "hta",
    "ins",
    "isp",
    "jar",
    "jnlp",
    "js",
    "jse",
    "lnk",
    "mde",
    "mjs",
    "msc",
    "msi",
    "msix",
    "msixbundle",
    "msp",
    "mst",
    "nsh",
    "pif",
    "ps1",
    "psm1",
    "reg",
    "scf",
    "scr",
    "sct",
    "shb",
    "sys",
    "vb",
    "vbe",
    "vbs",
    "wsc",
    "wsf",
    "wsh",
    "xll",
];

/// Content types by extension, for files whose content has no signature.
const TYPES: [(&str, &str); 43] = [
    ("7z", "application/x-7z-compressed"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eml", "message/rfc822"),
    ("epub", "application/epub+zip"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("p7m", "application/pkcs7-mime"),
    ("p7s", "application/pkcs7-signature"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("tsv", "text/tab-separated-values"),
    ("txt", "text/plain"),
    ("vcf", "text/vcard"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// Containers: their signature says less than the file name.
const CONTAINERS: [&str; 4] =
    ["application/gzip", "application/x-ole-storage", "application/zip", "text/xml"];

const UNKNOWN: &str = "application/octet-stream";

/// Why a file is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedFile {
    /// The field of the attachment that is at fault.
    pub field: &'static str,
    /// The fault, and what to do about it.
    pub message: String,
}

impl fmt::Display for RefusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Decides the content type of a file, or refuses the file.
pub(crate) fn content_type(
    filename: &str,
    declared: Option<&str>,
    content: &[u8],
) -> Result<String, RefusedFile> {
    let refused = |field, message| Err(RefusedFile { field, message });
    let extension = extension(filename);
    if REFUSED_EXTENSIONS.contains(&extension.as_str()) {
        let message =
            format!("files ending in .{extension} are not sent: most mail hosts refuse them as dangerous");
        return refused("filename", message);
    }
    if is_program(content) {
        let message = "the file is a program: most mail hosts refuse such mail as dangerous";
        return refused("filename", message.to_owned());
    }
    let marks = marks(content);
    let Some(declared) = declared else { return Ok(guess(&extension, marks).to_owned()) };
    match marks.and_then(active) {
        Some(actual) if is_passive(declared) => {
            let message =
                format!("is {declared:?}, but the content is {actual}: check what the source gives");
            refused("content_type", message)
        }
        Some(_) | None => Ok(declared.to_owned()),
    }
}

/// The extension, in lower case. Windows ignores dots and spaces at the end of a file name.
fn extension(filename: &str) -> String {
    let name = filename.trim_end_matches(['.', ' ']);
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default()
}

/// The content type by signature. Signatures of programs are too weak to be trusted (for some, two letters
/// are enough), and [`is_program`] is more precise.
fn marks(content: &[u8]) -> Option<&'static str> {
    let kind = infer::get(content)?;
    (kind.matcher_type() != MatcherType::App).then(|| kind.mime_type())
}

fn guess(extension: &str, marks: Option<&'static str>) -> &'static str {
    let by_name = TYPES.iter().find(|(ending, _)| *ending == extension).map(|(_, kind)| *kind);
    match (by_name, marks) {
        // A text may begin like something else.
        (Some(by_name), _) if by_name.starts_with("text/") || by_name == "application/json" => by_name,
        (Some(by_name), Some(marks)) if CONTAINERS.contains(&marks) && !is_marked(by_name) => by_name,
        (_, Some(marks)) => marks,
        (Some(by_name), None) => by_name,
        (None, None) => UNKNOWN,
    }
}

/// Whether content of this type always has a signature.
fn is_marked(kind: &str) -> bool {
    kind == "application/pdf" || (kind.starts_with("image/") && kind != "image/svg+xml")
}

/// The name of a type that can run code, if it is one.
fn active(marks: &str) -> Option<&'static str> {
    match marks {
        "text/html" => Some("a web page"),
        "text/x-shellscript" => Some("a script"),
        _ => None,
    }
}

/// Whether a declared type implies that the file runs no code.
fn is_passive(declared: &str) -> bool {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_family = ["image/", "audio/", "video/", "font/"].iter().any(|family| essence.starts_with(family));
    essence == "application/pdf" || (is_family && essence != "image/svg+xml")
}

/// Whether the content is a program for Windows, Linux or macOS.
fn is_program(content: &[u8]) -> bool {
    is_windows_program(content) || content.starts_with(b"\x7fELF") || infer::app::is_mach(content)
}

/// Whether the content is `MZ` with `PE` at the offset that the header names. A text that merely begins with
/// `MZ` is not a program.
fn is_windows_program(content: &[u8]) -> bool {
    let header = || {
        let place = content.get(0x3c..0x40)?.try_into().ok().map(u32::from_le_bytes)?;
        content.get(usize::try_from(place).ok()?..)
    };
    content.starts_with(b"MZ") && header().is_some_and(|header| header.starts_with(b"PE\0\0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const HTML: &[u8] = b"<!DOCTYPE html><html><body>Please log in</body></html>";

    fn windows_program() -> Vec<u8> {
        let mut program = vec![0; 0x80];
        program[..2].copy_from_slice(b"MZ");
        program[0x3c] = 0x40;
        program[0x40..0x44].copy_from_slice(b"PE\0\0");
        program
    }

    fn kind(filename: &str, content: &[u8]) -> String {
        content_type(filename, None, content).unwrap()
    }

    #[test]
    fn types_come_from_the_content_and_the_name() {
        assert_eq!(kind("a", PNG), "image/png");
        assert_eq!(kind("a.pdf", PNG), "image/png");
        assert_eq!(kind("a.pdf", b"%PDF-1.7\n"), "application/pdf");
        assert_eq!(kind("a.PDF", b"what is this"), "application/pdf");
        assert_eq!(kind("a.csv", b"a,b\n1,2\n"), "text/csv");
        assert_eq!(kind("a.txt", HTML), "text/plain");
        assert_eq!(kind("a.svg", b"<?xml version=\"1.0\"?><svg/>"), "image/svg+xml");
        assert!(kind("a.docx", b"PK\x03\x04\x14\0\0\0").ends_with("wordprocessingml.document"));
        assert_eq!(kind("a.pdf", b"PK\x03\x04\x14\0\0\0"), "application/zip");
        assert_eq!(kind("a", b"BC is a province"), UNKNOWN);
        assert_eq!(kind("a.txt", b"MZ is a country code of old"), "text/plain");
        assert_eq!(kind("", b""), UNKNOWN);
    }

    #[test]
    fn a_declared_type_stands_unless_it_hides_something_that_acts() {
        let declared = |kind, content| content_type("a", Some(kind), content);
        assert_eq!(declared("application/x-invoice", PNG).unwrap(), "application/x-invoice");
        assert_eq!(declared("text/html", HTML).unwrap(), "text/html");
        assert_eq!(declared("text/plain", HTML).unwrap(), "text/plain");
        assert_eq!(declared("image/jpeg", PNG).unwrap(), "image/jpeg");
        for (kind, content) in
            [("application/pdf", HTML), ("Image/PNG; name=x", HTML), ("image/png", b"#!/bin/sh\n")]
        {
            assert_eq!(declared(kind, content).unwrap_err().field, "content_type", "{kind}");
        }
    }

    #[test]
    fn programs_are_refused_by_name_and_by_content() {
        for name in ["a.exe", "A.EXE", "invoice.pdf.js", "a.exe. .", "x.Vbs ", ".bat"] {
            assert_eq!(content_type(name, None, b"").unwrap_err().field, "filename", "{name}");
        }
        for content in [&windows_program()[..], b"\x7fELF\x02\x01\x01", b"\xcf\xfa\xed\xfe\x07\0\0\x01"] {
            assert_eq!(content_type("invoice.pdf", None, content).unwrap_err().field, "filename");
        }
        assert!(content_type("exe", None, b"").is_ok());
        assert!(REFUSED_EXTENSIONS.is_sorted() && TYPES.is_sorted());
    }
}
