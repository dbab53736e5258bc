//! SendGrid, API v3: `POST /v3/mail/send`.
//!
//! An accepted mail is answered with 202, no body, and `X-Message-Id`. SendGrid has no idempotency: a
//! repeated call sends again.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::SendFailure;
use postway_mime::reader::HeaderAddress;
use serde_json::{Value, json};

use super::{
    answer::ProviderAnswer,
    api::{
        AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest, mail_fields,
        unsupported_content,
    },
    judge::{BAD_REQUEST, ProviderErrorKind, QUOTA, RECIPIENT, SENDER, SUSPENDED, TOO_LARGE, kind_by_words},
    mail::{ProviderMail, ProviderMailForm, ProviderRecipient, UID_FIELD, header_object},
};

/// Phrases of error messages; SendGrid gives errors no names.
const WORDS: &[(&[&str], ProviderErrorKind)] = &[
    (&["maximum credits exceeded", "exceeded your messaging limits", "sending limit"], QUOTA),
    (
        &["account is suspended", "account has been disabled", "is under review", "account disabled"],
        SUSPENDED,
    ),
    (&["verified sender identity", "from address", "from email", "from.email"], SENDER),
    (&["does not contain a valid address", "invalid email address"], RECIPIENT),
    (&["exceeds the maximum", "too large", "message size"], TOO_LARGE),
];
/// Header fields that SendGrid refuses.
const RESERVED: [&str; 2] = ["x-sg-id", "x-sg-eid"];

/// SendGrid's API.
pub(super) struct SendgridApi;

impl ProviderApi for SendgridApi {
    fn name(&self) -> &'static str {
        "SendGrid"
    }

    fn base(&self) -> &'static str {
        "https://api.sendgrid.com"
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Fields
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 1_000, request_bytes_max: 30 * 1024 * 1024 }
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        let fields = mail_fields(mail)?;
        let content = &fields.content;
        let mut personalization = json!({"to": list(&fields.to)});
        for (name, recipients) in [("cc", &fields.cc), ("bcc", &fields.bcc)] {
            if !recipients.is_empty() {
                personalization[name] = list(recipients);
            }
        }
        let headers = header_object(&content.headers, self.name())?;
        if let Some(name) =
            headers.keys().find(|name| RESERVED.iter().any(|own| name.eq_ignore_ascii_case(own)))
        {
            return Err(unsupported_content(format!("SendGrid keeps the header field {name} for itself")));
        }
        // SendGrid refuses empty bodies; a line break serves as an empty one.
        let or_blank = |text: &str| if text.is_empty() { "\n".to_owned() } else { text.to_owned() };
        let mut forms = Vec::new();
        if let Some(text) = content.text.as_deref().or(content.html.is_none().then_some("")) {
            forms.push(json!({"type": "text/plain", "value": or_blank(text)}));
        }
        if let Some(html) = &content.html {
            forms.push(json!({"type": "text/html", "value": or_blank(html)}));
        }
        forms.extend(
            content.alternatives.iter().map(|(kind, text)| json!({"type": kind, "value": or_blank(text)})),
        );
        let mut document = json!({
            "personalizations": [personalization],
            "from": address(&content.from),
            // SendGrid refuses an empty subject as well.
            "subject": if content.subject.is_empty() { " " } else { &content.subject },
            "content": forms,
            // Comes back with every event of the mail, also with late bounces, which have no other id.
            "custom_args": {UID_FIELD: mail.uid},
        });
        if !headers.is_empty() {
            document["headers"] = Value::Object(headers);
        }
        if !content.reply_to.is_empty() {
            document["reply_to_list"] = content.reply_to.iter().map(address).collect();
        }
        if !content.files.is_empty() {
            let file = |file: &postway_mime::dissected::DissectedFile<'_>| {
                let mut made = json!({
                    "content": BASE64_STANDARD.encode(&file.content),
                    "type": file.content_type,
                    "filename": file.name,
                    "disposition": if file.is_inline { "inline" } else { "attachment" },
                });
                if let Some(id) = file.content_id {
                    made["content_id"] = Value::from(id);
                }
                made
            };
            document["attachments"] = content.files.iter().map(file).collect();
        }
        Ok(ProviderRequest::json("/v3/mail/send", document.to_string()))
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        if let Some(message) = answer.text_at("/errors/0/message") {
            let name =
                answer.text_at("/errors/0/field").map_or_else(|| answer.status.to_string(), str::to_owned);
            let known = kind_by_words(WORDS, &format!("{message} {name}")).filter(|_| answer.status < 500);
            // Any other 400 is about the mail.
            let kind = known.or((answer.status == 400).then_some(BAD_REQUEST));
            return AnswerContent::error(name, message, kind);
        }
        AnswerContent::taken(answer.header("x-message-id"))
    }

    fn check(&self) -> Option<AccountCheckCall> {
        Some(AccountCheckCall { path: "/v3/scopes".to_owned(), form: None })
    }

    fn is_good_check(&self, answer: &ProviderAnswer) -> bool {
        // A key that may only send cannot read its scopes.
        answer.status == 403 && answer.text_at("/errors/0/message").is_some()
    }
}

fn list(recipients: &[ProviderRecipient]) -> Value {
    let one = |recipient: &ProviderRecipient| named(recipient.name.as_deref(), &recipient.address);
    recipients.iter().map(one).collect()
}

fn address(one: &HeaderAddress) -> Value {
    named(one.name.as_deref(), one.address.as_deref().unwrap_or_default())
}

fn named(name: Option<&str>, email: &str) -> Value {
    match name {
        Some(name) => json!({"email": email, "name": name}),
        None => json!({"email": email}),
    }
}
