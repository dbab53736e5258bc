//! Decides what an answer of a provider means: accepted, refused, or in doubt; and whose fault a refusal is.
//!
//! The provider's own name for the error decides if its file knows it, otherwise the HTTP status. A refusal
//! without a name comes from a proxy in front of the provider. It is not a verdict on the mail, so the mail
//! does not fail by it, unless it is about its size.

use postway_domain::failure::{
    FailureCategory::{self, *},
    FailurePhase,
    FailureSeverity::{self, Account, Permanent, Transient},
    SendFailure,
};

use super::{
    answer::ProviderAnswer,
    api::{AnswerContent, ProviderError},
};
use crate::transport::{DeliveryEnd, RelayReply};

/// Code, category and severity of an error.
pub(super) type ProviderErrorKind = (&'static str, FailureCategory, FailureSeverity);

// The mail is at fault.
pub(super) const REJECTED: ProviderErrorKind = ("provider_rejected", ContentRejected, Permanent);
pub(super) const BAD_REQUEST: ProviderErrorKind = ("provider_rejected", Protocol, Permanent);
pub(super) const TOO_LARGE: ProviderErrorKind = ("provider_rejected", MessageTooLarge, Permanent);
pub(super) const SENDER: ProviderErrorKind = ("provider_sender_rejected", SenderRejected, Permanent);
pub(super) const RECIPIENT: ProviderErrorKind = ("provider_recipient_rejected", UnknownRecipient, Permanent);
pub(super) const RECIPIENT_POLICY: ProviderErrorKind = ("provider_recipient_rejected", Policy, Permanent);
// The account is at fault.
pub(super) const ACCESS_DENIED: ProviderErrorKind = ("provider_access_denied", Authentication, Account);
pub(super) const SUSPENDED: ProviderErrorKind = ("provider_account_suspended", AccountSuspended, Account);
pub(super) const SETTINGS: ProviderErrorKind = ("provider_settings", Configuration, Account);
pub(super) const QUOTA: ProviderErrorKind = ("provider_quota", Quota, Account);
// The provider is at fault, or nothing is known.
pub(super) const RATE: ProviderErrorKind = ("provider_rate_limited", RateLimited, Transient);
pub(super) const UNAVAILABLE: ProviderErrorKind = ("provider_unavailable", ServerBusy, Transient);
/// An earlier call with this key was accepted, with other content: it is unknown what arrived.
pub(super) const REPEATED: ProviderErrorKind = ("provider_repeated", Unknown, Transient);
const UNEXPECTED: ProviderErrorKind = ("provider_unexpected_answer", Protocol, Transient);
/// The code of a call that got no answer in time.
pub(super) const TIMEOUT_CODE: &str = "provider_timeout";
/// The code of a recipient that waits for the next call.
pub(super) const TOO_MANY_RECIPIENTS_CODE: &str = "provider_too_many_recipients";

/// The longest id of a mail that is accepted.
const ID_BYTES_MAX: usize = 256;
/// The longest error name that is stored.
const NAME_CHARS_MAX: usize = 64;

/// How a transaction with this answer ended.
pub(super) fn judge_answer(answer: &ProviderAnswer, content: AnswerContent) -> DeliveryEnd {
    let id = content.id.filter(|id| (1..=ID_BYTES_MAX).contains(&id.len()));
    match (answer.is_success(), id, &content.error) {
        (true, Some(id), None) => DeliveryEnd::Accepted {
            reply: RelayReply { code: answer.status, enhanced: None, text: format!("taken as {id}") },
            provider_message_id: Some(id),
        },
        // A proxy may have answered, so it is unknown whether the provider has seen the mail.
        (true, None, None) => {
            let message =
                format!("the answer {} has no message id: it may not be the provider's own", answer.status);
            let mut failure = failure_of_kind(UNEXPECTED, message);
            failure.original_code = Some(answer.status.to_string());
            DeliveryEnd::InDoubt(failure)
        }
        // An error in the provider's own form counts, whatever the status says.
        (true, _, Some(error)) => {
            DeliveryEnd::NotSent(named_failure(error, error.kind.unwrap_or(UNEXPECTED)))
        }
        (false, _, error) => {
            let failure = failure(answer, error.as_ref());
            let kind = error.as_ref().and_then(|error| error.kind);
            match answer.status {
                500 | 502 | 504 if kind.is_none() => DeliveryEnd::InDoubt(failure),
                _ if kind == Some(REPEATED) => DeliveryEnd::InDoubt(failure),
                _ => DeliveryEnd::NotSent(failure),
            }
        }
    }
}

/// Classifies an answer that is not a success.
pub(super) fn failure(answer: &ProviderAnswer, error: Option<&ProviderError>) -> SendFailure {
    match error {
        Some(error) => named_failure(error, error.kind.unwrap_or_else(|| kind_by_status(answer.status))),
        None => {
            let message = format!("the answer was {}, without an error of the provider's own", answer.status);
            let mut failure = failure_of_kind(kind_without_name(answer.status), message);
            failure.original_code = Some(answer.status.to_string());
            failure
        }
    }
}

/// The failure of a recipient that the provider will not send to, although it accepted the mail.
pub(super) fn left_out() -> SendFailure {
    failure_of_kind(RECIPIENT_POLICY, "the provider takes the mail and will not send it to this recipient")
}

fn failure_of_kind((code, category, severity): ProviderErrorKind, message: impl AsRef<str>) -> SendFailure {
    SendFailure::new(code, category, FailurePhase::Request, severity, message)
}

fn named_failure(error: &ProviderError, kind: ProviderErrorKind) -> SendFailure {
    let message = match error.message.trim() {
        "" => format!("the provider answered {} and said no more", error.name),
        said => said.to_owned(),
    };
    let mut failure = failure_of_kind(kind, message);
    let is_plain = |c: &char| !c.is_control();
    failure.original_code = Some(error.name.chars().filter(is_plain).take(NAME_CHARS_MAX).collect());
    failure
}

/// Classifies an error of the provider with an unknown name.
fn kind_by_status(status: u16) -> ProviderErrorKind {
    match status {
        401 | 403 => ACCESS_DENIED,
        402 => QUOTA,
        404 | 405 => SETTINGS,
        408 => UNAVAILABLE,
        413 => TOO_LARGE,
        429 => RATE,
        400..500 => BAD_REQUEST,
        500..600 => UNAVAILABLE,
        _ => UNEXPECTED,
    }
}

/// Classifies an error without a name, which may come from a proxy in front of the provider.
fn kind_without_name(status: u16) -> ProviderErrorKind {
    match status {
        // A redirect is not followed: mail and key would go elsewhere.
        300..=399 => SETTINGS,
        401..=405 | 408 | 413 | 429 | 500..600 => kind_by_status(status),
        _ => UNEXPECTED,
    }
}

/// The kind of an error by its name, from a provider's table.
pub(super) fn kind_by_name(table: &[(&[&str], ProviderErrorKind)], name: &str) -> Option<ProviderErrorKind> {
    table
        .iter()
        .find(|(names, _)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
        .map(|(_, kind)| *kind)
}

/// The kind of an error by its message, from a provider's table of phrases in lower case.
pub(super) fn kind_by_words(table: &[(&[&str], ProviderErrorKind)], said: &str) -> Option<ProviderErrorKind> {
    let said = said.to_lowercase();
    table
        .iter()
        .find(|(phrases, _)| phrases.iter().any(|phrase| said.contains(phrase)))
        .map(|(_, kind)| *kind)
}
