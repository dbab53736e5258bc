//! Storing reported events, listing them, and removing them.
//!
//! An event is known by its digest as long as its row exists, so one that is reported again is not stored
//! again. A row is kept far longer than a signed call can be repeated.

use postway_domain::{MessageUid, ProviderEventState, TenantId, Time};

use crate::{
    admin::provider_hooks::provider,
    error::StoreError,
    inbound::claim::ids,
    record::{NewProviderEvent, ProviderEventBatch, ProviderEventFilter, ProviderEventView},
    sql::{
        Row, SqlSession, SqlText,
        decode::coded,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The most bytes in one statement, well below what servers accept.
const INSERT_BYTES_MAX: usize = 4 * 1024 * 1024;

macro_rules! add {
    ($end:literal) => {
        MultiRow::of_pieces(
            "INSERT INTO provider_event (uid, tenant, account, provider, digest, once, raw, state, due_at, tries, lost_leases, \
             created_at) VALUES ",
            "(?,?,?,?,?,?,?,0,?,0,0,?)",
            ",",
            $end,
        )
    };
}
static ADD: MultiRowSql = MultiRowSql {
    sqlite: add!(" ON CONFLICT DO NOTHING"),
    postgres: add!(" ON CONFLICT DO NOTHING"),
    mysql: add!(" ON DUPLICATE KEY UPDATE uid = provider_event.uid"),
};
macro_rules! select {
    ($end:literal) => {
        concat!(
            "SELECT uid, tenant, account, provider, state, due_at, tries, kind, message, error, ",
            // The longest that is shown, as `SHOWN_EVENT_BYTES_MAX` says.
            "CASE WHEN LENGTH(raw) <= 16384 THEN raw END, created_at, settled_at FROM provider_event WHERE ",
            $end
        )
    };
}
const LIST: SqlText =
    SqlText::same(select!("tenant = ? AND account = ? AND uid < ? ORDER BY uid DESC LIMIT ?"));
const IN_STATE: SqlText =
    SqlText::same(select!("tenant = ? AND account = ? AND state = ? AND uid < ? ORDER BY uid DESC LIMIT ?"));
/// By the ids, whose first 48 bits are the time.
const OLD: SqlText = SqlText::of_each(
    "SELECT uid FROM provider_event WHERE tenant = ? AND uid < ? ORDER BY uid LIMIT ?",
    "SELECT uid FROM provider_event WHERE tenant = ? AND uid < ? ORDER BY uid LIMIT ? FOR UPDATE SKIP LOCKED",
    "SELECT uid FROM provider_event WHERE tenant = ? AND uid < ? ORDER BY uid LIMIT ? FOR UPDATE SKIP LOCKED",
);
static DELETE: MultiRow = MultiRow::new("DELETE FROM provider_event WHERE uid IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![ADD.sample(), LIST, IN_STATE, OLD, DELETE.sample().into()]
}

/// Stores the events of a call that did not come before.
pub(crate) async fn add(session: &mut dyn SqlSession, batch: &ProviderEventBatch) -> Result<(), StoreError> {
    let (tenant, account) = (batch.key.tenant.as_str(), batch.key.account.as_str());
    for part in parts(&batch.events) {
        for (sql, run) in ADD.runs(part) {
            let row = |event: &NewProviderEvent| {
                values![
                    event.uid.as_bytes(),
                    tenant,
                    account,
                    batch.provider.as_str(),
                    &event.digest,
                    event.once.map(|once| once.to_vec()),
                    event.raw.to_vec(),
                    batch.at,
                    batch.at,
                ]
            };
            session.execute(sql, run.iter().flat_map(row).collect()).await?;
        }
    }
    Ok(())
}

/// Runs of events whose bytes go into one statement.
fn parts(events: &[NewProviderEvent]) -> impl Iterator<Item = &[NewProviderEvent]> {
    let mut bytes = events.first().map_or(0, |event| event.raw.len());
    events.chunk_by(move |_, next| {
        bytes += next.raw.len();
        let fits = bytes <= INSERT_BYTES_MAX;
        if !fits {
            bytes = next.raw.len();
        }
        fits
    })
}

/// An account's events, the newest first.
pub(crate) async fn list(
    session: &mut dyn SqlSession,
    filter: &ProviderEventFilter,
    before: Option<MessageUid>,
    limit: u32,
) -> Result<Vec<ProviderEventView>, StoreError> {
    let place = values![filter.key.tenant.as_str(), filter.key.account.as_str()];
    let before = before.unwrap_or(MessageUid::from_bytes([0xff; 16]));
    let rows = match filter.state {
        None => {
            let values = [place, values![before.as_bytes(), limit]].concat();
            session.rows(LIST, values).await?
        }
        Some(state) => {
            let values = [place, values![state.code(), before.as_bytes(), limit]].concat();
            session.rows(IN_STATE, values).await?
        }
    };
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<ProviderEventView, StoreError> {
    Ok(ProviderEventView {
        uid: MessageUid::from_bytes(row.id16(0)?),
        tenant: row.parsed(1)?,
        account: row.parsed(2)?,
        provider: provider(row.text(3)?)?,
        state: coded(row.int(4)?, ProviderEventState::from_code)?,
        due_at: row.opt_time(5)?,
        tries: row.int(6)?,
        kind: row.opt_string(7)?,
        message: row.opt_bytes(8)?.map(crate::sql::decode::id16).transpose()?.map(MessageUid::from_bytes),
        error: row.opt_string(9)?,
        raw: row.opt_bytes(10)?.unwrap_or_default().to_vec(),
        created_at: row.time(11)?,
        settled_at: row.opt_time(12)?,
    })
}

/// Removes a tenant's events that came before this time.
pub(crate) async fn expunge(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    before: Time,
    limit: u32,
) -> Result<u32, StoreError> {
    let values = values![tenant.as_str(), MessageUid::first_at(before).as_bytes(), limit];
    let rows = session.rows(OLD, values).await?;
    let uids: Vec<MessageUid> =
        rows.iter().map(|row| row.id16(0).map(MessageUid::from_bytes)).collect::<Result<_, _>>()?;
    for (sql, run) in DELETE.runs(&uids) {
        session.execute(sql.into(), ids(run)).await?;
    }
    Ok(u32::try_from(uids.len()).unwrap_or(limit))
}
