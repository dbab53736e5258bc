//! Why a request or a mail was refused, in words that its sender can act on.

use postway_store::StoreError;
use postway_trace::Span;

/// The fault of mail that the sandbox would capture although the caller expects it to be sent.
pub(crate) const CAPTURES: &str = "no account of this tenant sends mail yet: the sandbox would capture it. Make an account that does \
    (postway accounts create, or POST /v1/accounts) and the tenant's default_account; to capture mail on purpose, name the \
    account sandbox, or set the tenant's test to true";
/// The same fault where the tenant has routes, and none of them takes the mail.
pub(crate) const CAPTURES_UNROUTED: &str = "no route takes this mail, and the tenant's default account is the sandbox, which would \
    capture it: widen a route (postway routes), or give the tenant a default_account that sends; to capture mail on purpose, \
    name the account sandbox";
/// The most faults that one refusal lists; a request can have millions.
const DETAILS_MAX: usize = 100;

/// The kind of a fault, as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// A field does not have its required form.
    InvalidPayload,
    /// The stored request is gone.
    OutboxNotFound,
    /// The recipient is not in the tenant's directory, or deleted.
    RecipientNotFound,
    /// An address is not valid, or differs from the recipient's.
    InvalidEmail,
    /// Subject, html, text or template cannot be sent.
    InvalidTemplate,
    /// The tenant or the key may not send from this address.
    SenderNotAllowed,
    /// The key may not send to this address.
    RecipientNotAllowed,
    /// The virus scanner found something in an attachment.
    Infected,
}

impl RefusalCode {
    /// All kinds.
    pub const ALL: [RefusalCode; 8] = [
        RefusalCode::InvalidPayload,
        RefusalCode::OutboxNotFound,
        RefusalCode::RecipientNotFound,
        RefusalCode::InvalidEmail,
        RefusalCode::InvalidTemplate,
        RefusalCode::SenderNotAllowed,
        RefusalCode::RecipientNotAllowed,
        RefusalCode::Infected,
    ];

    /// Reads a kind from its code.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// The code that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidPayload => "INVALID_PAYLOAD",
            Self::OutboxNotFound => "OUTBOX_NOT_FOUND",
            Self::RecipientNotFound => "RECIPIENT_NOT_FOUND",
            Self::InvalidEmail => "INVALID_EMAIL",
            Self::InvalidTemplate => "INVALID_TEMPLATE",
            Self::SenderNotAllowed => "SENDER_NOT_ALLOWED",
            Self::RecipientNotAllowed => "RECIPIENT_NOT_ALLOWED",
            Self::Infected => "INFECTED",
        }
    }

    /// The check that finds faults of this kind.
    pub fn check(self) -> &'static str {
        match self {
            Self::InvalidPayload => "INTEGRITY",
            Self::OutboxNotFound => "OUTBOX",
            Self::RecipientNotFound | Self::InvalidEmail => "RECIPIENT",
            Self::InvalidTemplate => "TEMPLATE",
            Self::SenderNotAllowed | Self::RecipientNotAllowed => "ALLOWANCE",
            Self::Infected => "VIRUS",
        }
    }

    /// The usual kind of a fault in this field.
    fn for_field(field: &str) -> Self {
        match field.split(['[', '.']).next().unwrap_or(field) {
            "from" | "to" | "cc" | "bcc" | "reply_to" | "return_path" => Self::InvalidEmail,
            "recipient" => Self::RecipientNotFound,
            "subject" | "text" | "html" | "mjml" | "template" => Self::InvalidTemplate,
            _ => Self::InvalidPayload,
        }
    }
}

/// A fault in one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The path of the field: `to[0]`, `attachments[1].content`; empty for the message itself.
    pub field: String,
    /// The fault, and what to do about it.
    pub message: String,
    /// The kind of the fault.
    pub code: RefusalCode,
}

impl FieldFault {
    /// A fault in a field, of the usual kind for that field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        let field = field.into();
        let code = RefusalCode::for_field(&field);
        Self { field, message: message.into(), code }
    }

    /// Changes the kind of the fault.
    pub fn coded(self, code: RefusalCode) -> Self {
        Self { code, ..self }
    }

    /// The event data and the error of a message that was refused for this fault.
    pub(crate) fn event_and_error(&self) -> (String, String) {
        let (check, code, Self { field, message, .. }) = (self.code.check(), self.code.as_str(), self);
        let event_data =
            serde_json::json!({ "check": check, "code": code, "field": field, "message": message });
        let text = if field.is_empty() { message.clone() } else { format!("{field}: {message}") };
        let error = serde_json::json!({
            "code": code, "category": "validation", "phase": "validate", "message": text,
        });
        (event_data.to_string(), error.to_string())
    }

    /// Counts a message that was refused for this fault.
    pub(crate) fn count(&self) {
        count_failure(self.code.check());
    }
}

/// The check that finds requests and messages that are too large.
const SIZE: &str = "SIZE";

/// Counts a mail that an API refused before it reached the checks, once for each check that its faults belong
/// to.
pub fn count_refused(checks: impl IntoIterator<Item = &'static str>) {
    let mut failed: Vec<&'static str> = checks.into_iter().collect();
    failed.sort_unstable();
    failed.dedup();
    failed.into_iter().for_each(count_failure);
}

/// Why nothing was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// The request cannot be read at all.
    #[error("{message}")]
    Malformed {
        /// The fault and its position.
        message: String,
    },
    /// The request was read, but some of its fields fail their checks.
    #[error("{}", summary(.details))]
    Invalid {
        /// The faults, at least one.
        details: Vec<FieldFault>,
    },
    /// The id or the idempotency key belongs to another message.
    #[error("{message}")]
    Conflict {
        /// Names the id or the key.
        message: String,
    },
    /// The request or the message is larger than allowed.
    #[error("{message}")]
    TooLarge {
        /// Names the limit.
        message: String,
    },
    /// Too much is being done at once; the same request may be accepted a moment later.
    #[error("{message}")]
    Busy {
        /// Names what there is too much of.
        message: String,
    },
    /// The tenant's daily quota is used up; the same request may be accepted when the next day begins.
    #[error("{message}")]
    OverQuota {
        /// Names the bound.
        message: String,
        /// The time until the next day, in seconds.
        retry_after_s: u64,
    },
    /// The store does not answer.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

fn summary(details: &[FieldFault]) -> String {
    match details {
        [] => "the message failed its checks".to_owned(),
        [FieldFault { field, message, .. }] if field.is_empty() => message.clone(),
        [FieldFault { field, message, .. }] => format!("{field}: {message}"),
        [first, rest @ ..] => format!("{}: {} (and {} more)", first.field, first.message, rest.len()),
    }
}

impl Refusal {
    /// A refusal for one field.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { details: vec![FieldFault::new(field, message)] }
    }

    /// The refusal of a message over the limit.
    pub(crate) fn message_too_large(bytes_max: usize) -> Self {
        Self::TooLarge {
            message: format!(
                "the message is larger than {bytes_max} bytes: the gateway's http.max_message_bytes, or the tenant's \
                 content.message_bytes where that is less"
            ),
        }
    }

    /// The refusal when memory or slots run out; nothing was done.
    pub(crate) fn busy(what: &str) -> Self {
        Self::Busy { message: format!("{what}; nothing was done, try again in a moment") }
    }

    /// Whether the sender lacks permission, whatever else is wrong with the mail.
    pub fn is_forbidden(&self) -> bool {
        let is_bound = |detail: &FieldFault| {
            matches!(detail.code, RefusalCode::SenderNotAllowed | RefusalCode::RecipientNotAllowed)
        };
        matches!(self, Self::Invalid { details } if details.iter().any(is_bound))
    }

    /// Whether the unchanged request may be accepted later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::OverQuota { .. } | Self::Unavailable(_))
    }

    /// Whether a reason is that the sandbox, which nobody chose, would capture the mail. The request is
    /// accepted once the tenant has an account that sends, or a route to one.
    pub fn would_capture(&self) -> bool {
        self.capture_fault().is_some()
    }

    /// The sentence that says so.
    pub(crate) fn capture_fault(&self) -> Option<&str> {
        match self {
            Self::Invalid { details } => {
                let mut messages = details.iter().map(|detail| detail.message.as_str());
                messages.find(|message| [CAPTURES, CAPTURES_UNROUTED].contains(message))
            }
            Self::Malformed { .. }
            | Self::Conflict { .. }
            | Self::TooLarge { .. }
            | Self::Busy { .. }
            | Self::OverQuota { .. }
            | Self::Unavailable(_) => None,
        }
    }

    /// The store error behind a transient refusal, for callers that only separate our own faults from the
    /// sender's; otherwise the refusal itself.
    pub fn into_store_error(self) -> Result<StoreError, Self> {
        match self {
            Self::Unavailable(error) => Ok(error),
            Self::Busy { message } | Self::OverQuota { message, .. } => Ok(StoreError::Unavailable(message)),
            refusal => Err(refusal),
        }
    }

    /// The refusal with its paths prefixed by `name`, for an object that contains the refused one.
    pub(crate) fn inside(mut self, name: &str) -> Self {
        if let Self::Invalid { details } = &mut self {
            for detail in details {
                let dot = if detail.field.is_empty() || detail.field.starts_with('[') { "" } else { "." };
                detail.field = format!("{name}{dot}{}", detail.field);
            }
        }
        self
    }

    /// Counts the refusal, once for each check that failed.
    pub(crate) fn count(&self) {
        match self {
            Self::Malformed { .. } => count_failure(RefusalCode::InvalidPayload.check()),
            Self::Invalid { details } => count_refused(details.iter().map(|detail| detail.code.check())),
            Self::TooLarge { .. } => count_failure(SIZE),
            Self::Conflict { .. } | Self::Busy { .. } | Self::OverQuota { .. } | Self::Unavailable(_) => {}
        }
    }

    /// Counts the refusal, and says in the span of the accept why it failed.
    pub(crate) fn count_in(&self, span: &mut Span) {
        self.count();
        span.fail(self.trace_code());
    }

    /// The refusal in one word, for spans.
    pub(crate) fn trace_code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::Invalid { .. } => "invalid",
            Self::TooLarge { .. } => "too_large",
            Self::Conflict { .. } => "conflict",
            Self::Busy { .. } => "busy",
            Self::OverQuota { .. } => "over_quota",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

fn count_failure(check: &str) {
    metrics::counter!("postway_validation_failures_total", "check" => check.to_ascii_lowercase())
        .increment(1);
}

/// Collects faults, so that the sender learns of all of them at once.
#[derive(Debug, Default)]
pub(crate) struct FieldFaults(Vec<FieldFault>);

impl FieldFaults {
    /// Adds a fault, up to the number that one refusal lists.
    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.note(FieldFault::new(field, message));
    }

    /// Adds a fault that is already worded.
    pub(crate) fn note(&mut self, fault: FieldFault) {
        if self.0.len() < DETAILS_MAX {
            self.0.push(fault);
        }
    }

    /// Returns the value of a check; if the check failed, adds its fault and returns `None`.
    pub(crate) fn take<T, E: ToString>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(field, error.to_string());
                None
            }
        }
    }

    /// Whether no fault was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults, in the order in which they were added.
    pub(crate) fn into_faults(self) -> Vec<FieldFault> {
        self.0
    }

    /// The refusal for these faults.
    pub(crate) fn into_refusal(self) -> Refusal {
        Refusal::Invalid { details: self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_moves_into_its_parent() {
        let field = |field: &str| match Refusal::field(field, "x").inside("defaults") {
            Refusal::Invalid { details } => details[0].field.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!([field("to[0]"), field(""), field("[1]")], ["defaults.to[0]", "defaults", "defaults[1]"]);
    }

    #[test]
    fn a_refusal_lists_a_bounded_number_of_faults() {
        let mut errors = FieldFaults::default();
        for index in 0..10_000 {
            errors.add(format!("to[{index}]"), "x");
        }
        let Refusal::Invalid { details } = errors.into_refusal() else { panic!("another refusal") };
        assert_eq!(details.len(), DETAILS_MAX);
    }

    #[test]
    fn the_guide_lists_the_checks_that_failures_are_counted_by() {
        let guide = include_str!("../../../docs/guide/operations.md");
        let line = guide.lines().find(|line| line.contains("`postway_validation_failures_total`")).unwrap();
        let mut checks: Vec<_> = RefusalCode::ALL.iter().map(|code| code.check()).chain([SIZE]).collect();
        checks.dedup();
        let words: Vec<_> = checks.iter().map(|check| format!("`{}`", check.to_lowercase())).collect();
        assert!(line.contains(&words.join(", ")), "{line}\nshould name {words:?}");
    }

    #[test]
    fn every_field_belongs_to_a_check() {
        let checks = ["to[0]", "attachments[1].content", "account", "html", "recipient.id", "headers.X-A"];
        let checks = checks.map(|field| FieldFault::new(field, "x").code.check());
        assert_eq!(checks, ["RECIPIENT", "INTEGRITY", "INTEGRITY", "TEMPLATE", "RECIPIENT", "INTEGRITY"]);
    }
}
