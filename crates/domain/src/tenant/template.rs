//! Templates: versioned, and never changed after they were stored.

use crate::{
    identity::id::{TemplateName, TenantId},
    tenant::locale::MailLocale,
    time::Time,
};

/// One version of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name.
    pub name: TemplateName,
    /// The version, from 1. The greatest is used if a message names none.
    pub version: i64,
    /// The subject line.
    pub subject: String,
    /// The html part.
    pub html: Option<String>,
    /// The text part; made from the html if absent.
    pub text: Option<String>,
    /// The html part as MJML, instead of `html`.
    pub mjml: Option<String>,
    /// The template whose block `content` this one fills.
    pub layout: Option<TemplateName>,
    /// Whether the rules of its `<style>` elements are written into the elements that they select.
    pub inline_css: bool,
    /// A description for people.
    pub description: Option<String>,
    /// Variables to preview it with, as a JSON object.
    pub sample: Option<String>,
    /// When this version was stored.
    pub created_at: Time,
}

impl Template {
    /// The largest source, all parts together.
    pub const BYTES_MAX: usize = 1024 * 1024;
    /// The most versions of a template; older ones are deleted.
    pub const VERSIONS_MAX: i64 = 1_000;

    /// The language that its name ends with: `welcome.de-AT` is `welcome` in Austrian German.
    pub fn locale(&self) -> Option<MailLocale> {
        self.name.split_locale().map(|(_, locale)| locale)
    }
}

impl TemplateName {
    /// The name of this template in a language: `welcome.de-AT`. `None` if it would be too long.
    pub fn in_locale(&self, locale: &MailLocale) -> Option<Self> {
        format!("{self}.{locale}").parse().ok()
    }

    /// The name without the language that it ends with, and that language; `None` if it ends with none, or
    /// with one that is written in another way than [`Self::in_locale`] writes it.
    pub fn split_locale(&self) -> Option<(Self, MailLocale)> {
        let (name, ending) = self.as_str().rsplit_once('.')?;
        let locale: MailLocale = ending.parse().ok()?;
        (locale.as_str() == ending).then_some((name.parse().ok()?, locale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_template_ends_its_name() {
        let name: TemplateName = "welcome".parse().unwrap();
        let austrian: MailLocale = "de-AT".parse().unwrap();
        let localised = name.in_locale(&austrian).unwrap();
        assert_eq!(localised.as_str(), "welcome.de-AT");
        assert_eq!(localised.split_locale(), Some((name.clone(), austrian.clone())));
        for other in ["welcome", "welcome.html", "welcome.de-at", "welcome.DE", ".de", "welcome."] {
            let other: Option<TemplateName> = other.parse().ok();
            assert_eq!(other.and_then(|other| other.split_locale()), None);
        }
        let long: TemplateName = "x".repeat(TemplateName::BYTES_MAX).parse().unwrap();
        assert_eq!(long.in_locale(&austrian), None);
    }
}
