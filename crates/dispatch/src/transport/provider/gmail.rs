//! Gmail's API: `POST /upload/gmail/v1/users/{mailbox}/messages/send`, the stored mail.
//!
//! The recipients are those in the mail's header. An accepted mail is answered with 200 and an `id`. Gmail
//! has no idempotency: a repeat is sent.

use postway_domain::SendFailure;

use super::{
    answer::ProviderAnswer,
    api::{AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest, percent_encoded},
    judge::{
        ACCESS_DENIED, BAD_REQUEST, ProviderErrorKind, QUOTA, RATE, RECIPIENT, SETTINGS, SUSPENDED,
        TOO_LARGE, UNAVAILABLE, kind_by_name, kind_by_words,
    },
    mail::{ProviderMail, ProviderMailForm},
};

/// What the reasons of errors mean.
const REASONS: &[(&[&str], ProviderErrorKind)] = &[
    (&["authError", "insufficientPermissions", "forbidden", "required", "delegationDenied"], ACCESS_DENIED),
    (&["dailyLimitExceeded", "quotaExceeded", "limitExceeded"], QUOTA),
    (&["rateLimitExceeded", "userRateLimitExceeded"], RATE),
    (&["domainPolicy", "accountDisabled"], SUSPENDED),
    (&["accessNotConfigured", "notFound", "SERVICE_DISABLED"], SETTINGS),
    (&["uploadTooLarge"], TOO_LARGE),
    (&["invalidArgument", "badRequest", "invalid", "failedPrecondition", "parseError"], BAD_REQUEST),
    (&["serviceUnavailable"], UNAVAILABLE),
];
/// Phrases of messages whose reason covers many errors.
const WORDS: &[(&[&str], ProviderErrorKind)] = &[
    (&["mail service not enabled", "delegation denied"], SETTINGS),
    (
        &["invalid to header", "invalid cc header", "invalid bcc header", "recipient address required"],
        RECIPIENT,
    ),
];

/// The API for one mailbox.
pub(super) struct GmailApi {
    pub mailbox: String,
}

impl ProviderApi for GmailApi {
    fn name(&self) -> &'static str {
        "Gmail"
    }

    fn base(&self) -> &'static str {
        "https://gmail.googleapis.com"
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Addressed
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 500, request_bytes_max: 35 * 1024 * 1024 }
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        Ok(ProviderRequest {
            path: format!("/upload/gmail/v1/users/{}/messages/send", percent_encoded(&self.mailbox)),
            content_type: "message/rfc822".to_owned(),
            headers: Vec::new(),
            body: mail.raw.to_vec().into(),
        })
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        let reason = answer.text_at("/error/errors/0/reason").or_else(|| answer.text_at("/error/status"));
        if let Some(name) = reason {
            let message = answer.text_at("/error/message").unwrap_or_default();
            let kind = kind_by_words(WORDS, message).or_else(|| kind_by_name(REASONS, name));
            return AnswerContent::error(name, message, kind);
        }
        AnswerContent::taken(answer.text_at("/id"))
    }

    fn check(&self) -> Option<AccountCheckCall> {
        let mailbox = percent_encoded(&self.mailbox);
        Some(AccountCheckCall { path: format!("/gmail/v1/users/{mailbox}/profile"), form: None })
    }

    fn is_good_check(&self, answer: &ProviderAnswer) -> bool {
        // A token that may only send cannot read the profile.
        let reason = answer.text_at("/error/errors/0/reason");
        answer.status == 403 && matches!(reason, Some("insufficientPermissions" | "insufficientScopes"))
    }
}
