//! Mails of 4 MiB that are made to use much memory are read by a process that has little.
//!
//! The test runs itself again with a limit on its address space: an allocation beyond it aborts the child.

use std::{env, process::Command};

use postway_mime::{
    gist, inspect_raw, pec,
    reader::{
        ReadMail,
        limit::{STEPS_MIN, STEPS_PER_BYTE_MAX},
    },
    reading, received,
};

/// The environment variable that marks the child process.
const CHILD: &str = "POSTWAY_READER_CHILD";
/// Large enough that ten bytes of memory per byte of mail would exceed the limit.
const MAIL_BYTES: usize = 4 * 1024 * 1024;
/// The address space of the child: the program and its threads, a mail, and a few copies of it.
const ADDRESS_SPACE_KIB: usize = 300 * 1024;

fn filled(head: &str, piece: &str) -> Vec<u8> {
    let mut raw = head.as_bytes().to_vec();
    raw.extend(piece.as_bytes().iter().cycle().take(MAIL_BYTES - head.len()));
    raw
}

fn read_by_all(raw: &[u8]) {
    let mail = ReadMail::read(raw);
    assert!(mail.steps() <= raw.len() * STEPS_PER_BYTE_MAX + STEPS_MIN);
    drop(mail);
    let shown = reading::read(raw);
    assert!(shown.fields.len() <= 500 && shown.attachments.len() <= 200);
    drop(shown);
    let _ = reading::attachment(raw, 0);
    let _ = received::inspect(raw);
    let _ = pec::inspect(raw);
    let _ = inspect_raw(raw);
    assert!(gist(raw).len() <= 2 * raw.len());
}

#[test]
fn mail_that_is_made_to_take_memory_is_read_in_little() {
    if env::var_os(CHILD).is_some() {
        let mixed = "Content-Type: multipart/mixed; boundary=b\n\n--b\n";
        for (head, piece) in [
            ("", "Content-Type: message/rfc822\n\n"),
            ("", "a:\n"),
            (mixed, "\n\nx--b"),
            (mixed, "\n\nx\n--b"),
            (mixed, "a:\n"),
            (mixed, "Content-Type:multipart/x;boundary=z\n\nx--b\n"),
            (mixed, "Content-Type:multipart/x;boundary=z\n\nx\n--b\n"),
            ("Content-Type: text/html\n\n", "<div>"),
            // A byte of these charsets is two or three bytes in UTF-8.
            ("Content-Type: text/plain; charset=iso-8859-1\n\n", "\u{e9}"),
            ("Content-Type: text/html; charset=utf-7\n\n", "+IKw-"),
        ] {
            read_by_all(&filled(head, piece));
        }
        let image = format!("image/{}", "p".repeat(980));
        let related = format!(
            "Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: {image}\nContent-ID: <x>\n\n\n--r\n\
             Content-Type: text/html\n\n"
        );
        read_by_all(&filled(&related, "cid:x"));
        return;
    }
    let test = "memory::mail_that_is_made_to_take_memory_is_read_in_little";
    let program = env::current_exe().unwrap();
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" --exact {test} --test-threads 1"),
        ])
        .arg(program)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && reported.contains("1 passed"), "{reported}\n{errors}");
}
