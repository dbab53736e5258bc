//! Python's email package and icalendar understand our invitations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use postway_domain::address::NamedAddress;
use postway_mime::{BodyAlternative, MailAttachment, MailDraft, compose};
use postway_testkit::read_invitation;

#[test]
fn a_composed_invitation_is_read_as_one() {
    let calendar = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Example//EN\nBEGIN:VEVENT\nUID:1@example.org\n\
        DTSTAMP:20261118T090000Z\nDTSTART:20261120T090000Z\nSUMMARY:Größe\nEND:VEVENT\nEND:VCALENDAR\n";
    let amp = "<!doctype html><html ⚡4email><head></head><body>Hi</body></html>";
    let alternatives = [
        BodyAlternative::new("text/calendar; method=REQUEST", calendar, true).unwrap(),
        BodyAlternative::new("text/x-amp-html", amp, false).unwrap(),
    ];
    let file = MailAttachment {
        filename: "Größe ☂.eml".to_owned(),
        content_type: "message/rfc822".to_owned(),
        content: "From: x@y\r\nSubject: inner\r\n\r\nGrüße\r\n".into(),
        content_id: None,
        inline: false,
    };
    let from: NamedAddress = "a@example.org".parse().unwrap();
    let composed = compose(&MailDraft {
        from: &from,
        sender: None,
        to: std::slice::from_ref(&from),
        cc: &[],
        reply_to: &[],
        subject: "Meeting",
        text: Some("Come\n"),
        html: Some("<p>Come</p>"),
        alternatives: &alternatives,
        headers: &[],
        attachments: &[file],
        message_id: "1@example.org",
        uid: "0190b5a2-7c1e-7d3a-9f00-0123456789ab",
        date_unix: 1_700_000_000,
    })
    .unwrap();
    assert_eq!(
        read_invitation(&composed.bytes),
        "multipart/mixed\n\
         multipart/alternative\n\
         text/plain\n\
         text/x-amp-html\n\
         text/html\n\
         text/calendar\n  REQUEST REQUEST Größe None\n\
         message/rfc822\n\
         text/plain\n\
         application/ics\n  None REQUEST Größe invite.ics\n"
    );
}
