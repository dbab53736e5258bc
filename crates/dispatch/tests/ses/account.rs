//! The request as it is sent, connections, and the check of an account.

use super::*;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::failure::FailureSeverity;
use serde_json::json;

#[tokio::test]
async fn the_request_has_the_whole_mail_its_envelope_and_a_signature() {
    let fake = Fake::start(Play::taken("0100-7")).await;
    let credentials =
        SesCredentials::new("AKIDEXAMPLE", "s3cret".to_owned().into(), Some("token".to_owned().into()));
    let settings =
        SesSettings { credentials, configuration_set: Some("tracking".to_owned()), ..settings(fake.url()) };
    let (delivery, gate) = send_to(&client(settings), &["a@example.org", "bcc@example.org"]).await;
    assert_eq!((accepted(delivery.end).as_deref(), gate.commits), (Some("0100-7"), 1));

    let heard = fake.requests().remove(0);
    assert!(heard.head.starts_with("POST /v2/email/outbound-emails HTTP/1.1"), "{}", heard.head);
    let document = heard.json();
    let data = document["Content"]["Raw"]["Data"].as_str().unwrap();
    assert_eq!(BASE64_STANDARD.decode(data).unwrap(), BODY);
    assert_eq!(document["Destination"], json!({"ToAddresses": ["a@example.org", "bcc@example.org"]}));
    assert_eq!(document["FeedbackForwardingEmailAddress"], "bounces@example.net");
    assert_eq!(document["ConfigurationSetName"], "tracking");
    assert_eq!(document.get("FromEmailAddress"), None, "it would replace the From header");
    assert_eq!(heard.header("x-amz-date"), Some("20260301T123045Z"));
    assert_eq!(heard.header("x-amz-security-token"), Some("token"));
    let authorization = heard.header("authorization").unwrap();
    let scope = "Credential=AKIDEXAMPLE/20260301/eu-west-1/ses/aws4_request";
    assert!(authorization.contains(scope), "{authorization}");
    assert!(!heard.head.contains("s3cret"));
}

#[tokio::test]
async fn a_null_sender_asks_for_no_feedback() {
    let fake = Fake::start(Play::taken("1")).await;
    let envelope = MailEnvelope { sender: "", ..envelope(ONE, BODY) };
    let delivery = client(settings(fake.url())).deliver(&envelope, BODY, &mut Gate::default()).await;
    accepted(delivery.end);
    assert_eq!(fake.requests()[0].json().get("FeedbackForwardingEmailAddress"), None);
}

#[tokio::test]
async fn clones_share_a_connection_and_errors_do_not_cost_it() {
    for play in [Play::taken("1"), Play::error(429, "TooManyRequestsException", "slow down")] {
        let fake = Fake::start(play).await;
        let client = client(settings(fake.url()));
        for _ in 0..3 {
            send(&client.clone()).await;
        }
        assert_eq!((fake.requests().len(), fake.connections()), (3, 1));
    }
}

#[tokio::test]
async fn unusable_settings_are_the_accounts_fault() {
    let good = settings("http://localhost".to_owned());
    for settings in [
        SesSettings { region: "the moon".to_owned(), ..good.clone() },
        SesSettings { endpoint: Some("localhost".to_owned()), ..good.clone() },
        SesSettings { extra_roots_pem: Some("-----BEGIN CERTIFICATE-----\n!\n".to_owned()), ..good.clone() },
    ] {
        let failure = SesClient::new(settings, Arc::new(Fixed)).unwrap_err();
        assert_eq!((failure.code.as_ref(), failure.severity), ("account_settings", FailureSeverity::Account));
    }
    let unwritable = SesCredentials::new("AK\nID", "secret".to_owned().into(), None);
    let failure = not_sent(send(&client(SesSettings { credentials: unwritable, ..good })).await);
    assert!(failure.is_account(), "{failure}");
}

#[tokio::test]
async fn the_check_asks_for_the_account_and_sends_nothing() {
    let fake = Fake::start(Play::Answer(200, "", r#"{"SendingEnabled":true}"#.to_owned())).await;
    client(settings(fake.url())).check().await.unwrap();
    let heard = fake.requests().remove(0);
    assert!(heard.head.starts_with("GET /v2/email/account HTTP/1.1"), "{}", heard.head);
    assert!(heard.body.is_empty());
}

#[tokio::test]
async fn the_check_tells_what_is_wrong() {
    let not_allowed = "User: arn is not authorized to perform: ses:GetAccount on resource: *";
    for (play, code) in [
        (Play::Answer(200, "", r#"{"SendingEnabled":false}"#.to_owned()), Some("SES_ACCOUNT_SENDING_PAUSED")),
        (Play::Answer(200, "", "<html>".to_owned()), Some("SES_ENDPOINT_INVALID")),
        (Play::Answer(404, "", "<html>".to_owned()), Some("SES_ENDPOINT_INVALID")),
        (Play::error(403, "UnrecognizedClientException", "invalid token"), Some("SES_ACCESS_DENIED")),
        (Play::error(503, "ServiceUnavailable", ""), Some("SES_SERVICE_UNAVAILABLE")),
        (Play::Silence, Some("SES_TIMEOUT")),
        (Play::CutAfter(10), Some("NETWORK_ERROR")),
        // A key that may only send is valid.
        (Play::error(403, "AccessDeniedException", not_allowed), None),
        (Play::error(404, "UnknownOperationException", ""), None),
    ] {
        let fake = Fake::start(play.clone()).await;
        let found = client(hasty(fake.url())).check().await.err();
        assert_eq!(found.as_ref().map(|failure| failure.code.as_ref()), code, "{play:?}");
    }
}

#[tokio::test]
async fn a_guarded_endpoint_is_not_reached_by_address_nor_by_name() {
    let fake = Fake::start(Play::taken("1")).await;
    let guarded = |endpoint: String| SesSettings { guard: Arc::default(), ..settings(endpoint) };
    let by_address = fake.url().replace("localhost", "127.0.0.1");
    let failure = SesClient::new(guarded(by_address), Arc::new(Fixed)).unwrap_err();
    assert!(failure.is_account() && failure.message.contains("no public address"), "{}", failure.message);
    let failure = not_sent(send(&client(guarded(fake.url()))).await);
    assert_eq!((failure.code.as_ref(), failure.severity), ("account_settings", FailureSeverity::Account));
    assert!(failure.message.contains("no public address"), "{}", failure.message);
    assert!(fake.requests().is_empty());
}
