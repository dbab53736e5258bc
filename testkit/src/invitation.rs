//! An independent reader of invitations: Python's email package and icalendar.
//!
//! Panics with a sentence where they cannot be had: a test that needs them must not pass without.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::python::interpreter;

const VERSION: &str = "7.3.0";
const PACKAGES: [&str; 1] = ["icalendar==7.3.0"];

/// The mail comes in whole. Out go the types of its parts, in order and with their defects, and of each
/// calendar what it is for, by the type and by the calendar, and what it is about.
const PROGRAM: &str = r#"
import sys, email, email.policy, icalendar
mail = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
for part in mail.walk():
    print(part.get_content_type(), *[type(defect).__name__ for defect in part.defects])
    if part.get_content_type() in ("text/calendar", "application/ics"):
        calendar = icalendar.Calendar.from_ical(part.get_payload(decode=True))
        events = [str(event["SUMMARY"]) for event in calendar.walk("VEVENT")]
        print(" ", part.get_param("method"), calendar.get("METHOD"), *events, part.get_filename())
"#;

/// What they see in a mail, line by line.
pub fn read_invitation(mail: &[u8]) -> String {
    let mut python = Command::new(interpreter("icalendar", VERSION, &PACKAGES))
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python can be started");
    python.stdin.take().expect("the input is piped").write_all(mail).expect("python reads the mail");
    let output = python.wait_with_output().expect("python ends");
    assert!(output.status.success(), "python could not read the mail");
    String::from_utf8(output.stdout).expect("python writes UTF-8")
}
