//! Prepares one message: reads its stored request again, fetches its files, and composes it.

use postway_store::{
    StoreError,
    record::{Prepared, ToPrepare},
};

use super::outcome::Outcome;
use crate::{
    accept::{
        check::check,
        compose::{CheckedAs, Names, compose_checked, links, validated},
        door::Door,
        files::{attachment_bytes, attachments, sort_files},
        look_up::{Settled, Surroundings},
        parse::{
            parse,
            request::{MessageRequest, Object},
        },
    },
    budget::FairShare,
    fetch::Fetcher,
    refusal::{Code, FieldError, Refusal},
};

/// Prepares one message that was claimed for it.
pub(super) async fn prepare_one(door: &Door, job: &ToPrepare) -> Outcome {
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
        let memory = door.fetcher.memory_for(tenant, bytes, door.fetcher.message_timeout()).await?;
        let payload = door.resolve(tenant, payload).await?;
        let settled = settled(job)?;
        let read = || parse::<Object<MessageRequest<'_>>>(&payload);
        let Object(request) = door.heavy.run(tenant, payload.len(), read).await??;
        // The account is settled too: what is the default now, or how it is named, does not matter any more.
        let account = Some(job.lane.account.as_str());
        let around = door.lookup.look_up(tenant, &request, account, settled).await?;
        compose_prepared(door, job, &request, &around, settled, payload.len(), memory).await
    };
    prepared.await.unwrap_or_else(Outcome::refused)
}

async fn compose_prepared(
    door: &Door,
    job: &ToPrepare,
    request: &MessageRequest<'_>,
    around: &Surroundings,
    settled: Settled,
    payload_bytes: usize,
    mut memory: FairShare,
) -> Result<Outcome, Refusal> {
    // As of its acceptance: what was right then is not wrong because time has passed.
    let created_at = job.created_at;
    let limits = door.limits.of(&around.house.settings.content);
    let tenant = &job.lane.tenant;
    let work = || check(request, around, &limits, created_at);
    let weight = request.weight(&around.house.settings.content, payload_bytes);
    let mut checked = door.heavy.run(tenant, weight, work).await??;
    // A template may have made much of very little.
    Fetcher::cover(&mut memory, payload_bytes + checked.content.len())?;
    let files = match door.fetch_files(&around.house, &checked, door.fetcher.message_timeout()).await {
        Ok(files) => files,
        Err(error) if error.is_busy => return Err(Refusal::busy(&error.message)),
        Err(error) => return Ok(Outcome::Unfetched(error)),
    };
    let names = Names::given(job.uid, job.message_id.clone());
    let (attached, linked) = sort_files(&mut checked, files, &around.house)?;
    let attachments = attachments(attached, limits.message_bytes_max)?;
    let (rows, texts) = door.link_files(&checked, &around.house, &names, linked).await?;
    links::tell(&mut checked.content, &texts);
    door.builder.add_unsubscribe(&mut checked, &around.house, &names);
    let compose = || compose_checked(&checked, &attachments, &names, created_at, &around.signers);
    let composed = door.heavy.run(tenant, attachment_bytes(&attachments), compose).await??;
    drop(attachments);
    if composed.bytes.len() > limits.message_bytes_max {
        return Err(Refusal::message_too_large(limits.message_bytes_max));
    }
    let now = door.clock.now();
    let prepared = Prepared {
        subject: checked.content.subject.to_string(),
        eight_bit: composed.eight_bit,
        smtputf8: composed.smtputf8 || settled.smtputf8,
        raw: door.writer.keep_body(&job.lane.tenant, composed.bytes.into(), now).await?,
        links: rows,
    };
    let validated = validated(&checked, CheckedAs::Stored, payload_bytes);
    let send_at = checked.terms.send_at.filter(|at| *at > now);
    Ok(Outcome::Passed { prepared, validated, send_at })
}

/// What was settled when the message was accepted.
fn settled(job: &ToPrepare) -> Result<Settled, StoreError> {
    let settled = job.settled.as_deref().map(serde_json::from_str::<Settled>).transpose();
    let settled = settled.map_err(|error| {
        StoreError::Unexpected(format!("what was settled of {} is unreadable: {error}", job.uid))
    })?;
    Ok(Settled { is_stored: true, ..settled.unwrap_or_default() })
}
