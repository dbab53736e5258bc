//! Tenants: their settings, their end, and what it leaves behind.

use postway_domain::{
    MessageStatus, Template, Tenant, TenantId, TenantSettings,
    id::AuditId,
    message::{AttemptOutcome, OnDoubt},
    secret::SealedSecret,
    tenant::{
        CallbackForm, ContentLimits, LargeFilePolicy, LargeFiles, RemoteAuth, RemoteService,
        archive::ArchiveSettings,
    },
};

use super::{
    Shared, dkim,
    keys::key,
    preparation,
    recipients::recipient,
    sample::{self, ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, accept_and_claim, apply, claim, direct, outcome, suspend},
    suppress::suppression,
};
use crate::record::{
    Acceptance, AuditEntry, BlobRef, ChangeResult, DirectoryChange, MessageFilter, MessageKey, NewLink,
    OpenCircuit, PreparedMessage, SuspensionScope,
};

fn remote(url: &str) -> RemoteService {
    RemoteService {
        url: url.to_owned(),
        path: Some("/in".to_owned()),
        auth: RemoteAuth::Basic,
        username: Some("Größe".to_owned()),
    }
}

fn whole(id: &str) -> Tenant {
    let mut tenant = Tenant::new(id.parse().unwrap(), "Initech — Größe 📬", at(1));
    tenant.settings = TenantSettings {
        locale: Some("de-AT".parse().unwrap()),
        weight: 250,
        content: ContentLimits {
            subject_chars: Some(80),
            html_bytes: None,
            message_bytes: Some(9_000),
            html_required: true,
            auto_text: true,
        },
        retention_days: Some(30),
        report_retention_seconds: Some(86_400),
        unreported_retention_days: Some(180),
        client_sync: Some(remote("https://sync.example.com")),
        attachment_endpoint: Some(remote("https://files.example.com")),
        callback_form: CallbackForm::Batch,
        large_files: LargeFiles {
            policy: LargeFilePolicy::Rewrite,
            above_bytes: Some(1 << 20),
            link_days: Some(7),
        },
        bounce_domain: Some("bounce.example.com".to_owned()),
        return_path: Some("bounces@example.com".to_owned()),
        default_from: Some("Initech <mail@example.com>".to_owned()),
        feedback_id: Some("initech".to_owned()),
        auto_submitted: true,
        test: true,
        id_header: Some("X-Initech-ID".to_owned()),
        on_doubt: Some(OnDoubt::Hold),
        allowed_senders: vec!["größe.example".parse().unwrap(), "news-*@*.example.com".parse().unwrap()],
        bind_reply_to: true,
        virus_policy: postway_domain::tenant::VirusPolicy::Closed,
        archive: Some(ArchiveSettings {
            to: Some("box@example.com".to_owned()),
            from: Some("Archive <archive@example.com>".to_owned()),
            storage: true,
            encrypt: true,
            days: Some(3_650),
        }),
        guard_content: true,
        daily_quota: postway_domain::quota::DailyQuota {
            messages: Some(1_000),
            bytes: None,
            recipients: Some(1 << 53),
        },
    };
    tenant.default_account = Some(ACCOUNT.parse().unwrap());
    tenant.secret = Some(SealedSecret(vec![0, 255, 7]));
    tenant.version = 3;
    tenant.updated_at = at(9);
    tenant
}

/// Name, settings, secret, version and times.
pub async fn a_tenant_reads_back_whole(store: &Shared) {
    let tenant = whole("initech");
    assert_eq!(
        direct(store, DirectoryChange::CreateTenant(tenant.clone(), Vec::new())).await,
        ChangeResult::Done
    );
    assert_eq!(store.tenant(&tenant.id).await.unwrap(), Some(tenant));
}

/// Who read an older version looks again.
pub async fn a_tenant_update_needs_the_version_it_read(store: &Shared) {
    let update = Tenant { created_at: at(0), version: 2, ..whole(TENANT) };
    assert_eq!(direct(store, DirectoryChange::UpdateTenant(update.clone(), 1)).await, ChangeResult::Done);
    assert_eq!(store.tenant(&tenant()).await.unwrap(), Some(update.clone()));
    let late = Tenant { name: "Late".to_owned(), ..update.clone() };
    assert_eq!(direct(store, DirectoryChange::UpdateTenant(late, 1)).await, ChangeResult::Stale);
    assert_eq!(store.tenant(&tenant()).await.unwrap(), Some(update));
    assert_eq!(store.tenant(&other_tenant()).await.unwrap().unwrap().name, OTHER_TENANT);
    let nobody = DirectoryChange::UpdateTenant(whole("nobody"), 1);
    assert_eq!(direct(store, nobody).await, ChangeResult::Stale);
    assert_eq!(store.tenant(&"nobody".parse().unwrap()).await.unwrap(), None);
}

/// A name that was used stays used, and what is deleted is changed no more.
pub async fn a_deleted_tenant_is_marked_and_stays_so(store: &Shared) {
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(5))).await, ChangeResult::Done);
    let deleted = store.tenant(&tenant()).await.unwrap().unwrap();
    assert_eq!((deleted.deleted_at, deleted.version), (Some(at(5)), 2));
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(6))).await, ChangeResult::Missing);
    assert_eq!(
        direct(store, DirectoryChange::CreateTenant(whole(TENANT), Vec::new())).await,
        ChangeResult::Exists
    );
    let update = Tenant { version: 3, ..deleted.clone() };
    assert_eq!(direct(store, DirectoryChange::UpdateTenant(update, 2)).await, ChangeResult::Stale);
    let default = DirectoryChange::SetDefaultAccount(tenant(), ACCOUNT.parse().unwrap());
    assert_eq!(direct(store, default).await, ChangeResult::Missing);
    assert_eq!(store.tenant(&tenant()).await.unwrap(), Some(deleted));
    assert_eq!(store.tenant(&other_tenant()).await.unwrap().unwrap().deleted_at, None);
    let nobody = DirectoryChange::DeleteTenant("nobody".parse().unwrap(), at(5));
    assert_eq!(direct(store, nobody).await, ChangeResult::Missing);
}

/// Its mail waits for its end, but does not leave any more.
pub async fn a_deleted_tenant_sends_nothing(store: &Shared) {
    accept(store, Sample::new(1)).await;
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(5))).await, ChangeResult::Done);
    assert!(claim(store, 1, at(10), 9).await.is_empty());
}

/// Deleted tenants are listed, because their data is still to be removed.
pub async fn tenants_are_listed_by_id_page_by_page(store: &Shared) {
    for id in ["b", "A", "a", "Z-1", "z_2"] {
        let tenant = Tenant::new(id.parse().unwrap(), id, at(0));
        assert!(store.create_tenant(tenant).await.unwrap());
    }
    assert_eq!(
        direct(store, DirectoryChange::DeleteTenant("b".parse().unwrap(), at(1))).await,
        ChangeResult::Done
    );
    let mut listed: Vec<String> = Vec::new();
    let mut after: Option<TenantId> = None;
    loop {
        let page = store.tenants(after.as_ref(), 3).await.unwrap();
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        listed.extend(page.iter().map(|tenant| tenant.id.to_string()));
    }
    assert_eq!(listed, ["A", "Z-1", "a", "acme", "b", "globex", "z_2"]);
}

/// Something of everything.
async fn furnish(store: &Shared, name: &str) {
    let id: TenantId = name.parse().unwrap();
    let first = if name == TENANT { 0 } else { 10 };
    for n in first..first + 5 {
        let sample = Sample::new(n).from(name, ACCOUNT).client_id(&format!("c{n}")).key(&format!("k{n}"));
        let tags = vec!["x".to_owned(), format!("t{n}")];
        accept(store, sample.collapse(&format!("{n}")).content(|content| content.tags = tags)).await;
    }
    let entry = AuditEntry {
        id: AuditId::new(at(0), &mut rand::rng()),
        at: at(0),
        actor: "admin".to_owned(),
        tenant: Some(id.clone()),
        action: "key.create".to_owned(),
        target: "key".to_owned(),
        request_id: None,
        detail: None,
        salt: Some([5; 16]),
    };
    let made = store.change(DirectoryChange::CreateKey(key(name, name, 1)), Some(entry)).await;
    assert_eq!(made.unwrap(), ChangeResult::Done);
    let list = DirectoryChange::Suppress(vec![suppression(name, "a@example.org")]);
    assert_eq!(direct(store, list).await, ChangeResult::Done);
    let circuit = OpenCircuit {
        key: sample::key(name, ACCOUNT),
        code: "auth".to_owned(),
        reason: "no".to_owned(),
        opened_at: at(0),
        open_until: at(9),
        faults: 1,
    };
    assert_eq!(direct(store, DirectoryChange::OpenCircuit(circuit)).await, ChangeResult::Done);
}

/// How many messages a tenant has.
async fn messages(store: &Shared, tenant: &TenantId) -> usize {
    store.messages(tenant, &MessageFilter::default(), None, 99).await.unwrap().len()
}

/// Messages first, a few at a time; at last all that has the tenant's name, but for the record of what was
/// done.
pub async fn a_purge_goes_slice_by_slice_and_takes_all(store: &Shared) {
    let sent = accept_and_claim(store, Sample::new(50), 1).await;
    assert!(apply(store, outcome(&sent, false, AttemptOutcome::Failed, at(1))).await);
    furnish(store, TENANT).await;
    furnish(store, OTHER_TENANT).await;
    suspend(store, SuspensionScope::Batch("spring".parse().unwrap())).await;

    let purge = |limit| DirectoryChange::PurgeTenant(tenant(), limit);
    assert_eq!(direct(store, purge(99)).await, ChangeResult::Missing, "a living tenant keeps what it has");
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(5))).await, ChangeResult::Done);
    for left in [4, 2, 0] {
        assert_eq!(messages(store, &tenant()).await, left + 2);
        assert_eq!(direct(store, purge(2)).await, ChangeResult::Done, "there may be more");
        assert_eq!(messages(store, &tenant()).await, left);
        assert_eq!(store.keys(&tenant()).await.unwrap().len(), 1);
    }
    let mut calls = 1;
    while direct(store, purge(3)).await == ChangeResult::Done {
        calls += 1;
        assert!(calls < 30, "it does not come to an end");
    }
    assert_eq!(direct(store, purge(2)).await, ChangeResult::Already, "nothing is left");

    assert_eq!(store.message(&tenant(), &MessageKey::Uid(sent.uid)).await.unwrap(), None);
    assert_eq!(store.raw(&tenant(), sent.uid).await.unwrap(), None);
    let tagged = MessageFilter { tag: Some("x".to_owned()), ..MessageFilter::default() };
    assert!(store.messages(&tenant(), &tagged, None, 9).await.unwrap().is_empty());
    assert!(store.keys(&tenant()).await.unwrap().is_empty());
    assert_eq!(store.key(&key(TENANT, TENANT, 1).digest).await.unwrap(), None);
    assert!(store.accounts(Some(&tenant())).await.unwrap().is_empty());
    assert!(store.suspensions(&tenant()).await.unwrap().is_empty());
    assert!(store.suppressions(&tenant(), None, 9).await.unwrap().is_empty());
    assert_eq!(store.circuit(&sample::relay()).await.unwrap(), None);
    let stats = store.stats(Some(&tenant()), at(9)).await.unwrap();
    assert_eq!((stats.by_status.values().sum::<i64>(), stats.oldest_due_at), (0, None));
    assert_eq!(store.audit(Some(&tenant()), None, 9).await.unwrap().len(), 1);
    assert_eq!(store.tenant(&tenant()).await.unwrap().unwrap().deleted_at, Some(at(5)));

    let other = other_tenant();
    assert_eq!(messages(store, &other).await, 5);
    assert_eq!(store.messages(&other, &tagged, None, 9).await.unwrap().len(), 5);
    assert_eq!(store.stats(Some(&other), at(9)).await.unwrap().by_status[&MessageStatus::Ready], 5);
    assert_eq!(store.keys(&other).await.unwrap().len(), 1);
    assert_eq!(store.accounts(Some(&other)).await.unwrap().len(), 2);
    assert_eq!(store.suppressions(&other, None, 9).await.unwrap().len(), 1);
    assert!(store.circuit(&sample::key(OTHER_TENANT, ACCOUNT)).await.unwrap().is_some());
    let repeat = Sample::new(90).from(OTHER_TENANT, ACCOUNT).key("k11").build();
    assert!(matches!(store.accept(vec![repeat]).await.unwrap()[..], [Acceptance::Repeat { .. }]));
}

/// Templates, recipients, signing keys, links, what waits to be prepared; and blobs, which nothing refers to
/// then.
pub async fn a_purge_takes_what_content_is_made_with(store: &Shared) {
    let name = store.reserve_blob([1; 32], 9, at(0)).await.unwrap();
    let file = NewLink {
        blob: BlobRef { name: name.clone(), size: 9 },
        filename: "a.pdf".to_owned(),
        content_type: "application/pdf".to_owned(),
        expires_at: at(9_000),
    };
    for (number, of) in [(1, TENANT), (2, OTHER_TENANT)] {
        for version in 1..=3 {
            let template = Template {
                tenant: of.parse().unwrap(),
                name: "welcome".parse().unwrap(),
                version,
                subject: "Hello".to_owned(),
                html: None,
                text: None,
                mjml: None,
                description: None,
                sample: None,
                layout: None,
                inline_css: false,
                created_at: at(0),
            };
            assert_eq!(direct(store, DirectoryChange::CreateTemplate(template)).await, ChangeResult::Done);
        }
        for n in 1..=3 {
            let known = DirectoryChange::CreateRecipient(recipient(of, n));
            assert_eq!(direct(store, known).await, ChangeResult::Done);
        }
        let key = DirectoryChange::CreateDkimKey(dkim::key(of, "example.com", "one"));
        assert_eq!(direct(store, key).await, ChangeResult::Done);
        accept(store, Sample::new(number).from(of, ACCOUNT).created(1).uncomposed("{}", None)).await;
    }
    let linking = accept(store, Sample::new(3).uncomposed("{}", None)).await;
    let one = preparation::claim(store, 1, at(0), 1).await.remove(0);
    let prepared = PreparedMessage { links: vec![file], ..preparation::composed("x\r\n") };
    assert!(apply(store, preparation::done(&one, prepared, at(0))).await);
    assert!(store.link(linking, &name).await.unwrap().is_some());
    assert!(store.condemn_blobs(at(1), 9).await.unwrap().is_empty());

    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(5))).await, ChangeResult::Done);
    let mut calls = 0;
    while direct(store, DirectoryChange::PurgeTenant(tenant(), 2)).await == ChangeResult::Done {
        calls += 1;
        assert!(calls < 30, "it does not come to an end");
    }
    let known = |of: TenantId| async move { store.recipients(&of, None, None, 9).await.unwrap().len() };
    let templates = |of: TenantId| async move {
        store.template_versions(&of, &"welcome".parse().unwrap(), None, 9).await.unwrap().len()
    };
    assert_eq!((known(tenant()).await, templates(tenant()).await), (0, 0));
    assert_eq!((known(other_tenant()).await, templates(other_tenant()).await), (3, 3));
    assert_eq!(store.dkim_keys(None, None).await.unwrap().len(), 1);
    assert_eq!(store.link(linking, &name).await.unwrap(), None);
    assert_eq!(store.preparation_state(at(9)).await.unwrap().due, [other_tenant()]);
    assert_eq!(store.condemn_blobs(at(1), 9).await.unwrap(), [name]);
}
