//! Hostile mail is read in time and memory proportional to its size.

use std::time::{Duration, Instant};

use postway_mime::received::{ReportKind, inspect};

/// Generous for a debug build on a busy machine; quadratic time would be minutes.
const PATIENCE: Duration = Duration::from_secs(20);

fn inspect_in_time(raw: &[u8]) -> ReportKind {
    let begin = Instant::now();
    let kind = inspect(raw).kind;
    assert!(begin.elapsed() < PATIENCE, "{} octets took {:?}", raw.len(), begin.elapsed());
    kind
}

#[test]
fn ten_thousand_nested_parts() {
    let mut raw = b"From: MAILER-DAEMON@example.org\n".to_vec();
    for level in 0..10_000 {
        raw.extend(format!("Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n").bytes());
    }
    inspect_in_time(&raw);
}

#[test]
fn a_nested_boundary_that_equals_or_begins_with_the_outer_one() {
    for inner in ["b", "bb", "b--"] {
        let part = format!("--b\nContent-Type: multipart/mixed; boundary=\"{inner}\"\n\n--{inner}\n\nx\n");
        let raw = format!("Content-Type: multipart/report; boundary=b\n\n{}", part.repeat(5_000));
        inspect_in_time(raw.as_bytes());
    }
}

#[test]
fn a_million_fields_and_a_line_without_end() {
    let mut raw = b"From: MAILER-DAEMON@example.org\nSubject: failure notice\n".to_vec();
    raw.extend(b"X: y\n".repeat(1_000_000));
    raw.extend(b"\n<a@example.org>: ");
    raw.extend(b"550 5.1.1 x@".repeat(300_000));
    inspect_in_time(&raw);
}

#[test]
fn a_hundred_thousand_recipients_are_cut_to_a_thousand() {
    let mut raw = b"From: MAILER-DAEMON@example.org\nContent-Type: message/delivery-status\n\n".to_vec();
    for number in 0..100_000 {
        raw.extend(format!("Final-Recipient: rfc822; a{number}@example.org\nAction: failed\n\n").bytes());
    }
    assert_eq!(inspect_in_time(&raw), ReportKind::Bounce);
    assert_eq!(inspect(&raw).recipients.len(), 1_000);
}

#[test]
fn announcements_and_addresses_without_end() {
    for line in [
        "original message follows\nx\n",
        "<a@b.example>:\n",
        "a@b.example c@\n",
        "  a@b.example\n    x\n",
        ">>> \n",
    ] {
        let mut raw = b"From: MAILER-DAEMON@example.org\nSubject: failure notice\n\nThis message was created automatically \
            by mail delivery software. The following addresses failed:\n"
            .to_vec();
        raw.extend(line.repeat(100_000).bytes());
        inspect_in_time(&raw);
    }
}

#[test]
fn octets_that_are_no_text() {
    let raw: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert_eq!(inspect_in_time(&raw), ReportKind::Ordinary);
    assert_eq!(inspect(b"").kind, ReportKind::Ordinary);
    let mut report =
        b"From: MAILER-DAEMON@x\n\n<a@example.org>: unable to deliver \xff\xfe\xe9 mailbox full\n".to_vec();
    assert_eq!(inspect(&report).kind, ReportKind::Bounce);
    report.splice(0..0, *b"Content-Type: text/plain; charset=no-such-charset\n");
    assert_eq!(inspect(&report).kind, ReportKind::Bounce);
}

#[test]
fn what_is_weighed_has_bounds() {
    let lines = [
        "a@b.example ".repeat(20_000),
        "<<< 550 a@b.example\n".repeat(20_000),
        "mailbox a@b.example does not exist: 550 5.1.1\n".repeat(10_000),
        "recipient: ".repeat(30_000),
        "\u{1b}$B".repeat(100_000),
        "ß".repeat(200_000),
        ">Received: from a for <".repeat(10_000),
    ];
    for body in lines {
        for charset in ["us-ascii", "iso-2022-jp", "gb2312", "utf-7"] {
            let raw = format!(
                "From: MAILER-DAEMON@example.org\nTo: {}@list.example\nSubject: {}\nContent-Type: text/plain; \
                 charset={charset}\n\n{body}",
                "b=".repeat(5_000),
                "delivery failed ".repeat(5_000),
            );
            inspect_in_time(raw.as_bytes());
        }
    }
}

#[test]
fn a_returned_mail_with_recipients_without_end() {
    let mut raw = b"From: MAILER-DAEMON@example.org\nSubject: delivery failed\nContent-Type: multipart/mixed; boundary=x\n\n\
        --x\n\n"
        .to_vec();
    raw.extend((0..5_000).flat_map(|number| format!("mail for a{number}@b.example\n").into_bytes()));
    raw.extend(b"--x\nContent-Type: message/rfc822\n\nTo: ");
    raw.extend((0..100_000).flat_map(|number| format!("a{number}@b.example,\n ").into_bytes()));
    raw.extend(b"\n\nhi\n--x--\n");
    assert_eq!(inspect_in_time(&raw), ReportKind::Bounce);
    assert!(inspect(&raw).recipients.len() <= 1_000);
}
