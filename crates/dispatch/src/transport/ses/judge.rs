//! Decides what an answer of SES means: accepted, refused, or in doubt.
//!
//! The name of the error decides; if SES uses one name for several errors, its wording; and without a name,
//! the HTTP status. An error that SES itself names is definite. A 500, 502 or 504 without a name comes from a
//! proxy in front of SES, which may have passed the mail on: in doubt. Another refusal without a name is not
//! a verdict on the mail, so the mail does not fail by it, unless it is about its size. A success counts only
//! with the id that SES gave the mail: the page of a proxy or a truncated answer is in doubt, too.

use postway_domain::failure::{
    FailureCategory::{self, *},
    FailurePhase,
    FailureSeverity::{self, Account, Permanent, Transient},
    SendFailure,
};

use super::answer::SesAnswer;
use crate::transport::{DeliveryEnd, MailEnvelope, RelayReply};

type SesErrorKind = (&'static str, FailureCategory, FailureSeverity);

const MESSAGE_REJECTED: SesErrorKind = ("SES_MESSAGE_REJECTED", ContentRejected, Permanent);
const RECIPIENT_NOT_VERIFIED: SesErrorKind = ("SES_MESSAGE_REJECTED", RelayDenied, Permanent);
const BAD_REQUEST: SesErrorKind = ("SES_BAD_REQUEST", Protocol, Permanent);
const TOO_LARGE: SesErrorKind = ("SES_BAD_REQUEST", MessageTooLarge, Permanent);
const SENDING_PAUSED: SesErrorKind = ("SES_ACCOUNT_SENDING_PAUSED", AccountSuspended, Account);
const MAIL_FROM: SesErrorKind = ("SES_MAIL_FROM_DOMAIN_NOT_VERIFIED", Configuration, Account);
const IDENTITY: SesErrorKind = ("SES_IDENTITY_NOT_VERIFIED", Configuration, Account);
const CONFIGURATION_SET: SesErrorKind = ("SES_CONFIGURATION_SET_DOES_NOT_EXIST", Configuration, Account);
const ACCESS_DENIED: SesErrorKind = ("SES_ACCESS_DENIED", Authentication, Account);
const ENDPOINT: SesErrorKind = ("SES_ENDPOINT_INVALID", Configuration, Account);
const DAILY_QUOTA: SesErrorKind = ("SES_DAILY_QUOTA_EXCEEDED", Quota, Account);
const SEND_RATE: SesErrorKind = ("SES_MAX_SEND_RATE_EXCEEDED", RateLimited, Transient);
const THROTTLING: SesErrorKind = ("SES_THROTTLING", RateLimited, Transient);
const UNAVAILABLE: SesErrorKind = ("SES_SERVICE_UNAVAILABLE", ServerBusy, Transient);
const TIMEOUT: SesErrorKind = ("SES_TIMEOUT", Timeout, Transient);
const UNEXPECTED: SesErrorKind = ("SES_UNEXPECTED_ANSWER", Protocol, Transient);

/// The longest id that is accepted; ids of SES have about sixty characters.
const ID_BYTES_MAX: usize = 256;

/// How a transaction with this answer ended.
pub(super) fn judge_answer(answer: &SesAnswer, envelope: &MailEnvelope<'_>) -> DeliveryEnd {
    if answer.is_success() {
        return match answer.text("MessageId").filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX) {
            Some(id) => DeliveryEnd::Accepted {
                reply: RelayReply { code: answer.status, enhanced: None, text: format!("taken as {id}") },
                provider_message_id: Some(id.to_owned()),
            },
            None => DeliveryEnd::InDoubt(without_id(answer)),
        };
    }
    let failure = failure(answer, envelope);
    match answer.status {
        500 | 502 | 504 if answer.error.is_none() => DeliveryEnd::InDoubt(failure),
        _ => DeliveryEnd::NotSent(failure),
    }
}

/// The failure of a success without an id: SES may not have seen the mail.
fn without_id(answer: &SesAnswer) -> SendFailure {
    let (code, category, severity) = UNEXPECTED;
    let message = format!("the answer {} has no message id: it may not be the service's own", answer.status);
    let mut failure = SendFailure::new(code, category, FailurePhase::Request, severity, message);
    failure.original_code = Some(answer.status.to_string());
    failure
}

/// Classifies an answer that is not a success.
pub(super) fn failure(answer: &SesAnswer, envelope: &MailEnvelope<'_>) -> SendFailure {
    let (code, category, severity) = match &answer.error {
        Some(name) => kind_by_name(name, answer, envelope).unwrap_or_else(|| kind_by_status(answer.status)),
        None => kind_without_name(answer.status),
    };
    let message = match answer.message.as_str() {
        "" => format!("the service answered {} and said no more", answer.status),
        said => said.to_owned(),
    };
    let mut failure = SendFailure::new(code, category, FailurePhase::Request, severity, message);
    failure.original_code = Some(answer.error.clone().unwrap_or_else(|| answer.status.to_string()));
    failure
}

fn kind_by_name(name: &str, answer: &SesAnswer, envelope: &MailEnvelope<'_>) -> Option<SesErrorKind> {
    let said = answer.message.to_ascii_lowercase();
    // The same error is called `Throttling` in one API and `ThrottlingException` in another.
    Some(match name.strip_suffix("Exception").unwrap_or(name) {
        "MessageRejected" => rejection_kind(&said, envelope),
        "AccountSendingPaused" | "SendingPaused" | "ConfigurationSetSendingPaused" | "AccountSuspended" => {
            SENDING_PAUSED
        }
        "MailFromDomainNotVerified" => MAIL_FROM,
        // SendEmail refers to nothing else that could be missing.
        "ConfigurationSetDoesNotExist" | "NotFound" => CONFIGURATION_SET,
        "DailyQuotaExceeded" => DAILY_QUOTA,
        "MaxSendRateExceeded" => SEND_RATE,
        "Throttling"
        | "Throttled"
        | "TooManyRequests"
        | "LimitExceeded"
        | "RequestThrottled"
        | "RequestLimitExceeded"
        | "ThrottledRequest" => throttling_kind(&said),
        "ServiceUnavailable"
        | "InternalFailure"
        | "InternalServiceError"
        | "InternalService"
        | "InternalServerError"
        | "InternalServer"
        | "ServiceFailure" => UNAVAILABLE,
        "RequestTimeout" => TIMEOUT,
        "AccessDenied"
        | "InvalidClientTokenId"
        | "UnrecognizedClient"
        | "SignatureDoesNotMatch"
        | "InvalidSignature"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "ExpiredToken"
        | "InvalidToken"
        | "RequestExpired"
        | "RequestInTheFuture"
        | "InvalidAccessKeyId"
        | "NotAuthorized"
        | "OptInRequired" => ACCESS_DENIED,
        "UnknownOperation" | "NotImplemented" => ENDPOINT,
        "BadRequest" | "InvalidParameterValue" | "Validation" | "ValidationError" | "Serialization" => {
            BAD_REQUEST
        }
        _ => return None,
    })
}

/// What a rejection is about: the mail, unless its wording says that the account may not send.
fn rejection_kind(said: &str, envelope: &MailEnvelope<'_>) -> SesErrorKind {
    if said.contains("sending paused") || said.contains("sending suspended") {
        return SENDING_PAUSED;
    }
    if !said.contains("not verified") {
        return MESSAGE_REJECTED;
    }
    // "Email address is not verified. The following identities failed the check in region US-EAST-1: a@b.c,
    // d@e.f"
    let listed = said.rsplit_once(": ").map_or("", |(_, list)| list);
    let is_recipient = |identity: &str| {
        let is = |address: &&str| address.eq_ignore_ascii_case(identity);
        envelope.recipients.iter().any(is) && !is(&envelope.sender)
    };
    let mut identities =
        listed.split(',').map(str::trim).filter(|identity| identity.contains('@')).peekable();
    // An account that may send only to verified addresses names the recipients.
    match identities.peek().is_some() && identities.all(is_recipient) {
        true => RECIPIENT_NOT_VERIFIED,
        false => IDENTITY,
    }
}

/// Which limit was exceeded; SES has one name for all of them.
fn throttling_kind(said: &str) -> SesErrorKind {
    if said.contains("daily") || said.contains("24-hour") || said.contains("quota exceeded") {
        DAILY_QUOTA
    } else if said.contains("sending rate") || said.contains("send rate") {
        SEND_RATE
    } else {
        THROTTLING
    }
}

/// Classifies an error of SES with an unknown name.
fn kind_by_status(status: u16) -> SesErrorKind {
    match status {
        401 | 403 => ACCESS_DENIED,
        404 => ENDPOINT,
        408 => TIMEOUT,
        413 => TOO_LARGE,
        429 => THROTTLING,
        400..500 => BAD_REQUEST,
        500..600 => UNAVAILABLE,
        _ => UNEXPECTED,
    }
}

/// Classifies an error without a name, which may come from a proxy in front of SES.
fn kind_without_name(status: u16) -> SesErrorKind {
    match status {
        300..=399 | 404 | 405 => ENDPOINT,
        401 | 403 | 408 | 413 | 429 | 500..600 => kind_by_status(status),
        // Not a verdict on the mail.
        _ => UNEXPECTED,
    }
}

#[cfg(test)]
mod tests;
