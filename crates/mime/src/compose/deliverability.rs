//! Header fields that mailbox providers require of bulk senders: how to unsubscribe, a mark for automatic
//! mail, and an id to count complaints by.
//!
//! The values become extra fields of a draft. They are printable ASCII and fit on a line, so a URL is neither
//! folded nor encoded: no mail program would reassemble it. A value that cannot be written like this is
//! refused.

use postway_domain::EmailAddress;

/// The longest URL or `mailto:`. A header line has 998 octets, and a URL must stay in one piece.
const UNSUBSCRIBE_OCTETS_MAX: usize = 890;
/// The longest part of a Feedback-ID before the sender.
const FEEDBACK_PART_OCTETS_MAX: usize = 64;
/// The length that Google requires of the sender's part of a Feedback-ID.
const FEEDBACK_SENDER_OCTETS: std::ops::RangeInclusive<usize> = 5..=15;

/// Which fields to write; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliverabilityOptions<'a> {
    /// An `https` address that unsubscribes.
    pub unsubscribe_url: Option<&'a str>,
    /// A mail address that unsubscribes, with or without `mailto:`; `?subject=…` may follow.
    pub unsubscribe_mailto: Option<&'a str>,
    /// Whether a POST to the URL is enough (RFC 8058), so that mailboxes can show a button.
    pub one_click: bool,
    /// Whether a program wrote the mail, so that other programs do not answer it (RFC 3834).
    pub auto_submitted: bool,
    /// The id that complaints are counted by.
    pub feedback: Option<FeedbackId<'a>>,
}

/// Google's Feedback-ID: three parts that the sender chooses, which may be empty, and the sender's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeedbackId<'a> {
    /// The parts, such as campaign, customer and kind of mail.
    pub parts: [&'a str; 3],
    /// The sender, the same in all its mail.
    pub sender: &'a str,
}

/// Why a field cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverabilityError {
    /// The URL cannot be used.
    #[error(
        "unsubscribe URL {0:?} is not valid: use https:// and at most {UNSUBSCRIBE_OCTETS_MAX} printable ASCII characters, no spaces or angle brackets"
    )]
    Url(String),
    /// The address cannot be used.
    #[error(
        "unsubscribe address {0:?} is not valid: use user@example.com or user@example.com?subject=… in ASCII, at most {UNSUBSCRIBE_OCTETS_MAX} characters, no spaces or angle brackets"
    )]
    Mailto(String),
    /// One-click was requested without a URL to post to.
    #[error("one-click unsubscribe needs an https URL: give one, or do not ask for it")]
    OneClick,
    /// The sender of a Feedback-ID cannot be used.
    #[error("feedback sender {0:?} is not valid: use 5 to 15 letters, digits, dots, hyphens and underscores")]
    FeedbackSender(String),
}

/// Makes the fields as names and values, in the order in which they are written.
pub fn deliverability_fields(
    wanted: &DeliverabilityOptions<'_>,
) -> Result<Vec<(&'static str, String)>, DeliverabilityError> {
    let mut fields = Vec::new();
    let url = wanted.unsubscribe_url.map(checked_url).transpose()?;
    let mailto = wanted.unsubscribe_mailto.map(checked_mailto).transpose()?;
    if wanted.one_click && url.is_none() {
        return Err(DeliverabilityError::OneClick);
    }
    let links: Vec<String> = [url, mailto].into_iter().flatten().map(|link| format!("<{link}>")).collect();
    if !links.is_empty() {
        fields.push(("List-Unsubscribe", links.join(", ")));
    }
    if wanted.one_click {
        fields.push(("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
    }
    if wanted.auto_submitted {
        fields.push(("Auto-Submitted", "auto-generated".to_owned()));
    }
    if let Some(feedback) = &wanted.feedback {
        fields.push(("Feedback-ID", feedback_id(feedback)?));
    }
    Ok(fields)
}

fn checked_url(url: &str) -> Result<String, DeliverabilityError> {
    const SCHEME: &str = "https://";
    let rest = url.get(..SCHEME.len()).filter(|start| start.eq_ignore_ascii_case(SCHEME));
    let host = rest.and(url.get(SCHEME.len()..)).and_then(|rest| rest.split(['/', '?', '#']).next());
    match host.filter(|host| !host.is_empty()).and_then(|_| unbroken(url)) {
        Some(url) => Ok(url),
        None => Err(DeliverabilityError::Url(shown(url))),
    }
}

fn checked_mailto(text: &str) -> Result<String, DeliverabilityError> {
    const SCHEME: &str = "mailto:";
    let has_scheme = text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    let rest = if has_scheme { &text[SCHEME.len()..] } else { text };
    let address = rest.split('?').next().unwrap_or_default();
    let is_address = address.parse::<EmailAddress>().is_ok();
    match unbroken(&format!("{SCHEME}{rest}")).filter(|_| is_address) {
        Some(mailto) => Ok(mailto),
        None => Err(DeliverabilityError::Mailto(shown(text))),
    }
}

/// The URI if it can be written between angle brackets without a fold.
fn unbroken(uri: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'\\');
    // The composer would encode a field in which an encoded word could begin. `%3F` means the same in a URI.
    let uri = uri.replace("=?", "=%3F");
    (uri.len() <= UNSUBSCRIBE_OCTETS_MAX && uri.bytes().all(is_plain)).then_some(uri)
}

fn feedback_id(feedback: &FeedbackId<'_>) -> Result<String, DeliverabilityError> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !FEEDBACK_SENDER_OCTETS.contains(&feedback.sender.len()) || !feedback.sender.chars().all(is_good) {
        return Err(DeliverabilityError::FeedbackSender(shown(feedback.sender)));
    }
    // A colon would shift the parts; the other replaced characters could break the line.
    let clean = |part: &str| -> String {
        part.chars().take(FEEDBACK_PART_OCTETS_MAX).map(|c| if is_good(c) { c } else { '_' }).collect()
    };
    let [first, second, third] = feedback.parts.map(clean);
    Ok(format!("{first}:{second}:{third}:{}", feedback.sender))
}

/// The beginning of a refused value, for an error message.
fn shown(value: &str) -> String {
    value.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MailDraft, compose};

    fn written(wanted: &DeliverabilityOptions<'_>) -> String {
        let headers: Vec<(String, String)> = deliverability_fields(wanted)
            .unwrap()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let draft = MailDraft {
            from: &"shop@example.com".parse().unwrap(),
            sender: None,
            to: &["a@example.net".parse().unwrap()],
            cc: &[],
            reply_to: &[],
            subject: "s",
            text: Some("t"),
            html: None,
            alternatives: &[],
            headers: &headers,
            attachments: &[],
            message_id: "u@example.com",
            uid: "u",
            date_unix: 0,
        };
        String::from_utf8(compose(&draft).unwrap().bytes).unwrap()
    }

    #[test]
    fn all_fields_are_written_as_their_readers_want_them() {
        let message = written(&DeliverabilityOptions {
            unsubscribe_url: Some("https://example.com/u?t=abc"),
            unsubscribe_mailto: Some("unsub@example.com?subject=abc"),
            one_click: true,
            auto_submitted: true,
            feedback: Some(FeedbackId { parts: ["c:1", "", "é\r\nBcc"], sender: "PostWay1" }),
        });
        assert!(message.contains("\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{message}");
        assert!(message.contains("\r\nAuto-Submitted: auto-generated\r\n"));
        assert!(message.contains("\r\nFeedback-ID: c_1::___Bcc:PostWay1\r\n"));
        let unfolded = message.replace("\r\n ", " ");
        let line =
            "\r\nList-Unsubscribe: <https://example.com/u?t=abc>, <mailto:unsub@example.com?subject=abc>\r\n";
        assert!(unfolded.contains(line), "{message}");
    }

    #[test]
    fn the_longest_url_is_neither_broken_nor_encoded() {
        let start = "https://example.com/?redirect=?x&a=";
        // The question mark after an equals sign grows by two.
        let url = format!("{start}{}", "a".repeat(UNSUBSCRIBE_OCTETS_MAX - start.len() - 2));
        let mailto = format!("u@example.com?subject={}", "b".repeat(UNSUBSCRIBE_OCTETS_MAX - 29));
        let message = written(&DeliverabilityOptions {
            unsubscribe_url: Some(&url),
            unsubscribe_mailto: Some(&mailto),
            ..DeliverabilityOptions::default()
        });
        assert!(message.contains(&format!("<{}>,", url.replace("=?", "=%3F"))), "{message}");
        assert!(message.contains(&format!("<mailto:{mailto}>")), "{message}");
        assert!(message.lines().all(|line| line.len() <= 998));
        assert!(!message.contains("=?"));
    }

    #[test]
    fn what_could_inject_or_be_broken_is_refused() {
        let long = format!("https://example.com/{}", "a".repeat(UNSUBSCRIBE_OCTETS_MAX));
        let plain = "http://example.com/u";
        for url in [
            plain,
            "https://",
            "https:///x",
            "https://a b",
            "https://a\r\nBcc: x",
            "https://é",
            "https://a>",
            &long,
        ] {
            let wanted =
                DeliverabilityOptions { unsubscribe_url: Some(url), ..DeliverabilityOptions::default() };
            assert_eq!(deliverability_fields(&wanted), Err(DeliverabilityError::Url(shown(url))));
        }
        for mailto in
            ["", "mailto:", "nobody", "a@b.example?subject=a b", "a@b.example\r\nX: y", "<a@b.example>"]
        {
            let wanted = DeliverabilityOptions {
                unsubscribe_mailto: Some(mailto),
                ..DeliverabilityOptions::default()
            };
            assert_eq!(deliverability_fields(&wanted), Err(DeliverabilityError::Mailto(shown(mailto))));
        }
        for sender in ["", "four", "sixteencharacter", "a:bcd", "with space"] {
            let feedback = Some(FeedbackId { sender, ..FeedbackId::default() });
            let wanted = DeliverabilityOptions { feedback, ..DeliverabilityOptions::default() };
            let refused = Err(DeliverabilityError::FeedbackSender(sender.to_owned()));
            assert_eq!(deliverability_fields(&wanted), refused);
        }
    }

    #[test]
    fn one_click_needs_a_url() {
        let wanted = DeliverabilityOptions {
            unsubscribe_mailto: Some("u@example.com"),
            one_click: true,
            ..DeliverabilityOptions::default()
        };
        assert_eq!(deliverability_fields(&wanted), Err(DeliverabilityError::OneClick));
        assert_eq!(deliverability_fields(&DeliverabilityOptions::default()), Ok(Vec::new()));
    }
}
