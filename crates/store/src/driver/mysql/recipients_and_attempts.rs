//! What is written beside a fenced change: recipients and attempts.

use postway_domain::{MessageUid, RecipientStatus};

use super::{engine::WriteConnection, failed};
use crate::{
    error::StoreError,
    record::{MessageChange, RecipientChange},
    sql::multi_row::MultiRow,
};

pub(super) static CHANGE_RECIPIENT: MultiRow = MultiRow::of_pieces(
    "UPDATE (",
    "SELECT CAST(? AS BINARY(16)) AS uid, CAST(? AS SIGNED) AS position, CAST(? AS SIGNED) AS status, \
     CAST(? AS SIGNED) AS smtp_code, CAST(? AS CHAR) AS enhanced, CAST(? AS CHAR) AS reply",
    " UNION ALL ",
    ") AS v STRAIGHT_JOIN recipient r ON r.uid = v.uid AND r.position = v.position \
     SET r.status = v.status, r.smtp_code = v.smtp_code, r.enhanced = v.enhanced, r.reply = v.reply",
);

pub(super) static END_RECIPIENTS: MultiRow = MultiRow::new(
    "UPDATE recipient FORCE INDEX (PRIMARY) SET status = ? WHERE status = 0 AND uid IN (",
    1,
    ")",
);

pub(super) static INSERT_ATTEMPT: MultiRow = MultiRow::new(
    "INSERT INTO attempt (uid, number, started_at, duration_ms, account, remote, outcome, smtp_code, enhanced, reply, \
     provider_message_id) VALUES ",
    11,
    // The attempt's late answer says more than the doubt that was written in its place.
    " ON DUPLICATE KEY UPDATE duration_ms = VALUES(duration_ms), outcome = VALUES(outcome), \
     smtp_code = VALUES(smtp_code), enhanced = VALUES(enhanced), reply = VALUES(reply), \
     provider_message_id = VALUES(provider_message_id)",
);

pub(super) async fn change_recipients(
    txn: &mut WriteConnection,
    changes: &[(MessageUid, &RecipientChange)],
) -> Result<(), StoreError> {
    for (sql, run) in CHANGE_RECIPIENT.runs(changes) {
        let mut query = sqlx::query(sql);
        for (uid, change) in run {
            let reply = change.reply.as_ref();
            query = query
                .bind(uid.as_bytes().as_slice())
                .bind(i64::from(change.position))
                .bind(change.status.code())
                .bind(reply.and_then(|reply| reply.code))
                .bind(reply.and_then(|reply| reply.enhanced.as_deref()))
                .bind(reply.map(|reply| reply.text.as_str()));
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

pub(super) async fn end_recipients(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<(), StoreError> {
    for &status in RecipientStatus::ALL {
        let ending: Vec<MessageUid> = changes
            .iter()
            .filter(|change| change.ends_open_recipients == Some(status))
            .map(|change| change.uid)
            .collect();
        for (sql, run) in END_RECIPIENTS.runs(&ending) {
            let mut query = sqlx::query(sql).bind(status.code());
            for uid in run {
                query = query.bind(uid.as_bytes().as_slice());
            }
            query.execute(txn.conn()?).await.map_err(failed)?;
        }
    }
    Ok(())
}

pub(super) async fn insert_attempts(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<(), StoreError> {
    let attempts: Vec<_> = changes
        .iter()
        .filter_map(|change| change.attempt.as_ref().map(|attempt| (change.uid, attempt)))
        .collect();
    for (sql, run) in INSERT_ATTEMPT.runs(&attempts) {
        let mut query = sqlx::query(sql);
        for (uid, attempt) in run {
            let reply = attempt.reply.as_ref();
            query = query
                .bind(uid.as_bytes().as_slice())
                .bind(attempt.number)
                .bind(attempt.started_at.as_millis())
                .bind(attempt.duration_ms)
                .bind(attempt.account.as_str())
                .bind(attempt.remote.as_deref())
                .bind(attempt.outcome)
                .bind(reply.and_then(|reply| reply.code))
                .bind(reply.and_then(|reply| reply.enhanced.as_deref()))
                .bind(reply.map(|reply| reply.text.as_str()))
                .bind(attempt.provider_message_id.as_deref().map(str::as_bytes));
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

// The statements above write these codes as literals.
const _: () = assert!(RecipientStatus::Pending as i64 == 0);
