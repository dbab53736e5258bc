//! Checks the sender, the recipients, Reply-To and the envelope sender.

use std::collections::HashSet;

use postway_domain::{EmailAddress, NamedAddress, RecipientKind, address::split_list};
use postway_store::record::NewRecipient;

use crate::{
    accept::parse::request::{AddressList, JsonText, MessageInput},
    limits::IntakeLimits,
    refusal::FieldFaults,
};

/// The envelope sender that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReturnPath {
    /// The null sender: no bounces are sent.
    Null,
    /// This address.
    Address(EmailAddress),
}

/// The recipients of a message.
#[derive(Debug, Default)]
pub(crate) struct CheckedRecipients {
    pub to: Vec<NamedAddress>,
    pub cc: Vec<NamedAddress>,
    pub bcc: Vec<NamedAddress>,
}

impl CheckedRecipients {
    /// The envelope recipients: each address once, with the kind under which it was named first.
    pub(crate) fn envelope(&self) -> Vec<NewRecipient> {
        let named =
            [(RecipientKind::To, &self.to), (RecipientKind::Cc, &self.cc), (RecipientKind::Bcc, &self.bcc)];
        let all = named
            .into_iter()
            .flat_map(|(kind, list)| list.iter().map(move |mailbox| (kind, mailbox.address())));
        let mut seen = HashSet::with_capacity(self.len());
        all.filter(|(_, address)| seen.insert(*address))
            .map(|(kind, address)| NewRecipient { address: address.clone(), kind })
            .collect()
    }

    /// All recipients, each with the field that names it.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &EmailAddress)> {
        let lists = [("to", &self.to), ("cc", &self.cc), ("bcc", &self.bcc)];
        lists.into_iter().flat_map(|(field, list)| list.iter().map(move |mailbox| (field, mailbox.address())))
    }

    /// The number of recipients, duplicates included.
    pub(crate) fn len(&self) -> usize {
        self.to.len() + self.cc.len() + self.bcc.len()
    }
}

/// Checks the recipients; their faults belong to `to`, `cc` or `bcc`.
pub(crate) fn recipients(
    request: &MessageInput<'_>,
    limits: &IntakeLimits,
    errors: &mut FieldFaults,
) -> CheckedRecipients {
    let count = |list: &Option<AddressList<'_>>| list.as_ref().map_or(0, |list| list.list.len());
    let given = count(&request.to) + count(&request.cc) + count(&request.bcc);
    if !check_recipient_count(given, limits, errors) {
        return CheckedRecipients::default();
    }
    CheckedRecipients {
        to: mailboxes("to", request.to.as_ref(), errors),
        cc: mailboxes("cc", request.cc.as_ref(), errors),
        bcc: mailboxes("bcc", request.bcc.as_ref(), errors),
    }
}

/// Checks the number of recipients; `false` if a fault was added.
pub(crate) fn check_recipient_count(given: usize, limits: &IntakeLimits, errors: &mut FieldFaults) -> bool {
    let max = limits.recipients_max;
    if given == 0 {
        errors.add("to", "give at least one recipient in to, cc or bcc");
    } else if given > max {
        errors.add("to", format!("there are {given} recipients in to, cc and bcc: use at most {max}"));
    }
    (1..=max).contains(&given)
}

/// Checks the addresses of `reply_to`, or of a header `Reply-To`, which many clients use instead.
pub(crate) fn reply_to(
    request: &MessageInput<'_>,
    limits: &IntakeLimits,
    errors: &mut FieldFaults,
) -> Vec<NamedAddress> {
    let max = limits.reply_to_max;
    let header = reply_to_header(request);
    let (field, given) = match &request.reply_to {
        Some(given) => ("reply_to", Some(given)),
        None => ("headers.Reply-To", header.as_ref()),
    };
    match given {
        Some(given) if given.list.len() > max => {
            errors.add(field, format!("there are {} addresses: use at most {max}", given.list.len()));
            Vec::new()
        }
        given => mailboxes(field, given, errors),
    }
}

/// The addresses of the header `Reply-To`.
fn reply_to_header<'a>(request: &'a MessageInput<'_>) -> Option<AddressList<'a>> {
    let mut headers = request.headers.iter().flat_map(|headers| &headers.0);
    let (_, line) = headers.find(|(name, _)| is_reply_to(name))?;
    let list = split_list(line).into_iter().map(|one| JsonText(one.into())).collect();
    Some(AddressList { list, single: true })
}

/// Whether a header is `Reply-To`.
pub(crate) fn is_reply_to(name: &str) -> bool {
    name.eq_ignore_ascii_case("Reply-To")
}

/// Checks a mailbox that is required.
pub(crate) fn mailbox(field: &str, given: Option<&str>, errors: &mut FieldFaults) -> Option<NamedAddress> {
    match given {
        Some(text) => errors.take(field, text.parse()),
        None => {
            errors.add(field, "is missing: give an address such as Shop <shop@example.com>");
            None
        }
    }
}

/// Checks the envelope sender, if the request has one.
pub(crate) fn return_path(request: &MessageInput<'_>, errors: &mut FieldFaults) -> Option<ReturnPath> {
    match request.return_path.as_deref()? {
        "" | "<>" => Some(ReturnPath::Null),
        text => errors.take("return_path", text.parse()).map(ReturnPath::Address),
    }
}

fn mailboxes(field: &str, given: Option<&AddressList<'_>>, errors: &mut FieldFaults) -> Vec<NamedAddress> {
    let Some(given) = given else { return Vec::new() };
    let mut mailboxes = Vec::with_capacity(given.list.len());
    for (index, text) in given.list.iter().enumerate() {
        match text.parse::<NamedAddress>() {
            Ok(mailbox) => mailboxes.push(mailbox),
            Err(error) if given.single => errors.add(field, error.to_string()),
            Err(error) => errors.add(format!("{field}[{index}]"), error.to_string()),
        }
    }
    mailboxes
}
