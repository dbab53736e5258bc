//! Reads received mail for the webhooks that carry it: the reader of mail is one crate, the notifier another.

use std::sync::Arc;

use postway_mime::{
    reader::{HeaderAddress, HeaderBlock, addresses},
    reading::{attachments_within, read_for_program, reply},
};
use postway_notify::{
    RECEIVED_FILE_BYTES_MAX, RECEIVED_HEADER_BYTES_MAX, RECEIVED_TEXT_BYTES_MAX, ReceivedFile, ReceivedMail,
    ReceivedMailReader, ReceivedPerson,
};

/// The most people of one field.
const PEOPLE_MAX: usize = 200;

/// The reader that the notifier is given.
pub fn reader() -> ReceivedMailReader {
    ReceivedMailReader(Arc::new(read))
}

fn read(raw: &[u8]) -> ReceivedMail {
    let view = read_for_program(raw);
    let block = HeaderBlock::read(raw);
    let people = |name: &str| -> Vec<ReceivedPerson> {
        let all = block.fields().all(name.as_bytes()).flat_map(|value| addresses(value, PEOPLE_MAX));
        all.filter_map(person).take(PEOPLE_MAX).collect()
    };
    let written = |person: ReceivedPerson| match person.name {
        Some(name) => format!("{name} <{}>", person.address),
        None => person.address,
    };
    let mut truncated: Vec<&'static str> = Vec::new();
    let mut cut = |text: Option<String>, what: &'static str| {
        text.map(|mut text| {
            if text.len() > RECEIVED_TEXT_BYTES_MAX {
                truncated.push(what);
                text.truncate(text.floor_char_boundary(RECEIVED_TEXT_BYTES_MAX));
            }
            text
        })
    };
    let reply_text = view.text.as_deref().filter(|_| block.fields().has(b"in-reply-to")).map(reply::new_text);
    let (text, html) = (cut(view.text, "text"), cut(view.html, "html"));
    let reply_text = cut(reply_text, "reply_text");
    let mut left = RECEIVED_HEADER_BYTES_MAX;
    let fields = view.fields.len();
    let fits = |(name, value): &(String, String)| {
        let rest = left.checked_sub(name.len() + value.len());
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    let headers: Vec<(String, String)> = view.fields.into_iter().take_while(fits).collect();
    if headers.len() < fields {
        truncated.push("headers");
    }
    if !view.omitted.is_empty() {
        truncated.push("mail");
    }
    let mut contents = attachments_within(raw, RECEIVED_FILE_BYTES_MAX).into_iter();
    let files = view.attachments.into_iter().map(|file| ReceivedFile {
        filename: file.filename,
        content_type: file.content_type,
        size: file.size,
        content_id: file.content_id,
        content: contents.next().flatten(),
    });
    ReceivedMail {
        from: people("from").into_iter().next(),
        to: people("to"),
        cc: people("cc"),
        bcc: people("bcc"),
        reply_to: people("reply-to").into_iter().next().map(written),
        headers,
        text,
        html,
        reply_text,
        files: files.collect(),
        truncated,
    }
}

fn person(found: HeaderAddress) -> Option<ReceivedPerson> {
    let address = found.address.filter(|address| !address.trim().is_empty())?;
    let name = found.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Some(ReceivedPerson { name, address: address.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_for_a_call_is_cut_and_said_to_be() {
        let long = "é".repeat(RECEIVED_TEXT_BYTES_MAX);
        let headers = format!("X-Long: {}\r\n", "x".repeat(900)).repeat(100);
        let file = |bytes: usize| {
            format!("--b\r\nContent-Type: application/pdf; name=a.pdf\r\n\r\n{}\r\n", "y".repeat(bytes))
        };
        let raw = format!(
            "From: \"Ada, L\" <ada@example.org>\r\nTo: a@x.example, b@x.example\r\nReply-To: desk@example.org\r\n\
             In-Reply-To: <1@x.example>\r\n{headers}Content-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{long}\r\n{}{}--b--\r\n",
            file(10),
            file(RECEIVED_FILE_BYTES_MAX),
        );
        let mail = read(raw.as_bytes());
        assert_eq!(mail.from.as_ref().unwrap().name.as_deref(), Some("Ada, L"));
        assert_eq!((mail.to.len(), mail.reply_to.as_deref()), (2, Some("desk@example.org")));
        assert!(mail.text.unwrap().len() <= RECEIVED_TEXT_BYTES_MAX && mail.html.is_none());
        let header_bytes: usize = mail.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(header_bytes <= RECEIVED_HEADER_BYTES_MAX);
        assert_eq!(mail.truncated, ["text", "reply_text", "headers"]);
        let held: Vec<_> = mail.files.iter().map(|file| file.content.as_ref().map(Vec::len)).collect();
        assert_eq!((held, mail.files[1].size), (vec![Some(10), None], RECEIVED_FILE_BYTES_MAX));
    }
}
