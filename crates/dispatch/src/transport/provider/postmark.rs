//! Postmark: `POST /email`.
//!
//! An accepted mail is answered with 200, `ErrorCode` 0 and a `MessageID`. Errors have a number, and may come
//! with 200 as well. Postmark has no idempotency: a repeated call sends again. It keeps our Message-ID if
//! asked to (`X-PM-KeepID`).

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::SendFailure;
use postway_mime::reader::HeaderAddress;
use serde_json::{Value, json};

use super::{
    answer::ProviderAnswer,
    api::{AccountCheckCall, AnswerContent, CallBounds, ProviderApi, ProviderRequest, mail_fields},
    judge::{
        ACCESS_DENIED, BAD_REQUEST, ProviderErrorKind, QUOTA, RATE, RECIPIENT_POLICY, REJECTED, SENDER,
        SETTINGS, SUSPENDED, UNAVAILABLE,
    },
    mail::{ProviderMail, ProviderMailForm, ProviderRecipient, UID_FIELD, refuse_alternatives},
};

/// What the numbers of errors mean.
const CODES: &[(&[i64], ProviderErrorKind)] = &[
    (&[10, 11, 12], ACCESS_DENIED),
    (&[300, 402, 403, 409, 410], BAD_REQUEST),
    (&[400, 401], SENDER),
    (&[405], QUOTA),
    (&[406], RECIPIENT_POLICY),
    (&[411], REJECTED),
    (&[412, 413], SUSPENDED),
    (&[429], RATE),
    (&[1226, 1235, 1236], SETTINGS),
    (&[100], UNAVAILABLE),
];

/// Postmark's API for one message stream.
pub(super) struct PostmarkApi {
    pub message_stream: Option<String>,
}

impl ProviderApi for PostmarkApi {
    fn name(&self) -> &'static str {
        "Postmark"
    }

    fn base(&self) -> &'static str {
        "https://api.postmarkapp.com"
    }

    fn form(&self) -> ProviderMailForm {
        ProviderMailForm::Fields
    }

    fn bounds(&self) -> CallBounds {
        CallBounds { recipients_max: 50, request_bytes_max: 10 * 1024 * 1024 }
    }

    fn sign_in(&self, secret: &str) -> (&'static str, String) {
        ("x-postmark-server-token", secret.to_owned())
    }

    fn request(&self, mail: &ProviderMail<'_>) -> Result<ProviderRequest, SendFailure> {
        let fields = mail_fields(mail)?;
        let content = &fields.content;
        refuse_alternatives(content, self.name())?;
        let header = |name: &str, value: &str| json!({"Name": name, "Value": value});
        let mut headers: Vec<Value> =
            content.headers.iter().map(|(name, value)| header(name, value)).collect();
        headers.push(header("X-PM-KeepID", "true"));
        let mut document = json!({
            "From": written(&content.from),
            "To": list(&fields.to),
            "Subject": content.subject,
            "Headers": headers,
            "Metadata": {UID_FIELD: mail.uid},
        });
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                document[name] = Value::from(value);
            }
        };
        set("Cc", Some(list(&fields.cc)).filter(|list| !list.is_empty()));
        set("Bcc", Some(list(&fields.bcc)).filter(|list| !list.is_empty()));
        let reply_to: Vec<String> = content.reply_to.iter().map(written).collect();
        set("ReplyTo", Some(reply_to.join(", ")).filter(|list| !list.is_empty()));
        set("HtmlBody", content.html.as_deref().map(str::to_owned));
        // Postmark refuses a mail without a body; a line break serves as an empty one.
        let text = content.text.as_deref().or(content.html.is_none().then_some("\n"));
        set("TextBody", text.map(|text| if text.is_empty() { "\n" } else { text }.to_owned()));
        set("MessageStream", self.message_stream.clone());
        if !content.files.is_empty() {
            let file = |file: &postway_mime::dissected::DissectedFile<'_>| {
                let mut made = json!({
                    "Name": file.name,
                    "Content": BASE64_STANDARD.encode(&file.content),
                    "ContentType": file.content_type,
                });
                if let Some(id) = file.content_id {
                    made["ContentID"] = Value::from(format!("cid:{id}"));
                }
                made
            };
            document["Attachments"] = content.files.iter().map(file).collect();
        }
        Ok(ProviderRequest::json("/email", document.to_string()))
    }

    fn read(&self, answer: &ProviderAnswer) -> AnswerContent {
        match answer.number_at("/ErrorCode") {
            Some(0) => AnswerContent {
                left_out: left_out(answer.text_at("/Message").unwrap_or_default()),
                ..AnswerContent::taken(answer.text_at("/MessageID"))
            },
            Some(code) => {
                let kind = CODES.iter().find(|(codes, _)| codes.contains(&code)).map(|(_, kind)| *kind);
                AnswerContent::error(code.to_string(), answer.text_at("/Message").unwrap_or_default(), kind)
            }
            None => AnswerContent::default(),
        }
    }

    fn check(&self) -> Option<AccountCheckCall> {
        Some(AccountCheckCall { path: "/server".to_owned(), form: None })
    }
}

/// The addresses that the message of an accepted mail names as inactive.
fn left_out(message: &str) -> Vec<String> {
    let Some((_, named)) = message.split_once("inactive addresses:") else { return Vec::new() };
    // The list ends with a full stop and the next sentence.
    let list = named.split_once(". ").map_or(named, |(list, _)| list);
    list.split(',')
        .map(|one| one.trim().trim_end_matches('.').to_owned())
        .filter(|one| one.contains('@'))
        .collect()
}

fn list(recipients: &[ProviderRecipient]) -> String {
    let written: Vec<String> = recipients.iter().map(ProviderRecipient::written).collect();
    written.join(", ")
}

fn written(one: &HeaderAddress) -> String {
    ProviderRecipient { name: one.name.clone(), address: one.address.clone().unwrap_or_default() }.written()
}
