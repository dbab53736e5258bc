//! The settings of an SES account: region, endpoint, key, timeouts.

use std::sync::Arc;

use postway_domain::failure::SendFailure;
use postway_net::{AddressGuard, EgressPath};
use reqwest::Url;

use super::SesCredentials;
use crate::transport::api_call::{CallTimeouts, unusable_settings};

/// Everything needed to send through SES.
#[derive(Debug, Clone)]
pub struct SesSettings {
    /// The AWS region, such as `eu-west-1`.
    pub region: String,
    /// Where to send instead of the region's own endpoint: scheme, host and port.
    pub endpoint: Option<String>,
    /// The key to sign with.
    pub credentials: SesCredentials,
    /// The configuration set that every mail names.
    pub configuration_set: Option<String>,
    /// How long a call may take.
    pub timeouts: CallTimeouts,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
    /// The addresses that may be connected to; the default allows public ones.
    pub guard: Arc<AddressGuard>,
    /// The path of the calls.
    pub egress: EgressPath,
}

impl SesSettings {
    /// Settings for a region's own endpoint, without a configuration set, with the default timeouts.
    pub fn new(region: impl Into<String>, credentials: SesCredentials) -> Self {
        Self {
            region: region.into(),
            endpoint: None,
            credentials,
            configuration_set: None,
            timeouts: CallTimeouts::default(),
            extra_roots_pem: None,
            guard: Arc::default(),
            egress: EgressPath::default(),
        }
    }

    /// The address of the service: only scheme, host and port.
    pub(super) fn base(&self) -> Result<Url, SendFailure> {
        let region = &self.region;
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || region.len() > 32 || !region.bytes().all(is_part) {
            return Err(unusable_settings(format!(
                "{region:?} is not an AWS region; write one like eu-west-1"
            )));
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let address = match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => format!("https://email.{region}.{domain}"),
        };
        let invalid = |reason: &str| {
            unusable_settings(format!(
                "{address:?} is not an endpoint: {reason}; write one like https://email.eu-west-1.amazonaws.com"
            ))
        };
        let base = Url::parse(&address).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(invalid("it is neither http nor https"));
        }
        let is_bare = base.path() == "/" && base.query().is_none() && base.fragment().is_none();
        if !is_bare || !base.username().is_empty() || base.password().is_some() {
            return Err(invalid("it has more than scheme, host and port"));
        }
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(region: &str, endpoint: Option<&str>) -> Result<String, String> {
        let credentials = SesCredentials::new("AKID", "secret".to_owned().into(), None);
        let settings =
            SesSettings { endpoint: endpoint.map(str::to_owned), ..SesSettings::new(region, credentials) };
        settings.base().map(String::from).map_err(|failure| {
            assert!(failure.is_account(), "{failure}");
            failure.message
        })
    }

    #[test]
    fn a_region_has_its_endpoint_and_it_can_be_overridden() {
        assert_eq!(base("eu-west-1", None).unwrap(), "https://email.eu-west-1.amazonaws.com/");
        assert_eq!(base("cn-north-1", None).unwrap(), "https://email.cn-north-1.amazonaws.com.cn/");
        assert_eq!(base("eu-west-1", Some("http://[::1]:9/")).unwrap(), "http://[::1]:9/");
    }

    #[test]
    fn what_is_no_region_or_endpoint_is_refused_by_name() {
        for region in ["", "eu west", "eu-west-1.example.org/", "EU-WEST-1", &"x".repeat(33)] {
            assert!(base(region, None).unwrap_err().contains("eu-west-1"), "{region:?}");
        }
        for endpoint in [
            "",
            "email.eu-west-1.amazonaws.com",
            "ftp://example.org",
            "https://example.org/path",
            "https://example.org/?x=1",
            "https://user@example.org",
        ] {
            assert!(base("eu-west-1", Some(endpoint)).unwrap_err().contains("endpoint"), "{endpoint:?}");
        }
    }
}
