//! The request of a message in this API's terms, through whichever API it came: the reverse of
//! [`super::message`]. Fields without a name there, such as tags or a template, are left out.

use postway_domain::Time;
use serde_json::{Map, Value, json};

use super::status::seconds;

/// Fields with the same name in both.
const SAME: [&str; 10] =
    ["id", "from", "to", "cc", "bcc", "reply_to", "return_path", "subject", "headers", "priority"];
/// The same for a file.
const SAME_OF_FILE: [&str; 6] =
    ["filename", "storage_path", "fetch_mode", "content_id", "inline", "content_md5"];
/// The source of a file: our field, and the mode that names it there.
const SOURCES: [(&str, &str); 4] =
    [("content", "base64"), ("url", "http_url"), ("path", "filesystem"), ("endpoint", "endpoint")];

/// Translates our request back.
pub(super) fn in_its_words(mut ours: Map<String, Value>) -> Map<String, Value> {
    let mut theirs = Map::new();
    for name in SAME {
        move_over(&mut ours, name, &mut theirs, name);
    }
    for (name, is_called) in
        [("account", "account_id"), ("batch", "batch_code"), ("external_id", "message_id")]
    {
        move_over(&mut ours, name, &mut theirs, is_called);
    }
    // There is one body: if a mail has both, the html is what most readers see.
    for (name, content_type) in [("html", "html"), ("text", "plain")] {
        if !theirs.contains_key("body") && move_over(&mut ours, name, &mut theirs, "body") {
            theirs.insert("content_type".to_owned(), json!(content_type));
        }
    }
    if let Some(at) = ours.remove("send_at").and_then(|at| in_seconds(&at)) {
        theirs.insert("deferred_ts".to_owned(), at);
    }
    if let Some(Value::Array(files)) = ours.remove("attachments") {
        theirs.insert("attachments".to_owned(), files.into_iter().map(file).collect());
    }
    theirs
}

/// Moves a value; returns whether there was one.
fn move_over(
    from: &mut Map<String, Value>,
    name: &str,
    to: &mut Map<String, Value>,
    is_called: &str,
) -> bool {
    let value = from.remove(name).filter(|value| !value.is_null());
    let is_there = value.is_some();
    to.extend(value.map(|value| (is_called.to_owned(), value)));
    is_there
}

fn in_seconds(at: &Value) -> Option<Value> {
    match at {
        Value::Number(_) => Some(at.clone()),
        Value::String(text) => text.parse::<Time>().ok().map(|at| json!(seconds(at))),
        _ => None,
    }
}

fn file(ours: Value) -> Value {
    let Value::Object(mut ours) = ours else { return ours };
    let mut theirs = Map::new();
    for name in SAME_OF_FILE {
        move_over(&mut ours, name, &mut theirs, name);
    }
    move_over(&mut ours, "content_type", &mut theirs, "mime_type");
    for (name, mode) in SOURCES {
        if !theirs.contains_key("storage_path") && move_over(&mut ours, name, &mut theirs, "storage_path") {
            theirs.insert("fetch_mode".to_owned(), json!(mode));
        }
    }
    Value::Object(theirs)
}

#[cfg(test)]
mod tests {
    use super::{super::message::translate, *};
    use crate::compat::translate::RawFields;

    fn back(ours: Value) -> Value {
        let Value::Object(ours) = ours else { panic!("a request is an object") };
        Value::Object(in_its_words(ours))
    }

    #[test]
    fn what_came_by_its_door_reads_back_as_it_was_written() {
        let theirs = json!({
            "id": "m1", "account_id": "relay", "from": "a@x.example", "to": ["b@x.example"], "cc": ["d@x.example"],
            "bcc": "e@x.example", "reply_to": "f@x.example", "return_path": "g@x.example", "subject": "s",
            "body": "<p>é</p>", "content_type": "html", "priority": "high", "deferred_ts": 1_700_000_000,
            "batch_code": "c1", "message_id": "x@y", "headers": {"X-A": "1"},
            "attachments": [{"filename": "a.txt", "storage_path": "YQ==", "fetch_mode": "base64", "mime_type": "text/plain",
                "content_id": "logo", "inline": true}],
        });
        let json = theirs.to_string();
        let ours = translate(RawFields::read(json.as_bytes()).ok().unwrap(), None).ok().unwrap();
        assert_eq!(back(serde_json::from_str(&ours).unwrap()), theirs);
    }

    #[test]
    fn what_came_by_another_door_is_said_in_its_words() {
        let ours = json!({
            "from": "a@x.example", "to": "b@x.example", "text": "t", "html": "<p>t", "send_at": "2023-11-14T22:13:20Z",
            "tags": ["x"], "metadata": {}, "sensitive": false, "batch": null,
            "attachments": [{"filename": "a", "content": "YQ==", "content_type": "text/plain", "sha256": "00"},
                {"filename": "b", "url": "https://x.example/b"}, {"filename": "c", "path": "/c"},
                {"filename": "d", "endpoint": "d"}],
        });
        let file = |name: &str, at: &str, mode: &str| json!({"filename": name, "storage_path": at, "fetch_mode": mode});
        let mut first = file("a", "YQ==", "base64");
        first["mime_type"] = json!("text/plain");
        let expected = json!({
            "from": "a@x.example", "to": "b@x.example", "body": "<p>t", "content_type": "html",
            "deferred_ts": 1_700_000_000,
            "attachments": [first, file("b", "https://x.example/b", "http_url"), file("c", "/c", "filesystem"),
                file("d", "d", "endpoint")],
        });
        assert_eq!(back(ours), expected);
        let plain = json!({"body": "t", "content_type": "plain"});
        assert_eq!(back(json!({"text": "t", "send_at": "soon"})), plain);
    }
}
