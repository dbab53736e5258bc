//! What a relay says: one scripted reply for each turn of the client, mostly the right one.

use rand::{Rng, rngs::StdRng};

use super::one_of;

const WRONG_CODES: &[&str] =
    &["200", "211", "299", "354", "399", "421", "450", "452", "500", "550", "554", "599"];
const TEXTS: &[&str] = &[
    "ok",
    "",
    "2.0.0 queued as 4F3A2",
    "2.1.",
    "2.1.999999999999",
    "5.7.1 5.7.1 no",
    "4.x.1 no",
    "2.0.0",
    "é ü",
    "a\tb",
    "<b>x</b>",
];
const EXTENSIONS: &[&str] = &[
    "PIPELINING",
    "SIZE 100000",
    "8BITMIME",
    "SMTPUTF8",
    "SIZE",
    "SIZE x",
    "AUTH PLAIN LOGIN",
    "AUTH",
    "",
    "XYZZY a b",
];

/// The replies of one conversation: to the connection, EHLO, MAIL, RCPT, RCPT, DATA, the dot, and some more.
pub fn replies(random: &mut StdRng) -> Vec<Vec<u8>> {
    let expected = ["220", "250", "250", "250", "250", "354", "250", "221", "250", "250"];
    // One or two of them are not as they should be, if any.
    let strange: Vec<usize> =
        (0..random.random_range(0..3)).map(|_| random.random_range(0..expected.len())).collect();
    let reply = |(at, code): (usize, &str)| match strange.contains(&at) {
        true => strange_reply(random, code),
        false if at == 1 => ehlo(random),
        false => plain(random, code),
    };
    expected.into_iter().enumerate().map(reply).collect()
}

fn ehlo(random: &mut StdRng) -> Vec<u8> {
    let mut reply = b"250-mx.example\r\n".to_vec();
    for _ in 0..random.random_range(0..5) {
        reply.extend_from_slice(format!("250-{}\r\n", one_of(random, EXTENSIONS)).as_bytes());
    }
    reply.extend_from_slice(format!("250 {}\r\n", one_of(random, EXTENSIONS)).as_bytes());
    reply
}

fn plain(random: &mut StdRng, code: &str) -> Vec<u8> {
    let end = if random.random_bool(0.1) { "\n" } else { "\r\n" };
    let text = one_of(random, TEXTS);
    match random.random_range(0..4) {
        0 => format!("{code}{end}"),
        1 => format!("{code}-{text}{end}{code}-{text}{end}{code} {text}{end}"),
        _ => format!("{code} {text}{end}"),
    }
    .into_bytes()
}

fn strange_reply(random: &mut StdRng, code: &str) -> Vec<u8> {
    let other = one_of(random, WRONG_CODES);
    match random.random_range(0..14) {
        // Lines whose codes disagree.
        0 => format!("{code}-a\r\n{other} b\r\n").into_bytes(),
        1 => format!("{other}-a\r\n{code} b\r\n").into_bytes(),
        // An endless continuation, in lines or in bytes.
        2 => format!("{code}-more\r\n").repeat(random.random_range(120..140)).into_bytes(),
        3 => [code.as_bytes(), b" ", &vec![b'x'; random.random_range(65_000..67_000)], b"\r\n"].concat(),
        4 => vec![b'2'; 70_000],
        // No text, no space, no code, no end.
        5 => format!("{code}ok\r\n").into_bytes(),
        6 => one_of(random, &["\r\n", "25\r\n", "hello\r\n", "099 x\r\n", "600 x\r\n", " 250 ok\r\n"])
            .as_bytes()
            .to_vec(),
        7 => format!("{code} ok").into_bytes(),
        // Bytes that are no text.
        8 => [code.as_bytes(), b" \xff\xfe\0\x80\r\n"].concat(),
        9 => (0..random.random_range(1..60)).map(|_| random.random()).collect(),
        // One reply too many.
        10 => format!("{code} ok\r\n{other} and more\r\n").into_bytes(),
        11 => format!("{code}\rok\r\n").into_bytes(),
        // Nothing at all: it hangs up.
        12 => Vec::new(),
        _ => plain(random, other),
    }
}
