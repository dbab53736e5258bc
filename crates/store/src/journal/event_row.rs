//! Rows of the table `event`. Events that are written together share a row: the first of them, and a list of
//! the others.
//!
//! Of the five events of a message that is accepted and sent, four are written in one transaction. Only the
//! steps that every message takes may be in such a list ([`may_follow`]): an event of any other kind has its
//! own row, where queries find it.

use postway_domain::{EventKind, MessageEvent, MessageUid, Time};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{error::StoreError, record::NewEvent, sql::decode};

/// The most events that one row can have: the first, and one of each kind that may follow.
pub(crate) const JOINED_MAX: i64 = 5;

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
    Some(list)
}

/// Closes such a list, after adding `last` if there is one.
pub(crate) fn close_list(open: &str, last: Option<(EventKind, &str)>) -> Option<String> {
    let mut list = open.to_owned();
    if let Some((kind, data)) = last {
        add(&mut list, kind, data);
    }
    list.push(']');
    (list.len() > 2).then_some(list)
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
    let mut events = vec![MessageEvent { seq, at, kind: decode::coded(kind, EventKind::from_code)?, data }];
    if let Some(more) = more {
        let damaged = |_| StoreError::Unexpected("a stored list of events that cannot be read".into());
        let followers: Vec<ListedEvent<'_>> = serde_json::from_str(more).map_err(damaged)?;
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
