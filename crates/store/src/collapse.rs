//! Collapse keys: a newer message takes the place of an older one that has not left yet.

use postway_domain::{
    MessageUid, RecipientStatus, State,
    message::{Input, Rest},
};
use serde_json::json;

use crate::{
    decode,
    error::StoreError,
    record::{Change, Fence, NewMessage},
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
    "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, x.sensitive, \
     (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid AND r.status = 3), \
     (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid AND r.status = 1) FROM collapse c \
     JOIN message m ON m.uid = c.previous JOIN content x ON x.uid = m.uid WHERE c.tenant = ? AND c.name = ?",
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
    let stand = [(row.int(6)?, RecipientStatus::InDoubt), (row.int(7)?, RecipientStatus::Sent)];
    let older = Older {
        uid: MessageUid::from_bytes(row.id16(0)?),
        state,
        fence: Fence { status: state.status(), token: None, version: Some(row.int(4)?) },
        rest: Rest::beside_open(
            stand.into_iter().filter_map(|(count, status)| (count > 0).then_some(status)),
        ),
        sensitive: row.int(5)? != 0,
    };
    Ok(withdrawal(older, by))
}

/// A message whose place a newer one takes.
pub(crate) struct Older {
    pub uid: MessageUid,
    pub state: State,
    pub fence: Fence,
    /// What there is beside its recipients that are still open.
    pub rest: Rest,
    pub sensitive: bool,
}

/// The change that withdraws an older message, where its state allows it. Only those still open are withdrawn.
pub(crate) fn withdrawal(older: Older, by: &NewMessage) -> Option<Change> {
    let input = Input::Cancel(older.rest);
    let mut change = Change::step(older.uid, older.fence, older.state, input, by.created_at).ok()?;
    if change.to == State::Cancelled {
        let error = json!({"code": "superseded", "category": "unknown",
                           "message": "a newer message with the same collapse_key took its place"});
        change.error = Some(error.to_string());
    }
    change.erases_bodies = change.to == State::Sent && older.sensitive;
    Some(change.telling(&json!({"reason": "superseded", "by": by.uid.to_string()})))
}

// The statement above writes these codes as literals.
const _: () = assert!(RecipientStatus::Sent as i64 == 1 && RecipientStatus::InDoubt as i64 == 3);
