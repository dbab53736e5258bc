//! What one provider's API is like.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use postway_domain::failure::{Category, Failure, Phase, Severity};

use super::{
    answer::ProviderAnswer,
    judge::ProviderErrorKind,
    mail::{FieldedMail, ProviderMail, ProviderMailForm},
};

/// How many recipients and bytes one call takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallBounds {
    pub recipients_max: usize,
    /// Of the request as it is written, after any encoding.
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

/// What an answer says, in the provider's own form.
#[derive(Debug, Default)]
pub(super) struct AnswerContent {
    /// Its id for the mail.
    pub id: Option<String>,
    /// Its error. Only the provider itself names one; what stands before it does not.
    pub error: Option<ProviderError>,
    /// Recipients to whom it will not send, though it takes the mail.
    pub left_out: Vec<String>,
}

/// An error as the provider names it.
#[derive(Debug)]
pub(super) struct ProviderError {
    /// Its own name or number for the trouble.
    pub name: String,
    /// What it said.
    pub message: String,
    /// What that means, where it is known.
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

    /// A mail that was taken, where the answer has its id.
    pub fn taken(id: Option<&str>) -> Self {
        Self { id: id.map(str::to_owned), ..Self::default() }
    }
}

/// A call that tells whether an account may send, and sends nothing.
#[derive(Debug)]
pub(super) struct AccountCheckCall {
    pub path: String,
    /// Such a call is a GET, or a POST of a form that names nobody.
    pub form: Option<&'static str>,
}

/// The API of one provider.
pub(super) trait ProviderApi: Send + Sync {
    /// Its name for people.
    fn name(&self) -> &'static str;

    /// Its address, where the account gives no other.
    fn base(&self) -> &'static str;

    /// The form in which it takes mail.
    fn form(&self) -> ProviderMailForm;

    /// How much one call takes.
    fn bounds(&self) -> CallBounds;

    /// The header that proves who calls.
    fn sign_in(&self, secret: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {secret}"))
    }

    /// The request for a mail.
    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, Failure>;

    /// What an answer says.
    fn read(&self, answer: &ProviderAnswer) -> AnswerContent;

    /// How to ask whether the account may send; none where every call sends.
    fn check(&self) -> Option<AccountCheckCall>;

    /// Whether an answer to the check that is no success shows a key that may send all the same.
    fn is_good_check(&self, _answer: &ProviderAnswer) -> bool {
        false
    }
}

/// HTTP's basic authentication.
pub(super) fn basic(username: &str, secret: &str) -> (&'static str, String) {
    ("authorization", format!("Basic {}", BASE64_STANDARD.encode(format!("{username}:{secret}"))))
}

/// The mail holds something that the provider has no place for.
pub(super) fn uncarried(message: impl AsRef<str>) -> Failure {
    Failure::new(
        "provider_unsupported",
        Category::ContentRejected,
        Phase::Compose,
        Severity::Permanent,
        message,
    )
}

/// The fields of a mail; whoever asks for them has said so by its form.
pub(super) fn fields<'m, 'a>(mail: &'m ProviderMail<'a>) -> Result<&'m FieldedMail<'a>, Failure> {
    mail.fields.as_ref().ok_or_else(|| uncarried("the mail was not taken apart"))
}

/// A part of a path.
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
