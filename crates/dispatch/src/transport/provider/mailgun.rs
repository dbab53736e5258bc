//! Mailgun, API v3: `POST /v3/{domain}/messages.mime`, a form with the recipients and the stored mail.
//!
//! An accepted mail is answered with 200 and an `id`, the Message-ID in its brackets. Mailgun has no
//! idempotency: a repeated call sends again. Accounts in Europe have another address
//! (`https://api.eu.mailgun.net`).

use aws_lc_rs::digest;
use postway_domain::SendFailure;

use super::{
    answer::ProviderAnswer,
    api::{
        AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest, basic_auth,
        percent_encoded,
    },
    judge::{
        BAD_REQUEST, ProviderErrorKind, QUOTA, RECIPIENT, SENDER, SETTINGS, SUSPENDED, TOO_LARGE,
        kind_by_words,
    },
    mail::{ProviderMail, ProviderMailForm, UID_FIELD},
};

/// Phrases of error messages; Mailgun gives errors no names.
const WORDS: &[(&[&str], ProviderErrorKind)] = &[
    (&["limit exceeded", "exceeded the limit", "plan limit", "message limit", "quota"], QUOTA),
    (&["is not allowed to send", "disabled", "suspended", "not activated"], SUSPENDED),
    (&["domain not found", "mailgun magnificent api", "sandbox subdomains"], SETTINGS),
    (&["'from' parameter", "from header"], SENDER),
    (&["'to' parameter", "to parameter"], RECIPIENT),
    (&["too large", "max size", "exceeds"], TOO_LARGE),
];

/// The API for one sending domain.
pub(super) struct MailgunApi {
    pub domain: String,
}

impl MailgunApi {
    fn path(&self) -> String {
        format!("/v3/{}/messages.mime", percent_encoded(&self.domain))
    }
}

impl ProviderApi for MailgunApi {
    fn name(&self) -> &'static str {
        "Mailgun"
    }

    fn base(&self) -> &'static str {
        "https://api.mailgun.net"
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Enveloped
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 1_000, request_bytes_max: 25 * 1024 * 1024 }
    }

    fn sign_in(&self, secret: &str) -> (&'static str, String) {
        basic_auth("api", secret)
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        // The boundary is a digest of the mail, which the mail itself cannot contain.
        let digest = digest::digest(&digest::SHA256, &mail.raw);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let boundary = format!("postway{}", &digest[..48]);
        let mut body = Vec::with_capacity(mail.raw.len() + mail.recipients.len() * 128 + 512);
        for recipient in mail.recipients {
            let part =
                format!("--{boundary}\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\n{recipient}\r\n");
            body.extend_from_slice(part.as_bytes());
        }
        let part = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"v:{UID_FIELD}\"\r\n\r\n{}\r\n",
            mail.uid
        );
        body.extend_from_slice(part.as_bytes());
        let part = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"message\"; filename=\"mail.eml\"\r\n\
             Content-Type: message/rfc822\r\n\r\n"
        );
        body.extend_from_slice(part.as_bytes());
        body.extend_from_slice(&mail.raw);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let content_type = format!("multipart/form-data; boundary={boundary}");
        Ok(ProviderRequest { path: self.path(), content_type, headers: Vec::new(), body: body.into() })
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        let said = answer.text_at("/message").or_else(|| answer.text_at("/Error"));
        if answer.is_success() {
            // Events name the id without its brackets.
            return AnswerContent::taken(answer.text_at("/id").map(|id| id.trim_matches(['<', '>'])));
        }
        let Some(message) = said else { return AnswerContent::default() };
        let known = kind_by_words(WORDS, message).filter(|_| answer.status < 500);
        let kind = known.or((answer.status == 400).then_some(BAD_REQUEST));
        AnswerContent::error(answer.status.to_string(), message, kind)
    }

    /// A form without recipients is refused only after the key and the domain were found valid.
    fn check(&self) -> Option<AccountCheckCall> {
        Some(AccountCheckCall { path: self.path(), form: Some("") })
    }

    fn is_good_check(&self, answer: &ProviderAnswer) -> bool {
        answer.status == 400 && answer.text_at("/message").is_some()
    }
}
