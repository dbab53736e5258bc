//! The condition whose index a search follows.
//!
//! Conditions that match few messages come before those that match many: a request, a relay's id, dead
//! letters, a rare state; then a recipient, an outcome, a batch, a tag, an account, a state, the waiting
//! states; and without any of these, all messages of the tenant.
//!
//! PostgreSQL's forms compare row values, so that its planner, which knows none of the values, has only one
//! index to choose.

use postway_domain::{EmailAddress, EventKind, LaneId, MessageStatus, MessageUid, TenantId};

use super::{IdRange, text_lead::newest_with};
use crate::{
    error::StoreError,
    record::MessageFilter,
    sql::{
        Row, SqlSession, SqlText, Value,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
    text_block::SearchNeedles,
};

/// A state with at most this many messages comes before everything but names.
const FEW: i64 = 1_000;
/// If the account is not the only condition, its lanes are followed if there are at most this many.
const LANES_FEW: usize = 64;
/// If it is the only condition, they are followed up to this many, each with a lookup of its own. Beyond it,
/// the tenant's messages are followed.
const LANES_MANY: usize = 1_024;

const COUNT: SqlText = SqlText::or_mysql(
    "SELECT count FROM tally WHERE tenant = ? AND status = ?",
    "SELECT `count` FROM tally WHERE tenant = ? AND status = ?",
);
const LANES_OF_ACCOUNT: SqlText =
    SqlText::same("SELECT id FROM lane WHERE tenant = ? AND account = ? LIMIT ?");
const LANES_OF_BATCH: SqlText = SqlText::same("SELECT id FROM lane WHERE tenant = ? AND batch = ?");
const LANES_OF_BOTH: SqlText =
    SqlText::same("SELECT id FROM lane WHERE tenant = ? AND batch = ? AND account = ?");

pub(super) const OF_TENANT: SqlText = SqlText::of_each(
    "SELECT uid FROM message WHERE tenant = ? AND uid >= ? AND tenant = ? AND uid < ? ORDER BY uid DESC LIMIT ?",
    "SELECT uid FROM message WHERE (tenant, uid) >= (?, ?) AND (tenant, uid) < (?, ?) \
     ORDER BY tenant DESC, uid DESC LIMIT ?",
    "SELECT uid FROM message FORCE INDEX (message_tenant) WHERE tenant = ? AND uid >= ? AND tenant = ? AND uid < ? \
     ORDER BY uid DESC LIMIT ?",
);
const OF_STATUS: SqlText = SqlText::of_each(
    "SELECT uid FROM message WHERE status = ? AND tenant = ? AND uid >= ? AND status = ? AND tenant = ? AND uid < ? \
     ORDER BY uid DESC LIMIT ?",
    "SELECT uid FROM message WHERE (status, tenant, uid) >= (?, ?, ?) AND (status, tenant, uid) < (?, ?, ?) \
     ORDER BY status DESC, tenant DESC, uid DESC LIMIT ?",
    "SELECT uid FROM message FORCE INDEX (message_status) WHERE status = ? AND tenant = ? AND uid >= ? AND status = ? \
     AND tenant = ? AND uid < ? ORDER BY uid DESC LIMIT ?",
);
/// MySQL has no partial indexes: it follows the failed messages.
const EXHAUSTED: SqlText = SqlText::of_each(
    "SELECT uid FROM message INDEXED BY message_exhausted WHERE exhausted = 1 AND tenant = ? AND uid >= ? AND tenant = ? \
     AND uid < ? ORDER BY uid DESC LIMIT ?",
    "SELECT uid FROM message WHERE exhausted AND (tenant, uid) >= (?, ?) AND (tenant, uid) < (?, ?) \
     ORDER BY tenant DESC, uid DESC LIMIT ?",
    "SELECT uid FROM message FORCE INDEX (message_status) WHERE status = 6 AND exhausted = 1 AND tenant = ? AND uid >= ? \
     AND tenant = ? AND uid < ? ORDER BY uid DESC LIMIT ?",
);
const _: () = assert!(MessageStatus::Failed as i64 == 6);
const OF_TAG: SqlText = SqlText::of_each(
    "SELECT uid FROM tag WHERE tenant = ? AND tag = ? AND uid >= ? AND tenant = ? AND tag = ? AND uid < ? \
     ORDER BY uid DESC LIMIT ?",
    "SELECT uid FROM tag WHERE (tenant, tag, uid) >= (?, ?, ?) AND (tenant, tag, uid) < (?, ?, ?) \
     ORDER BY tenant DESC, tag DESC, uid DESC LIMIT ?",
    "SELECT uid FROM tag WHERE tenant = ? AND tag = ? AND uid >= ? AND tenant = ? AND tag = ? AND uid < ? \
     ORDER BY uid DESC LIMIT ?",
);
/// MySQL's index ignores accents and trailing spaces; addresses that differ in them are not the same.
const OF_RECIPIENT: SqlText = SqlText::of_each(
    "SELECT uid FROM recipient WHERE address = ? AND uid >= ? AND address = ? AND uid < ? ORDER BY uid DESC LIMIT ?",
    "SELECT uid FROM recipient WHERE (lower(address), uid) >= (lower(? COLLATE \"C\"), ?) \
     AND (lower(address), uid) < (lower(? COLLATE \"C\"), ?) ORDER BY lower(address) DESC, uid DESC LIMIT ?",
    "SELECT uid FROM recipient FORCE INDEX (recipient_address) WHERE address = ? AND uid >= ? \
     AND CAST(LOWER(address) AS BINARY) = CAST(LOWER(?) AS BINARY) AND uid < ? ORDER BY uid DESC LIMIT ?",
);
const OF_REQUEST: SqlText = SqlText::same(
    "SELECT uid FROM content WHERE request_id = ? AND uid >= ? AND request_id = ? AND uid < ? ORDER BY uid DESC LIMIT ?",
);
const OF_PROVIDER: SqlText = SqlText::same(
    "SELECT uid FROM attempt WHERE provider_message_id = ? AND uid >= ? AND provider_message_id = ? AND uid < ? \
     ORDER BY uid DESC LIMIT ?",
);
/// Of all tenants together: the outcomes that people look for are rare.
const OF_OUTCOME: SqlText = SqlText::of_each(
    "SELECT uid FROM recipient WHERE outcome = ? AND uid >= ? AND outcome = ? AND uid < ? ORDER BY uid DESC LIMIT ?",
    "SELECT uid FROM recipient WHERE outcome IS NOT NULL AND (outcome, uid) >= (?, ?) AND (outcome, uid) < (?, ?) \
     ORDER BY outcome DESC, uid DESC LIMIT ?",
    "SELECT uid FROM recipient FORCE INDEX (recipient_outcome) WHERE outcome = ? AND uid >= ? AND outcome = ? AND uid < ? \
     ORDER BY uid DESC LIMIT ?",
);
/// The states of what waits to be claimed.
const WAITING: [MessageStatus; 3] = [MessageStatus::Ready, MessageStatus::Scheduled, MessageStatus::InDoubt];
/// The newest of some lanes: the newest of each are read, and of those the newest are taken.
static OF_LANES: MultiRowSql = MultiRowSql {
    sqlite: MultiRow::of_pieces(
        "SELECT uid FROM (",
        "SELECT uid FROM (SELECT uid FROM message INDEXED BY message_lane WHERE lane = ? AND uid >= ? AND lane = ? \
         AND uid < ? ORDER BY uid DESC LIMIT ?) AS one",
        " UNION ALL ",
        ") AS found ORDER BY uid DESC LIMIT ?",
    ),
    postgres: MultiRow::of_pieces(
        "SELECT uid FROM (",
        "SELECT uid FROM (SELECT uid FROM message WHERE (lane, uid) >= (?, ?) AND (lane, uid) < (?, ?) \
         ORDER BY lane DESC, uid DESC LIMIT ?) AS one",
        " UNION ALL ",
        ") AS found ORDER BY uid DESC LIMIT ?",
    ),
    mysql: MultiRow::of_pieces(
        "SELECT uid FROM (",
        "SELECT uid FROM (SELECT uid FROM message FORCE INDEX (message_lane) WHERE lane = ? AND uid >= ? AND lane = ? \
         AND uid < ? ORDER BY uid DESC LIMIT ?) AS one",
        " UNION ALL ",
        ") AS found ORDER BY uid DESC LIMIT ?",
    ),
};

#[cfg(test)]
pub(super) fn statements() -> Vec<SqlText> {
    let single = [OF_TENANT, OF_STATUS, EXHAUSTED, OF_TAG, OF_RECIPIENT, OF_OUTCOME, OF_REQUEST, OF_PROVIDER];
    let small = [COUNT, LANES_OF_ACCOUNT, LANES_OF_BATCH, LANES_OF_BOTH];
    [single.as_slice(), &small, &[OF_LANES.sample()]].concat()
}

/// Each lead with the index that it must follow in order, without a sort.
#[cfg(test)]
pub(super) fn by_index() -> Vec<(SqlText, &'static str)> {
    vec![
        (OF_TENANT, "message_tenant"),
        (OF_STATUS, "message_status"),
        (EXHAUSTED, "message_exhausted"),
        (OF_TAG, "tag"),
        (OF_RECIPIENT, "recipient_address"),
        (OF_OUTCOME, "recipient_outcome"),
    ]
}

/// What a search follows.
#[derive(Debug)]
pub(super) enum SearchLead {
    Request(String),
    Provider(String),
    Exhausted,
    Recipient(String),
    Outcome(EventKind),
    /// The messages of a batch, an account, or both.
    Lanes(Vec<LaneId>),
    Tag(String),
    Status(MessageStatus),
    /// The messages of several states.
    Waiting,
    /// The messages whose texts may match.
    Texts(SearchNeedles),
    Tenant,
}

/// Messages that a lead has read, the newest first.
pub(super) struct LeadMessages {
    pub uids: Vec<MessageUid>,
    /// The message before which there may be more.
    pub next: Option<MessageUid>,
    /// What reading and examining them costs, in messages.
    pub cost: usize,
}

impl LeadMessages {
    /// Messages of an index, which goes on behind the last of them unless it has ended.
    fn of_index(uids: Vec<MessageUid>, is_end: bool) -> Self {
        Self { next: uids.last().copied().filter(|_| !is_end), cost: uids.len(), uids }
    }
}

impl SearchLead {
    /// The lead for this filter.
    pub async fn choose(
        session: &mut dyn SqlSession,
        tenant: &TenantId,
        filter: &MessageFilter,
    ) -> Result<Self, StoreError> {
        if let Some(id) = &filter.request_id {
            return Ok(SearchLead::Request(id.clone()));
        }
        if let Some(id) = &filter.provider_message_id {
            return Ok(SearchLead::Provider(id.clone()));
        }
        if filter.exhausted {
            return Ok(SearchLead::Exhausted);
        }
        if let Some(status) = filter.status
            && count(session, tenant, status).await? <= FEW
        {
            return Ok(SearchLead::Status(status));
        }
        if let Some(address) = &filter.recipient {
            return Ok(SearchLead::Recipient(address.clone()));
        }
        if let Some(outcome) = filter.outcome {
            return Ok(SearchLead::Outcome(outcome));
        }
        if filter.batch.is_some() {
            return lanes(session, tenant, filter).await.map(SearchLead::Lanes);
        }
        if let Some(tag) = &filter.tag {
            return Ok(SearchLead::Tag(tag.clone()));
        }
        let is_narrow = filter.waits || filter.unresolved;
        if let Some(needles) = SearchNeedles::of(filter).filter(|_| !is_narrow) {
            return Ok(SearchLead::Texts(needles));
        }
        if filter.account.is_some() {
            let lanes = lanes(session, tenant, filter).await?;
            let is_alone = filter.status.is_none() && !super::check::reads_text(filter);
            if lanes.len() <= if is_alone { LANES_MANY } else { LANES_FEW } {
                return Ok(SearchLead::Lanes(lanes));
            }
        }
        Ok(match filter.status {
            Some(status) => SearchLead::Status(status),
            None if filter.waits => SearchLead::Waiting,
            None => SearchLead::Tenant,
        })
    }

    /// The conditions that remain to be checked, if any. An index that is not per tenant does not even settle
    /// the tenant.
    pub fn leaves(&self, filter: &MessageFilter) -> Option<MessageFilter> {
        // Times are settled by the range of ids.
        let mut left = MessageFilter { since: None, until: None, ..filter.clone() };
        match self {
            SearchLead::Request(_) => left.request_id = None,
            SearchLead::Provider(_) => left.provider_message_id = None,
            SearchLead::Recipient(_) => left.recipient = None,
            SearchLead::Outcome(_) => left.outcome = None,
            SearchLead::Exhausted => {
                left.exhausted = false;
                left.status = left.status.filter(|status| *status != MessageStatus::Failed);
            }
            SearchLead::Lanes(_) => (left.account, left.batch) = (None, None),
            SearchLead::Tag(_) => left.tag = None,
            SearchLead::Status(_) => left.status = None,
            SearchLead::Waiting | SearchLead::Texts(_) | SearchLead::Tenant => {}
        }
        let is_of_all = matches!(
            self,
            SearchLead::Request(_)
                | SearchLead::Provider(_)
                | SearchLead::Recipient(_)
                | SearchLead::Outcome(_)
        );
        (is_of_all || left != MessageFilter::default()).then_some(left)
    }

    /// The newest messages of the lead in this range.
    pub async fn newest(
        &self,
        session: &mut dyn SqlSession,
        tenant: &TenantId,
        range: IdRange,
        limit: usize,
    ) -> Result<LeadMessages, StoreError> {
        let (from, before) = (range.from.as_bytes(), range.before.as_bytes());
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let (sql, values) = match self {
            SearchLead::Lanes(lanes) => return newest_of_lanes(session, lanes, range, limit).await,
            SearchLead::Request(id) => (OF_REQUEST, values![id.as_str(), from, id.as_str(), before, most]),
            SearchLead::Provider(id) => (OF_PROVIDER, values![id.as_str(), from, id.as_str(), before, most]),
            SearchLead::Exhausted => {
                (EXHAUSTED, values![tenant.as_str(), from, tenant.as_str(), before, most])
            }
            SearchLead::Recipient(address) => return newest_to(session, address, range, limit).await,
            SearchLead::Waiting => return newest_waiting(session, tenant.as_str(), range, limit).await,
            SearchLead::Texts(needles) => {
                return newest_with(session, tenant, needles, range, limit).await;
            }
            SearchLead::Outcome(outcome) => {
                (OF_OUTCOME, values![outcome.code(), from, outcome.code(), before, most])
            }
            SearchLead::Tag(tag) => (
                OF_TAG,
                values![tenant.as_str(), tag.as_str(), from, tenant.as_str(), tag.as_str(), before, most],
            ),
            SearchLead::Status(status) => (
                OF_STATUS,
                values![status.code(), tenant.as_str(), from, status.code(), tenant.as_str(), before, most],
            ),
            SearchLead::Tenant => (OF_TENANT, values![tenant.as_str(), from, tenant.as_str(), before, most]),
        };
        let rows = session.rows(sql, values).await?;
        let is_end = rows.len() < limit;
        let mut uids = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        // A mail may be tried twice under one name.
        uids.dedup();
        Ok(LeadMessages::of_index(uids, is_end))
    }
}

/// The newest waiting messages, of all waiting states.
async fn newest_waiting(
    session: &mut dyn SqlSession,
    tenant: &str,
    range: IdRange,
    limit: usize,
) -> Result<LeadMessages, StoreError> {
    let (from, before) = (range.from.as_bytes(), range.before.as_bytes());
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut uids, mut is_end) = (Vec::new(), true);
    for status in WAITING {
        let values = values![status.code(), tenant, from, status.code(), tenant, before, most];
        let rows = session.rows(OF_STATUS, values).await?;
        is_end &= rows.len() < limit;
        for row in &rows {
            uids.push(read(row)?);
        }
    }
    uids.sort_unstable_by(|a: &MessageUid, b| b.cmp(a));
    is_end &= uids.len() <= limit;
    uids.truncate(limit);
    Ok(LeadMessages::of_index(uids, is_end))
}

/// The newest messages to an address, under either spelling of its domain: mail accepted by earlier versions
/// has U-labels.
async fn newest_to(
    session: &mut dyn SqlSession,
    address: &str,
    range: IdRange,
    limit: usize,
) -> Result<LeadMessages, StoreError> {
    let (from, before) = (range.from.as_bytes(), range.before.as_bytes());
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let (mut uids, mut is_end) = (Vec::new(), true);
    for address in EmailAddress::spellings_of(address) {
        let values = values![address.as_str(), from, address.as_str(), before, most];
        let rows = session.rows(OF_RECIPIENT, values).await?;
        is_end &= rows.len() < limit;
        for row in &rows {
            uids.push(read(row)?);
        }
    }
    uids.sort_unstable_by(|a: &MessageUid, b| b.cmp(a));
    is_end &= uids.len() <= limit;
    uids.truncate(limit);
    // A mail may go to an address twice.
    uids.dedup();
    Ok(LeadMessages::of_index(uids, is_end))
}

pub(super) fn read(row: &Row) -> Result<MessageUid, StoreError> {
    row.id16(0).map(MessageUid::from_bytes)
}

/// The number of a tenant's messages in this state.
async fn count(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    status: MessageStatus,
) -> Result<i64, StoreError> {
    let shards = session.rows(COUNT, values![tenant.as_str(), status.code()]).await?;
    shards.iter().map(|row| row.int(0)).sum()
}

async fn lanes(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    filter: &MessageFilter,
) -> Result<Vec<LaneId>, StoreError> {
    let tenant = tenant.as_str();
    let (sql, values) = match (&filter.batch, &filter.account) {
        (Some(batch), Some(account)) => (LANES_OF_BOTH, values![tenant, batch.as_str(), account.as_str()]),
        (Some(batch), None) => (LANES_OF_BATCH, values![tenant, batch.as_str()]),
        (None, Some(account)) => (LANES_OF_ACCOUNT, values![tenant, account.as_str(), LANES_MANY as u32 + 1]),
        (None, None) => return Ok(Vec::new()),
    };
    session.rows(sql, values).await?.iter().map(|row| row.id16(0).map(LaneId::from_bytes)).collect()
}

/// Many lanes are read some at a time: once there are enough messages, the other lanes need not return older
/// ones.
async fn newest_of_lanes(
    session: &mut dyn SqlSession,
    lanes: &[LaneId],
    range: IdRange,
    limit: usize,
) -> Result<LeadMessages, StoreError> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut from = range.from;
    let mut uids: Vec<MessageUid> = Vec::new();
    for (sql, run) in OF_LANES.runs(lanes) {
        let piece = |lane: &LaneId| {
            values![lane.as_bytes(), from.as_bytes(), lane.as_bytes(), range.before.as_bytes(), most]
        };
        let values = run.iter().flat_map(piece).chain([Value::from(most)]).collect();
        for row in session.rows(sql, values).await? {
            uids.push(read(&row)?);
        }
        uids.sort_unstable_by(|a, b| b.cmp(a));
        uids.truncate(limit);
        if let Some(oldest) = uids.last().filter(|_| uids.len() == limit) {
            from = *oldest;
        }
    }
    let is_end = uids.len() < limit;
    Ok(LeadMessages::of_index(uids, is_end))
}
