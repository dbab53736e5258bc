//! Mailing list servers that refuse a mail: fml, Majordomo and the like. The recipient is the list.

use super::super::address;
use super::super::bytes::{find, lines};
use super::super::partial_finding::PartialFinding;
use super::super::reason::ReportReason;
use super::super::report::ReportedAction;
use super::ReportText;

pub(super) fn recognise(text: &ReportText<'_>) -> Option<Vec<PartialFinding>> {
    let server = text.mail.header().get(b"x-mlserver")?;
    find(server, b"fml")?;
    let from = address::first(text.mail.header().get(b"from")?)?;
    if !from.contains("-admin@") && !from.starts_with("fml") {
        // This is a mail to the list.
        return None;
    }
    let refusals: [(&[u8], ReportReason); 7] = [
        (b"you are not a member of this mailing list", ReportReason::SenderRejected),
        (b"are not member", ReportReason::SenderRejected),
        (b"you are not allowed to post", ReportReason::SenderRejected),
        (b"duplicated message-id", ReportReason::SystemError),
        (b"loop back", ReportReason::SystemError),
        (b"fml server detected a loop", ReportReason::SystemError),
        (b"the mail is too big", ReportReason::MessageTooBig),
    ];
    let (phrase, reason) = refusals.into_iter().find(|(phrase, _)| text.says(phrase))?;
    let line = lines(text.report).find(|line| find(line, phrase).is_some())?;
    let address = address::first(line).or_else(|| address::first(text.report))?;
    let mut finding = PartialFinding::new(address, line);
    finding.reason = Some(reason);
    finding.action = Some(ReportedAction::Failed);
    Some(vec![finding])
}
