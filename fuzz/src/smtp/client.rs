//! What a client says: sessions of whole commands, with mails by DATA and BDAT, and mischief in between.

use rand::{Rng, rngs::StdRng};

use super::{odd_case, one_of};

/// Things said in one session, at most.
const WORDS_MAX: usize = 14;

/// `\0shop\0good` and `\0shop\0wrong`, and what is no login.
const KEYS: &[&str] = &["AHNob3AAZ29vZA==", "AHNob3AAd3Jvbmc=", "!!!!", "", "AA==", "AHNob3AAZ29vZA"];
/// `shop`, `good` and others, for AUTH LOGIN.
const LOGIN_WORDS: &[&str] = &["c2hvcA==", "Z29vZA==", "d3Jvbmc=", "*", "????", ""];
/// The answers of a login by SCRAM.
const SCRAM_WORDS: &[&str] =
    &["Yz1iaXdzLHI9eG9mZmxpbmUscD1BQUFB", "", "*", "Yz1iaXdzLHI9eA==", "????", "biwsbj1zaG9wLHI9eA=="];
const GREETINGS: &[&str] = &["EHLO me.example", "HELO me.example", "EHLO [127.0.0.1]", "EHLO", "EHLO a b"];
const SENDERS: &[&str] = &[
    "<shop@example.com>",
    "<>",
    "<shop@example.com> SIZE=100",
    "<shop@example.com> SIZE=99999999999999999999",
    "<shop@example.com> BODY=8BITMIME SMTPUTF8",
    "<é@example.com>",
    "<nobody>",
    "shop@example.com",
    " <shop@example.com>",
    "<shop@example.com> RET=HDRS ENVID=a+2Bb",
    "<shop@example.com> ENVID=a+0Db",
    "shop@example.com>",
];
const RECIPIENTS: &[&str] = &[
    "<ada@example.net>",
    "<bob@example.net>",
    "<\"a>b\"@example.net>",
    "<>",
    "<é@example.net>",
    "<ada",
    "<Postmaster>",
    "ada@example.net NOTIFY=NEVER",
    "<ada@example.net> ORCPT=x",
];
const SIMPLE: &[&str] = &["NOOP", "RSET", "VRFY ada", "HELP", "NOOP x", "EXPN list", "TURN", "XYZZY", ""];
/// Lines of mail, some of which look like commands or ends.
const LINES: &[&[u8]] = &[
    b"Subject: hello",
    b"From: Shop <shop@example.com>",
    b"",
    b".",
    b"..",
    b".x",
    b"...",
    b" .",
    b"MAIL FROM:<evil@example.com>",
    b"QUIT",
    b"\xff\xfe\x80",
    b"a\0b",
    b"DATA",
    b"BDAT 5 LAST",
];
/// Ways to end a line, or the mail, that are none.
const TRICKS: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\n.\n",
    b"\n.\r\n",
    b"\r.\r\n",
    b"\r\n.\n",
    b"\r\n.\r",
    b"\r\n.\r\r\n",
    b"\r\r\n",
    b"\n\r\n",
    b"\n\r\n.\r\n",
    b"\r\n\n.\r\n",
    b"\n\n.\n",
    b"\n..\n",
    b"\n.x\n",
    b"\0",
    b"\r\n.\0\r\n",
    b"\r\n. \r\n",
];

/// The bytes of one session.
pub fn session(random: &mut StdRng) -> Vec<u8> {
    let mut stream = Vec::new();
    // Most sessions come to the states where mail is taken.
    if random.random_bool(0.8) {
        command(random, &mut stream, "EHLO me.example");
        if random.random_bool(0.3) {
            command(random, &mut stream, "STARTTLS");
            command(random, &mut stream, "EHLO me.example");
        }
        if random.random_bool(0.9) {
            command(random, &mut stream, &format!("AUTH PLAIN {}", KEYS[0]));
        }
    }
    for _ in 0..random.random_range(0..=WORDS_MAX) {
        match random.random_range(0..20) {
            0 => {
                let greeting = one_of(random, GREETINGS);
                command(random, &mut stream, greeting);
            }
            1 => {
                let simple = one_of(random, SIMPLE);
                command(random, &mut stream, simple);
            }
            2 => login(random, &mut stream),
            3 => envelope(random, &mut stream),
            4..=8 => {
                command(random, &mut stream, "MAIL FROM:<shop@example.com>");
                command(random, &mut stream, "RCPT TO:<ada@example.net>");
                data(random, &mut stream);
            }
            9..=13 => {
                command(random, &mut stream, "MAIL FROM:<shop@example.com>");
                command(random, &mut stream, "RCPT TO:<ada@example.net>");
                chunks(random, &mut stream);
            }
            14 => {
                command(random, &mut stream, "STARTTLS");
                if random.random_bool(0.5) {
                    envelope(random, &mut stream);
                }
            }
            15 => data(random, &mut stream),
            16 => chunks(random, &mut stream),
            17 => long_line(random, &mut stream),
            18 => stream.extend_from_slice(one_of(random, TRICKS)),
            _ => stream.extend((0..random.random_range(1..40)).map(|_| random.random::<u8>())),
        }
    }
    if random.random_bool(0.3) {
        command(random, &mut stream, "QUIT");
    }
    if random.random_bool(0.1) {
        let at = random.random_range(0..=stream.len());
        stream.truncate(at);
    }
    stream
}

/// A command with its ending, which is seldom a wrong one.
fn command(random: &mut StdRng, stream: &mut Vec<u8>, line: &str) {
    let verb = line.split(' ').next().unwrap_or_default();
    stream.extend(odd_case(random, verb));
    stream.extend_from_slice(&line.as_bytes()[verb.len()..]);
    end_line(random, stream);
}

fn end_line(random: &mut StdRng, stream: &mut Vec<u8>) {
    match random.random_range(0..150) {
        0 => stream.extend_from_slice(one_of(random, TRICKS)),
        1 => stream.extend_from_slice(b" \r\n"),
        _ => stream.extend_from_slice(b"\r\n"),
    }
}

/// A login, whole, refused, called off or cut in the middle.
fn login(random: &mut StdRng, stream: &mut Vec<u8>) {
    match random.random_range(0..5) {
        0 => {
            let key = one_of(random, KEYS);
            command(random, stream, &format!("AUTH PLAIN {key}"));
        }
        1 => {
            command(random, stream, "AUTH PLAIN");
            let key = one_of(random, KEYS);
            line(random, stream, key.as_bytes());
        }
        2 => {
            command(random, stream, "AUTH LOGIN");
            for _ in 0..random.random_range(0..3) {
                let word = one_of(random, LOGIN_WORDS);
                line(random, stream, word.as_bytes());
            }
        }
        3 => {
            // `n,,n=shop,r=x`, and proofs of the key `good`, of nothing, and none.
            command(random, stream, "AUTH SCRAM-SHA-256 biwsbj1zaG9wLHI9eA==");
            for _ in 0..random.random_range(0..3) {
                let word = one_of(random, SCRAM_WORDS);
                line(random, stream, word.as_bytes());
            }
        }
        _ => command(random, stream, "AUTH XOAUTH2 AAAA"),
    }
}

fn line(random: &mut StdRng, stream: &mut Vec<u8>, text: &[u8]) {
    stream.extend_from_slice(text);
    end_line(random, stream);
}

fn envelope(random: &mut StdRng, stream: &mut Vec<u8>) {
    let sender = one_of(random, SENDERS);
    command(random, stream, &format!("MAIL FROM:{sender}"));
    for _ in 0..random.random_range(0..5) {
        let recipient = one_of(random, RECIPIENTS);
        command(random, stream, &format!("RCPT TO:{recipient}"));
    }
}

/// A mail after DATA; dots are doubled as they should be, or not.
fn data(random: &mut StdRng, stream: &mut Vec<u8>) {
    command(random, stream, "DATA");
    let doubles = random.random_bool(0.7);
    for _ in 0..random.random_range(0..8) {
        let text = one_of(random, LINES);
        if doubles && text.first() == Some(&b'.') {
            stream.push(b'.');
        }
        line(random, stream, text);
    }
    if random.random_bool(0.05) {
        stream.extend(std::iter::repeat_n(b'x', random.random_range(0..5_000)));
    }
    match random.random_range(0..12) {
        0 => stream.extend_from_slice(one_of(random, TRICKS)),
        1 => {}
        _ => stream.extend_from_slice(b".\r\n"),
    }
}

/// A mail in chunks, whose sizes are mostly true.
fn chunks(random: &mut StdRng, stream: &mut Vec<u8>) {
    let count = random.random_range(1..4);
    for number in 1..=count {
        let mut chunk = Vec::new();
        for _ in 0..random.random_range(0..4) {
            let text = one_of(random, LINES);
            chunk.extend_from_slice(text);
            chunk.extend_from_slice(b"\r\n");
        }
        if random.random_bool(0.1) {
            chunk.extend_from_slice(one_of(random, TRICKS));
        }
        // A CR LF may be split between two chunks.
        if random.random_bool(0.2) {
            chunk.pop();
        }
        let size = match random.random_range(0..15) {
            0 => (chunk.len() + random.random_range(1..30)).to_string(),
            1 => chunk.len().saturating_sub(random.random_range(1..30)).to_string(),
            2 => one_of(random, &["", "-1", "1x", "99999999999999999999", "18446744073709551615", "0x5"])
                .to_owned(),
            _ => chunk.len().to_string(),
        };
        let last = if number == count && random.random_bool(0.9) { " LAST" } else { "" };
        command(random, stream, &format!("BDAT {size}{last}"));
        stream.extend_from_slice(&chunk);
    }
}

fn long_line(random: &mut StdRng, stream: &mut Vec<u8>) {
    let length = one_of(random, &[&2_030_usize, &2_045, &2_046, &2_047, &2_048, &12_300, &40_000]);
    let start: &[u8] = one_of(random, &["NOOP ", "AUTH PLAIN ", "MAIL FROM:<", "x"]).as_bytes();
    stream.extend_from_slice(start);
    stream.extend(std::iter::repeat_n(b'a', length.saturating_sub(start.len())));
    end_line(random, stream);
}
