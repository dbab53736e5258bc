//! What a receipt says: its kind, whom and what it is about, and what that means for the message.

use postway_domain::{MessageUid, Time};

use super::{
    daticert::{Certified, DaticertError},
    notice::Notice,
    part::PecPart,
};

/// The length of a uid as it stands in a Message-ID.
const UID_CHARS: usize = 36;

/// One receipt or notice of a certified mail provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// What it is, by `X-Ricevuta`.
    pub kind: ReceiptKind,
    /// `X-Ricevuta` as given.
    pub kind_text: String,
    /// How much of the message a delivery receipt brings back.
    pub form: Option<ReceiptForm>,
    /// The Message-ID of the message it is about, without angle brackets.
    pub reference: Option<String>,
    /// Our id of that message, where the Message-ID is one of ours.
    pub postway_uid: Option<MessageUid>,
    /// The receipt's own Message-ID, without angle brackets.
    pub message_id: Option<String>,
    /// The provider's id of the transaction (`identificativo`).
    pub identifier: Option<String>,
    /// Who sent the message (`mittente`).
    pub sender: Option<String>,
    /// Whom the message was for, all of them (`destinatari`).
    pub recipients: Vec<ReceiptRecipient>,
    /// The one mailbox that a delivery or a delivery error is about (`consegna`).
    pub delivered_to: Option<String>,
    /// The recipients that a provider took the message over for (`ricezione`).
    pub received_for: Vec<String>,
    /// `errore` as given: `nessuno`, `no-dest`, `no-dominio`, `virus`, `altro`, or what a provider made up.
    pub error: Option<String>,
    /// `errore-esteso` as given.
    pub error_text: Option<String>,
    /// Who issued it (`gestore-emittente`).
    pub provider: Option<String>,
    /// When what it certifies happened (`data`).
    pub at: Option<Time>,
    /// The subject of the message (`oggetto`); without a daticert.xml, that of the receipt.
    pub subject: Option<String>,
    /// For [`ReceiptKind::DeliveryWarning`]: which of the two notices it is.
    pub notice: Option<Notice>,
    /// `X-VerificaSicurezza` as given.
    pub security_check: Option<String>,
    /// Whether there was a daticert.xml and it could be read.
    pub daticert: Daticert,
    /// What the header says and daticert.xml does not confirm. The header is what counts above, but a signature
    /// covers the daticert.xml only: see [`Receipt::unconfirmed`].
    pub contradictions: Vec<Contradiction>,
}

/// A recipient named in daticert.xml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptRecipient {
    /// The address as given.
    pub address: String,
    /// `certificato` (a certified mailbox), `esterno` (an ordinary one), or as given.
    pub kind: Option<String>,
}

/// What a receipt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    /// `accettazione`: the sender's provider accepted the message.
    Acceptance,
    /// `non-accettazione`: it did not.
    NonAcceptance,
    /// `presa-in-carico`: the recipient's provider took the message over.
    TakenOver,
    /// `avvenuta-consegna`: it is in the recipient's mailbox.
    Delivered,
    /// `errore-consegna`: it could not be put there.
    DeliveryError,
    /// `preavviso-errore-consegna`: nothing was heard for 12 or for 24 hours.
    DeliveryWarning,
    /// `rilevazione-virus`: a virus was found on the way.
    VirusDetected,
    /// A value that the rules do not have, in lower case.
    Unknown(String),
}

/// How much of the message a delivery receipt brings back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptForm {
    /// `completa`: all of it.
    Complete,
    /// `breve`: the message with digests in place of its attachments.
    Short,
    /// `sintetica`: nothing.
    Synthetic,
    /// A value that the rules do not have, in lower case.
    Unknown(String),
}

/// Whether a receipt's daticert.xml was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Daticert {
    /// There is none; the receipt was read from its header.
    Absent,
    /// There is one, which was not read; the receipt was read from its header.
    Refused(DaticertError),
    /// It was read.
    Read,
}

/// What the header says and daticert.xml does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
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
    /// The recipient's provider has it.
    TakenOver,
    /// It was delivered to a recipient.
    Delivered,
    /// It was not accepted, or will not be delivered to a recipient.
    Failed,
    /// It may not be delivered to a recipient. The second such notice for the same recipient is a failure.
    Warning,
    /// Nothing that we know.
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

impl Receipt {
    /// Of a mail with `X-Ricevuta: kind_text`, and of what its daticert.xml certifies.
    pub(super) fn new(
        mail: &PecPart<'_, '_>,
        kind_text: String,
        certified: Result<Certified, Daticert>,
    ) -> Self {
        let (certified, daticert) = match certified {
            Ok(certified) => (certified, Daticert::Read),
            Err(unread) => (Certified::default(), unread),
        };
        let kind = ReceiptKind::from(kind_text.as_str());
        let header_reference = mail.text("X-Riferimento-Message-ID").map(bare);
        let certified_reference = certified.reference.map(bare);
        let mut contradictions = Vec::new();
        if daticert == Daticert::Read {
            if certified.kind.as_deref().map(ReceiptKind::from).as_ref() != Some(&kind) {
                contradictions.push(Contradiction::Kind);
            }
            if header_reference.is_some() && header_reference != certified_reference {
                contradictions.push(Contradiction::Reference);
            }
        }
        let reference = header_reference.or(certified_reference);
        let form = mail.text("X-TipoRicevuta").or(certified.form);
        Self {
            postway_uid: reference.as_deref().and_then(uid),
            reference,
            form: form.as_deref().map(ReceiptForm::from),
            message_id: mail.text("Message-ID").map(bare),
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
            ReceiptKind::DeliveryWarning if self.notice == Some(Notice::Final) => PecEvent::Failed,
            ReceiptKind::DeliveryWarning => PecEvent::Warning,
            ReceiptKind::Unknown(_) => PecEvent::Unknown,
        }
    }

    /// Why daticert.xml does not say what the header says, where it does not: kind and reference must be in it, and the
    /// recipient where the receipt is about one. Else a verified signature does not prove the receipt: the header is not
    /// signed, and could have been put before any mail that the provider has signed.
    pub fn unconfirmed(&self) -> Option<&'static str> {
        let is_about_one = matches!(self.kind, ReceiptKind::Delivered | ReceiptKind::DeliveryError);
        Some(match &self.daticert {
            Daticert::Absent => "the signed part has no daticert.xml that would say what the header says",
            Daticert::Refused(_) => "the daticert.xml in the signed part cannot be read",
            Daticert::Read if !self.contradictions.is_empty() => {
                "header and daticert.xml contradict each other"
            }
            Daticert::Read if self.reference.is_none() => "daticert.xml does not name the message",
            Daticert::Read if is_about_one && self.concerned().is_empty() => {
                "daticert.xml does not name the recipient"
            }
            Daticert::Read => return None,
        })
    }

    /// Whether daticert.xml says what the header says: see [`Receipt::unconfirmed`].
    pub fn is_confirmed(&self) -> bool {
        self.unconfirmed().is_none()
    }

    /// The recipients that it is about: the one mailbox it names, or those that were taken over, or all where it
    /// is about the whole message. Empty where that cannot be told.
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
pub(super) fn bare(id: String) -> String {
    let inner = id.trim();
    let inner = inner.strip_prefix('<').unwrap_or(inner);
    inner.strip_suffix('>').unwrap_or(inner).trim().to_owned()
}

/// Our id out of a Message-ID `uid@domain`.
fn uid(reference: &str) -> Option<MessageUid> {
    let (local, _) = reference.split_once('@')?;
    (local.len() == UID_CHARS).then(|| local.parse().ok())?
}
