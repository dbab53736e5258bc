//! Dry runs: files are fetched and the mail is composed, and nothing is stored.

use postway_domain::Time;
use postway_store::record::BlobName;

use super::{
    check::check,
    compose::compose_checked,
    context::RequestContext,
    door::Door,
    files::{attachment_bytes, attachments, lifetime, sort_files},
    look_up::LookupResult,
    parse::request::MessageInput,
};
use crate::{
    budget::catch_panic,
    fetch::{DRY_RUN_WAIT_S_MAX, FileFetcher},
    refusal::Refusal,
};

impl Door {
    /// Fetches and composes without keeping anything, for a dry run.
    pub(super) async fn dry_run(
        &self,
        ctx: &RequestContext,
        request: &MessageInput<'_>,
        looked_up: &LookupResult,
        payload_bytes: usize,
        now: Time,
    ) -> Result<(), Refusal> {
        let limits = self.limits.for_tenant(&looked_up.profile.settings.content);
        let uid = self.builder.new_uid(now);
        let checked =
            || catch_panic(&ctx.tenant, &ctx.request_id, || check(request, looked_up, &limits, (uid, now)));
        let weight = looked_up.weight(request, payload_bytes);
        let mut checked = self.heavy.run(&ctx.tenant, weight, checked).await??;
        if !checked.needs_preparation() {
            return Ok(());
        }
        let _places = self.fetch_slots.for_dry_run(&ctx.tenant).await?;
        let mut memory = self.fetcher.memory_for(&ctx.tenant, payload_bytes, DRY_RUN_WAIT_S_MAX).await?;
        FileFetcher::cover(&mut memory, payload_bytes + checked.content.len())?;
        let fetched = self.fetch_files(&looked_up.profile, &checked, DRY_RUN_WAIT_S_MAX).await;
        let files = fetched.map_err(|error| match error.is_busy {
            true => Refusal::busy(&error.message),
            false => Refusal::field(error.field, error.message),
        })?;
        let names = self.builder.names(uid, checked.from.address());
        let (attached, linked) = sort_files(&mut checked, files, &looked_up.profile)?;
        for (plan, file) in &linked {
            // Any blob name will do to find out whether a link can be made: nothing is stored under it.
            let blob = BlobName { digest: file.sha256, generation: 0 };
            self.link_url(
                &names,
                &blob,
                plan,
                &file.content_type,
                lifetime(&checked, &looked_up.profile, now),
            )
            .await?;
        }
        let attachments = attachments(attached, limits.message_bytes_max)?;
        let compose = || {
            catch_panic(&ctx.tenant, &ctx.request_id, || {
                compose_checked(&checked, &attachments, &names, now, &looked_up.signers)
            })
        };
        let composed = self.heavy.run(&ctx.tenant, attachment_bytes(&attachments), compose).await??;
        match composed.bytes.len() > limits.message_bytes_max {
            true => Err(Refusal::message_too_large(limits.message_bytes_max)),
            false => Ok(()),
        }
    }
}
