//! Prepares one message: reads its stored request again, fetches its files, and composes it.

use postway_store::{
    StoreError,
    record::{PreparedMessage, ToPrepare},
};

use super::outcome::PreparationOutcome;
use crate::{
    accept::{
        check::check,
        compose::{CheckedAs, MailNames, compose_checked, links, validated},
        door::Door,
        files::{attachment_bytes, attachments, sort_files},
        look_up::{LookupResult, SettledChoices},
        parse::{
            parse,
            request::{JsonObject, MessageInput},
        },
    },
    budget::FairShare,
    fetch::FileFetcher,
    refusal::{FieldFault, Refusal, RefusalCode},
};

/// Prepares one claimed message.
pub(super) async fn prepare_one(door: &Door, job: &ToPrepare) -> PreparationOutcome {
    if let Some(outcome) = PreparationOutcome::for_suspect(job) {
        return outcome;
    }
    let Some(payload) = job.payload.clone() else {
        let fault = FieldFault::new("", "the request that was stored is gone");
        return PreparationOutcome::Refused(fault.coded(RefusalCode::OutboxNotFound));
    };
    let prepared = async {
        // The request stays in memory while its files are fetched, which may take long.
        let (tenant, bytes) = (&job.lane.tenant, payload.len() as usize);
        let memory = door.fetcher.memory_for(tenant, bytes, door.fetcher.message_timeout()).await?;
        let payload = door.resolve(tenant, payload).await?;
        let settled = settled(job)?;
        let read = || parse::<JsonObject<MessageInput<'_>>>(&payload);
        let JsonObject(request) = door.heavy.run(tenant, payload.len(), read).await??;
        // The account was settled at acceptance: the current default does not matter any more.
        let account = Some(job.lane.account.as_str());
        let looked_up = door.lookup.look_up(tenant, &request, account, settled.clone()).await?;
        compose_prepared(door, job, &request, &looked_up, settled, payload.len(), memory).await
    };
    prepared.await.unwrap_or_else(PreparationOutcome::refused)
}

async fn compose_prepared(
    door: &Door,
    job: &ToPrepare,
    request: &MessageInput<'_>,
    looked_up: &LookupResult,
    settled: SettledChoices,
    payload_bytes: usize,
    mut memory: FairShare,
) -> Result<PreparationOutcome, Refusal> {
    // Checked as of its acceptance: what was right then does not become wrong with time.
    let created_at = job.created_at;
    let limits = door.limits.for_tenant(&looked_up.profile.settings.content);
    let tenant = &job.lane.tenant;
    let work = || check(request, looked_up, &limits, (job.uid, created_at));
    let weight = looked_up.weight(request, payload_bytes);
    let mut checked = door.heavy.run(tenant, weight, work).await??;
    // A template may have made a large content from a small request.
    FileFetcher::cover(&mut memory, payload_bytes + checked.content.len())?;
    let files = match door.fetch_files(&looked_up.profile, &checked, door.fetcher.message_timeout()).await {
        Ok(files) => files,
        Err(error) if error.is_busy => return Err(Refusal::busy(&error.message)),
        Err(error) => return Ok(PreparationOutcome::Unfetched(error)),
    };
    let names = MailNames::existing(job.uid, job.message_id.clone());
    let (attached, linked) = sort_files(&mut checked, files, &looked_up.profile)?;
    let attachments = attachments(attached, limits.message_bytes_max)?;
    let (rows, texts) = door.link_files(&checked, &looked_up.profile, &names, linked).await?;
    links::append_links(&mut checked.content, &texts);
    door.builder.add_unsubscribe(&mut checked, &looked_up.profile, &names);
    let compose = || compose_checked(&checked, &attachments, &names, created_at, &looked_up.signers);
    let composed = door.heavy.run(tenant, attachment_bytes(&attachments), compose).await??;
    drop(attachments);
    if composed.bytes.len() > limits.message_bytes_max {
        return Err(Refusal::message_too_large(limits.message_bytes_max));
    }
    door.check_for_viruses(&job.lane.tenant, &composed.bytes).await?;
    let now = door.clock.now();
    let prepared = PreparedMessage {
        subject: checked.content.subject.to_string(),
        eight_bit: composed.eight_bit,
        smtputf8: composed.smtputf8 || settled.smtputf8,
        raw: door.writer.keep_body(&job.lane.tenant, composed.bytes.into(), now).await?,
        links: rows,
    };
    let validated = validated(&checked, CheckedAs::Stored, payload_bytes);
    let send_at = checked.terms.send_at.filter(|at| *at > now);
    Ok(PreparationOutcome::Passed { prepared, validated, send_at })
}

/// Reads what was settled at acceptance.
fn settled(job: &ToPrepare) -> Result<SettledChoices, StoreError> {
    let settled = job.settled.as_deref().map(serde_json::from_str::<SettledChoices>).transpose();
    let settled = settled.map_err(|error| {
        StoreError::Unexpected(format!("what was settled of {} is unreadable: {error}", job.uid))
    })?;
    Ok(SettledChoices { is_stored: true, ..settled.unwrap_or_default() })
}
