//! Collapse keys: a newer message supersedes an older one that has not left yet.
//!
//! A message that may have left is not withdrawn, but it must not be sent after the newer one because its
//! answer was lost: a doubt about it is put on hold, also one that its attempt has yet to find. A retry of an
//! attempt under way is not affected.

use postway_domain::{
    MessageState, MessageStatus, MessageUid, RecipientStatus, Time,
    message::{OnDoubt, OtherRecipients, TransitionInput},
};
use serde_json::json;

use crate::{
    error::StoreError,
    queue::packing::PackedMessage,
    record::{MessageChange, NewMessage, WriteFence},
    sql::{Row, SqlSession, SqlText, Value, decode, multi_row::MultiRow, values},
};

/// Locks the key's row, so that the second of two concurrent messages sees the first.
const SUCCEED: SqlText = SqlText::or_mysql(
    "INSERT INTO collapse (tenant, name, uid) VALUES (?, ?, ?) \
     ON CONFLICT (tenant, name) DO UPDATE SET previous = collapse.uid, uid = excluded.uid",
    "INSERT INTO collapse (tenant, name, uid) VALUES (?, ?, ?) \
     ON DUPLICATE KEY UPDATE previous = uid, uid = VALUES(uid)",
);
const PREVIOUS: SqlText = SqlText::same(
    "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, x.sensitive, m.due_at, \
     (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid AND r.status = 3), \
     (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid AND r.status = 1) FROM collapse c \
     JOIN message m ON m.uid = c.previous JOIN content x ON x.uid = m.uid WHERE c.tenant = ? AND c.name = ?",
);
/// `status + 0` keeps planners off the index by status: a message is found by its id.
static OUTDATE: MultiRow = MultiRow::new(
    "UPDATE message SET on_doubt = 1, due_at = CASE WHEN status = 8 THEN NULL ELSE due_at END \
     WHERE status + 0 IN (4, 8) AND uid IN (",
    1,
    ")",
);

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> [SqlText; 3] {
    [SUCCEED, PREVIOUS, OUTDATE.sample().into()]
}

/// The messages that newer ones supersede.
#[derive(Default)]
pub(crate) struct Superseded {
    /// The changes that withdraw messages that have not left, and put on hold those that may have.
    pub changes: Vec<MessageChange>,
    /// All superseded messages that are not final.
    pub older: Vec<MessageUid>,
}

/// The messages that new messages with a key supersede. Those being sent are left; [`outdate`] is for them.
pub(crate) async fn superseded(
    session: &mut dyn SqlSession,
    messages: &[&PackedMessage],
) -> Result<Superseded, StoreError> {
    let mut superseded = Superseded::default();
    for message in messages {
        let Some(name) = message.collapse_key.as_deref() else { continue };
        let tenant = message.lane.tenant.as_str();
        session.execute(SUCCEED, values![tenant, name, message.uid.as_bytes()]).await?;
        for row in session.rows(PREVIOUS, values![tenant, name]).await? {
            let older = read(&row)?;
            if !older.state.status().is_final() {
                superseded.older.push(older.uid);
                superseded.changes.extend(withdrawal(older, message));
            }
        }
    }
    superseded.older.sort_unstable();
    Ok(superseded)
}

/// Puts doubts about these messages on hold, now or when their attempt leaves one. Called after the changes,
/// so that messages claimed before they could be withdrawn are included.
pub(crate) async fn outdate(session: &mut dyn SqlSession, older: &[MessageUid]) -> Result<(), StoreError> {
    for (sql, run) in OUTDATE.runs(older) {
        let uids = run.iter().map(|uid| Value::from(uid.as_bytes())).collect();
        session.execute(sql.into(), uids).await?;
    }
    Ok(())
}

fn read(row: &Row) -> Result<Older, StoreError> {
    let state = decode::state(row.int(1)?, row.opt_int(2)?, row.int(3)? != 0)?;
    let stand = [(row.int(7)?, RecipientStatus::InDoubt), (row.int(8)?, RecipientStatus::Sent)];
    Ok(Older {
        uid: MessageUid::from_bytes(row.id16(0)?),
        state,
        fence: WriteFence { status: state.status(), token: None, version: Some(row.int(4)?) },
        rest: OtherRecipients::beside_open(
            stand.into_iter().filter_map(|(count, status)| (count > 0).then_some(status)),
        ),
        sensitive: row.int(5)? != 0,
        due_at: row.opt_time(6)?,
    })
}

/// Counts a message that entered a state because a newer one superseded it: the caller that accepts the newer
/// one does not know of it.
pub(crate) fn count_entered(state: MessageStatus) {
    metrics::counter!("postway_state_transitions_total", "state" => state.as_str()).increment(1);
    if state.is_final() {
        metrics::counter!("postway_final_states_total", "state" => state.as_str()).increment(1);
    }
}

/// A superseded message.
pub(crate) struct Older {
    pub uid: MessageUid,
    pub state: MessageState,
    pub fence: WriteFence,
    /// The state of its recipients that are not open.
    pub rest: OtherRecipients,
    pub sensitive: bool,
    pub due_at: Option<Time>,
}

/// The change that withdraws an older message, if its state allows it. Only open recipients are withdrawn; a
/// message that waits to be sent again because it is in doubt is put on hold instead.
pub(crate) fn withdrawal(older: Older, by: &NewMessage) -> Option<MessageChange> {
    let input = match older.due_at {
        Some(_) if older.state == MessageState::InDoubt => TransitionInput::PutOnHold,
        _ => TransitionInput::Cancel(older.rest),
    };
    let mut change = MessageChange::step(older.uid, older.fence, older.state, input, by.created_at).ok()?;
    if change.to == MessageState::Cancelled || input == TransitionInput::PutOnHold {
        let error = json!({"code": "superseded", "category": "unknown",
                           "message": "a newer message with the same collapse_key took its place"});
        change.error = Some(error.to_string());
    }
    change.erases_bodies = change.to == MessageState::Sent && older.sensitive;
    Some(change.telling(&json!({"reason": "superseded", "by": by.uid.to_string()})))
}

// The statements above write these codes as literals.
const _: () = assert!(
    MessageStatus::Sending as i64 == 4 && MessageStatus::InDoubt as i64 == 8 && OnDoubt::Hold as i64 == 1
);
const _: () = assert!(RecipientStatus::Sent as i64 == 1 && RecipientStatus::InDoubt as i64 == 3);
