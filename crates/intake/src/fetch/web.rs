//! Fetches files from the web and from the tenant's endpoint.

use std::{ops::ControlFlow, time::Duration};

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_net::http::{BodySink, FetchRequest, FetchedDocument, HttpError};
use url::Url;

use super::{
    FetchScope, FetchedBody, FileFetcher, Sha256,
    allowance::FetchAllowance,
    cache::{KnownUrl, URL_FRESH_FOR},
    digest_of,
    error::FetchFault,
    source::endpoint_content_type,
};

impl FileFetcher {
    /// Fetches a URL. With a digest, a cached file of the tenant will do; without one, what the URL returned
    /// to this tenant within the last minute. The files of a sensitive message are fetched for it alone.
    pub(super) async fn ask_url(
        &self,
        scope: &FetchScope<'_>,
        url: &Url,
        expected: Option<&Sha256>,
        allowance: &FetchAllowance,
    ) -> Result<FetchedBody, FetchFault> {
        if let Some(expected) = expected {
            return match self.cached(scope, expected, allowance).await? {
                Some(body) => Ok(body),
                None => {
                    let (body, _) = self.download(get(url, allowance), allowance).await?;
                    self.cache_expected(scope, expected, &body).await;
                    Ok(body)
                }
            };
        }
        if scope.is_private {
            return Ok(self.download(get(url, allowance), allowance).await?.0);
        }
        let tenant = scope.tenant;
        loop {
            let mut is_mine = false;
            let mut mine = None;
            let known = self.cache.url(tenant, url, async {
                is_mine = true;
                let (body, fetched) = self.download(get(url, allowance), allowance).await?;
                let known = KnownUrl { sha256: body.sha256, fresh_for: fresh_for(&fetched) };
                if !known.fresh_for.is_zero() {
                    self.cache.put(tenant, body.sha256, &body.bytes).await;
                }
                mine = Some(body);
                Ok(known)
            });
            let known = known.await;
            if let Some(body) = mine {
                return Ok(body);
            }
            match known {
                Ok(known) => {
                    if !known.fresh_for.is_zero()
                        && let Some(body) = self.cached(scope, &known.sha256, allowance).await?
                    {
                        return Ok(body);
                    }
                    // The file may not be shared, or is too large for the cache: each message fetches its
                    // own.
                    return Ok(self.download(get(url, allowance), allowance).await?.0);
                }
                // The other message had reached its limit, which says nothing about this one.
                Err(fault) if fault.is_of_message && !is_mine => {}
                Err(fault) => return Err(FetchFault::clone(&fault)),
            }
        }
    }

    /// Fetches the endpoint's answer to the text.
    pub(super) async fn ask_endpoint(
        &self,
        scope: &FetchScope<'_>,
        text: &str,
        expected: Option<&Sha256>,
        allowance: &FetchAllowance,
    ) -> Result<FetchedBody, FetchFault> {
        let endpoint = scope.endpoint.ok_or_else(|| {
            FetchFault::permanent(
                "the tenant has no endpoint for attachments: set its URL, or give a url or content",
            )
        })?;
        if let Some(expected) = expected
            && let Some(body) = self.cached(scope, expected, allowance).await?
        {
            return Ok(body);
        }
        let (url, sent) = (endpoint.url.clone(), Bytes::copy_from_slice(text.as_bytes()));
        let request = FetchRequest {
            auth: endpoint.auth.clone(),
            ..FetchRequest::post(url, sent, endpoint_content_type(text), allowance.file_bytes_max as u64)
        };
        let (body, _) = self.download(request, allowance).await?;
        if let Some(expected) = expected {
            self.cache_expected(scope, expected, &body).await;
        }
        Ok(body)
    }

    async fn cached(
        &self,
        scope: &FetchScope<'_>,
        sha256: &Sha256,
        allowance: &FetchAllowance,
    ) -> Result<Option<FetchedBody>, FetchFault> {
        if scope.is_private {
            return Ok(None);
        }
        let Some(bytes) = self.cache.get(scope.tenant, sha256).await else { return Ok(None) };
        allowance.take(bytes.len())?;
        Ok(Some(FetchedBody { bytes, sha256: *sha256 }))
    }

    /// Caches a body that has the expected digest; any other is about to be refused.
    async fn cache_expected(&self, scope: &FetchScope<'_>, expected: &Sha256, body: &FetchedBody) {
        if body.sha256 == *expected && !scope.is_private {
            self.cache.put(scope.tenant, body.sha256, &body.bytes).await;
        }
    }

    async fn download(
        &self,
        request: FetchRequest,
        allowance: &FetchAllowance,
    ) -> Result<(FetchedBody, FetchedDocument), FetchFault> {
        let request = FetchRequest {
            timeout: self.config.timeout,
            idle_timeout: self.config.idle_timeout.min(self.config.timeout),
            ..request
        };
        let mut collector = BodyCollector::new(allowance);
        match self.http.fetch(&request, &mut collector).await {
            Ok(fetched) => Ok((collector.into_body(), fetched)),
            Err(HttpError::Stopped { .. }) => Err(collector.overflow()),
            Err(error) => Err(error.into()),
        }
    }
}

fn get(url: &Url, allowance: &FetchAllowance) -> FetchRequest {
    FetchRequest::get(url.clone(), allowance.file_bytes_max as u64)
}

/// How long the host allows its answer to be reused, and at most [`URL_FRESH_FOR`].
fn fresh_for(fetched: &FetchedDocument) -> Duration {
    let mut fresh_for = URL_FRESH_FOR;
    for directive in fetched.headers("cache-control").flat_map(|value| value.split(',')) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Duration::ZERO,
            "max-age" => {
                let seconds = value.trim().trim_matches('"').parse().unwrap_or(0);
                fresh_for = fresh_for.min(Duration::from_secs(seconds));
            }
            _ => {}
        }
    }
    fresh_for
}

/// Collects a body in memory within the message's allowance, and computes its digest on the way.
struct BodyCollector<'r> {
    bytes: Vec<u8>,
    digest: digest::Context,
    allowance: &'r FetchAllowance,
    overflow: Option<FetchFault>,
}

impl<'r> BodyCollector<'r> {
    fn new(allowance: &'r FetchAllowance) -> Self {
        Self { bytes: Vec::new(), digest: digest::Context::new(&digest::SHA256), allowance, overflow: None }
    }

    fn into_body(mut self) -> FetchedBody {
        // The body may be cached for a while, so its spare capacity is released.
        self.bytes.shrink_to_fit();
        FetchedBody { bytes: self.bytes.into(), sha256: digest_of(self.digest.finish()) }
    }

    fn overflow(self) -> FetchFault {
        self.overflow.unwrap_or_else(|| FetchFault::too_large_together(0))
    }
}

impl BodySink for BodyCollector<'_> {
    fn begin(&mut self, length: Option<u64>) {
        let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        self.bytes.reserve_exact(length.min(self.allowance.left()));
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        if let Err(fault) = self.allowance.take(piece.len()) {
            self.overflow = Some(fault);
            return ControlFlow::Break(());
        }
        self.digest.update(piece);
        self.bytes.extend_from_slice(piece);
        ControlFlow::Continue(())
    }
}
