//! One complete, valid example for every JSON body: examples of single fields, put together, may contradict
//! each other. A test sends each of them.

use serde_json::{Value, json};
use utoipa::openapi::{OpenApi as Document, RefOr};

use super::named;

const JSON: &str = "application/json";

/// Adds an example to every JSON body.
pub(super) fn show(document: &mut Document) {
    for operation in named::operations(document) {
        let Some(example) = operation.operation_id.as_deref().and_then(example_for) else { continue };
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && let Some(RefOr::T(content)) = body.content.get_mut(JSON)
        {
            content.example = Some(example);
        }
    }
}

/// The example of a call.
fn example_for(operation: &str) -> Option<Value> {
    Some(match operation {
        "sendMessage" => json!({
            "id": "order-1", "from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": "Your order",
            "text": "Thank you.", "html": "<p>Thank you.</p>", "tags": ["orders"], "metadata": {"order": 1},
        }),
        "sendBatch" => json!({
            "defaults": {"from": "shop@example.com", "subject": "Opening hours", "text": "We open at nine."},
            "messages": [{"id": "hours-1", "to": "ada@example.net"}, {"id": "hours-2", "to": "bob@example.net"}],
        }),
        "rescheduleMessage" => json!({"send_at": "2030-01-01T09:00:00Z"}),
        "resolveMessage" => json!({"outcome": "resend"}),
        "createBulkAction" => {
            json!({"action": "retry", "filter": {"status": "failed", "error_code": "smtp_451"}})
        }
        "replayDeadLetters" => json!({"ids": ["order-1"]}),
        "createAccount" => json!({
            "id": "relay-1", "host": "smtp.example.com", "port": 587, "tls": "starttls", "username": "shop",
            "password": "correct horse battery staple", "limits": {"per_minute": 60},
        }),
        "replaceAccount" => json!({
            "host": "smtp.example.com", "port": 587, "tls": "starttls", "username": "shop",
            "password": "correct horse battery staple", "max_connections": 5,
        }),
        "changeAccount" => json!({"limits": {"per_hour": 1_000}, "on_doubt": "hold"}),
        "putAccountHook" => json!({
            "provider": "ses", "topics": ["arn:aws:sns:eu-west-1:123456789012:mail-events"],
        }),
        "testAccount" => json!({"to": "ada@example.net", "from": "shop@example.com"}),
        "createTemplate" | "putTemplate" => json!({
            "name": "welcome", "subject": "Welcome, {{ name }}", "html": "<p>Hello {{ name }}</p>",
            "text": "Hello {{ name }}", "sample": {"name": "Ada"},
        }),
        "previewSource" => json!({
            "subject": "Welcome, {{ name }}", "html": "<p>Hello {{ name }}</p>", "variables": {"name": "Ada"},
        }),
        "previewTemplate" => json!({"variables": {"name": "Ada"}}),
        "sendTemplateTest" => {
            json!({"to": ["ada@example.net"], "from": "shop@example.com", "variables": {"name": "Ada"}})
        }
        "createRecipient" => json!({
            "external_id": "C-1", "name": "Ada Lovelace", "address": "ada@example.net",
            "personal_number": "19800101-1234",
        }),
        "changeRecipient" => json!({"name": "Ada King"}),
        "createSigningKey" => json!({"domain": "example.com", "selector": "pw1", "algorithm": "ed25519"}),
        "createSuppression" => json!({"address": "gone@example.net", "reason": "manual", "note": "by phone"}),
        "changeSuppression" => json!({"reason": "complaint", "expires_at": "2040-01-01T00:00:00Z"}),
        "createRoute" => json!({
            "id": "newsletters", "match": {"sender_domains": ["*.example.com"], "priorities": ["low"]},
            "accounts": [{"account": "sandbox", "weight": 1}],
        }),
        "changeRoute" => json!({"accounts": [{"account": "sandbox", "weight": 3}]}),
        "orderRoutes" => json!({"ids": ["newsletters"]}),
        "tryRoutes" => json!({"from": "shop@example.com", "to": ["ada@example.net"], "tags": ["orders"]}),
        "createScopedSuppression" => json!({"pattern": "*@example.net", "stream": "newsletter"}),
        "createStream" => json!({
            "id": "newsletter", "name": "Weekly letter", "description": "Every Monday",
        }),
        "changeStream" => json!({"description": "Every other Monday"}),
        "createWebhook" => json!({
            "url": "https://app.example.com/hooks/mail", "events": ["email.sent", "email.failed", "email.bounced"],
        }),
        "changeWebhook" => json!({"events": ["*"], "description": "All of it"}),
        "resendDeliveries" => json!({"since": "2023-01-25T18:00:00Z", "which": "dead"}),
        "createMailbox" => json!({
            "id": "support", "host": "imap.example.com", "port": 993, "tls": "implicit",
            "username": "support@example.com", "password": "correct horse battery staple", "roles": ["forward"],
        }),
        "changeMailbox" => json!({"poll_seconds": 120}),
        "createRule" => json!({
            "id": "orders", "mailbox": "support",
            "match": [{"field": "subject", "regex": "order (?<order>[0-9]+)"}],
            "actions": [{"do": "forward", "to": ["orders@example.com"]}, {"do": "stop"}],
        }),
        "changeRule" => json!({"active": false}),
        "tryRule" => json!({"id": "orders", "raw": "U3ViamVjdDogb3JkZXIgNw0KDQpIaQ0K"}),
        "createContact" => json!({"id": "acme", "name": "ACME Ltd", "addresses": ["orders@acme.example"]}),
        "changeContact" => json!({"addresses": ["orders@acme.example", "desk@acme.example"]}),
        "replayInboundAll" => json!({"status": "no_match", "mailbox": "support"}),
        "createTenant" => {
            json!({"id": "acme", "name": "Acme Ltd", "default_from": "Acme <mail@acme.example>"})
        }
        "changeTenant" => json!({"weight": 200, "on_doubt": "hold"}),
        "createKey" => json!({"name": "shop", "scopes": ["send", "read"], "allow_ips": ["10.0.0.0/8"]}),
        "eraseAddress" => json!({"address": "ada@example.net"}),
        "signIn" => json!({"key": "pw_Zm9vYmFy_0123456789abcdefghijklmnopqrstuvwxyzABCDEF"}),
        "acceptInvitation" => json!({"invitation": "q83vEjRWeJAq83vEjRWeJA"}),
        "addPasskey" => json!({
            "ceremony": "q83vEjRWeJAq83vEjRWeJA",
            "passkey": {
                "name": "laptop", "id": "AQIDBA", "client_data": "e30", "authenticator_data": "AQIDBA",
                "public_key": "AQIDBA", "algorithm": -7,
            },
        }),
        "signInWithPasskey" => json!({
            "ceremony": "q83vEjRWeJAq83vEjRWeJA",
            "passkey": {
                "id": "AQIDBA", "user_handle": "AQIDBA", "client_data": "e30", "authenticator_data": "AQIDBA",
                "signature": "AQIDBA",
            },
        }),
        "createUser" => json!({
            "name": "ada", "display_name": "Ada Lovelace", "email": "ada@example.com", "role": "operator",
            "tenants": ["default"],
        }),
        "changeUser" => json!({"role": "manager"}),
        "verifyToken" => json!({"token": "q83vEjRWeJA", "path": "/activate", "code": "04217"}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_json_body_has_an_example() {
        let mut document = super::super::document();
        for operation in named::operations(&mut document) {
            let Some(RefOr::T(body)) = &operation.request_body else { continue };
            if let Some(RefOr::T(content)) = body.content.get(JSON) {
                assert!(content.example.is_some(), "{:?} has no example", operation.operation_id);
            }
        }
    }
}
