//! What a call says of the mail beside its content: tags, time, a trial, and data of its own.

use postway_domain::Time;
use postway_intake::{JsonBounds, JsonReadError, VARIABLES, read_object};
use serde_json::{Map, Value};

use super::form::MailgunForm;
use crate::http::error::FieldError;

/// The account that captures mail, which every tenant begins with.
const SANDBOX: &str = "sandbox";
/// The header by which some programs send data of their own.
const VARIABLES_HEADER: &str = "h:X-Mailgun-Variables";

/// The options of a call.
#[derive(Debug, PartialEq)]
pub(super) struct MailgunOptions {
    /// The account, if the call is a trial.
    pub(super) account: Option<&'static str>,
    pub(super) tags: Vec<String>,
    pub(super) send_at: Option<Time>,
    /// Data of the caller's own.
    pub(super) metadata: Map<String, Value>,
}

impl MailgunOptions {
    /// Reads the options of a form.
    pub(super) fn read(form: &MailgunForm) -> Result<Self, FieldError> {
        if is_on(form, "o:require-tls")? {
            let message = "the account decides about TLS: set its tls, and leave this out";
            return Err(FieldError::new("o:require-tls", message));
        }
        let send_at = form.text("o:deliverytime").map(|text| {
            let numeric = text.trim().parse::<Time>().ok();
            numeric.or_else(|| Time::from_rfc2822(text.trim()).ok()).ok_or_else(|| {
                let message =
                    "must be a time of RFC 2822 such as `Thu, 31 Jan 2030 09:00:00 +0000`, or Unix seconds";
                FieldError::new("o:deliverytime", message)
            })
        });
        let mut metadata =
            form.text(VARIABLES_HEADER).map_or(Ok(Map::new()), |json| object(VARIABLES_HEADER, json))?;
        metadata.extend(form.beginning("v:").map(|(name, value)| (name.to_owned(), value.into())));
        Ok(Self {
            account: is_on(form, "o:testmode")?.then_some(SANDBOX),
            tags: form.all("o:tag").filter(|tag| !tag.trim().is_empty()).map(str::to_owned).collect(),
            send_at: send_at.transpose()?,
            metadata,
        })
    }
}

/// Whether an option is switched on.
pub(super) fn is_on(form: &MailgunForm, name: &'static str) -> Result<bool, FieldError> {
    let Some(text) = form.text(name) else { return Ok(false) };
    match text.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" | "htmlonly" => Ok(true),
        "no" | "false" | "0" => Ok(false),
        _ => Err(FieldError::new(name, "must be yes or no")),
    }
}

/// An object that a field has as JSON, within the bounds of a template's variables.
pub(super) fn object(field: &str, json: &str) -> Result<Map<String, Value>, FieldError> {
    bounded(field, json, VARIABLES)
}

/// An object that a field has as JSON, within bounds: values take far more memory than their text.
pub(super) fn bounded(field: &str, json: &str, bounds: JsonBounds) -> Result<Map<String, Value>, FieldError> {
    read_object(json.as_bytes(), bounds).map_err(|fault| match fault {
        JsonReadError::NotObject | JsonReadError::Malformed(_) => {
            FieldError::new(field, "must be a JSON object")
        }
        JsonReadError::TooMuch(JsonBounds { values_max, text_bytes_max }) => {
            let message = format!("has more than {values_max} values, or {text_bytes_max} bytes of text");
            FieldError::new(field, message)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(texts: &[(&str, &str)]) -> Result<MailgunOptions, String> {
        MailgunOptions::read(&MailgunForm::of(texts)).map_err(|fault| fault.field)
    }

    #[test]
    fn options_are_read() {
        let options = read(&[
            ("o:tag", "a"),
            ("o:tag", "b"),
            ("o:testmode", "yes"),
            ("v:order", "7"),
            ("o:tracking", "htmlonly"),
            ("h:X-Mailgun-Variables", r#"{"a": 1}"#),
            ("o:deliverytime", "Fri, 14 Oct 2011 23:10:10 -0000"),
        ]);
        let options = options.unwrap();
        assert_eq!(
            (options.account, &options.tags[..]),
            (Some("sandbox"), &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(Value::Object(options.metadata), json!({"a": 1, "order": "7"}));
        assert_eq!(options.send_at, "2011-10-14T23:10:10Z".parse().ok());
        assert_eq!(read(&[("o:deliverytime", "1900000000")]).unwrap().send_at, "1900000000".parse().ok());
        for (name, value) in [
            ("o:require-tls", "yes"),
            ("o:testmode", "maybe"),
            ("o:deliverytime", "soon"),
            ("h:X-Mailgun-Variables", "[]"),
        ] {
            assert_eq!(read(&[(name, value)]), Err(name.to_owned()));
        }
    }
}
