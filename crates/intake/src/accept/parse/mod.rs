//! Step 1, parse: reads the JSON of a request, and names the path of a value that does not fit.
//!
//! Parsing happens once and fast. Only when a value does not fit its shape is the text parsed again, slowly,
//! to learn the path of the value: most senders never pay for that.
//!
//! May refuse: text that is not JSON, unknown or repeated fields, and values of the wrong type.

pub(crate) mod defaults;
pub(crate) mod request;

use serde::Deserialize;
use serde_json::{error::Category, value::RawValue};

use crate::refusal::{FieldFault, Refusal, RefusalCode};

/// The longest explanation: the parser quotes the value, and the value may be the entire request.
const MESSAGE_CHARS_MAX: usize = 200;

/// Parses one JSON text.
pub(crate) fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(json).map_err(|error| explain::<T>(json, error))
}

fn explain<'a, T: Deserialize<'a>>(json: &'a [u8], error: serde_json::Error) -> Refusal {
    let malformed = |error| Refusal::Malformed { message: format!("the body is not valid JSON: {error}") };
    // A value that does not fit stops the parser before it has seen the rest, and a text that is not JSON has
    // no fields.
    if let Err(error) = serde_json::from_slice::<&RawValue>(json) {
        return malformed(error);
    }
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => malformed(error),
        Category::Data => {
            let located: Result<T, _> =
                serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(json));
            match located {
                Err(located) => {
                    let path = located.path().to_string();
                    refusal(if path == "." { "" } else { &path }, located.inner())
                }
                // Both parsers read the same bytes in the same way; if they ever differ, the first one
                // counts.
                Ok(_) => refusal("", &error),
            }
        }
    }
}

/// The refusal of the value at `path`. The parser reports a repeated field at the object that contains it.
fn refusal(path: &str, error: &serde_json::Error) -> Refusal {
    let reason = reason(error);
    let twice = reason.strip_prefix("duplicate field `").and_then(|rest| rest.strip_suffix('`'));
    let fault = match twice {
        Some(name) if path.is_empty() => FieldFault::new(name, "is given twice"),
        Some(name) => FieldFault::new(format!("{path}.{name}"), "is given twice"),
        None => FieldFault::new(clip(path), reason),
    };
    // A value of the wrong type is always an invalid payload, whatever the field is for.
    Refusal::Invalid { details: vec![fault.coded(RefusalCode::InvalidPayload)] }
}

/// The parser's reason without the line and column, because the path is clearer.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    // The list of all known fields would bury the one that matters.
    let text = text.split_once("`, expected one of").map_or(text, |(reason, _)| reason);
    match text.strip_prefix("unknown field `") {
        Some(name) => {
            format!("unknown field `{}`: remove it or correct its name", clip(name.trim_end_matches('`')))
        }
        None => clip(text),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
