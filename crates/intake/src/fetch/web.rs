//! Files from the web and from the tenant's endpoint.

use std::{ops::ControlFlow, time::Duration};

use aws_lc_rs::digest;
use bytes::Bytes;
use postway_net::http::{FetchRequest, Fetched, HttpError, Sink};
use url::Url;

use super::{
    Body, Errand, Fetcher, Sha256,
    allowance::Room,
    cache::{Known, URL_FRESH_FOR},
    digest_of,
    error::Fault,
    source::endpoint_content_type,
};

impl Fetcher {
    /// What the URL gives. With a digest, what the tenant has fetched before will do; without one, what the URL gave this
    /// tenant within the last minute will. A sensitive message's files are fetched for it alone.
    pub(super) async fn ask_url(
        &self,
        errand: &Errand<'_>,
        url: &Url,
        expected: Option<&Sha256>,
        room: &Room,
    ) -> Result<Body, Fault> {
        if let Some(expected) = expected {
            return match self.kept(errand, expected, room).await? {
                Some(body) => Ok(body),
                None => {
                    let (body, _) = self.download(get(url, room), room).await?;
                    self.keep(errand, expected, &body).await;
                    Ok(body)
                }
            };
        }
        if errand.is_private {
            return Ok(self.download(get(url, room), room).await?.0);
        }
        let tenant = errand.tenant;
        loop {
            let mut is_mine = false;
            let mut mine = None;
            let known = self.cache.url(tenant, url, async {
                is_mine = true;
                let (body, fetched) = self.download(get(url, room), room).await?;
                let known = Known { sha256: body.sha256, fresh_for: fresh_for(&fetched) };
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
                        && let Some(body) = self.kept(errand, &known.sha256, room).await?
                    {
                        return Ok(body);
                    }
                    // Not for sharing, or too large to be kept: everyone fetches their own.
                    return Ok(self.download(get(url, room), room).await?.0);
                }
                // Someone else's message was full, which says nothing about this one.
                Err(fault) if fault.is_of_message && !is_mine => {}
                Err(fault) => return Err(Fault::clone(&fault)),
            }
        }
    }

    /// What the endpoint answers to the text.
    pub(super) async fn ask_endpoint(
        &self,
        errand: &Errand<'_>,
        text: &str,
        expected: Option<&Sha256>,
        room: &Room,
    ) -> Result<Body, Fault> {
        let endpoint = errand.endpoint.ok_or_else(|| {
            Fault::permanent(
                "the tenant has no endpoint for attachments: set its URL, or give a url or content",
            )
        })?;
        if let Some(expected) = expected
            && let Some(body) = self.kept(errand, expected, room).await?
        {
            return Ok(body);
        }
        let (url, sent) = (endpoint.url.clone(), Bytes::copy_from_slice(text.as_bytes()));
        let request = FetchRequest {
            auth: endpoint.auth.clone(),
            ..FetchRequest::post(url, sent, endpoint_content_type(text), room.file_bytes_max as u64)
        };
        let (body, _) = self.download(request, room).await?;
        if let Some(expected) = expected {
            self.keep(errand, expected, &body).await;
        }
        Ok(body)
    }

    async fn kept(&self, errand: &Errand<'_>, sha256: &Sha256, room: &Room) -> Result<Option<Body>, Fault> {
        if errand.is_private {
            return Ok(None);
        }
        let Some(bytes) = self.cache.get(errand.tenant, sha256).await else { return Ok(None) };
        room.take(bytes.len())?;
        Ok(Some(Body { bytes, sha256: *sha256 }))
    }

    /// Keeps what has the digest that was expected; anything else is about to be refused.
    async fn keep(&self, errand: &Errand<'_>, expected: &Sha256, body: &Body) {
        if body.sha256 == *expected && !errand.is_private {
            self.cache.put(errand.tenant, body.sha256, &body.bytes).await;
        }
    }

    async fn download(&self, request: FetchRequest, room: &Room) -> Result<(Body, Fetched), Fault> {
        let request = FetchRequest {
            timeout: self.config.timeout,
            idle_timeout: self.config.idle_timeout.min(self.config.timeout),
            ..request
        };
        let mut collector = Collector::new(room);
        match self.http.fetch(&request, &mut collector).await {
            Ok(fetched) => Ok((collector.into_body(), fetched)),
            Err(HttpError::Stopped { .. }) => Err(collector.overflow()),
            Err(error) => Err(error.into()),
        }
    }
}

fn get(url: &Url, room: &Room) -> FetchRequest {
    FetchRequest::get(url.clone(), room.file_bytes_max as u64)
}

/// How long the host lets its answer be used again, and at most [`URL_FRESH_FOR`].
fn fresh_for(fetched: &Fetched) -> Duration {
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

/// Takes a body into memory, as far as the message has room, and its digest on the way.
struct Collector<'r> {
    bytes: Vec<u8>,
    digest: digest::Context,
    room: &'r Room,
    overflow: Option<Fault>,
}

impl<'r> Collector<'r> {
    fn new(room: &'r Room) -> Self {
        Self { bytes: Vec::new(), digest: digest::Context::new(&digest::SHA256), room, overflow: None }
    }

    fn into_body(mut self) -> Body {
        // It may be kept for a while: what it grew beyond its need is given back.
        self.bytes.shrink_to_fit();
        Body { bytes: self.bytes.into(), sha256: digest_of(self.digest.finish()) }
    }

    fn overflow(self) -> Fault {
        self.overflow.unwrap_or_else(|| Fault::no_room(0))
    }
}

impl Sink for Collector<'_> {
    fn begin(&mut self, length: Option<u64>) {
        let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        self.bytes.reserve_exact(length.min(self.room.left()));
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        if let Err(fault) = self.room.take(piece.len()) {
            self.overflow = Some(fault);
            return ControlFlow::Break(());
        }
        self.digest.update(piece);
        self.bytes.extend_from_slice(piece);
        ControlFlow::Continue(())
    }
}
