//! The result of [`inspect`](super::inspect).

use serde_json::{Value, json};

use super::reason::ReportReason;

/// The kind of a received mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// At least one recipient will not get the mail.
    Bounce,
    /// The mail is late, and the server still retries.
    Delay,
    /// The mail was delivered or passed on.
    Success,
    /// A recipient reported the mail as unwanted, or asked to get no more.
    Complaint,
    /// A program answered automatically.
    AutoReply,
    /// Anything else.
    Ordinary,
}

impl ReportKind {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Delay => "delay",
            Self::Success => "success",
            Self::Complaint => "complaint",
            Self::AutoReply => "auto_reply",
            Self::Ordinary => "ordinary",
        }
    }
}

/// What the reporting server did about a recipient (RFC 3464, 2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportedAction {
    /// The server gave up.
    Failed,
    /// The server still retries.
    Delayed,
    /// The server delivered the mail.
    Delivered,
    /// The server passed the mail on to one that does not report.
    Relayed,
    /// The server passed the mail on to several addresses.
    Expanded,
}

impl ReportedAction {
    /// The name in RFC 3464 and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Delayed => "delayed",
            Self::Delivered => "delivered",
            Self::Relayed => "relayed",
            Self::Expanded => "expanded",
        }
    }
}

/// Whether a retry may help, by the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportedClass {
    /// 5xx or 5.x.x.
    Permanent,
    /// 4xx or 4.x.x.
    Transient,
}

impl ReportedClass {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Transient => "transient",
        }
    }
}

/// Whether the address itself is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BounceType {
    /// The address is bad: no such user or domain, or moved. No more mail should be sent to it.
    Hard,
    /// Anything else: a full mailbox, a policy, a block, a server out of reach.
    Soft,
}

impl BounceType {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
        }
    }
}

/// What a report says about one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFinding {
    /// The address that the reporting server tried to deliver to.
    pub address: String,
    /// The address that the mail was first sent to, if it differs from `address`.
    pub original_address: Option<String>,
    /// What the server did.
    pub action: Option<ReportedAction>,
    /// The enhanced status, such as `5.1.1`, if the mail contains one.
    pub status: Option<String>,
    /// The SMTP reply code, if the mail contains one.
    pub smtp_code: Option<u16>,
    /// Whether the failure is permanent.
    pub class: Option<ReportedClass>,
    /// Whether the address is bad; `None` unless delivery failed or is late.
    pub kind: Option<BounceType>,
    /// The reason.
    pub reason: ReportReason,
    /// The text of the server, on one line.
    pub diagnostic: Option<String>,
    /// The server that refused the mail, if the report names it.
    pub remote_mta: Option<String>,
}

/// What a report says about the original mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OriginalMessage {
    /// The Message-ID, without angle brackets.
    pub message_id: Option<String>,
    /// The `X-Postway-ID` of the returned header.
    pub postway_id: Option<String>,
    /// The ENVID that the mail was sent with (RFC 3461), if the report repeats it.
    pub envelope_id: Option<String>,
    /// The `Return-Path` of the returned header, without angle brackets.
    pub return_path: Option<String>,
    /// The first `To` address of the returned header.
    pub to: Option<String>,
    /// The subject of the returned header, unchanged.
    pub subject: Option<String>,
    /// The date of the returned header, unchanged.
    pub date: Option<String>,
}

/// The kind of a received mail, and its findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedReport {
    /// Its kind.
    pub kind: ReportKind,
    /// The recipients that it is about, each address once.
    pub recipients: Vec<ReportFinding>,
    /// The original mail.
    pub original: OriginalMessage,
    /// The type of a complaint, such as `abuse`.
    pub feedback_type: Option<String>,
    /// The reporting server, or else the name of the recogniser that read the report.
    pub reporter: Option<String>,
}

impl ReceivedReport {
    /// A report about an ordinary mail.
    pub(super) fn ordinary() -> Self {
        Self {
            kind: ReportKind::Ordinary,
            recipients: Vec::new(),
            original: OriginalMessage::default(),
            feedback_type: None,
            reporter: None,
        }
    }

    /// The report as the API shows it.
    pub fn to_json(&self) -> Value {
        json!({
            "kind": self.kind.as_str(),
            "recipients": self.recipients.iter().map(ReportFinding::to_json).collect::<Vec<_>>(),
            "original": self.original.to_json(),
            "feedback_type": self.feedback_type,
        })
    }
}

impl ReportFinding {
    /// A finding with only an address and a reason.
    pub(super) fn with_reason(address: String, reason: ReportReason) -> Self {
        Self {
            address,
            original_address: None,
            action: None,
            status: None,
            smtp_code: None,
            class: None,
            kind: None,
            reason,
            diagnostic: None,
            remote_mta: None,
        }
    }

    /// The finding as the API shows it.
    pub fn to_json(&self) -> Value {
        json!({
            "address": self.address,
            "action": self.action.map(ReportedAction::as_str),
            "status": self.status,
            "smtp_code": self.smtp_code,
            "class": self.class.map(ReportedClass::as_str),
            "type": self.kind.map(BounceType::as_str),
            "reason": self.reason.as_str(),
            "diagnostic": self.diagnostic,
        })
    }
}

impl OriginalMessage {
    /// The ids as the API shows them.
    pub fn to_json(&self) -> Value {
        json!({ "message_id": self.message_id, "postway_id": self.postway_id })
    }
}
