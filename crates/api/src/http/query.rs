//! Query strings, read strictly: an unknown or repeated name is an error that names it. A misspelt filter
//! that silently matched everything would be worse.

use axum::{extract::Query, http::Uri};

use crate::http::error::{ApiError, FieldError};

/// The parameters of one request, taken out one by one; those that remain at the end are unknown.
pub(crate) struct QueryParameters {
    pairs: Vec<(String, String)>,
    wrong: Vec<FieldError>,
}

impl QueryParameters {
    /// The most parameters a query may have.
    const PAIRS_MAX: usize = 2_000;

    /// The parameters of `uri`. Empty values count as absent.
    pub(crate) fn from_uri(uri: &Uri) -> Result<Self, ApiError> {
        if uri.query().is_none() {
            return Ok(Self { pairs: Vec::new(), wrong: Vec::new() });
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| ApiError::malformed(format!("the query cannot be read: {error}")))?;
        if pairs.len() > Self::PAIRS_MAX {
            return Err(ApiError::malformed(format!(
                "the query has more than {} parameters",
                Self::PAIRS_MAX
            )));
        }
        Ok(Self { pairs, wrong: Vec::new() })
    }

    /// These parameters, wherever they come from. Empty values count as absent.
    pub(crate) fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self { pairs, wrong: Vec::new() }
    }

    /// Every value of `name`.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        self.pairs.retain_mut(|(key, value)| {
            let matches = key == name;
            if matches && !value.is_empty() {
                values.push(std::mem::take(value));
            }
            !matches
        });
        values
    }

    /// The one value of `name`.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let mut values = self.take_all(name);
        if values.len() > 1 {
            self.wrong.push(FieldError::new(name, "is given more than once"));
        }
        values.pop()
    }

    /// The one value of a parameter with two names.
    pub(crate) fn take_either(&mut self, name: &str, other: &str) -> Option<String> {
        let (value, same) = (self.take(name), self.take(other));
        if value.is_some() && same.is_some() {
            self.wrong
                .push(FieldError::new(other, format!("is another name for `{name}`: give one of them")));
        }
        value.or(same)
    }

    /// The one value of `name`, parsed.
    pub(crate) fn parse<T, E: ToString>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.take(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong.push(FieldError::new(name, error.to_string()));
                None
            }
        }
    }

    /// Ends the reading: 422 if anything was wrong or remains.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let wrong = self.faults("is not a parameter of this call");
        if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(wrong)) }
    }

    /// Ends the reading: what was wrong, and each parameter that remains, with this message.
    pub(crate) fn faults(mut self, unknown: &str) -> Vec<FieldError> {
        for (name, _) in self.pairs {
            let name: String = name.chars().take(100).collect();
            if !self.wrong.iter().any(|wrong| wrong.field == name) {
                self.wrong.push(FieldError::new(name, unknown));
            }
        }
        self.wrong
    }
}

/// Whether a creating request is only to be checked: reads `dry_run`, and refuses any other parameter.
pub(crate) fn dry_run(uri: &Uri) -> Result<bool, ApiError> {
    let mut query = QueryParameters::from_uri(uri)?;
    let dry_run = query.parse("dry_run", flag).unwrap_or(false);
    query.finish()?;
    Ok(dry_run)
}

/// `true` or `false`.
pub(crate) fn flag(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("must be true or false"),
    }
}

/// The longest text of a filter.
const TEXT_BYTES_MAX: usize = 998;

/// Reads a text that a list is filtered by.
pub(crate) fn bounded_text(text: &str) -> Result<String, String> {
    match text.len() {
        0..=TEXT_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("must have at most {TEXT_BYTES_MAX} bytes")),
    }
}
