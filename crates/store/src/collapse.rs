//! Collapse keys: a newer message takes the place of an older one that has not left yet.

use postway_domain::{
    MessageUid,
    message::{Input, transition},
};
use serde_json::json;

use crate::{
    decode,
    error::StoreError,
    record::{Change, Fence, NewEvent, NewMessage},
    sql::{Row, Session, Sql, values},
};

/// Takes the key's row, so that of two that come together the second sees the first.
const SUCCEED: Sql = Sql::or_mysql(
    "INSERT INTO collapse (tenant, name, uid) VALUES (?, ?, ?) \
     ON CONFLICT (tenant, name) DO UPDATE SET previous = collapse.uid, uid = excluded.uid",
    "INSERT INTO collapse (tenant, name, uid) VALUES (?, ?, ?) \
     ON DUPLICATE KEY UPDATE previous = uid, uid = VALUES(uid)",
);
const PREVIOUS: Sql = Sql::same(
    "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version FROM collapse c \
     JOIN message m ON m.uid = c.previous WHERE c.tenant = ? AND c.name = ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[Sql] = &[SUCCEED, PREVIOUS];

/// What new messages with a key supersede, as changes to be applied. What has been claimed is left alone.
pub(crate) async fn superseded(
    session: &mut dyn Session,
    messages: &[&NewMessage],
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    for message in messages {
        let Some(name) = message.collapse_key.as_deref() else { continue };
        let tenant = message.lane.tenant.as_str();
        session.execute(SUCCEED, values![tenant, name, message.uid.as_bytes()]).await?;
        for row in session.rows(PREVIOUS, values![tenant, name]).await? {
            changes.extend(withdraw(&row, message)?);
        }
    }
    Ok(changes)
}

fn withdraw(row: &Row, by: &NewMessage) -> Result<Option<Change>, StoreError> {
    let state = decode::state(row.int(1)?, row.opt_int(2)?, row.int(3)? != 0)?;
    let fence = Fence { status: state.status(), token: None, version: Some(row.int(4)?) };
    Ok(withdrawal(MessageUid::from_bytes(row.id16(0)?), state, fence, by))
}

/// The change that withdraws an older message, where its state allows it.
pub(crate) fn withdrawal(
    uid: MessageUid,
    state: postway_domain::State,
    fence: Fence,
    by: &NewMessage,
) -> Option<Change> {
    let (to, effects) = transition(state, Input::Cancel).ok()?;
    let data = json!({"reason": "superseded", "by": by.uid.to_string()}).to_string();
    let error = json!({"code": "superseded", "category": "unknown",
                       "message": "a newer message with the same collapse_key took its place"});
    Some(Change {
        uid,
        fence,
        to,
        at: by.created_at,
        due_at: None,
        keep_token: false,
        retries: None,
        doubts: None,
        lost_leases: None,
        exhausted: false,
        error: Some(error.to_string()),
        events: effects.event.map(|kind| NewEvent { kind, data: Some(data) }).into_iter().collect(),
        recipients: Vec::new(),
        ends_open_recipients: effects.ends_open_recipients,
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: false,
        awaits_receipt: None,
    })
}
