//! The mail in the form that a provider accepts.
//!
//! A header may name more people than the recipients of this call: suppressed ones, and those that have the
//! mail already. A provider that reads recipients from fields or from the header would send to them, so they
//! are not named to it.

use std::{borrow::Cow, collections::HashMap};

use postway_domain::{EmailAddress, MessageUid, failure::SendFailure};
use postway_mime::{
    addressed::address_mail,
    dissected::{DissectedMail, dissect},
    downgrade::RelayLacks,
};
use serde_json::Value;

use super::api::unsupported_content;
use crate::transport::{
    MailEnvelope, RecipientReply, fitted_mail::FittedMail, recipient_list::RecipientBound,
};

/// The name under which a provider gets our id of a message, so that its events have it.
pub(super) const UID_FIELD: &str = "postway_id";

/// The form in which a provider accepts mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProviderMailForm {
    /// The mail unchanged, and the recipients beside it.
    Enveloped,
    /// The mail with a header that names exactly the recipients.
    Addressed,
    /// Separate fields for subject, text, files and so on.
    Fields,
}

/// A mail for one call.
pub(super) struct ProviderMail<'a> {
    /// Postway's id of the message.
    pub uid: MessageUid,
    /// The same for each call with this mail and these recipients, and different for any other.
    pub idempotency_key: String,
    /// The envelope sender.
    pub sender: &'a str,
    /// The recipients of this call.
    pub recipients: &'a [&'a str],
    /// The bytes of the mail, addressed to the recipients if the form asks for it.
    pub raw: Cow<'a, [u8]>,
    /// The fields of the mail, if the form asks for them.
    pub fields: Option<FieldedMail<'a>>,
}

/// A mail in fields, with the recipients of this call.
pub(super) struct FieldedMail<'a> {
    pub content: DissectedMail<'a>,
    /// The recipients in `To`; never empty.
    pub to: Vec<ProviderRecipient>,
    pub cc: Vec<ProviderRecipient>,
    /// The recipients that the header does not name.
    pub bcc: Vec<ProviderRecipient>,
}

/// A recipient with the display name from the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProviderRecipient {
    pub name: Option<String>,
    pub address: String,
}

impl ProviderRecipient {
    /// The recipient as a header writes it: `"Doe, Jane" <jane@example.org>`.
    pub fn written(&self) -> String {
        match self.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => {
                format!("\"{}\" <{}>", name.replace('\\', "\\\\").replace('"', "\\\""), self.address)
            }
            None => self.address.clone(),
        }
    }
}

/// The mail converted for a service without SMTPUTF8; `None` if it is to be sent unchanged.
pub(super) fn fit_for_provider(
    envelope: &MailEnvelope<'_>,
    body: &[u8],
    form: ProviderMailForm,
) -> Option<FittedMail> {
    match form {
        // Fields are Unicode text, whatever the charset of the header.
        ProviderMailForm::Fields => None,
        ProviderMailForm::Enveloped | ProviderMailForm::Addressed => {
            FittedMail::new(envelope, body, RelayLacks { eight_bit_mime: false, smtputf8: true })
        }
    }
}

/// Splits a mail into fields.
pub(super) fn split_into_fields<'a>(
    body: &'a [u8],
    provider: &str,
) -> Result<DissectedMail<'a>, SendFailure> {
    dissect(body).map_err(|error| {
        unsupported_content(format!(
            "{provider} takes no MIME, and this mail cannot be put into its fields: {error}"
        ))
    })
}

/// The mail with a header that names exactly these recipients.
pub(super) fn address_to<'a>(body: &[u8], recipients: &[&str]) -> Result<Cow<'a, [u8]>, SendFailure> {
    let made = address_mail(body, recipients).map_err(|error| unsupported_content(error.to_string()))?;
    Ok(Cow::Owned(made.bytes))
}

/// Divides the recipients of a call by where the header names them. An API of fields needs at least one
/// address in `to`, so recipients in `Cc` move there if it is empty. Recipients that the header does not name
/// get one call each, because in `to` the others would see them; all but the first are deferred in
/// `recipients`, and `named` keeps only the first.
pub(super) fn divide_recipients<'a>(
    content: DissectedMail<'a>,
    named: &mut Vec<&str>,
    envelope: &MailEnvelope<'_>,
    bound: &RecipientBound,
    recipients: &mut [RecipientReply],
) -> FieldedMail<'a> {
    let keyed = |list: &[postway_mime::reader::HeaderAddress]| -> HashMap<String, Option<String>> {
        let with_key = |one: &postway_mime::reader::HeaderAddress| {
            Some((EmailAddress::key_of(one.address.as_deref()?), one.name.clone()))
        };
        list.iter().filter_map(with_key).collect()
    };
    let (in_to, in_cc) = (keyed(&content.to), keyed(&content.cc));
    let (mut to, mut cc, mut bcc) = (Vec::new(), Vec::new(), Vec::new());
    for address in named.iter() {
        let key = EmailAddress::key_of(address);
        let (list, name) = match (in_to.get(&key), in_cc.get(&key)) {
            (Some(name), _) => (&mut to, name.clone()),
            (None, Some(name)) => (&mut cc, name.clone()),
            (None, None) => (&mut bcc, None),
        };
        list.push(ProviderRecipient { name, address: (*address).to_owned() });
    }
    if to.is_empty() {
        to = std::mem::take(&mut cc);
    }
    if to.is_empty() && !bcc.is_empty() {
        to.push(bcc.remove(0));
        bcc.clear();
        let alone = to[0].address.clone();
        named.retain(|address| *address == alone);
        named.truncate(1);
        let mut is_first = true;
        for (address, reply) in envelope.recipients.iter().zip(recipients) {
            if !reply.is_accepted() {
                continue;
            }
            let stays = *address == alone && is_first;
            is_first &= !stays;
            if !stays {
                *reply = bound.deferral();
            }
        }
    }
    FieldedMail { content, to, cc, bcc }
}

/// The other header fields as an object, for providers that accept each name once.
pub(super) fn header_object(
    headers: &[(String, String)],
    provider: &str,
) -> Result<serde_json::Map<String, Value>, SendFailure> {
    let mut object = serde_json::Map::new();
    for (name, value) in headers {
        if object.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(unsupported_content(format!(
                "{provider} takes each header field once, and the mail has several of {name}"
            )));
        }
        object.insert(name.clone(), Value::from(value.as_str()));
    }
    Ok(object)
}

/// Refuses alternatives of the body other than text and html.
pub(super) fn refuse_alternatives(content: &DissectedMail<'_>, provider: &str) -> Result<(), SendFailure> {
    match content.alternatives.first() {
        Some((kind, _)) => Err(unsupported_content(format!(
            "{provider} takes text and html, and the mail has {kind} beside them"
        ))),
        None => Ok(()),
    }
}
