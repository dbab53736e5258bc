//! `postway inspect FILE…`: classifies received mails, one JSON line per file. Works offline, without a
//! server.
//!
//! A file that cannot be read is named on standard error, the others are still inspected, and the exit code
//! is 1. No mail is refused for its content: a mail that fits no class is `ordinary`.

mod inspected_mail;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use postway_domain::Clock as _;
use postway_mime::pec::TrustStore;

use self::inspected_mail::InspectedMail;
use crate::cli::failure::CommandFailure;
use crate::cli::input::read_input;
use crate::cli::progress::steps;
use crate::cluster::clock::NodeClock;

/// The largest mail that is inspected; servers do not accept larger ones.
const MAIL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The capacity that a buffer keeps between two files.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines are written in pieces of this size.
const OUTPUT_BYTES: usize = 64 * 1024;

#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Mails as they were received; - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Authorities that receipts of certified mail are verified against, in PEM form
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Also list the features behind the classification, with their weights
    #[arg(long)]
    why: bool,
}

pub fn run(args: &InspectArgs) -> Result<(), CommandFailure> {
    let trust = args.trust.as_deref().map(read_trust).transpose()?.unwrap_or_default();
    let out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
    match inspect(&args.files, &trust, args.why, out)? {
        0 => Ok(()),
        unread => Err(anyhow::anyhow!("{unread} of {} files could not be read", args.files.len()).into()),
    }
}

fn read_trust(path: &Path) -> Result<TrustStore, CommandFailure> {
    let bundle = read_input(path)?;
    TrustStore::from_pem(&bundle)
        .map_err(|error| CommandFailure::Usage(format!("{}: {error}", path.display())))
}

/// Writes a line for each file, and returns how many files could not be read.
fn inspect(
    files: &[PathBuf],
    trust: &TrustStore,
    why: bool,
    mut out: impl Write,
) -> Result<usize, CommandFailure> {
    let now = NodeClock::default().now();
    let mut mail = Vec::new();
    let mut unread = 0;
    // On a terminal, the lines themselves show the progress.
    let bar = match io::stdout().is_terminal() {
        true => ProgressBar::hidden(),
        false => steps(files.len() as u64, "looked at"),
    };
    for file in files {
        bar.inc(1);
        match read(file, &mut mail) {
            Ok(()) => {
                let name = file.to_string_lossy();
                let line = match why {
                    true => InspectedMail::with_reasons(&name, &mail, trust, now),
                    false => InspectedMail::new(&name, &mail, trust, now),
                };
                write_line(&mut out, &line).map_err(unwritable)?;
            }
            Err(error) => {
                bar.suspend(|| eprintln!("postway: cannot read {}: {error}", file.display()));
                unread += 1;
            }
        }
        mail.clear();
        mail.shrink_to(KEPT_BYTES_MAX);
    }
    bar.finish_and_clear();
    out.flush().map_err(unwritable)?;
    Ok(unread)
}

fn write_line(out: &mut impl Write, line: &InspectedMail<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Reads a file.
fn read(path: &Path, into: &mut Vec<u8>) -> io::Result<()> {
    let length = match path == Path::new("-") {
        true => io::stdin().lock().take(MAIL_BYTES_MAX + 1).read_to_end(into)?,
        false => File::open(path)?.take(MAIL_BYTES_MAX + 1).read_to_end(into)?,
    };
    match length as u64 > MAIL_BYTES_MAX {
        true => Err(io::Error::other(format!("it has more than {MAIL_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

fn unwritable(error: io::Error) -> CommandFailure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CommandFailure::OutputClosed,
        _ => CommandFailure::Failed(anyhow::Error::new(error).context("cannot write the output")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const BOUNCE: &str = "From: MAILER-DAEMON@mx.example.org\r\nTo: shop@example.com\r\n\
        Subject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/report; report-type=delivery-status; boundary=\"b\"\r\n\r\n\
        --b\r\nContent-Type: text/plain\r\n\r\nIt could not be delivered.\r\n\
        --b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\n\
        Final-Recipient: rfc822; nobody@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n\
        Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n\
        --b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <m-1@example.com>\r\n\
        X-Postway-ID: 0192d3a4-5b6c-7d8e-9f01-23456789abcd\r\n\r\n--b--\r\n";

    /// The lines for these files, and the number of unreadable files.
    fn lines(folder: &Path, names: &[&str]) -> (Vec<Value>, usize) {
        let files: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        let mut out = Vec::new();
        let unread = inspect(&files, &TrustStore::default(), false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), unread)
    }

    #[test]
    fn a_file_that_cannot_be_read_does_not_keep_the_others_from_being_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.eml"), "Subject: hello\r\n\r\nhow are you?\r\n").unwrap();
        std::fs::write(folder.path().join("b.eml"), BOUNCE).unwrap();
        let (lines, unread) = lines(folder.path(), &["a.eml", "missing.eml", "b.eml"]);
        assert_eq!((lines.len(), unread), (2, 1));
        assert_eq!(lines[0]["kind"], "ordinary");
        assert!(lines[1]["file"].as_str().unwrap().ends_with("/b.eml"));
    }

    #[test]
    fn the_reasons_are_listed_on_request_with_their_weights() {
        let folder = tempfile::tempdir().unwrap();
        let notice = "From: MAILER-DAEMON@mx.example.org\r\nTo: shop@example.com\r\nSubject: hello\r\n\r\n\
            Your letter for ada@example.net could not be delivered; write to help@example.org.\r\n";
        std::fs::write(folder.path().join("a.eml"), notice).unwrap();
        let file = folder.path().join("a.eml");
        let mut out = Vec::new();
        inspect(&[file], &TrustStore::default(), true, &mut out).unwrap();
        let line: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["kind"], "bounce");
        let why = &line["why"];
        assert_eq!(why["read_by"], "prose");
        assert_eq!(why["judgement"]["threshold"], 120);
        let feature = &why["judgement"]["features"][0];
        assert_eq!((&feature["family"], &feature["feature"]), (&"sender".into(), &"mailer_name".into()));
        assert_eq!((&feature["weight"], &feature["counts"]), (&80.into(), &true.into()));
        let taken: Vec<_> = why["addresses"].as_array().unwrap().iter().map(|of| &of["taken"]).collect();
        assert_eq!(taken, [&Value::Bool(true), &Value::Bool(false)]);
        let (lines, _) = lines(folder.path(), &["a.eml"]);
        assert!(lines[0].get("why").is_none());
    }

    #[test]
    fn a_bounce_names_recipient_code_and_the_mail_it_is_about() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.eml"), BOUNCE).unwrap();
        let (lines, _) = lines(folder.path(), &["b.eml"]);
        let names: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
        assert_eq!(names, ["file", "kind", "recipients", "original", "feedback_type", "pec"]);
        assert_eq!(lines[0]["kind"], "bounce");
        let recipient = &lines[0]["recipients"][0];
        assert_eq!(recipient["address"], "nobody@example.net");
        assert_eq!((&recipient["status"], &recipient["smtp_code"]), (&"5.1.1".into(), &550.into()));
        assert_eq!((&recipient["class"], &recipient["type"]), (&"permanent".into(), &"hard".into()));
        assert_eq!(lines[0]["original"]["message_id"], "m-1@example.com");
        assert_eq!(lines[0]["original"]["postway_id"], "0192d3a4-5b6c-7d8e-9f01-23456789abcd");
        assert_eq!(lines[0]["pec"], Value::Null);
    }

    #[test]
    fn a_receipt_of_certified_mail_is_told_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let receipt = "From: posta-certificata@pec.example.it\r\nX-Ricevuta: errore-consegna\r\n\
            X-Riferimento-Message-ID: <0192d3a4-5b6c-7d8e-9f01-23456789abcd@example.com>\r\n\
            Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/xml; name=daticert.xml\r\n\r\n\
            <?xml version=\"1.0\"?><postacert tipo=\"errore-consegna\" errore=\"no-dest\"><intestazione>\
            <mittente>shop@pec.example.it</mittente><destinatari tipo=\"certificato\">ada@pec.example.net</destinatari>\
            <oggetto>x</oggetto></intestazione><dati><gestore-emittente>P</gestore-emittente>\
            <data zona=\"+0100\"><giorno>15/11/2026</giorno><ora>10:00:00</ora></data>\
            <msgid>&lt;0192d3a4-5b6c-7d8e-9f01-23456789abcd@example.com&gt;</msgid>\
            <consegna>ada@pec.example.net</consegna><errore-esteso>5.1.1 - no such mailbox</errore-esteso>\
            </dati></postacert>\r\n--b--\r\n";
        std::fs::write(folder.path().join("r.eml"), receipt).unwrap();
        let (lines, _) = lines(folder.path(), &["r.eml"]);
        assert_eq!(lines[0]["kind"], "pec");
        let pec = &lines[0]["pec"];
        assert_eq!((&pec["kind"], &pec["event"]), (&"errore-consegna".into(), &"failed".into()));
        assert_eq!((&pec["signature"], &pec["daticert"]), (&"absent".into(), &"read".into()));
        assert_eq!(pec["delivered_to"], "ada@pec.example.net");
        let recipient = &lines[0]["recipients"][0];
        assert_eq!((&recipient["address"], &recipient["action"]), (&pec["delivered_to"], &"failed".into()));
        assert_eq!((&recipient["reason"], &recipient["type"]), (&"user_unknown".into(), &"hard".into()));
        assert_eq!((&recipient["status"], &recipient["class"]), (&"5.1.1".into(), &"permanent".into()));
        assert_eq!(lines[0]["original"]["postway_id"], "0192d3a4-5b6c-7d8e-9f01-23456789abcd");
    }
}
