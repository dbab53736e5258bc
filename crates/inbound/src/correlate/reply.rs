//! From an answer to the message that it answers.
//!
//! By `In-Reply-To` first, then by `References` from its end: a Message-ID of ours holds our id, and one that the mail brought along is
//! found where no other message of the tenant has it. That somebody answered changes nothing, so a Message-ID that could be guessed is
//! enough, and the event says by which it was found.

use postway_domain::{EmailAddress, EventKind};
use postway_mime::{reading, reply::new_text};
use postway_store::{
    Store, StoreError,
    record::{Finding, Traced},
};
use serde_json::json;

use super::{Proof, Realm, by_foreign_id, uid_in};
use crate::mail::{Mail, Summary};

/// Message-IDs of an answer that are looked at.
const IDS_MAX: usize = 20;
/// Bytes of a field that they are read from.
const FIELD_BYTES_MAX: usize = 8 * 1024;
/// The longest new text that is told, in characters.
const TEXT_CHARS_MAX: usize = 4_000;

/// The message that a mail answers.
pub(crate) async fn answered(
    store: &dyn Store,
    realm: &Realm<'_>,
    mail: &Mail<'_>,
) -> Result<Option<(Traced, Proof)>, StoreError> {
    let ids = named(mail);
    let uids: Vec<_> = ids.iter().filter_map(|id| uid_in(id)).collect();
    if !uids.is_empty() {
        let known = store.traced(&uids).await?;
        let ours = uids.iter().find_map(|uid| known.iter().find(|one| one.uid == *uid && realm.holds(one)));
        if let Some(traced) = ours.filter(|traced| !traced.gone) {
            return Ok(Some((traced.clone(), Proof::MessageId)));
        }
    }
    // One question to the store for each: only for what the mail says that it answers.
    let Some(id) = ids.first().filter(|id| uid_in(id).is_none()) else { return Ok(None) };
    let found = by_foreign_id(store, realm, id).await?;
    Ok(found.filter(|traced| !traced.gone).map(|traced| (traced, Proof::ForeignMessageId)))
}

/// The Message-IDs that a mail names as what it answers, the nearest first, without brackets.
fn named(mail: &Mail<'_>) -> Vec<String> {
    let of = |name: &str| -> Vec<String> {
        let text = mail.plain(name).next().unwrap_or_default();
        let text = &text[..text.floor_char_boundary(FIELD_BYTES_MAX)];
        let ids = text.split('<').skip(1).filter_map(|piece| piece.split('>').next());
        ids.map(|id| id.trim().to_owned()).filter(|id| id.contains('@')).collect()
    };
    let references = of("References").into_iter().rev();
    of("In-Reply-To").into_iter().chain(references).take(IDS_MAX).collect()
}

/// What an answer says about its message.
pub(crate) fn reply(mail: &Mail<'_>, traced: &Traced, proof: Proof) -> Finding {
    let author = mail.people("From").into_iter().next().map(|person| person.address);
    let is_author =
        |known: &&String| author.as_deref().is_some_and(|author| EmailAddress::is_same(known, author));
    let recipient = traced.recipients.iter().find(is_author);
    let text = reading::text(mail.raw()).map(|text| new_text(&text)).filter(|text| !text.is_empty());
    let Summary { sender, subject, message_id, .. } = Summary::of(mail);
    let data = json!({
        "recipient": recipient,
        "proof": proof.as_str(),
        "from": sender,
        "subject": subject,
        "message_id": message_id,
        "text": text.map(|text| bounded_lines(&text)),
    });
    Finding {
        message: traced.uid,
        position: None,
        kind: EventKind::Replied,
        data: Some(data.to_string()),
        bounce: None,
        suppress: None,
        receipt: None,
    }
}

/// The text within its bound, with its lines, and without what no database keeps.
fn bounded_lines(text: &str) -> String {
    let kept: String =
        text.chars().filter(|c| !c.is_control() || *c == '\n').take(TEXT_CHARS_MAX + 1).collect();
    match kept.chars().count() > TEXT_CHARS_MAX {
        true => kept.chars().take(TEXT_CHARS_MAX).collect::<String>() + "…",
        false => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_message_is_named_first() {
        let raw = "In-Reply-To: <c@x> (yesterday)\r\nReferences: <a@x>\r\n <b@x> nonsense <d>\r\n\r\n";
        assert_eq!(named(&Mail::new(raw.as_bytes())), ["c@x", "b@x", "a@x"]);
        let many = format!("References: {}\r\n\r\n", "<a@x> ".repeat(10_000));
        assert!(named(&Mail::new(many.as_bytes())).len() <= IDS_MAX);
        assert!(named(&Mail::new(b"Subject: x\r\n\r\n")).is_empty());
    }

    #[test]
    fn a_long_answer_is_told_within_its_bound() {
        let long = "a\u{0}b\n".repeat(10_000);
        let told = bounded_lines(&long);
        assert_eq!(told.chars().count(), TEXT_CHARS_MAX + 1);
        assert!(told.starts_with("ab\nab\n") && told.ends_with('…'));
    }
}
