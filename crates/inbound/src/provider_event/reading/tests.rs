//! Recorded shapes of each provider's events, and what they are read as.

use postway_domain::HookProvider::{self, Http, Mailgun, Postmark, Resend, Sendgrid, Ses};

use super::*;

const UID: &str = "0190a4c2-7b3e-7def-8123-456789abcdef";

/// Provider and event; then the ids, our id, and in one line what it says.
pub(super) const SHAPES: &[(HookProvider, &str, &[&str], bool, &str)] = &[
    // SES
    (
        Ses,
        r#"{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"General","bouncedRecipients":[{"emailAddress":"jane@example.com","status":"5.1.1","action":"failed","diagnosticCode":"smtp; 550 5.1.1 <jane@example.com>... User unknown"}],"timestamp":"2016-01-27T14:59:38.237Z"},"mail":{"messageId":"ses-1","destination":["jane@example.com"],"headers":[{"name":"X-Postway-ID","value":"0190a4c2-7b3e-7def-8123-456789abcdef"}]}}"#,
        &["ses-1"],
        true,
        "bounce jane@example.com failed hard user_unknown",
    ),
    (
        Ses,
        r#"{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"OnAccountSuppressionList","bouncedRecipients":[{"emailAddress":"jane@example.com","diagnosticCode":"Amazon SES did not send the message to this address"}],"timestamp":"2016-01-27T14:59:38.237Z"},"mail":{"messageId":"ses-1","destination":["jane@example.com"]}}"#,
        &["ses-1"],
        false,
        "bounce jane@example.com failed hard undefined",
    ),
    (
        Ses,
        r#"{"eventType":"Bounce","bounce":{"bounceType":"Transient","bounceSubType":"MailboxFull","bouncedRecipients":[{"emailAddress":"jane@example.com","status":"5.1.1","diagnosticCode":"smtp; 552 5.2.2 mailbox full"}]},"mail":{"messageId":"ses-1"}}"#,
        &["ses-1"],
        false,
        "bounce jane@example.com failed soft mailbox_full",
    ),
    (
        Ses,
        r#"{"eventType":"Complaint","complaint":{"complainedRecipients":[{"emailAddress":"jane@example.com"}],"complaintFeedbackType":"abuse","timestamp":"2016-01-27T14:59:38.237Z"},"mail":{"messageId":"ses-1"}}"#,
        &["ses-1"],
        false,
        "complaint jane@example.com abuse",
    ),
    (
        Ses,
        r#"{"eventType":"Delivery","delivery":{"timestamp":"2016-01-27T14:59:38.237Z","recipients":["a@example.com","b@example.com"],"smtpResponse":"250 2.6.0 Message received"},"mail":{"messageId":"ses-1"}}"#,
        &["ses-1"],
        false,
        "success a@example.com delivered - delivered, b@example.com delivered - delivered",
    ),
    (
        Ses,
        r#"{"eventType":"DeliveryDelay","deliveryDelay":{"delayType":"TransientCommunicationFailure","delayedRecipients":[{"emailAddress":"a@example.com","status":"4.4.1","diagnosticCode":"smtp; 421 4.4.1 Unable to connect"}]},"mail":{"messageId":"ses-1"}}"#,
        &["ses-1"],
        false,
        "delay a@example.com delayed soft network",
    ),
    (
        Ses,
        r#"{"eventType":"Open","mail":{"messageId":"ses-1","destination":["a@example.com"]},"open":{"timestamp":"2017-08-09T22:00:19.652Z","userAgent":"Mozilla/5.0","ipAddress":"192.0.2.1"}}"#,
        &["ses-1"],
        false,
        "opened a@example.com",
    ),
    (
        Ses,
        r#"{"eventType":"Click","mail":{"messageId":"ses-1","destination":["a@example.com","b@example.com"]},"click":{"link":"https://example.com/x"}}"#,
        &["ses-1"],
        false,
        "clicked - https://example.com/x",
    ),
    (Ses, r#"{"eventType":"Send","mail":{"messageId":"ses-1"},"send":{}}"#, &["ses-1"], false, "nothing"),
    // SendGrid
    (
        Sendgrid,
        r#"{"email":"a@example.com","timestamp":1513299569,"smtp-id":"<14c5d75ce93.dfd.64b469@ismtpd-555>","event":"bounce","type":"bounce","bounce_classification":"Invalid Address","sg_event_id":"e1","sg_message_id":"14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0","reason":"550 5.1.1 The email account does not exist","status":"5.1.1","postway_id":"0190a4c2-7b3e-7def-8123-456789abcdef"}"#,
        &["14c5d75ce93", "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0"],
        true,
        "bounce a@example.com failed hard user_unknown",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"bounce","type":"blocked","reason":"550 5.7.1 blocked by policy","status":"5.7.1","sg_message_id":"m.1"}"#,
        &["m", "m.1"],
        false,
        "bounce a@example.com failed soft blocked",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"delivered","response":"250 OK","sg_message_id":"m.1","smtp-id":"<0190a4c2-7b3e-7def-8123-456789abcdef@example.com>"}"#,
        &["m", "m.1"],
        true,
        "success a@example.com delivered - delivered",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"deferred","response":"400 try again later","attempt":"5"}"#,
        &[],
        false,
        "delay a@example.com delayed soft deferred",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"dropped","reason":"Bounced Address","status":"5.0.0"}"#,
        &[],
        false,
        "bounce a@example.com failed hard undefined",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"spamreport"}"#,
        &[],
        false,
        "complaint a@example.com abuse",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"click","url":"http://www.sendgrid.com/","useragent":"Mozilla"}"#,
        &[],
        false,
        "clicked a@example.com http://www.sendgrid.com/",
    ),
    (
        Sendgrid,
        r#"{"email":"a@example.com","event":"group_unsubscribe","asm_group_id":10}"#,
        &[],
        false,
        "unsubscribed a@example.com",
    ),
    (Sendgrid, r#"{"email":"a@example.com","event":"processed"}"#, &[], false, "nothing"),
    // Mailgun
    (
        Mailgun,
        r#"{"id":"G9Bn5sl1TC6nu79C8C0bwg","timestamp":1521233195.375624,"event":"failed","severity":"permanent","reason":"bounce","recipient":"alice@example.com","delivery-status":{"code":550,"message":"5.1.1 The email account that you tried to reach does not exist","description":""},"message":{"headers":{"message-id":"20130503192659.13651.20287@mg.example.com"}},"user-variables":{"postway_id":"0190a4c2-7b3e-7def-8123-456789abcdef"}}"#,
        &["20130503192659.13651.20287@mg.example.com"],
        true,
        "bounce alice@example.com failed hard user_unknown",
    ),
    (
        Mailgun,
        r#"{"event":"failed","severity":"temporary","reason":"generic","recipient":"alice@example.com","delivery-status":{"code":452,"message":"4.2.2 The email account is over quota"},"message":{"headers":{"message-id":"<0190a4c2-7b3e-7def-8123-456789abcdef@mg.example.com>"}}}"#,
        &["0190a4c2-7b3e-7def-8123-456789abcdef@mg.example.com"],
        true,
        "delay alice@example.com delayed soft mailbox_full",
    ),
    (
        Mailgun,
        r#"{"event":"failed","severity":"permanent","reason":"suppress-bounce","recipient":"alice@example.com","delivery-status":{"code":605,"message":"","description":"Not delivering to previously bounced address"}}"#,
        &[],
        false,
        "bounce alice@example.com failed hard suppressed",
    ),
    (
        Mailgun,
        r#"{"event":"delivered","recipient":"alice@example.com","delivery-status":{"code":250,"message":"OK"}}"#,
        &[],
        false,
        "success alice@example.com delivered - delivered",
    ),
    (
        Mailgun,
        r#"{"event":"opened","recipient":"alice@example.com"}"#,
        &[],
        false,
        "opened alice@example.com",
    ),
    (
        Mailgun,
        r#"{"event":"complained","recipient":"alice@example.com"}"#,
        &[],
        false,
        "complaint alice@example.com abuse",
    ),
    // Postmark
    (
        Postmark,
        r#"{"RecordType":"Bounce","ID":4323372036854775807,"Type":"HardBounce","TypeCode":1,"MessageID":"883953f4-6105-42a2-a16a-77a8eac79483","Metadata":{"postway_id":"0190a4c2-7b3e-7def-8123-456789abcdef"},"Description":"The server was unable to deliver your message","Details":"Test bounce details","Email":"john@example.com","BouncedAt":"2019-11-05T16:33:54.0Z"}"#,
        &["883953f4-6105-42a2-a16a-77a8eac79483"],
        true,
        "bounce john@example.com failed hard undefined",
    ),
    (
        Postmark,
        r#"{"RecordType":"Bounce","Type":"SoftBounce","MessageID":"m","Email":"john@example.com","Details":"smtp;552 5.2.2 over quota"}"#,
        &["m"],
        false,
        "bounce john@example.com failed soft mailbox_full",
    ),
    (
        Postmark,
        r#"{"RecordType":"Bounce","Type":"AutoResponder","MessageID":"m","Email":"john@example.com"}"#,
        &["m"],
        false,
        "nothing",
    ),
    (
        Postmark,
        r#"{"RecordType":"Delivery","MessageID":"m","Recipient":"john@example.com","DeliveredAt":"2019-11-05T16:33:54.0Z","Details":"Test delivery"}"#,
        &["m"],
        false,
        "success john@example.com delivered - delivered",
    ),
    (
        Postmark,
        r#"{"RecordType":"SpamComplaint","MessageID":"m","Email":"john@example.com"}"#,
        &["m"],
        false,
        "complaint john@example.com abuse",
    ),
    (
        Postmark,
        r#"{"RecordType":"Click","MessageID":"m","Recipient":"john@example.com","OriginalLink":"https://example.com"}"#,
        &["m"],
        false,
        "clicked john@example.com https://example.com",
    ),
    (
        Postmark,
        r#"{"RecordType":"SubscriptionChange","MessageID":"m","Recipient":"john@example.com","Origin":"Recipient","SuppressSending":true,"SuppressionReason":"ManualSuppression"}"#,
        &["m"],
        false,
        "unsubscribed john@example.com",
    ),
    // Resend
    (
        Resend,
        r#"{"type":"email.bounced","created_at":"2024-11-22T23:41:12.126Z","data":{"email_id":"56761188-7520-42d8-8898-ff6fc54ce618","to":["delivered@resend.dev"],"bounce":{"message":"The recipient's email address is on the suppression list","subType":"Suppressed","type":"Permanent"},"tags":{"postway_id":"0190a4c2-7b3e-7def-8123-456789abcdef"}}}"#,
        &["56761188-7520-42d8-8898-ff6fc54ce618"],
        true,
        "bounce delivered@resend.dev failed hard suppressed",
    ),
    (
        Resend,
        r#"{"type":"email.bounced","data":{"email_id":"r","to":["a@x.example","b@x.example"],"bounce":{"type":"Permanent","subType":"General"}}}"#,
        &["r"],
        false,
        "bounce a@x.example failed soft undefined, b@x.example failed soft undefined",
    ),
    (
        Resend,
        r#"{"type":"email.delivered","data":{"email_id":"r","to":["a@x.example"],"tags":[{"name":"postway_id","value":"0190a4c2-7b3e-7def-8123-456789abcdef"}]}}"#,
        &["r"],
        true,
        "success a@x.example delivered - delivered",
    ),
    (
        Resend,
        r#"{"type":"email.opened","data":{"email_id":"r","to":["a@x.example"]}}"#,
        &["r"],
        false,
        "opened a@x.example",
    ),
    (
        Resend,
        r#"{"type":"email.sent","data":{"email_id":"r","to":["a@x.example"]}}"#,
        &["r"],
        false,
        "nothing",
    ),
    // The documented form
    (
        Http,
        r#"{"id":"1","type":"bounced","message_id":"mine","postway_id":"0190a4c2-7b3e-7def-8123-456789abcdef","recipient":"a@x.example","bounce":"hard","message":"550 no such user"}"#,
        &["mine"],
        true,
        "bounce a@x.example failed hard filtered",
    ),
    (
        Http,
        r#"{"type":"clicked","recipient":"a@x.example","url":"https://example.com"}"#,
        &[],
        false,
        "clicked a@x.example https://example.com",
    ),
];

fn said(content: &EventContent) -> String {
    match content {
        EventContent::Nothing(_) => "nothing".to_owned(),
        EventContent::Act(act) => {
            let words = [Some(act.kind.as_str()), act.recipient.as_deref().or(Some("-")), act.url.as_deref()];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        EventContent::Report(report) if report.kind == ReportKind::Complaint => {
            let address = report.recipients.first().map_or("-", |one| one.address.as_str());
            format!("complaint {address} {}", report.feedback_type.as_deref().unwrap_or("-"))
        }
        EventContent::Report(report) => {
            let finding = |one: &ReportFinding| {
                let action = one.action.map_or("-", ReportedAction::as_str);
                let kind = one.kind.map_or("-", BounceType::as_str);
                format!("{} {action} {kind} {}", one.address, one.reason.as_str())
            };
            let found: Vec<String> = report.recipients.iter().map(finding).collect();
            format!("{} {}", report.kind.as_str(), found.join(", "))
        }
    }
}

#[test]
fn each_recorded_shape_is_read_as_what_it_says() {
    let mut wrong = Vec::new();
    for (provider, raw, ids, is_ours, expected) in SHAPES {
        let event = read(*provider, raw.as_bytes()).unwrap_or_else(|error| panic!("{raw}: {error}"));
        if said(&event.content) != *expected {
            wrong.push(format!("{raw}: {}, and not {expected}", said(&event.content)));
        }
        assert_eq!(event.provider_ids, *ids, "{raw}");
        assert_eq!(event.uid, is_ours.then(|| UID.parse().unwrap()), "{raw}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn times_are_read_in_each_form() {
    let at = |provider, raw: &str| read(provider, raw.as_bytes()).unwrap().at.map(|at| at.to_string());
    assert_eq!(
        at(Sendgrid, r#"{"email":"a","event":"open","timestamp":1513299569}"#).as_deref(),
        Some("2017-12-15T00:59:29.000Z")
    );
    let mailgun = at(Mailgun, r#"{"event":"opened","timestamp":1521233195.375624}"#);
    assert_eq!(mailgun.as_deref(), Some("2018-03-16T20:46:35.375Z"));
    assert_eq!(at(Sendgrid, r#"{"email":"a","event":"open","timestamp":-1e300}"#), None);
    assert_eq!(at(Http, r#"{"type":"opened","at":"soon"}"#), None);
}

#[test]
fn what_is_not_of_the_form_is_an_error_and_never_a_panic() {
    for provider in HookProvider::ALL {
        for raw in
            ["", "null", "[]", "{}", "1", "\"x\"", r#"{"event":1,"email":[],"type":{},"RecordType":null}"#]
        {
            assert!(read(provider, raw.as_bytes()).is_err(), "{provider:?} {raw}");
        }
        assert!(read(provider, "[".repeat(100_000).as_bytes()).is_err());
    }
    assert!(read(Http, br#"{"type":"exploded"}"#).unwrap_err().contains("exploded"));
    let long = format!(r#"{{"type":"clicked","url":"{}"}}"#, "x".repeat(100_000));
    let EventContent::Act(act) = read(Http, long.as_bytes()).unwrap().content else { panic!() };
    assert_eq!(act.url.unwrap().len(), TEXT_CHARS_MAX);
}

/// Two bytes of JSON may take seventy as values. What is longer than any real one is cut, or not searched for.
#[test]
fn an_event_is_bounded_before_it_is_built() {
    let many = format!(r#"{{"type":"opened","x":[{}0]}}"#, "0,".repeat(500_000));
    let refused = read(Http, many.as_bytes()).unwrap_err();
    assert!(refused.contains("20000 values"), "{refused}");
    for wrong in ["", "[]", "\"x\"", "{", "{\"type\":}"] {
        assert!(read(Http, wrong.as_bytes()).is_err(), "{wrong}");
    }
    let long = "x".repeat(100_000);
    let event =
        serde_json::json!({"type": "opened", "message_id": long, "recipient": long, "user_agent": long});
    let event = read(Http, event.to_string().as_bytes()).unwrap();
    assert!(event.provider_ids.is_empty(), "no provider has such an id");
    let EventContent::Act(act) = event.content else { panic!("{:?}", event.content) };
    assert_eq!(act.recipient.map(|text| text.len()), Some(TEXT_CHARS_MAX));
    assert_eq!(act.user_agent.map(|text| text.len()), Some(TEXT_CHARS_MAX));
}
