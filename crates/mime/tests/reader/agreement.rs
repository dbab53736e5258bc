//! On well-formed mail the reader finds what an independent parser finds, and on any bytes it keeps its
//! promises.

use mail_parser::{MessageParser, MimeHeaders, PartType};
use postway_domain::NamedAddress;
use postway_mime::{
    MailAttachment, MailDraft, compose,
    reader::{
        DecodeBudget, PartClass, ReadMail,
        limit::{DEPTH_MAX, PARTS_MAX, STEPS_MIN, STEPS_PER_BYTE_MAX},
    },
    reading,
};
use proptest::prelude::*;

const UID: &str = "0190a000-0000-7000-8000-000000000000";

fn attachment() -> impl Strategy<Value = MailAttachment> {
    let name = "[a-zA-Zäé€ ]{1,30}\\.(pdf|txt)";
    let content_type = prop_oneof![
        Just("application/pdf"),
        Just("image/png"),
        Just("application/octet-stream"),
        Just("video/mp4")
    ];
    let content = prop::collection::vec(any::<u8>(), 0..400);
    (name, content_type, content, any::<bool>(), 0..1_000_000_u32).prop_map(
        |(filename, content_type, content, inline, id)| MailAttachment {
            filename,
            content_type: content_type.to_owned(),
            content,
            content_id: inline.then(|| format!("i{id}@example.org")),
            inline,
        },
    )
}

/// Text that encodings must handle: lines of hyphens, long lines, and letters beyond ASCII.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("--\n".to_owned()),
        Just("--=_0190a000\n".to_owned()),
        Just("=?utf-8?q?x?= =3D\n".to_owned()),
        "[ -~äß€\n\t]{0,60}",
        "[a-z ]{900,1200}",
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

fn draft_bytes(
    text: Option<&str>,
    html: Option<&str>,
    attachments: &[MailAttachment],
    subject: &str,
) -> Vec<u8> {
    let from: NamedAddress = "Shop <shop@example.com>".parse().unwrap();
    let to: NamedAddress = "ada@example.net".parse().unwrap();
    let draft = MailDraft {
        from: &from,
        sender: None,
        to: std::slice::from_ref(&to),
        cc: &[],
        reply_to: &[],
        subject,
        text,
        html,
        alternatives: &[],
        headers: &[],
        attachments,
        message_id: "m@example.com",
        uid: UID,
        date_unix: 1_800_000_000,
    };
    compose(&draft).unwrap().bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_composed_mail_is_read_as_another_parser_reads_it(
        text in prop::option::of(text()),
        html in prop::option::of(text()),
        mut attachments in prop::collection::vec(attachment(), 0..4),
        subject in "[ -~äß€]{0,120}",
    ) {
        prop_assume!(text.is_some() || html.is_some());
        // An inline image without html is an attachment.
        if html.is_none() {
            attachments.iter_mut().for_each(|file| (file.inline, file.content_id) = (false, None));
        }
        prop_assume!(attachments.iter().all(|file| file.check().is_ok()));
        let raw = draft_bytes(text.as_deref(), html.as_deref(), &attachments, &subject);
        let theirs = MessageParser::new().parse(&raw).unwrap();
        let ours = ReadMail::read(&raw);
        prop_assert!(ours.passed().is_empty());
        let roles = ours.roles();
        let mut budget = DecodeBudget::default();
        let mut of_class = |parts: &[usize], class| -> Vec<String> {
            let parts = parts.iter().filter_map(|index| ours.part(*index));
            parts.filter(|part| PartClass::of(part) == class).map(|part| part.text(&mut budget).into_owned()).collect()
        };
        let their_texts: Vec<String> = theirs.text_bodies().filter_map(|part| match &part.body {
            PartType::Text(text) => Some(text.to_string()),
            _ => None,
        }).collect();
        let their_htmls: Vec<String> = theirs.html_bodies().filter_map(|part| match &part.body {
            PartType::Html(html) => Some(html.to_string()),
            _ => None,
        }).collect();
        prop_assert_eq!(of_class(&roles.text, PartClass::Plain), their_texts);
        prop_assert_eq!(of_class(&roles.html, PartClass::Html), their_htmls);
        let their_files: Vec<_> = theirs.attachments()
            .map(|part| (part.attachment_name().map(str::to_owned), part.content_id().map(str::to_owned), part.contents().to_vec()))
            .collect();
        let our_files: Vec<_> = roles.attachments.iter().filter_map(|index| ours.part(*index))
            .map(|part| (part.file_name(), part.content_id().map(str::to_owned), part.content(&mut budget).into_owned()))
            .collect();
        prop_assert_eq!(our_files, their_files);
        let shown = reading::read(&raw);
        let reported = shown.fields.iter().find(|(name, _)| name == "Subject").map(|(_, value)| value.as_str());
        prop_assert_eq!(reported.unwrap_or_default().trim(), theirs.subject().unwrap_or_default().trim());
    }

    #[test]
    fn any_bytes_are_read_in_bounded_steps_and_parts_nest(
        pieces in prop::collection::vec(prop_oneof![
            Just(&b"Content-Type: multipart/mixed; boundary=b\n\n--b\n"[..]),
            Just(&b"Content-Type: multipart/digest; boundary=\"bb\"\r\n\r\n--bb\r\n"[..]),
            Just(&b"Content-Type: message/rfc822\n\n"[..]),
            Just(&b"\n--b\n"[..]), Just(&b"\n--b--\n"[..]), Just(&b"\n--bb"[..]), Just(&b"x--b"[..]),
            Just(&b"a:\n"[..]), Just(&b"\n"[..]), Just(&b"\r"[..]), Just(&b" "[..]), Just(&b"--"[..]), Just(&b"\xff\0"[..]),
        ], 0..200)
    ) {
        let raw = pieces.concat();
        let mail = ReadMail::read(&raw);
        prop_assert!(mail.steps() <= raw.len() * STEPS_PER_BYTE_MAX + STEPS_MIN);
        prop_assert!(mail.parts().count() <= PARTS_MAX);
        for part in mail.parts() {
            let (entity, body) = (part.entity_range(), part.body_range());
            prop_assert!(entity.start <= body.start && body.start <= body.end && body.end == entity.end);
            prop_assert!(entity.end <= raw.len() && part.depth() <= DEPTH_MAX);
            if let Some(parent) = part.parent() {
                let around = parent.body_range();
                prop_assert!(around.start <= entity.start && entity.end <= around.end);
            }
        }
        let _ = reading::read(&raw);
    }
}
