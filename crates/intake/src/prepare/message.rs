//! One message: read again, fetch, compose.

use std::time::Duration;

use postway_domain::{
    Time,
    tenant::{LargeFilePolicy, RemoteAuth},
};
use postway_mime::Attachment;
use postway_net::http::{Auth, parse_url};
use postway_store::{
    StoreError,
    record::{BlobName, NewLink, Prepared, ToPrepare},
};

use super::outcome::Outcome;
use crate::{
    accept::check::{Checked, FilePlan, attachment, check, refuse_large},
    accept::compose::links::{self, LinkText},
    accept::compose::{CheckedAs, Names, compose_checked, validated},
    accept::door::{Door, RequestContext, weight},
    accept::look_up::{Settled, Surroundings},
    accept::parse::parse,
    accept::parse::request::{MessageRequest, Object},
    budget::FairShare,
    budget::guarded,
    cache::settings_cache::House,
    fetch::{DRY_RUN_WAIT_S_MAX, EndpointTarget, Errand, FetchError, Fetcher, File, Source, Wanted},
    refusal::{Code, FieldError, Findings, Refusal},
};

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;
/// The longest that object storage signs a link for.
const SIGNED_FOR_MAX: Duration = Duration::from_secs(7 * DAY);

impl Door {
    /// Prepares one message that was claimed for it.
    pub(super) async fn prepare_one(&self, job: &ToPrepare) -> Outcome {
        if let Some(outcome) = Outcome::of_suspect(job) {
            return outcome;
        }
        let Some(payload) = job.payload.clone() else {
            let fault = FieldError::new("", "the request that was stored is gone");
            return Outcome::Refused(fault.coded(Code::OutboxNotFound));
        };
        let prepared = async {
            // It is in memory for as long as its files take, which strangers decide.
            let (tenant, bytes) = (&job.lane.tenant, payload.len() as usize);
            let memory = self.fetcher.memory_for(tenant, bytes, self.fetcher.message_timeout()).await?;
            let payload = self.resolve(tenant, payload).await?;
            let settled = settled(job)?;
            let read = || parse::<Object<MessageRequest<'_>>>(&payload);
            let Object(request) = self.weighed(tenant, payload.len(), read).await??;
            // The account is settled too: what is the default now, or how it is named, does not matter any more.
            let account = Some(job.lane.account.as_str());
            let around = self.surroundings(tenant, &request, account, settled).await?;
            self.compose_prepared(job, &request, &around, settled, payload.len(), memory).await
        };
        prepared.await.unwrap_or_else(Outcome::refused)
    }

    async fn compose_prepared(
        &self,
        job: &ToPrepare,
        request: &MessageRequest<'_>,
        around: &Surroundings,
        settled: Settled,
        payload_bytes: usize,
        mut memory: FairShare,
    ) -> Result<Outcome, Refusal> {
        // As of its acceptance: what was right then is not wrong because time has passed.
        let created_at = job.created_at;
        let limits = self.limits.of(&around.house.settings.content);
        let tenant = &job.lane.tenant;
        let work = || check(request, around, &limits, created_at);
        let mut checked = self
            .weighed(tenant, weight(request, &around.house.settings.content, payload_bytes), work)
            .await??;
        // A template may have made much of very little.
        Fetcher::cover(&mut memory, payload_bytes + checked.content.len())?;
        let files = match self.fetch_files(&around.house, &checked, self.fetcher.message_timeout()).await {
            Ok(files) => files,
            Err(error) if error.is_busy => return Err(Refusal::busy(&error.message)),
            Err(error) => return Ok(Outcome::Unfetched(error)),
        };
        let names = Names::given(job.uid, job.message_id.clone());
        let (attached, linked) = sort(&mut checked, files, &around.house)?;
        let attachments = attachments(attached, limits.message_bytes_max)?;
        let (rows, texts) = self.link_files(&checked, &around.house, &names, linked).await?;
        links::tell(&mut checked.content, &texts);
        self.add_unsubscribe(&mut checked, &around.house, &names);
        let compose = || compose_checked(&checked, &attachments, &names, created_at, &around.signers);
        let composed = self.weighed(tenant, bytes_of(&attachments), compose).await??;
        drop(attachments);
        if composed.bytes.len() > limits.message_bytes_max {
            return Err(Refusal::message_too_large(limits.message_bytes_max));
        }
        let now = self.clock.now();
        let prepared = Prepared {
            subject: checked.content.subject.to_string(),
            eight_bit: composed.eight_bit,
            smtputf8: composed.smtputf8 || settled.smtputf8,
            raw: self.keep(&job.lane.tenant, composed.bytes.into(), now).await?,
            links: rows,
        };
        let validated = validated(&checked, CheckedAs::Stored, payload_bytes);
        let send_at = checked.terms.send_at.filter(|at| *at > now);
        Ok(Outcome::Passed { prepared, validated, send_at })
    }

    /// Fetches and composes without keeping anything, for a dry run.
    pub(crate) async fn rehearse(
        &self,
        ctx: &RequestContext,
        request: &MessageRequest<'_>,
        around: &Surroundings,
        payload_bytes: usize,
        now: Time,
    ) -> Result<(), Refusal> {
        let limits = self.limits.of(&around.house.settings.content);
        let checked = || guarded(&ctx.tenant, &ctx.request_id, || check(request, around, &limits, now));
        let mut checked = self
            .weighed(&ctx.tenant, weight(request, &around.house.settings.content, payload_bytes), checked)
            .await??;
        if !checked.needs_preparation() {
            return Ok(());
        }
        let _places = self.fetch_places.for_dry_run(&ctx.tenant).await?;
        let mut memory = self.fetcher.memory_for(&ctx.tenant, payload_bytes, DRY_RUN_WAIT_S_MAX).await?;
        Fetcher::cover(&mut memory, payload_bytes + checked.content.len())?;
        let fetched = self.fetch_files(&around.house, &checked, DRY_RUN_WAIT_S_MAX).await;
        let files = fetched.map_err(|error| match error.is_busy {
            true => Refusal::busy(&error.message),
            false => Refusal::field(error.field, error.message),
        })?;
        let names = self.new_names(now, checked.from.address());
        let (attached, linked) = sort(&mut checked, files, &around.house)?;
        for (plan, file) in &linked {
            // Any name will do to see whether there is a link to be had: nothing is kept under it.
            let blob = BlobName { digest: file.sha256, generation: 0 };
            self.link_url(&names, &blob, plan, &file.content_type, lifetime(&checked, &around.house, now))
                .await?;
        }
        let attachments = attachments(attached, limits.message_bytes_max)?;
        let compose = || {
            guarded(&ctx.tenant, &ctx.request_id, || {
                compose_checked(&checked, &attachments, &names, now, &around.signers)
            })
        };
        let composed = self.weighed(&ctx.tenant, bytes_of(&attachments), compose).await??;
        match composed.bytes.len() > limits.message_bytes_max {
            true => Err(Refusal::message_too_large(limits.message_bytes_max)),
            false => Ok(()),
        }
    }

    async fn fetch_files(
        &self,
        house: &House,
        checked: &Checked<'_>,
        patience: Duration,
    ) -> Result<Vec<File>, FetchError> {
        let wanted: Vec<Wanted> = checked
            .files
            .iter()
            .enumerate()
            .map(|(position, plan)| Wanted {
                position,
                filename: plan.filename.clone(),
                source: plan.source.clone(),
                content_type: plan.content_type.clone(),
                digests: plan.digests,
            })
            .collect();
        let endpoint = endpoint(house)?;
        let large = &house.settings.large_files;
        let errand = Errand {
            tenant: &house.tenant,
            endpoint: endpoint.as_ref(),
            links: large.policy == LargeFilePolicy::Rewrite && large.above_bytes.is_some(),
            is_private: checked.sensitive,
            patience,
        };
        self.fetcher.fetch_all(&errand, &wanted).await
    }

    /// Keeps the files that are linked to, and makes their links.
    async fn link_files(
        &self,
        checked: &Checked<'_>,
        house: &House,
        names: &Names,
        linked: Sorted,
    ) -> Result<(Vec<NewLink>, Vec<LinkText>), Refusal> {
        let (mut rows, mut texts) = (Vec::new(), Vec::new());
        let now = self.clock.now();
        let lifetime = lifetime(checked, house, now);
        let expires_at = now.plus(lifetime);
        for (plan, File { bytes, content_type, .. }) in linked {
            let size = bytes.len() as u64;
            let put = self.depot.put(&*self.store, &house.tenant, bytes, now).await;
            let blob = put.map_err(StoreError::from)?;
            let url = self.link_url(names, &blob.name, &plan, &content_type, lifetime).await?;
            texts.push(LinkText { filename: plan.filename.clone(), size, url, until: expires_at });
            rows.push(NewLink { blob, filename: plan.filename, content_type, expires_at });
        }
        Ok((rows, texts))
    }

    /// The address of a linked file: here, or in object storage where readers cannot reach us.
    async fn link_url(
        &self,
        names: &Names,
        blob: &BlobName,
        plan: &FilePlan,
        content_type: &str,
        lifetime: Duration,
    ) -> Result<String, Refusal> {
        if let Some(public) = &self.public_url {
            let token = self.link_key.token(names.uid, blob);
            return Ok(format!("{}/files/{token}", public.trim_end_matches('/')));
        }
        if lifetime > SIGNED_FOR_MAX {
            return Err(unlinkable(plan));
        }
        let signed = self.depot.signed_url(blob, &plan.filename, content_type, lifetime).await;
        let signed = signed.map_err(StoreError::from)?;
        signed.map(|url| url.to_string()).ok_or_else(|| unlinkable(plan))
    }
}

/// What was settled when the message was accepted.
fn settled(job: &ToPrepare) -> Result<Settled, StoreError> {
    let settled = job.settled.as_deref().map(serde_json::from_str::<Settled>).transpose();
    let settled = settled.map_err(|error| {
        StoreError::Unexpected(format!("what was settled of {} is unreadable: {error}", job.uid))
    })?;
    Ok(Settled { is_stored: true, ..settled.unwrap_or_default() })
}

/// How long links work from now on: their days begin when the mail goes.
fn lifetime(checked: &Checked<'_>, house: &House, now: Time) -> Duration {
    let days = Duration::from_secs(u64::from(house.settings.large_files.link_days()) * DAY);
    days + checked.terms.send_at.filter(|at| *at > now).map_or(Duration::ZERO, |at| at.since(now))
}

/// The files that go into the mail, unless they alone are larger than it may be: composing them would take more memory
/// still.
fn attachments(attached: Sorted, bytes_max: usize) -> Result<Vec<Attachment>, Refusal> {
    if attached.iter().map(|(_, file)| file.bytes.len()).sum::<usize>() > bytes_max {
        return Err(Refusal::message_too_large(bytes_max));
    }
    let finished = attached.into_iter().map(|(plan, file)| attachment(plan, file.content_type, file.bytes));
    Ok(finished.collect())
}

fn bytes_of(attachments: &[Attachment]) -> usize {
    attachments.iter().map(|file| file.content.len()).sum()
}

fn unlinkable(plan: &FilePlan) -> Refusal {
    let message =
        "is too large to mail, and there is no address to link to it by: the operator must set public_url";
    Refusal::field(plan.field.clone(), message)
}

/// The tenant's own place for files.
fn endpoint(house: &House) -> Result<Option<EndpointTarget>, FetchError> {
    let Some((remote, secret)) = house.attachment_endpoint() else { return Ok(None) };
    let secret = secret.unwrap_or_default().to_owned();
    let auth = match remote.auth {
        RemoteAuth::None => Auth::None,
        RemoteAuth::Bearer => Auth::bearer(secret),
        RemoteAuth::Basic => Auth::basic(remote.username.clone().unwrap_or_default(), secret),
    };
    let text = format!("{}{}", remote.url.trim_end_matches('/'), remote.path.as_deref().unwrap_or_default());
    let url = parse_url(&text).map_err(|error| FetchError {
        field: "attachments".to_owned(),
        message: format!("the tenant's attachment_endpoint cannot be used: {error}"),
        transient: false,
        is_busy: false,
        retry_after: None,
    })?;
    Ok(Some(EndpointTarget { url, auth }))
}

type Sorted = Vec<(FilePlan, File)>;

/// Tells what goes into the mail from what is linked to, or refuses what is too large for both.
fn sort(checked: &mut Checked<'_>, files: Vec<File>, house: &House) -> Result<(Sorted, Sorted), Refusal> {
    let large = &house.settings.large_files;
    let mut findings = Findings::default();
    let (mut attached, mut linked) = (Vec::new(), Vec::new());
    for (plan, file) in std::mem::take(&mut checked.files).into_iter().zip(files) {
        let is_large = !plan.inline && large.is_large(file.bytes.len() as u64);
        let came_along = matches!(plan.source, Source::Content(_));
        if is_large && !came_along {
            refuse_large(large, &plan.field, &mut checked.warnings, &mut findings);
        }
        match is_large && large.policy == LargeFilePolicy::Rewrite {
            true => linked.push((plan, file)),
            false => attached.push((plan, file)),
        }
    }
    match findings.is_empty() {
        true => Ok((attached, linked)),
        false => Err(findings.into_refusal()),
    }
}
