//! The methods of the port that sending does not use: forwarded unchanged, with the same injected faults.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Account, AccountId, AccountLimits, ApiKey, Contact, DkimKey, InboundRule, Incarnation, KeyDigest,
    KnownRecipient, Lane, LimitSpan, MailRoute, MailStream, MessageEvent, MessageStatus, MessageUid,
    ProviderHook, RecipientId, RecipientKey, Subscriber, Template, TemplateName, Tenant, TenantId, Time,
    User, UserName, WatchedMailbox,
    id::{
        AuditId, BatchCode, BulkActionId, ContactId, MailboxId, RouteId, RuleId, SessionId, StreamId,
        SubscriberId, UserId,
    },
    oauth::{OAuthOwner, OAuthState},
    quota::QuotaDay,
};
use postway_store::{
    BlobNameStore, BulkActionStore, CatalogueStore, DirectoryStore, HookStore, InboundStore, NodeStore,
    OperationStore, PeopleStore, PreparationStore, Read, ReportStore, RetentionStore, RouteStore, StoreError,
    StreamStore, record::*,
};

use super::FaultyStore;
use crate::simulation::world::PlantedFlaw;

/// Forwards calls unchanged.
macro_rules! pass {
    ($($port:ident { $($name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)* $(;; $($other:item)*)? })*) => {$(
        #[async_trait]
        impl $port for FaultyStore {
            $(async fn $name(&self, $($arg: $of),*) -> Result<$answer, StoreError> {
                self.call(stringify!($name), self.store.$name($($arg),*), |_| {}).await
            })*
            $($($other)*)?
        }
    )*};
}

pass! {
    PreparationStore {
        preparation_state(now: Time) -> PreparationState;
        claim_preparation(request: PrepareRequest) -> Vec<ToPrepare>;
        ;;
        async fn preparation_woken(&self) {
            self.hint(|| self.store.preparation_woken()).await
        }
    }
    BlobNameStore {
        reserve_blob(digest: [u8; 32], size: u64, now: Time) -> BlobName;
        condemn_blobs(before: Time, limit: u32) -> Vec<BlobName>;
        forget_blobs(gone: &[BlobName]) -> ();
    }
    StreamStore {
        streams(tenant: &TenantId, after: Option<&StreamId>, limit: u32) -> Vec<MailStream>;
        stream(tenant: &TenantId, id: &StreamId) -> Option<MailStream>;
        scoped_suppressions(filter: &ScopeFilter, after: Option<&SuppressionScope>, limit: u32) -> Vec<ScopedSuppression>;
        scoped_suppression(scope: &SuppressionScope) -> Option<ScopedSuppression>;
        decide(decision: ReaderDecision) -> ChangeResult;
    }
    RouteStore {
        routes(tenant: &TenantId) -> Vec<MailRoute>;
        route(tenant: &TenantId, id: &RouteId) -> Option<MailRoute>;
    }
    BulkActionStore {
        bulk_actions(tenant: &TenantId, before: Option<BulkActionId>, limit: u32) -> Vec<BulkAction>;
        bulk_action(tenant: &TenantId, id: BulkActionId) -> Option<BulkAction>;
        running_bulk_actions(after: Option<&TenantId>, limit: u32) -> Vec<BulkAction>;
        advance_bulk_action(step: BulkStep) -> Option<Vec<bool>>;
    }
    PeopleStore {
        user(key: &UserKey) -> Option<User>;
        users(after: Option<&UserName>, limit: u32) -> Vec<User>;
        user_session(id: SessionId) -> Option<UserSession>;
        user_sessions(user: UserId) -> Vec<UserSession>;
        audit_lines(after: i64, limit: u32) -> Vec<AuditLine>;
        audit_head() -> AuditHead;
    }
    CatalogueStore {
        template(tenant: &TenantId, name: &TemplateName, version: Option<i64>) -> Option<Template>;
        templates(tenant: &TenantId, after: Option<&TemplateName>, limit: u32) -> Vec<Template>;
        template_versions(tenant: &TenantId, name: &TemplateName, before: Option<i64>, limit: u32) -> Vec<Template>;
        recipient(tenant: &TenantId, key: &RecipientKey) -> Option<KnownRecipient>;
        recipients(tenant: &TenantId, address: Option<&str>, after: Option<RecipientId>, limit: u32) -> Vec<KnownRecipient>;
        domain_checks(tenant: &TenantId, limit: u32) -> Vec<DomainCheckRecord>;
        stale_domain_checks(before: Time, limit: u32) -> Vec<DomainCheckRecord>;
        dkim_keys(tenant: Option<&TenantId>, domain: Option<&str>) -> Vec<DkimKey>;
        link(uid: MessageUid, blob: &BlobName) -> Option<postway_store::record::FileLink>;
    }
    Read {
        message(tenant: &TenantId, key: &MessageKey) -> Option<MessageRecord>;
        search(tenant: &TenantId, filter: &MessageFilter, before: Option<MessageUid>, limit: u32) -> MessagePage;
        count(tenant: &TenantId, filter: &MessageFilter, most: u32) -> MessageCount;
        briefs(tenant: &TenantId, uids: &[MessageUid]) -> Vec<MessageBrief>;
        raw(tenant: &TenantId, uid: MessageUid) -> Option<StoredBody>;
        payload(tenant: &TenantId, uid: MessageUid) -> Option<StoredBody>;
        dialogue(tenant: &TenantId, uid: MessageUid) -> Option<AttemptDialogue>;
        pace(tenant: &TenantId, since: Time) -> Vec<SendingRate>;
        stats(tenant: Option<&TenantId>, now: Time) -> QueueStats;
    }
    DirectoryStore {
        tenant(id: &TenantId) -> Option<Tenant>;
        tenants(after: Option<&TenantId>, limit: u32) -> Vec<Tenant>;
        accounts(tenant: Option<&TenantId>) -> Vec<Account>;
        account(tenant: &TenantId, id: &AccountId) -> Option<Account>;
        key(digest: &KeyDigest) -> Option<ApiKey>;
        key_by_id(id: &str) -> Option<ApiKey>;
        keys(tenant: &TenantId) -> Vec<ApiKey>;
        is_session_ended(id: SessionId) -> bool;
        quota_use(tenant: &TenantId, day: QuotaDay) -> QuotaUse;
        oauth_state(owner: &OAuthOwner) -> Option<OAuthState>;
        oauth_states() -> Vec<OAuthState>;
        suspensions(tenant: &TenantId) -> Vec<SuspensionRecord>;
        batches(tenant: &TenantId, after: Option<&BatchCode>, limit: u32) -> Vec<BatchRecord>;
        batch_states(tenant: &TenantId, code: &BatchCode) -> BTreeMap<MessageStatus, i64>;
        account_gates(tenant: &TenantId, accounts: &[AccountId], now: Time) -> Vec<(AccountId, AccountGate)>;
        held(tenant: &TenantId, now: Time) -> i64;
        suppressions(tenant: &TenantId, after: Option<&str>, limit: u32) -> Vec<SuppressionRecord>;
        suppression(tenant: &TenantId, address: &str) -> Option<SuppressionRecord>;
        audit(tenant: Option<&TenantId>, before: Option<AuditId>, limit: u32) -> Vec<AuditEntry>;
        circuit(key: &AccountKey) -> Option<OpenCircuit>;
        circuits(tenant: Option<&TenantId>) -> Vec<OpenCircuit>;
        used(key: &AccountKey, limits: &AccountLimits, now: Time) -> Vec<(LimitSpan, LimitUse)>;
        ;;
        async fn change(
            &self,
            change: DirectoryChange,
            audit: Option<AuditEntry>,
        ) -> Result<ChangeResult, StoreError> {
            let sets_time = matches!(change, DirectoryChange::ShiftUse(..) | DirectoryChange::SetUseBack(..));
            if sets_time {
                self.world.trace.note(format_args!("{} asks for {change:?}", self.life.name));
            }
            if sets_time && self.world.has(PlantedFlaw::LeavesUseBehind) {
                return Ok(ChangeResult::Done);
            }
            self.call("change", self.store.change(change, audit), |_| {}).await
        }

        fn generation(&self) -> u64 {
            self.store.generation()
        }
    }
    NodeStore {
        nodes() -> Vec<NodeRecord>;
        strike(gone: &[Incarnation]) -> ();
        duty(name: &str) -> Option<DutyRecord>;
        take_duty(name: &str, seen: Option<DutyRecord>, by: Incarnation, at: Time) -> Option<i64>;
        ;;
        async fn beat(&self, node: &NodeBeat) -> Result<Vec<NodeRecord>, StoreError> {
            self.call("beat", self.store.beat(node), |_| self.life.note_beat()).await
        }
        fn is_shared(&self) -> bool {
            self.store.is_shared()
        }

        // The server's machine is set with the others.
        async fn server_time(&self) -> Result<Option<Time>, StoreError> {
            let now = async { Ok(Some(self.world.now())) };
            self.call("server_time", now, |_| {}).await
        }
    }
    ReportStore {
        sequence(limit: u32) -> u32;
        fan_out(now: Time, limit: u32) -> u32;
        feed(tenant: &TenantId, after: FeedPosition, limit: u32) -> Vec<FeedEvent>;
        feed_end(tenant: &TenantId) -> FeedPosition;
        report_state(now: Time) -> ReportState;
        claim_notifications(request: ReportRequest) -> Vec<ToNotify>;
        begin_calls(begun: Vec<BegunCall>) -> Vec<bool>;
        settle_notifications(notified: Vec<NotificationResult>) -> Vec<bool>;
        reclaim_notifications(alive: &[Incarnation], now: Time, limit: u32) -> u32;
        subscriber(tenant: &TenantId, id: &SubscriberId) -> Option<Subscriber>;
        subscribers(tenant: Option<&TenantId>) -> Vec<Subscriber>;
        notifications(tenant: &TenantId, uid: MessageUid) -> Vec<NotificationView>;
        refused_recipients(tenant: &TenantId, uids: &[MessageUid]) -> Vec<(MessageUid, i64)>;
        fates(tenant: &TenantId, uids: &[MessageUid]) -> Vec<postway_store::record::MessageOutcomes>;
        news(tenant: &TenantId, uids: &[MessageUid]) -> Vec<(MessageUid, MessageEvent)>;
        deliveries(tenant: &TenantId, subscriber: &SubscriberId, state: Option<NotificationState>, before: Option<(MessageUid, i64)>, limit: u32) -> DeliveryPage;
        notify_again(key: &NotificationKey, now: Time) -> bool;
        hasten_notifications(who: &DueSubscriber, now: Time, limit: u32) -> u32;
        resend_notifications(request: ResendRequest) -> ResendPage;
        ;;
        async fn report_woken(&self) {
            self.hint(|| self.store.report_woken()).await
        }
    }
    RetentionStore {
        trim_journal(before: Time, limit: u32) -> u32;
        trim_audit(before: Time, limit: u32) -> u32;
        tombstone(uid: MessageUid) -> Option<MessageTombstone>;
        forget_traces(now: Time, limit: u32) -> u32;
        expunge_some(requests: Vec<ExpungeRequest>, limit: u32) -> ExpungeSlice;
        oldest_mail(tenants: &[TenantId]) -> Vec<OldestMail>;
        erase(tenant: &TenantId, address: &str, now: Time, limit: u32) -> ErasureCounts;
        move_messages(moves: Vec<(MessageUid, Lane)>) -> u32;
        move_misplaced() -> LaneUpkeep;
        retire_lanes(now: Time) -> LaneUpkeep;
        statistics(tenant: &TenantId, since: Time, until: Time) -> Vec<StatisticsRow>;
    }
    HookStore {
        provider_hooks(tenant: Option<&TenantId>) -> Vec<ProviderHook>;
        provider_hook(key: &AccountKey) -> Option<ProviderHook>;
        hook_by_token(token: &KeyDigest) -> Option<ProviderHook>;
        add_provider_events(batch: ProviderEventBatch) -> ();
        provider_event_state(now: Time) -> ProcessingState;
        claim_provider_events(claim: ProviderEventClaim) -> Vec<ProviderEventToProcess>;
        settle_provider_events(done: Vec<ProviderEventResult>) -> Vec<bool>;
        reclaim_provider_events(alive: &[Incarnation], now: Time, limit: u32) -> u32;
        sent_through(provider_ids: &[String], uids: &[MessageUid]) -> Vec<SentThrough>;
        provider_events(filter: &ProviderEventFilter, before: Option<MessageUid>, limit: u32) -> Vec<ProviderEventView>;
        expunge_provider_events(tenant: &TenantId, before: Time, limit: u32) -> u32;
        ;;
        async fn provider_event_woken(&self) {
            self.hint(|| self.store.provider_event_woken()).await
        }
    }
    InboundStore {
        mailboxes(tenant: Option<&TenantId>) -> Vec<WatchedMailbox>;
        mailbox_states(tenant: Option<&TenantId>) -> Vec<MailboxState>;
        mailbox(key: &MailboxKey) -> Option<(WatchedMailbox, MailboxState)>;
        register(page: MailboxPage) -> RegistrationResult;
        note_mailbox(note: MailboxNote) -> ();
        route_state(now: Time) -> ProcessingState;
        claim_inbound(request: ProcessRequest) -> Vec<MailToProcess>;
        settle_inbound(routed: Vec<InboundMailResult>) -> Vec<bool>;
        reclaim_inbound(alive: &[Incarnation], now: Time, limit: u32) -> u32;
        rules(tenant: &TenantId, mailbox: Option<&MailboxId>) -> Vec<InboundRule>;
        rule(tenant: &TenantId, id: &RuleId) -> Option<InboundRule>;
        contacts(tenant: &TenantId, after: Option<&ContactId>, limit: u32) -> Vec<Contact>;
        contact(tenant: &TenantId, id: &ContactId) -> Option<Contact>;
        contact_named(tenant: &TenantId, name: &str) -> Option<Contact>;
        inbound(tenant: &TenantId, filter: &InboundFilter, before: Option<MessageUid>, limit: u32) -> Vec<InboundView>;
        inbound_one(tenant: &TenantId, uid: MessageUid) -> Option<InboundRecord>;
        inbound_raw(tenant: &TenantId, uid: MessageUid) -> Option<StoredBody>;
        replay_inbound(tenant: &TenantId, uid: MessageUid, now: Time) -> ChangeResult;
        replay_inbound_all(replay: InboundReplay) -> u32;
        resolve_inbound(tenant: &TenantId, uid: MessageUid, now: Time) -> ChangeResult;
        traced(uids: &[MessageUid]) -> Vec<TracedMessage>;
        receipt_page(tenant: &TenantId, uid: MessageUid, after: Option<ReceiptPlace>, limit: u32) -> Vec<StoredReceipt>;
        receipt_raw(tenant: &TenantId, uid: MessageUid, digest: [u8; 32]) -> Option<StoredBody>;
        time_out_receipts(now: Time, limit: u32) -> u32;
        expunge_inbound(tenant: &TenantId, before: Time, unreported_before: Time, limit: u32) -> u32;
        ;;
        async fn inbound_woken(&self) {
            self.hint(|| self.store.inbound_woken()).await
        }
    }
    OperationStore {
        ping() -> ();
        ;;
        fn commits(&self) -> u64 {
            self.store.commits()
        }

        async fn close(&self) {}
    }
}
