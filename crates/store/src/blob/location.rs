//! The location of blobs: a folder, or object storage.

use std::{ffi::OsString, fmt::Display, str::FromStr, sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    local::LocalFileSystem,
    path::Path,
    signer::Signer,
};
use url::Url;

use super::{BlobError, BlobFolder, BlobStorage};
use crate::record::BlobName;

/// How often and how long a request is tried at most: callers have their own retries.
const RETRIES_MAX: usize = 3;
const RETRY_FOR: Duration = Duration::from_secs(30);

/// An environment variable that could be an option.
pub(super) fn as_option((name, value): (OsString, OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

/// A blob's path below the root: two folders, so that none has too many entries, and its name.
pub(crate) fn parts(name: &BlobName) -> [String; 3] {
    [format!("{:02x}", name.digest[0]), format!("{:02x}", name.digest[1]), name.to_string()]
}

/// Opens the location of a URL with these options.
pub(super) fn open(
    url: &str,
    options: impl Iterator<Item = (String, String)>,
) -> Result<BlobStorage, BlobError> {
    // Errors do not repeat the URL: it may contain a password.
    let wrong = |reason: &dyn Display| BlobError::NoPlace(reason.to_string());
    let failed = |error: object_store::Error| wrong(&error);
    let parsed = Url::parse(url).map_err(|error| wrong(&error))?;
    match parsed.scheme() {
        "file" => {
            // A relative path would be read as an absolute one.
            let root = parsed.to_file_path().ok().filter(|_| url.starts_with("file:///"));
            let root = root.ok_or_else(|| wrong(&"a folder is given as file:///path"))?;
            let folder = BlobFolder::open(root.clone()).map_err(|error| wrong(&error))?;
            let objects = Arc::new(LocalFileSystem::new_with_prefix(root).map_err(failed)?);
            Ok(BlobStorage { objects, prefix: Path::default(), signer: None, folder: Some(folder) })
        }
        "s3" => {
            let set =
                |builder: AmazonS3Builder, key: AmazonS3ConfigKey, value| builder.with_config(key, value);
            let builder = with_options(AmazonS3Builder::new(), "AWS_", options, set);
            remote(builder.with_url(url).with_retry(retry()).build().map_err(failed)?, &parsed)
        }
        "az" | "azure" => {
            let set =
                |builder: MicrosoftAzureBuilder, key: AzureConfigKey, value| builder.with_config(key, value);
            let builder = with_options(MicrosoftAzureBuilder::new(), "AZURE_", options, set);
            remote(builder.with_url(url).with_retry(retry()).build().map_err(failed)?, &parsed)
        }
        "gs" => {
            let set = |builder: GoogleCloudStorageBuilder, key: GoogleConfigKey, value| {
                builder.with_config(key, value)
            };
            let builder = with_options(GoogleCloudStorageBuilder::new(), "GOOGLE_", options, set);
            remote(builder.with_url(url).with_retry(retry()).build().map_err(failed)?, &parsed)
        }
        scheme => Err(wrong(&format_args!("`{scheme}` is not file, s3, az or gs"))),
    }
}

fn retry() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES_MAX, retry_timeout: RETRY_FOR }
}

/// A builder with the options that it knows.
fn with_options<B, K: FromStr>(
    builder: B,
    prefix: &str,
    options: impl Iterator<Item = (String, String)>,
    set: impl Fn(B, K, String) -> B,
) -> B {
    let own = options.filter(|(name, _)| name.starts_with(prefix));
    let keyed = own.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)));
    keyed.fold(builder, |builder, (key, value)| set(builder, key, value))
}

fn remote(objects: impl ObjectStore + Signer, url: &Url) -> Result<BlobStorage, BlobError> {
    let prefix = Path::from_url_path(url.path()).map_err(|error| BlobError::NoPlace(error.to_string()))?;
    let objects = Arc::new(objects);
    Ok(BlobStorage { objects: objects.clone(), prefix, signer: Some(objects), folder: None })
}
