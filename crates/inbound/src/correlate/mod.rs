//! From a report to the message that it is about.
//!
//! In this order: the envelope sender that we signed, which a report comes back to or repeats; our id in the returned header;
//! the returned Message-ID, which holds our id, or is the one that the provider gave; the Message-ID that the mail brought
//! along, where no other message of the tenant has it; the recipient, where exactly one message of the last days went to it.
//! The first three are [`Proof`] that the report's author has seen the message: neither signatures nor ids can be guessed. A
//! Message-ID that somebody else made can be, so it finds the message and proves nothing. Whoever got the message has seen it too, and could write a report about its other
//! recipients. Only the signed envelope sender of a single recipient rules that out. The last two
//! change nothing: they are told as a report without proof.
//!
//! A mailbox tells about messages of its own tenant only, unless an operator said otherwise.

mod findings;
mod pec;
mod reply;

use std::time::Duration;

use postway_domain::{
    MessageUid, TenantId, Time,
    verp::{VerpAddress, VerpKey, VerpScope},
};
use postway_mime::received::Report;
use postway_store::{
    Store, StoreError,
    record::{Filter, MessageSummary, Traced, message_id_label},
};

pub(crate) use self::{
    findings::findings,
    pec::{Receipts, receipt},
    reply::{answered, reply},
};
use crate::mail::Mail;

/// How long after a message its reports come, where nothing but the recipient is known.
const WINDOW: Duration = Duration::from_secs(5 * 86_400);
/// How many messages to one recipient are looked at.
const CANDIDATES_MAX: u32 = 20;
/// Fields that name the address that a mail was delivered to.
const DELIVERED_TO: [&str; 5] = ["Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To", "To"];
/// How many addresses of a report are tried as signed envelope senders. A genuine one has the same one a few times.
const SIGNED_MAX: usize = 16;
/// The domain of Message-IDs that SES gives.
const SES_DOMAIN: &str = "amazonses.com";
/// The longest Message-ID of others that is looked for.
const FOREIGN_ID_BYTES_MAX: usize = 512;
/// Characters of a uid.
const UID_CHARS: usize = 36;

/// How a report was connected with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// By the signed envelope sender, which only the one recipient of the message has seen.
    Verp,
    /// By the signed envelope sender, which several recipients share, or which does not name its recipient yet.
    SharedVerp,
    /// By our id in the returned header.
    PostwayId,
    /// By the returned Message-ID.
    MessageId,
    /// By the returned Message-ID, which somebody else had made.
    ForeignMessageId,
    /// By the recipient and the time alone.
    Recipient,
}

impl Proof {
    /// The word users see.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Verp => "verp",
            Self::SharedVerp => "verp_shared",
            Self::PostwayId => "postway_id",
            Self::MessageId => "message_id",
            Self::ForeignMessageId => "foreign_message_id",
            Self::Recipient => "recipient_only",
        }
    }
}

/// Whose messages a mailbox may tell about.
pub(crate) struct Realm<'a> {
    pub tenant: &'a TenantId,
    pub all_tenants: bool,
}

impl Realm<'_> {
    /// Whether this message is among them.
    pub(crate) fn holds(&self, traced: &Traced) -> bool {
        self.all_tenants || traced.tenant == *self.tenant
    }
}

/// Finds the message that a report is about.
pub(crate) async fn correlate(
    store: &dyn Store,
    verp_key: &VerpKey,
    realm: &Realm<'_>,
    mail: &Mail<'_>,
    report: &Report,
    now: Time,
) -> Result<Option<(Traced, Proof)>, StoreError> {
    let claims = claims(mail, report);
    let uids: Vec<MessageUid> = claims.iter().map(ReportClaim::uid).collect();
    if !uids.is_empty() {
        let known = store.traced(&uids).await?;
        for claim in claims {
            let traced = known.iter().find(|traced| traced.uid == claim.uid() && realm.holds(traced));
            if let Some(traced) = traced
                && let Some(proof) = claim.proof(traced, verp_key)
            {
                return Ok(Some((traced.clone(), proof)));
            }
        }
    }
    if let Some(traced) = by_provider_id(store, realm, report).await? {
        return Ok(Some((traced, Proof::MessageId)));
    }
    if let Some(id) = report.original.message_id.as_deref()
        && let Some(traced) = by_foreign_id(store, realm, id).await?
    {
        return Ok(Some((traced, Proof::ForeignMessageId)));
    }
    let guessed = by_recipient(store, realm, report, now).await?;
    Ok(guessed.map(|traced| (traced, Proof::Recipient)))
}

/// A message that a report says it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReportClaim {
    /// By an address in the form of a signed envelope sender.
    Signed(VerpAddress),
    /// By an id.
    Named(MessageUid, Proof),
}

impl ReportClaim {
    fn uid(&self) -> MessageUid {
        match self {
            Self::Signed(address) => address.uid(),
            Self::Named(uid, _) => *uid,
        }
    }

    /// What it is worth, given the message; `None` if it was forged.
    fn proof(&self, traced: &Traced, verp_key: &VerpKey) -> Option<Proof> {
        match self {
            Self::Named(_, proof) => Some(*proof),
            // Who its recipients were is not known any more, and nothing is written about it.
            Self::Signed(_) if traced.gone => Some(Proof::SharedVerp),
            Self::Signed(address) => Some(match address.scope(verp_key, &traced.recipients)? {
                VerpScope::Recipient => Proof::Verp,
                VerpScope::Message => Proof::SharedVerp,
            }),
        }
    }
}

/// The messages that a report says it is about, the best proof first.
fn claims(mail: &Mail<'_>, report: &Report) -> Vec<ReportClaim> {
    let original = &report.original;
    let delivered = DELIVERED_TO.into_iter().flat_map(|name| mail.people(name)).map(|person| person.address);
    let mut signed: Vec<VerpAddress> = delivered
        .chain(original.return_path.clone())
        .filter_map(|address| VerpAddress::read(address.trim_matches(['<', '>', ' '])))
        .take(SIGNED_MAX)
        .collect();
    signed.dedup();
    let postway_id = original.postway_id.as_deref().and_then(uid);
    let message_id = original.message_id.as_deref().and_then(uid_in);
    let signed = signed.into_iter().map(ReportClaim::Signed);
    let named = postway_id.map(|uid| ReportClaim::Named(uid, Proof::PostwayId));
    let replied = message_id.map(|uid| ReportClaim::Named(uid, Proof::MessageId));
    signed.chain(named).chain(replied).collect()
}

fn uid(text: &str) -> Option<MessageUid> {
    let text = text.trim();
    (text.len() == UID_CHARS).then(|| text.parse().ok())?
}

/// Our id out of a Message-ID `uid@domain`.
fn uid_in(message_id: &str) -> Option<MessageUid> {
    message_id.split_once('@').and_then(|(local, _)| uid(local))
}

/// The message to which SES gave this Message-ID.
async fn by_provider_id(
    store: &dyn Store,
    realm: &Realm<'_>,
    report: &Report,
) -> Result<Option<Traced>, StoreError> {
    let given = report.original.message_id.as_deref().and_then(|id| id.split_once('@'));
    let is_ses = |domain: &str| {
        let tail = domain.len().checked_sub(SES_DOMAIN.len()).and_then(|at| domain.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(SES_DOMAIN))
    };
    let Some((local, _)) = given.filter(|(_, domain)| is_ses(domain)) else { return Ok(None) };
    let filter = Filter { provider_message_id: Some(local.to_owned()), ..Filter::default() };
    let found = store.messages(realm.tenant, &filter, None, 1).await?;
    trace(store, realm, found.first()).await
}

/// The one message of the tenant that brought this Message-ID along. Two with the same, as of a server that divides the recipients
/// of a mail, cannot be told apart by it.
pub(crate) async fn by_foreign_id(
    store: &dyn Store,
    realm: &Realm<'_>,
    message_id: &str,
) -> Result<Option<Traced>, StoreError> {
    let message_id = message_id.trim().trim_start_matches('<').trim_end_matches('>');
    if !message_id.contains('@') || message_id.len() > FOREIGN_ID_BYTES_MAX {
        return Ok(None);
    }
    let filter = Filter { tag: Some(message_id_label(message_id)), ..Filter::default() };
    match store.messages(realm.tenant, &filter, None, 2).await?.as_slice() {
        [only] => trace(store, realm, Some(only)).await,
        _ => Ok(None),
    }
}

/// The one message of the last days that went to the first recipient of the report, and has its subject where both tell.
async fn by_recipient(
    store: &dyn Store,
    realm: &Realm<'_>,
    report: &Report,
    now: Time,
) -> Result<Option<Traced>, StoreError> {
    // The others of a report are about the same message.
    let Some(finding) = report.recipients.first() else { return Ok(None) };
    for address in [finding.original_address.as_deref(), Some(finding.address.as_str())].into_iter().flatten()
    {
        let filter = Filter {
            recipient: Some(address.to_owned()),
            since: Some(now.minus(WINDOW)),
            ..Filter::default()
        };
        let mut found = store.messages(realm.tenant, &filter, None, CANDIDATES_MAX).await?;
        found.retain(|message| message.sent_at.is_some());
        if found.len() > 1
            && let Some(subject) = report.original.subject.as_deref().map(str::trim)
        {
            found.retain(|message| message.subject.trim() == subject);
        }
        if let [only] = found.as_slice() {
            return trace(store, realm, Some(only)).await;
        }
    }
    Ok(None)
}

async fn trace(
    store: &dyn Store,
    realm: &Realm<'_>,
    message: Option<&MessageSummary>,
) -> Result<Option<Traced>, StoreError> {
    let Some(message) = message else { return Ok(None) };
    let traced = store.traced(&[message.uid]).await?;
    Ok(traced.into_iter().find(|traced| realm.holds(traced)))
}

#[cfg(test)]
mod tests {
    use postway_domain::{secret::SecretKey, verp};
    use postway_mime::received::inspect;

    use super::*;

    fn uid() -> MessageUid {
        "0190a4c2-7b3e-7def-8123-456789abcdef".parse().unwrap()
    }

    fn traced(recipients: &[&str], gone: bool) -> Traced {
        Traced {
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
        let claims = claims(&Mail::new(raw.as_bytes()), &inspect(raw.as_bytes()));
        let other = other.parse().unwrap();
        assert_eq!(
            claims[1..],
            [ReportClaim::Named(other, Proof::PostwayId), ReportClaim::Named(other, Proof::MessageId)]
        );
        assert_eq!(claims[0].uid(), uid());
        let proof = |recipients: &[&str], gone| claims[0].proof(&traced(recipients, gone), &key);
        assert_eq!(proof(&["a@example.org"], false), Some(Proof::Verp));
        assert_eq!(proof(&["b@example.org"], false), None);
        assert_eq!(proof(&[], true), Some(Proof::SharedVerp));
    }

    #[test]
    fn a_complaint_is_proven_by_the_envelope_sender_that_it_repeats() {
        let key = VerpKey::new(&SecretKey::from_bytes(&[7; 32]).unwrap());
        let signed = verp::encode(uid(), Some("a@example.org"), &key, "b.example.net");
        let raw = format!(
            "From: fbl@isp.example\nTo: abuse@example.net\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n\
             --b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nOriginal-Mail-From: <{signed}>\n\n--b--\n"
        );
        let claims = claims(&Mail::new(raw.as_bytes()), &inspect(raw.as_bytes()));
        let proofs: Vec<_> =
            claims.iter().map(|one| one.proof(&traced(&["a@example.org"], false), &key)).collect();
        assert_eq!(proofs, [Some(Proof::Verp)]);
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
