//! Notifications as readers see them: those of a message, and those of a subscriber.

use postway_domain::{EventKind, MessageUid, TenantId, id::SubscriberId};

use crate::{
    error::StoreError,
    record::{DeliveryPage, NotificationCall, NotificationKey, NotificationState, NotificationView},
    sql::{Row, SqlSession, SqlText, decode, values},
};

macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT tenant, subscriber, uid, seq, kind, deferred, state, tries, due_at, created_at, settled_at, called_at, ",
            "latency_ms, status, request, answer FROM notification WHERE ",
            $end
        )
    };
}

const OF_MESSAGE: SqlText = SqlText::same(select!("uid = ? AND tenant = ? ORDER BY seq, subscriber"));
const OF_SUBSCRIBER: SqlText = SqlText::same(select!(
    "tenant = ? AND subscriber = ? AND uid <= ? AND (uid < ? OR seq < ?) AND uid >= ? AND state BETWEEN ? AND ? \
     ORDER BY uid DESC, seq DESC LIMIT ?"
));
/// The last message that is examined, if there are more behind it.
const LOOK: SqlText = SqlText::same(
    "SELECT uid FROM notification WHERE tenant = ? AND subscriber = ? AND uid <= ? AND (uid < ? OR seq < ?) \
     ORDER BY uid DESC, seq DESC LIMIT 1 OFFSET ?",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[OF_MESSAGE, OF_SUBSCRIBER, LOOK];

/// The most notifications examined for one page, if only those of one state are wanted.
const LOOKED_MAX: u32 = 5_000;

pub(crate) async fn of_message(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Vec<NotificationView>, StoreError> {
    let rows = session.rows(OF_MESSAGE, values![uid.as_bytes(), tenant.as_str()]).await?;
    rows.iter().map(read).collect()
}

pub(crate) async fn of_subscriber(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    subscriber: &SubscriberId,
    state: Option<NotificationState>,
    before: Option<(MessageUid, i64)>,
    limit: u32,
) -> Result<DeliveryPage, StoreError> {
    let (uid, seq) = before.unwrap_or((MessageUid::from_bytes([0xff; 16]), i64::MAX));
    let (tenant, subscriber) = (tenant.as_str(), subscriber.as_str());
    let end = match state {
        None => None,
        Some(_) => {
            let values = values![tenant, subscriber, uid.as_bytes(), uid.as_bytes(), seq, LOOKED_MAX];
            let rows = session.rows(LOOK, values).await?;
            rows.first().map(|row| row.id16(0).map(MessageUid::from_bytes)).transpose()?
        }
    };
    let (lowest, highest) = match state {
        Some(state) => (state, state),
        None => (NotificationState::Pending, NotificationState::Dead),
    };
    let (uid, lowest, highest) = (uid.as_bytes(), lowest.code(), highest.code());
    let from = end.unwrap_or(MessageUid::from_bytes([0; 16]));
    // One more than requested shows whether there is a next page.
    let most = i64::from(limit) + 1;
    let values = values![tenant, subscriber, uid, uid, seq, from.as_bytes(), lowest, highest, most];
    let rows = session.rows(OF_SUBSCRIBER, values).await?;
    let listed = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // The examined range ends with all events of its last message.
    Ok(DeliveryPage::from_found(listed, limit, end.map(|uid| (uid, 0))))
}

/// From the columns that [`select!`] names.
fn read(row: &Row) -> Result<NotificationView, StoreError> {
    let last_call = match row.opt_time(11)? {
        None => None,
        Some(at) => Some(NotificationCall {
            at,
            latency_ms: row.opt_int(12)?.unwrap_or_default(),
            status: row.opt_int(13)?.and_then(|status| u16::try_from(status).ok()),
            request: row.opt_text(14)?.unwrap_or_default().to_owned(),
            answer: row.opt_text(15)?.unwrap_or_default().to_owned(),
        }),
    };
    Ok(NotificationView {
        key: NotificationKey {
            tenant: row.parsed(0)?,
            subscriber: row.parsed(1)?,
            uid: MessageUid::from_bytes(row.id16(2)?),
            seq: row.int(3)?,
        },
        kind: decode::coded(row.int(4)?, EventKind::from_code)?,
        deferred: row.int(5)? != 0,
        state: decode::coded(row.int(6)?, NotificationState::from_code)?,
        tries: row.int(7)?,
        due_at: row.opt_time(8)?,
        created_at: row.time(9)?,
        settled_at: row.opt_time(10)?,
        last_call,
    })
}
