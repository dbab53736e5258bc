//! Prepares a finished mail for an API that reads the recipients from the header.
//!
//! Such an API sends to every address in `To`, `Cc` and `Bcc`. A header may name more people than the
//! envelope: recipients that are suppressed or have the mail already, or people who were only mentioned. They
//! are removed. Recipients that the header does not name are written to a `Bcc`, which such APIs remove. A
//! header that names exactly the recipients is not changed.

use std::collections::HashSet;

use postway_domain::{EmailAddress, address::NamedAddress};

use super::header::{RawError, RawHeader};
use crate::{
    header::write::write_mailboxes,
    reader::{HeaderAddress, addresses},
};

/// The maximum number of addresses read from one field. A header with more is rewritten with the recipients
/// among them.
const ADDRESSES_MAX: usize = 1_000;
/// The fields that name recipients.
const RECIPIENT_FIELDS: [&str; 3] = ["To", "Cc", "Bcc"];

/// A mail whose header names exactly its recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressedMail {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether addresses were removed from its header. Signatures over the header are removed then, too.
    pub is_shortened: bool,
}

/// Rewrites the header so that it names exactly these recipients.
pub fn address_mail(mail: &[u8], recipients: &[&str]) -> Result<AddressedMail, RawError> {
    let header = RawHeader::read_whole(mail)?;
    let wanted: HashSet<String> = recipients.iter().map(|to| EmailAddress::key_of(to)).collect();
    let key_of = |one: &HeaderAddress| one.address.as_deref().map(EmailAddress::key_of);
    let is_recipient = |one: &HeaderAddress| key_of(one).is_some_and(|key| wanted.contains(&key));
    let mut named: HashSet<String> = HashSet::new();
    let mut is_shortened = false;
    for field in header.fields.iter().filter(|field| field.is("To") || field.is("Cc")) {
        let addressed = addresses(field.value, ADDRESSES_MAX);
        is_shortened |= addressed.len() == ADDRESSES_MAX;
        let with_address = addressed.into_iter().filter(|one| one.address.is_some());
        let (to, others): (Vec<_>, Vec<_>) = with_address.partition(is_recipient);
        is_shortened |= !others.is_empty();
        named.extend(to.iter().filter_map(key_of));
    }
    let mut out = Vec::with_capacity(mail.len() + 256);
    for field in &header.fields {
        let names_recipients = RECIPIENT_FIELDS.iter().any(|name| field.is(name));
        match names_recipients && (is_shortened || field.is("Bcc")) || field.is_signature() && is_shortened {
            true => {}
            false => field.write(&mut out),
        }
    }
    if is_shortened {
        for name in ["To", "Cc"] {
            let fields = header.fields.iter().filter(|field| field.is(name));
            let addressed = fields.flat_map(|field| addresses(field.value, ADDRESSES_MAX));
            let remaining: Vec<NamedAddress> =
                addressed.filter(is_recipient).filter_map(|one| to_mailbox(&one)).collect();
            write_field(name, &remaining, &mut out);
        }
    }
    let hidden = recipients.iter().filter(|to| !named.contains(&EmailAddress::key_of(to)));
    let hidden: Vec<NamedAddress> = hidden
        .filter_map(|to| to_mailbox(&HeaderAddress { name: None, address: Some((*to).to_owned()) }))
        .collect();
    write_field("Bcc", &hidden, &mut out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(header.body);
    Ok(AddressedMail { bytes: out, is_shortened })
}

fn write_field(name: &str, mailboxes: &[NamedAddress], out: &mut Vec<u8>) {
    if !mailboxes.is_empty() {
        write_mailboxes(name, mailboxes, out);
    }
}

fn to_mailbox(one: &HeaderAddress) -> Option<NamedAddress> {
    let address: EmailAddress = one.address.as_deref()?.parse().ok()?;
    // If the name cannot be written to a header, the address is written without it.
    NamedAddress::new(one.name.as_deref(), address.clone()).or_else(|_| NamedAddress::new(None, address)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addressed(head: &str, recipients: &[&str]) -> (String, bool) {
        let raw = format!("{head}Subject: hi\r\n\r\nbody\r\n");
        let made = address_mail(raw.as_bytes(), recipients).unwrap();
        (String::from_utf8(made.bytes).unwrap(), made.is_shortened)
    }

    #[test]
    fn a_header_that_names_the_recipients_stays_byte_for_byte() {
        let head = "To: \"A, B\" <a@x.example>,\r\n\tb@x.example\r\nDKIM-Signature: v=1\r\n";
        let (made, is_shortened) = addressed(head, &["a@x.example", "b@X.example"]);
        assert_eq!((made, is_shortened), (format!("{head}Subject: hi\r\n\r\nbody\r\n"), false));
    }

    #[test]
    fn recipients_whom_the_header_does_not_name_are_hidden() {
        let (made, is_shortened) =
            addressed("To: a@x.example\r\n", &["a@x.example", "c@x.example", "d@x.example"]);
        assert!(made.contains("To: a@x.example\r\n") && made.contains("Bcc: ") && !is_shortened, "{made}");
        let bcc = made.lines().find(|line| line.starts_with("Bcc: ")).unwrap();
        assert!(bcc.contains("c@x.example") && bcc.contains("d@x.example") && !bcc.contains("a@x.example"));
    }

    #[test]
    fn an_address_that_is_not_a_recipient_is_removed_with_the_signature_over_it() {
        let head = "DKIM-Signature: v=1; h=to\r\nTo: \"Ann, A\" <a@x.example>, gone@x.example\r\nCc: also-gone@x.example\r\nBcc: forged@x.example\r\n";
        let (made, is_shortened) = addressed(head, &["a@x.example"]);
        assert!(
            is_shortened && !made.contains("gone@") && !made.contains("forged@") && !made.contains("DKIM"),
            "{made}"
        );
        assert!(made.contains("\"Ann, A\" <a@x.example>") && made.ends_with("\r\n\r\nbody\r\n"), "{made}");
        assert!(!made.contains("Bcc") && !made.contains("Cc"), "{made}");
    }
}
