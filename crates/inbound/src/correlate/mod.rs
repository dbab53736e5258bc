//! Finds the message that a report is about.
//!
//! The search goes in this order: the envelope sender that Postway signed, to which a report comes back or
//! which it repeats; Postway's id in the returned header, or as the ENVID of the mail; the returned
//! Message-ID, which contains Postway's id or was given by the provider; the Message-ID that the mail already
//! had, if no other message of the tenant has it; the recipient, if exactly one message of the last days went
//! to it.
//!
//! The first three are [`ReportProof`] that the report's author has seen the message: neither signatures nor
//! ids can be guessed. A Message-ID made by another system can be guessed, so it finds the message and proves
//! nothing. Every recipient has seen the message too, and could forge a report about the other recipients;
//! only the signed envelope sender of a single recipient rules that out. The last two ways change nothing:
//! they give an unproven report.
//!
//! A mailbox reports only on messages of its own tenant, unless an operator allowed all tenants.

pub(crate) mod findings;
mod pec;
mod reply;

use std::time::Duration;

use postway_domain::{
    MessageUid, TenantId, Time,
    verp::{VerpAddress, VerpKey, VerpScope},
};
use postway_mime::received::ReceivedReport;
use postway_store::{
    Store, StoreError,
    record::{MessageFilter, MessageSummary, TracedMessage, message_id_label},
};

pub(crate) use self::{
    findings::findings,
    pec::{ReceiptContext, receipt},
    reply::{answered, reply},
};
use crate::mail::ParsedMail;

/// How long after a message its reports arrive, if nothing but the recipient is known.
const WINDOW: Duration = Duration::from_secs(5 * 86_400);
/// The most messages to one recipient that are considered.
const CANDIDATES_MAX: u32 = 20;
/// Fields that name the address to which a mail was delivered.
const DELIVERED_TO: [&str; 5] = ["Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To", "To"];
/// The most addresses of a report that are tried as signed envelope senders. A genuine report repeats the
/// same one a few times.
const SIGNED_MAX: usize = 16;
/// The domain of the Message-IDs that SES gives.
const SES_DOMAIN: &str = "amazonses.com";
/// The longest foreign Message-ID that is searched for.
const FOREIGN_ID_BYTES_MAX: usize = 512;
/// The length of a uid in characters.
const UID_CHARS: usize = 36;

/// How a report was matched with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportProof {
    /// By the signed envelope sender, which only the one recipient of the message has seen.
    Verp,
    /// By the signed envelope sender, which several recipients share, or which does not name its recipient.
    SharedVerp,
    /// By our id in the returned header, or as the ENVID that the mail was sent with.
    PostwayId,
    /// By the returned Message-ID.
    MessageId,
    /// By the returned Message-ID, which another system had made.
    ForeignMessageId,
    /// By the recipient and the time alone.
    Recipient,
    /// By an event that the provider signed, about mail that its own account sent.
    Provider,
}

impl ReportProof {
    /// The name in the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Verp => "verp",
            Self::SharedVerp => "verp_shared",
            Self::PostwayId => "postway_id",
            Self::MessageId => "message_id",
            Self::ForeignMessageId => "foreign_message_id",
            Self::Recipient => "recipient_only",
            Self::Provider => "provider",
        }
    }
}

/// The tenants on whose messages a mailbox may report.
pub(crate) struct TenantScope<'a> {
    pub tenant: &'a TenantId,
    pub all_tenants: bool,
}

impl TenantScope<'_> {
    /// Whether this message belongs to them.
    pub(crate) fn contains(&self, traced: &TracedMessage) -> bool {
        self.all_tenants || traced.tenant == *self.tenant
    }
}

/// Finds the message that a report is about.
pub(crate) async fn correlate(
    store: &dyn Store,
    verp_key: &VerpKey,
    scope: &TenantScope<'_>,
    mail: &ParsedMail<'_>,
    report: &ReceivedReport,
    now: Time,
) -> Result<Option<(TracedMessage, ReportProof)>, StoreError> {
    let claims = claims(mail, report);
    let uids: Vec<MessageUid> = claims.iter().map(ReportClaim::uid).collect();
    if !uids.is_empty() {
        let known = store.traced(&uids).await?;
        for claim in claims {
            let traced = known.iter().find(|traced| traced.uid == claim.uid() && scope.contains(traced));
            if let Some(traced) = traced
                && let Some(proof) = claim.proof(traced, verp_key)
            {
                return Ok(Some((traced.clone(), proof)));
            }
        }
    }
    if let Some(traced) = by_provider_id(store, scope, report).await? {
        return Ok(Some((traced, ReportProof::MessageId)));
    }
    if let Some(id) = report.original.message_id.as_deref()
        && let Some(traced) = by_foreign_id(store, scope, id).await?
    {
        return Ok(Some((traced, ReportProof::ForeignMessageId)));
    }
    let guessed = by_recipient(store, scope, report, now).await?;
    Ok(guessed.map(|traced| (traced, ReportProof::Recipient)))
}

/// A report's claim to be about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReportClaim {
    /// By an address in the form of a signed envelope sender.
    Signed(VerpAddress),
    /// By an id of Postway.
    Named(MessageUid, ReportProof),
}

impl ReportClaim {
    fn uid(&self) -> MessageUid {
        match self {
            Self::Signed(address) => address.uid(),
            Self::Named(uid, _) => *uid,
        }
    }

    /// What the claim proves, given the message; `None` if it was forged.
    fn proof(&self, traced: &TracedMessage, verp_key: &VerpKey) -> Option<ReportProof> {
        match self {
            Self::Named(_, proof) => Some(*proof),
            // The recipients are not known any more, and nothing is written about the message.
            Self::Signed(_) if traced.gone => Some(ReportProof::SharedVerp),
            Self::Signed(address) => Some(match address.scope(verp_key, &traced.recipients)? {
                VerpScope::Recipient => ReportProof::Verp,
                VerpScope::Message => ReportProof::SharedVerp,
            }),
        }
    }
}

/// The claims of a report, the best proof first.
fn claims(mail: &ParsedMail<'_>, report: &ReceivedReport) -> Vec<ReportClaim> {
    let original = &report.original;
    let delivered = DELIVERED_TO.into_iter().flat_map(|name| mail.people(name)).map(|person| person.address);
    let mut signed: Vec<VerpAddress> = delivered
        .chain(original.return_path.clone())
        .filter_map(|address| VerpAddress::read(address.trim_matches(['<', '>', ' '])))
        .take(SIGNED_MAX)
        .collect();
    signed.dedup();
    let postway_id = original.postway_id.as_deref().and_then(uid);
    let envelope_id = original.envelope_id.as_deref().and_then(uid);
    let message_id = original.message_id.as_deref().and_then(uid_in);
    let signed = signed.into_iter().map(ReportClaim::Signed);
    let named = postway_id.map(|uid| ReportClaim::Named(uid, ReportProof::PostwayId));
    let replied = message_id.map(|uid| ReportClaim::Named(uid, ReportProof::MessageId));
    let asked = envelope_id.map(|uid| ReportClaim::Named(uid, ReportProof::PostwayId));
    signed.chain(named).chain(asked).chain(replied).collect()
}

fn uid(text: &str) -> Option<MessageUid> {
    let text = text.trim();
    (text.len() == UID_CHARS).then(|| text.parse().ok())?
}

/// Postway's id in a Message-ID `uid@domain`.
fn uid_in(message_id: &str) -> Option<MessageUid> {
    message_id.split_once('@').and_then(|(local, _)| uid(local))
}

/// The message to which SES gave this Message-ID.
async fn by_provider_id(
    store: &dyn Store,
    scope: &TenantScope<'_>,
    report: &ReceivedReport,
) -> Result<Option<TracedMessage>, StoreError> {
    let given = report.original.message_id.as_deref().and_then(|id| id.split_once('@'));
    let is_ses = |domain: &str| {
        let tail = domain.len().checked_sub(SES_DOMAIN.len()).and_then(|at| domain.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(SES_DOMAIN))
    };
    let Some((local, _)) = given.filter(|(_, domain)| is_ses(domain)) else { return Ok(None) };
    let filter = MessageFilter { provider_message_id: Some(local.to_owned()), ..MessageFilter::default() };
    let found = store.messages(scope.tenant, &filter, None, 1).await?;
    trace(store, scope, found.first()).await
}

/// The only message of the tenant that came with this Message-ID. If two messages have it, as when a server
/// splits the recipients of a mail, it identifies neither.
pub(crate) async fn by_foreign_id(
    store: &dyn Store,
    scope: &TenantScope<'_>,
    message_id: &str,
) -> Result<Option<TracedMessage>, StoreError> {
    let message_id = message_id.trim().trim_start_matches('<').trim_end_matches('>');
    if !message_id.contains('@') || message_id.len() > FOREIGN_ID_BYTES_MAX {
        return Ok(None);
    }
    let filter = MessageFilter { tag: Some(message_id_label(message_id)), ..MessageFilter::default() };
    match store.messages(scope.tenant, &filter, None, 2).await?.as_slice() {
        [only] => trace(store, scope, Some(only)).await,
        _ => Ok(None),
    }
}

/// The only message of the last days that went to the report's first recipient, with the report's subject if
/// several did.
async fn by_recipient(
    store: &dyn Store,
    scope: &TenantScope<'_>,
    report: &ReceivedReport,
    now: Time,
) -> Result<Option<TracedMessage>, StoreError> {
    // The other recipients of a report belong to the same message.
    let Some(finding) = report.recipients.first() else { return Ok(None) };
    for address in [finding.original_address.as_deref(), Some(finding.address.as_str())].into_iter().flatten()
    {
        let filter = MessageFilter {
            recipient: Some(address.to_owned()),
            since: Some(now.minus(WINDOW)),
            ..MessageFilter::default()
        };
        let mut found = store.messages(scope.tenant, &filter, None, CANDIDATES_MAX).await?;
        found.retain(|message| message.sent_at.is_some());
        if found.len() > 1
            && let Some(subject) = report.original.subject.as_deref().map(str::trim)
        {
            found.retain(|message| message.subject.trim() == subject);
        }
        if let [only] = found.as_slice() {
            return trace(store, scope, Some(only)).await;
        }
    }
    Ok(None)
}

async fn trace(
    store: &dyn Store,
    scope: &TenantScope<'_>,
    message: Option<&MessageSummary>,
) -> Result<Option<TracedMessage>, StoreError> {
    let Some(message) = message else { return Ok(None) };
    let traced = store.traced(&[message.uid]).await?;
    Ok(traced.into_iter().find(|traced| scope.contains(traced)))
}

#[cfg(test)]
mod tests {
    use postway_domain::{secret::SecretKey, verp};
    use postway_mime::received::inspect;

    use super::*;

    fn uid() -> MessageUid {
        "0190a4c2-7b3e-7def-8123-456789abcdef".parse().unwrap()
    }

    fn traced(recipients: &[&str], gone: bool) -> TracedMessage {
        TracedMessage {
            uid: uid(),
            tenant: "default".parse().unwrap(),
            created_at: Time::from_millis(0),
            recipients: recipients.iter().map(|one| (*one).to_owned()).collect(),
            sender: String::new(),
            gone,
        }
    }

    #[test]
    fn what_is_signed_counts_before_what_is_named() {
        let key = VerpKey::new(&SecretKey::from_bytes(&[7; 32]).unwrap());
        let signed = verp::encode(uid(), Some("a@example.org"), &key, "b.example.net");
        let other = "0190a4c2-7b3e-7def-8123-000000000000";
        let raw = format!(
            "From: MAILER-DAEMON@example.org\nTo: {signed}\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n\
             --b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nFinal-Recipient: rfc822; a@example.org\n\
             Action: failed\nStatus: 5.1.1\n\n--b\nContent-Type: message/rfc822\n\nX-Postway-ID: {other}\nMessage-ID: <{other}@x.example>\n\n--b--\n"
        );
        let claims = claims(&ParsedMail::new(raw.as_bytes()), &inspect(raw.as_bytes()));
        let other = other.parse().unwrap();
        assert_eq!(
            claims[1..],
            [
                ReportClaim::Named(other, ReportProof::PostwayId),
                ReportClaim::Named(other, ReportProof::MessageId)
            ]
        );
        assert_eq!(claims[0].uid(), uid());
        let proof = |recipients: &[&str], gone| claims[0].proof(&traced(recipients, gone), &key);
        assert_eq!(proof(&["a@example.org"], false), Some(ReportProof::Verp));
        assert_eq!(proof(&["b@example.org"], false), None);
        assert_eq!(proof(&[], true), Some(ReportProof::SharedVerp));
    }

    #[test]
    fn a_complaint_is_proven_by_the_envelope_sender_that_it_repeats() {
        let key = VerpKey::new(&SecretKey::from_bytes(&[7; 32]).unwrap());
        let signed = verp::encode(uid(), Some("a@example.org"), &key, "b.example.net");
        let raw = format!(
            "From: fbl@isp.example\nTo: abuse@example.net\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n\
             --b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nOriginal-Mail-From: <{signed}>\n\n--b--\n"
        );
        let claims = claims(&ParsedMail::new(raw.as_bytes()), &inspect(raw.as_bytes()));
        let proofs: Vec<_> =
            claims.iter().map(|one| one.proof(&traced(&["a@example.org"], false), &key)).collect();
        assert_eq!(proofs, [Some(ReportProof::Verp)]);
    }

    #[test]
    fn only_whole_uids_are_read_out_of_ids() {
        assert_eq!(uid_in("0190a4c2-7b3e-7def-8123-456789abcdef@example.net"), Some(uid()));
        for other in
            ["0190a4c27b3e7def8123456789abcdef@x", "x@y", "", "@", "0190a4c2-7b3e-7def-8123-456789abcdef"]
        {
            assert_eq!(uid_in(other), None, "{other}");
        }
    }
}
