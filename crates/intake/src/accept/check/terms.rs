//! Checks the terms of a message: time, expiry, priority, ids, tags and metadata.

use postway_domain::{
    ClientId, MessagePriority, Time,
    dsn::DsnRequest,
    id::BatchCode,
    message::OnDoubt,
    spoken_time::{SPOKEN_FORMS, spoken_time},
};
use postway_trace::TraceContext;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    accept::parse::request::{JsonScalar, MessageInput},
    limits::IntakeLimits,
    refusal::FieldFaults,
};

/// How deep metadata may be nested. Subscribers receive it inside lists and webhook calls, and many JSON
/// parsers stop after some dozens of levels: one message must not make a page of events unreadable.
const METADATA_LEVELS_MAX: usize = 32;
/// The longest tag in bytes, which every database can index.
const TAG_BYTES_MAX: usize = 1_024;

/// The terms of a message: everything except its account, people and content.
#[derive(Debug, Default)]
pub(crate) struct MessageTerms {
    pub client_id: Option<ClientId>,
    pub batch: Option<BatchCode>,
    pub priority: MessagePriority,
    /// Set only if it is in the future.
    pub send_at: Option<Time>,
    pub expires_at: Option<Time>,
    /// What to do in doubt, if the message says so itself.
    pub on_doubt: Option<OnDoubt>,
    /// The reports that the message asks relays for.
    pub dsn: Option<DsnRequest>,
    pub tags: Vec<String>,
    pub metadata: Option<String>,
    pub external_id: Option<String>,
    /// A newer message with the same key replaces this one.
    pub collapse_key: Option<String>,
    /// Its place in a trace, if it names one and this process traces.
    pub trace: Option<TraceContext>,
}

/// Checks the terms. `now` is the time of acceptance, and `spoken` says whether a time may be given in words.
/// After a fault the result must not be used.
pub(crate) fn terms(
    request: &MessageInput<'_>,
    limits: &IntakeLimits,
    (now, spoken): (Time, bool),
    errors: &mut FieldFaults,
) -> MessageTerms {
    let client_id = request.id.as_ref().and_then(|id| errors.take("id", id.parse()));
    let batch = request.batch.as_ref().and_then(|code| errors.take("batch", code.parse()));
    let priority = request.priority.as_ref().and_then(|given| errors.take("priority", priority(given)));
    let on_doubt = request.on_doubt.as_ref().and_then(|word| errors.take("on_doubt", word.parse()));
    let dsn = request.dsn.as_ref().and_then(|parameters| errors.take("dsn", parameters.parse()));
    let metadata = request.metadata.and_then(|json| errors.take("metadata", metadata(json.get(), limits)));
    let (send_at, expires_at) = times(request, limits, (now, spoken), errors);
    MessageTerms {
        client_id,
        batch,
        priority: priority.unwrap_or_default(),
        send_at,
        expires_at,
        on_doubt,
        dsn,
        tags: tags(request, limits, errors),
        metadata: metadata.flatten(),
        external_id: label(
            "external_id",
            request.external_id.as_deref(),
            limits.external_id_chars_max,
            errors,
        ),
        collapse_key: label(
            "collapse_key",
            request.collapse_key.as_deref(),
            limits.collapse_key_chars_max,
            errors,
        ),
        trace: request.traceparent.filter(|_| postway_trace::is_on()).and_then(trace_context),
    }
}

/// The place in a trace that a JSON text names. None of its characters needs an escape.
fn trace_context(json: &RawValue) -> Option<TraceContext> {
    TraceContext::parse(json.get().strip_prefix('"')?.strip_suffix('"')?.as_bytes())
}

fn priority(given: &JsonScalar<'_>) -> Result<MessagePriority, &'static str> {
    priority_of(&given.as_text())
}

/// The priority of this name or number.
pub(crate) fn priority_of(text: &str) -> Result<MessagePriority, &'static str> {
    let named = MessagePriority::ALL.iter().find(|priority| priority.as_str() == text);
    let numbered = || text.parse().ok().and_then(MessagePriority::from_code);
    named.copied().or_else(numbered).ok_or("must be 0 to 3, or immediate, high, normal or low")
}

/// Checks `send_at` and `expires_at`. A `send_at` in the past means now, so it is dropped.
fn times(
    request: &MessageInput<'_>,
    limits: &IntakeLimits,
    (now, spoken): (Time, bool),
    errors: &mut FieldFaults,
) -> (Option<Time>, Option<Time>) {
    let mut read = |field: &str, given: Option<&JsonScalar<'_>>| {
        let parsed = match given? {
            // A fraction of a second is dropped, not refused.
            JsonScalar::Float(seconds) => (*seconds as i64).to_string().parse::<Time>(),
            given => given.as_text().parse(),
        };
        let from_words = || given.filter(|_| spoken).and_then(|given| spoken_time(&given.as_text(), now));
        match (parsed, spoken) {
            (Err(error), true) => from_words().or_else(|| {
                errors.add(field, format!("{error}, or words such as {SPOKEN_FORMS}"));
                None
            }),
            (parsed, _) => errors.take(field, parsed),
        }
    };
    let send_at = read("send_at", request.send_at.as_ref()).filter(|at| *at > now);
    let expires_at = read("expires_at", request.expires_at.as_ref());
    if send_at.is_some_and(|at| at.since(now) > limits.send_at_ahead_max) {
        let days = limits.send_at_ahead_max.as_secs() / (24 * 60 * 60);
        errors.add("send_at", format!("must be at most {days} days ahead"));
    }
    match expires_at {
        Some(at) if at <= now => errors.add("expires_at", "must be in the future"),
        Some(at) if send_at.is_some_and(|send_at| at <= send_at) => {
            errors.add("expires_at", "must be after send_at");
        }
        Some(_) | None => {}
    }
    (send_at, expires_at)
}

fn tags(request: &MessageInput<'_>, limits: &IntakeLimits, errors: &mut FieldFaults) -> Vec<String> {
    let tags = request.tags.as_ref().map_or(&[][..], |tags| &tags.0);
    if tags.len() > limits.tags_max {
        errors.add("tags", format!("there are {} tags: use at most {}", tags.len(), limits.tags_max));
        return Vec::new();
    }
    for (index, tag) in tags.iter().enumerate() {
        if !is_label(tag, limits.tag_chars_max) || tag.len() > TAG_BYTES_MAX {
            let max = limits.tag_chars_max;
            errors.add(
                format!("tags[{index}]"),
                format!("must be 1 to {max} characters ({TAG_BYTES_MAX} bytes) without control characters"),
            );
        }
    }
    tags.iter().map(|tag| tag.to_string()).collect()
}

/// Checks a label that the client chose.
fn label(field: &str, given: Option<&str>, max: usize, errors: &mut FieldFaults) -> Option<String> {
    let given = given?;
    if !is_label(given, max) {
        errors.add(field, format!("must be 1 to {max} characters without control characters"));
    }
    Some(given.to_owned())
}

fn is_label(text: &str, chars_max: usize) -> bool {
    !text.is_empty()
        && text.chars().take(chars_max + 1).count() <= chars_max
        && !text.contains(char::is_control)
}

/// Metadata in compact form; `None` if it is empty.
fn metadata(json: &str, limits: &IntakeLimits) -> Result<Option<String>, String> {
    if json.len() > limits.metadata_bytes_max {
        return Err(format!("must be at most {} bytes of JSON", limits.metadata_bytes_max));
    }
    if !json.starts_with('{') {
        return Err("must be an object".to_owned());
    }
    if levels(json) > METADATA_LEVELS_MAX {
        return Err(format!("must be nested at most {METADATA_LEVELS_MAX} levels deep"));
    }
    // Parsed although it is only stored: readers must be able to rely on valid JSON.
    let object: Map<String, Value> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok((!object.is_empty()).then(|| Value::Object(object).to_string()))
}

/// The deepest nesting of objects and lists in a valid JSON text.
fn levels(json: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !in_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_objects_and_lists_and_not_of_what_texts_say() {
        assert_eq!(levels("{}"), 1);
        assert_eq!(levels(r#"{"a": [[], {"b": [1]}], "c": {}}"#), 4);
        assert_eq!(levels(r#"{"[[[": "{{{\\\"[[[", "b": "\\", "c": []}"#), 2);
    }

    #[test]
    fn metadata_is_nested_only_so_deep() {
        let nested = |lists: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(lists), "]".repeat(lists));
        let limits = IntakeLimits::default();
        assert!(metadata(&nested(METADATA_LEVELS_MAX - 1), &limits).is_ok());
        for lists in [METADATA_LEVELS_MAX, 200, 8_000] {
            let refused = metadata(&nested(lists), &limits).unwrap_err();
            assert!(refused.contains("32 levels"), "{refused}");
        }
    }
}
