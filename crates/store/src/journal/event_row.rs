//! Rows of the table `event`. Events that are written together share a row: the first of them, and a list of
//! the others.
//!
//! Of the five events of a message that is accepted and sent, four are written in one transaction. Only the
//! steps that every message takes may be in such a list ([`may_follow`]): an event of any other kind has its
//! own row, where queries find it.
//!
//! Such lists, and the data of a message's end, say nearly the same of every message, so each of their common
//! phrases is stored as one control character, its mark ([`PHRASES`]). JSON has none but white space outside
//! of texts, and writes those in texts in another way, so a mark stands for nothing else.

use std::borrow::Cow;

use postway_domain::{EventKind, MessageEvent, MessageUid, Time};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{error::StoreError, record::NewEvent, sql::decode};

/// The most events that one row can have: the first, and one of each kind that may follow.
pub(crate) const JOINED_MAX: i64 = 5;

/// The phrases of lists and of data, and their marks. Rows have them for good: none may change, and a new
/// phrase gets a mark that no row can have yet. Of two phrases that begin alike the longer comes first.
const PHRASES: [(char, &str); 11] = [
    ('\u{1}', "[[2,{\"checks\":[{\"check\":\"INTEGRITY\",\"bytes\":"),
    ('\u{2}', "},{\"check\":\"RECIPIENT\",\"recipients\":"),
    ('\u{3}', ",\"known\":false},{\"check\":\"TEMPLATE\",\"subject_chars\":"),
    ('\u{4}', ",\"html_bytes\":"),
    ('\u{5}', ",\"template\":\""),
    ('\u{6}', "}]}],[4,null]"),
    ('\u{7}', ",[6,{\"attempt\":1}]"),
    ('\u{e}', "{\"attempt\":"),
    ('\u{f}', ",\"duration_ms\":"),
    (
        '\u{10}',
        ",\"code\":null,\"category\":null,\"original_code\":null,\"will_retry\":false,\"next_attempt\":null,\
         \"backoff_ms\":null",
    ),
    ('\u{11}', ",\"provider_message_id\":\""),
];

/// One row of the table `event`.
pub(crate) struct EventRow<'e> {
    pub uid: MessageUid,
    pub seq: i64,
    pub at: Time,
    pub kind: EventKind,
    pub data: Option<&'e str>,
    /// The events that followed, as [`list`] writes them.
    pub more: Option<String>,
}

impl<'e> EventRow<'e> {
    /// A row for one event.
    pub fn single(uid: MessageUid, seq: i64, at: Time, event: &'e NewEvent) -> Self {
        Self { uid, seq, at, kind: event.kind, data: event.data.as_deref(), more: None }
    }
}

/// An event in the list of a row: its kind and its data.
#[derive(Deserialize)]
struct ListedEvent<'r>(i64, #[serde(borrow)] Option<&'r RawValue>);

/// Whether an event of this kind may be in the list of another event's row.
fn may_follow(kind: EventKind) -> bool {
    matches!(kind, EventKind::Validated | EventKind::Ready | EventKind::Scheduled | EventKind::Sending)
}

/// Writes the list of the events after a message's first one, without its end; `None` if they cannot share a
/// row.
pub(crate) fn open_list(events: &[NewEvent]) -> Option<String> {
    let mut list = String::from("[");
    let followers = events.get(1..).filter(|followers| (followers.len() as i64) < JOINED_MAX - 1)?;
    for event in followers {
        let data = event.data.as_deref().unwrap_or("null");
        if !may_follow(event.kind) || serde_json::from_str::<&RawValue>(data).is_err() {
            return None;
        }
        add(&mut list, event.kind, data);
    }
    Some(shorten(&list))
}

/// Closes such a list, after adding `last` if there is one.
pub(crate) fn close_list(open: &str, last: Option<(EventKind, &str)>) -> Option<String> {
    let mut list = open.to_owned();
    if let Some((kind, data)) = last {
        let begun = list.len();
        add(&mut list, kind, data);
        let added = shorten(&list[begun..]);
        list.truncate(begun);
        list.push_str(&added);
    }
    list.push(']');
    (list != "[]").then_some(list)
}

/// Shortens the data of the event that every message ends with, if all goes well. Data of other kinds stays
/// as it is, since queries look into it.
pub(crate) fn shorten_data(event: &mut NewEvent) {
    if event.kind == EventKind::Sent
        && let Some(data) = &event.data
    {
        let short = shorten(data);
        if !is_plain(&short) {
            event.data = Some(short);
        }
    }
}

/// Whether no mark is before everything else: so data that has any can be found by its first character.
pub(crate) fn is_plain(data: &str) -> bool {
    data.chars().next().is_none_or(|first| phrase_of(first).is_none())
}

/// The phrase of a mark.
fn phrase_of(mark: char) -> Option<&'static str> {
    PHRASES.iter().find(|(known, _)| *known == mark).map(|(_, phrase)| *phrase)
}

/// The text with a mark for each of its phrases.
fn shorten(text: &str) -> String {
    let (mut short, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(next) = rest.chars().next() {
        let phrase = PHRASES.iter().find(|(_, phrase)| rest.starts_with(phrase));
        let (written, read) = phrase.map_or((next, next.len_utf8()), |(mark, phrase)| (*mark, phrase.len()));
        short.push(written);
        rest = &rest[read..];
    }
    short
}

/// The text with the phrases that its marks stand for.
fn expand(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|one| phrase_of(one).is_some()) {
        return text.into();
    }
    let mut long = String::with_capacity(4 * text.len());
    for one in text.chars() {
        match phrase_of(one) {
            Some(phrase) => long.push_str(phrase),
            None => long.push(one),
        }
    }
    long.into()
}

fn add(list: &mut String, kind: EventKind, data: &str) {
    use std::fmt::Write;
    let comma = if list.len() > 1 { "," } else { "" };
    // Writing to a text does not fail.
    let _ = write!(list, "{comma}[{},{data}]", kind.code());
}

/// The events of a row, in their order.
pub(crate) fn events_of(
    seq: i64,
    at: Time,
    kind: i64,
    data: Option<String>,
    more: Option<&str>,
) -> Result<Vec<MessageEvent>, StoreError> {
    let kind = decode::coded(kind, EventKind::from_code)?;
    // Only data that begins with a mark has any: other texts may contain control characters of their own.
    let data = data.map(|data| if is_plain(&data) { data } else { expand(&data).into_owned() });
    let mut events = vec![MessageEvent { seq, at, kind, data }];
    if let Some(more) = more {
        let damaged = |_| StoreError::Unexpected("a stored list of events that cannot be read".into());
        let list = expand(more);
        let followers: Vec<ListedEvent<'_>> = serde_json::from_str(&list).map_err(damaged)?;
        for (seq, ListedEvent(kind, data)) in (seq + 1..).zip(followers) {
            let data = data.map(|data| data.get().to_owned());
            events.push(MessageEvent { seq, at, kind: decode::coded(kind, EventKind::from_code)?, data });
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, data: Option<&str>) -> NewEvent {
        NewEvent { kind, data: data.map(str::to_owned) }
    }

    fn listed(more: Option<&str>) -> Vec<(i64, EventKind, Option<String>)> {
        let events = events_of(1, Time::from_millis(7), 1, Some("{}".into()), more).unwrap();
        assert!(events.iter().all(|event| event.at == Time::from_millis(7)));
        events.into_iter().map(|event| (event.seq, event.kind, event.data)).collect()
    }

    #[test]
    fn what_follows_at_once_comes_back_as_it_was() {
        let checks = "{\"checks\": [{\"b\":1,\"a\":2.50}]}";
        let first = [
            event(EventKind::Accepted, Some("{}")),
            event(EventKind::Validated, Some(checks)),
            event(EventKind::Ready, None),
        ];
        let open = open_list(&first).unwrap();
        let list = close_list(&open, Some((EventKind::Sending, "{\"attempt\":1}"))).unwrap();
        let expected = [
            (1, EventKind::Accepted, Some("{}".to_owned())),
            (2, EventKind::Validated, Some(checks.to_owned())),
            (3, EventKind::Ready, None),
            (4, EventKind::Sending, Some("{\"attempt\":1}".to_owned())),
        ];
        assert_eq!(listed(Some(&list)), expected);
        assert_eq!(listed(close_list(&open, None).as_deref()), expected[..3]);
        assert_eq!(listed(None), expected[..1]);
        assert_eq!(close_list(&open_list(&first[..1]).unwrap(), None), None, "nothing follows");
    }

    /// As the intake writes it.
    const CHECKED: &str = "{\"checks\":[{\"check\":\"INTEGRITY\",\"bytes\":2261},{\"check\":\"RECIPIENT\",\
         \"recipients\":1,\"known\":false},{\"check\":\"TEMPLATE\",\"subject_chars\":14,\"html_bytes\":0}]}";

    fn checked(data: &str) -> [NewEvent; 3] {
        [
            event(EventKind::Accepted, Some("{}")),
            event(EventKind::Validated, Some(data)),
            event(EventKind::Ready, None),
        ]
    }

    #[test]
    fn what_every_list_says_takes_little_room_and_comes_back_as_it_was() {
        let sending = Some((EventKind::Sending, "{\"attempt\":1}"));
        let list = close_list(&open_list(&checked(CHECKED)).unwrap(), sending).unwrap();
        assert_eq!(list, "\u{1}2261\u{2}1\u{3}14\u{4}0\u{6}\u{7}]");
        let expected = [
            (1, EventKind::Accepted, Some("{}".to_owned())),
            (2, EventKind::Validated, Some(CHECKED.to_owned())),
            (3, EventKind::Ready, None),
            (4, EventKind::Sending, Some("{\"attempt\":1}".to_owned())),
        ];
        assert_eq!(listed(Some(&list)), expected);
        // A row from before there were marks.
        let plain = expand(&list).into_owned();
        assert!(plain.starts_with("[[2,{\"checks\"") && plain.ends_with(",[4,null],[6,{\"attempt\":1}]]"));
        assert_eq!(listed(Some(&plain)), expected);
    }

    #[test]
    fn the_data_of_the_end_takes_little_room_and_comes_back_as_it_was() {
        let data = "{\"attempt\":1,\"duration_ms\":872,\"code\":null,\"category\":null,\"original_code\":null,\
             \"will_retry\":false,\"next_attempt\":null,\"backoff_ms\":null,\"provider_message_id\":\"<a@b>\"}";
        let mut sent = event(EventKind::Sent, Some(data));
        shorten_data(&mut sent);
        assert_eq!(sent.data.as_deref(), Some("\u{e}1\u{f}872\u{10}\u{11}<a@b>\"}"));
        let read = events_of(5, Time::from_millis(7), EventKind::Sent.code(), sent.data, None).unwrap();
        assert_eq!(read[0].data.as_deref(), Some(data));
        for (kind, data) in [
            (EventKind::Failed, Some(data)),
            (EventKind::Sent, None),
            (EventKind::Sent, Some("{\"reply\":\"2.0.0\",\"duration_ms\":1}")),
        ] {
            let mut other = event(kind, data);
            shorten_data(&mut other);
            assert_eq!(
                other.data.as_deref(),
                data,
                "{kind:?}: queries may look for it, or could not find it"
            );
        }
    }

    /// Senders choose texts in this data: the name of a template, say.
    #[test]
    fn no_text_is_taken_for_a_mark_and_none_is_lost() {
        for (mark, phrase) in PHRASES {
            assert!(mark.is_control() && !mark.is_whitespace() && !phrase.chars().any(char::is_control));
            for text in
                [mark.to_string(), phrase.to_owned(), format!("\u{fc}{mark}{phrase}"), "\n".to_owned()]
            {
                let data = serde_json::json!({"checks": [{"check": "INTEGRITY", "name": text}], "a": [text]});
                for data in [data.to_string(), CHECKED.replace("14", &serde_json::json!(text).to_string())] {
                    let list = close_list(&open_list(&checked(&data)).unwrap(), None).unwrap();
                    assert_eq!(listed(Some(&list))[1].2.as_deref(), Some(data.as_str()));
                }
            }
        }
        let raw = format!("{{\"a\":\"{}\"}}", PHRASES[0].0);
        assert_eq!(open_list(&checked(&raw)), None, "no JSON");
        assert_eq!(expand("\u{1f}"), "\u{1f}", "a mark that is not known");
        assert!(events_of(1, Time::from_millis(7), 1, None, Some("[[4,\u{1f}]]")).is_err());
    }

    #[test]
    fn what_others_look_for_has_a_row_of_its_own() {
        let first = event(EventKind::Accepted, None);
        for kind in EventKind::ALL.iter().copied().filter(|kind| !may_follow(*kind)) {
            assert_eq!(open_list(&[first.clone(), event(kind, None)]), None, "{kind:?}");
        }
        let broken = event(EventKind::Validated, Some("{\"checks\""));
        assert_eq!(open_list(&[first.clone(), broken]), None, "a list could not be read");
        let many = vec![event(EventKind::Ready, None); JOINED_MAX as usize];
        assert_eq!(open_list(&[vec![first], many].concat()), None);
        assert_eq!(open_list(&[]), None);
    }

    #[test]
    fn a_damaged_list_is_an_error() {
        for more in ["", "[", "[[4]]", "[[9999,null]]", "{}", "[[4,null],7]"] {
            assert!(events_of(1, Time::from_millis(7), 1, None, Some(more)).is_err(), "{more}");
        }
    }
}
