//! The certificates that sign calls of SNS: fetched from Amazon alone, and kept.
//!
//! A call names the URL of its certificate. Only `https://sns.REGION.amazonaws.com/….pem` is fetched, over a
//! verified connection and through the guarded client, so that a certificate from there is Amazon's. Where a
//! hook names an emulator, only that is asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_lc_rs::signature::{self, UnparsedPublicKey};
use postway_net::http::{FetchRequest, HttpClient};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use tokio::time::Instant;
use url::Url;
use webpki::EndEntityCert;

use super::HookRefusal;

/// The largest certificate, and the largest answer to a confirmation.
const PEM_BYTES_MAX: u64 = 64 * 1024;
/// How long fetching may take: a provider waits for some fifteen seconds.
const FETCH_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a certificate is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// The most certificates that are kept.
const KEPT_MAX: usize = 256;

/// The version of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnsSignatureVersion {
    /// RSA with SHA-1, the default of topics.
    One,
    /// RSA with SHA-256.
    Two,
}

/// The public key of a certificate, in DER.
type PublicKeyDer = Arc<[u8]>;

/// The certificates that were fetched.
pub(super) struct SnsCertificates {
    http: HttpClient,
    known: Mutex<HashMap<String, (Instant, PublicKeyDer)>>,
}

impl SnsCertificates {
    pub fn new(http: HttpClient) -> Self {
        Self { http, known: Mutex::default() }
    }

    /// Whether the certificate at this URL made this signature.
    pub async fn verify(
        &self,
        url: &str,
        endpoint: Option<&str>,
        version: SnsSignatureVersion,
        text: &str,
        signed: &[u8],
    ) -> Result<(), HookRefusal> {
        let url = allowed(url, endpoint).filter(|url| url.path().ends_with(".pem")).ok_or(
            HookRefusal::Forged("the certificate is not Amazon's: SNS serves it at sns.REGION.amazonaws.com"),
        )?;
        let key = match self.known(url.as_str()) {
            Some(key) => key,
            None => self.fetch(url).await?,
        };
        let algorithm = match version {
            SnsSignatureVersion::One => &signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            SnsSignatureVersion::Two => &signature::RSA_PKCS1_2048_8192_SHA256,
        };
        UnparsedPublicKey::new(algorithm, key)
            .verify(text.as_bytes(), signed)
            .map_err(|_| HookRefusal::Forged("the signature of SNS is wrong"))
    }

    /// Asks for the URL that confirms a subscription.
    pub async fn confirm(&self, url: &str, endpoint: Option<&str>) -> Result<(), HookRefusal> {
        let url = allowed(url, endpoint)
            .ok_or(HookRefusal::Forged("the subscription is not confirmed at Amazon"))?;
        self.get(url, "the subscription cannot be confirmed").await.map(drop)
    }

    fn known(&self, url: &str) -> Option<PublicKeyDer> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (fetched_at, key) = known.get(url)?;
        (fetched_at.elapsed() < KEPT_FOR).then(|| key.clone())
    }

    async fn fetch(&self, url: Url) -> Result<PublicKeyDer, HookRefusal> {
        let name = url.to_string();
        let pem = self.get(url, "the certificate of SNS cannot be fetched").await?;
        let wrong = || HookRefusal::Unchecked("what SNS serves is no certificate".to_owned());
        let der = CertificateDer::from_pem_slice(&pem).map_err(|_| wrong())?;
        let certificate = EndEntityCert::try_from(&der).map_err(|_| wrong())?;
        let key: PublicKeyDer = Arc::from(certificate.subject_public_key_info().as_ref());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        known.insert(name, (Instant::now(), key.clone()));
        Ok(key)
    }

    async fn get(&self, url: Url, what: &str) -> Result<Vec<u8>, HookRefusal> {
        let request = FetchRequest {
            timeout: FETCH_TIMEOUT,
            idle_timeout: FETCH_TIMEOUT,
            redirects_max: 0,
            ..FetchRequest::get(url, PEM_BYTES_MAX)
        };
        let mut body = Vec::new();
        let fetched = self.http.fetch(&request, &mut body).await;
        fetched.map_err(|error| HookRefusal::Unchecked(format!("{what}: {error}")))?;
        Ok(body)
    }
}

/// The URL, if it is Amazon's, or of the emulator that the hook names.
pub(super) fn allowed(url: &str, endpoint: Option<&str>) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return None;
    }
    if let Some(endpoint) = endpoint {
        return (url.origin() == Url::parse(endpoint).ok()?.origin()).then_some(url);
    }
    let host = url.host_str()?;
    let region = host.strip_prefix("sns.")?;
    let region =
        region.strip_suffix(".amazonaws.com").or_else(|| region.strip_suffix(".amazonaws.com.cn"))?;
    let is_region = !region.is_empty()
        && region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (is_region && url.scheme() == "https" && url.port().is_none()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_amazon_or_the_named_emulator_is_asked() {
        let ours = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0.pem";
        assert!(allowed(ours, None).is_some());
        assert!(allowed("https://sns.cn-north-1.amazonaws.com.cn/x.pem", None).is_some());
        for elsewhere in [
            "http://sns.eu-west-1.amazonaws.com/x.pem",
            "https://sns.eu-west-1.amazonaws.com.evil.example/x.pem",
            "https://evil.example/sns.eu-west-1.amazonaws.com/x.pem",
            "https://sns.eu-west-1.amazonaws.com@evil.example/x.pem",
            "https://sns.evil.example/x.pem",
            "https://sns..amazonaws.com/x.pem",
            "https://sns.a.b.amazonaws.com/x.pem",
            "https://s3.amazonaws.com/bucket/x.pem",
            "https://sns.eu-west-1.amazonaws.com:8443/x.pem",
            "file:///etc/x.pem",
            "x.pem",
        ] {
            assert!(allowed(elsewhere, None).is_none(), "{elsewhere}");
        }
        let emulator = Some("http://127.0.0.1:4566");
        assert!(allowed("http://127.0.0.1:4566/cert.pem", emulator).is_some());
        assert!(allowed("http://127.0.0.1:4567/cert.pem", emulator).is_none());
        assert!(allowed(ours, emulator).is_none());
    }
}
