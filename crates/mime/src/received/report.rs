//! What [`inspect`](super::inspect) says about a mail.

use serde_json::{Value, json};

use super::reason::Reason;

/// What a received mail is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// At least one recipient will not get the mail.
    Bounce,
    /// The mail is late, and still being tried.
    Delay,
    /// The mail was delivered or passed on.
    Success,
    /// Somebody reported the mail as unwanted, or asked not to get more.
    Complaint,
    /// A machine answered for a person.
    AutoReply,
    /// Anything else.
    Ordinary,
}

impl Kind {
    /// The name as the API has it.
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
pub enum Action {
    /// It gave up.
    Failed,
    /// It goes on trying.
    Delayed,
    /// It delivered.
    Delivered,
    /// It passed the mail on to a server that does not report.
    Relayed,
    /// It passed the mail on to several addresses.
    Expanded,
}

impl Action {
    /// The name as RFC 3464 and the API have it.
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

/// Whether trying again may help, as the code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// 5xx or 5.x.x.
    Permanent,
    /// 4xx or 4.x.x.
    Transient,
}

impl Class {
    /// The name as the API has it.
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
    /// The address is bad: no such user or domain, or moved. It is not to be written to again.
    Hard,
    /// Anything else: a full mailbox, a policy, a block, a server out of reach.
    Soft,
}

impl BounceType {
    /// The name as the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
        }
    }
}

/// What the mail says about one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The address that the report is about: where the reporting server tried to deliver.
    pub address: String,
    /// The address that the mail was first sent to, where the report tells another one than `address`.
    pub original_address: Option<String>,
    /// What the server did.
    pub action: Option<Action>,
    /// The enhanced status, such as `5.1.1`, where the mail has one.
    pub status: Option<String>,
    /// The SMTP reply code, where the mail has one.
    pub smtp_code: Option<u16>,
    /// Whether the failure is for good.
    pub class: Option<Class>,
    /// Whether the address is bad. None unless delivery failed or is late.
    pub kind: Option<BounceType>,
    /// Why.
    pub reason: Reason,
    /// The words of the server, on one line.
    pub diagnostic: Option<String>,
    /// The server that refused, where the mail names it.
    pub remote_mta: Option<String>,
}

/// What the report tells of the mail that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Original {
    /// The Message-ID, without angle brackets.
    pub message_id: Option<String>,
    /// The `X-Postway-ID` of the returned header.
    pub postway_id: Option<String>,
    /// The `Return-Path` of the returned header, without angle brackets.
    pub return_path: Option<String>,
    /// The first `To` address of the returned header.
    pub to: Option<String>,
    /// The subject of the returned header, as it stands there.
    pub subject: Option<String>,
    /// The date of the returned header, as it stands there.
    pub date: Option<String>,
}

/// What a received mail is, and what it says about whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What it is.
    pub kind: Kind,
    /// The recipients that it is about, each address once.
    pub recipients: Vec<Finding>,
    /// The mail that it is about.
    pub original: Original,
    /// The type of a complaint, such as `abuse`.
    pub feedback_type: Option<String>,
    /// The reporting server, or else the name of the recogniser that knew the form.
    pub reporter: Option<String>,
}

impl Report {
    /// A report about an ordinary mail.
    pub(super) fn ordinary() -> Self {
        Self {
            kind: Kind::Ordinary,
            recipients: Vec::new(),
            original: Original::default(),
            feedback_type: None,
            reporter: None,
        }
    }

    /// The report as the API shows it.
    pub fn to_json(&self) -> Value {
        json!({
            "kind": self.kind.as_str(),
            "recipients": self.recipients.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "original": self.original.to_json(),
            "feedback_type": self.feedback_type,
        })
    }
}

impl Finding {
    /// A finding of an address and a reason, and nothing else.
    pub(super) fn with_reason(address: String, reason: Reason) -> Self {
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
            "action": self.action.map(Action::as_str),
            "status": self.status,
            "smtp_code": self.smtp_code,
            "class": self.class.map(Class::as_str),
            "type": self.kind.map(BounceType::as_str),
            "reason": self.reason.as_str(),
            "diagnostic": self.diagnostic,
        })
    }
}

impl Original {
    /// The ids as the API shows them.
    pub fn to_json(&self) -> Value {
        json!({ "message_id": self.message_id, "postway_id": self.postway_id })
    }
}
