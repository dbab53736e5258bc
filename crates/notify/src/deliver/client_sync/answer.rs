//! The answer of a client to its delivery report.

use std::collections::HashSet;

use postway_domain::Time;
use serde_json::{Map, Value};

/// A client's answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SyncAnswer {
    /// The ids of the entries that the client could not take.
    error: HashSet<String>,
    /// How many messages the client has to hand over itself.
    pub(super) queued: u64,
    /// The time before which the client does not want to be called.
    pub(super) next_sync_after: Option<Time>,
}

impl SyncAnswer {
    /// Reads the body of a successful response. Fails, with a text for the delivery log, unless the body is
    /// an object that says `ok` and refuses at most single entries, or is just `OK`, as simple clients
    /// answer. The page of a login or of a proxy is neither.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let plain = body.trim_ascii();
        if plain.is_empty() || plain.eq_ignore_ascii_case(b"ok") || plain.eq_ignore_ascii_case(b"\"ok\"") {
            return Ok(Self::default());
        }
        let object: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| "the answer is neither OK nor a JSON object")?;
        if object.get("ok") != Some(&Value::Bool(true)) {
            return Err("the answer does not say \"ok\": true".to_owned());
        }
        let error = match object.get("error") {
            None | Some(Value::Null) => HashSet::new(),
            Some(Value::String(text)) if text.is_empty() => HashSet::new(),
            Some(Value::Array(ids)) => ids
                .iter()
                .map(id)
                .collect::<Option<_>>()
                .ok_or("the answer's \"error\" has an entry that is no id")?,
            Some(_) => return Err("the answer reports an error".to_owned()),
        };
        Ok(Self {
            error,
            queued: object.get("queued").and_then(Value::as_u64).unwrap_or(0),
            next_sync_after: object.get("next_sync_after").and_then(seconds),
        })
    }

    /// Whether the client could not take the entry with this id.
    pub(super) fn refuses(&self, id: &str) -> bool {
        self.error.contains(id)
    }
}

/// Reads an id, which stands alone or in an object.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        Value::Object(entry) => entry.get("id").and_then(id),
        _ => None,
    }
}

/// Reads a time in Unix seconds, with or without a fraction.
fn seconds(value: &Value) -> Option<Time> {
    let seconds = value.as_f64().filter(|seconds| seconds.is_finite())?;
    Some(Time::from_millis((seconds * 1_000.0) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_entries_are_refused_by_id() {
        let answer = SyncAnswer::read(
            br#"{"ok":true,"error":["a",7,{"id":"b","why":"x"}],"not_found":["c"],"queued":3,"next_sync_after":1700000000.5}"#,
        )
        .unwrap();
        assert!(answer.refuses("a") && answer.refuses("7") && answer.refuses("b") && !answer.refuses("c"));
        assert_eq!(answer.queued, 3);
        assert_eq!(answer.next_sync_after, Some(Time::from_millis(1_700_000_000_500)));
        assert_eq!(SyncAnswer::read(br#"{"ok":true}"#).unwrap(), SyncAnswer::default());
    }

    #[test]
    fn a_plain_ok_takes_all() {
        for body in ["", " \r\n", "OK", "ok\n", "\"ok\""] {
            assert_eq!(SyncAnswer::read(body.as_bytes()), Ok(SyncAnswer::default()), "{body:?}");
        }
    }

    #[test]
    fn an_answer_that_does_not_say_ok_refuses_all() {
        for body in [
            "<html>OK</html>",
            "NOT OK",
            "[]",
            "{}",
            r#"{"ok":false}"#,
            r#"{"ok":"yes"}"#,
            r#"{"ok":true,"error":"boom"}"#,
            r#"{"ok":true,"error":{"code":1}}"#,
            r#"{"ok":true,"error":[null]}"#,
        ] {
            assert!(SyncAnswer::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
