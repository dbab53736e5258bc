//! Translates a form of Mailgun's API: one message of ours, or one for each address in `to`.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    form::{FormFile, MailgunForm},
    option::{MailgunOptions, is_on, object},
    recipient_variables::RecipientVariables,
};
use crate::{
    compat::{
        expansion::ExpansionBudget,
        mail_headers::MailHeaders,
        placeholder::{PlaceholderFault, Placeholders},
        translate::{MessageWriter, refuse_mail, split_addresses},
    },
    http::error::{ApiError, FieldError},
};

/// The most addresses of a field.
const RECIPIENTS_MAX: usize = 1_000;
/// The most headers of a call.
const HEADERS_MAX: usize = 200;
/// What a value takes beside its text.
const VALUE_BYTES: usize = 16;
/// Addresses of Mailgun's own pages, which nothing here would put in.
const UNSUBSCRIBE_URLS: [&str; 3] =
    ["%unsubscribe_url%", "%tag_unsubscribe_url%", "%mailing_list_unsubscribe_url%"];

/// Translates a call. Faults of values are left to the intake, except for what has no place in our message.
pub(super) fn translate(
    form: &MailgunForm,
    budget: &mut ExpansionBudget<'_>,
) -> Result<Vec<Bytes>, ApiError> {
    let common = CommonFields::read(form, budget).map_err(|fault| refuse_mail(vec![fault]))?;
    let Some(json) = form.text("recipient-variables") else {
        return Ok(vec![common.message(&common.to, None, budget)?.into()]);
    };
    let variables = RecipientVariables::read(json).map_err(|fault| refuse_mail(vec![fault]))?;
    let mut messages = Vec::with_capacity(common.to.len());
    for recipient in &common.to {
        let own = variables.of(recipient).map_err(|fault| refuse_mail(vec![fault]))?;
        messages.push(common.message(&[recipient], own.as_ref(), budget)?.into());
    }
    Ok(messages)
}

/// The addresses of a field that may be repeated, each of which may have several.
pub(super) fn addresses<'a>(form: &'a MailgunForm, name: &'a str) -> Vec<&'a str> {
    form.all(name).flat_map(split_addresses).filter(|address| !address.trim().is_empty()).collect()
}

/// What a call says, for all its recipients.
struct CommonFields<'a> {
    form: &'a MailgunForm,
    to: Vec<&'a str>,
    headers: Vec<(&'a str, &'a str)>,
    metadata: Map<String, Value>,
    /// The template with its variables.
    template: Option<(&'a str, Map<String, Value>)>,
    /// Fields of ours that are the same in every message.
    same: Vec<(&'static str, String)>,
}

impl<'a> CommonFields<'a> {
    fn read(form: &'a MailgunForm, budget: &ExpansionBudget<'_>) -> Result<Self, FieldError> {
        let missing = |name: &str| FieldError::new("", format!("'{name}' parameter is missing"));
        let from = addresses(form, "from").join(", ");
        if from.is_empty() {
            return Err(missing("from"));
        }
        let to = few("to", addresses(form, "to"))?;
        if to.is_empty() {
            return Err(missing("to"));
        }
        let headers: Vec<(&str, &str)> = form.beginning("h:").collect();
        if headers.len() > HEADERS_MAX {
            return Err(FieldError::new("h:", format!("there are more than {HEADERS_MAX} headers")));
        }
        let MailgunOptions { account, tags, send_at, metadata } = MailgunOptions::read(form)?;
        let contents = ["text", "html", "amp-html", "template"];
        if contents.iter().all(|name| form.text(name).is_none()) {
            let message =
                "Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified";
            return Err(FieldError::new("", message));
        }
        for name in ["text", "html", "amp-html"] {
            let content = form.text(name).unwrap_or_default();
            if let Some(url) = UNSUBSCRIBE_URLS.iter().find(|url| content.contains(**url)) {
                let message =
                    format!("has {url}, which is not filled in here: streams have unsubscribe links");
                return Err(FieldError::new(name, message));
            }
        }
        let template = form.text("template").map(|name| {
            let mut variables = metadata.clone();
            if let Some(json) = form.text("t:variables") {
                variables.extend(object("t:variables", json)?);
            }
            Ok::<_, FieldError>((name, variables))
        });
        let template = template.transpose()?;
        let mut same = vec![("from", Value::from(from).to_string())];
        for name in ["cc", "bcc"] {
            let list = few(name, addresses(form, name))?;
            same.extend((!list.is_empty()).then(|| (name, Value::from(list).to_string())));
        }
        same.extend(account.map(|account| ("account", Value::from(account).to_string())));
        same.extend((!tags.is_empty()).then(|| ("tags", Value::from(tags).to_string())));
        same.extend(send_at.map(|at| ("send_at", Value::from(at.to_string()).to_string())));
        same.extend(is_on(form, "t:text")?.then(|| ("auto_text", "true".to_owned())));
        same.extend(attachments(form, budget.left())?.map(|files| ("attachments", files)));
        Ok(Self { form, to, headers, metadata, template, same })
    }

    /// The message to these recipients, with these values in it.
    fn message(
        &self,
        to: &[&str],
        own: Option<&Placeholders>,
        budget: &mut ExpansionBudget<'_>,
    ) -> Result<String, ApiError> {
        let to = Value::from(to).to_string();
        let bytes = self.same.iter().map(|(_, json)| json.len()).sum::<usize>() + to.len() + 256;
        budget.take(bytes)?;
        let mut ours = MessageWriter::with_capacity(bytes);
        ours.json("to", &to);
        for (name, json) in &self.same {
            ours.json(name, json);
        }
        let mut filling = MailFilling { own, budget };
        for name in ["subject", "text", "html"] {
            // A template replaces the texts, and the subject unless the call has one.
            let given = self.form.text(name).filter(|_| name == "subject" || self.template.is_none());
            if let Some(given) = given {
                ours.text(name, &filling.fill(given)?);
            }
        }
        if let Some(amp) = self.form.text("amp-html").filter(|_| self.template.is_none()) {
            let mut form = MessageWriter::with_capacity(amp.len() + 64);
            form.text("content_type", "text/x-amp-html");
            form.text("content", &filling.fill(amp)?);
            ours.json("alternatives", &format!("[{}]", form.into_json()));
        }
        if let Some((name, variables)) = &self.template {
            let mut of = MessageWriter::with_capacity(256);
            of.text("name", name);
            if let Some(version) = self.form.text("t:version") {
                let number = version.trim().parse::<i64>().map(Value::from);
                of.json("version", &number.unwrap_or_else(|_| version.into()).to_string());
            }
            if !variables.is_empty() {
                of.json("variables", &filling.fill_object(variables)?);
            }
            ours.json("template", &of.into_json());
        }
        self.write_headers(&mut ours, &mut filling)?;
        if !self.metadata.is_empty() {
            ours.json("metadata", &filling.fill_object(&self.metadata)?);
        }
        Ok(ours.into_json())
    }

    fn write_headers(
        &self,
        ours: &mut MessageWriter,
        filling: &mut MailFilling<'_, '_>,
    ) -> Result<(), ApiError> {
        let mut headers = MailHeaders::default();
        for &(name, value) in &self.headers {
            let is =
                |start: &str| name.get(..start.len()).is_some_and(|part| part.eq_ignore_ascii_case(start));
            let filled = filling.fill(value)?;
            match name {
                // A header for each recipient is empty for those that have none.
                _ if filled.trim().is_empty() || is("X-Mailgun-") => {}
                _ if name.eq_ignore_ascii_case("Reply-To") => {
                    ours.json("reply_to", &Value::from(split_addresses(&filled)).to_string());
                }
                _ => headers.set_text(name, &filled),
            }
        }
        headers.write(ours);
        Ok(())
    }
}

/// The addresses, unless there are too many.
fn few<'a>(field: &str, addresses: Vec<&'a str>) -> Result<Vec<&'a str>, FieldError> {
    match addresses.len() {
        0..=RECIPIENTS_MAX => Ok(addresses),
        count => {
            let message =
                format!("there are {count} addresses: send to at most {RECIPIENTS_MAX} in one call");
            Err(FieldError::new(field, message))
        }
    }
}

/// Fills in one recipient's values, within the budget that there is.
struct MailFilling<'a, 'r> {
    own: Option<&'a Placeholders>,
    budget: &'a mut ExpansionBudget<'r>,
}

impl MailFilling<'_, '_> {
    fn fill<'t>(&mut self, text: &'t str) -> Result<Cow<'t, str>, ApiError> {
        let filled = match self.own {
            Some(values) => values.fill(text, self.budget.left()).map_err(|fault| match fault {
                PlaceholderFault::TooLong | PlaceholderFault::TooMany => self.budget.too_large(),
            })?,
            None => Cow::Borrowed(text),
        };
        self.budget.take(filled.len())?;
        Ok(filled)
    }

    /// An object as JSON, with values in its texts.
    fn fill_object(&mut self, object: &Map<String, Value>) -> Result<String, ApiError> {
        let mut filled = Value::Object(object.clone());
        self.fill_value(&mut filled)?;
        Ok(filled.to_string())
    }

    fn fill_value(&mut self, value: &mut Value) -> Result<(), ApiError> {
        match value {
            Value::String(text) => *text = self.fill(text)?.into_owned(),
            Value::Array(items) => {
                self.budget.take(items.len() * VALUE_BYTES)?;
                items.iter_mut().try_for_each(|item| self.fill_value(item))?;
            }
            // Names and values take memory while they are copied, however short they are.
            Value::Object(fields) => {
                self.budget.take(fields.keys().map(|name| name.len() + VALUE_BYTES).sum())?;
                fields.values_mut().try_for_each(|field| self.fill_value(field))?;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }
}

/// The files of a form. Html refers to a file in `inline` by its name.
fn attachments(form: &MailgunForm, bytes_max: usize) -> Result<Option<String>, FieldError> {
    let mut list = String::new();
    for FormFile { field, filename, content_type, bytes } in &form.files {
        let is_inline = match field.as_str() {
            "attachment" => false,
            "inline" => true,
            _ => continue,
        };
        if list.len() + bytes.len() / 3 * 4 > bytes_max {
            return Err(FieldError::new(field, format!("files have more than {bytes_max} bytes together")));
        }
        let name = filename.as_deref().unwrap_or("attachment");
        let mut ours = MessageWriter::with_capacity(bytes.len() / 3 * 4 + 128);
        // Programs that name an inline file by a Content-ID (`7@host.example.com`) give it no ending: the one
        // of a host says nothing about the file.
        let filename = name.split_once('@').filter(|_| is_inline).map_or(name, |(before, _)| before);
        ours.text("filename", if filename.is_empty() { "inline" } else { filename });
        content_type.iter().for_each(|kind| ours.text("content_type", kind));
        ours.json("content", &format!("\"{}\"", BASE64_STANDARD.encode(bytes)));
        if is_inline {
            ours.text("content_id", name);
            ours.json("inline", "true");
        }
        list.push_str(if list.is_empty() { "[" } else { "," });
        list.push_str(&ours.into_json());
    }
    Ok(Some(list + "]").filter(|list| list.len() > 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAIL: [(&str, &str); 3] =
        [("from", "Shop <shop@example.com>"), ("to", "ada@example.net"), ("subject", "Hi")];

    fn with(more: &[(&str, &str)]) -> MailgunForm {
        MailgunForm::of(&[&MAIL[..], more].concat())
    }

    fn made(form: &MailgunForm) -> Vec<Value> {
        let made = translate(form, &mut ExpansionBudget::of(1 << 20)).unwrap();
        made.iter().map(|message| serde_json::from_slice(message).unwrap()).collect()
    }

    fn wrong(form: &MailgunForm) -> String {
        translate(form, &mut ExpansionBudget::of(1 << 20)).unwrap_err().details()[0].field.clone()
    }

    #[test]
    fn a_form_is_a_message_of_ours() {
        let mut form = with(&[
            ("to", "\"B, b\" <b@example.net>, c@example.net"),
            ("cc", "d@example.net"),
            ("bcc", ""),
            ("text", "Hi"),
            ("html", "<p>Hi"),
            ("amp-html", "<html amp4email>"),
            ("o:tag", "receipt"),
            ("v:order", "7"),
            ("h:X-A", "1"),
            ("h:Reply-To", "help@example.com"),
            ("h:X-Mailgun-Track", "no"),
            ("o:deliverytime", "1900000000"),
            ("o:tracking", "yes"),
            ("unknown", "1"),
        ]);
        let file = |field: &str, name: &str| FormFile {
            field: field.to_owned(),
            filename: Some(name.to_owned()),
            content_type: Some("image/png".to_owned()),
            bytes: Bytes::from_static(b"hi"),
        };
        form.files = vec![
            file("attachment", "a.png"),
            file("inline", "b.png"),
            file("inline", "7@host.com"),
            file("other", "c.png"),
        ];
        assert_eq!(
            made(&form),
            [json!({
                "from": "Shop <shop@example.com>", "to": ["ada@example.net", "\"B, b\" <b@example.net>", "c@example.net"],
                "cc": ["d@example.net"], "subject": "Hi", "text": "Hi", "html": "<p>Hi",
                "alternatives": [{"content_type": "text/x-amp-html", "content": "<html amp4email>"}],
                "reply_to": ["help@example.com"], "headers": {"X-A": "1"}, "tags": ["receipt"],
                "send_at": "2030-03-17T17:46:40.000Z", "metadata": {"order": "7"},
                "attachments": [
                    {"filename": "a.png", "content_type": "image/png", "content": "aGk="},
                    {"filename": "b.png", "content_type": "image/png", "content": "aGk=", "content_id": "b.png", "inline": true},
                    {"filename": "7", "content_type": "image/png", "content": "aGk=", "content_id": "7@host.com", "inline": true},
                ],
            })]
        );
    }

    #[test]
    fn with_recipient_variables_each_recipient_gets_a_mail_of_its_own() {
        let form = with(&[
            ("to", "bob@example.net"),
            ("text", "Hi %recipient.name%"),
            ("h:X-Id", "%recipient.id%"),
            ("v:id", "%recipient.id%"),
            (
                "recipient-variables",
                r#"{"ada@example.net": {"name": "Ada \"A\"", "id": 1}, "bob@example.net": {"name": "Bob", "id": ""}}"#,
            ),
        ]);
        let [ada, bob] = &made(&form)[..] else { panic!("two were meant") };
        assert_eq!((&ada["to"], &ada["text"]), (&json!(["ada@example.net"]), &json!("Hi Ada \"A\"")));
        assert_eq!((&ada["headers"], &ada["metadata"]), (&json!({"X-Id": "1"}), &json!({"id": "1"})));
        assert_eq!(
            (&bob["to"], &bob["text"], &bob["headers"]),
            (&json!(["bob@example.net"]), &json!("Hi Bob"), &Value::Null)
        );
    }

    #[test]
    fn a_template_has_the_variables_of_the_call() {
        let form = with(&[
            ("text", "passed over"),
            ("template", "welcome"),
            ("t:variables", r#"{"a": ["%recipient.a%"]}"#),
            ("v:b", "2"),
            ("t:version", "3"),
            ("t:text", "yes"),
            ("recipient-variables", r#"{"ada@example.net": {"a": "x"}}"#),
        ]);
        let made = &made(&form)[0];
        assert_eq!(
            made["template"],
            json!({"name": "welcome", "version": 3, "variables": {"a": ["x"], "b": "2"}})
        );
        assert_eq!((&made["text"], &made["subject"]), (&Value::Null, &json!("Hi")));
        assert_eq!((&made["auto_text"], &made["metadata"]), (&json!(true), &json!({"b": "2"})));
    }

    #[test]
    fn what_has_no_place_here_is_named() {
        assert_eq!(wrong(&MailgunForm::of(&[("to", "a@example.net"), ("text", "x")])), "");
        assert_eq!(wrong(&with(&[])), "", "there is no content");
        for (name, value) in [
            ("text", "leave: %unsubscribe_url%"),
            ("o:require-tls", "yes"),
            ("o:testmode", "x"),
            ("recipient-variables", "[]"),
            ("t:text", "x"),
        ] {
            assert_eq!(wrong(&with(&[("html", "<p>Hi"), (name, value)])), name);
        }
        let many = vec![("to", "a@example.net"); RECIPIENTS_MAX];
        assert_eq!(wrong(&with(&many)), "to");
    }

    #[test]
    fn a_small_call_does_not_become_more_than_a_large_one_may_be() {
        let many = vec!["a@example.net"; 500].join(",");
        let text = "x".repeat(10_000);
        let form = with(&[("to", &many), ("text", &text), ("recipient-variables", "{}")]);
        assert_eq!(translate(&form, &mut ExpansionBudget::of(1 << 20)).unwrap_err().status().as_u16(), 413);
    }
}
