//! A receipt: its kind, its recipients and message, and what it means for the message.

use postway_domain::{MessageUid, Time};

use super::{
    daticert::{CertifiedData, DaticertError, ReceiptRecipient},
    notice::DelayNotice,
    part::PecPart,
};

/// The length of a uid in a Message-ID.
const UID_CHARS: usize = 36;

/// One receipt or notice of a certified mail provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedReceipt {
    /// Its kind, by `X-Ricevuta`.
    pub kind: ReceiptKind,
    /// The value of `X-Ricevuta`.
    pub kind_text: String,
    /// How much of the message a delivery receipt contains.
    pub form: Option<ReceiptForm>,
    /// The Message-ID of the message it is about, without angle brackets.
    pub reference: Option<String>,
    /// Our id of that message, if the Message-ID is one of ours.
    pub postway_uid: Option<MessageUid>,
    /// The receipt's own Message-ID, without angle brackets.
    pub message_id: Option<String>,
    /// The provider's id of the transaction (`identificativo`).
    pub identifier: Option<String>,
    /// The sender of the message (`mittente`).
    pub sender: Option<String>,
    /// All recipients of the message (`destinatari`).
    pub recipients: Vec<ReceiptRecipient>,
    /// The one mailbox that a delivery or a delivery error is about (`consegna`).
    pub delivered_to: Option<String>,
    /// The recipients that a provider accepted the message for (`ricezione`).
    pub received_for: Vec<String>,
    /// The value of `errore`: `nessuno`, `no-dest`, `no-dominio`, `virus`, `altro`, or a provider's own
    /// value.
    pub error: Option<String>,
    /// The value of `errore-esteso`.
    pub error_text: Option<String>,
    /// The provider that issued it (`gestore-emittente`).
    pub provider: Option<String>,
    /// The time of the certified event (`data`).
    pub at: Option<Time>,
    /// The subject of the message (`oggetto`); without a daticert.xml, that of the receipt.
    pub subject: Option<String>,
    /// For [`ReceiptKind::DeliveryWarning`]: which of the two delay notices it is.
    pub notice: Option<DelayNotice>,
    /// The value of `X-VerificaSicurezza`.
    pub security_check: Option<String>,
    /// Whether it has a readable daticert.xml.
    pub daticert: DaticertState,
    /// Values of the header that daticert.xml does not confirm. The fields above are those of the header, but
    /// a signature covers daticert.xml only: see [`CertifiedReceipt::unconfirmed`].
    pub contradictions: Vec<ReceiptContradiction>,
}

/// The kind of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    /// `accettazione`: the sender's provider accepted the message.
    Acceptance,
    /// `non-accettazione`: the sender's provider refused the message.
    NonAcceptance,
    /// `presa-in-carico`: the recipient's provider accepted the message.
    TakenOver,
    /// `avvenuta-consegna`: the message is in the recipient's mailbox.
    Delivered,
    /// `errore-consegna`: the message could not be delivered.
    DeliveryError,
    /// `preavviso-errore-consegna`: there was no confirmation for 12 or for 24 hours.
    DeliveryWarning,
    /// `rilevazione-virus`: a virus was found in the message.
    VirusDetected,
    /// A value that the rules do not define, in lower case.
    Unknown(String),
}

/// How much of the message a delivery receipt contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptForm {
    /// `completa`: all of it.
    Complete,
    /// `breve`: the message with digests in place of its attachments.
    Short,
    /// `sintetica`: nothing.
    Synthetic,
    /// A value that the rules do not define, in lower case.
    Unknown(String),
}

/// Whether a receipt's daticert.xml was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaticertState {
    /// There is no daticert.xml; the receipt was read from its header.
    Absent,
    /// There is one that was refused; the receipt was read from its header.
    Refused(DaticertError),
    /// It was read.
    Read,
}

/// A value of the header that differs from daticert.xml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptContradiction {
    /// `X-Ricevuta` is not `tipo`.
    Kind,
    /// `X-Riferimento-Message-ID` is not `msgid`.
    Reference,
}

/// What a receipt means for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PecEvent {
    /// It was accepted for all its recipients.
    Accepted,
    /// The recipient's provider accepted it.
    TakenOver,
    /// It was delivered to a recipient.
    Delivered,
    /// It was not accepted, or will not be delivered to a recipient.
    Failed,
    /// It may not be delivered to a recipient. The second such notice for the same recipient is a failure.
    Warning,
    /// The meaning is unknown.
    Unknown,
}

impl From<&str> for ReceiptKind {
    fn from(text: &str) -> Self {
        match text.to_lowercase().as_str() {
            "accettazione" => Self::Acceptance,
            "non-accettazione" => Self::NonAcceptance,
            "presa-in-carico" => Self::TakenOver,
            "avvenuta-consegna" => Self::Delivered,
            "errore-consegna" => Self::DeliveryError,
            "preavviso-errore-consegna" => Self::DeliveryWarning,
            "rilevazione-virus" => Self::VirusDetected,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

impl From<&str> for ReceiptForm {
    fn from(text: &str) -> Self {
        match text.to_lowercase().as_str() {
            "completa" => Self::Complete,
            "breve" => Self::Short,
            "sintetica" => Self::Synthetic,
            other => Self::Unknown(other.to_owned()),
        }
    }
}

impl CertifiedReceipt {
    /// Makes the receipt of a mail with `X-Ricevuta: kind_text` and the data of its daticert.xml.
    pub(super) fn new(
        mail: &PecPart<'_, '_>,
        kind_text: String,
        certified: Result<CertifiedData, DaticertState>,
    ) -> Self {
        let (certified, daticert) = match certified {
            Ok(certified) => (certified, DaticertState::Read),
            Err(unread) => (CertifiedData::default(), unread),
        };
        let kind = ReceiptKind::from(kind_text.as_str());
        let header_reference = mail.text("X-Riferimento-Message-ID").map(without_brackets);
        let certified_reference = certified.reference.map(without_brackets);
        let mut contradictions = Vec::new();
        if daticert == DaticertState::Read {
            if certified.kind.as_deref().map(ReceiptKind::from).as_ref() != Some(&kind) {
                contradictions.push(ReceiptContradiction::Kind);
            }
            if header_reference.is_some() && header_reference != certified_reference {
                contradictions.push(ReceiptContradiction::Reference);
            }
        }
        let reference = header_reference.or(certified_reference);
        let form = mail.text("X-TipoRicevuta").or(certified.form);
        Self {
            postway_uid: reference.as_deref().and_then(own_uid),
            reference,
            form: form.as_deref().map(ReceiptForm::from),
            message_id: mail.text("Message-ID").map(without_brackets),
            identifier: certified.identifier,
            sender: certified.sender,
            recipients: certified.recipients,
            delivered_to: certified.delivered_to,
            received_for: certified.received_for,
            error: certified.error,
            error_text: certified.error_text,
            provider: certified.provider,
            at: certified.at,
            subject: certified.subject.or_else(|| mail.unstructured("Subject")),
            notice: None,
            security_check: mail.text("X-VerificaSicurezza"),
            daticert,
            contradictions,
            kind,
            kind_text,
        }
    }

    /// What it means for the message.
    pub fn event(&self) -> PecEvent {
        match self.kind {
            ReceiptKind::Acceptance => PecEvent::Accepted,
            ReceiptKind::TakenOver => PecEvent::TakenOver,
            ReceiptKind::Delivered => PecEvent::Delivered,
            ReceiptKind::NonAcceptance | ReceiptKind::DeliveryError | ReceiptKind::VirusDetected => {
                PecEvent::Failed
            }
            ReceiptKind::DeliveryWarning if self.notice == Some(DelayNotice::Final) => PecEvent::Failed,
            ReceiptKind::DeliveryWarning => PecEvent::Warning,
            ReceiptKind::Unknown(_) => PecEvent::Unknown,
        }
    }

    /// Why daticert.xml does not confirm the header; `None` if it does. It must contain kind and reference,
    /// and the recipient if the receipt is about one. Otherwise a verified signature does not prove the
    /// receipt: the header is not signed, and anybody could have put it before a mail that the provider
    /// signed.
    pub fn unconfirmed(&self) -> Option<&'static str> {
        let is_about_one = matches!(self.kind, ReceiptKind::Delivered | ReceiptKind::DeliveryError);
        Some(match &self.daticert {
            DaticertState::Absent => {
                "the signed part has no daticert.xml that would say what the header says"
            }
            DaticertState::Refused(_) => "the daticert.xml in the signed part cannot be read",
            DaticertState::Read if !self.contradictions.is_empty() => {
                "header and daticert.xml contradict each other"
            }
            DaticertState::Read if self.reference.is_none() => "daticert.xml does not name the message",
            DaticertState::Read if is_about_one && self.concerned().is_empty() => {
                "daticert.xml does not name the recipient"
            }
            DaticertState::Read => return None,
        })
    }

    /// Whether daticert.xml confirms the header: see [`CertifiedReceipt::unconfirmed`].
    pub fn is_confirmed(&self) -> bool {
        self.unconfirmed().is_none()
    }

    /// The recipients that it is about: the one mailbox that it names, or those that a provider accepted the
    /// message for, or all if it is about the whole message. Empty if that is unknown.
    pub fn concerned(&self) -> Vec<&str> {
        if let Some(one) = &self.delivered_to {
            return vec![one];
        }
        if !self.received_for.is_empty() {
            return self.received_for.iter().map(String::as_str).collect();
        }
        let whole = matches!(self.kind, ReceiptKind::Acceptance | ReceiptKind::NonAcceptance);
        if whole || self.recipients.len() == 1 {
            return self.recipients.iter().map(|recipient| recipient.address.as_str()).collect();
        }
        Vec::new()
    }
}

/// A Message-ID without its angle brackets.
pub(super) fn without_brackets(id: String) -> String {
    let inner = id.trim();
    let inner = inner.strip_prefix('<').unwrap_or(inner);
    inner.strip_suffix('>').unwrap_or(inner).trim().to_owned()
}

/// Our message id in a Message-ID `uid@domain`.
fn own_uid(reference: &str) -> Option<MessageUid> {
    let (local, _) = reference.split_once('@')?;
    (local.len() == UID_CHARS).then(|| local.parse().ok())?
}
