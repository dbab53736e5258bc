//! Decides which of the two delay notices a `preavviso-errore-consegna` is.
//!
//! A provider sends a notice if it has no confirmation for a message within 12 hours, and another after 24
//! hours, when the message counts as failed. Both notices have the same `X-Ricevuta` and the same subject;
//! only their text differs. The rules, in order:
//!
//! 1. `errore-esteso` that begins with an enhanced status (RFC 3463): class 5 is final, class 4 is not.
//! 2. `errore-esteso`, then the text of the notice, without the subject of the message, which the sender
//!    chose: words about 12 hours or about a further notice make it the first, because the first notice may
//!    mention the 24 hours as well; else words about 24 hours make it the final one.
//!
//! If neither rule decides, it is [`DelayNotice::Undecided`] and counts as a warning: the caller treats the
//! second notice about the same recipient as final.

/// Which notice it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayNotice {
    /// 12 hours without confirmation: delivery may still happen.
    First,
    /// 24 hours without confirmation: the message failed.
    Final,
    /// Its text does not say.
    Undecided,
}

const FIRST: [&str; 8] = [
    "dodici ore",
    "12 ore",
    "twelve hours",
    "12 hours",
    "ulteriore avviso",
    "potrebbe non andare",
    "further notice",
    "another notice",
];
const FINAL: [&str; 7] = [
    "ventiquattro ore",
    "24 ore",
    "twenty-four hours",
    "24 hours",
    "non andata a buon fine",
    "non andato a buon fine",
    "negative outcome",
];

/// Decides by the text of the notice.
pub(super) fn classify_notice(error_text: Option<&str>, text: &str, subject: Option<&str>) -> DelayNotice {
    let error_text = error_text.unwrap_or_default();
    match error_text.trim_start().as_bytes() {
        [b'5', b'.', digit, b'.', ..] if digit.is_ascii_digit() => return DelayNotice::Final,
        [b'4', b'.', digit, b'.', ..] if digit.is_ascii_digit() => return DelayNotice::First,
        _ => {}
    }
    let subject = plain(subject.unwrap_or_default());
    for words in [error_text, text] {
        let mut words = plain(words);
        if !subject.is_empty() {
            words = words.replace(&subject, " ");
        }
        if FIRST.iter().any(|mark| words.contains(mark)) {
            return DelayNotice::First;
        }
        if FINAL.iter().any(|mark| words.contains(mark)) {
            return DelayNotice::Final;
        }
    }
    DelayNotice::Undecided
}

/// The text in lower case with single spaces, because it may be folded anywhere.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(&word.to_lowercase());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_notices_are_distinguished_by_their_words() {
        let first = "non e' stato consegnato nelle prime dodici\n ore dal suo invio. Non escludendo che avvenga in \
                     seguito, l'invio potrebbe non andare a buon fine.";
        let last = "non e' stato consegnato nelle ventiquattro ore successive al suo invio. Si ritiene che la \
                    spedizione debba considerarsi non andata a buon fine.";
        assert_eq!(classify_notice(None, first, None), DelayNotice::First);
        assert_eq!(classify_notice(None, last, None), DelayNotice::Final);
        assert_eq!(classify_notice(None, "has not been delivered within 24 hours", None), DelayNotice::Final);
        assert_eq!(
            classify_notice(None, "non consegnato nelle prime 12 ore; entro 24 ore altro avviso", None),
            DelayNotice::First
        );
        assert_eq!(classify_notice(None, "non consegnato", None), DelayNotice::Undecided);
    }

    #[test]
    fn an_enhanced_status_decides_before_words() {
        assert_eq!(
            classify_notice(Some("5.4.1 - tempo massimo, 12 ore"), "12 ore", None),
            DelayNotice::Final
        );
        assert_eq!(
            classify_notice(Some("4.4.1 - nessuna risposta, 24 ore"), "24 ore", None),
            DelayNotice::First
        );
        assert_eq!(classify_notice(Some("24 ore trascorse"), "12 ore", None), DelayNotice::Final);
    }

    #[test]
    fn the_subject_that_the_sender_chose_decides_nothing() {
        let text = "il messaggio \"Consegna in 12 ore\" non consegnato nelle ventiquattro ore";
        assert_eq!(classify_notice(None, text, Some("Consegna  in 12 ORE")), DelayNotice::Final);
    }
}
