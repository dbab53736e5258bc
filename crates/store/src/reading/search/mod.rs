//! Finding messages, the newest first, in time that does not grow with their number. The same for every SQL
//! database.
//!
//! A list is in the order of ids, whatever the filter. So a search follows one index that has this order for
//! one condition, the [`SearchLead`], and checks the other conditions on the messages it meets, stride by
//! stride. If the lead is the only condition, nothing is read that is not shown. Otherwise about
//! [`LOOKED_MAX`] messages are examined for one page, and then the page says where to continue, even if it is
//! short or empty. What looks for texts alone reads text blocks (`text_lead`), a million messages for a page.

mod check;
mod index_choice;
#[cfg(test)]
pub(crate) mod query_plans;
mod text_lead;

use postway_domain::{MessageUid, TenantId, Time};

use self::index_choice::SearchLead;
use crate::{
    error::StoreError,
    record::{BlockedLanes, MessageCount, MessageFilter, MessagePage, MessageSummary},
    sql::SqlSession,
};

/// Roughly the most messages that are examined for one page; fewer if their texts are read, which costs more.
const LOOKED_MAX: usize = 6_000;
const LOOKED_TEXTS_MAX: usize = 3_000;
/// The number of messages read at once: it doubles from the first to the most.
const STRIDE_MIN: usize = 256;
const STRIDE_MAX: usize = 2_048;

/// The range of ids of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdRange {
    /// The lowest id.
    from: MessageUid,
    /// The first id that is too high.
    before: MessageUid,
}

impl IdRange {
    fn for_filter(filter: &MessageFilter, before: Option<MessageUid>) -> Self {
        let end = MessageUid::from_bytes([0xff; 16]);
        let until = filter.until.map_or(end, first_at);
        Self {
            from: filter.since.map_or(MessageUid::from_bytes([0; 16]), first_at),
            before: before.map_or(until, |before| before.min(until)),
        }
    }
}

/// The lowest id that a message accepted at this time can have: ids begin with it, in milliseconds.
fn first_at(time: Time) -> MessageUid {
    const MS_MAX: u64 = (1 << 48) - 1;
    let ms = u64::try_from(time.as_millis()).unwrap_or(0).min(MS_MAX).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&ms[2..]);
    MessageUid::from_bytes(bytes)
}

/// The messages of a page, and where the next begins.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundMessages {
    pub uids: Vec<MessageUid>,
    next: Option<MessageUid>,
}

impl FoundMessages {
    /// Makes the page from the summaries that were read. Messages that changed since they were found are left
    /// out.
    pub fn page(self, filter: &MessageFilter, mut messages: Vec<MessageSummary>) -> MessagePage {
        messages.retain(|message| {
            filter.status.is_none_or(|status| message.state.status() == status)
                && (!filter.exhausted || message.exhausted)
                && (!filter.waits || message.waits())
        });
        messages.sort_unstable_by_key(|message| std::cmp::Reverse(message.uid));
        MessagePage { messages, next: self.next }
    }
}

/// Finds a page of messages that match, before `before`.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    filter: &MessageFilter,
    before: Option<MessageUid>,
    limit: u32,
) -> Result<FoundMessages, StoreError> {
    if limit == 0 || is_impossible(filter) {
        return Ok(FoundMessages::default());
    }
    let limit = limit as usize;
    let mut range = IdRange::for_filter(filter, before);
    let lead = SearchLead::choose(session, tenant, filter).await?;
    let left = lead.leaves(filter);
    // One more than requested shows whether there is a next page.
    let mut stride = if left.is_some() { STRIDE_MIN.max(limit + 1) } else { limit + 1 };
    let looked_max = if check::reads_text(filter) { LOOKED_TEXTS_MAX } else { LOOKED_MAX };
    let (mut uids, mut looked) = (Vec::new(), 0);
    loop {
        let met = lead.newest(session, tenant, range, stride).await?;
        looked += met.cost;
        match &left {
            Some(left) => uids.extend(check::fitting(session, tenant, left, met.uids).await?),
            None => uids.extend(met.uids),
        }
        if uids.len() > limit {
            uids.truncate(limit);
            return Ok(FoundMessages { next: uids.last().copied(), uids });
        }
        let Some(next) = met.next else { return Ok(FoundMessages { uids, next: None }) };
        if looked >= looked_max {
            return Ok(FoundMessages { uids, next: Some(next) });
        }
        range.before = next;
        stride = (stride * 2).min(STRIDE_MAX.max(limit + 1));
    }
}

/// The number of messages counted at once.
const COUNTED_AT_ONCE: u32 = 5_000;
/// The most pages that one count reads; fewer if texts are read, which costs more.
const COUNTED_PAGES_MAX: usize = 24;
const COUNTED_TEXT_PAGES_MAX: usize = 4;

/// The number of messages that match. Counting ends at `most`, and if too many messages would have to be
/// examined.
pub(crate) async fn count(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    filter: &MessageFilter,
    most: u32,
) -> Result<MessageCount, StoreError> {
    let (mut messages, mut before) = (0, None);
    let pages_max = if check::reads_text(filter) { COUNTED_TEXT_PAGES_MAX } else { COUNTED_PAGES_MAX };
    let at_once = COUNTED_AT_ONCE.min(most.saturating_add(1));
    for _ in 0..pages_max {
        let found = find(session, tenant, filter, before, at_once).await?;
        messages += found.uids.len() as u64;
        if messages > u64::from(most) {
            return Ok(MessageCount { messages: most.into(), is_more: true });
        }
        if found.next.is_none() {
            return Ok(MessageCount { messages, is_more: false });
        }
        before = found.next;
    }
    Ok(MessageCount { messages, is_more: true })
}

/// Whether no message can match: a condition is empty or contains a NUL, which PostgreSQL would refuse.
fn is_impossible(filter: &MessageFilter) -> bool {
    let texts = [
        &filter.batch,
        &filter.recipient,
        &filter.tag,
        &filter.request_id,
        &filter.provider_message_id,
        &filter.error_code,
        &filter.domain,
    ];
    texts.into_iter().flatten().any(|text| text.is_empty() || text.contains('\0'))
        || filter.behind.as_ref().is_some_and(BlockedLanes::is_empty)
}

/// Every statement of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    [index_choice::statements(), text_lead::STATEMENTS.to_vec(), check::statements()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_where_cursor_and_times_agree() {
        let at = |ms| Some(Time::from_millis(ms));
        let uid = |ms| first_at(Time::from_millis(ms));
        let filter = MessageFilter { since: at(1_000), until: at(2_000), ..MessageFilter::default() };
        assert_eq!(IdRange::for_filter(&filter, None), IdRange { from: uid(1_000), before: uid(2_000) });
        assert_eq!(IdRange::for_filter(&filter, Some(uid(1_500))).before, uid(1_500));
        assert_eq!(IdRange::for_filter(&filter, Some(uid(9_000))).before, uid(2_000));
        assert_eq!(first_at(Time::from_millis(-5)).as_bytes(), &[0; 16]);
        assert!(
            first_at(Time::from_millis(i64::MAX)) > uid(1 << 47),
            "a time beyond all ids wraps round to none"
        );
    }
}
