//! The phrases of servers, and the reasons that they mean.
//!
//! One automaton, built once from `phrases.txt`, finds all phrases in one pass and in any case;
//! [`decide`](super::decide) combines them. A phrase with a gap is two patterns, the second of which counts
//! if it follows soon after the first and in the same sentence.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::ReportReason;

/// The longest text that is searched: a server's text is far shorter, and a report may quote a whole mail.
const SEARCHED_OCTETS_MAX: usize = 8 * 1024;

/// The longest gap between the beginning and the end of a pair: an address.
const PAIR_GAP_OCTETS_MAX: usize = 100;

/// The maximum number of pairs in the table.
const PAIRS_MAX: usize = 64;

/// The reasons whose phrases a text contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PhraseHits {
    found: u64,
    certain: Option<ReportReason>,
}

impl PhraseHits {
    /// Whether the text has a phrase of that reason.
    pub(super) fn has(self, reason: ReportReason) -> bool {
        self.found & bit(reason) != 0
    }

    /// The reason that the text leaves no doubt about, whatever the source and the phase.
    pub(super) fn certain(self) -> Option<ReportReason> {
        self.certain
    }
}

fn bit(reason: ReportReason) -> u64 {
    1 << reason as u64
}

/// The meaning of a pattern of the automaton.
#[derive(Debug, Clone, Copy)]
enum PatternMeaning {
    /// A whole phrase.
    Phrase(ReportReason),
    /// A phrase that leaves no doubt.
    Certain(ReportReason),
    /// The beginning of the pair with that number.
    Beginning(usize),
    /// The end of the pair with that number.
    End(usize, ReportReason),
}

struct ReasonPhraseTable {
    automaton: AhoCorasick,
    meanings: Vec<PatternMeaning>,
}

static TABLE: LazyLock<ReasonPhraseTable> = LazyLock::new(|| {
    let mut patterns: Vec<&str> = Vec::new();
    let mut meanings = Vec::new();
    let mut reason = ReportReason::Undefined;
    let mut pairs = 0;
    for line in include_str!("phrases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            reason = ReportReason::named(name).expect("a heading of the table is the name of a reason");
        } else if let Some(phrase) = line.strip_prefix("! ") {
            patterns.push(phrase);
            meanings.push(PatternMeaning::Certain(reason));
        } else if let Some((beginning, end)) = line.split_once('…') {
            assert!(pairs < PAIRS_MAX, "the table has at most {PAIRS_MAX} pairs");
            patterns.extend([beginning, end]);
            meanings.extend([PatternMeaning::Beginning(pairs), PatternMeaning::End(pairs, reason)]);
            pairs += 1;
        } else {
            patterns.push(line);
            meanings.push(PatternMeaning::Phrase(reason));
        }
    }
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&patterns)
        .expect("the table is far below the limits of the automaton");
    ReasonPhraseTable { automaton, meanings }
});

/// Finds the reasons whose phrases the text contains. White space in it should be single spaces.
pub(super) fn find_phrases(text: &[u8]) -> PhraseHits {
    let text = &text[..text.len().min(SEARCHED_OCTETS_MAX)];
    let table = &*TABLE;
    let mut hits = PhraseHits::default();
    // The last end of each pair's beginning; `usize::MAX` if it has not been seen.
    let mut open = [usize::MAX; PAIRS_MAX];
    for hit in table.automaton.find_overlapping_iter(text) {
        match table.meanings[hit.pattern().as_usize()] {
            PatternMeaning::Phrase(reason) => hits.found |= bit(reason),
            PatternMeaning::Certain(reason) => {
                hits.found |= bit(reason);
                hits.certain.get_or_insert(reason);
            }
            PatternMeaning::Beginning(pair) => open[pair] = hit.end(),
            PatternMeaning::End(pair, reason) => {
                if open[pair] <= hit.start() && is_close(&text[open[pair]..hit.start()]) {
                    hits.found |= bit(reason);
                }
            }
        }
    }
    hits
}

/// Whether a beginning and an end with this text between them are in one sentence.
fn is_close(between: &[u8]) -> bool {
    between.len() <= PAIR_GAP_OCTETS_MAX
        && !between.windows(2).any(|two| matches!(two, b": " | b". " | b"; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_any_case() {
        let found = find_phrases(
            b"550 5.1.1 <a@example.org>: Recipient address rejected: USER UNKNOWN in local table",
        );
        assert!(found.has(ReportReason::UserUnknown));
        assert!(!found.has(ReportReason::MailboxFull));
        assert_eq!(found.certain(), None);
    }

    #[test]
    fn pairs_need_their_order_and_one_sentence() {
        assert!(find_phrases(b"mailbox a@example.org does not exist").has(ReportReason::UserUnknown));
        assert!(!find_phrases(b"does not exist, the mailbox").has(ReportReason::UserUnknown));
        assert!(!find_phrases(b"the host said: 550 unknown").has(ReportReason::HostUnknown));
    }

    #[test]
    fn some_phrases_leave_no_doubt() {
        assert_eq!(
            find_phrases(b"dd This user doesn't have a example account").certain(),
            Some(ReportReason::UserUnknown)
        );
    }

    #[test]
    fn phrases_are_lower_case_and_not_too_short() {
        for line in include_str!("phrases.txt").lines().filter(|line| !line.starts_with(['#', '['])) {
            assert_eq!(line, line.to_ascii_lowercase());
            for phrase in line.split('…').filter(|_| !line.is_empty()) {
                assert!(phrase.len() >= if line.contains('…') { 3 } else { 4 }, "{phrase} may mean anything");
            }
        }
    }
}
