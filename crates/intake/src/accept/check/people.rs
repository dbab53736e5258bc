//! From whom, to whom.

use std::collections::HashSet;

use postway_domain::{EmailAddress, Mailbox, RecipientKind, address::split_list};
use postway_store::record::NewRecipient;

use crate::{
    accept::parse::request::{Addresses, MessageRequest, Text},
    limits::Limits,
    refusal::Findings,
};

/// Where the envelope says that failures go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReturnPath {
    /// Nowhere: the null sender.
    Null,
    /// To this address.
    Address(EmailAddress),
}

/// The recipients: as the mail names them, and as the envelope does.
#[derive(Debug, Default)]
pub(crate) struct Recipients {
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
}

impl Recipients {
    /// Each address once, as what it was named first.
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

    /// Each with the field that names it.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &EmailAddress)> {
        let lists = [("to", &self.to), ("cc", &self.cc), ("bcc", &self.bcc)];
        lists.into_iter().flat_map(|(field, list)| list.iter().map(move |mailbox| (field, mailbox.address())))
    }

    /// How many were named.
    pub(crate) fn len(&self) -> usize {
        self.to.len() + self.cc.len() + self.bcc.len()
    }
}

/// Checks the recipients; all their faults belong to `to`, `cc` or `bcc`.
pub(crate) fn recipients(
    request: &MessageRequest<'_>,
    limits: &Limits,
    findings: &mut Findings,
) -> Recipients {
    let count = |list: &Option<Addresses<'_>>| list.as_ref().map_or(0, |list| list.list.len());
    let given = count(&request.to) + count(&request.cc) + count(&request.bcc);
    if !fits(given, limits, findings) {
        return Recipients::default();
    }
    Recipients {
        to: mailboxes("to", request.to.as_ref(), findings),
        cc: mailboxes("cc", request.cc.as_ref(), findings),
        bcc: mailboxes("bcc", request.bcc.as_ref(), findings),
    }
}

/// Whether this is a number of recipients that a message may have.
pub(crate) fn fits(given: usize, limits: &Limits, findings: &mut Findings) -> bool {
    let max = limits.recipients_max;
    if given == 0 {
        findings.add("to", "give at least one recipient in to, cc or bcc");
    } else if given > max {
        findings.add("to", format!("there are {given} recipients in to, cc and bcc: use at most {max}"));
    }
    (1..=max).contains(&given)
}

/// Checks the addresses that answers go to: those of `reply_to`, or, as many write it, of a header of that name.
pub(crate) fn reply_to(
    request: &MessageRequest<'_>,
    limits: &Limits,
    findings: &mut Findings,
) -> Vec<Mailbox> {
    let max = limits.reply_to_max;
    let header = reply_to_header(request);
    let (field, given) = match &request.reply_to {
        Some(given) => ("reply_to", Some(given)),
        None => ("headers.Reply-To", header.as_ref()),
    };
    match given {
        Some(given) if given.list.len() > max => {
            findings.add(field, format!("there are {} addresses: use at most {max}", given.list.len()));
            Vec::new()
        }
        given => mailboxes(field, given, findings),
    }
}

/// What stands for `reply_to` where that is not given.
fn reply_to_header<'a>(request: &'a MessageRequest<'_>) -> Option<Addresses<'a>> {
    let mut headers = request.headers.iter().flat_map(|headers| &headers.0);
    let (_, line) = headers.find(|(name, _)| is_reply_to(name))?;
    let list = split_list(line).into_iter().map(|one| Text(one.into())).collect();
    Some(Addresses { list, single: true })
}

/// Whether a header says where answers go.
pub(crate) fn is_reply_to(name: &str) -> bool {
    name.eq_ignore_ascii_case("Reply-To")
}

/// Checks one mailbox that must be there.
pub(crate) fn mailbox(field: &str, given: Option<&str>, findings: &mut Findings) -> Option<Mailbox> {
    match given {
        Some(text) => findings.take(field, text.parse()),
        None => {
            findings.add(field, "is missing: give an address such as Shop <shop@example.com>");
            None
        }
    }
}

/// Checks the envelope sender, if the request has one.
pub(crate) fn return_path(request: &MessageRequest<'_>, findings: &mut Findings) -> Option<ReturnPath> {
    match request.return_path.as_deref()? {
        "" | "<>" => Some(ReturnPath::Null),
        text => findings.take("return_path", text.parse()).map(ReturnPath::Address),
    }
}

fn mailboxes(field: &str, given: Option<&Addresses<'_>>, findings: &mut Findings) -> Vec<Mailbox> {
    let Some(given) = given else { return Vec::new() };
    let mut mailboxes = Vec::with_capacity(given.list.len());
    for (index, text) in given.list.iter().enumerate() {
        match text.parse::<Mailbox>() {
            Ok(mailbox) => mailboxes.push(mailbox),
            Err(error) if given.single => findings.add(field, error.to_string()),
            Err(error) => findings.add(format!("{field}[{index}]"), error.to_string()),
        }
    }
    mailboxes
}
