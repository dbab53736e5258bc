//! Links to files that are too large to mail: made for a message, told in its texts, and followed later.

use std::{borrow::Cow, fmt::Write as _};

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{MessageUid, Time, secret::SecretKey};
use postway_store::record::{BlobName, Link};

use crate::accept::check::Content;

/// How much of the digest a link carries.
const MAC_BYTES: usize = 16;
/// A link's bytes: message, blob and digest.
const TOKEN_BYTES: usize = 16 + 32 + 8 + MAC_BYTES;

/// The key that signs links. Never printed. Links are followed for years: what the key's predecessor signed is read too.
pub(crate) struct LinkKey {
    key: hmac::Key,
    previous: Option<Box<LinkKey>>,
}

impl LinkKey {
    pub(crate) fn new(secret: &SecretKey) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.derive("link"));
        Self { key, previous: secret.previous().map(|previous| Box::new(Self::new(previous))) }
    }

    fn mac(&self, said: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&hmac::sign(&self.key, said).as_ref()[..MAC_BYTES]);
        mac
    }

    fn made(&self, said: &[u8], mac: &[u8]) -> bool {
        let is_ours = verify_slices_are_equal(mac, &self.mac(said)).is_ok();
        is_ours || self.previous.as_ref().is_some_and(|previous| previous.made(said, mac))
    }

    /// What stands in a link to this file of this message.
    pub(crate) fn token(&self, uid: MessageUid, blob: &BlobName) -> String {
        let mut bytes = Vec::with_capacity(TOKEN_BYTES);
        bytes.extend_from_slice(uid.as_bytes());
        bytes.extend_from_slice(&blob.digest);
        bytes.extend_from_slice(&blob.generation.to_be_bytes());
        let mac = self.mac(&bytes);
        bytes.extend_from_slice(&mac);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The message and the file that a token stands for, if it is one of ours.
    pub(crate) fn read(&self, token: &str) -> Option<(MessageUid, BlobName)> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (said, mac) = bytes.split_at_checked(TOKEN_BYTES - MAC_BYTES)?;
        if !self.made(said, mac) {
            return None;
        }
        let (uid, rest) = said.split_first_chunk::<16>()?;
        let (digest, generation) = rest.split_first_chunk::<32>()?;
        let generation = i64::from_be_bytes(generation.try_into().ok()?);
        Some((MessageUid::from_bytes(*uid), BlobName { digest: *digest, generation }))
    }
}

/// What a reader is told of a linked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkText {
    pub filename: String,
    pub size: u64,
    pub url: String,
    pub until: Time,
}

/// Puts the links at the end of both texts. Names come from the sender, so they are escaped.
pub(crate) fn tell(content: &mut Content<'_>, links: &[LinkText]) {
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

fn in_html(html: &str, links: &[LinkText]) -> String {
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

/// Where the body ends: before the last `</body` that is in no comment. Mail for Outlook is full of comments.
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

fn in_text(text: &str, links: &[LinkText]) -> String {
    let mut told = text.trim_end().to_owned();
    told.push_str("\n\n--\n");
    for link in links {
        let name = link.filename.replace(char::is_control, " ");
        let _ = writeln!(told, "{name} ({}, until {}):\n{}", size(link.size), day(link.until), link.url);
    }
    told
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
        // What would be rounded up to a thousand is told in the next unit.
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

/// What came of following a link.
#[derive(Clone, Debug)]
pub enum Followed {
    /// The file.
    File(Link),
    /// It was there once.
    Ended,
    /// There is no such link.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> LinkText {
        LinkText {
            filename: "a<b>\"&\r\nX: y.pdf".to_owned(),
            size: 26_214_400,
            url: "https://mail.example.com/files/abc".to_owned(),
            until: Time::from_millis(1_700_000_000_000),
        }
    }

    #[test]
    fn a_token_is_read_again_and_no_other_is() {
        let key = LinkKey::new(&SecretKey::from_bytes(&[7; 32]).unwrap());
        let uid = MessageUid::from_bytes([3; 16]);
        let blob = BlobName { digest: [9; 32], generation: 2 };
        let token = key.token(uid, &blob);
        assert_eq!(key.read(&token), Some((uid, blob)));
        let other = LinkKey::new(&SecretKey::from_bytes(&[8; 32]).unwrap());
        assert_eq!(other.read(&token), None);
        let secret = |byte| SecretKey::from_bytes(&[byte; 32]).unwrap();
        let renewed = LinkKey::new(&secret(8).with_previous(secret(7)));
        assert_eq!(renewed.read(&token).map(|(uid, _)| uid), Some(uid), "a link outlives its key");
        for bad in ["", "x", &token[..token.len() - 2], &format!("{token}AA"), "../../x"] {
            assert_eq!(key.read(bad), None, "{bad}");
        }
    }

    #[test]
    fn links_are_told_in_both_texts_and_names_cannot_break_out() {
        let mut content = Content {
            html: Some("<body><p>Hi</p></BODY></html>".into()),
            text: Some("Hi".into()),
            ..Content::default()
        };
        tell(&mut content, &[link()]);
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
