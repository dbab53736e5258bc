//! Checking a request: field by field, every fault collected.
//!
//! What comes out is right by its types. Three leaves: [`terms`] (when, by which account, under which names), [`people`]
//! (from whom, to whom) and [`content`] (what it says).

mod content;
mod people;
mod terms;

use std::sync::Arc;

use postway_domain::{Mailbox, Time};

pub(crate) use content::Content;
pub(crate) use people::{Recipients, ReturnPath, fits, recipients};
use people::{mailbox, return_path};
pub(crate) use terms::{Terms, terms};

use crate::{
    directory::{Lookup, Route},
    limits::Limits,
    refusal::{Findings, Refusal},
    request::MessageRequest,
};

/// A message without a fault, ready to be composed.
pub(crate) struct Checked<'a> {
    pub route: Arc<Route>,
    pub terms: Terms,
    pub from: Mailbox,
    pub return_path: Option<ReturnPath>,
    pub recipients: Recipients,
    pub reply_to: Vec<Mailbox>,
    pub content: Content<'a>,
}

/// Checks all of a request, or says all that is wrong with it.
pub(crate) fn check<'a>(
    request: &'a MessageRequest<'a>,
    route: Lookup,
    limits: &Limits,
    now: Time,
) -> Result<Checked<'a>, Refusal> {
    let mut findings = Findings::default();
    not_yet(request, &mut findings);
    let from = mailbox("from", request.from.as_deref(), &mut findings);
    let recipients = recipients(request, limits, &mut findings);
    let reply_to = people::reply_to(request, limits, &mut findings);
    let return_path = return_path(request, &mut findings);
    let content = content::content(request, limits, &mut findings)?;
    let route = findings.take("account", route);
    let terms = terms(request, limits, now, &mut findings);
    match (route, from) {
        (Some(route), Some(from)) if findings.is_empty() => {
            Ok(Checked { route, terms, from, return_path, recipients, reply_to, content })
        }
        _ => Err(findings.into_refusal()),
    }
}

/// Refuses what the documentation knows and this version does not, rather than to send a mail without it.
fn not_yet(request: &MessageRequest<'_>, findings: &mut Findings) {
    for (field, given) in [
        ("template", request.template.is_some()),
        ("recipient", request.recipient.is_some()),
        ("sensitive", request.sensitive == Some(true)),
    ] {
        if given {
            findings.add(field, "not available in this version");
        }
    }
}
