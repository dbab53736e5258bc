//! What a bulk action does, and to which messages: read from a request, and stored as it was written.
//!
//! The filter is stored in the words of `GET /v1/messages` and read again for each slice, so what blocks mail
//! is asked anew each time. What was readable once is readable again: words are added to the filter and never
//! taken away.

use std::collections::BTreeMap;

use postway_domain::{EventKind, Time, message::DoubtResolution};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    http::{error::FieldError, json_fields::JsonFieldReader, query::QueryParameters},
    message::{
        operate::transition::{OperatorAction, word},
        read::list::AskedFilter,
    },
};

/// The most messages that are selected one by one.
pub(crate) const IDS_MAX: usize = 1_000;
/// The longest note of a suppression.
const NOTE_CHARS_MAX: usize = 500;
/// The most conditions of a filter.
const CONDITIONS_MAX: usize = 32;

/// What is done to each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkDeed {
    /// What an operator can do to a single message.
    Operate(OperatorAction),
    /// Its recipients get no more mail.
    Suppress,
}

/// What to do with which messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BulkTask {
    /// `cancel`, `retry`, `reschedule`, `resolve` or `suppress`.
    pub(crate) action: String,
    /// The decision on a doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The new time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) send_at: Option<Time>,
    /// The note of the suppressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The conditions, in the words of the list; `None` if messages were selected one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<BTreeMap<String, String>>,
    /// The request that asked for it.
    pub(crate) request_id: String,
}

/// A request that was read without a fault.
#[derive(Debug)]
pub(crate) struct BulkRequest {
    pub(crate) task: BulkTask,
    /// The selected messages as the caller names them, unless there is a filter.
    pub(crate) ids: Vec<String>,
    /// The most messages that the caller has in mind.
    pub(crate) at_most: Option<u32>,
}

impl BulkTask {
    /// What to do; `None` if a later version of this program wrote it.
    pub(crate) fn deed(&self) -> Option<BulkDeed> {
        Some(BulkDeed::Operate(match self.action.as_str() {
            "cancel" => OperatorAction::Cancel,
            "retry" => OperatorAction::Replay,
            "reschedule" => OperatorAction::Reschedule(self.send_at?),
            "resolve" => OperatorAction::Resolve(resolution_of(self.outcome.as_deref()?)?),
            "suppress" => return Some(BulkDeed::Suppress),
            _ => return None,
        }))
    }

    /// The filter, if there is one.
    pub(crate) fn asked_filter(&self) -> Option<Result<AskedFilter, Vec<FieldError>>> {
        self.filter.as_ref().map(read_filter)
    }

    /// Whether every message of the tenant is meant.
    pub(crate) fn is_for_all(&self) -> bool {
        self.filter.as_ref().is_some_and(BTreeMap::is_empty)
    }

    /// The outcome that suppressed recipients must have; all recipients of a message if `None`.
    pub(crate) fn outcome_of_recipients(&self) -> Option<EventKind> {
        self.asked_filter().and_then(Result::ok).and_then(|asked| asked.outcome())
    }
}

fn resolution_of(text: &str) -> Option<DoubtResolution> {
    let all = [DoubtResolution::Sent, DoubtResolution::Failed, DoubtResolution::Resend];
    all.into_iter().find(|resolution| word(*resolution) == text)
}

fn read_filter(conditions: &BTreeMap<String, String>) -> Result<AskedFilter, Vec<FieldError>> {
    let pairs = conditions.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut query = QueryParameters::from_pairs(pairs);
    let asked = AskedFilter::take(&mut query);
    let wrong = query.faults("is not a filter of GET /v1/messages");
    match wrong.is_empty() {
        true => Ok(asked),
        false => Err(wrong
            .into_iter()
            .map(|fault| FieldError::new(format!("filter.{}", fault.field), fault.message))
            .collect()),
    }
}

/// Reads a body.
pub(crate) fn read(body: Map<String, Value>, request_id: &str) -> Result<BulkRequest, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let action: String = fields.read("action", "must be a text").unwrap_or_default();
    if !["cancel", "retry", "reschedule", "resolve", "suppress"].contains(&action.as_str()) {
        fields.refuse("action", "must be cancel, retry, reschedule, resolve or suppress");
    }
    let outcome: Option<String> = fields.read("outcome", "must be sent, failed or resend");
    let send_at: Option<Time> = fields.read("send_at", "must be a time: RFC 3339 or Unix seconds");
    let note = fields.text("note", NOTE_CHARS_MAX);
    for (name, of, is_given) in [
        ("outcome", "resolve", outcome.is_some()),
        ("send_at", "reschedule", send_at.is_some()),
        ("note", "suppress", note.is_some()),
    ] {
        if is_given && action != of {
            fields.refuse(name, format!("is only for the action {of}"));
        }
    }
    if action == "resolve" && outcome.as_deref().and_then(resolution_of).is_none() {
        fields.refuse("outcome", "must be sent, failed or resend");
    }
    if action == "reschedule" && send_at.is_none() {
        fields.refuse("send_at", "must be a time: RFC 3339 or Unix seconds");
    }
    let filter = conditions(&mut fields);
    let ids = ids(&mut fields);
    if filter.is_some() == ids.is_some() {
        fields.refuse("filter", "give either a filter or ids; an empty filter `{}` means all messages");
    }
    let at_most = fields.number("at_most");
    fields.finish("is not a field of a bulk action");
    if let Some(Err(faults)) = filter.as_ref().map(read_filter) {
        wrong.extend(faults);
    }
    let task = BulkTask { action, outcome, send_at, note, filter, request_id: request_id.to_owned() };
    match wrong.is_empty() {
        true => Ok(BulkRequest { task, ids: ids.unwrap_or_default(), at_most }),
        false => Err(wrong),
    }
}

/// The conditions as the list would take them: texts, numbers and yes or no.
fn conditions(fields: &mut JsonFieldReader<'_>) -> Option<BTreeMap<String, String>> {
    let given: Map<String, Value> = fields.read("filter", "must be an object")?;
    if given.len() > CONDITIONS_MAX {
        fields.refuse("filter", format!("must have at most {CONDITIONS_MAX} conditions"));
        return Some(BTreeMap::new());
    }
    let mut conditions = BTreeMap::new();
    for (name, value) in given {
        let text = match value {
            Value::Null => continue,
            Value::String(text) if text.is_empty() => continue,
            Value::String(text) => text,
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Array(_) | Value::Object(_) => {
                let name: String = name.chars().take(100).collect();
                fields.refuse(&format!("filter.{name}"), "must be a text");
                continue;
            }
        };
        conditions.insert(name, text);
    }
    Some(conditions)
}

fn ids(fields: &mut JsonFieldReader<'_>) -> Option<Vec<String>> {
    let given: Vec<String> = fields.read("ids", "must be a list of texts")?;
    if given.is_empty() || given.len() > IDS_MAX {
        fields.refuse("ids", format!("must be a list of 1 to {IDS_MAX} ids; use a filter for more"));
    }
    Some(given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_json(body: Value) -> Result<BulkRequest, Vec<String>> {
        read(body.as_object().unwrap().clone(), "req-1")
            .map_err(|wrong| wrong.into_iter().map(|fault| fault.field).collect())
    }

    #[test]
    fn what_is_stored_reads_back() {
        let filter =
            json!({"status": "failed", "waiting": true, "since": "2026-01-01T00:00:00Z", "tag": null});
        let read = read_json(json!({"action": "retry", "filter": filter, "at_most": 7})).unwrap();
        assert_eq!(read.at_most, Some(7));
        let stored = serde_json::to_string(&read.task).unwrap();
        let task: BulkTask = serde_json::from_str(&stored).unwrap();
        assert_eq!(task, read.task);
        assert_eq!(task.deed(), Some(BulkDeed::Operate(OperatorAction::Replay)));
        assert!(task.asked_filter().unwrap().is_ok() && !task.is_for_all());
        let resolve = read_json(json!({"action": "resolve", "outcome": "sent", "ids": ["a"]})).unwrap();
        let deed = BulkDeed::Operate(OperatorAction::Resolve(DoubtResolution::Sent));
        assert_eq!((resolve.task.deed(), resolve.ids), (Some(deed), vec!["a".to_owned()]));
        assert!(read_json(json!({"action": "cancel", "filter": {}})).unwrap().task.is_for_all());
    }

    #[test]
    fn every_wrong_field_is_named() {
        let many: Vec<String> = (0..=IDS_MAX).map(|n| n.to_string()).collect();
        for (body, fields) in [
            (json!({"filter": {}}), &["action"][..]),
            (json!({"action": "delete", "filter": {}}), &["action"]),
            (json!({"action": "cancel"}), &["filter"]),
            (json!({"action": "cancel", "filter": {}, "ids": ["a"]}), &["filter"]),
            (json!({"action": "cancel", "ids": []}), &["ids"]),
            (json!({"action": "cancel", "ids": many}), &["ids"]),
            (json!({"action": "cancel", "filter": {"colour": "red"}}), &["filter.colour"]),
            (json!({"action": "cancel", "filter": {"status": "lost"}}), &["filter.status"]),
            (json!({"action": "cancel", "filter": {"tag": ["a"]}}), &["filter.tag"]),
            (json!({"action": "resolve", "filter": {}}), &["outcome"]),
            (json!({"action": "resolve", "outcome": "lost", "filter": {}}), &["outcome"]),
            (json!({"action": "reschedule", "filter": {}}), &["send_at"]),
            (json!({"action": "cancel", "send_at": 1, "note": "x", "filter": {}}), &["send_at", "note"]),
            (json!({"action": "cancel", "filter": {}, "limit": 1}), &["limit"]),
        ] {
            assert_eq!(read_json(body.clone()).unwrap_err(), fields, "{body}");
        }
    }
}
