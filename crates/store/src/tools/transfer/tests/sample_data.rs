//! A store with messages in every state and of every size, and all of it as a port's reader sees it.

use bytes::Bytes;
use postway_domain::{
    AccountLimits, DkimAlgorithm, DkimKey, HookProvider, KnownRecipient, MailStream, MessagePriority,
    MessageUid, PersonalDigest, RecipientId, RecipientKey, Template, TenantId,
    id::{AuditId, SessionId},
    message::AttemptOutcome,
    quota::QuotaDay,
    secret::SealedSecret,
};

use super::{inbound_data, reporting_data};
use crate::{
    conformance::{
        Shared, archive, bulk, domain_reports, hooks, keys, limits, oauth, people, preparation, recipients,
        routes,
        sample::{self, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at},
        stage, streams,
        suppress::suppression,
    },
    record::{
        ArchiveFilter, AuditEntry, BlobName, BlobRef, ChangeResult, DirectoryChange, MessageChange,
        MessageFilter, MessageKey, NewLink, NewProviderEvent, OpenCircuit, PreparedMessage,
        ProviderEventBatch, ProviderEventFilter, ScopeFilter, StoredBody, SuspensionScope,
    },
};

/// Messages that wait: several pages of them, of their recipients and of their events.
const WAITING: u32 = 1_100;
/// Three of these and a page is over its bytes.
const LARGE_BYTES: usize = 3 * 1024 * 1024;

/// Fills an empty store.
pub async fn furnish(store: &Shared) {
    stage::open(store).await;
    store.set_default_account(&sample::tenant(), &OTHER_ACCOUNT.parse().unwrap()).await.unwrap();
    settle(store).await;
    inbound_data::arrive(store).await;
    manage(store).await;
    for chunk in (1_000..1_000 + WAITING).collect::<Vec<_>>().chunks(500) {
        let messages = chunk.iter().map(|number| waiting(*number).build()).collect();
        store.accept(messages).await.unwrap();
    }
    for number in 5_000..5_004 {
        let raw = Bytes::from(vec![number as u8; LARGE_BYTES + number as usize]);
        stage::accept(store, Sample::new(number).content(|content| content.raw = raw.into())).await;
    }
    // No body at all, and bytes that are no text.
    stage::accept(store, Sample::new(5_010).content(|content| content.raw = StoredBody::EMPTY)).await;
    let raw = Bytes::from((0..=255).collect::<Vec<u8>>());
    stage::accept(store, Sample::new(5_011).content(|content| content.raw = raw.into())).await;
    prepare(store).await;
    catalogue(store).await;
    reporting_data::tell(store).await;
}

fn waiting(number: u32) -> Sample {
    let sample = Sample::new(number)
        .created(i64::from(number))
        .client_id(&format!("client-{number}"))
        .key(&format!("key {number}"))
        .body(number as u8)
        .to(&format!("Person-{number}@Example.org"))
        .content(|content| {
            content.tags = vec![format!("tag {}", number % 7), "Größe".to_owned(), "größe ".to_owned()];
            content.subject = format!("Grüße 📬 {number}");
            content.metadata = Some(r#"{"order":"\u0000"}"#.to_owned());
            content.request_id = Some(format!("request {number}"));
            content.external_id = Some(format!("external-{number}"));
            content.smtputf8 = true;
        });
    match number % 4 {
        0 => sample.from(OTHER_TENANT, OTHER_ACCOUNT).batch("spring"),
        1 => sample.send_at(i64::from(number) * 1_000).priority(MessagePriority::High),
        2 => sample.expires(i64::from(number) * 2_000).hold_in_doubt(),
        _ => sample.to("second@example.org").to("third@example.org"),
    }
}

/// One message for each way to end, and two in mid-air.
async fn settle(store: &Shared) {
    let mut sent = stage::accept_and_claim(store, Sample::new(1), 1).await;
    assert!(stage::commit_wire(store, &mut sent, at(1)).await);
    let mut change = stage::outcome(&sent, true, AttemptOutcome::Sent, at(2));
    if let Some(attempt) = &mut change.attempt {
        attempt.reply = Some(sample::reply(250, "2.0.0 ok \0 queued"));
        attempt.provider_message_id = Some("Provider-1 ".to_owned());
    }
    assert!(stage::apply(store, change).await);

    let failed =
        stage::accept_and_claim(store, Sample::new(2).to("a@example.org").to("b@example.org"), 2).await;
    let mut change = MessageChange {
        exhausted: true,
        retries: Some(5),
        error: Some(r#"{"kind":"exhausted"}"#.to_owned()),
        ..stage::outcome(&failed, false, AttemptOutcome::Exhausted, at(20))
    };
    if let Some(attempt) = &mut change.attempt {
        attempt.dialogue = Some("C: MAIL FROM:<a@example.com>\r\nS: 451 größer".to_owned());
    }
    assert!(stage::apply(store, change).await);

    let mut doubtful = stage::accept_and_claim(store, Sample::new(3), 3).await;
    stage::doubt(store, &mut doubtful, Some(at(9_000_000)), at(30)).await;

    stage::accept_and_claim(store, Sample::new(4), 4).await;
    let mut on_the_wire = stage::accept_and_claim(store, Sample::new(5), 5).await;
    assert!(stage::commit_wire(store, &mut on_the_wire, at(40)).await);
}

/// A message that is composed and links to a file, others that are not composed yet, and one whose bytes are
/// elsewhere.
async fn prepare(store: &Shared) {
    stage::accept(store, Sample::new(33).uncomposed("{}", None)).await;
    for one in preparation::claim(store, 7, at(0), 9).await {
        let file = NewLink {
            blob: blob(3),
            filename: "größe.pdf".to_owned(),
            content_type: "application/pdf".to_owned(),
            expires_at: at(99),
        };
        let prepared =
            PreparedMessage { links: vec![file], ..preparation::composed("Subject: linked\r\n\r\n") };
        assert!(stage::apply(store, preparation::done(&one, prepared, at(1))).await);
    }
    stage::accept(store, Sample::new(34).uncomposed("{}", None)).await;
    assert_eq!(preparation::claim(store, 8, at(45), 1).await.len(), 1);
    let settled = Some(r#"{"größe":1}"#);
    stage::accept(store, Sample::new(30).uncomposed("{\"to\":\"größe\"}", settled)).await;
    let large = Sample::new(31).uncomposed("", None).content(|content| {
        content.payload = Some(StoredBody::Blob(blob(1)));
        content.sensitive = true;
    });
    stage::accept(store, large.created(9_000_000)).await;
    let known = RecipientId::from_bytes([7; 16]);
    let elsewhere = Sample::new(32).send_at(9_000_000).known(known);
    stage::accept(store, elsewhere.content(|content| content.raw = StoredBody::Blob(blob(2)))).await;
    store.reserve_blob([9; 32], 99, at(5)).await.unwrap();
}

/// What content is made with.
async fn catalogue(store: &Shared) {
    let template = Template {
        tenant: sample::tenant(),
        name: "welcome".parse().unwrap(),
        version: 1,
        subject: "Grüße".to_owned(),
        html: Some("<p>📬</p>".to_owned()),
        text: None,
        mjml: Some("<mjml/>".to_owned()),
        description: Some("Größe".to_owned()),
        sample: Some("{}".to_owned()),
        layout: Some("base".parse().unwrap()),
        inline_css: true,
        created_at: at(1),
    };
    let second = Template { version: 2, mjml: None, ..template.clone() };
    let whole = KnownRecipient {
        external_id: Some("Größe ".to_owned()),
        name: Some("Ada".to_owned()),
        locale: Some("de-AT".parse().unwrap()),
        personal_number: Some(SealedSecret(vec![0, 255])),
        personal_number_digest: Some(PersonalDigest([5; 32])),
        personal_number_masked: Some("***1".to_owned()),
        ..recipients::recipient(TENANT, 7)
    };
    let key = DkimKey {
        tenant: sample::tenant(),
        domain: "example.com".to_owned(),
        selector: "one".to_owned(),
        algorithm: DkimAlgorithm::Ed25519,
        private: SealedSecret(vec![1, 2, 0]),
        public: "k=ed25519; p=AAAA".to_owned(),
        active: true,
        created_at: at(2),
    };
    for change in [
        DirectoryChange::CreateTemplate(template),
        DirectoryChange::CreateTemplate(second),
        DirectoryChange::CreateRecipient(whole),
        DirectoryChange::CreateRecipient(recipients::recipient(OTHER_TENANT, 8)),
        DirectoryChange::DeleteRecipient(
            OTHER_TENANT.parse().unwrap(),
            RecipientId::from_bytes([8; 16]),
            at(3),
        ),
        DirectoryChange::CreateDkimKey(key),
    ] {
        assert_eq!(stage::direct(store, change).await, ChangeResult::Done);
    }
}

fn blob(n: u8) -> BlobRef {
    BlobRef { name: BlobName { digest: [n; 32], generation: i64::from(n) }, size: 1 << 30 }
}

/// What the samples' account may send.
const LIMITS: AccountLimits = AccountLimits {
    per_minute: 9,
    per_hour: 99,
    per_day: 999,
    behavior: postway_domain::limit::LimitBehavior::Defer,
};

/// Whatever operators do, and what it leaves behind.
async fn manage(store: &Shared) {
    let entry = AuditEntry {
        id: AuditId::new(at(3), &mut rand::rng()),
        at: at(3),
        actor: "admin".to_owned(),
        tenant: Some(sample::tenant()),
        action: "key.create".to_owned(),
        target: "key-1".to_owned(),
        request_id: Some("request 3".to_owned()),
        detail: Some(r#"{"name":"Größe"}"#.to_owned()),
        salt: Some([5; 16]),
    };
    let key = DirectoryChange::CreateKey(keys::key(TENANT, "key-1", 3));
    store.change(key, Some(entry)).await.unwrap();
    let bare =
        postway_domain::ApiKey { networks: vec![], expires_at: None, ..keys::key(OTHER_TENANT, "key-2", 4) };
    let circuit = OpenCircuit {
        key: sample::key(TENANT, OTHER_ACCOUNT),
        code: "auth_failed".to_owned(),
        reason: "535 \0 Größe".to_owned(),
        opened_at: at(4),
        open_until: at(5),
        faults: 7,
    };
    let list = [suppression(TENANT, "größe@example.org"), suppression(OTHER_TENANT, "x@example.org")];
    for change in [
        DirectoryChange::CreateKey(bare),
        DirectoryChange::TouchKeys(vec![("key-1".to_owned(), at(5))]),
        DirectoryChange::RevokeKey(OTHER_TENANT.parse().unwrap(), "key-2".to_owned(), at(6)),
        DirectoryChange::CreateUser(people::user(3, "ada")),
        DirectoryChange::BeginUserSession(people::session(4, &people::user(3, "ada"), 9_000_000)),
        DirectoryChange::EndSession(SessionId::from_bytes([5; 16]), at(9_000_000)),
        DirectoryChange::LeaseQuota(crate::conformance::quotas::lease(TENANT, 1, 7)),
        DirectoryChange::WarnOfQuota(TENANT.parse().unwrap(), QuotaDay(1), 80),
        DirectoryChange::PutOAuthState(oauth::state(TENANT, 1, b"sealed \0 tokens"), None),
        DirectoryChange::PutProviderHook(hooks::hook(&sample::key(TENANT, OTHER_ACCOUNT), 5), None),
        DirectoryChange::OpenCircuit(circuit),
        DirectoryChange::Suppress(list.into()),
        DirectoryChange::SuppressScoped(vec![
            streams::scoped(Some(TENANT), "größe@example.org", Some("news")),
            streams::scoped(None, "*@nowhere.example", None),
        ]),
        DirectoryChange::CreateStream(streams::stream("news")),
        DirectoryChange::CreateStream(MailStream {
            tenant: sample::other_tenant(),
            ..streams::stream("spring")
        }),
        DirectoryChange::CreateRoute(routes::route("news", 3)),
        DirectoryChange::CreateBulkAction(bulk::action(1)),
        DirectoryChange::PutDomainCheck(bulk::check("example.org", 3)),
        DirectoryChange::PutArchived(archive::copy(1, Some(9))),
        DirectoryChange::PutArchived(archive::copy(2, None)),
    ] {
        stage::direct(store, change).await;
    }
    domain_reports::bring(store, 70, vec![domain_reports::report(1)]).await;
    let batch = ProviderEventBatch {
        key: sample::key(TENANT, OTHER_ACCOUNT),
        provider: HookProvider::Ses,
        at: at(7),
        events: vec![hooks::event(1), NewProviderEvent { once: Some([9; 32]), ..hooks::event(2) }],
    };
    store.add_provider_events(batch).await.unwrap();
    for scope in ["spring", "unseen"].map(|code| SuspensionScope::Batch(code.parse().unwrap())) {
        stage::suspend(store, scope).await;
    }
    stage::accept(store, Sample::new(20).collapse("Größe ").send_at(8_000_000)).await;
    stage::accept(store, Sample::new(21).collapse("Größe ")).await;
    assert_eq!(limits::claim(store, LIMITS, 6, at(50), 9).await.len(), 1);
}

/// What the port shows of one tenant, except its messages.
async fn managed(store: &Shared, tenant: &TenantId) -> Vec<String> {
    let installation = ScopeFilter { tenant: None, stream: None };
    let own = ScopeFilter { tenant: Some(tenant.clone()), ..installation.clone() };
    let mut lines = vec![
        format!("{:?}", store.keys(tenant).await.unwrap()),
        format!("{:?}", store.suspensions(tenant).await.unwrap()),
        format!("{:?}", store.batches(tenant, None, 99).await.unwrap()),
        format!("{:?}", store.suppressions(tenant, None, 99).await.unwrap()),
        format!("{:?}", store.streams(tenant, None, 99).await.unwrap()),
        format!("{:?}", store.busiest_streams(at(-9_000_000), 99).await.unwrap()),
        format!("{:?}", store.routes(tenant).await.unwrap()),
        format!("{:?}", store.bulk_actions(tenant, None, 99).await.unwrap()),
        format!("{:?}", store.domain_checks(tenant, 99).await.unwrap()),
        format!("{:?}", store.archive(tenant, &ArchiveFilter::default(), None, 99).await.unwrap()),
        format!("{:?}", store.domain_reports(tenant, "example.com", None, 99).await.unwrap()),
        format!("{:?}", store.domain_report_sources(&domain_reports::every_day()).await.unwrap()),
        format!("{:?}", store.scoped_suppressions(&own, None, 99).await.unwrap()),
        format!("{:?}", store.scoped_suppressions(&installation, None, 99).await.unwrap()),
        format!("{:?}", store.audit(Some(tenant), None, 99).await.unwrap()),
        format!(
            "{:?}",
            store.template_versions(tenant, &"welcome".parse().unwrap(), None, 99).await.unwrap()
        ),
        format!("{:?}", store.recipients(tenant, None, None, 99).await.unwrap()),
        format!("{:?}", store.dkim_keys(Some(tenant), None).await.unwrap()),
        format!("{:?}", store.oauth_states().await.unwrap()),
        format!("{:?}", store.provider_hooks(Some(tenant)).await.unwrap()),
        format!("{:?}", store.provider_events(&reported(tenant), None, 99).await.unwrap()),
        format!("{:?}", store.users(None, 99).await.unwrap()),
        format!("{:?}", store.user_sessions(people::user(3, "ada").id).await.unwrap()),
        format!("{:?}", store.audit_lines(0, 99).await.unwrap()),
        format!("{:?}", store.audit_head().await.unwrap()),
        format!("{:?}", store.is_session_ended(SessionId::from_bytes([5; 16])).await.unwrap()),
        format!("{:?}", store.quota_use(tenant, QuotaDay(1)).await.unwrap()),
    ];
    let deleted = RecipientKey::Id(RecipientId::from_bytes([8; 16]));
    lines.push(format!("{:?}", store.recipient(tenant, &deleted).await.unwrap()));
    for account in store.accounts(Some(tenant)).await.unwrap() {
        let key = crate::record::AccountKey { tenant: tenant.clone(), account: account.id.clone() };
        lines.push(format!("{:?}", store.circuit(&key).await.unwrap()));
        lines.push(format!("{:?}", store.used(&key, &LIMITS, at(50)).await.unwrap()));
        lines.push(format!("{account:?}"));
    }
    lines
}

/// The events that were reported of the account with a hook.
fn reported(tenant: &TenantId) -> ProviderEventFilter {
    ProviderEventFilter { key: sample::key(tenant.as_str(), OTHER_ACCOUNT), state: None }
}

/// Enough of a body to distinguish it from another.
fn digest(body: Option<StoredBody>) -> String {
    match body {
        Some(StoredBody::Inline(bytes)) => {
            format!("{} bytes, {}", bytes.len(), bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>())
        }
        other => format!("{other:?}"),
    }
}

/// Everything that the port shows of a store, line by line.
pub async fn picture(store: &Shared) -> Vec<String> {
    let mut lines = Vec::new();
    for tenant in [TENANT, OTHER_TENANT] {
        let tenant = tenant.parse().unwrap();
        lines.push(format!("{:?}", store.tenant(&tenant).await.unwrap()));
        let mut stats = store.stats(Some(&tenant), at(0)).await.unwrap();
        // Counters are made anew, without those that have come to nothing.
        stats.by_status.retain(|_, count| *count != 0);
        lines.push(format!("{stats:?}"));
        lines.extend(managed(store, &tenant).await);
        lines.extend(reporting_data::picture(store, &tenant).await);
        lines.extend(inbound_data::picture(store, &tenant).await);
        let mut before: Option<MessageUid> = None;
        loop {
            let page = store.messages(&tenant, &MessageFilter::default(), before, 500).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.uid);
            for summary in page {
                let key = MessageKey::Uid(summary.uid);
                let record = store.message(&tenant, &key).await.unwrap().unwrap();
                let raw = digest(store.raw(&tenant, summary.uid).await.unwrap());
                let payload = digest(store.payload(&tenant, summary.uid).await.unwrap());
                lines.push(format!("{record:?} {raw} {payload}"));
            }
        }
        for tag in ["tag 3", "Größe", "größe ", "GRÖSSE"] {
            let filter = MessageFilter { tag: Some(tag.into()), ..MessageFilter::default() };
            let found = store.messages(&tenant, &filter, None, 500).await.unwrap();
            lines.push(format!("{} messages with {tag}", found.len()));
        }
    }
    lines.push(format!("{:?}", store.stalled(&[], at(50), 100).await.unwrap()));
    lines.push(format!("{:?}", store.queue_state(at(5_000_000)).await.unwrap()));
    lines.push(format!("{:?}", store.preparation_state(at(50)).await.unwrap()));
    lines.push(format!("{:?}", store.link(sample::uid(at(0), 33), &blob(3).name).await.unwrap()));
    // PostgreSQL's text has no NUL: its store and the copy write another character instead.
    lines.iter().map(|line| line.replace("\\0", "\u{fffd}")).collect()
}
