//! Writes the message of one personalization.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;

use super::part::{self, MailForms};
use crate::{
    compat::{
        expansion::ExpansionBudget,
        mail_headers::MailHeaders,
        placeholder::{PlaceholderFault, Placeholders},
        translate::{MessageWriter, RawFields, expect_text, is_empty_list, refuse_mail, text},
    },
    http::error::{ApiError, FieldError},
};

/// The most bytes of a personalization's substitutions.
const SUBSTITUTIONS_BYTES_MAX: usize = 256 * 1024;

/// What all personalizations of a call have in common, unless they say otherwise.
pub(super) struct CommonParts<'a> {
    pub(super) from: Option<String>,
    pub(super) subject: Option<Cow<'a, str>>,
    pub(super) forms: MailForms<'a>,
    pub(super) headers: Option<&'a RawValue>,
    pub(super) custom_args: Option<&'a RawValue>,
    pub(super) send_at: Option<&'a RawValue>,
    /// The template, which replaces subject and content.
    pub(super) template: Option<Cow<'a, str>>,
    /// Fields of ours that are the same in every message.
    pub(super) same: Vec<(&'static str, String)>,
}

impl CommonParts<'_> {
    /// The approximate bytes that each message has of them.
    fn len(&self) -> usize {
        let same = self.same.iter().map(|(_, json)| json.len()).sum::<usize>();
        let raw = [self.headers, self.custom_args].into_iter().flatten().map(|json| json.get().len());
        same + self.forms.alternatives.len() + raw.sum::<usize>() + 256
    }
}

/// Our message for the personalization at this place of its call.
pub(super) fn message(
    index: usize,
    item: &RawValue,
    common: &CommonParts<'_>,
    budget: &mut ExpansionBudget<'_>,
) -> Result<String, ApiError> {
    let at = |name: &str| format!("personalizations.{index}.{name}");
    let refuse = |fault: FieldError| refuse_mail(vec![fault]);
    let mut own = part::object(&format!("personalizations.{index}"), item).map_err(refuse)?;
    budget.take(common.len() + item.get().len())?;
    let mut ours = MessageWriter::with_capacity(common.len() + item.get().len());
    match own.take("from") {
        Some(from) => ours.json("from", &part::address(&at("from"), from).map_err(refuse)?),
        None => common.from.iter().for_each(|from| ours.json("from", from)),
    }
    for name in ["to", "cc", "bcc"] {
        let list = own.take(name).map(|list| part::addresses(&at(name), list));
        match list.transpose().map_err(refuse)?.filter(|list| list != "[]") {
            Some(list) => ours.json(name, &list),
            None if name == "to" => {
                return Err(refuse(FieldError::new(
                    at("to"),
                    "The to array is required for all personalization objects, and must have at least one \
                     email object with a valid email address.",
                )));
            }
            None => {}
        }
    }
    let substitutions = own.take("substitutions").map(|value| substitutions(&at("substitutions"), value));
    let substitutions = substitutions.transpose().map_err(refuse)?.flatten();
    content(index, &mut own, &mut ours, common, substitutions.as_ref(), budget)?;
    for (name, json) in &common.same {
        ours.json(name, json);
    }
    let headers = MailHeaders::merged("headers", [common.headers, own.take("headers")]).map_err(refuse)?;
    headers.write(&mut ours);
    let args = merged("custom_args", [common.custom_args, own.take("custom_args")]).map_err(refuse)?;
    args.iter().for_each(|args| ours.json("metadata", args));
    if let Some(at) = own.take("send_at").or(common.send_at) {
        ours.json("send_at", at.get());
    }
    Ok(ours.into_json())
}

/// Subject and texts: those of a template, or the call's own with this personalization's values in them.
fn content<'a>(
    index: usize,
    own: &mut RawFields<'a>,
    ours: &mut MessageWriter,
    common: &CommonParts<'a>,
    substitutions: Option<&Placeholders>,
    budget: &mut ExpansionBudget<'_>,
) -> Result<(), ApiError> {
    if let Some(name) = &common.template {
        let data = own.take("dynamic_template_data").filter(|data| !is_empty_list(data));
        let mut of = MessageWriter::with_capacity(data.map_or(0, |data| data.get().len()) + 64);
        of.text("name", name);
        data.iter().for_each(|data| of.json("variables", data.get()));
        ours.json("template", &of.into_json());
        return Ok(());
    }
    let field = format!("personalizations.{index}.subject");
    let subject = own.take("subject").map(|subject| expect_text(&field, subject)).transpose();
    let subject = subject.map_err(|fault| refuse_mail(vec![fault]))?;
    let subject = subject.as_deref().or(common.subject.as_deref());
    for (name, text) in
        [("subject", subject), ("text", common.forms.text.as_deref()), ("html", common.forms.html.as_deref())]
    {
        let Some(text) = text else { continue };
        let filled = match substitutions {
            Some(values) => values.fill(text, budget.left()).map_err(|fault| match fault {
                PlaceholderFault::TooLong => budget.too_large(),
                PlaceholderFault::TooMany => too_many(index),
            })?,
            None => Cow::Borrowed(text),
        };
        budget.take(filled.len())?;
        ours.text(name, &filled);
    }
    if !common.forms.alternatives.is_empty() {
        ours.json("alternatives", &format!("[{}]", common.forms.alternatives));
    }
    Ok(())
}

fn too_many(index: usize) -> ApiError {
    ApiError::field(format!("personalizations.{index}.substitutions"), "there are too many of them")
}

fn substitutions(field: &str, value: &RawValue) -> Result<Option<Placeholders>, FieldError> {
    if value.get().len() > SUBSTITUTIONS_BYTES_MAX {
        let message = format!("have more than {SUBSTITUTIONS_BYTES_MAX} bytes");
        return Err(FieldError::new(field, message));
    }
    let fields = part::object(field, value)?;
    let mut pairs = Vec::with_capacity(fields.0.len());
    for (name, value) in fields.0 {
        // A number means its digits.
        let value = text(value).map_or_else(|| value.get().to_owned(), Cow::into_owned);
        pairs.push((name.into_owned(), value));
    }
    Placeholders::new(pairs).map_err(|_| FieldError::new(field, "there are too many of them"))
}

/// The fields of both objects as one; those of the second replace those of the first.
fn merged(field: &str, objects: [Option<&RawValue>; 2]) -> Result<Option<String>, FieldError> {
    let mut fields: BTreeMap<Cow<'_, str>, &RawValue> = BTreeMap::new();
    for value in objects.into_iter().flatten().filter(|value| !is_empty_list(value)) {
        fields.extend(part::object(field, value)?.0);
    }
    let parts: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}:{}", part::quoted(name), value.get())).collect();
    Ok(Some(format!("{{{}}}", parts.join(","))).filter(|_| !parts.is_empty()))
}
