//! Splits a proven call into events, each with what identifies it. Only as much is read as this needs.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::HookRefusal;

/// The most events of one call.
pub const EVENTS_MAX: usize = 2_000;
/// The longest id of an event that is used as its identity; a longer one is ignored.
const ID_BYTES_MAX: usize = 256;

/// The events of a call.
pub(super) struct SplitCall {
    pub events: Vec<SplitEvent>,
    /// What the call may use once.
    pub once: Option<Vec<u8>>,
}

impl SplitCall {
    /// A call without events.
    pub fn empty() -> Self {
        Self { events: Vec::new(), once: None }
    }

    /// A call with one event.
    pub fn one(identity: Vec<u8>, raw: &str) -> Self {
        Self { events: vec![SplitEvent { identity, raw: raw.to_owned() }], once: None }
    }
}

/// An event of a call.
pub(super) struct SplitEvent {
    /// The same whenever this event is reported.
    pub identity: Vec<u8>,
    /// Its JSON.
    pub raw: String,
}

/// The ids that an event may have; the first that its provider gives.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProviderEventIds {
    sg_event_id: Option<String>,
    id: Option<String>,
}

/// A call of Mailgun.
#[derive(Deserialize)]
struct MailgunCall<'a> {
    #[serde(borrow, rename = "event-data")]
    event: &'a RawValue,
}

/// A call in the generic form.
#[derive(Deserialize)]
struct EventListCall<'a> {
    #[serde(borrow, default)]
    events: Option<Vec<&'a RawValue>>,
}

fn ids(raw: &str) -> ProviderEventIds {
    serde_json::from_str(raw).unwrap_or_default()
}

/// SendGrid: a list of events, each with `sg_event_id`.
pub(super) fn sendgrid(body: &[u8]) -> Result<SplitCall, HookRefusal> {
    let events: Vec<&RawValue> = read(body)?;
    each(&events, |raw| ids(raw).sg_event_id)
}

/// Mailgun: one event, with an id, beside a signature whose token counts once.
pub(super) fn mailgun(body: &[u8], token: String) -> Result<SplitCall, HookRefusal> {
    let MailgunCall { event } = read(body)?;
    let split = each(&[event], |raw| ids(raw).id)?;
    Ok(SplitCall { once: Some(token.into_bytes()), ..split })
}

/// The generic form: `{"events": […]}`, each with an `id`, or one event alone.
pub(super) fn list(body: &[u8]) -> Result<SplitCall, HookRefusal> {
    let id = |raw: &str| ids(raw).id;
    match read::<EventListCall<'_>>(body)?.events {
        Some(events) => each(&events, id),
        None => each(&[read(body)?], id),
    }
}

/// One event that is identified by all of its text.
pub(super) fn whole(body: &[u8]) -> Result<SplitCall, HookRefusal> {
    each(&[read(body)?], |_| None)
}

/// One event that the call's headers name.
pub(super) fn named(body: &[u8], id: String) -> Result<SplitCall, HookRefusal> {
    each(&[read(body)?], |_| Some(id.clone()))
}

fn each(events: &[&RawValue], id: impl Fn(&str) -> Option<String>) -> Result<SplitCall, HookRefusal> {
    if events.len() > EVENTS_MAX {
        return Err(HookRefusal::TooMany);
    }
    let event = |raw: &&RawValue| {
        let raw = raw.get();
        if !raw.starts_with('{') {
            return Err(HookRefusal::Malformed("an event must be a JSON object".to_owned()));
        }
        let named = id(raw).filter(|id| (1..=ID_BYTES_MAX).contains(&id.len()));
        let identity = named.map_or_else(|| raw.as_bytes().to_vec(), String::into_bytes);
        Ok(SplitEvent { identity, raw: raw.to_owned() })
    };
    Ok(SplitCall { events: events.iter().map(event).collect::<Result<_, _>>()?, once: None })
}

pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, HookRefusal> {
    serde_json::from_slice(body)
        .map_err(|error| HookRefusal::Malformed(format!("the body is not what the provider sends: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(split: Result<SplitCall, HookRefusal>) -> Vec<String> {
        let events = split.unwrap_or_else(|_| SplitCall::empty()).events;
        events.into_iter().map(|event| String::from_utf8(event.identity).unwrap()).collect()
    }

    #[test]
    fn events_are_known_by_their_ids_or_else_by_all_of_their_text() {
        let body = br#"[{"sg_event_id":"a","email":"x"},{"event":"open"},{"sg_event_id":""}]"#;
        assert_eq!(identities(sendgrid(body)), ["a", r#"{"event":"open"}"#, r#"{"sg_event_id":""}"#]);
        assert_eq!(
            identities(mailgun(br#"{"signature":{},"event-data":{"id":"m"}}"#, "t".to_owned())),
            ["m"]
        );
        assert_eq!(identities(list(br#"{"events":[{"id":"1"},{"id":"2"}]}"#)), ["1", "2"]);
        assert_eq!(identities(list(br#"{"id":"3","type":"delivered"}"#)), ["3"]);
        assert_eq!(identities(named(br#"{"type":"email.sent"}"#, "msg_1".to_owned())), ["msg_1"]);
        assert_eq!(identities(whole(br#"{"ID":1}"#)), [r#"{"ID":1}"#]);
    }

    #[test]
    fn what_is_no_list_of_objects_or_too_long_is_refused() {
        for body in ["", "{}", "[1]", "[[]]", "[null]", "\"x\"", "[{]"] {
            assert!(sendgrid(body.as_bytes()).is_err(), "{body}");
        }
        let many = format!("[{}]", vec!["{}"; EVENTS_MAX + 1].join(","));
        assert!(matches!(sendgrid(many.as_bytes()), Err(HookRefusal::TooMany)));
        let deep = "[".repeat(100_000);
        assert!(sendgrid(deep.as_bytes()).is_err() && list(deep.as_bytes()).is_err());
    }
}
