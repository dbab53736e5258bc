//! Answers in the words of each provider, and what they mean.

use super::*;
use postway_domain::failure::{
    FailurePhase,
    FailureSeverity::{self, Account, Permanent, Transient},
};

type Refusal = (AccountKind, u16, &'static str, &'static str, FailureSeverity, &'static str);

/// Kind, status, body; then code, severity and the provider's own code.
const REFUSALS: &[Refusal] = &[
    (
        AccountKind::Sendgrid,
        400,
        r#"{"errors":[{"message":"Does not contain a valid address.","field":"personalizations.0.to.0.email","help":null}]}"#,
        "provider_recipient_rejected",
        Permanent,
        "personalizations.0.to.0.email",
    ),
    (
        AccountKind::Sendgrid,
        400,
        r#"{"errors":[{"message":"The content value must be a string","field":"content.0.value"}]}"#,
        "provider_rejected",
        Permanent,
        "content.0.value",
    ),
    (
        AccountKind::Sendgrid,
        401,
        r#"{"errors":[{"message":"The provided authorization grant is invalid, expired, or revoked","field":null,"help":null}]}"#,
        "provider_access_denied",
        Account,
        "401",
    ),
    (
        AccountKind::Sendgrid,
        401,
        r#"{"errors":[{"message":"Maximum credits exceeded","field":null,"help":null}]}"#,
        "provider_quota",
        Account,
        "401",
    ),
    (
        AccountKind::Sendgrid,
        403,
        r#"{"errors":[{"message":"The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.","field":"from","help":null}]}"#,
        "provider_sender_rejected",
        Permanent,
        "from",
    ),
    (
        AccountKind::Sendgrid,
        413,
        r#"{"errors":[{"message":"Payload"}]}"#,
        "provider_rejected",
        Permanent,
        "413",
    ),
    (
        AccountKind::Sendgrid,
        429,
        r#"{"errors":[{"message":"too many requests"}]}"#,
        "provider_rate_limited",
        Transient,
        "429",
    ),
    (
        AccountKind::Sendgrid,
        503,
        r#"{"errors":[{"message":"unavailable"}]}"#,
        "provider_unavailable",
        Transient,
        "503",
    ),
    (
        AccountKind::Mailgun,
        400,
        r#"{"message":"'to' parameter is not a valid address. please check documentation"}"#,
        "provider_recipient_rejected",
        Permanent,
        "400",
    ),
    (AccountKind::Mailgun, 401, "Forbidden", "provider_access_denied", Account, "401"),
    (
        AccountKind::Mailgun,
        403,
        r#"{"message":"Domain mg.example.net is not allowed to send: Your account is temporarily disabled."}"#,
        "provider_account_suspended",
        Account,
        "403",
    ),
    (
        AccountKind::Mailgun,
        404,
        r#"{"message":"Domain not found: mg.example.net"}"#,
        "provider_settings",
        Account,
        "404",
    ),
    (AccountKind::Mailgun, 402, r#"{"message":"Request failed"}"#, "provider_quota", Account, "402"),
    (
        AccountKind::Mailgun,
        429,
        r#"{"message":"Too many requests"}"#,
        "provider_rate_limited",
        Transient,
        "429",
    ),
    (
        AccountKind::Postmark,
        401,
        r#"{"ErrorCode":10,"Message":"No Account or Server API tokens were supplied"}"#,
        "provider_access_denied",
        Account,
        "10",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":300,"Message":"Error parsing 'To'"}"#,
        "provider_rejected",
        Permanent,
        "300",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":400,"Message":"The 'From' address you supplied is not a Sender Signature"}"#,
        "provider_sender_rejected",
        Permanent,
        "400",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":405,"Message":"You ran out of credits"}"#,
        "provider_quota",
        Account,
        "405",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":406,"Message":"You tried to send to recipient(s) that have been marked as inactive."}"#,
        "provider_recipient_rejected",
        Permanent,
        "406",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":412,"Message":"pending approval"}"#,
        "provider_account_suspended",
        Account,
        "412",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":1235,"Message":"The message stream does not exist"}"#,
        "provider_settings",
        Account,
        "1235",
    ),
    (
        AccountKind::Postmark,
        422,
        r#"{"ErrorCode":9999,"Message":"new"}"#,
        "provider_rejected",
        Permanent,
        "9999",
    ),
    (
        AccountKind::Postmark,
        503,
        r#"{"ErrorCode":100,"Message":"maintenance"}"#,
        "provider_unavailable",
        Transient,
        "100",
    ),
    (
        AccountKind::Postmark,
        500,
        r#"{"ErrorCode":406,"Message":"inactive"}"#,
        "provider_recipient_rejected",
        Permanent,
        "406",
    ),
    (
        AccountKind::Resend,
        422,
        r#"{"statusCode":422,"name":"validation_error","message":"Invalid `to` field."}"#,
        "provider_rejected",
        Permanent,
        "validation_error",
    ),
    (
        AccountKind::Resend,
        403,
        r#"{"statusCode":403,"name":"validation_error","message":"The example.net domain is not verified."}"#,
        "provider_sender_rejected",
        Permanent,
        "validation_error",
    ),
    (
        AccountKind::Resend,
        401,
        r#"{"statusCode":401,"name":"missing_api_key","message":"Missing API Key"}"#,
        "provider_access_denied",
        Account,
        "missing_api_key",
    ),
    (
        AccountKind::Resend,
        429,
        r#"{"statusCode":429,"name":"daily_quota_exceeded","message":"quota"}"#,
        "provider_quota",
        Account,
        "daily_quota_exceeded",
    ),
    (
        AccountKind::Resend,
        429,
        r#"{"statusCode":429,"name":"rate_limit_exceeded","message":"Too many requests"}"#,
        "provider_rate_limited",
        Transient,
        "rate_limit_exceeded",
    ),
    (
        AccountKind::Resend,
        409,
        r#"{"statusCode":409,"name":"concurrent_idempotent_requests","message":"wait"}"#,
        "provider_unavailable",
        Transient,
        "concurrent_idempotent_requests",
    ),
    (
        AccountKind::Graph,
        401,
        r#"{"error":{"code":"InvalidAuthenticationToken","message":"expired"}}"#,
        "provider_access_denied",
        Account,
        "InvalidAuthenticationToken",
    ),
    (
        AccountKind::Graph,
        403,
        r#"{"error":{"code":"ErrorSendAsDenied","message":"no"}}"#,
        "provider_sender_rejected",
        Permanent,
        "ErrorSendAsDenied",
    ),
    (
        AccountKind::Graph,
        400,
        r#"{"error":{"code":"ErrorInvalidRecipients","message":"no"}}"#,
        "provider_recipient_rejected",
        Permanent,
        "ErrorInvalidRecipients",
    ),
    (
        AccountKind::Graph,
        404,
        r#"{"error":{"code":"ErrorInvalidUser","message":"no such user"}}"#,
        "provider_settings",
        Account,
        "ErrorInvalidUser",
    ),
    (
        AccountKind::Graph,
        429,
        r#"{"error":{"code":"ApplicationThrottled","message":"slow"}}"#,
        "provider_rate_limited",
        Transient,
        "ApplicationThrottled",
    ),
    (
        AccountKind::Graph,
        503,
        r#"{"error":{"code":"serviceNotAvailable","message":"later"}}"#,
        "provider_unavailable",
        Transient,
        "serviceNotAvailable",
    ),
    (
        AccountKind::Gmail,
        400,
        r#"{"error":{"code":400,"message":"Invalid To header","errors":[{"reason":"invalidArgument"}],"status":"INVALID_ARGUMENT"}}"#,
        "provider_recipient_rejected",
        Permanent,
        "invalidArgument",
    ),
    (
        AccountKind::Gmail,
        401,
        r#"{"error":{"code":401,"message":"Invalid RelayCredentials","errors":[{"reason":"authError"}],"status":"UNAUTHENTICATED"}}"#,
        "provider_access_denied",
        Account,
        "authError",
    ),
    (
        AccountKind::Gmail,
        403,
        r#"{"error":{"code":403,"message":"Daily Limit Exceeded","errors":[{"reason":"dailyLimitExceeded"}]}}"#,
        "provider_quota",
        Account,
        "dailyLimitExceeded",
    ),
    (
        AccountKind::Gmail,
        403,
        r#"{"error":{"code":403,"message":"User Rate Limit Exceeded","errors":[{"reason":"userRateLimitExceeded"}]}}"#,
        "provider_rate_limited",
        Transient,
        "userRateLimitExceeded",
    ),
    (
        AccountKind::Http,
        422,
        r#"{"error":{"code":"E1","message":"no","fault":"mail"}}"#,
        "provider_rejected",
        Permanent,
        "E1",
    ),
    (
        AccountKind::Http,
        409,
        r#"{"error":{"code":"E2","message":"no","fault":"account"}}"#,
        "provider_access_denied",
        Account,
        "E2",
    ),
    (
        AccountKind::Http,
        200,
        r#"{"error":{"code":"E3","message":"no","fault":"quota"}}"#,
        "provider_quota",
        Account,
        "E3",
    ),
    (
        AccountKind::Http,
        500,
        r#"{"error":{"code":"E4","message":"no","fault":"provider"}}"#,
        "provider_unavailable",
        Transient,
        "E4",
    ),
    (
        AccountKind::Http,
        400,
        r#"{"error":{"code":"E5","message":"no"}}"#,
        "provider_rejected",
        Permanent,
        "E5",
    ),
];

#[tokio::test]
async fn a_refusal_is_definite_and_says_whose_fault_it_is() {
    for (kind, status, body, code, severity, own) in REFUSALS {
        let fake = Fake::start(Play::Answer(*status, "", (*body).to_owned())).await;
        let (delivery, gate) = send_mail(&client(settings(*kind, fake.url())), ONE, BODY).await;
        let failure = not_sent(delivery.end);
        assert_eq!((failure.code.as_ref(), failure.severity), (*code, *severity), "{kind:?} {body}");
        assert_eq!(failure.original_code.as_deref(), Some(*own), "{kind:?} {body}");
        assert_eq!(
            (failure.phase, gate.commits, fake.requests().len()),
            (FailurePhase::Request, 1, 1),
            "{kind:?} {body}"
        );
        assert!(!failure.message.is_empty() && !failure.message.contains(KEY));
    }
}

#[tokio::test]
async fn a_mail_that_is_taken_has_the_providers_id_and_connections_are_used_again() {
    for kind in KINDS {
        let fake = Fake::start(taken(kind)).await;
        let client = client(settings(kind, fake.url()));
        for _ in 0..3 {
            let delivery = send(&client.clone()).await;
            assert_eq!(delivery.pause, None);
            assert_eq!(accepted(delivery.end), "taken-1", "{kind:?}");
        }
        assert_eq!((fake.requests().len(), fake.connections()), (3, 1), "{kind:?}");
    }
}

/// Status 200 with an error in the body, from the providers that do so.
#[tokio::test]
async fn a_success_that_carries_an_error_is_the_error() {
    for (kind, body, code) in [
        (AccountKind::Postmark, r#"{"ErrorCode":406,"Message":"inactive"}"#, "provider_recipient_rejected"),
        (AccountKind::Postmark, r#"{"ErrorCode":7777,"Message":"new"}"#, "provider_unexpected_answer"),
        (AccountKind::Sendgrid, r#"{"errors":[{"message":"Maximum credits exceeded"}]}"#, "provider_quota"),
        (AccountKind::Resend, r#"{"name":"rate_limit_exceeded","message":"slow"}"#, "provider_rate_limited"),
        (AccountKind::Graph, r#"{"error":{"code":"ErrorQuotaExceeded","message":"full"}}"#, "provider_quota"),
        (
            AccountKind::Gmail,
            r#"{"error":{"status":"INTERNAL","message":"?"}}"#,
            "provider_unexpected_answer",
        ),
    ] {
        let fake = Fake::start(Play::Answer(200, "", body.to_owned())).await;
        assert_eq!(
            not_sent(send(&client(settings(kind, fake.url()))).await.end).code,
            code,
            "{kind:?} {body}"
        );
    }
}

#[tokio::test]
async fn recipients_whom_the_provider_leaves_out_have_failed_and_the_others_are_sent_to() {
    let body = r#"{"To":"a@example.org","MessageID":"1","ErrorCode":0,"Message":"Message OK, but will not deliver to these inactive addresses: B@example.org, c@example.org. Inactive recipients are ones that have generated a hard bounce or a spam complaint."}"#;
    let fake = Fake::start(Play::Answer(200, "", body.to_owned())).await;
    let three = &["a@example.org", "b@example.org", "c@example.org"];
    let mail = b"From: s@example.net\r\nTo: a@example.org, b@example.org, c@example.org\r\n\r\nhi\r\n";
    let (delivery, _) = send_mail(&client(settings(AccountKind::Postmark, fake.url())), three, mail).await;
    accepted(delivery.end);
    assert!(delivery.recipients[0].is_accepted());
    for reply in &delivery.recipients[1..] {
        let RecipientReply::Refused(failure) = reply else { panic!("{reply:?}") };
        assert_eq!((failure.code.as_ref(), failure.severity), ("provider_recipient_rejected", Permanent));
    }
}

#[tokio::test]
async fn a_key_that_was_used_for_another_content_leaves_doubt() {
    let body = r#"{"statusCode":409,"name":"invalid_idempotent_request","message":"other payload"}"#;
    let fake = Fake::start(Play::Answer(409, "", body.to_owned())).await;
    let failure = in_doubt(send(&client(settings(AccountKind::Resend, fake.url()))).await.end);
    assert_eq!(failure.code, "provider_repeated");
}

#[tokio::test]
async fn a_spent_rate_window_asks_for_a_pause_though_the_mail_is_taken() {
    let headers = "X-Message-Id: 1\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1772368255\r\n";
    let fake = Fake::start(Play::Answer(202, headers, String::new())).await;
    let delivery = send(&client(settings(AccountKind::Sendgrid, fake.url()))).await;
    assert_eq!(delivery.pause.map(|pause| pause.as_secs()), Some(9));
    accepted(delivery.end);
}

#[tokio::test]
async fn the_check_sends_nothing_and_tells_a_good_key_from_a_bad_one() {
    for (kind, status, body, is_good) in [
        (AccountKind::Sendgrid, 200, r#"{"scopes":["mail.send"]}"#, true),
        (AccountKind::Sendgrid, 403, r#"{"errors":[{"message":"access forbidden"}]}"#, true),
        (AccountKind::Sendgrid, 401, r#"{"errors":[{"message":"authorization required"}]}"#, false),
        (AccountKind::Mailgun, 400, r#"{"message":"to parameter is missing"}"#, true),
        (AccountKind::Mailgun, 401, "Forbidden", false),
        (AccountKind::Mailgun, 404, r#"{"message":"Domain not found: mg.example.net"}"#, false),
        (AccountKind::Postmark, 200, r#"{"ID":1,"Name":"s"}"#, true),
        (AccountKind::Postmark, 401, r#"{"ErrorCode":10,"Message":"bad token"}"#, false),
        (AccountKind::Resend, 401, r#"{"name":"restricted_api_key","message":"only send"}"#, true),
        (AccountKind::Resend, 401, r#"{"name":"missing_api_key","message":"none"}"#, false),
        (AccountKind::Graph, 200, r#"{"id":"1"}"#, true),
        (AccountKind::Graph, 403, r#"{"error":{"code":"Authorization_RequestDenied","message":"no"}}"#, true),
        (AccountKind::Graph, 401, r#"{"error":{"code":"InvalidAuthenticationToken","message":"no"}}"#, false),
        (
            AccountKind::Gmail,
            403,
            r#"{"error":{"code":403,"errors":[{"reason":"insufficientPermissions"}]}}"#,
            true,
        ),
        (AccountKind::Gmail, 401, r#"{"error":{"code":401,"errors":[{"reason":"authError"}]}}"#, false),
        (AccountKind::Gmail, 200, "<html>", false),
        (AccountKind::Http, 500, "never called", true),
    ] {
        let fake = Fake::start(Play::Answer(status, "", body.to_owned())).await;
        let found = client(settings(kind, fake.url())).check().await;
        assert_eq!(found.is_ok(), is_good, "{kind:?} {body} {found:?}");
        let mails = fake.requests().iter().filter(|heard| !heard.body.is_empty()).count();
        assert_eq!(mails, 0, "{kind:?}");
    }
}
