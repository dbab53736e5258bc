//! The fields that are written above a mail: where it came from, whom it was for, and what was found out about
//! its sender. Whatever the sender wrote stands below them, so the topmost field of each name is ours.

use postway_domain::Time;
use postway_intake::smtp::ReceptionMail;
use postway_mime::SmtpTrace;

use super::{sender_check::SenderVerdict, unix_seconds};

/// The fields, with their line endings.
pub(super) fn trace_fields(
    mail: &ReceptionMail,
    recipients: &[String],
    verdict: &SenderVerdict,
    name: &str,
    id: &str,
    now: Time,
) -> String {
    let mut fields = format!("Return-Path: <{}>\r\n", mail.from.as_ref().map_or("", |from| from.as_str()));
    for recipient in recipients {
        fields += &format!("Delivered-To: {recipient}\r\n");
    }
    fields += &verdict.field(name);
    let trace = SmtpTrace {
        greeted_as: &mail.client.greeted_as,
        peer: mail.client.peer,
        by: name,
        with: match (mail.smtputf8, mail.client.secure) {
            (false, false) => "ESMTP",
            (false, true) => "ESMTPS",
            (true, false) => "UTF8SMTP",
            (true, true) => "UTF8SMTPS",
        },
        id,
    };
    fields + &trace.field(unix_seconds(now))
}
