//! Events as this API shows them.

use postway_domain::{
    MessageEvent, MessageUid,
    reference::{EventConsequence, event_004},
};
use serde_json::{Map, Value, json};

/// Our event data and its names there.
const NAMES: &[(&str, &str)] = &[
    ("attempt", "attempt"),
    ("duration_ms", "durationMs"),
    ("code", "errorCode"),
    ("provider_category", "errorCategory"),
    ("message", "errorMessage"),
    ("original_code", "originalCode"),
    ("will_retry", "willRetry"),
    ("next_attempt", "nextAttemptNumber"),
    ("backoff_ms", "backoffDelay"),
    ("provider_message_id", "sesMessageId"),
    ("reason", "reason"),
    ("check", "check"),
    ("field", "field"),
    ("checks", "checks"),
    ("warnings", "warnings"),
];

/// An event of a message; `None` if this API has no such event.
pub(super) fn view(uid: MessageUid, event: &MessageEvent, sense: EventConsequence) -> Option<Value> {
    let word = event_004(event.kind, sense)?;
    let data: Map<String, Value> =
        event.data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
    let said =
        NAMES.iter().filter_map(|(ours, theirs)| Some(((*theirs).to_owned(), data.get(*ours)?.clone())));
    let mut metadata: Map<String, Value> = said.filter(|(_, value)| !value.is_null()).collect();
    if word == "FAILED" {
        metadata.entry("willRetry").or_insert(Value::Bool(false));
    }
    Some(json!({
        "id": format!("{uid}-{}", event.seq),
        "type": word,
        "metadata": metadata,
        "createdAt": event.at,
        "timestamp": event.at,
    }))
}

#[cfg(test)]
mod tests {
    use postway_domain::{EventKind, Time};

    use super::*;

    #[test]
    fn an_outcome_says_what_its_users_look_for() {
        let uid = MessageUid::from_bytes([7; 16]);
        let said = |kind, data: Value, sense| {
            view(
                uid,
                &MessageEvent { seq: 1, at: Time::from_millis(0), kind, data: Some(data.to_string()) },
                sense,
            )
        };
        let event = |kind, data| said(kind, data, EventConsequence::Plain);
        let retry = said(
            EventKind::Scheduled,
            json!({"attempt": 1, "duration_ms": 9, "code": "SES_THROTTLING", "provider_category": "QUOTA_ERROR",
                "message": "slow down", "original_code": "Throttling", "will_retry": true, "next_attempt": 2,
                "backoff_ms": 1000, "phase": "request"}),
            EventConsequence::Retry,
        );
        assert_eq!(
            retry.unwrap(),
            json!({"id": format!("{uid}-1"), "type": "RETRY_SCHEDULED", "createdAt": "1970-01-01T00:00:00.000Z",
                "timestamp": "1970-01-01T00:00:00.000Z", "metadata": {
                "attempt": 1, "durationMs": 9, "errorCode": "SES_THROTTLING", "errorCategory": "QUOTA_ERROR",
                "errorMessage": "slow down", "originalCode": "Throttling", "willRetry": true,
                "nextAttemptNumber": 2, "backoffDelay": 1000}})
        );
        let sent = event(EventKind::Sent, json!({"attempt": 2, "provider_message_id": "0100"})).unwrap();
        assert_eq!(sent["metadata"], json!({"attempt": 2, "sesMessageId": "0100"}));
        let held = said(
            EventKind::Ready,
            json!({"attempt": 1, "code": "SES_DAILY_QUOTA_EXCEEDED", "will_retry": true, "next_attempt": 2}),
            EventConsequence::Retry,
        );
        assert_eq!(held.unwrap()["type"], "RETRY_SCHEDULED", "no retry is used, and it is tried again");
        let checks = json!([{"check": "INTEGRITY", "bytes": 9}]);
        let validated = event(EventKind::Validated, json!({"checks": checks})).unwrap();
        assert_eq!(validated["metadata"], json!({"checks": checks}));
        assert_eq!(event(EventKind::Cancelled, json!({})).unwrap()["metadata"], json!({"willRetry": false}));
        assert_eq!(event(EventKind::Scheduled, json!({"due_at": "x"})), None, "a time of the sender's own");
    }
}
