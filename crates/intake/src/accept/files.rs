//! The files of a message that is composed after something was fetched: fetched, sorted into attachments and
//! links, and the links made. The preparer and dry runs share this.

use std::time::Duration;

use postway_domain::{
    Time,
    tenant::{LargeFilePolicy, RemoteAuth},
};
use postway_mime::MailAttachment;
use postway_net::http::{HttpAuth, parse_url};
use postway_store::{
    StoreError,
    record::{BlobName, NewLink},
};

use super::{
    check::{AttachmentPlan, CheckedMessage, attachment, refuse_large},
    compose::{MailNames, links::FileLinkText},
    door::Door,
};
use crate::{
    cache::settings_cache::TenantProfile,
    fetch::{EndpointTarget, FetchError, FetchScope, FetchedFile, FileSource, WantedFile},
    refusal::{FieldFaults, Refusal},
};

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;
/// The longest time for which object storage signs a link.
const SIGNED_FOR_MAX: Duration = Duration::from_secs(7 * DAY);

impl Door {
    /// Fetches all files of a checked message.
    pub(crate) async fn fetch_files(
        &self,
        profile: &TenantProfile,
        checked: &CheckedMessage<'_>,
        memory_wait: Duration,
    ) -> Result<Vec<FetchedFile>, FetchError> {
        let wanted: Vec<WantedFile> = checked
            .files
            .iter()
            .enumerate()
            .map(|(position, plan)| WantedFile {
                position,
                filename: plan.filename.clone(),
                source: plan.source.clone(),
                content_type: plan.content_type.clone(),
                digests: plan.digests,
            })
            .collect();
        let endpoint = endpoint(profile)?;
        let large = &profile.settings.large_files;
        let scope = FetchScope {
            tenant: &profile.tenant,
            endpoint: endpoint.as_ref(),
            links: large.policy == LargeFilePolicy::Rewrite && large.above_bytes.is_some(),
            is_private: checked.sensitive,
            memory_wait,
        };
        self.fetcher.fetch_all(&scope, &wanted).await
    }

    /// Stores the files that are linked to, and makes their links.
    pub(crate) async fn link_files(
        &self,
        checked: &CheckedMessage<'_>,
        profile: &TenantProfile,
        names: &MailNames,
        linked: PlannedFiles,
    ) -> Result<(Vec<NewLink>, Vec<FileLinkText>), Refusal> {
        let (mut rows, mut texts) = (Vec::new(), Vec::new());
        let now = self.clock.now();
        let lifetime = lifetime(checked, profile, now);
        let expires_at = now.plus(lifetime);
        for (plan, FetchedFile { bytes, content_type, .. }) in linked {
            let size = bytes.len() as u64;
            let put = self.depot.put(&*self.store, &profile.tenant, bytes, now).await;
            let blob = put.map_err(StoreError::from)?;
            let url = self.link_url(names, &blob.name, &plan, &content_type, lifetime).await?;
            texts.push(FileLinkText { filename: plan.filename.clone(), size, url, until: expires_at });
            rows.push(NewLink { blob, filename: plan.filename, content_type, expires_at });
        }
        Ok((rows, texts))
    }

    /// The URL of a linked file: at this gateway, or in object storage if readers cannot reach the gateway.
    pub(super) async fn link_url(
        &self,
        names: &MailNames,
        blob: &BlobName,
        plan: &AttachmentPlan,
        content_type: &str,
        lifetime: Duration,
    ) -> Result<String, Refusal> {
        if let Some(public) = self.public_url() {
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

/// How long links work from now on: their days begin when the mail goes.
pub(super) fn lifetime(checked: &CheckedMessage<'_>, profile: &TenantProfile, now: Time) -> Duration {
    let days = Duration::from_secs(u64::from(profile.settings.large_files.link_days()) * DAY);
    days + checked.terms.send_at.filter(|at| *at > now).map_or(Duration::ZERO, |at| at.since(now))
}

/// The attachments of the mail, unless their bytes alone exceed its limit: composing would take even more
/// memory.
pub(crate) fn attachments(attached: PlannedFiles, bytes_max: usize) -> Result<Vec<MailAttachment>, Refusal> {
    if attached.iter().map(|(_, file)| file.bytes.len()).sum::<usize>() > bytes_max {
        return Err(Refusal::message_too_large(bytes_max));
    }
    let finished = attached.into_iter().map(|(plan, file)| attachment(plan, file.content_type, file.bytes));
    Ok(finished.collect())
}

/// The bytes of all attachments together.
pub(crate) fn attachment_bytes(attachments: &[MailAttachment]) -> usize {
    attachments.iter().map(|file| file.content.len()).sum()
}

fn unlinkable(plan: &AttachmentPlan) -> Refusal {
    let message =
        "is too large to mail, and there is no address to link to it by: the operator must set public_url";
    Refusal::field(plan.field.clone(), message)
}

/// The tenant's endpoint for attachments, if it has one.
fn endpoint(profile: &TenantProfile) -> Result<Option<EndpointTarget>, FetchError> {
    let Some((remote, secret)) = profile.attachment_endpoint() else { return Ok(None) };
    let secret = secret.unwrap_or_default().to_owned();
    let auth = match remote.auth {
        RemoteAuth::None => HttpAuth::None,
        RemoteAuth::Bearer => HttpAuth::bearer(secret),
        RemoteAuth::Basic => HttpAuth::basic(remote.username.clone().unwrap_or_default(), secret),
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

/// Files that were fetched, each with its plan.
pub(crate) type PlannedFiles = Vec<(AttachmentPlan, FetchedFile)>;

/// Separates the files that are attached from those that are linked, and refuses what is too large for both.
pub(crate) fn sort_files(
    checked: &mut CheckedMessage<'_>,
    files: Vec<FetchedFile>,
    profile: &TenantProfile,
) -> Result<(PlannedFiles, PlannedFiles), Refusal> {
    let large = &profile.settings.large_files;
    let mut errors = FieldFaults::default();
    let (mut attached, mut linked) = (Vec::new(), Vec::new());
    for (plan, file) in std::mem::take(&mut checked.files).into_iter().zip(files) {
        let is_large = !plan.inline && large.is_large(file.bytes.len() as u64);
        let came_along = matches!(plan.source, FileSource::Content(_));
        if is_large && !came_along {
            refuse_large(large, &plan.field, &mut checked.warnings, &mut errors);
        }
        match is_large && large.policy == LargeFilePolicy::Rewrite {
            true => linked.push((plan, file)),
            false => attached.push((plan, file)),
        }
    }
    match errors.is_empty() {
        true => Ok((attached, linked)),
        false => Err(errors.into_refusal()),
    }
}
