//! The generic form: one JSON document per mail, posted to a service that the operator runs.
//! `docs/guide/providers.md` describes it.
//!
//! An accepted mail is answered with 2xx and an `id`. The document has an `idempotency_key`, and so has the
//! header of that name: a service that remembers it sends nothing twice.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::SendFailure;
use serde_json::json;

use super::{
    answer::ProviderAnswer,
    api::{AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest},
    judge::{ACCESS_DENIED, ProviderErrorKind, QUOTA, RATE, REJECTED, UNAVAILABLE, kind_by_name},
    mail::{ProviderMail, ProviderMailForm},
};

/// The `fault` of an error: who is at fault.
const FAULTS: &[(&[&str], ProviderErrorKind)] = &[
    (&["mail"], REJECTED),
    (&["account"], ACCESS_DENIED),
    (&["quota"], QUOTA),
    (&["rate"], RATE),
    (&["provider"], UNAVAILABLE),
];

/// The generic form.
pub(super) struct GenericApi;

impl ProviderApi for GenericApi {
    fn name(&self) -> &'static str {
        "The service"
    }

    /// There is no default: the account sets the address.
    fn base(&self) -> &'static str {
        ""
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Enveloped
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 1_000, request_bytes_max: 56 * 1024 * 1024 }
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        let rest = json!({
            "id": mail.uid.to_string(),
            "idempotency_key": mail.idempotency_key,
            "sender": mail.sender,
            "recipients": mail.recipients,
        });
        let rest = rest.to_string();
        // The mail is encoded straight into the document; as a JSON value it would be copied twice more.
        let mut document = String::with_capacity(mail.raw.len().div_ceil(3) * 4 + rest.len() + 16);
        document.push_str(rest.trim_end_matches('}'));
        document.push_str(r#","raw":""#);
        BASE64_STANDARD.encode_string(&mail.raw, &mut document);
        document.push_str("\"}");
        let mut request = ProviderRequest::json("", document);
        request.headers.push(("idempotency-key", mail.idempotency_key.clone()));
        Ok(request)
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        if let Some(code) = answer.text_at("/error/code") {
            let message = answer.text_at("/error/message").unwrap_or_default();
            let kind = answer.text_at("/error/fault").and_then(|fault| kind_by_name(FAULTS, fault));
            return AnswerContent::error(code, message, kind);
        }
        AnswerContent::taken(answer.text_at("/id"))
    }

    fn check(&self) -> Option<AccountCheckCall> {
        None
    }
}
