//! Translates a message of Postmark's API.

use postway_domain::NamedAddress;
use serde_json::{Value, value::RawValue};

use super::error::PostmarkFault;
use crate::{
    compat::translate::{
        MessageWriter, RawFields, RawItems, is_blank, is_empty_list, refuse_mail, split_addresses, text,
    },
    http::error::{ApiError, FieldError},
};

/// The most recipients, in all three fields together.
const RECIPIENTS_MAX: usize = 50;
/// The longest subject.
const SUBJECT_CHARS_MAX: usize = 2_000;
/// How many faulty addresses are named, and how much of each.
const ADDRESSES_TOLD_MAX: usize = 10;
const ADDRESS_CHARS_MAX: usize = 320;
/// The default stream, which is not a batch here.
pub(super) const STREAM: &str = "outbound";
/// Fields whose values are the same in both.
const SAME: [(&str, &str); 4] =
    [("From", "from"), ("Subject", "subject"), ("HtmlBody", "html"), ("TextBody", "text")];
const RECIPIENTS: [(&str, &str); 3] = [("To", "to"), ("Cc", "cc"), ("Bcc", "bcc")];
/// The same for a file.
const FILE: [(&str, &str); 3] =
    [("Name", "filename"), ("Content", "content"), ("ContentType", "content_type")];

/// The template that renders a message.
pub(super) struct PostmarkTemplateUse {
    /// Its name, or its number.
    pub(super) name: String,
    /// Whether it is named by its number.
    pub(super) by_id: bool,
    variables: Option<String>,
}

/// A message, translated.
pub(super) struct TranslatedMessage {
    /// Our message, without the template.
    ours: MessageWriter,
    pub(super) template: Option<PostmarkTemplateUse>,
    /// The recipients as they were written, by the name of the field; repeated in the answer.
    pub(super) named: Vec<(&'static str, String)>,
}

impl TranslatedMessage {
    /// All recipients.
    pub(super) fn recipients(&self) -> impl Iterator<Item = &str> {
        self.named.iter().flat_map(|(_, list)| addresses(list))
    }

    /// Our message as JSON, and its recipients.
    pub(super) fn into_json(self) -> (String, Vec<(&'static str, String)>) {
        let Self { mut ours, template, named } = self;
        if let Some(PostmarkTemplateUse { name, variables, .. }) = template {
            let mut of = MessageWriter::with_capacity(variables.as_ref().map_or(0, String::len) + 64);
            of.text("name", &name);
            if let Some(variables) = variables {
                of.json("variables", &variables);
            }
            ours.json("template", &of.into_json());
        }
        (ours.into_json(), named)
    }
}

/// Splits a list of addresses. Commas separate them there; semicolons do in many programs, and mean nothing
/// else outside of quotes.
fn addresses(list: &str) -> Vec<&str> {
    split_addresses(list).into_iter().flat_map(apart).collect()
}

fn apart(part: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    let between = move |c: char| {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ => return c == ';' && !quoted,
        }
        false
    };
    part.split(between).map(str::trim).filter(|part| !part.is_empty())
}

/// The fault of malformed addresses, in the sentence that clients parse them out of; of one field, because it
/// must be the complete answer.
fn invalid<'a>(field: &str, list: impl IntoIterator<Item = &'a str>) -> Option<FieldError> {
    let mut reason = None;
    let faulty: Vec<String> = list
        .into_iter()
        .filter_map(|address| {
            let error = address.parse::<NamedAddress>().err()?;
            reason.get_or_insert_with(|| error.to_string().replace('\'', "`"));
            Some(bare(address))
        })
        .take(ADDRESSES_TOLD_MAX)
        .collect();
    reason.map(|reason| {
        PostmarkFault::Email.at("", format!("Invalid '{field}' address: '{}'. {reason}", faulty.join(", ")))
    })
}

/// The address without its display name, or the complete text if it cannot be parsed.
fn bare(text: &str) -> String {
    let inner =
        text.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(text, |(inner, _)| inner);
    inner.trim().chars().filter(|c| !c.is_control() && *c != '\'').take(ADDRESS_CHARS_MAX).collect()
}

/// Translates a message, whose content comes from a template or from itself.
pub(super) fn message(json: &[u8], from_template: bool) -> Result<TranslatedMessage, ApiError> {
    let mut fields = RawFields::read(json).map_err(of_whole)?;
    let mut ours = MessageWriter::with_capacity(json.len() + 64);
    let (mut faults, mut named) = (Vec::new(), Vec::new());
    for (theirs, name) in SAME {
        let Some(value) = fields.take(theirs) else { continue };
        ours.json(name, value.get());
        let long = |text: &str| text.len() > SUBJECT_CHARS_MAX && text.chars().count() > SUBJECT_CHARS_MAX;
        match theirs {
            "Subject" if text(value).as_deref().is_some_and(long) => {
                let message = format!("is longer than {SUBJECT_CHARS_MAX} characters: shorten it");
                faults.push(PostmarkFault::Email.at("Subject", message));
            }
            "From" => faults.extend(text(value).and_then(|from| invalid("From", [&*from]))),
            _ => {}
        }
    }
    for (theirs, name) in RECIPIENTS {
        let Some(value) = fields.take(theirs) else { continue };
        match text(value) {
            Some(list) => {
                ours.json(name, &Value::from(addresses(&list)).to_string());
                if let Some(fault) = invalid(theirs, addresses(&list)) {
                    return Err(refuse_mail(vec![fault]));
                }
                named.push((theirs, list.into_owned()));
            }
            None => {
                faults.push(PostmarkFault::Shape.at(theirs, "must be a text, with commas between addresses"))
            }
        }
    }
    if let Some(value) = fields.take("ReplyTo") {
        ours.addresses("reply_to", value);
    }
    // PHP has one kind of empty array, and writes it as a list.
    if let Some(metadata) = fields.take("Metadata").filter(|metadata| !is_empty_list(metadata)) {
        ours.json("metadata", metadata.get());
    }
    if let Some(tag) = fields.take("Tag").filter(|tag| !is_blank(tag)) {
        ours.json("tags", &format!("[{}]", tag.get()));
    }
    let stream = fields.take("MessageStream").filter(|stream| !is_blank(stream));
    if let Some(stream) = stream.filter(|stream| text(stream).as_deref() != Some(STREAM)) {
        ours.json("batch", stream.get());
    }
    match fields.take("Headers").map(headers) {
        Some(Ok(TranslatedHeaders { json, return_path })) => {
            ours.json("headers", &json);
            if let Some(path) = return_path {
                ours.text("return_path", &path);
            }
        }
        Some(Err(fault)) => faults.push(fault),
        None => {}
    }
    match fields.take("Attachments").map(files) {
        Some(Ok(json)) => ours.json("attachments", &json),
        Some(Err(fault)) => faults.push(fault),
        None => {}
    }
    if from_template {
        // As there, styles are inlined unless the call says otherwise.
        let inline = fields.take("InlineCss");
        ours.json("inline_css", inline.filter(|value| !is_blank(value)).map_or("true", RawValue::get));
    }
    let template = if from_template { Some(template(&mut fields)) } else { None };
    let template = template.transpose().map_err(|fault| faults.push(fault)).unwrap_or_default();
    let translated = TranslatedMessage { ours, template, named };
    let count = translated.recipients().count();
    if count > RECIPIENTS_MAX {
        faults.push(
            PostmarkFault::Email
                .at("To", format!("there are {count} recipients: use at most {RECIPIENTS_MAX}")),
        );
    }
    match faults.is_empty() {
        true => Ok(translated),
        false => Err(refuse_mail(faults)),
    }
}

/// `TemplateAlias` or `TemplateId`, which is a number there, and `TemplateModel`.
fn template(fields: &mut RawFields<'_>) -> Result<PostmarkTemplateUse, FieldError> {
    let model = fields.take("TemplateModel").filter(|model| !is_empty_list(model));
    let alias = fields.take("TemplateAlias").filter(|alias| !is_blank(alias));
    let by_id = alias.is_none();
    let Some(name) = alias.or(fields.take("TemplateId")) else {
        return Err(PostmarkFault::TemplateMissing.at("TemplateAlias", "is missing: give it, or TemplateId"));
    };
    let name = text(name).map_or_else(|| name.get().to_owned(), |name| name.into_owned());
    Ok(PostmarkTemplateUse { name, by_id, variables: model.map(|model| model.get().to_owned()) })
}

/// Whether a header is left out of the composed mail. Programs that build a complete mail and submit its
/// parts, as the gem for Rails does, also send headers that describe its encoding; there they are replaced,
/// and the composed mail has its own. `Sender` would name an unverified sender, and `X-PM-KeepID` is for
/// Postmark alone.
fn is_passed_over(name: &str) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    let content = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("Content-"));
    content || ["MIME-Version", "Message-ID", "Date", "Sender", "X-PM-KeepID"].into_iter().any(is)
}

/// Translated headers.
struct TranslatedHeaders {
    json: String,
    /// The envelope sender, which programs that build a complete mail name in a header.
    return_path: Option<String>,
}

/// `[{Name, Value}]` as an object. A repeated name is refused by the intake.
fn headers(value: &RawValue) -> Result<TranslatedHeaders, FieldError> {
    let (mut json, mut return_path) = (String::from("{"), None);
    for (place, item) in RawItems::read("Headers", value).map_err(of_shape)?.0.into_iter().enumerate() {
        let field = |name: &str| format!("Headers[{place}].{name}");
        let mut fields = inner(&format!("Headers[{place}]"), item)?;
        let name = fields.take("Name").and_then(text);
        let name = name.ok_or_else(|| PostmarkFault::Email.at(field("Name"), "must be a text"))?;
        let value =
            fields.take("Value").ok_or_else(|| PostmarkFault::Email.at(field("Value"), "is missing"))?;
        if name.eq_ignore_ascii_case("Return-Path") {
            let path =
                text(value).ok_or_else(|| PostmarkFault::Email.at(field("Value"), "must be a text"))?;
            return_path = Some(bare(&path));
            continue;
        }
        if is_passed_over(&name) {
            continue;
        }
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&Value::from(name).to_string());
        json.push(':');
        json.push_str(value.get());
    }
    json.push('}');
    Ok(TranslatedHeaders { json, return_path })
}

fn files(value: &RawValue) -> Result<String, FieldError> {
    let mut json = String::with_capacity(value.get().len() + 64);
    json.push('[');
    for (place, item) in RawItems::read("Attachments", value).map_err(of_shape)?.0.into_iter().enumerate() {
        let mut fields = inner(&format!("Attachments[{place}]"), item)?;
        let mut ours = MessageWriter::with_capacity(item.get().len() + 32);
        for (theirs, name) in FILE {
            // A file may be empty.
            if let Some(value) = fields.take(theirs).filter(|value| theirs == "Content" || !is_blank(value)) {
                ours.json(name, value.get());
            }
        }
        if let Some(id) = fields.take("ContentID").filter(|id| !is_blank(id)) {
            match text(id) {
                Some(id) => ours.text("content_id", id.strip_prefix("cid:").unwrap_or(&id)),
                None => ours.json("content_id", id.get()),
            }
            ours.json("inline", "true");
        }
        if place > 0 {
            json.push(',');
        }
        json.push_str(&ours.into_json());
    }
    json.push(']');
    Ok(json)
}

/// The fields of a nested object.
fn inner<'a>(field: &str, value: &'a RawValue) -> Result<RawFields<'a>, FieldError> {
    serde_json::from_str(value.get()).map_err(|_| PostmarkFault::Shape.at(field, "must be an object"))
}

/// A fault of the complete body means that it has another form.
fn of_whole(error: ApiError) -> ApiError {
    match error.details() {
        [fault] if fault.field.is_empty() => PostmarkFault::Shape.error("", &*fault.message),
        _ => error,
    }
}

fn of_shape(FieldError { field, message, .. }: FieldError) -> FieldError {
    PostmarkFault::Shape.at(field, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(message: Value, from_template: bool) -> Value {
        let translated = self::message(message.to_string().as_bytes(), from_template).unwrap();
        serde_json::from_str(&translated.into_json().0).unwrap()
    }

    #[test]
    fn a_message_is_ours() {
        let message = json!({
            "From": "Shop <shop@example.com>", "To": "\"Lovelace, Ada\" <a@example.net>, b@example.net", "Cc": "",
            "Bcc": "c@example.net", "Subject": "Hi", "Tag": "receipt", "HtmlBody": "<p>Hi", "TextBody": "Hi",
            "ReplyTo": "d@example.com, e@example.com", "Metadata": {"order": "7"}, "MessageStream": "broadcast",
            "Headers": [{"Name": "X-A", "Value": "1"}], "TrackOpens": true, "TrackLinks": "None",
            "Attachments": [{"Name": "a.png", "Content": "aGk=", "ContentType": "image/png", "ContentID": "cid:logo"},
                            {"Name": "b.txt", "Content": "aGk=", "ContentID": ""}],
        });
        assert_eq!(
            made(message, false),
            json!({
                "from": "Shop <shop@example.com>", "to": ["\"Lovelace, Ada\" <a@example.net>", "b@example.net"],
                "cc": [], "bcc": ["c@example.net"], "subject": "Hi", "tags": ["receipt"], "html": "<p>Hi", "text": "Hi",
                "reply_to": ["d@example.com", "e@example.com"], "metadata": {"order": "7"}, "batch": "broadcast",
                "headers": {"X-A": "1"},
                "attachments": [
                    {"filename": "a.png", "content": "aGk=", "content_type": "image/png", "content_id": "logo", "inline": true},
                    {"filename": "b.txt", "content": "aGk="},
                ],
            })
        );
    }

    #[test]
    fn what_says_how_a_mail_is_written_down_is_left_to_ours() {
        let named =
            ["Mime-Version", "X-A", "Message-Id", "Content-Transfer-Encoding", "date", "X-B", "Contents"];
        let headers: Vec<_> = named.iter().map(|name| json!({"Name": name, "Value": "1"})).collect();
        assert_eq!(
            made(json!({"Headers": headers}), false),
            json!({"headers": {"X-A": "1", "X-B": "1", "Contents": "1"}})
        );
        assert_eq!(made(json!({"Headers": [{"Name": "Date", "Value": "x"}]}), false), json!({"headers": {}}));
    }

    #[test]
    fn what_speaks_of_the_envelope_is_no_header() {
        let headers = ["Return-Path", "Sender", "X-PM-KeepID", "X-A"]
            .map(|name| json!({"Name": name, "Value": "<bounces@example.com>"}));
        assert_eq!(
            made(json!({"Headers": headers}), false),
            json!({"headers": {"X-A": "<bounces@example.com>"}, "return_path": "bounces@example.com"})
        );
    }

    #[test]
    fn semicolons_separate_addresses_outside_of_quotes() {
        let list = r#""A; B" <a@example.net>; b@example.net;, c@example.net"#;
        assert_eq!(addresses(list), [r#""A; B" <a@example.net>"#, "b@example.net", "c@example.net"]);
    }

    #[test]
    fn what_is_no_address_is_told_in_the_sentence_that_clients_read() {
        for (message, said) in [
            (json!({"To": "Bob <bob>, ada@example.net, c'arl"}), "Invalid 'To' address: 'bob, carl'. "),
            (json!({"From": "shop"}), "Invalid 'From' address: 'shop'. "),
            (json!({"Bcc": "a@b@c"}), "Invalid 'Bcc' address: 'a@b@c'. "),
        ] {
            let error = self::message(message.to_string().as_bytes(), false).err().unwrap();
            let text = error.details()[0].to_string();
            assert!(text.starts_with(said) && !text[said.len()..].contains('\''), "{text}");
        }
    }

    #[test]
    fn what_is_blank_and_may_be_left_out_is_left_out() {
        let message = json!({"Tag": " ", "MessageStream": "", "Metadata": [ ], "TemplateAlias": "", "TemplateId": 7,
            "TemplateModel": [], "Attachments": [{"Name": "a.txt", "Content": "", "ContentType": "", "ContentID": " "}]});
        let files = json!([{"filename": "a.txt", "content": ""}]);
        let expected = json!({"template": {"name": "7"}, "attachments": files, "inline_css": true});
        assert_eq!(made(message, true), expected);
    }

    #[test]
    fn a_template_goes_by_its_alias_or_its_number() {
        let model = json!({"n": 1});
        let by = |name: &str, value: Value| {
            made(json!({name: value, "TemplateModel": model}), true)["template"].clone()
        };
        assert_eq!(by("TemplateAlias", "hi".into()), json!({"name": "hi", "variables": model}));
        assert_eq!(by("TemplateId", 1234.into()), json!({"name": "1234", "variables": model}));
        assert_eq!(made(json!({"MessageStream": "outbound", "TemplateAlias": "x"}), false), json!({}));
    }

    #[test]
    fn styles_of_a_template_are_inlined_unless_the_call_says_otherwise() {
        let inlined = |value: Value| {
            made(json!({"TemplateAlias": "x", "InlineCss": value}), true)["inline_css"].clone()
        };
        for (value, expected) in [(json!(null), true), (json!(true), true), (json!(false), false)] {
            assert_eq!(inlined(value), json!(expected));
        }
    }

    #[test]
    fn what_has_no_place_here_is_named() {
        let long = vec!["a@example.net"; 51].join(",");
        for (message, field) in [
            (json!({"To": long}), "To"),
            (json!({"To": ["a@example.net"]}), "To"),
            (json!({"Headers": {}}), "Headers"),
            (json!({"Headers": [{"Value": "x"}]}), "Headers[0].Name"),
            (json!({"Attachments": ["x"]}), "Attachments[0]"),
            (json!({}), "TemplateAlias"),
        ] {
            let error =
                self::message(message.to_string().as_bytes(), field == "TemplateAlias").err().unwrap();
            assert_eq!(error.details()[0].field, field);
        }
    }
}
