//! Messages that wait to be prepared, the same for every SQL database.
//!
//! Each has a row beside the queue from its acceptance until it is composed or refused. The row says when it
//! is due and what is known so far; the lease is the message's own, so that fences, lost leases and
//! withdrawal work as for any other message. Dispatch does not see such a message: its `due_at` is not set. A
//! message that ends in another way leaves its row behind, and the next claim that meets the row removes it.
//! The row of a refused message stays and is never due: what was decided is known if an operator has the
//! message prepared again.

use bytes::Bytes;
use postway_domain::{
    ClientId, DestinationGroup, Lane, MessageState, MessageStatus, MessageUid, TenantId, Time,
    id::BatchCode,
    message::{ScheduleReason, TransitionInput, transition},
};

use crate::{
    error::StoreError,
    journal::history::insert_events,
    queue::{new_message_row::NewMessageRow, packing::pack_mail, transaction::WriteTransaction},
    record::{
        MessageChange, NewEvent, NewLink, PreparationResult, PreparationState, PrepareRequest,
        PreparedMessage, ToPrepare,
    },
    sql::{Row, SqlSession, SqlText, Value, decode, multi_row::MultiRow, values},
    text_block::empty_blocks_with,
};

/// How often one claim reads again because the messages it met had ended.
const LOOKS_MAX: u32 = 4;
/// When the row of a refused message is due: the last moment of the year 9999.
const NEVER_MS: i64 = 253_402_300_799_999;

/// The columns of due work, and its condition: a message being validated is leased, an expired one is for
/// housekeeping, and one that has ended is met so that its row is removed.
macro_rules! due {
    ($from:literal, $end:literal) => {
        concat!(
            "SELECT p.uid, p.tries, p.settled, m.status, m.wait, m.wire_committed, m.version, m.lost_leases, ",
            "m.created_at, m.expires_at, m.event_seq FROM ",
            $from,
            " WHERE p.tenant = ? AND p.due_at <= ? AND m.status <> 1 ",
            "AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status > 3) ORDER BY p.due_at, p.uid LIMIT ?",
            $end
        )
    };
}

/// For every tenant its first due row, and its first after now. The order names all columns of the index, or
/// MySQL would sort.
macro_rules! heads {
    ($from:literal) => {
        concat!(
            "SELECT t.id, (SELECT p.due_at FROM ",
            $from,
            " WHERE p.tenant = t.id AND m.status <> 1 ",
            "AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status > 3) ORDER BY p.tenant, p.due_at LIMIT 1), ",
            "(SELECT p.due_at FROM ",
            $from,
            " WHERE p.tenant = t.id AND p.due_at > ? AND p.due_at < 253402300799999 AND m.status <> 1 ",
            "ORDER BY p.tenant, p.due_at LIMIT 1) ",
            "FROM tenant t WHERE t.deleted_at IS NULL ",
            "AND EXISTS (SELECT 1 FROM preparation p WHERE p.tenant = t.id) ORDER BY t.id"
        )
    };
}

static ENTER: MultiRow =
    MultiRow::new("INSERT INTO preparation (uid, tenant, due_at, tries, settled) VALUES ", 5, "");
/// Skips rows that another writer has locked.
pub(crate) const DUE: SqlText = SqlText::of_each(
    due!("preparation p CROSS JOIN message m ON m.uid = p.uid", ""),
    due!("preparation p JOIN message m ON m.uid = p.uid", " FOR UPDATE OF m SKIP LOCKED"),
    due!(
        "preparation p FORCE INDEX (preparation_due) STRAIGHT_JOIN message m FORCE INDEX (PRIMARY) ON m.uid = p.uid",
        " FOR UPDATE SKIP LOCKED"
    ),
);
pub(crate) const HEADS: SqlText = SqlText::or_mysql(
    heads!("preparation p JOIN message m ON m.uid = p.uid"),
    heads!("preparation p FORCE INDEX (preparation_due) STRAIGHT_JOIN message m ON m.uid = p.uid"),
);
const LEASE: SqlText = SqlText::same(
    "UPDATE message SET status = 1, wait = NULL, due_at = NULL, lease_node = ?, lease_token = ?, lease_until = ?, \
     version = version + 1, event_seq = event_seq + 1, updated_at = ? WHERE uid = ?",
);
const CONTENT: SqlText = SqlText::same(
    "SELECT l.account, l.priority, l.batch, c.client_id, c.request_id, c.message_id, c.payload_blob, c.payload_size, \
     c.payload, l.destination FROM message m JOIN lane l ON l.id = m.lane JOIN content c ON c.uid = m.uid WHERE m.uid = ?",
);
const LEAVE: SqlText = SqlText::same("DELETE FROM preparation WHERE uid = ?");
const REFUSE: SqlText = SqlText::same("UPDATE preparation SET due_at = ? WHERE uid = ?");
const AGAIN: SqlText = SqlText::same("UPDATE preparation SET due_at = ?, tries = 0 WHERE uid = ?");
/// For a message that was refused by a version that removed rows.
const ENTER_AGAIN: SqlText = SqlText::same(
    "INSERT INTO preparation (uid, tenant, due_at, tries, settled) SELECT m.uid, m.tenant, ?, 0, NULL FROM message m \
     WHERE m.uid = ? AND NOT EXISTS (SELECT 1 FROM preparation p WHERE p.uid = m.uid)",
);
const LATER: SqlText = SqlText::same("UPDATE preparation SET due_at = ?, tries = tries + 1 WHERE uid = ?");
const COMPOSE: SqlText = SqlText::same(
    "UPDATE content SET subject = ?, eight_bit = ?, smtputf8 = ?, size = ?, raw_blob = ?, packing = ?, raw = ? \
     WHERE uid = ?",
);
const LINK: SqlText = SqlText::or_mysql(
    "INSERT INTO link (uid, blob, tenant, filename, content_type, size, expires_at) \
     SELECT m.uid, ?, m.tenant, ?, ?, ?, ? FROM message m WHERE m.uid = ? ON CONFLICT DO NOTHING",
    "INSERT INTO link (uid, `blob`, tenant, filename, content_type, size, expires_at) \
     SELECT m.uid, ?, m.tenant, ?, ?, ?, ? FROM message m WHERE m.uid = ?",
);
static ERASE: MultiRow = MultiRow::new(
    "UPDATE content SET subject = '', metadata = NULL, dsn = NULL, raw = ?, raw_blob = NULL, payload = NULL, payload_blob = NULL WHERE uid IN (",
    1,
    ")",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[DUE, HEADS, LEASE, CONTENT, LEAVE, REFUSE, AGAIN, ENTER_AGAIN, LATER, COMPOSE, LINK];

/// Sample texts, for the test that prepares every statement.
#[cfg(test)]
pub(crate) fn multi() -> [&'static MultiRow; 2] {
    [&ENTER, &ERASE]
}

/// Gives a row to each new message that is not composed yet.
pub(crate) async fn enter(
    engine: &mut impl WriteTransaction,
    entries: &[NewMessageRow<'_>],
) -> Result<(), StoreError> {
    let waiting: Vec<&NewMessageRow<'_>> =
        entries.iter().filter(|entry| entry.awaits_preparation()).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    engine.after().prepares = true;
    let mut session = engine.session()?;
    for (sql, run) in ENTER.runs(&waiting) {
        let row = |entry: &&NewMessageRow<'_>| {
            let message = entry.message;
            let (tenant, due_at) = (message.lane.tenant.as_str(), message.created_at);
            values![message.uid.as_bytes(), tenant, due_at, 0_i64, message.settled.as_deref()]
        };
        session.execute(sql.into(), run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

/// Leases due messages, the longest waiting first.
pub(crate) async fn claim(
    engine: &mut impl WriteTransaction,
    request: &PrepareRequest,
) -> Result<Vec<ToPrepare>, StoreError> {
    let mut claimed = Vec::new();
    for (tenant, room) in &request.wants {
        let mut left = *room;
        for _ in 0..LOOKS_MAX {
            let values = values![tenant.as_str(), request.now, request.now, left];
            let due = engine.session()?.rows(DUE, values).await?;
            engine.after().wrote |= !due.is_empty();
            let met = due.len();
            for row in &due {
                claimed.extend(take(engine, request, tenant, row).await?);
            }
            let taken = claimed.iter().rev().take_while(|one| one.lane.tenant == *tenant).count();
            left = room.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX));
            if met == 0 || left == 0 {
                break;
            }
        }
    }
    Ok(claimed)
}

/// Leases a message, or removes the row of one that has ended.
async fn take(
    engine: &mut impl WriteTransaction,
    request: &PrepareRequest,
    tenant: &TenantId,
    row: &Row,
) -> Result<Option<ToPrepare>, StoreError> {
    let uid = MessageUid::from_bytes(row.id16(0)?);
    let from = decode::state(row.int(3)?, row.opt_int(4)?, row.int(5)? != 0)?;
    let Ok((to, effects)) = transition(from, TransitionInput::Validate) else {
        engine.session()?.execute(LEAVE, values![uid.as_bytes()]).await?;
        return Ok(None);
    };
    let lease = &request.lease;
    let (node, token) = (lease.incarnation.as_bytes(), lease.token.as_i64());
    let mut session = engine.session()?;
    session.execute(LEASE, values![node, token, lease.until, request.now, uid.as_bytes()]).await?;
    if let Some(kind) = effects.event {
        let data = format!("{{\"try\":{}}}", row.int(1)? + 1);
        let begun = NewEvent { kind, data: Some(data) };
        insert_events(&mut *session, &[(uid, row.int(10)? + 1, request.now, begun)]).await?;
    }
    let found = session.rows(CONTENT, values![uid.as_bytes()]).await?;
    drop(session);
    engine.count(tenant, Some(from.status()), to.status());
    let content = found
        .first()
        .ok_or_else(|| StoreError::Unexpected(format!("the message {uid} has no content to prepare")))?;
    let inline = content.opt_bytes(8)?.map(Bytes::copy_from_slice);
    Ok(Some(ToPrepare {
        uid,
        lane: Lane {
            tenant: tenant.clone(),
            account: content.parsed(0)?,
            priority: decode::coded(content.int(1)?, postway_domain::MessagePriority::from_code)?,
            batch: content.opt_parsed::<BatchCode>(2)?,
            destination: content.opt_parsed::<DestinationGroup>(9)?,
        },
        client_id: content.opt_parsed::<ClientId>(3)?,
        token: lease.token,
        version: row.int(6)? + 1,
        tries: row.int(1)?,
        lost_leases: row.int(7)?,
        created_at: row.time(8)?,
        expires_at: row.opt_time(9)?,
        request_id: content.opt_text(4)?.map(str::to_owned),
        message_id: content.text(5)?.to_owned(),
        settled: row.opt_text(2)?.map(str::to_owned),
        payload: decode::body(inline, content.opt_text(6)?, content.opt_int(7)?)?,
    }))
}

/// Writes the results of preparations, and removes bodies, with the changes that were applied.
pub(crate) async fn settle(
    engine: &mut impl WriteTransaction,
    written: &[&MessageChange],
) -> Result<(), StoreError> {
    let later = |change: &&MessageChange| {
        matches!(change.preparation, Some(PreparationResult::Later(_) | PreparationResult::Again(_)))
    };
    // A message returned by a lost lease is due as before.
    engine.after().prepares |=
        written.iter().any(|change| change.to == MessageState::Accepted || later(change));
    for change in written {
        match &change.preparation {
            Some(PreparationResult::Done(prepared)) => {
                compose(&mut *engine.session()?, change.uid, prepared).await?
            }
            Some(PreparationResult::Refused) => {
                engine.session()?.execute(REFUSE, values![NEVER_MS, change.uid.as_bytes()]).await?;
            }
            Some(PreparationResult::Again(at)) => again(&mut *engine.session()?, change.uid, *at).await?,
            Some(PreparationResult::Later(at)) => {
                engine.session()?.execute(LATER, values![*at, change.uid.as_bytes()]).await?;
            }
            None => {}
        }
    }
    let erased: Vec<MessageUid> =
        written.iter().filter(|change| change.erases_bodies).map(|change| change.uid).collect();
    let composed = |change: &&&MessageChange| {
        change.erases_bodies || matches!(change.preparation, Some(PreparationResult::Done(_)))
    };
    let retold: Vec<&&MessageChange> = written.iter().filter(composed).collect();
    if let Some(now) = retold.iter().map(|change| change.at).max() {
        let uids: Vec<MessageUid> = retold.iter().map(|change| change.uid).collect();
        empty_blocks_with(&mut *engine.session()?, &uids, now).await?;
    }
    for (sql, run) in ERASE.runs(&erased) {
        let uids = run.iter().map(|uid| Value::from(uid.as_bytes()));
        engine
            .session()?
            .execute(sql.into(), [Value::from(Vec::new())].into_iter().chain(uids).collect())
            .await?;
    }
    Ok(())
}

async fn again(session: &mut dyn SqlSession, uid: MessageUid, at: Time) -> Result<(), StoreError> {
    let place = values![at, uid.as_bytes()];
    if session.execute(AGAIN, place.clone()).await? == 0 {
        session.execute(ENTER_AGAIN, place).await?;
    }
    Ok(())
}

async fn leave(session: &mut dyn SqlSession, uid: MessageUid) -> Result<(), StoreError> {
    session.execute(LEAVE, values![uid.as_bytes()]).await.map(drop)
}

async fn compose(
    session: &mut dyn SqlSession,
    uid: MessageUid,
    prepared: &PreparedMessage,
) -> Result<(), StoreError> {
    let PreparedMessage { subject, raw, eight_bit, smtputf8, links } = prepared;
    let (packing, column) = pack_mail(raw);
    let values = values![
        subject.as_str(),
        *eight_bit,
        *smtputf8,
        raw.len() as i64,
        raw.blob().map(|blob| blob.name.to_string()),
        packing as i64,
        column,
        uid.as_bytes(),
    ];
    session.execute(COMPOSE, values).await?;
    for NewLink { blob, filename, content_type, expires_at } in links {
        let size = blob.size as i64;
        let values = values![
            blob.name.to_string(),
            filename.as_str(),
            content_type.as_str(),
            size,
            *expires_at,
            uid.as_bytes()
        ];
        // The same file twice in one mail is one link.
        session.insert(LINK, values).await?;
    }
    leave(session, uid).await
}

/// The tenants whose messages wait to be prepared.
pub(crate) async fn state(session: &mut dyn SqlSession, now: Time) -> Result<PreparationState, StoreError> {
    let mut state = PreparationState::default();
    for row in session.rows(HEADS, values![now, now]).await? {
        if row.opt_time(1)?.is_some_and(|due_at| due_at <= now) {
            state.due.push(row.parsed(0)?);
        }
        state.next_due_at = [state.next_due_at, row.opt_time(2)?].into_iter().flatten().min();
    }
    Ok(state)
}

// The statements above write these codes as literals.
const _: () = assert!(MessageStatus::Accepted as i64 == 0 && MessageStatus::Validating as i64 == 1);
const _: () = assert!(MessageStatus::Scheduled as i64 == 3 && ScheduleReason::Fetch as i64 == 3);
