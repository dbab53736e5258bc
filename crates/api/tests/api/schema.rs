//! The document says what is taken: bodies in every form are validated against the schemas as served, and
//! sent.

use serde_json::{Value, json};

use crate::{json_schema::Schemas, support::Api};

/// `base` with some fields on top.
fn with(base: &Value, fields: Value) -> Value {
    let mut whole = base.clone();
    whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    whole
}

struct Stage {
    api: Api,
    schemas: Schemas,
}

impl Stage {
    async fn set() -> Self {
        let api = Api::start().await;
        let schemas = Schemas::served(&api).await;
        Self { api, schemas }
    }

    /// Sends each body, which the schema must allow and the call take. `route` is the path as the document
    /// has it.
    async fn takes(&self, method: &str, route: &str, path: &str, bodies: impl IntoIterator<Item = Value>) {
        for body in bodies {
            let fault = self.schemas.fault(self.schemas.asked(method, route), &body);
            assert_eq!(fault, None, "{method} {route}: the document refuses {body}");
            let answer = self.api.call(method, path, body.to_string()).await;
            assert!(answer.status.is_success(), "{method} {path} {body}: {:?}", answer.body);
        }
    }

    /// Sends each body, which the call takes although the document knows a better form.
    async fn tolerates(
        &self,
        method: &str,
        route: &str,
        path: &str,
        bodies: impl IntoIterator<Item = Value>,
    ) {
        for body in bodies {
            let fault = self.schemas.fault(self.schemas.asked(method, route), &body);
            assert!(fault.is_some(), "{method} {route}: the document allows {body}");
            let answer = self.api.call(method, path, body.to_string()).await;
            assert!(answer.status.is_success(), "{method} {path} {body}: {:?}", answer.body);
        }
    }

    /// Sends each body, which neither the schema nor the call may allow.
    async fn refuses(&self, method: &str, route: &str, path: &str, bodies: impl IntoIterator<Item = Value>) {
        for body in bodies {
            let fault = self.schemas.fault(self.schemas.asked(method, route), &body);
            assert!(fault.is_some(), "{method} {route}: the document allows {body}");
            let answer = self.api.call(method, path, body.to_string()).await;
            answer.refused(422, "validation_error");
        }
    }

    /// Sends back what `GET` shows, as it is.
    async fn takes_back(&self, method: &str, route: &str, path: &str) {
        let shown = self.api.get(path).await.ok(200);
        self.takes(method, route, path, [shown]).await;
    }
}

#[tokio::test]
async fn a_message_may_be_written_in_every_form_that_the_document_has() {
    let stage = Stage::set().await;
    let mail = json!({"from": "shop@example.com", "to": ["ada@example.net"], "text": "Hi"});
    let bare = json!({"from": "shop@example.com", "text": "Hi"});
    let later = 1_700_000_000 + 600;
    stage
        .takes(
            "POST",
            "/v1/messages",
            "/v1/messages",
            [
                mail.clone(),
                with(&bare, json!({"to": "Ada <ada@example.net>"})),
                with(&bare, json!({"bcc": "ada@example.net"})),
                with(&bare, json!({"to": null, "cc": ["ada@example.net"], "bcc": []})),
                with(&mail, json!({"cc": "bob@example.net", "reply_to": "shop@example.com"})),
                with(&mail, json!({"reply_to": ["shop@example.com", "Desk <desk@example.com>"]})),
                with(&mail, json!({"priority": 0})),
                with(&mail, json!({"priority": "immediate"})),
                with(&mail, json!({"priority": "low", "subject": null})),
                with(
                    &mail,
                    json!({"send_at": "2023-11-15T00:00:00Z", "expires_at": "2023-11-16T00:00:00+02:00"}),
                ),
                with(
                    &mail,
                    json!({"headers": {"X-Order": "1"}, "metadata": {"any": [{"thing": 1}]}, "tags": ["a"]}),
                ),
                with(
                    &mail,
                    json!({"attachments": [{"filename": "a.txt", "content": "aGk=", "inline": false}]}),
                ),
                with(&mail, json!({"unsubscribe": {"mailto": "off@example.com"}, "on_doubt": "hold"})),
            ],
        )
        .await;
    let seconds =
        [json!({"send_at": later, "expires_at": later + 60}), json!({"send_at": later as f64 + 0.5})];
    let seconds = seconds.map(|times| with(&mail, times));
    stage.tolerates("POST", "/v1/messages", "/v1/messages", seconds).await;
    stage
        .refuses(
            "POST",
            "/v1/messages",
            "/v1/messages",
            [
                with(&mail, json!({"subjekt": "x"})),
                with(&mail, json!({"to": {"email": "ada@example.net"}})),
                with(&mail, json!({"priority": 4})),
                with(&mail, json!({"on_doubt": "perhaps"})),
                with(&mail, json!({"id": "a b"})),
                with(&mail, json!({"tags": vec!["a"; 21]})),
                with(&mail, json!({"priority": "urgent"})),
                with(&mail, json!({"send_at": [1]})),
                with(&mail, json!({"template": {"nome": "x"}})),
                with(&mail, json!({"attachments": [{"filename": "a.txt", "content": "aGk=", "size": 2}]})),
            ],
        )
        .await;
    let batch = "/v1/messages/batch";
    stage
        .takes(
            "POST",
            batch,
            batch,
            [
                json!({"defaults": mail, "messages": [{}, {"to": "bob@example.net"}, {"priority": "high"}]}),
                json!({"messages": [mail]}),
            ],
        )
        .await;
    stage.refuses("POST", batch, batch, [json!({"messages": [mail], "default": {}})]).await;
}

#[tokio::test]
async fn settings_may_be_written_in_every_form_that_the_document_has() {
    let stage = Stage::set().await;
    let (all, one) = ("/v1/accounts", "/v1/accounts/{id}");
    let relay = json!({"host": "smtp.example.com"});
    stage
        .takes(
            "POST",
            all,
            all,
            [
                with(
                    &relay,
                    json!({"id": "a", "limits": {"per_minute": 5, "per_day": null, "behavior": "reject"}}),
                ),
                with(&relay, json!({"id": "b", "warm_up": {"per_day": [50]}, "retry": {"delays_s": [1, 5]}})),
                with(
                    &relay,
                    json!({"id": "c", "warm_up": {"from": "2023-11-15T00:00:00Z", "per_day": [50]}, "pec": true}),
                ),
                with(
                    &relay,
                    json!({"id": "d", "destinations": {"example.com": {"connections": 5}, "*": {}}}),
                ),
                with(
                    &relay,
                    json!({"id": "e", "username": "u", "password": "p", "port": null, "fallback": "a"}),
                ),
                json!({"id": "f", "kind": "sandbox"}),
            ],
        )
        .await;
    stage
        .refuses(
            "POST",
            all,
            all,
            [
                with(&relay, json!({"id": "x", "colour": "red"})),
                with(&relay, json!({"id": "x", "kind": null})),
                with(&relay, json!({"id": "x", "kind": "pop"})),
                with(&relay, json!({"id": "x", "tls": "ssl"})),
                with(&relay, json!({"id": "x", "max_connections": 501})),
                with(&relay, json!({"id": "x", "on_doubt": "perhaps"})),
                with(&relay, json!({"id": "x", "limits": {"behavior": "drop"}})),
                with(&relay, json!({"id": "x", "retry": {"delays_s": [0]}})),
                with(&relay, json!({"id": "x", "warm_up": {"per_day": []}})),
                with(&relay, json!({"id": "x", "limits": {"per_week": 5}})),
                with(&relay, json!({"id": "x", "destinations": {"example.com": {"connections": null}}})),
                with(&relay, json!({"id": "x", "retry": {"delays_s": [1], "times": 3}})),
            ],
        )
        .await;
    stage
        .takes("PATCH", one, "/v1/accounts/a", [json!({"limits": {"per_hour": 60}}), json!({"limits": null})])
        .await;
    stage.takes_back("PATCH", one, "/v1/accounts/b").await;
    stage.takes_back("PUT", one, "/v1/accounts/d").await;
    let hook = "/v1/accounts/{id}/hook";
    stage
        .takes(
            "PUT",
            hook,
            "/v1/accounts/a/hook",
            [
                json!({"provider": "ses", "sns_endpoint": null, "topics": ["arn:aws:sns:eu-west-1:1:a"], "version": null}),
                json!({"provider": "postmark", "username": "u", "secret": "s"}),
            ],
        )
        .await;
    stage
        .refuses("PUT", hook, "/v1/accounts/a/hook", [json!({"provider": "sparkpost"}), json!({"url": "x"})])
        .await;

    let (all, one) = ("/v1/tenants", "/v1/tenants/{id}");
    let remote = json!({"url": "https://x.example", "auth": {"type": "bearer", "token": "t"}});
    stage
        .takes("POST", all, all, [
            json!({"id": "t1"}),
            json!({"id": "t2", "large_files": "rewrite", "content": {"subject_chars": 200}}),
            json!({"id": "t3", "large_files": {"policy": "rewrite", "above_bytes": 1_000_000}, "client_sync": remote}),
            json!({"id": "t4", "large_files": {"link_days": 7}, "client_sync": {"url": "https://x.example"}}),
        ])
        .await;
    stage
        .refuses(
            "POST",
            all,
            all,
            [
                json!({"id": "x", "colour": "red"}),
                json!({"id": "x", "large_files": "drop"}),
                json!({"id": "x", "callback_form": "xml"}),
                json!({"id": "x", "weight": 10_001}),
                json!({"id": "x", "feedback_id": "a"}),
                json!({"id": "x", "unreported_retention_days": 3_651}),
                json!({"id": "x", "client_sync": {"url": "https://x.example", "auth": {"type": "digest"}}}),
                json!({"id": "x", "content": {"html": 1}}),
                json!({"id": "x", "client_sync": {"url": "https://x.example", "port": 1}}),
            ],
        )
        .await;
    let change = json!({"client_sync": {"path": "/reports", "auth": {"token": "u"}}, "weight": null});
    stage.takes("PATCH", one, "/v1/tenants/t3", [change, json!({"large_files": "warn"})]).await;
    stage.takes_back("PATCH", one, "/v1/tenants/t3").await;
    let keys = "/v1/tenants/{id}/keys";
    let at = "/v1/tenants/t1/keys";
    stage
        .takes(
            "POST",
            keys,
            at,
            [
                json!({}),
                json!({"allow_ips": null}),
                json!({"expires_at": "2040-01-01T00:00:00Z", "scopes": ["read"]}),
            ],
        )
        .await;
    stage.tolerates("POST", keys, at, [json!({"expires_at": 1_800_000_000})]).await;
    let wrong = [json!({"scopes": null}), json!({"scope": "read"}), json!({"scopes": ["all"]})];
    stage.refuses("POST", keys, at, wrong).await;
}

#[tokio::test]
async fn what_comes_in_is_described_in_every_form() {
    let stage = Stage::set().await;
    let (all, one) = ("/v1/mailboxes", "/v1/mailboxes/{id}");
    let place = |id: &str| json!({"id": id, "host": "imap.example.com", "username": id, "password": "p"});
    stage
        .takes(
            "POST",
            all,
            all,
            [
                with(&place("m1"), json!({"roles": "bounces", "start": "now"})),
                with(&place("m2"), json!({"roles": ["bounces", "pec"], "start": {"newest": 10}})),
                with(&place("m3"), json!({"role": "forward", "start": {"since": "2023-01-01T00:00:00Z"}})),
                with(&place("m4"), json!({"start": {"after_uid": 4_711}, "description": null})),
            ],
        )
        .await;
    let seconds = with(&place("m5"), json!({"start": {"since": 1_700_000_000}}));
    stage.tolerates("POST", all, all, [seconds]).await;
    stage
        .refuses(
            "POST",
            all,
            all,
            [
                with(&place("x"), json!({"start": "tomorrow"})),
                with(&place("x"), json!({"start": {"newest": "x"}})),
                with(&place("x"), json!({"roles": {"bounces": true}})),
                with(&place("x"), json!({"colour": "red"})),
                with(&place("x"), json!({"roles": ["spam"]})),
                with(&place("x"), json!({"tls": "opportunistic"})),
                with(&place("x"), json!({"poll_seconds": 4})),
                with(&place("x"), json!({"attempts_max": 21})),
                with(&place("x"), json!({"mail_bytes_max": 1})),
            ],
        )
        .await;
    stage.takes_back("PATCH", one, "/v1/mailboxes/m2").await;

    let (all, one) = ("/v1/rules", "/v1/rules/{id}");
    let rule =
        |conditions: Value, actions: Value| json!({"mailbox": "m1", "match": conditions, "actions": actions});
    stage
        .takes("POST", all, all, [
            json!({"id": "r", "mailbox": "m1", "follow_up": {"every_hours": 24}}),
            rule(json!([{"field": "subject", "regex": "a"}, {"field": "from", "contains": "b"}]), json!([])),
            rule(json!([{"field": "header", "name": "X"}, {"field": "size", "max": 9}]), json!([{"do": "stop"}])),
            rule(
                json!([{"field": "header", "name": "X", "value": {"equals": "y"}}, {"field": "has_attachment", "value": true}]),
                json!([{"do": "forward", "to": "a@example.net", "from": null}, {"do": "tag", "tag": "t"}]),
            ),
            rule(json!(null), json!([{"do": "forward", "to": ["a@example.net"], "as": "redirect"}, {"do": "move", "folder": "F"}])),
        ])
        .await;
    stage
        .refuses(
            "POST",
            all,
            all,
            [
                rule(json!([{"field": "subject", "like": "a"}]), json!([])),
                rule(json!([{"field": "subject"}]), json!([])),
                rule(json!([{"field": "header"}]), json!([])),
                rule(json!([]), json!([{"do": "fly"}])),
                rule(json!([]), json!([{"do": "forward", "too": []}])),
                rule(json!([]), json!([{"do": "stop", "after": 1}])),
                json!({"mailbox": "m1", "follow_up": {"every_hours": 24, "for": "ever"}}),
            ],
        )
        .await;
    stage.takes_back("PATCH", one, "/v1/rules/r").await;
    let trial = "/v1/rules/dry-run";
    stage
        .takes("POST", trial, trial, [json!({"id": "r", "raw": "eA=="}), json!({"rule": {}, "raw": "eA=="})])
        .await;

    let (all, one) = ("/v1/contacts", "/v1/contacts/{id}");
    stage
        .takes(
            "POST",
            all,
            all,
            [
                json!({"id": "c", "name": "ACME", "addresses": "a@example.net"}),
                json!({"name": "Other", "addresses": ["a@example.net"]}),
                json!({"name": "None", "addresses": null}),
            ],
        )
        .await;
    stage
        .refuses(
            "POST",
            all,
            all,
            [json!({"name": "X", "addresses": {}}), json!({"name": "X", "email": "x"})],
        )
        .await;
    stage.takes_back("PATCH", one, "/v1/contacts/c").await;
}

#[tokio::test]
async fn everything_else_is_described_in_every_form() {
    let stage = Stage::set().await;
    let (all, one) = ("/v1/recipients", "/v1/recipients/{id}");
    stage
        .takes(
            "POST",
            all,
            all,
            [
                json!({"address": "a@example.net", "external_id": "C1", "personal_number": "1980-0101"}),
                json!({"email": "b@example.net", "name": null}),
            ],
        )
        .await;
    stage
        .refuses(
            "POST",
            all,
            all,
            [json!({"address": null}), json!({"email": "c@example.net", "phone": "1"})],
        )
        .await;
    stage.takes_back("PATCH", one, "/v1/recipients/external:C1").await;

    let (all, one) = ("/v1/suppressions", "/v1/suppressions/{address}");
    stage
        .takes("POST", all, all, [
            json!({"address": "a@example.net"}),
            json!({"addresses": ["b@example.net"], "reason": "complaint", "expires_at": "2040-01-01T00:00:00Z"}),
        ])
        .await;
    stage
        .tolerates("POST", all, all, [json!({"address": "a@example.net", "expires_at": 1_800_000_000})])
        .await;
    let long = "x".repeat(501);
    let wrong = [json!({"why": "x"}), json!({"reason": "spam"}), json!({"note": long})];
    let wrong = wrong.map(|field| with(&json!({"address": "a@example.net"}), field));
    stage.refuses("POST", all, all, wrong).await;
    let at = "/v1/suppressions/a@example.net";
    stage
        .takes("PATCH", one, at, [json!({"note": null, "expires_at": null}), json!({"reason": "manual"})])
        .await;
    stage.takes_back("PATCH", one, at).await;
    stage.refuses("PATCH", one, at, [json!({"addresses": ["b@example.net"]})]).await;
    let other = json!({"address": "b@example.net"}).to_string();
    assert_eq!(stage.api.call("PATCH", at, other).await.wrong_fields(), ["address"]);

    let (all, one) = ("/v1/streams", "/v1/streams/{id}");
    stage
        .takes("POST", all, all, [json!({"id": "s", "name": "S", "unsubscribe": true}), json!({"id": "u"})])
        .await;
    stage.refuses("POST", all, all, [json!({"id": "a b"}), json!({"id": "v", "title": "x"})]).await;
    stage.takes_back("PATCH", one, "/v1/streams/s").await;
    let routes = "/v1/routes";
    let route = json!({"id": "r", "accounts": [{"account": "sandbox", "weight": 3}], "match": null});
    stage.takes("POST", routes, routes, [route]).await;
    let heavy = json!({"accounts": [{"account": "sandbox", "weight": 1_001}]});
    stage.refuses("POST", routes, routes, [json!({"accounts": []}), heavy]).await;
    stage.takes_back("PATCH", "/v1/routes/{id}", "/v1/routes/r").await;
    let scoped = "/v1/scoped-suppressions";
    stage
        .takes(
            "POST",
            scoped,
            scoped,
            [
                json!({"pattern": "*@example.net"}),
                json!({"pattern": "a@example.net", "stream": "s", "reason": "unsubscribe"}),
            ],
        )
        .await;
    stage.refuses("POST", scoped, scoped, [json!({"pattern": "*@a.example", "reason": "spam"})]).await;

    let (all, one) = ("/v1/templates", "/v1/templates/{name}");
    stage
        .takes(
            "POST",
            all,
            all,
            [json!({"name": "t", "text": "Hi {{ n }}", "sample": {"n": 1}, "html": null})],
        )
        .await;
    stage.refuses("POST", all, all, [json!({"name": "u", "text": "Hi", "body": "x"})]).await;
    stage.takes_back("PUT", one, "/v1/templates/t").await;
    let preview = "/v1/templates/preview";
    stage
        .takes(
            "POST",
            preview,
            preview,
            [json!({"text": "{{ n }}", "variables": {"n": 1}}), json!({"text": "x"})],
        )
        .await;
    stage.refuses("POST", preview, preview, [json!({"text": "x", "vars": {}})]).await;
    let of_stored = "/v1/templates/{name}/preview";
    stage.takes("POST", of_stored, "/v1/templates/t/preview", [json!({}), json!({"version": 1})]).await;

    let (all, one) = ("/v1/webhooks", "/v1/webhooks/{id}");
    stage
        .takes(
            "POST",
            all,
            all,
            [json!({"url": "https://x.example/"}), json!({"url": "https://x.example/", "events": ["*"]})],
        )
        .await;
    let wrong = [json!({"secret": "x"}), json!({"events": []}), json!({"events": ["email.nonsense"]})];
    let wrong = wrong.map(|field| with(&json!({"url": "https://x.example/"}), field));
    stage.refuses("POST", all, all, wrong).await;
    let id = stage.api.get(all).await.ok(200)["data"][0]["id"].as_str().unwrap().to_owned();
    stage.takes_back("PATCH", one, &format!("/v1/webhooks/{id}")).await;

    let (dkim, erase) = ("/v1/dkim", "/v1/erase");
    stage.takes("POST", dkim, dkim, [json!({"domain": "example.com", "algorithm": "ed25519"})]).await;
    let wrong = [
        json!({"domain": "example.com", "bits": 512}),
        json!({"domain": "example.com", "algorithm": "dsa"}),
        json!({}),
    ];
    stage.refuses("POST", dkim, dkim, wrong).await;
    stage.takes("POST", erase, erase, [json!({"address": "a@example.net"})]).await;
    stage.refuses("POST", erase, erase, [json!({"address": "a@example.net", "all": true})]).await;
    let test = "/v1/accounts/{id}/test";
    let at = "/v1/accounts/sandbox/test";
    stage.takes("POST", test, at, [json!({}), json!({"to": null})]).await;
    stage.refuses("POST", test, at, [json!({"too": "ada@example.net"})]).await;
    let replay = "/v1/dead-letters/replay";
    stage.takes("POST", replay, replay, [json!({"ids": ["order-1"]})]).await;
    stage.refuses("POST", replay, replay, [json!({"id": "order-1"})]).await;
}

#[tokio::test]
async fn no_request_schema_takes_unknown_fields() {
    let stage = Stage::set().await;
    assert_eq!(stage.schemas.open_objects(), Vec::<String>::new());
}
