//! Mail that is built to break a reader: towers of nested types, floods of fields and parts, boundaries that
//! are equal, that begin like each other, or stand where no line begins, encodings that do not hold, and ids
//! that refer to themselves.

use rand::{Rng, rngs::StdRng};

use crate::{Grown, INPUT_BYTES_MAX, InputGenerator, pick};

/// How deep a tree is built; towers are deeper.
const TREE_DEPTH_MAX: usize = 24;
/// Parts of one multipart of a tree.
const CHILDREN_MAX: usize = 5;

const BOUNDARIES: &[&[u8]] = &[
    b"b",
    b"bb",
    b"b--",
    b"--b",
    b"-",
    b"",
    b" ",
    b"a b",
    b"b;c",
    b"=_b",
    b"\xff",
    b"b0123456789012345678901234567890123456789012345678901234567890123456789",
];

const TYPES: &[&[u8]] = &[
    b"text/plain",
    b"text/html",
    b"text/html; charset=utf-7",
    b"text/plain; charset=windows-1252",
    b"text/html; charset=windows-1252",
    b"text/plain; charset=iso-2022-jp",
    b"text/csv; charset=\"utf-16\"; name=x.csv",
    b"TEXT/",
    b"/",
    b"",
    b"image/png; name=\"a.png\"",
    b"image/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"message/rfc822",
    b"message/global",
    b"message/delivery-status",
    b"message/feedback-report",
    b"message/disposition-notification",
    b"text/rfc822-headers",
    b"application/pkcs7-mime; smime-type=signed-data",
    b"application/pkcs7-signature; name=smime.p7s",
    b"application/xml; name=\"daticert.xml\"",
    b"application/octet-stream; name*0*=utf-8''%41; name*1=b; name*99999999999=c",
];

const MULTIPARTS: &[&[u8]] =
    &[b"mixed", b"alternative", b"related", b"digest", b"report", b"signed", b"MIXED", b"x", b""];

const FIELDS: &[&[u8]] = &[
    b"Content-Transfer-Encoding: base64",
    b"Content-Transfer-Encoding: quoted-printable",
    b"Content-Transfer-Encoding: x-unknown",
    b"Content-Disposition: attachment; filename=\"a\\\"b.pdf\"",
    b"Content-Disposition: inline; filename*=utf-8'en'%E2%82%AC",
    b"Content-ID: <i>",
    b"Content-ID: <cid:i>",
    b"Content-ID: i>",
    b"From: MAILER-DAEMON@example.org",
    b"From: =?utf-8?q?A=C3=A9?= <a@example.org>, b: c@example.org;",
    b"Subject: =?utf-8?b?R3LDvMOfZQ==?= =?x?q?never",
    b"Received: from a by b",
    b"Message-ID: <m@example.org>",
    b"X-Ricevuta: avvenuta-consegna",
    b"X-Riferimento-Message-ID: <u@example.it>",
    b"Auto-Submitted: auto-replied",
    b"To: ((((((((a",
    b": no name",
    b"no colon",
    b" continued",
    b"boundary=b",
];

const BODIES: &[&[u8]] = &[
    b"",
    b"plain text",
    b"<p>hello <img src=\"cid:i\"><img src='cid:cid:i'>cid:i cid:",
    b"iVBORw0KGgo=",
    b"=E2=82=AC=\n=3D =\t\n=ZZ",
    b"x--b\n\ny--b--\n",
    b"--\n--b-\n--bb\n---b\n",
    b"Final-Recipient: rfc822; a@example.org\nAction: failed\nStatus: 5.1.1\n",
    b"Content-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=b\n\n--b\n",
    b"<?xml version=\"1.0\"?><postacert tipo=\"x\"><dati/></postacert>",
    b"--- Below this line is a copy of the message.\n\nReceived: from x\n",
    b"\xff\xfe\x00=",
];

/// Pieces that cost much where a reader goes back, keeps everything, or calls itself.
const FLOODS: &[&[u8]] = &[
    b"Content-Type: message/rfc822\n\n",
    b"Content-Type: message/global\n\n",
    b"Content-Type: multipart/digest; boundary=b\n\n--b\n",
    b"Content-Type:multipart/x;boundary=z\n\nx--b\n",
    b"Content-Type:multipart/x;boundary=z\n\nx\n--b\n",
    b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n",
    b"\n\nx--b",
    b"a:\n",
    b"--",
    b"--\n",
    b"--b\n",
    b"--b\n\n",
    b"\n--b--",
    b"=?aa?q? ",
    b"=?aa?b?! ",
    b"=?",
    b"cid:",
    b"cid:i",
    b"; name*1=a",
    b"; a=\"",
    b"((",
    b"<div>",
    b"&#",
    b"original message follows ",
    b"a@b.example ",
    b" \n",
    b"\r",
];

/// See the module.
pub struct HostileMail;

impl InputGenerator for HostileMail {
    fn input(&self, random: &mut StdRng) -> Vec<u8> {
        let mut mail = match random.random_range(0..4) {
            0 => tower(random),
            1 => flood(random),
            _ => tree(random),
        };
        let grown = Grown { seeds: BODIES, words: FLOODS };
        let changes = random.random_range(0..4);
        grown.change(random, &mut mail, changes);
        if random.random_bool(0.3) {
            mail = mail.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        }
        mail
    }
}

/// A random mail of multiparts in multiparts.
fn tree(random: &mut StdRng) -> Vec<u8> {
    let mut mail = Vec::new();
    let depth = random.random_range(0..=TREE_DEPTH_MAX);
    entity(random, depth, &mut mail);
    mail
}

fn entity(random: &mut StdRng, depth: usize, out: &mut Vec<u8>) {
    for _ in 0..random.random_range(0..4) {
        out.extend_from_slice(pick(random, FIELDS));
        out.push(b'\n');
    }
    if depth == 0 || random.random_bool(0.2) || out.len() > INPUT_BYTES_MAX {
        leaf(random, out);
        return;
    }
    let boundary = pick(random, BOUNDARIES);
    let kind = pick(random, MULTIPARTS);
    let quote: &[u8] = if random.random_bool(0.5) { b"\"" } else { b"" };
    for piece in [b"Content-Type: multipart/", kind, b";\n boundary=", quote, boundary, quote, b"\n\n"] {
        out.extend_from_slice(piece);
    }
    let children = random.random_range(0..=CHILDREN_MAX);
    for child in 0..children {
        let before: &[u8] = if random.random_bool(0.1) { b"x" } else { b"\n" };
        for piece in [before, b"--", boundary, b"\n"] {
            out.extend_from_slice(piece);
        }
        // One child goes deep; the others stay near, so that a tree has few parts.
        entity(random, if child == 0 { depth - 1 } else { depth.min(2) - 1 }, out);
    }
    if random.random_bool(0.7) {
        for piece in [b"\n--", boundary, b"--\n"] {
            out.extend_from_slice(piece);
        }
    }
}

fn leaf(random: &mut StdRng, out: &mut Vec<u8>) {
    if random.random_bool(0.8) {
        for piece in [b"Content-Type: ", pick(random, TYPES), b"\n"] {
            out.extend_from_slice(piece);
        }
    }
    out.push(b'\n');
    for _ in 0..random.random_range(0..3) {
        out.extend_from_slice(pick(random, BODIES));
    }
}

/// One type inside itself, very often.
fn tower(random: &mut StdRng) -> Vec<u8> {
    let kind = pick(random, MULTIPARTS);
    let levels = random.random_range(1..4_000);
    let numbered = random.random_bool(0.5);
    let mut mail = Vec::new();
    for level in 0..levels {
        let boundary = if numbered { format!("b{level}") } else { "b".to_owned() };
        for piece in [b"Content-Type: multipart/", kind, b"; boundary="] {
            mail.extend_from_slice(piece);
        }
        mail.extend_from_slice(format!("{boundary}\n\n--{boundary}\n").as_bytes());
    }
    entity(random, 3, &mut mail);
    mail
}

/// One piece, very often, in the header, in a part, or in html.
fn flood(random: &mut StdRng) -> Vec<u8> {
    const HEADS: &[&[u8]] = &[
        b"",
        b"From: MAILER-DAEMON@example.org\nSubject: failure notice\n\n",
        b"Subject: ",
        b"To: ",
        b"Content-Type: text/plain",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n",
        b"Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: image/png\nContent-ID: <i>\n\n\n--b\nContent-Type: text/html\n\n",
        b"Content-Type: text/html\n\n",
        b"X-Ricevuta: accettazione\nContent-Type: multipart/signed; boundary=b\n\n--b\n",
    ];
    let mut mail = pick(random, HEADS).to_vec();
    let piece = pick(random, FLOODS);
    let bytes = random.random_range(0..INPUT_BYTES_MAX);
    mail.extend_from_slice(&piece.repeat(bytes / piece.len()));
    entity(random, 2, &mut mail);
    mail
}
