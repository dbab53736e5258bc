//! Messages with everything that compatibility APIs show of them, one or a page.

use futures::{StreamExt, TryStreamExt};
use postway_domain::{EventKind, MessageState, MessageStatus, MessageUid, Subscriber, TenantId, Time};
use postway_store::{
    MessageBlockers,
    record::{
        MessageFilter, MessageKey, MessagePage, MessageRecord, MessageSummary, NotificationState,
        NotificationView,
    },
};

use crate::{
    http::{error::ApiError, pagination::PageRequest, query::QueryParameters},
    message::{
        self,
        read::{list, show},
        view::{self, FailureView, HIDDEN},
    },
    state::AppState,
};

/// Messages read at once for a page.
const TOGETHER: usize = 16;
/// The most messages of a page.
const PAGE_MAX: u32 = 500;
/// How often a page that is not full is continued.
const ROUNDS_MAX: usize = 20;
/// The most messages that are counted up to for a numbered page, and the most reads on the way.
const COUNTED_MAX: u32 = 10_000;
const COUNTS_MAX: usize = 40;
/// The statuses of messages that have not ended.
pub(super) const ACTIVE: &[MessageStatus] = &[
    MessageStatus::Accepted,
    MessageStatus::Validating,
    MessageStatus::Ready,
    MessageStatus::Scheduled,
    MessageStatus::Sending,
    MessageStatus::InDoubt,
];

/// A message, its notifications, and what blocks it.
pub(super) struct MessageWithStatus {
    pub(super) record: MessageRecord,
    pub(super) notifications: Vec<NotificationView>,
    /// What blocks it.
    pub(super) held_by: Vec<String>,
    /// When it had ended and was completely reported.
    reported_at: Option<Time>,
}

impl MessageWithStatus {
    /// The message that `given` names, by uid or the client's id.
    pub(super) async fn find(app: &AppState, tenant: &TenantId, given: &str) -> Result<Self, ApiError> {
        let record = message::find(app, tenant, given).await?;
        let holds = MessageBlockers::read(&*app.store, tenant, [&record.summary], app.clock.now()).await?;
        let (notifications, subscribers) = show::notifications_of(app, tenant, &record).await?;
        Ok(Self::new(record, notifications, &holds, &subscribers))
    }

    fn new(
        record: MessageRecord,
        notifications: Vec<NotificationView>,
        holds: &MessageBlockers,
        subscribers: &[Subscriber],
    ) -> Self {
        let held_by = holds.of(&record.summary);
        let reported_at = view::reported_at(&record, &notifications, subscribers);
        Self { record, notifications, held_by, reported_at }
    }

    /// The client's id, or the uid.
    pub(super) fn id(&self) -> String {
        let summary = &self.record.summary;
        summary.client_id.as_ref().map_or_else(|| summary.uid.to_string(), ToString::to_string)
    }

    /// The subject, unless it is sensitive.
    pub(super) fn subject(&self) -> &str {
        if self.record.summary.sensitive { HIDDEN } else { &self.record.summary.subject }
    }

    /// The latest failure.
    pub(super) fn failure(&self) -> Option<FailureView> {
        self.record.summary.error.as_deref().map(FailureView::read)
    }

    /// Why it is where it is, as a sentence.
    pub(super) fn reason(&self) -> Option<String> {
        view::reason(self.record.summary.state, self.failure().as_ref())
    }

    /// Whether a notification is pending.
    pub(super) fn has_pending_notification(&self) -> bool {
        self.notifications.iter().any(|notification| !notification.state.is_settled())
    }

    /// When the last notification was acknowledged; `None` if no notification of its end was sent, or one was
    /// given up.
    pub(super) fn acknowledged_at(&self) -> Option<Time> {
        let is_sent = self.record.summary.state == MessageState::Sent;
        let of_its_end = |notification: &NotificationView| match notification.kind {
            EventKind::Resolved => true,
            EventKind::Sent => is_sent,
            EventKind::Invalid
            | EventKind::Failed
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Suppressed
            | EventKind::Captured => !is_sent,
            _ => false,
        };
        let taken = |notification: &NotificationView| notification.state == NotificationState::Acknowledged;
        self.reported_at
            .filter(|_| self.notifications.iter().any(of_its_end) && self.notifications.iter().all(taken))
    }
}

/// `limit` and `cursor` of a list whose users know no pages: by default as many as one page can have.
pub(super) fn long_page(query: &mut QueryParameters) -> PageRequest {
    PageRequest { limit: page_size(query, "limit").unwrap_or(PAGE_MAX), cursor: query.take("cursor") }
}

/// The requested page size, under this parameter name.
pub(super) fn page_size(query: &mut QueryParameters, name: &str) -> Option<u32> {
    query.parse(name, |text| match text.parse() {
        Ok(size @ 1..=PAGE_MAX) => Ok(size),
        _ => Err(format!("must be a number from 1 to {PAGE_MAX}")),
    })
}

/// A page of messages.
#[derive(Default)]
pub(super) struct CompatMessagePage {
    pub(super) messages: Vec<MessageWithStatus>,
    pub(super) next_cursor: Option<String>,
}

/// A page of the messages that match and have one of these statuses, newest first; any status if the list is
/// empty.
pub(super) async fn page(
    app: &AppState,
    tenant: &TenantId,
    filter: MessageFilter,
    statuses: &[MessageStatus],
    paging: PageRequest,
) -> Result<CompatMessagePage, ApiError> {
    page_where(app, tenant, filter, statuses, paging, |_| true).await
}

/// A page of the messages for which `wanted` returns true. If few match, it may be short.
pub(super) async fn page_where(
    app: &AppState,
    tenant: &TenantId,
    filter: MessageFilter,
    statuses: &[MessageStatus],
    PageRequest { limit, cursor }: PageRequest,
    wanted: impl Fn(&MessageSummary) -> bool,
) -> Result<CompatMessagePage, ApiError> {
    let before = cursor.as_deref().map(list::read_cursor).transpose()?;
    let found = wanted_from(app, tenant, &filter, statuses, before, limit, &wanted).await?;
    with_status(app, tenant, found).await
}

/// The page with this number, from 1, of pages with `size` messages. One past the end is empty.
pub(super) async fn page_numbered(
    app: &AppState,
    tenant: &TenantId,
    filter: MessageFilter,
    statuses: &[MessageStatus],
    (number, size): (u32, u32),
    wanted: impl Fn(&MessageSummary) -> bool,
) -> Result<CompatMessagePage, ApiError> {
    let too_far = || {
        let message = format!("pages have numbers up to the {COUNTED_MAX}th mail: go on with a cursor");
        ApiError::field("page", message)
    };
    let (mut left, mut before) = (number.saturating_sub(1).saturating_mul(size), None);
    if left.saturating_add(size) > COUNTED_MAX {
        return Err(too_far());
    }
    for _ in 0..COUNTS_MAX {
        let limit = if left == 0 { size } else { left.min(PAGE_MAX) };
        let found = wanted_from(app, tenant, &filter, statuses, before, limit, &wanted).await?;
        if left == 0 {
            return with_status(app, tenant, found).await;
        }
        left = left.saturating_sub(u32::try_from(found.messages.len()).unwrap_or(u32::MAX));
        match found.next {
            None => return Ok(CompatMessagePage::default()),
            next => before = next,
        }
    }
    Err(too_far())
}

/// The newest messages that match, after examining some thousands.
async fn wanted_from(
    app: &AppState,
    tenant: &TenantId,
    filter: &MessageFilter,
    statuses: &[MessageStatus],
    mut before: Option<MessageUid>,
    limit: u32,
    wanted: impl Fn(&MessageSummary) -> bool,
) -> Result<MessagePage, ApiError> {
    let mut kept = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let page = newest(app, tenant, filter.clone(), statuses, before, limit).await?;
        let last = page.messages.last().map(|last| last.uid);
        for message in page.messages.into_iter().filter(&wanted) {
            let uid = message.uid;
            kept.push(message);
            if kept.len() == limit as usize {
                let next = if last == Some(uid) { page.next } else { Some(uid) };
                return Ok(MessagePage { messages: kept, next });
            }
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok(MessagePage { messages: kept, next: before })
}

/// Adds everything that is shown.
async fn with_status(
    app: &AppState,
    tenant: &TenantId,
    MessagePage { messages: found, next }: MessagePage,
) -> Result<CompatMessagePage, ApiError> {
    let holds = MessageBlockers::read(&*app.store, tenant, &found, app.clock.now()).await?;
    let any_ended = found.iter().any(|message| message.state.status().is_final());
    let subscribers = match any_ended {
        true => app.store.subscribers(Some(tenant)).await?,
        false => Vec::new(),
    };
    let entry = |uid: MessageUid| async move {
        let Some(record) = app.store.message(tenant, &MessageKey::Uid(uid)).await? else { return Ok(None) };
        let notifications = app.store.notifications(tenant, uid).await?;
        Ok::<_, ApiError>(Some((record, notifications)))
    };
    let uids: Vec<MessageUid> = found.iter().map(|message| message.uid).collect();
    let read: Vec<_> = futures::stream::iter(uids)
        .map(entry)
        .buffered(TOGETHER)
        .try_filter_map(async |one| Ok(one))
        .try_collect()
        .await?;
    let messages = read
        .into_iter()
        .map(|(record, notifications)| MessageWithStatus::new(record, notifications, &holds, &subscribers))
        .collect();
    Ok(CompatMessagePage { messages, next_cursor: next.map(list::write_cursor) })
}

/// The newest messages of several statuses, merged from the newest of each.
async fn newest(
    app: &AppState,
    tenant: &TenantId,
    filter: MessageFilter,
    statuses: &[MessageStatus],
    before: Option<MessageUid>,
    limit: u32,
) -> Result<MessagePage, ApiError> {
    if statuses.is_empty() {
        return Ok(app.store.search(tenant, &filter, before, limit).await?);
    }
    let mut pages = Vec::with_capacity(statuses.len());
    for &status in statuses {
        let of_one = MessageFilter { status: Some(status), ..filter.clone() };
        pages.push(app.store.search(tenant, &of_one, before, limit).await?);
    }
    Ok(merged(pages, limit))
}

/// Merges several pages, as far down as all of them reach.
fn merged(pages: Vec<MessagePage>, limit: u32) -> MessagePage {
    let reaches = pages.iter().filter_map(|page| page.next).max();
    let mut messages: Vec<MessageSummary> = pages.into_iter().flat_map(|page| page.messages).collect();
    messages.retain(|message| reaches.is_none_or(|reaches| message.uid >= reaches));
    messages.sort_unstable_by_key(|message| std::cmp::Reverse(message.uid));
    // A message that changed its status in between was read in both.
    messages.dedup_by(|a, b| a.uid == b.uid);
    if messages.len() <= limit as usize {
        return MessagePage { messages, next: reaches };
    }
    messages.truncate(limit as usize);
    let next = messages.last().map(|last| last.uid);
    MessagePage { messages, next }
}
