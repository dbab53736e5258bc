//! Arbitrary octets and mixtures of the fixtures never cause a panic, are read within bounds, and give the
//! same result with all line endings.

use postway_mime::received::{INSPECTED_OCTETS_MAX, ReceivedReport, inspect};
use proptest::prelude::*;

use crate::fixtures::all;

fn is_bounded(report: &ReceivedReport, raw: &[u8]) {
    assert!(report.recipients.len() <= 1_000);
    for finding in &report.recipients {
        assert!(finding.address.contains('@') && finding.address.len() <= 4 * raw.len().max(1));
        assert!(finding.diagnostic.as_ref().is_none_or(|text| text.len() <= 4_000 && !text.contains('\n')));
        assert!(finding.smtp_code.is_none_or(|code| (400..600).contains(&code)));
    }
    assert!(raw.len() <= INSPECTED_OCTETS_MAX);
}

/// A fixture with a piece of another one in it.
fn spliced() -> impl Strategy<Value = String> {
    let count = all().count();
    (
        0..count,
        0..count,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(first, second, at, from, to)| {
            let pick = |number: usize| all().nth(number).map_or("", |fixture| fixture.raw);
            let (first, second) = (pick(first), pick(second));
            let boundary = |text: &str, index: usize| text.floor_char_boundary(index);
            let (from, to) = (from.index(second.len()), to.index(second.len()));
            let piece = &second[boundary(second, from.min(to))..boundary(second, from.max(to))];
            let at = boundary(first, at.index(first.len()));
            format!("{}{piece}{}", &first[..at], &first[at..])
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_are_read(raw in prop::collection::vec(any::<u8>(), 0..2_000)) {
        is_bounded(&inspect(&raw), &raw);
    }

    #[test]
    fn any_mixture_is_read_the_same_with_any_line_ending(raw in spliced()) {
        let report = inspect(raw.as_bytes());
        is_bounded(&report, raw.as_bytes());
        prop_assert_eq!(&inspect(raw.replace('\n', "\r\n").as_bytes()), &report);
        prop_assert_eq!(&inspect(raw.replace('\n', "\r").as_bytes()), &report);
    }
}
