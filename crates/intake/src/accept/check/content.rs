//! Checks the content of a message: subject, text, html and headers.

use std::borrow::Cow;

use postway_domain::{MailLocale, tenant::ContentLimits};
use postway_mime::{
    ALTERNATIVES_MAX, BodyAlternative, check_header, check_subject,
    deliverability::{DeliverabilityError, DeliverabilityOptions, FeedbackId, deliverability_fields},
    header::{HEADER_COUNT_MAX, HEADER_NAME_OCTETS_MAX},
    html, reserved_header,
    template::RenderedTemplate,
};
use serde_json::{Map, Value, value::RawValue};

use super::{MessageTerms, people::is_reply_to};
use crate::{
    accept::look_up::LookupResult,
    accept::parse::request::{JsonObject, MessageInput, TemplateInput},
    cache::settings_cache::SendingAccount,
    json::{JsonReadError, read_object},
    limits::{IntakeLimits, VARIABLES},
    refusal::{FieldFault, FieldFaults, Refusal},
};

/// The checked content of a message.
#[derive(Default)]
pub(crate) struct CheckedContent<'a> {
    pub subject: Cow<'a, str>,
    pub text: Option<Cow<'a, str>>,
    pub html: Option<Cow<'a, str>>,
    /// Further alternatives to the text, such as AMP or calendar parts.
    pub alternatives: Vec<BodyAlternative<'a>>,
    pub headers: Vec<(String, String)>,
    /// The template that made the content.
    pub template: Option<UsedTemplate>,
}

/// The template that a message was made from.
pub(crate) struct UsedTemplate {
    pub name: String,
    pub version: i64,
    /// Its language, if it was chosen by one.
    pub locale: Option<MailLocale>,
}

impl CheckedContent<'_> {
    /// The number of bytes of all texts.
    pub(crate) fn len(&self) -> usize {
        let texts: usize = [&self.text, &self.html].into_iter().flatten().map(|text| text.len()).sum();
        texts + self.alternatives.iter().map(|one| one.content().len()).sum::<usize>()
    }
}

/// Checks the content. Content that cannot fit into a message is refused at once.
pub(super) fn content<'a>(
    request: &'a MessageInput<'a>,
    looked_up: &LookupResult,
    limits: &IntakeLimits,
    warnings: &mut Vec<String>,
    errors: &mut FieldFaults,
) -> Result<CheckedContent<'a>, Refusal> {
    let mut content = match &request.template {
        Some(template) => content_of_template(request, &template.0, looked_up, errors),
        None => content_of_request(request),
    };
    if let Some(Err(error)) = request.locale.as_deref().map(str::parse::<MailLocale>) {
        errors.add("locale", error.to_string());
    }
    if looked_up.inlines_css(request) {
        inline_styles(&mut content, warnings);
    }
    content.alternatives = alternatives(request, errors);
    if content.len() > limits.message_bytes_max {
        return Err(Refusal::message_too_large(limits.message_bytes_max));
    }
    let bounds = &looked_up.profile.settings.content;
    content.headers = headers(request, errors);
    subject(&content.subject, limits, &subject_bounds(bounds, looked_up.any_subject), errors);
    texts(&content, bounds, errors);
    if request.auto_text.unwrap_or(bounds.auto_text) && errors.is_empty() {
        add_text(&mut content, limits, warnings);
    }
    Ok(content)
}

/// Writes the rules of the html's style sheet into its elements. If that would take too much, the message
/// goes with its style sheet.
fn inline_styles(content: &mut CheckedContent<'_>, warnings: &mut Vec<String>) {
    let Some(html) = content.html.as_deref() else { return };
    match html::inline_css(html).map(Cow::into_owned) {
        Ok(inlined) if inlined != html => content.html = Some(Cow::Owned(inlined)),
        Ok(_) => {}
        Err(error) => warnings.push(format!("the style sheet was not inlined: {error}")),
    }
}

/// Makes a text part from the html if the message has only html. If no text can be made, or it would not fit,
/// the message goes without.
fn add_text(content: &mut CheckedContent<'_>, limits: &IntakeLimits, warnings: &mut Vec<String>) {
    let Some(html) = content.html.as_deref().filter(|_| content.text.is_none()) else { return };
    match html::to_text(html) {
        Ok(text) if text.trim().is_empty() => {}
        Ok(text) if content.len() + text.len() > limits.message_bytes_max => {
            warnings.push("no text was made of the html: the message would be too large".to_owned());
        }
        Ok(text) => content.text = Some(Cow::Owned(text)),
        Err(error) => warnings.push(format!("no text was made of the html: {error}")),
    }
}

/// Checks the alternatives; each kind may occur once.
fn alternatives<'a>(request: &'a MessageInput<'a>, errors: &mut FieldFaults) -> Vec<BodyAlternative<'a>> {
    let given = request.alternatives.as_ref().map_or(&[][..], |given| &given.0);
    if given.len() > ALTERNATIVES_MAX {
        let message = format!("there are {} alternatives: use at most {ALTERNATIVES_MAX}", given.len());
        errors.add("alternatives", message);
        return Vec::new();
    }
    let mut checked: Vec<BodyAlternative<'a>> = Vec::with_capacity(given.len());
    for (index, JsonObject(one)) in given.iter().enumerate() {
        let [content_type, content] = [&one.content_type, &one.content].map(|text| text.as_deref());
        let made = BodyAlternative::new(
            content_type.unwrap_or_default(),
            content.unwrap_or_default(),
            one.attach.unwrap_or(false),
        );
        let is_same = |made: &BodyAlternative<'_>, other: &BodyAlternative<'_>| {
            std::mem::discriminant(&made.kind()) == std::mem::discriminant(&other.kind())
        };
        match made {
            Err(error) => errors.add(format!("alternatives[{index}].{}", error.field()), error.to_string()),
            Ok(made) if checked.iter().any(|other| is_same(&made, other)) => {
                errors.add(format!("alternatives[{index}].content_type"), "is there twice: leave one out");
            }
            Ok(made) => checked.push(made),
        }
    }
    checked
}

/// The content as the request has it; an empty text counts as absent.
fn content_of_request<'a>(request: &'a MessageInput<'a>) -> CheckedContent<'a> {
    let [text, html] = [&request.text, &request.html]
        .map(|text| text.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed));
    let subject = Cow::Borrowed(request.subject.as_deref().unwrap_or_default());
    CheckedContent { subject, text, html, ..CheckedContent::default() }
}

/// The content as the template makes it. The request's own subject replaces the template's.
fn content_of_template<'a>(
    request: &'a MessageInput<'a>,
    template: &TemplateInput<'_>,
    looked_up: &LookupResult,
    errors: &mut FieldFaults,
) -> CheckedContent<'a> {
    for (field, given) in [("text", &request.text), ("html", &request.html)] {
        if given.as_deref().is_some_and(|text| !text.is_empty()) {
            errors.add(field, "is made by the template: leave it out, or leave the template out");
        }
    }
    let given = template.variables.map_or("{}", RawValue::get);
    let variables = read_variables(given).and_then(|variables| match &looked_up.template {
        Some(Ok(compiled)) => compiled.render(&variables).map(|rendered| (compiled, rendered)),
        Some(Err(fault)) => Err(fault.clone()),
        None => Err(FieldFault::new("template.name", "was not looked up")),
    });
    // The fault of the template is enough; the placeholder keeps the checks from adding that text is missing.
    let placeholder = || CheckedContent {
        text: Some(Cow::Borrowed("-")),
        html: Some(Cow::Borrowed("-")),
        ..CheckedContent::default()
    };
    match variables {
        Ok((compiled, RenderedTemplate { subject, html, text })) => CheckedContent {
            subject: match request.subject.as_deref() {
                Some(own) => Cow::Borrowed(own),
                None => Cow::Owned(subject),
            },
            text: text.filter(|text| !text.is_empty()).map(Cow::Owned),
            html: html.map(Cow::Owned),
            template: Some(UsedTemplate {
                name: compiled.name.clone(),
                version: compiled.version,
                locale: compiled.locale.clone(),
            }),
            ..CheckedContent::default()
        },
        Err(fault) => {
            errors.note(fault);
            placeholder()
        }
    }
}

/// Reads the variables of a template if they are an object within bounds. Their size is checked before values
/// are built.
pub(crate) fn read_variables(json: &str) -> Result<Map<String, Value>, FieldFault> {
    let bytes_max = VARIABLES.text_bytes_max;
    let fault = |message: String| FieldFault::new("template.variables", message);
    if json.len() > bytes_max {
        let message = format!("must be at most {bytes_max} bytes of JSON, and are {}: send less", json.len());
        return Err(fault(message));
    }
    read_object(json.as_bytes(), VARIABLES).map_err(|error| match error {
        JsonReadError::NotObject => fault("must be an object".to_owned()),
        JsonReadError::Malformed(error) => fault(format!("cannot be read: {error}")),
        JsonReadError::TooMuch(_) => fault(format!(
            "must be at most {} values, those within included: send less",
            VARIABLES.values_max
        )),
    })
}

/// The tenant's limits. If it sets none for subjects, some compatibility APIs allow any length that fits a
/// header.
fn subject_bounds(bounds: &ContentLimits, any_subject: bool) -> ContentLimits {
    let subject_chars = bounds.subject_chars.or(any_subject.then_some(u32::MAX));
    ContentLimits { subject_chars, ..bounds.clone() }
}

fn subject(subject: &str, limits: &IntakeLimits, bounds: &ContentLimits, errors: &mut FieldFaults) {
    if subject.len() > limits.subject_bytes_max {
        errors.add("subject", format!("is longer than {} bytes: shorten it", limits.subject_bytes_max));
    } else {
        errors.take("subject", check_subject(subject));
        long_subject(subject, bounds).into_iter().for_each(|fault| errors.note(fault));
    }
}

fn long_subject(subject: &str, bounds: &ContentLimits) -> Option<FieldFault> {
    let max = bounds.subject_chars();
    let is_long = subject.len() > max && subject.chars().count() > max;
    is_long.then(|| FieldFault::new("subject", format!("is longer than {max} characters: shorten it")))
}

fn texts(content: &CheckedContent<'_>, bounds: &ContentLimits, errors: &mut FieldFaults) {
    if content.text.is_none() && content.html.is_none() {
        errors.add("text", "the message has neither text nor html: give text or html");
    }
    for (field, text) in [("text", &content.text), ("html", &content.html)] {
        if text.as_ref().is_some_and(|text| text.contains('\0')) {
            errors.add(field, "contains a NUL character: remove it");
        }
    }
    let html = content.html.as_deref();
    html_faults(html, bounds).into_iter().for_each(|fault| errors.note(fault));
}

fn html_faults(html: Option<&str>, bounds: &ContentLimits) -> Vec<FieldFault> {
    let max = bounds.html_bytes();
    match html {
        None if bounds.html_required => {
            vec![FieldFault::new("html", "is missing: this tenant's mail has html")]
        }
        None => Vec::new(),
        Some(html) if html.trim().is_empty() => vec![FieldFault::new("html", "is empty")],
        Some(html) if html.len() > max => {
            vec![FieldFault::new("html", format!("is larger than {max} bytes: shorten it"))]
        }
        Some(html) => {
            let faults = html::check(html).err().unwrap_or_default();
            faults.iter().map(|fault| FieldFault::new("html", fault.to_string())).collect()
        }
    }
}

/// The faults for which a message with this content would be refused.
pub(crate) fn content_faults(
    rendered: &RenderedTemplate,
    limits: &IntakeLimits,
    bounds: &ContentLimits,
) -> Vec<FieldFault> {
    let mut errors = FieldFaults::default();
    let content = CheckedContent {
        text: rendered.text.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed),
        html: rendered.html.as_deref().map(Cow::Borrowed),
        ..CheckedContent::default()
    };
    texts(&content, bounds, &mut errors);
    subject(&rendered.subject, limits, bounds, &mut errors);
    errors.into_faults()
}

fn headers(request: &MessageInput<'_>, errors: &mut FieldFaults) -> Vec<(String, String)> {
    let headers = request.headers.as_ref().map_or(&[][..], |headers| &headers.0);
    if headers.len() > HEADER_COUNT_MAX {
        errors.add("headers", format!("there are {} headers: use at most {HEADER_COUNT_MAX}", headers.len()));
        return Vec::new();
    }
    let mut checked: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let mut refuse = |message: String| {
            let name: String = name.chars().take(HEADER_NAME_OCTETS_MAX).collect();
            errors.add(format!("headers.{name}"), message);
        };
        if let Err(error) = check_header(name, value) {
            refuse(error.to_string());
        } else if reserved_header(name) && !(is_reply_to(name) && request.reply_to.is_none()) {
            refuse("is reserved: it is set by postway or has a field of its own".to_owned());
        } else if checked.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            refuse("is given twice (names are compared without case)".to_owned());
        } else {
            checked.push((name.to_string(), value.to_string()));
        }
    }
    // Reply-To is already one of the message's own fields.
    checked.retain(|(name, _)| !is_reply_to(name));
    checked
}

/// Adds the header fields that large receivers ask for: those the request asks for, and those of all the
/// tenant's mail unless the request already has a field of that name.
pub(super) fn add_fields(
    content: &mut CheckedContent<'_>,
    request: &MessageInput<'_>,
    looked_up: &LookupResult,
    account: &SendingAccount,
    terms: &MessageTerms,
    errors: &mut FieldFaults,
) {
    let settings = &looked_up.profile.settings;
    let unsubscribe = request.unsubscribe.as_ref().map(|unsubscribe| &unsubscribe.0);
    let url = unsubscribe.and_then(|unsubscribe| unsubscribe.url.as_deref());
    if unsubscribe.is_some_and(|unsubscribe| unsubscribe.url.is_none() && unsubscribe.mailto.is_none()) {
        errors.add("unsubscribe", "give its url or its mailto, or leave it out");
    }
    let wanted = DeliverabilityOptions {
        unsubscribe_url: url,
        unsubscribe_mailto: unsubscribe.and_then(|unsubscribe| unsubscribe.mailto.as_deref()),
        one_click: url.is_some(),
        auto_submitted: request.auto_submitted.unwrap_or(settings.auto_submitted),
        feedback: settings.feedback_id.as_deref().map(|sender| FeedbackId {
            parts: [
                terms.batch.as_ref().map_or("", |batch| batch.as_str()),
                account.id.as_str(),
                looked_up.profile.tenant.as_str(),
            ],
            sender,
        }),
    };
    let fields = match deliverability_fields(&wanted) {
        Ok(fields) => fields,
        Err(error) => {
            let field = match error {
                DeliverabilityError::Url(_) | DeliverabilityError::OneClick => "unsubscribe.url",
                DeliverabilityError::Mailto(_) => "unsubscribe.mailto",
                DeliverabilityError::FeedbackSender(_) => "",
            };
            return errors.add(field, error.to_string());
        }
    };
    // A message without a client id still has `X-Postway-ID`, as all mail has.
    let own_id = settings.id_header.as_deref().zip(terms.client_id.as_ref());
    let own_id = own_id.map(|(name, id)| (name, id.to_string()));
    for (name, value) in fields.into_iter().chain(own_id) {
        let is_given = content.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        if is_given && name.starts_with("List-Unsubscribe") {
            errors.add(format!("headers.{name}"), "is made by `unsubscribe`: leave one of them out");
        } else if !is_given {
            content.headers.push((name.to_owned(), value));
        }
    }
}
