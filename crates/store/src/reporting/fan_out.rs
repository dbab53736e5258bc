//! From pages of the journal to notifications, hourly counts and the rates of the last hour.
//!
//! Each page is done once, whichever node calls: the progress is a row that is locked, and advanced in the
//! same transaction. A page belongs to one tenant, and with many active tenants a page has an entry or two.
//! So a transaction takes pages of many tenants, and every statement is for all of them. It takes pages until
//! it has enough entries, tenants or notifications, and of the last page as many entries as fit, so that
//! neither many tenants, nor many subscribers, nor large pages make it endless.

use std::collections::{BTreeSet, HashMap};

use postway_domain::{
    EventKind, MessageUid, SubscriberKind, TenantId, Time,
    id::SubscriberId,
    subscriber::{EventFilter, event_name},
};

use super::{hourly_counts, rates, stream_counts};
use crate::{
    error::StoreError,
    journal::{self, EventDetail, JournalEntry, JournalPage},
    sql::{
        SqlSession, SqlText, Value, decode,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
};

/// The most pages of one transaction.
const PAGES_MAX: u32 = 2_048;
/// The pages of one read. A transaction reads at most this many pages more than it does.
const PAGES_READ: u32 = 64;
/// A transaction that has this many entries takes no more pages.
const ENTRIES_ENOUGH: usize = 8_192;
/// A transaction that has this many tenants takes no more pages: each costs a row for its hour and one for
/// its rate.
const TENANTS_ENOUGH: usize = 1_024;
/// The most notifications that a transaction makes, unless a single event has more subscribers.
const NOTIFICATIONS_MAX: usize = 4_096;

const PAGES: SqlText = SqlText::same(
    "SELECT position, tenant, at, entries FROM journal WHERE position > ? ORDER BY position LIMIT ?",
);
static SUBSCRIBERS: MultiRow = MultiRow::new(
    "SELECT s.tenant, s.id, s.kind, s.events, s.created_at FROM subscriber s JOIN tenant t ON t.id = s.tenant \
     WHERE s.active = 1 AND t.deleted_at IS NULL AND s.tenant IN (",
    1,
    ")",
);
/// Notifications of earlier events that wait: those that follow wait as long.
static HELD: MultiRow = MultiRow::new(
    "SELECT subscriber, uid, MAX(due_at) FROM notification WHERE due_at > ? AND uid IN (",
    1,
    ") GROUP BY subscriber, uid",
);
macro_rules! notification {
    ($end:literal) => {
        MultiRow::of_pieces(
            "INSERT INTO notification (tenant, subscriber, uid, seq, kind, deferred, state, due_at, tries, created_at) VALUES ",
            "(?,?,?,?,?,?,0,?,0,?)",
            ",",
            $end,
        )
    };
}
static INSERT: MultiRowSql = MultiRowSql {
    sqlite: notification!(" ON CONFLICT DO NOTHING"),
    postgres: notification!(" ON CONFLICT DO NOTHING"),
    mysql: notification!(" ON DUPLICATE KEY UPDATE seq = notification.seq"),
};

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![PAGES, INSERT.sample(), SUBSCRIBERS.sample().into(), HELD.sample().into()]
}

/// Whether a subscriber of this kind is notified of an event. Those that asked for outcomes get final events.
pub(crate) fn is_told(kind: SubscriberKind, events: &EventFilter, entry: &JournalEntry) -> bool {
    let Some(name) = event_name(entry.kind, entry.is_deferred()) else { return false };
    let is_end = matches!(entry.detail, EventDetail::ResolvedSent | EventDetail::ResolvedFailed);
    hears_of(kind, entry.kind, is_end) && events.takes(name)
}

/// Whether subscribers of this kind are notified of events of that kind; `is_end` says whether a resolution
/// was final.
pub fn hears_of(kind: SubscriberKind, event: EventKind, is_end: bool) -> bool {
    let is_outcome = match event {
        EventKind::Sent
        | EventKind::Captured
        | EventKind::Failed
        | EventKind::Invalid
        | EventKind::Expired
        | EventKind::Cancelled
        | EventKind::Suppressed
        | EventKind::Bounced => true,
        // A doubt ends as an operator or a late answer resolved it.
        EventKind::Resolved => is_end,
        EventKind::Scheduled
        | EventKind::Delivered
        | EventKind::Complained
        | EventKind::PecAccepted
        | EventKind::PecTakenOver
        | EventKind::PecDelivered
        | EventKind::PecFailed
        | EventKind::PecTimeout
        // As an entry with its own status, which has none of the fields that clients act on.
        | EventKind::UnprovenReport => kind == SubscriberKind::Sync,
        EventKind::Accepted
        | EventKind::Validating
        | EventKind::Validated
        | EventKind::Ready
        | EventKind::Sending
        | EventKind::RecipientFailed
        | EventKind::InDoubt
        | EventKind::Resent
        | EventKind::Replayed
        | EventKind::Delayed
        | EventKind::AutoReplied
        | EventKind::Notifying
        | EventKind::Notified
        | EventKind::Received
        | EventKind::Unsubscribed
        | EventKind::Resubscribed
        | EventKind::SuppressionCreated
        | EventKind::SuppressionDeleted
        | EventKind::Opened | EventKind::Clicked | EventKind::Replied => false,
    };
    kind.form().is_some() || is_outcome
}

/// The part of a subscriber that fan-out needs.
struct Listener {
    id: SubscriberId,
    kind: SubscriberKind,
    events: EventFilter,
    since: Time,
}

/// A notification to make.
struct SubscriberProgress<'p> {
    tenant: &'p TenantId,
    subscriber: &'p SubscriberId,
    entry: &'p JournalEntry,
}

/// Makes notifications from at most `limit` pages, and counts their hours. Returns the number of pages.
pub(crate) async fn fan_out(session: &mut dyn SqlSession, now: Time, limit: u32) -> Result<u32, StoreError> {
    let done = journal::lock_progress(session, journal::FAN_OUT).await?;
    let (pages, listeners) = read_pages(session, done, limit.min(PAGES_MAX)).await?;
    let (begun, entries_done) =
        if pages.is_empty() { (0, 0) } else { journal::page_in_part(session).await? };
    let mut told = Vec::new();
    let mut counted: &[PlacedPage] = &[];
    let mut part = None;
    for (taken, (position, tenant, page)) in (1..).zip(&pages) {
        let listening = listeners.get(tenant).into_iter().flatten().filter(|one| one.since <= page.at);
        let listening: Vec<&Listener> = listening.collect();
        let first = if *position == begun { entries_done.min(page.entries.len()) } else { 0 };
        let left = page.entries.len() - first;
        let fits = entries_that_fit(told.len(), listening.len()).min(left);
        let entries = &page.entries[first..first + fits];
        for Listener { id, kind, events, .. } in listening {
            let entries = entries.iter().filter(|entry| is_told(*kind, events, entry));
            told.extend(entries.map(|entry| SubscriberProgress { tenant, subscriber: id, entry }));
        }
        if fits < left {
            part = (fits > 0).then_some((*position, first + fits));
            break;
        }
        counted = &pages[..taken];
    }
    insert(session, &told, now).await?;
    if let Some((page, entries)) = part {
        journal::note_part(session, page, entries).await?;
    }
    if let Some((last, ..)) = counted.last() {
        let lanes = hourly_counts::lanes_of(session, counted).await?;
        hourly_counts::write(session, counted, &lanes).await?;
        stream_counts::write(session, counted, &lanes).await?;
        rates::write(session, counted).await?;
        journal::advance(session, journal::FAN_OUT, *last).await?;
    }
    // A page done in part counts, too: there is more to do.
    Ok(u32::try_from(counted.len()).unwrap_or(PAGES_MAX).max(part.is_some().into()))
}

/// The number of entries of a page that a transaction takes that has made `made` notifications; at least the
/// first one.
fn entries_that_fit(made: usize, listening: usize) -> usize {
    match (NOTIFICATIONS_MAX.saturating_sub(made)).checked_div(listening) {
        None => usize::MAX,
        Some(0) if made == 0 => 1,
        Some(entries) => entries,
    }
}

/// A page, its position and its tenant.
type PlacedPage = (i64, TenantId, JournalPage);

/// The next pages, enough of them for a transaction, with who listens to their tenants.
async fn read_pages(
    session: &mut dyn SqlSession,
    done: i64,
    limit: u32,
) -> Result<(Vec<PlacedPage>, HashMap<TenantId, Vec<Listener>>), StoreError> {
    let mut pages: Vec<PlacedPage> = Vec::new();
    let mut listeners: HashMap<TenantId, Vec<Listener>> = HashMap::new();
    let (mut entries, mut told, mut left) = (0, 0, limit);
    while left > 0 && entries < ENTRIES_ENOUGH && listeners.len() < TENANTS_ENOUGH && told < NOTIFICATIONS_MAX
    {
        let (asked, after) = (left.min(PAGES_READ), pages.last().map_or(done, |(position, ..)| *position));
        let rows = session.rows(PAGES, values![after, asked]).await?;
        let read_before = pages.len();
        for row in &rows {
            let bytes = row.opt_bytes(3)?.unwrap_or_default();
            pages.push((row.int(0)?, row.parsed::<TenantId>(1)?, JournalPage::decode(row.time(2)?, bytes)?));
        }
        let read = &pages[read_before..];
        add_listeners(session, read.iter().map(|(_, tenant, _)| tenant), &mut listeners).await?;
        for (_, tenant, page) in read {
            entries += page.entries.len();
            told += page.entries.len() * listeners.get(tenant).map_or(0, Vec::len);
        }
        if rows.len() < asked as usize {
            break;
        }
        left -= asked;
    }
    Ok((pages, listeners))
}

/// Reads who listens to these tenants, if that is not known yet. A tenant to which nobody listens is known,
/// too.
async fn add_listeners(
    session: &mut dyn SqlSession,
    tenants: impl Iterator<Item = &TenantId>,
    listeners: &mut HashMap<TenantId, Vec<Listener>>,
) -> Result<(), StoreError> {
    let tenants: BTreeSet<&TenantId> = tenants.filter(|tenant| !listeners.contains_key(*tenant)).collect();
    let tenants: Vec<&TenantId> = tenants.into_iter().collect();
    for tenant in &tenants {
        listeners.insert((*tenant).clone(), Vec::new());
    }
    for (sql, run) in SUBSCRIBERS.runs(&tenants) {
        let values = run.iter().map(|tenant| Value::from(tenant.as_str())).collect();
        for row in session.rows(sql.into(), values).await? {
            listeners.entry(row.parsed(0)?).or_default().push(Listener {
                id: row.parsed(1)?,
                kind: decode::coded(row.int(2)?, SubscriberKind::from_code)?,
                events: row.json(3)?,
                since: row.time(4)?,
            });
        }
    }
    Ok(())
}

async fn insert(
    session: &mut dyn SqlSession,
    told: &[SubscriberProgress<'_>],
    now: Time,
) -> Result<(), StoreError> {
    // A message's first event follows nothing.
    let followers: BTreeSet<MessageUid> =
        told.iter().filter(|one| one.entry.seq > 1).map(|one| one.entry.uid).collect();
    let followers: Vec<MessageUid> = followers.into_iter().collect();
    let mut held: HashMap<(MessageUid, SubscriberId), Time> = HashMap::new();
    for (sql, run) in HELD.runs(&followers) {
        let uids = run.iter().map(|uid| Value::from(uid.as_bytes()));
        for row in session.rows(sql.into(), [Value::from(now)].into_iter().chain(uids).collect()).await? {
            held.insert((MessageUid::from_bytes(row.id16(1)?), row.parsed(0)?), row.time(2)?);
        }
    }
    for (sql, run) in INSERT.runs(told) {
        let row = |SubscriberProgress { tenant, subscriber, entry }: &SubscriberProgress<'_>| {
            let due_at = held.get(&(entry.uid, (*subscriber).clone())).copied().unwrap_or(now);
            values![
                tenant.as_str(),
                subscriber.as_str(),
                entry.uid.as_bytes(),
                entry.seq,
                entry.kind.code(),
                i64::from(entry.is_deferred()),
                due_at,
                now,
            ]
        };
        session.execute(sql, run.iter().flat_map(row).collect()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EventKind, detail: EventDetail) -> JournalEntry {
        let mut uid = [0; 16];
        uid[5] = 100;
        JournalEntry { uid: MessageUid::from_bytes(uid), seq: 3, kind, detail, lane: 0 }
    }

    #[test]
    fn a_transaction_takes_as_many_entries_as_it_has_room_for() {
        assert_eq!(entries_that_fit(0, 0), usize::MAX, "nobody hears of it");
        assert_eq!(entries_that_fit(0, 8), 512);
        assert_eq!(entries_that_fit(0, 100), 40);
        assert_eq!(entries_that_fit(4_000, 100), 0, "the next transaction has room");
        assert_eq!(entries_that_fit(0, 10_000), 1);
    }

    #[test]
    fn a_callback_is_told_of_outcomes_and_a_sync_of_what_came_back_too() {
        let told = |subscriber: SubscriberKind| -> Vec<&str> {
            let kinds = EventKind::ALL.iter();
            let taken = kinds.filter(|kind| {
                is_told(subscriber, &EventFilter::default(), &entry(**kind, EventDetail::None))
            });
            taken.map(|kind| kind.as_str()).collect()
        };
        let outcomes =
            ["invalid", "sent", "failed", "cancelled", "expired", "suppressed", "bounced", "captured"];
        assert_eq!(told(SubscriberKind::Callback), outcomes);
        assert!(outcomes.iter().all(|word| told(SubscriberKind::Sync).contains(word)));
        assert!(told(SubscriberKind::Sync).contains(&"pec_delivered"));
        assert!(told(SubscriberKind::Webhook).contains(&"accepted"));
        assert_eq!(told(SubscriberKind::ResendWebhook), told(SubscriberKind::Webhook), "whatever its form");
        for kind in [SubscriberKind::Callback, SubscriberKind::Sync, SubscriberKind::Webhook] {
            assert!(is_told(
                kind,
                &EventFilter::default(),
                &entry(EventKind::Resolved, EventDetail::ResolvedFailed)
            ));
            let deferred =
                is_told(kind, &EventFilter::default(), &entry(EventKind::Scheduled, EventDetail::Deferred));
            assert_eq!(deferred, kind != SubscriberKind::Callback);
        }
        let only = EventFilter(vec!["email.failed".to_owned()]);
        assert!(!is_told(SubscriberKind::Webhook, &only, &entry(EventKind::Sent, EventDetail::None)));
    }
}
