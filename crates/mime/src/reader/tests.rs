//! Tests the promises of the reader with mail that is made to break them.

use super::limit::{DEPTH_MAX, PARTS_MAX, STEPS_MIN, STEPS_PER_BYTE_MAX};
use super::*;

/// Reads and drops a mail on a stack that is too small for recursion.
fn on_a_small_stack(raw: Vec<u8>) -> (usize, PassedLimits) {
    let read = move || {
        let mail = ReadMail::read(&raw);
        assert!(mail.steps() <= raw.len() * STEPS_PER_BYTE_MAX + STEPS_MIN);
        let roles = mail.roles();
        assert!(roles.attachments.len() <= mail.parts.len());
        (mail.parts.len(), mail.passed())
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(read).unwrap().join().unwrap()
}

fn bodies(raw: &[u8]) -> Vec<&[u8]> {
    let mail = ReadMail::read(raw);
    mail.parts().filter(|part| !part.has_children()).map(|part| part.body()).collect()
}

#[test]
fn parts_are_cut_at_their_delimiters() {
    for ending in ["\n", "\r\n", "\r"] {
        let raw = "Content-Type: multipart/mixed; boundary=b\n\npreamble\n--b\n\nhello\n--b \nContent-Type: text/html\n\n\
            <p>\n\n--b--\nepilogue\n--b\n\nnot a part\n"
            .replace('\n', ending);
        let mail = ReadMail::read(raw.as_bytes());
        assert_eq!(mail.parts.len(), 3);
        let [_, first, second] = [0, 1, 2].map(|index| mail.part(index).unwrap());
        assert_eq!((first.body(), first.depth(), first.header().len()), (&b"hello"[..], 1, 0));
        assert_eq!(second.body(), format!("<p>{ending}").as_bytes());
        assert!(second.media_type().is("text", "html"));
        assert!(mail.passed().is_empty());
    }
}

#[test]
fn the_outer_boundary_ends_what_is_inside() {
    let raw = b"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n\
        --i\n\none\n--i\n\ntwo\n--o\n\nthree\n--o--\n";
    let mail = ReadMail::read(raw);
    let depths: Vec<_> = mail.parts().map(|part| (part.depth(), part.body().len())).collect();
    assert_eq!(depths[1..], [(1, 17), (2, 3), (2, 3), (1, 5)]);
    let children: Vec<_> = mail.root().children().map(|part| part.index()).collect();
    assert_eq!(children, [1, 4]);
    let equal = b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b--\n";
    assert_eq!(bodies(equal), [&b""[..], b"x"]);
    let longer =
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=bb\n\n\
        --bb\n\nx\n--bb--\n--b--\n";
    assert_eq!(bodies(longer), [b"x"]);
}

#[test]
fn parts_without_a_header_a_blank_line_or_an_end_are_read() {
    let raw = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n--b\nno blank line\n--b\nContent-Type: text/html\n--b\n\nlast";
    assert_eq!(bodies(raw), [&b""[..], b"no blank line", b"", b"last"]);
    assert_eq!(bodies(b"Content-Type: multipart/mixed; boundary=b\n\nno delimiter"), [b"no delimiter"]);
    assert_eq!(bodies(b""), [b""]);
    assert_eq!(bodies(b"\n\n"), [b""]);
}

#[test]
fn an_empty_part_at_the_end_of_a_multipart_lies_inside_it() {
    let raw = b"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/mixed; boundary=i\n\n--i\n--o--\n";
    let mail = ReadMail::read(raw);
    let [inner, empty] = [1, 2].map(|index| mail.part(index).unwrap());
    assert_eq!((empty.body(), empty.parent().unwrap().index()), (&b""[..], inner.index()));
    assert!(empty.entity_range().end <= inner.body_range().end);
}

#[test]
fn a_boundary_inside_a_line_parts_nothing() {
    let raw =
        b"Content-Type: multipart/mixed; boundary=b\n\nx--b\n\none\n--bc\n--b\n\ntwo --b\n--b--x\n--b--";
    assert_eq!(bodies(raw), [b"two --b\n--b--x"]);
}

#[test]
fn mails_in_mails_are_one_part_however_many_there_are() {
    for levels in [60_000, 200_000] {
        for kind in ["message/rfc822", "message/global", "MESSAGE/RFC822; x=y"] {
            let raw = format!("Content-Type: {kind}\n\n").repeat(levels).into_bytes();
            assert_eq!(on_a_small_stack(raw), (1, PassedLimits::default()), "{kind}");
        }
    }
    let encoded = "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n".repeat(100_000);
    assert_eq!(on_a_small_stack(encoded.into_bytes()).0, 1);
}

#[test]
fn nested_multiparts_end_at_the_depth_that_is_allowed() {
    for kind in ["mixed", "digest", "alternative", "related", "signed"] {
        let raw: String = (0..50_000)
            .map(|level| format!("Content-Type: multipart/{kind}; boundary=b{level}\n\n--b{level}\n"))
            .collect();
        let (parts, passed) = on_a_small_stack(raw.into_bytes());
        assert_eq!(parts, DEPTH_MAX + 1);
        assert!(passed.contains(ReaderLimit::Depth));
    }
    let same = "Content-Type: multipart/digest; boundary=b\n\n--b\n".repeat(50_000);
    assert_eq!(on_a_small_stack(same.into_bytes()).0, PARTS_MAX);
}

#[test]
fn a_part_of_a_digest_is_a_mail() {
    let raw = b"Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: x\n\nhi\n--b\nContent-Type: text/plain\n\nx\n--b--\n";
    let mail = ReadMail::read(raw);
    assert!(mail.part(1).unwrap().media_type().is_message());
    assert!(!mail.part(2).unwrap().media_type().is_message());
}

#[test]
fn boundaries_that_never_come_are_not_searched_for() {
    // Each part announces a boundary that does not exist: a reader that searches for it would read to the end
    // each time.
    let head = "Content-Type: multipart/mixed; boundary=b\n\n--b\n";
    for part in [
        "Content-Type:multipart/x;boundary=z\n\nx--b\n",
        "Content-Type:multipart/x;boundary=z\n\nx\n--b\n",
        "\n\nx--b",
        "a:\n",
        "--",
        "--\n",
        "\n--b",
        "--b\n",
        "-\n",
    ] {
        let raw = format!("{head}{}{}", part.repeat(4_000_000 / part.len()), "filler ".repeat(100_000));
        let (parts, _) = on_a_small_stack(raw.into_bytes());
        assert!(parts <= PARTS_MAX, "{part:?}");
    }
}

#[test]
fn a_mail_of_twenty_five_mebibytes_takes_less_than_a_step_for_ten_bytes() {
    let line = format!("{}\r\n", "QUJD".repeat(19));
    let raw = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Transfer-Encoding: base64\r\n\r\n{}--b--\r\n",
        line.repeat(25 * 1024 * 1024 / line.len())
    );
    let mail = ReadMail::read(raw.as_bytes());
    assert!(mail.steps() < 100, "{} steps", mail.steps());
    assert_eq!((mail.parts.len(), mail.passed()), (2, PassedLimits::default()));
}

#[test]
fn steps_end_where_open_boundaries_make_every_line_costly() {
    let mut raw: String = (0..DEPTH_MAX)
        .map(|level| format!("Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n"))
        .collect();
    raw += "\n";
    raw += &"--\n".repeat(1_000_000);
    let end = raw.len();
    let mail = ReadMail::read(raw.as_bytes());
    assert!(mail.passed().contains(ReaderLimit::Steps));
    assert_eq!(
        mail.parts().last().unwrap().body_range().end,
        end,
        "the last part keeps what was not looked at"
    );
}

#[test]
fn fields_are_bounded_in_all() {
    let part = format!("--b\n{}\nx\n", "a:\n".repeat(900));
    let raw = format!("Content-Type: multipart/mixed; boundary=b\n\n{}", part.repeat(100));
    let mail = ReadMail::read(raw.as_bytes());
    assert_eq!(mail.fields.len(), limit::FIELDS_IN_ALL_MAX);
    assert!(mail.passed().contains(ReaderLimit::FieldsInAll));
    assert_eq!(mail.parts.len(), 101);
}

#[test]
fn labels_ids_and_names_are_found() {
    let raw = b"Content-Type: image/png; name=\"a.png\"\nContent-ID: <i@x>\nContent-Disposition: INLINE; filename*=utf-8''b.png\n\
        Content-Transfer-Encoding: BASE64\n\niVBORw0=";
    let mail = ReadMail::read(raw);
    let part = mail.root();
    assert_eq!((part.content_id(), part.file_name().as_deref()), (Some("i@x"), Some("b.png")));
    assert!(!part.is_attachment());
    let mut budget = DecodeBudget::default();
    assert_eq!(part.content(&mut budget).as_ref(), b"\x89PNG\r");
    let latin = ReadMail::read(b"Content-Type: text/plain; charset=ISO-8859-1\n\n\xe9");
    assert_eq!(latin.root().text(&mut budget), "\u{e9}");
}

#[test]
fn a_text_counts_as_what_it_has_once_it_is_read() {
    let mut raw = b"Content-Type: text/plain; charset=windows-1252\n\n".to_vec();
    raw.extend([0x80; 1_000]);
    let mail = ReadMail::read(&raw);
    let mut budget = DecodeBudget::of(3_000);
    assert_eq!((mail.root().text(&mut budget).len(), budget.is_passed()), (3_000, false));
    assert_eq!(mail.root().text(&mut budget), "");
    let mut less = DecodeBudget::of(2_000);
    assert_eq!(
        (mail.root().text(&mut less).len(), less.is_passed()),
        (1_998, true),
        "a letter is kept whole"
    );
    // Invalid UTF-8 grows as well.
    let mail = ReadMail::read(b"Subject: x\n\n\xff\xff\xff\xff");
    let mut few = DecodeBudget::of(6);
    assert_eq!((mail.root().text(&mut few).as_ref(), few.is_passed()), ("\u{fffd}\u{fffd}", true));
}
