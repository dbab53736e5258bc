//! Microsoft Graph: `POST /v1.0/users/{mailbox}/sendMail`, the mail as MIME in base64.
//!
//! The recipients are those in the mail's header. An accepted mail is answered with 202, no body, and
//! `request-id`, which is what Microsoft finds it by. Graph has no idempotency: a repeated call sends again.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::SendFailure;

use super::{
    answer::ProviderAnswer,
    api::{AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest, percent_encoded},
    judge::{
        ACCESS_DENIED, BAD_REQUEST, ProviderErrorKind, QUOTA, RATE, RECIPIENT, REJECTED, SENDER, SETTINGS,
        SUSPENDED, TOO_LARGE, UNAVAILABLE, kind_by_name,
    },
    mail::{ProviderMail, ProviderMailForm},
};

/// What the names of errors mean.
const NAMES: &[(&[&str], ProviderErrorKind)] = &[
    (
        &[
            "InvalidAuthenticationToken",
            "AuthenticationError",
            "ErrorAccessDenied",
            "Authorization_RequestDenied",
            "accessDenied",
            "unauthenticated",
        ],
        ACCESS_DENIED,
    ),
    (&["ErrorSendAsDenied", "ErrorInvalidSender"], SENDER),
    (&["ErrorInvalidRecipients"], RECIPIENT),
    (&["ErrorMimeContentInvalid", "ErrorMimeContentInvalidBase64String", "ErrorItemCorrupt"], REJECTED),
    (&["ErrorMessageSizeExceeded", "RequestEntityTooLarge", "ErrorMaximumAttachmentSize"], TOO_LARGE),
    (&["ErrorExceededMessageLimit", "ErrorQuotaExceeded", "quotaLimitReached"], QUOTA),
    (&["ErrorAccountSuspend", "ErrorMessageSubmissionBlocked", "ErrorAccountSuspended"], SUSPENDED),
    (
        &[
            "ErrorInvalidUser",
            "MailboxNotEnabledForRESTAPI",
            "MailboxNotSupportedForRESTAPI",
            "ResourceNotFound",
            "Request_ResourceNotFound",
            "ErrorNonExistentMailbox",
        ],
        SETTINGS,
    ),
    (&["ApplicationThrottled", "TooManyRequests", "ErrorTooManyRequests", "activityLimitReached"], RATE),
    (
        &["ErrorServerBusy", "serviceNotAvailable", "MailboxStoreUnavailable", "ErrorMailboxMoveInProgress"],
        UNAVAILABLE,
    ),
    (&["BadRequest", "invalidRequest", "ErrorInvalidRequest"], BAD_REQUEST),
];

/// The API for one mailbox.
pub(super) struct GraphApi {
    pub mailbox: String,
}

impl GraphApi {
    fn user(&self) -> String {
        format!("/v1.0/users/{}", percent_encoded(&self.mailbox))
    }
}

impl ProviderApi for GraphApi {
    fn name(&self) -> &'static str {
        "Microsoft Graph"
    }

    fn base(&self) -> &'static str {
        "https://graph.microsoft.com"
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Addressed
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 500, request_bytes_max: 4 * 1024 * 1024 }
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        Ok(ProviderRequest {
            path: format!("{}/sendMail", self.user()),
            content_type: "text/plain".to_owned(),
            headers: vec![("client-request-id", mail.uid.to_string())],
            body: BASE64_STANDARD.encode(&mail.raw).into(),
        })
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        if let Some(name) = answer.text_at("/error/code") {
            let message = answer.text_at("/error/message").unwrap_or_default();
            return AnswerContent::error(name, message, kind_by_name(NAMES, name));
        }
        let is_taken = answer.status == 202;
        AnswerContent::taken(answer.header("request-id").filter(|_| is_taken))
    }

    fn check(&self) -> Option<AccountCheckCall> {
        Some(AccountCheckCall { path: self.user(), form: None })
    }

    fn is_good_check(&self, answer: &ProviderAnswer) -> bool {
        // A token that may only send cannot read its user.
        answer.status == 403 && answer.text_at("/error/code").is_some()
    }
}
