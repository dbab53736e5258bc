//! Finds the message that a reply answers.
//!
//! `In-Reply-To` comes first, then `References` from its end: a Message-ID made by Postway contains the
//! message's id, and one that the mail already had is found if no other message of the tenant has it. A reply
//! changes nothing, so a Message-ID that could be guessed is enough; the event says by which it was found.

use postway_domain::{EmailAddress, EventKind};
use postway_mime::{reading, reply::new_text};
use postway_store::{
    Store, StoreError,
    record::{MessageFinding, TracedMessage},
};
use serde_json::json;

use super::{ReportProof, TenantScope, by_foreign_id, uid_in};
use crate::mail::{MailSummary, ParsedMail};

/// The most Message-IDs of a reply that are considered.
const IDS_MAX: usize = 20;
/// The most bytes of a field that are searched for them.
const FIELD_BYTES_MAX: usize = 8 * 1024;
/// The longest new text of a reply in the event, in characters.
const TEXT_CHARS_MAX: usize = 4_000;

/// Finds the message that a mail answers.
pub(crate) async fn answered(
    store: &dyn Store,
    scope: &TenantScope<'_>,
    mail: &ParsedMail<'_>,
) -> Result<Option<(TracedMessage, ReportProof)>, StoreError> {
    let ids = named(mail);
    let uids: Vec<_> = ids.iter().filter_map(|id| uid_in(id)).collect();
    if !uids.is_empty() {
        let known = store.traced(&uids).await?;
        let ours =
            uids.iter().find_map(|uid| known.iter().find(|one| one.uid == *uid && scope.contains(one)));
        if let Some(traced) = ours.filter(|traced| !traced.gone) {
            return Ok(Some((traced.clone(), ReportProof::MessageId)));
        }
    }
    // Each foreign id costs one query, so only the mail's own In-Reply-To is asked for.
    let Some(id) = ids.first().filter(|id| uid_in(id).is_none()) else { return Ok(None) };
    let found = by_foreign_id(store, scope, id).await?;
    Ok(found.filter(|traced| !traced.gone).map(|traced| (traced, ReportProof::ForeignMessageId)))
}

/// The Message-IDs that a mail answers, the nearest first, without brackets.
fn named(mail: &ParsedMail<'_>) -> Vec<String> {
    let of = |name: &str| -> Vec<String> {
        let text = mail.plain(name).next().unwrap_or_default();
        let text = &text[..text.floor_char_boundary(FIELD_BYTES_MAX)];
        let ids = text.split('<').skip(1).filter_map(|piece| piece.split('>').next());
        ids.map(|id| id.trim().to_owned()).filter(|id| id.contains('@')).collect()
    };
    let references = of("References").into_iter().rev();
    of("In-Reply-To").into_iter().chain(references).take(IDS_MAX).collect()
}

/// The finding of a reply.
pub(crate) fn reply(mail: &ParsedMail<'_>, traced: &TracedMessage, proof: ReportProof) -> MessageFinding {
    let author = mail.people("From").into_iter().next().map(|person| person.address);
    let is_author =
        |known: &&String| author.as_deref().is_some_and(|author| EmailAddress::is_same(known, author));
    let recipient = traced.recipients.iter().find(is_author);
    let text = reading::text(mail.raw()).map(|text| new_text(&text)).filter(|text| !text.is_empty());
    let MailSummary { sender, subject, message_id, .. } = MailSummary::from_mail(mail);
    let data = json!({
        "recipient": recipient,
        "proof": proof.as_str(),
        "from": sender,
        "subject": subject,
        "message_id": message_id,
        "text": text.map(|text| bounded_lines(&text)),
    });
    MessageFinding {
        message: traced.uid,
        position: None,
        kind: EventKind::Replied,
        data: Some(data.to_string()),
        bounce: None,
        suppress: None,
        receipt: None,
    }
}

/// The text within its limit, with its line breaks, without characters that databases refuse.
fn bounded_lines(text: &str) -> String {
    let bounded: String =
        text.chars().filter(|c| !c.is_control() || *c == '\n').take(TEXT_CHARS_MAX + 1).collect();
    match bounded.chars().count() > TEXT_CHARS_MAX {
        true => bounded.chars().take(TEXT_CHARS_MAX).collect::<String>() + "…",
        false => bounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_message_is_named_first() {
        let raw = "In-Reply-To: <c@x> (yesterday)\r\nReferences: <a@x>\r\n <b@x> nonsense <d>\r\n\r\n";
        assert_eq!(named(&ParsedMail::new(raw.as_bytes())), ["c@x", "b@x", "a@x"]);
        let many = format!("References: {}\r\n\r\n", "<a@x> ".repeat(10_000));
        assert!(named(&ParsedMail::new(many.as_bytes())).len() <= IDS_MAX);
        assert!(named(&ParsedMail::new(b"Subject: x\r\n\r\n")).is_empty());
    }

    #[test]
    fn a_long_answer_is_told_within_its_bound() {
        let long = "a\u{0}b\n".repeat(10_000);
        let bounded = bounded_lines(&long);
        assert_eq!(bounded.chars().count(), TEXT_CHARS_MAX + 1);
        assert!(bounded.starts_with("ab\nab\n") && bounded.ends_with('…'));
    }
}
