//! The dialogue with the relay of each message's last failed attempt. It is written in the transaction that
//! ends the attempt, and removed with the message. An attempt that succeeds has none, and costs nothing here.

use std::collections::BTreeMap;

use postway_domain::{MessageUid, TenantId};

use crate::{
    error::StoreError,
    record::{AttemptDialogue, MessageChange},
    sql::{
        SqlSession, SqlText,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

macro_rules! keep {
    ($end:literal) => {
        MultiRow::new("INSERT INTO dialogue (uid, attempt, content) VALUES ", 3, $end)
    };
}
static KEEP: MultiRowSql = MultiRowSql {
    sqlite: keep!(" ON CONFLICT (uid) DO UPDATE SET attempt = excluded.attempt, content = excluded.content"),
    postgres: keep!(
        " ON CONFLICT (uid) DO UPDATE SET attempt = excluded.attempt, content = excluded.content"
    ),
    mysql: keep!(" ON DUPLICATE KEY UPDATE attempt = VALUES(attempt), content = VALUES(content)"),
};
const FIND: SqlText = SqlText::same(
    "SELECT d.attempt, d.content FROM dialogue d JOIN message m ON m.uid = d.uid WHERE d.uid = ? AND m.tenant = ?",
);

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> [SqlText; 2] {
    [KEEP.sample(), FIND]
}

/// Stores the dialogues of attempts that failed, each in place of the message's earlier one.
pub(crate) async fn keep(session: &mut dyn SqlSession, written: &[&MessageChange]) -> Result<(), StoreError> {
    let failed = written.iter().filter_map(|change| {
        let attempt = change.attempt.as_ref()?;
        Some((*change.uid.as_bytes(), (attempt.number, attempt.dialogue.as_deref()?)))
    });
    // One statement may write a row only once; the later attempt is the one to keep.
    let failed: Vec<_> = failed.collect::<BTreeMap<_, _>>().into_iter().collect();
    for (sql, run) in KEEP.runs(&failed) {
        let rows = run.iter().flat_map(|(uid, (number, content))| values![uid, *number, *content]);
        session.execute(sql, rows.collect()).await?;
    }
    Ok(())
}

/// The dialogue of a message's last failed attempt, if it has one.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<AttemptDialogue>, StoreError> {
    let rows = session.rows(FIND, values![uid.as_bytes(), tenant.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(AttemptDialogue { attempt: row.int(0)?, content: row.text(1)?.to_owned() }))
}
