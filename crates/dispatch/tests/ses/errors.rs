//! Refusals in the words of SES, and mail that is refused before anything is sent.

use super::*;
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity};

#[tokio::test]
async fn a_named_error_is_definite_and_keeps_its_name() {
    for (status, name, message, code, severity) in [
        (400, "MessageRejected", "Content rejected", "SES_MESSAGE_REJECTED", FailureSeverity::Permanent),
        (400, "SendingPausedException", "paused", "SES_ACCOUNT_SENDING_PAUSED", FailureSeverity::Account),
        (
            400,
            "MailFromDomainNotVerifiedException",
            "mx",
            "SES_MAIL_FROM_DOMAIN_NOT_VERIFIED",
            FailureSeverity::Account,
        ),
        (
            404,
            "NotFoundException",
            "Configuration set <x> does not exist",
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
            FailureSeverity::Account,
        ),
        (429, "TooManyRequestsException", "slow down", "SES_THROTTLING", FailureSeverity::Transient),
        (
            429,
            "TooManyRequestsException",
            "Maximum sending rate exceeded.",
            "SES_MAX_SEND_RATE_EXCEEDED",
            FailureSeverity::Transient,
        ),
        (
            429,
            "TooManyRequestsException",
            "Daily message quota exceeded.",
            "SES_DAILY_QUOTA_EXCEEDED",
            FailureSeverity::Account,
        ),
        (503, "ServiceUnavailable", "try later", "SES_SERVICE_UNAVAILABLE", FailureSeverity::Transient),
        (408, "RequestTimeout", "too slow", "SES_TIMEOUT", FailureSeverity::Transient),
        (403, "InvalidClientTokenId", "no such key", "SES_ACCESS_DENIED", FailureSeverity::Account),
        (403, "SignatureDoesNotMatch", "wrong key", "SES_ACCESS_DENIED", FailureSeverity::Account),
        (400, "BadRequestException", "what", "SES_BAD_REQUEST", FailureSeverity::Permanent),
    ] {
        let fake = Fake::start(Play::error(status, name, message)).await;
        let (delivery, gate) = send_to(&client(settings(fake.url())), ONE).await;
        let failure = not_sent(delivery.end);
        assert_eq!((failure.code.as_ref(), failure.severity), (code, severity), "{name}");
        assert_eq!((failure.original_code.as_deref(), failure.message.as_str()), (Some(name), message));
        assert_eq!((gate.commits, fake.requests().len(), failure.phase), (1, 1, FailurePhase::Request));
    }
}

#[tokio::test]
async fn an_error_is_also_read_from_the_header_when_the_body_is_broken() {
    let head = "HTTP/1.1 400 X\r\nx-amzn-ErrorType: MessageRejected\r\nContent-Length: 500\r\n\r\n{\"mess";
    let fake = Fake::start(Play::Raw(head.into())).await;
    assert_eq!(not_sent(send(&client(settings(fake.url()))).await).code, "SES_MESSAGE_REJECTED");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let fake = Fake::start(Play::taken("1")).await;
    let location = format!("HTTP/1.1 307 X\r\nLocation: {}/\r\nContent-Length: 0\r\n\r\n", fake.url());
    let elsewhere = Fake::start(Play::Raw(location.into())).await;
    let failure = not_sent(send(&client(settings(elsewhere.url()))).await);
    assert_eq!((failure.code.as_ref(), failure.severity), ("SES_ENDPOINT_INVALID", FailureSeverity::Account));
    assert_eq!(fake.connections(), 0);
}

#[tokio::test]
async fn a_refused_gate_sends_nothing() {
    let fake = Fake::start(Play::taken("1")).await;
    let mut gate = Gate { refuse: true, ..Gate::default() };
    let delivery = client(settings(fake.url())).deliver(&envelope(ONE, BODY), BODY, &mut gate).await;
    assert!(matches!(delivery.end, DeliveryEnd::GateRefused), "{:?}", delivery.end);
    assert_eq!(fake.connections(), 0);
}

#[tokio::test]
async fn header_text_beyond_ascii_is_encoded_for_ses() {
    let fake = Fake::start(Play::taken("1")).await;
    let client = client(settings(fake.url()));
    let body = "Subject: \u{fc}\r\n\r\n\u{fc}\r\n".as_bytes();
    let mail = MailEnvelope { eight_bit: true, smtputf8: true, ..envelope(ONE, body) };
    let delivery = client.deliver(&mail, body, &mut Gate::default()).await;
    assert!(matches!(delivery.end, DeliveryEnd::Accepted { .. }), "{:?}", delivery.end);
    assert_eq!(delivery.converted, ["header"]);
}

#[tokio::test]
async fn what_ses_cannot_take_is_refused_before_the_gate() {
    let fake = Fake::start(Play::taken("1")).await;
    let client = client(settings(fake.url()));
    let plain = envelope(ONE, BODY);
    let large = vec![b'x'; 40 * 1024 * 1024 + 1];
    for (envelope, body, category) in [
        (MailEnvelope { smtputf8: true, ..plain }, BODY, FailureCategory::Smtputf8Unsupported),
        (
            MailEnvelope { recipients: &["ü@example.org"], ..plain },
            BODY,
            FailureCategory::Smtputf8Unsupported,
        ),
        (MailEnvelope { sender: "a@b>, c@d", ..plain }, BODY, FailureCategory::SenderRejected),
        (plain, &large[..], FailureCategory::MessageTooLarge),
    ] {
        let mut gate = Gate::default();
        let failure = not_sent(client.deliver(&envelope, body, &mut gate).await.end);
        assert_eq!((failure.category, failure.severity), (category, FailureSeverity::Permanent));
        assert_eq!((gate.commits, fake.connections()), (0, 0));
    }
}

#[tokio::test]
async fn a_bad_address_costs_only_its_own_recipient() {
    let fake = Fake::start(Play::taken("1")).await;
    let client = client(settings(fake.url()));
    let (delivery, gate) = send_to(&client, &["a@example.org", "b@example.org, c@example.org"]).await;
    accepted(delivery.end);
    assert!(matches!(&delivery.recipients[1], RecipientReply::Refused(failure) if failure.is_permanent()));
    assert_eq!((gate.commits, gate.accepted), (1, 1));
    assert_eq!(fake.requests()[0].json()["Destination"]["ToAddresses"], serde_json::json!(["a@example.org"]));
    let (delivery, gate) = send_to(&client, &["", "a b"]).await;
    assert!(matches!(delivery.end, DeliveryEnd::NoRecipients), "{:?}", delivery.end);
    assert_eq!(gate.commits, 0);
}

#[tokio::test]
async fn recipients_beyond_fifty_wait_for_the_next_call() {
    let fake = Fake::start(Play::taken("1")).await;
    let names: Vec<String> = (0..53).map(|n| format!("r{n}@example.org")).collect();
    let recipients: Vec<&str> = names.iter().map(String::as_str).collect();
    let (delivery, gate) = send_to(&client(settings(fake.url())), &recipients).await;
    accepted(delivery.end);
    assert_eq!(gate.accepted, 50);
    let (first, rest) = delivery.recipients.split_at(50);
    assert!(first.iter().all(RecipientReply::is_accepted));
    for reply in rest {
        let RecipientReply::Deferred(failure) = reply else { panic!("{reply:?}") };
        assert!(failure.is_transient() && failure.category == FailureCategory::TooManyRecipients);
    }
    let named = fake.requests()[0].json()["Destination"]["ToAddresses"].clone();
    assert_eq!(named.as_array().unwrap().len(), 50);
}
