//! Collapse keys: a newer message takes the place of an older one that has not left yet.
//!
//! One that may have left is not withdrawn, but it must not come after the newer one because its answer was lost: a doubt
//! about it is held, also one that its attempt has yet to find. A retry of what was being sent is its own matter.

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

/// Takes the key's row, so that of two that come together the second sees the first.
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

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> [SqlText; 3] {
    [SUCCEED, PREVIOUS, OUTDATE.sample().into()]
}

/// What newer messages take the place of.
#[derive(Default)]
pub(crate) struct Superseded {
    /// What withdraws it, where it has not left, or holds it, where it may have.
    pub changes: Vec<MessageChange>,
    /// All of it that has not ended.
    pub older: Vec<MessageUid>,
}

/// What new messages with a key supersede. What is being sent is left alone; [`outdate`] is for that.
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

/// Has a doubt about these held, now or whenever their attempt leaves one. After the changes, so that whatever was claimed
/// before they could withdraw it is among them.
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

/// Counts a message that entered a state because a newer one took its place: whoever accepts that one knows nothing of it.
pub(crate) fn count_entered(state: MessageStatus) {
    metrics::counter!("postway_state_transitions_total", "state" => state.as_str()).increment(1);
    if state.is_final() {
        metrics::counter!("postway_final_states_total", "state" => state.as_str()).increment(1);
    }
}

/// A message whose place a newer one takes.
pub(crate) struct Older {
    pub uid: MessageUid,
    pub state: MessageState,
    pub fence: WriteFence,
    /// What there is beside its recipients that are still open.
    pub rest: OtherRecipients,
    pub sensitive: bool,
    pub due_at: Option<Time>,
}

/// The change that withdraws an older message, where its state allows it. Only those still open are withdrawn; what waits
/// to be sent again because it is in doubt waits for somebody's word instead.
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
