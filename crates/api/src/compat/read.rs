//! Messages with all that a door says of them, one or a page.

use futures::{StreamExt, TryStreamExt};
use postway_domain::{MessageUid, Status, Subscriber, TenantId, Time};
use postway_store::{
    Holds,
    record::{
        Filter, MessageKey, MessagePage, MessageRecord, MessageSummary, NotificationState, NotificationView,
    },
};

use crate::{
    error::ApiError,
    message::{
        self, list, show,
        view::{self, FailureView, HIDDEN},
    },
    page::Paging,
    state::App,
};

/// Messages read at once for a page.
const TOGETHER: usize = 16;
/// What has not ended.
pub(super) const ACTIVE: &[Status] = &[
    Status::Accepted,
    Status::Validating,
    Status::Ready,
    Status::Scheduled,
    Status::Sending,
    Status::InDoubt,
];

/// A message, who was told of it, and what holds it.
pub(super) struct Whole {
    pub(super) record: MessageRecord,
    pub(super) told: Vec<NotificationView>,
    /// What holds it back.
    pub(super) held_by: Vec<String>,
    /// Since when it has ended and nobody is still to be told.
    reported_at: Option<Time>,
}

impl Whole {
    /// The message that `given` names, by uid or the client's id.
    pub(super) async fn find(app: &App, tenant: &TenantId, given: &str) -> Result<Self, ApiError> {
        let record = message::find(app, tenant, given).await?;
        let holds = Holds::read(&*app.store, tenant, [&record.summary], app.clock.now()).await?;
        let (told, subscribers) = show::told(app, tenant, &record).await?;
        Ok(Self::new(record, told, &holds, &subscribers))
    }

    fn new(
        record: MessageRecord,
        told: Vec<NotificationView>,
        holds: &Holds,
        subscribers: &[Subscriber],
    ) -> Self {
        let held_by = holds.of(&record.summary);
        let reported_at = view::reported_at(&record, &told, subscribers);
        Self { record, told, held_by, reported_at }
    }

    /// The client's id, or the uid.
    pub(super) fn id(&self) -> String {
        let summary = &self.record.summary;
        summary.client_id.as_ref().map_or_else(|| summary.uid.to_string(), ToString::to_string)
    }

    /// The subject, unless nobody may read it.
    pub(super) fn subject(&self) -> &str {
        if self.record.summary.sensitive { HIDDEN } else { &self.record.summary.subject }
    }

    /// The latest failure.
    pub(super) fn failure(&self) -> Option<FailureView> {
        self.record.summary.error.as_deref().map(FailureView::read)
    }

    /// Why it is where it is, for people.
    pub(super) fn reason(&self) -> Option<String> {
        view::reason(self.record.summary.state, self.failure().as_ref())
    }

    /// Whether somebody is being told of it now.
    pub(super) fn is_being_told(&self) -> bool {
        self.told.iter().any(|told| told.state == NotificationState::Calling)
    }

    /// When everybody who was to be told had taken it; none where nobody was, or where one was given up on.
    pub(super) fn acknowledged_at(&self) -> Option<Time> {
        let taken = |told: &NotificationView| told.state == NotificationState::Acknowledged;
        self.reported_at.filter(|_| !self.told.is_empty() && self.told.iter().all(taken))
    }
}

/// Some messages, and where to go on.
pub(super) struct Page {
    pub(super) messages: Vec<Whole>,
    pub(super) next_cursor: Option<String>,
}

/// A page of the messages that match and stand in one of these states, newest first; in any, where none is named.
pub(super) async fn page(
    app: &App,
    tenant: &TenantId,
    filter: Filter,
    statuses: &[Status],
    paging: Paging,
) -> Result<Page, ApiError> {
    page_where(app, tenant, filter, statuses, paging, |_| true).await
}

/// The same without those that are not `wanted`, so it may be short.
pub(super) async fn page_where(
    app: &App,
    tenant: &TenantId,
    filter: Filter,
    statuses: &[Status],
    Paging { limit, cursor }: Paging,
    wanted: impl Fn(&MessageSummary) -> bool,
) -> Result<Page, ApiError> {
    let before = cursor.as_deref().map(list::read_cursor).transpose()?;
    let MessagePage { messages: mut found, next } =
        newest(app, tenant, filter, statuses, before, limit).await?;
    found.retain(wanted);
    let holds = Holds::read(&*app.store, tenant, &found, app.clock.now()).await?;
    let any_ended = found.iter().any(|message| message.state.status().is_final());
    let subscribers = match any_ended {
        true => app.store.subscribers(Some(tenant)).await?,
        false => Vec::new(),
    };
    let whole = |uid: MessageUid| async move {
        let Some(record) = app.store.message(tenant, &MessageKey::Uid(uid)).await? else { return Ok(None) };
        let told = app.store.notifications(tenant, uid).await?;
        Ok::<_, ApiError>(Some((record, told)))
    };
    let uids: Vec<MessageUid> = found.iter().map(|message| message.uid).collect();
    let read: Vec<_> = futures::stream::iter(uids)
        .map(whole)
        .buffered(TOGETHER)
        .try_filter_map(async |one| Ok(one))
        .try_collect()
        .await?;
    let messages =
        read.into_iter().map(|(record, told)| Whole::new(record, told, &holds, &subscribers)).collect();
    Ok(Page { messages, next_cursor: next.map(list::write_cursor) })
}

/// The newest of several states, from the newest of each.
async fn newest(
    app: &App,
    tenant: &TenantId,
    filter: Filter,
    statuses: &[Status],
    before: Option<MessageUid>,
    limit: u32,
) -> Result<MessagePage, ApiError> {
    if statuses.is_empty() {
        return Ok(app.store.search(tenant, &filter, before, limit).await?);
    }
    let mut pages = Vec::with_capacity(statuses.len());
    for &status in statuses {
        let of_one = Filter { status: Some(status), ..filter.clone() };
        pages.push(app.store.search(tenant, &of_one, before, limit).await?);
    }
    Ok(merged(pages, limit))
}

/// One page of several, as far down as all of them reach.
fn merged(pages: Vec<MessagePage>, limit: u32) -> MessagePage {
    let reaches = pages.iter().filter_map(|page| page.next).max();
    let mut messages: Vec<MessageSummary> = pages.into_iter().flat_map(|page| page.messages).collect();
    messages.retain(|message| reaches.is_none_or(|reaches| message.uid >= reaches));
    messages.sort_unstable_by_key(|message| std::cmp::Reverse(message.uid));
    // A message that moved in between was read in both its states.
    messages.dedup_by(|a, b| a.uid == b.uid);
    if messages.len() <= limit as usize {
        return MessagePage { messages, next: reaches };
    }
    messages.truncate(limit as usize);
    let next = messages.last().map(|last| last.uid);
    MessagePage { messages, next }
}
