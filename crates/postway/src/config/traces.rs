//! `[tracing]`: where traces go, and how many.
//!
//! What is not set here is taken from the variables that OpenTelemetry's own libraries read, so that a platform
//! which sets them for all its programs need not know this one.

use std::fmt;

use reqwest::Url;

use super::keys::ConfigSecret;
use super::layers::ConfigLayers;

/// The path that a collector takes spans at.
const SPANS_PATH: &str = "/v1/traces";
const SERVICE: &str = "postway";

/// The settings of traces.
#[derive(Clone, Debug)]
pub struct TracingSection {
    /// The collector's address for spans; none: nothing is traced.
    pub endpoint: Option<Url>,
    /// Headers of every export: `name=value`, separated by commas.
    pub headers: Vec<TracingHeader>,
    /// The share of new traces that is recorded, from 0 to 1.
    pub ratio: f64,
    /// What this program is called in traces.
    pub service_name: String,
}

/// A header of the exports; its value is mostly a key.
#[derive(Clone)]
pub struct TracingHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ConfigSecret,
}

impl fmt::Debug for TracingHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracingHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TracingSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let endpoint = layers.take_optional("tracing.endpoint", endpoint);
        let headers = layers.take("tracing.headers", Vec::new(), "", headers);
        let ratio = layers.take("tracing.ratio", 1.0, "1", ratio);
        let service_name = layers.take("tracing.service_name", SERVICE.to_owned(), SERVICE, |text| {
            let is_name = (1..=128).contains(&text.len()) && !text.contains(char::is_control);
            is_name.then(|| text.to_owned()).ok_or_else(|| "must be a name of 1 to 128 bytes".to_owned())
        });
        Some(Self { endpoint: endpoint?, headers: headers?, ratio: ratio?, service_name: service_name? })
    }
}

/// A collector's base address, as OpenTelemetry's libraries take it, or the full one.
fn endpoint(text: &str) -> Result<Url, String> {
    let wrong = || {
        "must be the http(s) address of a collector that takes OTLP over HTTP, such as http://localhost:4318"
            .to_owned()
    };
    let mut url = Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !url.username().is_empty() {
        return Err(wrong());
    }
    if url.port() == Some(4317) {
        return Err("port 4317 takes OTLP over gRPC, which is not spoken here: use 4318, for HTTP".to_owned());
    }
    if !url.path().ends_with(SPANS_PATH) {
        let path = format!("{}{SPANS_PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

fn headers(text: &str) -> Result<Vec<TracingHeader>, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or("must be pairs such as api-key=secret")?;
            let (name, value) = (name.trim(), value.trim());
            let is_name =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            let is_value = value.bytes().all(|b| (b' '..=b'~').contains(&b));
            match is_name && is_value {
                true => {
                    Ok(TracingHeader { name: name.to_owned(), value: ConfigSecret::new(value.to_owned()) })
                }
                false => Err("has a name or a value that no header can have".to_owned()),
            }
        })
        .collect()
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err(format!("`{text}` must be a number from 0 to 1, such as 0.1 for one trace in ten")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use crate::config::{ConfigErrors, TracingSection, load_from};

    fn read(variables: &[(&str, &str)]) -> Result<TracingSection, ConfigErrors> {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        load_from(None, variables).map(|loaded| loaded.config.tracing)
    }

    #[test]
    fn nothing_is_traced_until_there_is_a_collector() {
        assert!(read(&[]).unwrap().endpoint.is_none());
        let section = read(&[("POSTWAY_TRACING_ENDPOINT", "http://localhost:4318")]).unwrap();
        assert_eq!(section.endpoint.unwrap().as_str(), "http://localhost:4318/v1/traces");
        assert_eq!((section.ratio, section.service_name.as_str()), (1.0, "postway"));
        for (given, used) in [
            ("https://otlp.example.com/otlp/", "https://otlp.example.com/otlp/v1/traces"),
            ("http://collector:4318/v1/traces", "http://collector:4318/v1/traces"),
        ] {
            let section = read(&[("POSTWAY_TRACING_ENDPOINT", given)]).unwrap();
            assert_eq!(section.endpoint.unwrap().as_str(), used);
        }
    }

    #[test]
    fn the_usual_variables_count_where_ours_are_not_set() {
        let usual = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://usual:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a-secret, x-team = mail"),
            ("OTEL_SERVICE_NAME", "mail-gateway"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ];
        let section = read(&usual).unwrap();
        assert_eq!(section.endpoint.unwrap().as_str(), "http://usual:4318/v1/traces");
        assert_eq!((section.ratio, section.service_name.as_str()), (0.25, "mail-gateway"));
        let headers: Vec<_> =
            section.headers.iter().map(|one| (one.name.as_str(), one.value.expose())).collect();
        assert_eq!(headers, [("api-key", "a-secret"), ("x-team", "mail")]);
        let ours = [&usual[..], &[("POSTWAY_TRACING_RATIO", "0.5")]].concat();
        assert_eq!(read(&ours).unwrap().ratio, 0.5);
    }

    #[test]
    fn a_value_that_cannot_be_used_is_refused_by_name() {
        for (variable, value, key) in [
            ("POSTWAY_TRACING_ENDPOINT", "localhost:4318", "`tracing.endpoint`"),
            ("POSTWAY_TRACING_ENDPOINT", "http://user:word@host:4318", "`tracing.endpoint`"),
            ("POSTWAY_TRACING_ENDPOINT", "http://localhost:4317", "4318"),
            ("POSTWAY_TRACING_RATIO", "2", "`tracing.ratio`"),
            ("POSTWAY_TRACING_HEADERS", "secret", "`tracing.headers`"),
        ] {
            let error = read(&[(variable, value)]).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        let error = read(&[("POSTWAY_TRACING_HEADERS", "a=b\u{7f}c")]).unwrap_err().to_string();
        assert!(!error.contains("b\u{7f}c"), "{error}");
    }
}
