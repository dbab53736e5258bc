//! No compatibility API reaches across tenants either: every route of every API is called with another
//! tenant's key, on the first tenant's ids. The routes come from the APIs themselves, so that a new one
//! cannot be forgotten: the test fails if it does not know what to send.

use postway_api::{CompatRoute, compat_routes};
use serde_json::{Value, json};

use crate::isolation::{MESSAGES, Made, state_of_first, with_two_tenants};

/// The paths of a route with the first tenant's ids in it.
fn filled(route: &CompatRoute, made: &Made) -> Vec<String> {
    let uids = made.uids.iter().map(String::as_str);
    let ids: Vec<&str> = match route.path.split('/').nth(1).unwrap_or_default() {
        _ if !route.path.contains('{') => return vec![route.path.to_owned()],
        "emails" | "messages" | "v1" => uids.chain(MESSAGES).collect(),
        "account" | "accounts" => vec!["first-relay"],
        "templates" => vec!["first-welcome"],
        "message-streams" => vec!["first-batch"],
        // Numbers that callers cannot choose: no two tenants share one.
        "bounces" => vec!["1", "1024000000000001"],
        "webhooks" => vec![&made.webhook],
        "tenant" | "tenants" => vec!["default"],
        // A domain of the path is nobody's.
        "v3" => vec!["example.com"],
        _ => panic!("teach this test which ids {route:?} takes"),
    };
    ids.into_iter()
        .map(|id| route.path.replace("{id}", id).replace("{domain}", id).replace("{attachment_id}", "att_0"))
        .collect()
}

/// What to ask of a route: the query and the body. Each would do something to the first tenant, or show it,
/// if it reached that far.
fn asked(route: &CompatRoute, made: &Made) -> Vec<(&'static str, Value)> {
    let ours = json!({"id": "first-ready", "from": "a@example.com", "to": "b@example.net", "subject": "Hi"});
    let with = |mut mail: Value, more: Value| {
        mail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mail
    };
    let mail =
        with(json!({"from": "a@example.com", "to": "b@example.net", "subject": "Hi"}), json!({"text": "Hi"}));
    let postmark = json!({"From": "a@example.com", "To": "b@example.net", "Subject": "Hi", "TextBody": "Hi"});
    let filled_in = json!({"From": "a@example.com", "To": "b@example.net", "TemplateAlias": "first-welcome", "TemplateModel": {}});
    let all: Vec<&str> = MESSAGES.into_iter().chain(made.uids.iter().map(String::as_str)).collect();
    match (route.door.as_str(), route.method.as_str(), route.path) {
        (_, "GET", "/health" | "/health-check") => vec![("", Value::Null)],
        (_, "GET", path) if path.contains("stale") => {
            vec![("older_than_seconds=0", Value::Null), ("", Value::Null)]
        }
        ("proxy", "GET" | "DELETE", _) => vec![("", Value::Null), ("tenant_id=default", Value::Null)],
        ("postmark", "GET", "/messages/outbound" | "/bounces" | "/templates") => vec![
            ("", Value::Null),
            ("recipient=first-ada@example.net&count=500", Value::Null),
            ("messagestream=first-batch&layouttemplate=first-welcome&status=queued", Value::Null),
        ],
        (_, "GET" | "DELETE", _) => vec![("", Value::Null)],
        ("outbox", "POST", "/emails") => {
            vec![("", json!({"data": [with(ours, json!({"body_text": "Hi"}))]}))]
        }
        ("outbox", "POST", "/emails/requeue") => {
            vec![("", json!({"ids": all})), ("", json!({"stale": true, "older_than_seconds": 0}))]
        }
        ("outbox", "POST", "/emails/{id}/requeue") => vec![("", Value::Null)],
        ("proxy", "POST", "/commands/add-messages" | "/add-messages") => {
            let body = json!({"messages": [with(ours, json!({"body": "Hi", "account_id": "first-relay"}))]});
            vec![
                ("", body.clone()),
                ("tenant_id=default", body.clone()),
                ("", with(body, json!({"tenant_id": "default"}))),
            ]
        }
        ("proxy", "POST", "/commands/delete-messages") => {
            let body = json!({"ids": all});
            vec![
                ("", body.clone()),
                ("tenant_id=default", body.clone()),
                ("", with(body, json!({"tenant_id": "default"}))),
            ]
        }
        ("proxy", "POST", "/commands/suspend" | "/commands/activate") => vec![
            ("batch_code=first-batch", Value::Null),
            ("tenant_id=default&batch_code=first-batch", Value::Null),
            ("tenant_id=default", Value::Null),
        ],
        ("proxy", "POST", "/commands/cleanup-messages") => vec![
            ("older_than_seconds=0", Value::Null),
            ("tenant_id=default&older_than_seconds=0", Value::Null),
        ],
        ("proxy", "POST", "/commands/run-now") => vec![("", Value::Null), ("tenant_id=default", Value::Null)],
        ("proxy", "POST", "/account" | "/accounts") => {
            let body = json!({"id": "first-relay", "host": "theirs.example", "port": 25});
            vec![("", body.clone()), ("", with(body, json!({"tenant_id": "default"})))]
        }
        ("proxy", "POST" | "PUT", "/tenant" | "/tenants" | "/tenant/{id}" | "/tenants/{id}") => {
            vec![("", json!({"id": "default", "name": "theirs", "active": false}))]
        }
        ("pipeline", "POST", "/v1/email/send") => vec![("", with(mail, json!({"html": "<p>Hi</p>"})))],
        ("resend", "POST", "/emails") => vec![("", mail)],
        ("resend", "POST", "/emails/batch") => vec![("", json!([mail]))],
        ("resend", "PATCH", "/emails/{id}") => vec![("", json!({"scheduled_at": "2023-12-02T00:00:00Z"}))],
        (
            "resend",
            "POST",
            "/emails/{id}/cancel" | "/templates/{id}/publish" | "/webhooks/{id}/signing-secret/rotate",
        ) => vec![("", Value::Null)],
        ("resend", "POST", "/templates") => vec![("", json!({"name": "first-welcome", "html": "<p>Hi</p>"}))],
        ("resend", "PATCH", "/templates/{id}") => vec![("", json!({"html": "<p>theirs</p>"}))],
        ("resend", "POST", "/webhooks") => {
            vec![("", json!({"endpoint": "https://theirs.example/hook", "events": ["email.sent"]}))]
        }
        ("resend", "PATCH", "/webhooks/{id}") => {
            vec![("", json!({"endpoint": "https://theirs.example/hook"}))]
        }
        ("postmark", "POST", "/email") => vec![("", postmark)],
        ("postmark", "POST", "/email/batch") => vec![("", json!([postmark]))],
        ("postmark", "POST", "/email/withTemplate") => vec![("", filled_in)],
        ("postmark", "POST", "/email/batchWithTemplates") => vec![("", json!({"Messages": [filled_in]}))],
        ("postmark", "POST", "/templates") => {
            let layout =
                json!({"Name": "theirs", "Alias": "first-welcome", "Subject": "Hi", "TextBody": "Hi"});
            vec![
                ("", layout.clone()),
                ("", with(layout, json!({"Alias": "theirs", "LayoutTemplate": "first-welcome"}))),
            ]
        }
        ("postmark", "POST", "/templates/validate") => {
            vec![("", json!({"Subject": "Hi", "TextBody": "{{a}}"}))]
        }
        ("postmark", "PUT", "/templates/{id}") => vec![("", json!({"Subject": "theirs"}))],
        ("postmark", "PUT", "/bounces/{id}/activate") => vec![("", Value::Null)],
        ("postmark", "POST", "/message-streams") => {
            vec![("", json!({"ID": "first-batch", "Name": "theirs"}))]
        }
        ("postmark", "PATCH", "/message-streams/{id}") => vec![("", json!({"Name": "theirs"}))],
        ("postmark", "POST", path) if path.ends_with("archive") => vec![("", Value::Null)],
        ("postmark", "POST", path) if path.contains("/suppressions") => {
            vec![("", json!({"Suppressions": [{"EmailAddress": "first-bob@example.net"}]}))]
        }
        ("postmark", "POST" | "PUT", path) if path.starts_with("/webhooks") => {
            vec![("", json!({"Url": "https://x.example"}))]
        }
        ("sendgrid", "POST", "/v3/mail/send") => {
            let to = json!([{"to": [{"email": "b@example.net"}], "dynamic_template_data": {"name": "x"}}]);
            let mail = json!({"personalizations": to, "from": {"email": "a@example.com"}, "subject": "Hi",
                "content": [{"type": "text/plain", "value": "Hi"}]});
            vec![
                ("", mail.clone()),
                ("", with(mail.clone(), json!({"template_id": "first-welcome"}))),
                ("", with(mail, json!({"batch_id": "first-batch"}))),
            ]
        }
        ("mailgun", "POST", "/v3/{domain}/messages") => {
            vec![
                ("", "from=a@example.com&to=b@example.net&subject=Hi&text=Hi".into()),
                ("", "from=a@example.com&to=b@example.net&template=first-welcome".into()),
            ]
        }
        ("mailgun", "POST", "/v3/{domain}/messages.mime") => {
            vec![("", "to=b@example.net&message=From: a@example.com%0D%0A%0D%0AHi".into())]
        }
        _ => panic!("teach this test what to ask of {route:?}"),
    }
}

/// Words of the first tenant in an answer that the request did not have: what it learned.
fn learned(answer: &str, request: &str, made: &Made) -> Vec<String> {
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || "-@.".contains(letter));
    let words = answer.split(ends).filter_map(|word| word.find("first-").map(|at| &word[at..]));
    let uids = made.uids.iter().map(String::as_str).filter(|uid| answer.contains(uid));
    words
        .chain(uids)
        .filter(|word| !request.contains(word.trim_end_matches('.')))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn no_door_reaches_across_tenants() {
    let (api, made, theirs) = with_two_tenants().await;
    let before = state_of_first(&api).await;
    let mut routes = compat_routes();
    assert!(routes.len() > 45, "the doors have {} routes", routes.len());
    // Readers first, and what goes through all mail, before the caller has something of its own under the
    // same names.
    let makes_something = |route: &CompatRoute| route.method != "GET" && !route.path.contains("requeue");
    routes.sort_by_key(|route| (makes_something(route), !route.path.contains('{')));
    let mut done = 0;
    for route in &routes {
        for path in filled(route, &made) {
            for (query, body) in asked(route, &made) {
                let uri = format!("/compat/{}{path}?{query}", route.door);
                let (kind, body) = match body {
                    Value::Null => ("application/json", String::new()),
                    Value::String(form) => ("application/x-www-form-urlencoded", form),
                    body => ("application/json", body.to_string()),
                };
                let request = axum::http::Request::builder()
                    .method(&route.method)
                    .uri(uri.trim_end_matches('?'))
                    .header("authorization", format!("Bearer {theirs}"))
                    // A tenant's key is bound to its tenant, whatever this says.
                    .header("x-tenant", "default")
                    .header("content-type", kind);
                let answer = api.ask(request.body(body.clone().into()).unwrap()).await;
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                let asked = format!("{} {uri} {body}", route.method);
                assert!(!answer.status.is_server_error(), "{asked}: {} {text}", answer.status);
                assert_eq!(learned(&text, &asked, &made), [""; 0], "{asked} leaks: {text}");
                // A stream's name means another batch in each tenant, and need not have been seen.
                let is_named = route.path.contains('{')
                    && !route.path.starts_with("/message-streams/{id}/")
                    && !route.path.contains("{domain}");
                let names_others = is_named || asked.contains("tenant_id");
                assert!(!(names_others && answer.status.is_success()), "{asked}: {} {text}", answer.status);
                done += usize::from(answer.status.is_success());
            }
        }
    }
    assert!(done >= 15, "only {done} calls did anything: the test asks the wrong things");
    assert_eq!(state_of_first(&api).await, before, "something of the first tenant was changed");
}

#[test]
fn what_is_learned_is_what_was_not_asked_with() {
    let made = Made::of_uids(vec!["0190a000-0000-7000-8000-000000000001".to_owned()]);
    assert_eq!(learned("there is no message `first-ready`", "GET /emails/first-ready", &made), [""; 0]);
    assert_eq!(learned(r#"{"to":"first-ada@example.net"}"#, "GET /emails", &made), ["first-ada@example.net"]);
    assert_eq!(learned(&made.uids[0], "GET /emails", &made), made.uids);
}
