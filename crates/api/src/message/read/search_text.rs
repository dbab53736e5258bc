//! The parameter `q`: one text for everything that people search for.
//!
//! Nothing is refused, so that half a word finds what it can. A name before a colon names the filter. Without
//! one, an address, a domain, an id, a Message-ID, a failure code, `key=value` and `#tag` are recognised by their
//! form, and everything else is words of the subject or part of an address.

use postway_domain::{AccountId, ClientId, EmailAddress, MessageStatus, MessageUid, id::BatchCode};
use postway_store::record::{MessageFilter, MessageKey, MetadataField, external_label, message_id_label};
use serde::Serialize;
use utoipa::ToSchema;

use crate::message::read::list::outcome_of;

/// A part of a search, as it was interpreted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = UnderstoodTerm)]
pub(crate) struct SearchTermView {
    /// The filter it became: `id`, `recipient`, `domain`, `text`, `subject`, `tag`, `error_code`,
    /// `message_id`, `external_id`, `metadata`, `status`, `outcome`, `account` or `batch`.
    #[schema(example = "recipient")]
    name: &'static str,
    /// The value of the filter.
    #[schema(example = "ada@example.net")]
    value: String,
}

/// An interpreted search.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedSearch {
    pub(crate) filter: MessageFilter,
    /// The one message that is meant, if any.
    pub(crate) key: Option<MessageKey>,
    /// A word that may be a message's client id.
    pub(crate) maybe_id: Option<ClientId>,
    /// A text that may be the `external_id` of messages.
    pub(crate) maybe_external: Option<String>,
    pub(crate) terms: Vec<SearchTermView>,
}

impl ParsedSearch {
    /// Adds a search to an existing filter.
    pub(crate) fn read(text: &str, filter: MessageFilter) -> Self {
        let mut understood = Self { filter, ..Self::default() };
        let mut words: Vec<String> = Vec::new();
        for word in split(text) {
            if !understood.take(&word) {
                words.push(word);
            }
        }
        let words = words.join(" ");
        if !words.is_empty() {
            if understood.terms.is_empty() {
                understood.maybe_id = words.parse().ok();
                understood.maybe_external = Some(words.clone());
            }
            understood.term("text", &words);
            understood.filter.text = Some(words);
        }
        understood
    }

    /// The same search, if its text is the `external_id` of messages.
    pub(crate) fn as_external_id(&self, external_id: &str) -> Self {
        let label = Some(external_label(external_id));
        let mut named = Self {
            filter: MessageFilter { text: None, tag: label, ..self.filter.clone() },
            ..Self::default()
        };
        named.term("external_id", external_id);
        named
    }

    fn term(&mut self, name: &'static str, value: &str) {
        self.terms.push(SearchTermView { name, value: value.to_owned() });
    }

    /// Interprets a word whose form says what it is; returns whether it does.
    fn take(&mut self, word: &str) -> bool {
        if let Some((name, value)) = word.split_once(':').filter(|(_, value)| !value.is_empty()) {
            return self.take_named(name, value);
        }
        if let Some(tag) = word.strip_prefix('#').filter(|tag| !tag.is_empty()) {
            return self.take_named("tag", tag);
        }
        if let Some((key, _)) = word.split_once('=')
            && is_field_name(key)
        {
            return self.take_named("metadata", word);
        }
        let bare = word.trim_start_matches('<').trim_end_matches('>');
        // Our own Message-IDs begin with the message's uid.
        let local = bare.split_once('@').map_or(bare, |(local, _)| local);
        if let Ok(uid) = local.parse::<MessageUid>() {
            self.key = Some(MessageKey::Uid(uid));
            self.term("id", &uid.to_string());
        } else if bare.len() < word.len() && bare.contains('@') {
            self.filter.tag = Some(message_id_label(bare));
            self.term("message_id", bare);
        } else if let Some(domain) = word.strip_prefix('@').and_then(domain_of) {
            self.term("domain", &domain);
            self.filter.domain = Some(domain);
        // A domain without a dot is rather the beginning of one: such a text is part of an address.
        } else if let Some(address) = word.parse::<EmailAddress>().ok().filter(|_| has_dotted_domain(word)) {
            self.term("recipient", address.as_ref());
            self.filter.recipient = Some(address.to_string());
        } else if is_code(word) {
            self.term("error_code", word);
            self.filter.error_code = Some(word.to_owned());
        } else {
            return false;
        }
        true
    }

    fn take_named(&mut self, name: &str, value: &str) -> bool {
        let text = || Some(value.to_owned());
        let shown: &'static str = match name {
            "to" | "recipient" => match value.parse::<EmailAddress>() {
                Ok(address) => {
                    self.filter.recipient = Some(address.to_string());
                    "recipient"
                }
                Err(_) => {
                    self.filter.text = text();
                    "text"
                }
            },
            "subject" => {
                self.filter.subject = text();
                "subject"
            }
            "tag" => {
                self.filter.tag = text();
                "tag"
            }
            "meta" | "metadata" => {
                let Some((key, value)) = value.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                    return false;
                };
                self.filter.metadata = Some(MetadataField { key: key.to_owned(), value: value.to_owned() });
                "metadata"
            }
            "code" | "error" | "error_code" => {
                self.filter.error_code = text();
                "error_code"
            }
            "external" | "external_id" => {
                self.filter.tag = Some(external_label(value));
                "external_id"
            }
            "id" => match value.parse::<MessageUid>() {
                Ok(uid) => {
                    self.key = Some(MessageKey::Uid(uid));
                    "id"
                }
                Err(_) => match value.parse() {
                    Ok(id) => {
                        self.key = Some(MessageKey::Client(id));
                        "id"
                    }
                    Err(_) => return false,
                },
            },
            "status" | "state" => match value.parse::<MessageStatus>() {
                Ok(status) => {
                    self.filter.status = Some(status);
                    "status"
                }
                Err(_) => return false,
            },
            "outcome" => match outcome_of(value) {
                Ok(outcome) => {
                    self.filter.outcome = Some(outcome);
                    "outcome"
                }
                Err(_) => return false,
            },
            "account" => match value.parse::<AccountId>() {
                Ok(account) => {
                    self.filter.account = Some(account);
                    "account"
                }
                Err(_) => return false,
            },
            "batch" => match value.parse::<BatchCode>() {
                Ok(code) => {
                    self.filter.batch = Some(code.to_string());
                    "batch"
                }
                Err(_) => return false,
            },
            _ => return false,
        };
        self.term(shown, value);
        true
    }
}

/// The words of a search. Quotes hold words together; one that is not closed yet ends with the text.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.trim().is_empty() {
        words.push(word);
    }
    words
}

/// Whether this is how programs name a field, so that `order=17` is one and `2+2=4` is not.
fn is_field_name(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_of_name)
}

/// A domain in the form of addresses, if it is complete.
fn domain_of(text: &str) -> Option<String> {
    let address = format!("x@{text}").parse::<EmailAddress>().ok()?.to_string();
    address.split_once('@').map(|(_, domain)| domain.to_lowercase())
}

/// Whether this looks like the code of a failure, such as `smtp_550` or `connect_refused`.
fn is_code(word: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["smtp_", "connect_", "tls_", "auth_", "ses_", "dot_", "limit_", "template_"];
    let is_plain =
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    is_plain && BEGINNINGS.iter().any(|begin| word.starts_with(begin) && word.len() > begin.len())
}

fn has_dotted_domain(address: &str) -> bool {
    address.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<(&'static str, String)> {
        let read = ParsedSearch::read(text, MessageFilter::default());
        read.terms.into_iter().map(|term| (term.name, term.value)).collect()
    }

    #[test]
    fn what_is_typed_is_known_by_its_looks() {
        for (text, name, value) in [
            ("ada@example.net", "recipient", "ada@example.net"),
            ("@gmail.com", "domain", "gmail.com"),
            ("ada@", "text", "ada@"),
            ("da@exam", "text", "da@exam"),
            ("ada", "text", "ada"),
            ("Your order 17", "text", "Your order 17"),
            ("smtp_550", "error_code", "smtp_550"),
            ("smtp_", "text", "smtp_"),
            ("<ticket-7@desk>", "message_id", "ticket-7@desk"),
            ("0190a000-0000-7000-8000-000000000000", "id", "0190a000-0000-7000-8000-000000000000"),
            (
                "<0190a000-0000-7000-8000-000000000000@mail.example>",
                "id",
                "0190a000-0000-7000-8000-000000000000",
            ),
            ("tag:receipt", "tag", "receipt"),
            ("status:failed", "status", "failed"),
            ("status:fai", "text", "status:fai"),
            ("external:order-7", "external_id", "order-7"),
            ("Re: hello", "text", "Re: hello"),
            ("order=A-17", "metadata", "order=A-17"),
            ("order=", "metadata", "order="),
            ("2+2=4", "text", "2+2=4"),
            ("=4", "text", "=4"),
            ("metadata:\"full name=Ada L\"", "metadata", "full name=Ada L"),
            ("#receipt", "tag", "receipt"),
            ("#", "text", "#"),
            ("subject:\"your order\"", "subject", "your order"),
            ("\"your  order", "text", "your  order"),
        ] {
            assert_eq!(terms(text), [(name, value.to_owned())], "{text}");
        }
        assert_eq!(terms("  "), []);
    }

    #[test]
    fn terms_hold_together_and_words_stay_words() {
        let read = ParsedSearch::read("@gmail.com status:failed your order", MessageFilter::default());
        assert_eq!(read.filter.domain.as_deref(), Some("gmail.com"));
        assert_eq!(
            (read.filter.status, read.filter.text.as_deref()),
            (Some(MessageStatus::Failed), Some("your order"))
        );
        assert_eq!(read.maybe_id, None);
        let read = ParsedSearch::read("order-17", MessageFilter::default());
        assert_eq!((read.maybe_id.is_some(), read.maybe_external.as_deref()), (true, Some("order-17")));
        assert_eq!(terms("\" \""), [], "quotes around nothing are nothing");
    }
}
