//! What a hostile IMAP server says: responses that are nearly right, in the forms in which servers really go
//! wrong.
//!
//! Lists that nest, literals whose length is a lie, strings that never end, numbers beyond any number,
//! attributes in any order and twice, tags of other commands, responses that nobody asked for. Everything
//! follows from the generator that is given.

use rand::{Rng, rngs::StdRng};

/// The deepest list.
const DEPTH_MAX: usize = 3_000;
/// The longest run of one response.
const RUN_MAX: usize = 2_000;
/// Responses of one answer, besides runs.
const RESPONSES_MAX: usize = 10;
/// The longest text of a string.
const TEXT_BYTES_MAX: usize = 3_000;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "7",
    "100",
    "000000000000000000001",
    "4294967294",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "999999999999999999999999999999999999",
    "-1",
    "+1",
    "1.5",
    "0x10",
    "",
];
const DATES: &[&str] = &[
    "17-Jul-1996 02:44:25 -0700",
    " 1-Jan-2024 00:00:00 +0000",
    "31-Feb-2024 00:00:00 +0000",
    "99-Xyz-9999 99:99:99 +9999",
    "01-Jan-0000 00:00:00 -2400",
    "",
];
const CODES: &[&str] = &[
    "UIDVALIDITY",
    "UIDNEXT",
    "UNSEEN",
    "HIGHESTMODSEQ",
    "CAPABILITY",
    "PERMANENTFLAGS",
    "ALERT",
    "COPYUID",
    "X",
];
const WORDS: &[&str] = &[
    "IMAP4rev1",
    "IDLE",
    "MOVE",
    "UIDPLUS",
    "AUTH=PLAIN",
    "SASL-IR",
    "LITERAL+",
    "LOGINDISABLED",
    "STARTTLS",
    "X-Y",
];

/// What a server says to the command of this tag. It may end the command or not.
pub fn answer(random: &mut StdRng, tag: &str) -> Vec<u8> {
    let mut said = Vec::new();
    for _ in 0..random.random_range(0..=RESPONSES_MAX) {
        response(random, &mut said);
    }
    if random.random_bool(0.1) {
        let mut one = Vec::new();
        response(random, &mut one);
        one.truncate(64);
        for _ in 0..random.random_range(1..=RUN_MAX) {
            said.extend_from_slice(&one);
        }
    }
    ending(random, tag, &mut said);
    if random.random_bool(0.05) {
        said.truncate(random.random_range(0..=said.len()));
    }
    said
}

/// How a server greets: mostly as it should.
pub fn greeting(random: &mut StdRng) -> Vec<u8> {
    if random.random_bool(0.9) {
        return b"* OK [CAPABILITY IMAP4rev1 IDLE MOVE UIDPLUS AUTH=PLAIN SASL-IR] ready\r\n".to_vec();
    }
    let mut said = Vec::new();
    response(random, &mut said);
    said
}

/// The end of a command: mostly the right one, so that a session goes on.
fn ending(random: &mut StdRng, tag: &str, said: &mut Vec<u8>) {
    let right = format!("{tag} OK done");
    let line = match random.random_range(0..12) {
        0 => format!("{tag} NO [TRYCREATE] not there"),
        1 => format!("{tag} BAD what?"),
        2 => format!("{} OK done", tag.to_lowercase()),
        3 => format!("{tag}9 OK done"),
        4 => return,
        5 => format!("{tag} {}", pick(random, WORDS)),
        _ => right,
    };
    said.extend_from_slice(line.as_bytes());
    end_line(random, said);
}

fn response(random: &mut StdRng, said: &mut Vec<u8>) {
    match random.random_range(0..16) {
        0..=5 => fetch(random, said),
        6 => status(random, said),
        7 => {
            let word = *pick(random, &["EXISTS", "RECENT", "EXPUNGE", "FETCH", "VANISHED"]);
            said.extend_from_slice(format!("* {} {word}", number(random)).as_bytes());
        }
        8 => {
            said.extend_from_slice(b"* LIST ");
            list(random, said, 1);
            said.push(b' ');
            string(random, said);
            said.push(b' ');
            string(random, said);
        }
        9 => {
            said.extend_from_slice(b"* STATUS ");
            string(random, said);
            said.extend_from_slice(format!(" (UIDNEXT {} X {})", number(random), number(random)).as_bytes());
        }
        10 => {
            said.extend_from_slice(b"* SEARCH");
            for _ in 0..random.random_range(0..200) {
                said.extend_from_slice(format!(" {}", number(random)).as_bytes());
            }
        }
        11 => {
            said.extend_from_slice(b"* CAPABILITY");
            for _ in 0..random.random_range(0..50) {
                said.extend_from_slice(format!(" {}", pick(random, WORDS)).as_bytes());
            }
        }
        12 => said.extend_from_slice(b"+ go on"),
        13 => said.extend_from_slice(
            pick(random, &["* BYE {5}", "* ", "*", "", "\0\0\0", "* 1 FETCH ()"]).as_bytes(),
        ),
        14 => {
            let length = random.random_range(0..200);
            said.extend((0..length).map(|_| random.random::<u8>()));
        }
        _ => {
            said.extend_from_slice(b"* X ");
            value(random, said, 1);
        }
    }
    end_line(random, said);
}

fn status(random: &mut StdRng, said: &mut Vec<u8>) {
    let kind = *pick(random, &["OK", "NO", "BAD", "PREAUTH", "ok"]);
    said.extend_from_slice(format!("* {kind} [{}", pick(random, CODES)).as_bytes());
    for _ in 0..random.random_range(0..4) {
        said.push(b' ');
        match random.random_bool(0.7) {
            true => said.extend_from_slice(number(random).as_bytes()),
            false => value(random, said, 1),
        }
    }
    if random.random_bool(0.9) {
        said.push(b']');
    }
    said.extend_from_slice(b" text");
}

fn fetch(random: &mut StdRng, said: &mut Vec<u8>) {
    said.extend_from_slice(format!("* {} FETCH (", number(random)).as_bytes());
    let count = random.random_range(0..8);
    for nth in 0..count {
        if nth > 0 {
            said.push(b' ');
        }
        attribute(random, said);
    }
    if random.random_bool(0.9) {
        said.push(b')');
    }
}

fn attribute(random: &mut StdRng, said: &mut Vec<u8>) {
    match random.random_range(0..10) {
        0..=2 => said.extend_from_slice(format!("UID {}", number(random)).as_bytes()),
        3 | 4 => said.extend_from_slice(format!("RFC822.SIZE {}", number(random)).as_bytes()),
        5 => said.extend_from_slice(format!("INTERNALDATE \"{}\"", pick(random, DATES)).as_bytes()),
        6 | 7 => {
            said.extend_from_slice(
                pick(random, &["BODY[] ", "body[] ", "BODY[]<0> ", "BODY[HEADER] "]).as_bytes(),
            );
            string(random, said);
        }
        8 => {
            said.extend_from_slice(pick(random, &["FLAGS ", "ENVELOPE ", "BODYSTRUCTURE "]).as_bytes());
            list(random, said, 1);
        }
        _ => {
            said.extend_from_slice(b"X-ATTR ");
            value(random, said, 1);
        }
    }
}

fn value(random: &mut StdRng, said: &mut Vec<u8>, depth: usize) {
    match random.random_range(0..5) {
        0 => said.extend_from_slice(number(random).as_bytes()),
        1 => said.extend_from_slice(b"NIL"),
        2 => list(random, said, depth),
        _ => string(random, said),
    }
}

/// A list of values; now and then one that only nests, and may not end.
fn list(random: &mut StdRng, said: &mut Vec<u8>, depth: usize) {
    if random.random_bool(0.1) {
        let deep = random.random_range(1..=DEPTH_MAX);
        said.extend(std::iter::repeat_n(b'(', deep));
        let closed = if random.random_bool(0.7) { deep } else { random.random_range(0..=deep) };
        said.extend(std::iter::repeat_n(b')', closed));
        return;
    }
    said.push(b'(');
    for nth in 0..random.random_range(0..5) {
        if nth > 0 {
            said.push(b' ');
        }
        match depth < 4 {
            true => value(random, said, depth + 1),
            false => said.extend_from_slice(b"\\Seen"),
        }
    }
    if random.random_bool(0.95) {
        said.push(b')');
    }
}

/// A string: quoted, a literal, or neither.
fn string(random: &mut StdRng, said: &mut Vec<u8>) {
    let length = random.random_range(0..=TEXT_BYTES_MAX).min(random.random_range(0..=TEXT_BYTES_MAX));
    let text: Vec<u8> = (0..length).map(|_| *pick(random, b"ab \r\n)({}\"\\*+\0\xff")).collect();
    match random.random_range(0..8) {
        0 => said.extend_from_slice(b"NIL"),
        1 => {
            said.push(b'"');
            said.extend(text.iter().filter(|byte| !matches!(byte, b'"' | b'\\' | b'\r' | b'\n')));
            said.push(b'"');
        }
        // Without an end, or with escapes that are none.
        2 => {
            said.push(b'"');
            said.extend_from_slice(&text);
        }
        3 => {
            let length = *pick(random, NUMBERS);
            said.extend_from_slice(format!("{{{length}}}\r\n").as_bytes());
            said.extend_from_slice(&text);
        }
        4 => {
            let lie = (text.len() + random.random_range(0..40)).saturating_sub(20);
            said.extend_from_slice(format!("{{{lie}}}\r\n").as_bytes());
            said.extend_from_slice(&text);
        }
        _ => {
            let form = *pick(random, &["", "", "", "~"]);
            let plus = *pick(random, &["", "", "", "+"]);
            said.extend_from_slice(format!("{form}{{{}{plus}}}\r\n", text.len()).as_bytes());
            said.extend_from_slice(&text);
        }
    }
}

fn number(random: &mut StdRng) -> String {
    match random.random_bool(0.6) {
        true => random.random_range(1..60_u32).to_string(),
        false => (*pick(random, NUMBERS)).to_owned(),
    }
}

fn end_line(random: &mut StdRng, said: &mut Vec<u8>) {
    said.extend_from_slice(match random.random_range(0..30) {
        0 => b"\n",
        1 => b"\r",
        2 => b"",
        _ => b"\r\n",
    });
}

fn pick<'a, T>(random: &mut StdRng, of: &'a [T]) -> &'a T {
    &of[random.random_range(0..of.len())]
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_same_number_says_the_same_and_others_say_other_things() {
        let say = |seed| answer(&mut StdRng::seed_from_u64(seed), "A1");
        assert_eq!(say(7), say(7));
        let all: Vec<Vec<u8>> = (0..200).map(say).collect();
        let has =
            |part: &[u8]| all.iter().filter(|said| said.windows(part.len()).any(|at| at == part)).count();
        for part in [&b"FETCH ("[..], b"BODY[] ", b"A1 OK done", b"((((", b"{4294967296}"] {
            assert!(has(part) > 0, "{}", String::from_utf8_lossy(part));
        }
        assert!(has(b"A1 OK done\r\n") > 60, "most commands come to an end");
    }
}
