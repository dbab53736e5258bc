//! Keys of the machine's role: of a pod or container (web identity, ECS, EKS pod identity), else of the
//! instance (metadata service, version 2). `object_store`, which blobs use anyway, asks for them; its cache
//! renews a key before it expires.
//!
//! The services that issue these keys are on this machine's own link, so no guard checks their addresses.
//! Only accounts that the admin key created get here.

use std::{fmt, time::Duration};

use object_store::{
    RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredentialProvider},
};
use secrecy::SecretString;

use super::credentials::AwsAccessKey;

/// How long asking for a key may take.
const ASK_MAX: Duration = Duration::from_secs(10);
/// How often a request for a key is repeated.
const RETRIES_MAX: usize = 1;

/// The environment variables that describe a container's role.
const OF_CONTAINER: [(&str, AmazonS3ConfigKey); 7] = [
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_ENDPOINT_URL_STS", AmazonS3ConfigKey::StsEndpoint),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
];

/// The settings of the machine's role, from the environment.
pub(super) struct RoleSettings {
    region: String,
    found: Vec<(AmazonS3ConfigKey, String)>,
    metadata_endpoint: Option<String>,
    is_switched_off: bool,
}

impl RoleSettings {
    pub(super) fn find(region: &str, variable: impl Fn(&'static str) -> Option<String>) -> Self {
        let found = OF_CONTAINER.into_iter().filter_map(|(name, key)| Some((key, variable(name)?)));
        let is_true = |text: String| text.eq_ignore_ascii_case("true");
        Self {
            region: region.to_owned(),
            found: found.collect(),
            metadata_endpoint: variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
            is_switched_off: variable("AWS_EC2_METADATA_DISABLED").is_some_and(is_true),
        }
    }

    fn has(&self, key: AmazonS3ConfigKey) -> bool {
        self.found.iter().any(|(found, _)| *found == key)
    }

    /// Whether the environment describes a container's role.
    pub(super) fn is_of_container(&self) -> bool {
        use AmazonS3ConfigKey::{
            ContainerAuthorizationTokenFile, ContainerCredentialsFullUri, ContainerCredentialsRelativeUri,
            RoleArn, WebIdentityTokenFile,
        };
        (self.has(WebIdentityTokenFile) && self.has(RoleArn))
            || self.has(ContainerCredentialsRelativeUri)
            || (self.has(ContainerCredentialsFullUri) && self.has(ContainerAuthorizationTokenFile))
    }

    /// Whether the metadata service of the instance is disabled.
    pub(super) fn is_switched_off(&self) -> bool {
        self.is_switched_off
    }

    /// The keys of the role; `reason` says why no other key is used.
    pub(super) fn keys(self, reason: String) -> Result<RoleKeys, String> {
        let retry =
            RetryConfig { max_retries: RETRIES_MAX, retry_timeout: ASK_MAX, ..RetryConfig::default() };
        // The builder is meant for a bucket; no bucket is ever called.
        let mut builder =
            AmazonS3Builder::new().with_bucket_name("ses").with_region(self.region).with_retry(retry);
        for (key, value) in self.found {
            builder = builder.with_config(key, value);
        }
        if let Some(endpoint) = self.metadata_endpoint {
            builder = builder.with_metadata_endpoint(endpoint.trim_end_matches('/'));
        }
        let built = builder.build().map_err(|error| format!("the role cannot be asked: {error}"))?;
        Ok(RoleKeys { provider: built.credentials().clone(), reason })
    }
}

/// Keys that expire and are renewed.
#[derive(Clone)]
pub(super) struct RoleKeys {
    provider: AwsCredentialProvider,
    reason: String,
}

impl fmt::Debug for RoleKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoleKeys(hidden)")
    }
}

impl RoleKeys {
    /// The current key, or why there is no key.
    pub(super) async fn key(&self) -> Result<AwsAccessKey, String> {
        let reason = &self.reason;
        let key = tokio::time::timeout(ASK_MAX, self.provider.get_credential())
            .await
            .map_err(|_| format!("{reason}; the role gave no key within {} s", ASK_MAX.as_secs()))?
            .map_err(|error| format!("{reason}; the role gives no key: {error}"))?;
        Ok(AwsAccessKey {
            access_key_id: key.key_id.clone(),
            secret_access_key: key.secret_key.clone().into(),
            session_token: key.token.clone().map(SecretString::from),
        })
    }
}
