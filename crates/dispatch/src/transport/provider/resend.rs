//! Resend: `POST /emails`.
//!
//! An accepted mail is answered with 200 and an `id`. Resend remembers an `Idempotency-Key` for a day: a
//! repeat with it, as after a doubt, is answered with the id of the first call and not sent again.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::SendFailure;
use postway_mime::reader::HeaderAddress;
use serde_json::{Value, json};

use super::{
    answer::ProviderAnswer,
    api::{AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest, mail_fields},
    judge::{
        ACCESS_DENIED, BAD_REQUEST, ProviderErrorKind, QUOTA, RATE, REJECTED, REPEATED, SENDER, SETTINGS,
        UNAVAILABLE, kind_by_name, kind_by_words,
    },
    mail::{
        ProviderMail, ProviderMailForm, ProviderRecipient, UID_FIELD, header_object, refuse_alternatives,
    },
};

/// What the names of errors mean.
const NAMES: &[(&[&str], ProviderErrorKind)] = &[
    (&["missing_api_key", "restricted_api_key", "invalid_api_key", "invalid_access"], ACCESS_DENIED),
    (&["monthly_quota_exceeded", "daily_quota_exceeded"], QUOTA),
    (&["rate_limit_exceeded"], RATE),
    (&["invalid_from_address"], SENDER),
    (&["invalid_attachment", "security_error"], REJECTED),
    (&["missing_required_field", "invalid_parameter", "invalid_idempotency_key"], BAD_REQUEST),
    (&["not_found", "method_not_allowed", "invalid_region"], SETTINGS),
    (&["invalid_idempotent_request"], REPEATED),
    // Another call with this key is under way; a later try learns its outcome.
    (&["concurrent_idempotent_requests"], UNAVAILABLE),
];
/// Phrases of messages whose name covers many errors.
const WORDS: &[(&[&str], ProviderErrorKind)] =
    &[(&["domain is not verified", "testing emails", "`from`"], SENDER), (&[""], BAD_REQUEST)];

/// Resend's API.
pub(super) struct ResendApi;

impl ProviderApi for ResendApi {
    fn name(&self) -> &'static str {
        "Resend"
    }

    fn base(&self) -> &'static str {
        "https://api.resend.com"
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Fields
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 50, request_bytes_max: 40 * 1024 * 1024 }
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        let fields = mail_fields(mail)?;
        let content = &fields.content;
        refuse_alternatives(content, self.name())?;
        let mut document = json!({
            "from": written(&content.from),
            "to": list(&fields.to),
            "subject": content.subject,
            "tags": [{"name": UID_FIELD, "value": mail.uid}],
        });
        let headers = header_object(&content.headers, self.name())?;
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                document[name] = value;
            }
        };
        set("cc", (!fields.cc.is_empty()).then(|| list(&fields.cc)));
        set("bcc", (!fields.bcc.is_empty()).then(|| list(&fields.bcc)));
        let reply_to: Vec<String> = content.reply_to.iter().map(written).collect();
        set("reply_to", (!reply_to.is_empty()).then(|| Value::from(reply_to)));
        set("html", content.html.as_deref().map(Value::from));
        // Resend refuses a mail without a body; a line break serves as an empty one.
        let text = content.text.as_deref().or(content.html.is_none().then_some("\n"));
        set("text", text.map(|text| if text.is_empty() { "\n" } else { text }).map(Value::from));
        set("headers", (!headers.is_empty()).then_some(Value::Object(headers)));
        if !content.files.is_empty() {
            let file = |file: &postway_mime::dissected::DissectedFile<'_>| {
                let mut made = json!({
                    "filename": file.name,
                    "content": BASE64_STANDARD.encode(&file.content),
                    "content_type": file.content_type,
                });
                if let Some(id) = file.content_id {
                    made["content_id"] = Value::from(id);
                }
                made
            };
            document["attachments"] = content.files.iter().map(file).collect();
        }
        let mut request = ProviderRequest::json("/emails", document.to_string());
        request.headers.push(("idempotency-key", mail.idempotency_key.clone()));
        Ok(request)
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        if let Some(id) = answer.text_at("/id") {
            return AnswerContent::taken(Some(id));
        }
        let Some(name) = answer.text_at("/name") else { return AnswerContent::default() };
        let message = answer.text_at("/message").unwrap_or_default();
        let kind = match name {
            "validation_error" => kind_by_words(WORDS, message),
            name => kind_by_name(NAMES, name),
        };
        AnswerContent::error(name, message, kind)
    }

    fn check(&self) -> Option<AccountCheckCall> {
        Some(AccountCheckCall { path: "/domains".to_owned(), form: None })
    }

    fn is_good_check(&self, answer: &ProviderAnswer) -> bool {
        // A key that may only send is valid.
        answer.text_at("/name") == Some("restricted_api_key")
    }
}

fn list(recipients: &[ProviderRecipient]) -> Value {
    recipients.iter().map(ProviderRecipient::written).collect()
}

fn written(one: &HeaderAddress) -> String {
    ProviderRecipient { name: one.name.clone(), address: one.address.clone().unwrap_or_default() }.written()
}
