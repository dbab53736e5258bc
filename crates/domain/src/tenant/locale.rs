//! The language of a mail, and which languages stand in for it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A language, with a script or a region if it matters: `de`, `de-AT`, `zh-Hant-TW`, `es-419`.
///
/// It is a language tag of BCP 47 without its rarer parts, written as the standard recommends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailLocale(String);

/// Why a text is no locale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a language such as de, de-AT or zh-Hant")]
pub struct LocaleError;

impl MailLocale {
    /// The longest locale: `zhh-Hant-419`.
    pub const BYTES_MAX: usize = 12;
    /// The most locales of one chain: two locales, each with what stands in for it.
    pub const CHAIN_MAX: usize = 6;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The locale and those that stand in for it, the closest first: `de-AT`, `de`.
    pub fn fallbacks(&self) -> impl Iterator<Item = Self> + '_ {
        let longer = std::iter::successors(Some(self.0.as_str()), |text| {
            text.rsplit_once('-').map(|(shorter, _)| shorter)
        });
        longer.map(|text| Self(text.to_owned()))
    }

    /// The locales to try in turn: the wanted one with its fallbacks, then the default with its own, each
    /// once.
    pub fn chain(wanted: Option<&Self>, default: Option<&Self>) -> Vec<Self> {
        let mut chain: Vec<Self> = Vec::new();
        for locale in [wanted, default].into_iter().flatten().flat_map(Self::fallbacks) {
            if !chain.contains(&locale) {
                chain.push(locale);
            }
        }
        chain
    }
}

impl FromStr for MailLocale {
    type Err = LocaleError;

    /// Takes `_` for `-`, as many programs write it, and any case.
    fn from_str(text: &str) -> Result<Self, LocaleError> {
        if text.len() > Self::BYTES_MAX {
            return Err(LocaleError);
        }
        let mut parts = text.split(['-', '_']).peekable();
        let letters = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let language = parts.next().unwrap_or_default();
        if !(2..=3).contains(&language.len()) || !letters(language) {
            return Err(LocaleError);
        }
        let mut written = language.to_ascii_lowercase();
        if let Some(script) = parts.next_if(|part| part.len() == 4 && letters(part)) {
            let script = script.to_ascii_lowercase();
            written.push('-');
            written.push_str(&script[..1].to_ascii_uppercase());
            written.push_str(&script[1..]);
        }
        let is_region = |part: &&str| {
            part.len() == 2 && letters(part)
                || part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if let Some(region) = parts.next_if(is_region) {
            written.push('-');
            written.push_str(&region.to_ascii_uppercase());
        }
        match parts.next() {
            None => Ok(Self(written)),
            Some(_) => Err(LocaleError),
        }
    }
}

impl TryFrom<String> for MailLocale {
    type Error = LocaleError;

    fn try_from(text: String) -> Result<Self, LocaleError> {
        text.parse()
    }
}

impl From<MailLocale> for String {
    fn from(locale: MailLocale) -> Self {
        locale.0
    }
}

impl fmt::Display for MailLocale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locale(text: &str) -> MailLocale {
        text.parse().unwrap()
    }

    #[test]
    fn locales_are_written_as_the_standard_recommends() {
        for (given, written) in [
            ("DE", "de"),
            ("de_at", "de-AT"),
            ("zh-hANT-tw", "zh-Hant-TW"),
            ("sr-latn", "sr-Latn"),
            ("es-419", "es-419"),
            ("fil", "fil"),
        ] {
            assert_eq!(locale(given).as_str(), written);
        }
        for bad in
            ["", "d", "deutsch", "de-", "de-A", "de-AT-1996", "de AT", "d3", "é1", "-de", "de--AT", "12"]
        {
            assert_eq!(bad.parse::<MailLocale>(), Err(LocaleError), "{bad}");
        }
        assert!(serde_json::from_str::<MailLocale>("\"x\"").is_err());
    }

    #[test]
    fn a_chain_tries_the_wanted_locale_before_the_default_and_each_once() {
        let of = |wanted: Option<&str>, default: Option<&str>| {
            let (wanted, default) = (wanted.map(locale), default.map(locale));
            let chain = MailLocale::chain(wanted.as_ref(), default.as_ref());
            chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(Some("de-AT"), Some("en")), "de-AT de en");
        assert_eq!(of(Some("de-AT"), Some("de-DE")), "de-AT de de-DE");
        assert_eq!(of(None, Some("zh-Hant-TW")), "zh-Hant-TW zh-Hant zh");
        assert_eq!(of(None, None), "");
        let longest = MailLocale::chain(Some(&locale("zh-Hant-TW")), Some(&locale("sr-Latn-RS")));
        assert_eq!(longest.len(), MailLocale::CHAIN_MAX);
    }
}
