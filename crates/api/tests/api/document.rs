//! The document as programs read it: examples that the server takes, words and bounds of queries, bytes that
//! are bytes.

use axum::{body::Body, http::Request};
use postway_domain::{MessageState, RecipientStatus::*};
use serde_json::{Value, json};

use crate::{
    json_schema::Schemas,
    support::{Api, KEY},
};

/// What must be there before an example can be sent, in this order; everything else follows.
const FIRST: [&str; 14] = [
    "createUser",
    "createStream",
    "createTenant",
    "createAccount",
    "createRoute",
    "createMailbox",
    "createRule",
    "createContact",
    "createTemplate",
    "createRecipient",
    "createSigningKey",
    "createSuppression",
    "createWebhook",
    "sendMessage",
];

#[tokio::test]
async fn every_example_is_allowed_by_the_document_and_taken_by_the_server() {
    let api = Api::start().await;
    let schemas = Schemas::served(&api).await;
    api.stored("held-1", MessageState::InDoubt, &[("ada@example.net", InDoubt)]).await;
    let later = json!({"id": "later-1", "from": "a@example.com", "to": "b@example.net", "text": "Hi",
                       "send_at": "2023-12-01T00:00:00Z"});
    api.post("/v1/messages", later).await.ok(202);

    let mut examples = schemas.examples();
    assert!(examples.len() > 30, "{}", examples.len());
    let rank = |id: &str| FIRST.iter().position(|first| *first == id).unwrap_or(FIRST.len());
    examples.sort_by_key(|(_, _, id, _)| rank(id));
    let mut webhook = String::new();
    for (method, route, id, example) in examples {
        let fault = schemas.fault(schemas.asked(&method, &route), &example);
        assert_eq!(fault, None, "{id}: the document refuses its own example");
        let (path, example) = match id.as_str() {
            // A key is nothing that an example could have.
            "signIn" => (route.clone(), json!({"key": KEY})),
            // An invitation is made by the server alone.
            "acceptInvitation" => continue,
            // What a device answers, nothing else does.
            "addPasskey" | "signInWithPasskey" => continue,
            // There is no outbox here: the call is answered before the token is read.
            "verifyToken" => continue,
            // The clock of these tests stands in 2023, and a year ahead is the most.
            "rescheduleMessage" => {
                (route.replace("{id}", "later-1"), json!({"send_at": "2023-12-02T00:00:00Z"}))
            }
            "resolveMessage" => (route.replace("{id}", "held-1"), example),
            _ if route.starts_with("/v1/webhooks/") => (route.replace("{id}", &webhook), example),
            _ if route.starts_with("/v1/accounts/{id}/test") => (route.replace("{id}", "sandbox"), example),
            _ if route.starts_with("/v1/accounts/") => (route.replace("{id}", "relay-1"), example),
            _ if route.starts_with("/v1/tenants/") => (route.replace("{id}", "acme"), example),
            _ if route.starts_with("/v1/mailboxes/") => (route.replace("{id}", "support"), example),
            _ if route.starts_with("/v1/rules/") => (route.replace("{id}", "orders"), example),
            _ if route.starts_with("/v1/routes/{id}") => (route.replace("{id}", "newsletters"), example),
            _ if route.starts_with("/v1/streams/") => (route.replace("{id}", "newsletter"), example),
            _ if route.starts_with("/v1/users/") => (route.replace("{name}", "ada"), example),
            _ if route.starts_with("/v1/contacts/") => (route.replace("{id}", "acme"), example),
            _ if route.starts_with("/v1/recipients/") => (route.replace("{id}", "external:C-1"), example),
            _ if route.starts_with("/v1/templates/") => (route.replace("{name}", "welcome"), example),
            _ if route.starts_with("/v1/suppressions/") => {
                (route.replace("{address}", "gone@example.net"), example)
            }
            _ => (route.clone(), example),
        };
        assert!(!path.contains('{'), "{id}: name what {path} is about");
        let answer = api.call(&method, &path, example.to_string()).await;
        assert!(
            answer.status.is_success(),
            "{id}: {method} {path} {example}: {} {:?}",
            answer.status,
            answer.body
        );
        if id == "createWebhook" {
            webhook = answer.json()["id"].as_str().unwrap().to_owned();
        }
    }
}

#[tokio::test]
async fn words_and_bounds_of_queries_hold_in_the_document_and_at_the_server() {
    let api = Api::start().await;
    let schemas = Schemas::served(&api).await;
    let calls = [
        ("GET", "/v1/messages", "status", "sent", "send"),
        ("GET", "/v1/messages", "batch", "a:1", "a b"),
        ("GET", "/v1/messages", "limit", "500", "501"),
        ("GET", "/v1/inbound", "status", "dead", "alive"),
        ("GET", "/v1/inbound", "kind", "bounce", "spam"),
        ("GET", "/v1/statistics", "by", "day", "week"),
        ("GET", "/v1/audit", "format", "json", "xml"),
        ("GET", "/v1/events", "wait", "0", "31"),
        ("GET", "/v1/audit/lines", "wait", "0", "31"),
        ("POST", "/v1/cleanup", "older_than_seconds", "315360000", "315360001"),
        ("POST", "/v1/cleanup", "older_than_seconds", "0", "18446744073709551615"),
    ];
    for (method, path, name, good, bad) in calls {
        let operation = &schemas.document()["paths"][path][method.to_lowercase()];
        let parameters = operation["parameters"].as_array().unwrap();
        let schema = &parameters.iter().find(|one| one["name"] == name).unwrap()["schema"];
        let read = |text: &str| text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
        assert_eq!(schemas.fault(schema, &read(good)), None, "{path}?{name}={good}");
        assert!(schemas.fault(schema, &read(bad)).is_some(), "{path}?{name}={bad}: {schema}");
        for (value, taken) in [(good, true), (bad, false)] {
            let uri = format!("{path}?{name}={}", value.replace(' ', "%20"));
            let answer = api.call(method, &uri, String::new()).await;
            assert_eq!(answer.status.is_success(), taken, "{method} {uri}: {:?}", answer.body);
        }
    }
    let path = "/v1/messages?cursor=";
    api.get(&format!("{path}not-one-of-ours")).await.refused(400, "malformed_request");
}

#[tokio::test]
async fn bytes_are_bytes_and_can_be_had_as_plain_octets() {
    let api = Api::start().await;
    let schemas = Schemas::served(&api).await;
    let document = schemas.document();
    let bytes = |kind: &str| json!({"type": "string", "format": "binary", "contentMediaType": kind});
    for (path, kind) in [
        ("/v1/messages/{id}/raw", "message/rfc822"),
        ("/v1/messages/{id}/pec/export", "application/zip"),
        ("/v1/inbound/{id}/raw", "message/rfc822"),
        ("/v1/messages/{id}/attachments/{index}", "application/octet-stream"),
    ] {
        let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
        for kind in [kind, "application/octet-stream"] {
            assert_eq!(content[kind]["schema"], bytes(kind), "{path}");
        }
    }
    let asked = &document["paths"]["/v1/messages/raw"]["post"]["requestBody"]["content"];
    for kind in ["message/rfc822", "application/octet-stream"] {
        assert_eq!(asked[kind]["schema"], bytes(kind));
    }
    let mail =
        json!({"id": "a", "from": "a@example.com", "to": "b@example.net", "subject": "Hi", "text": "Hi"});
    api.post("/v1/messages", mail).await.ok(202);
    for (path, own) in
        [("/v1/messages/a/raw", "message/rfc822"), ("/v1/messages/a/pec/export", "application/zip")]
    {
        for (accept, kind) in [("application/octet-stream", "application/octet-stream"), ("*/*", own)] {
            let request = Request::get(path)
                .header("authorization", format!("Bearer {KEY}"))
                .header("accept", accept)
                .body(Body::empty())
                .unwrap();
            let answer = api.ask(request).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.headers["content-type"]),
                (200, &kind.parse().unwrap())
            );
        }
    }
}

#[tokio::test]
async fn the_document_names_servers_and_a_contact_and_describes_every_operation() {
    let schemas = Schemas::made();
    let document = schemas.document();
    assert_eq!(document["info"]["contact"]["name"], "Postway");
    assert_eq!(document["servers"][0]["url"], "http://127.0.0.1:8520");
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let about = operation["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{method} {path} is not described");
        }
    }
    // A time has one type, so that clients have one.
    let whole = document.to_string();
    assert!(!whole.contains("Unix seconds\"},"), "a number stands beside a time");
}

/// What generators of clients stumble over, each seen: a choice between named schemas that says something
/// beside one of them is not imported (TypeScript), one whose forms have the same required fields fits twice
/// (Python), a choice with a default does not compile (Go), a schema called `New` and the name of another one
/// is the name of that one's constructor (Go), and a body that is neither JSON nor bytes is left out (Python).
#[tokio::test]
async fn the_document_has_nothing_that_generators_stumble_over() {
    let document = Api::start().await.get("/openapi.json").await.ok(200);
    assert_eq!(stumbles(&document), Vec::<String>::new());

    // And each would be found.
    let named = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let said = json!({"$ref": "#/components/schemas/One", "description": "the first"});
    let body = json!({"post": {"requestBody": {"content": {"text/csv": {}}}}});
    for (place, broken, fault) in [
        ("/components/schemas", json!({"oneOf": [said, named("Other")]}), "something is said beside"),
        ("/components/schemas", json!({"oneOf": [named("One"), named("Same")]}), "is another as well"),
        ("/components/schemas", json!({"oneOf": [named("One")], "default": {}}), "a choice with a default"),
        ("/paths", body, "its body is neither JSON nor bytes"),
        ("/components/schemas/NewOne", json!({"type": "object"}), "is the constructor of `One`"),
    ] {
        let mut copy = document.clone();
        for (name, field) in [("One", "one"), ("Same", "one"), ("Other", "other")] {
            copy["components"]["schemas"][name] = json!({"type": "object", "required": [field]});
        }
        assert!(stumbles(&copy).is_empty(), "what is added is no fault");
        match place {
            "/components/schemas/NewOne" => copy["components"]["schemas"]["NewOne"] = broken,
            _ => copy.pointer_mut(place).unwrap()["/broken"] = broken,
        }
        let faults = stumbles(&copy);
        assert!(matches!(&faults[..], [one] if one.contains(fault)), "{fault}: {faults:?}");
    }
}

/// Where generators would stumble in this document, and over what.
fn stumbles(document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    stumble(document, "", document, &mut faults);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        let made = name.strip_prefix("New").filter(|made| schemas.contains_key(*made));
        faults.extend(made.map(|made| format!("`{name}` is the constructor of `{made}`")));
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let content = operation["requestBody"]["content"].as_object();
            if content.is_some_and(|content| {
                !["application/json", "application/octet-stream"]
                    .iter()
                    .any(|kind| content.contains_key(*kind))
            }) {
                faults.push(format!("{method} {path}: its body is neither JSON nor bytes"));
            }
        }
    }
    faults
}

fn stumble(schema: &Value, place: &str, document: &Value, faults: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(forms) = fields.get("oneOf").and_then(Value::as_array) {
                let named: Vec<&Value> = forms.iter().filter(|form| form["$ref"].is_string()).collect();
                if named.len() > 1 && named.iter().any(|form| form["description"].is_string()) {
                    faults.push(format!("{place}: something is said beside one of its forms"));
                }
                let required: Vec<&[Value]> = named.iter().map(|form| required(form, document)).collect();
                let is_within = |one: &[Value], other: &[Value]| one.iter().all(|name| other.contains(name));
                let fits_twice = (0..required.len()).any(|one| {
                    (0..one).any(|other| {
                        is_within(required[one], required[other]) || is_within(required[other], required[one])
                    })
                });
                if fits_twice {
                    faults.push(format!("{place}: what is one of its forms is another as well"));
                }
                if fields.contains_key("default") {
                    faults.push(format!("{place}: a choice with a default"));
                }
            }
            for (name, inner) in fields {
                stumble(inner, &format!("{place}/{name}"), document, faults);
            }
        }
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(n, inner)| stumble(inner, &format!("{place}/{n}"), document, faults));
        }
        _ => {}
    }
}

/// The fields that a named schema must have.
fn required<'a>(form: &Value, document: &'a Value) -> &'a [Value] {
    let place = form["$ref"].as_str().unwrap_or_default().trim_start_matches('#');
    document.pointer(place).and_then(|schema| schema["required"].as_array()).map_or(&[], Vec::as_slice)
}
