//! Hostile mail is read as far as possible, in time linear in its size.

use std::time::{Duration, Instant};

use postway_domain::Time;
use postway_mime::pec::{DaticertError, DaticertState, SignatureCheck, TrustStore, inspect, read, verify};
use proptest::prelude::*;

use crate::support::{Sample, UID, base, daticert, signed};

fn refused(document: impl Into<Vec<u8>>) -> DaticertError {
    let read = read(&Sample { daticert: Some(document.into()), ..base() }.raw()).expect("still a receipt");
    assert_eq!(read.postway_uid.map(|uid| uid.to_string()).as_deref(), Some(UID), "read from the header");
    match read.daticert {
        DaticertState::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

/// A receipt with a document type before the root, and its entity in the subject.
fn with_entities(definitions: &str, used: &str) -> String {
    let plain = daticert("accettazione", "nessuno", "");
    let plain = plain.replace("<postacert", &format!("<!DOCTYPE postacert [{definitions}]>\n<postacert"));
    plain.replace("Bolletta", used)
}

#[test]
fn entities_are_not_expanded_and_not_fetched() {
    let mut laughs = String::from("<!ENTITY a0 \"ha\">");
    for level in 1..30 {
        let below = level - 1;
        laughs.push_str(&format!("<!ENTITY a{level} \"&a{below};&a{below};\">"));
    }
    assert_eq!(refused(with_entities(&laughs, "&a29;")), DaticertError::DocumentType);
    let long = format!("<!ENTITY a \"{}\">", "x".repeat(50_000));
    assert_eq!(refused(with_entities(&long, &"&a;".repeat(50_000))), DaticertError::DocumentType);
    let external = "<!ENTITY x SYSTEM \"file:///etc/passwd\">";
    assert_eq!(refused(with_entities(external, "&x;")), DaticertError::DocumentType);
    let plain = daticert("accettazione", "nessuno", "");
    assert_eq!(refused(plain.replace("Bolletta", "&x;")), DaticertError::Entity);
    assert_eq!(refused(plain.replace("Bolletta", "&#xFFFFFFFF;")), DaticertError::Entity);
    assert_eq!(refused(plain.replace("\"nessuno\"", "\"&x;\"")), DaticertError::Entity);
}

#[test]
fn documents_without_end_are_refused() {
    let plain = daticert("accettazione", "nessuno", "");
    let deep = "<a>".repeat(100_000);
    assert_eq!(refused(plain.replace("Bolletta", &deep)), DaticertError::TooDeep);
    let many = " a=\"1\"".repeat(100_000);
    assert_eq!(
        refused(plain.replace("<oggetto>", &format!("<oggetto{many}>"))),
        DaticertError::TooManyAttributes
    );
    let crowd = "<destinatari>a@b.example</destinatari>".repeat(11_000);
    assert_eq!(
        refused(plain.replace("<risposte>", &format!("{crowd}<risposte>"))),
        DaticertError::TooManyRecipients
    );
    let large = "x".repeat(1024 * 1024);
    assert_eq!(refused(plain.replace("Bolletta", &large)), DaticertError::TooLarge);
    assert!(matches!(refused("<postacert tipo=\"accettazione\""), DaticertError::Malformed(_)));
    assert!(matches!(refused("<postacert><dati></postacert>"), DaticertError::Malformed(_)));
    assert_eq!(refused("<altro/>"), DaticertError::NotPostacert);
    assert_eq!(refused(""), DaticertError::NotPostacert);
    assert_eq!(refused(b"\0\x01\xff".to_vec()), DaticertError::NotPostacert);
}

#[test]
fn long_texts_are_cut() {
    let text = daticert(
        "accettazione",
        "nessuno",
        &format!("<errore-esteso>{}</errore-esteso>", "\u{e8}".repeat(9000)),
    );
    let read = read(&Sample { daticert: Some(text.into_bytes()), ..base() }.raw()).unwrap();
    assert_eq!(read.error_text.unwrap().len(), 4096);
}

#[test]
fn ten_thousand_parts_inside_each_other_cost_little() {
    let mut raw = base().header();
    for level in 0..10_000 {
        raw.push_str(&format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n"));
    }
    raw.push_str(&base().content());
    let started = Instant::now();
    let read = read(raw.as_bytes()).unwrap();
    assert_eq!(read.daticert, DaticertState::Absent);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn boundaries_that_equal_or_begin_like_outer_ones_end() {
    for inner in ["m", "mm", "", "m--"] {
        let content = format!(
            "Content-Type: multipart/mixed; boundary=\"m\"\r\n\r\n--m\r\nContent-Type: multipart/mixed; \
             boundary=\"{inner}\"\r\n\r\n--{inner}\r\n\r\nx\r\n--{inner}--\r\n--m--\r\n"
        );
        assert!(read((base().header() + &content).as_bytes()).is_some());
    }
}

#[test]
fn a_million_fields_are_one_pass_each() {
    let raw = base().header() + &"X-A: b\r\n c\r\n".repeat(1_000_000) + "\r\n";
    let started = Instant::now();
    assert!(inspect(raw.as_bytes()).is_some());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn what_stands_beside_the_signed_part_is_not_read() {
    let forged = Sample { daticert: Some(daticert("accettazione", "forged", "").into_bytes()), ..base() };
    let raw = String::from_utf8(signed(&base().header(), &base().content(), b"")).unwrap();
    let raw = raw.replace("--s--", &format!("--s\r\n{}\r\n--s--", forged.content()));
    assert_eq!(read(raw.as_bytes()).unwrap().error.as_deref(), Some("nessuno"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = inspect(&bytes);
        let _ = verify(&bytes, &TrustStore::default(), Time::from_millis(0));
        let _ = read(&Sample { daticert: Some(bytes.clone()), ..base() }.raw());
        let raw = signed(&base().header(), &base().content(), &bytes);
        let judged = verify(&raw, &TrustStore::default(), Time::from_millis(0));
        let believed = matches!(judged, SignatureCheck::Verified { .. });
        prop_assert!(!believed);
    }

    #[test]
    fn a_receipt_with_a_hole_does_not_panic(from in 0_usize..3000, length in 0_usize..400, byte in any::<u8>()) {
        let mut raw = signed(&base().header(), &base().content(), b"\x30\x80\x06\x01\x01\0\0");
        let from = from.min(raw.len());
        let to = (from + length).min(raw.len());
        raw.splice(from..to, [byte]);
        let _ = inspect(&raw);
        let _ = verify(&raw, &TrustStore::default(), Time::from_millis(0));
    }
}
