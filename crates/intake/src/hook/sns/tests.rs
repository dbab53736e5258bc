use super::*;

fn message(kind: &str, subject: Option<&str>) -> SnsMessage {
    SnsMessage {
        kind: kind.to_owned(),
        message_id: "id".to_owned(),
        topic_arn: "arn".to_owned(),
        subject: subject.map(str::to_owned),
        message: "text".to_owned(),
        timestamp: "2026-11-18T20:00:00.000Z".to_owned(),
        token: Some("token".to_owned()),
        subscribe_url: Some("https://x".to_owned()),
        signature_version: "1".to_owned(),
        signature: String::new(),
        signing_cert_url: String::new(),
    }
}

#[test]
fn the_signed_text_names_the_fields_of_its_type() {
    assert_eq!(
        message("Notification", Some("s")).signed_text(),
        "Message\ntext\nMessageId\nid\nSubject\ns\nTimestamp\n2026-11-18T20:00:00.000Z\nTopicArn\narn\nType\nNotification\n"
    );
    assert!(!message("Notification", None).signed_text().contains("Subject"));
    assert_eq!(
        message("SubscriptionConfirmation", Some("s")).signed_text(),
        "Message\ntext\nMessageId\nid\nSubscribeURL\nhttps://x\nTimestamp\n2026-11-18T20:00:00.000Z\nToken\ntoken\nTopicArn\narn\n\
         Type\nSubscriptionConfirmation\n"
    );
}

#[test]
fn a_sentence_about_the_topic_is_no_event() {
    assert_eq!(event("Successfully validated SNS topic for Amazon SES event publishing.").events.len(), 0);
    assert_eq!(event(r#"{"eventType":"Send"}"#).events.len(), 1);
}

/// Two bytes of JSON may take seventy as values; only whether it is an object is asked.
#[test]
fn an_event_is_told_from_a_sentence_without_building_it() {
    let many = format!("{{\"a\":[{}0]}}", "0,".repeat(500_000));
    assert_eq!(event(&many).events.len(), 1);
    for no_event in ["", " ", "[]", "\"x\"", "{", "{\"a\":}", "null"] {
        assert_eq!(event(no_event).events.len(), 0, "{no_event}");
    }
}
