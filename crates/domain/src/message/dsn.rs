//! A sender's wishes about delivery reports (RFC 3461): NOTIFY and ORCPT of a recipient, RET and ENVID of a
//! mail.
//!
//! Postway passes them on and does not act on them: a relay that offers DSN gets the same parameters, and the
//! server that delivers makes the reports. An account or a message can ask for reports itself
//! ([`DsnRequest`]). The values are stored as SMTP writes them. They are checked when
//! they are parsed, so that a value of these types can be written into a command without another check.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::identity::id::MessageUid;

/// The longest ENVID, as written (RFC 3461, 4.4).
pub const ENVID_OCTETS_MAX: usize = 100;
/// The longest ORCPT, as written (RFC 3461, 4.2).
pub const ORCPT_OCTETS_MAX: usize = 500;

/// RET: how much of the mail a report includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DsnReturn {
    /// All of it.
    #[serde(rename = "FULL")]
    Full,
    /// Its header.
    #[serde(rename = "HDRS")]
    Headers,
}

impl DsnReturn {
    /// As in the parameter RET.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Headers => "HDRS",
        }
    }
}

impl FromStr for DsnReturn {
    type Err = DsnError;

    fn from_str(text: &str) -> Result<Self, DsnError> {
        [Self::Full, Self::Headers]
            .into_iter()
            .find(|one| text.eq_ignore_ascii_case(one.as_str()))
            .ok_or(DsnError::Return)
    }
}

/// Why a parameter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DsnError {
    /// RET is neither of its two words.
    #[error("RET must be FULL or HDRS")]
    Return,
    /// NOTIFY is no list of its words.
    #[error("NOTIFY must be NEVER, or a list of SUCCESS, FAILURE and DELAY")]
    Notify,
    /// ENVID is no xtext of printable characters.
    #[error("ENVID must be 1 to {ENVID_OCTETS_MAX} octets of xtext (RFC 3461)")]
    EnvelopeId,
    /// A request is not made of NOTIFY and RET.
    #[error(
        "must be like NOTIFY=SUCCESS,FAILURE or NOTIFY=SUCCESS,FAILURE,DELAY RET=HDRS; NOTIFY=NEVER asks for no \
         reports"
    )]
    Request,
    /// ORCPT is no address type and xtext.
    #[error(
        "ORCPT must be a type, `;` and an address in xtext (RFC 3461), {ORCPT_OCTETS_MAX} octets at most"
    )]
    OriginalRecipient,
}

/// NOTIFY: when to report about a recipient. With all three false it is `NEVER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsnNotify {
    /// When it is delivered.
    pub success: bool,
    /// When it cannot be delivered.
    pub failure: bool,
    /// When delivery is delayed.
    pub delay: bool,
}

impl FromStr for DsnNotify {
    type Err = DsnError;

    fn from_str(text: &str) -> Result<Self, DsnError> {
        let mut notify = Self { success: false, failure: false, delay: false };
        if text.eq_ignore_ascii_case("NEVER") {
            return Ok(notify);
        }
        for word in text.split(',') {
            let wish = match word.to_ascii_uppercase().as_str() {
                "SUCCESS" => &mut notify.success,
                "FAILURE" => &mut notify.failure,
                "DELAY" => &mut notify.delay,
                _ => return Err(DsnError::Notify),
            };
            if std::mem::replace(wish, true) {
                return Err(DsnError::Notify);
            }
        }
        Ok(notify)
    }
}

impl fmt::Display for DsnNotify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.success, "SUCCESS"), (self.failure, "FAILURE"), (self.delay, "DELAY")];
        let wanted: Vec<&str> =
            words.into_iter().filter(|(wanted, _)| *wanted).map(|(_, word)| word).collect();
        f.write_str(&if wanted.is_empty() { "NEVER".to_owned() } else { wanted.join(",") })
    }
}

impl Serialize for DsnNotify {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DsnNotify {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr, $error:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(Box<str>);

        impl $name {
            /// As it is written in SMTP.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = DsnError;

            fn from_str(text: &str) -> Result<Self, DsnError> {
                let check: fn(&str) -> bool = $check;
                if check(text) { Ok(Self(text.into())) } else { Err($error) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

checked_text!(
    /// ENVID: the sender's id for a mail, which reports repeat.
    DsnEnvelopeId,
    |text| (1..=ENVID_OCTETS_MAX).contains(&text.len()) && is_xtext(text),
    DsnError::EnvelopeId
);
checked_text!(
    /// ORCPT: the address that the mail was first sent to.
    DsnOriginalRecipient,
    |text| {
        let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*-/?^_`{|}~.".contains(&byte);
        text.len() <= ORCPT_OCTETS_MAX
            && text.split_once(';').is_some_and(|(kind, address)| {
                !kind.is_empty() && kind.bytes().all(is_atom) && !address.is_empty() && is_xtext(address)
            })
    },
    DsnError::OriginalRecipient
);

/// Whether a text is xtext (RFC 3461, 4) of printable characters only, so that decoding yields neither a
/// control character nor a line end.
fn is_xtext(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => {
                let digit = |byte: Option<u8>| match byte? {
                    digit @ b'0'..=b'9' => Some(digit - b'0'),
                    digit @ b'A'..=b'F' => Some(digit - b'A' + 10),
                    _ => None,
                };
                match (digit(bytes.next()), digit(bytes.next())) {
                    (Some(high), Some(low)) if (b' '..=b'~').contains(&(high * 16 + low)) => {}
                    _ => return false,
                }
            }
            b'!'..=b'~' if byte != b'=' => {}
            _ => return false,
        }
    }
    true
}

/// What Postway itself asks relays to report, for an account or a message: NOTIFY for every recipient, and
/// RET. In JSON and elsewhere it is a text, written as the parameters of SMTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsnRequest {
    /// When to report.
    pub notify: DsnNotify,
    /// How much of the mail a report includes.
    pub ret: Option<DsnReturn>,
}

impl DsnRequest {
    /// The longest request, in characters.
    pub const CHARS_MAX: usize = 64;

    /// The wishes for a mail with these recipients. ENVID is the mail's uid: a report repeats it, and so
    /// finds its message even if it returns nothing of the mail.
    pub fn wishes<'a>(&self, uid: MessageUid, recipients: impl IntoIterator<Item = &'a str>) -> DsnWishes {
        let of = |address: &'a str| {
            // The other form of ORCPT, for addresses that are not ASCII, needs SMTPUTF8 (RFC 6533).
            let orcpt = format!("rfc822;{}", to_xtext(address)).parse().ok().filter(|_| address.is_ascii());
            (address.to_owned(), RecipientDsn { notify: Some(self.notify), orcpt })
        };
        DsnWishes {
            ret: self.ret,
            envid: uid.to_string().parse().ok(),
            recipients: recipients.into_iter().map(of).collect(),
            request: None,
        }
    }
}

/// Writes a text as xtext (RFC 3461, 4).
fn to_xtext(text: &str) -> String {
    let mut xtext = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if byte != b'+' && byte != b'=' => xtext.push(char::from(byte)),
            _ => xtext.push_str(&format!("+{byte:02X}")),
        }
    }
    xtext
}

impl FromStr for DsnRequest {
    type Err = DsnError;

    fn from_str(text: &str) -> Result<Self, DsnError> {
        if text.len() > Self::CHARS_MAX {
            return Err(DsnError::Request);
        }
        let (mut notify, mut ret) = (None, None);
        for word in text.split_ascii_whitespace() {
            let (name, value) = word.split_once('=').ok_or(DsnError::Request)?;
            let was_there = if name.eq_ignore_ascii_case("NOTIFY") {
                notify.replace(value.parse()?).is_some()
            } else if name.eq_ignore_ascii_case("RET") {
                ret.replace(value.parse()?).is_some()
            } else {
                true
            };
            if was_there {
                return Err(DsnError::Request);
            }
        }
        notify.map(|notify| Self { notify, ret }).ok_or(DsnError::Request)
    }
}

impl fmt::Display for DsnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NOTIFY={}", self.notify)?;
        self.ret.map_or(Ok(()), |ret| write!(f, " RET={}", ret.as_str()))
    }
}

impl Serialize for DsnRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DsnRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The wishes for one recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientDsn {
    /// When to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<DsnNotify>,
    /// The address that the mail was first sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orcpt: Option<DsnOriginalRecipient>,
}

impl RecipientDsn {
    /// Whether there are no wishes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The wishes for a mail and its recipients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DsnWishes {
    /// How much of the mail a report includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ret: Option<DsnReturn>,
    /// The sender's id for the mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envid: Option<DsnEnvelopeId>,
    /// The wishes by address; recipients without wishes are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recipients: BTreeMap<String, RecipientDsn>,
    /// What the message asks Postway to request for all recipients; it becomes wishes when the mail is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<DsnRequest>,
}

impl DsnWishes {
    /// Whether there are no wishes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The wishes of a message that asks for this.
    pub fn of_request(request: DsnRequest) -> Self {
        Self { request: Some(request), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_and_written_as_they_were_said() {
        for (said, written) in [
            ("never", "NEVER"),
            ("SUCCESS", "SUCCESS"),
            ("delay,failure", "FAILURE,DELAY"),
            ("SUCCESS,FAILURE,DELAY", "SUCCESS,FAILURE,DELAY"),
        ] {
            assert_eq!(said.parse::<DsnNotify>().unwrap().to_string(), written);
        }
        for bad in ["", "NEVER,SUCCESS", "SUCCESS,SUCCESS", "ALWAYS", "SUCCESS,", "SUCCESS FAILURE"] {
            assert_eq!(bad.parse::<DsnNotify>(), Err(DsnError::Notify), "{bad}");
        }
        assert_eq!("hdrs".parse::<DsnReturn>().unwrap().as_str(), "HDRS");
        assert!("BODY".parse::<DsnReturn>().is_err());
    }

    #[test]
    fn a_request_is_written_as_in_smtp_and_names_the_message_and_its_recipients() {
        for (said, written) in [
            ("NOTIFY=SUCCESS,FAILURE", "NOTIFY=SUCCESS,FAILURE"),
            ("ret=full notify=never", "NOTIFY=NEVER RET=FULL"),
        ] {
            let request: DsnRequest = said.parse().unwrap();
            assert_eq!(request.to_string(), written);
            assert_eq!(serde_json::to_value(request).unwrap(), written);
        }
        for bad in ["", "SUCCESS", "RET=HDRS", "NOTIFY=", "NOTIFY=NEVER NOTIFY=NEVER", "NOTIFY=NEVER ENVID=x"]
        {
            assert!(bad.parse::<DsnRequest>().is_err(), "{bad}");
        }
        let uid = MessageUid::from_bytes([7; 16]);
        let request: DsnRequest = "NOTIFY=SUCCESS RET=HDRS".parse().unwrap();
        let wishes = request.wishes(uid, ["a+b=c@example.org", "dörte@example.org"]);
        assert_eq!(wishes.envid.unwrap().as_str(), uid.to_string());
        let plain = &wishes.recipients["a+b=c@example.org"];
        assert_eq!(plain.orcpt.as_ref().unwrap().as_str(), "rfc822;a+2Bb+3Dc@example.org");
        assert_eq!(wishes.recipients["dörte@example.org"].orcpt, None);
        assert!(wishes.recipients.values().all(|one| one.notify.unwrap().success));
    }

    #[test]
    fn xtext_holds_nothing_that_could_end_a_line() {
        let long = "x".repeat(ENVID_OCTETS_MAX + 1);
        for good in ["QQ314159", "a+20b", "+2B+3D", "a,b;c", &long[1..]] {
            assert_eq!(good.parse::<DsnEnvelopeId>().unwrap().as_str(), good);
        }
        for bad in
            ["", "a b", "a=b", "a+b", "a+2", "a+2b", "+0D+0A", "+00", "+7F", "+80", "é", "a\r\nb", &long]
        {
            assert!(bad.parse::<DsnEnvelopeId>().is_err(), "{bad:?}");
        }
        let long = format!("rfc822;{}", "x".repeat(ORCPT_OCTETS_MAX));
        for good in ["rfc822;ada@example.net", "utf-8;ada+40example.net", "rfc822;a+2Bb@example.net"] {
            assert_eq!(good.parse::<DsnOriginalRecipient>().unwrap().as_str(), good);
        }
        for bad in ["", "ada@example.net", ";a", "rfc822;", "rfc 822;a", "rfc822;a b", "rfc822;+0A", &long] {
            assert!(bad.parse::<DsnOriginalRecipient>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn wishes_are_kept_as_json_and_nothing_is_kept_as_nothing() {
        let mut wishes = DsnWishes { ret: Some(DsnReturn::Headers), ..DsnWishes::default() };
        let notify = Some("NEVER".parse().unwrap());
        wishes.recipients.insert("ada@example.net".to_owned(), RecipientDsn { notify, orcpt: None });
        let text = serde_json::to_string(&wishes).unwrap();
        assert_eq!(text, r#"{"ret":"HDRS","recipients":{"ada@example.net":{"notify":"NEVER"}}}"#);
        assert_eq!(serde_json::from_str::<DsnWishes>(&text).unwrap(), wishes);
        assert!(!wishes.is_empty() && DsnWishes::default().is_empty() && RecipientDsn::default().is_empty());
        assert!(
            serde_json::from_str::<DsnWishes>(r#"{"envid":"a\r\nb"}"#).is_err(),
            "also what is read back is checked"
        );
    }
}
