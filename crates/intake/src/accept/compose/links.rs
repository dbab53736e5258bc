//! Links to files that are too large to mail: signed for a message, appended to its texts, and followed
//! later.

use std::{borrow::Cow, fmt::Write as _};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{MessageUid, Time, secret::SecretKey};
use postway_store::record::{BlobName, FileLink};

use crate::accept::check::CheckedContent;

/// How many bytes of the MAC a link carries.
const MAC_BYTES: usize = 16;
/// The bytes of a token: message uid, blob name and MAC.
const TOKEN_BYTES: usize = 16 + 32 + 8 + MAC_BYTES;

/// Signs links. Never printed. Links are followed for years, so links that a previous key signed are accepted
/// too.
pub(crate) struct FileLinkKey {
    key: hmac::Key,
    previous: Option<Box<FileLinkKey>>,
}

impl FileLinkKey {
    pub(crate) fn new(secret: &SecretKey) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.derive("link"));
        Self { key, previous: secret.previous().map(|previous| Box::new(Self::new(previous))) }
    }

    fn mac(&self, signed_part: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&hmac::sign(&self.key, signed_part).as_ref()[..MAC_BYTES]);
        mac
    }

    fn signed(&self, signed_part: &[u8], mac: &[u8]) -> bool {
        let is_ours = verify_slices_are_equal(mac, &self.mac(signed_part)).is_ok();
        is_ours || self.previous.as_ref().is_some_and(|previous| previous.signed(signed_part, mac))
    }

    /// The token in the link to this file of this message.
    pub(crate) fn token(&self, uid: MessageUid, blob: &BlobName) -> String {
        let mut bytes = Vec::with_capacity(TOKEN_BYTES);
        bytes.extend_from_slice(uid.as_bytes());
        bytes.extend_from_slice(&blob.digest);
        bytes.extend_from_slice(&blob.generation.to_be_bytes());
        let mac = self.mac(&bytes);
        bytes.extend_from_slice(&mac);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The message and the file of a token, if we signed it.
    pub(crate) fn read(&self, token: &str) -> Option<(MessageUid, BlobName)> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (signed_part, mac) = bytes.split_at_checked(TOKEN_BYTES - MAC_BYTES)?;
        if !self.signed(signed_part, mac) {
            return None;
        }
        let (uid, rest) = signed_part.split_first_chunk::<16>()?;
        let (digest, generation) = rest.split_first_chunk::<32>()?;
        let generation = i64::from_be_bytes(generation.try_into().ok()?);
        Some((MessageUid::from_bytes(*uid), BlobName { digest: *digest, generation }))
    }
}

/// A linked file as the mail shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileLinkText {
    pub filename: String,
    pub size: u64,
    pub url: String,
    pub until: Time,
}

/// Appends the links to both texts. File names come from the sender, so they are escaped.
pub(crate) fn append_links(content: &mut CheckedContent<'_>, links: &[FileLinkText]) {
    if links.is_empty() {
        return;
    }
    if let Some(html) = content.html.take() {
        content.html = Some(Cow::Owned(in_html(&html, links)));
    }
    if let Some(text) = content.text.take() {
        content.text = Some(Cow::Owned(in_text(&text, links)));
    }
}

fn in_html(html: &str, links: &[FileLinkText]) -> String {
    let mut list = String::from("<hr><ul>");
    // Writing to a String does not fail.
    for link in links {
        let _ = write!(
            list,
            "<li><a href=\"{}\">{}</a> ({}, until {})</li>",
            escaped(&link.url),
            escaped(&link.filename),
            size(link.size),
            day(link.until),
        );
    }
    list.push_str("</ul>");
    let at = end_of_body(html);
    format!("{}{list}{}", &html[..at], &html[at..])
}

/// Where the body ends: before the last `</body` outside a comment. Mail for Outlook is full of comments.
fn end_of_body(html: &str) -> usize {
    let lower = html.to_ascii_lowercase();
    let (mut at, mut end) = (0, None);
    loop {
        let comment = lower[at..].find("<!--").map_or(lower.len(), |found| at + found);
        end = lower[at..comment].rfind("</body").map(|found| at + found).or(end);
        match lower[comment..].find("-->") {
            Some(found) => at = comment + found,
            None => return end.unwrap_or(html.len()),
        }
    }
}

fn in_text(text: &str, links: &[FileLinkText]) -> String {
    let mut linked = text.trim_end().to_owned();
    linked.push_str("\n\n--\n");
    for link in links {
        let name = link.filename.replace(char::is_control, " ");
        let _ = writeln!(linked, "{name} ({}, until {}):\n{}", size(link.size), day(link.until), link.url);
    }
    linked
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut shown = format!("{bytes} bytes");
    for unit in UNITS {
        // A value that would be rounded up to a thousand is shown in the next unit.
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        shown = format!("{value:.1} {unit}");
    }
    shown
}

fn day(time: Time) -> String {
    time.to_string().chars().take(10).collect()
}

/// What a link leads to.
#[derive(Clone, Debug)]
pub enum FileLinkTarget {
    /// The file exists.
    File(FileLink),
    /// The link is ours, but it has expired.
    Ended,
    /// We did not make such a link.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> FileLinkText {
        FileLinkText {
            filename: "a<b>\"&\r\nX: y.pdf".to_owned(),
            size: 26_214_400,
            url: "https://mail.example.com/files/abc".to_owned(),
            until: Time::from_millis(1_700_000_000_000),
        }
    }

    #[test]
    fn a_token_is_read_again_and_no_other_is() {
        let key = FileLinkKey::new(&SecretKey::from_bytes(&[7; 32]).unwrap());
        let uid = MessageUid::from_bytes([3; 16]);
        let blob = BlobName { digest: [9; 32], generation: 2 };
        let token = key.token(uid, &blob);
        assert_eq!(key.read(&token), Some((uid, blob)));
        let other = FileLinkKey::new(&SecretKey::from_bytes(&[8; 32]).unwrap());
        assert_eq!(other.read(&token), None);
        let secret = |byte| SecretKey::from_bytes(&[byte; 32]).unwrap();
        let renewed = FileLinkKey::new(&secret(8).with_previous(secret(7)));
        assert_eq!(renewed.read(&token).map(|(uid, _)| uid), Some(uid), "a link outlives its key");
        for bad in ["", "x", &token[..token.len() - 2], &format!("{token}AA"), "../../x"] {
            assert_eq!(key.read(bad), None, "{bad}");
        }
    }

    #[test]
    fn links_are_told_in_both_texts_and_names_cannot_break_out() {
        let mut content = CheckedContent {
            html: Some("<body><p>Hi</p></BODY></html>".into()),
            text: Some("Hi".into()),
            ..CheckedContent::default()
        };
        append_links(&mut content, &[link()]);
        let html = content.html.unwrap();
        assert!(
            html.starts_with("<body><p>Hi</p><hr><ul><li><a href=\"https://mail.example.com/files/abc\">")
        );
        assert!(html.contains("a&lt;b&gt;&quot;&amp;") && html.ends_with("</ul></BODY></html>"), "{html}");
        let text = content.text.unwrap();
        assert!(text.contains("(26.2 MB, until 2023-11-14):\nhttps://mail.example.com/files/abc"), "{text}");
        assert!(!text.contains("\nX: y"), "{text}");
    }

    #[test]
    fn links_stand_before_the_end_of_the_body_and_in_no_comment() {
        for (html, at) in [
            ("<p>Hi</p>", 9),
            ("<body>a</body></html>", 7),
            ("<body>a</BODY ><!-- </body> -->", 7),
            ("<body><!--[if mso]></body><![endif]-->a</body>", 39),
            ("<body>a</body><!-- </body>", 7),
            ("<!-->a</body>", 6),
        ] {
            assert_eq!(end_of_body(html), at, "{html}");
        }
    }

    #[test]
    fn sizes_are_told_in_words_people_use() {
        assert_eq!([999, 1_000, 999_960, 1_500_000].map(size), ["999 bytes", "1.0 KB", "1.0 MB", "1.5 MB"]);
    }
}
