//! Every answer of a server is read or refused, in bounded memory, without a panic.

use postway_fuzz::{feed, imap, try_seeds};

use super::{
    response::ImapResponse,
    wire::{ImapOctetStream, RawMailText},
};

/// The longest mail text in these tests.
const TEXT_BYTES_MAX: usize = 4_096;

const SEEDS: &[&[u8]] = &[
    b"* OK [CAPABILITY IMAP4rev1 IDLE] ready\r\nA1 OK done\r\n",
    b"* 3 EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT 12] x\r\nA2 OK [READ-WRITE] done\r\n",
    b"* 1 FETCH (UID 5 RFC822.SIZE 12 INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" FLAGS (\\Seen))\r\n",
    b"* 2 FETCH (UID 6 BODY[] {12}\r\nSubject: x\r\n)\r\nA3 OK done\r\n",
    b"* STATUS \"a\" (MESSAGES 1 UIDNEXT 9)\r\n* BYE {3}\r\nabc\r\n+ go on\r\n",
];
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"{9999999999}\r\n",
    b"{3}\r\nabc",
    b"{0}\r\n",
    b"\"",
    b"\\",
    b"(",
    b")",
    b"((((((((",
    b"* ",
    b"A1 ",
    b"UID 0",
    b"4294967296",
    b"BODY[] ",
    b"NIL",
    b"\0",
    b"\xff",
];

#[test]
fn whatever_a_server_says_is_read_or_refused() {
    feed(SEEDS, WORDS, read);
}

#[test]
fn whatever_a_server_that_knows_the_language_says_is_read_or_refused() {
    try_seeds(|random| read(&imap::answer(random, "A1")));
}

/// Reads responses up to the first one that makes no sense.
fn read(said: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut wire = ImapOctetStream::new(tokio::io::join(said, tokio::io::sink()));
        while let Ok(raw) = wire.response(Some(TEXT_BYTES_MAX)).await {
            if let Some(RawMailText::Whole(text)) = &raw.text {
                assert!(text.len() <= TEXT_BYTES_MAX);
            }
            let is_cut = raw.is_cut;
            if ImapResponse::read(raw).is_err() || is_cut {
                break;
            }
        }
    });
}
