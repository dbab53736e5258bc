//! Alternative bodies of a mail: an invitation, an interactive mail, a version for watches.
//!
//! They are parts of `multipart/alternative`, beside text and html. A mail program shows the last part that
//! it understands, so the order is fixed: text, then `text/watch-html` and `text/x-amp-html` before the html,
//! as Apple and Gmail require, and the calendar last, because Outlook and Gmail then show an invitation.
//!
//! A calendar states its method twice, in its `METHOD` property and in the parameter of its content type, and
//! programs use either. A method that is given once is written to both; two different methods are refused.

use std::borrow::Cow;

use crate::html;

/// The maximum number of alternatives in one message. Each kind can occur once.
pub const ALTERNATIVES_MAX: usize = 5;

/// The methods of a calendar (RFC 5546, 1.4).
const METHODS: [&str; 8] =
    ["PUBLISH", "REQUEST", "REPLY", "ADD", "CANCEL", "REFRESH", "COUNTER", "DECLINECOUNTER"];

/// The kind of an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlternativeKind {
    /// `text/watch-html`: a short version for watches.
    Watch,
    /// `text/x-amp-html`: an interactive mail.
    Amp,
    /// `text/calendar`, with its method in capital letters.
    Calendar(&'static str),
}

/// One checked alternative body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyAlternative<'a> {
    kind: AlternativeKind,
    content: Cow<'a, str>,
    /// Whether a calendar is also attached as a file.
    attached: bool,
}

/// Why a text cannot be an alternative.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlternativeError {
    /// The content type is not one of the known types.
    #[error(
        "must be text/calendar, text/x-amp-html or text/watch-html, with no parameters but charset=utf-8 and a calendar's method"
    )]
    ContentType,
    /// The method is missing or unknown.
    #[error(
        "has no valid method: use one of PUBLISH, REQUEST, REPLY, ADD, CANCEL, REFRESH, COUNTER, DECLINECOUNTER"
    )]
    Method,
    /// The content type and the calendar name different methods.
    #[error("says method={parameter}, and the calendar says METHOD:{property}: make them the same")]
    OtherMethod {
        /// The method in the content type.
        parameter: &'static str,
        /// The method in the calendar.
        property: &'static str,
    },
    /// The content does not match its type.
    #[error("{0}")]
    Content(String),
    /// Only a calendar can also be attached.
    #[error("only a calendar can be attached as a file as well")]
    Attached,
}

impl AlternativeError {
    /// The request field that is wrong.
    pub fn field(&self) -> &'static str {
        match self {
            Self::ContentType | Self::Method | Self::OtherMethod { .. } => "content_type",
            Self::Content(_) => "content",
            Self::Attached => "attach",
        }
    }
}

impl<'a> BodyAlternative<'a> {
    /// Checks a text of this content type; with `attach`, a calendar is also attached as `invite.ics`.
    pub fn new(content_type: &str, content: &'a str, attach: bool) -> Result<Self, AlternativeError> {
        let (essence, parameter) = read_type(content_type)?;
        if content.contains('\0') {
            return Err(AlternativeError::Content("contains a NUL character: remove it".to_owned()));
        }
        let (kind, content) = match essence.as_str() {
            "text/calendar" => calendar(parameter, content)?,
            _ if parameter.is_some() => return Err(AlternativeError::ContentType),
            "text/x-amp-html" => (amp(content)?, Cow::Borrowed(content)),
            "text/watch-html" => (watch(content)?, Cow::Borrowed(content)),
            _ => return Err(AlternativeError::ContentType),
        };
        if attach && !matches!(kind, AlternativeKind::Calendar(_)) {
            return Err(AlternativeError::Attached);
        }
        Ok(Self { kind, content, attached: attach })
    }

    /// What it is.
    pub fn kind(&self) -> AlternativeKind {
        self.kind
    }

    /// The content, with a calendar's method filled in.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Whether it is also attached as a file.
    pub(crate) fn is_attached(&self) -> bool {
        self.attached
    }

    /// Whether it comes before the html.
    pub(crate) fn is_before_html(&self) -> bool {
        !matches!(self.kind, AlternativeKind::Calendar(_))
    }

    /// The value of its `Content-Type` field.
    pub(crate) fn content_type(&self) -> String {
        match self.kind {
            AlternativeKind::Watch => "text/watch-html; charset=utf-8".to_owned(),
            AlternativeKind::Amp => "text/x-amp-html; charset=utf-8".to_owned(),
            AlternativeKind::Calendar(method) => format!("text/calendar; charset=utf-8; method={method}"),
        }
    }
}

/// The media type in lower case, and the method if there is one.
fn read_type(content_type: &str) -> Result<(String, Option<&'static str>), AlternativeError> {
    let mut parts = content_type.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut method = None;
    for parameter in parts.map(str::trim).filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or(AlternativeError::ContentType)?;
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "charset" if value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("us-ascii") => {}
            "method" if method.is_none() => method = Some(known_method(value)?),
            _ => return Err(AlternativeError::ContentType),
        }
    }
    Ok((essence, method))
}

fn known_method(word: &str) -> Result<&'static str, AlternativeError> {
    let known = METHODS.into_iter().find(|method| method.eq_ignore_ascii_case(word));
    known.ok_or(AlternativeError::Method)
}

const BEGIN: &str = "BEGIN:VCALENDAR";
const END: &str = "END:VCALENDAR";

/// Checks the first and last line of a calendar, and finds or fills in its method.
fn calendar<'a>(
    parameter: Option<&'static str>,
    content: &'a str,
) -> Result<(AlternativeKind, Cow<'a, str>), AlternativeError> {
    let content = content.trim_start_matches(['\u{feff}', '\r', '\n', ' ']);
    let is_line = |text: &str, line: &str| text.trim_end().eq_ignore_ascii_case(line);
    let mut lines = content.lines();
    let ends = content.trim_end().lines().next_back().is_some_and(|line| is_line(line, END));
    if !lines.next().is_some_and(|line| is_line(line, BEGIN)) || !ends {
        let message = format!("is no calendar: it must begin with {BEGIN} and end with {END}");
        return Err(AlternativeError::Content(message));
    }
    // The calendar's own properties come before its first component.
    let own =
        lines.take_while(|line| !line.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("BEGIN:")));
    let mut property = None;
    for line in own {
        let Some((name, value)) = line.split_once(':') else { continue };
        if !name.trim().eq_ignore_ascii_case("METHOD") {
            continue;
        }
        if property.is_some() {
            return Err(AlternativeError::Content("has METHOD twice: keep one".to_owned()));
        }
        property = Some(known_method(value.trim())?);
    }
    match (parameter, property) {
        (Some(parameter), Some(property)) if parameter != property => {
            Err(AlternativeError::OtherMethod { parameter, property })
        }
        (_, Some(method)) => Ok((AlternativeKind::Calendar(method), Cow::Borrowed(content))),
        (Some(method), None) => {
            let filled = format!("{BEGIN}\r\nMETHOD:{method}{}", &content[BEGIN.len()..]);
            Ok((AlternativeKind::Calendar(method), Cow::Owned(filled)))
        }
        (None, None) => Err(AlternativeError::Method),
    }
}

/// AMP loads its own scripts from a host that mail programs know, so it is not checked as html. This only
/// checks that it is AMP.
fn amp(content: &str) -> Result<AlternativeKind, AlternativeError> {
    let start: String = content.chars().take(1_000).collect::<String>().to_ascii_lowercase();
    let is_amp = start.contains("<html") && (start.contains("amp4email") || start.contains("\u{26a1}4email"));
    match is_amp {
        true => Ok(AlternativeKind::Amp),
        false => Err(AlternativeError::Content("is no AMP mail: its <html> must say amp4email".to_owned())),
    }
}

fn watch(content: &str) -> Result<AlternativeKind, AlternativeError> {
    match html::check(content) {
        Ok(()) => Ok(AlternativeKind::Watch),
        Err(faults) => {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            Err(AlternativeError::Content(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVITATION: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nMETHOD:x\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    const BARE: &str = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR";

    #[test]
    fn a_method_is_said_in_both_places() {
        for content_type in [
            "text/calendar",
            "Text/Calendar; METHOD=request; charset=\"UTF-8\"",
            "text/calendar; method=\"REQUEST\"",
        ] {
            let made = BodyAlternative::new(content_type, INVITATION, false).unwrap();
            assert_eq!(made.content_type(), "text/calendar; charset=utf-8; method=REQUEST");
            assert_eq!(made.content(), INVITATION);
        }
        let made = BodyAlternative::new("text/calendar; method=CANCEL", BARE, true).unwrap();
        assert!(
            made.content().starts_with("BEGIN:VCALENDAR\r\nMETHOD:CANCEL\nVERSION:2.0"),
            "{}",
            made.content()
        );
        assert!(made.is_attached());
    }

    #[test]
    fn what_is_no_invitation_is_refused_with_its_field() {
        let wrong = |content_type: &str, content: &str| {
            BodyAlternative::new(content_type, content, false).unwrap_err().field()
        };
        for content_type in [
            "text/html",
            "text/plain",
            "application/pdf",
            "",
            "text/calendar; charset=latin1",
            "text/calendar; x=y",
            "text/calendar; method=REQUEST; method=CANCEL",
            "text/calendar; method=REQUEST\r\nX-Evil: 1",
            "text/calendar; method=INVITE",
            "text/calendar; method=CANCEL",
            "text/x-amp-html; method=REQUEST",
        ] {
            assert_eq!(wrong(content_type, INVITATION), "content_type", "{content_type:?}");
        }
        assert_eq!(wrong("text/calendar", BARE), "content_type", "no method anywhere");
        for content in [
            "",
            "hello",
            "BEGIN:VCALENDAR\nMETHOD:REQUEST\n",
            "BEGIN:VCALENDAR\nMETHOD:REQUEST\nMETHOD:REQUEST\nEND:VCALENDAR",
            "a\0b",
        ] {
            assert_eq!(wrong("text/calendar; method=REQUEST", content), "content", "{content:?}");
        }
        assert_eq!(wrong("text/x-amp-html", "<html><body>x"), "content");
        assert_eq!(wrong("text/watch-html", "<p onclick=x>"), "content");
        let amp = "<!doctype html><html ⚡4email><head></head></html>";
        assert_eq!(BodyAlternative::new("text/x-amp-html", amp, true).unwrap_err().field(), "attach");
    }
}
