//! Receipts of certified mail: the message they are about, what they mean for it, and the evidence that is
//! stored.
//!
//! A receipt refers to the message's Message-ID, which contains the message's id or is the one that the mail
//! already had. The latter can be guessed, so such a receipt is believed only with a verified signature. A
//! receipt is never dropped because of its signature; the judgement of the signature is stored with it. If
//! there is a trust store, only a verified receipt is believed: any other is stored and reported without
//! proof, which sets no outcome and ends no wait. A second notice of delay about the same recipient means
//! that delivery failed.

use std::time::Duration;

use postway_domain::{EmailAddress, EventKind, Time};
use postway_mime::pec::{
    CertifiedReceipt, DelayNotice, PecEvent, ReceiptForm, ReceiptKind, SignatureCheck, TrustStore, verify,
};
use postway_store::record::{MessageFinding, NewReceipt, StoredBody, StoredReceipt, TracedMessage};
use serde_json::{Value, json};

use crate::mail::bounded;

/// The longest text of a receipt that is stored in its details.
const TEXT_CHARS_MAX: usize = 500;
/// The stored judgement of a signature that proves the receipt.
const VERIFIED: &str = "verified";
/// Two notices that both call themselves the first are different notices, and not one that arrived twice, if
/// they are this far apart.
const APART: Duration = Duration::from_secs(6 * 3_600);

/// What the judgement of a receipt needs besides the receipt.
pub(crate) struct ReceiptContext<'a> {
    /// The mail as it came.
    pub raw: &'a [u8],
    /// The stored body of the mail.
    pub body: &'a StoredBody,
    /// The digest of the mail.
    pub digest: [u8; 32],
    /// The certificates that signatures must lead to.
    pub trust: &'a TrustStore,
    /// Whether the receipt refers to the message by an id that cannot be guessed.
    pub is_by_our_id: bool,
    /// The earlier receipts of the message.
    pub earlier: &'a [StoredReceipt],
    /// When the mail arrived.
    pub arrived_at: Time,
}

/// The finding of a receipt.
pub(crate) fn receipt(
    receipt: &CertifiedReceipt,
    traced: &TracedMessage,
    known: &ReceiptContext<'_>,
) -> MessageFinding {
    let concerned = receipt.concerned();
    let position = match concerned.as_slice() {
        [one] => traced.recipients.iter().position(|known| EmailAddress::is_same(known, one)),
        _ => None,
    };
    let address = position.map(|at| traced.recipients[at].clone()).or_else(|| match concerned.as_slice() {
        [one] => Some((*one).to_owned()),
        _ => None,
    });
    let at = receipt.at.unwrap_or(known.arrived_at);
    let is_second = is_second(receipt, address.as_deref(), at, known);
    let kind = match receipt.event() {
        PecEvent::Accepted => EventKind::PecAccepted,
        PecEvent::TakenOver => EventKind::PecTakenOver,
        PecEvent::Delivered => EventKind::PecDelivered,
        PecEvent::Failed => EventKind::PecFailed,
        PecEvent::Warning if is_second => EventKind::PecFailed,
        PecEvent::Warning => EventKind::Delayed,
        // Stored like the others. All that is known is that a machine answered.
        PecEvent::Unknown => EventKind::AutoReplied,
    };
    let (signature, remark) = judged(receipt, known);
    let is_believed = signature == VERIFIED || (known.trust.is_empty() && known.is_by_our_id);
    let detail = detail(receipt, is_second, signature, remark);
    let proof = if is_believed { "message_id" } else { "unverified_receipt" };
    let mut data = json!({"receipt": receipt.kind_text, "signature": signature, "at": at, "proof": proof});
    if !is_believed {
        data["says"] = json!(kind);
    }
    if let Some(address) = &address {
        data["recipient"] = json!(address);
    }
    for name in ["error", "error_text", "provider", "identifier"] {
        if !detail[name].is_null() {
            data[name] = detail[name].clone();
        }
    }
    MessageFinding {
        message: traced.uid,
        position: position.and_then(|at| u32::try_from(at).ok()),
        kind: if is_believed { kind } else { EventKind::UnprovenReport },
        data: Some(data.to_string()),
        bounce: None,
        suppress: None,
        receipt: Some(NewReceipt {
            digest: known.digest,
            kind: bounded(&receipt.kind_text, 64),
            address,
            at,
            signature,
            detail: detail.to_string(),
            body: known.body.clone(),
        }),
    }
}

/// Whether there was an earlier notice about the same recipient. A notice that calls itself the first may
/// have arrived twice, and one that is not believed does not count.
fn is_second(
    receipt: &CertifiedReceipt,
    address: Option<&str>,
    at: Time,
    known: &ReceiptContext<'_>,
) -> bool {
    receipt.kind == ReceiptKind::DeliveryWarning
        && known.earlier.iter().any(|earlier| {
            let detail: Value = serde_json::from_str(&earlier.detail).unwrap_or_default();
            let is_same_mail = earlier.digest == known.digest
                || receipt.message_id.as_deref().is_some_and(|id| detail["message_id"] == id);
            let is_same_one = match (&earlier.address, address) {
                (Some(earlier), Some(address)) => EmailAddress::is_same(earlier, address),
                (None, None) => true,
                _ => false,
            };
            let is_believed = earlier.signature == VERIFIED || (known.trust.is_empty() && known.is_by_our_id);
            let is_apart = receipt.notice != Some(DelayNotice::First) || at.since(earlier.at) >= APART;
            ReceiptKind::from(earlier.kind.as_str()) == ReceiptKind::DeliveryWarning
                && is_believed
                && is_same_one
                && !is_same_mail
                && is_apart
        })
}

/// The judgement of the signature, and a remark on it.
fn judged(receipt: &CertifiedReceipt, known: &ReceiptContext<'_>) -> (&'static str, Option<String>) {
    match verify(known.raw, known.trust, known.arrived_at) {
        SignatureCheck::Verified { signer } => match receipt.unconfirmed() {
            Some(why) => ("unverified", Some(why.to_owned())),
            None => (VERIFIED, Some(format!("signed by {signer}"))),
        },
        SignatureCheck::Unverified { why } => ("unverified", Some(why)),
        SignatureCheck::Absent => ("absent", None),
    }
}

fn detail(receipt: &CertifiedReceipt, is_second: bool, signature: &str, remark: Option<String>) -> Value {
    let text = |text: &Option<String>| text.as_deref().map(|text| bounded(text, TEXT_CHARS_MAX));
    let form = receipt.form.as_ref().map(|form| match form {
        ReceiptForm::Complete => "completa".to_owned(),
        ReceiptForm::Short => "breve".to_owned(),
        ReceiptForm::Synthetic => "sintetica".to_owned(),
        ReceiptForm::Unknown(other) => bounded(other, TEXT_CHARS_MAX),
    });
    let notice = receipt.notice.map(|notice| match notice {
        DelayNotice::Final => "final",
        DelayNotice::First | DelayNotice::Undecided if is_second => "final",
        DelayNotice::First => "first",
        DelayNotice::Undecided => "undecided",
    });
    json!({
        "kind": bounded(&receipt.kind_text, TEXT_CHARS_MAX),
        "form": form,
        "reference": text(&receipt.reference),
        "message_id": text(&receipt.message_id),
        "identifier": text(&receipt.identifier),
        "sender": text(&receipt.sender),
        "recipient": text(&receipt.delivered_to),
        "error": text(&receipt.error),
        "error_text": text(&receipt.error_text),
        "provider": text(&receipt.provider),
        "at": receipt.at,
        "subject": text(&receipt.subject),
        "notice": notice,
        "security_check": text(&receipt.security_check),
        "signature": signature,
        "signature_remark": remark.map(|remark| bounded(&remark, TEXT_CHARS_MAX)),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use postway_domain::MessageUid;
    use postway_mime::pec::read;

    use super::*;

    fn now() -> Time {
        Time::from_millis(1_700_000_000_000)
    }

    fn traced() -> TracedMessage {
        TracedMessage {
            uid: MessageUid::new(now(), &mut rand::rng()),
            tenant: "default".parse().unwrap(),
            created_at: now(),
            recipients: vec!["uno@pec.example".to_owned(), "due@pec.example".to_owned()],
            sender: String::new(),
            gone: false,
        }
    }

    fn raw(kind: &str, traced: &TracedMessage, words: &str, own_id: &str) -> Vec<u8> {
        let uid = traced.uid;
        format!(
            "X-Ricevuta: {kind}\r\nX-Riferimento-Message-ID: <{uid}@shop.example>\r\nMessage-ID: <{own_id}@pec.example>\r\n\
             Subject: {kind}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n{words}\r\n\
             --b\r\nContent-Type: application/xml; name=daticert.xml\r\nContent-Disposition: attachment; filename=daticert.xml\r\n\r\n\
             <?xml version=\"1.0\" encoding=\"UTF-8\"?><postacert tipo=\"{kind}\" errore=\"nessuno\"><intestazione><mittente>shop@shop.example</mittente>\
             <destinatari tipo=\"certificato\">uno@pec.example</destinatari></intestazione><dati><gestore-emittente>G</gestore-emittente>\
             <msgid>&lt;{uid}@shop.example&gt;</msgid><consegna>DUE@pec.example</consegna></dati></postacert>\r\n--b--\r\n"
        )
        .into_bytes()
    }

    fn finding(raw: &[u8], traced: &TracedMessage, earlier: &[StoredReceipt]) -> MessageFinding {
        let read = read(raw).unwrap();
        assert_eq!(read.postway_uid, Some(traced.uid));
        let known = ReceiptContext {
            raw,
            body: &StoredBody::Inline(Bytes::copy_from_slice(raw)),
            digest: crate::monitor::sha256(raw),
            trust: &TrustStore::default(),
            is_by_our_id: true,
            earlier,
            arrived_at: now(),
        };
        receipt(&read, traced, &known)
    }

    fn stored(finding: &MessageFinding) -> StoredReceipt {
        let stored = finding.receipt.clone().unwrap();
        StoredReceipt {
            digest: stored.digest,
            inbound: MessageUid::new(now(), &mut rand::rng()),
            kind: stored.kind,
            address: stored.address,
            at: stored.at,
            signature: stored.signature.to_owned(),
            detail: stored.detail,
            size: stored.body.len(),
        }
    }

    #[test]
    fn a_delivery_receipt_is_about_the_mailbox_it_names() {
        let message = traced();
        let found = finding(&raw("avvenuta-consegna", &message, "ok", "r1"), &message, &[]);
        assert_eq!((found.kind, found.position), (EventKind::PecDelivered, Some(1)));
        let receipt = found.receipt.unwrap();
        assert_eq!((receipt.address.as_deref(), receipt.signature), (Some("due@pec.example"), "absent"));
        assert!(receipt.detail.contains("\"provider\":\"G\""));
    }

    #[test]
    fn the_second_notice_about_a_recipient_is_a_failure_and_the_same_one_again_is_not() {
        let message = traced();
        let first =
            finding(&raw("preavviso-errore-consegna", &message, "nessuna notizia", "r1"), &message, &[]);
        assert_eq!(first.kind, EventKind::Delayed);
        let earlier = [stored(&first)];
        let again = finding(
            &raw("preavviso-errore-consegna", &message, "nessuna  notizia", "r1"),
            &message,
            &earlier,
        );
        assert_eq!(again.kind, EventKind::Delayed, "one notice that came twice is one notice");
        let second =
            finding(&raw("preavviso-errore-consegna", &message, "nessuna notizia", "r2"), &message, &earlier);
        assert_eq!(second.kind, EventKind::PecFailed);
    }

    #[test]
    fn what_the_rules_do_not_know_is_kept_all_the_same() {
        let message = traced();
        let found = finding(&raw("novita-assoluta", &message, "?", "r1"), &message, &[]);
        assert_eq!(found.kind, EventKind::AutoReplied);
        assert_eq!(found.receipt.unwrap().kind, "novita-assoluta");
    }
}
