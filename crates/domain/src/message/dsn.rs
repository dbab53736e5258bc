//! A sender's wishes about delivery reports (RFC 3461): NOTIFY and ORCPT of a recipient, RET and ENVID of a
//! mail.
//!
//! Postway passes them on and does not act on them: a relay that offers DSN gets the same parameters, and the
//! server that delivers makes the reports. The values are stored as SMTP writes them. They are checked when
//! they are parsed, so that a value of these types can be written into a command without another check.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
}

impl DsnWishes {
    /// Whether there are no wishes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
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
