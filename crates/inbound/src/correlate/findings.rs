//! The findings of a report: the events, bounces and suppressions that are written for its message. Pure.
//!
//! An address is suppressed only if the address itself is bad or its owner complained, only if the message
//! went to it, and only on [`ReportProof`]. If the message had a signed envelope sender, a genuine report has
//! it too, and nothing else is proof. A proof that other recipients of the message can see suppresses for
//! [`VISIBLE_PROOF_LASTS`] only. A report without proof is written as [`EventKind::UnprovenReport`], which
//! changes nothing.

use std::time::Duration;

use postway_domain::{EmailAddress, EventKind, Time, verp::VerpAddress};
use postway_mime::received::{
    BounceType, ReceivedReport, ReportFinding as Reported, ReportKind, ReportedAction,
};
use postway_store::record::{MessageFinding, SuppressionReason, SuppressionRecord, TracedMessage};
use serde_json::json;

use super::ReportProof;
use crate::mail::bounded;

/// The longest diagnostic text that is stored.
const DIAGNOSTIC_CHARS_MAX: usize = 500;
/// How long a suppression lasts that any recipient of the message could have caused.
const VISIBLE_PROOF_LASTS: Duration = Duration::from_secs(30 * 86_400);
/// The note of such a suppression.
const VISIBLE_PROOF_NOTE: &str =
    "it ends after 30 days, as recipients of the message could have written the report";
/// Kinds of feedback that are not complaints: a filter's mistake undone, or a server's report on
/// authentication.
const NO_COMPLAINT: [&str; 3] = ["not-spam", "auth-failure", "dmarc"];

/// The findings of a report about a message.
pub(crate) fn findings(
    report: &ReceivedReport,
    traced: &TracedMessage,
    proof: ReportProof,
    now: Time,
) -> Vec<MessageFinding> {
    let feedback = report.feedback_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    if report.kind == ReportKind::Complaint && NO_COMPLAINT.contains(&feedback.as_str()) {
        return Vec::new();
    }
    if report.recipients.is_empty() {
        return event_of(report.kind, None)
            .map(|kind| one(report, None, kind, traced, proof, now))
            .into_iter()
            .collect();
    }
    let found = report.recipients.iter().filter_map(|reported| {
        let kind = event_of(report.kind, reported.action)?;
        Some(one(report, Some(reported), kind, traced, proof, now))
    });
    found.collect()
}

/// The event of a recipient: from what the server did about it, or else from the kind of the whole report.
fn event_of(kind: ReportKind, action: Option<ReportedAction>) -> Option<EventKind> {
    Some(match (kind, action) {
        (ReportKind::Complaint, _) => EventKind::Complained,
        (ReportKind::AutoReply, _) => EventKind::AutoReplied,
        (ReportKind::Ordinary, _) => return None,
        (_, Some(ReportedAction::Failed)) | (ReportKind::Bounce, None) => EventKind::Bounced,
        (_, Some(ReportedAction::Delayed)) | (ReportKind::Delay, None) => EventKind::Delayed,
        // A server that handed the mail on to one without DSN, or to a list, does not know whether it
        // arrives.
        (_, Some(ReportedAction::Relayed | ReportedAction::Expanded)) => return None,
        (_, Some(ReportedAction::Delivered)) | (ReportKind::Success, None) => EventKind::Delivered,
    })
}

fn one(
    report: &ReceivedReport,
    reported: Option<&Reported>,
    kind: EventKind,
    traced: &TracedMessage,
    proof: ReportProof,
    now: Time,
) -> MessageFinding {
    let position = position(reported, traced);
    let recipient = position.and_then(|(at, _)| traced.recipients.get(at as usize));
    let bounce_type = reported.and_then(|one| one.kind);
    let mut data = json!({
        "recipient": recipient.map(String::as_str).or(reported.map(|one| one.address.as_str())),
        "proof": proof.as_str(),
    });
    let mut set = |name: &str, value: serde_json::Value| {
        if !value.is_null() {
            data[name] = value;
        }
    };
    if let Some(one) = reported {
        if recipient.is_some_and(|recipient| !EmailAddress::is_same(recipient, &one.address)) {
            set("final_recipient", json!(one.address));
        }
        set("type", json!(bounce_type.map(BounceType::as_str)));
        set("status", json!(one.status));
        set("smtp_code", json!(one.smtp_code));
        set("reason", json!(one.reason.as_str()));
        set("diagnostic", json!(one.diagnostic.as_deref().map(|text| bounded(text, DIAGNOSTIC_CHARS_MAX))));
        set("remote_mta", json!(one.remote_mta));
        set("action", json!(one.action.map(ReportedAction::as_str)));
    }
    set("feedback_type", json!(report.feedback_type));
    set("reporter", json!(report.reporter));
    let is_believed = is_believed(proof, traced);
    let bounce = (kind == EventKind::Bounced && is_believed).then(|| {
        let code = reported.and_then(|one| one.status.clone().or(one.smtp_code.map(|code| code.to_string())));
        let reason = reported.map(|one| one.reason.as_str());
        json!({"type": bounce_type.unwrap_or(BounceType::Soft).as_str(), "code": code, "reason": reason, "at": now})
            .to_string()
    });
    let term =
        suppression_term(proof).filter(|_| is_believed).filter(|_| is_meant(position, reported, proof, kind));
    let suppress = recipient
        .zip(term)
        .and_then(|(address, term)| suppression(kind, bounce_type, reported, traced, address, term, now));
    if !is_believed {
        data["says"] = json!(kind);
    }
    MessageFinding {
        message: traced.uid,
        position: position.map(|(at, _)| at),
        kind: if is_believed { kind } else { EventKind::UnprovenReport },
        data: Some(data.to_string()),
        bounce,
        suppress,
        receipt: None,
    }
}

/// The position of this address among the message's recipients.
pub(crate) fn position_of(address: &str, traced: &TracedMessage) -> Option<u32> {
    let at = traced.recipients.iter().position(|known| EmailAddress::is_same(known, address))?;
    u32::try_from(at).ok()
}

/// The position of the recipient in the message, and whether the report names it. A report about an address
/// that the message did not go to, as after forwarding, is attributed to the message's recipient if it has
/// only one.
fn position(reported: Option<&Reported>, traced: &TracedMessage) -> Option<(u32, bool)> {
    let named = reported.and_then(|one| {
        let ours = [Some(one.address.as_str()), one.original_address.as_deref()].into_iter().flatten();
        let mut positions = ours.filter_map(|address| {
            traced.recipients.iter().position(|known| EmailAddress::is_same(known, address))
        });
        positions.next()
    });
    match named {
        Some(at) => u32::try_from(at).ok().map(|at| (at, true)),
        None if traced.recipients.len() == 1 => Some((0, false)),
        None => None,
    }
}

/// How long a suppression lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuppressionTerm {
    ForEver,
    /// The suppression ends after [`VISIBLE_PROOF_LASTS`].
    ForATime,
}

/// Whether the content of a report is taken as a fact: it changes the recipient's outcome, and its event has
/// the reported kind.
fn is_believed(proof: ReportProof, traced: &TracedMessage) -> bool {
    // The form is enough: which key signed it does not matter here, and old keys are deleted some day.
    let has_signed_path = || VerpAddress::read(&traced.sender).is_some_and(|path| path.uid() == traced.uid);
    match proof {
        ReportProof::Verp | ReportProof::SharedVerp | ReportProof::Provider => true,
        ReportProof::PostwayId | ReportProof::MessageId => !has_signed_path(),
        ReportProof::ForeignMessageId | ReportProof::Recipient => false,
    }
}

/// How long a suppression on this proof lasts; `None` if it proves too little.
fn suppression_term(proof: ReportProof) -> Option<SuppressionTerm> {
    match proof {
        ReportProof::Verp | ReportProof::Provider => Some(SuppressionTerm::ForEver),
        ReportProof::SharedVerp | ReportProof::PostwayId | ReportProof::MessageId => {
            Some(SuppressionTerm::ForATime)
        }
        ReportProof::ForeignMessageId | ReportProof::Recipient => None,
    }
}

/// Whether a suppression would concern the right recipient: the report names it; or it is the message's only
/// recipient, and either the signed path says so, or the report is a complaint with the address removed.
fn is_meant(
    position: Option<(u32, bool)>,
    reported: Option<&Reported>,
    proof: ReportProof,
    kind: EventKind,
) -> bool {
    match position {
        Some((_, true)) => true,
        Some((_, false)) => {
            matches!(proof, ReportProof::Verp | ReportProof::SharedVerp | ReportProof::Provider)
                || (kind == EventKind::Complained && reported.is_none())
        }
        None => false,
    }
}

fn suppression(
    kind: EventKind,
    bounce_type: Option<BounceType>,
    reported: Option<&Reported>,
    traced: &TracedMessage,
    address: &str,
    term: SuppressionTerm,
    now: Time,
) -> Option<SuppressionRecord> {
    let reason = match (kind, bounce_type) {
        (EventKind::Bounced, Some(BounceType::Hard)) => SuppressionReason::HardBounce,
        (EventKind::Complained, _) => SuppressionReason::Complaint,
        _ => return None,
    };
    let words = reported.and_then(|one| one.status.as_deref()).map(|status| format!(", {status}"));
    let why = reported.map_or("reported", |one| one.reason.as_str());
    let mut note = format!("message {}: {why}{}", traced.uid, words.unwrap_or_default());
    let expires_at = match term {
        SuppressionTerm::ForEver => None,
        SuppressionTerm::ForATime => {
            note += &format!("; {VISIBLE_PROOF_NOTE}");
            Some(now.plus(VISIBLE_PROOF_LASTS))
        }
    };
    Some(SuppressionRecord {
        tenant: traced.tenant.clone(),
        address: EmailAddress::key_of(address),
        reason,
        note: Some(note),
        created_at: now,
        expires_at,
    })
}

#[cfg(test)]
mod tests {
    use postway_domain::{
        MessageUid,
        secret::SecretKey,
        verp::{self, VerpKey},
    };
    use postway_mime::received::inspect;
    use serde_json::Value;

    use super::*;

    fn now() -> Time {
        Time::from_millis(1_700_000_000_000)
    }

    fn traced(recipients: &[&str]) -> TracedMessage {
        TracedMessage {
            uid: MessageUid::new(now(), &mut rand::rng()),
            tenant: "default".parse().unwrap(),
            created_at: now(),
            recipients: recipients.iter().map(|one| (*one).to_owned()).collect(),
            sender: "shop@example.com".to_owned(),
            gone: false,
        }
    }

    fn dsn(recipients: &[(&str, &str, &str, &str)]) -> ReceivedReport {
        let mut raw = String::from(
            "From: MAILER-DAEMON@mx.example.org\nSubject: Undelivered Mail Returned to Sender\nMIME-Version: 1.0\n\
             Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\nContent-Type: text/plain\n\nFailed.\n\
             --b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.org\n\n",
        );
        for (address, action, status, words) in recipients {
            raw += &format!(
                "Final-Recipient: rfc822; {address}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp; {words}\n\n"
            );
        }
        raw += "--b--\n";
        inspect(raw.as_bytes())
    }

    const UNKNOWN: &str = "550 5.1.1 <x>: Recipient address rejected: User unknown";

    fn event_data(finding: &MessageFinding) -> Value {
        serde_json::from_str(finding.data.as_deref().unwrap()).unwrap()
    }

    #[test]
    fn a_proved_hard_bounce_is_told_and_suppresses_its_recipient_whatever_the_case() {
        let report = dsn(&[("ADA@example.org", "failed", "5.1.1", UNKNOWN)]);
        let found = findings(
            &report,
            &traced(&["bob@example.org", "Ada@Example.org"]),
            ReportProof::PostwayId,
            now(),
        );
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((finding.kind, finding.position), (EventKind::Bounced, Some(1)));
        let data = event_data(finding);
        assert_eq!(
            [&data["recipient"], &data["type"], &data["status"], &data["proof"]],
            ["Ada@Example.org", "hard", "5.1.1", "postway_id"]
        );
        let suppress = finding.suppress.as_ref().unwrap();
        assert_eq!(
            (suppress.address.as_str(), suppress.reason),
            ("ada@example.org", SuppressionReason::HardBounce)
        );
        let bounce: Value = serde_json::from_str(finding.bounce.as_deref().unwrap()).unwrap();
        assert_eq!([&bounce["type"], &bounce["code"], &bounce["reason"]], ["hard", "5.1.1", "user_unknown"]);
    }

    /// When the suppression by a hard bounce of the first recipient ends, if there is one.
    fn ends(proof: ReportProof, message: &TracedMessage) -> Option<Option<Time>> {
        let report = dsn(&[("ada@example.org", "failed", "5.1.1", UNKNOWN)]);
        let found = findings(&report, message, proof, now());
        found[0].suppress.as_ref().map(|one| one.expires_at)
    }

    #[test]
    fn a_proof_that_other_recipients_can_see_suppresses_for_a_time_and_says_so() {
        let message = traced(&["ada@example.org", "bob@example.org"]);
        let until = Some(Some(now().plus(VISIBLE_PROOF_LASTS)));
        for proof in [ReportProof::SharedVerp, ReportProof::PostwayId, ReportProof::MessageId] {
            assert_eq!(ends(proof, &message), until, "{proof:?}");
        }
        assert_eq!(ends(ReportProof::Verp, &message), Some(None));
        let report = dsn(&[("ada@example.org", "failed", "5.1.1", UNKNOWN)]);
        let found = findings(&report, &message, ReportProof::MessageId, now());
        let note = found[0].suppress.as_ref().unwrap().note.clone().unwrap();
        assert!(note.contains("user_unknown, 5.1.1; it ends after 30 days"), "{note}");
    }

    #[test]
    fn where_the_path_is_signed_nothing_else_suppresses_or_is_believed() {
        let mut message = traced(&["ada@example.org"]);
        let key = VerpKey::new(&SecretKey::from_bytes(&[7; 32]).unwrap());
        message.sender = verp::encode(message.uid, Some("ada@example.org"), &key, "b.example.net");
        for proof in [ReportProof::PostwayId, ReportProof::MessageId, ReportProof::Recipient] {
            assert_eq!(ends(proof, &message), None, "{proof:?}");
        }
        assert_eq!(ends(ReportProof::Verp, &message), Some(None));
        assert_eq!(ends(ReportProof::SharedVerp, &message), Some(Some(now().plus(VISIBLE_PROOF_LASTS))));
        let bounce = dsn(&[("ada@example.org", "failed", "5.1.1", UNKNOWN)]);
        for proof in [ReportProof::PostwayId, ReportProof::MessageId] {
            for (report, says) in [(&bounce, "bounced"), (&complaint("abuse", ""), "complained")] {
                let found = findings(report, &message, proof, now());
                let [finding] = found.as_slice() else { panic!("{found:?}") };
                assert_eq!((finding.kind, &finding.bounce), (EventKind::UnprovenReport, &None));
                let data = event_data(finding);
                assert_eq!([&data["says"], &data["proof"]], [says, proof.as_str()]);
            }
        }
        for proof in [ReportProof::Verp, ReportProof::SharedVerp] {
            let found = findings(&bounce, &message, proof, now());
            assert!(found[0].kind == EventKind::Bounced && found[0].bounce.is_some());
        }
    }

    #[test]
    fn a_guess_is_told_as_a_report_without_proof() {
        let report = dsn(&[("ada@example.org", "failed", "5.1.1", UNKNOWN)]);
        let found = findings(&report, &traced(&["ada@example.org"]), ReportProof::Recipient, now());
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((finding.kind, &finding.bounce), (EventKind::UnprovenReport, &None));
        let data = event_data(finding);
        assert_eq!([&data["says"], &data["proof"], &data["type"]], ["bounced", "recipient_only", "hard"]);
        let found =
            findings(&complaint("abuse", ""), &traced(&["ada@example.org"]), ReportProof::Recipient, now());
        assert_eq!(
            (found[0].kind, &event_data(&found[0])["says"]),
            (EventKind::UnprovenReport, &"complained".into())
        );
    }

    #[test]
    fn nobody_is_suppressed_on_a_guess_or_for_the_senders_fault() {
        let hard = dsn(&[("ada@example.org", "failed", "5.1.1", UNKNOWN)]);
        let message = traced(&["ada@example.org"]);
        assert!(findings(&hard, &message, ReportProof::Recipient, now())[0].suppress.is_none());
        for words in [
            "552 5.2.2 Mailbox full",
            "550 5.7.1 Message rejected due to local policy",
            "554 5.7.1 blocked by blocklist",
        ] {
            let report = dsn(&[("ada@example.org", "failed", &words[4..9], words)]);
            let found = findings(&report, &message, ReportProof::Verp, now());
            assert!(found[0].suppress.is_none(), "{words}");
            assert_eq!(found[0].kind, EventKind::Bounced);
        }
        let stranger = dsn(&[("other@elsewhere.example", "failed", "5.1.1", UNKNOWN)]);
        assert!(findings(&stranger, &message, ReportProof::PostwayId, now())[0].suppress.is_none());
        let several = traced(&["ada@example.org", "bob@example.org"]);
        let found = findings(&stranger, &several, ReportProof::Verp, now());
        assert!(found[0].suppress.is_none() && found[0].position.is_none());
    }

    #[test]
    fn a_forwarded_address_counts_for_the_only_recipient_where_the_path_is_signed() {
        let report = dsn(&[("ada@elsewhere.example", "failed", "5.1.1", UNKNOWN)]);
        let found = findings(&report, &traced(&["ada@example.org"]), ReportProof::Verp, now());
        assert_eq!(found[0].position, Some(0));
        assert_eq!(found[0].suppress.as_ref().unwrap().address, "ada@example.org");
        assert_eq!(event_data(&found[0])["final_recipient"], "ada@elsewhere.example");
    }

    #[test]
    fn each_recipient_of_a_report_has_its_own_outcome() {
        let report = dsn(&[
            ("a@example.org", "failed", "5.1.1", UNKNOWN),
            ("b@example.org", "delayed", "4.4.1", "450 4.4.1 connection timed out"),
            ("c@example.org", "delivered", "2.0.0", "250 ok"),
            ("d@example.org", "relayed", "2.0.0", "250 ok"),
            ("e@example.org", "expanded", "2.0.0", "250 ok"),
        ]);
        let names = ["a", "b", "c", "d", "e"].map(|name| format!("{name}@example.org"));
        let message = traced(&names.each_ref().map(String::as_str));
        let kinds: Vec<_> = findings(&report, &message, ReportProof::Verp, now())
            .iter()
            .map(|one| (one.kind, one.position))
            .collect();
        assert_eq!(
            kinds,
            [(EventKind::Bounced, Some(0)), (EventKind::Delayed, Some(1)), (EventKind::Delivered, Some(2))],
            "a mail that was handed on, or to a list, is not delivered yet"
        );
    }

    fn complaint(kind: &str, recipient: &str) -> ReceivedReport {
        let raw = format!(
            "From: fbl@isp.example\nSubject: complaint\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n\
             --b\nContent-Type: text/plain\n\nabuse\n--b\nContent-Type: message/feedback-report\n\nFeedback-Type: {kind}\nUser-Agent: x/1\nVersion: 1\n{recipient}\n\
             --b\nContent-Type: message/rfc822\n\nFrom: shop@example.net\nSubject: x\nMessage-ID: <m@example.net>\n\nx\n--b--\n"
        );
        inspect(raw.as_bytes())
    }

    #[test]
    fn a_complaint_suppresses_and_its_opposite_does_not() {
        let message = traced(&["ada@example.org"]);
        let found = findings(
            &complaint("abuse", "Original-Rcpt-To: ada@example.org\n"),
            &message,
            ReportProof::Verp,
            now(),
        );
        assert_eq!(found[0].kind, EventKind::Complained);
        assert_eq!(found[0].suppress.as_ref().unwrap().reason, SuppressionReason::Complaint);
        let found = findings(&complaint("abuse", ""), &message, ReportProof::PostwayId, now());
        assert_eq!(found.len(), 1);
        let found = findings(
            &complaint("not-spam", "Original-Rcpt-To: ada@example.org\n"),
            &message,
            ReportProof::Verp,
            now(),
        );
        assert!(found.is_empty());
    }
}
