//! Retention: removes messages that ended, were reported, and are old.
//!
//! A round goes through the tenants page by page. One question tells which tenants of a page have anything
//! old; for these it removes slices, each of one transaction and shared by all of them, each by its own
//! settings. After a slice it rests for as long as the slice took, so that sending never waits long for the
//! writer. It stops when its time is up, remembers at which page and who was not served, and says that there
//! is more; so a tenant with much to remove does not delay the others. After the last page it removes other
//! expired data: keys and tombstones of removed messages, pages of the journal, and old entries of the audit
//! log.
//!
//! A message that has not ended, or that a subscriber is still to be notified of, is never removed; the store
//! guarantees that. After a failed round, the next one continues at the same tenant.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use postway_domain::{Tenant, TenantId, TenantSettings, Time, secret::SecretKey};
use postway_store::{
    Store, StoreError,
    record::{ExpungeRequest, OldestMail},
};
use tokio::time::Instant;

use crate::config;

/// Tenants read at once.
const PAGE: u32 = 500;
/// Messages, keys or pages removed in one transaction.
const SLICE: u32 = 512;
/// Slices of one page of tenants, or of one tenant's inbound mail, before it is the next one's turn.
const SLICES_IN_TURN: u32 = 20;
/// The journal goes back as far as the longest retention of a tenant, within these bounds: it is what the
/// feed shows.
const JOURNAL_MIN: Duration = Duration::from_secs(TenantSettings::REPORT_RETENTION_SECONDS);
const JOURNAL_MAX: Duration = Duration::from_secs(90 * 86_400);

/// Reported events are kept at least this long, because a row is also the memory that its event came: longer
/// than a signed call of any provider is accepted, which is two days.
const PROVIDER_EVENTS_MIN: Duration = Duration::from_secs(7 * 86_400);

/// The position of the rounds among the tenants.
pub struct RetentionRounds {
    /// Derives the key of the digests by which recipients of removed messages are still known.
    secret_key: Arc<SecretKey>,
    /// How long data of no tenant is retained, and data of tenants without a setting.
    settings: config::RetentionSection,
    /// The last tenant of the page that was served last.
    after: Option<TenantId>,
    /// Tenants with old mail that were not served when their page's turn ended. They are the first ones at
    /// its next turn.
    unseen: BTreeSet<TenantId>,
    /// The longest retention of a tenant in this pass.
    longest: Duration,
    /// Whether a tenant had more to remove than one turn allows.
    left: bool,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionRound {
    /// Messages removed.
    pub removed: u64,
    /// Whether there is more to do at once.
    pub more: bool,
}

impl RetentionRounds {
    /// Begins with the first tenant.
    pub fn new(secret_key: Arc<SecretKey>, settings: config::RetentionSection) -> Self {
        Self { secret_key, settings, after: None, unseen: BTreeSet::new(), longest: JOURNAL_MIN, left: false }
    }

    /// Removes what is due at `now`, for about `time_max` at most, but at least one slice.
    pub async fn round(
        &mut self,
        store: &dyn Store,
        now: Time,
        time_max: Duration,
    ) -> Result<RetentionRound, StoreError> {
        let deadline = Instant::now() + time_max;
        let mut removed = 0;
        loop {
            let page = store.tenants(self.after.as_ref(), PAGE).await?;
            // `cleanup` removes the remains of deleted tenants.
            let living: Vec<&Tenant> = page.iter().filter(|tenant| tenant.deleted_at.is_none()).collect();
            removed += self.expunge_page(store, &living, now, deadline).await?;
            if page.len() < PAGE as usize {
                break;
            }
            self.after = page.last().map(|tenant| tenant.id.clone());
            if Instant::now() >= deadline {
                return Ok(RetentionRound { removed, more: true });
            }
        }
        let kept = std::mem::replace(&mut self.longest, JOURNAL_MIN).min(JOURNAL_MAX);
        let mut more = std::mem::take(&mut self.left);
        self.after = None;
        more |= remove_slices(deadline, || store.trim_journal(now.minus(kept), SLICE)).await?;
        more |= remove_slices(deadline, || store.forget_traces(now, SLICE)).await?;
        if let Some(kept) = self.settings.audit {
            more |= remove_slices(deadline, || store.trim_audit(now.minus(kept), SLICE)).await?;
        }
        Ok(RetentionRound { removed, more })
    }

    /// Serves a page of tenants, and returns how many messages were removed.
    async fn expunge_page(
        &mut self,
        store: &dyn Store,
        tenants: &[&Tenant],
        now: Time,
        deadline: Instant,
    ) -> Result<u64, StoreError> {
        let ids: Vec<TenantId> = tenants.iter().map(|tenant| tenant.id.clone()).collect();
        let ages = store.oldest_mail(&ids).await?;
        let ages: HashMap<&TenantId, &OldestMail> = ages.iter().map(|age| (&age.tenant, age)).collect();
        let mut requests = Vec::new();
        for tenant in tenants {
            let kept = tenant.settings.report_retention(self.settings.reported);
            self.longest = self.longest.max(kept);
            let is_old = |came_at: Option<Time>| came_at.is_some_and(|at| at < now.minus(kept));
            let Some(age) = ages.get(&tenant.id) else { continue };
            if is_old(age.inbound) {
                self.expunge_inbound(store, tenant, now, deadline).await?;
            }
            let before = now.minus(kept.max(PROVIDER_EVENTS_MIN));
            if age.provider_event.is_some_and(|at| at < before) {
                let removing = || store.expunge_provider_events(&tenant.id, before, SLICE);
                self.left |= remove_slices(deadline, removing).await?;
            }
            if is_old(age.message) {
                requests.push(self.request(tenant, kept, now));
            }
        }
        requests.sort_by_key(|request| !self.unseen.remove(&request.tenant));
        let (mut removed, mut unseen) = (0, Vec::new());
        for _ in 0..SLICES_IN_TURN {
            if requests.is_empty() {
                break;
            }
            let began = Instant::now();
            let slice = store.expunge_some(requests.clone(), SLICE).await?;
            removed += u64::from(slice.removed);
            let mut by_tenant: HashMap<TenantId, ExpungeRequest> =
                requests.drain(..).map(|request| (request.tenant.clone(), request)).collect();
            let next = slice.unseen.iter().chain(&slice.unfinished);
            requests.extend(next.filter_map(|tenant| by_tenant.remove(tenant)));
            unseen = slice.unseen;
            if Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(began.elapsed()).await;
        }
        self.left |= !requests.is_empty();
        self.unseen.extend(unseen);
        Ok(removed)
    }

    fn request(&self, tenant: &Tenant, kept: Duration, now: Time) -> ExpungeRequest {
        ExpungeRequest {
            tenant: tenant.id.clone(),
            reported_before: now.minus(kept),
            unreported_before: now.minus(tenant.settings.unreported_retention(self.settings.reported)),
            now,
            recipient_key: self.secret_key.derive(Tenant::TRACE_KEY_LABEL),
            limit: SLICE,
        }
    }

    /// Removes a tenant's inbound mail that was processed long enough ago.
    async fn expunge_inbound(
        &mut self,
        store: &dyn Store,
        tenant: &Tenant,
        now: Time,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let before = now.minus(tenant.settings.report_retention(self.settings.reported));
        let unreported_before = now.minus(tenant.settings.unreported_retention(self.settings.reported));
        for _ in 0..SLICES_IN_TURN {
            if store.expunge_inbound(&tenant.id, before, unreported_before, SLICE).await? < SLICE {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        self.left = true;
        Ok(())
    }
}

/// Removes slice by slice, and returns whether there is more when the time is up.
async fn remove_slices<F: Future<Output = Result<u32, StoreError>>>(
    deadline: Instant,
    slice: impl Fn() -> F,
) -> Result<bool, StoreError> {
    loop {
        let began = Instant::now();
        if slice().await? < SLICE {
            return Ok(false);
        }
        if Instant::now() >= deadline {
            return Ok(true);
        }
        tokio::time::sleep(began.elapsed()).await;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use bytes::Bytes;
    use postway_domain::{
        Account, AccountSettings, EventKind, Lane, MessagePriority, MessageState, MessageStatus, MessageUid,
        RecipientKind, id::AuditId, message::OnDoubt,
    };
    use postway_store::{
        DirectoryStore, IntakeStore, Read, ReportStore,
        memory::MemoryStore,
        record::{
            Acceptance, AuditEntry, DirectoryChange, MessageContent, NewEvent, NewMessage, NewRecipient,
        },
    };

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const ENOUGH: Duration = Duration::from_secs(60);

    pub(crate) fn start() -> Time {
        Time::from_millis(1_700_000_000_000)
    }

    fn retention() -> RetentionRounds {
        rounds(config::RetentionSection { audit: None, reported: DAY * 7 })
    }

    fn rounds(settings: config::RetentionSection) -> RetentionRounds {
        RetentionRounds::new(Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap()), settings)
    }

    pub(crate) async fn tenant(store: &MemoryStore, id: &str, settings: TenantSettings) {
        let tenant = Tenant { settings, ..Tenant::new(id.parse().unwrap(), id, start()) };
        let account = Account {
            tenant: tenant.id.clone(),
            id: "relay".parse().unwrap(),
            settings: AccountSettings::sandbox(),
            secret: None,
            version: 1,
            created_at: start(),
            updated_at: start(),
        };
        store.change(DirectoryChange::CreateTenant(tenant, vec![account]), None).await.unwrap();
    }

    pub(crate) async fn messages(store: &MemoryStore, tenant: &str, state: MessageState, count: u32) {
        let message = |_| NewMessage {
            uid: MessageUid::new(start(), &mut rand::rng()),
            lane: Lane {
                tenant: tenant.parse().unwrap(),
                account: "relay".parse().unwrap(),
                priority: MessagePriority::Normal,
                batch: None,
                destination: None,
            },
            client_id: None,
            idempotency: None,
            fingerprint: [0; 32],
            state,
            due_at: (state == MessageState::Ready).then(start),
            created_at: start(),
            expires_at: None,
            on_doubt: OnDoubt::Hold,
            recipients: vec![NewRecipient {
                address: "ada@example.net".parse().unwrap(),
                kind: RecipientKind::To,
            }],
            content: MessageContent {
                sender: "shop@example.com".to_owned(),
                message_id: "m@example.com".to_owned(),
                subject: "Your order".to_owned(),
                request_id: None,
                external_id: None,
                tags: Vec::new(),
                metadata: None,
                eight_bit: false,
                smtputf8: false,
                raw: Bytes::from_static(b"Subject: Your order\r\n\r\n").into(),
                payload: None,
                sensitive: false,
                dsn: None,
            },
            batch_key: None,
            error: None,
            collapse_key: None,
            events: vec![NewEvent { kind: EventKind::Accepted, data: None }],
            recipient: None,
            settled: None,
            trace: None,
        };
        let accepted = store.accept((0..count).map(message).collect()).await.unwrap();
        assert!(accepted.iter().all(|accepted| matches!(accepted, Acceptance::Accepted { .. })));
        // A message is not removed while its events may still have subscribers.
        store.sequence(1_000).await.unwrap();
        store.fan_out(start(), 1_000).await.unwrap();
    }

    pub(crate) async fn count(store: &MemoryStore, tenant: &str, status: MessageStatus) -> i64 {
        let stats = store.stats(Some(&tenant.parse().unwrap()), start()).await.unwrap();
        stats.by_status.get(&status).copied().unwrap_or(0)
    }

    #[tokio::test]
    async fn each_tenant_keeps_what_ended_for_its_own_time_and_what_has_not_for_ever() {
        let store = MemoryStore::new();
        tenant(&store, "brief", TenantSettings { report_retention_seconds: Some(60), ..Default::default() })
            .await;
        tenant(&store, "usual", TenantSettings::default()).await;
        for id in ["brief", "usual"] {
            messages(&store, id, MessageState::Suppressed, 3).await;
            messages(&store, id, MessageState::Ready, 2).await;
        }
        let mut retention = retention();
        let round = retention.round(&store, start().plus(DAY), ENOUGH).await.unwrap();
        assert_eq!(round, RetentionRound { removed: 3, more: false });
        assert_eq!(count(&store, "brief", MessageStatus::Suppressed).await, 0);
        assert_eq!(count(&store, "usual", MessageStatus::Suppressed).await, 3);
        let round = retention.round(&store, start().plus(DAY * 30), ENOUGH).await.unwrap();
        assert_eq!(round, RetentionRound { removed: 3, more: false });
        for id in ["brief", "usual"] {
            assert_eq!(count(&store, id, MessageStatus::Ready).await, 2, "what has not ended stays");
        }
    }

    #[tokio::test]
    async fn a_tenant_that_says_nothing_keeps_as_long_as_the_gateway_says() {
        let store = MemoryStore::new();
        tenant(&store, "own", TenantSettings { retention_days: Some(2), ..Default::default() }).await;
        tenant(&store, "usual", TenantSettings::default()).await;
        for id in ["own", "usual"] {
            messages(&store, id, MessageState::Suppressed, 3).await;
        }
        let mut retention = rounds(config::RetentionSection { audit: None, reported: DAY });
        let later = start().plus(DAY + Duration::from_secs(1));
        assert_eq!(retention.round(&store, later, ENOUGH).await.unwrap().removed, 3);
        assert_eq!(count(&store, "own", MessageStatus::Suppressed).await, 3);
        assert_eq!(count(&store, "usual", MessageStatus::Suppressed).await, 0);
    }

    #[tokio::test]
    async fn the_audit_log_goes_back_as_far_as_it_is_told_or_for_ever() {
        let store = MemoryStore::new();
        for at in [start(), start().plus(DAY)] {
            let entry = AuditEntry {
                id: AuditId::new(at, &mut rand::rng()),
                at,
                actor: "admin".to_owned(),
                tenant: None,
                action: "traces.forget".to_owned(),
                target: "all".to_owned(),
                request_id: None,
                detail: None,
                salt: Some([5; 16]),
            };
            store.change(DirectoryChange::Forget(at), Some(entry)).await.unwrap();
        }
        let later = start().plus(DAY * 400);
        let left = async || store.audit(None, None, 9).await.unwrap().len();
        retention().round(&store, later, ENOUGH).await.unwrap();
        assert_eq!(left().await, 2);
        let days = |days| config::RetentionSection { audit: Some(DAY * days), reported: DAY * 7 };
        for (kept_for, expected) in [(400, 2), (399, 1), (1, 0)] {
            rounds(days(kept_for)).round(&store, later, ENOUGH).await.unwrap();
            assert_eq!(left().await, expected, "kept for {kept_for} days");
        }
    }

    /// A slice has room for some tenants only; whoever it did not reach comes first in the next round.
    #[tokio::test]
    async fn many_tenants_are_all_served_however_short_a_round_is() {
        const TENANTS: u32 = 100;
        let store = MemoryStore::new();
        for number in 0..TENANTS {
            let id = format!("t{number:03}");
            tenant(&store, &id, TenantSettings::default()).await;
            let count = if number == 0 { 4 * SLICE } else { 20 };
            messages(&store, &id, MessageState::Suppressed, count).await;
        }
        let mut retention = retention();
        let later = start().plus(DAY * 30);
        let mut rounds = 0;
        while count(&store, "t099", MessageStatus::Suppressed).await > 0 {
            retention.round(&store, later, Duration::ZERO).await.unwrap();
            rounds += 1;
        }
        assert!(rounds <= 6, "the last tenant waited for {rounds} rounds");
        assert!(
            count(&store, "t000", MessageStatus::Suppressed).await > 0,
            "and not for the first one's backlog"
        );
        while retention.round(&store, later, ENOUGH).await.unwrap().more {}
        for number in 0..TENANTS {
            assert_eq!(count(&store, &format!("t{number:03}"), MessageStatus::Suppressed).await, 0);
        }
    }

    #[tokio::test]
    async fn a_round_without_time_left_goes_on_where_it_was() {
        let store = MemoryStore::new();
        for id in ["a", "b"] {
            tenant(&store, id, TenantSettings::default()).await;
            messages(&store, id, MessageState::Suppressed, SLICE + 1).await;
        }
        let mut retention = retention();
        let later = start().plus(DAY * 30);
        let mut removed = Vec::new();
        loop {
            let round = retention.round(&store, later, Duration::ZERO).await.unwrap();
            removed.push(round.removed);
            if !round.more {
                break;
            }
        }
        let slice = u64::from(SLICE);
        assert_eq!(removed, [slice, slice, 2], "the tenants share each slice");
        for id in ["a", "b"] {
            assert_eq!(count(&store, id, MessageStatus::Suppressed).await, 0);
        }
    }
}
