//! Classifying mails: how many in a second of CPU time.

use std::{fs, hint::black_box, path::Path};

use postway_mime::received::inspect;

use crate::cpu_seconds;

/// How long it is measured, in CPU time.
const SECONDS: f64 = 3.0;

const BOUNCE: &str = "Return-Path: <>\nFrom: MAILER-DAEMON@mx.example.org (Mail Delivery System)\nTo: b@bounces.example.com\n\
Subject: Undelivered Mail Returned to Sender\nMIME-Version: 1.0\n\
Content-Type: multipart/report; report-type=delivery-status; boundary=\"b1\"\n\n--b1\nContent-Type: text/plain\n\n\
The mail could not be delivered: 550 5.1.1 no such user\n--b1\nContent-Type: message/delivery-status\n\n\
Reporting-MTA: dns; mx.example.org\n\nFinal-Recipient: rfc822; ada@example.org\nAction: failed\nStatus: 5.1.1\n\
Diagnostic-Code: smtp; 550 5.1.1 <ada@example.org>: unknown user\n\n--b1\nContent-Type: text/rfc822-headers\n\n\
Message-ID: <x@example.com>\nTo: ada@example.org\n\n--b1--\n";
const ORDINARY: &str =
    "From: Ada <ada@example.org>\nTo: desk@example.com\nSubject: Our meeting\n\nSee you on Monday.\n";

pub fn print() -> anyhow::Result<()> {
    let mails = match std::env::var("POSTWAY_BENCH_MAILS") {
        Ok(folder) => read(Path::new(&folder))?,
        Err(_) => vec![BOUNCE.into(), ORDINARY.into()],
    };
    let bytes: usize = mails.iter().map(Vec::len).sum();
    let began = cpu_seconds()?;
    let mut judged = 0_usize;
    let took = loop {
        for mail in &mails {
            black_box(inspect(mail));
        }
        judged += mails.len();
        let took = cpu_seconds()? - began;
        if took >= SECONDS {
            break took;
        }
    };
    println!(
        "judged: {:.0} mails per CPU-second ({} mails, {} bytes on average)",
        judged as f64 / took,
        mails.len(),
        bytes / mails.len()
    );
    Ok(())
}

fn read(folder: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let mails: Vec<Vec<u8>> =
        fs::read_dir(folder)?.map(|entry| Ok(fs::read(entry?.path())?)).collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!mails.is_empty(), "{} holds no mail", folder.display());
    Ok(mails)
}
