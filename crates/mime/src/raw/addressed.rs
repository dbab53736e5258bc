//! A finished mail for an API that reads the recipients from the header.
//!
//! Whoever stands in `To`, `Cc` or `Bcc` there is sent to. A header may name more people than the envelope: somebody who is
//! suppressed, who has the mail already, or who was only mentioned. They are taken out. Recipients whom the header does not name
//! go into a `Bcc`, which such APIs remove. A header that names exactly the recipients stays as it is.

use std::collections::HashSet;

use postway_domain::{EmailAddress, address::Mailbox};

use super::header::{RawError, RawHeader};
use crate::{
    header::write::write_mailboxes,
    reader::{HeaderAddress, addresses},
};

/// Addresses of one field that are read; a header with more is written anew with those of them that are recipients.
const ADDRESSES_MAX: usize = 1_000;
/// The fields that name recipients.
const RECIPIENT_FIELDS: [&str; 3] = ["To", "Cc", "Bcc"];

/// A mail whose header names its recipients and nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressedMail {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether people were taken out of its header. Signatures over it are gone then.
    pub is_shortened: bool,
}

/// The mail with a header for exactly these recipients.
pub fn address_mail(mail: &[u8], recipients: &[&str]) -> Result<AddressedMail, RawError> {
    let header = RawHeader::read_whole(mail)?;
    let wanted: HashSet<String> = recipients.iter().map(|to| EmailAddress::key_of(to)).collect();
    let key_of = |one: &HeaderAddress| one.address.as_deref().map(EmailAddress::key_of);
    let is_recipient = |one: &HeaderAddress| key_of(one).is_some_and(|key| wanted.contains(&key));
    let mut named: HashSet<String> = HashSet::new();
    let mut is_shortened = false;
    for field in header.fields.iter().filter(|field| field.is("To") || field.is("Cc")) {
        let found = addresses(field.value, ADDRESSES_MAX);
        is_shortened |= found.len() == ADDRESSES_MAX;
        let with_address = found.into_iter().filter(|one| one.address.is_some());
        let (to, others): (Vec<_>, Vec<_>) = with_address.partition(is_recipient);
        is_shortened |= !others.is_empty();
        named.extend(to.iter().filter_map(key_of));
    }
    let mut out = Vec::with_capacity(mail.len() + 256);
    for field in &header.fields {
        let names_recipients = RECIPIENT_FIELDS.iter().any(|name| field.is(name));
        let is_signature =
            field.is("DKIM-Signature") || field.is("ARC-Message-Signature") || field.is("ARC-Seal");
        match names_recipients && (is_shortened || field.is("Bcc")) || is_signature && is_shortened {
            true => {}
            false => field.write(&mut out),
        }
    }
    if is_shortened {
        for name in ["To", "Cc"] {
            let fields = header.fields.iter().filter(|field| field.is(name));
            let found = fields.flat_map(|field| addresses(field.value, ADDRESSES_MAX));
            let kept: Vec<Mailbox> = found.filter(is_recipient).filter_map(|one| mailbox(&one)).collect();
            write_field(name, &kept, &mut out);
        }
    }
    let hidden = recipients.iter().filter(|to| !named.contains(&EmailAddress::key_of(to)));
    let hidden: Vec<Mailbox> = hidden
        .filter_map(|to| mailbox(&HeaderAddress { name: None, address: Some((*to).to_owned()) }))
        .collect();
    write_field("Bcc", &hidden, &mut out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(header.body);
    Ok(AddressedMail { bytes: out, is_shortened })
}

fn write_field(name: &str, mailboxes: &[Mailbox], out: &mut Vec<u8>) {
    if !mailboxes.is_empty() {
        write_mailboxes(name, mailboxes, out);
    }
}

fn mailbox(one: &HeaderAddress) -> Option<Mailbox> {
    let address: EmailAddress = one.address.as_deref()?.parse().ok()?;
    // A name that no header can carry is left out rather than the recipient.
    Mailbox::new(one.name.as_deref(), address.clone()).or_else(|_| Mailbox::new(None, address)).ok()
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
    fn whoever_is_no_recipient_is_taken_out_with_the_signature_over_it() {
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
