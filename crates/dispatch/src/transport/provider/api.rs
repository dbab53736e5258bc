//! The trait that describes one provider's API.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity, SendFailure};

use super::{
    answer::ProviderAnswer,
    judge::ProviderErrorKind,
    mail::{FieldedMail, ProviderMail, ProviderMailForm},
};

/// How many recipients and bytes one call takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallBounds {
    pub recipients_max: usize,
    /// The size of the request as it is written, after any encoding.
    pub request_bytes_max: usize,
}

/// A request, ready to be written.
#[derive(Debug)]
pub(super) struct ProviderRequest {
    /// Below the provider's address, percent-encoded.
    pub path: String,
    pub content_type: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

impl ProviderRequest {
    /// A JSON document.
    pub fn json(path: impl Into<String>, document: impl Into<Bytes>) -> Self {
        let (path, content_type) = (path.into(), "application/json".to_owned());
        Self { path, content_type, headers: Vec::new(), body: document.into() }
    }
}

/// The content of an answer, read from the provider's own form.
#[derive(Debug, Default)]
pub(super) struct AnswerContent {
    /// The provider's id for the mail.
    pub id: Option<String>,
    /// The error. Only the provider itself names one; a proxy in front of it does not.
    pub error: Option<ProviderError>,
    /// Recipients that the provider will not send to, although it accepted the mail.
    pub left_out: Vec<String>,
}

/// An error as the provider names it.
#[derive(Debug)]
pub(super) struct ProviderError {
    /// The provider's name or number for the error.
    pub name: String,
    /// The message of the error.
    pub message: String,
    /// What it means, if known.
    pub kind: Option<ProviderErrorKind>,
}

impl AnswerContent {
    pub fn error(
        name: impl Into<String>,
        message: impl Into<String>,
        kind: Option<ProviderErrorKind>,
    ) -> Self {
        let error = ProviderError { name: name.into(), message: message.into(), kind };
        Self { error: Some(error), ..Self::default() }
    }

    /// The content of an answer that accepts the mail, if it has an id.
    pub fn taken(id: Option<&str>) -> Self {
        Self { id: id.map(str::to_owned), ..Self::default() }
    }
}

/// A call that shows whether an account may send, without sending.
#[derive(Debug)]
pub(super) struct AccountCheckCall {
    pub path: String,
    /// The call is a GET, or a POST of this form, which has no recipients.
    pub form: Option<&'static str>,
}

/// The API of one provider.
pub(super) trait ProviderApi: Send + Sync {
    /// The name shown to people.
    fn name(&self) -> &'static str;

    /// The base address, if the account sets no other.
    fn base(&self) -> &'static str;

    /// The form in which it accepts mail.
    fn form(&self) -> ProviderMailForm;

    /// How much one call may contain.
    fn bounds(&self) -> CallBounds;

    /// The header that authenticates a call.
    fn sign_in(&self, secret: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {secret}"))
    }

    /// The request for a mail.
    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure>;

    /// Reads an answer.
    fn read(&self, answer: &ProviderAnswer) -> AnswerContent;

    /// The call that checks whether the account may send; `None` if every call sends.
    fn check(&self) -> Option<AccountCheckCall>;

    /// Whether an answer to the check that is not a success still shows a key that may send.
    fn is_good_check(&self, _answer: &ProviderAnswer) -> bool {
        false
    }
}

/// HTTP's basic authentication.
pub(super) fn basic_auth(username: &str, secret: &str) -> (&'static str, String) {
    ("authorization", format!("Basic {}", BASE64_STANDARD.encode(format!("{username}:{secret}"))))
}

/// The failure of a mail with content that the provider cannot carry.
pub(super) fn unsupported_content(message: impl AsRef<str>) -> SendFailure {
    SendFailure::new(
        "provider_unsupported",
        FailureCategory::ContentRejected,
        FailurePhase::Compose,
        FailureSeverity::Permanent,
        message,
    )
}

/// The fields of a mail. They are present if the provider's form is [`ProviderMailForm::Fields`].
pub(super) fn mail_fields<'m, 'a>(mail: &'m ProviderMail<'a>) -> Result<&'m FieldedMail<'a>, SendFailure> {
    mail.fields.as_ref().ok_or_else(|| unsupported_content("the mail was not taken apart"))
}

/// Percent-encodes one segment of a path.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
