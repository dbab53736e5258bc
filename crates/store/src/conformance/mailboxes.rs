//! Watched mailboxes, rules and contacts.

use postway_domain::{
    Contact, InboundRule, WatchedMailbox,
    inbound::FolderCursor,
    mailbox::{MailboxAuth, MailboxRole, MailboxSettings, MailboxTls, WatchStart},
    message::OnDoubt,
    rule::{FollowUpPlan, ForwardAction, ForwardForm, RuleAction, RuleCondition, RuleContent, TextMatch},
    secret::SealedSecret,
};

use super::{
    Shared,
    inbound::{mail, page, register},
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
    stage::{all_at_once, direct},
};
use crate::record::{
    ChangeResult, DirectoryChange, InboundFilter, MailboxKey, MailboxNote, RegistrationResult,
};

/// A mailbox of a tenant; its folder has its name.
pub fn mailbox(tenant: &str, id: &str) -> WatchedMailbox {
    WatchedMailbox {
        tenant: tenant.parse().unwrap(),
        id: id.parse().unwrap(),
        settings: MailboxSettings {
            host: "imap.example.net".to_owned(),
            port: 993,
            tls: MailboxTls::Implicit,
            ca_pem: Some("-----BEGIN CERTIFICATE-----".to_owned()),
            username: "größe@example.net".to_owned(),
            auth: MailboxAuth::Xoauth2,
            oauth: None,
            folder: id.to_owned(),
            roles: vec![MailboxRole::Forward, MailboxRole::Pec],
            active: true,
            description: Some("orders".to_owned()),
            poll_seconds: 30,
            start: WatchStart::Since(at(7)),
            proxy: Some("socks5://proxy.example.net:1080".to_owned()),
            all_tenants: true,
            attempts_max: 4,
            on_doubt: Some(OnDoubt::Hold),
            mail_bytes_max: Some(1 << 20),
            authserv_id: None,
            addresses: Vec::new(),
        },
        secret: Some(SealedSecret(vec![0, 255, 3])),
        version: 1,
        created_at: at(1),
        updated_at: at(2),
    }
}

/// The name of a mailbox of the samples' tenant.
pub fn key(id: &str) -> MailboxKey {
    MailboxKey { tenant: tenant(), mailbox: id.parse().unwrap() }
}

/// Makes a mailbox of the samples' tenant.
pub(crate) async fn watch(store: &Shared, id: &str) -> MailboxKey {
    assert_eq!(direct(store, DirectoryChange::CreateMailbox(mailbox(TENANT, id))).await, ChangeResult::Done);
    key(id)
}

/// A rule for a mailbox.
pub fn rule(id: &str, mailbox: &str, position: i64) -> InboundRule {
    InboundRule {
        tenant: tenant(),
        id: id.parse().unwrap(),
        mailbox: mailbox.parse().unwrap(),
        position,
        active: true,
        content: RuleContent {
            conditions: vec![RuleCondition::Subject(TextMatch::Regex("order (?<n>[0-9]+)".to_owned()))],
            actions: vec![RuleAction::Forward(ForwardAction {
                to: vec!["ann@example.org".to_owned()],
                contact: Some("{n}".to_owned()),
                form: ForwardForm::Redirect,
                from: None,
                account: None,
                on_doubt: Some(OnDoubt::Resend),
            })],
            follow_up: Some(FollowUpPlan { every_hours: 5, times_max: 3 }),
        },
        version: 1,
        created_at: at(3),
        updated_at: at(3),
    }
}

/// A contact.
pub fn contact(tenant: &str, id: &str, name: &str) -> Contact {
    Contact {
        tenant: tenant.parse().unwrap(),
        id: id.parse().unwrap(),
        name: name.to_owned(),
        addresses: vec!["ann@example.org".to_owned(), "größe@example.org".to_owned()],
        version: 1,
        created_at: at(4),
        updated_at: at(4),
    }
}

/// With its settings and its secret; before the first look nothing is known of it.
pub async fn a_mailbox_reads_back_whole(store: &Shared) {
    let one = mailbox(TENANT, "orders");
    watch(store, "orders").await;
    let (found, state) = store.mailbox(&key("orders")).await.unwrap().unwrap();
    assert_eq!(found, one);
    assert_eq!((&state.key, state.cursor, state.uid_next, state.lag()), (&key("orders"), None, None, None));
    assert_eq!((state.scanned_at, state.error, state.error_since), (None, None, None));
    assert_eq!(store.mailboxes(Some(&tenant())).await.unwrap(), [one]);
    assert!(store.mailboxes(Some(&other_tenant())).await.unwrap().is_empty());
    let elsewhere = MailboxKey { tenant: other_tenant(), ..key("orders") };
    assert!(store.mailbox(&elsewhere).await.unwrap().is_none());
}

/// Neither its id nor its place is given twice in a tenant.
pub async fn a_mailbox_is_taken_once_by_id_and_by_place(store: &Shared) {
    watch(store, "orders").await;
    let create = |mailbox| direct(store, DirectoryChange::CreateMailbox(mailbox));
    assert_eq!(create(mailbox(TENANT, "orders")).await, ChangeResult::Exists);
    let mut same_place = mailbox(TENANT, "bills");
    same_place.settings.folder = "orders".to_owned();
    same_place.settings.host = "IMAP.example.net".to_owned();
    assert_eq!(create(same_place.clone()).await, ChangeResult::Exists);
    assert_eq!(
        create(WatchedMailbox { tenant: other_tenant(), ..same_place.clone() }).await,
        ChangeResult::Done
    );
    watch(store, "bills").await;
    same_place.version = 2;
    let update = |mailbox, expected| direct(store, DirectoryChange::UpdateMailbox(mailbox, expected));
    assert_eq!(update(same_place, 1).await, ChangeResult::Exists);
    assert_eq!(store.mailboxes(None).await.unwrap().len(), 3);
    let listed: Vec<_> =
        store.mailbox_states(None).await.unwrap().into_iter().map(|state| state.key).collect();
    let theirs = MailboxKey { tenant: other_tenant(), mailbox: "bills".parse().unwrap() };
    assert_eq!(listed, [key("bills"), key("orders"), theirs]);
}

/// Two tunnels may end on one host: another port is another mailbox, and a mailbox may get another port
/// without being read anew, as long as that port is free.
pub async fn a_mailbox_at_another_port_is_another_and_keeps_what_it_has_read(store: &Shared) {
    watch(store, "orders").await;
    let create = |mailbox| direct(store, DirectoryChange::CreateMailbox(mailbox));
    let update = |mailbox, expected| direct(store, DirectoryChange::UpdateMailbox(mailbox, expected));
    let mut tunnel = mailbox(TENANT, "tunnel");
    tunnel.settings.folder = "orders".to_owned();
    assert_eq!(create(tunnel.clone()).await, ChangeResult::Exists);
    tunnel.settings.port += 1;
    assert_eq!(create(tunnel.clone()).await, ChangeResult::Done);
    let note = MailboxNote { key: key("tunnel"), uid_next: Some(7), error: None, at: at(1) };
    store.note_mailbox(note).await.unwrap();

    let back = WatchedMailbox { version: 2, ..tunnel.clone() };
    let onto_the_first = {
        let mut moved = back.clone();
        moved.settings.port -= 1;
        moved
    };
    assert_eq!(update(onto_the_first, 1).await, ChangeResult::Exists);
    let mut elsewhere = back;
    elsewhere.settings.port += 1;
    assert_eq!(update(elsewhere.clone(), 1).await, ChangeResult::Done);
    let (found, state) = store.mailbox(&key("tunnel")).await.unwrap().unwrap();
    assert_eq!((found.settings.port, state.uid_next), (elsewhere.settings.port, Some(7)));
    // The port that it had is free again.
    assert_eq!(create(WatchedMailbox { id: "next".parse().unwrap(), ..tunnel }).await, ChangeResult::Done);
}

/// Of many at once, one gets the place.
pub async fn of_concurrent_mailboxes_of_one_place_one_is_made(store: &Shared) {
    let calls = (0..8).map(|n| {
        let mut one = mailbox(TENANT, &format!("box-{n}"));
        one.settings.folder = "INBOX".to_owned();
        let store = store.clone();
        async move { store.change(DirectoryChange::CreateMailbox(one), None).await.unwrap() }
    });
    let answers = all_at_once(calls).await;
    assert_eq!(answers.iter().filter(|changed| **changed == ChangeResult::Done).count(), 1, "{answers:?}");
    assert_eq!(store.mailboxes(None).await.unwrap().len(), 1);
}

/// A new version in the place of the one that was read; elsewhere, it is read from its start.
pub async fn a_mailbox_that_moves_forgets_its_cursor(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 10), vec![mail(1)])).await;
    let mut changed = mailbox(TENANT, "orders");
    changed.settings.poll_seconds = 99;
    changed.secret = None;
    changed.version = 2;
    let update = |mailbox: &WatchedMailbox, expected| {
        direct(store, DirectoryChange::UpdateMailbox(mailbox.clone(), expected))
    };
    assert_eq!(update(&changed, 9).await, ChangeResult::Stale);
    assert_eq!(update(&changed, 1).await, ChangeResult::Done);
    let (found, state) = store.mailbox(&key).await.unwrap().unwrap();
    assert_eq!((&found, state.cursor.map(|cursor| cursor.last_uid)), (&changed, Some(10)));
    changed.settings.folder = "Archive".to_owned();
    changed.version = 3;
    assert_eq!(update(&changed, 2).await, ChangeResult::Done);
    let (_, state) = store.mailbox(&key).await.unwrap().unwrap();
    assert_eq!((state.cursor, state.uid_next), (None, None));
    assert_eq!(update(&mailbox(TENANT, "nobody"), 1).await, ChangeResult::Stale);
}

/// What was wrong is shown since it began, until a look goes well.
pub async fn a_look_at_a_mailbox_is_noted(store: &Shared) {
    let key = watch(store, "orders").await;
    let note = |ms, uid_next, error: Option<&str>| {
        let error = error.map(str::to_owned);
        store.note_mailbox(MailboxNote { key: key.clone(), at: at(ms), uid_next, error })
    };
    let state = async || store.mailbox(&key).await.unwrap().unwrap().1;
    note(5, None, Some("no such folder")).await.unwrap();
    note(9, None, Some("login refused")).await.unwrap();
    let found = state().await;
    assert_eq!((found.error.as_deref(), found.error_since), (Some("login refused"), Some(at(5))));
    assert_eq!(found.scanned_at, None);
    register(store, page(&key, None, (5, 10), vec![])).await;
    note(12, Some(31), None).await.unwrap();
    let found = state().await;
    assert_eq!((found.error, found.error_since, found.scanned_at), (None, None, Some(at(12))));
    assert_eq!((found.uid_next, state().await.lag()), (Some(31), Some(20)));
    note(13, None, None).await.unwrap();
    assert_eq!(state().await.uid_next, Some(31));
    let nobody = MailboxNote { key: self::key("nobody"), at: at(1), uid_next: None, error: None };
    store.note_mailbox(nobody).await.unwrap();
}

/// Its rules, its mail, and what it has had; one of the same name begins afresh.
pub async fn a_deleted_mailbox_leaves_nothing_behind(store: &Shared) {
    let (orders, bills) = (watch(store, "orders").await, watch(store, "bills").await);
    for key in [&orders, &bills] {
        register(store, page(key, None, (5, 700), (1..=620).map(mail_of(key)).collect())).await;
    }
    for (id, of) in [("one", "orders"), ("two", "bills")] {
        assert_eq!(direct(store, DirectoryChange::CreateRule(rule(id, of, 1))).await, ChangeResult::Done);
    }
    let delete = || direct(store, DirectoryChange::DeleteMailbox(orders.clone()));
    assert_eq!(delete().await, ChangeResult::Done);
    assert_eq!(delete().await, ChangeResult::Missing);
    assert!(store.mailbox(&orders).await.unwrap().is_none());
    assert_eq!(store.mailbox_states(Some(&tenant())).await.unwrap().len(), 1);
    assert_eq!(store.rules(&tenant(), None).await.unwrap().len(), 1);
    assert_eq!(store.route_state(at(9)).await.unwrap().due, 620);
    let late = page(&orders, Some((5, 700)), (5, 701), vec![mail(999)]);
    assert_eq!(store.register(late).await.unwrap(), RegistrationResult::Stale);

    // Before housekeeping came to the rest of it.
    watch(store, "orders").await;
    let of_orders = InboundFilter { mailbox: Some(orders.mailbox.clone()), ..InboundFilter::default() };
    assert!(store.inbound(&tenant(), &of_orders, None, 9).await.unwrap().is_empty());
    let again = page(&orders, None, (5, 9), vec![mail_of(&orders)(1)]);
    assert_eq!(store.register(again).await.unwrap(), RegistrationResult::Done { new: 1, known: 0 });
    assert_eq!(delete().await, ChangeResult::Done);
    for _ in 0..3 {
        direct(store, DirectoryChange::Forget(at(0))).await;
    }
    assert_eq!(store.inbound(&tenant(), &InboundFilter::default(), None, 999).await.unwrap().len(), 620);
}

/// Mail of a mailbox, so that two have different ones.
fn mail_of(key: &MailboxKey) -> impl Fn(u32) -> crate::record::NewInbound {
    let offset = key.mailbox.as_str().len() as u32 * 10_000;
    move |n| mail(offset + n)
}

/// Asked in the order of their positions; only of a mailbox that is there.
pub async fn rules_are_kept_in_their_order(store: &Shared) {
    watch(store, "orders").await;
    watch(store, "bills").await;
    let create = |rule| direct(store, DirectoryChange::CreateRule(rule));
    for (id, of, position) in [("b", "orders", 1), ("a", "orders", 2), ("c", "orders", 1), ("d", "bills", 0)]
    {
        assert_eq!(create(rule(id, of, position)).await, ChangeResult::Done);
    }
    assert_eq!(create(rule("a", "bills", 1)).await, ChangeResult::Exists);
    assert_eq!(create(rule("e", "nobody", 1)).await, ChangeResult::Missing);
    assert_eq!(store.rule(&tenant(), &"b".parse().unwrap()).await.unwrap(), Some(rule("b", "orders", 1)));
    assert_eq!(store.rule(&other_tenant(), &"b".parse().unwrap()).await.unwrap(), None);
    let ids = async |of: Option<&str>| {
        let of = of.map(|of| of.parse().unwrap());
        let rules = store.rules(&tenant(), of.as_ref()).await.unwrap();
        rules.into_iter().map(|rule| rule.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(Some("orders")).await, ["b", "c", "a"]);
    assert_eq!(ids(None).await, ["d", "b", "c", "a"]);
    let changed = InboundRule { active: false, position: 9, version: 2, ..rule("b", "bills", 1) };
    let update =
        |rule: &InboundRule, expected| direct(store, DirectoryChange::UpdateRule(rule.clone(), expected));
    assert_eq!(update(&changed, 7).await, ChangeResult::Stale);
    assert_eq!(update(&changed, 1).await, ChangeResult::Done);
    assert_eq!(store.rule(&tenant(), &changed.id).await.unwrap(), Some(changed.clone()));
    let delete = || direct(store, DirectoryChange::DeleteRule(tenant(), "b".parse().unwrap()));
    assert_eq!((delete().await, delete().await), (ChangeResult::Done, ChangeResult::Missing));
    assert_eq!(ids(Some("bills")).await, ["d"]);
}

/// A name is found in any case and spacing, and given once.
pub async fn contacts_are_found_by_their_names(store: &Shared) {
    let create = |contact| direct(store, DirectoryChange::CreateContact(contact));
    let ann = contact(TENANT, "c-1", "Ann  Größe");
    assert_eq!(create(ann.clone()).await, ChangeResult::Done);
    assert_eq!(create(contact(TENANT, "c-2", "ann größe")).await, ChangeResult::Exists);
    assert_eq!(create(contact(TENANT, "c-1", "Bob")).await, ChangeResult::Exists);
    assert_eq!(create(contact(OTHER_TENANT, "c-1", "ann größe")).await, ChangeResult::Done);
    let nobody = Contact { addresses: Vec::new(), ..contact(TENANT, "c-3", "Nobody") };
    assert_eq!(create(nobody.clone()).await, ChangeResult::Done);
    assert_eq!(store.contact_named(&tenant(), " ANN GRÖßE").await.unwrap(), Some(ann.clone()));
    assert_eq!(store.contact_named(&tenant(), "Bob").await.unwrap(), None);
    assert_eq!(store.contact(&tenant(), &nobody.id).await.unwrap(), Some(nobody.clone()));
    assert_eq!(store.contacts(&tenant(), None, 9).await.unwrap(), [ann.clone(), nobody.clone()]);
    assert_eq!(store.contacts(&tenant(), Some(&ann.id), 9).await.unwrap(), [nobody]);
    assert_eq!(store.contacts(&tenant(), None, 1).await.unwrap().len(), 1);

    let update =
        |contact: Contact, expected| direct(store, DirectoryChange::UpdateContact(contact, expected));
    let renamed = Contact { name: "NOBODY".to_owned(), version: 2, ..ann.clone() };
    assert_eq!(update(renamed.clone(), 1).await, ChangeResult::Exists);
    let renamed = Contact { name: "ann größe ".to_owned(), ..renamed };
    assert_eq!(update(renamed.clone(), 4).await, ChangeResult::Stale);
    assert_eq!(update(renamed.clone(), 1).await, ChangeResult::Done);
    assert_eq!(store.contact(&tenant(), &ann.id).await.unwrap(), Some(renamed));
    let delete = || direct(store, DirectoryChange::DeleteContact(tenant(), "c-1".parse().unwrap()));
    assert_eq!((delete().await, delete().await), (ChangeResult::Done, ChangeResult::Missing));
    assert_eq!(create(contact(TENANT, "c-4", "Ann Größe")).await, ChangeResult::Done);
}

/// With all that came into its mailboxes.
pub async fn a_purge_takes_mailboxes_along(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 20), (1..=5).map(mail).collect())).await;
    direct(store, DirectoryChange::CreateRule(rule("one", "orders", 1))).await;
    for (of, id) in [(TENANT, "c-1"), (OTHER_TENANT, "c-1")] {
        direct(store, DirectoryChange::CreateContact(contact(of, id, "Ann"))).await;
    }
    direct(store, DirectoryChange::DeleteTenant(tenant(), at(9))).await;
    assert_eq!(store.route_state(at(9)).await.unwrap().due, 0, "nobody deals with its mail");
    assert!(store.mailboxes(None).await.unwrap().is_empty(), "nobody looks into its mailboxes");
    assert!(store.mailbox_states(None).await.unwrap().is_empty());
    assert_eq!(store.mailboxes(Some(&tenant())).await.unwrap().len(), 1);
    while direct(store, DirectoryChange::PurgeTenant(tenant(), 2)).await == ChangeResult::Done {}
    assert!(store.mailboxes(Some(&tenant())).await.unwrap().is_empty());
    assert!(store.mailbox_states(Some(&tenant())).await.unwrap().is_empty());
    assert!(store.rules(&tenant(), None).await.unwrap().is_empty());
    assert!(store.contacts(&tenant(), None, 9).await.unwrap().is_empty());
    assert_eq!(store.contacts(&other_tenant(), None, 9).await.unwrap().len(), 1);
    assert!(store.inbound(&tenant(), &InboundFilter::default(), None, 9).await.unwrap().is_empty());
}

/// A cursor.
pub fn cursor(uid_validity: u32, last_uid: u32) -> FolderCursor {
    FolderCursor { uid_validity, last_uid, not_before: Some(at(5)), old_through: 3 }
}
