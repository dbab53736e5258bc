//! Finds the phrases that mail systems use for undelivered mail, in one pass.
//!
//! The table is `notices.txt`. The text must be in lower case with single spaces. It is searched up to
//! [`SEARCHED_OCTETS_MAX`], so the time is bounded.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// The longest text that is searched: a notice states its purpose early, and may quote a whole mail.
const SEARCHED_OCTETS_MAX: usize = 16 * 1024;

/// The phrases of a text, by their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NoticeWords {
    /// A phrase that is typical of the subject of a report.
    pub(super) subject: Option<&'static str>,
    /// Words that admit a failure.
    pub(super) admission: Option<&'static str>,
    /// Words that say that the mail is late and the server still retries.
    pub(super) delay: Option<&'static str>,
    /// Words that ask the sender to do something before the mail is delivered.
    pub(super) challenge: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
enum PhraseUse {
    Failure,
    Subject,
    Text,
    Delay,
    Challenge,
}

struct NoticeTable {
    automaton: AhoCorasick,
    phrases: Vec<(&'static str, PhraseUse)>,
}

static TABLE: LazyLock<NoticeTable> = LazyLock::new(|| {
    let mut phrases = Vec::new();
    let mut patterns = Vec::new();
    let mut meant = PhraseUse::Failure;
    for line in include_str!("notices.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line {
            "[failure]" => meant = PhraseUse::Failure,
            "[subject]" => meant = PhraseUse::Subject,
            "[text]" => meant = PhraseUse::Text,
            "[delay]" => meant = PhraseUse::Delay,
            "[challenge]" => meant = PhraseUse::Challenge,
            line => {
                let (pattern, phrase) = match line.strip_prefix("hex ").and_then(|line| line.split_once(' '))
                {
                    Some((octets, phrase)) => (undecoded(octets), phrase),
                    None => (line.to_owned(), line),
                };
                patterns.push(pattern);
                phrases.push((phrase, meant));
            }
        }
    }
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .build(&patterns)
        .expect("the table is far below the limits of the automaton");
    NoticeTable { automaton, phrases }
});

/// A phrase as it appears in a text of unknown charset: each octet as a character of Latin-1, in lower case.
fn undecoded(octets: &str) -> String {
    let octet = |at: usize| {
        u8::from_str_radix(&octets[at..at + 2], 16).expect("the table has pairs of hexadecimal digits")
    };
    (0..octets.len()).step_by(2).map(|at| char::from(octet(at))).collect::<String>().to_lowercase()
}

/// Finds the phrases of a text, which is in lower case and has single spaces.
pub(super) fn notice_words(text: &str) -> NoticeWords {
    let text = &text[..text.floor_char_boundary(SEARCHED_OCTETS_MAX)];
    let table = &*TABLE;
    let mut words = NoticeWords::default();
    for hit in table.automaton.find_overlapping_iter(text) {
        let (phrase, meant) = table.phrases[hit.pattern().as_usize()];
        match meant {
            PhraseUse::Failure => {
                words.subject.get_or_insert(phrase);
                words.admission.get_or_insert(phrase);
            }
            PhraseUse::Subject => drop(words.subject.get_or_insert(phrase)),
            PhraseUse::Text => drop(words.admission.get_or_insert(phrase)),
            PhraseUse::Delay => drop(words.delay.get_or_insert(phrase)),
            PhraseUse::Challenge => drop(words.challenge.get_or_insert(phrase)),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_known_in_the_languages_of_mail_systems() {
        for text in [
            "your message could not be delivered",
            "ihre nachricht konnte nicht zugestellt werden",
            "il messaggio non è stato recapitato: impossibile recapitare",
            "ваше письмо не может быть доставлено",
            "メールを送信できませんでした",
            "邮件无法投递",
        ] {
            assert!(notice_words(text).admission.is_some(), "{text}");
        }
        // 无法投递 in GB 2312, read as Latin-1.
        assert_eq!(
            notice_words("\u{ce}\u{de}\u{b7}\u{a8}\u{cd}\u{b6}\u{b5}\u{dd}".to_lowercase().as_str())
                .admission,
            Some("无法投递")
        );
        assert_eq!(notice_words("see you on monday"), NoticeWords::default());
    }

    #[test]
    fn words_of_a_text_are_no_subject() {
        let words = notice_words("the mailbox is full");
        assert_eq!((words.subject, words.admission), (None, Some("mailbox is full")));
    }

    #[test]
    fn phrases_are_lower_case_and_long_enough() {
        for (phrase, _) in &TABLE.phrases {
            assert_eq!(*phrase, phrase.to_lowercase());
            let is_ideographic = !phrase.is_ascii() && phrase.chars().any(|c| c > '\u{2000}');
            assert!(phrase.chars().count() >= if is_ideographic { 2 } else { 5 }, "{phrase}");
        }
    }
}
