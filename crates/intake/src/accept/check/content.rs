//! What a message says: subject, texts, headers.

use std::borrow::Cow;

use postway_domain::tenant::ContentLimits;
use postway_mime::{
    ALTERNATIVES_MAX, Alternative, check_header, check_subject,
    deliverability::{Deliverability, DeliverabilityError, Feedback, deliverability_fields},
    header::{HEADER_COUNT_MAX, HEADER_NAME_OCTETS_MAX},
    html, reserved_header,
    template::Rendered,
};
use serde_json::{Map, Value, value::RawValue};

use super::{Terms, people::is_reply_to};
use crate::{
    accept::look_up::Surroundings,
    accept::parse::request::{MessageRequest, Object, TemplateRequest},
    cache::settings_cache::Route,
    json::{JsonFault, read_object},
    limits::{Limits, VARIABLES},
    refusal::{FieldError, Findings, Refusal},
};

/// The words of a message.
#[derive(Default)]
pub(crate) struct Content<'a> {
    pub subject: Cow<'a, str>,
    pub text: Option<Cow<'a, str>>,
    pub html: Option<Cow<'a, str>>,
    /// Further forms of the text.
    pub alternatives: Vec<Alternative<'a>>,
    pub headers: Vec<(String, String)>,
    /// The template that made them, and its version.
    pub template: Option<(String, i64)>,
}

impl Content<'_> {
    /// How many bytes its texts have.
    pub(crate) fn len(&self) -> usize {
        let texts: usize = [&self.text, &self.html].into_iter().flatten().map(|text| text.len()).sum();
        texts + self.alternatives.iter().map(|one| one.content().len()).sum::<usize>()
    }
}

/// Checks the content. More of it than a message can hold is refused at once.
pub(super) fn content<'a>(
    request: &'a MessageRequest<'a>,
    around: &Surroundings,
    limits: &Limits,
    warnings: &mut Vec<String>,
    findings: &mut Findings,
) -> Result<Content<'a>, Refusal> {
    let mut content = match &request.template {
        Some(template) => rendered(request, &template.0, around, findings),
        None => given(request),
    };
    content.alternatives = alternatives(request, findings);
    if content.len() > limits.message_bytes_max {
        return Err(Refusal::message_too_large(limits.message_bytes_max));
    }
    let bounds = &around.house.settings.content;
    content.headers = headers(request, findings);
    subject(&content.subject, limits, &subject_bounds(bounds, around.any_subject), findings);
    texts(&content, bounds, findings);
    if request.auto_text.unwrap_or(bounds.auto_text) && findings.is_empty() {
        add_text(&mut content, limits, warnings);
    }
    Ok(content)
}

/// Makes the text of a message that has html alone. Where none can be made, or it would not fit, the message goes without.
fn add_text(content: &mut Content<'_>, limits: &Limits, warnings: &mut Vec<String>) {
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

/// The further forms of the text; each kind of them once.
fn alternatives<'a>(request: &'a MessageRequest<'a>, findings: &mut Findings) -> Vec<Alternative<'a>> {
    let given = request.alternatives.as_ref().map_or(&[][..], |given| &given.0);
    if given.len() > ALTERNATIVES_MAX {
        let message = format!("there are {} alternatives: use at most {ALTERNATIVES_MAX}", given.len());
        findings.add("alternatives", message);
        return Vec::new();
    }
    let mut checked: Vec<Alternative<'a>> = Vec::with_capacity(given.len());
    for (index, Object(one)) in given.iter().enumerate() {
        let [content_type, content] = [&one.content_type, &one.content].map(|text| text.as_deref());
        let made = Alternative::new(
            content_type.unwrap_or_default(),
            content.unwrap_or_default(),
            one.attach.unwrap_or(false),
        );
        let is_same = |made: &Alternative<'_>, other: &Alternative<'_>| {
            std::mem::discriminant(&made.kind()) == std::mem::discriminant(&other.kind())
        };
        match made {
            Err(error) => findings.add(format!("alternatives[{index}].{}", error.field()), error.to_string()),
            Ok(made) if checked.iter().any(|other| is_same(&made, other)) => {
                findings.add(format!("alternatives[{index}].content_type"), "is there twice: leave one out");
            }
            Ok(made) => checked.push(made),
        }
    }
    checked
}

/// The words as the request has them; an empty text is none.
fn given<'a>(request: &'a MessageRequest<'a>) -> Content<'a> {
    let [text, html] = [&request.text, &request.html]
        .map(|text| text.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed));
    let subject = Cow::Borrowed(request.subject.as_deref().unwrap_or_default());
    Content { subject, text, html, ..Content::default() }
}

/// The words as the template makes them. A subject of the request's own takes the template's place.
fn rendered<'a>(
    request: &'a MessageRequest<'a>,
    template: &TemplateRequest<'_>,
    around: &Surroundings,
    findings: &mut Findings,
) -> Content<'a> {
    for (field, given) in [("text", &request.text), ("html", &request.html)] {
        if given.as_deref().is_some_and(|text| !text.is_empty()) {
            findings.add(field, "is made by the template: leave it out, or leave the template out");
        }
    }
    let given = template.variables.map_or("{}", RawValue::get);
    let variables = read_variables(given).and_then(|variables| match &around.template {
        Some(Ok(in_use)) => in_use.render(&variables).map(|rendered| (in_use, rendered)),
        Some(Err(fault)) => Err(fault.clone()),
        None => Err(FieldError::new("template.name", "was not looked up")),
    });
    // Its fault is told once; what is missing for it is not told as well.
    let placeholder =
        || Content { text: Some(Cow::Borrowed("-")), html: Some(Cow::Borrowed("-")), ..Content::default() };
    match variables {
        Ok((in_use, Rendered { subject, html, text })) => Content {
            subject: match request.subject.as_deref() {
                Some(own) => Cow::Borrowed(own),
                None => Cow::Owned(subject),
            },
            text: text.filter(|text| !text.is_empty()).map(Cow::Owned),
            html: html.map(Cow::Owned),
            template: Some((in_use.name.clone(), in_use.version)),
            ..Content::default()
        },
        Err(fault) => {
            findings.note(fault);
            placeholder()
        }
    }
}

/// The variables of a template, if they are an object within bounds; it is asked how large they are before they are built.
pub(crate) fn read_variables(json: &str) -> Result<Map<String, Value>, FieldError> {
    let bytes_max = VARIABLES.text_bytes_max;
    let fault = |message: String| FieldError::new("template.variables", message);
    if json.len() > bytes_max {
        let message = format!("must be at most {bytes_max} bytes of JSON, and are {}: send less", json.len());
        return Err(fault(message));
    }
    read_object(json.as_bytes(), VARIABLES).map_err(|error| match error {
        JsonFault::NotObject => fault("must be an object".to_owned()),
        JsonFault::Malformed(error) => fault(format!("cannot be read: {error}")),
        JsonFault::TooMuch(_) => fault(format!(
            "must be at most {} values, those within included: send less",
            VARIABLES.values_max
        )),
    })
}

/// The tenant's bounds; where it sets none for subjects, that of headers is enough for some ways in.
fn subject_bounds(bounds: &ContentLimits, any_subject: bool) -> ContentLimits {
    let subject_chars = bounds.subject_chars.or(any_subject.then_some(u32::MAX));
    ContentLimits { subject_chars, ..bounds.clone() }
}

fn subject(subject: &str, limits: &Limits, bounds: &ContentLimits, findings: &mut Findings) {
    if subject.len() > limits.subject_bytes_max {
        findings.add("subject", format!("is longer than {} bytes: shorten it", limits.subject_bytes_max));
    } else {
        findings.take("subject", check_subject(subject));
        long_subject(subject, bounds).into_iter().for_each(|fault| findings.note(fault));
    }
}

fn long_subject(subject: &str, bounds: &ContentLimits) -> Option<FieldError> {
    let max = bounds.subject_chars();
    let is_long = subject.len() > max && subject.chars().count() > max;
    is_long.then(|| FieldError::new("subject", format!("is longer than {max} characters: shorten it")))
}

fn texts(content: &Content<'_>, bounds: &ContentLimits, findings: &mut Findings) {
    if content.text.is_none() && content.html.is_none() {
        findings.add("text", "the message has neither text nor html: give text or html");
    }
    for (field, text) in [("text", &content.text), ("html", &content.html)] {
        if text.as_ref().is_some_and(|text| text.contains('\0')) {
            findings.add(field, "contains a NUL character: remove it");
        }
    }
    let html = content.html.as_deref();
    html_faults(html, bounds).into_iter().for_each(|fault| findings.note(fault));
}

fn html_faults(html: Option<&str>, bounds: &ContentLimits) -> Vec<FieldError> {
    let max = bounds.html_bytes();
    match html {
        None if bounds.html_required => {
            vec![FieldError::new("html", "is missing: this tenant's mail has html")]
        }
        None => Vec::new(),
        Some(html) if html.trim().is_empty() => vec![FieldError::new("html", "is empty")],
        Some(html) if html.len() > max => {
            vec![FieldError::new("html", format!("is larger than {max} bytes: shorten it"))]
        }
        Some(html) => {
            let faults = html::check(html).err().unwrap_or_default();
            faults.iter().map(|fault| FieldError::new("html", fault.to_string())).collect()
        }
    }
}

/// Why a message with these words would be refused.
pub(crate) fn content_faults(
    rendered: &Rendered,
    limits: &Limits,
    bounds: &ContentLimits,
) -> Vec<FieldError> {
    let mut findings = Findings::default();
    let content = Content {
        text: rendered.text.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed),
        html: rendered.html.as_deref().map(Cow::Borrowed),
        ..Content::default()
    };
    texts(&content, bounds, &mut findings);
    subject(&rendered.subject, limits, bounds, &mut findings);
    findings.into_faults()
}

fn headers(request: &MessageRequest<'_>, findings: &mut Findings) -> Vec<(String, String)> {
    let headers = request.headers.as_ref().map_or(&[][..], |headers| &headers.0);
    if headers.len() > HEADER_COUNT_MAX {
        findings
            .add("headers", format!("there are {} headers: use at most {HEADER_COUNT_MAX}", headers.len()));
        return Vec::new();
    }
    let mut checked: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let mut refuse = |message: String| {
            let name: String = name.chars().take(HEADER_NAME_OCTETS_MAX).collect();
            findings.add(format!("headers.{name}"), message);
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
    // It is among the message's own fields already.
    checked.retain(|(name, _)| !is_reply_to(name));
    checked
}

/// Adds the fields that receivers of much mail ask for: what the request asks for, and what its tenant's mail has unless
/// the request has a field of that name already.
pub(super) fn add_fields(
    content: &mut Content<'_>,
    request: &MessageRequest<'_>,
    around: &Surroundings,
    route: &Route,
    terms: &Terms,
    findings: &mut Findings,
) {
    let settings = &around.house.settings;
    let unsubscribe = request.unsubscribe.as_ref().map(|unsubscribe| &unsubscribe.0);
    let url = unsubscribe.and_then(|unsubscribe| unsubscribe.url.as_deref());
    if unsubscribe.is_some_and(|unsubscribe| unsubscribe.url.is_none() && unsubscribe.mailto.is_none()) {
        findings.add("unsubscribe", "give its url or its mailto, or leave it out");
    }
    let wanted = Deliverability {
        unsubscribe_url: url,
        unsubscribe_mailto: unsubscribe.and_then(|unsubscribe| unsubscribe.mailto.as_deref()),
        one_click: url.is_some(),
        auto_submitted: request.auto_submitted.unwrap_or(settings.auto_submitted),
        feedback: settings.feedback_id.as_deref().map(|sender| Feedback {
            parts: [
                terms.batch.as_ref().map_or("", |batch| batch.as_str()),
                route.account.as_str(),
                around.house.tenant.as_str(),
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
            return findings.add(field, error.to_string());
        }
    };
    // Without an id of the client's there is `X-Postway-ID`, which all mail has.
    let own_id = settings.id_header.as_deref().zip(terms.client_id.as_ref());
    let own_id = own_id.map(|(name, id)| (name, id.to_string()));
    for (name, value) in fields.into_iter().chain(own_id) {
        let is_given = content.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        if is_given && name.starts_with("List-Unsubscribe") {
            findings.add(format!("headers.{name}"), "is made by `unsubscribe`: leave one of them out");
        } else if !is_given {
            content.headers.push((name.to_owned(), value));
        }
    }
}
