//! The summary of a mail that lists show.

use postway_domain::Time;

use super::ParsedMail;

/// The longest text that a list shows, in characters.
const TEXT_CHARS_MAX: usize = 250;
/// The most recipients that a list shows.
const RECIPIENTS_MAX: usize = 20;
/// The longest Message-ID that is stored.
const MESSAGE_ID_CHARS_MAX: usize = 320;

/// Author, recipients and subject, each bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailSummary {
    pub sender: Option<String>,
    pub recipients: Option<String>,
    pub subject: Option<String>,
    pub message_id: Option<String>,
    pub dated_at: Option<Time>,
}

impl MailSummary {
    /// Summarises a mail.
    pub(crate) fn from_mail(mail: &ParsedMail<'_>) -> Self {
        let addresses: Vec<_> = mail
            .people("To")
            .into_iter()
            .chain(mail.people("Cc"))
            .take(RECIPIENTS_MAX)
            .map(|person| person.address)
            .collect();
        Self {
            sender: mail.people("From").first().map(|person| bounded(&person.full(), TEXT_CHARS_MAX)),
            recipients: (!addresses.is_empty()).then(|| bounded(&addresses.join(", "), TEXT_CHARS_MAX)),
            subject: mail.subject().map(|subject| bounded(&subject, TEXT_CHARS_MAX)),
            message_id: mail.message_id().map(|id| bounded(&id, MESSAGE_ID_CHARS_MAX)),
            dated_at: mail.dated_at(),
        }
    }
}

/// The first `chars_max` characters of a text.
pub(crate) fn bounded(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_bounded() {
        let to = (0..1_000).map(|n| format!("someone{n}@example.org")).collect::<Vec<_>>().join(", ");
        let raw = format!("From: A <a@example.org>\nTo: {to}\nSubject: {}\n\n", "s".repeat(9_000));
        let summary = MailSummary::from_mail(&ParsedMail::new(raw.as_bytes()));
        assert_eq!(summary.sender.as_deref(), Some("A <a@example.org>"));
        assert_eq!(summary.recipients.unwrap().chars().count(), TEXT_CHARS_MAX);
        assert_eq!(summary.subject.unwrap().chars().count(), TEXT_CHARS_MAX);
    }
}
